//! Packings of the 48-bit raw value.

use std::fmt;

use serde::{Serialize, Serializer};

use super::temperature;
use crate::ata::smart::Attribute;

/// How a raw value is packed. Bytes are counted from the least significant, R0 to R5; words W0 to W2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RawFormat {
    /// One number.
    Raw48,
    /// W0, with W2 and W1 beside it if they are not zero.
    Raw16Raw16,
    /// W0, and an average in W1.
    Raw16Average16,
    /// R2-R0, with R5, R4 and R3 beside it if they are not zero.
    Raw24Raw8,
    /// Two counts: W2 and W0.
    Pair16,
    /// Two counts: R5-R3 and R2-R0.
    Raw24Raw24,
    /// Two counts: 16 bits above 32.
    Raw16Raw32,
    /// Opaque, shown as 12 hex digits.
    Hex48,
    /// Temperature in R0, perhaps with lowest and highest: see [`super::TemperatureValue`].
    Temperature,
    /// Temperature in tenths of a degree in W0.
    TenthsCelsius,
    /// Temperature in half degrees in R0.
    HalfCelsius,
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Half minutes.
    HalfMinutes,
    /// Hours in R3-R0, milliseconds above them and in the reserved byte.
    HoursMilliseconds,
}

/// A time that a drive counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duration {
    /// Whole hours.
    pub hours: u64,
    /// Minutes beyond them, where the unit is finer than an hour.
    pub minutes: Option<u8>,
}

impl RawFormat {
    /// The raw value as the common tools print it.
    pub fn text(self, attribute: &Attribute) -> RawText {
        RawText {
            format: self,
            attribute: *attribute,
        }
    }

    /// The raw value as a time; formats without a unit count hours.
    pub fn duration(self, attribute: &Attribute) -> Option<Duration> {
        let raw = attribute.raw48();
        let of_minutes = |minutes: u64| Duration {
            hours: minutes / 60,
            minutes: Some((minutes % 60) as u8),
        };
        let of_hours = |hours: u64| Duration { hours, minutes: None };
        Some(match self {
            Self::Seconds => of_minutes(raw / 60),
            Self::Minutes => of_minutes(raw),
            Self::HalfMinutes => of_minutes(raw / 2),
            Self::HoursMilliseconds => {
                of_minutes((raw & 0xffff_ffff) * 60 + u64::from(milliseconds(attribute)) / 60_000)
            }
            Self::Raw24Raw8 => of_hours(raw & 0x00ff_ffff),
            Self::Raw16Raw16 | Self::Raw16Average16 => of_hours(raw & 0xffff),
            Self::Raw48 => of_hours(raw),
            _ => return None,
        })
    }
}

/// A raw value that is put into words only when it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawText {
    format: RawFormat,
    attribute: Attribute,
}

impl fmt::Display for RawText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let raw = self.attribute.raw48();
        let [w0, w1, w2] = self.attribute.raw_words();
        let [_, _, _, r3, r4, r5] = self.attribute.raw;
        match self.format {
            RawFormat::Raw48 => write!(f, "{raw}"),
            RawFormat::Raw16Raw16 if w1 != 0 || w2 != 0 => write!(f, "{w0} ({w2} {w1})"),
            RawFormat::Raw16Average16 if w1 != 0 => write!(f, "{w0} (Average {w1})"),
            RawFormat::Raw16Raw16 | RawFormat::Raw16Average16 => write!(f, "{w0}"),
            RawFormat::Raw24Raw8 if raw >> 24 != 0 => write!(f, "{} ({r5} {r4} {r3})", raw & 0x00ff_ffff),
            RawFormat::Raw24Raw8 => write!(f, "{raw}"),
            RawFormat::Pair16 => write!(f, "{w2}/{w0}"),
            RawFormat::Raw24Raw24 => write!(f, "{}/{}", raw >> 24, raw & 0x00ff_ffff),
            RawFormat::Raw16Raw32 => write!(f, "{}/{}", raw >> 32, raw & 0xffff_ffff),
            RawFormat::Hex48 => write!(f, "{raw:#014x}"),
            RawFormat::Temperature => temperature::write_text(f, &self.attribute),
            RawFormat::TenthsCelsius => write!(f, "{}.{}", w0 / 10, w0 % 10),
            RawFormat::HalfCelsius => write!(f, "{}", (raw & 0xff) / 2),
            RawFormat::Seconds => write!(f, "{}h+{:02}m+{:02}s", raw / 3600, raw / 60 % 60, raw % 60),
            RawFormat::Minutes => write!(f, "{}h+{:02}m", raw / 60, raw % 60),
            RawFormat::HalfMinutes => write!(f, "{}h+{:02}m", raw / 120, raw / 2 % 60),
            RawFormat::HoursMilliseconds => {
                let ms = milliseconds(&self.attribute);
                let (hours, minutes) = (raw & 0xffff_ffff, ms / 60_000);
                write!(
                    f,
                    "{hours}h+{minutes:02}m+{:02}.{:03}s",
                    ms / 1000 % 60,
                    ms % 1000
                )
            }
        }
    }
}

impl Serialize for RawText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A raw value as 12 hex digits, most significant first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawHex(pub u64);

impl fmt::Display for RawHex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

impl Serialize for RawHex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// R4, R5 and the reserved byte.
fn milliseconds(attribute: &Attribute) -> u32 {
    let [_, _, _, _, r4, r5] = attribute.raw;
    u32::from_le_bytes([r4, r5, attribute.reserved, 0])
}
