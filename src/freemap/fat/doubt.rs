//! What nothing confirms.
//!
//! FAT12 and FAT16 have no backup of the boot sector: one flipped bit in it can move all clusters or change their size, and
//! the chains still look right. A directory confirms both, for it says in which cluster it lies; a file of several
//! clusters confirms their size. Where neither is there, only what is free under every reading that is as good is free.

use super::boot::{Kind, Layout};
use super::table::Scan;
use super::tree::{ENTRY_BYTES, Tree, like_entry};
use super::{Extent, contradiction};
use crate::freemap::{ReadAt, Refusal, UsedMap};

const READ_BYTES: u64 = 1 << 16;
/// The most entries that a root directory can have.
const MOST_ENTRIES: u64 = 0xffff;

/// How the clusters might lie other than the boot sector says.
struct Doubt {
    /// The first cluster may start so much before.
    back_bytes: u64,
    /// Or so much behind.
    ahead_bytes: u64,
    /// How large a cluster may be, in sectors, and how many there would be.
    sizes: Vec<(u64, u64)>,
    /// One flipped bit would explain it.
    likely: bool,
}

pub(super) fn free(
    volume: &dyn ReadAt,
    layout: &Layout,
    scan: &Scan,
    tree: &Tree,
) -> Result<Vec<Extent>, Refusal> {
    let lost = scan
        .used_clusters
        .saturating_sub(scan.bad_clusters)
        .saturating_sub(tree.claimed_clusters);
    if lost > 0 && !tree.place_confirmed {
        return Err(contradiction(
            format!(
                "{lost} clusters are in use, no file has them, and nothing else tells where clusters lie"
            ),
            layout.table_bytes(0),
        ));
    }
    let start = layout.data_bytes();
    let cluster_bytes = u64::from(layout.cluster_bytes);
    let free: Vec<Extent> = scan
        .used
        .free_runs()
        .map(|(first, count)| Extent {
            start_bytes: start + first * cluster_bytes,
            len_bytes: count * cluster_bytes,
        })
        .collect();
    let doubt = doubt(volume, layout, scan, tree)?;
    let sure = doubt.narrow(&free, layout, &scan.used);
    let total = |extents: &[Extent]| extents.iter().map(|e| u128::from(e.len_bytes)).sum::<u128>();
    // No flipped bit makes a power of two of another. Where only worse damage explains it, a small volume is not given up.
    let cheap = total(&sure) * 100 >= total(&free) * 99;
    Ok(if doubt.likely || cheap { sure } else { free })
}

impl Doubt {
    /// What is free under all readings.
    fn narrow(&self, free: &[Extent], layout: &Layout, used: &UsedMap) -> Vec<Extent> {
        let start = layout.data_bytes();
        let own = u64::from(layout.cluster_sectors);
        let mut free = free.to_vec();
        for (sectors, clusters) in &self.sizes {
            if *sectors == own && self.back_bytes == 0 && self.ahead_bytes == 0 {
                continue;
            }
            let size_bytes = sectors * u64::from(layout.sector_bytes);
            let first = start.saturating_sub(self.back_bytes);
            let behind = start + self.ahead_bytes;
            let taken =
                std::iter::once((0, behind))
                    .chain(used_runs(used).map(|(from, count)| {
                        (first + from * size_bytes, behind + (from + count) * size_bytes)
                    }))
                    .chain(std::iter::once((first + clusters * size_bytes, u64::MAX)));
            free = without(&free, taken);
        }
        free
    }
}

fn doubt(volume: &dyn ReadAt, layout: &Layout, scan: &Scan, tree: &Tree) -> Result<Doubt, Refusal> {
    let mut doubt = Doubt {
        back_bytes: 0,
        ahead_bytes: 0,
        sizes: vec![(u64::from(layout.cluster_sectors), layout.clusters)],
        likely: false,
    };
    let sector_bytes = u64::from(layout.sector_bytes);
    if !tree.place_confirmed {
        if layout.root_entries > 0 && !usual_root(layout) {
            // Not those of floppies: there one flipped bit makes one of another, and nobody can trim a floppy.
            doubt.likely = (0..16).any(|bit| common_root(layout.root_entries ^ (1 << bit)));
            (doubt.back_bytes, doubt.ahead_bytes) = root_doubt(volume, layout)?;
        }
        // Files confirm where their directory lies, a second table where the first one ends. With neither, the table
        // may be as large as mkfs makes it.
        if tree.owners == 1 && layout.tables == 1 {
            let need = layout.kind.table_sectors(layout.clusters, layout.sector_bytes);
            let most = need.next_multiple_of(u64::from(layout.cluster_sectors));
            doubt.ahead_bytes += most.saturating_sub(layout.table_sectors) * sector_bytes;
        }
        doubt.back_bytes = doubt.back_bytes.next_multiple_of(sector_bytes);
        doubt.ahead_bytes = doubt.ahead_bytes.next_multiple_of(sector_bytes);
    }
    if !tree.cluster_size_confirmed {
        doubt.sizes.extend(other_sizes(layout));
        // A size that has no room for what is in use is none.
        let last = used_runs(&scan.used)
            .last()
            .map_or(0, |(start, count)| start + count);
        doubt.sizes.retain(|(_, clusters)| *clusters >= last);
    }
    Ok(doubt)
}

