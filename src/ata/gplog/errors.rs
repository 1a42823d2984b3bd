//! Error logs 01h (summary) and 03h (extended comprehensive).

use serde::Serialize;

use crate::wire::{Checksum, WireError, le16, le32, sums_to_zero};

const SUMMARY: &str = "summary SMART error log";
const EXTENDED: &str = "extended comprehensive SMART error log";

/// An error log, newest error first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorLog {
    /// Version.
    pub version: u8,
    /// Errors over the drive's life, more than the log holds.
    pub count: u16,
    /// The errors, newest first.
    pub entries: Vec<ErrorEntry>,
    /// Checksum of the first page.
    pub checksum: Checksum,
}

/// One error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorEntry {
    /// ERROR register.
    pub error: u8,
    /// STATUS register.
    pub status: u8,
    /// COUNT registers.
    pub count: u16,
    /// LBA registers.
    pub lba: u64,
    /// DEVICE register.
    pub device: u8,
    /// Low nibble of the state: 1 sleep, 2 standby, 3 active or idle, 4 off-line or self-test.
    pub state: u8,
    /// Power-on hours when it happened.
    pub power_on_hours: u16,
    /// Up to five commands before it, oldest first; the last one failed.
    pub commands: Vec<LoggedCommand>,
}

/// A command before an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LoggedCommand {
    /// COMMAND register.
    pub command: u8,
    /// FEATURES registers.
    pub feature: u16,
    /// COUNT registers.
    pub count: u16,
    /// LBA registers.
    pub lba: u64,
    /// DEVICE register.
    pub device: u8,
    /// Milliseconds since power-on; wraps.
    pub milliseconds: u32,
}

/// Slots from the newest to the oldest: `index` is 1-based and names the newest, 0 means none.
pub(super) fn newest_first(index: usize, slots: usize) -> impl Iterator<Item = usize> {
    let used = if (1..=slots).contains(&index) { slots } else { 0 };
    (0..used).map(move |back| (index + slots - 1 - back) % slots)
}

fn page_checksum(page: &[u8]) -> Checksum {
    match page.get(..512) {
        Some(page) if sums_to_zero(page) => Checksum::Valid,
        _ => Checksum::Invalid,
    }
}

impl ErrorLog {
    /// Log 01h, 512 bytes (ACS-3, "Summary SMART error log"): five errors of 90 bytes.
    ///
    /// # Errors
    /// Fewer than 512 bytes.
    pub fn parse_summary(data: &[u8]) -> Result<Self, WireError> {
        let Some(page) = data.get(..512) else {
            return Err(WireError::truncated(SUMMARY, data.len(), 512));
        };
        let index = usize::from(page.get(1).copied().unwrap_or(0));
        let entries = newest_first(index, 5)
            .filter_map(|slot| page.get(2 + slot * 90..92 + slot * 90))
            .filter_map(summary_entry)
            .collect();
        Ok(Self {
            version: page.first().copied().unwrap_or(0),
            count: le16(page, 452).unwrap_or(0),
            entries,
            checksum: page_checksum(page),
        })
    }

    /// Log 03h, one or more pages of 512 bytes (ACS-4, "Extended Comprehensive SMART Error log"): four errors of
    /// 124 bytes in each page.
    ///
    /// # Errors
    /// Fewer than 512 bytes.
    pub fn parse_extended(data: &[u8]) -> Result<Self, WireError> {
        let Some(first) = data.get(..512) else {
            return Err(WireError::truncated(EXTENDED, data.len(), 512));
        };
        let slots = data.len() / 512 * 4;
        let index = usize::from(le16(first, 2).unwrap_or(0));
        let entries = newest_first(index, slots)
            .filter_map(|slot| {
                let start = slot / 4 * 512 + 4 + slot % 4 * 124;
                extended_entry(data.get(start..start + 124)?)
            })
            .collect();
        Ok(Self {
            version: first.first().copied().unwrap_or(0),
            count: le16(first, 500).unwrap_or(0),
            entries,
            checksum: page_checksum(first),
        })
    }
}

/// Five commands of 12 bytes, then 30 bytes on the error; `None` for an unused slot.
fn summary_entry(entry: &[u8]) -> Option<ErrorEntry> {
    let (commands, error) = entry.split_at_checked(60)?;
    if entry.iter().all(|&b| b == 0) {
        return None;
    }
    let &[_, code, count, low, mid, high, device, status, ..] = error else {
        return None;
    };
    Some(ErrorEntry {
        error: code,
        status,
        count: u16::from(count),
        lba: u64::from(u32::from_le_bytes([low, mid, high, device & 0x0f])),
        device,
        state: error.get(27)? & 0x0f,
        power_on_hours: le16(error, 28)?,
        commands: commands.chunks_exact(12).filter_map(summary_command).collect(),
    })
}

