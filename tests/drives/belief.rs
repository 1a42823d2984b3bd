//! An answer that no drive gave is never shown as one.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::*;
use drivethru::drive::NoPassThrough;
use drivethru::drive::temperature::Source;
use drivethru::transport::Status;

/// Every number under a key that speaks of degrees, with its path.
fn celsius(document: &Value, path: &str, found: &mut Vec<(String, i64)>) {
    match document {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{path}.{key}");
                match value.as_i64() {
                    Some(n) if key.contains("celsius") => found.push((path, n)),
                    _ => celsius(value, &path, found),
                }
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                celsius(value, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

/// Temperatures that the document states, beyond the readings that it marks as implausible and the decoded logs.
fn stated(document: &Value) -> Vec<(String, i64)> {
    let mut document = document.clone();
    if let Some(map) = document.as_object_mut() {
        map.remove("logs");
    }
    if let Some(readings) = document
        .pointer_mut("/temperature/readings")
        .and_then(Value::as_array_mut)
    {
        readings.retain(|r| r["plausible"] == true);
    }
    let mut found = Vec::new();
    celsius(&document, "", &mut found);
    found
}

fn assert_nothing_invented(document: &Value, what: &str) {
    for (path, n) in stated(document) {
        // An operating limit of 0 °C is one that these drives do tell.
        let limit = path.ends_with("min_operating_celsius");
        assert!(
            (-40..=125).contains(&n) && (n != 0 || limit),
            "{what}: {path} is {n}"
        );
    }
    assert_ne!(document["device"]["serial"], "", "{what}");
    assert_ne!(document["device"]["model"], "", "{what}");
}

fn json<T: serde::Serialize>(document: &T) -> Value {
    serde_json::to_value(document).expect("a document")
}

/// The three verbs on one device, by somebody who may wake it; documents that came, errors that came instead.
fn verbs(spec: &str) -> (Vec<Value>, Vec<DriveError>) {
    let dock = Dock::new(spec);
    let (mut documents, mut errors) = (Vec::new(), Vec::new());
    let options = OpenOptions::default();
    let mut note = |result: Result<Value, DriveError>| match result {
        Ok(document) => documents.push(document),
        Err(error) => errors.push(error),
    };
    let open = |care| dock.open(&options, care);
    note(open(Care::MayWake).and_then(|mut d| d.temp_report().map(|r| json(&r))));
    note(open(Care::MayWake).and_then(|mut d| d.health(true).map(|r| json(&r))));
    note(open(Care::MayWake).and_then(|mut d| d.info().map(|r| json(&r))));
    (documents, errors)
}

#[test]
fn zeros_echoes_and_broken_sectors_are_no_drive() {
    for (fault, said) in [
        ("zero-success", "all 512 bytes are 00h"),
        ("echo", "not believed"),
        ("short", "256 of 512 bytes"),
    ] {
        for profile in ATA_PROFILES {
            let spec = format!("{profile},fault={fault}");
            let (documents, errors) = verbs(&spec);
            for error in &errors {
                let DriveError::NoPassThrough {
                    why: NoPassThrough::Refused { tried },
                    ..
                } = error
                else {
                    panic!("{spec}: {error}");
                };
                assert!(tried[0].why.contains(said), "{spec}: {tried:?}");
            }
            assert_eq!(errors.len(), 2, "{spec}: temp and health fail");
            let [info] = &documents[..] else {
                panic!("{spec}: info has nothing to say")
            };
            assert_nothing_invented(info, &spec);
            assert!(info.get("identify").is_none(), "{spec}");
            assert!(info["device"].get("serial").is_none(), "{spec}");
            assert!(info["device"].get("firmware").is_none(), "{spec}");
            assert!(info["device"].get("dialect").is_none(), "{spec}");
            assert!(info["sizes"].get("drive_bytes").is_none(), "{spec}");
        }
    }
}

/// Bridges that patch words of the sector do not mend its checksum; the fields still fit together.
#[test]
fn a_wrong_checksum_is_remarked_and_not_taken_for_no_drive() {
    for profile in ATA_PROFILES {
        let spec = format!("{profile},fault=bad-checksum");
        let (documents, errors) = verbs(&spec);
        assert!(errors.is_empty(), "{spec}: {errors:?}");
        let [_, health, info] = &documents[..] else {
            panic!("{spec}: three documents")
        };
        assert!(
            info["remarks"].to_string().contains("wrong checksum"),
            "{spec}: {}",
            info["remarks"]
        );
        assert_eq!(health["verdict"], "warning", "{spec}");
        assert!(health["reasons"].to_string().contains("wrong checksum"), "{spec}");
        assert!(health["not_read"].to_string().contains("thresholds"), "{spec}");
    }
}

#[test]
fn a_bridge_that_is_not_believed_is_not_remembered() {
    for fault in ["zero-success", "echo", "short"] {
        let (_dir, memory, options) = with_memory();
        let dock = Dock::new(&format!("ssd,fault={fault}"));
        refusal(dock.poll_with(&options));
        assert_eq!(dock.remembered(&memory), Remembered::default(), "{fault}");
    }
}

#[test]
fn swapped_identify_data_is_put_right() {
    for profile in ATA_PROFILES {
        let plain = verbs(profile).0;
        let swapped = verbs(&format!("{profile},fault=swapped")).0;
        assert_eq!(swapped.len(), 3);
        for (mut plain, mut swapped) in plain.into_iter().zip(swapped) {
            assert_nothing_invented(&swapped, profile);
            for document in [&mut plain, &mut swapped] {
                document["device"]["name"] = Value::Null;
                if let Some(identify) = document.get_mut("identify").and_then(Value::as_object_mut) {
                    // The summary may say how the sector came.
                    identify.retain(|key, _| {
                        !key.contains("swapped") && key != "byte_order" && key != "checksum"
                    });
                }
            }
            assert_eq!(plain, swapped, "{profile}");
        }
    }
}

#[test]
fn a_sensor_at_127_is_not_read_out() {
    for profile in ATA_PROFILES {
        let spec = format!("{profile},fault=garbage-temp");
        let (documents, errors) = verbs(&spec);
        let [error] = &errors[..] else {
            panic!("{spec}: {errors:?}")
        };
        assert!(
            matches!(error, DriveError::NoTemperature { .. }),
            "{spec}: {error}"
        );
        for document in &documents {
            assert_nothing_invented(document, &spec);
        }
        let health = &documents[0];
        assert_eq!(health["schema"], "drivethru-smart/1");
        assert!(health["temperature"].get("celsius").is_none(), "{spec}");
        assert!(health["temperature"].get("source").is_none(), "{spec}");
        let readings = health["temperature"]["readings"].as_array().expect("readings");
        assert!(!readings.is_empty() && readings.iter().all(|r| r["plausible"] == false));
        assert_eq!(health["verdict"], "ok", "a broken sensor is no dying drive");
    }
}

#[test]
fn a_pinned_sensor_is_read_as_it_stands() {
    for celsius in [-12, -1, 1, 41, 85, 110] {
        for profile in ["ssd", "hdd"] {
            let dock = Dock::new(&format!("{profile},temp={celsius}"));
            let report = dock.poll().expect("a temperature");
            assert_eq!(
                report.temperature.celsius.map(|c| c.0),
                Some(celsius),
                "{profile}"
            );
        }
    }
}

#[test]
fn health_of_sound_drives_invents_nothing() {
    for profile in ATA_PROFILES {
        let (documents, errors) = verbs(profile);
        assert!(errors.is_empty(), "{profile}: {errors:?}");
        for document in &documents {
            assert_nothing_invented(document, profile);
        }
        // Words of a bridge that says nothing are absent, not null.
        assert!(
            documents[1]
                .as_object()
                .expect("an object")
                .values()
                .all(|v| !v.is_null()),
            "{profile}"
        );
    }
}

#[test]
fn a_sector_that_goes_bad_later_is_not_taken_for_a_reading() {
    // IDENTIFY is good; then every SMART sector comes back as zeros, as 255s, or with half its bytes.
    for kind in ["zeros", "ones", "half"] {
        for profile in ATA_PROFILES {
            let dock = Dock::new(profile);
            let spoil = move |command: &Command, answer: Result<Completion, TransportError>| {
                let later = Ata::of(command.cdb.as_bytes()).is_some_and(|a| a.command != 0xec);
                answer.map(|mut completion| {
                    if let Some(data) = completion.data.as_mut().filter(|_| later) {
                        match kind {
                            "zeros" => data.fill(0),
                            "ones" => data.fill(0xff),
                            _ => data.truncate(data.len() / 2),
                        }
                    }
                    completion
                })
            };
            let what = format!("{profile} {kind}");
            let open = || {
                let habit = Box::new(Habit::new(dock.plug(), spoil));
                Drive::from_transport(habit, dock.facts.clone(), &OpenOptions::default(), Care::MayWake)
                    .expect("IDENTIFY is good")
            };
            let temp = open().temp_report();
            assert!(
                matches!(temp, Err(DriveError::NoTemperature { .. })),
                "{what}: {temp:?}"
            );
            if let Ok(report) = open().health(true) {
                let document = json(&report);
                assert_nothing_invented(&document, &what);
                assert_eq!(stated(&document), [], "{what}");
                assert_ne!(document["verdict"], "failing", "{what}: {}", document["reasons"]);
                assert!(document.get("life").is_none(), "{what}: {}", document["life"]);
            }
        }
    }
}

#[test]
fn a_source_that_stops_answering_is_replaced() {
    for profile in ["ssd", "hdd"] {
        let dock = Dock::new(profile);
        let broken = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&broken);
        let abort = move |command: &Command, answer: Result<Completion, TransportError>| {
            let sct = word(command.cdb.as_bytes()).starts_with("sct status");
            answer.map(|mut completion| {
                if sct && switch.load(Ordering::Relaxed) {
                    // ABRT in ERROR, ERR in STATUS, by an ATA Status Return descriptor.
                    completion.status = Status::CHECK_CONDITION;
                    completion.sense = vec![
                        0x72, 0x0b, 0, 0, 0, 0, 0, 14, 9, 12, 0, 4, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0x51,
                    ];
                    completion.data = Some(Vec::new());
                }
                completion
            })
        };
        let habit = Box::new(Habit::new(dock.plug(), abort));
        let mut drive =
            Drive::from_transport(habit, dock.facts.clone(), &OpenOptions::default(), Care::NoWake)
                .expect("a drive");
        let source = |drive: &mut Drive| drive.temperature().expect("a temperature").source;
        assert_eq!(source(&mut drive), Some(Source::SctStatus), "{profile}");
        broken.store(true, Ordering::Relaxed);
        assert_eq!(source(&mut drive), Some(Source::Smart194), "{profile}");
        let before = dock.arrived().len();
        assert_eq!(source(&mut drive), Some(Source::Smart194), "{profile}");
        let again = &dock.arrived()[before..];
        assert!(
            !again.contains(&"sct status/12".to_owned()),
            "{profile}: the broken one is not asked each time: {again:?}"
        );
    }
}
