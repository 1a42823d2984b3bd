//! The command-line tool: arguments in, documents out, exit code back.

pub mod advice;
pub mod args;
pub mod decode;
pub mod exit;

mod analyze;
mod bench;
mod decode_verb;
mod info;
mod list;
mod progress;
mod raw;
mod report;
mod setup;
mod sim;
mod smart;
mod temp;
mod trim;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::Parser;
use serde::Serialize;

use crate::bridge::memory::Memory;
use crate::drive::{DeviceRef, DriveError, OpenOptions, RecordFile};
use crate::report::Style;
use crate::sys::lock;
use crate::text;
use args::{Cli, Color, Command, Common};
use exit::Exit;

/// Environment variable that names the file in which bridges are remembered. With it set, `sim:` devices are too.
pub const STATE_FILE_VARIABLE: &str = "DRIVETHRU_STATE_FILE";

/// What every verb is given.
pub(crate) struct Context {
    pub common: Common,
    pub style: Style,
    record: OnceLock<RecordFile>,
}

/// How a verb ends early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A drive could not be opened or read.
    Drive(Box<DriveError>),
    /// Bad input, in words.
    Usage(String),
    /// The input holds nothing that can be used, though the command line is right.
    BadInput(String),
    /// Refused for safety, in words, and what to do.
    Refused(String, Vec<String>),
    /// Standard output went away or is full.
    Output(std::io::Error),
}

impl From<DriveError> for Stop {
    fn from(error: DriveError) -> Self {
        Self::Drive(Box::new(error))
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

/// Runs the tool with the process's arguments and returns its exit code.
pub fn main() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            };
            // A closed pipe under --help is nobody's failure.
            let _ = error.print();
            return code.code();
        }
    };
    start_logging(cli.common.verbose);
    let color = match cli.common.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        }
    };
    let context = match Context::new(cli.common, Style { color }) {
        Ok(context) => context,
        Err(stop) => return stop.report().code(),
    };
    let result = match cli.command {
        Command::List { all } => list::run(&context, all),
        Command::Info { device } => info::run(&context, &device),
        Command::Temp(args) => temp::run(&context, &args),
        Command::Smart(args) => smart::run(&context, &args),
        Command::Decode(args) => decode_verb::run(&context, &args),
        Command::Analyze(args) => analyze::run(&context, &args),
        Command::Raw(args) => raw::run(&context, &args),
        Command::Trim(args) => trim::run(&context, &args),
        Command::Report(args) => report::run(&context, &args),
        Command::Bench(args) => bench::run(&context, &args),
        Command::Sim(command) => sim::run(&context, &command),
        Command::Setup(command) => setup::run(&command),
    };
    match result {
        Ok(exit) => exit.code(),
        Err(stop) => stop.report().code(),
    }
}

