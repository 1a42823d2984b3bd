//! What may be written on one device: exact ranges of blocks, and nothing else.
//!
//! A [`Permit`] is made by `drive::authorise` after all its checks, put into the [`PermitSlot`] that the guard of the same
//! transport looks into, and taken out again at the end. Without one nothing writes.

use std::sync::{Arc, Mutex, PoisonError};

/// A range of logical blocks, as the host counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockRange {
    /// The first block.
    pub first: u64,
    /// How many, never 0 in a permit.
    pub count: u64,
}

impl BlockRange {
    /// One past the last block; `None` beyond 64 bits.
    pub fn end(self) -> Option<u64> {
        self.first.checked_add(self.count)
    }

    /// Whether `other` lies within this range, and is not empty.
    pub fn holds(self, other: Self) -> bool {
        other.count > 0
            && other.first >= self.first
            && matches!((other.end(), self.end()), (Some(theirs), Some(ours)) if theirs <= ours)
    }
}

/// What was permitted, by the checks of `drive::authorise`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    block_bytes: u32,
    discard: Vec<BlockRange>,
    scratch: Option<BlockRange>,
    drive_counts_alike: bool,
}

/// Ranges that make no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a permit needs ranges that are not empty, in order, and do not overlap")]
pub struct BadRanges;

impl Permit {
    /// Permits discarding these ranges, which are sorted and do not overlap.
    ///
    /// # Errors
    /// They are not, or one is empty or ends beyond 64 bits.
    pub fn to_discard(block_bytes: u32, ranges: Vec<BlockRange>) -> Result<Self, BadRanges> {
        let mut end = 0;
        for range in &ranges {
            if range.count == 0 || range.first < end {
                return Err(BadRanges);
            }
            end = range.end().ok_or(BadRanges)?;
        }
        if block_bytes == 0 {
            return Err(BadRanges);
        }
        Ok(Self {
            block_bytes,
            discard: ranges,
            scratch: None,
            drive_counts_alike: false,
        })
    }

    /// Permits writing to one range, too; it lies within one that may be discarded.
    ///
    /// # Errors
    /// It does not.
    pub fn with_scratch(mut self, scratch: BlockRange) -> Result<Self, BadRanges> {
        if !self.may_discard(scratch) {
            return Err(BadRanges);
        }
        self.scratch = Some(scratch);
        Ok(self)
    }

    /// The proof is over: nothing may be written any more.
    #[must_use]
    pub fn without_scratch(mut self) -> Self {
        self.scratch = None;
        self
    }

    /// It was shown that the drive's LBA is the host's, so that ATA commands which discard may pass.
    #[must_use]
    pub fn with_ata(mut self) -> Self {
        self.drive_counts_alike = true;
        self
    }

    /// The size of a logical block in bytes.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Whether the drive was shown to count as the host does.
    pub fn allows_ata(&self) -> bool {
        self.drive_counts_alike
    }

    /// Whether all of `range` lies within one range that may be discarded.
    pub fn may_discard(&self, range: BlockRange) -> bool {
        let at = self.discard.partition_point(|r| r.first <= range.first);
        at.checked_sub(1)
            .and_then(|i| self.discard.get(i))
            .is_some_and(|r| r.holds(range))
    }

    /// Whether all of `range` may be written.
    pub fn may_write(&self, range: BlockRange) -> bool {
        self.scratch.is_some_and(|scratch| scratch.holds(range))
    }
}

/// Where the guard of a transport finds the permit of the moment.
#[derive(Debug, Clone, Default)]
pub struct PermitSlot(Arc<Mutex<Option<Permit>>>);

impl PermitSlot {
    /// From now on this is permitted, and what was before is not.
    pub fn put(&self, permit: Permit) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(permit);
    }

    /// From now on nothing is permitted.
    pub fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Works with what is permitted now.
    pub fn with<R>(&self, work: impl FnOnce(Option<&Permit>) -> R) -> R {
        work(self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, count: u64) -> BlockRange {
        BlockRange { first, count }
    }

    #[test]
    fn a_permit_is_exact() {
        let permit = Permit::to_discard(512, vec![range(10, 5), range(15, 5), range(100, 8)]).unwrap();
        assert!(permit.may_discard(range(10, 5)) && permit.may_discard(range(104, 4)));
        for outside in [
            range(9, 1),
            range(10, 0),
            range(10, 6),
            range(14, 2),
            range(107, 2),
            range(108, 1),
            range(101, u64::MAX),
        ] {
            assert!(!permit.may_discard(outside), "{outside:?}");
            assert!(!permit.may_write(outside), "{outside:?}");
        }
        assert!(!permit.may_write(range(10, 1)));
        assert!(permit.clone().with_scratch(range(20, 1)).is_err());
        let permit = permit.with_scratch(range(100, 4)).unwrap();
        assert!(permit.may_write(range(101, 3)) && !permit.may_write(range(101, 4)));
        assert!(!permit.without_scratch().may_write(range(101, 3)));
    }

    #[test]
    fn odd_ranges_make_no_permit() {
        for ranges in [
            vec![range(1, 0)],
            vec![range(5, 5), range(9, 1)],
            vec![range(5, 5), range(1, 1)],
            vec![range(u64::MAX, 2)],
        ] {
            assert_eq!(Permit::to_discard(512, ranges), Err(BadRanges));
        }
    }
}
