//! The file allocation table: one pass over all of it, and look-ups in it (FAT specification, chapter 4).

use super::boot::{Kind, Layout};
use super::contradiction;
use crate::freemap::{ReadAt, Refusal, UsedMap};
use crate::wire::{le16, le32};

/// Bytes of a read; whole entries of 12, 16 and 32 bits.
const CHUNK_BYTES: u64 = 3 << 16;
/// Bytes of a block kept for look-ups, likewise.
const BLOCK_BYTES: u64 = 3 << 14;
const BLOCKS: u64 = 8;

/// What an entry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Free,
    Next(u32),
    Bad,
    End,
}

pub(super) struct Table<'a> {
    volume: &'a dyn ReadAt,
    layout: &'a Layout,
    copy: u64,
    blocks: Vec<Option<(u64, Vec<u8>)>>,
}

/// What one pass finds.
pub(super) struct Scan {
    /// By index, from 0.
    pub used: UsedMap,
    pub used_clusters: u64,
    pub bad_clusters: u64,
}

impl Scan {
    pub(super) fn free_clusters(&self) -> u64 {
        self.used.units() - self.used_clusters
    }
}

/// A run of clusters that grows until the next one is not its neighbour.
struct Run {
    start: u64,
    count: u64,
}

impl Run {
    /// The finished run, where `index` does not carry on with it.
    fn push(&mut self, index: u64) -> Option<(u64, u64)> {
        if self.count > 0 && self.start + self.count == index {
            self.count += 1;
            return None;
        }
        let done = (self.start, self.count);
        (self.start, self.count) = (index, 1);
        (done.1 > 0).then_some(done)
    }
}

fn entry(kind: Kind, bytes: &[u8], index: u64) -> Option<u32> {
    let index = usize::try_from(index).ok()?;
    match kind {
        Kind::Fat12 => {
            let pair = u32::from(le16(bytes, index.checked_add(index / 2)?)?);
            Some(if index % 2 == 0 { pair & 0xfff } else { pair >> 4 })
        }
        Kind::Fat16 => le16(bytes, index.checked_mul(2)?).map(u32::from),
        // The upper 4 bits are nobody's.
        Kind::Fat32 => le32(bytes, index.checked_mul(4)?).map(|e| e & 0x0fff_ffff),
    }
}

fn ones(kind: Kind) -> u32 {
    match kind {
        Kind::Fat12 => 0xfff,
        Kind::Fat16 => 0xffff,
        Kind::Fat32 => 0x0fff_ffff,
    }
}

impl<'a> Table<'a> {
    pub(super) fn new(volume: &'a dyn ReadAt, layout: &'a Layout) -> Self {
        Self {
            volume,
            layout,
            copy: layout.active_table.unwrap_or_default(),
            blocks: (0..BLOCKS).map(|_| None).collect(),
        }
    }

    /// Bytes with entries that count.
    fn len_bytes(&self) -> u64 {
        ((self.layout.clusters + 2) * self.layout.kind.entry_bits()).div_ceil(8)
    }

    /// Where the entry of a cluster starts.
    pub(super) fn entry_bytes(&self, cluster: u64) -> u64 {
        self.layout.table_bytes(self.copy) + cluster * self.layout.kind.entry_bits() / 8
    }

    fn link(&self, raw: u32, cluster: u64) -> Result<Link, Refusal> {
        let ones = ones(self.layout.kind);
        match raw {
            0 => Ok(Link::Free),
            _ if self.layout.index(raw).is_some() => Ok(Link::Next(raw)),
            _ if raw == ones - 8 => Ok(Link::Bad),
            _ if raw > ones - 8 => Ok(Link::End),
            _ => Err(contradiction(
                format!("cluster {cluster} is followed by {raw:x}h, which is none"),
                self.entry_bytes(cluster),
            )),
        }
    }

    /// What follows a cluster of the volume.
    pub(super) fn get(&mut self, cluster: u32) -> Result<Link, Refusal> {
        let bits = self.layout.kind.entry_bits();
        let per_block = BLOCK_BYTES * 8 / bits;
        let number = u64::from(cluster) / per_block;
        let offset_bytes = number * BLOCK_BYTES;
        let len_bytes = self.len_bytes().saturating_sub(offset_bytes).min(BLOCK_BYTES);
        let at = self.layout.table_bytes(self.copy) + offset_bytes;
        let slot = usize::try_from(number % BLOCKS)
            .ok()
            .and_then(|i| self.blocks.get_mut(i));
        let raw = match slot {
            Some(Some((have, bytes))) if *have == number => {
                entry(self.layout.kind, bytes, u64::from(cluster) % per_block)
            }
            Some(slot) => {
                let mut bytes = slot.take().map(|(_, bytes)| bytes).unwrap_or_default();
                bytes.resize(len_bytes as usize, 0);
                self.volume.read_at(at, &mut bytes)?;
                let raw = entry(self.layout.kind, &bytes, u64::from(cluster) % per_block);
                *slot = Some((number, bytes));
                raw
            }
            None => None,
        };
        let raw = raw.ok_or_else(|| contradiction(format!("cluster {cluster} has no entry"), at))?;
        self.link(raw, u64::from(cluster))
    }

