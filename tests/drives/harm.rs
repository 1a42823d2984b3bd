//! A probe that a bridge does not take well is the last one.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Opens at a bridge whose first pass-through command ends badly; returns what it is remembered for.
fn one_harmful_probe(spec: &str, arrived: &[&str]) {
    let (_dir, memory, options) = with_memory();
    let dock = Dock::new(spec);
    let error = refusal(dock.poll_with(&options));
    assert!(matches!(error, DriveError::Harmed { .. }), "{spec}: {error}");
    assert_eq!(dock.arrived(), arrived, "{spec}: nothing after the first probe");
    let harm = dock
        .remembered(&memory)
        .harmed_by
        .unwrap_or_else(|| panic!("{spec}: not remembered"));
    assert!(harm.command.contains("[a1 "), "{harm:?}");
    assert!(
        !harm.what.is_empty() && harm.when.starts_with("2024-01-01T"),
        "{harm:?}"
    );

    // The bridge is plugged in again; nothing is sent to it, by no verb, with or without waking.
    let again = Dock::new(spec);
    for (options, care) in [
        (options.clone(), Care::NoWake),
        (options.clone(), Care::MayWake),
        (
            OpenOptions {
                wake: true,
                ..options.clone()
            },
            Care::NoWake,
        ),
    ] {
        let error = refusal(again.open(&options, care));
        assert!(
            matches!(error, DriveError::HarmedBefore { .. }),
            "{spec}: {error}"
        );
    }
    assert_eq!(again.arrived_count(), 0, "{spec}: {:?}", again.arrived());

    // --forget: one more try, which fails in the same way and is remembered again.
    let forget = OpenOptions {
        forget: true,
        ..options.clone()
    };
    let error = refusal(again.poll_with(&forget));
    assert!(matches!(error, DriveError::Harmed { .. }), "{spec}: {error}");
    assert_eq!(again.arrived(), arrived, "{spec}");
    assert!(again.remembered(&memory).harmed_by.is_some(), "{spec}");

    // The same bridge, cured: forgetting it lets it be found.
    let (profile, _) = spec.split_once(',').expect("a fault");
    let cured = Dock::new(profile);
    assert_eq!(cured.key(), dock.key());
    let error = refusal(cured.poll_with(&options));
    assert!(
        matches!(error, DriveError::HarmedBefore { .. }),
        "{spec}: {error}"
    );
    cured.poll_with(&forget).expect("a temperature");
    assert_eq!(cured.remembered(&memory).harmed_by, None);
    cured.poll_with(&options).expect("a temperature");
}

#[test]
fn a_probe_without_an_answer_is_the_last_one() {
    one_harmful_probe("ssd,fault=timeout", &["identify/12"]);
    one_harmful_probe("hdd,fault=timeout", &["check power mode/12"]);
    one_harmful_probe("asm1051-usb2,fault=timeout", &["check power mode/12"]);
}

#[test]
fn a_bridge_that_drops_off_is_not_probed_again() {
    one_harmful_probe("ssd,fault=gone", &["identify/12"]);
    one_harmful_probe("hdd,fault=gone", &["check power mode/12"]);
}

#[test]
fn a_named_dialect_goes_past_the_memory_of_harm() {
    let (_dir, memory, options) = with_memory();
    let dock = Dock::new("ssd");
    let harm = drivethru::bridge::memory::Harm {
        command: "IDENTIFY DEVICE".to_owned(),
        what: "got no answer in time".to_owned(),
        when: "2024-01-01T00:00:00Z".to_owned(),
    };
    memory
        .update(&dock.key(), |r| r.harmed_by = Some(harm.clone()))
        .expect("written");
    let named = OpenOptions {
        dialect: Some("sat12".to_owned()),
        ..options.clone()
    };
    dock.poll_with(&named).expect("a temperature");
    assert_eq!(dock.arrived(), ["identify/12", "sct status/12"]);
    assert_eq!(
        dock.remembered(&memory).harmed_by,
        Some(harm),
        "what the user forces says nothing about probing"
    );
    let scsi = OpenOptions {
        dialect: Some("scsi".to_owned()),
        ..options
    };
    dock.open(&scsi, Care::NoWake).expect("the SCSI view is no probe");
}

