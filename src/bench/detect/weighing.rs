//! Thermal against cache: each feature with its weights (throttling-detection.md §5, the table).

use crate::bench::series::Op;
use crate::bench::verdict::{Alternative, Cause, Evidence};

use super::features::{BACK, Fall, Lane};
use super::naming::{Finding, Scene, evidence, full_level_above, hottest_near, idle_times, of_fall};

/// No drive throttles below it.
const COOLEST_C: f64 = 44.0;
/// From here an open case is called thermal.
const OPEN_C: f64 = 65.0;
/// A weight that rules a cause out.
const NEVER: f64 = 100.0;

/// The two sums, and how they came about.
#[derive(Debug, Default)]
struct Scales {
    thermal: f64,
    cache: f64,
    specific: bool,
    evidence: Vec<Evidence>,
}

impl Scales {
    fn add(&mut self, feature: &str, value: &str, thermal: f64, cache: f64) {
        self.thermal += thermal;
        self.cache += cache;
        for (weight, cause) in [(thermal, Cause::Thermal), (cache, Cause::SlcCache)] {
            if weight != 0.0 {
                self.evidence
                    .push(evidence(feature, value.to_owned(), weight, cause));
            }
        }
    }

    fn specific(&mut self, feature: &str, value: &str, thermal: f64, cache: f64) {
        self.specific = true;
        self.add(feature, value, thermal, cache);
    }
}

/// `1 / (1 + exp(-0.7 * (margin - 1)))`.
pub(super) fn confidence(margin: f64) -> f64 {
    // Nothing is certain that one series shows.
    (1.0 / (1.0 + (-0.7 * (margin - 1.0)).exp())).min(0.99)
}

/// Names a group of falls of one kind. Returns the margin of thermal over cache.
pub(super) fn weigh(scene: &Scene, falls: &[Fall], group: &[Fall], found: &mut Vec<Finding>) -> f64 {
    let mut scales = Scales::default();
    let Some(first) = group.first() else { return 0.0 };
    let coolest = group.iter().filter_map(|f| f.temp_c).reduce(f64::min);
    level_of_temperature(&mut scales, first.temp_c, coolest);
    history(scene, &mut scales, group, coolest);
    other_operation(scene, &mut scales, falls, group);
    afterwards(scene, &mut scales, falls, group);
    repetition(scene, &mut scales, group, coolest);
    if first.op == Op::Read {
        scales.specific("read", "it is reads that fall", 2.0, -9.0);
    }
    early(scene, &mut scales, first);

    let margin = scales.thermal - scales.cache;
    let thermal = scales.thermal >= 2.0 && margin > 0.0 && coolest.is_some_and(|c| c >= COOLEST_C);
    let open = thermal && !scales.specific;
    let cause = if thermal && (scales.specific || coolest.is_some_and(|c| c >= OPEN_C)) {
        Cause::Thermal
    } else if first.op == Op::Read {
        Cause::HostNoise
    } else {
        Cause::SlcCache
    };
    for fall in group {
        let kind = match cause {
            Cause::HostNoise => "unknown_fall",
            Cause::SlcCache => "step",
            _ if fall.gradual => "gradual",
            _ if group.len() > 1 && fall.back.is_some() && !fall.back_after_idle => "duty",
            _ => "step",
        };
        let mut f = of_fall(scene, fall, cause, kind);
        f.confidence = match cause {
            Cause::HostNoise => 0.4,
            Cause::Thermal => confidence(margin),
            _ => confidence(-margin),
        };
        f.ambiguous = open;
        if open {
            f.confidence = f.confidence.clamp(0.5, 0.6);
            f.experiment = Some(experiment(scene, fall));
        }
        f.evidence.clone_from(&scales.evidence);
        f.alternatives = [(Cause::Thermal, scales.thermal), (Cause::SlcCache, scales.cache)]
            .into_iter()
            .filter(|(c, score)| *c != cause && *score > -NEVER / 2.0)
            .map(|(cause, score)| Alternative { cause, score })
            .collect();
        found.push(f);
    }
    margin
}

fn experiment(scene: &Scene, fall: &Fall) -> String {
    let written = scene.clean.row(fall.row).map_or(0, |r| r.since_idle);
    let cool = fall
        .temp_c
        .map_or_else(String::new, |t| format!(" to {:.0} °C", t - 10.0));
    format!(
        "let it cool{cool} without a transfer, then write {:.1} GB again: a throttle falls at the same temperature, a cache at the \
         same bytes; or, quicker: idle for 20 s and write again: a cache gives some of the full rate back at the same temperature, \
         a throttle does not",
        1.5 * written as f64 / 1e9
    )
}

