//! drivethru operates the drive *behind* a USB bridge: identity, temperature and SMART health over SCSI and SAT ATA
//! PASS-THROUGH, without harm and without waking a sleeping disk.
//!
//! ```text
//! drive      open, detect, temperature, health, info
//! ata, nvme  what a drive's sectors and pages mean
//! bridge     how a taskfile travels inside CDBs
//! scsi       sense, INQUIRY, VPD, log pages
//! transport  SG_IO, the simulator; guard, trace, record and replay as layers around them
//! ```
//!
//! ```
//! use drivethru::drive::{Care, Drive, OpenOptions};
//!
//! # fn main() -> Result<(), drivethru::drive::DriveError> {
//! // A simulated SSD behind a simulated bridge; on a real machine this is /dev/sdX or /dev/sgN.
//! let mut drive = Drive::open("sim:ssd", &OpenOptions::default(), Care::NoWake)?;
//! let temperature = drive.temperature()?;
//! assert_eq!(temperature.source.map(|s| s.word()), Some("sct_status"));
//! assert_eq!(drive.commands_sent(), 2); // IDENTIFY DEVICE, SCT status
//! let health = drive.health(false)?;
//! assert_eq!(health.self_assessment_passed, Some(true));
//! # Ok(())
//! # }
//! ```
//!
//! Not supported: writing of any kind, NVMe tunnels and vendor dialects of bridges (such bridges are recognised, and nothing
//! is sent to them), raw USB access without the kernel's driver, systems other than Linux.
#![deny(unsafe_code)]

pub mod ata;
pub mod bench;
pub mod bridge;
#[cfg(feature = "cli")]
pub mod cli;
pub mod drive;
pub mod freemap;
pub mod nvme;
pub mod permit;
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

/// The examples in the README are compiled and run too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
