#![allow(clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::ata::attributes::{AttributeTable, TemperatureSource};
use crate::ata::identify::Rotation;
use crate::units::Celsius;

fn sum_up(bytes: &mut [u8; 512]) {
    bytes[511] = 0;
    let sum: u32 = bytes.iter().map(|&b| u32::from(b)).sum();
    bytes[511] = (256 - sum % 256) as u8;
}

/// Attributes as (id, flags, value, worst, raw), with a right checksum.
fn data(attributes: &[(u8, u16, u8, u8, u64)]) -> [u8; 512] {
    let mut bytes = [0; 512];
    bytes[0] = 16;
    for (slot, &(id, flags, value, worst, raw)) in attributes.iter().enumerate() {
        let at = 2 + slot * 12;
        bytes[at] = id;
        bytes[at + 1..at + 3].copy_from_slice(&flags.to_le_bytes());
        bytes[at + 3] = value;
        bytes[at + 4] = worst;
        bytes[at + 5..at + 11].copy_from_slice(&raw.to_le_bytes()[..6]);
    }
    sum_up(&mut bytes);
    bytes
}

fn thresholds(entries: &[(u8, u8)]) -> [u8; 512] {
    let mut bytes = [0; 512];
    bytes[0] = 16;
    for (slot, &(id, threshold)) in entries.iter().enumerate() {
        bytes[2 + slot * 12] = id;
        bytes[3 + slot * 12] = threshold;
    }
    sum_up(&mut bytes);
    bytes
}

fn report(attributes: &[(u8, u16, u8, u8, u64)]) -> SmartReport {
    SmartReport::build(&SmartData::parse(&data(attributes)).unwrap(), None, None)
}

#[test]
fn slots_become_attributes() {
    let parsed = SmartData::parse(&data(&[
        (1, 0x000f, 100, 90, 0),
        (0, 0, 0, 0, 99),
        (9, 0x8032, 97, 97, 0x0605_0403_0201),
    ]))
    .unwrap();
    let attributes: Vec<_> = parsed.attributes().collect();
    assert_eq!(attributes.len(), 2);
    assert_eq!(attributes[1].raw48(), 0x0605_0403_0201);
    assert_eq!(attributes[1].flags.bits(), 0x8032);
    assert_eq!(parsed.checksum(), Checksum::Valid);
    assert!(parsed.is_plausible());
    assert_eq!(parsed.revision(), 16);
}

#[test]
fn answers_that_are_none_are_errors_and_damage_is_reported() {
    assert!(SmartData::parse(&[0; 512]).unwrap_err().why.contains("00h"));
    assert!(Thresholds::parse(&[0xff; 512]).is_err());
    assert!(SmartData::parse(&[1; 100]).unwrap_err().why.contains("truncated"));
    let mut damaged = data(&[(9, 0, 100, 100, 1)]);
    damaged[400] ^= 0x10;
    let damaged = SmartData::parse(&damaged).unwrap();
    assert_eq!(damaged.checksum(), Checksum::Invalid);
    assert_eq!(SmartReport::build(&damaged, None, None).power_on_hours(), Some(1));
    let twice = SmartData::parse(&data(&[(5, 0, 1, 1, 1), (5, 0, 1, 1, 1)])).unwrap();
    assert!(!twice.is_plausible());
}

/// The worst values of the first JMicrons are raw bytes, both values of the first Indilinx.
#[test]
fn values_that_are_raw_bytes_do_not_fail() {
    let parsed =
        SmartData::parse(&data(&[(9, 3, 100, 1, 0), (229, 3, 100, 0, 0), (12, 3, 1, 1, 0)])).unwrap();
    let limits = Thresholds::parse(&thresholds(&[(9, 50), (229, 50), (12, 50)])).unwrap();
    let failed = |model: &str, firmware: &str| -> Vec<_> {
        let table = AttributeTable::for_model(model, firmware, Rotation::NonRotating);
        let report = SmartReport::build_with(&parsed, Some(&limits), &table);
        report
            .failing()
            .iter()
            .map(|a| (a.id, a.when_failed.unwrap()))
            .collect()
    };
    assert_eq!(
        failed("Kingston SSDNow V Series 64GB", "B090"),
        [(9, WhenFailed::Past), (12, WhenFailed::Now)]
    );
    assert_eq!(failed("OCZ-VERTEX", "1.7"), [(229, WhenFailed::Past)]);
}

