//! Which blocks of a disk hold nothing: free space by the file systems' own allocation maps.
//!
//! What comes out of here is trimmed, so a map is never trusted alone. It is checked against the metadata that uses the
//! blocks (inodes, directories, chains, runs); any contradiction is a refusal, because a flipped bit in a map is
//! somebody's file. What is not understood is left whole.
//!
//! Everything is a pure function over [`ReadAt`]: nothing is written, no clock is read, no input makes it panic.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod bits;
pub mod exfat;
pub mod ext;
pub mod fat;
pub mod ntfs;
pub mod partitions;
pub mod signature;
pub mod survey;
#[cfg(test)]
mod testing;

pub use bits::UsedMap;

use serde::{Deserialize, Serialize};

/// Bytes at an address: a disk, a partition, an image.
pub trait ReadAt {
    /// The length in bytes.
    fn size_bytes(&self) -> u64;

    /// Fills `buffer` from `offset_bytes` on; never part of it.
    ///
    /// # Errors
    /// The range goes past the end, or the medium could not be read.
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError>;
}

impl ReadAt for [u8] {
    fn size_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        let error = || ReadError::past_end(offset_bytes, buffer.len(), self.len() as u64);
        let start = usize::try_from(offset_bytes).map_err(|_| error())?;
        let end = start.checked_add(buffer.len()).ok_or_else(error)?;
        let source = self.get(start..end).ok_or_else(error)?;
        buffer.copy_from_slice(source);
        Ok(())
    }
}

/// A range could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("cannot read {len_bytes} bytes at byte {offset_bytes}: {why}")]
pub struct ReadError {
    /// Where it starts.
    pub offset_bytes: u64,
    /// How much was wanted.
    pub len_bytes: usize,
    /// The reason.
    pub why: String,
}

impl ReadError {
    /// A range that leaves the medium.
    pub fn past_end(offset_bytes: u64, len_bytes: usize, size_bytes: u64) -> Self {
        Self {
            offset_bytes,
            len_bytes,
            why: format!("it goes past the end ({size_bytes} bytes)"),
        }
    }
}

/// A part of something bigger, with addresses of its own: a partition of a disk.
#[derive(Clone, Copy)]
pub struct Window<'a> {
    whole: &'a dyn ReadAt,
    extent: Extent,
}

impl<'a> Window<'a> {
    /// The part of `whole` that `extent` names; `None` where it does not lie within.
    pub fn new(whole: &'a dyn ReadAt, extent: Extent) -> Option<Self> {
        (extent.end_bytes()? <= whole.size_bytes()).then_some(Self { whole, extent })
    }
}

impl ReadAt for Window<'_> {
    fn size_bytes(&self) -> u64 {
        self.extent.len_bytes
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        let fits = offset_bytes
            .checked_add(buffer.len() as u64)
            .is_some_and(|end| end <= self.extent.len_bytes);
        if !fits {
            return Err(ReadError::past_end(
                offset_bytes,
                buffer.len(),
                self.extent.len_bytes,
            ));
        }
        self.whole.read_at(self.extent.start_bytes + offset_bytes, buffer)
    }
}

/// A range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Extent {
    /// The first byte.
    pub start_bytes: u64,
    /// How many.
    pub len_bytes: u64,
}

impl Extent {
    /// One past its last byte; `None` beyond 64 bits.
    pub fn end_bytes(&self) -> Option<u64> {
        self.start_bytes.checked_add(self.len_bytes)
    }
}

/// The file systems that are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// ext2, ext3 or ext4.
    Ext,
    /// FAT with 12, 16 or 32 bits a cluster.
    Fat,
    /// exFAT.
    Exfat,
    /// NTFS.
    Ntfs,
}

/// The free space of one volume, checked against everything that uses blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FreeMap {
    /// Whose.
    pub file_system: FileSystem,
    /// Its name with the variant: `ext4`, `FAT32`, `exFAT`, `NTFS 3.1`.
    pub name: String,
    /// Allocation unit in bytes.
    pub unit_bytes: u32,
    /// How much of the volume the file system covers, in bytes; what lies behind is not ours to judge.
    pub covered_bytes: u64,
    /// Free ranges relative to the start of the volume: sorted, merged, within `covered_bytes`.
    pub free: Vec<Extent>,
    /// Files and directories whose blocks were compared with the map.
    pub owners_checked: u64,
}

impl FreeMap {
    /// Sum of the free ranges.
    pub fn free_bytes(&self) -> u64 {
        self.free.iter().map(|e| e.len_bytes).sum()
    }
}

/// Why a volume is left whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is not this file system at all.
    #[error("no {what} here: {why}")]
    NotThis {
        /// What was looked for.
        what: &'static str,
        /// What does not fit.
        why: String,
    },
    /// It was not unmounted cleanly, has a journal to replay, or hibernates: maps and blocks may differ.
    #[error("{why}; mount it once and unmount it, or check it with {tool}")]
    NotClean {
        /// What was found.
        why: String,
        /// The program that mends it.
        tool: &'static str,
    },
    /// It uses something that is not understood.
    #[error("{why}, which is not understood")]
    Unsupported {
        /// The feature.
        why: String,
    },
    /// Two places of its metadata say different things, or one is impossible.
    #[error("{why} (at byte {offset_bytes}); check it with {tool}")]
    Contradiction {
        /// What contradicts what.
        why: String,
        /// Where in the volume.
        offset_bytes: u64,
        /// The program that checks and mends it.
        tool: &'static str,
    },
}
