//! The superblock: what the volume is made of, and whether anything in it is not understood or not at rest.
//!
//! Source: the layout as the Linux kernel documents it (`Documentation/filesystems/ext4/super.rst` and its neighbours).

use super::checksum::crc32c;
use super::{contradiction, not_clean, unsupported};
use crate::freemap::{ReadAt, Refusal};
use crate::wire::{le16, le32};

/// Where the superblock starts, whatever the block size.
pub const SUPERBLOCK_AT_BYTES: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 1024;
const MAGIC: u16 = 0xef53;

const STATE_VALID: u16 = 1;

/// `s_feature_compat`.
mod compat {
    pub const DIR_PREALLOC: u32 = 0x1;
    pub const IMAGIC_INODES: u32 = 0x2;
    pub const HAS_JOURNAL: u32 = 0x4;
    pub const EXT_ATTR: u32 = 0x8;
    pub const RESIZE_INODE: u32 = 0x10;
    pub const DIR_INDEX: u32 = 0x20;
    pub const SPARSE_SUPER2: u32 = 0x200;
    pub const FAST_COMMIT: u32 = 0x400;
    pub const STABLE_INODES: u32 = 0x800;
    pub const ORPHAN_FILE: u32 = 0x1000;
    pub const KNOWN: u32 = DIR_PREALLOC
        | IMAGIC_INODES
        | HAS_JOURNAL
        | EXT_ATTR
        | RESIZE_INODE
        | DIR_INDEX
        | SPARSE_SUPER2
        | FAST_COMMIT
        | STABLE_INODES
        | ORPHAN_FILE;
}

/// `s_feature_incompat`.
mod incompat {
    pub const COMPRESSION: u32 = 0x1;
    pub const FILETYPE: u32 = 0x2;
    pub const RECOVER: u32 = 0x4;
    pub const JOURNAL_DEV: u32 = 0x8;
    pub const META_BG: u32 = 0x10;
    pub const EXTENTS: u32 = 0x40;
    pub const BITS64: u32 = 0x80;
    pub const MMP: u32 = 0x100;
    pub const FLEX_BG: u32 = 0x200;
    pub const EA_INODE: u32 = 0x400;
    pub const CSUM_SEED: u32 = 0x2000;
    pub const LARGEDIR: u32 = 0x4000;
    pub const INLINE_DATA: u32 = 0x8000;
    pub const ENCRYPT: u32 = 0x1_0000;
    pub const CASEFOLD: u32 = 0x2_0000;
    pub const KNOWN: u32 = FILETYPE
        | META_BG
        | EXTENTS
        | BITS64
        | MMP
        | FLEX_BG
        | EA_INODE
        | CSUM_SEED
        | LARGEDIR
        | INLINE_DATA
        | ENCRYPT
        | CASEFOLD;
    pub const OF_EXT2: u32 = FILETYPE | META_BG;
}

/// `s_feature_ro_compat`.
mod ro_compat {
    pub const SPARSE_SUPER: u32 = 0x1;
    pub const LARGE_FILE: u32 = 0x2;
    pub const HUGE_FILE: u32 = 0x8;
    pub const GDT_CSUM: u32 = 0x10;
    pub const DIR_NLINK: u32 = 0x20;
    pub const EXTRA_ISIZE: u32 = 0x40;
    pub const QUOTA: u32 = 0x100;
    pub const BIGALLOC: u32 = 0x200;
    pub const METADATA_CSUM: u32 = 0x400;
    pub const READONLY: u32 = 0x1000;
    pub const PROJECT: u32 = 0x2000;
    pub const SHARED_BLOCKS: u32 = 0x4000;
    pub const VERITY: u32 = 0x8000;
    pub const ORPHAN_PRESENT: u32 = 0x1_0000;
    pub const KNOWN: u32 = SPARSE_SUPER
        | LARGE_FILE
        | HUGE_FILE
        | GDT_CSUM
        | DIR_NLINK
        | EXTRA_ISIZE
        | QUOTA
        | BIGALLOC
        | METADATA_CSUM
        | READONLY
        | PROJECT
        | SHARED_BLOCKS
        | VERITY;
    pub const OF_EXT2: u32 = SPARSE_SUPER | LARGE_FILE;
}

/// How group descriptors, and with CRC-32C everything else, are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksums {
    /// Not at all (ext2, ext3).
    Absent,
    /// `uninit_bg`: only the descriptors, from the UUID.
    Crc16,
    /// `metadata_csum`: all metadata.
    Crc32c,
}

