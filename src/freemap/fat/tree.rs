//! All directories, and the chains of all that is in them (FAT specification, chapters 6 and 7).

use std::ops::RangeInclusive;

use super::boot::Layout;
use super::contradiction;
use super::table::{Link, Table};
use crate::freemap::{ReadAt, Refusal, UsedMap};
use crate::wire::{le16, le32};

pub(super) const ENTRY_BYTES: usize = 32;
const DELETED: u8 = 0xe5;
const LABEL: u8 = 0x08;
const DIRECTORY: u8 = 0x10;
const LONG_NAME: u8 = 0x0f;
const ATTRIBUTES: u8 = 0x3f;
const READ_BYTES: u64 = 1 << 16;
/// The most that a directory can be (chapter 6.2).
const MOST_DIRECTORY_BYTES: u64 = 65536 * 32;

/// What was found.
pub(super) struct Tree {
    /// Files and directories, the root among them.
    pub owners: u64,
    pub claimed_clusters: u64,
    /// A directory lies where the layout says that its cluster lies.
    pub place_confirmed: bool,
    /// The size of a cluster could not be another.
    pub cluster_size_confirmed: bool,
}

/// A directory that is to be read; its chain is claimed already.
struct Directory {
    /// `None` for the fixed root directory.
    cluster: Option<u32>,
    /// What `..` may say; `None` for the root, which has no `..`.
    parents: Option<[u32; 2]>,
}

struct Walk<'a, 'b> {
    volume: &'a dyn ReadAt,
    layout: &'a Layout,
    table: &'b mut Table<'a>,
    claimed: UsedMap,
    pending: Vec<Directory>,
    tree: Tree,
}

pub(super) fn walk<'a>(
    volume: &'a dyn ReadAt,
    layout: &'a Layout,
    table: &mut Table<'a>,
) -> Result<Tree, Refusal> {
    let mut walk = Walk {
        volume,
        layout,
        table,
        claimed: UsedMap::all_free(layout.clusters),
        pending: Vec::new(),
        tree: Tree {
            owners: 1,
            claimed_clusters: 0,
            place_confirmed: layout.confirmed,
            cluster_size_confirmed: layout.confirmed,
        },
    };
    if let Some(root) = layout.root_cluster {
        walk.claim_directory(root, 44)?;
    }
    walk.pending.push(Directory {
        cluster: layout.root_cluster,
        parents: None,
    });
    let mut buffer = Vec::new();
    while let Some(directory) = walk.pending.pop() {
        walk.read_directory(&directory, &mut buffer)?;
    }
    Ok(walk.tree)
}

impl Walk<'_, '_> {
    fn claim_directory(&mut self, first: u32, at: u64) -> Result<(), Refusal> {
        let most = MOST_DIRECTORY_BYTES.div_ceil(u64::from(self.layout.cluster_bytes));
        self.claim(first, 1..=most, at).map(drop)
    }

    /// Follows a chain and takes its clusters; how many. `at` is where it is said.
    fn claim(&mut self, first: u32, expected: RangeInclusive<u64>, at: u64) -> Result<u64, Refusal> {
        let Some(mut start) = self.layout.index(first) else {
            return Err(contradiction(
                format!("something starts at cluster {first}, which is none"),
                at,
            ));
        };
        let most = *expected.end();
        let (mut cluster, mut run, mut count) = (first, 1, 1);
        loop {
            if count > most {
                return Err(contradiction(
                    format!("the chain from cluster {first} is longer than {most} clusters"),
                    at,
                ));
            }
            let link = self.table.get(cluster)?;
            if let Link::Next(next) = link {
                count += 1;
                cluster = next;
                let index = u64::from(next) - 2;
                if index == start + run {
                    run += 1;
                } else {
                    self.take(start, run, at)?;
                    (start, run) = (index, 1);
                }
                continue;
            }
            self.take(start, run, at)?;
            match link {
                Link::End if expected.contains(&count) => {}
                Link::End => {
                    return Err(contradiction(
                        format!("the chain from cluster {first} has {count} clusters, not {most}"),
                        at,
                    ));
                }
                _ => {
                    let what = if link == Link::Free { "free" } else { "bad" };
                    return Err(contradiction(
                        format!("cluster {cluster}, in the chain from {first}, is marked as {what}"),
                        self.table.entry_bytes(u64::from(cluster)),
                    ));
                }
            }
            self.tree.claimed_clusters += count;
            return Ok(count);
        }
    }

    fn take(&mut self, start: u64, count: u64, at: u64) -> Result<(), Refusal> {
        if let Some(index) = self.claimed.first_used(start, count) {
            return Err(contradiction(
                format!("cluster {} belongs to two files, or twice to one", index + 2),
                at,
            ));
        }
        self.claimed.use_units(start, count);
        Ok(())
    }

    fn read_directory(&mut self, directory: &Directory, buffer: &mut Vec<u8>) -> Result<(), Refusal> {
        let mut number = 0;
        let Some(mut cluster) = directory.cluster else {
            let (start, len_bytes) = (self.layout.root_bytes(), self.layout.root_len_bytes());
            self.read_part(directory, &mut number, start, len_bytes, buffer)?;
            return Ok(());
        };
        // The chain was claimed, so it ends.
        loop {
            let start = self.layout.cluster_start_bytes(cluster);
            let len_bytes = u64::from(self.layout.cluster_bytes);
            if self.read_part(directory, &mut number, start, len_bytes, buffer)? {
                return Ok(());
            }
            match self.table.get(cluster)? {
                Link::Next(next) => cluster = next,
                _ => return Ok(()),
            }
        }
    }

