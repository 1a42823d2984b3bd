//! Whole runs on simulated devices.

use std::time::Duration;

use super::verdicts::one_of;
use super::*;
use crate::bench::run::Ending;
use crate::bench::series::Moved;
use crate::bench::verdict::{self, Cause};

fn options(workload: Workload) -> Options {
    Options {
        workload,
        ..Options::default()
    }
}

fn ran(target: &str, options: &Options) -> Run {
    run(target, options, &OpenOptions::default(), &mut Unwatched)
        .unwrap_or_else(|e| panic!("{target}: {e}"))
        .run
}

fn short() -> Options {
    Options {
        amount: Some(Amount::For(Duration::from_secs(20))),
        ..Options::default()
    }
}

#[test]
fn the_same_run_is_the_same_byte_for_byte() {
    for (target, options) in [
        ("sim:mushkin-ventura-ultra-120gb", options(Workload::Das)),
        ("sim:corsair-voyager-gt-128gb", options(Workload::Mix)),
        ("sim:ssd", short()),
    ] {
        let document = || serde_json::to_string(&ran(target, &options)).unwrap();
        assert!(document() == document(), "{target}");
    }
    let other = Options { seed: 2, ..short() };
    assert_eq!(
        ran("sim:ssd", &other).samples,
        ran("sim:ssd", &short()).samples,
        "a sequential run has nothing to draw"
    );
}

#[test]
fn samples_are_seconds_whose_bytes_add_up() {
    let run = ran("sim:ssd", &short());
    assert_eq!(run.ending, Ending::Complete);
    let mut cumulative = 0;
    let mut before = 0.0;
    for sample in &run.samples {
        let bytes = sample.cumulative_bytes - cumulative;
        let seconds = sample.t_s - before;
        assert!((bytes as f64 / seconds / 1e6 - sample.mb_s).abs() < 0.01);
        (cumulative, before) = (sample.cumulative_bytes, sample.t_s);
    }
    let moved: u64 = run.phases.iter().map(|p| p.bytes).sum();
    assert_eq!(cumulative, moved);
    let whole = run.samples.iter().filter(|s| s.t_s.fract() == 0.0).count();
    assert!(whole + 1 >= run.samples.len(), "only the last may be short");
    // One reading a second, and one at each end of each phase.
    assert!(run.samples.iter().all(|s| s.temp_c.is_some()));
    assert_eq!(run.sampler.interval_s, Some(1.0));
    assert_eq!(run.sampler.source.as_deref(), Some("sct_status"));
    assert!(run.samples.iter().all(|s| s.power_w.is_some()));
    assert!(
        run.engine.reached_depth.is_some_and(|d| d > 24.0),
        "{:?}",
        run.engine
    );
    assert!(run.device.simulated && run.device.serial.is_some());
}

#[test]
fn readings_go_to_the_drive_and_cost_time() {
    let with = |interval| {
        let options = Options {
            temp_interval: Some(Duration::from_secs(interval)),
            ..short()
        };
        ran("sim:ssd", &options).sampler.readings
    };
    assert!((20..=26).contains(&with(1)));
    assert!((3..=8).contains(&with(10)));
}

#[test]
fn a_hang_is_a_row_and_the_run_goes_on() {
    let run = ran("sim:usb-20g-lockup-rnd4k-q32t16", &options(Workload::Cdm8Nvme));
    assert_eq!(run.ending, Ending::Complete);
    let hung: Vec<&str> = run
        .rows
        .iter()
        .filter(|r| r.hang)
        .map(|r| r.name.as_str())
        .collect();
    assert_eq!(hung, ["RND4K Q32T16, read"]);
    assert_eq!(run.rows.len(), 8);
    assert_eq!(run.rows.iter().filter(|r| !r.figures.is_empty()).count(), 7);
    assert_eq!(run.figures["give_up_after_s"].value, 60.0);
    assert_eq!(run.verdict.cause, Cause::Link);
    assert_eq!(run.verdict.events[0].kind, "hang");
    assert_eq!(run.notices.len(), 1);
    assert!(run.notices[0].text.contains("512 requests in flight"));
    assert!(
        run.samples.iter().filter(|s| s.mb_s == 0.0).count() >= 59,
        "the silence is in the series"
    );
    assert!(run.notes.iter().any(|n| n.starts_with("no temperature")));
}

