//! `bench TARGET`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use super::args::BenchArgs;
use super::exit::Exit;
use super::{Context, Stop, complain, print};
use crate::bench::detect::{Alarm, AlarmKind, Online};
use crate::bench::engine::{self, Amount, BenchError, Options, Outcome, Watch, Workload};
use crate::bench::run::Ending;
use crate::bench::series::{Context as SeriesContext, Sample};
use crate::report::bench as render;
use crate::text;

pub(super) fn run(context: &Context, args: &BenchArgs) -> Result<Exit, Stop> {
    if let Some(dir) = &args.report {
        render::may_write(dir).map_err(|e| Stop::BadInput(e.to_string()))?;
    }
    if args.target.starts_with("sim:") {
        context.start_recording()?;
    }
    let options = Options {
        workload: args.workload,
        amount: amount(args),
        op: args.op.map(Into::into),
        content: args.data,
        seed: args.seed,
        temp_interval: args.temp_interval,
        max_temp_c: args.max_temp,
        no_gap: args.no_gap,
        ..Options::default()
    };
    let mut show = Progress::start(context, has_rows(args.workload))?;
    let target = context.device_name(&args.target);
    let result = engine::run(&target, &options, &context.open_options(&target), &mut show);
    show.bar.finish_and_clear();
    let mut outcome = match result {
        Ok(outcome) => outcome,
        Err(BenchError::Drive(error)) => return Err(error.into()),
        Err(error @ BenchError::Options { .. }) => return Err(Stop::Usage(error.to_string())),
        Err(error @ BenchError::NotPermitted { .. }) => {
            complain(&error.to_string(), &SIMULATED.map(str::to_owned));
            return Ok(Exit::Refused);
        }
        Err(error) => {
            complain(&error.to_string(), &SIMULATED.map(str::to_owned));
            return Ok(Exit::Unsupported);
        }
    };
    if context.common.mask {
        let serial = &mut outcome.run.device.serial;
        *serial = serial.as_deref().map(text::mask_serial);
    }
    if let Some(dir) = &args.report {
        write(dir, &outcome)?;
    }
    if context.common.json {
        context.print_json(&outcome.run)?;
    } else {
        print(&render::text::run(&outcome.run, context.style))?;
    }
    Ok(match outcome.run.ending {
        Ending::Aborted => Exit::Interrupted,
        Ending::Lost => Exit::Failure,
        Ending::TooHot => Exit::BadAnswer,
        Ending::Complete if outcome.manifest.as_ref().is_some_and(|m| m.wrong_bytes > 0) => Exit::BadAnswer,
        Ending::Complete if args.fail_on.iter().any(|what| what.is_in(&outcome.run.verdict)) => {
            Exit::BadAnswer
        }
        Ending::Complete => Exit::Done,
    })
}

const SIMULATED: [&str; 1] = ["`drivethru sim list` shows the simulated devices"];

fn amount(args: &BenchArgs) -> Option<Amount> {
    let bytes = args.bytes.map(Amount::Bytes);
    let time = args.duration.map(Amount::For);
    bytes.or(time).or(args.fill.map(Amount::FillPercent))
}

/// The directory of `--report`.
fn write(dir: &Path, outcome: &Outcome) -> Result<(), Stop> {
    let mut written = render::write_all(dir, &outcome.run)?;
    if let Some(manifest) = &outcome.manifest {
        let text = serde_json::to_vec_pretty(manifest).map_err(|e| Stop::Output(e.into()))?;
        render::replace(&dir.join("manifest.json"), &text)?;
        written.push("manifest.json".to_owned());
    }
    eprintln!(
        "written into {}: {}",
        text::for_terminal(&dir.display().to_string()),
        written.join(", ")
    );
    Ok(())
}

/// Whether its stages are requests of different kinds, whose rates differ by nature.
fn has_rows(workload: Workload) -> bool {
    !matches!(workload, Workload::Seq | Workload::SeqConsistency | Workload::Das)
}

