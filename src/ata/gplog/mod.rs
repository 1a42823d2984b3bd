//! Logs: the directories, error logs and self-test logs, by SMART READ LOG and READ LOG EXT (ACS-4, "Logs").

mod errors;
mod selftests;

use serde::Serialize;

pub use errors::{ErrorEntry, ErrorLog, LoggedCommand};
pub use selftests::{SelfTestEntry, SelfTestLog};

use crate::wire::{WireError, le16};

/// A log directory, 512 bytes, log 00h (ACS-4, "General Purpose Log Directory" and "SMART Log Directory").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogDirectory {
    /// Word 0: version.
    pub version: u16,
    /// The logs that the drive has.
    pub logs: Vec<LogEntry>,
}

/// One log of a [`LogDirectory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// Address.
    pub address: u8,
    /// Length in 512-byte pages.
    pub pages: u16,
    /// What it is, where the standards say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
}

impl LogDirectory {
    /// The directory of READ LOG EXT: word n is the length of log n.
    ///
    /// # Errors
    /// Fewer than 512 bytes, or a version of 0.
    pub fn parse_gpl(data: &[u8]) -> Result<Self, WireError> {
        Self::parse("general purpose log directory", data, 0xffff)
    }

    /// The directory of SMART READ LOG: the low byte of word n is the length of log n.
    ///
    /// # Errors
    /// Fewer than 512 bytes, or a version of 0.
    pub fn parse_smart(data: &[u8]) -> Result<Self, WireError> {
        Self::parse("SMART log directory", data, 0x00ff)
    }

    fn parse(structure: &'static str, data: &[u8], mask: u16) -> Result<Self, WireError> {
        if data.len() < 512 {
            return Err(WireError::truncated(structure, data.len(), 512));
        }
        let version = le16(data, 0).unwrap_or(0);
        if version == 0 {
            return Err(WireError {
                structure,
                offset_bytes: 0,
                why: "version 0".to_owned(),
            });
        }
        let logs = (1..=255u8)
            .filter_map(|address| {
                let pages = le16(data, usize::from(address) * 2)? & mask;
                (pages != 0).then_some(LogEntry {
                    address,
                    pages,
                    name: log_name(address),
                })
            })
            .collect();
        Ok(Self { version, logs })
    }

    /// The length of a log in 512-byte pages, if the drive has it.
    pub fn pages(&self, address: u8) -> Option<u16> {
        self.logs.iter().find(|l| l.address == address).map(|l| l.pages)
    }
}

/// What the log at `address` is (ACS-4, "Log address definition").
pub fn log_name(address: u8) -> Option<&'static str> {
    Some(match address {
        0x00 => "Log Directory",
        0x01 => "Summary SMART error log",
        0x02 => "Comprehensive SMART error log",
        0x03 => "Extended comprehensive SMART error log",
        0x04 => "Device Statistics log",
        0x06 => "SMART self-test log",
        0x07 => "Extended self-test log",
        0x08 => "Power Conditions log",
        0x09 => "Selective self-test log",
        0x0a => "Device Statistics Notification",
        0x0c => "Pending Defects log",
        0x0f => "Sense Data for Successful NCQ Commands log",
        0x10 => "NCQ Command Error log",
        0x11 => "SATA PHY event counters log",
        0x12 => "SATA NCQ Non-Data log",
        0x13 => "SATA NCQ Send and Receive log",
        0x15 => "Rebuild Assist log",
        0x19 => "LBA Status log",
        0x24 => "Current Device Internal Status log",
        0x25 => "Saved Device Internal Status log",
        0x30 => "IDENTIFY DEVICE data log",
        0x80..=0x9f => "Host vendor specific log",
        0xa0..=0xdf => "Device vendor specific log",
        0xe0 => "SCT Command/Status",
        0xe1 => "SCT Data Transfer",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn directories_differ_in_the_width_of_lengths() {
        let mut bytes = [0u8; 512];
        for (offset, value) in [(0, 1u8), (2, 1), (8, 8), (9, 1), (0x1c0, 1)] {
            bytes[offset] = value;
        }
        let gpl = LogDirectory::parse_gpl(&bytes).unwrap();
        assert_eq!(
            (gpl.pages(1), gpl.pages(4), gpl.pages(5)),
            (Some(1), Some(264), None)
        );
        assert_eq!(gpl.pages(0xe0), Some(1));
        let smart = LogDirectory::parse_smart(&bytes).unwrap();
        assert_eq!(smart.pages(4), Some(8));
        assert!(LogDirectory::parse_gpl(&[0; 512]).is_err());
        assert!(LogDirectory::parse_smart(&[1; 511]).is_err());
    }
}
