//! The proof of a path on a scratch range, before anything else is discarded.
//!
//! The scratch range lies in the middle of the largest range that will be discarded anyway. It and a neighbour on each side
//! are stamped; for ATA paths the drive itself must read the stamp at the same LBA; then the scratch range alone is
//! discarded, and all three are read back past the caches. What was there before is put back where a path fails.

use nix::errno::Errno;
use serde::Serialize;

use super::paths::{Method, Path};
use super::stamp::{self, Reads};
use crate::bridge::taskfile::Taskfile;
use crate::bridge::{BridgeError, Failure};
use crate::drive::media::Geometry;
use crate::drive::{Access, Drive, DriveError};
use crate::permit::{BlockRange, Permit};
use crate::transport::TransportError;
use crate::transport::block::Claim;

/// What is discarded to prove a path, at most.
const SCRATCH_BYTES: u64 = 1 << 20;
/// A neighbour on each side has so many bytes.
const NEIGHBOUR_BYTES: u64 = 4096;
/// Sectors that one ATA READ of the proof brings.
const ATA_READ_SECTORS: u64 = 8;

/// How a proof ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The scratch range reads as zeroes.
    Zeroed,
    /// It reads as something else than before, and the drive promised no zeroes: allowed.
    UndefinedButAllowed,
    /// It reads as before: accepted but not done. Never called a success.
    Unchanged,
    /// The device promises zeroes and returns something else.
    BrokenPromise,
    /// A part of it reads as before.
    Incomplete,
    /// A neighbour changed: it discards what it was not told to.
    NeighbourHarmed,
    /// What was written did not come back.
    WritesLost,
    /// The drive has other data at that LBA than the host.
    AddressesDiffer,
    /// What was written is to be read at another address, too.
    Aliased,
}

impl Outcome {
    /// Whether the path may be used.
    pub fn is_proven(self) -> bool {
        matches!(self, Self::Zeroed | Self::UndefinedButAllowed)
    }

    /// Whether nothing more must be tried on this device.
    pub fn ends_all(self) -> bool {
        matches!(self, Self::NeighbourHarmed | Self::WritesLost | Self::Aliased)
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Zeroed => "trimmed blocks read as zeroes",
            Self::UndefinedButAllowed => {
                "trimmed blocks read as something else than before; the device promises no zeroes, so that is allowed"
            }
            Self::Unchanged => "the command was accepted, and nothing was done: the blocks read as before",
            Self::BrokenPromise => {
                "the device promises that trimmed blocks read as zeroes, and returns something else"
            }
            Self::Incomplete => "only a part of what was trimmed changed",
            Self::NeighbourHarmed => {
                "blocks beside the trimmed range changed: the device trims what it was not told to"
            }
            Self::WritesLost => "what was written did not come back",
            Self::Aliased => "what was written shows up at another address too",
            Self::AddressesDiffer => {
                "the drive holds other data at that address than the host sees there: the bridge moves, joins or encrypts blocks"
            }
        }
    }
}

/// What was done to prove a path, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// The path.
    pub method: Method,
    /// First block and count of what was stamped, as the host counts the whole disk.
    pub stamped: (u64, u64),
    /// First block and count of what was discarded of it.
    pub discarded: (u64, u64),
    /// Whether the drive itself was asked for the stamp at the same LBA (ATA paths).
    pub same_lba_by_ata: bool,
    /// The device promises zeroes.
    pub promises_zeroes: bool,
    /// How it was read back: `fua`, `plain`, and `ata` where the drive was asked too.
    pub read_back: Vec<&'static str>,
    /// How it ended.
    pub outcome: Outcome,
    /// The same in words, with what was found.
    pub words: String,
    /// Where a bridge moves blocks: by so many, as its stamps show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift_blocks: Option<i64>,
}

/// The scratch range with its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scratch {
    /// All of it.
    pub whole: BlockRange,
    /// The part in the middle that will be discarded.
    pub inner: BlockRange,
}

