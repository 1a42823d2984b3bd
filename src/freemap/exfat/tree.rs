//! All directories, and the clusters of all that is in them (exFAT specification, chapters 6 and 7).

use std::ops::RangeInclusive;

use super::boot::{Layout, sum32};
use super::chain::Table;
use super::contradiction;
use super::set::{ENTRY_BYTES, FILE, Set, Stream};
use crate::freemap::{ReadAt, Refusal, UsedMap};
use crate::wire::le32;

const BITMAP: u8 = 0x81;
const UP_CASE: u8 = 0x82;
const LABEL: u8 = 0x83;
const IN_USE: u8 = 0x80;
const SECONDARY: u8 = 0x40;
const BENIGN: u8 = 0x20;
const SECOND_BITMAP: u8 = 0x01;
const LABEL_UNITS: u8 = 11;
/// All of UTF-16, uncompressed (chapter 7.2.5).
const MOST_UP_CASE_BYTES: u64 = 1 << 17;
const READ_BYTES: u64 = 1 << 16;
/// The most that a directory can be (chapter 7.6.6).
const MOST_DIRECTORY_BYTES: u64 = 256 << 20;

/// What was found.
pub(super) struct Tree {
    /// What the bitmap calls used.
    pub used: UsedMap,
    /// What something has.
    pub claimed: UsedMap,
    /// Files and directories, the root among them.
    pub owners: u64,
    pub bitmap_bytes: u64,
}

struct Walk<'a, 'b> {
    volume: &'a dyn ReadAt,
    layout: &'a Layout,
    table: &'b mut Table<'a>,
    claimed: UsedMap,
    /// Directories to read, their clusters claimed already.
    pending: Vec<Pieces>,
    owners: u64,
    bitmap: Option<Pieces>,
    up_case: Option<(Pieces, u32)>,
}

/// Clusters that were claimed.
#[derive(Debug, Clone, Copy)]
struct Pieces {
    first_cluster: u32,
    clusters: u64,
    contiguous: bool,
    len_bytes: u64,
    root: bool,
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
        owners: 1,
        bitmap: None,
        up_case: None,
    };
    let most = MOST_DIRECTORY_BYTES / u64::from(layout.cluster_bytes);
    let clusters = walk.claim_chain(layout.root_cluster, 1..=most, 96)?;
    walk.pending.push(Pieces {
        first_cluster: layout.root_cluster,
        clusters,
        contiguous: false,
        len_bytes: clusters * u64::from(layout.cluster_bytes),
        root: true,
    });
    let mut buffer = Vec::new();
    while let Some(directory) = walk.pending.pop() {
        walk.read_directory(&directory, &mut buffer)?;
    }
    let root_bytes = walk.address(layout.root_cluster);
    let Some(bitmap) = walk.bitmap else {
        return Err(contradiction("the root directory names no bitmap", root_bytes));
    };
    walk.check_up_case(root_bytes, &mut buffer)?;
    let used = walk.load_bitmap(&bitmap, &mut buffer)?;
    Ok(Tree {
        used,
        claimed: walk.claimed,
        owners: walk.owners,
        bitmap_bytes: bitmap_address(layout, &bitmap),
    })
}

fn bitmap_address(layout: &Layout, bitmap: &Pieces) -> u64 {
    layout
        .index(bitmap.first_cluster)
        .map_or(0, |index| layout.start_bytes(index))
}

impl Walk<'_, '_> {
    fn address(&self, cluster: u32) -> u64 {
        self.layout
            .index(cluster)
            .map_or(0, |index| self.layout.start_bytes(index))
    }

