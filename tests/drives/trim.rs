//! TRIM: what reaches the drive, judged by the simulator's own account of what was discarded and by the bytes it holds.

use drivethru::drive::trim::{
    Ask, Ending, LogEntry, Method, Outcome, TrimError, TrimRun, Unwatched, Watch, What, run_on,
};
use drivethru::drive::{Care, Drive, OpenOptions};

use super::Dock;

const PLAN: [(u64, u64); 4] = [(2048, 100), (10_000, 40_000), (100_000, 8), (200_000, 300_000)];

fn ask(ranges: &[(u64, u64)]) -> Ask {
    Ask {
        what: What::Ranges(ranges.to_vec()),
        method: None,
        verify: true,
        rotational: false,
        commit: true,
        serial: None,
    }
}

fn open(dock: &Dock) -> Drive {
    Drive::from_transport(
        dock.plug(),
        dock.facts.clone(),
        &OpenOptions::default(),
        Care::MayWake,
    )
    .expect("a drive")
}

fn serial(dock: &Dock) -> String {
    let drive = open(dock);
    drive
        .device_ref()
        .serial
        .or_else(|| dock.facts.usb.as_ref().and_then(|usb| usb.serial.clone()))
        .expect("a serial number")
}

/// Data all over the disk, so that a wrong block shows.
fn fill(dock: &Dock) {
    let mut sim = dock.sim();
    let block_bytes = sim.target().block_bytes();
    for (first, count) in PLAN {
        for block in [first.saturating_sub(1), first, first + count - 1, first + count] {
            let data = vec![block as u8 | 1; block_bytes as usize];
            sim.target_mut().poke(block, &data).expect("it can be written");
        }
    }
}

fn trim(dock: &Dock, ask: &Ask) -> Result<TrimRun, TrimError> {
    let ask = Ask {
        serial: ask.serial.clone().or_else(|| Some(serial(dock))),
        ..ask.clone()
    };
    run_on(open(dock), &ask, &mut Unwatched)
}

/// Sectors that were discarded beyond the plan; `scale` sectors of the drive are one block of the host.
fn outside(dock: &Dock, plan: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let discarded = dock.sim().target().discarded();
    discarded
        .into_iter()
        .filter(|(first, count)| !plan.iter().any(|(f, c)| f <= first && first + count <= f + c))
        .collect()
}

fn covered(dock: &Dock) -> u64 {
    dock.sim()
        .target()
        .discarded()
        .iter()
        .map(|(_, count)| count)
        .sum()
}

fn sent(dock: &Dock, opcode: u8, ata: u8) -> usize {
    let sim = dock.sim();
    let log = sim.target().log();
    log.iter()
        .filter(|e| e.cdb.first() == Some(&opcode) && (opcode != 0x85 || e.cdb.get(14) == Some(&ata)))
        .count()
}

/// Commands that write or discard.
fn writing(dock: &Dock) -> usize {
    [(0x42, 0), (0x93, 0), (0x85, 0x06), (0x2a, 0), (0x8a, 0)]
        .iter()
        .map(|(opcode, ata)| sent(dock, *opcode, *ata))
        .sum()
}

#[test]
fn each_way_trims_the_plan_and_nothing_else() {
    for (spec, method, opcode) in [
        ("asm1153e", Method::Unmap, 0x42),
        ("asm1153e", Method::Ata, 0x85),
        ("asm1153e", Method::WriteSame, 0x93),
        ("asm1053e", Method::Ata, 0x85),
        ("jms567", Method::Ata, 0x85),
        ("hdd-4kn,trim=zero,bridge=asm1153e", Method::Unmap, 0x42),
        ("hdd-4kn,trim=zero,bridge=asm1153e", Method::Ata, 0x85),
    ] {
        let dock = Dock::new(spec);
        fill(&dock);
        let ask = Ask {
            method: Some(method),
            rotational: true,
            ..ask(&PLAN)
        };
        let run = trim(&dock, &ask).unwrap_or_else(|e| panic!("{spec} {method:?}: {e}"));
        let report = &run.report;
        assert_eq!(report.ending, Ending::Done, "{spec} {method:?}: {report:?}");
        let proof = report.proof.as_ref().expect("a proof");
        assert_eq!(proof.outcome, Outcome::Zeroed, "{spec} {method:?}");
        assert_eq!(proof.same_lba_by_ata, method == Method::Ata);
        let verified = report.verified.as_ref().expect("it was verified");
        assert_eq!(
            (verified.wrong_count, verified.samples),
            (0, verified.as_proven),
            "{spec}"
        );
        assert!(verified.neighbours >= 8);
        assert_eq!(outside(&dock, &PLAN), [], "{spec} {method:?}");
        let blocks: u64 = report.plan.extents.iter().map(|(_, count)| count).sum();
        assert_eq!(covered(&dock), blocks, "{spec} {method:?}");
        assert_eq!(report.done.unwrap().bytes, report.plan.bytes);
        assert!(sent(&dock, opcode, 0x06) as u64 > report.done.unwrap().commands);
        // What stood beside the ranges still does.
        for (first, count) in PLAN {
            let peeked = dock.sim().target_mut().peek(first + count, 1).unwrap();
            assert_eq!(peeked[0], (first + count) as u8 | 1, "{spec}");
        }
    }
}

