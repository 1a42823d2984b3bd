//! Which CDBs a bridge takes is found, remembered, and never taken for the drive's identity.

use super::*;
use drivethru::drive::{Access, FoundBy, NoPassThrough};

fn dialect(drive: &Drive) -> Option<&'static str> {
    drive.device_ref().dialect
}

#[test]
fn the_right_form_is_found_and_remembered() {
    for (sat, found, arrived) in [
        ("both", "sat", vec!["identify/12"]),
        ("12", "sat", vec!["identify/12"]),
        ("16", "sat16", vec!["identify/12", "identify/16"]),
    ] {
        let (_dir, memory, options) = with_memory();
        let dock = Dock::new(&format!("ssd,sat={sat}"));
        let drive = dock.open(&options, Care::NoWake).expect("a drive");
        assert_eq!(dialect(&drive), Some(found), "{sat}");
        assert_eq!(dock.arrived(), arrived, "{sat}");
        assert_eq!(dock.remembered(&memory).dialect.as_deref(), Some(found), "{sat}");

        let before = dock.arrived().len();
        let mut drive = dock.open(&options, Care::NoWake).expect("a drive");
        let info = drive.info().expect("info");
        assert_eq!(info.access.found_by, FoundBy::Remembered, "{sat}");
        assert_eq!(
            dock.arrived()[before..before + 1],
            [arrived[arrived.len() - 1]],
            "{sat}"
        );
    }
}

#[test]
fn a_turning_disk_is_asked_for_its_state_in_the_form_that_works() {
    let dock = Dock::new("hdd,sat=16");
    dock.poll().expect("a temperature");
    assert_eq!(
        dock.arrived(),
        [
            "check power mode/12",
            "check power mode/16",
            "identify/16",
            "sct status/16"
        ]
    );
}

#[test]
fn without_pass_through_each_form_is_tried_once() {
    for dock in [
        Dock::new("ssd,sat=none"),
        Dock::new("stick"),
        Dock::new("hdd,sat=none,power=standby"),
    ] {
        let (_dir, memory, options) = with_memory();
        let drive = dock.open(&options, Care::NoWake).expect("SCSI works");
        let Access::ScsiOnly(NoPassThrough::Refused { tried }) = drive.access() else {
            panic!("{:?}", drive.access());
        };
        let names: Vec<&str> = tried.iter().map(|t| t.dialect.as_str()).collect();
        assert_eq!(names, ["sat", "sat16"]);
        let pass_through: Vec<String> = dock
            .arrived()
            .into_iter()
            .filter(|w| w.contains('/'))
            .map(|w| w.rsplit('/').next().unwrap_or_default().to_owned())
            .collect();
        // Where the media may turn, CHECK POWER MODE goes before IDENTIFY in each form.
        let once = ["12", "16"];
        let expected = if dock.arrived().iter().any(|w| w.starts_with("check power")) {
            once.repeat(2)
        } else {
            once.to_vec()
        };
        assert_eq!(pass_through, expected, "{:?}", dock.arrived());
        assert_eq!(dock.remembered(&memory).dialect, None);
        assert_eq!(dock.wakes(), 0);
        match refusal(dock.poll_with(&options)) {
            DriveError::NoPassThrough { .. } => {}
            // REQUEST SENSE tells that much without pass-through.
            DriveError::Asleep { .. } => assert_eq!(dock.power_state(), "standby"),
            error => panic!("{error}"),
        }
    }
}

#[test]
fn a_remembered_form_that_no_longer_works_is_replaced() {
    let (_dir, memory, options) = with_memory();
    let dock = Dock::new("ssd,sat=16");
    memory
        .update(&dock.key(), |r| r.dialect = Some("sat12".to_owned()))
        .expect("written");
    let mut drive = dock.open(&options, Care::NoWake).expect("a drive");
    assert_eq!(dialect(&drive), Some("sat16"));
    assert_eq!(drive.info().expect("info").access.found_by, FoundBy::Probed);
    assert_eq!(dock.remembered(&memory).dialect.as_deref(), Some("sat16"));
}

