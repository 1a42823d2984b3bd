//! Units as types: block addresses, counts, sector sizes and temperatures that cannot be mixed up.

use serde::{Deserialize, Serialize};

/// A logical block address, in the sector size of whoever counts (the drive or the host).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lba(pub u64);

/// A number of logical sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sectors(pub u64);

impl Sectors {
    /// The length in bytes, or `None` when it does not fit into 64 bits.
    pub fn bytes(self, size: SectorSize) -> Option<u64> {
        self.0.checked_mul(u64::from(size.bytes()))
    }
}

/// The size of one logical or physical sector: a power of two from 256 bytes to 1 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SectorSize(u32);

impl SectorSize {
    /// 512 bytes, the size of every ATA log and of SMART data whatever the drive's sectors are.
    pub const S512: Self = Self(512);

    /// Checks that `bytes` can be a sector size.
    pub fn new(bytes: u32) -> Option<Self> {
        (bytes.is_power_of_two() && (256..=1 << 20).contains(&bytes)).then_some(Self(bytes))
    }

    /// The size in bytes.
    pub fn bytes(self) -> u32 {
        self.0
    }
}

/// A temperature in whole degrees Celsius, as drives report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Celsius(pub i16);

impl Celsius {
    /// From the 16-bit kelvin of an NVMe log; 0 means "not implemented" there.
    pub fn from_nvme_kelvin(kelvin: u16) -> Option<Self> {
        (kelvin != 0).then(|| Self((i32::from(kelvin) - 273).clamp(-273, i32::from(i16::MAX)) as i16))
    }

    /// From a signed byte in which 80h means "invalid" (SCT status, device statistics).
    pub fn from_signed_byte(byte: u8) -> Option<Self> {
        (byte != 0x80).then_some(Self(i16::from(byte as i8)))
    }

    /// Whether a drive that answers at all can have this temperature.
    ///
    /// 0 is rejected: bridges answer with zeroed data, and a drive at exactly 0 °C is rarer than that.
    pub fn is_plausible(self) -> bool {
        (-40..=125).contains(&self.0) && self.0 != 0
    }
}

/// `bytes` as people read it: decimal units, three significant digits (`120 GB`, `1.02 TB`).
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or("B");
    let digits = match value {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_convert_at_their_edges() {
        assert_eq!(Celsius::from_nvme_kelvin(0), None);
        assert_eq!(Celsius::from_nvme_kelvin(314), Some(Celsius(41)));
        assert_eq!(Celsius::from_nvme_kelvin(u16::MAX), Some(Celsius(32767)));
        assert_eq!(Celsius::from_signed_byte(0x80), None);
        assert_eq!(Celsius::from_signed_byte(0xff), Some(Celsius(-1)));
        assert!(!Celsius(0).is_plausible());
        assert!(Celsius(-12).is_plausible());
        assert!(!Celsius(126).is_plausible());
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(human_bytes(0), "0 B");
        assert_eq!(human_bytes(999), "999 B");
        assert_eq!(human_bytes(120_034_123_776), "120 GB");
        assert_eq!(human_bytes(1_024_209_543_168), "1.02 TB");
        assert_eq!(human_bytes(999_999), "1.00 MB");
        assert_eq!(human_bytes(u64::MAX), "18.4 EB");
    }

    #[test]
    fn sector_sizes_are_checked() {
        assert_eq!(SectorSize::new(0), None);
        assert_eq!(SectorSize::new(520), None);
        assert_eq!(SectorSize::new(4096).map(SectorSize::bytes), Some(4096));
        assert_eq!(Sectors(u64::MAX).bytes(SectorSize::S512), None);
    }
}
