//! One inode, as it stands in the table.
//!
//! Source: the kernel's `Documentation/filesystems/ext4/inodes.rst`.

use super::checksum::crc32c;
use super::superblock::Superblock;
use crate::wire::{le16, le32};

const CHECKSUM_LOW_AT: usize = 0x7c;
const CHECKSUM_HIGH_AT: usize = 0x82;
const MAP_AT: usize = 0x28;
/// Bytes of the block map, the root of the extents, a short symbolic link, or the start of inline data.
pub const MAP_BYTES: usize = 60;

const HUGE_FILE: u32 = 0x4_0000;
const EXTENTS: u32 = 0x8_0000;
const SNAPSHOT: u32 = 0x100_0000;
const INLINE_DATA: u32 = 0x1000_0000;

/// What kind of thing an inode is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: bad blocks and reserved inodes.
    Nothing,
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, pipe or socket.
    Special,
    /// A value that no program writes.
    Unknown,
}

/// The parts of an inode that tell which blocks it owns.
#[derive(Debug, Clone, Copy)]
pub struct Inode<'a> {
    bytes: &'a [u8],
    mode: u16,
    flags: u32,
    /// How many names it has.
    pub links: u16,
    /// When it was deleted; 0 if it was not.
    pub deleted_at: u32,
    /// Its block map, or what stands in its place.
    pub map: &'a [u8],
    /// Told apart from its predecessors by this number.
    pub generation: u32,
    /// Length in bytes.
    pub size_bytes: u64,
}

impl<'a> Inode<'a> {
    /// From the bytes of its slot, which has at least 128.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        Some(Self {
            bytes,
            mode: le16(bytes, 0)?,
            flags: le32(bytes, 0x20)?,
            links: le16(bytes, 0x1a)?,
            deleted_at: le32(bytes, 0x14)?,
            map: bytes.get(MAP_AT..MAP_AT + MAP_BYTES)?,
            generation: le32(bytes, 0x64)?,
            size_bytes: u64::from(le32(bytes, 0x6c)?) << 32 | u64::from(le32(bytes, 4)?),
        })
    }

    fn u16(&self, at: usize) -> u64 {
        u64::from(le16(self.bytes, at).unwrap_or_default())
    }

    fn u32(&self, at: usize) -> u64 {
        u64::from(le32(self.bytes, at).unwrap_or_default())
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        match self.mode >> 12 {
            _ if self.mode == 0 => Kind::Nothing,
            0x8 => Kind::File,
            0x4 => Kind::Directory,
            0xa => Kind::Link,
            0x1 | 0x2 | 0x6 | 0xc => Kind::Special,
            _ => Kind::Unknown,
        }
    }

    /// Whether any permission or kind is set.
    pub fn has_mode(&self) -> bool {
        self.mode != 0
    }

    /// Whether its map is a tree of extents.
    pub fn has_extents(&self) -> bool {
        self.flags & EXTENTS != 0
    }

    /// Whether it holds its data itself.
    pub fn has_inline_data(&self) -> bool {
        self.flags & INLINE_DATA != 0
    }

    /// Whether it is a snapshot, whose map means something else.
    pub fn is_snapshot(&self) -> bool {
        self.flags & SNAPSHOT != 0
    }

    /// The block of its extended attributes.
    pub fn attributes_block(&self, superblock: &Superblock) -> Option<u64> {
        let high = if superblock.bits64 { self.u16(0x76) } else { 0 };
        Some(high << 32 | self.u32(0x68)).filter(|block| *block != 0)
    }

    /// The block that the Hurd gives an inode with a translator.
    pub fn translator_block(&self, superblock: &Superblock) -> Option<u64> {
        superblock
            .hurd
            .then(|| self.u32(0x24))
            .filter(|block| *block != 0)
    }

    /// How many bytes of the medium it says it uses; `None` beyond 64 bits.
    pub fn used_bytes(&self, superblock: &Superblock) -> Option<u64> {
        if !superblock.huge_file {
            return self.u32(0x1c).checked_mul(512);
        }
        let count = self.u16(0x74) << 32 | self.u32(0x1c);
        let unit_bytes = if self.flags & HUGE_FILE != 0 {
            superblock.block_bytes
        } else {
            512
        };
        count.checked_mul(unit_bytes)
    }

    /// Where the checksums of this inode and of its own blocks start from.
    pub fn seed(&self, superblock: &Superblock, number: u32) -> u32 {
        let sum = crc32c(superblock.seed, &number.to_le_bytes());
        crc32c(sum, &self.generation.to_le_bytes())
    }

    /// Whether its checksum is right; `seed` is its own.
    pub fn matches_checksum(&self, seed: u32) -> bool {
        self.sums(seed)
            .is_some_and(|(computed, stored)| computed == stored)
    }

    fn sums(&self, seed: u32) -> Option<(u32, u32)> {
        let bytes = self.bytes;
        let sum = crc32c(seed, bytes.get(..CHECKSUM_LOW_AT)?);
        let sum = crc32c(sum, &[0; 2]);
        let stored_low = u32::from(le16(bytes, CHECKSUM_LOW_AT)?);
        // The upper half is there where the extra fields reach so far.
        let extra_bytes = le16(bytes, 0x80).unwrap_or_default();
        if bytes.len() <= 128 || extra_bytes < 4 {
            let sum = crc32c(sum, bytes.get(CHECKSUM_LOW_AT + 2..)?);
            return Some((sum & 0xffff, stored_low));
        }
        let sum = crc32c(sum, bytes.get(CHECKSUM_LOW_AT + 2..CHECKSUM_HIGH_AT)?);
        let sum = crc32c(sum, &[0; 2]);
        let sum = crc32c(sum, bytes.get(CHECKSUM_HIGH_AT + 2..)?);
        let stored_high = u32::from(le16(bytes, CHECKSUM_HIGH_AT)?);
        Some((sum, stored_high << 16 | stored_low))
    }
}
