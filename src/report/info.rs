//! `info`: text.

use super::health::exact_bytes;
use super::{Style, Tone, device_line, key_values};
use crate::drive::FoundBy;
use crate::drive::info::InfoReport;
use crate::drive::power::Media;
use crate::text::for_terminal;

/// The whole document for people.
pub fn render(report: &InfoReport, style: Style) -> String {
    let mut out = format!("{}\n", device_line(&report.device));
    out.push_str("\nBridge\n");
    let usb = report.host.usb.as_ref();
    let shown = |s: &Option<String>| s.as_deref().map(for_terminal);
    let joined = |parts: [Option<String>; 2]| {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    };
    let inquiry = report.inquiry.as_ref();
    out.push_str(&key_values(&[
        (
            "USB id",
            usb.map(|u| format!("{:04x}:{:04x}, revision {:04x}", u.vid, u.pid, u.bcd_device)),
        ),
        (
            "USB name",
            usb.and_then(|u| joined([shown(&u.manufacturer), shown(&u.product)])),
        ),
        ("port", usb.and_then(|u| shown(&u.port))),
        (
            "link",
            usb.and_then(|u| u.speed_mbit_s).map(|s| format!("{s} Mbit/s")),
        ),
        ("driver", shown(&report.host.driver)),
        (
            "SCSI name",
            inquiry.and_then(|i| joined([shown(&i.vendor), shown(&i.product)])),
        ),
        ("SCSI revision", inquiry.and_then(|i| shown(&i.revision))),
        (
            "nodes",
            joined([shown(&report.host.block_node), shown(&report.host.sg_node)]),
        ),
    ]));
    out.push_str("\nWay to the drive\n");
    let access = &report.access;
    let found = match &access.found_by {
        FoundBy::Named => "named by you".to_owned(),
        FoundBy::Remembered => "remembered from an earlier run".to_owned(),
        FoundBy::Table { evidence } => format!("from the bridge table ({evidence})"),
        FoundBy::Probed => "it answered".to_owned(),
    };
    match access.dialect {
        Some(dialect) => out.push_str(&key_values(&[("dialect", Some(format!("{dialect} ({found})")))])),
        None => {
            let why = access
                .no_pass_through
                .as_ref()
                .map(|w| for_terminal(&w.to_string()));
            out.push_str(&key_values(&[
                ("dialect", Some(style.paint(Tone::Warn, "none"))),
                ("why", why),
            ]));
        }
    }
    for tried in access.tried.iter().filter(|_| access.dialect.is_some()) {
        out.push_str(&format!(
            "  rejected {}: {}\n",
            tried.dialect,
            for_terminal(&tried.why)
        ));
    }
    if let Some(identify) = &report.identify {
        out.push_str("\nDrive\n");
        let yes = |known: Option<bool>| known.map(|b| if b { "yes" } else { "no" }.to_owned());
        let trim = match (
            identify.trim.supported,
            identify.trim.deterministic,
            identify.trim.zeroes,
        ) {
            (false, _, _) => "no".to_owned(),
            (true, _, true) => "yes, trimmed sectors read as zeros".to_owned(),
            (true, true, false) => "yes, trimmed sectors read the same each time".to_owned(),
            (true, false, false) => "yes, what trimmed sectors read as is not promised".to_owned(),
        };
        let smart = match (identify.smart.supported, identify.smart.enabled) {
            (Some(true), Some(true)) => Some("yes, enabled".to_owned()),
            (Some(true), Some(false)) => Some("yes, but switched off".to_owned()),
            (supported, _) => yes(supported),
        };
        let media = match (report.media, identify.rotation_rpm) {
            (Media::Rotating, Some(rpm)) => Some(format!("rotating, {rpm} rpm")),
            (Media::Rotating, None) => Some("rotating".to_owned()),
            (Media::Flash, _) => Some("flash".to_owned()),
            (Media::Unknown, _) => None,
        };
        let sectors = match (identify.logical_sector_bytes, identify.physical_sector_bytes) {
            (Some(logical), Some(physical)) if logical == physical => Some(format!("{logical} bytes")),
            (Some(logical), Some(physical)) => Some(format!("{logical} bytes logical, {physical} physical")),
            (logical, _) => logical.map(|l| format!("{l} bytes")),
        };
        out.push_str(&key_values(&[
            ("model", shown(&identify.model)),
            ("serial", shown(&identify.serial)),
            ("firmware", shown(&identify.firmware)),
            ("size", identify.capacity_bytes.map(exact_bytes)),
            ("sectors", sectors),
            ("media", media),
            ("SMART", smart),
            ("TRIM", Some(trim)),
        ]));
    }
    let sizes = &report.sizes;
    if sizes.agree != Some(true) {
        out.push_str("\nAs the host sees it\n");
        out.push_str(&key_values(&[
            ("size", sizes.host_bytes.map(exact_bytes)),
            ("blocks", sizes.host_block_bytes.map(|b| format!("{b} bytes"))),
        ]));
    }
    for remark in &report.remarks {
        out.push_str(&format!(
            "\n{} {}\n",
            style.paint(Tone::Warn, "note:"),
            for_terminal(remark)
        ));
    }
    out
}
