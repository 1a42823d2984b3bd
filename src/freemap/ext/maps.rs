//! The bitmaps of blocks, against the metadata that has fixed places.

use super::blocks::Blocks;
use super::claims::Claims;
use super::contradiction;
use super::groups::Group;
use super::superblock::{SUPERBLOCK_AT_BYTES, Superblock};
use crate::freemap::{ReadAt, Refusal};

/// Enters all metadata and all bitmaps into the books.
pub fn read(superblock: &Superblock, volume: &dyn ReadAt, claims: &mut Claims) -> Result<(), Refusal> {
    let blocks = || Blocks::new(volume, superblock.block_bytes, superblock.blocks);
    let (mut descriptors, mut bitmaps) = (blocks(), blocks());
    if let Some(block) = superblock.mmp_block {
        claims.metadata(superblock, (block, 1), "the block of multiple mount protection")?;
    }
    let mut free_clusters = 0;
    if superblock.flex_bg || superblock.cluster_blocks > 1 {
        // Any group may hold the tables of any other.
        for number in 0..superblock.groups {
            let group = superblock.group(&mut descriptors, number)?;
            enter_metadata(superblock, &group, claims)?;
        }
        for number in 0..superblock.groups {
            let group = superblock.group(&mut descriptors, number)?;
            free_clusters += enter_bitmap(superblock, &group, &mut bitmaps, claims)?;
        }
    } else {
        // Group by group, which keeps the books short.
        for number in 0..superblock.groups {
            let group = superblock.group(&mut descriptors, number)?;
            stays_within(superblock, &group)?;
            enter_metadata(superblock, &group, claims)?;
            free_clusters += enter_bitmap(superblock, &group, &mut bitmaps, claims)?;
        }
    }
    let free_blocks = free_clusters * superblock.cluster_blocks;
    if free_blocks != superblock.free_blocks {
        return Err(contradiction(
            format!(
                "the superblock says {} free blocks, the bitmaps {free_blocks}",
                superblock.free_blocks
            ),
            SUPERBLOCK_AT_BYTES,
        ));
    }
    Ok(())
}

/// Without `flex_bg` a group's tables lie in the group.
fn stays_within(superblock: &Superblock, group: &Group) -> Result<(), Refusal> {
    let start = superblock.group_start(group.number);
    let end = start + superblock.group_blocks(group.number);
    let all_within = [
        (group.block_bitmap, 1),
        (group.inode_bitmap, 1),
        (group.inode_table, superblock.inode_table_blocks()),
    ]
    .iter()
    .all(|(at, count)| *at >= start && at.checked_add(*count).is_some_and(|stop| stop <= end));
    if all_within {
        Ok(())
    } else {
        Err(contradiction(
            format!("a table of group {} lies outside the group", group.number),
            group.at_bytes,
        ))
    }
}

fn enter_metadata(superblock: &Superblock, group: &Group, claims: &mut Claims) -> Result<(), Refusal> {
    let number = group.number;
    let head = superblock.head(number);
    let end = superblock.group_start(number) + superblock.group_blocks(number);
    if head.0.saturating_add(head.1) > end {
        return Err(contradiction(
            format!("group {number} is too short for its own descriptors"),
            superblock.byte_of(head.0),
        ));
    }
    if head.1 > 0 {
        claims.metadata(superblock, head, &format!("the head of group {number}"))?;
    }
    for (start, count, what) in [
        (group.block_bitmap, 1, "the bitmap of blocks"),
        (group.inode_bitmap, 1, "the bitmap of inodes"),
        (
            group.inode_table,
            superblock.inode_table_blocks(),
            "the inode table",
        ),
    ] {
        claims.metadata(superblock, (start, count), &format!("{what} of group {number}"))?;
    }
    Ok(())
}

/// Takes in one bitmap; says how many clusters are free.
fn enter_bitmap(
    superblock: &Superblock,
    group: &Group,
    bitmaps: &mut Blocks<'_>,
    claims: &mut Claims,
) -> Result<u64, Refusal> {
    let (first, count) = superblock.clusters_of(
        superblock.group_start(group.number),
        superblock.group_blocks(group.number),
    );
    let bitmap = if group.block_bitmap_unwritten {
        None
    } else {
        let bitmap = bitmaps.read(group.block_bitmap)?;
        if !superblock.bitmap_matches(bitmap, superblock.clusters_per_group, group.block_bitmap_sum) {
            return Err(contradiction(
                format!(
                    "the bitmap of blocks of group {} does not match its checksum",
                    group.number
                ),
                superblock.byte_of(group.block_bitmap),
            ));
        }
        Some(bitmap)
    };
    let free = claims.bitmap(first, count, bitmap)?;
    if free != group.free_clusters {
        return Err(contradiction(
            format!(
                "group {} says {} free clusters, its bitmap {free}",
                group.number, group.free_clusters
            ),
            group.at_bytes,
        ));
    }
    Ok(free)
}
