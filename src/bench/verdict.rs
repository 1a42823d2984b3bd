//! Why the rate fell: `drivethru-verdict/1`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::series::Op;

/// Name and version of the document.
pub const SCHEMA: &str = "drivethru-verdict/1";

/// One of seven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The firmware slows the drive because it is warm.
    Thermal,
    /// Garbage collection or firmware pauses at regular distance.
    PeriodicStall,
    /// A reset, an abort, a slower link.
    Link,
    /// The drive is nearly full.
    CapacityCliff,
    /// The fast write cache is full.
    SlcCache,
    /// The host: other load, page cache.
    HostNoise,
    /// Steady, however slow or warm.
    None,
}

impl Cause {
    /// All of them; the first one found is the headline.
    pub const ALL: [Self; 7] = [
        Self::Thermal,
        Self::PeriodicStall,
        Self::Link,
        Self::CapacityCliff,
        Self::SlcCache,
        Self::HostNoise,
        Self::None,
    ];

    /// The word in every document.
    pub fn word(self) -> &'static str {
        match self {
            Self::Thermal => "thermal",
            Self::PeriodicStall => "periodic_stall",
            Self::Link => "link",
            Self::CapacityCliff => "capacity_cliff",
            Self::SlcCache => "slc_cache",
            Self::HostNoise => "host_noise",
            Self::None => "none",
        }
    }
}

/// Something that happened to the rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its cause.
    pub cause: Cause,
    /// More exactly: `step`, `gradual`, `duty`, `reset`, `renegotiated`, `stalls`, `page_cache`, `plateau`, `load`, `cliff`,
    /// `unknown_fall`.
    pub kind: String,
    /// First sample of it, in seconds.
    pub onset_s: f64,
    /// Its end; absent while it lasts to the end of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_s: Option<f64>,
    /// Operation that fell; absent where both did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<Op>,
    /// Level before, in MB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_mb_s: Option<f64>,
    /// Level after, in MB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_mb_s: Option<f64>,
    /// Fall in percent of the level before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_pct: Option<f64>,
    /// Temperature at the onset, in °C.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp_c: Option<f64>,
    /// Bytes of all operations until the onset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Its name.
    pub feature: String,
    /// Its figures, in words.
    pub value: String,
    /// How much it counts.
    pub weight: f64,
    /// The cause that it speaks for (or, with a negative weight, against).
    #[serde(rename = "for")]
    pub speaks_for: Cause,
}

/// Another cause, with its score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// The cause.
    pub cause: Cause,
    /// Its sum of weights.
    pub score: f64,
}

/// What is said of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Always 1.
    pub schema_version: u32,
    /// The headline.
    pub cause: Cause,
    /// True for [`Cause::Thermal`] only.
    pub throttled: bool,
    /// From 0 to 1.
    pub confidence: f64,
    /// First event of the headline cause, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onset_s: Option<f64>,
    /// When somebody who saw the samples one by one knew of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected_s: Option<f64>,
    /// Bytes written until the onset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onset_written_bytes: Option<u64>,
    /// Bytes of all operations until the onset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onset_total_bytes: Option<u64>,
    /// Temperature at the onset, in °C.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onset_temp_c: Option<f64>,
    /// Everything found, in the order of time.
    pub events: Vec<Event>,
    /// Figures by name; names end in their unit.
    pub metrics: BTreeMap<String, serde_json::Value>,
    /// For and against.
    pub evidence: Vec<Evidence>,
    /// Other causes that were weighed.
    pub alternatives: Vec<Alternative>,
    /// The series alone cannot decide.
    pub ambiguous: bool,
    /// The experiment that would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
}
