//! Not waking a sleeper: what is known before, and how it is asked.

use serde::Serialize;

/// Power state of a drive as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerState {
    /// Working or ready to work at once.
    Active,
    /// Idle, but awake.
    Idle,
    /// Spun down, asleep or suspended.
    Standby,
    /// Nobody knows.
    Unknown,
}

/// What the drive stores data on, as far as it is known without asking the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Media {
    /// Flash: reading it never wakes anything that minds.
    Flash,
    /// Platters.
    Rotating,
    /// Nobody knows yet.
    Unknown,
}

impl PowerState {
    /// The word for it in every output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Idle => "idle",
            Self::Standby => "standby",
            Self::Unknown => "unknown",
        }
    }

    /// From what CHECK POWER MODE returned.
    pub fn from_power_mode(mode: crate::ata::power::PowerMode) -> Self {
        use crate::ata::power::PowerMode;
        match mode {
            PowerMode::ActiveOrIdle => Self::Active,
            other => match other.is_awake() {
                Some(true) => Self::Idle,
                Some(false) => Self::Standby,
                None => Self::Unknown,
            },
        }
    }

    /// From REQUEST SENSE: 5Eh/xx is "low power condition on" (SPC-4, "Power condition sense data").
    pub fn from_request_sense(asc: u8, ascq: u8) -> Self {
        match (asc, ascq) {
            // Low power condition on (which one is not said), standby and standby_y by timer or command, sleep
            (0x5e, 0x00 | 0x02 | 0x04 | 0x09 | 0x0a | 0x43 | 0x45) => Self::Standby,
            // Idle, idle_b, idle_c by timer or command
            (0x5e, 0x01 | 0x03 | 0x05..=0x08 | 0x42) => Self::Idle,
            (0x5e, 0x41) => Self::Active,
            _ => Self::Unknown,
        }
    }
}
