//! Naming the cause: gates that decide alone, then thermal against cache (throttling-detection.md §5, §6).

use crate::bench::series::Op;
use crate::bench::verdict::{Alternative, Cause, Event, Evidence};

use super::cleaning::{Clean, IDLE_S, Row};
use super::features::{BACK, Dip, Fall, Lane};
use super::robust;
use super::stalls::regular_stalls;
use super::weighing;

/// Rates at which a link that has fallen back ends, in MB/s.
const CEILINGS: [(f64, f64); 3] = [(28.0, 46.0), (370.0, 460.0), (800.0, 1060.0)];
/// Levels nearer than this are the same.
const SAME: f64 = 0.12;
/// Where a drive counts as nearly full.
const NEARLY_FULL: f64 = 0.70;

/// An event with what speaks for it.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub event: Event,
    /// Row of its onset, and the one behind its end.
    pub row: usize,
    pub end: usize,
    pub confidence: f64,
    pub evidence: Vec<Evidence>,
    pub alternatives: Vec<Alternative>,
    pub ambiguous: bool,
    pub experiment: Option<String>,
}

/// Everything that the naming looks at.
pub(super) struct Scene<'a> {
    pub clean: &'a Clean,
    pub lanes: &'a [Lane],
    pub falls: Vec<Fall>,
    /// All dips, in the order of time.
    pub dips: Vec<Dip>,
    pub low_share: f64,
}

impl Scene<'_> {
    pub fn lane(&self, op: Op) -> Option<&Lane> {
        self.lanes.iter().find(|l| l.op == op)
    }

    /// The lane of the other operation.
    pub fn other(&self, op: Op) -> Option<&Lane> {
        self.lanes.iter().find(|l| l.op != op)
    }
}

pub(super) fn evidence(feature: &str, value: String, weight: f64, speaks_for: Cause) -> Evidence {
    Evidence {
        feature: feature.to_owned(),
        value,
        weight,
        speaks_for,
    }
}

fn finding(scene: &Scene, cause: Cause, kind: &str, row: usize, end: usize) -> Finding {
    let at = scene.clean.row(row);
    Finding {
        event: Event {
            cause,
            kind: kind.to_owned(),
            onset_s: at.map_or(0.0, |r| r.start_s),
            end_s: (end < scene.clean.rows.len())
                .then(|| scene.clean.row(end).map(|r| r.start_s))
                .flatten(),
            op: at.map(|r| r.op),
            before_mb_s: None,
            after_mb_s: None,
            drop_pct: None,
            temp_c: at.and_then(|r| r.temp_c),
            bytes: row
                .checked_sub(1)
                .and_then(|k| scene.clean.row(k))
                .map_or(Some(0), |r| Some(r.bytes)),
        },
        row,
        end,
        confidence: 0.5,
        evidence: Vec::new(),
        alternatives: Vec::new(),
        ambiguous: false,
        experiment: None,
    }
}

fn with_levels(mut finding: Finding, before: Option<f64>, after: Option<f64>) -> Finding {
    finding.event.before_mb_s = before;
    finding.event.after_mb_s = after;
    finding.event.drop_pct = match (before, after) {
        (Some(b), Some(a)) if b > 0.0 => Some(100.0 * (1.0 - a / b)),
        _ => None,
    };
    finding
}

pub(super) fn of_fall(scene: &Scene, fall: &Fall, cause: Cause, kind: &str) -> Finding {
    let mut finding = finding(scene, cause, kind, fall.row, fall.end(scene.clean));
    finding.event.op = Some(fall.op);
    finding.event.onset_s = fall.onset_s;
    with_levels(finding, Some(fall.before_mb_s), Some(fall.after_mb_s))
}

