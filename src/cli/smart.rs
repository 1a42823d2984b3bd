//! `smart DEV`.

use super::args::{SmartArgs, Test};
use super::exit::Exit;
use super::progress::Spinner;
use super::{Context, Stop, print};
use crate::ata::commands::OfflineTest;
use crate::drive::health::Verdict;
use crate::drive::{Care, Drive};
use crate::report;

pub(super) fn run(context: &Context, args: &SmartArgs) -> Result<Exit, Stop> {
    context.start_recording()?;
    let device = context.device_name(&args.device);
    let mut options = context.open_options(&device);
    options.wake = args.wake;
    options.allowance.self_test = args.test.is_some();
    // A self-test spins the disk up anyway.
    let care = if args.test.is_some() {
        Care::MayWake
    } else {
        Care::NoWake
    };
    let spinner = Spinner::start(&format!("reading {device}"), context.common.verbose);
    let mut drive = Drive::open(&device, &options, care)?;
    if let Some(test) = args.test {
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
    }
    let mut report = drive.health(args.all)?;
    drop(spinner);
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
