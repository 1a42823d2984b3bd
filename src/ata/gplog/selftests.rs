//! Self-test logs 06h and 07h.

use serde::Serialize;

use super::errors::newest_first;
use crate::ata::smart::SelfTestResult;
use crate::wire::{Checksum, WireError, le16, le32, le48, sums_to_zero};

const LOG: &str = "SMART self-test log";
const EXTENDED: &str = "extended self-test log";

/// A self-test log, newest test first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SelfTestLog {
    /// Revision.
    pub revision: u16,
    /// The tests, newest first.
    pub entries: Vec<SelfTestEntry>,
    /// Checksum of the first page.
    pub checksum: Checksum,
}

/// One self-test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SelfTestEntry {
    /// Subcommand that started it.
    pub test: u8,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
    /// Result.
    pub status: SelfTestResult,
    /// What was left when it ended.
    pub remaining_percent: u8,
    /// Power-on hours when it ended.
    pub power_on_hours: u16,
    /// Vendor's checkpoint.
    pub checkpoint: u8,
    /// First address that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lba: Option<u64>,
}

fn test_name(test: u8) -> Option<&'static str> {
    Some(match test & 0x7f {
        0x00 => "offline",
        0x01 => "short",
        0x02 => "extended",
        0x03 => "conveyance",
        0x04 => "selective",
        0x7f => "abort",
        _ => return None,
    })
}

fn checksum(page: &[u8]) -> Checksum {
    if sums_to_zero(page) {
        Checksum::Valid
    } else {
        Checksum::Invalid
    }
}

impl SelfTestLog {
    /// Log 06h, 512 bytes (ACS-3, "SMART self-test log"): 21 tests of 24 bytes.
    ///
    /// # Errors
    /// Fewer than 512 bytes.
    pub fn parse(data: &[u8]) -> Result<Self, WireError> {
        let Some(page) = data.get(..512) else {
            return Err(WireError::truncated(LOG, data.len(), 512));
        };
        let index = usize::from(page.get(508).copied().unwrap_or(0));
        let entries = newest_first(index, 21)
            .filter_map(|slot| {
                let entry = page.get(2 + slot * 24..26 + slot * 24)?;
                let lba = le32(entry, 5).filter(|lba| *lba != u32::MAX).map(u64::from);
                test_entry(entry, lba)
            })
            .collect();
        Ok(Self {
            revision: le16(page, 0).unwrap_or(0),
            entries,
            checksum: checksum(page),
        })
    }

    /// Log 07h, one or more pages of 512 bytes (ACS-4, "Extended Self-test log"): 19 tests of 26 bytes in each.
    ///
    /// # Errors
    /// Fewer than 512 bytes.
    pub fn parse_extended(data: &[u8]) -> Result<Self, WireError> {
        let Some(first) = data.get(..512) else {
            return Err(WireError::truncated(EXTENDED, data.len(), 512));
        };
        let slots = data.len() / 512 * 19;
        let index = usize::from(le16(first, 2).unwrap_or(0));
        let entries = newest_first(index, slots)
            .filter_map(|slot| {
                let start = slot / 19 * 512 + 4 + slot % 19 * 26;
                let entry = data.get(start..start + 26)?;
                let lba = le48(entry, 5).filter(|lba| *lba != 0xffff_ffff_ffff);
                test_entry(entry, lba)
            })
            .collect();
        Ok(Self {
            revision: u16::from(first.first().copied().unwrap_or(0)),
            entries,
            checksum: checksum(first),
        })
    }
}

/// An address means something only for a test that failed.
fn test_entry(entry: &[u8], lba: Option<u64>) -> Option<SelfTestEntry> {
    if entry.iter().all(|&b| b == 0) {
        return None;
    }
    let &[test, status, _, _, checkpoint, ..] = entry else {
        return None;
    };
    let result = SelfTestResult::from_status(status);
    Some(SelfTestEntry {
        test,
        name: test_name(test),
        status: result,
        remaining_percent: (status & 0x0f) * 10,
        power_on_hours: le16(entry, 2)?,
        checkpoint,
        lba: lba.filter(|_| result.passed() == Some(false)),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn tests_come_newest_first_and_wrap() {
        let mut page = [0u8; 512];
        page[0] = 1;
        page[508] = 1;
        page[2..11].copy_from_slice(&[2, 0x79, 0x10, 0x27, 5, 1, 2, 3, 4]);
        let last = 2 + 20 * 24;
        page[last..last + 9].copy_from_slice(&[0x81, 0x00, 1, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        let log = SelfTestLog::parse(&page).unwrap();
        assert_eq!(log.entries.len(), 2);
        let newest = log.entries[0];
        assert_eq!(
            (newest.name, newest.status),
            (Some("extended"), SelfTestResult::ReadFailure)
        );
        assert_eq!((newest.remaining_percent, newest.power_on_hours), (90, 10000));
        assert_eq!(newest.lba, Some(0x0403_0201));
        assert_eq!((log.entries[1].name, log.entries[1].lba), (Some("short"), None));
    }

    #[test]
    fn extended_tests_have_48_bit_addresses() {
        let mut page = [0u8; 512];
        page[0] = 1;
        page[2] = 1;
        page[4..15].copy_from_slice(&[1, 0x70, 7, 0, 0, 1, 2, 3, 4, 5, 6]);
        let log = SelfTestLog::parse_extended(&page).unwrap();
        assert_eq!(log.entries[0].lba, Some(0x0605_0403_0201));
        assert_eq!(log.entries[0].power_on_hours, 7);
    }
}
