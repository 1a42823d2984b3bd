//! From an error to what the user can do about it, naming flags. The library states facts; this is the only place that advises.

use crate::bridge::{BridgeError, Failure};
use crate::drive::power::{Media, PowerState};
use crate::drive::{DriveError, NoPassThrough};
use crate::sys::lock::LockError;
use crate::transport::TransportError;

/// What to try; empty when nothing helps.
pub fn advise(error: &DriveError) -> Vec<String> {
    let one = |text: &str| vec![text.to_owned()];
    match error {
        DriveError::Transport(error) => advise_transport(error),
        DriveError::Harmed {
            source, remembered, ..
        } => {
            let mut advice =
                vec!["unplug the bridge, plug it in again, and see whether the disk is well".to_owned()];
            if *remembered {
                advice.push(
                    "that is remembered, and not sent to this bridge again; --forget clears it, --dialect NAME skips the probing"
                        .to_owned(),
                );
            }
            advice.extend(advise_transport(source));
            advice
        }
        DriveError::Avoided { .. } => {
            one("--forget clears what is remembered of this bridge, and it is asked again")
        }
        DriveError::HarmedBefore { .. } => {
            vec!["name the dialect if you know it (--dialect NAME), or --forget and try once more".to_owned()]
        }
        DriveError::Asleep {
            state: PowerState::Standby,
            media: Media::Unknown,
            ..
        } => vec![
            "--wake reads it anyway".to_owned(),
            "if it is flash memory, its bridge says so always: once read with --wake, that is remembered"
                .to_owned(),
        ],
        DriveError::Asleep { .. } => one("--wake reads it anyway"),
        DriveError::Locked {
            source: LockError::Held { .. },
            ..
        } => one("wait until the other run is over"),
        DriveError::Locked { .. } => one("run it as the user who made the lock file, or as root"),
        DriveError::NativeNvme { .. } => {
            one("use `nvme smart-log` of nvme-cli; drivethru is for disks behind USB bridges")
        }
        DriveError::BadName { name, .. } if name.starts_with("sim:") => {
            one("`drivethru sim list` shows the profiles")
        }
        DriveError::BadName { .. } | DriveError::Replay(_) => Vec::new(),
        DriveError::NoPassThrough { why, .. } => advise_no_pass_through(why),
        DriveError::NoSmart { why, .. } if why.contains("switched off") => vec![
            "switch it on: drivethru raw DEV a1 06 00 d8 00 00 4f c2 00 b0 00 00".to_owned(),
            "or, if the dialect is sat16: drivethru raw DEV 85 06 00 00 d8 00 00 00 00 00 4f 00 c2 00 b0 00"
                .to_owned(),
        ],
        DriveError::NoSmart { .. } | DriveError::NoTemperature { .. } => {
            one("`drivethru info DEV` shows what this drive offers")
        }
        DriveError::Answered {
            sense_key: Some(6), ..
        } => one("the device was reset or changed in the meantime: look at `dmesg`, then run it again"),
        DriveError::Answered { .. } | DriveError::Odd { .. } => evidence(),
        DriveError::Garbage { .. } => one("the bridge garbles data: try another dialect (--dialect sat16)"),
        DriveError::Bridge(BridgeError::Transport(error)) => advise_transport(error),
        DriveError::Bridge(error) => match error.failure() {
            Some(Failure::NotReady { .. }) => {
                one("is there a medium in it, and is the disk spun up? try again in a moment")
            }
            Some(Failure::Aborted { .. }) => {
                one("this drive does not do that; `drivethru info DEV` shows what it offers")
            }
            Some(Failure::CannotCarry { .. } | Failure::FieldRefused { .. }) => {
                one("`drivethru info DEV` shows the dialect in use; another may carry it (--dialect sat16)")
            }
            _ => evidence(),
        },
    }
}

fn advise_transport(error: &TransportError) -> Vec<String> {
    match error {
        TransportError::NotFound { .. } => vec!["`drivethru list` shows what is there".to_owned()],
        TransportError::PermissionDenied { .. } => {
            vec!["run it as root (SCSI pass-through needs it)".to_owned()]
        }
        TransportError::NotScsi { .. } => {
            vec!["name a disk: /dev/sdX or /dev/sgN; `drivethru list` shows them".to_owned()]
        }
        TransportError::Busy { .. } => vec![
            "unmount it, or wait until the other program lets go of it; `lsblk` and `fuser -v` tell who has it".to_owned(),
        ],
        TransportError::TimedOut { .. } => vec![
            "the kernel resets a device that does not answer: look at `dmesg`".to_owned(),
            "a disk that spins up may need longer: --timeout 60s".to_owned(),
        ],
        TransportError::Gone { .. } => {
            vec!["it dropped off the bus: look at `dmesg`, cable and power".to_owned()]
        }
        TransportError::Refused { .. } => {
            vec!["commands that write or are unknown are never sent but by the verbs made for them".to_owned()]
        }
        TransportError::ReplayMismatch { .. } => {
            vec!["replay the verb, options and dialect that were recorded".to_owned()]
        }
        TransportError::Failed { .. } => evidence(),
        _ => Vec::new(),
    }
}

fn advise_no_pass_through(why: &NoPassThrough) -> Vec<String> {
    match why {
        NoPassThrough::Refused { tried } if tried.iter().any(|t| t.why.starts_with("claims success")) => vec![
            "something answers, but not with the drive's own data: is there a drive in it, and is its plug seated?".to_owned(),
            "--record failure.xchg keeps the answers as evidence for a report".to_owned(),
        ],
        NoPassThrough::Refused { .. } => vec![
            "plain USB sticks and card readers have no SMART at all; `drivethru info DEV` shows what SCSI knows".to_owned(),
            "if there is a SATA drive inside, its bridge may need another cable, port or firmware".to_owned(),
        ],
        NoPassThrough::KnownWithout { .. } => {
            vec!["`drivethru info DEV` shows what SCSI knows; --dialect sat tries anyway".to_owned()]
        }
        NoPassThrough::KnownToHang { .. } | NoPassThrough::Foreign { .. } => {
            vec!["smartctl has options for such bridges: see its manual page, option -d".to_owned()]
        }
        NoPassThrough::NvmeTunnel { .. } => {
            vec!["smartctl -d snt... reads such bridges: see its manual page, option -d".to_owned()]
        }
        NoPassThrough::KernelRefuses { id } => vec![
            format!(
                "use plain usb-storage for it: add {id}:u to /sys/module/usb_storage/parameters/quirks, keeping what is there, \
                 and plug it in again"
            ),
            format!("or keep uas and lift the refusal: add {id}: there instead (with no letters)"),
        ],
        NoPassThrough::NotADisk { .. } | NoPassThrough::AskedForScsi => Vec::new(),
    }
}

fn evidence() -> Vec<String> {
    vec!["rerun with --record failure.xchg: that file is the evidence to attach to a report".to_owned()]
}
