//! The tables of inodes: which are in use, and whether all their blocks are.

use super::blocks::Blocks;
use super::claims::Claims;
use super::groups::Group;
use super::inode::{Inode, Kind, MAP_BYTES};
use super::mapping::Walk;
use super::superblock::{SUPERBLOCK_AT_BYTES, Superblock};
use super::{contradiction, journal, unsupported};
use crate::freemap::{ReadAt, Refusal, UsedMap};

const BAD_BLOCKS_INODE: u32 = 1;
const ROOT_INODE: u32 = 2;
const RESIZE_INODE: u32 = 7;

/// How much of a table is read at once; a multiple of every inode size.
const CHUNK_BYTES: u64 = 256 << 10;

/// Goes through all inodes in use and takes their blocks off the books; says how many these are.
pub fn check(superblock: &Superblock, volume: &dyn ReadAt, claims: &mut Claims) -> Result<u64, Refusal> {
    let blocks = || Blocks::new(volume, superblock.block_bytes, superblock.blocks);
    let (mut descriptors, mut bitmaps) = (blocks(), blocks());
    let mut scan = Scan {
        superblock,
        volume,
        trees: blocks(),
        claims,
        owners: 0,
        journal_seen: false,
    };
    let mut table = Vec::new();
    let mut free_inodes = 0;
    for number in 0..superblock.groups {
        let group = superblock.group(&mut descriptors, number)?;
        free_inodes += u64::from(group.free_inodes);
        scan.group(&group, &mut bitmaps, &mut table)?;
    }
    if free_inodes != u64::from(superblock.free_inodes) {
        return Err(contradiction(
            format!(
                "the superblock says {} free inodes, the groups {free_inodes}",
                superblock.free_inodes
            ),
            SUPERBLOCK_AT_BYTES,
        ));
    }
    if superblock.journal_inode.is_some() && !scan.journal_seen {
        return Err(contradiction("the journal has no blocks", SUPERBLOCK_AT_BYTES));
    }
    Ok(scan.owners)
}

struct Scan<'a, 'c> {
    superblock: &'a Superblock,
    volume: &'a dyn ReadAt,
    trees: Blocks<'a>,
    claims: &'c mut Claims,
    owners: u64,
    journal_seen: bool,
}

impl Scan<'_, '_> {
    fn group(&mut self, group: &Group, bitmaps: &mut Blocks<'_>, table: &mut Vec<u8>) -> Result<(), Refusal> {
        let superblock = self.superblock;
        let wrong = |why: String| contradiction(format!("group {}: {why}", group.number), group.at_bytes);
        let all = u64::from(superblock.inodes_per_group);
        let mut map = UsedMap::all_free(all);
        if !group.inode_bitmap_unwritten {
            let bitmap = bitmaps.read(group.inode_bitmap)?;
            if !superblock.bitmap_matches(bitmap, all, group.inode_bitmap_sum) {
                return Err(contradiction(
                    format!(
                        "the bitmap of inodes of group {} does not match its checksum",
                        group.number
                    ),
                    superblock.byte_of(group.inode_bitmap),
                ));
            }
            map.load(0, all, bitmap);
        }
        let free = map.count_free(0, all);
        if free != u64::from(group.free_inodes) {
            return Err(wrong(format!(
                "it says {} free inodes, its bitmap {free}",
                group.free_inodes
            )));
        }
        let written = if group.inode_bitmap_unwritten {
            0
        } else {
            all - u64::from(group.unused_inodes)
        };
        if map
            .first_used(written, all - written)
            .is_some_and(|inode| inode < all)
        {
            return Err(wrong("an inode is in use that was never written".to_owned()));
        }
        // Bitmap, count of inodes, count of directories and the superblock's sum all say that nothing is there, and
        // blocks of an inode they all forgot would have no owner at the end. Old volumes have gigabytes of such tables.
        if free == all && group.directories == 0 {
            return Ok(());
        }
        let directories = self.table(group, &map, written, table)?;
        if directories != group.directories {
            return Err(wrong(format!(
                "it says {} directories, its inodes {directories}",
                group.directories
            )));
        }
        Ok(())
    }

