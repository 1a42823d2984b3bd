//! The other side: simulated drives behind simulated bridges.
//!
//! Written from the standards by its own code. It imports only the leaves (`units`, `text`, `time`, `sys`, `wire`), never
//! `scsi`, `bridge`, `ata` or `nvme`: an encoder shared with the product would turn a mistake made twice into a passing test.

use std::sync::Arc;
use std::time::Duration;

use crate::sys::NodeFacts;
use crate::time::VirtualClock;

/// What a simulated target did with one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It answered; the virtual clock has moved by `elapsed`.
    Answered {
        /// SCSI status byte.
        status: u8,
        /// Sense data, empty when there is none.
        sense: Vec<u8>,
        /// Data-in bytes, cut to what the host asked for.
        data: Vec<u8>,
        /// Time it took on the virtual clock.
        elapsed: Duration,
    },
    /// Nothing came back within the time-out; the virtual clock has moved by `elapsed`.
    TimedOut {
        /// Time until the host gave up, including the reset that follows.
        elapsed: Duration,
    },
    /// The bridge dropped off the bus.
    Gone,
}

/// One simulated drive behind one simulated bridge.
#[derive(Debug)]
pub struct Target {}

/// A `sim:` name that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct SpecError {
    /// What is wrong and what exists instead.
    pub why: String,
}

/// One line of `drivethru sim list`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ProfileSummary {
    /// The name after `sim:`.
    pub name: String,
    /// What it is, in one sentence.
    pub title: String,
    /// Inner drive.
    pub drive: String,
    /// Bridge.
    pub bridge: String,
}

/// All built-in profiles, in the order of their names.
pub fn profiles() -> Vec<ProfileSummary> {
    Vec::new()
}

impl Target {
    /// Opens what follows `sim:`: `PROFILE[,option=value...]`.
    ///
    /// # Errors
    /// An unknown profile or option, with the known ones in the text.
    pub fn open(spec: &str) -> Result<Self, SpecError> {
        Err(SpecError {
            why: format!("unknown profile {spec:?}"),
        })
    }

    /// Runs one command to its end on the virtual clock.
    pub fn command(
        &mut self,
        _cdb: &[u8],
        _data_out: &[u8],
        _in_len_bytes: usize,
        _timeout: Duration,
    ) -> Reply {
        Reply::Gone
    }

    /// The clock that all of this target's time passes on.
    pub fn clock(&self) -> Arc<VirtualClock> {
        Arc::new(VirtualClock::new())
    }

    /// What a kernel would have cached about it when it was plugged in.
    pub fn facts(&self) -> NodeFacts {
        NodeFacts::default()
    }
}
