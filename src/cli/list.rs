//! `list`.

use super::exit::Exit;
use super::progress::Spinner;
use super::{Context, Stop, print};
use crate::drive::{Access, Care, Drive, DriveError};
use crate::report;
use crate::report::list::{ListEntry, ListReport, Works};
use crate::sys::NodeFacts;
use crate::sys::sysfs::Sysfs;
use crate::text::mask_serial;
use crate::transport::TransportError;

pub(super) fn run(context: &Context, all: bool) -> Result<Exit, Stop> {
    if context.common.record.is_some() {
        return Err(Stop::Usage(
            "--record takes one device; use it with info, temp, smart or raw".to_owned(),
        ));
    }
    let sysfs = Sysfs::default();
    let disks = sysfs
        .scsi_disks()
        .into_iter()
        .filter_map(|name| sysfs.block(&name));
    let devices = disks
        .filter(|facts| all || facts.usb.is_some())
        .map(|facts| entry(context, facts))
        .collect();
    let mut without_disk = sysfs.bare_bridges();
    if context.common.mask {
        for bridge in &mut without_disk {
            bridge.usb.serial = bridge.usb.serial.as_deref().map(mask_serial);
        }
    }
    let report = ListReport {
        schema: "drivethru-list/1",
        schema_version: 1,
        devices,
        without_disk,
    };
    if context.common.json {
        context.print_json_pretty(&report)?;
    } else {
        print(&report::list::render(&report, context.style))?;
    }
    Ok(Exit::Done)
}

fn entry(context: &Context, mut facts: NodeFacts) -> ListEntry {
    let node = facts
        .block_node
        .clone()
        .or_else(|| facts.sg_node.clone())
        .unwrap_or_default();
    let spinner = Spinner::start(&format!("looking at {node}"), context.common.verbose);
    let opened = Drive::open(&node, &context.open_options(&node), Care::NoWake);
    drop(spinner);
    let (device, works, why) = match opened {
        Ok(drive) => {
            let mut device = drive.device_ref();
            context.mask(&mut device);
            match drive.access() {
                Access::Ata(_) => match drive.identify().and_then(|i| i.smart().supported) {
                    Some(false) => (
                        Some(device),
                        Works::Identity,
                        Some("the drive has no SMART".to_owned()),
                    ),
                    _ => (Some(device), Works::Smart, None),
                },
                Access::ScsiOnly(why) => (Some(device), Works::ScsiOnly, Some(why.to_string())),
            }
        }
        Err(error) => {
            let works = match &error {
                DriveError::Asleep { .. } => Works::Asleep,
                DriveError::Transport(TransportError::PermissionDenied { .. }) => Works::NeedsRoot,
                _ => Works::Failed,
            };
            (None, works, Some(error.to_string()))
        }
    };
    facts.scsi.inquiry = None;
    facts.scsi.vpd_pages.clear();
    if context.common.mask
        && let Some(usb) = &mut facts.usb
    {
        usb.serial = usb.serial.as_deref().map(mask_serial);
    }
    ListEntry {
        host: facts,
        device,
        works,
        why,
    }
}
