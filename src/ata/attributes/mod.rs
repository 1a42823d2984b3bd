//! What SMART attributes are called, how their raw values are packed, and which of them tell temperature, hours and
//! wear. The standards leave all of it to the vendors: generic rows stand in `defaults`, exceptions by model in `models`.

mod defaults;
mod glob;
mod models;
mod raw;
mod temperature;

use serde::Serialize;

pub use raw::{Duration, RawByte, RawFormat, RawHex, RawText};
pub(crate) use temperature::by_preference;
pub use temperature::{TemperatureSource, TemperatureValue};

use crate::ata::identify::{Identify, Rotation};
use crate::ata::smart::Attribute;

/// What an attribute measures, as far as other code acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Meaning {
    /// Nothing that other code acts on.
    Other,
    /// Drive or air temperature in its raw value.
    Temperature,
    /// Time with power on.
    PowerOnTime,
    /// Times that power was switched on.
    PowerCycles,
    /// Sectors replaced by spares.
    ReallocatedSectors,
    /// Sectors that wait for a rewrite.
    PendingSectors,
    /// Sectors that could not be read.
    UncorrectableSectors,
    /// Damaged transfers between drive and bridge.
    LinkErrors,
    /// Wear, in the unit that [`Wear`] tells.
    Wear(Wear),
}

/// How an attribute tells life left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wear {
    /// The normalized value is percent left.
    LeftNormalized,
    /// The raw value is percent left.
    LeftRaw,
    /// The raw value is percent used, and may pass 100.
    UsedRaw,
    /// The two low raw bytes are hundredths of a percent used.
    UsedHundredths,
}

/// One row: what an attribute is on some or all drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// Attribute number.
    pub id: u8,
    /// Name as the common tools print it.
    pub name: &'static str,
    /// Packing of the raw value.
    pub format: RawFormat,
    /// What it measures.
    pub meaning: Meaning,
    /// Which media it belongs to.
    pub media: Media,
}

/// The media that a generic row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// Both.
    Any,
    /// Rotating disks.
    Disk,
    /// Solid state.
    Flash,
}

const UNKNOWN: &str = "Unknown_Attribute";

/// The rows for one drive.
#[derive(Debug, Clone, Copy)]
pub struct AttributeTable {
    rows: &'static [Definition],
    rotation: Rotation,
}

impl AttributeTable {
    /// Looks the drive up by model and firmware; without an identity the generic rows apply.
    pub fn for_drive(identify: Option<&Identify>) -> Self {
        let Some(identify) = identify else {
            return Self {
                rows: &[],
                rotation: Rotation::Unknown,
            };
        };
        let model = identify.model().unwrap_or_default();
        let firmware = identify.firmware().unwrap_or_default();
        Self {
            rows: models::rows(&model, &firmware),
            rotation: identify.rotation(),
        }
    }

    /// Looks the drive up by names alone.
    pub fn for_model(model: &str, firmware: &str, rotation: Rotation) -> Self {
        Self {
            rows: models::rows(model, firmware),
            rotation,
        }
    }

    /// What attribute `id` is on this drive.
    pub fn definition(&self, id: u8) -> Definition {
        // Sorted, as a test makes sure.
        if let Some(row) = self
            .rows
            .binary_search_by_key(&id, |row| row.id)
            .ok()
            .and_then(|i| self.rows.get(i))
        {
            return *row;
        }
        let Some(row) = defaults::row(id) else {
            return unknown(id, UNKNOWN);
        };
        let foreign = |name| Definition {
            format: row.format,
            ..unknown(id, name)
        };
        match (row.media, self.rotation) {
            (Media::Disk, Rotation::NonRotating) => foreign("Unknown_SSD_Attribute"),
            (Media::Flash, Rotation::Rpm(_)) => foreign("Unknown_HDD_Attribute"),
            // 231 is life left on most flash drives: a temperature only where the drive says that it turns.
            (_, Rotation::Unknown) if id == 231 => Definition {
                meaning: Meaning::Other,
                ..row
            },
            _ => row,
        }
    }

    /// The temperature in `attribute`, if it holds one on this drive.
    pub fn temperature(&self, attribute: &Attribute) -> Option<TemperatureValue> {
        self.definition(attribute.id).temperature(attribute)
    }

    /// Percent of life left by `attribute`, if it tells that on this drive.
    pub fn life_left_percent(&self, attribute: &Attribute) -> Option<u8> {
        self.definition(attribute.id).life_left_percent(attribute)
    }
}

impl Definition {
    /// Percent of life left by `attribute`, if this is what it tells.
    pub fn life_left_percent(&self, attribute: &Attribute) -> Option<u8> {
        let used_percent = |used: u64| 100u8.saturating_sub(u8::try_from(used).unwrap_or(u8::MAX));
        let [low, ..] = attribute.raw_words();
        match self.meaning {
            Meaning::Wear(Wear::LeftNormalized) => {
                (1..=100).contains(&attribute.value).then_some(attribute.value)
            }
            Meaning::Wear(Wear::LeftRaw) => {
                // A raw value of 0 beside a full normalized value is a counter that was never filled in.
                let left = u8::try_from(attribute.raw48()).ok().filter(|left| *left <= 100)?;
                (left != 0 || attribute.value < 100).then_some(left)
            }
            Meaning::Wear(Wear::UsedRaw) => {
                (attribute.raw48() <= 1000).then(|| used_percent(attribute.raw48()))
            }
            Meaning::Wear(Wear::UsedHundredths) => Some(used_percent(u64::from(low / 100))),
            _ => None,
        }
    }
}

fn unknown(id: u8, name: &'static str) -> Definition {
    Definition {
        id,
        name,
        format: RawFormat::Raw48,
        meaning: Meaning::Other,
        media: Media::Any,
    }
}

#[cfg(test)]
mod tests;
