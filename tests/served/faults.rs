//! What goes wrong at a bridge, and what becomes of it: of the reading, of the device, and of the next run.

use std::time::Duration;

use drivethru_vm::{Served, ServedDevice};

use crate::bench::{ATTACH, Bench, text};

/// The sensor is pinned, so that a made-up value is told from the true one.
const CELSIUS: &str = "37 °C";

/// A time-out that the kernel's own limit of seven seconds for block devices makes longer.
const PATIENCE: &str = "3s";

/// The two bridges that faults are tried at: the same one with each driver.
pub const TRANSPORTS: &[(&str, &str)] = &[("BOT", "asm1153e,transport=bot"), ("UAS", "asm1153e")];

/// What is left of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Usable,
    Gone,
}

/// What the reading comes to.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    pub exit: i32,
    /// Part of what is said on stderr; empty for nothing at all.
    pub says: &'static str,
    pub after: After,
    /// ATA PASS-THROUGH commands that the first run sends: so many where harm is done, else at most so many.
    pub most: usize,
    pub next: Next,
}

/// What the next run sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing at all.
    Nothing,
    /// Not the command that did the harm.
    WithoutIt,
    /// What it likes.
    Anything,
}

/// One fault, with what it comes to over BOT and over UAS.
pub struct Case {
    pub fault: &'static str,
    pub bot: Outcome,
    pub uas: Outcome,
}

const fn outcome(exit: i32, says: &'static str, after: After, (most, next): (usize, Next)) -> Outcome {
    Outcome {
        exit,
        says,
        after,
        most,
        next,
    }
}

const ANY: (usize, Next) = (99, Next::Anything);

pub const CASES: &[Case] = &[
    // Habits that cost a command or two, or nothing.
    both("ckcond=ignore", outcome(0, "", After::Usable, ANY)),
    both("ckcond=empty", outcome(0, "", After::Usable, ANY)),
    both("sat=12", outcome(0, "", After::Usable, ANY)),
    both("ext=0", outcome(0, "", After::Usable, ANY)),
    both("sense=fixed", outcome(0, "", After::Usable, ANY)),
    both("sense=empty", outcome(0, "", After::Usable, ANY)),
    both("unknown=stall,sat=16", outcome(0, "", After::Usable, ANY)),
    both("fault=csw-residue", outcome(0, "", After::Usable, ANY)),
    both("fault=die-after-vendor", outcome(0, "", After::Usable, ANY)),
    both("fault=swapped", outcome(0, "", After::Usable, ANY)),
    both("fault=bad-checksum", outcome(0, "", After::Usable, ANY)),
    both("capacity=1000000", outcome(0, "", After::Usable, ANY)),
    // Answers that cannot be believed.
    Case {
        fault: "fault=echo",
        // Where the media is not known to be flash, CHECK POWER MODE goes first, and its echo is a standby.
        bot: outcome(7, "the drive says that it is in standby", After::Usable, ANY),
        uas: outcome(5, "not believed: it has no checksum", After::Usable, ANY),
    },
    both(
        "fault=zero-success",
        outcome(5, "all 512 bytes are 00h: no drive answered", After::Usable, ANY),
    ),
    both("fault=short", outcome(5, "256 of 512 bytes", After::Usable, ANY)),
    both(
        "fault=garbage-temp",
        outcome(
            5,
            "sct_status says 127 °C, which no drive has",
            After::Usable,
            ANY,
        ),
    ),
    both(
        "fault=stall",
        outcome(5, "Invalid command operation code (05/20/00)", After::Usable, ANY),
    ),
    // Harm: one command, nothing after it, and the next run remembers.
    both("fault=late", outcome(4, NO_ANSWER, After::Usable, ONE)),
    both("fault=timeout", outcome(4, NO_ANSWER, After::Usable, ONE)),
    both("fault=hang", outcome(4, NO_ANSWER, After::Usable, ONE)),
    Case {
        fault: "fault=csw-tag",
        bot: outcome(4, FAILED, After::Usable, ONE),
        // No command has that tag, so that the kernel goes on waiting.
        uas: outcome(4, NO_ANSWER, After::Usable, ONE),
    },
    both("fault=phase-error", outcome(4, FAILED, After::Usable, ONE)),
    Case {
        fault: "fault=babble",
        bot: outcome(4, FAILED, After::Usable, ONE),
        uas: outcome(4, NO_ANSWER, After::Usable, ONE),
    },
    Case {
        fault: "fault=gone",
        bot: outcome(4, FAILED, After::Gone, ONE),
        uas: outcome(4, GONE, After::Gone, ONE),
    },
    Case {
        fault: "fault=replug,fault_count=1",
        bot: outcome(4, FAILED, After::Usable, ONE),
        uas: outcome(4, GONE, After::Usable, ONE),
    },
    // The same at a command with data, where it is not the first.
    both(
        "fault=timeout,fault_after=1,fault_count=1",
        outcome(4, NO_ANSWER, After::Usable, SECOND),
    ),
    both(
        "fault=phase-error,fault_after=1,fault_count=1",
        outcome(4, FAILED, After::Usable, SECOND),
    ),
    Case {
        fault: "fault=babble,fault_after=1,fault_count=1",
        // usb-storage makes sense data of its own for it.
        bot: outcome(0, "", After::Usable, ANY),
        uas: outcome(4, NO_ANSWER, After::Usable, SECOND),
    },
    Case {
        fault: "fault=replug,fault_after=1,fault_count=1",
        bot: outcome(4, FAILED, After::Usable, SECOND),
        // Here it is a reading that is cut, not a probe: a pulled plug looks the same, and is not held against the bridge.
        uas: outcome(4, GONE, After::Usable, (2, Next::Anything)),
    },
];