impl Scratch {
    /// Finds room in the middle of the largest range; `None` where no range has room for a unit and its two neighbours.
    ///
    /// The middle, so that a bridge which moves addresses is likely to hit nothing but free blocks.
    pub fn place(ranges: &[BlockRange], path: &Path, block_bytes: u32) -> Option<Self> {
        let largest = ranges.iter().max_by_key(|r| r.count)?;
        let block = u64::from(block_bytes.max(1));
        let unit = path.limits.granularity_blocks.max(1);
        let neighbour = NEIGHBOUR_BYTES.div_ceil(block);
        // As large as there is room for. Start and end are odd multiples of the unit: a device that widens a range to anything
        // larger than the unit then reaches a neighbour, and is found out.
        let offset = path.limits.alignment_blocks % unit;
        for wanted in [SCRATCH_BYTES / block, 65_536 / block, 8192 / block, 1] {
            // An even number of units, so that the end is odd where the start is.
            let units = wanted.div_ceil(unit).max(2).next_multiple_of(2);
            let inner_blocks = units.checked_mul(unit)?;
            // Neighbours of at least a unit, so that a whole wider unit on either side lies within.
            let beside = neighbour.max(unit);
            let total = inner_blocks.checked_add(beside.checked_mul(2)?)?;
            if total > largest.count {
                continue;
            }
            let middle = largest.first + (largest.count - total) / 2 + beside;
            let odd = |from: u64| {
                let index = from.saturating_sub(offset).div_ceil(unit);
                let index = if index % 2 == 1 { index } else { index + 1 };
                index.checked_mul(unit)?.checked_add(offset)
            };
            // As near the middle as it goes, else as near the start.
            for first in [odd(middle)?, odd(largest.first + beside)?] {
                let Some(start) = first.checked_sub(beside) else {
                    continue;
                };
                let inner = BlockRange {
                    first,
                    count: inner_blocks,
                };
                let whole = BlockRange {
                    first: start,
                    count: inner_blocks + 2 * beside,
                };
                if largest.holds(whole) {
                    return Some(Self { whole, inner });
                }
            }
        }
        None
    }
}

/// What became of the try to prove a path.
#[derive(Debug)]
pub(super) enum Tried {
    /// The discard was accepted.
    Judged(Box<Proof>),
    /// The device or the kernel refused it outright: nothing was discarded.
    Refused(String),
    /// A command failed: nothing more is to be sent.
    Broken {
        error: Box<DriveError>,
        /// Blocks that still hold the stamp.
        stamp_left: Option<(u64, u64)>,
    },
}

/// Proves one path. The drive's own contents of the scratch range are put back unless it worked.
///
/// # Errors
/// A command failed: nothing more is to be sent.
pub(super) fn prove(
    drive: &mut Drive,
    claim: Option<&Claim>,
    path: &mut Path,
    scratch: Scratch,
    geometry: &Geometry,
    nonce: u64,
    attentions: u64,
) -> Result<Tried, DriveError> {
    let block_bytes = geometry.block_bytes;
    let count = |range: BlockRange| u32::try_from(range.count).unwrap_or(u32::MAX);
    let proof = Proof {
        method: path.method,
        stamped: (scratch.whole.first, scratch.whole.count),
        discarded: (scratch.inner.first, scratch.inner.count),
        same_lba_by_ata: false,
        promises_zeroes: path.promises_zeroes,
        read_back: Vec::new(),
        outcome: Outcome::WritesLost,
        words: String::new(),
        shift_blocks: None,
    };
    let before = drive.read_blocks(scratch.whole.first, count(scratch.whole), block_bytes, false)?;
    if drive.attentions() != attentions {
        return Err(drive.odd("it was reset, or its medium changed, while it was looked at".to_owned()));
    }
    let stamped = stamp::stamp(scratch.whole.first, scratch.whole.count, nonce, block_bytes);
    // Nothing is proven yet: no more than this is permitted meanwhile.
    let writing = Permit::to_discard(block_bytes, vec![scratch.whole])
        .and_then(|p| p.with_scratch(scratch.whole))
        .map_err(|_| drive.odd("the scratch range is not within what was permitted".to_owned()))?;
    drive.permits.put(writing.clone());
    let trial = Trial {
        claim,
        scratch,
        before: &before,
        stamped: &stamped,
        writing: &writing,
        geometry,
        nonce,
    };
    match trial.run(drive, path, proof) {
        Ok(tried) => Ok(tried),
        Err(error) => {
            // What can be mended is; where the device takes nothing any more, its user is told.
            let left = trial.put_back(drive).is_err();
            Ok(Tried::Broken {
                error: Box::new(error),
                stamp_left: left.then_some((scratch.whole.first, scratch.whole.count)),
            })
        }
    }
}

