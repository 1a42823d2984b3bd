//! `info DEV`.

use super::exit::Exit;
use super::progress::Spinner;
use super::{Context, Stop, error_document, print};
use crate::drive::info::InfoReport;
use crate::drive::{Care, Drive};
use crate::report;
use crate::text::mask_serial;

pub(super) fn run(context: &Context, device: &str) -> Result<Exit, Stop> {
    let device = &context.device_name(device);
    context.start_recording()?;
    let spinner = Spinner::start(&format!("reading {device}"), context.common.verbose);
    let options = context.open_options(device);
    let read = Drive::open(device, &options, Care::MayWake).and_then(|mut drive| drive.info());
    drop(spinner);
    let mut report = match read {
        Ok(report) => report,
        Err(error) => {
            if context.common.json {
                context.print_json_pretty(&error_document("drivethru-info/1", device, &error))?;
            }
            return Err(error.into());
        }
    };
    mask(context, &mut report);
    if context.common.json {
        context.print_json_pretty(&report)?;
    } else {
        print(&report::info::render(&report, context.style))?;
    }
    Ok(Exit::Done)
}

/// Hides what tells this device from its twins.
pub(super) fn mask(context: &Context, report: &mut InfoReport) {
    if !context.common.mask {
        return;
    }
    context.mask(&mut report.device);
    if let Some(identify) = &mut report.identify {
        identify.serial = identify.serial.as_deref().map(mask_serial);
        identify.wwn = None;
    }
    if let Some(usb) = &mut report.host.usb {
        usb.serial = usb.serial.as_deref().map(mask_serial);
    }
    if let Some(inquiry) = &mut report.inquiry {
        inquiry.vendor_specific = None;
    }
    // Unit serial number, designators and the IDENTIFY copy would give it away again.
    report
        .vpd_pages
        .retain(|page| !matches!(page.page_code, 0x80 | 0x83 | 0x89));
}