fn level_of_temperature(scales: &mut Scales, first: Option<f64>, coolest: Option<f64>) {
    let at = |coolest: f64| match first {
        Some(t) if t - coolest >= 0.5 => {
            format!("{t:.0} °C at the onset, {coolest:.0} °C at a later one of its kind")
        }
        None => format!("{coolest:.0} °C at a later onset of its kind"),
        Some(_) => format!("{coolest:.0} °C at the onset"),
    };
    match coolest {
        Some(t) if t >= COOLEST_C => scales.add("warm", &at(t), 1.0, 0.0),
        Some(t) => scales.add("cool", &format!("{}: no drive throttles there", at(t)), -5.0, 1.0),
        None => scales.add(
            "no_temperature",
            "no temperature is known at the onset",
            -5.0,
            1.0,
        ),
    }
}

/// Three digits, as the reports have them.
fn rate(mb_s: f64) -> String {
    if mb_s < 99.95 {
        format!("{mb_s:.1}")
    } else {
        format!("{mb_s:.0}")
    }
}

/// What the temperature was before.
fn history(scene: &Scene, scales: &mut Scales, group: &[Fall], coolest: Option<f64>) {
    let clean = scene.clean;
    let tolerance = clean.tolerance_c();
    let (Some(first), Some(coolest)) = (group.first(), coolest) else {
        return;
    };
    if let Some(t) = first.temp_c {
        let highest = clean
            .between(0, first.row)
            .iter()
            .filter_map(|r| r.temp_c)
            .reduce(f64::max);
        if highest.is_none_or(|h| t >= h - tolerance) {
            scales.add("highest", &format!("{t:.0} °C is the highest so far"), 1.0, 0.0);
        }
    }
    let hotter = group
        .iter()
        .filter_map(|f| full_level_above(scene, f, 0, f.row))
        .reduce(f64::max);
    if let Some(t) = hotter {
        scales.add(
            "hotter_before",
            &format!("it ran at full rate at {t:.0} °C before"),
            -3.0,
            1.0,
        );
    }
    let hottest = group.iter().filter_map(|f| f.temp_c).fold(coolest, f64::max);
    if hottest - coolest > 3.0 {
        scales.add(
            "spread",
            &format!("it falls at {coolest:.0} and at {hottest:.0} °C"),
            -3.0,
            1.0,
        );
    }
}

/// The row at which the next fall of the operation begins, or the fall is over.
fn until(scene: &Scene, falls: &[Fall], fall: &Fall) -> usize {
    let next = falls
        .iter()
        .filter(|f| f.op == fall.op && f.row > fall.row)
        .map(|f| f.row)
        .min();
    fall.end(scene.clean).min(next.unwrap_or(usize::MAX))
}

/// Whether the other operation falls as well.
fn other_operation(scene: &Scene, scales: &mut Scales, falls: &[Fall], group: &[Fall]) {
    let (Some(first), Some(other)) = (group.first(), group.first().and_then(|f| scene.other(f.op))) else {
        return;
    };
    let word = other.op.word();
    let mut fell: Option<(f64, f64)> = None;
    let mut full: Option<f64> = None;
    for fall in group {
        let before = other.level_before(scene.clean, fall.row, 60, 5);
        let Some(after) = other.level_after(scene.clean, fall.row, until(scene, falls, fall), 12, 5) else {
            continue;
        };
        match before {
            Some(b) if after < 0.9 * b && (b / after).ln() > 3.0 * other.sigma / 5.0_f64.sqrt() => {
                fell = fell.or(Some((b, after)));
            }
            Some(b) if after >= 0.9 * b => full = full.or(Some(after)),
            None if after >= 0.95 * fall.before_mb_s
                || scene.clean.link_mb_s.is_some_and(|l| after >= 0.85 * l) =>
            {
                full = full.or(Some(after));
            }
            _ => {}
        }
    }
    // The same figures as those of its own event, if it has one.
    let near = |a: f64, b: f64| (a - b).abs() <= 0.12 * a.max(b);
    let fell = fell.map(|(b, a)| {
        falls
            .iter()
            .find(|f| f.op == other.op && near(f.before_mb_s, b) && near(f.after_mb_s, a))
            .map_or((b, a), |f| (f.before_mb_s, f.after_mb_s))
    });
    match (fell, full) {
        (Some((b, a)), None) => scales.specific(
            "both",
            &format!("{word}s fall as well, {} -> {} MB/s", rate(b), rate(a)),
            2.0,
            -2.0,
        ),
        (None, Some(a)) if first.op == Op::Write => scales.add(
            "reads_full",
            &format!("{word}s run at their full {a:.0} MB/s after it"),
            -2.0,
            2.0,
        ),
        _ => {}
    }
}

