//! Packings of the 48-bit raw value.

use serde::Serialize;

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
    pub fn text(self, attribute: &Attribute) -> String {
        let raw = attribute.raw48();
        let [w0, w1, w2] = attribute.raw_words();
        let [_, _, _, r3, r4, r5] = attribute.raw;
        match self {
            Self::Raw48 => raw.to_string(),
            Self::Raw16Raw16 if w1 != 0 || w2 != 0 => format!("{w0} ({w2} {w1})"),
            Self::Raw16Average16 if w1 != 0 => format!("{w0} (Average {w1})"),
            Self::Raw16Raw16 | Self::Raw16Average16 => w0.to_string(),
            Self::Raw24Raw8 if raw >> 24 != 0 => format!("{} ({r5} {r4} {r3})", raw & 0x00ff_ffff),
            Self::Raw24Raw8 => raw.to_string(),
            Self::Pair16 => format!("{w2}/{w0}"),
            Self::Raw24Raw24 => format!("{}/{}", raw >> 24, raw & 0x00ff_ffff),
            Self::Raw16Raw32 => format!("{}/{}", raw >> 32, raw & 0xffff_ffff),
            Self::Hex48 => format!("{raw:#014x}"),
            Self::Temperature => temperature::text(attribute),
            Self::TenthsCelsius => format!("{}.{}", w0 / 10, w0 % 10),
            Self::HalfCelsius => (attribute.raw48() & 0xff).div_euclid(2).to_string(),
            Self::Seconds => format!("{}h+{:02}m+{:02}s", raw / 3600, raw / 60 % 60, raw % 60),
            Self::Minutes => format!("{}h+{:02}m", raw / 60, raw % 60),
            Self::HalfMinutes => format!("{}h+{:02}m", raw / 120, raw / 2 % 60),
            Self::HoursMilliseconds => {
                let ms = milliseconds(attribute);
                format!(
                    "{}h+{:02}m+{:02}.{:03}s",
                    raw & 0xffff_ffff,
                    ms / 60_000,
                    ms / 1000 % 60,
                    ms % 1000
                )
            }
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

/// R4, R5 and the reserved byte.
fn milliseconds(attribute: &Attribute) -> u32 {
    let [_, _, _, _, r4, r5] = attribute.raw;
    u32::from_le_bytes([r4, r5, attribute.reserved, 0])
}
