//! The command line: one source for help, man pages and completions.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::decode::Kind;
use crate::bench::engine::{Content, Workload};
use crate::bench::series::Op;
use crate::bench::verdict::{Cause, Verdict};
use crate::sim::serve::Address;

/// Drives the disk behind a USB bridge: temperature, health, identity, TRIM.
#[derive(Debug, Parser)]
#[command(
    name = "drivethru",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(
    after_help = "Device names: /dev/sdX, /dev/sgN, a symlink to one of them (by-id, by-path), sim:PROFILE[,option=value...] \
(a simulated drive, see `drivethru sim list`), replay:FILE (a recorded exchange).\n\n\
Exit codes: 0 done and well; 1 done, and the answer is bad (a failing drive); 2 usage or bad input; 3 no such device, \
no rights, busy; 4 transport or device failure; 5 not supported by drive or bridge; 6 refused for safety; \
7 left asleep; 130 interrupted. Of several devices the most serious one counts: 4 6 3 2 1 5 7 0."
)]
pub struct Cli {
    /// What every command understands.
    #[command(flatten)]
    pub common: Common,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Common options")]
pub struct Common {
    /// Print JSON: one document, or one a line for several devices or readings
    #[arg(long, global = true)]
    pub json: bool,
    /// Use this dialect instead of detecting it: auto, sat, sat12, sat16 (each also with ,tpsiu), scsi; smartctl's names work
    #[arg(long, global = true, value_name = "NAME")]
    pub dialect: Option<String>,
    /// Give up on a command after this long (500ms, 20s, 2m; a bare number is seconds)
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// Forget what is remembered of this bridge and detect it afresh
    #[arg(long, global = true)]
    pub forget: bool,
    /// Record every command and answer into this new file
    #[arg(long, global = true, value_name = "FILE.xchg")]
    pub record: Option<PathBuf>,
    /// Trace every command on stderr; twice, with its data
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Hide serial numbers
    #[arg(long, global = true)]
    pub mask: bool,
    /// Colour: when the output is a terminal, always, or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On terminals, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show every USB storage device and what works on it
    List {
        /// Every SCSI disk, not only those behind USB
        #[arg(long)]
        all: bool,
    },
    /// Show identity and capabilities of bridge and drive
    Info {
        /// The device
        #[arg(value_name = "DEV")]
        device: String,
    },
    /// Show the temperature and where it comes from
    Temp(TempArgs),
    /// Show health: verdict, wear and life left, attributes
    Smart(SmartArgs),
    /// Decode a dump: binary or hex text, `-` for standard input
    Decode(DecodeArgs),
    /// Say why recorded transfers slowed down
    Analyze(AnalyzeArgs),
    /// Send one CDB that only reads, and show the answer
    Raw(RawArgs),
    /// Trim free space, ranges or a whole drive, by whichever way works, proven first (without --commit: only plan)
    Trim(TrimArgs),
    /// Show a recorded run again: as a page, a picture, text or data; or two side by side
    Report(ReportArgs),
    /// Measure rate and temperature under a workload, and tell why the rate falls (simulated drives only)
    Bench(BenchArgs),
    /// Simulated drives
    #[command(subcommand)]
    Sim(SimCommand),
    /// Set up the shell and the manual
    #[command(subcommand)]
    Setup(SetupCommand),
}

/// Options of `temp`.
#[derive(Debug, Clone, Args)]
pub struct TempArgs {
    /// The devices
    #[arg(value_name = "DEV", required = true)]
    pub devices: Vec<String>,
    /// Read again and again, this far apart (500ms, 1s, 5m)
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub every: Option<Duration>,
    /// Stop after so many readings (without --every: 1 s apart)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Read even if that wakes the drive
    #[arg(long)]
    pub wake: bool,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
}

/// Output formats of `temp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// One document a line.
    Json,
    /// One row a reading, with a header.
    Csv,
    /// Prometheus and OpenMetrics text exposition.
    Prometheus,
}

