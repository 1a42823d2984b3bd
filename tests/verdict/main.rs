//! The detector against labelled traces, against series drawn at random, and against series that are changed so that the
//! verdict must stay.
//!
//! The traces are not part of the package. They are looked for in `$DRIVETHRU_TRACES`, then in `../shared/traces` beside
//! the package. Without them the test says loudly that it was skipped.

mod chance;
mod draw;
mod score;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use draw::{Dice, FAMILIES, draw};
use drivethru::bench::detect::{Online, analyze};
use drivethru::bench::import;
use drivethru::bench::series::{Op, Sample, Series};
use drivethru::bench::verdict::{Cause, Verdict};
use drivethru::report::Style;
use drivethru::report::bench::text;
use score::{Case, Score, middle_and_worst};

fn traces() -> Option<PathBuf> {
    let named = std::env::var_os("DRIVETHRU_TRACES").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces");
    let found = named.into_iter().chain([beside]).find(|p| p.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: verdict: no labelled traces (DRIVETHRU_TRACES names their directory)");
    }
    found
}

fn series_of(csv: &Path) -> Series {
    let file = File::open(csv).unwrap_or_else(|e| panic!("{}: {e}", csv.display()));
    let mut imported =
        import::read(BufReader::new(file)).unwrap_or_else(|e| panic!("{}: {e}", csv.display()));
    let meta = File::open(csv.with_extension("meta.json")).expect("a description beside it");
    import::meta(meta)
        .expect("a description")
        .apply(&mut imported.series.context);
    imported.series
}

fn cause(word: &str) -> Cause {
    serde_json::from_value(serde_json::Value::from(word)).expect("one of the seven words")
}

/// Labelled traces with their series.
fn labelled(dir: &Path) -> Vec<(Case, Series)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .expect("a directory")
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "csv"))
        .collect();
    files.sort();
    let mut out = Vec::new();
    for csv in files {
        let label = std::fs::read(csv.with_extension("json")).expect("a label");
        let label: serde_json::Value = serde_json::from_slice(&label).expect("a label");
        let scored = label["onset_scored"].as_bool().unwrap_or(false);
        let series = series_of(&csv);
        let name = csv.file_stem().expect("a name").to_string_lossy().into_owned();
        let cause = cause(label["cause"].as_str().expect("a cause"));
        let onset_s = label["onset_s"].as_f64();
        let mut case = Case::new(name, cause, onset_s.filter(|_| scored), &series);
        let listed = |name: &str| label[name].as_array().cloned().unwrap_or_default();
        let events = listed("events").into_iter().filter_map(|e| e["t_s"].as_f64());
        let also = listed("also").into_iter().filter_map(|e| e["onset_s"].as_f64());
        let first = events.chain(also).chain(onset_s);
        case.quiet_until_s = match cause {
            Cause::None => Some(f64::INFINITY),
            Cause::HostNoise => None,
            _ => first.reduce(f64::min),
        };
        out.push((case, series));
    }
    assert!(!out.is_empty(), "no trace in {}", dir.display());
    out
}

#[test]
fn labelled_traces() {
    let Some(dir) = traces() else { return };
    let mut score = Score::default();
    for (case, series) in labelled(&dir) {
        score.add(case, &analyze(&series));
    }
    println!("{score}");
    assert!(score.macro_f1() >= 0.97, "macro-F1 {}", score.macro_f1());
    assert!(score.precision(Cause::Thermal) >= 1.0);
    assert!(score.onset_hits() >= 0.9, "onset {}", score.onset_hits());
    assert!(score.brier() < 0.10, "Brier {}", score.brier());
    assert!(score.median_delay_s() <= 10.0, "delay {}", score.median_delay_s());
    assert_eq!(score.early(), 0);
    assert_eq!(score.unfounded(), []);
    delays(&score);
}