/// Everything found, in no order.
pub(super) fn name(mut scene: Scene) -> Vec<Finding> {
    let mut found = Vec::new();
    page_cache(&scene, &mut found);
    let stops: Vec<Dip> = scene.dips.iter().copied().filter(Dip::is_stop).collect();
    let renegotiated = renegotiated(&mut scene, &stops, &mut found);
    let regular = regular_stalls(&scene.dips);
    let mut reset = false;
    if let Some(stalls) = &regular {
        periodic(&scene, stalls, &mut found);
    } else {
        let left: Vec<Dip> = stops
            .iter()
            .copied()
            .filter(|s| !renegotiated.contains(&s.first))
            .collect();
        reset = resets(&scene, &left, &mut found);
    }
    let before_falls = found.len();
    let falls = std::mem::take(&mut scene.falls);
    let margin = name_falls(&scene, falls, &mut found);
    let unsettled = regular.is_none() && !reset && scene.dips.len() >= 6 && scene.low_share > 0.15;
    let strong = margin.is_some_and(|m| m >= 5.0);
    let nothing = found.is_empty() && scene.low_share > 0.10;
    if unsettled && !strong || nothing {
        // Falls among irregular losses are part of them; a full drive is not.
        let mut at = 0;
        found.retain(|f| {
            at += 1;
            at <= before_falls || f.event.cause == Cause::CapacityCliff
        });
        load(&scene, &mut found);
    }
    found
}

/// Gate 1: faster than the link at the start of the run, or after an idle time.
fn page_cache(scene: &Scene, found: &mut Vec<Finding>) {
    let clean = scene.clean;
    for (from, to) in &clean.above_link {
        let first_of_phase = clean
            .between(from.saturating_sub(3), *from)
            .iter()
            .all(|r| r.op == Op::Idle || r.edge || clean.row(*from).is_some_and(|f| f.idles != r.idles));
        if !first_of_phase || *to >= clean.rows.len() {
            continue;
        }
        let run = clean.between(*from, *to);
        let op = run.first().map_or(Op::Write, |r| r.op);
        let before = robust::median(run.iter().map(|r| r.mb_s));
        let after = scene
            .lane(op)
            .and_then(|l| l.level_after(clean, *to, clean.rows.len(), 60, 3));
        let mut f = finding(scene, Cause::HostNoise, "page_cache", *to, clean.rows.len());
        f.event.op = Some(op);
        f = with_levels(f, before, after);
        f.confidence = 0.9;
        f.evidence.push(evidence(
            "above_link",
            format!(
                "{} s at {:.0} MB/s, and the link carries {:.0}: that went into memory",
                run.len(),
                before.unwrap_or(0.0),
                clean.link_mb_s.unwrap_or(0.0)
            ),
            5.0,
            Cause::HostNoise,
        ));
        found.push(f);
    }
}

/// What the system said near a stop that makes it certain.
fn said(clean: &Clean, stop: &Dip) -> Option<String> {
    clean
        .notices
        .iter()
        .find(|n| {
            let text = n.text.to_lowercase();
            (stop.start_s - 5.0..=stop.end_s + 5.0).contains(&n.t_s)
                && ["reset", "disconnect", "usb", "abort", "link", "speed"]
                    .iter()
                    .any(|w| text.contains(w))
        })
        .map(|n| n.text.clone())
}

