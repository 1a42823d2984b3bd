//! The document of `trim`: what would be or was done, by which way, and what was left alone.

use serde::Serialize;

use super::paths::{Method, Refused};
use super::plan::Plan;
use super::proof::Proof;
use crate::drive::DeviceRef;

/// What the plan is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// `disk`, `partition`, `image` or `mount`.
    pub kind: &'static str,
    /// Its node, path or mount point.
    pub name: String,
    /// Number of the partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
    /// Bytes of one block: the unit of all addresses here.
    pub block_bytes: u32,
    /// Blocks of the target.
    pub blocks: u64,
    /// Where it starts on its disk, in blocks.
    pub start_block: u64,
}

/// A volume, and whether its free space is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// Number of its partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
    /// What is in it: `ext4`, `LUKS2`, `unknown`.
    pub what: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Free bytes found; absent where it is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Files and directories that were compared with the map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owners_checked: Option<u64>,
}

/// What stays as it is, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftAlone {
    /// `partition 2 (LUKS2)`, `gap of 1.0 MB at block 0` ...
    pub what: String,
    /// The reason.
    pub why: String,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Done {
    /// Bytes in commands that succeeded.
    pub bytes: u64,
    /// Commands that succeeded.
    pub commands: u64,
    /// Time that they took, in seconds of the device's clock.
    pub elapsed_seconds: f64,
}

/// What `--verify` found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Places in trimmed ranges that were read.
    pub samples: u64,
    /// Of them, those that read as they should.
    pub as_proven: u64,
    /// Those that do not read as zeroes, where none were promised: nobody can tell whether they were trimmed.
    pub cannot_tell: u64,
    /// Blocks beside trimmed ranges that were compared with what they held before.
    pub neighbours: u64,
    /// What is wrong, one line each (at most 20).
    pub wrong: Vec<String>,
    /// How many are wrong.
    pub wrong_count: u64,
}

impl Verified {
    pub(super) fn found(&mut self, what: String) {
        self.wrong_count += 1;
        if self.wrong.len() < 20 {
            self.wrong.push(what);
        }
    }
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Ending {
    /// A dry run: nothing was written.
    Planned,
    /// All of the plan was done.
    Done,
    /// There is nothing to trim.
    NothingToDo,
    /// No way is open.
    NoMethod,
    /// Ways were tried, and none is proven.
    NotProven,
    /// `--verify` found something wrong.
    VerifyFailed,
    /// It stopped before the end.
    Stopped {
        /// Why.
        why: String,
    },
    /// The user interrupted it.
    Interrupted,
}

/// Document of `trim`: `drivethru-trim/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrimReport {
    /// `drivethru-trim/1`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// Which device.
    pub device: DeviceRef,
    /// What of it.
    pub target: Target,
    /// `free`, `range` or `all`.
    pub what: &'static str,
    /// Whether it was to be done, and not only planned.
    pub commit: bool,
    /// The way that is used, or would be tried first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// The ways that are not, and why.
    pub refused: Vec<Refused>,
    /// What is or would be done.
    pub plan: Plan,
    /// The volumes of the target, where free space was looked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// What stays untouched.
    pub left_alone: Vec<LeftAlone>,
    /// Proofs that failed, in the order in which they were tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_proofs: Vec<Proof>,
    /// (First block of the whole disk, count) of what still holds the stamp of a proof in which the device failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stamp_left: Option<(u64, u64)>,
    /// The proof of the way that was used; its addresses count the whole disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// What was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<Done>,
    /// What `--verify` found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// How it ended.
    pub ending: Ending,
}
