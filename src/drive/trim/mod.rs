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

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

pub use authorise::{Identity, Refusal};
pub use image::run_image;
pub use mounted::run_mounted;
pub use paths::{Method, Refused};
pub use plan::{PathLimits, Plan, merged};
pub use proof::{Outcome, Proof};
pub use report::{Done, Ending, LeftAlone, Target, TrimReport, Verified, Volume};

use super::media::Geometry;
use super::power::Media;
use super::{Care, Drive, DriveError, OpenOptions};
use crate::permit::{BlockRange, Permit};
use authorise::Session;
use proof::{Scratch, Tried};

/// A drive may think for a while about a list of gigabytes: so many times the usual time-out.
const PATIENCE: u32 = 3;
/// A command that took longer is followed by a pause half as long: the drive is busy with what it was told.
const PACE_AFTER: Duration = Duration::from_secs(1);
/// The identity is read again this often while the work goes on.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Such a pause is never longer.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Ranges whose neighbours `--verify` watches.
const WATCHED_RANGES: usize = 256;
/// `--verify` reads at least one block of each so many trimmed bytes.
const SAMPLE_STEP_BYTES: u64 = 64 << 20;
/// And no more samples than this.
const SAMPLES_MAX: u64 = 20_000;

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

/// Why the work ended early.
enum Stopped {
    Drive(DriveError),
    Refused(Refusal),
    Log(std::io::Error),
    Interrupted,
}

impl From<DriveError> for Stopped {
    fn from(error: DriveError) -> Self {
        Self::Drive(error)
    }
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

struct Work<'a> {
    drive: Drive,
    session: &'a mut Session,
    geometry: Geometry,
    identity: Identity,
    report: TrimReport,
    verify: bool,
    done: Done,
}

type LayOut<'a> = dyn Fn(Option<&paths::Path>) -> (Vec<BlockRange>, Plan) + 'a;