/// Gate 2: a stop, and a slower link behind it. Falls at the stop are explained by it. Returns the first rows of such stops.
fn renegotiated(scene: &mut Scene, stops: &[Dip], found: &mut Vec<Finding>) -> Vec<usize> {
    let clean = scene.clean;
    let mut explained = Vec::new();
    for (k, stop) in stops.iter().enumerate() {
        let next = stops.get(k + 1).map_or(clean.rows.len(), |s| s.first);
        let mut levels = Vec::new();
        for lane in scene.lanes {
            let after = lane.level_after(clean, stop.last + 1, next, 20, 5);
            let before = lane.level_before(clean, stop.first, 20, 5);
            if let Some(after) = after {
                levels.push((before, after));
            }
        }
        let fell = levels
            .iter()
            .any(|(before, after)| before.is_some_and(|b| *after < 0.9 * b));
        let rose = levels
            .iter()
            .any(|(before, after)| before.is_some_and(|b| *after > 0.9 * b));
        let at_ceiling = levels
            .iter()
            .all(|(_, after)| CEILINGS.iter().any(|(low, high)| (*low..=*high).contains(after)));
        let same = match levels.as_slice() {
            [(_, a), (_, b)] => (a - b).abs() < SAME * a.max(*b),
            _ => false,
        };
        if !fell || rose || !(at_ceiling || same) {
            continue;
        }
        let lane = scene.lane(stop.op);
        let before = lane.and_then(|l| l.level_before(clean, stop.first, 20, 5));
        let after = levels.first().map(|l| l.1);
        let mut f = finding(scene, Cause::Link, "renegotiated", stop.first, clean.rows.len());
        f.event.op = None;
        f.event.end_s = None;
        f = with_levels(f, before.or(Some(stop.reference_mb_s)), after);
        f.confidence = 0.9;
        let after = after.unwrap_or(0.0);
        let how = match (at_ceiling, same) {
            (true, true) => "both operations run at a ceiling of a slower link",
            (true, false) => "that is the ceiling of a slower link",
            _ => "both operations run at the same level",
        };
        f.evidence.push(evidence(
            "stop",
            format!(
                "nothing moved for {:.1} s, then {after:.0} MB/s: {how}",
                stop.lost_s
            ),
            5.0,
            Cause::Link,
        ));
        if let Some(text) = said(clean, stop) {
            f.confidence = 0.97;
            f.evidence
                .push(evidence("kernel_message", text, 5.0, Cause::Link));
        }
        found.push(f);
        explained.push(stop.first);
        let (from_s, to_s) = (stop.start_s - 10.0, stop.end_s + 10.0);
        let lanes = scene.lanes;
        scene.falls.retain(|fall| {
            let lane = lanes.iter().find(|l| l.op == fall.op);
            let previous = lane
                .and_then(|l| {
                    l.index_of(fall.row)
                        .checked_sub(1)
                        .and_then(|i| l.rows.get(i).copied())
                })
                .unwrap_or(0);
            let across = previous <= stop.last && fall.row >= stop.first;
            !(across || (from_s..=to_s).contains(&fall.onset_s))
        });
    }
    explained
}

/// Gate 3: a few stops, one of them long, after which the old rate is back.
fn resets(scene: &Scene, stops: &[Dip], found: &mut Vec<Finding>) -> bool {
    let clean = scene.clean;
    let long = stops.iter().any(|s| s.lost_s >= 3.5);
    let back = stops.iter().all(|s| {
        scene.lane(s.op).is_none_or(|lane| {
            let before = lane.level_before(clean, s.first, 20, 3);
            let after = lane.level_after(clean, s.last + 1, clean.rows.len(), 20, 3);
            match (before, after) {
                (Some(b), Some(a)) => a > 0.85 * b,
                (_, None) => false,
                (None, _) => true,
            }
        })
    });
    if stops.is_empty() || stops.len() > 3 || !long || !back || scene.dips.len() > 8 {
        return false;
    }
    for stop in stops {
        let mut f = finding(scene, Cause::Link, "reset", stop.first, stop.last + 1);
        f.event.onset_s = stop.start_s;
        f = with_levels(f, Some(stop.reference_mb_s), Some(stop.low_mb_s));
        f.confidence = (0.5 + 0.1 * stops.len() as f64).min(0.95);
        f.evidence.push(evidence(
            "stop",
            format!(
                "nothing moved for {:.1} s, then the old rate was back",
                stop.lost_s
            ),
            3.0,
            Cause::Link,
        ));
        // A command that times out takes the kernel ten seconds and more: no firmware pauses that long.
        if stop.lost_s >= 10.0 {
            f.confidence = f.confidence.max(0.8);
        }
        if let Some(text) = said(clean, stop) {
            f.confidence = 0.97;
            f.evidence
                .push(evidence("kernel_message", text, 5.0, Cause::Link));
        }
        found.push(f);
    }
    true
}

