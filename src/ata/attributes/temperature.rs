//! Temperatures in raw values, which vendors pack with lowest and highest in several ways.

use std::fmt;

use serde::Serialize;

use super::{Meaning, RawFormat};
use crate::ata::smart::Attribute;
use crate::units::Celsius;

/// Which attribute a temperature comes from, in the words that all documents use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TemperatureSource {
    /// Attribute 194.
    #[serde(rename = "smart_194")]
    Smart194,
    /// Attribute 190.
    #[serde(rename = "smart_190")]
    Smart190,
    /// Attribute 231.
    #[serde(rename = "smart_231")]
    Smart231,
    /// Another attribute.
    SmartOther,
}

impl TemperatureSource {
    /// From the attribute's number.
    pub fn from_id(id: u8) -> Self {
        match id {
            194 => Self::Smart194,
            190 => Self::Smart190,
            231 => Self::Smart231,
            _ => Self::SmartOther,
        }
    }

    /// The word in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Smart194 => "smart_194",
            Self::Smart190 => "smart_190",
            Self::Smart231 => "smart_231",
            Self::SmartOther => "smart_other",
        }
    }

    /// Order of preference: 194 is the drive, 190 often the air around it.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Smart194 => 0,
            Self::Smart190 => 1,
            Self::Smart231 => 2,
            Self::SmartOther => 3,
        }
    }
}

/// A temperature as one attribute tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemperatureValue {
    /// Now; `None` where the raw value cannot be a temperature (0 from an absent sensor, 128 and more).
    pub celsius: Option<Celsius>,
    /// Lowest, where the packing has it.
    pub min: Option<Celsius>,
    /// Highest, where the packing has it.
    pub max: Option<Celsius>,
}

/// What the six bytes were recognised as.
struct Packed {
    now: i16,
    range: Option<(i16, i16)>,
    over_limit: Option<u16>,
    recognised: bool,
}

fn signed(byte: u8) -> i16 {
    i16::from(byte as i8)
}

/// Two bytes as lowest and highest, in either order, if they enclose `now` and are temperatures.
///
/// -1 beside a highest of 0 or less is no range: it is the FFFFh of an empty field.
fn range(now: i16, one: u8, other: u8) -> Option<(i16, i16)> {
    let (one, other) = (signed(one), signed(other));
    let (low, high) = (one.min(other), one.max(other));
    let enclosed = -60 <= low && low <= now && now <= high && high <= 120;
    (enclosed && !(low == -1 && high <= 0)).then_some((low, high))
}

/// How a word can hold one temperature in its low byte: zero-extended, sign-extended, or both.
#[derive(Clone, Copy)]
struct WordKind {
    zero_extended: bool,
    sign_extended: bool,
}

impl WordKind {
    fn of(word: u16) -> Self {
        Self {
            zero_extended: word <= 0x00ff,
            sign_extended: word <= 0x007f || word >= 0xff80,
        }
    }

    fn is_byte(self) -> bool {
        self.zero_extended || self.sign_extended
    }

    fn agrees(self, other: Self) -> Self {
        Self {
            zero_extended: self.zero_extended && other.zero_extended,
            sign_extended: self.sign_extended && other.sign_extended,
        }
    }
}

fn unpack(attribute: &Attribute) -> Packed {
    let [r0, r1, r2, r3, r4, _] = attribute.raw;
    let [w0, w1, w2] = attribute.raw_words();
    let now = signed(r0);
    let lone = WordKind::of(w0).is_byte();
    let found = |range: Option<(i16, i16)>| {
        range.map(|range| Packed {
            now,
            range: Some(range),
            over_limit: None,
            recognised: true,
        })
    };
    let packed = if w2 == 0 {
        if lone && w1 == 0 {
            Some(Packed {
                now,
                range: None,
                over_limit: None,
                recognised: true,
            })
        } else if lone && range(now, r2, r3).is_some() {
            // R3 and R2: Maxtor, Samsung, Seagate, Toshiba.
            found(range(now, r2, r3))
        } else if r3 == 0 {
            // R2 and R1: Western Digital.
            found(range(now, r1, r2))
        } else {
            None
        }
    } else if lone {
        // A byte in each word: Hitachi, HGST, Kingston.
        let kind = WordKind::of(w0).agrees(WordKind::of(w1)).agrees(WordKind::of(w2));
        let words = kind.is_byte().then(|| range(now, r2, r4)).flatten();
        match words {
            Some(words) => found(Some(words)),
            // A count of hot times in W2 above R3 and R2: Western Digital, who never have a highest below 40.
            None => range(now, r2, r3)
                .filter(|&(_, high)| w2 < 0x7fff && high >= 40)
                .map(|range| Packed {
                    now,
                    range: Some(range),
                    over_limit: Some(w2),
                    recognised: true,
                }),
        }
    } else {
        None
    };
    packed.unwrap_or(Packed {
        now,
        range: None,
        over_limit: None,
        recognised: false,
    })
}

/// As the common tools print it.
pub(super) fn write_text(f: &mut fmt::Formatter<'_>, attribute: &Attribute) -> fmt::Result {
    let packed = unpack(attribute);
    let [r0, r1, r2, r3, r4, r5] = attribute.raw;
    match packed {
        Packed {
            now,
            range: Some((low, high)),
            over_limit: Some(count),
            ..
        } => write!(f, "{now} (Min/Max {low}/{high} #{count})"),
        Packed {
            now,
            range: Some((low, high)),
            ..
        } => write!(f, "{now} (Min/Max {low}/{high})"),
        Packed {
            now,
            recognised: true,
            ..
        } => write!(f, "{now}"),
        _ => write!(f, "{r0} ({r5} {r4} {r3} {r2} {r1})"),
    }
}

/// The temperature in an attribute that is known to hold one.
pub(super) fn value(format: RawFormat, attribute: &Attribute) -> TemperatureValue {
    let [word, ..] = attribute.raw_words();
    let plain = |celsius: i16| TemperatureValue {
        celsius: Some(Celsius(celsius)).filter(|c| c.is_plausible()),
        min: None,
        max: None,
    };
    match format {
        RawFormat::TenthsCelsius => plain(i16::try_from((u32::from(word) + 5) / 10).unwrap_or(i16::MAX)),
        RawFormat::HalfCelsius => plain((word & 0xff) as i16 / 2),
        _ => {
            let packed = unpack(attribute);
            // Without a range or a sign-extended word, 80h and above is no temperature but something else. Where the
            // packing is only presumed (231), other bytes must fit as well.
            let believed = (packed.now > 0 || packed.range.is_some() || word >= 0xff80)
                && (packed.recognised || format == RawFormat::Temperature);
            TemperatureValue {
                celsius: Some(Celsius(packed.now)).filter(|c| believed && c.is_plausible()),
                min: packed.range.map(|(low, _)| Celsius(low)),
                max: packed.range.map(|(_, high)| Celsius(high)),
            }
        }
    }
}

impl super::Definition {
    /// The temperature in `attribute`, if this is what it holds.
    pub fn temperature(&self, attribute: &Attribute) -> Option<TemperatureValue> {
        (self.meaning == Meaning::Temperature).then(|| value(self.format, attribute))
    }
}

/// Sorts by [`TemperatureSource::rank`], keeping the drive's order among equals.
pub(crate) fn by_preference<T>(readings: &mut [T], source: impl Fn(&T) -> TemperatureSource) {
    readings.sort_by_key(|reading| source(reading).rank());
}
