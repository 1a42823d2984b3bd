//! Device statistics, log 04h (ACS-4, "Device Statistics log").

mod tables;

use bitflags::bitflags;
use serde::Serialize;

use crate::units::Celsius;
use crate::wire::{WireError, le16, le64};

const STRUCTURE: &str = "device statistics";

/// Name and version of [`DeviceStatistics`].
pub const SCHEMA: &str = "drivethru-devstat/1";

bitflags! {
    /// Flags of one statistic, the most significant byte of its qword.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct StatisticFlags: u8 {
        /// Bit 3: its monitored condition is met.
        const CONDITION_MET = 1 << 3;
        /// Bit 4: it can notify (DSN).
        const SUPPORTS_DSN = 1 << 4;
        /// Bit 5: it is normalized, in the vendor's way.
        const NORMALIZED = 1 << 5;
        /// Bit 6: its value is valid.
        const VALID = 1 << 6;
        /// Bit 7: the drive has it.
        const SUPPORTED = 1 << 7;
    }
}

/// One statistic that the drive has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statistic {
    /// Offset in the page.
    pub offset_bytes: u16,
    /// What it counts; absent where no standard says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
    /// Bytes of its value.
    pub size_bytes: u8,
    /// Its value; absent where the drive says that it is not valid, and for temperatures of 80h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<i64>,
    /// All seven bytes of data as a number.
    pub raw: u64,
    /// Flags.
    pub flags: FlagsReport,
}

/// [`StatisticFlags`] by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FlagsReport {
    /// The byte.
    pub value: u8,
    /// The value is valid.
    pub valid: bool,
    /// Normalized.
    pub normalized: bool,
    /// Can notify.
    pub supports_dsn: bool,
    /// The monitored condition is met.
    pub monitored_condition_met: bool,
}

/// One page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Page {
    /// Page number.
    pub number: u8,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
    /// Revision of its layout.
    pub revision: u16,
    /// The statistics that the drive has.
    pub table: Vec<Statistic>,
}

/// The whole log, as far as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceStatistics {
    /// Page 0: the pages that the drive has; absent where page 0 was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supported_pages: Option<Vec<u8>>,
    /// The pages.
    pub pages: Vec<Page>,
    /// Page 5: the temperature now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<Celsius>,
    /// Page 7: percentage used endurance indicator; may pass 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentage_used: Option<u8>,
    /// Page 1: hours with power on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_on_hours: Option<u64>,
}

/// What page a 512-byte sector is.
enum Sector {
    List(Vec<u8>),
    Page(Page),
    Empty,
}

impl DeviceStatistics {
    /// Reads pages of 512 bytes one after another, in any order; empty pages and what is no page are passed over.
    ///
    /// # Errors
    /// Nothing but empty pages, or bytes that are no whole pages.
    pub fn parse(data: &[u8]) -> Result<Self, WireError> {
        if data.is_empty() || !data.len().is_multiple_of(512) {
            let whole = data.len().next_multiple_of(512).max(512);
            return Err(WireError::truncated(STRUCTURE, data.len(), whole));
        }
        let mut supported_pages = None;
        let mut pages = Vec::new();
        for sector in data.chunks_exact(512) {
            match read_sector(sector) {
                Sector::List(list) => supported_pages = Some(list),
                Sector::Page(page) => pages.push(page),
                Sector::Empty => {}
            }
        }
        if pages.is_empty() && supported_pages.is_none() {
            return Err(WireError {
                structure: STRUCTURE,
                offset_bytes: 0,
                why: "no page with a header and something in it".to_owned(),
            });
        }
        let mut log = Self {
            supported_pages,
            pages,
            temperature_celsius: None,
            percentage_used: None,
            power_on_hours: None,
        };
        log.temperature_celsius = log.temperature();
        log.percentage_used = log.value(7, 8).and_then(|v| u8::try_from(v).ok());
        log.power_on_hours = log.value(1, 16).and_then(|v| u64::try_from(v).ok());
        Ok(log)
    }

