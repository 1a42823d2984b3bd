//! Runs for the tests: a generator of plateaus, falls, stalls and gaps, and the labelled traces where they are.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use drivethru::bench::run::{self, Device, Ending, Engine, Figure, Phase, Row, Run, Sampler, Workload};
use drivethru::bench::series::{Context, Notice, Op, Sample};
use drivethru::bench::verdict::{self, Alternative, Cause, Event, Evidence, Verdict};
use serde_json::json;

/// What a device could call itself.
pub const HOSTILE: &str = "<script>alert(1)</script>\u{1b}[31m\u{1b}]0;x\u{7}\u{202e}\u{200f}\"'&</script>\n|*_`=cmd\u{0}\u{fffe}\u{9b}1m\u{2028}";

/// One stretch: its length, rate, temperature at its start and end, and operation.
type Plateau = (usize, f64, f64, f64, Op);

/// A second each, with a small saw-tooth as noise.
pub fn samples(plateaus: &[Plateau]) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut bytes = 0;
    for (length, mb_s, warm_from, warm_to, op) in plateaus {
        for i in 0..*length {
            let t = samples.len();
            let mb_s = (mb_s * (1.0 + ((t * 7) % 5) as f64 * 0.004) * 1000.0).round() / 1000.0;
            bytes += (mb_s * 1e6) as u64;
            let part = i as f64 / *length as f64;
            samples.push(Sample {
                t_s: t as f64 + 1.0,
                mb_s,
                cumulative_bytes: bytes,
                temp_c: (t % 2 == 0).then(|| (warm_from + (warm_to - warm_from) * part).round()),
                op: *op,
                smart_ms: None,
                power_w: None,
                iops: None,
                lat_p99_us: None,
                other_bytes: None,
            });
        }
    }
    samples
}

pub fn event(cause: Cause, kind: &str, onset_s: f64, end_s: Option<f64>) -> Event {
    Event {
        cause,
        kind: kind.to_owned(),
        onset_s,
        end_s,
        op: Some(Op::Write),
        before_mb_s: Some(400.0),
        after_mb_s: Some(100.0),
        drop_pct: Some(75.0),
        temp_c: Some(70.0),
        bytes: Some(12_000_000_000),
    }
}

pub fn verdict(cause: Cause, events: Vec<Event>) -> Verdict {
    let first = events.iter().find(|e| e.cause == cause);
    let evidence = |feature: &str, value: &str, weight, speaks_for| Evidence {
        feature: feature.to_owned(),
        value: value.to_owned(),
        weight,
        speaks_for,
    };
    Verdict {
        schema: verdict::SCHEMA.to_owned(),
        schema_version: 1,
        cause,
        throttled: cause == Cause::Thermal,
        confidence: 0.93,
        onset_s: first.map(|e| e.onset_s),
        detected_s: first.map(|e| e.onset_s + 9.0),
        onset_written_bytes: first.and_then(|e| e.bytes),
        onset_total_bytes: first.and_then(|e| e.bytes).map(|b| b + 1_000_000_000),
        onset_temp_c: first.and_then(|e| e.temp_c),
        events,
        metrics: BTreeMap::from([
            ("max_temp_c".to_owned(), json!(71.0)),
            ("unthrottled_mb_s".to_owned(), json!({"write": 400.0})),
        ]),
        evidence: vec![
            evidence("hottest_so_far", "70 °C is the highest of the run", 1.0, cause),
            evidence("no_recovery", "never cooler than 68 °C under load", -1.0, cause),
            evidence("both_ops_fall", "reads fall too", -2.0, Cause::SlcCache),
            evidence("bytes", "12.0 GB since idle", 1.0, Cause::SlcCache),
        ],
        alternatives: vec![Alternative {
            cause: Cause::SlcCache,
            score: 1.0,
        }],
        ambiguous: false,
        experiment: None,
    }
}

