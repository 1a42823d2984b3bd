//! SMART data and thresholds.

use std::path::Path;

use drivethru::ata::attributes::AttributeTable;
use drivethru::ata::identify::{Identify, Rotation};
use drivethru::ata::smart::{SmartData, SmartReport, Thresholds};
use serde_json::{Value, json};

use super::{Compare, at, first_number};
use crate::{Case, Tally, lines};

pub(super) fn smart_data(root: &Path, case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind: "smart-data",
        case: &case.name,
        tally,
    };
    let data = match SmartData::parse(&case.bytes) {
        Ok(data) => data,
        Err(error) => return c.wrong(&error.to_string()),
    };
    let smartctl = &case.expect["smartctl_7.3_replay"];
    let identify = std::fs::read(root.join("identify").join(&case.name))
        .ok()
        .and_then(|bytes| Identify::parse(&bytes).ok());
    let thresholds = std::fs::read(root.join("smart-thresholds").join(&case.name))
        .ok()
        .and_then(|bytes| Thresholds::parse(&bytes).ok());
    let table = match &identify {
        Some(identify) => AttributeTable::for_drive(Some(identify)),
        // The source says that the tool was given the identity of another Micron drive.
        None if case.name.starts_with("micron") => {
            AttributeTable::for_model("Micron_M600_MTFDDAK256MBF", "", Rotation::NonRotating)
        }
        None => AttributeTable::for_drive(None),
    };
    let report = SmartReport::build_with(&data, thresholds.as_ref(), &table);
    let ours = serde_json::to_value(&report).unwrap();

    let warned = lines(&case.expect, "/smartctl_text")
        .iter()
        .any(|line| line.contains("SMART Attribute Data Structure") && line.contains("checksum"));
    let checksum = if warned || case.name.contains("badchecksum") {
        "invalid"
    } else {
        "valid"
    };
    c.equal("checksum", &ours["checksum"], &json!(checksum));
    c.equal(
        "revision",
        &ours["revision"],
        &smartctl["ata_smart_attributes"]["revision"],
    );
    attributes(
        &mut c,
        &ours,
        &smartctl["ata_smart_attributes"]["table"],
        true,
        true,
    );
    times_and_temperature(&mut c, &ours, smartctl);
    let failing = report
        .failing()
        .iter()
        .any(|a| a.prefailure && serde_json::to_value(a.when_failed).unwrap() == json!("now"));
    c.equal(
        "/smart_status/passed",
        &json!(!failing),
        &smartctl["smart_status"]["passed"],
    );
    if let Some(status) = smartctl.get("ata_smart_data") {
        smart_status_bytes(&mut c, &ours, status);
    }
    skdump(&mut c, &ours, &case.expect);
    if let Some(cdi) = case.expect.get("crystaldiskinfo_printed_in_source") {
        crystaldiskinfo(&mut c, &ours, cdi);
    }
}