/// One proof, from the stamp on.
struct Trial<'a> {
    claim: Option<&'a Claim>,
    scratch: Scratch,
    before: &'a [u8],
    stamped: &'a [u8],
    writing: &'a Permit,
    geometry: &'a Geometry,
    nonce: u64,
}

impl Trial<'_> {
    fn run(&self, drive: &mut Drive, path: &mut Path, mut proof: Proof) -> Result<Tried, DriveError> {
        let (scratch, block_bytes) = (self.scratch, self.geometry.block_bytes);
        drive.write_blocks(scratch.whole.first, self.stamped, block_bytes)?;
        drive.flush_cache()?;
        let (written, _) = read_past_caches(drive, scratch.whole, block_bytes)?;
        if written != self.stamped {
            // Whoever loses writes cannot be trusted to put anything back either.
            return Ok(proof.ended(Outcome::WritesLost));
        }
        if let Some(place) = self.alias(drive)? {
            self.put_back(drive)?;
            proof.words = format!(
                "block {} shows up at block {place} too: the device has less room than it claims",
                scratch.whole.first
            );
            proof.outcome = Outcome::Aliased;
            return Ok(Tried::Judged(Box::new(proof)));
        }
        if path.method == Method::Ata {
            match same_addresses(drive, scratch, self.stamped, block_bytes, self.nonce)? {
                Same::Yes => {
                    proof.same_lba_by_ata = true;
                    drive.permits.put(self.writing.clone().with_ata());
                }
                Same::No { shift_blocks, why } => {
                    proof.outcome = Outcome::AddressesDiffer;
                    proof.shift_blocks = shift_blocks;
                    proof.words = why;
                    self.put_back(drive)?;
                    return Ok(Tried::Judged(Box::new(proof)));
                }
            }
        }
        match path.discard_to_prove(drive, self.claim, scratch.inner, block_bytes) {
            Ok(()) => {}
            Err(error) if is_refusal(&error) => {
                self.put_back(drive)?;
                return Ok(Tried::Refused(error.to_string()));
            }
            Err(error) => return Err(error),
        }
        drive.flush_cache()?;
        if let Some(claim) = self.claim {
            claim.flush_buffers()?;
        }
        let (after, how) = read_past_caches(drive, scratch.whole, block_bytes)?;
        proof.read_back.push(how);
        let mut outcome = judge(&after, self.stamped, scratch, block_bytes, path.promises_zeroes);
        if proof.same_lba_by_ata && outcome.is_proven() {
            // The drive's own word, of the neighbours too: the bridge may have a cache of its own.
            proof.read_back.push("ata");
            let from_drive = read_ata(drive, scratch.whole.first, scratch.whole.count, block_bytes)?;
            outcome = judge(
                &from_drive,
                self.stamped,
                scratch,
                block_bytes,
                path.promises_zeroes,
            );
        }
        if !outcome.is_proven() {
            self.put_back(drive)?;
        }
        Ok(proof.ended(outcome))
    }

    fn put_back(&self, drive: &mut Drive) -> Result<(), DriveError> {
        drive.write_blocks(self.scratch.whole.first, self.before, self.geometry.block_bytes)?;
        drive.flush_cache()
    }

    /// Where else the first stamped block is to be read. Of a drive that tells its own size that is not asked; a stick with less
    /// room than it claims begins again at 0 somewhere, mostly after a power of two.
    fn alias(&self, drive: &mut Drive) -> Result<Option<u64>, DriveError> {
        if drive.identify().is_some() {
            return Ok(None);
        }
        let first = self.scratch.whole.first;
        let powers = (11..63).map(|k| 1u64 << k);
        let shares = (1..8).map(|j| self.geometry.blocks >> j);
        let mut places: Vec<u64> = powers
            .chain(shares)
            .filter(|size| *size > 0 && *size <= first)
            .map(|size| first % size)
            .filter(|place| {
                !self.scratch.whole.holds(BlockRange {
                    first: *place,
                    count: 1,
                })
            })
            .collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let block = drive.read_blocks(place, 1, self.geometry.block_bytes, false)?;
            if stamp::address_in(&block, self.nonce) == Some(first) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}

