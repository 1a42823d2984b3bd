//! `temp DEV...`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::args::{Format, TempArgs};
use super::exit::Exit;
use super::{Context, Stop, advice, complain, print};
use crate::drive::power::PowerState;
use crate::drive::temperature::TempReport;
use crate::drive::{Care, Drive, DriveError};
use crate::report;
use crate::report::temp::{CSV_HEADER, Outcome};
use crate::time::{Clock, RealClock, SharedClock, VirtualClock};
use crate::transport::TransportError;

/// Pauses are cut so short that an interrupt is felt at once.
const SLICE: Duration = Duration::from_millis(50);

/// One device and its state between readings.
struct Polled {
    name: String,
    drive: Option<Drive>,
    /// The time that counts while the drive is not open.
    clock: SharedClock,
    /// The last complaint; the same one is not repeated at each reading.
    complained: Option<String>,
    /// It timed out or its transport failed: each further command could hang or reset it again.
    given_up: bool,
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
    for (i, name) in args.devices.iter().enumerate() {
        if args.devices.iter().take(i).any(|earlier| earlier == name) {
            return Err(Stop::Usage(format!("{name} is named twice")));
        }
    }
    context.start_recording()?;
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
    let mut polled: Vec<Polled> = args
        .devices
        .iter()
        .map(|name| Polled {
            name: context.device_name(name),
            drive: None,
            clock: if is_virtual(name) {
                Arc::new(VirtualClock::new())
            } else {
                RealClock::shared()
            },
            complained: None,
            given_up: false,
        })
        .collect();
    let real = RealClock::new();
    let mut exit = Exit::Done;
    let mut round: u64 = 0;
    let mut tick: u32 = 0;
    loop {
        let taken = take_all(&mut polled, context, args);
        for (device, outcome) in polled.iter_mut().zip(&taken) {
            if let Some(outcome) = outcome {
                exit = exit.worst(device.judge(outcome, every.is_some()));
            }
        }
        show(context, format, round == 0, &polled, &taken)?;
        round += 1;
        let Some(every) = every.filter(|_| args.count.is_none_or(|count| round < count)) else {
            return Ok(exit);
        };
        if polled.iter().all(|p| p.given_up) {
            return Ok(exit);
        }
        // A reading that took longer than the interval costs the readings that it overran; none is made up for.
        tick = tick.saturating_add(1);
        // A series without an end is for looking at, so that even a simulated one goes at the pace of a real one.
        let all_simulated = args.count.is_some() && polled.iter().all(|p| is_virtual(&p.name));
        while !all_simulated && every.saturating_mul(tick) < real.now() {
            tick = tick.saturating_add(1);
        }
        let due = every.saturating_mul(tick);
        for clock in polled.iter().map(Polled::clock).filter(|c| c.is_virtual()) {
            clock.sleep(due.saturating_sub(clock.now()).max(Duration::from_millis(1)));
        }
        while !all_simulated && real.now() < due && !interrupted.load(Ordering::Relaxed) {
            real.sleep(SLICE.min(due.saturating_sub(real.now())));
        }
        if interrupted.load(Ordering::Relaxed) {
            return Ok(Exit::Interrupted);
        }
    }
}

/// One reading of each device that is not given up, all at the same time: one that hangs does not hold up the others.
fn take_all(polled: &mut [Polled], context: &Context, args: &TempArgs) -> Vec<Option<Taken>> {
    let take = |p: &mut Polled| (!p.given_up).then(|| p.take(context, args));
    if let [only] = polled {
        return vec![take(only)];
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = polled.iter_mut().map(|p| scope.spawn(|| take(p))).collect();
        running
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

/// Nothing of it takes place in real time, not even a failure to open it.
fn is_virtual(name: &str) -> bool {
    name.starts_with("sim:") || name.starts_with("replay:")
}

impl Polled {
    fn clock(&self) -> SharedClock {
        self.drive
            .as_ref()
            .map_or_else(|| Arc::clone(&self.clock), Drive::clock)
    }

    fn take(&mut self, context: &Context, args: &TempArgs) -> Taken {
        let mut drive = match self.drive.take() {
            Some(drive) => drive,
            None => {
                let mut options = context.open_options(&self.name);
                options.wake = args.wake;
                Drive::open(&self.name, &options, Care::NoWake)?
            }
        };
        let result = drive.temp_report();
        drive.unlock();
        // After a transport error the handle is worth nothing.
        if !matches!(result, Err(DriveError::Transport(_))) {
            self.drive = Some(drive);
        }
        let mut report = result?;
        context.mask(&mut report.device);
        Ok(report)
    }

    fn judge(&mut self, outcome: &Taken, polling: bool) -> Exit {
        match outcome {
            Ok(_) => {
                self.complained = None;
                Exit::Done
            }
            Err(error) => {
                // What cannot change in this run, and what a further command could hang or reset again.
                self.given_up = matches!(
                    &**error,
                    DriveError::Harmed { .. }
                        | DriveError::HarmedBefore { .. }
                        | DriveError::Avoided { .. }
                        | DriveError::BadName { .. }
                        | DriveError::NativeNvme { .. }
                        | DriveError::Replay(_)
                        | DriveError::Transport(
                            TransportError::TimedOut { .. }
                                | TransportError::Failed { .. }
                                | TransportError::ReplayMismatch { .. }
                        )
                );
                let what = error.to_string();
                if self.complained.as_ref() != Some(&what) {
                    let mut advice = advice::advise(error);
                    if polling && self.given_up {
                        advice.push("it is not read again in this run".to_owned());
                    }
                    complain(&what, &advice);
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
    polled: &[Polled],
    taken: &[Option<Taken>],
) -> Result<(), Stop> {
    let taken: Vec<(&Polled, &Taken)> = polled
        .iter()
        .zip(taken)
        .filter_map(|(device, taken)| Some((device, taken.as_ref()?)))
        .collect();
    let outcomes: Vec<Outcome<'_>> = taken
        .iter()
        .map(|(device, taken)| Outcome {
            device: &device.name,
            report: taken.as_ref().ok(),
            error: taken.as_ref().err().map(ToString::to_string),
            left_asleep: match taken.as_ref().map_err(|e| &**e) {
                Err(DriveError::Asleep { state, .. }) => Some(*state),
                _ => None,
            },
            time: taken
                .as_ref()
                .map_or_else(|_| device.clock().rfc3339(), |report| report.time.clone()),
        })
        .collect();
    match format {
        Format::Text => {
            let lines = outcomes
                .iter()
                .filter_map(|o| o.report)
                .map(|r| report::temp::line(r, context.style));
            print(&lines.collect::<String>())
        }
        Format::Json => {
            for (outcome, (polled, taken)) in outcomes.iter().zip(&taken) {
                match taken {
                    Ok(report) => context.print_json(report)?,
                    Err(error) => context.print_json(&error_document(context, polled, outcome, error))?,
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
fn error_document(
    context: &Context,
    polled: &Polled,
    outcome: &Outcome<'_>,
    error: &DriveError,
) -> serde_json::Value {
    let known = polled.drive.as_ref().map(|drive| {
        let mut device = drive.device_ref();
        context.mask(&mut device);
        device
    });
    let device = match known.map(serde_json::to_value) {
        Some(Ok(device)) => device,
        _ => serde_json::json!({"name": outcome.device}),
    };
    serde_json::json!({
        "schema": "drivethru-temp/1",
        "schema_version": 1,
        "time": outcome.time,
        "device": device,
        "power_state": outcome.left_asleep.unwrap_or(PowerState::Unknown),
        "error": {"message": error.to_string(), "exit_code": Exit::of(error).code()},
    })
}
