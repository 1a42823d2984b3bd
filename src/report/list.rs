//! `list`: the document and its text.

use serde::Serialize;

use super::{Style, Tone, table};
use crate::drive::DeviceRef;
use crate::sys::NodeFacts;
use crate::sys::sysfs::BareBridge;
use crate::text::for_terminal;
use crate::units::human_bytes;

/// What works on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Works {
    /// Temperature and SMART through this dialect.
    Smart,
    /// The drive answers through this dialect, but has no SMART.
    Identity,
    /// Only what SCSI knows.
    ScsiOnly,
    /// Left asleep.
    Asleep,
    /// Not looked at: rights are missing.
    NeedsRoot,
    /// It failed.
    Failed,
}

/// One device of the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListEntry {
    /// What the operating system knows.
    pub host: NodeFacts,
    /// The inner drive, where it was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceRef>,
    /// What works.
    pub works: Works,
    /// Why not more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Document of `list`: `drivethru-list/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListReport {
    /// `drivethru-list/1`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// Disks.
    pub devices: Vec<ListEntry>,
    /// USB storage interfaces without a disk.
    pub without_disk: Vec<BareBridge>,
}

/// The list for people.
pub fn render(report: &ListReport, style: Style) -> String {
    if report.devices.is_empty() && report.without_disk.is_empty() {
        return "no USB storage device found; --all shows every SCSI disk\n".to_owned();
    }
    let shown = |s: Option<&String>| s.map(|s| for_terminal(s)).unwrap_or_default();
    let rows: Vec<Vec<String>> = report
        .devices
        .iter()
        .map(|entry| {
            let usb = entry.host.usb.as_ref();
            let scsi_name = [&entry.host.scsi.vendor, &entry.host.scsi.product]
                .into_iter()
                .flatten()
                .map(|s| for_terminal(s))
                .collect::<Vec<_>>()
                .join(" ");
            let model = entry.device.as_ref().and_then(|d| d.model.as_ref());
            let works = match entry.works {
                Works::Smart => style.paint(Tone::Good, "temp, smart"),
                Works::Identity => "identity".to_owned(),
                Works::ScsiOnly => "SCSI only".to_owned(),
                Works::Asleep => style.paint(Tone::Faint, "left asleep"),
                Works::NeedsRoot => style.paint(Tone::Warn, "needs root"),
                Works::Failed => style.paint(Tone::Bad, "failed"),
            };
            let dialect = entry.device.as_ref().and_then(|d| d.dialect).unwrap_or("-");
            vec![
                shown(entry.host.block_node.as_ref().or(entry.host.sg_node.as_ref())),
                usb.map_or_else(|| "-".to_owned(), |u| shown(u.port.as_ref())),
                usb.and_then(|u| u.speed_mbit_s)
                    .map_or_else(|| "-".to_owned(), |s| format!("{s}M")),
                shown(entry.host.driver.as_ref()),
                usb.map_or_else(
                    || scsi_name.clone(),
                    |u| format!("{:04x}:{:04x} {scsi_name}", u.vid, u.pid),
                ),
                model.map(|m| for_terminal(m)).unwrap_or_default(),
                entry.host.size_bytes.map(human_bytes).unwrap_or_default(),
                dialect.to_owned(),
                works,
            ]
        })
        .collect();
    let mut out = String::new();
    if !rows.is_empty() {
        out.push_str(&table(
            &[
                "Node", "Port", "Link", "Driver", "Bridge", "Drive", "Size", "Dialect", "Works",
            ],
            rows,
        ));
    }
    for bare in &report.without_disk {
        out.push_str(&format!(
            "{} {:04x}:{:04x} {}: no disk ({})\n",
            shown(bare.usb.port.as_ref()),
            bare.usb.vid,
            bare.usb.pid,
            shown(bare.usb.product.as_ref()),
            match &bare.driver {
                Some(driver) => format!("driver {}, but no drive or medium in it", for_terminal(driver)),
                None => "no driver took it".to_owned(),
            }
        ));
    }
    out
}
