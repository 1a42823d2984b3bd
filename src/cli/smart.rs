//! `smart DEV`.

use super::args::{SmartArgs, Test};
use super::exit::Exit;
use super::progress::Spinner;
use super::{Context, Stop, error_document, info, print};
use crate::ata::commands::OfflineTest;
use crate::drive::health::Verdict;
use crate::drive::{Access, Care, Drive, DriveError};
use crate::report;

/// The document's name, also where an error stands in its place.
const SCHEMA: &str = "drivethru-smart/1";

pub(super) fn run(context: &Context, args: &SmartArgs) -> Result<Exit, Stop> {
    context.start_recording()?;
    let device = context.device_name(&args.device);
    let spinner = Spinner::start(&format!("reading {device}"), context.common.verbose);
    let opened = open(context, args, &device);
    let read = opened
        .map_err(Stop::from)
        .and_then(|mut drive| match drive.access() {
            Access::Ata(_) => {
                start_test(&mut drive, args.test)?;
                let report = drive.health(args.all)?;
                Ok((drive, Some(report)))
            }
            Access::ScsiOnly(_) => Ok((drive, None)),
        });
    drop(spinner);
    match read {
        Ok((_, Some(mut report))) => {
            context.mask(&mut report.device);
            if context.common.json {
                context.print_json_pretty(&report)?;
            } else {
                print(&report::health::render(&report, context.style))?;
            }
            Ok(if report.verdict == Verdict::Failing {
                Exit::BadAnswer
            } else {
                Exit::Done
            })
        }
        Ok((drive, None)) => without_smart(context, drive),
        Err(Stop::Drive(error)) => {
            if context.common.json {
                context.print_json_pretty(&error_document(SCHEMA, &device, &error))?;
            }
            Err(Stop::Drive(error))
        }
        Err(other) => Err(other),
    }
}

fn open(context: &Context, args: &SmartArgs, device: &str) -> Result<Drive, DriveError> {
    let mut options = context.open_options(device);
    options.wake = args.wake;
    options.allowance.self_test = args.test.is_some();
    // A self-test spins the disk up anyway.
    let care = if args.test.is_some() {
        Care::MayWake
    } else {
        Care::NoWake
    };
    Drive::open(device, &options, care)
}

fn start_test(drive: &mut Drive, test: Option<Test>) -> Result<(), DriveError> {
    let Some(test) = test else { return Ok(()) };
    let (test, what) = match test {
        Test::Short => (
            OfflineTest::Short,
            "the short self-test runs in the background now",
        ),
        Test::Long => (
            OfflineTest::Extended,
            "the long self-test runs in the background now",
        ),
        Test::Abort => (OfflineTest::Abort, "the self-test is aborted"),
    };
    drive.self_test(test)?;
    super::note(&format!("{what}; the state below is the drive's own"));
    Ok(())
}

/// What SCSI knows of the device, and why there is no SMART.
fn without_smart(context: &Context, mut drive: Drive) -> Result<Exit, Stop> {
    let error = match drive.require_ata() {
        Err(error) => error,
        Ok(_) => return Ok(Exit::Done),
    };
    let mut known = drive.info()?;
    info::mask(context, &mut known);
    if context.common.json {
        let mut document = error_document(SCHEMA, drive.name(), &error);
        if let Some(fields) = document.as_object_mut() {
            fields.insert(
                "info".to_owned(),
                serde_json::to_value(&known).map_err(|e| Stop::Output(e.into()))?,
            );
        }
        context.print_json_pretty(&document)?;
    } else {
        print(&report::info::render(&known, context.style))?;
    }
    Err(error.into())
}
