//! From an inode to its blocks: trees of extents, and the older maps of single blocks.
//!
//! Source: the kernel's `Documentation/filesystems/ext4/ifork.rst` and `attributes.rst`. Each block of a tree is taken
//! off the books before it is read, so no tree is longer than the volume, and none has a loop.

use super::blocks::Blocks;
use super::checksum::crc32c;
use super::claims::Claims;
use super::contradiction;
use super::superblock::Superblock;
use crate::freemap::Refusal;
use crate::wire::{le16, le32};

const EXTENT_MAGIC: u16 = 0xf30a;
/// Header, index entry and extent have 12 bytes each.
const ENTRY_BYTES: usize = 12;
const DEEPEST: u16 = 5;
/// An extent with more blocks than that has so many fewer, allocated and never written.
const LONGEST_EXTENT_BLOCKS: u16 = 32768;
const END_OF_FILE_BLOCKS: u64 = 1 << 32;

const ATTRIBUTES_MAGIC: u32 = 0xea02_0000;
const MOST_ATTRIBUTE_OWNERS: u32 = 1024;

/// One inode's way through its blocks.
pub struct Walk<'w, 'a> {
    superblock: &'w Superblock,
    trees: &'w mut Blocks<'a>,
    claims: &'w mut Claims,
    inode: u32,
    seed: u32,
    at_bytes: u64,
    /// The logical and the physical cluster that the last data lay in.
    last: Option<(u64, u64)>,
    /// Blocks that follow each other and were not yet taken off: (start, count).
    pending: (u64, u64),
    /// Clusters taken off so far.
    pub clusters: u64,
    /// Where the file's first block lies.
    pub first_block: Option<u64>,
    /// Data blocks of the file.
    pub data_blocks: u64,
}

impl<'w, 'a> Walk<'w, 'a> {
    /// For the inode with that number and that start of its checksums, which lies at that byte.
    pub fn new(
        superblock: &'w Superblock,
        trees: &'w mut Blocks<'a>,
        claims: &'w mut Claims,
        inode: u32,
        seed: u32,
        at_bytes: u64,
    ) -> Self {
        Self {
            superblock,
            trees,
            claims,
            inode,
            seed,
            at_bytes,
            last: None,
            pending: (0, 0),
            clusters: 0,
            first_block: None,
            data_blocks: 0,
        }
    }

    fn wrong(&self, why: &str) -> Refusal {
        contradiction(format!("inode {}: {why}", self.inode), self.at_bytes)
    }

    fn holds(&self, start: u64, count: u64) -> Result<(), Refusal> {
        if self.superblock.holds(start, count) {
            Ok(())
        } else {
            Err(self.wrong(&format!("block {start} lies outside the volume")))
        }
    }

    /// Takes off a block that describes others; it has a cluster for itself.
    pub fn metadata(&mut self, block: u64) -> Result<(), Refusal> {
        self.holds(block, 1)?;
        self.claims
            .own(block / self.superblock.cluster_blocks, 1, self.inode)?;
        self.clusters += 1;
        Ok(())
    }

    /// Takes off the block of extended attributes, which several inodes may share.
    pub fn attributes(&mut self, block: u64) -> Result<(), Refusal> {
        self.holds(block, 1)?;
        let bytes = self.trees.read(block)?;
        let magic = le32(bytes, 0);
        let owners = le32(bytes, 4).unwrap_or_default();
        let blocks = le32(bytes, 8);
        let sum = bytes.get(..0x10).zip(bytes.get(0x14..)).map(|(before, behind)| {
            let sum = crc32c(self.superblock.seed, &block.to_le_bytes());
            crc32c(crc32c(crc32c(sum, before), &[0; 4]), behind)
        });
        let stored = le32(bytes, 0x10);
        if magic != Some(ATTRIBUTES_MAGIC)
            || blocks != Some(1)
            || owners == 0
            || owners > MOST_ATTRIBUTE_OWNERS
        {
            return Err(self.wrong(&format!("block {block} holds no attributes")));
        }
        if self.superblock.metadata_has_sums() && sum != stored {
            return Err(self.wrong(&format!(
                "the attributes in block {block} do not match their checksum"
            )));
        }
        let cluster = block / self.superblock.cluster_blocks;
        self.claims.own_attributes(block, cluster, owners, self.inode)?;
        self.clusters += 1;
        Ok(())
    }