/// Falls of a fifth and more are noticed soon.
fn delays(score: &Score) {
    let deep = score.delays_of(20.0..101.0);
    println!("falls of 20 % and more: delay by the clock, and while the operation ran");
    for (name, clock, ran) in &deep {
        println!("  {name:<6} {clock:>6.1} {ran:>6.1}");
    }
    let (middle, worst) = middle_and_worst(deep.iter().map(|d| d.1).collect());
    let (ran_middle, ran_worst) = middle_and_worst(deep.iter().map(|d| d.2).collect());
    println!("  median {middle:>6.1} {ran_middle:>6.1}\n  tenth  {worst:>6.1} {ran_worst:>6.1}");
    assert!(deep.len() >= 15, "{}", deep.len());
    assert!(middle <= 10.0, "{middle}");
    assert!(worst <= 20.0, "{worst}");
    // One trace takes a minute to fall by the tenth that counts.
    let late: Vec<_> = deep.iter().filter(|d| d.1 > 20.0).collect();
    assert!(late.len() <= 1 && late.iter().all(|d| d.1 <= 60.0), "{late:?}");
}

/// Evidence is that of the event in the headline, with its figures.
#[test]
fn the_evidence_is_that_of_the_first_event() {
    let mut series = Series::default();
    let mut total = 0.0;
    for t in 1..=1200_u32 {
        let op = if (t - 1) / 150 % 2 == 0 {
            Op::Write
        } else {
            Op::Read
        };
        let slow = t > 330;
        let rate = match (op, slow) {
            (Op::Write, false) => 98.8,
            (Op::Write, true) => 79.7,
            (_, false) => 141.0,
            (_, true) => 99.6,
        };
        let mut sample = Sample::new(f64::from(t), rate * (1.0 + 0.01 * f64::from(t % 3) - 0.01), op);
        total += sample.mb_s * 1e6;
        sample.cumulative_bytes = total as u64;
        sample.temp_c = Some(
            (31.0 + f64::from(t) * 14.0 / 330.0)
                .min(45.0 + f64::from(t) / 400.0)
                .floor(),
        );
        series.samples.push(sample);
    }
    let verdict = analyze(&series);
    assert_eq!(
        verdict.cause,
        Cause::Thermal,
        "{}",
        drivethru::report::bench::verdict_text(&verdict)
    );
    let events: Vec<_> = verdict.events.iter().map(|e| e.op).collect();
    assert_eq!(events, [Some(Op::Write), Some(Op::Read)]);
    let value = |feature: &str| {
        let found = verdict.evidence.iter().find(|e| e.feature == feature);
        found.map(|e| e.value.clone()).unwrap_or_default()
    };
    let onset_c = format!("{:.0} °C", verdict.onset_temp_c.expect("a temperature"));
    assert!(value("warm").starts_with(&onset_c), "{}", value("warm"));
    assert!(value("highest").starts_with(&onset_c), "{}", value("highest"));
    assert_eq!(value("both"), "reads fall as well, 141 -> 99.6 MB/s");
    assert_ne!(value("settles"), "");
    assert_eq!(value("read"), "");
}

#[test]
fn the_verdict_stays_when_the_series_is_only_changed_in_form() {
    let Some(dir) = traces() else { return };
    let mut changed = Vec::new();
    for (case, series) in labelled(&dir) {
        for (name, variant) in variants(&series) {
            let verdict = analyze(&variant);
            if verdict.cause != case.cause {
                changed.push(format!("{} {name}: {:?}", case.name, verdict.cause));
            }
        }
    }
    assert!(changed.is_empty(), "{changed:#?}");
}

/// Shifted, with missing rows, scaled, with a slower sensor.
fn variants(series: &Series) -> Vec<(&'static str, Series)> {
    let mut out = Vec::new();
    let mut shifted = series.clone();
    for s in &mut shifted.samples {
        s.t_s += 0.5;
    }
    out.push(("shifted", shifted));
    let mut dice = Dice::new(11);
    let mut holes = series.clone();
    holes.samples.retain(|_| !dice.chance(0.05));
    out.push(("rows missing", holes));
    for factor in [0.9, 1.1] {
        let mut scaled = series.clone();
        for s in &mut scaled.samples {
            s.mb_s *= factor;
            s.cumulative_bytes = (s.cumulative_bytes as f64 * factor) as u64;
        }
        let context = &mut scaled.context;
        context.link_mb_s = context.link_mb_s.map(|l| l * factor);
        context.capacity_bytes = context.capacity_bytes.map(|c| (c as f64 * factor) as u64);
        context.start_offset_bytes = (context.start_offset_bytes as f64 * factor) as u64;
        // Ceilings of a fallen link do not scale.
        if analyze(series).cause != Cause::Link {
            out.push(("scaled", scaled));
        }
    }
    let mut slow = series.clone();
    let mut next = f64::MIN;
    for s in &mut slow.samples {
        if s.temp_c.is_some() && s.t_s >= next {
            next = s.t_s + 14.9;
        } else {
            s.temp_c = None;
        }
    }
    slow.context.temp_interval_s = slow.context.temp_interval_s.map(|i| i.max(15.0));
    out.push(("slow sensor", slow));
    out
}