fn periodic(scene: &Scene, stalls: &[Dip], found: &mut Vec<Finding>) {
    let (Some(first), Some(last)) = (stalls.first(), stalls.last()) else {
        return;
    };
    let gaps: Vec<f64> = stalls
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] => Some(b.active_s - a.active_s),
            _ => None,
        })
        .collect();
    let mut f = finding(
        scene,
        Cause::PeriodicStall,
        "stalls",
        first.first,
        scene.clean.rows.len(),
    );
    f.event.onset_s = first.start_s;
    // Stalls that no longer come have ended.
    let gap = robust::median(gaps.iter().copied()).unwrap_or(0.0);
    let run_end = scene.clean.rows.last().map_or(0.0, |r| r.t_s);
    f.event.end_s = (run_end - last.end_s > 2.5 * gap).then_some(last.end_s);
    f = with_levels(
        f,
        Some(first.reference_mb_s),
        robust::median(stalls.iter().map(|s| s.low_mb_s)),
    );
    f.confidence = (0.5 + 0.1 * stalls.len() as f64).min(0.95);
    f.evidence.push(evidence(
        "regular_stalls",
        format!(
            "{} stalls of {:.1} s, {gap:.0} s apart (variation {:.2}), {:.0} % of all dips",
            stalls.len(),
            robust::median(stalls.iter().map(|s| s.lost_s)).unwrap_or(0.0),
            robust::variation(&gaps).unwrap_or(0.0),
            100.0 * stalls.len() as f64 / scene.dips.len().max(1) as f64,
        ),
        4.0,
        Cause::PeriodicStall,
    ));
    found.push(f);
}

/// Gates 7 and 8: irregular losses.
fn load(scene: &Scene, found: &mut Vec<Finding>) {
    let first_dip = scene.dips.first().map(|d| d.first);
    let first_low = scene.lanes.iter().filter_map(|l| l.first_low).min();
    let Some(row) = first_dip.into_iter().chain(first_low).min() else {
        return;
    };
    let mut f = finding(scene, Cause::HostNoise, "load", row, scene.clean.rows.len());
    f.event.op = None;
    f.confidence = (0.6 + scene.low_share).min(0.9);
    f.evidence.push(evidence(
        "irregular_losses",
        format!(
            "{:.0} % of the seconds are far under the usual rate, {} dips without a period",
            100.0 * scene.low_share,
            scene.dips.len()
        ),
        3.0,
        Cause::HostNoise,
    ));
    found.push(f);
}

/// Gates 5 and 6, then the weights. Returns the best margin of thermal over cache.
fn name_falls(scene: &Scene, mut falls: Vec<Fall>, found: &mut Vec<Finding>) -> Option<f64> {
    falls.sort_by_key(|f| f.row);
    let mut groups: Vec<Vec<Fall>> = Vec::new();
    for fall in falls.iter().copied() {
        let near = |a: f64, b: f64, part: f64| (a - b).abs() <= part * a.max(b);
        let kin = groups.iter_mut().find(|g| {
            g.first().is_some_and(|f| {
                f.op == fall.op
                    && near(f.before_mb_s, fall.before_mb_s, 0.12)
                    && near(f.after_mb_s, fall.after_mb_s, 0.25)
            })
        });
        match kin {
            Some(group) => group.push(fall),
            None => groups.push(vec![fall]),
        }
    }
    let mut best: Option<f64> = None;
    for group in &groups {
        if cliff(scene, &falls, group, found) {
            continue;
        }
        let rest = plateaus(scene, group, found);
        if rest.is_empty() {
            continue;
        }
        let margin = weighing::weigh(scene, &falls, &rest, found);
        best = Some(best.map_or(margin, |b| b.max(margin)));
    }
    best
}

/// Gate 5: writes fall, reads do not, and most of the medium has been written.
fn cliff(scene: &Scene, falls: &[Fall], group: &[Fall], found: &mut Vec<Finding>) -> bool {
    let clean = scene.clean;
    let (Some(capacity), [fall]) = (clean.capacity, group) else {
        return false;
    };
    let written = clean.row(fall.row).map_or(0.0, |r| r.written as f64);
    let share = (clean.offset + written) / capacity;
    let reads_fall = falls.iter().any(|f| f.op == Op::Read);
    if fall.op != Op::Write || !(NEARLY_FULL..=1.1).contains(&share) || reads_fall || fall.back.is_some() {
        return false;
    }
    let mut f = of_fall(scene, fall, Cause::CapacityCliff, "cliff");
    f.confidence = 0.9;
    f.evidence.push(evidence(
        "share_of_capacity",
        format!("{:.0} % of the capacity had been written", 100.0 * share),
        5.0,
        Cause::CapacityCliff,
    ));
    found.push(f);
    true
}