impl Work<'_> {
    /// What stopped it goes into the account, and is handed on.
    fn account(&mut self, stopped: Stopped) -> Option<TrimError> {
        self.report.done = Some(self.done);
        let error = match stopped {
            Stopped::Drive(error) => TrimError::Drive(error),
            Stopped::Refused(refusal) => TrimError::Refused(refusal),
            Stopped::Log(error) => TrimError::Log(error),
            Stopped::Interrupted => {
                self.report.ending = Ending::Interrupted;
                return None;
            }
        };
        self.report.ending = Ending::Stopped {
            why: error.to_string(),
        };
        Some(error)
    }

    fn go(
        &mut self,
        paths: Vec<paths::Path>,
        lay_out: &LayOut,
        watch: &mut dyn Watch,
    ) -> Result<(), Stopped> {
        let begin = LogEntry::Begin {
            at: self.drive.clock().rfc3339(),
            serial: self.identity.serial.clone().unwrap_or_default(),
            model: self.identity.model.clone(),
            method: self.report.method,
            bytes: self.report.plan.bytes,
        };
        watch.log(&begin).map_err(Stopped::Log)?;
        let mut proven = None;
        for mut path in paths {
            if watch.stop() {
                return Err(Stopped::Interrupted);
            }
            let (ranges, _) = lay_out(Some(&path));
            let Some(scratch) = Scratch::place(&ranges, &path, self.geometry.block_bytes) else {
                self.refuse(
                    path.method,
                    "no range is large enough to prove it on first".to_owned(),
                );
                continue;
            };
            // Right before the first write: it is still the drive that was planned for.
            self.session
                .check_identity(&mut self.drive, &self.geometry, &self.identity)?;
            let permit = Permit::to_discard(self.geometry.block_bytes, ranges.clone())
                .map_err(|e| Stopped::Drive(self.drive.odd(e.to_string())))?;
            match self.prove(&mut path, scratch)? {
                Tried::Broken { error, stamp_left } => {
                    self.report.stamp_left = stamp_left;
                    return Err(Stopped::Drive(*error));
                }
                Tried::Refused(why) => self.refuse(path.method, why),
                Tried::Judged(proof) => {
                    let entry = LogEntry::Proof {
                        at: self.drive.clock().rfc3339(),
                        proof: (*proof).clone(),
                    };
                    watch.log(&entry).map_err(Stopped::Log)?;
                    if proof.outcome.is_proven() {
                        proven = Some((path, ranges, permit, *proof));
                        break;
                    }
                    self.refuse(path.method, proof.words.clone());
                    let ends_all = proof.outcome.ends_all();
                    self.report.failed_proofs.push(*proof);
                    if ends_all {
                        break;
                    }
                }
            }
        }
        let Some((path, ranges, permit, proof)) = proven else {
            self.report.method = None;
            self.report.ending = if self.report.failed_proofs.is_empty() {
                Ending::NoMethod
            } else {
                Ending::NotProven
            };
            return Ok(());
        };
        self.report.method = Some(path.method);
        self.report.plan = lay_out(Some(&path)).1;
        self.report.proof = Some(proof.clone());
        let edges = if self.verify {
            self.edges(&ranges)?
        } else {
            Vec::new()
        };
        self.session
            .check_identity(&mut self.drive, &self.geometry, &self.identity)?;
        let permit = if proof.same_lba_by_ata {
            permit.with_ata()
        } else {
            permit
        };
        self.drive.permits.put(permit);
        self.commit(&path, &ranges, watch)?;
        self.drive.permits.clear();
        self.report.done = Some(self.done);
        self.report.ending = Ending::Done;
        if self.verify {
            let verified = self.look_again(&ranges, &edges, proof.outcome)?;
            if verified.wrong_count > 0 {
                self.report.ending = Ending::VerifyFailed;
            }
            self.report.verified = Some(verified);
        }
        Ok(())
    }

    fn refuse(&mut self, method: Method, why: String) {
        self.report.refused.push(Refused { method, why });
    }

    fn prove(&mut self, path: &mut paths::Path, scratch: Scratch) -> Result<Tried, DriveError> {
        let tried = proof::prove(
            &mut self.drive,
            self.session.claim(),
            path,
            scratch,
            &self.geometry,
            self.session.nonce(),
            self.session.attentions(),
        );
        self.drive.permits.clear();
        tried
    }

    /// All commands, one after the other; the first failure ends it.
    fn commit(
        &mut self,
        path: &paths::Path,
        ranges: &[BlockRange],
        watch: &mut dyn Watch,
    ) -> Result<(), Stopped> {
        let block_bytes = self.geometry.block_bytes;
        let clock = self.drive.clock();
        let start = clock.now();
        let mut looked_at = start;
        let total_bytes = self.report.plan.bytes;
        watch.progress(0, total_bytes);
        for command in plan::commands(ranges, &path.limits) {
            if watch.stop() {
                return Err(Stopped::Interrupted);
            }
            let before = clock.now();
            if before.saturating_sub(looked_at) >= LOOK_EVERY {
                // Not every bridge tells that its drive was changed, and the kernel keeps it to itself.
                self.session
                    .check_identity(&mut self.drive, &self.geometry, &self.identity)?;
                looked_at = before;
            }
            let result = path.discard(&mut self.drive, self.session.claim(), &command, block_bytes);
            let took = clock.now().saturating_sub(before);
            let entry = LogEntry::Trim {
                at: clock.rfc3339(),
                method: path.method,
                ranges: command.iter().map(|r| (r.first, r.count)).collect(),
                error: result.as_ref().err().map(ToString::to_string),
            };
            let logged = watch.log(&entry);
            result?;
            let blocks: u64 = command.iter().map(|r| r.count).sum();
            self.done.bytes += blocks * u64::from(block_bytes);
            self.done.commands += 1;
            self.done.elapsed_seconds = clock.now().saturating_sub(start).as_secs_f64();
            logged.map_err(Stopped::Log)?;
            watch.progress(self.done.bytes, total_bytes);
            if took > PACE_AFTER {
                clock.sleep((took / 2).min(PAUSE_MAX));
            }
        }
        self.drive.flush_cache()?;
        Ok(())
    }

    /// The blocks beside the first ranges, as they are before.
    fn edges(&mut self, ranges: &[BlockRange]) -> Result<Vec<(u64, Vec<u8>)>, DriveError> {
        let mut places = Vec::new();
        for range in ranges.iter().take(WATCHED_RANGES) {
            // Only of the target itself: what is beside it may be in use, and change.
            let (start, blocks) = (self.report.target.start_block, self.report.target.blocks);
            places.extend(range.first.checked_sub(1).filter(|place| *place >= start));
            places.extend(range.end().filter(|end| *end < start + blocks));
        }
        let trimmed = |block: u64| {
            let at = ranges.partition_point(|r| r.first <= block);
            at.checked_sub(1).and_then(|i| ranges.get(i)).is_some_and(|r| {
                r.holds(BlockRange {
                    first: block,
                    count: 1,
                })
            })
        };
        places.dedup();
        let mut edges = Vec::with_capacity(places.len());
        for place in places.into_iter().filter(|place| !trimmed(*place)) {
            let data = self
                .drive
                .read_blocks(place, 1, self.geometry.block_bytes, false)?;
            edges.push((place, data));
        }
        Ok(edges)
    }

    fn look_again(
        &mut self,
        ranges: &[BlockRange],
        edges: &[(u64, Vec<u8>)],
        proven: Outcome,
    ) -> Result<Verified, DriveError> {
        let block_bytes = self.geometry.block_bytes;
        if let Some(claim) = self.session.claim() {
            claim.flush_buffers()?;
        }
        let mut verified = Verified::default();
        for (place, before) in edges {
            let now = self.drive.read_blocks(*place, 1, block_bytes, false)?;
            verified.neighbours += 1;
            if now != *before {
                verified.found(format!("block {place}, beside a trimmed range, has changed"));
            }
        }
        let blocks: u64 = ranges.iter().map(|r| r.count).sum();
        let step = (SAMPLE_STEP_BYTES / u64::from(block_bytes))
            .max(blocks / SAMPLES_MAX)
            .max(1);
        // Of more ranges than samples, every so many.
        let every = (ranges.len() as u64).div_ceil(SAMPLES_MAX / 4).max(1);
        for (i, range) in ranges.iter().enumerate() {
            if !(i as u64).is_multiple_of(every) {
                continue;
            }
            let last = range.count - 1;
            let mut places: Vec<u64> = (0..=last)
                .step_by(usize::try_from(step).unwrap_or(usize::MAX))
                .collect();
            places.extend([last / 2, last]);
            places.sort_unstable();
            places.dedup();
            for place in places {
                let block = range.first + place;
                let data = proof::read_past_caches(
                    &mut self.drive,
                    BlockRange {
                        first: block,
                        count: 1,
                    },
                    block_bytes,
                )?
                .0;
                verified.samples += 1;
                if data.iter().all(|b| *b == 0) {
                    verified.as_proven += 1;
                } else if proven != Outcome::Zeroed {
                    // Anything may stand there, what was there before too: nobody can tell.
                    verified.cannot_tell += 1;
                } else {
                    verified.found(format!("block {block} was trimmed and does not read as zeroes"));
                }
            }
        }
        Ok(verified)
    }
}