/// Options of `smart`.
#[derive(Debug, Clone, Args)]
pub struct SmartArgs {
    /// The device
    #[arg(value_name = "DEV")]
    pub device: String,
    /// Logs, device statistics and temperature history too
    #[arg(long)]
    pub all: bool,
    /// Read even if that wakes the drive
    #[arg(long)]
    pub wake: bool,
    /// Start a self-test in the background, or abort the running one
    #[arg(long, value_name = "TEST")]
    pub test: Option<Test>,
}

/// Self-tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Test {
    /// A few minutes.
    Short,
    /// Reads the whole medium.
    Long,
    /// Stop the running one.
    Abort,
}

/// Options of `decode`.
#[derive(Debug, Clone, Args)]
pub struct DecodeArgs {
    /// What it is
    #[arg(value_name = "KIND")]
    pub kind: Kind,
    /// The dump; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// IDENTIFY DEVICE dump of the same drive, for what depends on the model (smart-data)
    #[arg(long, value_name = "FILE")]
    pub identify: Option<PathBuf>,
    /// SMART thresholds dump of the same drive (smart-data)
    #[arg(long, value_name = "FILE")]
    pub thresholds: Option<PathBuf>,
}

/// Options of `analyze`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "FILE is a CSV whose columns are known by their names (time: t_s, seconds, ms, timestamp; rate: mb_s, MB/s, MiB/s, \
KiB/s, bytes/s; temperature: temp_c, °C, °F; operation: op; cumulative bytes), a bandwidth log of fio, or a run of drivethru \
(JSON). `NAME.meta.json` beside `NAME.csv` may tell capacity, link and start offset. What had to be guessed is said on stderr.\n\n\
Causes: thermal, periodic_stall, link, capacity_cliff, slc_cache, host_noise, none.\n\n\
Exit codes: 0 done; 1 the verdict is that of --fail-on; 2 a file could not be read (the others are judged)."
)]
pub struct AnalyzeArgs {
    /// The recorded series; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Take the temperatures from this CSV (a time and a temperature)
    #[arg(long, value_name = "CSV")]
    pub temp: Option<PathBuf>,
    /// Size of the medium (120GB, 1T; K, M, G, T are powers of 1024, KB, MB, GB, TB of 1000)
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub capacity: Option<u64>,
    /// Ceiling of the link in MB/s: what is faster went into memory
    #[arg(long, value_name = "MB_S", value_parser = parse_rate)]
    pub link: Option<f64>,
    /// Exit 1 when this cause is found; may be given again (any, or a cause: thermal, slc_cache, ...)
    #[arg(long, value_name = "CAUSE")]
    pub fail_on: Vec<FailOn>,
}

/// Options of `raw`.
#[derive(Debug, Clone, Args)]
pub struct RawArgs {
    /// The device
    #[arg(value_name = "DEV")]
    pub device: String,
    /// The CDB in hex, 6 to 16 bytes: 12 00 00 00 24 00
    #[arg(value_name = "CDB", required = true)]
    pub cdb: Vec<String>,
    /// Read so many bytes from the device; without it, as many as the CDB asks for
    #[arg(long = "in", value_name = "BYTES", conflicts_with = "data", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub in_bytes: Option<u32>,
    /// Send this file to the device (only SCT requests that read are let through)
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
}

/// Options of `report`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Without --format, the name of --out decides: .html, .svg, .png, .md, .csv, .log (fio's bandwidth log), .txt; \
else it is text. --json prints the document itself, checked."
)]
pub struct ReportArgs {
    /// The run, as `bench` wrote it (run.json); `-` reads standard input
    #[arg(value_name = "RUN.json")]
    pub file: PathBuf,
    /// Put this run beside it: a table of their figures, and both curves in one chart
    #[arg(long, value_name = "RUN.json")]
    pub compare: Option<PathBuf>,
    /// What to make of it
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    pub format: Option<ReportFormat>,
    /// Write it into this file, which is replaced, and not to standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Output formats of `report`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// One page that needs nothing else.
    Html,
    /// The chart.
    Svg,
    /// The chart.
    Png,
    /// Tables and words.
    Markdown,
    /// For a terminal.
    Text,
    /// The samples.
    Csv,
    /// The samples as fio's bandwidth log.
    Fio,
}