/// Temperatures under load from the onset to the end or the next fall, without those at idle.
fn temps_under_load(scene: &Scene, from: usize, to: usize) -> impl Iterator<Item = f64> {
    scene
        .clean
        .between(from, to)
        .iter()
        .filter(|r| r.op != Op::Idle)
        .filter_map(|r| r.temp_c)
}

/// What temperature and level do after the fall.
fn afterwards(scene: &Scene, scales: &mut Scales, falls: &[Fall], group: &[Fall]) {
    let clean = scene.clean;
    let Some(first) = group.first() else { return };
    let Some(onset) = first.temp_c else { return };
    if group.iter().any(|f| f.gradual) {
        scales.specific(
            "proportional",
            "the rate follows the temperature down, step by step",
            3.0,
            -2.0,
        );
    }
    let idle = idle_times(clean)
        .iter()
        .map(|(_, behind)| *behind)
        .find(|b| *b > first.row)
        .unwrap_or(usize::MAX);
    let end = until(scene, falls, first).min(idle);
    let steps: Vec<f64> = falls
        .iter()
        .filter(|f| f.op == first.op && f.row > first.row && f.row < idle)
        .filter(|f| f.after_mb_s < 0.92 * first.after_mb_s && f.row <= first.end(clean))
        .filter_map(|f| f.temp_c)
        .filter(|t| *t >= onset + 2.0)
        .collect();
    let further = steps.first().copied();
    let highest = temps_under_load(scene, first.row, end).reduce(f64::max);
    match highest {
        Some(t) if t <= onset + 6.0 => {
            scales.add("settles", &format!("after it, at most {t:.0} °C"), 1.0, 0.0);
        }
        Some(t) if further.is_none() && !first.gradual => scales.add(
            "climbs",
            &format!("it climbs on to {t:.0} °C and the rate falls no further"),
            -2.0,
            1.0,
        ),
        _ => {}
    }
    match steps.as_slice() {
        // NVMe knows two temperatures of thermal management, TMT1 and TMT2: of three steps the first is another's.
        [_, last, ..] if first.op == Op::Write && !scales.specific => scales.add(
            "third_level",
            &format!("two further falls, up to {last:.0} °C: firmware throttles in two levels"),
            0.0,
            3.0,
        ),
        [t, ..] => {
            scales.specific = true;
            scales.add("steps", &format!("a further fall at {t:.0} °C"), 0.0, 0.0);
        }
        [] => {}
    }
    let stays_low = first.end(clean).min(idle);
    let coldest = temps_under_load(scene, first.row, stays_low).reduce(f64::min);
    if let (Some(hot), Some(cold)) = (hottest_near(clean, first.row), coldest)
        && hot - cold >= 7.0
        && !returns_under_load(first)
    {
        scales.add(
            "stays_low",
            &format!("the rate stays low though it cools to {cold:.0} °C under load"),
            -3.0,
            2.0,
        );
    }
    let duty = group.iter().filter(|f| returns_under_load(f)).find_map(|f| {
        let on = hottest_near(clean, f.row)?;
        let off = clean.row(f.end(clean))?.temp_c?;
        (on - off >= 2.0).then_some((on, off))
    });
    if let Some((on, off)) = duty {
        scales.specific(
            "duty",
            &format!("the rate comes back under load after cooling from {on:.0} to {off:.0} °C"),
            3.0,
            -2.0,
        );
    }
}

fn returns_under_load(fall: &Fall) -> bool {
    fall.back.is_some() && !fall.back_after_idle
}