    /// Reads one page, of the number that the caller asked for: a drive or bridge may return another.
    ///
    /// # Errors
    /// Fewer than 512 bytes, an empty page, or a page of another number.
    pub fn parse_page(number: u8, data: &[u8]) -> Result<Page, WireError> {
        let Some(sector) = data.get(..512) else {
            return Err(WireError::truncated(STRUCTURE, data.len(), 512));
        };
        match read_sector(sector) {
            Sector::Page(page) if page.number == number => Ok(page),
            Sector::Page(page) => Err(WireError {
                structure: STRUCTURE,
                offset_bytes: 2,
                why: format!("page {}, asked for page {number}", page.number),
            }),
            Sector::List(_) | Sector::Empty => Err(WireError {
                structure: STRUCTURE,
                offset_bytes: 0,
                why: format!("no page {number} in it"),
            }),
        }
    }

    /// The value of a statistic, if the drive has it and says that it is valid.
    pub fn value(&self, page: u8, offset_bytes: u16) -> Option<i64> {
        self.pages
            .iter()
            .find(|p| p.number == page)
            .and_then(|p| p.value(offset_bytes))
    }

    /// Page 5: the temperature now. 0 is no temperature.
    pub fn temperature(&self) -> Option<Celsius> {
        self.pages.iter().find_map(Page::temperature)
    }
}

impl Page {
    /// The value of a statistic, if the drive has it and says that it is valid.
    pub fn value(&self, offset_bytes: u16) -> Option<i64> {
        self.table
            .iter()
            .find(|s| s.offset_bytes == offset_bytes)
            .and_then(|s| s.value)
    }

    /// The temperature now, on page 5. 0 is no temperature.
    pub fn temperature(&self) -> Option<Celsius> {
        if self.number != 5 {
            return None;
        }
        let celsius = Celsius(i16::try_from(self.value(8)?).ok()?);
        celsius.is_plausible().then_some(celsius)
    }
}

/// Qword 0 is the header: bytes 0-1 revision, byte 2 page number.
fn read_sector(sector: &[u8]) -> Sector {
    let revision = le16(sector, 0).unwrap_or(0);
    let number = sector.get(2).copied().unwrap_or(0);
    // The header's other bytes are reserved, and no layout has gone beyond its first revisions.
    let reserved = le64(sector, 0).unwrap_or(0) & 0xffff_ffff_ff00_ff00;
    if revision == 0 || reserved != 0 {
        return Sector::Empty;
    }
    if number == 0 {
        let count = usize::from(sector.get(8).copied().unwrap_or(0));
        let list = sector.get(9..512).unwrap_or_default();
        return Sector::List(list.iter().take(count).copied().collect());
    }
    let table = (8..512u16)
        .step_by(8)
        .filter_map(|offset| statistic(sector, number, offset))
        .collect();
    Sector::Page(Page {
        number,
        name: tables::page_name(number),
        revision,
        table,
    })
}

fn statistic(sector: &[u8], page: u8, offset_bytes: u16) -> Option<Statistic> {
    let qword = le64(sector, usize::from(offset_bytes))?;
    let flags = StatisticFlags::from_bits_retain((qword >> 56) as u8);
    if !flags.contains(StatisticFlags::SUPPORTED) {
        return None;
    }
    let raw = qword & 0x00ff_ffff_ffff_ffff;
    let entry = tables::entry(page, offset_bytes);
    let size_bytes = entry.map_or(7, |e| e.size_bytes);
    let valid = flags.contains(StatisticFlags::VALID);
    Some(Statistic {
        offset_bytes,
        name: entry.map(|e| e.name),
        size_bytes,
        value: valid
            .then(|| number(raw, size_bytes, entry.is_some_and(|e| e.celsius)))
            .flatten(),
        raw,
        flags: FlagsReport {
            value: flags.bits(),
            valid,
            normalized: flags.contains(StatisticFlags::NORMALIZED),
            supports_dsn: flags.contains(StatisticFlags::SUPPORTS_DSN),
            monitored_condition_met: flags.contains(StatisticFlags::CONDITION_MET),
        },
    })
}

/// The low `size_bytes` of `raw`; temperatures are signed bytes, of which 80h is none.
fn number(raw: u64, size_bytes: u8, celsius: bool) -> Option<i64> {
    if celsius {
        return Celsius::from_signed_byte((raw & 0xff) as u8).map(|c| i64::from(c.0));
    }
    let mask = (1u64 << (u32::from(size_bytes.min(7)) * 8)) - 1;
    i64::try_from(raw & mask).ok()
}

#[cfg(test)]
mod tests;
