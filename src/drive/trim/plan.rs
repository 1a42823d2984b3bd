//! From ranges of free blocks to commands: merged, aligned, and cut to what a path carries.

use serde::Serialize;

use super::Method;
use crate::ata::dsm;
use crate::permit::BlockRange;

/// What one command of a path can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PathLimits {
    /// Ranges in one command.
    pub ranges: usize,
    /// Blocks in one range.
    pub range_blocks: u64,
    /// Blocks in all ranges of one command.
    pub command_blocks: u64,
    /// What the device discards is made of units of so many blocks; 1 where it does not say.
    pub granularity_blocks: u64,
    /// The first whole unit starts at this block.
    pub alignment_blocks: u64,
}

impl PathLimits {
    /// DATA SET MANAGEMENT with a list of so many 512-byte blocks.
    pub fn ata(payload_blocks: u16) -> Self {
        let ranges = usize::from(payload_blocks.max(1)) * dsm::RANGES_PER_BLOCK;
        Self {
            ranges,
            range_blocks: dsm::RANGE_SECTORS_MAX,
            command_blocks: u64::MAX,
            granularity_blocks: 1,
            alignment_blocks: 0,
        }
    }

    /// One range in each command, as BLKDISCARD and WRITE SAME have it.
    pub fn one_range(blocks: u64) -> Self {
        Self {
            ranges: 1,
            range_blocks: blocks.max(1),
            command_blocks: blocks.max(1),
            granularity_blocks: 1,
            alignment_blocks: 0,
        }
    }

    /// The whole units within a range; `None` if there are none.
    pub fn aligned(&self, range: BlockRange) -> Option<BlockRange> {
        let unit = self.granularity_blocks.max(1);
        let offset = self.alignment_blocks % unit;
        let shifted = |block: u64| block.saturating_sub(offset);
        let end = range.end()?;
        let first = shifted(range.first)
            .div_ceil(unit)
            .checked_mul(unit)?
            .checked_add(offset)?;
        let first = if range.first <= offset { offset } else { first };
        let last = shifted(end) / unit * unit + offset;
        (last > first && end >= offset).then(|| BlockRange {
            first,
            count: last - first,
        })
    }
}

/// Sorts ranges and joins those that touch or overlap; empty ones vanish.
pub fn merged(mut ranges: Vec<BlockRange>) -> Vec<BlockRange> {
    ranges.retain(|r| r.count > 0);
    ranges.sort();
    let mut out: Vec<BlockRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end().is_none_or(|end| end >= range.first) => {
                let end = last
                    .end()
                    .unwrap_or(u64::MAX)
                    .max(range.end().unwrap_or(u64::MAX));
                last.count = end - last.first;
            }
            _ => out.push(range),
        }
    }
    out
}

/// The commands for ranges that are in order and do not overlap: as few as the limits allow.
///
/// A command is filled up before the next begins, and a range is cut where one is full; that is the least number of
/// commands for lists that keep their order.
pub fn commands(ranges: &[BlockRange], limits: &PathLimits) -> Vec<Vec<BlockRange>> {
    let mut out = Vec::new();
    let mut current: Vec<BlockRange> = Vec::new();
    let mut room_blocks = limits.command_blocks.max(1);
    let unit = limits.granularity_blocks.max(1);
    for range in ranges {
        let mut rest = *range;
        while rest.count > 0 {
            let mut now = rest.count.min(limits.range_blocks.max(1)).min(room_blocks);
            if now < rest.count && now >= unit {
                now = now / unit * unit;
            }
            // A cut in the middle of a unit would discard neither half of it.
            let splinter = now < rest.count && now < unit && !current.is_empty();
            if current.len() >= limits.ranges.max(1) || now == 0 || splinter {
                out.push(std::mem::take(&mut current));
                room_blocks = limits.command_blocks.max(1);
                continue;
            }
            current.push(BlockRange {
                first: rest.first,
                count: now,
            });
            room_blocks -= now;
            rest.first += now;
            rest.count -= now;
        }
    }
    if !current.is_empty() {
        out.push(current);
    }
    out
}

/// What will be done, or would be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// (First block, count) as the target counts them, in order.
    pub extents: Vec<(u64, u64)>,
    /// Sum of the extents.
    pub bytes: u64,
    /// Commands that it takes by the method that would be used; 0 without one.
    pub commands: u64,
    /// A guess at how long that takes, in seconds: 10 ms for each command, and 1 s for each 100 GB.
    pub estimated_seconds: f64,
    /// What the method carries in one command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<PathLimits>,
}

