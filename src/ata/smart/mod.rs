//! SMART READ DATA and READ THRESHOLDS: the sectors as they are. What the attributes mean stands in
//! [`crate::ata::attributes`], the document in [`SmartReport`].

mod report;
mod selftest;

use bitflags::bitflags;
use serde::Serialize;

pub use report::{AttributeReport, SCHEMA, SmartReport, WhenFailed};
pub use selftest::{OfflineStatus, SelfTestResult, SelfTestStatus};

use crate::wire::{Checksum, WireError, le16, le48, sums_to_zero};

const DATA: &str = "SMART data";
const THRESHOLDS: &str = "SMART thresholds";

bitflags! {
    /// Flags of an attribute (SFF-8035i; the standards leave them to the vendor).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct AttributeFlags: u16 {
        /// Below its threshold it announces a failure within 24 hours; otherwise wear.
        const PREFAILURE = 1 << 0;
        /// Updated during normal work, not only by off-line collection.
        const UPDATED_ONLINE = 1 << 1;
        /// A performance.
        const PERFORMANCE = 1 << 2;
        /// An error rate.
        const ERROR_RATE = 1 << 3;
        /// A count of events.
        const EVENT_COUNT = 1 << 4;
        /// Saved by the drive itself.
        const SELF_PRESERVING = 1 << 5;
    }

    /// Off-line collection capability, byte 367 (ACS-3, "SMART READ DATA").
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct OfflineCapabilities: u8 {
        /// EXECUTE OFF-LINE IMMEDIATE is there.
        const EXECUTE_IMMEDIATE = 1 << 0;
        /// Automatic collection can be switched, vendor specific.
        const AUTOMATIC = 1 << 1;
        /// A new command aborts collection instead of suspending it.
        const ABORT_ON_COMMAND = 1 << 2;
        /// Off-line read scan.
        const SURFACE_SCAN = 1 << 3;
        /// Short and extended self-test.
        const SELF_TEST = 1 << 4;
        /// Conveyance self-test.
        const CONVEYANCE = 1 << 5;
        /// Selective self-test.
        const SELECTIVE = 1 << 6;
    }

    /// SMART capability, bytes 368-369 (ACS-3, "SMART READ DATA").
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct SmartCapabilities: u16 {
        /// Data is saved before a power mode change.
        const SAVES_BEFORE_POWER_MODE = 1 << 0;
        /// Attribute autosave.
        const AUTOSAVE = 1 << 1;
    }
}

/// One attribute, 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute {
    /// Number, never 0.
    pub id: u8,
    /// Flags.
    pub flags: AttributeFlags,
    /// Normalized value; 1 to 253 are meant to be compared with the threshold.
    pub value: u8,
    /// Lowest normalized value so far.
    pub worst: u8,
    /// Raw value, least significant byte first.
    pub raw: [u8; 6],
    /// The byte after it; some vendors' raw values reach into it.
    pub reserved: u8,
}

impl Attribute {
    /// The raw value as one number.
    pub fn raw48(&self) -> u64 {
        le48(&self.raw, 0).unwrap_or(0)
    }

    /// The raw value as 16-bit words, least significant first.
    pub fn raw_words(&self) -> [u16; 3] {
        [0, 2, 4].map(|offset| le16(&self.raw, offset).unwrap_or(0))
    }
}

/// SMART READ DATA, 512 bytes (ACS-3, "SMART READ DATA"; attributes by SFF-8035i).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmartData {
    bytes: [u8; 512],
}

/// Copies the first 512 bytes, unless they are one and the same byte throughout.
fn sector(structure: &'static str, data: &[u8]) -> Result<[u8; 512], WireError> {
    let Some(sector) = data.first_chunk::<512>() else {
        return Err(WireError::truncated(structure, data.len(), 512));
    };
    let first = sector.first().copied().unwrap_or_default();
    if sector.iter().all(|&b| b == first) {
        return Err(WireError {
            structure,
            offset_bytes: 0,
            why: format!("all 512 bytes are {first:02x}h: no drive answered"),
        });
    }
    Ok(*sector)
}

impl SmartData {
    /// Takes the first 512 bytes.
    ///
    /// # Errors
    /// Fewer bytes, or the same byte throughout. A wrong checksum is no error: see [`SmartData::checksum`].
    pub fn parse(data: &[u8]) -> Result<Self, WireError> {
        sector(DATA, data).map(|bytes| Self { bytes })
    }

    /// The sector.
    pub fn as_bytes(&self) -> &[u8; 512] {
        &self.bytes
    }

    fn byte(&self, offset: usize) -> u8 {
        self.bytes.get(offset).copied().unwrap_or(0)
    }

    fn word(&self, offset: usize) -> u16 {
        le16(&self.bytes, offset).unwrap_or(0)
    }

    /// Byte 511.
    pub fn checksum(&self) -> Checksum {
        if sums_to_zero(&self.bytes) {
            Checksum::Valid
        } else {
            Checksum::Invalid
        }
    }

    /// Bytes 0-1: revision of the attribute structure.
    pub fn revision(&self) -> u16 {
        self.word(0)
    }