#[test]
fn a_device_without_an_answer_or_gone_ends_the_run() {
    let silent = ran("sim:ssd,fault=timeout,fault_on=write", &short());
    assert_eq!(silent.ending, Ending::Complete);
    assert_eq!(silent.notices.len(), 1);
    let gone = ran("sim:ssd,fault=gone,fault_on=write,fault_after=1000", &short());
    assert_eq!(gone.ending, Ending::Lost);
    assert!(gone.engine.requests >= 1000);
    let verdict = &gone.verdict;
    let last = verdict.events.last().unwrap();
    assert_eq!((verdict.cause, last.kind.as_str()), (Cause::Link, "lost"));
    assert!(verdict.evidence.iter().any(|e| e.feature == "lost"));
    let moved = gone.samples.last().unwrap().cumulative_bytes;
    assert_eq!(verdict.onset_written_bytes, Some(moved));
    assert_eq!(verdict.onset_s, Some(last.onset_s));
    let errors = ran("sim:ssd,capacity=937703088,bad=0+1000", &{
        let mut options = short();
        options.op = Some(Op::Read);
        options
    });
    assert!(errors.engine.errors > 0);
}

#[test]
fn a_run_that_is_too_hot_or_unwanted_ends_early() {
    let mut options = options(Workload::Das);
    options.max_temp_c = Some(40.0);
    let run = ran("sim:mushkin-ventura-ultra-120gb", &options);
    assert_eq!(run.ending, Ending::TooHot);
    let last = run.samples.last().unwrap();
    assert!(last.temp_c.is_some_and(|c| c >= 40.0) && last.t_s < 400.0);

    assert_eq!(run.workload.options["max_temp_c"], 40.0);

    let hot = ran("sim:ssd,temp=90", &short());
    assert_eq!(hot.ending, Ending::TooHot);
    assert_eq!((hot.engine.requests, hot.samples.len()), (0, 0));
    assert_eq!(hot.verdict.cause, Cause::None);

    struct Impatient(usize);
    impl Watch for Impatient {
        fn sample(&mut self, samples: &[Sample]) {
            self.0 = samples.len();
        }
        fn stop(&mut self) -> bool {
            self.0 >= 5
        }
    }
    let outcome = super::run("sim:ssd", &short(), &OpenOptions::default(), &mut Impatient(0)).unwrap();
    assert_eq!(outcome.run.ending, Ending::Aborted);
    let end = outcome.run.samples.last().unwrap().t_s;
    assert!((5.0..5.1).contains(&end), "{end}");
    assert_eq!(outcome.run.phases.len(), 1);
}

#[test]
fn the_sampler_gives_up_and_the_transfer_goes_on() {
    // IDENTIFY, the readings before the run, and some more; then no pass-through answers any more.
    let run = ran(
        "sim:ssd,fault=short,fault_on=pass-through,fault_after=12",
        &short(),
    );
    assert_eq!(run.ending, Ending::Complete);
    assert!(run.sampler.retired_s.is_some(), "{:?}", run.sampler);
    assert!(run.samples.iter().any(|s| s.temp_c.is_some()));
    assert!(run.samples.last().unwrap().temp_c.is_none());
    assert!(run.notes.iter().any(|n| n.starts_with("temp: gave up at t=")));
    assert!(run.samples.iter().filter(|s| s.op == Op::Write).count() >= 20);
}

#[test]
fn compression_is_found_where_there_is_some() {
    let says = |target: &str| {
        let run = ran(target, &options(Workload::Compressibility));
        let note = run.notes.iter().find(|n| n.starts_with("compressing controller"));
        note.cloned().unwrap_or_default()
    };
    let gain = says("sim:mushkin-ventura-ultra-120gb");
    assert!(gain.starts_with("compressing controller: yes, gain 4."), "{gain}");
    assert_eq!(says("sim:ssd"), "compressing controller: no");
}

#[test]
fn the_suite_has_a_manifest_and_copies_files_at_their_own_rate() {
    let target = "sim:corsair-voyager-gtx-256gb";
    let outcome = run(
        target,
        &options(Workload::Das),
        &OpenOptions::default(),
        &mut Unwatched,
    )
    .unwrap();
    let manifest = outcome.manifest.unwrap();
    assert_eq!(manifest.sets.len(), 3);
    assert!(manifest.verified);
    assert_eq!(
        (manifest.compared_bytes, manifest.wrong_bytes),
        (127_200_000_000, 0)
    );
    assert!(
        outcome
            .run
            .notes
            .iter()
            .any(|n| n.starts_with("read-back: all of the 127.2 GB"))
    );
    assert!(outcome.run.figures["das_write"].value < 110.0);
    let raw = ran(target, &short());
    assert!(raw.figures["seq_write"].value > 280.0);
}

