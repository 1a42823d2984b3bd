//! Packings of the 48-bit raw value.

use std::fmt;

use serde::{Serialize, Serializer};

use super::temperature;
use crate::ata::smart::Attribute;

/// A byte of an attribute that a raw value can take in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RawByte {
    /// Raw byte R0 to R5, the least significant first.
    R(u8),
    /// The reserved byte above them.
    Reserved,
    /// The normalized value, where a vendor uses its place for more raw bytes.
    Value,
    /// The worst value, likewise.
    Worst,
    /// No byte: zero.
    Zero,
}

impl RawByte {
    fn of(self, attribute: &Attribute) -> u8 {
        match self {
            Self::R(n) => attribute.raw.get(usize::from(n)).copied().unwrap_or(0),
            Self::Reserved => attribute.reserved,
            Self::Value => attribute.value,
            Self::Worst => attribute.worst,
            Self::Zero => 0,
        }
    }
}

/// The six raw bytes and the reserved one above them.
pub(super) const BYTES_56: &[RawByte] = {
    use RawByte::{R, Reserved};
    &[Reserved, R(5), R(4), R(3), R(2), R(1), R(0)]
};

/// The six raw bytes above the worst and the normalized value.
pub(super) const BYTES_64: &[RawByte] = {
    use RawByte::{R, Value, Worst};
    &[R(5), R(4), R(3), R(2), R(1), R(0), Worst, Value]
};

/// At most eight bytes as one number, the most significant first.
fn number(bytes: &[RawByte], attribute: &Attribute) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(byte.of(attribute)))
}

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
    /// Two counts: the reserved byte with R5 and R4, and R3-R0.
    Raw24Raw32,
    /// Three numbers: W2, W1 and W0.
    Words,
    /// Two counts from these bytes, the most significant first.
    Pair(&'static [&'static [RawByte]; 2]),
    /// One number from these bytes, the most significant first.
    Number(&'static &'static [RawByte]),
    /// Opaque, shown as 12 hex digits.
    Hex48,
    /// Opaque, hex digits of these bytes.
    Hex(&'static &'static [RawByte]),
    /// Temperature in R0, perhaps with lowest and highest: see [`super::TemperatureValue`].
    Temperature,
    /// Temperature in tenths of a degree in W0.
    TenthsCelsius,
    /// Temperature in half degrees in R0.
    HalfCelsius,
    /// Seconds.
    Seconds,
    /// Minutes in R3-R0, with W2 beside them if it is not zero.
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

    /// The raw value as one number: its 48 bits, or what the packing takes in beside them.
    pub fn number(self, attribute: &Attribute) -> u64 {
        match self {
            Self::Number(bytes) | Self::Hex(bytes) => number(bytes, attribute),
            Self::HoursMilliseconds | Self::Raw24Raw32 => number(BYTES_56, attribute),
            Self::Pair([high, low]) => {
                number(high, attribute) << (8 * low.len()).min(63) | number(low, attribute)
            }
            Self::Pair16 => {
                let [w0, _, w2] = attribute.raw_words();
                u64::from(w2) << 24 | u64::from(w0)
            }
            _ => attribute.raw48(),
        }
    }

    /// Whether `byte` is part of the raw value.
    pub fn takes(self, byte: RawByte) -> bool {
        match self {
            Self::Number(bytes) | Self::Hex(bytes) => bytes.contains(&byte),
            Self::Pair([high, low]) => high.contains(&byte) || low.contains(&byte),
            _ => false,
        }
    }

    /// The raw value as a time; formats without a unit count hours. More than 1900 years are none.
    pub fn duration(self, attribute: &Attribute) -> Option<Duration> {
        self.any_duration(attribute)
            .filter(|time| time.hours < 0x00ff_ffff)
    }

    fn any_duration(self, attribute: &Attribute) -> Option<Duration> {
        let raw = attribute.raw48();
        let of_minutes = |minutes: u64| Duration {
            hours: minutes / 60,
            minutes: Some((minutes % 60) as u8),
        };
        let of_hours = |hours: u64| Duration { hours, minutes: None };
        Some(match self {
            Self::Seconds => of_minutes(raw / 60),
            Self::Minutes => of_minutes(raw & 0xffff_ffff),
            Self::HalfMinutes => of_minutes(raw / 2),
            Self::HoursMilliseconds => {
                of_minutes((raw & 0xffff_ffff) * 60 + u64::from(milliseconds(attribute)) / 60_000)
            }
            Self::Raw24Raw8 => of_hours(raw & 0x00ff_ffff),
            Self::Raw16Raw16 | Self::Raw16Average16 => of_hours(raw & 0xffff),
            Self::Raw48 | Self::Number(_) => of_hours(self.number(attribute)),
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
            RawFormat::Raw24Raw32 => {
                let all = self.format.number(&self.attribute);
                write!(f, "{}/{}", all >> 32, all & 0xffff_ffff)
            }
            RawFormat::Words => write!(f, "{w2} {w1} {w0}"),
            RawFormat::Pair([high, low]) => {
                write!(
                    f,
                    "{}/{}",
                    number(high, &self.attribute),
                    number(low, &self.attribute)
                )
            }
            RawFormat::Number(bytes) => write!(f, "{}", number(bytes, &self.attribute)),
            RawFormat::Hex48 => write!(f, "{raw:#014x}"),
            RawFormat::Hex(bytes) => {
                let width = 2 + 2 * bytes.len();
                write!(f, "{:#0width$x}", number(bytes, &self.attribute))
            }
            RawFormat::Temperature => temperature::write_text(f, &self.attribute),
            RawFormat::TenthsCelsius => write!(f, "{}.{}", w0 / 10, w0 % 10),
            RawFormat::HalfCelsius => write!(f, "{}", (raw & 0xff) / 2),
            RawFormat::Seconds => write!(f, "{}h+{:02}m+{:02}s", raw / 3600, raw / 60 % 60, raw % 60),
            RawFormat::Minutes => {
                let minutes = raw & 0xffff_ffff;
                write!(f, "{}h+{:02}m", minutes / 60, minutes % 60)?;
                if w2 == 0 { Ok(()) } else { write!(f, " ({w2})") }
            }
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

/// A raw value as 12 hex digits or more, most significant first.
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