#[test]
fn real_series_are_never_thermal() {
    let Some(dir) = traces() else { return };
    let mut seen = 0;
    for entry in std::fs::read_dir(dir.join("real"))
        .expect("a directory")
        .flatten()
    {
        let path = entry.path();
        let name = path.to_string_lossy().into_owned();
        if !name.ends_with(".csv") && !name.ends_with(".log") {
            continue;
        }
        seen += 1;
        let imported = import::read(BufReader::new(File::open(&path).expect("a file"))).expect(&name);
        let verdict = analyze(&imported.series);
        println!("{name}: {:?} {:.2}", verdict.cause, verdict.confidence);
        assert_ne!(verdict.cause, Cause::Thermal, "{name}");
    }
    assert!(seen >= 6);
}

#[test]
fn series_drawn_at_random() {
    let count = std::env::var("DRIVETHRU_DRAWS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(10 * FAMILIES);
    let mut score = Score::default();
    for seed in 0..count {
        let draw = draw(seed);
        let name = format!("{seed} {}", draw.family);
        let mut case = Case::new(name, draw.cause, draw.onset_s, &draw.series);
        case.quiet_until_s = draw.quiet_until_s;
        score.add(case, &analyze(&draw.series));
    }
    println!("{}", score.faults());
    for (depth, most_middle, most_worst) in [(10.0..20.0, 20.0, f64::INFINITY), (20.0..101.0, 10.0, 20.0)] {
        let delays = score.delays_of(depth.clone());
        let (middle, worst) = middle_and_worst(delays.iter().map(|d| d.1).collect());
        println!(
            "falls of {depth:?} %: {} of them, delay {middle:.1} s, worst tenth {worst:.1} s",
            delays.len()
        );
        assert!(
            middle <= most_middle && worst <= most_worst,
            "{depth:?}: {middle} {worst}"
        );
    }
    assert_eq!(score.unfounded(), []);
    println!("{}", score.summary());
    assert!(score.macro_f1() >= 0.96, "macro-F1 {}", score.macro_f1());
    assert!(score.precision(Cause::Thermal) >= 0.93);
    assert!(score.onset_hits() >= 0.85);
}

fn flat(dice: &mut Dice, seconds: u32, sigma: f64, dips: f64) -> Vec<f64> {
    (0..seconds)
        .map(|_| {
            let dip = if dice.chance(dips) { 0.3 } else { 1.0 };
            300.0 * dip * (sigma * dice.normal()).exp()
        })
        .collect()
}

fn series_from(rates: &[f64]) -> Series {
    let mut series = Series::default();
    let mut total = 0.0;
    for (i, rate) in rates.iter().enumerate() {
        total += rate * 1e6;
        let mut sample = Sample::new(i as f64 + 1.0, *rate, Op::Write);
        sample.cumulative_bytes = total as u64;
        sample.temp_c = Some(50.0 + (i as f64 / 120.0).floor());
        series.samples.push(sample);
    }
    series
}

#[test]
fn noise_in_any_order_is_nothing() {
    for seed in 1..=20 {
        let mut dice = Dice::new(seed);
        let mut rates = flat(&mut dice, 3600, 0.10, 0.02);
        assert_eq!(analyze(&series_from(&rates)).cause, Cause::None, "seed {seed}");
        for i in (1..rates.len()).rev() {
            rates.swap(i, (dice.unit() * i as f64) as usize);
        }
        assert_eq!(
            analyze(&series_from(&rates)).cause,
            Cause::None,
            "permuted, seed {seed}"
        );
    }
}

fn reversed(series: &Series) -> Series {
    let mut out = series.clone();
    let end = series.samples.last().map_or(0.0, |s| s.t_s);
    let total = series.samples.last().map_or(0, |s| s.cumulative_bytes);
    for s in &mut out.samples {
        s.t_s = end + 1.0 - s.t_s;
        s.cumulative_bytes = total - s.cumulative_bytes.min(total);
    }
    out.samples.reverse();
    out
}

#[test]
fn a_recovery_is_no_fall() {
    let mut rates = vec![200.0; 150];
    rates.extend(vec![400.0; 150]);
    let series = series_from(&rates);
    assert_ne!(analyze(&series).cause, Cause::Thermal);
    // One that falls, seen backwards, rises.
    for seed in [2, 26, 50] {
        let draw = draw(seed);
        let half = draw.onset_s.expect("an onset") + 120.0;
        let mut series = draw.series;
        series.samples.retain(|s| s.t_s < half);
        let verdict = analyze(&reversed(&series));
        assert_ne!(verdict.cause, Cause::Thermal, "seed {seed}");
    }
}

fn only(series: &Series, op: Op) -> Series {
    let mut out = series.clone();
    out.samples.retain(|s| s.op == op);
    out
}

#[test]
fn half_of_the_operations_is_not_surer() {
    let Some(dir) = traces() else { return };
    for (case, series) in labelled(&dir) {
        let whole: Verdict = analyze(&series);
        let both = [Op::Write, Op::Read]
            .iter()
            .all(|op| series.samples.iter().any(|s| s.op == *op));
        if !both || whole.cause != Cause::Thermal {
            continue;
        }
        let half = analyze(&only(&series, Op::Write));
        assert!(
            half.cause == whole.cause || half.confidence <= whole.confidence,
            "{}: {:?} {} -> {:?} {}",
            case.name,
            whole.cause,
            whole.confidence,
            half.cause,
            half.confidence
        );
    }
}

#[test]
fn without_a_temperature_nothing_is_thermal() {
    for seed in 0..FAMILIES {
        let mut series = draw(seed).series;
        for s in &mut series.samples {
            s.temp_c = None;
        }
        let verdict = analyze(&series);
        assert_ne!(verdict.cause, Cause::Thermal, "seed {seed}");
        assert!(!verdict.throttled);
    }
}

/// Figures that no instrument shows, among those that some do.
fn odd() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => 0.0..500.0_f64,
        1 => any::<f64>(),
        1 => Just(f64::NAN),
        1 => Just(0.0),
        1 => -1e3..1e3_f64,
        1 => Just(f64::INFINITY),
    ]
}