/// Options of `trim`.
#[derive(Debug, Clone, Args)]
#[command(group(clap::ArgGroup::new("extent").required(true)))]
pub struct TrimArgs {
    /// The device, a partition of it, a mount point, or an image in a regular file
    #[arg(value_name = "DEV|MOUNT|IMAGE")]
    pub target: String,
    /// The free space of file systems: ext2/3/4, FAT, exFAT and NTFS, unmounted; what else is there is left alone
    #[arg(long, group = "extent")]
    pub free: bool,
    /// These blocks, as LBA+COUNT in logical blocks of the target; may be given again; `-` reads them from standard input
    #[arg(long, value_name = "LBA+COUNT", group = "extent", num_args = 1..)]
    pub range: Vec<String>,
    /// All of the target: everything on it is lost
    #[arg(long, group = "extent")]
    pub all: bool,
    /// Gaps between partitions too, even where something is written in them
    #[arg(long, requires = "free")]
    pub gaps: bool,
    /// This way only, instead of the first that is proven
    #[arg(long, value_name = "M", default_value = "auto")]
    pub method: TrimMethod,
    /// Read samples of everything trimmed afterwards, and the blocks beside it
    #[arg(long)]
    pub verify: bool,
    /// Write what is done into this new file, one JSON line for each command
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// A rotating disk is meant
    #[arg(long)]
    pub rotational: bool,
    /// Do it
    #[arg(long)]
    pub commit: bool,
    /// The serial number of the drive in the bridge: writing to a device needs it (`drivethru info DEV` shows it)
    #[arg(long, value_name = "S")]
    pub serial: Option<String>,
}

/// Ways to trim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TrimMethod {
    /// The first of the others that is proven
    Auto,
    /// The kernel's own discard (BLKDISCARD)
    Kernel,
    /// SCSI UNMAP
    Unmap,
    /// ATA DATA SET MANAGEMENT through the bridge
    Ata,
    /// SCSI WRITE SAME (16) with UNMAP
    WriteSame,
}

/// Options of `bench`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Workloads: seq (128 KiB, 32 deep, 60 s), seq-consistency (the same over 90 % of the medium), das (photos, videos \
and a disc, each written and read back three times), mix (random 4 KiB, 70 % reads), cdm3, cdm8 and cdm8-nvme (the rows of \
CrystalDiskMark), compressibility (whether zeros are written faster).\n\n\
Sizes have K, M, G, T (1024) or KB, MB, GB, TB (1000). Exit codes: 1 what --fail-on names was found, the drive got too hot, or a file came back \
changed; 130 interrupted, and what was measured is printed."
)]
pub struct BenchArgs {
    /// The device: sim:PROFILE[,option=value...]
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// What to do
    #[arg(long, value_name = "NAME", default_value = "seq")]
    pub workload: Workload,
    /// So many bytes (seq, seq-consistency)
    #[arg(long, value_name = "N", value_parser = parse_bytes, group = "amount")]
    pub bytes: Option<u64>,
    /// So long (seq, seq-consistency)
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, group = "amount")]
    pub duration: Option<Duration>,
    /// So many percent of the medium (seq, seq-consistency)
    #[arg(long, value_name = "P%", value_parser = parse_percent, group = "amount")]
    pub fill: Option<f64>,
    /// What seq and seq-consistency do
    #[arg(long, value_name = "OP")]
    pub op: Option<Direction>,
    /// What is in the buffers: random, random-once, zero, mix:P, dedupe:P
    #[arg(long, value_name = "KIND", default_value = "random")]
    pub data: Content,
    /// Starts the lists of random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Distance of temperature readings; without it, chosen by what a reading costs
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub temp_interval: Option<Duration>,
    /// Stop at this temperature in °C; without it, at 80 or 2 below the drive's own limit
    #[arg(long, value_name = "C", value_parser = parse_max_temp)]
    pub max_temp: Option<f64>,
    /// Leave out the gaps between the sets of das
    #[arg(long)]
    pub no_gap: bool,
    /// Write the run into this directory
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Exit 1 when this cause is found; may be given again (any, or a cause: thermal, slc_cache, ...)
    #[arg(long, value_name = "CAUSE")]
    pub fail_on: Vec<FailOn>,
}

/// Reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

impl From<Direction> for Op {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Read => Self::Read,
            Direction::Write => Self::Write,
        }
    }
}

/// What `--fail-on` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// Any cause but none.
    Any,
    /// This one.
    Cause(Cause),
}

impl FailOn {
    /// Whether the verdict has it, as the headline or as an event.
    pub fn is_in(self, verdict: &Verdict) -> bool {
        match self {
            Self::Any => verdict.cause != Cause::None,
            Self::Cause(cause) => verdict.cause == cause || verdict.events.iter().any(|e| e.cause == cause),
        }
    }
}

impl std::str::FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known: Vec<Cause> = Cause::ALL.into_iter().filter(|c| *c != Cause::None).collect();
        if text == "any" {
            return Ok(Self::Any);
        }
        known
            .iter()
            .find(|cause| cause.word() == text)
            .map(|cause| Self::Cause(*cause))
            .ok_or_else(|| {
                let words: Vec<&str> = known.iter().map(|cause| cause.word()).collect();
                format!("the causes are {}, and any", words.join(", "))
            })
    }
}

/// Commands of `sim`.
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// List the built-in profiles
    List,
    /// Show one profile and its options
    Show {
        /// Its name, with or without options
        #[arg(value_name = "PROFILE")]
        profile: String,
    },
    /// Offer a simulated drive to a kernel as a USB device
    Serve(ServeArgs),
    /// Send one command to the control address of `sim serve`, and print its answer
    #[command(
        after_help = "Exit codes: 0 the command was obeyed, 2 it was not (the answer says why), 4 nobody answers there."
    )]
    Control {
        /// Where `sim serve --control` listens: PORT (on 127.0.0.1), HOST:PORT or unix:PATH
        #[arg(value_name = "ADDR")]
        address: Address,
        /// The command: help, status, unplug, plug, set OPTION=VALUE, log, log clear, read LBA COUNT, write LBA HEX, quit
        #[arg(value_name = "WORD", required = true)]
        words: Vec<String>,
    },
}

/// Options of `sim serve`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "ADDR is PORT (on 127.0.0.1), HOST:PORT or unix:PATH; USB/IP is TCP only. Port 0 lets the system choose; \
the real one is printed on stderr. An address that other machines reach has to be written out: nothing asks who they are. A TCP address, that of --control \
included, is open to every user of this machine; a socket at PATH is made for its owner only (mode 0600), as the log is.\n\n\
QEMU: -chardev socket,id=c0,host=127.0.0.1,port=4000 -device qemu-xhci -device usb-redir,chardev=c0\n\
Linux: usbip --tcp-port 3240 attach -r 127.0.0.1 -b 1-1 (needs the module vhci_hcd)\n\n\
One host at a time has the device. When it goes away the device keeps its power, and the next host may come. SIGINT, \
SIGTERM and the control command `quit` end the server. A control connection ends after five minutes without a command."
)]
#[command(group = clap::ArgGroup::new("face").args(["usbip", "usbredir"]).multiple(true).required(true))]
pub struct ServeArgs {
    /// The simulated drive: PROFILE[,option=value...], see `drivethru sim list`
    #[arg(value_name = "PROFILE")]
    pub profile: String,
    /// Listen here for USB/IP; the bus id is 1-1
    #[arg(long, value_name = "ADDR")]
    pub usbip: Option<Address>,
    /// Listen here for usbredir, as QEMU speaks it
    #[arg(long, value_name = "ADDR")]
    pub usbredir: Option<Address>,
    /// Call the usbredir address instead of listening there (QEMU with server=on), until it answers
    #[arg(long, requires = "usbredir")]
    pub connect: bool,
    /// Listen here for `drivethru sim control`
    #[arg(long, value_name = "ADDR")]
    pub control: Option<Address>,
    /// Append each CDB that reaches the simulator to this file, as one JSON line
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Start with the plug pulled; the control command `plug` puts it in
    #[arg(long, requires = "control")]
    pub unplugged: bool,
    /// End when the first host has gone
    #[arg(long)]
    pub once: bool,
}

