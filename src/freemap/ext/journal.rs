//! The journal and the mount protection: whether something is left to do, or somebody is at work.
//!
//! Source: the kernel's `Documentation/filesystems/ext4/journal.rst` and `mmp.rst`. The journal is big-endian.

use super::blocks::Blocks;
use super::checksum::crc32c;
use super::superblock::Superblock;
use super::{contradiction, not_clean, unsupported};
use crate::freemap::{ReadAt, Refusal};
use crate::wire::{be32, le32};

const JOURNAL_MAGIC: u32 = 0xc03b_3998;
const SUPERBLOCK_V1: u32 = 3;
const SUPERBLOCK_V2: u32 = 4;
const JOURNAL_SUPERBLOCK_BYTES: usize = 1024;
const JOURNAL_CHECKSUM_AT: usize = 0xfc;

/// `s_feature_compat`: commit blocks have checksums.
const COMPAT_KNOWN: u32 = 0x1;
/// Revoke records, 64 bits, asynchronous commits, checksums of version 2 and 3, fast commits.
const INCOMPAT_KNOWN: u32 = 0x3f;
const INCOMPAT_CHECKSUMS: u32 = 0x8 | 0x10;

const MMP_MAGIC: u32 = 0x004d_4d50;
const MMP_CLEAN: u32 = 0xff4d_4d50;
const MMP_CHECKSUM_AT: usize = 0x3fc;

/// Judges the first block of a journal that has so many blocks.
pub fn check(superblock: &Superblock, volume: &dyn ReadAt, block: u64, blocks: u64) -> Result<(), Refusal> {
    let at_bytes = superblock.byte_of(block);
    let mut reader = Blocks::new(volume, superblock.block_bytes, superblock.blocks);
    let bytes = reader
        .read(block)?
        .get(..JOURNAL_SUPERBLOCK_BYTES)
        .unwrap_or_default();
    let wrong = |why: &str| contradiction(format!("the journal's superblock {why}"), at_bytes);
    let field = |at: usize| be32(bytes, at).ok_or_else(|| wrong("is cut short"));
    if field(0)? != JOURNAL_MAGIC {
        return Err(wrong("is none"));
    }
    let version = field(4)?;
    if version != SUPERBLOCK_V1 && version != SUPERBLOCK_V2 {
        return Err(wrong("has a kind of its own"));
    }
    if version == SUPERBLOCK_V2 {
        let (compat, incompat, ro_compat) = (field(0x24)?, field(0x28)?, field(0x2c)?);
        if compat & !COMPAT_KNOWN != 0 || incompat & !INCOMPAT_KNOWN != 0 || ro_compat != 0 {
            return Err(unsupported(format!(
                "its journal has the features {compat:#x}, {incompat:#x}, {ro_compat:#x}"
            )));
        }
        if incompat & INCOMPAT_CHECKSUMS != 0 {
            let sum = sum_without(!0, bytes, JOURNAL_CHECKSUM_AT);
            if sum != Some(field(JOURNAL_CHECKSUM_AT)?) {
                return Err(wrong("does not match its checksum"));
            }
        }
    }
    if u64::from(field(0xc)?) != superblock.block_bytes {
        return Err(wrong("has blocks of another size"));
    }
    if u64::from(field(0x10)?) > blocks {
        return Err(wrong("speaks of more blocks than it has"));
    }
    if field(0x1c)? != 0 {
        return Err(not_clean("its journal must be replayed"));
    }
    if field(0x20)? != 0 {
        return Err(not_clean("its journal tells of an error"));
    }
    Ok(())
}

/// CRC-32C over bytes of which the four at `at` count as zero.
fn sum_without(start: u32, bytes: &[u8], at: usize) -> Option<u32> {
    let sum = crc32c(crc32c(start, bytes.get(..at)?), &[0; 4]);
    Some(crc32c(sum, bytes.get(at.checked_add(4)?..)?))
}

/// Refuses while another host has the volume mounted.
pub fn check_mmp(superblock: &Superblock, volume: &dyn ReadAt) -> Result<(), Refusal> {
    let Some(block) = superblock.mmp_block else {
        return Ok(());
    };
    let at_bytes = superblock.byte_of(block);
    let wrong = |why: &str| contradiction(format!("the block of multiple mount protection {why}"), at_bytes);
    if !superblock.holds(block, 1) {
        return Err(wrong("lies outside the volume"));
    }
    let mut reader = Blocks::new(volume, superblock.block_bytes, superblock.blocks);
    let bytes = reader.read(block)?;
    if le32(bytes, 0) != Some(MMP_MAGIC) {
        return Err(wrong("is none"));
    }
    if superblock.metadata_has_sums() {
        let covered = bytes.get(..MMP_CHECKSUM_AT).unwrap_or_default();
        if Some(crc32c(superblock.seed, covered)) != le32(bytes, MMP_CHECKSUM_AT) {
            return Err(wrong("does not match its checksum"));
        }
    }
    if le32(bytes, 4) != Some(MMP_CLEAN) {
        return Err(not_clean("a host has it mounted or checks it"));
    }
    Ok(())
}
