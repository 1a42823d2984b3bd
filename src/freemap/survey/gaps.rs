//! What lies between partitions, before the first and behind the last.

use std::collections::BTreeMap;

use super::volume::Judged;
use super::{
    Extent, LeftAlone, Partition, ReadAt, Reason, Scheme, Survey, Table, Window, shrink, signatures,
};
use crate::freemap::ReadError;
use crate::freemap::partitions::Edge;

/// So much of one gap is read to see whether it is all zero.
const GAP_BYTES: u64 = 64 << 20;
/// And so much of all gaps of a disk.
const ALL_GAPS_BYTES: u64 = 256 << 20;
/// Where only its file system says that a partition ends no later, what follows may still be its own: RAID metadata stand
/// in its last 128 KiB.
const UNCONFIRMED_BYTES: u64 = 1 << 20;
const STEP_BYTES: u64 = 1 << 20;

/// Adds what is free between the partitions, and says what is left alone there.
pub(super) fn find(
    target: &dyn ReadAt,
    take: bool,
    table: &Table,
    judged: &BTreeMap<u32, Judged>,
    out: &mut Survey,
) {
    let mut outer: Vec<&Partition> = table
        .partitions
        .iter()
        .filter(|p| table.scheme == Scheme::Gpt || p.number <= 4)
        .collect();
    outer.sort_by_key(|p| p.extent);
    let (Some(first), Some(last)) = (outer.first(), outer.last()) else {
        return;
    };
    let mut alone = |start: u64, end: u64, what: String, why| {
        if end > start {
            out.left_alone.push(LeftAlone {
                extent: Extent {
                    start_bytes: start,
                    len_bytes: end - start,
                },
                what,
                why,
            });
        }
    };
    alone(
        0,
        first.extent.start_bytes,
        "before the first partition".to_owned(),
        Reason::Outside("what precedes the partitions"),
    );
    alone(
        end_of(last),
        target.size_bytes(),
        "behind the last partition".to_owned(),
        Reason::Outside("what follows the partitions"),
    );
    for container in outer.iter().filter(|p| p.container) {
        let mut at = container.extent.start_bytes;
        let mut inner: Vec<&Partition> = table.partitions.iter().filter(|p| p.number > 4).collect();
        inner.retain(|p| (at..end_of(container)).contains(&p.extent.start_bytes));
        inner.sort_by_key(|p| p.extent);
        let what = || format!("extended partition {}", container.number);
        let why = || Reason::Outside("what an extended partition holds beside its logical ones");
        for logical in inner {
            alone(at, logical.extent.start_bytes, what(), why());
            at = end_of(logical);
        }
        alone(at, end_of(container), what(), why());
    }

    let mut budget_bytes = ALL_GAPS_BYTES;
    for pair in outer.windows(2) {
        let [before, behind] = pair else { continue };
        let (start, end) = (end_of(before), behind.extent.start_bytes);
        let Some(len_bytes) = end.checked_sub(start).filter(|len| *len > 0) else {
            continue;
        };
        let extent = Extent {
            start_bytes: start,
            len_bytes,
        };
        let why = match unsure(target, table, judged, before, behind, extent) {
            Some(why) => Some(Reason::Unsure(why)),
            None if take => None,
            None => match zero(target, extent, &mut budget_bytes) {
                Ok(None) => None,
                Ok(Some(why)) => Some(Reason::Gap(why.to_owned())),
                Err(error) => Some(Reason::Refused(error.into())),
            },
        };
        let kept_bytes = match (&why, before.end) {
            (Some(_), _) => len_bytes,
            (None, Edge::Confirmed) => 0,
            (None, _) => len_bytes.min(UNCONFIRMED_BYTES),
        };
        if kept_bytes > 0 {
            out.left_alone.push(LeftAlone {
                extent: Extent {
                    len_bytes: kept_bytes,
                    ..extent
                },
                what: format!("gap behind partition {}", before.number),
                why: why.unwrap_or(Reason::Outside("what follows the file system of a partition")),
            });
        }
        out.free.extend(shrink(
            Extent {
                start_bytes: start + kept_bytes,
                len_bytes: len_bytes - kept_bytes,
            },
            table.sector_bytes,
        ));
    }
}

fn end_of(partition: &Partition) -> u64 {
    partition
        .extent
        .start_bytes
        .saturating_add(partition.extent.len_bytes)
}

/// An MBR has no checksum: one changed bit in it moves the edge of a partition, and its files seem to lie in a gap. So the
/// neighbours must confirm their edges, and nothing may start in the gap.
fn unsure(
    target: &dyn ReadAt,
    table: &Table,
    judged: &BTreeMap<u32, Judged>,
    before: &Partition,
    behind: &Partition,
    gap: Extent,
) -> Option<String> {
    if table.scheme == Scheme::Gpt {
        return None;
    }
    let inner = |p: &Partition| {
        p.container
            && table.partitions.iter().any(|l| {
                l.number > 4 && p.extent.start_bytes < l.extent.start_bytes && end_of(l) <= end_of(p)
            })
    };
    let content = |p: &Partition| judged.get(&p.number);
    let edges = [
        (
            before,
            before.end,
            content(before).is_some_and(|j| j.ends),
            "ends",
        ),
        (
            behind,
            behind.start,
            content(behind).is_some_and(|j| j.starts),
            "starts",
        ),
    ];
    for (partition, edge, by_content, verb) in edges {
        match edge {
            Edge::Confirmed => {}
            Edge::Unconfirmed if by_content || inner(partition) => {}
            Edge::Unconfirmed => {
                return Some(format!(
                    "nothing but the MBR, which has no checksum, says where partition {} {verb}",
                    partition.number
                ));
            }
            Edge::Disputed => {
                return Some(format!(
                    "the MBR says in two ways where partition {} {verb}, and they differ",
                    partition.number
                ));
            }
        }
    }
    match Window::new(target, gap).map(|window| signatures(&window)) {
        Some(Ok(found)) => found
            .first()
            .map(|s| format!("there are the marks of {} in it (wipefs removes them)", s.what)),
        Some(Err(error)) => Some(error.to_string()),
        None => Some("it lies outside of the disk".to_owned()),
    }
}

/// Why a gap does not count as all zero, if it does not.
fn zero(
    target: &dyn ReadAt,
    extent: Extent,
    budget_bytes: &mut u64,
) -> Result<Option<&'static str>, ReadError> {
    if extent.len_bytes > GAP_BYTES || extent.len_bytes > *budget_bytes {
        return Ok(Some("it is too large to see whether it is all zero"));
    }
    let mut buffer = vec![0; extent.len_bytes.min(STEP_BYTES) as usize];
    let mut done = 0;
    while done < extent.len_bytes {
        let step = (extent.len_bytes - done).min(STEP_BYTES);
        let Some(part) = buffer.get_mut(..step as usize) else {
            break;
        };
        target.read_at(extent.start_bytes + done, part)?;
        *budget_bytes = budget_bytes.saturating_sub(step);
        if part.iter().any(|b| *b != 0) {
            return Ok(Some("it is not all zero"));
        }
        done += step;
    }
    Ok(None)
}