impl Plan {
    /// Counts up what `ranges` of the whole disk come to; extents are told from `origin_blocks` on.
    pub fn new(
        ranges: &[BlockRange],
        origin_blocks: u64,
        block_bytes: u32,
        method: Option<(Method, PathLimits)>,
    ) -> Self {
        let blocks: u64 = ranges.iter().map(|r| r.count).sum();
        let bytes = blocks.saturating_mul(u64::from(block_bytes));
        let count = method.map_or(0, |(_, limits)| commands(ranges, &limits).len() as u64);
        Self {
            extents: ranges
                .iter()
                .map(|r| (r.first.saturating_sub(origin_blocks), r.count))
                .collect(),
            bytes,
            commands: count,
            estimated_seconds: count as f64 * 0.01 + bytes as f64 / 100e9,
            limits: method.map(|(_, limits)| limits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(first: u64, count: u64) -> BlockRange {
        BlockRange { first, count }
    }

    #[test]
    fn ranges_are_cut_to_whole_units() {
        let limits = PathLimits {
            granularity_blocks: 8,
            alignment_blocks: 3,
            ..PathLimits::one_range(1000)
        };
        assert_eq!(limits.aligned(range(3, 8)), Some(range(3, 8)));
        assert_eq!(limits.aligned(range(4, 15)), Some(range(11, 8)));
        assert_eq!(limits.aligned(range(0, 11)), Some(range(3, 8)));
        assert_eq!(limits.aligned(range(4, 14)), None);
        assert_eq!(limits.aligned(range(0, 3)), None);
        assert_eq!(limits.aligned(range(0, 2)), None);
    }

    #[test]
    fn a_command_is_filled_before_the_next_begins() {
        let limits = PathLimits {
            ranges: 2,
            range_blocks: 10,
            command_blocks: 15,
            granularity_blocks: 1,
            alignment_blocks: 0,
        };
        assert_eq!(
            commands(&[range(0, 12), range(100, 4), range(200, 1)], &limits),
            [
                vec![range(0, 10), range(10, 2)],
                vec![range(100, 4), range(200, 1)],
            ]
        );
    }

    proptest! {
        /// Every block once, in order, nothing else, and within the limits.
        #[test]
        fn commands_cover_exactly_the_ranges(
            raw in prop::collection::vec((1u64..500, 1u64..3000), 0..40),
            ranges in 1usize..8, range_blocks in 1u64..700, command_blocks in 1u64..2000, granularity in 1u64..20,
        ) {
            let mut at = 0;
            let wanted: Vec<BlockRange> = raw.iter().map(|(gap, count)| {
                let r = range(at + gap, *count);
                at += gap + count;
                r
            }).collect();
            let limits = PathLimits { ranges, range_blocks, command_blocks, granularity_blocks: granularity, alignment_blocks: 0 };
            let out = commands(&wanted, &limits);
            for command in &out {
                prop_assert!(!command.is_empty() && command.len() <= ranges);
                prop_assert!(command.iter().all(|r| r.count > 0 && r.count <= range_blocks));
                prop_assert!(command.iter().map(|r| r.count).sum::<u64>() <= command_blocks);
            }
            prop_assert_eq!(merged(out.concat()), merged(wanted.clone()));
            let sum: u64 = out.concat().iter().map(|r| r.count).sum();
            prop_assert_eq!(sum, wanted.iter().map(|r| r.count).sum::<u64>());
        }

        #[test]
        fn aligning_never_grows(first in 0u64..1000, count in 1u64..1000, unit in 1u64..64, offset in 0u64..64) {
            let limits = PathLimits { granularity_blocks: unit, alignment_blocks: offset, ..PathLimits::one_range(1) };
            let whole = range(first, count);
            let offset = offset % unit;
            if let Some(inner) = limits.aligned(whole) {
                prop_assert!(whole.holds(inner));
                prop_assert_eq!(inner.first % unit, offset);
                prop_assert_eq!(inner.count % unit, 0);
                prop_assert!(count - inner.count < 2 * unit + offset);
            } else {
                prop_assert!(count < 2 * unit + offset);
            }
        }
    }
}