/// The attribute table of smartctl's JSON. Names are compared only where the tool's version is known to be ours.
pub(super) fn attributes(c: &mut Compare, ours: &Value, table: &Value, names: bool, in_database: bool) {
    let ours = ours["attributes"].as_array().cloned().unwrap_or_default();
    let theirs = table.as_array().cloned().unwrap_or_default();
    c.equal("number of attributes", &json!(ours.len()), &json!(theirs.len()));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let id = &theirs["id"];
        let thresh = theirs.get("thresh").cloned().unwrap_or(Value::Null);
        let failed = match theirs["when_failed"].as_str() {
            None | Some("") => Value::Null,
            Some(word) => json!(word),
        };
        let raw = theirs["raw"]["value"].as_u64().unwrap_or_default();
        for (what, ours, theirs) in [
            ("id", at(ours, "/id"), id.clone()),
            ("value", at(ours, "/value"), theirs["value"].clone()),
            ("worst", at(ours, "/worst"), theirs["worst"].clone()),
            ("threshold", at(ours, "/threshold"), thresh),
            ("when_failed", at(ours, "/when_failed"), failed),
            ("raw", at(ours, "/raw"), json!(raw)),
            ("raw hex", at(ours, "/raw_hex"), json!(format!("{raw:012x}"))),
            ("raw text", at(ours, "/raw_text"), theirs["raw"]["string"].clone()),
            (
                "flags",
                at(ours, "/flags/value"),
                theirs["flags"]["value"].clone(),
            ),
            (
                "prefailure",
                at(ours, "/prefailure"),
                theirs["flags"]["prefailure"].clone(),
            ),
            (
                "online",
                at(ours, "/flags/updated_online"),
                theirs["flags"]["updated_online"].clone(),
            ),
            (
                "performance",
                at(ours, "/flags/performance"),
                theirs["flags"]["performance"].clone(),
            ),
            (
                "error rate",
                at(ours, "/flags/error_rate"),
                theirs["flags"]["error_rate"].clone(),
            ),
            (
                "event count",
                at(ours, "/flags/event_count"),
                theirs["flags"]["event_count"].clone(),
            ),
            (
                "keeping",
                at(ours, "/flags/self_preserving"),
                theirs["flags"]["auto_keep"].clone(),
            ),
        ] {
            if what == "raw text" && !in_database && ours != theirs {
                c.disagreement(&format!(
                    "attribute {id} is printed as {theirs} by a smartctl that does not know the drive, {ours} here by family"
                ));
                continue;
            }
            c.equal(&format!("attribute {id} {what}"), &ours, &theirs);
        }
        name(c, id, &ours["name"], &theirs["name"], names);
    }
}

/// Names follow smartctl 7.3; other versions of its database use other words, which is listed but no error.
pub(super) fn name(c: &mut Compare, id: &Value, ours: &Value, theirs: &Value, same_version: bool) {
    if same_version || ours == theirs {
        c.equal(&format!("attribute {id} name"), ours, theirs);
    } else {
        c.disagreement(&format!(
            "attribute {id} is {theirs} in the database of that smartctl, {ours} here by smartctl 7.3's or our family row"
        ));
    }
}

pub(super) fn times_and_temperature(c: &mut Compare, ours: &Value, smartctl: &Value) {
    c.fields(
        ours,
        smartctl,
        &[
            ("/temperature/celsius", "/temperature/current"),
            ("/power_on_hours", "/power_on_time/hours"),
            ("/power_on_minutes", "/power_on_time/minutes"),
            ("/power_cycles", "/power_cycle_count"),
        ],
    );
}

fn smart_status_bytes(c: &mut Compare, ours: &Value, theirs: &Value) {
    let offline = &theirs["offline_data_collection"];
    c.equal(
        "offline code",
        &at(ours, "/offline/code"),
        &offline["status"]["value"],
    );
    c.equal(
        "offline seconds",
        &at(ours, "/offline/completion_seconds"),
        &offline["completion_seconds"],
    );
    let word = match offline["status"]["string"].as_str().unwrap_or_default() {
        "was never started" => "never_started",
        "was completed without error" => "completed",
        "was suspended by an interrupting command from host" => "suspended_by_host",
        "was aborted by an interrupting command from host" => "aborted_by_host",
        "is in a Vendor Specific state" => "vendor_specific",
        other => other,
    };
    c.equal("offline words", &at(ours, "/offline/status"), &json!(word));
    c.fields(
        ours,
        theirs,
        &[
            ("/self_test/code", "/self_test/status/value"),
            ("/self_test/passed", "/self_test/status/passed"),
            (
                "/self_test/remaining_percent",
                "/self_test/status/remaining_percent",
            ),
            ("/self_test/short_minutes", "/self_test/polling_minutes/short"),
            (
                "/self_test/extended_minutes",
                "/self_test/polling_minutes/extended",
            ),
            (
                "/self_test/conveyance_minutes",
                "/self_test/polling_minutes/conveyance",
            ),
            ("/capabilities/offline_bits", "/capabilities/values/0"),
            (
                "/capabilities/saves_before_power_mode",
                "/capabilities/attribute_autosave_enabled",
            ),
            (
                "/capabilities/error_logging",
                "/capabilities/error_logging_supported",
            ),
        ],
    );
    // smartctl leaves the rest out on drives without off-line collection.
    if theirs["capabilities"]
        .get("exec_offline_immediate_supported")
        .is_some()
    {
        c.fields(
            ours,
            theirs,
            &[
                (
                    "/capabilities/execute_offline",
                    "/capabilities/exec_offline_immediate_supported",
                ),
                (
                    "/capabilities/abort_on_command",
                    "/capabilities/offline_is_aborted_upon_new_cmd",
                ),
                (
                    "/capabilities/surface_scan",
                    "/capabilities/offline_surface_scan_supported",
                ),
                ("/capabilities/self_test", "/capabilities/self_tests_supported"),
                (
                    "/capabilities/conveyance_test",
                    "/capabilities/conveyance_self_test_supported",
                ),
                (
                    "/capabilities/selective_test",
                    "/capabilities/selective_self_test_supported",
                ),
            ],
        );
    }
}