    /// Takes the clusters of a stream; `None` where it has none.
    fn claim(&mut self, stream: &Stream) -> Result<Option<Pieces>, Refusal> {
        let expected = stream.len_bytes.div_ceil(u64::from(self.layout.cluster_bytes));
        if expected == 0 || stream.first_cluster == 0 {
            return if expected == 0 && stream.first_cluster == 0 {
                Ok(None)
            } else {
                Err(contradiction(
                    format!(
                        "{} bytes from cluster {} on",
                        stream.len_bytes, stream.first_cluster
                    ),
                    stream.at,
                ))
            };
        }
        if stream.contiguous {
            let start = self
                .layout
                .index(stream.first_cluster)
                .filter(|start| expected <= self.layout.clusters - start);
            let Some(start) = start else {
                return Err(contradiction(
                    format!(
                        "{expected} clusters from cluster {} on leave the volume",
                        stream.first_cluster
                    ),
                    stream.at,
                ));
            };
            self.take(start, expected, stream.at)?;
        } else {
            self.claim_chain(stream.first_cluster, expected..=expected, stream.at)?;
        }
        Ok(Some(Pieces {
            first_cluster: stream.first_cluster,
            clusters: expected,
            contiguous: stream.contiguous,
            len_bytes: stream.len_bytes,
            root: false,
        }))
    }

    /// Follows a chain and takes its clusters; how many. `at` is where it is said.
    fn claim_chain(&mut self, first: u32, expected: RangeInclusive<u64>, at: u64) -> Result<u64, Refusal> {
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
            let next = self.table.next(cluster)?;
            let index = next.and_then(|next| self.layout.index(next));
            match (next, index) {
                (Some(next), Some(index)) => {
                    count += 1;
                    cluster = next;
                    if index == start + run {
                        run += 1;
                    } else {
                        self.take(start, run, at)?;
                        (start, run) = (index, 1);
                    }
                }
                _ => break,
            }
        }
        self.take(start, run, at)?;
        if !expected.contains(&count) {
            return Err(contradiction(
                format!("the chain from cluster {first} has {count} clusters, not {most}"),
                at,
            ));
        }
        Ok(count)
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

    /// Calls with each part of some clusters, up to their length in bytes, and its address.
    fn each_part(
        &mut self,
        pieces: &Pieces,
        buffer: &mut Vec<u8>,
        mut f: impl FnMut(&mut Self, u64, &[u8]) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let cluster_bytes = u64::from(self.layout.cluster_bytes);
        let mut cluster = pieces.first_cluster;
        let mut left = pieces.len_bytes;
        for number in 0..pieces.clusters {
            let start = self.address(cluster);
            let in_cluster = left.min(cluster_bytes);
            let mut done = 0;
            while done < in_cluster {
                let now = (in_cluster - done).min(READ_BYTES);
                buffer.resize(now as usize, 0);
                self.volume.read_at(start + done, buffer)?;
                f(self, start + done, buffer)?;
                done += now;
            }
            left -= in_cluster;
            if number + 1 < pieces.clusters {
                let next = if pieces.contiguous {
                    cluster.checked_add(1)
                } else {
                    self.table.next(cluster)?
                };
                cluster = next.ok_or_else(|| contradiction("a chain ends early", start))?;
            }
        }
        Ok(())
    }

    fn read_directory(&mut self, directory: &Pieces, buffer: &mut Vec<u8>) -> Result<(), Refusal> {
        let mut set: Option<Set> = None;
        let mut ended = false;
        let root = directory.root;
        self.each_part(directory, buffer, |walk, start, part| {
            for (i, entry) in part.chunks_exact(ENTRY_BYTES).enumerate() {
                let at = start + (i * ENTRY_BYTES) as u64;
                let kind = entry.first().copied().unwrap_or_default();
                if let Some(open) = &mut set {
                    open.push(entry, at)?;
                } else if ended {
                    if kind != 0 {
                        return Err(contradiction("something follows the end of a directory", at));
                    }
                    continue;
                } else if kind == 0 {
                    ended = true;
                    continue;
                } else {
                    set = walk.primary(kind, entry, at, root)?;
                }
                if set.as_ref().is_some_and(Set::complete)
                    && let Some(done) = set.take()
                {
                    walk.finish(&done)?;
                }
            }
            Ok(())
        })?;
        match set {
            Some(_) => Err(contradiction(
                "a directory ends within an entry set",
                self.address(directory.first_cluster),
            )),
            None => Ok(()),
        }
    }

