//! `trim TARGET`: plan, and with `--commit` do.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use super::args::{TrimArgs, TrimMethod};
use super::exit::Exit;
use super::{Context, Stop, advice, error_document, print};
use crate::drive::trim::{
    self, Ask, Ending, LogEntry, Method, Refusal, TrimError, TrimReport, TrimRun, Watch, What,
};
use crate::drive::{DriveError, OpenOptions};
use crate::report;
use crate::sys::usage::{Mount, Tables};
use crate::text;

const SCHEMA: &str = "drivethru-trim/1";
/// More ranges than this are a mistake.
const RANGES_BYTES_MAX: u64 = 256 << 20;

pub(super) fn run(context: &Context, args: &TrimArgs) -> Result<Exit, Stop> {
    let ask = ask(args)?;
    if context.common.mask && args.log.is_some() {
        return Err(Stop::Usage("--mask cannot hide what --log writes".to_owned()));
    }
    let name = context.device_name(&args.target);
    let options = context.open_options(&args.target);
    context.start_recording()?;
    let mut watcher = Watcher::new(args, context.common.verbose)?;
    let result = dispatch(&name, &options, &ask, &mut watcher);
    watcher.bar.finish_and_clear();
    match result {
        Ok(run) => finish(context, run),
        Err(error) => fail(context, &name, error),
    }
}

fn ask(args: &TrimArgs) -> Result<Ask, Stop> {
    let what = if args.all {
        What::All
    } else if args.free {
        What::Free { gaps: args.gaps }
    } else {
        What::Ranges(ranges(&args.range)?)
    };
    let method = match args.method {
        TrimMethod::Auto => None,
        TrimMethod::Kernel => Some(Method::Kernel),
        TrimMethod::Unmap => Some(Method::Unmap),
        TrimMethod::Ata => Some(Method::Ata),
        TrimMethod::WriteSame => Some(Method::WriteSame),
    };
    Ok(Ask {
        what,
        method,
        verify: args.verify,
        rotational: args.rotational,
        commit: args.commit,
        serial: args.serial.clone(),
    })
}

