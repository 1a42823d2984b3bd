//! Block groups: their descriptors, and the copies of superblock and descriptors at their start.

use super::blocks::Blocks;
use super::checksum::{crc16, crc32c};
use super::superblock::{Checksums, Superblock};
use super::{TOOL, contradiction};
use crate::freemap::Refusal;
use crate::wire::{le16, le32};

const INODE_UNINIT: u16 = 1;
const BLOCK_UNINIT: u16 = 2;
const CHECKSUM_AT: usize = 0x1e;

/// A group descriptor whose checksum, if it has one, was right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its number.
    pub number: u32,
    /// Where the descriptor lies in the volume, for messages.
    pub at_bytes: u64,
    /// The block with the bitmap of its blocks or clusters.
    pub block_bitmap: u64,
    /// The block with the bitmap of its inodes.
    pub inode_bitmap: u64,
    /// The first block of its inodes.
    pub inode_table: u64,
    /// Clusters that are said to be free.
    pub free_clusters: u64,
    /// Inodes that are said to be free.
    pub free_inodes: u32,
    /// Inodes that are said to be directories.
    pub directories: u32,
    /// Inodes at the end of the table that were never written.
    pub unused_inodes: u32,
    /// The bitmap of blocks was never written: only metadata is in use.
    pub block_bitmap_unwritten: bool,
    /// The bitmap of inodes was never written: none is in use.
    pub inode_bitmap_unwritten: bool,
    /// CRC-32C of the bitmap of blocks, as far as it is kept.
    pub block_bitmap_sum: u32,
    /// CRC-32C of the bitmap of inodes, as far as it is kept.
    pub inode_bitmap_sum: u32,
}

impl Superblock {
    /// The first block of a group.
    pub fn group_start(&self, group: u32) -> u64 {
        self.first_block + u64::from(group) * self.blocks_per_group
    }

    /// How many blocks a group has; the last one may have fewer than the others.
    pub fn group_blocks(&self, group: u32) -> u64 {
        self.blocks
            .saturating_sub(self.group_start(group))
            .min(self.blocks_per_group)
    }

    /// Blocks of the inode table of each group.
    pub fn inode_table_blocks(&self) -> u64 {
        (u64::from(self.inodes_per_group) * self.inode_bytes as u64).div_ceil(self.block_bytes)
    }

    /// Whether the group starts with a superblock or a copy of it.
    pub fn has_superblock(&self, group: u32) -> bool {
        let power_of = |base: u32| {
            let mut power = base;
            while power < group {
                power = power.saturating_mul(base);
            }
            power == group
        };
        if let Some(backups) = self.sparse_super2 {
            return group == 0 || backups.contains(&group);
        }
        !self.sparse_super || group <= 1 || power_of(3) || power_of(5) || power_of(7)
    }

    /// Where the head of a group starts: with 1 KiB blocks in clusters the boot block comes before the superblock.
    fn head_start(&self, group: u32) -> u64 {
        match self.group_start(group) {
            0 if self.block_bytes == 1024 => 1,
            start => start,
        }
    }

    /// The blocks at the start of a group with superblock, descriptors and blocks reserved for them: (first, count).
    pub fn head(&self, group: u32) -> (u64, u64) {
        let superblock = u64::from(self.has_superblock(group));
        let per_block = self.descriptors_per_block();
        let descriptors = if !self.meta_bg || u64::from(group) / per_block < self.gdt_blocks_together {
            superblock * (self.gdt_blocks_together + self.reserved_gdt_blocks)
        } else {
            // The first, the second and the last group of a meta group each have its block of descriptors.
            let place = u64::from(group) % per_block;
            u64::from(place <= 1 || place == per_block - 1)
        };
        (self.head_start(group), superblock + descriptors)
    }

    /// The blocks of a group's head that are reserved for more descriptors: (first, count).
    pub fn reserved_of(&self, group: u32) -> (u64, u64) {
        let count = if self.has_superblock(group) {
            self.reserved_gdt_blocks
        } else {
            0
        };
        (self.head_start(group) + 1 + self.gdt_blocks_together, count)
    }

    /// The block with the descriptor of this group.
    fn descriptor_block(&self, group: u32) -> u64 {
        let per_block = self.descriptors_per_block();
        let index = u64::from(group) / per_block;
        if !self.meta_bg || index < self.gdt_blocks_together {
            return self.head_start(0) + 1 + index;
        }
        // No more than the number of groups, which has 32 bits.
        let first = u32::try_from(index * per_block).unwrap_or(group);
        self.head_start(first) + u64::from(self.has_superblock(first))
    }