    /// An entry that belongs to no set: the set that it starts, if it does.
    fn primary(&mut self, kind: u8, entry: &[u8], at: u64, root: bool) -> Result<Option<Set>, Refusal> {
        let second = entry.get(1).copied().unwrap_or_default();
        match kind {
            _ if kind & IN_USE == 0 => Ok(None),
            _ if kind & SECONDARY != 0 => Err(contradiction("a secondary entry has no primary one", at)),
            FILE => Set::start(entry, at).map(Some),
            BITMAP | UP_CASE | LABEL if !root => Err(contradiction(
                format!("an entry of type {kind:02x}h outside of the root directory"),
                at,
            )),
            BITMAP => {
                if second & SECOND_BITMAP != 0 {
                    return Err(Refusal::Unsupported {
                        why: "TexFAT, with a second bitmap".to_owned(),
                    });
                }
                let pieces = self.claim(&Stream::of(entry, 0, at))?;
                let expected = self.layout.clusters.div_ceil(8);
                match pieces {
                    Some(pieces) if self.bitmap.is_none() && pieces.len_bytes == expected => {
                        self.bitmap = Some(pieces);
                        Ok(None)
                    }
                    _ => Err(contradiction(
                        format!("not the one bitmap of {expected} bytes"),
                        at,
                    )),
                }
            }
            UP_CASE => {
                let sum = le32(entry, 4).unwrap_or_default();
                match self.claim(&Stream::of(entry, 0, at))? {
                    Some(pieces) if self.up_case.is_none() && pieces.len_bytes <= MOST_UP_CASE_BYTES => {
                        self.up_case = Some((pieces, sum));
                        Ok(None)
                    }
                    _ => Err(contradiction("not the one up-case table", at)),
                }
            }
            LABEL if second > LABEL_UNITS => {
                Err(contradiction(format!("a volume name of {second} letters"), at))
            }
            LABEL => Ok(None),
            _ if kind & BENIGN != 0 => Set::start(entry, at).map(Some),
            _ => Err(Refusal::Unsupported {
                why: format!("a directory entry of type {kind:02x}h"),
            }),
        }
    }

    fn finish(&mut self, set: &Set) -> Result<(), Refusal> {
        set.finish()?;
        self.owners += 1;
        for stream in &set.streams {
            let pieces = self.claim(stream)?;
            if let (true, Some(pieces)) = (stream.directory, pieces) {
                if !pieces
                    .len_bytes
                    .is_multiple_of(u64::from(self.layout.cluster_bytes))
                {
                    return Err(contradiction(
                        format!("a directory of {} bytes", pieces.len_bytes),
                        stream.at,
                    ));
                }
                self.pending.push(pieces);
            }
        }
        Ok(())
    }

    fn check_up_case(&mut self, root_bytes: u64, buffer: &mut Vec<u8>) -> Result<(), Refusal> {
        let Some((pieces, said)) = self.up_case else {
            return Err(contradiction(
                "the root directory names no up-case table",
                root_bytes,
            ));
        };
        let mut sum = 0;
        self.each_part(&pieces, buffer, |_, _, part| {
            sum = part.iter().fold(sum, |sum, byte| sum32(sum, *byte));
            Ok(())
        })?;
        if sum == said {
            Ok(())
        } else {
            Err(contradiction(
                "the checksum of the up-case table is wrong",
                self.address(pieces.first_cluster),
            ))
        }
    }

    fn load_bitmap(&mut self, bitmap: &Pieces, buffer: &mut Vec<u8>) -> Result<UsedMap, Refusal> {
        let mut used = UsedMap::all_used(self.layout.clusters);
        let mut at = 0;
        self.each_part(bitmap, buffer, |walk, _, part| {
            let units = (part.len() as u64 * 8).min(walk.layout.clusters - at);
            used.load(at, units, part);
            at += units;
            Ok(())
        })?;
        Ok(used)
    }
}