/// What the reader needs of a superblock that was found sound.
#[derive(Debug, Clone)]
pub struct Superblock {
    /// Bytes of a block: 1 to 64 KiB.
    pub block_bytes: u64,
    /// Blocks of an allocation unit; 1 without `bigalloc`.
    pub cluster_blocks: u64,
    /// The first block that a bitmap speaks of: 1 where the boot block is a block of its own.
    pub first_block: u64,
    /// One past the last block.
    pub blocks: u64,
    /// Blocks that are said to be free.
    pub free_blocks: u64,
    /// Blocks of each group but the last.
    pub blocks_per_group: u64,
    /// Clusters of each group but the last; a multiple of 8.
    pub clusters_per_group: u64,
    /// Number of groups.
    pub groups: u32,
    /// Number of inodes.
    pub inodes: u32,
    /// Inodes that are said to be free.
    pub free_inodes: u32,
    /// Inodes of each group; a multiple of 8.
    pub inodes_per_group: u32,
    /// Bytes of an inode in the table.
    pub inode_bytes: usize,
    /// The first inode that is not reserved.
    pub first_inode: u32,
    /// Bytes of a group descriptor.
    pub descriptor_bytes: usize,
    /// Blocks kept behind each copy of the descriptors, to grow into.
    pub reserved_gdt_blocks: u64,
    /// Blocks of descriptors that lie together behind the superblock; the others lie in their meta groups.
    pub gdt_blocks_together: u64,
    /// Whether the descriptors from there on lie in meta groups.
    pub meta_bg: bool,
    /// The two groups with a copy of the superblock (`sparse_super2`).
    pub sparse_super2: Option<[u32; 2]>,
    /// Whether only groups 0, 1 and powers of 3, 5 and 7 have a copy.
    pub sparse_super: bool,
    /// Whether bitmaps and tables may lie outside their group.
    pub flex_bg: bool,
    /// What protects the metadata.
    pub checksums: Checksums,
    /// Where each CRC-32C starts.
    pub seed: u32,
    /// The volume's UUID.
    pub uuid: [u8; 16],
    /// The journal's inode, if it has one within.
    pub journal_inode: Option<u32>,
    /// The block that tells whether another host has the volume mounted.
    pub mmp_block: Option<u64>,
    /// Whether inode 7 maps the reserved descriptor blocks.
    pub resize_inode: bool,
    /// Whether inodes may map their blocks by extents.
    pub extents: bool,
    /// Whether block numbers have more than 32 bits.
    pub bits64: bool,
    /// Whether inodes may hold their data themselves.
    pub inline_data: bool,
    /// Whether inodes count their blocks in 48 bits.
    pub huge_file: bool,
    /// Whether extended attributes may lie in inodes, whose blocks count for the owner too.
    pub ea_inode: bool,
    /// Whether files may share data blocks.
    pub shared_blocks: bool,
    /// Made by the Hurd, whose inodes may own a block more.
    pub hurd: bool,
    /// `ext2`, `ext3` or `ext4`.
    pub name: &'static str,
}

/// The careful reads of one superblock: it has all its bytes.
struct Fields<'a>(&'a [u8; SUPERBLOCK_BYTES]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> u16 {
        le16(self.0, at).unwrap_or_default()
    }

    fn u32(&self, at: usize) -> u32 {
        le32(self.0, at).unwrap_or_default()
    }

    /// A number of blocks, of which the upper half counts only with 64 bits.
    fn blocks(&self, low: usize, high: usize, bits64: bool) -> u64 {
        let high = if bits64 { self.u32(high) } else { 0 };
        u64::from(high) << 32 | u64::from(self.u32(low))
    }
}

fn wrong(why: impl Into<String>) -> Refusal {
    contradiction(why, SUPERBLOCK_AT_BYTES)
}

/// Reads the superblock and judges it.
pub fn read(volume: &dyn ReadAt) -> Result<Superblock, Refusal> {
    let not_this = |why: &str| Refusal::NotThis {
        what: "ext2, ext3 or ext4",
        why: why.to_owned(),
    };
    let end = SUPERBLOCK_AT_BYTES + SUPERBLOCK_BYTES as u64;
    if volume.size_bytes() < end {
        return Err(not_this("it is too small for a superblock"));
    }
    let mut bytes = [0; SUPERBLOCK_BYTES];
    volume.read_at(SUPERBLOCK_AT_BYTES, &mut bytes)?;
    if le16(&bytes, 0x38) != Some(MAGIC) {
        return Err(not_this("byte 1080 does not hold 0xef53"));
    }
    judge(&bytes, volume.size_bytes())
}