fn odd_sample() -> impl Strategy<Value = Sample> {
    let op = prop_oneof![Just(Op::Write), Just(Op::Read), Just(Op::Idle)];
    let optional = || proptest::option::of(odd());
    (odd(), odd(), any::<u64>(), optional(), op, optional(), optional()).prop_map(
        |(t_s, mb_s, cumulative_bytes, temp_c, op, smart_ms, power_w)| Sample {
            cumulative_bytes,
            temp_c,
            smart_ms,
            power_w,
            ..Sample::new(t_s, mb_s, op)
        },
    )
}

fn judged(series: &Series) {
    let verdict = analyze(series);
    let text = serde_json::to_string(&verdict).expect("a document");
    let again: Verdict = serde_json::from_str(&text).expect("the same document");
    assert_eq!(again.cause, verdict.cause);
    assert!((0.0..=1.0).contains(&verdict.confidence));
    let told = text::series("series", series, &verdict, Style { color: false });
    assert!(told.contains("\nverdict: "));
    let mut online = Online::new(&series.context);
    for sample in &series.samples {
        let _ = online.push(sample);
    }
}

/// A file of each kind that is read: our CSV, fio's bandwidth log, somebody's table, a series as JSON.
fn recorded(kind: usize) -> Vec<u8> {
    let mut series = draw(8).series;
    series.samples.truncate(60);
    let mut text = String::new();
    match kind {
        0 => return drivethru::report::bench::csv::write(&series.samples).into_bytes(),
        1 => {
            for s in &series.samples {
                let read = u8::from(s.op == Op::Read);
                let line = format!(
                    "{:.0}, {:.0}, {}, 131072, 0\n",
                    s.t_s * 1e3,
                    s.mb_s * 976.5625,
                    1 - read
                );
                text.push_str(&line);
            }
        }
        2 => {
            text.push_str("Time;Write Speed [MB/s];Drive Temperature (\u{b0}C)\n");
            for s in &series.samples {
                let line = format!("0:{:02},5;{:.1};{}\n", s.t_s, s.mb_s, s.temp_c.unwrap_or(40.0));
                text.push_str(&line.replace('.', ","));
            }
        }
        _ => return serde_json::to_vec(&series).expect("JSON"),
    }
    text.into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_series_is_too_odd(
        samples in proptest::collection::vec(odd_sample(), 0..300),
        in_order in any::<bool>(),
        capacity_bytes in proptest::option::of(any::<u64>()),
        link_mb_s in proptest::option::of(odd()),
        temp_interval_s in proptest::option::of(odd()),
        start_offset_bytes in any::<u64>(),
    ) {
        let mut series = Series { samples, ..Series::default() };
        if in_order {
            for (i, s) in series.samples.iter_mut().enumerate() {
                s.t_s = i as f64 + 1.0;
            }
        }
        series.context.capacity_bytes = capacity_bytes;
        series.context.link_mb_s = link_mb_s;
        series.context.temp_interval_s = temp_interval_s;
        series.context.start_offset_bytes = start_offset_bytes;
        judged(&series);
    }

    #[test]
    fn no_file_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..400), pick in 0_usize..5) {
        let begin: &[u8] = [&b""[..], b"t_s,mb_s,op,temp_c\n", b"1000, 5, 1, 0, 0\n", b"{\"samples\":[", b"time;MB/s\n"][pick];
        let text: Vec<u8> = begin.iter().copied().chain(bytes).collect();
        let _ = import::meta(&text[..]);
        let temperatures = import::temperatures(&text[..]);
        if let Ok(mut imported) = import::read(&text[..]) {
            if let Ok(temperatures) = temperatures {
                let _ = import::attach(&mut imported, &temperatures);
            }
            judged(&imported.series);
        }
    }

    #[test]
    fn a_file_with_a_few_bytes_changed_is_read_or_refused(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 1..12),
        pick in 0_usize..4,
    ) {
        let mut text = recorded(pick);
        for (place, byte, how) in edits {
            let at = place.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                2 => drop(text.drain(at..(at + usize::from(byte)).min(text.len() - 1))),
                _ => {
                    let piece = text[at..(at + usize::from(byte)).min(text.len())].to_vec();
                    text.splice(at..at, piece);
                }
            }
        }
        if let Ok(mut imported) = import::read(&text[..]) {
            if let Ok(temperatures) = import::temperatures(&text[..]) {
                let _ = import::attach(&mut imported, &temperatures);
            }
            judged(&imported.series);
        }
    }

    #[test]
    fn tables_of_any_numbers_are_read(rows in proptest::collection::vec((any::<f64>(), any::<f64>(), any::<f64>()), 1..50)) {
        let mut text = String::from("t_s,mb_s,temp_c\n");
        for (t, rate, temp) in rows {
            text.push_str(&format!("{t},{rate},{temp}\n"));
        }
        if let Ok(imported) = import::read(text.as_bytes()) {
            judged(&imported.series);
        }
    }
}

#[test]
#[ignore = "shows a draw: DRIVETHRU_SHOW=seed,seed"]
fn show() {
    for seed in std::env::var("DRIVETHRU_SHOW").unwrap_or_default().split(',') {
        let draw = draw(seed.parse().expect("a number"));
        println!("{seed} {} {:?} at {:?}", draw.family, draw.cause, draw.onset_s);
        let mut online = Online::new(&draw.series.context);
        for alarm in draw.series.samples.iter().filter_map(|s| online.push(s)) {
            println!("    {alarm:?}");
        }
        let verdict = analyze(&draw.series);
        println!(
            "{}",
            text::series("", &draw.series, &verdict, Style { color: false })
        );
    }
}