impl Proof {
    fn ended(mut self, outcome: Outcome) -> Tried {
        self.outcome = outcome;
        outcome.words().clone_into(&mut self.words);
        Tried::Judged(Box::new(self))
    }
}

/// The command was turned down as such (invalid opcode or field, aborted, not supported), so that nothing was done.
fn is_refusal(error: &DriveError) -> bool {
    match error {
        DriveError::Answered { sense_key, .. } => *sense_key == Some(5),
        DriveError::Bridge(BridgeError::Failed { failure, .. }) => {
            failure.never_reached_the_drive() || matches!(failure, Failure::Aborted { .. })
        }
        DriveError::Avoided { .. } => true,
        DriveError::Transport(TransportError::Os { source, .. }) => {
            // EIO too: a bridge that rejects what the kernel makes of it.
            matches!(
                source,
                Errno::EOPNOTSUPP | Errno::EREMOTEIO | Errno::ENOTTY | Errno::EIO
            )
        }
        _ => false,
    }
}

fn judge(after: &[u8], stamped: &[u8], scratch: Scratch, block_bytes: u32, promises_zeroes: bool) -> Outcome {
    let size = block_bytes as usize;
    let head = (scratch.inner.first - scratch.whole.first) as usize * size;
    let tail = head + scratch.inner.count as usize * size;
    let part = |data: &[u8], from: usize, to: usize| data.get(from..to).map(<[u8]>::to_vec);
    if part(after, 0, head) != part(stamped, 0, head)
        || part(after, tail, after.len()) != part(stamped, tail, stamped.len())
    {
        return Outcome::NeighbourHarmed;
    }
    let (now, then) = (part(after, head, tail), part(stamped, head, tail));
    match stamp::reads(&now.unwrap_or_default(), &then.unwrap_or_default(), block_bytes) {
        Reads::Zeroed => Outcome::Zeroed,
        Reads::Unchanged => Outcome::Unchanged,
        Reads::Partly => Outcome::Incomplete,
        Reads::Other if promises_zeroes => Outcome::BrokenPromise,
        Reads::Other => Outcome::UndefinedButAllowed,
    }
}

/// Reads with FUA, or plainly where the device does not know that.
pub(super) fn read_past_caches(
    drive: &mut Drive,
    range: BlockRange,
    block_bytes: u32,
) -> Result<(Vec<u8>, &'static str), DriveError> {
    let count = u32::try_from(range.count).unwrap_or(u32::MAX);
    match drive.read_blocks(range.first, count, block_bytes, true) {
        Ok(data) => Ok((data, "fua")),
        Err(DriveError::Answered {
            sense_key: Some(5), ..
        }) => Ok((
            drive.read_blocks(range.first, count, block_bytes, false)?,
            "plain",
        )),
        Err(error) => Err(error),
    }
}

enum Same {
    Yes,
    No { shift_blocks: Option<i64>, why: String },
}

/// Whether an ATA READ of the drive finds the stamp at the LBA where the host wrote it.
fn same_addresses(
    drive: &mut Drive,
    scratch: Scratch,
    stamped: &[u8],
    block_bytes: u32,
    nonce: u64,
) -> Result<Same, DriveError> {
    let found = match read_ata(drive, scratch.whole.first, scratch.whole.count, block_bytes) {
        Ok(found) => found,
        // It cannot be shown, which is as good as not the same.
        Err(DriveError::Bridge(error)) => {
            return Ok(Same::No {
                shift_blocks: None,
                why: format!("the drive itself could not be asked what it holds there: {error}"),
            });
        }
        Err(error) => return Err(error),
    };
    if found == stamped {
        return Ok(Same::Yes);
    }
    let shift_blocks = found
        .chunks(block_bytes as usize)
        .zip(scratch.whole.first..)
        .find_map(|(block, place)| Some(stamp::address_in(block, nonce)?.wrapping_sub(place) as i64));
    let why = match shift_blocks {
        Some(shift) => format!(
            "the drive holds block {} where the host has block {}: the bridge moves addresses",
            scratch.whole.first.wrapping_add_signed(shift),
            scratch.whole.first
        ),
        None => Outcome::AddressesDiffer.words().to_owned(),
    };
    Ok(Same::No { shift_blocks, why })
}