/// Judges the bytes of a superblock with the right magic, of a volume that long.
pub fn judge(bytes: &[u8; SUPERBLOCK_BYTES], volume_bytes: u64) -> Result<Superblock, Refusal> {
    let fields = Fields(bytes);
    let revision = fields.u32(0x4c);
    if revision > 1 {
        return Err(unsupported(format!("revision {revision} of ext")));
    }
    let features = [0x5c, 0x60, 0x64].map(|at| fields.u32(at));
    let [compat, incompat, ro_compat] = features;
    if revision == 0 && features != [0; 3] {
        return Err(wrong("a superblock of revision 0 has feature flags"));
    }
    let checksums = checksums(&fields, ro_compat)?;
    known(compat, incompat, ro_compat)?;
    at_rest(&fields, incompat, ro_compat)?;
    let creator = fields.u32(0x48);
    // 0 Linux, 1 Hurd, 2 Masix, 3 FreeBSD, 4 Lites.
    if creator > 4 || (creator != 0 && checksums == Checksums::Crc32c) {
        return Err(unsupported(format!("the variant of operating system {creator}")));
    }

    let bits64 = incompat & incompat::BITS64 != 0;
    let meta_bg = incompat & incompat::META_BG != 0;
    let mut uuid = [0; 16];
    uuid.copy_from_slice(bytes.get(0x68..0x78).unwrap_or(&[0; 16]));
    let seed = if incompat & incompat::CSUM_SEED != 0 {
        fields.u32(0x270)
    } else {
        crc32c(!0, &uuid)
    };
    let (inode_bytes, first_inode) = if revision == 0 {
        (128, 11)
    } else {
        (usize::from(fields.u16(0x58)), fields.u32(0x54))
    };
    let has_journal = compat & compat::HAS_JOURNAL != 0;
    let journal_inode = fields.u32(0xe0);
    if !has_journal && journal_inode != 0 {
        return Err(wrong("there is an inode of a journal, and no journal"));
    }
    let sizes = Sizes::of(&fields, ro_compat)?;
    let descriptor_bytes = if bits64 { usize::from(fields.u16(0xfe)) } else { 32 };
    let ext2 = incompat & !incompat::OF_EXT2 == 0 && ro_compat & !ro_compat::OF_EXT2 == 0;
    let superblock = Superblock {
        block_bytes: sizes.block_bytes,
        cluster_blocks: sizes.cluster_blocks,
        first_block: u64::from(fields.u32(0x14)),
        blocks: fields.blocks(0x4, 0x150, bits64),
        free_blocks: fields.blocks(0xc, 0x158, bits64),
        blocks_per_group: u64::from(fields.u32(0x20)),
        clusters_per_group: sizes.clusters_per_group,
        groups: 0,
        inodes: fields.u32(0),
        free_inodes: fields.u32(0x10),
        inodes_per_group: fields.u32(0x28),
        inode_bytes,
        first_inode,
        descriptor_bytes,
        reserved_gdt_blocks: u64::from(fields.u16(0xce)),
        gdt_blocks_together: u64::from(fields.u32(0x104)),
        meta_bg,
        sparse_super2: (compat & compat::SPARSE_SUPER2 != 0).then(|| [fields.u32(0x24c), fields.u32(0x250)]),
        sparse_super: ro_compat & ro_compat::SPARSE_SUPER != 0,
        flex_bg: incompat & incompat::FLEX_BG != 0,
        checksums,
        seed,
        uuid,
        journal_inode: (has_journal && journal_inode != 0).then_some(journal_inode),
        mmp_block: (incompat & incompat::MMP != 0).then(|| fields.blocks(0x168, 0x16c, true)),
        resize_inode: compat & compat::RESIZE_INODE != 0,
        extents: incompat & incompat::EXTENTS != 0,
        bits64,
        inline_data: incompat & incompat::INLINE_DATA != 0,
        huge_file: ro_compat & ro_compat::HUGE_FILE != 0,
        ea_inode: incompat & incompat::EA_INODE != 0,
        shared_blocks: ro_compat & ro_compat::SHARED_BLOCKS != 0,
        hurd: creator == 1,
        name: match (ext2, has_journal) {
            (true, false) => "ext2",
            (true, true) => "ext3",
            (false, _) => "ext4",
        },
    };
    measured(superblock, volume_bytes)
}

