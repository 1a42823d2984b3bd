//! Who uses which blocks: what the bitmaps call used, minus what was explained so far.

use std::collections::BTreeMap;

use super::contradiction;
use super::superblock::Superblock;
use crate::freemap::{Extent, Refusal, UsedMap};

/// The books on a volume's clusters. First metadata is marked as explained, then the bitmaps are taken in and metadata
/// taken off them again; from then on every owner takes its own off, and at the end nothing is left.
pub struct Claims {
    /// Before a group's bitmap is taken in: its metadata. After that: what is used and not yet explained.
    left: UsedMap,
    /// Free by the bitmaps, in bytes.
    free: Vec<Extent>,
    /// Blocks of extended attributes with several owners, and how many of these are still to come.
    shared_attributes: BTreeMap<u64, u32>,
    cluster_bytes: u64,
}

impl Claims {
    /// Books for a volume, without any entry.
    pub fn new(superblock: &Superblock) -> Self {
        Self {
            left: UsedMap::all_free(superblock.blocks.div_ceil(superblock.cluster_blocks)),
            free: Vec::new(),
            shared_attributes: BTreeMap::new(),
            cluster_bytes: superblock.block_bytes * superblock.cluster_blocks,
        }
    }

    /// Enters blocks of metadata, before the bitmap of their group.
    pub fn metadata(
        &mut self,
        superblock: &Superblock,
        (start, count): (u64, u64),
        what: &str,
    ) -> Result<(), Refusal> {
        if !superblock.holds(start, count) {
            return Err(contradiction(
                format!("{what} lies outside the volume"),
                superblock.byte_of(start),
            ));
        }
        let (first, clusters) = superblock.clusters_of(start, count);
        // Small pieces of metadata share a cluster.
        if superblock.cluster_blocks == 1
            && let Some(taken) = self.left.first_used(first, clusters)
        {
            return Err(contradiction(
                format!("{what} lies on other metadata in block {taken}"),
                superblock.byte_of(taken),
            ));
        }
        self.left.use_units(first, clusters);
        Ok(())
    }

    /// Takes in the bitmap of the `count` clusters from `first` on, or what stands for it where it was never written.
    /// Says how many are free.
    pub fn bitmap(&mut self, first: u64, count: u64, bitmap: Option<&[u8]>) -> Result<u64, Refusal> {
        let end = first + count;
        let mut metadata = Vec::new();
        let mut at = first;
        while let Some(start) = self.left.first_used(at, end - at).filter(|start| *start < end) {
            at = self.left.first_free(start, end - start).unwrap_or(end);
            metadata.push((start, at - start));
        }
        let mut map = UsedMap::all_free(count);
        if let Some(bitmap) = bitmap {
            map.load(0, count, bitmap);
            for (start, run) in &metadata {
                if let Some(free) = map.first_free(start - first, *run) {
                    let cluster = first + free;
                    return Err(contradiction(
                        format!("the bitmap calls cluster {cluster} free, and metadata lies there"),
                        cluster * self.cluster_bytes,
                    ));
                }
            }
        } else {
            for (start, run) in &metadata {
                map.use_units(start - first, *run);
            }
        }
        let free = map.count_free(0, count);
        let metadata_count: u64 = metadata.iter().map(|(_, run)| run).sum();
        match bitmap {
            Some(bitmap) if count - free > metadata_count => {
                self.left.load(first, count, bitmap);
                for (start, run) in &metadata {
                    self.left.free_units(*start, *run);
                }
            }
            // Nothing but metadata; said like this the books stay short.
            _ => self.left.free_units(first, count),
        }
        for (start, run) in map.free_runs() {
            self.add_free(first + start, run);
        }
        Ok(free)
    }

    fn add_free(&mut self, cluster: u64, count: u64) {
        let start_bytes = cluster * self.cluster_bytes;
        let len_bytes = count * self.cluster_bytes;
        match self.free.last_mut() {
            Some(last) if last.end_bytes() == Some(start_bytes) => last.len_bytes += len_bytes,
            _ => self.free.push(Extent {
                start_bytes,
                len_bytes,
            }),
        }
    }

    /// Takes clusters off as those of one owner.
    pub fn own(&mut self, first: u64, count: u64, inode: u32) -> Result<(), Refusal> {
        match self.left.first_free(first, count) {
            None => {
                self.left.free_units(first, count);
                Ok(())
            }
            Some(cluster) => Err(self.not_left(cluster, inode)),
        }
    }

    /// Takes clusters off as those of one of several owners: `shared_blocks`.
    pub fn own_shared(&mut self, first: u64, count: u64, inode: u32) -> Result<(), Refusal> {
        let end_bytes = first.saturating_add(count).saturating_mul(self.cluster_bytes);
        let before = self.free.partition_point(|e| e.start_bytes < end_bytes);
        let last = before.checked_sub(1).and_then(|i| self.free.get(i));
        let start_bytes = first.saturating_mul(self.cluster_bytes);
        if let Some(last) = last
            && last.end_bytes().is_none_or(|end| end > start_bytes)
        {
            let cluster = last.start_bytes.max(start_bytes) / self.cluster_bytes;
            return Err(self.not_left(cluster, inode));
        }
        self.left.free_units(first, count);
        Ok(())
    }

    /// Takes a block of extended attributes off, which says how many owners it has.
    pub fn own_attributes(
        &mut self,
        block: u64,
        cluster: u64,
        owners: u32,
        inode: u32,
    ) -> Result<(), Refusal> {
        if let Some(to_come) = self.shared_attributes.get_mut(&block) {
            *to_come -= 1;
            if *to_come == 0 {
                self.shared_attributes.remove(&block);
            }
            return Ok(());
        }
        self.own(cluster, 1, inode)?;
        if owners > 1 {
            self.shared_attributes.insert(block, owners - 1);
        }
        Ok(())
    }

    fn not_left(&self, cluster: u64, inode: u32) -> Refusal {
        let at_bytes = cluster.saturating_mul(self.cluster_bytes);
        let before = self.free.partition_point(|e| e.start_bytes <= at_bytes);
        let free = before
            .checked_sub(1)
            .and_then(|i| self.free.get(i))
            .is_some_and(|e| e.end_bytes().is_none_or(|end| end > at_bytes));
        let why = if free {
            format!("the bitmap calls cluster {cluster} free, and inode {inode} uses it")
        } else {
            format!("inode {inode} uses cluster {cluster}, which has an owner already")
        };
        contradiction(why, at_bytes)
    }

    /// The free ranges in bytes, if everything that is used was explained.
    pub fn finish(self, superblock: &Superblock) -> Result<Vec<Extent>, Refusal> {
        if let Some((block, missing)) = self.shared_attributes.first_key_value() {
            return Err(contradiction(
                format!("attributes in block {block} have {missing} owners fewer than they say"),
                superblock.byte_of(*block),
            ));
        }
        let units = self.left.units();
        if let Some(cluster) = self.left.first_used(0, units) {
            return Err(contradiction(
                format!("the bitmap calls cluster {cluster} used, and nothing uses it"),
                cluster * self.cluster_bytes,
            ));
        }
        Ok(self.free)
    }
}
