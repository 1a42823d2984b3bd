//! ext2, ext3 and ext4.
//!
//! The rule is that of a full check: everything in the bitmaps is explained by exactly one owner (superblocks,
//! descriptors, tables, inodes), and every owner's blocks are in the bitmaps. A block more or less on either side, a
//! count that does not add up or a checksum that does not match is a refusal.
//!
//! Source: the Linux kernel's description of the layout, `Documentation/filesystems/ext4/`.

mod blocks;
mod checksum;
mod claims;
mod groups;
mod inode;
mod inodes;
mod journal;
mod mapping;
mod maps;
mod superblock;
#[cfg(test)]
mod tests;

use claims::Claims;

use super::{Extent, FileSystem, FreeMap, ReadAt, Refusal};

const TOOL: &str = "e2fsck";

fn contradiction(why: impl Into<String>, offset_bytes: u64) -> Refusal {
    Refusal::Contradiction {
        why: why.into(),
        offset_bytes,
        tool: TOOL,
    }
}

fn not_clean(why: impl Into<String>) -> Refusal {
    Refusal::NotClean {
        why: why.into(),
        tool: TOOL,
    }
}

fn unsupported(why: impl Into<String>) -> Refusal {
    Refusal::Unsupported { why: why.into() }
}

/// The free space of an ext2, ext3 or ext4 volume that was unmounted cleanly.
///
/// # Errors
/// The volume is something else, is not at rest, uses what is not understood, or contradicts itself.
pub fn free_map(volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
    let superblock = superblock::read(volume)?;
    journal::check_mmp(&superblock, volume)?;
    let mut claims = Claims::new(&superblock);
    maps::read(&superblock, volume, &mut claims)?;
    let owners_checked = inodes::check(&superblock, volume, &mut claims)?;
    let free = claims.finish(&superblock)?;
    let unit_bytes = superblock.block_bytes * superblock.cluster_blocks;
    let covered_bytes = superblock.byte_of(superblock.blocks);
    Ok(FreeMap {
        file_system: FileSystem::Ext,
        name: superblock.name.to_owned(),
        unit_bytes: u32::try_from(unit_bytes).unwrap_or(u32::MAX),
        covered_bytes,
        free: free
            .into_iter()
            .filter_map(|run| {
                let start_bytes = run.start_bytes;
                let end_bytes = run.end_bytes()?.min(covered_bytes);
                (end_bytes > start_bytes).then(|| Extent {
                    start_bytes,
                    len_bytes: end_bytes - start_bytes,
                })
            })
            .collect(),
        owners_checked,
    })
}