/// Which sums there are, and whether the superblock's own is right.
fn checksums(fields: &Fields<'_>, ro_compat: u32) -> Result<Checksums, Refusal> {
    let sums = match (
        ro_compat & ro_compat::METADATA_CSUM != 0,
        ro_compat & ro_compat::GDT_CSUM != 0,
    ) {
        (true, true) => return Err(wrong("metadata_csum and uninit_bg exclude each other")),
        (true, false) => Checksums::Crc32c,
        (false, true) => Checksums::Crc16,
        (false, false) => Checksums::Absent,
    };
    if sums == Checksums::Crc32c {
        let [_, kind, _, _] = fields.u32(0x174).to_le_bytes();
        if kind != 1 {
            return Err(unsupported(format!("checksum type {kind}")));
        }
        let (covered, _) = fields.0.split_at(0x3fc);
        if crc32c(!0, covered) != fields.u32(0x3fc) {
            return Err(wrong("the superblock does not match its checksum"));
        }
    }
    Ok(sums)
}

/// Refuses what is not understood.
fn known(compat: u32, incompat: u32, ro_compat: u32) -> Result<(), Refusal> {
    if incompat & incompat::JOURNAL_DEV != 0 {
        return Err(Refusal::NotThis {
            what: "ext2, ext3 or ext4",
            why: "it is the journal of another volume".to_owned(),
        });
    }
    if incompat & incompat::COMPRESSION != 0 {
        return Err(unsupported("it is compressed"));
    }
    let unknown = [
        ("compatible", compat & !compat::KNOWN),
        ("incompatible", incompat & !(incompat::KNOWN | incompat::RECOVER)),
        (
            "read-only compatible",
            ro_compat & !(ro_compat::KNOWN | ro_compat::ORPHAN_PRESENT),
        ),
    ];
    match unknown.iter().find(|(_, bits)| *bits != 0) {
        Some((kind, bits)) => Err(unsupported(format!("it has the {kind} features {bits:#x}"))),
        None => Ok(()),
    }
}

/// Refuses what was not unmounted, or has something left to do.
fn at_rest(fields: &Fields<'_>, incompat: u32, ro_compat: u32) -> Result<(), Refusal> {
    let state = fields.u16(0x3a);
    if incompat & incompat::RECOVER != 0 {
        return Err(not_clean("its journal must be replayed"));
    }
    if state & STATE_VALID == 0 {
        return Err(not_clean("it was not unmounted"));
    }
    if state != STATE_VALID {
        return Err(not_clean(format!("its state {state:#x} tells of errors")));
    }
    if ro_compat & ro_compat::ORPHAN_PRESENT != 0 || fields.u32(0xe8) != 0 {
        return Err(not_clean("deleted files wait to be cleaned up"));
    }
    Ok(())
}

/// Sizes that are powers of two, and what hangs on them.
struct Sizes {
    block_bytes: u64,
    cluster_blocks: u64,
    clusters_per_group: u64,
}

impl Sizes {
    fn of(fields: &Fields<'_>, ro_compat: u32) -> Result<Self, Refusal> {
        let (block_log, cluster_log) = (fields.u32(0x18), fields.u32(0x1c));
        if block_log > 6 {
            return Err(wrong(format!("blocks of 2^{block_log} KiB")));
        }
        let block_bytes = 1024u64 << block_log;
        let blocks_per_group = u64::from(fields.u32(0x20));
        if ro_compat & ro_compat::BIGALLOC == 0 {
            return Ok(Self {
                block_bytes,
                cluster_blocks: 1,
                clusters_per_group: blocks_per_group,
            });
        }
        let ratio_log = cluster_log
            .checked_sub(block_log)
            .filter(|_| cluster_log <= 20)
            .ok_or_else(|| wrong(format!("clusters of 2^{cluster_log} KiB")))?;
        let cluster_blocks = 1u64 << ratio_log;
        let clusters_per_group = u64::from(fields.u32(0x24));
        if clusters_per_group.checked_mul(cluster_blocks) != Some(blocks_per_group) {
            return Err(wrong("a group's clusters do not make up its blocks"));
        }
        Ok(Self {
            block_bytes,
            cluster_blocks,
            clusters_per_group,
        })
    }
}