/// What a second fall of the group, and idle times, tell.
fn repetition(scene: &Scene, scales: &mut Scales, group: &[Fall], coolest: Option<f64>) {
    let clean = scene.clean;
    let Some(first) = group.first() else { return };
    let mut by_idle = false;
    if let (Some(lane), Some(coolest)) = (scene.lane(first.op), coolest) {
        by_idle = idle_rows(scene, scales, lane, group, coolest);
    }
    let bytes = |f: &Fall| clean.row(f.row).map_or(0.0, |r| r.since_idle as f64);
    let idles = |f: &Fall| clean.row(f.row).map_or(0, |r| r.idles);
    let mut same_temperature: Option<f64> = None;
    let mut same_bytes: Option<(f64, f64)> = None;
    for pair in group.windows(2) {
        let [a, b] = pair else { continue };
        let (Some(ta), Some(tb)) = (a.temp_c, b.temp_c) else {
            continue;
        };
        let (ba, bb) = (bytes(a), bytes(b));
        let apart = (ba - bb).abs() / ba.max(bb).max(1.0);
        if (ta - tb).abs() <= clean.tolerance_c() && apart > 0.25 {
            same_temperature = same_temperature.or(Some(tb));
        }
        let fewer = bb < ba && idles(a) != idles(b);
        if (ta - tb).abs() > 3.0 && (apart <= 0.15 || fewer) {
            same_bytes = same_bytes.or(Some((ta, tb)));
        }
    }
    if let (Some(t), false) = (same_temperature, by_idle) {
        scales.specific(
            "same_temperature",
            &format!("it falls again at {t:.0} °C, at other bytes"),
            2.0,
            -2.0,
        );
    }
    if let Some((a, b)) = same_bytes {
        scales.add(
            "same_bytes",
            &format!("it falls again at the same bytes, at {b:.0} °C and not at {a:.0} °C"),
            -3.0,
            3.0,
        );
    }
}

/// Full level right after an idle time: what did the idle time cool?
fn idle_rows(scene: &Scene, scales: &mut Scales, lane: &Lane, group: &[Fall], coolest: f64) -> bool {
    let clean = scene.clean;
    let Some(first) = group.first() else { return false };
    let mut found = false;
    let (mut warm_done, mut never_done) = (false, false);
    for (before, behind) in idle_times(clean) {
        // The last fall before it that had not come back by then.
        let slow = group
            .iter()
            .rev()
            .find(|f| f.row <= before && f.end(clean) > before);
        let (Some(slow), Some(level)) = (slow, lane.level_after(clean, behind, clean.rows.len(), 5, 2))
        else {
            continue;
        };
        if level < BACK * first.before_mb_s {
            continue;
        }
        let resumed = clean
            .between(behind, behind + 3)
            .iter()
            .find_map(|r| r.temp_c)
            .or_else(|| clean.row(before).and_then(|r| r.temp_c));
        let Some(resumed) = resumed else { continue };
        if !warm_done && resumed >= coolest - 3.0 {
            warm_done = true;
            scales.add(
                "full_after_idle",
                &format!("after an idle time it runs at full rate at {resumed:.0} °C"),
                -5.0,
                2.0,
            );
        }
        let coolest_slow = temps_under_load(scene, slow.row, before + 1).reduce(f64::min);
        let coolest_idle = clean
            .between(before + 1, behind + 1)
            .iter()
            .filter_map(|r| r.temp_c)
            .fold(resumed, f64::min);
        if let Some(slow_c) = coolest_slow.filter(|s| !never_done && coolest_idle >= *s) {
            never_done = true;
            scales.add(
                "idle_never_cooled",
                &format!(
                    "full rate after an idle time that cooled it to {coolest_idle:.0} °C, where it had been slow at {slow_c:.0} °C"
                ),
                -5.0,
                2.0,
            );
        }
        found |= warm_done || never_done;
    }
    found
}

/// A fall right at the start, before anything could warm up.
fn early(scene: &Scene, scales: &mut Scales, first: &Fall) {
    let start = scene.clean.rows.first();
    let begin_s = start.map_or(0.0, |r| r.start_s);
    let start_c = scene.clean.rows.iter().find_map(|r| r.temp_c);
    if let (Some(a), Some(b)) = (start_c, first.temp_c)
        && first.onset_s - begin_s < 25.0
        && (b - a).abs() <= 4.0
    {
        scales.add(
            "early",
            &format!(
                "{:.0} s after the start, {:.0} °C warmer",
                first.onset_s - begin_s,
                b - a
            ),
            -2.0,
            1.0,
        );
    }
}