/// A phase whose figures come from the samples that lie in it.
pub fn phase(name: &str, op: Op, start_s: f64, end_s: f64, samples: &[Sample]) -> Phase {
    let inside: Vec<&Sample> = samples
        .iter()
        .filter(|s| s.t_s > start_s && s.t_s <= end_s && s.op == op)
        .collect();
    let mut rates: Vec<f64> = inside.iter().map(|s| s.mb_s).collect();
    rates.sort_by(f64::total_cmp);
    let before = samples
        .iter()
        .rev()
        .find(|s| s.t_s <= start_s)
        .map_or(0, |s| s.cumulative_bytes);
    let bytes = inside.last().map_or(0, |s| s.cumulative_bytes) - before;
    Phase {
        name: name.to_owned(),
        op,
        start_s,
        end_s,
        bytes,
        mb_s: Some(bytes as f64 / 1e6 / (end_s - start_s)),
        min_mb_s: rates.first().copied(),
        p5_mb_s: rates.get(rates.len() / 20).copied(),
        median_mb_s: rates.get(rates.len() / 2).copied(),
        flush_s: Some(0.4),
    }
}

pub fn run(samples: Vec<Sample>, verdict: Verdict) -> Run {
    Run {
        schema: run::SCHEMA.to_owned(),
        schema_version: 1,
        device: Device {
            name: "sim:ssd".to_owned(),
            simulated: true,
            model: Some("Example SSD 250GB".to_owned()),
            serial: Some("S4M0NX0123".to_owned()),
            firmware: Some("1.0".to_owned()),
            bridge: Some("174c:55aa".to_owned()),
        },
        workload: Workload {
            name: "seq".to_owned(),
            data: "random".to_owned(),
            options: BTreeMap::from([
                ("for".to_owned(), json!("600s")),
                ("fill".to_owned(), json!(12.5)),
            ]),
        },
        started: "2024-01-01T00:00:00.000Z".to_owned(),
        ending: Ending::Complete,
        samples,
        context: Context {
            capacity_bytes: Some(250_000_000_000),
            link_mb_s: Some(440.0),
            temp_interval_s: Some(2.0),
            has_temp: Some(true),
            start_offset_bytes: 0,
            notices: Vec::new(),
        },
        phases: Vec::new(),
        rows: Vec::new(),
        verdict,
        figures: BTreeMap::from([
            ("max_temp".to_owned(), figure(71.0, "°C")),
            ("median_write".to_owned(), figure(401.2, "MB/s")),
            ("moved".to_owned(), figure(150.25, "GB")),
        ]),
        engine: Engine {
            name: "sim".to_owned(),
            block_bytes: 131_072,
            depth: 32,
            reached_depth: Some(31.8),
            requests: 1_144_000,
            errors: 0,
        },
        sampler: Sampler {
            source: Some("sct_status".to_owned()),
            interval_s: Some(2.0),
            cost_ms: Some(4.2),
            readings: 300,
            failures: 0,
            retired_s: None,
        },
        notes: vec!["The first second is partial.".to_owned()],
        notices: Vec::new(),
    }
}

pub fn figure(value: f64, unit: &str) -> Figure {
    Figure {
        value,
        unit: unit.to_owned(),
    }
}

/// Writes, a cache step, an idle time, reads, and a thermal fall of both.
pub fn rich() -> Run {
    let mut samples = samples(&[
        (120, 400.0, 31.0, 55.0, Op::Write),
        (80, 250.0, 55.0, 62.0, Op::Write),
        (60, 0.0, 62.0, 44.0, Op::Idle),
        (90, 430.0, 44.0, 60.0, Op::Read),
        (100, 400.0, 60.0, 70.0, Op::Write),
        (100, 100.0, 70.0, 71.0, Op::Write),
        (50, 180.0, 71.0, 70.0, Op::Read),
    ]);
    for t in [30, 151, 152, 153, 400] {
        samples[t].mb_s = 0.0;
    }
    samples[77].smart_ms = Some(812.5);
    let phases = vec![
        phase("photos, pass 1, write", Op::Write, 0.0, 200.0, &samples),
        phase("rest", Op::Idle, 200.0, 260.0, &samples),
        phase("photos, pass 1, read", Op::Read, 260.0, 350.0, &samples),
        phase("video, pass 2, write", Op::Write, 350.0, 550.0, &samples),
        phase("video, pass 2, read", Op::Read, 550.0, 600.0, &samples),
    ];
    let mut read_fall = event(Cause::Thermal, "step", 551.0, None);
    read_fall.op = Some(Op::Read);
    read_fall.before_mb_s = Some(430.0);
    read_fall.after_mb_s = Some(180.0);
    read_fall.drop_pct = Some(58.1);
    let events = vec![
        event(Cause::SlcCache, "step", 121.0, Some(200.0)),
        event(Cause::Link, "reset", 152.0, Some(154.0)),
        event(Cause::Thermal, "step", 451.0, None),
        read_fall,
    ];
    let mut run = run(samples, verdict(Cause::Thermal, events));
    run.phases = phases;
    run.notices.push(Notice {
        t_s: 152.0,
        text: "usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd".to_owned(),
    });
    run.rows = vec![
        Row {
            name: "4k 70/30, depth 1".to_owned(),
            figures: BTreeMap::from([("iops".to_owned(), 5123.0), ("read_p99_us".to_owned(), 812.5)]),
            hang: false,
        },
        Row {
            name: "4k 70/30, depth 32".to_owned(),
            figures: BTreeMap::new(),
            hang: true,
        },
    ];
    run
}

