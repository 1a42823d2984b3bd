//! A series: rate, bytes and temperature over time.

use serde::{Deserialize, Serialize};

/// What a sample was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Bytes to the device.
    Write,
    /// Bytes from the device.
    Read,
    /// Nothing moved on purpose.
    Idle,
}

impl Op {
    /// The word in every file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Idle => "idle",
        }
    }
}

/// One interval, usually a second. What was not measured is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// End of the interval on the run's clock, in seconds.
    pub t_s: f64,
    /// Bytes completed in it by its length, in 10^6 bytes per second.
    pub mb_s: f64,
    /// Completed bytes of all operations since the start of the run.
    pub cumulative_bytes: u64,
    /// A temperature that was read in this interval, in °C.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp_c: Option<f64>,
    /// What moved most bytes.
    pub op: Op,
    /// Time that the reading took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smart_ms: Option<f64>,
    /// Mean electrical power, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// Requests completed per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<f64>,
    /// 99th percentile of the latency, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lat_p99_us: Option<f64>,
    /// Bytes that the other operation than `op` moved in it; absent where it moved none, or nobody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_bytes: Option<u64>,
}

impl Sample {
    /// A sample of which only time, rate and operation are known.
    pub fn new(t_s: f64, mb_s: f64, op: Op) -> Self {
        Self {
            t_s,
            mb_s,
            cumulative_bytes: 0,
            temp_c: None,
            op,
            smart_ms: None,
            power_w: None,
            iops: None,
            lat_p99_us: None,
            other_bytes: None,
        }
    }
}

/// What a series had moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes to the device.
    pub written_bytes: u64,
    /// Bytes in both directions.
    pub total_bytes: u64,
}

impl Moved {
    /// By the end of these samples, from the start of the run.
    pub fn by(samples: &[Sample]) -> Self {
        let mut moved = Self::default();
        for sample in samples {
            let all = sample.cumulative_bytes.saturating_sub(moved.total_bytes);
            let other = sample.other_bytes.unwrap_or(0).min(all);
            moved.written_bytes += match sample.op {
                Op::Write => all - other,
                Op::Read => other,
                Op::Idle => 0,
            };
            moved.total_bytes = sample.cumulative_bytes;
        }
        moved
    }

    /// Bytes from the device.
    pub fn read_bytes(self) -> u64 {
        self.total_bytes.saturating_sub(self.written_bytes)
    }
}

/// Something that the system said during the run: a reset, a change of the link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// When, on the run's clock, in seconds.
    pub t_s: f64,
    /// What, in the system's words.
    pub text: String,
}

/// What is known beside the samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Context {
    /// Size of the medium in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Ceiling of the negotiated link, in 10^6 bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_mb_s: Option<f64>,
    /// Distance of temperature readings in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp_interval_s: Option<f64>,
    /// Whether there is a sensor at all; absent: the samples tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_temp: Option<bool>,
    /// Where on the medium the run starts, in bytes.
    #[serde(default)]
    pub start_offset_bytes: u64,
    /// What the system said meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Samples in the order of their time, and what is known beside them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The samples.
    pub samples: Vec<Sample>,
    /// The rest.
    #[serde(default)]
    pub context: Context,
}