    /// The used slots of bytes 2-361, in the drive's order.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute> + '_ {
        let slots = self.bytes.get(2..362).unwrap_or_default();
        slots.chunks_exact(12).filter_map(|slot| {
            let &[id, flags_low, flags_high, value, worst, ref raw @ .., reserved] = slot else {
                return None;
            };
            let raw = *raw.first_chunk()?;
            let flags = AttributeFlags::from_bits_retain(u16::from_le_bytes([flags_low, flags_high]));
            (id != 0).then_some(Attribute {
                id,
                flags,
                value,
                worst,
                raw,
                reserved,
            })
        })
    }

    /// The attribute with this number.
    pub fn attribute(&self, id: u8) -> Option<Attribute> {
        self.attributes().find(|a| a.id == id)
    }

    /// Whether it looks like attributes at all: some, each number once. Bridges return other sectors in their place.
    pub fn is_plausible(&self) -> bool {
        let mut seen = [false; 256];
        let mut count = 0;
        for attribute in self.attributes() {
            if let Some(seen) = seen.get_mut(usize::from(attribute.id))
                && std::mem::replace(seen, true)
            {
                return false;
            }
            count += 1;
        }
        count > 0
    }

    /// Byte 362.
    pub fn offline_status(&self) -> OfflineStatus {
        OfflineStatus::from_byte(self.byte(362))
    }

    /// Byte 363.
    pub fn self_test_status(&self) -> SelfTestStatus {
        SelfTestStatus::from_byte(self.byte(363))
    }

    /// Bytes 364-365: seconds that off-line collection takes.
    pub fn offline_seconds(&self) -> u16 {
        self.word(364)
    }

    /// Byte 367.
    pub fn offline_capabilities(&self) -> OfflineCapabilities {
        OfflineCapabilities::from_bits_retain(self.byte(367))
    }

    /// Bytes 368-369.
    pub fn smart_capabilities(&self) -> SmartCapabilities {
        SmartCapabilities::from_bits_retain(self.word(368))
    }

    /// Byte 370 bit 0: there is an error log.
    pub fn error_logging(&self) -> bool {
        self.byte(370) & 1 != 0
    }

    /// Byte 372: minutes to wait for a short self-test, if there is one.
    pub fn short_test_minutes(&self) -> Option<u16> {
        self.minutes(OfflineCapabilities::SELF_TEST, u16::from(self.byte(372)))
    }

    /// Byte 373, or bytes 375-376 where that is FFh and they are filled in: minutes to wait for an extended self-test, if
    /// there is one.
    pub fn extended_test_minutes(&self) -> Option<u16> {
        let minutes = match (self.byte(373), self.word(375)) {
            (0xff, minutes @ 0x0001..=0xfffe) => minutes,
            (minutes, _) => u16::from(minutes),
        };
        self.minutes(OfflineCapabilities::SELF_TEST, minutes)
    }

    /// Byte 374: minutes to wait for a conveyance self-test, if there is one.
    pub fn conveyance_test_minutes(&self) -> Option<u16> {
        self.minutes(OfflineCapabilities::CONVEYANCE, u16::from(self.byte(374)))
    }

    fn minutes(&self, needs: OfflineCapabilities, minutes: u16) -> Option<u16> {
        self.offline_capabilities().contains(needs).then_some(minutes)
    }
}

/// SMART READ THRESHOLDS, 512 bytes (SFF-8035i; obsolete since ATA-4 and still everywhere).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thresholds {
    bytes: [u8; 512],
}

impl Thresholds {
    /// Takes the first 512 bytes.
    ///
    /// # Errors
    /// Fewer bytes, or the same byte throughout. A wrong checksum is no error: see [`Thresholds::checksum`].
    pub fn parse(data: &[u8]) -> Result<Self, WireError> {
        sector(THRESHOLDS, data).map(|bytes| Self { bytes })
    }

    /// Byte 511. Bridges are known to answer with garbage; thresholds with a wrong sum are not to be used.
    pub fn checksum(&self) -> Checksum {
        if sums_to_zero(&self.bytes) {
            Checksum::Valid
        } else {
            Checksum::Invalid
        }
    }

    /// Bytes 0-1: revision.
    pub fn revision(&self) -> u16 {
        le16(&self.bytes, 0).unwrap_or(0)
    }

    /// Attribute number and threshold of the used slots.
    pub fn entries(&self) -> impl Iterator<Item = ThresholdEntry> + '_ {
        let slots = self.bytes.get(2..362).unwrap_or_default();
        slots.chunks_exact(12).filter_map(|slot| match slot {
            &[id, threshold, ..] if id != 0 => Some(ThresholdEntry { id, threshold }),
            _ => None,
        })
    }

    /// The threshold of an attribute: by number, for slots need not be in the same order.
    pub fn of(&self, id: u8) -> Option<u8> {
        self.entries().find(|e| e.id == id).map(|e| e.threshold)
    }
}

impl Thresholds {
    /// The document that `decode smart-thresholds` prints.
    pub fn report(&self) -> ThresholdsReport {
        ThresholdsReport {
            checksum: self.checksum(),
            revision: self.revision(),
            thresholds: self.entries().collect(),
        }
    }
}

/// What the threshold sector says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThresholdsReport {
    /// Checksum of the sector.
    pub checksum: Checksum,
    /// Revision.
    pub revision: u16,
    /// The thresholds in the drive's order.
    pub thresholds: Vec<ThresholdEntry>,
}

/// One entry of [`Thresholds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ThresholdEntry {
    /// Attribute number.
    pub id: u8,
    /// 0 always passes, 255 always fails (for tests), 254 is invalid.
    pub threshold: u8,
}

#[cfg(test)]
mod tests;