fn summary_command(bytes: &[u8]) -> Option<LoggedCommand> {
    let &[_, feature, count, low, mid, high, device, command, ..] = bytes else {
        return None;
    };
    bytes.iter().any(|&b| b != 0).then_some(LoggedCommand {
        command,
        feature: u16::from(feature),
        count: u16::from(count),
        lba: u64::from(u32::from_le_bytes([low, mid, high, device & 0x0f])),
        device,
        milliseconds: le32(bytes, 8)?,
    })
}

/// The six LBA bytes alternate: low, its 48-bit half, mid, its half, high, its half.
fn interleaved_lba(bytes: &[u8]) -> Option<u64> {
    let &[low, low_ext, mid, mid_ext, high, high_ext] = bytes else {
        return None;
    };
    Some(u64::from_le_bytes([
        low, mid, high, low_ext, mid_ext, high_ext, 0, 0,
    ]))
}

/// Five commands of 18 bytes, then 34 bytes on the error; `None` for an unused slot.
fn extended_entry(entry: &[u8]) -> Option<ErrorEntry> {
    let (commands, error) = entry.split_at_checked(90)?;
    if entry.iter().all(|&b| b == 0) {
        return None;
    }
    Some(ErrorEntry {
        error: *error.get(1)?,
        status: *error.get(11)?,
        count: le16(error, 2)?,
        lba: interleaved_lba(error.get(4..10)?)?,
        device: *error.get(10)?,
        state: error.get(31)? & 0x0f,
        power_on_hours: le16(error, 32)?,
        commands: commands.chunks_exact(18).filter_map(extended_command).collect(),
    })
}

fn extended_command(bytes: &[u8]) -> Option<LoggedCommand> {
    bytes.iter().any(|&b| b != 0).then_some(LoggedCommand {
        command: *bytes.get(12)?,
        feature: le16(bytes, 1)?,
        count: le16(bytes, 3)?,
        lba: interleaved_lba(bytes.get(5..11)?)?,
        device: *bytes.get(11)?,
        milliseconds: le32(bytes, 14)?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn summary_errors_come_newest_first() {
        let mut page = [0u8; 512];
        page[0] = 1;
        page[1] = 2;
        page[452] = 7;
        for (slot, hours) in [(0usize, 100u8), (1, 200), (4, 50)] {
            let start = 2 + slot * 90;
            // The last command: READ SECTORS of LBA 0A030201h.
            page[start + 48..start + 60].copy_from_slice(&[0, 0, 8, 1, 2, 3, 0xea, 0x20, 0x10, 0x27, 0, 0]);
            page[start + 60..start + 68].copy_from_slice(&[0, 0x40, 8, 1, 2, 3, 0xea, 0x51]);
            page[start + 87] = 0x03;
            page[start + 88] = hours;
        }
        let log = ErrorLog::parse_summary(&page).unwrap();
        let hours: Vec<_> = log.entries.iter().map(|e| e.power_on_hours).collect();
        assert_eq!(hours, [200, 100, 50]);
        let newest = &log.entries[0];
        assert_eq!(
            (newest.error, newest.status, newest.lba),
            (0x40, 0x51, 0x0a03_0201)
        );
        assert_eq!(newest.commands.len(), 1);
        assert_eq!(
            (newest.commands[0].command, newest.commands[0].milliseconds),
            (0x20, 10000)
        );
        assert_eq!((log.count, log.checksum), (7, Checksum::Invalid));
    }

    #[test]
    fn extended_errors_span_pages() {
        let mut pages = [0u8; 1024];
        pages[0] = 1;
        pages[2] = 5;
        pages[500] = 5;
        let fifth = 512 + 4;
        pages[fifth + 72..fifth + 90].copy_from_slice(&[
            0, 1, 2, 3, 4, 0x10, 0x40, 0x20, 0x50, 0x30, 0x60, 0xe0, 0x25, 0, 1, 0, 0, 0,
        ]);
        pages[fifth + 90..fifth + 102]
            .copy_from_slice(&[0, 0x10, 3, 4, 0x10, 0x40, 0x20, 0x50, 0x30, 0x60, 0xe0, 0x41]);
        pages[fifth + 122] = 9;
        let log = ErrorLog::parse_extended(&pages).unwrap();
        assert_eq!(log.entries.len(), 1);
        let error = &log.entries[0];
        assert_eq!(
            (error.lba, error.count, error.power_on_hours),
            (0x6050_4030_2010, 0x0403, 9)
        );
        assert_eq!(error.commands[0].feature, 0x0201);
        assert_eq!(error.commands[0].command, 0x25);
    }

    #[test]
    fn an_index_outside_the_log_means_no_errors() {
        let mut page = [0xffu8; 512];
        page[1] = 6;
        assert!(ErrorLog::parse_summary(&page).unwrap().entries.is_empty());
        assert!(ErrorLog::parse_summary(&[0; 512]).unwrap().entries.is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1100)) {
            let _ = ErrorLog::parse_summary(&bytes);
            let _ = ErrorLog::parse_extended(&bytes);
            let _ = super::super::SelfTestLog::parse(&bytes);
            let _ = super::super::SelfTestLog::parse_extended(&bytes);
        }
    }
}
