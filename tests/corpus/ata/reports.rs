//! Reports of smartctl, as far as raw values can be had from them.

use drivethru::ata::attributes::AttributeTable;
use drivethru::ata::identify::Rotation;
use drivethru::ata::smart::{SmartData, SmartReport, Thresholds};
use serde_json::{Value, json};

use super::smart::{attributes, name, times_and_temperature};
use super::{Compare, first_number};
use crate::{Case, Tally, lines};

/// Puts the attributes of a report back into a sector. The byte behind each raw value is not in the report.
fn sector_of(table: &[Value]) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[0] = 16;
    for (slot, attribute) in table.iter().take(30).enumerate() {
        let number = |key: &str| attribute[key].as_u64().unwrap_or_default();
        let start = 2 + slot * 12;
        bytes[start] = number("id") as u8;
        let flags = attribute["flags"]["value"].as_u64().unwrap_or_default();
        bytes[start + 1..start + 3].copy_from_slice(&flags.to_le_bytes()[..2]);
        bytes[start + 3] = number("value") as u8;
        bytes[start + 4] = number("worst") as u8;
        let raw = attribute["raw"]["value"].as_u64().unwrap_or_default();
        bytes[start + 5..start + 11].copy_from_slice(&raw.to_le_bytes()[..6]);
    }
    bytes
}

fn thresholds_of(table: &[Value]) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[0] = 16;
    for (slot, attribute) in table.iter().take(30).enumerate() {
        bytes[2 + slot * 12] = attribute["id"].as_u64().unwrap_or_default() as u8;
        bytes[3 + slot * 12] = attribute["thresh"].as_u64().unwrap_or_default() as u8;
    }
    let sum: u32 = bytes.iter().map(|&b| u32::from(b)).sum();
    bytes[511] = (256 - sum % 256) as u8;
    bytes
}

/// Reports on ATA drives carry whole raw values; the others are not ours to decode.
pub(super) fn smartctl_json(case: &Case, tally: &mut Tally) {
    let Ok(report) = serde_json::from_slice::<Value>(&case.bytes) else {
        return;
    };
    let Some(table) = report["ata_smart_attributes"]["table"].as_array() else {
        return;
    };
    let mut c = Compare {
        kind: "smartctl-json",
        case: &case.name,
        tally,
    };
    let rotation = match report["rotation_rate"].as_u64() {
        Some(0) => Rotation::NonRotating,
        Some(rpm) => Rotation::Rpm(u16::try_from(rpm).unwrap_or(u16::MAX)),
        None => Rotation::Unknown,
    };
    let drive = AttributeTable::for_model(
        report["model_name"].as_str().unwrap_or_default(),
        report["firmware_version"].as_str().unwrap_or_default(),
        rotation,
    );
    let data = SmartData::parse(&sector_of(table)).unwrap();
    let thresholds = Thresholds::parse(&thresholds_of(table)).unwrap();
    let ours = serde_json::to_value(SmartReport::build_with(&data, Some(&thresholds), &drive)).unwrap();
    let in_database = report["in_smartctl_database"] == json!(true);
    attributes(
        &mut c,
        &ours,
        &report["ata_smart_attributes"]["table"],
        false,
        in_database,
    );
    times_and_temperature(&mut c, &ours, &report);
}

/// Printed tables have no raw bytes, only names to compare. The SCT and device statistics lines of the same reports
/// are the `assembled-` cases of those kinds.
pub(super) fn smartctl_text(case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind: "smartctl-text",
        case: &case.name,
        tally,
    };
    let head = lines(&case.expect, "/lines");
    let field = |name: &str| {
        head.iter()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_default()
            .trim()
    };
    let model = field("Device Model:");
    if model.is_empty() {
        return;
    }
    let rotation = match field("Rotation Rate:") {
        "Solid State Device" => Rotation::NonRotating,
        "" => Rotation::Unknown,
        text => Rotation::Rpm(first_number(text).as_f64().unwrap_or_default() as u16),
    };
    let drive = AttributeTable::for_model(model, field("Firmware Version:"), rotation);
    for attribute in case.expect["attributes"].as_array().cloned().unwrap_or_default() {
        let Some(id) = attribute["id"].as_u64().and_then(|id| u8::try_from(id).ok()) else {
            continue;
        };
        name(
            &mut c,
            &attribute["id"],
            &json!(drive.definition(id).name),
            &attribute["name"],
            false,
        );
    }
}