/// Gate 6: members that come back by themselves. Returns the others.
fn plateaus(scene: &Scene, group: &[Fall], found: &mut Vec<Finding>) -> Vec<Fall> {
    let clean = scene.clean;
    let (back, mut rest): (Vec<Fall>, Vec<Fall>) = group
        .iter()
        .copied()
        .partition(|f| f.back.is_some() && !f.back_after_idle);
    let mut by_itself = Vec::new();
    let mut cooled = Vec::new();
    for fall in back {
        let at = |row: usize| clean.row(row).and_then(|r| r.temp_c);
        let back = fall.end(clean);
        let drop = match (hottest_near(clean, fall.row), at(back)) {
            (Some(on), Some(off)) => on - off,
            _ => 0.0,
        };
        let hotter =
            full_level_above(scene, &fall, fall.row, clean.rows.len()).filter(|_| fall.temp_c.is_some());
        if drop < 3.0 || hotter.is_some() {
            by_itself.push((fall, drop, hotter));
        } else {
            cooled.push(fall);
        }
    }
    // A drive that mostly cools before it comes back has a policy; one coarse reading does not change that.
    if cooled.len() >= by_itself.len().max(1) {
        rest.extend(
            group
                .iter()
                .copied()
                .filter(|f| f.back.is_some() && !f.back_after_idle),
        );
        rest.sort_by_key(|f| f.row);
        return rest;
    }
    rest.extend(cooled);
    rest.sort_by_key(|f| f.row);
    for (fall, drop, hotter) in by_itself {
        let end = fall.end(clean);
        let length = clean.row(end).map_or(0.0, |r| r.start_s) - fall.onset_s;
        if fall.depth() < 0.15 || length < 15.0 {
            continue;
        }
        let mut f = of_fall(scene, &fall, Cause::HostNoise, "plateau");
        let mut why = format!("the rate came back after {length:.0} s without idle time");
        match (fall.temp_c, hotter) {
            (Some(_), Some(t)) => {
                why.push_str(&format!(", and the drive ran at full rate at {t:.0} °C later"))
            }
            (Some(_), None) => why.push_str(&format!(", the temperature {drop:.0} °C lower")),
            _ => {}
        }
        f.confidence = 0.85;
        f.evidence
            .push(evidence("ends_by_itself", why, 4.0, Cause::HostNoise));
        found.push(f);
    }
    rest
}

/// The highest temperature at an onset and in the 20 s after it: sensors lag.
pub(super) fn hottest_near(clean: &Clean, row: usize) -> Option<f64> {
    let start = clean.row(row)?.t_s;
    clean
        .between(row, clean.rows.len())
        .iter()
        .take_while(|r| r.t_s <= start + 20.0)
        .filter_map(|r| r.temp_c)
        .reduce(f64::max)
}

/// The highest temperature at which the operation ran at its full level for a while, between two rows, if that is above the
/// onset's by more than the tolerance.
pub(super) fn full_level_above(scene: &Scene, fall: &Fall, from: usize, to: usize) -> Option<f64> {
    let onset = fall.temp_c?;
    let lane = scene.lane(fall.op)?;
    let mut temps: Vec<f64> = lane
        .rows
        .get(lane.index_of(from)..lane.index_of(to))
        .unwrap_or(&[])
        .iter()
        .filter_map(|i| scene.clean.row(*i))
        .filter(|r| r.mb_s >= BACK * fall.before_mb_s)
        .filter_map(|r| r.temp_c)
        .filter(|t| *t > onset + scene.clean.tolerance_c())
        .collect();
    if temps.len() < 5 {
        return None;
    }
    robust::quantile(&mut temps, 1.0)
}

/// Idle times of a run: the row in front, the first row behind.
pub(super) fn idle_times(clean: &Clean) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let active: Vec<(usize, &Row)> = clean
        .rows
        .iter()
        .enumerate()
        .filter(|(_, r)| r.op != Op::Idle)
        .collect();
    for pair in active.windows(2) {
        if let [(a, before), (b, after)] = pair
            && before.idles != after.idles
            && after.start_s - before.t_s >= IDLE_S
        {
            out.push((*a, *b));
        }
    }
    out
}