#[test]
fn a_dry_run_writes_nothing() {
    for what in [What::All, What::Ranges(PLAN.to_vec()), What::Free { gaps: true }] {
        let dock = Dock::new("asm1153e");
        let ask = Ask {
            what,
            commit: false,
            serial: None,
            ..ask(&[])
        };
        let run = run_on(open(&dock), &ask, &mut Unwatched).expect("a plan");
        assert!(matches!(run.report.ending, Ending::Planned | Ending::NothingToDo));
        assert!(run.report.done.is_none() && run.report.proof.is_none());
        assert_eq!((writing(&dock), covered(&dock)), (0, 0));
    }
}

#[test]
fn a_bridge_that_moves_or_scrambles_blocks_gets_no_ata_trim() {
    for (spec, unmap_works) in [
        ("asm1153e,shift=2048", true),
        ("asm1153e,encrypt=1", true),
        ("asm1153e,fake_4k=1", true),
        ("jms567,shift=2048", false),
        ("jms567,encrypt=1", false),
        ("jms567,fake_4k=1", false),
    ] {
        let dock = Dock::new(spec);
        let run = trim(
            &dock,
            &Ask {
                method: Some(Method::Ata),
                ..ask(&[(200_000, 300_000)])
            },
        )
        .expect("a run");
        assert!(
            matches!(run.report.ending, Ending::NotProven | Ending::NoMethod),
            "{spec}: {:?}",
            run.report
        );
        assert_eq!((sent(&dock, 0x85, 0x06), covered(&dock)), (0, 0), "{spec}");
        let run = trim(&dock, &ask(&[(200_000, 300_000)])).expect("a run");
        assert_eq!(sent(&dock, 0x85, 0x06), 0, "{spec}");
        if unmap_works {
            assert_eq!(run.report.ending, Ending::Done, "{spec}: {:?}", run.report);
            assert_eq!(run.report.method, Some(Method::Unmap), "{spec}");
        } else {
            assert!(run.report.done.is_none(), "{spec}");
        }
        let by_how_far = run.report.failed_proofs.iter().find_map(|p| p.shift_blocks);
        if spec == "jms567,shift=2048" {
            assert_eq!(by_how_far, Some(-2048), "{spec}: {:?}", run.report.failed_proofs);
        }
    }
}

#[test]
fn a_drive_that_takes_whole_pages_takes_nobody_elses() {
    // The second drive does not say that its sectors are larger than 512 bytes.
    for (spec, method) in [
        ("asm1153e,trim=pages", Method::Ata),
        ("asm1153e,trim=pages", Method::Unmap),
        ("asm1153e,trim=pages", Method::WriteSame),
        ("brandx-240gb,bridge=jms567,trim=pages", Method::Ata),
    ] {
        let dock = Dock::new(spec);
        let plan = [(2052, 100), (200_003, 300_000)];
        dock.sim().target_mut().poke(2051, &[0x77; 512]).unwrap();
        let run = trim(
            &dock,
            &Ask {
                method: Some(method),
                ..ask(&plan)
            },
        )
        .expect("a run");
        assert_eq!(run.report.ending, Ending::Done, "{method:?}");
        assert_eq!(outside(&dock, &plan), [], "{method:?}");
        assert_eq!(dock.sim().target_mut().peek(2051, 1).unwrap(), [0x77; 512]);
    }
}

#[test]
fn a_bridge_that_claims_more_than_the_drive_has_is_refused() {
    let dock = Dock::new("asm1153e,capacity=2000000000");
    assert!(matches!(trim(&dock, &ask(&PLAN)), Err(TrimError::Refused(_))));
    assert_eq!(writing(&dock), 0);
}

#[test]
fn who_stops_before_the_first_write_changes_nothing() {
    let dock = Dock::new("asm1153e");
    let mut watch = Stopping {
        left: 0.into(),
        lines: Vec::new(),
    };
    let ask = Ask {
        serial: Some(serial(&dock)),
        ..ask(&PLAN)
    };
    assert!(matches!(
        run_on(open(&dock), &ask, &mut watch),
        Err(TrimError::Interrupted)
    ));
    assert_eq!(writing(&dock), 0);
}

