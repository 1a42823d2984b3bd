//! A mounted file system: it trims its own free space, where the kernel's path to the device is open.

use std::path::Path;

use super::paths::{Method, Refused};
use super::plan::Plan;
use super::report::{Done, Ending, Target, TrimReport};
use super::{Ask, Refusal, TrimError, TrimRun, What};
use crate::drive::{DeviceRef, OpenOptions};
use crate::sys::usage::{Mount, Use};
use crate::time::{Clock, RealClock};
use crate::transport::TransportError;
use crate::transport::block::trim_mounted;

/// Plans, and with [`Ask::commit`] does, FITRIM on what is mounted at `mount`.
///
/// # Errors
/// Nothing was done: the kernel does not discard there, or something else than free space was asked for.
pub fn run_mounted(mount: &Mount, options: &OpenOptions, ask: &Ask) -> Result<TrimRun, TrimError> {
    let name = mount.point.display().to_string();
    let What::Free { .. } = ask.what else {
        return Err(in_use(mount, &name, false).into());
    };
    let facts = mount.number.split_once(':').and_then(|(major, minor)| {
        options
            .sysfs
            .by_number(true, major.parse().ok()?, minor.parse().ok()?)
    });
    if ask.verify {
        return Err(TrimError::BadRange(
            "--verify needs the file system unmounted: what it discarded nobody else knows".to_owned(),
        ));
    }
    if facts.is_none() {
        // Several devices (btrfs), none at all, or a mapped one: which disks would be trimmed is not known here.
        return Err(Refusal::UsageUnknown {
            device: name,
            why: "what is mounted here has no one disk of its own; fstrim is the tool for it".to_owned(),
        }
        .into());
    }
    let closed = match facts
        .as_ref()
        .map(|f| (f.discard_max_bytes, &f.provisioning_mode))
    {
        Some((None | Some(0), mode)) => Some(format!(
            "the kernel has it switched off for this device (discard_max_bytes is 0, provisioning_mode is {})",
            mode.as_deref().unwrap_or("not told")
        )),
        _ => None,
    };
    if ask
        .method
        .is_some_and(|m| !matches!(m, Method::Kernel | Method::Fitrim))
        || closed.is_some()
    {
        return Err(in_use(mount, &name, closed.is_none()).into());
    }
    let mut report = TrimReport {
        schema: "drivethru-trim/1",
        schema_version: 1,
        device: DeviceRef {
            name: name.clone(),
            lun: 0,
            bay: 0,
            model: facts.as_ref().and_then(|f| f.scsi.product.clone()),
            serial: None,
            firmware: None,
            dialect: None,
            usb_id: facts
                .as_ref()
                .and_then(|f| f.usb.as_ref())
                .map(|usb| format!("{:04x}:{:04x}", usb.vid, usb.pid)),
            simulated: false,
        },
        target: Target {
            kind: "mount",
            name: name.clone(),
            partition: facts.as_ref().and_then(|f| f.partition),
            block_bytes: facts.as_ref().and_then(|f| f.logical_block_bytes).unwrap_or(512),
            blocks: 0,
            start_block: 0,
        },
        what: "free",
        commit: ask.commit,
        method: Some(Method::Fitrim),
        refused: Vec::<Refused>::new(),
        plan: Plan::new(&[], 0, 512, None),
        volumes: Vec::new(),
        left_alone: Vec::new(),
        failed_proofs: Vec::new(),
        stamp_left: None,
        proof: None,
        done: None,
        verified: None,
        ending: Ending::Planned,
    };
    if !ask.commit {
        return Ok(TrimRun { report, error: None });
    }
    let clock = RealClock::new();
    let start = clock.now();
    let error = match trim_mounted(Path::new(&mount.point)) {
        Ok(bytes) => {
            report.done = Some(Done {
                bytes,
                commands: 1,
                elapsed_seconds: clock.now().saturating_sub(start).as_secs_f64(),
            });
            report.ending = Ending::Done;
            None
        }
        Err(error) => {
            report.done = Some(Done::default());
            report.ending = match &error {
                TransportError::Os { source, .. } if *source == nix::errno::Errno::EOPNOTSUPP => {
                    Ending::NoMethod
                }
                error => Ending::Stopped {
                    why: error.to_string(),
                },
            };
            matches!(report.ending, Ending::Stopped { .. }).then(|| error.into())
        }
    };
    Ok(TrimRun { report, error })
}

fn in_use(mount: &Mount, name: &str, kernel_can_trim: bool) -> Refusal {
    Refusal::InUse {
        device: name.to_owned(),
        uses: vec![Use {
            node: mount.source.trim_start_matches("/dev/").to_owned(),
            partition: None,
            how: format!("mounted at {name}"),
        }],
        kernel_can_trim,
    }
}
