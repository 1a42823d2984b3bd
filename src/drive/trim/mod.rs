//! TRIM: planned, permitted, proven, done, and accounted for.
//!
//! ```text
//! plan      ranges to commands within what a path carries
//! paths     which ways are open, and one command on each
//! proof     a way is proven on a scratch range before anything else is discarded
//! authorise the checks after which a permit is made
//! ```

mod authorise;
mod deny;
mod free;
mod image;
mod mounted;
mod paths;
mod plan;
mod proof;
mod report;
mod stamp;
mod work;

use std::path::Path;

use serde::Serialize;

pub use authorise::{Identity, Refusal};
pub use image::run_image;
pub use mounted::run_mounted;
pub use paths::{Method, Refused};
pub use plan::{PathLimits, Plan, merged};
pub use proof::{Outcome, Proof};
pub use report::{Done, Ending, LeftAlone, Target, TrimReport, Verified, Volume};

use super::power::Media;
use super::{Care, Drive, DriveError, OpenOptions};
use crate::permit::BlockRange;
use authorise::Session;
use work::{Stopped, Work};

/// A drive may think for a while about a list of gigabytes: so many times the usual time-out.
const PATIENCE: u32 = 3;
/// What is to be trimmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Free space of file systems that are not mounted.
    Free {
        /// Gaps between partitions too, whatever they hold.
        gaps: bool,
    },
    /// These ranges of the target: (first block, count).
    Ranges(Vec<(u64, u64)>),
    /// All of the target.
    All,
}

impl What {
    fn word(&self) -> &'static str {
        match self {
            Self::Free { .. } => "free",
            Self::Ranges(_) => "range",
            Self::All => "all",
        }
    }
}

/// What the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What is to be trimmed.
    pub what: What,
    /// This way only.
    pub method: Option<Method>,
    /// Look at what was trimmed afterwards.
    pub verify: bool,
    /// A rotating disk is meant, too.
    pub rotational: bool,
    /// Do it; otherwise only plan.
    pub commit: bool,
    /// The serial number of the inner drive, typed by the user.
    pub serial: Option<String>,
}

/// Something that happened, for the log: one line each.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LogEntry {
    /// The checks were passed; what follows may write.
    Begin {
        /// When.
        at: String,
        /// Which drive.
        serial: String,
        /// Its model.
        model: String,
        /// The way that is tried first.
        method: Option<Method>,
        /// Bytes of the plan.
        bytes: u64,
    },
    /// A proof ended.
    Proof {
        /// When.
        at: String,
        /// What came of it.
        proof: Proof,
    },
    /// One command.
    Trim {
        /// When.
        at: String,
        /// By which way.
        method: Method,
        /// (First block of the whole disk, count).
        ranges: Vec<(u64, u64)>,
        /// Why it failed, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// It is over.
    End {
        /// When.
        at: String,
        /// How.
        ending: Ending,
        /// What was done.
        done: Done,
    },
}

/// Who watches: draws progress, keeps the log, and says when to stop.
pub trait Watch {
    /// So many of so many bytes are done.
    fn progress(&mut self, done_bytes: u64, total_bytes: u64);
    /// Something happened.
    ///
    /// # Errors
    /// The log cannot be written; the work stops before the next command.
    fn log(&mut self, entry: &LogEntry) -> std::io::Result<()>;
    /// Whether to stop before the next command.
    fn stop(&self) -> bool;
}

/// Nobody watches.
#[derive(Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn progress(&mut self, _done_bytes: u64, _total_bytes: u64) {}
    fn log(&mut self, _entry: &LogEntry) -> std::io::Result<()> {
        Ok(())
    }
    fn stop(&self) -> bool {
        false
    }
}