/// Sizes of the root directory that are made, so far apart that one flipped bit makes none of another.
fn usual_root(layout: &Layout) -> bool {
    match layout.root_entries {
        112 => matches!(layout.total_sectors, 320 | 360 | 640 | 720 | 1440),
        224 => matches!(layout.total_sectors, 2400 | 2880 | 5760),
        entries => common_root(entries),
    }
}

fn common_root(entries: u64) -> bool {
    entries >= 64 && entries.is_power_of_two()
}

/// How much shorter and longer the fixed root directory could be: what follows its last entry is 0.
fn root_doubt(volume: &dyn ReadAt, layout: &Layout) -> Result<(u64, u64), Refusal> {
    let start = layout.root_bytes();
    let mut used_bytes = 0;
    let mut ended = None;
    each_slot(volume, start, layout.root_len_bytes(), |at, slot| {
        if slot.iter().any(|b| *b != 0) {
            used_bytes = at + ENTRY_BYTES as u64 - start;
        }
        if slot.first() == Some(&0) && ended.is_none() {
            ended = Some(at);
        }
        true
    })?;
    if let Some(at) = ended
        && used_bytes > at - start
    {
        return Err(contradiction(
            "something follows the end of the root directory",
            at,
        ));
    }
    let more = (MOST_ENTRIES.saturating_sub(layout.root_entries) * ENTRY_BYTES as u64)
        .min(layout.data_sectors() * u64::from(layout.sector_bytes));
    let mut ahead_bytes = 0;
    let mut zeros = ended.is_some();
    each_slot(volume, layout.data_bytes(), more, |_, slot| {
        zeros |= slot.first() == Some(&0);
        let could = if zeros {
            slot.iter().all(|b| *b == 0)
        } else {
            like_entry(slot)
        };
        if could {
            ahead_bytes += ENTRY_BYTES as u64;
        }
        could
    })?;
    Ok((layout.root_len_bytes() - used_bytes, ahead_bytes))
}

/// Calls with each 32 bytes and their address, until it says that it is enough.
fn each_slot(
    volume: &dyn ReadAt,
    start: u64,
    len_bytes: u64,
    mut f: impl FnMut(u64, &[u8]) -> bool,
) -> Result<(), Refusal> {
    let mut buffer = Vec::new();
    let mut done = 0;
    while done < len_bytes {
        let now = (len_bytes - done).min(READ_BYTES);
        buffer.resize(now as usize, 0);
        volume.read_at(start + done, &mut buffer)?;
        for (i, slot) in buffer.chunks_exact(ENTRY_BYTES).enumerate() {
            if !f(start + done + (i * ENTRY_BYTES) as u64, slot) {
                return Ok(());
            }
        }
        done += now;
    }
    Ok(())
}

/// Whether mkfs would make such a table: the smallest, or that one filled up to whole clusters.
fn usual_table(table_sectors: u64, need: u64, cluster_sectors: u64) -> bool {
    table_sectors == need || table_sectors == need.next_multiple_of(cluster_sectors)
}

/// The other cluster sizes that the table would fit as well.
fn other_sizes(layout: &Layout) -> impl Iterator<Item = (u64, u64)> + '_ {
    let fits = |sectors: u64| {
        let clusters = layout.data_sectors() / sectors;
        let kind = match layout.kind {
            Kind::Fat32 => Kind::Fat32,
            _ => Kind::of_small(clusters)?,
        };
        let need = kind.table_sectors(clusters, layout.sector_bytes);
        (clusters > 0 && kind == layout.kind && need <= layout.table_sectors)
            .then(|| (clusters, usual_table(layout.table_sectors, need, sectors)))
    };
    let own = u64::from(layout.cluster_sectors);
    let usual = fits(own).is_some_and(|(_, usual)| usual);
    (0..8)
        .map(|shift| 1 << shift)
        .filter(move |sectors| *sectors != own)
        .filter_map(move |sectors| {
            let (clusters, other_usual) = fits(sectors)?;
            (other_usual || !usual).then_some((sectors, clusters))
        })
}

fn used_runs(map: &UsedMap) -> impl Iterator<Item = (u64, u64)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = map.first_used(at, map.units() - at)?;
        let end = map.first_free(start, map.units() - start).unwrap_or(map.units());
        at = end;
        Some((start, end - start))
    })
}

/// What is left of sorted extents without ranges that are sorted by their starts and by their ends.
fn without(extents: &[Extent], taken: impl Iterator<Item = (u64, u64)>) -> Vec<Extent> {
    let mut taken = taken.peekable();
    let mut out = Vec::new();
    for extent in extents {
        let end = extent.start_bytes.saturating_add(extent.len_bytes);
        let mut at = extent.start_bytes;
        while at < end {
            let Some((from, to)) = taken.peek().copied() else {
                break;
            };
            if to <= at {
                taken.next();
                continue;
            }
            if from >= end {
                break;
            }
            if from > at {
                out.push(Extent {
                    start_bytes: at,
                    len_bytes: from - at,
                });
            }
            at = to;
        }
        if at < end {
            out.push(Extent {
                start_bytes: at,
                len_bytes: end - at,
            });
        }
    }
    out
}