/// Nothing unusual at all.
pub fn calm() -> Run {
    let samples = samples(&[(300, 210.0, 30.0, 41.0, Op::Write)]);
    let mut run = run(samples, verdict(Cause::None, Vec::new()));
    run.phases = vec![phase("write", Op::Write, 0.0, 300.0, &run.samples)];
    run
}

/// Every string that can come from outside is hostile.
pub fn hostile() -> Run {
    let mut run = rich();
    let bad = || HOSTILE.to_owned();
    run.device = Device {
        name: bad(),
        simulated: false,
        model: Some(bad()),
        serial: Some(bad()),
        firmware: Some(bad()),
        bridge: Some(bad()),
    };
    run.workload = Workload {
        name: bad(),
        data: bad(),
        options: BTreeMap::from([
            (bad(), json!(bad())),
            ("list".to_owned(), json!([bad(), {"a": bad()}])),
        ]),
    };
    run.started = bad();
    for phase in &mut run.phases {
        phase.name = bad();
    }
    for row in &mut run.rows {
        row.name = bad();
        row.figures.insert(bad(), 1.0);
    }
    run.figures.insert(bad(), figure(1.0, HOSTILE));
    run.engine.name = bad();
    run.sampler.source = Some(bad());
    run.notes.push(bad());
    let notice = || Notice {
        t_s: 3.0,
        text: bad(),
    };
    run.notices.push(notice());
    run.context.notices.push(notice());
    let verdict = &mut run.verdict;
    verdict.experiment = Some(bad());
    verdict.ambiguous = true;
    verdict.metrics.insert(bad(), json!(bad()));
    for event in &mut verdict.events {
        event.kind = bad();
    }
    for evidence in &mut verdict.evidence {
        evidence.feature = bad();
        evidence.value = bad();
    }
    run
}

/// A day at one sample a second, with one stall.
pub fn long() -> Run {
    let mut samples = samples(&[
        (60_000, 400.0, 31.0, 60.0, Op::Write),
        (40_000, 300.0, 60.0, 66.0, Op::Write),
    ]);
    samples[50_123].mb_s = 0.0;
    let events = vec![event(Cause::Thermal, "step", 60_001.0, None)];
    run(samples, verdict(Cause::Thermal, events))
}

/// More events than a chart has room for.
pub fn crowded() -> Run {
    let samples = samples(&[(600, 120.0, 30.0, 50.0, Op::Write)]);
    let events = (0..90)
        .map(|i| {
            let onset = 5.0 + f64::from(i) * 6.5;
            let mut event = event(Cause::PeriodicStall, "stalls", onset, Some(onset + 2.0));
            event.after_mb_s = None;
            event
        })
        .collect();
    run(samples, verdict(Cause::PeriodicStall, events))
}