/// Checks every number against the others, and counts the groups.
fn measured(mut it: Superblock, volume_bytes: u64) -> Result<Superblock, Refusal> {
    let bits_per_block = it.block_bytes * 8;
    let boot_block = u64::from(it.block_bytes == 1024 && it.cluster_blocks == 1);
    if it.first_block != boot_block {
        return Err(wrong(format!("block {} is the first one", it.first_block)));
    }
    let clusters = it.clusters_per_group;
    if clusters == 0 || clusters > bits_per_block || !clusters.is_multiple_of(8) {
        return Err(wrong(format!("groups of {clusters} clusters")));
    }
    let inodes = u64::from(it.inodes_per_group);
    if inodes == 0 || inodes > bits_per_block || !inodes.is_multiple_of(8) {
        return Err(wrong(format!("groups of {inodes} inodes")));
    }
    if !it.inode_bytes.is_power_of_two() || it.inode_bytes < 128 || it.inode_bytes as u64 > it.block_bytes {
        return Err(wrong(format!("inodes of {} bytes", it.inode_bytes)));
    }
    let shortest = if it.bits64 { 64 } else { 32 };
    if !it.descriptor_bytes.is_power_of_two() || it.descriptor_bytes < shortest || it.descriptor_bytes > 1024
    {
        return Err(wrong(format!(
            "group descriptors of {} bytes",
            it.descriptor_bytes
        )));
    }
    let covered_bytes = it.blocks.checked_mul(it.block_bytes);
    if covered_bytes.is_none_or(|bytes| bytes > volume_bytes) {
        return Err(wrong(format!(
            "{} blocks of {} bytes are more than the volume's {volume_bytes} bytes",
            it.blocks, it.block_bytes
        )));
    }
    let grouped = it
        .blocks
        .checked_sub(it.first_block)
        .filter(|n| *n > 0)
        .ok_or_else(|| wrong(format!("{} blocks", it.blocks)))?;
    it.groups = u32::try_from(grouped.div_ceil(it.blocks_per_group))
        .map_err(|_| wrong(format!("groups of {} blocks", it.blocks_per_group)))?;
    if u64::from(it.groups) * inodes != u64::from(it.inodes) {
        return Err(wrong(format!(
            "{} groups of {inodes} inodes are not {} inodes",
            it.groups, it.inodes
        )));
    }
    if it.first_inode < 11 || it.first_inode > it.inodes {
        return Err(wrong(format!("inode {} is the first one", it.first_inode)));
    }
    if it.free_blocks > it.blocks || it.free_inodes > it.inodes {
        return Err(wrong("more is free than there is"));
    }
    // The reserved blocks belong to the resize inode, and meta groups need none.
    let misplaced = it.resize_inode && it.meta_bg || it.reserved_gdt_blocks != 0 && !it.resize_inode;
    if misplaced || it.reserved_gdt_blocks > it.block_bytes / 4 {
        return Err(wrong(format!(
            "{} blocks are reserved for descriptors",
            it.reserved_gdt_blocks
        )));
    }
    let gdt_blocks = u64::from(it.groups).div_ceil(it.descriptors_per_block());
    if !it.meta_bg {
        it.gdt_blocks_together = gdt_blocks;
    } else if it.gdt_blocks_together > gdt_blocks {
        return Err(wrong("the first meta group lies past the last one"));
    }
    if it.journal_inode.is_some_and(|inode| inode > it.inodes) {
        return Err(wrong("the journal's inode is none"));
    }
    Ok(it)
}

impl Superblock {
    /// How many group descriptors one block holds.
    pub fn descriptors_per_block(&self) -> u64 {
        self.block_bytes / self.descriptor_bytes as u64
    }

    /// Whether CRC-16 or CRC-32C protect the descriptors, without which nothing may be left uninitialized.
    pub fn descriptors_have_sums(&self) -> bool {
        self.checksums != Checksums::Absent
    }

    /// Whether CRC-32C protects all metadata.
    pub fn metadata_has_sums(&self) -> bool {
        self.checksums == Checksums::Crc32c
    }

    /// The first byte of a block, for messages.
    pub fn byte_of(&self, block: u64) -> u64 {
        block.saturating_mul(self.block_bytes)
    }

    /// Whether these blocks lie in the volume, behind the boot block.
    pub fn holds(&self, start: u64, count: u64) -> bool {
        start >= self.first_block && start.checked_add(count).is_some_and(|end| end <= self.blocks)
    }

    /// The clusters that these blocks touch, as (first, count).
    pub fn clusters_of(&self, start: u64, count: u64) -> (u64, u64) {
        let first = start / self.cluster_blocks;
        let end = start.saturating_add(count).div_ceil(self.cluster_blocks);
        (first, end.saturating_sub(first))
    }
}