    /// Reads all entries, compares the copies, and sees that no cluster follows two others, and that none that follows
    /// another is free.
    pub(super) fn scan(&mut self) -> Result<Scan, Refusal> {
        let kind = self.layout.kind;
        let end = self.layout.clusters + 2;
        let mut used = UsedMap::all_free(self.layout.clusters);
        let mut follows = UsedMap::all_free(self.layout.clusters);
        let (mut used_clusters, mut bad_clusters) = (0, 0);
        let (mut used_run, mut follow_run) = (Run { start: 0, count: 0 }, Run { start: 0, count: 0 });
        let (mut bytes, mut other) = (Vec::new(), Vec::new());
        let per_chunk = CHUNK_BYTES * 8 / kind.entry_bits();
        let mut first = 0;
        while first < end {
            self.read_chunk(first / per_chunk * CHUNK_BYTES, &mut bytes, &mut other)?;
            for index in 0..per_chunk.min(end - first) {
                let cluster = first + index;
                let raw = entry(kind, &bytes, index)
                    .ok_or_else(|| contradiction("the table ends early", self.entry_bytes(cluster)))?;
                if cluster < 2 {
                    self.check_head(cluster, raw)?;
                    continue;
                }
                let link = self.link(raw, cluster)?;
                if link == Link::Free {
                    continue;
                }
                used_clusters += 1;
                bad_clusters += u64::from(link == Link::Bad);
                if let Some((start, count)) = used_run.push(cluster - 2) {
                    used.use_units(start, count);
                }
                if let Link::Next(next) = link
                    && let Some((start, count)) = follow_run.push(u64::from(next) - 2)
                {
                    self.follow(&mut follows, start, count)?;
                }
            }
            first += per_chunk;
        }
        used.use_units(used_run.start, used_run.count);
        self.follow(&mut follows, follow_run.start, follow_run.count)?;
        for (start, count) in used.free_runs() {
            if let Some(index) = follows.first_used(start, count) {
                return Err(contradiction(
                    format!("cluster {} is free, and another is followed by it", index + 2),
                    self.entry_bytes(index + 2),
                ));
            }
        }
        Ok(Scan {
            used,
            used_clusters,
            bad_clusters,
        })
    }

    fn follow(&self, follows: &mut UsedMap, start: u64, count: u64) -> Result<(), Refusal> {
        if let Some(index) = follows.first_used(start, count) {
            return Err(contradiction(
                format!("two clusters are followed by cluster {}", index + 2),
                self.entry_bytes(index + 2),
            ));
        }
        follows.use_units(start, count);
        Ok(())
    }

    /// A piece of the table in use, the same in all that mirror it.
    fn read_chunk(&self, offset_bytes: u64, bytes: &mut Vec<u8>, other: &mut Vec<u8>) -> Result<(), Refusal> {
        let len_bytes = self.len_bytes().saturating_sub(offset_bytes).min(CHUNK_BYTES) as usize;
        bytes.resize(len_bytes, 0);
        self.volume
            .read_at(self.layout.table_bytes(self.copy) + offset_bytes, bytes)?;
        if self.layout.active_table.is_some() {
            return Ok(());
        }
        for copy in 1..self.layout.tables {
            let at = self.layout.table_bytes(copy) + offset_bytes;
            other.resize(len_bytes, 0);
            self.volume.read_at(at, other)?;
            if bytes != other {
                let same = bytes.iter().zip(other.iter()).take_while(|(a, b)| a == b).count();
                return Err(contradiction(
                    format!("table {} differs from the first", copy + 1),
                    at + same as u64,
                ));
            }
        }
        Ok(())
    }

    /// The two entries before the first cluster: the medium, and how it was unmounted (chapter 4.2).
    fn check_head(&self, cluster: u64, raw: u32) -> Result<(), Refusal> {
        let kind = self.layout.kind;
        let ones = ones(kind);
        let at = self.entry_bytes(cluster);
        if cluster == 0 {
            let expected = ones & !0xff | u32::from(self.layout.media);
            return if raw == expected {
                Ok(())
            } else {
                Err(contradiction(
                    format!("the table starts with {raw:x}h, not {expected:x}h"),
                    at,
                ))
            };
        }
        let (clean, no_error) = match kind {
            Kind::Fat12 => (0, 0),
            Kind::Fat16 => (0x8000, 0x4000),
            Kind::Fat32 => (0x0800_0000, 0x0400_0000),
        };
        if raw | clean | no_error < ones - 7 {
            return Err(contradiction(
                format!("the second entry of the table is {raw:x}h"),
                at,
            ));
        }
        let why = if raw & clean != clean {
            "the table says that it is mounted, or was not unmounted"
        } else if raw & no_error != no_error {
            "the table says that the medium had errors"
        } else {
            return Ok(());
        };
        Err(Refusal::NotClean {
            why: why.to_owned(),
            tool: super::TOOL,
        })
    }
}