/// Reads from the drive itself, by READ DMA EXT.
fn read_ata(drive: &mut Drive, first: u64, count: u64, sector_bytes: u32) -> Result<Vec<u8>, DriveError> {
    debug_assert!(matches!(drive.access(), Access::Ata(_)));
    let most = (ATA_READ_SECTORS * 512 * 16 / u64::from(sector_bytes.max(1))).clamp(1, 128);
    let mut all = Vec::new();
    let mut at = first;
    let end = first.saturating_add(count).min(1 << 48);
    while at < end {
        let now = (end - at).min(most);
        let taskfile = Taskfile::read_dma_ext(at, u8::try_from(now).unwrap_or(1), sector_bytes);
        all.extend(drive.ata("READ DMA EXT", taskfile)?.data.unwrap_or_default());
        at += now;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::plan::PathLimits;
    use super::*;
    use proptest::prelude::*;

    fn path(unit: u64, offset: u64) -> Path {
        Path {
            method: Method::Unmap,
            limits: PathLimits {
                granularity_blocks: unit,
                alignment_blocks: offset,
                ..PathLimits::one_range(1 << 20)
            },
            promises_zeroes: true,
            payload_blocks: 0,
        }
    }

    proptest! {
        #[test]
        fn the_scratch_lies_inside_and_is_made_of_units(
            first in 0u64..100_000, count in 1u64..50_000, unit in 1u64..600, offset in 0u64..600, wide in any::<bool>(),
        ) {
            let largest = BlockRange { first, count };
            let ranges = [BlockRange { first: 0, count: 0 }, largest];
            let block_bytes = if wide { 4096 } else { 512 };
            match Scratch::place(&ranges, &path(unit, offset), block_bytes) {
                Some(s) => {
                    prop_assert!(largest.holds(s.whole) && s.whole.holds(s.inner));
                    prop_assert!(s.inner.first > s.whole.first && s.inner.end() < s.whole.end());
                    prop_assert_eq!(s.inner.count % unit, 0);
                    prop_assert_eq!(s.inner.first % unit, offset % unit);
                    prop_assert_eq!((s.inner.first - offset % unit) / unit % 2, 1);
                    prop_assert_eq!(s.inner.count / unit % 2, 0);
                    prop_assert!(s.inner.count * u64::from(block_bytes) <= SCRATCH_BYTES + 2 * unit * u64::from(block_bytes));
                }
                None => prop_assert!(count < 8 * unit + 64, "{count}"),
            }
        }
    }

    #[test]
    fn every_ending_has_its_name() {
        let scratch = Scratch {
            whole: BlockRange { first: 10, count: 6 },
            inner: BlockRange { first: 12, count: 2 },
        };
        let stamped = stamp::stamp(10, 6, 1, 512);
        let with = |from: usize, to: usize, fill: u8| {
            let mut data = stamped.clone();
            data[from * 512..to * 512].fill(fill);
            data
        };
        let judged = |data: &[u8], zeroes| judge(data, &stamped, scratch, 512, zeroes);
        assert_eq!(judged(&with(2, 4, 0), true), Outcome::Zeroed);
        assert_eq!(judged(&stamped, true), Outcome::Unchanged);
        assert_eq!(judged(&stamped, false), Outcome::Unchanged);
        assert_eq!(judged(&with(2, 3, 0), false), Outcome::Incomplete);
        assert_eq!(judged(&with(2, 4, 0xff), true), Outcome::BrokenPromise);
        assert_eq!(judged(&with(2, 4, 0xff), false), Outcome::UndefinedButAllowed);
        assert_eq!(judged(&with(2, 5, 0), true), Outcome::NeighbourHarmed);
        assert_eq!(judged(&with(1, 4, 0), true), Outcome::NeighbourHarmed);
    }
}