#[test]
fn what_a_failed_proof_stamped_is_put_back() {
    let dock = Dock::new("jms567,trim=ignore");
    let middle = 350_000;
    let data = vec![0x5a; 64 * 512];
    dock.sim().target_mut().poke(middle, &data).unwrap();
    let run = trim(&dock, &ask(&[(200_000, 300_000)])).expect("a run");
    assert_eq!(run.report.ending, Ending::NotProven);
    assert!(writing(&dock) > 0, "it was tried");
    assert_eq!(dock.sim().target_mut().peek(middle, 64).unwrap(), data);
}

#[test]
fn a_device_that_lies_is_noticed_and_named() {
    for (spec, outcome) in [
        ("asm1153e,trim=ignore", Outcome::Unchanged),
        ("asm1153e,trim=neighbour", Outcome::NeighbourHarmed),
        ("asm1153e,trim=false-zero", Outcome::BrokenPromise),
        ("asm1153e,fault=lost-write", Outcome::WritesLost),
    ] {
        let dock = Dock::new(spec);
        let run = trim(&dock, &ask(&[(200_000, 300_000)])).unwrap_or_else(|e| panic!("{spec}: {e}"));
        assert_eq!(run.report.ending, Ending::NotProven, "{spec}");
        let first = run.report.failed_proofs.first().expect("a failed proof");
        assert_eq!(first.outcome, outcome, "{spec}");
        assert!(run.report.done.is_none(), "{spec}");
        let most = if outcome == Outcome::NeighbourHarmed { 1 } else { 3 };
        assert!(
            run.report.failed_proofs.len() <= most,
            "{spec}: nothing is tried after harm"
        );
        assert_eq!(outside(&dock, &[(200_000, 300_000)]), [], "{spec}");
    }
    // Units of 128 sectors reach the neighbours of a scratch range that is made of odd ones.
    let dock = Dock::new("asm1153e,trim=wide");
    let run = trim(&dock, &ask(&[(200_000, 300_000)])).expect("a run");
    assert_eq!(
        run.report.failed_proofs.first().map(|p| p.outcome),
        Some(Outcome::NeighbourHarmed)
    );
    // Ones without a promise of zeroes are allowed.
    let dock = Dock::new("asm1153e,trim=ones");
    let run = trim(&dock, &ask(&[(200_000, 300_000)])).expect("a run");
    assert_eq!(run.report.ending, Ending::Done);
    assert_eq!(run.report.proof.unwrap().outcome, Outcome::UndefinedButAllowed);
    // As before is never a success, promise or not.
    let dock = Dock::new("asm1153e,trim=keep");
    let run = trim(&dock, &ask(&[(200_000, 300_000)])).expect("a run");
    assert_eq!(run.report.ending, Ending::NotProven);
}

/// Fifty ranges, each of which is a command of its own by WRITE SAME.
fn many() -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = (0..50).map(|i| (1000 + i * 1000, 200)).collect();
    ranges.push((1_000_000, 100_000));
    ranges
}

#[test]
fn the_first_failure_stops_it_with_an_honest_account() {
    for fault in ["error", "replug", "timeout"] {
        let dock = Dock::new(&format!("asm1153e,fault={fault},fault_on=trim,fault_after=11"));
        let plan = many();
        let run = trim(
            &dock,
            &Ask {
                method: Some(Method::WriteSame),
                ..ask(&plan)
            },
        )
        .unwrap_or_else(|e| panic!("{fault}: {e}"));
        assert!(run.error.is_some(), "{fault}");
        let Ending::Stopped { why } = &run.report.ending else {
            panic!("{fault}: {:?}", run.report.ending);
        };
        assert!(!why.is_empty());
        let done = run.report.done.expect("what was done");
        // One of the eleven was the proof's.
        assert_eq!((done.commands, done.bytes), (10, 10 * 200 * 512), "{fault}");
        assert_eq!(sent(&dock, 0x93, 0), 12, "{fault}: nothing after the failure");
        assert_eq!(outside(&dock, &plan), [], "{fault}");
    }
}

