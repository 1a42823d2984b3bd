//! The work after the plan: proof, commands, and a second look.

use std::time::Duration;

use super::authorise::{Identity, Refusal, Session};
use super::proof::{Scratch, Tried};
use super::report::{Done, Ending, TrimReport, Verified};
use super::{LogEntry, Method, Outcome, Plan, Refused, TrimError, Watch, paths, plan, proof};
use crate::drive::media::Geometry;
use crate::drive::{Drive, DriveError};
use crate::permit::{BlockRange, Permit};

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

/// Why the work ended early.
pub(super) enum Stopped {
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

pub(super) struct Work<'a> {
    pub drive: Drive,
    pub session: &'a mut Session,
    pub geometry: Geometry,
    pub identity: Identity,
    pub report: TrimReport,
    pub verify: bool,
    pub done: Done,
}

pub(super) type LayOut<'a> = dyn Fn(Option<&paths::Path>) -> (Vec<BlockRange>, Plan) + 'a;

impl Work<'_> {
    /// What stopped it goes into the account, and is handed on.
    pub fn account(&mut self, stopped: Stopped) -> Option<TrimError> {
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

    pub fn go(
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