    fn data(&mut self, logical: u64, start: u64, count: u64) -> Result<(), Refusal> {
        self.holds(start, count)?;
        if logical == 0 {
            self.first_block = Some(start);
        }
        self.data_blocks += count;
        let ratio = self.superblock.cluster_blocks;
        let (mut first, mut clusters) = self.superblock.clusters_of(start, count);
        if ratio > 1 {
            if logical % ratio != start % ratio {
                return Err(self.wrong("an extent lies across its clusters"));
            }
            if let Some((last_logical, last)) = self.last
                && last_logical == logical / ratio
            {
                if last != first {
                    return Err(self.wrong("one cluster of the file lies in two places"));
                }
                // Taken off with the extent before.
                first += 1;
                clusters -= 1;
            }
            let end = count - 1;
            self.last = Some(((logical + end) / ratio, (start + end) / ratio));
        }
        self.clusters += clusters;
        if self.superblock.shared_blocks {
            self.claims.own_shared(first, clusters, self.inode)
        } else {
            self.claims.own(first, clusters, self.inode)
        }
    }

    /// Takes off a tree of extents, of which this is the root.
    pub fn extents(&mut self, root: &[u8]) -> Result<(), Refusal> {
        let depth = le16(root, 6).unwrap_or(u16::MAX);
        if depth > DEEPEST {
            return Err(self.wrong("its extents are too deep"));
        }
        self.node(root, depth, 0, END_OF_FILE_BLOCKS)
    }

    /// One node of a tree, which speaks of the blocks `low..high` of the file.
    fn node(&mut self, bytes: &[u8], depth: u16, low: u64, high: u64) -> Result<(), Refusal> {
        let header = [0, 2, 4, 6].map(|at| le16(bytes, at));
        let [Some(EXTENT_MAGIC), Some(entries), Some(room), Some(own_depth)] = header else {
            return Err(self.wrong("a node of its extents is none"));
        };
        let fits = bytes.len() / ENTRY_BYTES - 1;
        if own_depth != depth || entries > room || usize::from(room) > fits || depth > 0 && entries == 0 {
            return Err(self.wrong("the head of a node of its extents makes no sense"));
        }
        let (_, entries_bytes) = bytes.split_at_checked(ENTRY_BYTES).unwrap_or_default();
        let mut entries = entries_bytes
            .chunks_exact(ENTRY_BYTES)
            .take(usize::from(entries))
            .peekable();
        let mut from = low;
        while let Some(entry) = entries.next() {
            let logical = u64::from(le32(entry, 0).unwrap_or_default());
            if logical < from || logical >= high {
                return Err(self.wrong("its extents are not in order"));
            }
            if depth == 0 {
                let [Some(len), Some(start_high)] = [4, 6].map(|at| le16(entry, at)) else {
                    return Err(self.wrong("an extent is cut short"));
                };
                let count = u64::from(if len > LONGEST_EXTENT_BLOCKS {
                    len - LONGEST_EXTENT_BLOCKS
                } else {
                    len
                });
                let start = u64::from(start_high) << 32 | u64::from(le32(entry, 8).unwrap_or_default());
                from = logical + count;
                if count == 0 || from > high {
                    return Err(self.wrong("the length of an extent makes no sense"));
                }
                self.data(logical, start, count)?;
            } else {
                let block = u64::from(le16(entry, 8).unwrap_or_default()) << 32
                    | u64::from(le32(entry, 4).unwrap_or_default());
                let next = match entries.peek() {
                    Some(next) => u64::from(le32(next, 0).unwrap_or_default()),
                    None => high,
                };
                if next <= logical || next > high {
                    return Err(self.wrong("its extents are not in order"));
                }
                self.child(block, depth - 1, logical, next)?;
                from = logical + 1;
            }
        }
        Ok(())
    }