#[test]
fn a_drive_that_was_changed_is_left_alone() {
    // Wherever the swap comes, nothing is discarded after it.
    let mut refused = 0;
    for after in 4..60 {
        let dock = Dock::new(&format!("asm1153e,swap_after={after}"));
        let wanted = serial(&Dock::new("asm1153e"));
        let ask = Ask {
            serial: Some(wanted),
            verify: false,
            ..ask(&[(200_000, 300_000)])
        };
        match run_on(open(&dock), &ask, &mut Unwatched) {
            Err(TrimError::Refused(_)) => {
                refused += 1;
                assert_eq!(writing(&dock), 0, "{after}");
            }
            Ok(run) => match run.report.ending {
                Ending::Stopped { why } => {
                    refused += 1;
                    assert!(why.contains("serial number"), "{after}: {why}");
                    assert_eq!(run.report.done.map(|d| d.commands), Some(0), "{after}");
                }
                Ending::Done => {}
                other => panic!("{after}: {other:?}"),
            },
            Err(other) => panic!("{after}: {other}"),
        }
    }
    assert!(refused > 5, "{refused}");
}

#[test]
fn bad_ranges_and_wrong_drives_send_nothing() {
    let blocks = {
        let dock = Dock::new("asm1153e");
        let mut drive = open(&dock);
        drive.geometry().unwrap().blocks
    };
    for ranges in [
        &[(blocks - 8, 9)][..],
        &[(5, 0)],
        &[(0, 10), (9, 5)],
        &[(u64::MAX, 2)],
        &[(7, u64::MAX)],
    ] {
        let dock = Dock::new("asm1153e");
        assert!(
            matches!(trim(&dock, &ask(ranges)), Err(TrimError::BadRange(_))),
            "{ranges:?}"
        );
        assert_eq!(writing(&dock), 0);
    }
    for serial in [None, Some("WRONG".to_owned()), Some(String::new())] {
        let dock = Dock::new("asm1153e");
        let ask = Ask {
            serial,
            what: What::All,
            ..ask(&[])
        };
        assert!(matches!(
            run_on(open(&dock), &ask, &mut Unwatched),
            Err(TrimError::Refused(_))
        ));
        assert_eq!(writing(&dock), 0);
    }
    let dock = Dock::new("hdd,trim=zero");
    assert!(
        matches!(trim(&dock, &ask(&PLAN)), Err(TrimError::Refused(_))),
        "a rotating disk"
    );
    assert_eq!(writing(&dock), 0);
    // Too small to prove anything on.
    let dock = Dock::new("asm1153e");
    let run = trim(&dock, &ask(&[(64, 8)])).expect("a run");
    assert_eq!(run.report.ending, Ending::NoMethod);
    assert_eq!(writing(&dock), 0);
}

/// Writes down what happens, and stops after so many commands.
struct Stopping {
    left: std::cell::Cell<usize>,
    lines: Vec<LogEntry>,
}

impl Watch for Stopping {
    fn progress(&mut self, _done_bytes: u64, _total_bytes: u64) {}
    fn log(&mut self, entry: &LogEntry) -> std::io::Result<()> {
        self.lines.push(entry.clone());
        Ok(())
    }
    fn stop(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left == 0
    }
}

#[test]
fn an_interrupt_ends_it_between_two_commands() {
    let dock = Dock::new("asm1153e");
    let mut watch = Stopping {
        // Two looks before the survey and after it, one before the proof.
        left: 6.into(),
        lines: Vec::new(),
    };
    let ask = Ask {
        method: Some(Method::WriteSame),
        serial: Some(serial(&dock)),
        ..ask(&many())
    };
    let run = run_on(open(&dock), &ask, &mut watch).expect("a run");
    assert_eq!(run.report.ending, Ending::Interrupted);
    assert_eq!(run.report.done.unwrap().commands, 3);
    let trims = watch
        .lines
        .iter()
        .filter(|l| matches!(l, LogEntry::Trim { .. }))
        .count();
    assert_eq!(trims, 3);
    assert!(matches!(watch.lines.last(), Some(LogEntry::End { .. })));
}

#[test]
fn no_more_commands_than_the_limits_make_necessary() {
    // Ten thousand ranges: 64 in a block, 8 blocks in a list.
    let ranges: Vec<(u64, u64)> = (0..10_000)
        .map(|i| (1000 + i * 100, 50))
        .chain([(2_000_000, 50_000)])
        .collect();
    let dock = Dock::new("jms567");
    let run = trim(
        &dock,
        &Ask {
            verify: false,
            method: Some(Method::Ata),
            ..ask(&ranges)
        },
    )
    .expect("a run");
    assert_eq!(run.report.ending, Ending::Done, "{:?}", run.report.refused);
    assert_eq!(run.report.done.unwrap().commands, 10_001_u64.div_ceil(512));
}

#[test]
fn the_guard_of_an_open_drive_forgets_its_permit() {
    let dock = Dock::new("asm1153e");
    trim(&dock, &ask(&PLAN)).expect("a run");
    let mut drive = open(&dock);
    let before = writing(&dock);
    assert!(drive.write_blocks(10_000, &[0; 512], 512).is_err());
    assert_eq!(writing(&dock), before);
}