#[test]
fn a_swapped_drive_is_identified_afresh() {
    let (_dir, memory, options) = with_memory();
    let old = Dock::new("ssd");
    let serial = |dock: &Dock| {
        dock.poll_with(&options)
            .expect("a temperature")
            .device
            .serial
            .expect("a serial number")
    };
    assert_eq!(serial(&old), "SIMSSD0000480001");
    let new = Dock::new("ssd,serial=OTHER");
    assert_eq!(new.key(), old.key(), "the same bridge");
    assert_eq!(serial(&new), "OTHER");
    // A disk in the place of the SSD is noticed before anything could wake it.
    let mut disk = Dock::new("hdd,power=standby");
    disk.facts.usb = old.facts.usb.clone();
    disk.facts.scsi.revision = old.facts.scsi.revision.clone();
    assert_eq!(disk.key(), old.key());
    let error = refusal(disk.poll_with(&options));
    assert!(matches!(error, DriveError::Asleep { .. }), "{error}");
    assert_eq!(disk.wakes(), 0);
    let text = std::fs::read_to_string(_dir.path().join("bridges.json")).expect("the memory");
    assert!(!text.contains("SIMSSD") && !text.contains("OTHER"), "{text}");
    assert_eq!(old.remembered(&memory).dialect.as_deref(), Some("sat"));
}

#[test]
fn a_named_dialect_is_the_only_one_tried() {
    let named = |name: &str| OpenOptions {
        dialect: Some(name.to_owned()),
        ..OpenOptions::default()
    };
    for (name, arrived) in [
        ("sat", "identify/12"),
        ("sat12", "identify/12"),
        ("sat,12", "identify/12"),
        ("sat16", "identify/16"),
        ("sat,16", "identify/16"),
        ("sat,auto", "identify/12"),
        ("auto", "identify/12"),
    ] {
        let dock = Dock::new("ssd");
        dock.open(&named(name), Care::NoWake).expect("a drive");
        assert_eq!(dock.arrived(), [arrived], "{name}");
    }
    let dock = Dock::new("ssd,sat=12");
    let error = refusal(dock.poll_with(&named("sat16")));
    assert!(matches!(error, DriveError::NoPassThrough { .. }), "{error}");
    assert!(!dock.arrived().contains(&"identify/12".to_owned()));
    let dock = Dock::new("ssd");
    let error = refusal(dock.poll_with(&named("usbjmicron")));
    assert!(matches!(error, DriveError::BadName { .. }), "{error}");
    assert_eq!(dock.arrived_count(), 0);
    let error = refusal(dock.poll_with(&named("scsi")));
    assert!(matches!(error, DriveError::NoPassThrough { .. }), "{error}");
    assert!(
        !dock.arrived().iter().any(|w| w.contains('/')),
        "{:?}",
        dock.arrived()
    );
}

#[test]
fn the_tables_forbid_before_anything_is_sent() {
    // A JMicron of the old dialect, an NVMe tunnel, a stick controller, one that hangs, and one the kernel blocks.
    for (vid, pid, uas) in [
        (0x059b, 0x0470, false),
        (0x04e8, 0x4001, true),
        (0x058f, 0x6387, false),
        (0x05e3, 0x0702, false),
        (0x0bc2, 0xab38, true),
    ] {
        let mut dock = Dock::new("ssd");
        let usb = dock.facts.usb.as_mut().expect("USB");
        (usb.vid, usb.pid) = (vid, pid);
        dock.facts.driver = Some(if uas { "uas" } else { "usb-storage" }.to_owned());
        let error = refusal(dock.poll());
        assert!(
            matches!(error, DriveError::NoPassThrough { .. }),
            "{vid:04x}:{pid:04x} {error}"
        );
        assert!(
            !dock.arrived().iter().any(|w| w.contains('/')),
            "{vid:04x}:{pid:04x} {:?}",
            dock.arrived()
        );
    }
}

/// Sticks and bridges have many ways to say that they do not know ATA PASS-THROUGH.
#[test]
fn whatever_a_stick_says_to_pass_through_means_that_it_has_none() {
    for (key, asc, ascq) in [
        (0x05, 0x20, 0x00),
        (0x05, 0x24, 0x00),
        (0x05, 0x26, 0x00),
        (0x0b, 0x4e, 0x00),
        (0x0b, 0x00, 0x00),
    ] {
        let dock = Dock::new("stick");
        let refuse = move |command: &Command, answer: Result<Completion, TransportError>| {
            answer.map(|mut completion| {
                if matches!(command.cdb.opcode(), 0x85 | 0xa1) {
                    completion.sense = vec![0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, ascq, 0, 0, 0, 0];
                }
                completion
            })
        };
        let habit = Habit::new(dock.plug(), refuse);
        let opened = Drive::from_transport(
            Box::new(habit),
            dock.facts.clone(),
            &OpenOptions::default(),
            Care::NoWake,
        );
        let mut drive = opened.unwrap_or_else(|e| panic!("{key:x}/{asc:x}/{ascq:x}: {e}"));
        let error = refusal(drive.temp_report());
        assert!(
            matches!(error, DriveError::NoPassThrough { .. }),
            "{key:x}/{asc:x}/{ascq:x}: {error}"
        );
    }
}
