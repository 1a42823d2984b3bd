//! `temp DEV...`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::args::{Format, TempArgs};
use super::exit::Exit;
use super::{Context, Stop, advice, complain, print};
use crate::drive::temperature::TempReport;
use crate::drive::{Care, Drive, DriveError};
use crate::report;
use crate::report::temp::{CSV_HEADER, Outcome};
use crate::time::{Clock, RealClock, SharedClock, VirtualClock};

/// Pauses are cut so short that an interrupt is felt at once.
const SLICE: Duration = Duration::from_millis(50);

/// One device and its state between readings.
struct Polled<'a> {
    name: &'a str,
    drive: Option<Drive>,
    /// The time that counts while the drive is not open.
    clock: SharedClock,
    /// The last complaint; the same one is not repeated at each reading.
    complained: Option<String>,
}

/// What one reading brought.
type Taken = Result<TempReport, Box<DriveError>>;

pub(super) fn run(context: &Context, args: &TempArgs) -> Result<Exit, Stop> {
    let format = if context.common.json {
        Format::Json
    } else {
        args.format
    };
    if context.common.record.is_some() && args.devices.len() > 1 {
        return Err(Stop::Usage("--record takes one device".to_owned()));
    }
    let every = args.every.or(args.count.map(|_| Duration::from_secs(1)));
    let interrupted = Arc::new(AtomicBool::new(false));
    if every.is_some() {
        for signal in [
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
            signal_hook::consts::SIGHUP,
        ] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
    }
    let mut polled: Vec<Polled<'_>> = args
        .devices
        .iter()
        .map(|name| Polled {
            name,
            drive: None,
            clock: if is_simulation(name) || name.starts_with("replay:") {
                Arc::new(VirtualClock::new())
            } else {
                RealClock::shared()
            },
            complained: None,
        })
        .collect();
    let real = RealClock::new();
    let mut exit = Exit::Done;
    let mut round: u64 = 0;
    loop {
        let taken: Vec<Taken> = polled.iter_mut().map(|p| p.take(context, args)).collect();
        for (device, outcome) in polled.iter_mut().zip(&taken) {
            exit = exit.worst(device.judge(outcome));
        }
        show(context, format, round == 0, &polled, &taken)?;
        round += 1;
        let Some(every) = every.filter(|_| args.count.is_none_or(|count| round < count)) else {
            return Ok(exit);
        };
        let due = every.saturating_mul(u32::try_from(round).unwrap_or(u32::MAX));
        for clock in polled.iter().map(Polled::clock).filter(|c| c.is_virtual()) {
            clock.sleep(due.saturating_sub(clock.now()).max(Duration::from_millis(1)));
        }
        let simulated_only = polled
            .iter()
            .all(|p| is_simulation(p.name) || p.drive.as_ref().is_some_and(Drive::is_simulated));
        while !simulated_only && real.now() < due && !interrupted.load(Ordering::Relaxed) {
            real.sleep(SLICE.min(due.saturating_sub(real.now())));
        }
        if interrupted.load(Ordering::Relaxed) {
            return Ok(Exit::Interrupted);
        }
    }
}

/// Nothing of it takes place in real time, not even a failure to open it.
fn is_simulation(name: &str) -> bool {
    name.starts_with("sim:")
}

impl Polled<'_> {
    fn clock(&self) -> SharedClock {
        self.drive
            .as_ref()
            .map_or_else(|| Arc::clone(&self.clock), Drive::clock)
    }

    fn take(&mut self, context: &Context, args: &TempArgs) -> Taken {
        let mut drive = match self.drive.take() {
            Some(drive) => drive,
            None => {
                let mut options = context.open_options(self.name);
                options.wake = args.wake;
                Drive::open(self.name, &options, Care::NoWake)?
            }
        };
        let result = drive.temp_report();
        // After a transport error the handle is worth nothing; the next round opens the device afresh.
        if !matches!(result, Err(DriveError::Transport(_))) {
            self.drive = Some(drive);
        }
        let mut report = result?;
        context.mask(&mut report.device);
        Ok(report)
    }

    fn judge(&mut self, outcome: &Taken) -> Exit {
        match outcome {
            Ok(_) => {
                self.complained = None;
                Exit::Done
            }
            Err(error) => {
                let what = error.to_string();
                if self.complained.as_ref() != Some(&what) {
                    complain(&what, &advice::advise(error));
                    self.complained = Some(what);
                }
                Exit::of(error)
            }
        }
    }
}

fn show(
    context: &Context,
    format: Format,
    first: bool,
    polled: &[Polled<'_>],
    taken: &[Taken],
) -> Result<(), Stop> {
    let outcomes: Vec<Outcome<'_>> = polled
        .iter()
        .zip(taken)
        .map(|(device, taken)| Outcome {
            device: device.name,
            report: taken.as_ref().ok(),
            error: taken.as_ref().err().map(ToString::to_string),
            asleep: matches!(taken.as_ref().map_err(|e| &**e), Err(DriveError::Asleep { .. })),
            time: match taken {
                Ok(report) => report.time.clone(),
                Err(_) => device.clock().rfc3339(),
            },
        })
        .collect();
    match format {
        Format::Text => {
            let lines = taken
                .iter()
                .flatten()
                .map(|r| report::temp::line(r, context.style));
            print(&lines.collect::<String>())
        }
        Format::Json => {
            for (outcome, taken) in outcomes.iter().zip(taken) {
                match taken {
                    Ok(report) => context.print_json(report)?,
                    Err(error) => context.print_json(&error_document(outcome, error))?,
                }
            }
            Ok(())
        }
        Format::Csv => {
            let mut writer = csv::Writer::from_writer(Vec::new());
            let io = |e: csv::Error| Stop::Output(std::io::Error::other(e));
            if first {
                writer.write_record(CSV_HEADER).map_err(io)?;
            }
            for outcome in &outcomes {
                writer.write_record(report::temp::csv_row(outcome)).map_err(io)?;
            }
            let bytes = writer
                .into_inner()
                .map_err(|e| Stop::Output(std::io::Error::other(e.to_string())))?;
            print(&String::from_utf8_lossy(&bytes))
        }
        Format::Prometheus => {
            let exposition =
                report::temp::prometheus(&outcomes).map_err(|e| Stop::Output(std::io::Error::other(e)))?;
            print(&exposition)
        }
    }
}

/// What stands in the place of a reading that failed: no temperature, the reason, and the exit code that it means.
fn error_document(outcome: &Outcome<'_>, error: &DriveError) -> serde_json::Value {
    serde_json::json!({
        "schema": "drivethru-temp/1",
        "schema_version": 1,
        "time": outcome.time,
        "device": {"name": outcome.device},
        "power_state": if outcome.asleep { "standby" } else { "unknown" },
        "error": {"message": error.to_string(), "exit_code": Exit::of(error).code()},
    })
}