    /// Reads the first `written` inodes of a group; says how many are directories.
    fn table(
        &mut self,
        group: &Group,
        map: &UsedMap,
        written: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<u32, Refusal> {
        let superblock = self.superblock;
        let inode_bytes = superblock.inode_bytes as u64;
        let start_bytes = superblock.byte_of(group.inode_table);
        let first = u64::from(group.number) * u64::from(superblock.inodes_per_group) + 1;
        let mut directories = 0;
        let mut index = 0;
        while index < written {
            let count = (written - index).min(CHUNK_BYTES / inode_bytes);
            buffer.resize(usize::try_from(count * inode_bytes).unwrap_or_default(), 0);
            let chunk_at_bytes = start_bytes + index * inode_bytes;
            self.volume.read_at(chunk_at_bytes, buffer)?;
            for bytes in buffer.chunks_exact(superblock.inode_bytes) {
                let number = u32::try_from(first + index).unwrap_or(u32::MAX);
                let at_bytes = start_bytes + index * inode_bytes;
                if self.inode(number, at_bytes, bytes, map.is_used(index))? {
                    directories += 1;
                }
                index += 1;
            }
        }
        Ok(directories)
    }

    /// Judges one inode; says whether it is a directory in use.
    fn inode(&mut self, number: u32, at_bytes: u64, bytes: &[u8], in_map: bool) -> Result<bool, Refusal> {
        let superblock = self.superblock;
        let wrong = |why: &str| contradiction(format!("inode {number} {why}"), at_bytes);
        let inode = Inode::parse(bytes).ok_or_else(|| wrong("is cut short"))?;
        let reserved = number < superblock.first_inode;
        if !reserved && inode.links == 0 {
            if in_map {
                return Err(wrong("is in use by the bitmap, and has no name"));
            }
            if inode.has_mode() && inode.deleted_at == 0 {
                return Err(wrong("has no name, and was not deleted"));
            }
            return Ok(false);
        }
        if !in_map {
            return Err(wrong("is free by the bitmap, and in use"));
        }
        if inode.links > 0 && inode.deleted_at != 0 {
            return Err(wrong("is in use, and was deleted"));
        }
        let seed = inode.seed(superblock, number);
        if superblock.metadata_has_sums()
            && bytes.iter().any(|byte| *byte != 0)
            && !inode.matches_checksum(seed)
        {
            return Err(wrong("does not match its checksum"));
        }
        if inode.is_snapshot() {
            return Err(unsupported("a file is a snapshot"));
        }
        let kind = inode.kind();
        let right_kind = match number {
            ROOT_INODE => kind == Kind::Directory && inode.links > 0,
            _ if reserved => matches!(kind, Kind::Nothing | Kind::File),
            _ => !matches!(kind, Kind::Nothing | Kind::Unknown),
        };
        if !right_kind {
            return Err(wrong("has a mode that makes no sense"));
        }
        if inode.has_extents() && !superblock.extents || inode.has_inline_data() && !superblock.inline_data {
            return Err(wrong("has a flag without its feature"));
        }
        self.blocks(number, at_bytes, &inode, seed)?;
        if inode.links > 0 {
            self.owners += 1;
        }
        Ok(kind == Kind::Directory)
    }

    /// Takes the blocks of an inode off the books.
    fn blocks(&mut self, number: u32, at_bytes: u64, inode: &Inode<'_>, seed: u32) -> Result<(), Refusal> {
        let superblock = self.superblock;
        let wrong = |why: String| contradiction(format!("inode {number} {why}"), at_bytes);
        let used_bytes = inode
            .used_bytes(superblock)
            .ok_or_else(|| wrong("says it uses more than 64 bits can tell".to_owned()))?;
        let cluster_bytes = superblock.block_bytes * superblock.cluster_blocks;
        let mut walk = Walk::new(superblock, &mut self.trees, self.claims, number, seed, at_bytes);
        if let Some(block) = inode.attributes_block(superblock) {
            walk.attributes(block)?;
        }
        if let Some(block) = inode.translator_block(superblock) {
            walk.metadata(block)?;
        }
        let besides = walk.clusters * cluster_bytes;
        let has_map = match inode.kind() {
            _ if inode.has_inline_data() => false,
            Kind::Special => false,
            // A short link stands in the inode itself. Old programs gave some of them a block all the same.
            Kind::Link => {
                inode.has_extents()
                    || inode.size_bytes >= MAP_BYTES as u64
                    || !superblock.ea_inode && used_bytes > besides
            }
            _ => true,
        };
        if number == RESIZE_INODE && !inode.has_extents() {
            walk.resize_inode(inode.map)?;
        } else if has_map && inode.has_extents() {
            walk.extents(inode.map)?;
        } else if has_map {
            walk.pointers(inode.map)?;
        }
        let counted_bytes = walk.clusters.saturating_mul(cluster_bytes);
        let adds_up = if superblock.hurd || number == BAD_BLOCKS_INODE {
            // Nobody counts these exactly, nor does e2fsck look.
            true
        } else if superblock.ea_inode {
            // Attributes in inodes of their own count for their owner too; who owns them is not followed.
            counted_bytes <= used_bytes
        } else {
            counted_bytes == used_bytes
        };
        if !adds_up {
            return Err(wrong(format!(
                "says it uses {used_bytes} bytes of the medium, and maps {counted_bytes}"
            )));
        }
        let (first_block, mapped_blocks) = (walk.first_block, walk.data_blocks);
        if superblock.journal_inode == Some(number)
            && let Some(block) = first_block
        {
            if inode.kind() != Kind::File || inode.links == 0 {
                return Err(wrong("holds the journal, and is no file".to_owned()));
            }
            journal::check(superblock, self.volume, block, mapped_blocks)?;
            self.journal_seen = true;
        }
        Ok(())
    }
}