/// Rate, temperature and what was noticed so far on stderr, and the interrupt.
struct Progress {
    bar: ProgressBar,
    stage: String,
    rows: bool,
    known: SeriesContext,
    online: Online,
    /// Samples that were looked at.
    seen: usize,
    noticed: Option<Alarm>,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    fn start(context: &Context, rows: bool) -> Result<Self, Stop> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
            signal_hook::consts::SIGHUP,
        ] {
            // The second one ends it at once.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&interrupted))?;
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        let bar = if context.common.verbose > 0 {
            ProgressBar::hidden()
        } else {
            ProgressBar::new_spinner()
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        Ok(Self {
            bar,
            stage: String::new(),
            rows,
            known: SeriesContext::default(),
            online: Online::new(&SeriesContext::default()),
            seen: 0,
            noticed: None,
            interrupted,
        })
    }
}

/// What was noticed, in words.
fn words(alarm: &Alarm) -> String {
    let (op, onset_s) = (alarm.op.word(), alarm.onset_s);
    let levels = format!("{:.0} → {:.0} MB/s", alarm.before_mb_s, alarm.after_mb_s);
    match alarm.kind {
        AlarmKind::Fall => format!("{op} fell {levels} at {onset_s:.0} s"),
        AlarmKind::Decline => format!("{op} is falling {levels}, at {onset_s:.0} s"),
        AlarmKind::Stop => format!("{op} stopped at {onset_s:.0} s"),
        AlarmKind::Stalls => format!("{op} stalls again and again since {onset_s:.0} s"),
        AlarmKind::PageCacheEnd => format!("the page cache was full at {onset_s:.0} s"),
    }
}

impl Watch for Progress {
    fn begin(&mut self, context: &SeriesContext) {
        self.known = context.clone();
        self.online = Online::new(context);
    }

    fn stage(&mut self, name: &str) {
        name.clone_into(&mut self.stage);
        if self.rows {
            self.online = Online::new(&self.known);
            self.noticed = None;
        }
    }

    fn sample(&mut self, samples: &[Sample]) {
        for sample in samples.get(self.seen..).unwrap_or_default() {
            self.noticed = self.online.push(sample).or(self.noticed);
        }
        self.seen = samples.len();
        let Some(last) = samples.last().filter(|_| !self.bar.is_hidden()) else {
            return;
        };
        let celsius = samples.iter().rev().take(30).find_map(|s| s.temp_c);
        let celsius = celsius.map_or_else(String::new, |c| format!(", {c:.0} °C"));
        let noticed = self.noticed.as_ref().map_or_else(|| "no fall".to_owned(), words);
        self.bar.set_message(format!(
            "{:.0} s, {}: {:.0} MB/s, {:.1} GB{celsius}, so far: {noticed}",
            last.t_s,
            self.stage,
            last.mb_s,
            last.cumulative_bytes as f64 / 1e9,
        ));
        self.bar.tick();
    }

    fn stop(&mut self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::series::Op;

    fn progress(rows: bool) -> Progress {
        Progress {
            bar: ProgressBar::hidden(),
            stage: String::new(),
            rows,
            known: SeriesContext::default(),
            online: Online::new(&SeriesContext::default()),
            seen: 0,
            noticed: None,
            interrupted: Arc::default(),
        }
    }

    #[test]
    fn a_fall_is_told_while_it_happens_and_forgotten_with_its_row() {
        let mut samples = Vec::new();
        for rows in [false, true] {
            samples.clear();
            let mut progress = progress(rows);
            for t in 1..=60_u32 {
                let mb_s = if t <= 40 { 400.0 } else { 120.0 };
                samples.push(Sample::new(f64::from(t), mb_s, Op::Write));
                progress.sample(&samples);
            }
            let told = progress.noticed.as_ref().map(words);
            assert_eq!(told.as_deref(), Some("write fell 400 → 120 MB/s at 40 s"));
            progress.stage("another");
            assert_eq!(progress.noticed.is_some(), !rows);
        }
    }
}