/// Nearly nothing, and odd values.
pub fn edges() -> Vec<(&'static str, Run)> {
    let none = || verdict(Cause::None, Vec::new());
    let one = samples(&[(1, 12.5, 30.0, 30.0, Op::Read)]);
    let mut no_temp = samples(&[(200, 35.0, 0.0, 0.0, Op::Write), (100, 20.0, 0.0, 0.0, Op::Write)]);
    for sample in &mut no_temp {
        sample.temp_c = None;
    }
    let mut gaps = samples(&[(300, 90.0, 30.0, 45.0, Op::Write)]);
    gaps.retain(|s| !(100.0..160.0).contains(&s.t_s));
    let mut odd = samples(&[(20, 90.0, 30.0, 45.0, Op::Write)]);
    odd[3].t_s = -5.0;
    odd[4].t_s = 1e300;
    odd[5].mb_s = 1e300;
    odd[6].temp_c = Some(-1e300);
    odd[7].t_s = odd[8].t_s;
    odd.swap(10, 12);
    let mut odd = run(
        odd,
        verdict(
            Cause::Thermal,
            vec![event(Cause::Thermal, "", 1e300, Some(-1e300))],
        ),
    );
    odd.context.link_mb_s = Some(0.0);
    odd.verdict.confidence = -3.0;
    odd.phases = vec![phase("backwards", Op::Write, 9.0, 3.0, &[])];
    let idle = samples(&[(30, 0.0, 30.0, 30.0, Op::Idle)]);
    let mut bare = run(Vec::new(), none());
    bare.phases.clear();
    bare.figures.clear();
    bare.notes.clear();
    vec![
        ("zero samples", bare),
        ("one sample", run(one, none())),
        (
            "no temperature",
            run(
                no_temp,
                verdict(Cause::SlcCache, vec![event(Cause::SlcCache, "step", 201.0, None)]),
            ),
        ),
        ("missing rows", run(gaps, none())),
        ("odd values", odd),
        ("idle only", run(idle, none())),
    ]
}

/// Says what was left out, past the harness, which swallows what passing tests print.
pub fn skipped(why: &str) {
    let _ = std::io::stderr().write_all(format!("SKIPPED: {why}\n").as_bytes());
}

/// Every run of this file, by name.
pub fn all() -> Vec<(&'static str, Run)> {
    let mut all = vec![
        ("rich", rich()),
        ("calm", calm()),
        ("hostile", hostile()),
        ("crowded", crowded()),
    ];
    all.extend(edges());
    all
}

/// The labelled traces, from `$DRIVETHRU_TRACES` or `../shared/traces` beside the sources: name and run.
pub fn traces() -> Vec<(String, Run)> {
    let dir = std::env::var_os("DRIVETHRU_TRACES").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/traces"),
        PathBuf::from,
    );
    let Ok(entries) = std::fs::read_dir(&dir) else {
        skipped("labelled traces: there are none here ($DRIVETHRU_TRACES names their directory)");
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "csv"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let csv = std::fs::read(&path).expect("a trace");
            let imported = drivethru::bench::import::read(csv.as_slice()).expect("a trace in our columns");
            let samples = imported.series.samples;
            let label: serde_json::Value =
                serde_json::from_slice(&std::fs::read(path.with_extension("json")).expect("its label"))
                    .expect("JSON");
            let meta: serde_json::Value = serde_json::from_slice(
                &std::fs::read(path.with_extension("meta.json")).expect("its meta file"),
            )
            .expect("JSON");
            let cause: Cause = serde_json::from_value(label["cause"].clone()).expect("a cause");
            let events = label["onset_s"].as_f64().map(|onset| {
                let mut event = event(cause, "step", onset, None);
                event.before_mb_s = label["before_mb_s"]["write"].as_f64();
                event.after_mb_s = label["after_mb_s"]["write"].as_f64();
                event.drop_pct = None;
                event.temp_c = label["onset_temp_c"].as_f64();
                event.bytes = label["onset_total_bytes"].as_u64();
                event
            });
            let mut run = run(samples, verdict(cause, events.into_iter().collect()));
            run.context.link_mb_s = meta["link_mb_s"].as_f64();
            run.context.temp_interval_s = meta["temp_interval_s"].as_f64();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            run.device.model = Some(format!("trace {name}"));
            (name, run)
        })
        .collect()
}