/// Commands of `setup`.
#[derive(Debug, Subcommand)]
pub enum SetupCommand {
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write all of them into a directory
    Man {
        /// Write drivethru.1 and a page for each command here
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// Reads `500ms`, `1s`, `1.5s`, `5m`, `2h`; a bare number is seconds.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let value: f64 = number
        .parse()
        .map_err(|_| "expected a time such as 500ms, 20s or 2m".to_owned())?;
    let seconds = match unit.trim() {
        "" | "s" => value,
        "ms" => value / 1e3,
        "m" | "min" => value * 60.0,
        "h" => value * 3600.0,
        other => return Err(format!("unknown unit {other:?}; known are ms, s, m and h")),
    };
    let duration = Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())?;
    if duration < Duration::from_millis(1) {
        return Err("too short".to_owned());
    }
    if duration > Duration::from_secs(7 * 24 * 3600) {
        return Err("longer than a week".to_owned());
    }
    Ok(duration)
}

/// Reads `120034123776`, `120GB`, `64G`: K, M, G, T are powers of 1024, KB and so on of 1000.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let value: f64 = number
        .parse()
        .map_err(|_| "expected a size such as 120GB or 64G".to_owned())?;
    let scale = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 1.0,
        "K" | "KIB" => 1024.0,
        "M" | "MIB" => 1024.0_f64.powi(2),
        "G" | "GIB" => 1024.0_f64.powi(3),
        "T" | "TIB" => 1024.0_f64.powi(4),
        "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        _ => {
            return Err(format!(
                "unknown unit {unit:?}; known are K, M, G, T and KB, MB, GB, TB"
            ));
        }
    };
    let bytes = (value * scale).round();
    // 2^63 and more is no medium.
    if (1.0..9.2e18).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err("no size of a medium".to_owned())
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..1e6).contains(&rate) => Ok(rate),
        _ => Err("expected MB/s, such as 440".to_owned()),
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text)?;
    if duration < Duration::from_millis(100) {
        return Err("readings less than 100ms apart disturb the drive".to_owned());
    }
    Ok(duration)
}

/// A temperature in °C at which a run may stop.
fn parse_max_temp(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(celsius) if (1.0..=150.0).contains(&celsius) => Ok(celsius),
        _ => Err("a temperature from 1 to 150 °C".to_owned()),
    }
}

/// Reads `90%` and `90`.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        _ => Err("expected more than 0 and at most 100 %".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_and_shares_have_units() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("1G"), Ok(1 << 30));
        assert_eq!(parse_bytes("127.2GB"), Ok(127_200_000_000));
        for bad in ["", "G", "0", "-1", "1x", "1e9", "nan", "99999999T"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_percent("90%"), Ok(90.0));
        assert_eq!(parse_percent("0.5"), Ok(0.5));
        for bad in ["", "%", "0", "101", "nan", "-1"] {
            assert!(parse_percent(bad).is_err(), "{bad}");
        }
        assert_eq!("thermal".parse(), Ok(FailOn::Cause(Cause::Thermal)));
        assert!("none".parse::<FailOn>().is_err());
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("20"), Ok(Duration::from_secs(20)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "s", "-1s", "1d", "nan", "0", "1e300h", "1.2.3s", "99999h"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        assert!(parse_interval("10ms").is_err());
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_bytes("120GB"), Ok(120_000_000_000));
        assert_eq!(parse_bytes("1.5K"), Ok(1536));
        assert_eq!(parse_bytes("7"), Ok(7));
        for bad in ["", "GB", "0", "-1", "1X", "99999999T", "nan"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_rate("440"), Ok(440.0));
        for bad in ["", "0", "-1", "nan", "inf", "1e9"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
    }
}
