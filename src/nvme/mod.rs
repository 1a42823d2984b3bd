//! NVMe: what the pages of a controller mean. Pure functions over bytes.
#![deny(clippy::indexing_slicing)]

pub mod identify;
pub mod log;

use serde::Serializer;

use crate::units::Celsius;

/// A temperature from the 16-bit kelvin of an NVMe page; `None` for 0, which means "not implemented", and for values that
/// no controller can have (below -60 °C or above 200 °C).
pub fn celsius_from_kelvin(kelvin: u16) -> Option<Celsius> {
    Celsius::from_nvme_kelvin(kelvin).filter(|t| (-60..=200).contains(&t.0))
}

/// Serialises a 128-bit counter: a JSON number while it fits into 64 bits, which it always does on real drives, and a
/// decimal string above, because JSON readers do not keep more digits.
pub fn serialize_counter<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    match u64::try_from(*value) {
        Ok(small) => serializer.serialize_u64(small),
        Err(_) => serializer.serialize_str(&value.to_string()),
    }
}