#[test]
fn what_a_drive_lost_is_found_when_it_is_read_back() {
    let manifest = |target: &str| {
        let options = options(Workload::Das);
        let outcome = run(target, &options, &OpenOptions::default(), &mut Unwatched).unwrap();
        (outcome.manifest.unwrap(), outcome.run)
    };
    for (fault, bytes) in [("lost-write", 1 << 20), ("torn-write", 1 << 19)] {
        let target = format!(
            "sim:corsair-voyager-gtx-256gb,fault={fault},fault_on=write,fault_after=5000,fault_count=1"
        );
        let (manifest, run) = manifest(&target);
        assert_eq!(run.engine.errors, 0, "the drive said that all went well");
        assert!(manifest.verified);
        let wrong: Vec<(u32, u64)> = manifest.wrong.iter().map(|w| (w.pass, w.bytes)).collect();
        assert_eq!(wrong, [(1, bytes)], "{fault}");
        assert_eq!(manifest.wrong_bytes, bytes);
        assert!(run.notes.iter().any(|n| n.starts_with("read_back_wrong: ")));
    }
    let (manifest, run) = manifest("sim:corsair-voyager-gtx-256gb,payload=drop");
    assert!(!manifest.verified && manifest.wrong.is_empty());
    assert!(run.notes.iter().any(|n| n.ends_with("the medium keeps nothing")));
}

#[test]
fn real_devices_are_refused() {
    let refused = |target| {
        run(
            target,
            &Options::default(),
            &OpenOptions::default(),
            &mut Unwatched,
        )
        .unwrap_err()
    };
    assert!(matches!(refused("/dev/sdb"), BenchError::NotPermitted { .. }));
    assert!(matches!(refused("/mnt"), BenchError::NotSimulated { .. }));
    assert!(matches!(refused("replay:x"), BenchError::NotSimulated { .. }));
    assert!(matches!(refused("sim:none"), BenchError::Drive(_)));
}

#[test]
fn a_medium_smaller_than_a_block_is_refused() {
    let refused = run(
        "sim:ssd,capacity=255",
        &short(),
        &OpenOptions::default(),
        &mut Unwatched,
    );
    assert!(matches!(refused, Err(BenchError::Options { .. })));
}

/// An unsure cache verdict, a series, and what a link event makes of it.
#[test]
fn a_link_event_rebuilds_the_headline() {
    let options = short();
    let plan = plan(&options, 1_000_000_000).unwrap();
    let samples: Vec<Sample> = (1..=10)
        .map(|i| Sample {
            cumulative_bytes: u64::from(i.min(5_u32)) * 100,
            temp_c: Some(f64::from(30 + i)),
            ..Sample::new(f64::from(i), 0.0001, if i <= 2 { Op::Read } else { Op::Write })
        })
        .collect();
    let before = || {
        let mut verdict = judge(&Series::default());
        verdict.cause = Cause::SlcCache;
        verdict.confidence = 0.6;
        verdict.onset_s = Some(3.0);
        verdict.onset_written_bytes = Some(7);
        verdict.ambiguous = true;
        verdict.experiment = Some("try again".to_owned());
        verdict.metrics.insert("cache_bytes".to_owned(), json!(7));
        verdict
    };
    let seconds = Duration::from_secs;
    let hang = StageResult {
        end: Some(seconds(10)),
        hang: Some((seconds(10), seconds(5))),
        ..StageResult::default()
    };
    let lost = StageResult {
        end: Some(Duration::from_millis(4500)),
        ..StageResult::default()
    };
    for (result, ending, kind, onset_s) in [
        (hang.clone(), Ending::Complete, "hang", 5.0),
        (lost, Ending::Lost, "lost", 4.5),
    ] {
        let mut verdict = before();
        add_link(&mut verdict, &plan, &[result], ending, &samples);
        assert_eq!(verdict.cause, Cause::Link);
        assert_eq!(verdict.events[0].kind, kind);
        assert_eq!(verdict.onset_s, Some(onset_s));
        assert_eq!(verdict.onset_written_bytes, Some(300));
        assert_eq!(verdict.onset_total_bytes, Some(500));
        assert_eq!(verdict.onset_temp_c, Some(35.0));
        assert_eq!(verdict.metrics["onset_read_bytes"], 200);
        assert!(!verdict.metrics.contains_key("cache_bytes"));
        assert!(!verdict.ambiguous && verdict.experiment.is_none());
        let old = verdict.alternatives.iter().find(|a| a.cause == Cause::SlcCache);
        assert_eq!(old.map(|a| a.score), Some(0.6));
    }
    let mut graver = before();
    graver.cause = Cause::Thermal;
    add_link(&mut graver, &plan, &[hang], Ending::Complete, &samples);
    assert_eq!((graver.cause, graver.onset_s), (Cause::Thermal, Some(3.0)));
    assert_eq!(graver.events.len(), 1);
}