    fn child(&mut self, block: u64, depth: u16, low: u64, high: u64) -> Result<(), Refusal> {
        self.metadata(block)?;
        let mut bytes = Vec::new();
        self.trees.read_into(block, &mut bytes)?;
        if self.superblock.metadata_has_sums() {
            // The sum stands behind the room for entries.
            let room = le16(&bytes, 4).unwrap_or_default();
            let end = ENTRY_BYTES * (usize::from(room) + 1);
            let sum = bytes.get(..end).map(|covered| crc32c(self.seed, covered));
            if sum.is_none() || sum != le32(&bytes, end) {
                return Err(self.wrong(&format!(
                    "the extents in block {block} do not match their checksum"
                )));
            }
        }
        self.node(&bytes, depth, low, high)
    }

    /// Takes off what the map of single blocks names: 12 blocks, and one block each of one, two and three levels.
    pub fn pointers(&mut self, map: &[u8]) -> Result<(), Refusal> {
        if self.superblock.cluster_blocks > 1 && map.iter().any(|byte| *byte != 0) {
            return Err(self.wrong("it maps single blocks, where there are only clusters"));
        }
        self.first_block = le32(map, 0).map(u64::from).filter(|block| *block != 0);
        for (index, pointer) in words(map).enumerate() {
            self.pointer(pointer, index.saturating_sub(11))?;
        }
        self.flush()
    }

    /// One entry of a map, with so many levels below it.
    fn pointer(&mut self, block: u64, levels: usize) -> Result<(), Refusal> {
        if block == 0 {
            return Ok(());
        }
        let Some(below) = levels.checked_sub(1) else {
            let (start, count) = self.pending;
            if count > 0 && start + count == block {
                self.pending.1 += 1;
            } else {
                self.flush()?;
                self.pending = (block, 1);
            }
            return Ok(());
        };
        self.flush()?;
        self.metadata(block)?;
        let mut bytes = Vec::new();
        self.trees.read_into(block, &mut bytes)?;
        for pointer in words(&bytes) {
            self.pointer(pointer, below)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Refusal> {
        let (start, count) = std::mem::take(&mut self.pending);
        if count == 0 {
            return Ok(());
        }
        // Where in the file they lie does not matter without clusters.
        self.data(1, start, count)
    }

    /// The map of the reserved descriptor blocks: one block of two levels, that names those behind the superblock, that
    /// each name their copies. All but the first are entered as metadata already.
    pub fn resize_inode(&mut self, map: &[u8]) -> Result<(), Refusal> {
        let mut used = words(map).enumerate().filter(|(_, block)| *block != 0);
        let Some((index, top)) = used.next() else {
            return Ok(());
        };
        if index != 13 || used.next().is_some() || !self.superblock.resize_inode {
            return Err(self.wrong("it maps more than reserved descriptors"));
        }
        self.metadata(top)?;
        let mut bytes = Vec::new();
        self.trees.read_into(top, &mut bytes)?;
        let (first, reserved) = self.superblock.reserved_of(0);
        // There are no more than the reserved ones, so this ends.
        for (block, seen) in words(&bytes).filter(|block| *block != 0).zip(0..) {
            if seen >= reserved || block < first || block - first >= reserved {
                return Err(self.wrong(&format!("block {block} is no reserved descriptor")));
            }
            self.reserved_copies(block)?;
        }
        Ok(())
    }

    fn reserved_copies(&mut self, block: u64) -> Result<(), Refusal> {
        self.clusters += 1;
        let mut bytes = Vec::new();
        self.trees.read_into(block, &mut bytes)?;
        for copy in words(&bytes).filter(|copy| *copy != 0) {
            self.holds(copy, 1)?;
            let group = (copy - self.superblock.first_block) / self.superblock.blocks_per_group;
            let (first, reserved) = self
                .superblock
                .reserved_of(u32::try_from(group).unwrap_or(u32::MAX));
            // With 1 KiB blocks in clusters, mke2fs counts the copies from the superblock's place in group 0, which is
            // one block further than in other groups. The block too much is nobody's.
            let shifted =
                u64::from(self.superblock.block_bytes == 1024 && self.superblock.cluster_blocks > 1);
            if reserved == 0 || copy < first || copy - first >= reserved + shifted {
                return Err(self.wrong(&format!("block {copy} is no reserved descriptor")));
            }
            self.clusters += 1;
        }
        Ok(())
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u64::from(u32::from_le_bytes(*word)))
}