/// Why nothing was planned or done.
#[derive(Debug, thiserror::Error)]
pub enum TrimError {
    /// The ranges make no sense on this target.
    #[error("{0}")]
    BadRange(String),
    /// Refused for safety.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The log cannot be written.
    #[error("the log: {0}")]
    Log(std::io::Error),
    /// The user interrupted it before anything was written.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// The device could not be opened or read.
    #[error(transparent)]
    Drive(#[from] DriveError),
}

impl From<crate::transport::TransportError> for TrimError {
    fn from(error: crate::transport::TransportError) -> Self {
        Self::Drive(error.into())
    }
}

/// How a run ended: the account, and the failure that stopped it if there was one.
#[derive(Debug)]
pub struct TrimRun {
    /// The account.
    pub report: TrimReport,
    /// What stopped it.
    pub error: Option<TrimError>,
}

/// Plans, and with [`Ask::commit`] trims, a device of the kernel or of the simulator. `proc` is where the mount table is.
///
/// # Errors
/// Nothing was done: bad ranges, a refusal, or a device that cannot be opened or read. A failure after that is in the
/// result, with the account of what was done before.
pub fn run(
    name: &str,
    options: &OpenOptions,
    proc: &Path,
    ask: &Ask,
    watch: &mut dyn Watch,
) -> Result<TrimRun, TrimError> {
    let (mut session, target) = Session::begin(name, options, proc, ask.commit)?;
    let drive = Drive::open_target(name, target, options, Care::MayWake)?;
    on_drive(drive, &mut session, ask, watch)
}

/// The same on a drive that is open already; the caller vouches that nobody else uses it.
///
/// # Errors
/// As [`run`].
pub fn run_on(drive: Drive, ask: &Ask, watch: &mut dyn Watch) -> Result<TrimRun, TrimError> {
    let mut session = Session::unclaimed(drive.facts());
    on_drive(drive, &mut session, ask, watch)
}

fn on_drive(
    mut drive: Drive,
    session: &mut Session,
    ask: &Ask,
    watch: &mut dyn Watch,
) -> Result<TrimRun, TrimError> {
    let geometry = drive.geometry()?;
    // From here on a unit attention means that the drive was reset or changed.
    session.start_watching(&drive);
    let identity = Identity::of(&drive, &geometry);
    if let (Some(own), Some(shown)) = (
        drive.identify().and_then(|i| i.capacity_bytes()),
        geometry.bytes(),
    ) && own < shown
    {
        return Err(Refusal::Unclear {
            device: drive.name().to_owned(),
            why: format!("the bridge shows {shown} bytes, and the drive has only {own}: its addresses cannot be trusted"),
        }
        .into());
    }
    if drive.media() == Media::Rotating && !ask.rotational {
        return Err(Refusal::Rotating {
            device: drive.name().to_owned(),
        }
        .into());
    }
    if let Some(why) = deny::denied(&identity.model) {
        return Err(Refusal::Denied {
            device: drive.name().to_owned(),
            model: identity.model,
            why,
        }
        .into());
    }
    let target = session.target(&mut drive, &geometry)?;
    if watch.stop() {
        return Err(TrimError::Interrupted);
    }
    // A wrong number is told even where nothing would be written.
    if ask.commit || ask.serial.is_some() {
        session.check_serial(&drive, &identity, ask.serial.as_deref())?;
    }
    let base = BlockRange {
        first: target.start_block,
        count: target.blocks,
    };
    let found = match &ask.what {
        What::All => free::Found::of(vec![base]),
        What::Ranges(ranges) => free::Found::of(stated_ranges(ranges, base)?),
        What::Free { gaps } => free::find(&mut drive, &geometry, base, *gaps)?,
    };
    let mut found = found;
    if !matches!(ask.what, What::Free { .. }) {
        found.volumes = free::holdings(&mut drive, &geometry, base)?;
    }
    if watch.stop() {
        return Err(TrimError::Interrupted);
    }
    let paths = paths::find(&mut drive, &geometry, ask.method)?;
    let mut report = TrimReport {
        schema: "drivethru-trim/1",
        schema_version: 1,
        device: drive.device_ref(),
        target,
        what: ask.what.word(),
        commit: ask.commit,
        method: paths.open.first().map(|p| p.method),
        refused: paths.refused,
        plan: Plan::new(&[], 0, geometry.block_bytes, None),
        volumes: found.volumes,
        left_alone: found.left_alone,
        failed_proofs: Vec::new(),
        stamp_left: None,
        proof: None,
        done: None,
        verified: None,
        ending: Ending::Planned,
    };
    let block_bytes = geometry.block_bytes;
    let lay_out = |path: Option<&paths::Path>| {
        let ranges = match path {
            Some(path) => found
                .ranges
                .iter()
                .filter_map(|r| path.limits.aligned(*r))
                .collect(),
            None => found.ranges.clone(),
        };
        let plan = Plan::new(
            &ranges,
            base.first,
            block_bytes,
            path.map(|p| (p.method, p.limits)),
        );
        (ranges, plan)
    };
    report.plan = lay_out(paths.open.first()).1;
    let stated: u64 = found.ranges.iter().map(|r| r.count).sum();
    let odd_bytes = (stated * u64::from(block_bytes)).saturating_sub(report.plan.bytes);
    if let Some(path) = paths.open.first().filter(|_| odd_bytes > 0) {
        report.left_alone.push(LeftAlone {
            what: format!("{} at the ends of ranges", crate::units::human_bytes(odd_bytes)),
            why: format!(
                "the device discards whole units of {} blocks only",
                path.limits.granularity_blocks
            ),
        });
    }
    if found.ranges.is_empty() {
        report.ending = Ending::NothingToDo;
    } else if paths.open.is_empty() {
        report.ending = Ending::NoMethod;
    }
    if !ask.commit || report.ending != Ending::Planned {
        return Ok(TrimRun { report, error: None });
    }
    let mut work = Work {
        drive,
        session,
        geometry,
        identity,
        report,
        verify: ask.verify,
        done: Done::default(),
    };
    let outcome = work.go(paths.open, &lay_out, watch);
    // Whatever happened: from here on nothing writes.
    work.drive.permits.clear();
    let error = outcome.err().and_then(|stopped| work.account(stopped));
    let end = LogEntry::End {
        at: work.drive.clock().rfc3339(),
        ending: work.report.ending.clone(),
        done: work.done,
    };
    let error = match watch.log(&end) {
        Err(log) if error.is_none() => work.account(Stopped::Log(log)),
        _ => error,
    };
    Ok(TrimRun {
        report: work.report,
        error,
    })
}

/// Ranges that the user typed, as blocks of the whole disk.
fn stated_ranges(ranges: &[(u64, u64)], base: BlockRange) -> Result<Vec<BlockRange>, TrimError> {
    let bad = |what: String| Err(TrimError::BadRange(what));
    let mut out = Vec::with_capacity(ranges.len());
    for (first, count) in ranges {
        if *count == 0 {
            return bad(format!("{first}+0 is an empty range"));
        }
        let end = first.checked_add(*count);
        if end.is_none_or(|end| end > base.count) {
            return bad(format!(
                "{first}+{count} goes past the end: the target has {} blocks",
                base.count
            ));
        }
        out.push(BlockRange {
            first: base.first + first,
            count: *count,
        });
    }
    out.sort();
    let mut before: Option<&BlockRange> = None;
    for range in &out {
        if let Some(before) = before
            && before.end().is_none_or(|end| end > range.first)
        {
            return bad(format!(
                "{}+{} and {}+{} overlap",
                before.first - base.first,
                before.count,
                range.first - base.first,
                range.count
            ));
        }
        before = Some(range);
    }
    Ok(merged(out))
}