fn ranges(words: &[String]) -> Result<Vec<(u64, u64)>, Stop> {
    let mut out = Vec::new();
    for word in words {
        if word != "-" {
            out.push(range(word)?);
            continue;
        }
        let mut text = String::new();
        std::io::stdin()
            .take(RANGES_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(|e| Stop::BadInput(format!("standard input: {e}")))?;
        for word in text.split_whitespace() {
            out.push(range(word)?);
        }
    }
    if out.is_empty() {
        return Err(Stop::Usage("no range was given".to_owned()));
    }
    Ok(out)
}

/// `LBA+COUNT`; hdparm's `LBA:COUNT` is understood as well.
fn range(word: &str) -> Result<(u64, u64), Stop> {
    let parsed = word
        .split_once(['+', ':'])
        .and_then(|(first, count)| Some((first.parse().ok()?, count.parse().ok()?)));
    parsed.ok_or_else(|| Stop::Usage(format!("{word:?} is no range: write LBA+COUNT, both in blocks")))
}

/// A mount point, an image or a device.
fn dispatch(
    name: &str,
    options: &OpenOptions,
    ask: &Ask,
    watcher: &mut Watcher,
) -> Result<TrimRun, TrimError> {
    let proc = Path::new("/proc");
    let path = Path::new(name);
    let kind = std::fs::metadata(path).map(|m| m.file_type());
    if kind.as_ref().is_ok_and(|k| k.is_dir()) {
        let mount = mount_of(name, |tables| {
            let real = path.canonicalize().ok()?;
            tables.mounted_at(&real).cloned()
        })?;
        return trim::run_mounted(&mount, options, ask);
    }
    if kind.is_ok_and(|k| k.is_file()) {
        return trim::run_image(path, &options.sysfs, proc, ask, watcher);
    }
    trim::run(name, options, proc, ask, watcher)
}

fn mount_of(name: &str, find: impl FnOnce(&Tables) -> Option<Mount>) -> Result<Mount, TrimError> {
    let unknown = |why: String| Refusal::UsageUnknown {
        device: name.to_owned(),
        why,
    };
    let tables = Tables::read(Path::new("/proc")).map_err(|e| unknown(format!("the mount table: {e}")))?;
    find(&tables).ok_or_else(|| {
        TrimError::BadRange(format!(
            "{name}: nothing is mounted here; name the mount point, the device or an image"
        ))
    })
}

fn finish(context: &Context, run: TrimRun) -> Result<Exit, Stop> {
    let TrimRun { mut report, error } = run;
    if context.common.mask
        && let Some(TrimError::Refused(refusal)) = &error
        && let Ending::Stopped { why } = &mut report.ending
    {
        *why = masked(refusal.clone(), true).to_string();
    }
    context.mask(&mut report.device);
    let exit = exit_of(&report, error.as_ref());
    if context.common.json {
        context.print_json_pretty(&report)?;
    } else {
        print(&report::trim::render(&report, context.style))?;
        if report.ending == Ending::Planned {
            let plain = |s: &&String| {
                s.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
            };
            let serial = match (report.device.serial.as_ref().filter(plain), report.target.kind) {
                (_, "image" | "mount") => String::new(),
                (Some(serial), _) if !context.common.mask => format!(" --serial {serial}"),
                _ => " --serial S".to_owned(),
            };
            super::note(&format!("--commit{serial} does it"));
        }
    }
    if let Some(TrimError::Drive(error)) = &error {
        super::complain(&error.to_string(), &advice::advise(error));
    }
    Ok(exit)
}

fn exit_of(report: &TrimReport, error: Option<&TrimError>) -> Exit {
    match (&report.ending, error) {
        (_, Some(TrimError::Drive(error))) => Exit::of(error),
        (_, Some(TrimError::Refused(_))) => Exit::Refused,
        (_, Some(TrimError::Log(_))) => Exit::Failure,
        (_, Some(TrimError::Interrupted)) => Exit::Interrupted,
        (_, Some(TrimError::BadRange(_))) => Exit::Usage,
        (Ending::Planned | Ending::Done, None) => Exit::Done,
        // Nothing is free, or nothing could be looked at.
        (Ending::NothingToDo, None) if report.what == "free" => {
            if report.volumes.iter().any(|v| v.free_bytes.is_some()) {
                Exit::Done
            } else {
                Exit::Refused
            }
        }
        (Ending::NothingToDo, None) => Exit::Done,
        (Ending::NoMethod, None) => Exit::Unsupported,
        (Ending::NotProven | Ending::VerifyFailed, None) => Exit::BadAnswer,
        (Ending::Stopped { .. }, None) => Exit::Failure,
        (Ending::Interrupted, None) => Exit::Interrupted,
    }
}

fn fail(context: &Context, name: &str, error: TrimError) -> Result<Exit, Stop> {
    let (what, advice, exit) = match error {
        TrimError::Drive(error) => {
            if context.common.json {
                context.print_json_pretty(&error_document(SCHEMA, name, &error))?;
            }
            return Err(Stop::Drive(Box::new(error)));
        }
        TrimError::BadRange(what) => (what, Vec::new(), Exit::Usage),
        TrimError::Log(error) => (format!("the log: {error}"), Vec::new(), Exit::Failure),
        TrimError::Interrupted => {
            super::note("interrupted; nothing was written");
            return Ok(Exit::Interrupted);
        }
        TrimError::Refused(refusal) => {
            let refusal = masked(refusal, context.common.mask);
            (refusal.to_string(), advise(&refusal), Exit::Refused)
        }
    };
    if context.common.json {
        context.print_json_pretty(&serde_json::json!({
            "schema": SCHEMA,
            "schema_version": 1,
            "device": {"name": name},
            "error": {"message": what, "exit_code": exit.code()},
        }))?;
    }
    match exit {
        Exit::Refused => Err(Stop::Refused(what, advice)),
        Exit::Usage => Err(Stop::BadInput(what)),
        _ => Err(Stop::Drive(Box::new(DriveError::Odd {
            device: name.to_owned(),
            what,
        }))),
    }
}

fn masked(refusal: Refusal, mask: bool) -> Refusal {
    let hide = |s: String| if mask { text::mask_serial(&s) } else { s };
    match refusal {
        Refusal::SerialWanted { device, shown } => Refusal::SerialWanted {
            device,
            shown: hide(shown),
        },
        Refusal::OtherSerial {
            device,
            found,
            wanted,
        } => Refusal::OtherSerial {
            device,
            found: hide(found),
            wanted: hide(wanted),
        },
        Refusal::Changed { device, .. } if mask => Refusal::Changed {
            device,
            what: "its identity is another".to_owned(),
        },
        Refusal::NoSerial { device, .. } if mask => Refusal::NoSerial {
            device,
            why: "several look the same".to_owned(),
        },
        other => other,
    }
}

fn advise(refusal: &Refusal) -> Vec<String> {
    let one = |text: &str| vec![text.to_owned()];
    match refusal {
        Refusal::InUse {
            uses,
            kernel_can_trim,
            ..
        } => {
            let mut advice = Vec::new();
            let mounted = uses.iter().any(|u| u.how.starts_with("mounted"));
            if mounted {
                advice.push("unmount first".to_owned());
            }
            if mounted && *kernel_can_trim {
                advice
                    .push("or name the mount point: its file system can trim its own free space".to_owned());
            }
            if advice.is_empty() {
                advice.push("stop whatever uses it first (swapoff, vgchange, mdadm, dmsetup)".to_owned());
            }
            advice
        }
        Refusal::SerialWanted { .. } => {
            one("compare it with the label of the drive, then type it after --serial")
        }
        Refusal::OtherSerial { .. } => one("`drivethru list` shows which drive is where"),
        Refusal::NoSerial { .. } => one("unplug the other devices that look the same"),
        Refusal::Changed { .. } => one("run it again without --commit and look at the plan"),
        Refusal::Rotating { .. } => {
            one("--rotational, if it really is to be trimmed (shingled disks know TRIM)")
        }
        _ => Vec::new(),
    }
}

/// Draws the bar, keeps the log, and listens for signals.
struct Watcher {
    bar: ProgressBar,
    log: Option<File>,
    interrupted: Arc<AtomicBool>,
}

impl Watcher {
    fn new(args: &TrimArgs, verbose: u8) -> Result<Self, Stop> {
        let log = match &args.log {
            // Never over an older account.
            Some(path) => Some(
                File::options()
                    .write(true)
                    .create_new(true)
                    .open(path)
                    .map_err(|e| Stop::BadInput(format!("{}: {e}", path.display())))?,
            ),
            None => None,
        };
        let interrupted = Arc::new(AtomicBool::new(false));
        if args.commit {
            for signal in [
                signal_hook::consts::SIGINT,
                signal_hook::consts::SIGTERM,
                signal_hook::consts::SIGHUP,
            ] {
                // A second one ends it at once.
                signal_hook::flag::register_conditional_shutdown(
                    signal,
                    i32::from(Exit::Interrupted.code()),
                    Arc::clone(&interrupted),
                )?;
                signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
            }
        }
        let bar = if verbose > 0 {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(0)
        };
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} trimmed ({eta} left)")
        {
            bar.set_style(style);
        }
        Ok(Self {
            bar,
            log,
            interrupted,
        })
    }
}

impl Watch for Watcher {
    fn progress(&mut self, done_bytes: u64, total_bytes: u64) {
        self.bar.set_length(total_bytes);
        self.bar.set_position(done_bytes);
    }

    fn log(&mut self, entry: &LogEntry) -> std::io::Result<()> {
        let Some(file) = &mut self.log else {
            return Ok(());
        };
        let mut line = serde_json::to_string(entry)?;
        line.push('\n');
        file.write_all(line.as_bytes())
    }

    fn stop(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