#[test]
fn thresholds_count_by_number_and_only_with_a_right_checksum() {
    let parsed = SmartData::parse(&data(&[
        (1, 3, 45, 40, 0),
        (3, 3, 60, 20, 0),
        (5, 2, 10, 10, 0),
        (7, 3, 254, 1, 0),
        (8, 3, 0, 0, 0),
    ]))
    .unwrap();
    let sector = thresholds(&[(8, 50), (7, 20), (5, 0), (3, 21), (1, 45)]);
    let limits = Thresholds::parse(&sector).unwrap();
    let report = SmartReport::build(&parsed, Some(&limits), None);
    let failed: Vec<_> = report
        .failing()
        .iter()
        .map(|a| (a.id, a.when_failed.unwrap()))
        .collect();
    assert_eq!(
        failed,
        [
            (1, WhenFailed::Now),
            (3, WhenFailed::Past),
            (7, WhenFailed::Past),
            // Flash that is worn beyond what it was rated for stands at 0.
            (8, WhenFailed::Now),
        ]
    );
    assert_eq!(report.failing_now, Some(true));

    let mut garbage = sector;
    garbage[500] = 1;
    let report = SmartReport::build(&parsed, Some(&Thresholds::parse(&garbage).unwrap()), None);
    assert!(report.failing().is_empty());
    assert_eq!(report.failing_now, None);
    assert_eq!(report.thresholds_checksum, Some(Checksum::Invalid));
}

#[test]
fn temperature_prefers_194_and_never_uses_normalized_values() {
    let both = report(&[(190, 0, 62, 44, 38), (194, 0, 120, 100, 41)]);
    assert_eq!(
        both.temperature(),
        Some((Celsius(41), TemperatureSource::Smart194))
    );
    assert_eq!(both.temperature_candidates().len(), 2);
    let dead = report(&[(194, 0, 64, 64, 0), (190, 0, 62, 44, 38)]);
    assert_eq!(
        dead.temperature(),
        Some((Celsius(38), TemperatureSource::Smart190))
    );
    assert_eq!(dead.temperature_candidates()[0].celsius, None);
    assert_eq!(report(&[(194, 0, 55, 55, 0)]).temperature(), None);
    // Life left, on a drive of which nothing is known.
    assert_eq!(report(&[(231, 0, 93, 93, 93)]).temperature(), None);
}

#[test]
fn self_test_bytes_have_words() {
    let mut bytes = data(&[(9, 0, 100, 100, 1)]);
    bytes[362] = 0x84;
    bytes[363] = 0xf7;
    bytes[364..366].copy_from_slice(&[0x20, 0x01]);
    bytes[367] = 0x5b;
    bytes[368] = 3;
    bytes[370] = 1;
    bytes[372..377].copy_from_slice(&[2, 0xff, 5, 0x2c, 0x01]);
    let data = SmartData::parse(&bytes).unwrap();
    assert_eq!(data.offline_status().status, "suspended_by_host");
    assert!(data.offline_status().automatic);
    assert_eq!(data.offline_seconds(), 288);
    assert_eq!(data.self_test_status().remaining_percent, Some(70));
    assert_eq!(data.short_test_minutes(), Some(2));
    assert_eq!(data.extended_test_minutes(), Some(300));
    assert_eq!(data.conveyance_test_minutes(), None);
    assert_eq!(SelfTestStatus::from_byte(0x76).passed, Some(false));
    assert_eq!(SelfTestStatus::from_byte(0x00).passed, Some(true));
    assert_eq!(SelfTestStatus::from_byte(0x17).passed, None);
}

#[test]
fn the_document_has_the_agreed_keys() {
    let json = serde_json::to_value(report(&[
        (9, 0x32, 97, 97, 1234),
        (194, 0x22, 62, 50, 0x0000_3213_0026),
    ]))
    .unwrap();
    assert_eq!(json["checksum"], "valid");
    let attribute = &json["attributes"][1];
    assert_eq!(attribute["name"], "Temperature_Celsius");
    assert_eq!(attribute["raw"], 0x3213_0026u64);
    assert_eq!(attribute["raw_hex"], "000032130026");
    assert_eq!(attribute["raw_text"], "38 (Min/Max 19/50)");
    assert!(attribute.get("when_failed").is_none());
    assert_eq!(
        json["temperature"],
        serde_json::json!({"celsius": 38, "source": "smart_194", "min": 19, "max": 50, "id": 194})
    );
    assert_eq!(json["power_on_hours"], 1234);
    assert!(json.get("life_left_percent").is_none());
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        model in "[ -~]{0,40}",
        rotation in prop_oneof![Just(Rotation::Unknown), Just(Rotation::NonRotating), Just(Rotation::Rpm(7200))],
    ) {
        let limits = Thresholds::parse(&bytes).ok();
        if let Ok(data) = SmartData::parse(&bytes) {
            let table = AttributeTable::for_model(&model, "", rotation);
            let report = SmartReport::build_with(&data, limits.as_ref(), &table);
            if let Some((celsius, _)) = report.temperature() {
                prop_assert!(celsius.is_plausible());
            }
            prop_assert!(serde_json::to_string(&report).is_ok());
        } else {
            prop_assert!(bytes.len() < 512);
        }
    }
}