fn start_logging(verbose: u8) {
    let level = match verbose {
        0 => tracing::Level::WARN,
        1 => tracing::Level::INFO,
        _ => tracing::Level::DEBUG,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .with_ansi(false)
        .init();
}

impl Stop {
    /// Says on stderr what happened and what to do.
    fn report(self) -> Exit {
        match self {
            Self::Drive(error) => {
                complain(&error.to_string(), &advice::advise(&error));
                Exit::of(&error)
            }
            Self::Usage(what) => {
                complain(&what, &["see `drivethru --help`".to_owned()]);
                Exit::Usage
            }
            Self::BadInput(what) => {
                complain(&what, &[]);
                Exit::Usage
            }
            Self::Refused(what, advice) => {
                complain(&what, &advice);
                Exit::Refused
            }
            Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Exit::Done,
            Self::Output(error) => {
                complain(&format!("standard output: {error}"), &[]);
                Exit::Failure
            }
        }
    }
}

/// One error on stderr, in the tool's shape; untrusted text is escaped.
pub(crate) fn complain(what: &str, advice: &[String]) {
    let mut message = format!("drivethru: {}\n", text::for_terminal(what));
    for line in advice {
        message.push_str(&format!("  try: {}\n", text::for_terminal(line)));
    }
    // Nothing is left to tell when stderr is closed.
    let _ = std::io::stderr().write_all(message.as_bytes());
}

/// What stands in the place of a document that could not be made: the reason, and the exit code that it means.
pub(crate) fn error_document(schema: &str, device: &str, error: &DriveError) -> serde_json::Value {
    serde_json::json!({
        "schema": schema,
        "schema_version": 1,
        "device": {"name": device},
        "error": {"message": error.to_string(), "exit_code": Exit::of(error).code()},
    })
}

/// A remark on stderr that is no error.
pub(crate) fn note(what: &str) {
    let _ = std::io::stderr().write_all(format!("drivethru: {}\n", text::for_terminal(what)).as_bytes());
}

impl Context {
    fn new(common: Common, style: Style) -> Result<Self, Stop> {
        if common.mask && common.verbose > 1 {
            return Err(Stop::Usage("--mask cannot hide what -vv shows".to_owned()));
        }
        if common.mask && common.record.is_some() {
            return Err(Stop::Usage("--mask cannot hide what --record writes".to_owned()));
        }
        Ok(Self {
            common,
            style,
            record: OnceLock::new(),
        })
    }

    /// Creates the file of `--record`, once the arguments are known to be right.
    pub fn start_recording(&self) -> Result<(), Stop> {
        let Some(path) = &self.common.record else {
            return Ok(());
        };
        let file =
            RecordFile::create(path).map_err(|e| Stop::BadInput(format!("{}: {e}", path.display())))?;
        self.record
            .set(file)
            .map_err(|_| Stop::Usage("--record was started twice".to_owned()))
    }

    /// The name to use for a device: as given, but for a link under `--mask`, since `/dev/disk/by-id` names hold serials.
    pub fn device_name(&self, given: &str) -> String {
        let path = std::path::Path::new(given);
        match path.canonicalize() {
            Ok(real) if self.common.mask && path.is_symlink() => real.display().to_string(),
            _ => given.to_owned(),
        }
    }

    /// Options for opening `device`, from the common options and the environment.
    pub fn open_options(&self, device: &str) -> OpenOptions {
        let defaults = OpenOptions::default();
        OpenOptions {
            memory: self.memory(device),
            forget: self.common.forget,
            dialect: self.common.dialect.clone(),
            timeout: self.common.timeout.unwrap_or(defaults.timeout),
            trace: self.common.verbose,
            record: self.record.get().cloned(),
            lock_dir: Some(lock::default_dir()),
            ..defaults
        }
    }

    fn memory(&self, device: &str) -> Option<Memory> {
        if let Some(path) = std::env::var_os(STATE_FILE_VARIABLE) {
            return Some(Memory::at(PathBuf::from(path)));
        }
        // Simulated and replayed devices leave no trace on the machine, and the same run stays the same.
        if device.starts_with("sim:") || device.starts_with("replay:") {
            return None;
        }
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let path = Memory::default_path(variable("XDG_STATE_HOME").as_deref(), variable("HOME").as_deref())?;
        Some(Memory::at(path))
    }

    /// Hides the serial number if that was asked for.
    pub fn mask(&self, device: &mut DeviceRef) {
        if self.common.mask {
            device.serial = device.serial.as_deref().map(text::mask_serial);
        }
    }

    /// One JSON document on one line.
    pub fn print_json<T: Serialize>(&self, document: &T) -> Result<(), Stop> {
        let mut line = serde_json::to_string(document).map_err(|e| Stop::Output(e.into()))?;
        line.push('\n');
        print(&line)
    }

    /// One JSON document, indented when a person is likely to read it.
    pub fn print_json_pretty<T: Serialize>(&self, document: &T) -> Result<(), Stop> {
        if !std::io::stdout().is_terminal() {
            return self.print_json(document);
        }
        let mut text = serde_json::to_string_pretty(document).map_err(|e| Stop::Output(e.into()))?;
        text.push('\n');
        print(&text)
    }
}

/// Data on stdout; a closed pipe is an error that ends the run quietly.
pub(crate) fn print(text: &str) -> Result<(), Stop> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
