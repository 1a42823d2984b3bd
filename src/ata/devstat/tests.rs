#![allow(clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;

/// A page of revision 1 with qwords at offsets.
fn page(number: u8, qwords: &[(usize, u64)]) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[0] = 1;
    bytes[2] = number;
    for &(offset, qword) in qwords {
        bytes[offset..offset + 8].copy_from_slice(&qword.to_le_bytes());
    }
    bytes
}

#[test]
fn only_supported_and_valid_statistics_have_a_value() {
    let bytes = page(
        5,
        &[
            (8, 0xc000_0000_0000_00f6),
            (16, 0xa000_0000_0000_0016),
            (24, 0x4000_0000_0000_0016),
            (32, 0xe800_0000_0000_003d),
            (40, 0xc000_0000_0000_0080),
            (80, 0xd000_0001_0000_001e),
        ],
    );
    let log = DeviceStatistics::parse(&bytes).unwrap();
    let rows: Vec<_> = log.pages[0]
        .table
        .iter()
        .map(|s| (s.offset_bytes, s.value, s.flags.value))
        .collect();
    assert_eq!(
        rows,
        [
            (8, Some(-10), 0xc0),
            (16, None, 0xa0),
            (32, Some(61), 0xe8),
            (40, None, 0xc0),
            (80, Some(30), 0xd0)
        ]
    );
    let highest = &log.pages[0].table[2];
    assert!(highest.flags.normalized && highest.flags.monitored_condition_met && !highest.flags.supports_dsn);
    assert_eq!(highest.name, Some("Highest Temperature"));
    assert_eq!(log.temperature_celsius, Some(Celsius(-10)));
}

#[test]
fn a_zero_temperature_is_none() {
    let log = DeviceStatistics::parse(&page(5, &[(8, 0xc000_0000_0000_0000)])).unwrap();
    assert_eq!(log.value(5, 8), Some(0));
    assert_eq!(log.temperature_celsius, None);
}

#[test]
fn unknown_places_are_kept_raw() {
    let mut bytes = page(7, &[(8, 0xc000_0000_0000_0065), (16, 0xc0ff_eeff_eeff_eeff)]);
    bytes.extend(page(0x42, &[(504, 0xc000_0000_0000_0001)]));
    bytes.extend(page(0xff, &[(16, 0xc012_3456_789a_bcde)]));
    let log = DeviceStatistics::parse(&bytes).unwrap();
    assert_eq!(log.percentage_used, Some(101));
    let odd = &log.pages[0].table[1];
    assert_eq!(
        (odd.name, odd.raw, odd.size_bytes),
        (None, 0x00ff_eeff_eeff_eeff, 7)
    );
    assert_eq!(
        (log.pages[1].name, log.pages[1].table[0].offset_bytes),
        (None, 504)
    );
    assert_eq!(log.pages[2].table[0].name, Some("Vendor Specific"));
    assert_eq!(log.pages[2].table[0].value, Some(0x12_3456_789a_bcde));
}

#[test]
fn the_list_and_empty_pages_are_told_apart() {
    let mut bytes = page(0, &[(8, 0x0000_0005_0301_0003)]);
    bytes[11] = 5;
    bytes.extend([0; 512]);
    bytes.extend(page(1, &[(16, 0xc000_0000_0001_0000)]));
    let log = DeviceStatistics::parse(&bytes).unwrap();
    assert_eq!(log.supported_pages, Some(vec![0, 1, 5]));
    assert_eq!(log.pages.len(), 1);
    assert_eq!(log.power_on_hours, Some(65536));
    assert!(DeviceStatistics::parse(&[0; 1024]).is_err());
    assert!(DeviceStatistics::parse(&[]).is_err());
    assert!(DeviceStatistics::parse(&bytes[..700]).is_err());
}

#[test]
fn another_page_than_the_one_asked_for_is_an_error() {
    let bytes = page(4, &[]);
    assert!(DeviceStatistics::parse_page(4, &bytes).is_ok());
    assert!(
        DeviceStatistics::parse_page(5, &bytes)
            .unwrap_err()
            .why
            .contains("page 4")
    );
    assert!(DeviceStatistics::parse_page(5, &[0; 512]).is_err());
    let program = *b"\x7fELF\x02\x01\x01\0".first_chunk::<8>().unwrap();
    assert!(DeviceStatistics::parse(&program.repeat(64)).is_err());
    assert!(DeviceStatistics::parse_page(5, &[0; 100]).is_err());
}

proptest! {
    #[test]
    fn any_pages_are_read_without_panic(mut bytes in proptest::collection::vec(any::<u8>(), 1536), number: u8) {
        let _ = DeviceStatistics::parse(&bytes);
        bytes[..8].copy_from_slice(&[1, 0, number, 0, 0, 0, 0, 0]);
        let log = DeviceStatistics::parse(&bytes).unwrap();
        for page in &log.pages {
            for statistic in &page.table {
                prop_assert!(statistic.flags.valid || statistic.value.is_none());
            }
        }
    }
}