const NO_ANSWER: &str = "no answer within 3.0 s";
const GONE: &str = "the device is gone";
const FAILED: &str = "transport failed: host status 07h DID_ERROR";
/// One command, then none.
const ONE: (usize, Next) = (1, Next::Nothing);
/// The second one does the harm.
const SECOND: (usize, Next) = (2, Next::WithoutIt);

const fn both(fault: &'static str, outcome: Outcome) -> Case {
    Case {
        fault,
        bot: outcome,
        uas: outcome,
    }
}

/// What the kernel says of a device that fails and is reset.
const ABOUT_RESETS: &[&str] = &[
    "reset SuperSpeed USB device",
    "uas_eh_",
    "uas_zap_pending",
    "data cmplt err",
    "stat urb:",
    "tag#",
    "device offline",
    "Device offlined",
    "rejecting I/O",
    "I/O error, dev",
    "cmd cmplt err",
    "Power-on or device reset occurred",
    "unable to read",
    "Sense Key",
    "Add. Sense",
    "CDB:",
    "Read Capacity",
    "Sense not available",
];

/// One fault at one transport.
pub fn strike(bench: &Bench, transport: &str, bridge: &str, case: &Case) -> Result<(), String> {
    let expected = if transport == "UAS" { &case.uas } else { &case.bot };
    let spec = if case.fault.contains("garbage-temp") {
        format!("{bridge},{}", case.fault)
    } else {
        format!("{bridge},temp=37,{}", case.fault)
    };
    // The disk must come up, so the fault waits until it is there.
    let (at_start, later): (Vec<&str>, Vec<&str>) = case
        .fault
        .split(',')
        .partition(|option| !option.starts_with("fault"));
    let calm = if later.is_empty() || case.fault.contains("garbage-temp") {
        spec
    } else {
        [format!("{bridge},temp=37"), at_start.join(",")]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(",")
    };
    let calm = calm.trim_end_matches(',').to_owned();
    let device = bench.guest.attach(&Served::profile(calm)).map_err(text)?;
    let disk = device.wait_for_disk(ATTACH).map_err(text)?;
    for option in &later {
        if *option != "fault=garbage-temp" {
            device.control(&format!("set {option}")).map_err(text)?;
        }
    }
    device.clear_log().map_err(text)?;
    let node = disk.node.as_str();
    bench.well("rm -rf /tmp/home; mkdir /tmp/home")?;
    let run = format!("HOME=/tmp/home NO_COLOR=1 /tmp/drivethru temp --timeout {PATIENCE} {node}");
    let output = bench.guest.run(&run, Duration::from_secs(60)).map_err(text)?;
    let (out, err) = (output.stdout_text(), output.stderr_text());
    let sent = pass_through(&device)?;
    if std::env::var_os("DRIVETHRU_TEST_VERBOSE").is_some() {
        println!(
            "  {}: {out}{err}  sent {sent:?} in {:.1} s",
            output.status,
            output.elapsed.as_secs_f64()
        );
    }
    bench.same("exit code", output.status, expected.exit);
    bench.holds(
        &format!("it says {:?}: {err:?}", expected.says),
        err.contains(expected.says) && (expected.exit == 0) == err.is_empty(),
    );
    bench.holds(
        &format!("the true value or none: {out:?}"),
        if expected.exit == 0 {
            out.contains(CELSIUS)
        } else {
            !out.contains("°C (")
        },
    );
    let wanted = if expected.exit == 4 {
        sent.len() == expected.most
    } else {
        (1..=expected.most).contains(&sent.len())
    };
    bench.holds(&format!("commands sent: {sent:?}"), wanted);
    // What is left.
    let readable = format!("dd if={node} of=/dev/null bs=4096 count=1 iflag=direct 2>&1");
    let mut usable = false;
    for _ in 0..40 {
        usable = bench
            .guest
            .run(&readable, Duration::from_secs(60))
            .map_err(text)?
            .status
            == 0;
        if usable || expected.after == After::Gone {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    bench.same("usable afterwards", usable, expected.after == After::Usable);
    if usable {
        device.clear_log().map_err(text)?;
        let again = bench.guest.run(&run, Duration::from_secs(60)).map_err(text)?;
        let resent = pass_through(&device)?;
        match expected.next {
            Next::Nothing => {
                bench.same("exit code of the next run", again.status, 6);
                bench.same("commands of the next run", resent, Vec::new());
            }
            Next::WithoutIt => {
                bench.holds(
                    &format!("the next run sends {resent:?} without {:?}", sent.last()),
                    sent.last().is_some_and(|harm| !resent.contains(harm)),
                );
            }
            Next::Anything => {}
        }
    }
    let unusual = bench.unusual(ABOUT_RESETS)?;
    bench.same("what the kernel says", unusual, Vec::new());
    if case.fault.is_empty() {
        return Ok(());
    }
    let word = if output.status == 0 {
        CELSIUS.to_owned()
    } else {
        in_short(&err, node)
    };
    let next = match (expected.after, expected.next) {
        (After::Gone, _) => "gone",
        (After::Usable, Next::Nothing) => "usable; the next run sends nothing",
        (After::Usable, Next::WithoutIt) => "usable; the next run leaves that command out",
        (After::Usable, Next::Anything) => "usable",
    };
    bench.cell(
        case.fault,
        transport,
        format!("exit {}: {word} → {next}", output.status),
    );
    Ok(())
}

/// The reason in what is said, without node, CDB and times.
fn in_short(err: &str, node: &str) -> String {
    let line = err
        .lines()
        .next()
        .unwrap_or_default()
        .replace(&format!("{node}: "), "");
    let line = line.strip_prefix("drivethru: ").unwrap_or(&line);
    let reason = line.rsplit_once("]: ").map_or(line, |(_, reason)| reason);
    let reason = reason.split(" (waited").next().unwrap_or_default();
    reason
        .split(", the model is not")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// The pass-through CDBs that have arrived.
fn pass_through(device: &ServedDevice<'_>) -> Result<Vec<String>, String> {
    let log = device.log().map_err(text)?;
    Ok(log
        .iter()
        .filter_map(|entry| entry["cdb"].as_str())
        .filter(|cdb| cdb.starts_with("85") || cdb.starts_with("a1"))
        .map(str::to_owned)
        .collect())
}

/// Negative control: the same check with the fault switched off fails.
pub fn without_the_fault(bench: &Bench, transport: &str, bridge: &str, case: &Case) -> Result<(), String> {
    let before = bench.failure_count();
    let calm = Case {
        fault: "",
        bot: case.bot,
        uas: case.uas,
    };
    let _ = strike(bench, transport, bridge, &calm);
    let failures = bench.take_failures(before);
    bench.holds(
        &format!("without {} its check fails", case.fault),
        failures.iter().any(|failure| failure.contains("exit code")),
    );
    Ok(())
}