#[test]
fn events_and_evidence_of_every_row_are_kept() {
    let event = |cause, onset_s| verdict::Event {
        cause,
        kind: "step".to_owned(),
        onset_s,
        end_s: None,
        op: None,
        before_mb_s: None,
        after_mb_s: None,
        drop_pct: None,
        temp_c: None,
        bytes: None,
    };
    let row = |cause, onset_s| {
        let mut verdict = judge(&Series::default());
        verdict.cause = cause;
        verdict.onset_s = Some(onset_s);
        verdict.events.push(event(cause, onset_s));
        verdict.evidence.push(verdict::Evidence {
            feature: "fall".to_owned(),
            value: "by half".to_owned(),
            weight: 1.0,
            speaks_for: cause,
        });
        verdict
    };
    let series = Series {
        samples: (1..=9)
            .map(|i| Sample {
                cumulative_bytes: i * 100,
                ..Sample::new(i as f64, 0.0001, Op::Write)
            })
            .collect(),
        context: Context::default(),
    };
    let rows = vec![("A", row(Cause::SlcCache, 2.0)), ("B", row(Cause::Thermal, 5.0))];
    let one = one_of(rows, &series);
    assert_eq!((one.cause, one.onset_s), (Cause::Thermal, Some(5.0)));
    assert_eq!(one.onset_written_bytes, Some(500));
    let causes: Vec<Cause> = one.events.iter().map(|e| e.cause).collect();
    assert_eq!(causes, [Cause::SlcCache, Cause::Thermal]);
    let values: Vec<&str> = one.evidence.iter().map(|e| e.value.as_str()).collect();
    assert_eq!(values, ["B: by half", "A: by half"]);
    assert!(one.alternatives.iter().any(|a| a.cause == Cause::SlcCache));
    assert_eq!(one.metrics["written_bytes"], 900);
}

#[test]
fn a_note_says_which_rows_were_judged() {
    let run = ran("sim:corsair-voyager-gt-128gb", &options(Workload::Cdm3));
    let note = run
        .notes
        .iter()
        .find(|n| n.starts_with("judged by itself"))
        .unwrap();
    let (judged, slow) = note.split_once(". too slow to judge").unwrap();
    assert!(judged.contains("Sequential, write"), "{note}");
    assert!(slow.contains("Random 4KB (QD=1), write"), "{note}");
}

#[test]
fn figures_and_verdict_agree_where_both_name_a_quantity() {
    for (target, workload) in [
        ("sim:mushkin-ventura-ultra-120gb", Workload::Das),
        ("sim:wd-black-p50-1tb-gen2x2", Workload::SeqConsistency),
        ("sim:corsair-voyager-gt-128gb", Workload::Mix),
        ("sim:usb-20g-lockup-rnd4k-q32t16", Workload::Cdm8Nvme),
    ] {
        let run = ran(target, &options(workload));
        let verdict = &run.verdict;
        let mut pairs: Vec<(String, &str)> = [
            ("onset_s", "onset_time_s"),
            ("written_bytes", "total_written_bytes"),
            ("read_bytes", "total_read_bytes"),
            ("consistency{write}", "write_consistency_p5_over_p50"),
            ("consistency{read}", "read_consistency_p5_over_p50"),
            ("stall_s{median}", "stall_s"),
            ("stall_gap_s{median}", "stall_gap_s"),
            ("peak_w", "bus_power_max_w"),
            ("unthrottled_mb_s{write}", "write_unthrottled"),
            ("unthrottled_mb_s{read}", "read_unthrottled"),
            ("throttled_mb_s{write}", "write_throttled"),
            ("throttled_mb_s{read}", "read_throttled"),
        ]
        .map(|(metric, figure)| (metric.to_owned(), figure))
        .into();
        pairs.extend(run.figures.keys().map(|name| (name.clone(), name.as_str())));
        for (metric, figure) in pairs {
            let metric_value = verdict.metrics.get(&metric).and_then(|v| v.as_f64());
            let figure_value = run.figures.get(figure).map(|f| f.value);
            if let (Some(a), Some(b)) = (metric_value, figure_value) {
                assert!((a - b).abs() <= 0.001, "{target}: {metric} {a}, {figure} {b}");
            }
        }
        // Every byte is counted once, and at its own operation, in seconds with both too.
        let moved = Moved::by(&run.samples);
        assert_eq!(verdict.metrics["written_bytes"], moved.written_bytes, "{target}");
        assert_eq!(verdict.metrics["read_bytes"], moved.read_bytes(), "{target}");
        assert_eq!(moved.total_bytes, run.phases.iter().map(|p| p.bytes).sum::<u64>());
        if workload == Workload::Das {
            assert_eq!(
                (moved.written_bytes, moved.read_bytes()),
                (127_200_000_000, 127_200_000_000)
            );
        }
        let onset = run.figures.get("onset_written_bytes").map(|f| f.value as u64);
        assert_eq!(onset, verdict.onset_written_bytes, "{target}");
        if verdict.cause == Cause::PeriodicStall {
            let stalls = run.figures["stall_onset_written_bytes"].value as u64;
            assert_eq!(Some(stalls), onset);
            let first = run.figures["first_fall_written_bytes"].value as u64;
            assert!(Some(first) < onset);
        }
    }
}
