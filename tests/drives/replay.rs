//! A recording plays back as the same document, and the same run gives the same bytes.

use drivethru::drive::RecordFile;
use serde_json::Value;

use super::*;

/// Every document of a device, in the order that one process would make them.
fn documents(drive: &mut Drive) -> Vec<Value> {
    let json = |r: Result<Value, DriveError>| r.unwrap_or_else(|e| Value::String(format!("{e:?}")));
    vec![
        json(
            drive
                .health(true)
                .map(|r| serde_json::to_value(r).expect("a document")),
        ),
        json(
            drive
                .temp_report()
                .map(|r| serde_json::to_value(r).expect("a document")),
        ),
        json(drive.info().map(|r| serde_json::to_value(r).expect("a document"))),
    ]
}

/// What may differ: the name, the wall time, and how long it took.
fn leave_out_what_may_differ(documents: &mut [Value], name: &str) {
    for document in documents {
        if let Value::String(text) = document {
            *text = text.replace(name, "DEV");
        }
        if let Some(map) = document.as_object_mut() {
            map.remove("time");
        }
        if let Some(device) = document.get_mut("device").and_then(Value::as_object_mut) {
            device.remove("name");
        }
        if let Some(cost) = document.get_mut("cost").and_then(Value::as_object_mut) {
            cost.remove("elapsed_us");
        }
        let text = document.to_string().replace(name, "DEV");
        *document = serde_json::from_str(&text).expect("a document");
    }
}

#[test]
fn recordings_of_every_profile_play_back_as_they_were() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let specs = drivethru::sim::profiles().into_iter().map(|p| p.name).chain(
        [
            "hdd,ckcond=ignore",
            "hdd,ckcond=refuse,sat=16",
            "ssd,health=failing",
            "ssd,becoming_ready=4,unit_attention=1",
            "ssd,fault=zero-success",
            "hdd,fault=garbage-temp",
        ]
        .map(str::to_owned),
    );
    for (index, spec) in specs.enumerate() {
        let file = dir.path().join(format!("{index}.xchg"));
        let name = format!("sim:{spec}");
        let record = OpenOptions {
            record: Some(RecordFile::create(&file).expect("a new file")),
            ..OpenOptions::default()
        };
        let mut live = {
            let mut drive = Drive::open(&name, &record, Care::NoWake).expect("a drive");
            documents(&mut drive)
        };
        let replay_name = format!("replay:{}", file.display());
        let mut drive = Drive::open(&replay_name, &OpenOptions::default(), Care::NoWake)
            .unwrap_or_else(|e| panic!("{spec}: {e}"));
        assert!(drive.is_simulated(), "{spec}: still labelled");
        let mut played = documents(&mut drive);
        assert_eq!(live.len(), played.len());
        for (live, played) in live.iter().zip(&played).filter(|(l, _)| l.is_object()) {
            assert_eq!(live["device"]["simulated"], true, "{spec}");
            assert_eq!(played["device"]["simulated"], true, "{spec}");
            assert_eq!(played["device"]["name"], replay_name, "{spec}");
        }
        leave_out_what_may_differ(&mut live, &name);
        leave_out_what_may_differ(&mut played, &replay_name);
        assert_eq!(live, played, "{spec}");
    }
}

#[test]
fn a_recorded_hang_plays_back_as_a_hang() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for fault in ["timeout", "gone"] {
        let file = dir.path().join(fault);
        let record = OpenOptions {
            record: Some(RecordFile::create(&file).expect("a new file")),
            ..OpenOptions::default()
        };
        let live = refusal(Drive::open(
            &format!("sim:ssd,fault={fault}"),
            &record,
            Care::NoWake,
        ));
        let name = format!("replay:{}", file.display());
        let played = refusal(Drive::open(&name, &OpenOptions::default(), Care::NoWake));
        let kind = |error: &DriveError| match error {
            DriveError::Harmed { source, .. } => std::mem::discriminant(source),
            other => panic!("{fault}: {other}"),
        };
        assert_eq!(kind(&live), kind(&played), "{fault}");
    }
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let run = |spec: &str| {
        let mut text = String::new();
        let dock = Dock::new(spec);
        if let Ok(mut drive) = dock.open(&OpenOptions::default(), Care::NoWake) {
            for _ in 0..20 {
                for document in documents(&mut drive) {
                    text.push_str(&document.to_string());
                }
                dock.let_pass(Duration::from_secs(60));
            }
        }
        let log = serde_json::to_string(dock.sim().target().log()).expect("a log");
        (text, log)
    };
    for profile in drivethru::sim::profiles() {
        for options in ["", ",seed=7", ",ckcond=ignore", ",power=standby", ",fault=echo"] {
            let spec = format!("{}{options}", profile.name);
            let (first, second) = (run(&spec), run(&spec));
            assert!(first == second, "{spec}: two runs differ");
            assert!(!first.1.is_empty());
        }
    }
}
