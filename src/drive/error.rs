//! Why a drive could not be opened or read, as facts; the command line adds what to do about it.

use crate::bridge::BridgeError;
use crate::bridge::memory::Harm;
use crate::sys::lock::LockError;
use crate::transport::TransportError;
use crate::transport::layer::replay::ReplayError;

/// One dialect that was tried and did not work.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Rejected {
    /// The dialect's name.
    pub dialect: String,
    /// Why it was rejected.
    pub why: String,
}

/// Why there is no way to the drive behind a bridge.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoPassThrough {
    /// SAT was tried and every form of it was refused or not believed.
    Refused {
        /// What was tried.
        tried: Vec<Rejected>,
    },
    /// The bridge tables say that there is none.
    KnownWithout {
        /// Source of the fact.
        evidence: String,
    },
    /// The bridge tables say that probing hangs it.
    KnownToHang {
        /// Source of the fact.
        evidence: String,
    },
    /// It speaks a vendor dialect that this version does not carry.
    Foreign {
        /// That dialect's name.
        dialect: String,
        /// Source of the fact.
        evidence: String,
    },
    /// An NVMe drive behind a vendor's tunnel, which this version does not carry.
    NvmeTunnel {
        /// Whose tunnel.
        maker: String,
        /// Source of the fact.
        evidence: String,
    },
    /// The kernel driver refuses ATA PASS-THROUGH for this vendor under uas.
    KernelRefuses {
        /// VID:PID.
        id: String,
    },
    /// The device is no disk.
    NotADisk {
        /// Peripheral device type.
        peripheral_type: u8,
    },
    /// The user asked for the SCSI view.
    AskedForScsi,
}

impl std::fmt::Display for NoPassThrough {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused { tried } => {
                f.write_str("nothing answers like an ATA drive")?;
                // One reason often holds for several forms.
                let mut seen: Vec<&str> = Vec::new();
                for rejected in tried {
                    if seen.contains(&rejected.why.as_str()) {
                        continue;
                    }
                    let forms: Vec<&str> = tried
                        .iter()
                        .filter(|t| t.why == rejected.why)
                        .map(|t| t.dialect.as_str())
                        .collect();
                    write!(
                        f,
                        "{} {}: {}",
                        if seen.is_empty() { ":" } else { ";" },
                        forms.join(" and "),
                        rejected.why
                    )?;
                    seen.push(&rejected.why);
                }
                Ok(())
            }
            Self::KnownWithout { evidence } => write!(
                f,
                "this bridge or flash controller has no pass-through ({evidence})"
            ),
            Self::KnownToHang { evidence } => write!(
                f,
                "this bridge hangs when probed, so nothing was sent ({evidence})"
            ),
            Self::Foreign { dialect, evidence } => {
                write!(
                    f,
                    "this bridge speaks the {dialect} dialect, which this version does not carry ({evidence})"
                )
            }
            Self::NvmeTunnel { maker, evidence } => write!(
                f,
                "an NVMe drive behind {maker}'s own tunnel, which this version does not carry ({evidence})"
            ),
            Self::KernelRefuses { id } => {
                write!(
                    f,
                    "the kernel's uas driver refuses ATA PASS-THROUGH for {id} and sent nothing"
                )
            }
            Self::NotADisk { peripheral_type } => {
                write!(f, "it is no disk (peripheral device type {peripheral_type:02x}h)")
            }
            Self::AskedForScsi => f.write_str("only the SCSI view was asked for"),
        }
    }
}

/// A drive could not be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// The device node or the transport failed, or a command was refused.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The bridge or the drive answered with a failure.
    #[error(transparent)]
    Bridge(BridgeError),
    /// The name means nothing here.
    #[error("{name}: {why}")]
    BadName {
        /// As given.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// An NVMe disk of its own, without a bridge in between.
    #[error("{name}: this is a native NVMe disk, not one behind a USB bridge")]
    NativeNvme {
        /// As given.
        name: String,
    },
    /// A recording that cannot be used.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Somebody else works on the device.
    #[error("{device}: {source}")]
    Locked {
        /// The device.
        device: String,
        /// Who, if known.
        source: LockError,
    },
    /// Left alone because reading would wake it, or might.
    #[error("{device}: left asleep: {why}")]
    Asleep {
        /// The device.
        device: String,
        /// How that is known.
        why: String,
        /// The power state, as far as it is known.
        state: super::power::PowerState,
        /// What it stores data on, as far as that is known: of flash memory some bridges always say that it sleeps.
        media: super::power::Media,
    },
    /// There is no way through to the drive.
    #[error("{device}: no SMART: {why}")]
    NoPassThrough {
        /// The device.
        device: String,
        /// Why.
        why: NoPassThrough,
    },
    /// An earlier probe harmed this bridge; nothing more is sent.
    #[error("{device}: nothing is sent: an earlier {} {} ({})", .harm.command, .harm.what, .harm.when)]
    HarmedBefore {
        /// The device.
        device: String,
        /// What happened then.
        harm: Harm,
    },
    /// An earlier run of this command harmed this bridge; it is left out.
    #[error("{device}: not asked for: an earlier {} {} ({})", .harm.command, .harm.what, .harm.when)]
    Avoided {
        /// The device.
        device: String,
        /// What happened then.
        harm: Harm,
    },
    /// A command ended in a reset, time-out or transport error just now.
    #[error("{device}: the bridge did not take that well, so nothing more was sent: {source}")]
    Harmed {
        /// The device.
        device: String,
        /// What happened.
        source: TransportError,
        /// It stands in the memory now.
        remembered: bool,
    },
    /// The drive offers no temperature that can be believed.
    #[error("{device}: no temperature: {why}")]
    NoTemperature {
        /// The device.
        device: String,
        /// What was looked at.
        why: String,
    },
    /// The drive answers, but has no SMART.
    #[error("{device}: the drive has no SMART: {why}")]
    NoSmart {
        /// The device.
        device: String,
        /// What it said.
        why: String,
    },
    /// The device answered a SCSI command with a failure.
    #[error("{device}: {command} [{cdb}]: {what}")]
    Answered {
        /// The device.
        device: String,
        /// The command's name.
        command: String,
        /// Its bytes.
        cdb: crate::transport::Cdb,
        /// Status or sense in words.
        what: String,
        /// The sense key, where there is sense data.
        sense_key: Option<u8>,
    },
    /// Answers of a device that do not fit together.
    #[error("{device}: {what}")]
    Odd {
        /// The device.
        device: String,
        /// What does not fit.
        what: String,
    },
    /// Data that a drive returned makes no sense.
    #[error("{device}: {source}")]
    Garbage {
        /// The device.
        device: String,
        /// What is wrong with it.
        source: crate::wire::WireError,
    },
}

impl From<BridgeError> for DriveError {
    fn from(error: BridgeError) -> Self {
        match error {
            BridgeError::Transport(error) => Self::Transport(error),
            other => Self::Bridge(other),
        }
    }
}