    /// Reads some entries of a directory; whether it ended there.
    fn read_part(
        &mut self,
        directory: &Directory,
        number: &mut u64,
        start: u64,
        len_bytes: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<bool, Refusal> {
        let mut done = 0;
        while done < len_bytes {
            let now = (len_bytes - done).min(READ_BYTES);
            buffer.resize(now as usize, 0);
            self.volume.read_at(start + done, buffer)?;
            for (i, entry) in buffer.chunks_exact(ENTRY_BYTES).enumerate() {
                let at = start + done + (i * ENTRY_BYTES) as u64;
                if self.read_entry(directory, *number, entry, at)? {
                    return Ok(true);
                }
                *number += 1;
            }
            done += now;
        }
        Ok(false)
    }

    /// Whether it is the end of the directory.
    fn read_entry(
        &mut self,
        directory: &Directory,
        number: u64,
        entry: &[u8],
        at: u64,
    ) -> Result<bool, Refusal> {
        let byte = |i: usize| entry.get(i).copied().unwrap_or_default();
        if let Some(parents) = directory.parents
            && number < 2
        {
            self.check_dots(directory, parents, number, entry, at)?;
            return Ok(false);
        }
        let attributes = byte(11);
        match byte(0) {
            0 => return Ok(true),
            DELETED => return Ok(false),
            _ if attributes & ATTRIBUTES == LONG_NAME => return Ok(false),
            _ => {}
        }
        check_name(entry, at)?;
        if attributes & LABEL != 0 {
            return if attributes & DIRECTORY == 0 {
                Ok(false)
            } else {
                Err(contradiction(
                    "an entry is both a directory and the name of the volume",
                    at,
                ))
            };
        }
        let first = self.first_cluster(entry);
        self.tree.owners += 1;
        if attributes & DIRECTORY != 0 {
            self.claim_directory(first, at)?;
            let own = directory.cluster.unwrap_or_default();
            self.pending.push(Directory {
                cluster: Some(first),
                // The root is 0 there; some write where it starts.
                parents: Some([own, if directory.parents.is_none() { 0 } else { own }]),
            });
            return Ok(false);
        }
        let size_bytes = u64::from(le32(entry, 28).unwrap_or_default());
        let expected = size_bytes.div_ceil(u64::from(self.layout.cluster_bytes));
        if expected == 0 {
            return if first == 0 {
                Ok(false)
            } else {
                Err(contradiction(
                    format!("an empty file starts at cluster {first}"),
                    at,
                ))
            };
        }
        let count = self.claim(first, expected..=expected, at)?;
        // With half or double clusters, a file of two or more would have another number of them.
        self.tree.cluster_size_confirmed |= count > 1;
        Ok(false)
    }

    fn first_cluster(&self, entry: &[u8]) -> u32 {
        let low = u32::from(le16(entry, 26).unwrap_or_default());
        // Before FAT32 the upper half was used for other things.
        match self.layout.root_cluster {
            Some(_) => u32::from(le16(entry, 20).unwrap_or_default()) << 16 | low,
            None => low,
        }
    }

    /// The first two entries of each directory but the root: itself, and what it is in (chapter 6.5).
    fn check_dots(
        &mut self,
        directory: &Directory,
        parents: [u32; 2],
        number: u64,
        entry: &[u8],
        at: u64,
    ) -> Result<(), Refusal> {
        let name: &[u8] = if number == 0 {
            b".          "
        } else {
            b"..         "
        };
        let first = self.first_cluster(entry);
        let right = if number == 0 {
            directory.cluster == Some(first)
        } else {
            parents.contains(&first)
        };
        let attributes = entry.get(11).copied().unwrap_or_default();
        if entry.get(..11) != Some(name) || attributes & (DIRECTORY | LABEL) != DIRECTORY || !right {
            return Err(contradiction(
                "a directory does not start with the right `.` and `..`",
                at,
            ));
        }
        self.tree.place_confirmed = true;
        // Cluster 2 lies at the same place whatever the size.
        self.tree.cluster_size_confirmed |= directory.cluster.is_some_and(|c| c > 2);
        Ok(())
    }
}

/// Whether this can be the name and the attributes of anything.
fn check_name(entry: &[u8], at: u64) -> Result<(), Refusal> {
    let name = entry.get(..11).unwrap_or_default();
    let first = name.first().copied().unwrap_or_default();
    let attributes = entry.get(11).copied().unwrap_or_default();
    // 05h stands for a first letter of E5h.
    let strange = name
        .iter()
        .enumerate()
        .any(|(i, b)| *b < 0x20 && !(i == 0 && *b == 0x05));
    if strange || matches!(first, b' ' | b'.') || attributes & !ATTRIBUTES != 0 {
        return Err(contradiction("a directory holds something that is no entry", at));
    }
    Ok(())
}

/// Whether a slot could be an entry of a directory.
pub(super) fn like_entry(slot: &[u8]) -> bool {
    let first = slot.first().copied().unwrap_or_default();
    let attributes = slot.get(11).copied().unwrap_or_default();
    first == DELETED || attributes & ATTRIBUTES == LONG_NAME || check_name(slot, 0).is_ok()
}
