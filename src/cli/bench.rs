//! `bench TARGET`.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use super::args::{BenchArgs, FailOn};
use super::exit::Exit;
use super::{Context, Stop, complain, print};
use crate::bench::engine::{self, Amount, BenchError, Options, Outcome, Watch};
use crate::bench::run::{Ending, Run};
use crate::bench::series::{Context as SeriesContext, Sample, Series};
use crate::bench::verdict::Cause;
use crate::report::bench as render;
use crate::text;

pub(super) fn run(context: &Context, args: &BenchArgs) -> Result<Exit, Stop> {
    context.start_recording()?;
    let report = match &args.report {
        Some(dir) => Some(Report::open(dir)?),
        None => None,
    };
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
    let mut show = Progress::start(context)?;
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
    if let Some(report) = report {
        report.write(&outcome)?;
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
        Ending::Complete if is_bad(&outcome.run, args) => Exit::BadAnswer,
        Ending::Complete => Exit::Done,
    })
}

const SIMULATED: [&str; 1] = ["`drivethru sim list` shows the simulated devices"];

fn amount(args: &BenchArgs) -> Option<Amount> {
    let bytes = args.bytes.map(Amount::Bytes);
    let time = args.duration.map(Amount::For);
    bytes.or(time).or(args.fill.map(Amount::FillPercent))
}

/// Whether the run shows what was to be an error.
fn is_bad(run: &Run, args: &BenchArgs) -> bool {
    let causes = || std::iter::once(run.verdict.cause).chain(run.verdict.events.iter().map(|e| e.cause));
    args.fail_on.iter().any(|fail_on| match fail_on {
        FailOn::Any => run.verdict.cause != Cause::None,
        FailOn::Cause(cause) => causes().any(|c| c == *cause),
    })
}

/// The directory of `--report`, made before the run so that nothing is measured in vain.
struct Report<'a> {
    dir: &'a Path,
}

impl<'a> Report<'a> {
    fn open(dir: &'a Path) -> Result<Self, Stop> {
        let wrong = |e: io::Error| Stop::BadInput(format!("{}: {e}", dir.display()));
        fs::create_dir_all(dir).map_err(wrong)?;
        File::create(dir.join("run.json")).map_err(wrong)?;
        Ok(Self { dir })
    }

    fn write(self, outcome: &Outcome) -> Result<(), Stop> {
        let mut written = render::write_all(self.dir, &outcome.run)?;
        if let Some(manifest) = &outcome.manifest {
            let file = File::create(self.dir.join("manifest.json"))?;
            serde_json::to_writer_pretty(io::BufWriter::new(file), manifest)
                .map_err(|e| Stop::Output(e.into()))?;
            written.push("manifest.json".to_owned());
        }
        eprintln!(
            "written into {}: {}",
            text::for_terminal(&self.dir.display().to_string()),
            written.join(", ")
        );
        Ok(())
    }
}

/// Rate, temperature and verdict so far on stderr, and the interrupt.
struct Progress {
    bar: ProgressBar,
    stage: String,
    judged_at: usize,
    verdict: &'static str,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    fn start(context: &Context) -> Result<Self, Stop> {
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
            judged_at: 0,
            verdict: Cause::None.word(),
            interrupted,
        })
    }
}

impl Watch for Progress {
    fn stage(&mut self, name: &str) {
        name.clone_into(&mut self.stage);
    }

    fn sample(&mut self, samples: &[Sample]) {
        /// A verdict on everything so far costs more than a sample.
        const JUDGE_EVERY: usize = 60;
        let Some(last) = samples.last().filter(|_| !self.bar.is_hidden()) else {
            return;
        };
        if samples.len() >= self.judged_at + JUDGE_EVERY {
            self.judged_at = samples.len();
            let series = Series {
                samples: samples.to_vec(),
                context: SeriesContext::default(),
            };
            self.verdict = engine::judge(&series).cause.word();
        }
        let celsius = samples.iter().rev().take(30).find_map(|s| s.temp_c);
        let celsius = celsius.map_or_else(String::new, |c| format!(", {c:.0} °C"));
        self.bar.set_message(format!(
            "{:.0} s, {}: {:.0} MB/s, {:.1} GB{celsius}, verdict so far: {}",
            last.t_s,
            self.stage,
            last.mb_s,
            last.cumulative_bytes as f64 / 1e9,
            self.verdict,
        ));
        self.bar.tick();
    }

    fn stop(&mut self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