    /// Reads the descriptor of a group.
    pub fn group(&self, blocks: &mut Blocks<'_>, number: u32) -> Result<Group, Refusal> {
        let block = self.descriptor_block(number);
        let place = u64::from(number) % self.descriptors_per_block() * self.descriptor_bytes as u64;
        let at_bytes = self.byte_of(block) + place;
        if !self.holds(block, 1) {
            return Err(contradiction(
                format!("the descriptor of group {number} lies outside the volume"),
                at_bytes,
            ));
        }
        let bytes = usize::try_from(place)
            .ok()
            .and_then(|place| Some((place, place.checked_add(self.descriptor_bytes)?)));
        let bytes = match bytes {
            Some((start, end)) => blocks.read(block)?.get(start..end),
            None => None,
        };
        self.parse_group(number, at_bytes, bytes.unwrap_or_default())
            .map_err(|why| Refusal::Contradiction {
                why: format!("group {number}: {why}"),
                offset_bytes: at_bytes,
                tool: TOOL,
            })
    }

    fn parse_group(&self, number: u32, at_bytes: u64, bytes: &[u8]) -> Result<Group, &'static str> {
        let truncated = "its descriptor is cut short";
        let long = self.descriptor_bytes >= 64;
        // A number in two halves, of 32 and of 16 bits each.
        let wide = |low: usize, high: usize| {
            let high = if long { le32(bytes, high)? } else { 0 };
            Some(u64::from(high) << 32 | u64::from(le32(bytes, low)?))
        };
        let narrow = |low: usize, high: usize| {
            let high = if long { le16(bytes, high)? } else { 0 };
            Some(u32::from(high) << 16 | u32::from(le16(bytes, low)?))
        };
        if self.descriptor_sum(number, bytes).ok_or(truncated)?
            != le16(bytes, CHECKSUM_AT).filter(|_| self.descriptors_have_sums())
        {
            return Err("its descriptor does not match its checksum");
        }
        let flags = le16(bytes, 0x12).ok_or(truncated)?;
        let group = (|| {
            Some(Group {
                number,
                at_bytes,
                block_bitmap: wide(0x0, 0x20)?,
                inode_bitmap: wide(0x4, 0x24)?,
                inode_table: wide(0x8, 0x28)?,
                free_clusters: u64::from(narrow(0xc, 0x2c)?),
                free_inodes: narrow(0xe, 0x2e)?,
                directories: narrow(0x10, 0x30)?,
                unused_inodes: narrow(0x1c, 0x32)?,
                block_bitmap_unwritten: flags & BLOCK_UNINIT != 0,
                inode_bitmap_unwritten: flags & INODE_UNINIT != 0,
                block_bitmap_sum: narrow(0x18, 0x38)?,
                inode_bitmap_sum: narrow(0x1a, 0x3a)?,
            })
        })()
        .ok_or(truncated)?;
        if !self.descriptors_have_sums()
            && (group.block_bitmap_unwritten || group.inode_bitmap_unwritten || group.unused_inodes != 0)
        {
            return Err("it is said to be uninitialized, where nothing may be");
        }
        if group.unused_inodes > self.inodes_per_group || group.free_inodes > self.inodes_per_group {
            return Err("more of its inodes are unused than there are");
        }
        Ok(group)
    }

    /// The checksum that a descriptor should have; the inner `None` where it has none.
    fn descriptor_sum(&self, number: u32, bytes: &[u8]) -> Option<Option<u16>> {
        let before = bytes.get(..CHECKSUM_AT)?;
        let behind = bytes.get(CHECKSUM_AT + 2..)?;
        Some(match self.checksums {
            Checksums::Absent => None,
            Checksums::Crc16 => {
                let sum = crc16(crc16(!0, &self.uuid), &number.to_le_bytes());
                Some(crc16(crc16(sum, before), behind))
            }
            Checksums::Crc32c => {
                let sum = crc32c(crc32c(self.seed, &number.to_le_bytes()), before);
                let [low, high, ..] = crc32c(crc32c(sum, &[0; 2]), behind).to_le_bytes();
                Some(u16::from_le_bytes([low, high]))
            }
        })
    }

    /// Whether a bitmap's first `bits` match the sum in the descriptor.
    pub fn bitmap_matches(&self, bitmap: &[u8], bits: u64, sum: u32) -> bool {
        if !self.metadata_has_sums() {
            return true;
        }
        let covered = usize::try_from(bits / 8).ok().and_then(|end| bitmap.get(..end));
        // Short descriptors keep only the lower half.
        let kept = if self.descriptor_bytes >= 64 { !0 } else { 0xffff };
        covered.is_some_and(|covered| crc32c(self.seed, covered) & kept == sum)
    }
}