#[test]
fn harm_is_known_before_an_inquiry_is_sent() {
    let (_dir, memory, options) = with_memory();
    let mut dock = Dock::new("ssd");
    // Without the kernel's copy of INQUIRY data.
    dock.facts.scsi.inquiry = None;
    memory
        .update(&dock.key(), |r| {
            r.harmed_by = Some(drivethru::bridge::memory::Harm {
                command: "IDENTIFY DEVICE".to_owned(),
                what: "got no answer in time".to_owned(),
                when: "2024-01-01T00:00:00Z".to_owned(),
            });
        })
        .expect("written");
    let error = refusal(dock.poll_with(&options));
    assert!(matches!(error, DriveError::HarmedBefore { .. }), "{error}");
    assert_eq!(dock.arrived_count(), 0, "{:?}", dock.arrived());
}

#[test]
fn a_bridge_that_hangs_on_the_question_for_registers_is_remembered() {
    let (_dir, memory, options) = with_memory();
    // CK_COND brings nothing and REQUEST SENSE does not tell: RETURN RESPONSE INFORMATION is the next probe.
    let dock = Dock::new("hdd-4kn,ckcond=ignore");
    let hangs = |command: &Command, answer| match Ata::of(command.cdb.as_bytes()) {
        Some(ata) if ata.protocol == 15 => Err(TransportError::TimedOut {
            device: "sim:hdd-4kn".to_owned(),
            command: command.cdb.name(),
            cdb: command.cdb,
            timeout: command.timeout,
            elapsed: command.timeout,
        }),
        _ => answer,
    };
    let mut dock = dock;
    dock.facts.scsi.vpd_pages.clear();
    let silent = |command: &Command, answer: Result<Completion, TransportError>| match command.cdb.opcode() {
        0x03 => answer.map(|mut completion| {
            completion.data = Some(vec![0x70, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            completion
        }),
        _ => answer,
    };
    let habit = Habit::new(dock.plug(), move |c, a| hangs(c, silent(c, a)));
    let opened = Drive::from_transport(Box::new(habit), dock.facts.clone(), &options, Care::NoWake);
    let error = refusal(opened);
    assert!(matches!(error, DriveError::Harmed { .. }), "{error}");
    assert_eq!(
        dock.arrived().last().map(String::as_str),
        Some("return response information/12"),
        "nothing after it"
    );
    let remembered = dock.remembered(&memory);
    assert!(remembered.harmed_by.is_some(), "{remembered:?}");
    let before = dock.arrived_count();
    let error = refusal(dock.poll_with(&options));
    assert!(matches!(error, DriveError::HarmedBefore { .. }), "{error}");
    assert_eq!(dock.arrived_count(), before);
}

/// A drive behind a well-known bridge that hangs on one command, as some do on SCT status or device statistics.
#[test]
fn a_command_that_hangs_later_is_left_out_by_the_next_run() {
    let (_dir, memory, options) = with_memory();
    let dock = Dock::new("ssd");
    let hang = |command: &Command, answer: Result<Completion, TransportError>| match command.cdb.as_bytes() {
        // SMART READ LOG of log E0h
        [0xa1, _, _, 0xd5, _, 0xe0, ..] => Err(TransportError::TimedOut {
            device: "test".to_owned(),
            command: command.cdb.name(),
            cdb: command.cdb,
            timeout: command.timeout,
            elapsed: command.timeout,
        }),
        _ => answer,
    };
    let open = || {
        let habit = Habit::new(dock.plug(), hang);
        Drive::from_transport(Box::new(habit), dock.facts.clone(), &options, Care::NoWake).expect("a drive")
    };

    let mut drive = open();
    let error = refusal(drive.temp_report());
    assert!(
        matches!(error, DriveError::Harmed { remembered: true, .. }),
        "{error}"
    );
    let before = dock.arrived_count();
    let error = refusal(drive.health(true));
    assert!(matches!(error, DriveError::HarmedBefore { .. }), "{error}");
    assert_eq!(
        dock.arrived_count(),
        before,
        "nothing more goes through this handle"
    );
    assert_eq!(
        dock.remembered(&memory).harmed_by,
        None,
        "the bridge itself is well"
    );

    let mut drive = open();
    let report = drive.temp_report().expect("from another source");
    assert_eq!(report.temperature.source.map(|s| s.word()), Some("smart_194"));
    let health = drive.health(true).expect("all the rest");
    assert!(
        health
            .not_read
            .iter()
            .any(|n| n.contains("SCT status") && n.contains("not asked for")),
        "{:?}",
        health.not_read
    );
    let asked = dock
        .arrived()
        .into_iter()
        .filter(|w| w.starts_with("sct status"))
        .count();
    assert_eq!(asked, 1, "once in all: {:?}", dock.arrived());
}

fn timed_out(command: &Command) -> TransportError {
    TransportError::TimedOut {
        device: "test".to_owned(),
        command: command.cdb.name(),
        cdb: command.cdb,
        timeout: command.timeout,
        elapsed: command.timeout,
    }
}

/// The question for the power state of what has no pass-through is a command like any other.
#[test]
fn a_stick_that_hangs_on_request_sense_is_not_asked_again() {
    let (_dir, memory, options) = with_memory();
    let dock = Dock::new("stick");
    let hang = |command: &Command, answer: Result<Completion, TransportError>| match command.cdb.opcode() {
        0x03 => Err(timed_out(command)),
        _ => answer,
    };
    let open = || {
        let habit = Habit::new(dock.plug(), hang);
        Drive::from_transport(Box::new(habit), dock.facts.clone(), &options, Care::NoWake).expect("a stick")
    };

    let mut drive = open();
    let error = refusal(drive.temp_report());
    assert!(
        matches!(error, DriveError::Harmed { remembered: true, .. }),
        "{error}"
    );
    let before = dock.arrived_count();
    for _ in 0..3 {
        let error = refusal(drive.temp_report());
        assert!(matches!(error, DriveError::HarmedBefore { .. }), "{error}");
    }
    assert_eq!(
        dock.arrived_count(),
        before,
        "nothing more goes through this handle"
    );
    assert!(dock.remembered(&memory).avoid.contains_key("REQUEST SENSE"));

    let error = refusal(open().temp_report());
    assert!(matches!(error, DriveError::NoPassThrough { .. }), "{error}");
    let asked = dock
        .arrived_kinds()
        .iter()
        .filter(|k| *k == "request sense")
        .count();
    assert_eq!(asked, 1, "once in all: {:?}", dock.arrived());
}

/// What hung in the middle of a series is not the first command of the next run.
#[test]
fn a_question_for_the_power_state_that_hung_is_left_out_when_opening() {
    for (spec, hung) in [
        ("hdd", "check power mode"),
        ("hdd,ckcond=ignore", "request sense"),
    ] {
        let (_dir, memory, options) = with_memory();
        let dock = Dock::new(spec);
        let harmful = Arc::new(AtomicBool::new(false));
        let flag = harmful.clone();
        let habit = move |command: &Command, answer: Result<Completion, TransportError>| {
            let kind = word(command.cdb.as_bytes());
            match flag.load(Ordering::Relaxed) {
                true if kind.starts_with(hung) => Err(timed_out(command)),
                // No registers this way either, so that REQUEST SENSE is asked.
                true if kind.starts_with("return response information") => answer.map(|mut completion| {
                    completion.data = Some(vec![0; 14]);
                    completion
                }),
                _ => answer,
            }
        };
        let open = || {
            let plug = Box::new(Habit::new(dock.plug(), habit.clone()));
            Drive::from_transport(plug, dock.facts.clone(), &options, Care::NoWake)
        };
        let mut drive = open().expect("a disk that is awake");
        drive.temp_report().expect("a temperature");
        dock.let_pass(Duration::from_secs(2));
        harmful.store(true, Ordering::Relaxed);
        let error = refusal(drive.temp_report());
        assert!(
            matches!(error, DriveError::Harmed { remembered: true, .. }),
            "{hung}: {error}"
        );
        assert_eq!(dock.remembered(&memory).harmed_by, None);

        let before = dock.arrived_kinds().len();
        let _ = open().and_then(|mut drive| drive.temp_report());
        let asked = dock.arrived_kinds().split_off(before);
        assert!(!asked.iter().any(|k| k == hung), "{hung}: {asked:?}");
        assert_eq!(dock.remembered(&memory).harmed_by, None, "{hung}");
    }
}
