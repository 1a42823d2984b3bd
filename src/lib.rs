//! drivethru operates the drive *behind* a USB bridge.
#![deny(unsafe_code)]

pub mod ata;
pub mod bridge;
#[cfg(feature = "cli")]
pub mod cli;
pub mod drive;
pub mod nvme;
#[cfg(feature = "cli")]
pub mod report;
pub mod scsi;
pub mod sim;
pub mod sys;
pub mod text;
pub mod time;
pub mod transport;
pub mod units;
pub mod wire;
