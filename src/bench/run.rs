//! The document of a run: `drivethru-bench/1`. Everything printed can be computed again from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::series::{Context, Notice, Op, Sample};
use super::verdict::Verdict;

/// Name and version of the document.
pub const SCHEMA: &str = "drivethru-bench/1";

/// What was measured. Strings come from the device and are not to be trusted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// The name that it was opened by.
    pub name: String,
    /// Whether it is simulated.
    pub simulated: bool,
    /// Inner drive's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Inner drive's serial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Inner drive's firmware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// The bridge: USB product and ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<String>,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// `seq`, `seq-consistency`, `das`, `mix`, ...
    pub name: String,
    /// What was in the buffers: `random`, `zero`, `mix:50`, ...
    pub data: String,
    /// Everything else that was chosen, by option name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, serde_json::Value>,
}

/// A stretch of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// `photos, pass 1, write`.
    pub name: String,
    /// What it moves.
    pub op: Op,
    /// Its start and end on the run's clock, in seconds.
    pub start_s: f64,
    /// See `start_s`.
    pub end_s: f64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Bytes by its whole length, a flush included, in MB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mb_s: Option<f64>,
    /// Lowest, 5th percentile and median of its samples, in MB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_mb_s: Option<f64>,
    /// See `min_mb_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p5_mb_s: Option<f64>,
    /// See `min_mb_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_mb_s: Option<f64>,
    /// Time of the flush at its end, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush_s: Option<f64>,
}

/// A row of a workload that gives a table (`mix`, ...).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// `4k 70/30, depth 32`.
    pub name: String,
    /// Figures by name, in the order of their names; empty when it hung.
    pub figures: BTreeMap<String, f64>,
    /// Requests never came back; it was given up.
    pub hang: bool,
}

/// A figure with its unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its value.
    pub value: f64,
    /// Its unit: `MB/s`, `GB`, `°C`, `s`, `IOPS`, `%`.
    pub unit: String,
}

/// How the requests were made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Engine {
    /// `sim`, `io_uring`, `sync`.
    pub name: String,
    /// Bytes per request.
    pub block_bytes: u64,
    /// Requests in flight that were asked for, and the mean that was reached.
    pub depth: u32,
    /// See `depth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached_depth: Option<f64>,
    /// Requests that were completed.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
}

/// How the temperature was read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampler {
    /// `sct_status`, `smart_194`, ...; absent where there is no temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Distance of readings, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<f64>,
    /// Median time of a reading, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_ms: Option<f64>,
    /// Readings that worked.
    pub readings: u64,
    /// Readings that did not.
    pub failures: u64,
    /// When it was given up, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired_s: Option<f64>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// All of it was done.
    Complete,
    /// Somebody stopped it.
    Aborted,
    /// The drive was too hot to go on.
    TooHot,
    /// The device is gone.
    Lost,
}

/// A run, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Always 1.
    pub schema_version: u32,
    /// What was measured.
    pub device: Device,
    /// What was done.
    pub workload: Workload,
    /// Wall time at the start, RFC 3339.
    pub started: String,
    /// How it ended.
    pub ending: Ending,
    /// The samples, raw.
    pub samples: Vec<Sample>,
    /// What is known beside them.
    pub context: Context,
    /// Stretches of the run, in the order of time.
    pub phases: Vec<Phase>,
    /// Rows, for workloads that give a table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Row>,
    /// Why the rate fell.
    pub verdict: Verdict,
    /// Figures of the workload, by name.
    pub figures: BTreeMap<String, Figure>,
    /// How requests were made.
    pub engine: Engine,
    /// How the temperature was read.
    pub sampler: Sampler,
    /// What else is to be said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the system said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}