fn skdump(c: &mut Compare, ours: &Value, expect: &Value) {
    let Some(text) = expect["skdump_temperature"].as_str() else {
        return;
    };
    if let Some(reason) = expect["oracles_disagree"].as_str() {
        c.disagreement(&format!("{reason}; we follow the raw value, as smartctl does"));
        return;
    }
    let theirs = text.strip_suffix(" C").map_or(Value::Null, first_number);
    let celsius = ours["temperature"]["celsius"].as_f64();
    c.equal("skdump temperature", &json!(celsius), &theirs);
}

fn crystaldiskinfo(c: &mut Compare, ours: &Value, cdi: &Value) {
    let celsius = ours["temperature"]["celsius"].as_f64();
    for (key, ours) in [
        ("Temperature", json!(celsius)),
        ("Power On Hours", json!(ours["power_on_hours"].as_f64())),
        ("Power On Count", json!(ours["power_cycles"].as_f64())),
    ] {
        if let Some(text) = cdi[key].as_str() {
            c.equal(key, &ours, &first_number(text));
        }
    }
    if let Some(health) = cdi["Health Status"].as_str().filter(|text| text.contains('%')) {
        c.equal(
            "life left",
            &json!(ours["life_left_percent"].as_f64()),
            &first_number(health),
        );
    }
    for theirs in cdi["attributes"].as_array().cloned().unwrap_or_default() {
        let attributes = ours["attributes"].as_array().cloned().unwrap_or_default();
        let Some(ours) = attributes.iter().find(|a| a["id"] == theirs["id"]) else {
            c.wrong(&format!(
                "CrystalDiskInfo lists attribute {}, we do not",
                theirs["id"]
            ));
            continue;
        };
        c.fields(
            ours,
            &theirs,
            &[
                ("/value", "/value"),
                ("/worst", "/worst"),
                ("/raw_hex", "/raw48_hex"),
            ],
        );
        if let Some(threshold) = ours.get("threshold") {
            c.equal("thresh", threshold, &theirs["thresh"]);
        }
    }
}

pub(super) fn smart_thresholds(case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind: "smart-thresholds",
        case: &case.name,
        tally,
    };
    let theirs = case.expect["thresholds"].as_array().cloned().unwrap_or_default();
    let thresholds = match Thresholds::parse(&case.bytes) {
        Ok(thresholds) => thresholds,
        Err(error) => return c.wrong(&error.to_string()),
    };
    for entry in theirs {
        let id = entry["id"]
            .as_u64()
            .and_then(|id| u8::try_from(id).ok())
            .unwrap_or(0);
        c.equal(
            &format!("threshold of {id}"),
            &json!(thresholds.of(id)),
            &entry["thresh"],
        );
    }
    let checksum = serde_json::to_value(thresholds.checksum()).unwrap();
    c.equal("checksum", &checksum, &json!("valid"));
}
