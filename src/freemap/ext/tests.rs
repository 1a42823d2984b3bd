//! A small volume written by hand, and what becomes of it with something changed.

use proptest::prelude::*;

use super::superblock::SUPERBLOCK_AT_BYTES;
use super::*;
use crate::freemap::ReadError;

const BLOCK: usize = 1024;
const BLOCKS: usize = 64;
const SUPERBLOCK: usize = BLOCK;
const DESCRIPTOR: usize = 2 * BLOCK;
const BLOCK_BITMAP: usize = 3 * BLOCK;
const INODE_BITMAP: usize = 4 * BLOCK;
const TABLE: usize = 5 * BLOCK;
const FILE: u32 = 12;

/// ext2 with 1 KiB blocks and one group. Blocks 1 to 6 are metadata, 7 is the root, and file 12 has 8, 9 and, by the
/// indirect block 10, 11; 12 to 63 are free.
struct Volume(Vec<u8>);

impl Volume {
    fn ext2() -> Self {
        let mut it = Self(vec![0; BLOCKS * BLOCK]);
        for (at, value) in [
            (0x0, 16),  // inodes
            (0x4, 64),  // blocks
            (0xc, 52),  // free blocks
            (0x10, 5),  // free inodes
            (0x14, 1),  // first block
            (0x20, 64), // blocks of a group
            (0x24, 64),
            (0x28, 16), // inodes of a group
            (0x4c, 1),  // revision
            (0x54, 11), // first inode
            (0x60, 2),  // filetype
            (0x64, 1),  // sparse_super
        ] {
            it.set32(SUPERBLOCK + at, value);
        }
        it.set16(SUPERBLOCK + 0x38, 0xef53);
        it.set16(SUPERBLOCK + 0x3a, 1);
        it.set16(SUPERBLOCK + 0x58, 128);
        for (at, block) in [(0, 3), (4, 4), (8, 5)] {
            it.set32(DESCRIPTOR + at, block);
        }
        it.set16(DESCRIPTOR + 0xc, 52);
        it.set16(DESCRIPTOR + 0xe, 5);
        it.set16(DESCRIPTOR + 0x10, 1);
        // Bit 0 is block 1, and inode 1.
        it.set16(BLOCK_BITMAP, 0x07ff);
        it.set16(INODE_BITMAP, 0x0bff);
        it.inode(2, 0x41ed, 2, &[7]);
        it.inode(FILE, 0x81a4, 8, &[8, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10]);
        it.set32(10 * BLOCK + 8, 11);
        it
    }

    /// The same with the file's blocks in a tree of extents of two levels, whose leaf is block 10.
    fn ext4() -> Self {
        let mut it = Self::ext2();
        it.set32(SUPERBLOCK + 0x60, 0x42);
        it.inode(FILE, 0x81a4, 8, &[0x0001_f30a, 0x0001_0004, 0, 0, 10]);
        it.set32(slot(FILE) + 0x20, 0x8_0000);
        it.set32(10 * BLOCK + 8, 0);
        it.words(10 * BLOCK, &[0x0002_f30a, 84, 0, 0, 2, 8, 100, 0x8001, 11]);
        it
    }

    /// The first one with a journal of one block, block 12.
    fn ext3() -> Self {
        let mut it = Self::ext2();
        it.set32(SUPERBLOCK + 0x5c, 4);
        it.set32(SUPERBLOCK + 0xe0, 8);
        it.inode(8, 0x8180, 2, &[12]);
        it.set16(BLOCK_BITMAP, 0x0fff);
        it.set32(SUPERBLOCK + 0xc, 51);
        it.set16(DESCRIPTOR + 0xc, 51);
        for (at, value) in [(0, 0xc03b_3998u32), (4, 4), (0xc, 1024), (0x10, 1), (0x14, 1)] {
            it.0[12 * BLOCK + at..][..4].copy_from_slice(&value.to_be_bytes());
        }
        it
    }

    fn set16(&mut self, at: usize, value: u16) {
        self.0[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    fn set32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn words(&mut self, at: usize, words: &[u32]) {
        for (index, word) in words.iter().enumerate() {
            self.set32(at + 4 * index, *word);
        }
    }

    fn inode(&mut self, number: u32, mode: u16, sectors: u32, map: &[u32]) {
        let at = slot(number);
        self.0[at..at + 128].fill(0);
        self.set16(at, mode);
        self.set16(at + 0x1a, 1);
        self.set32(at + 0x1c, sectors);
        self.words(at + 0x28, map);
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn read(&self) -> Result<FreeMap, Refusal> {
        free_map(self)
    }

    fn contradicts(&self, words: &str) {
        match self.read() {
            Err(Refusal::Contradiction { why, .. }) if why.contains(words) => {}
            other => panic!("no contradiction with {words:?}: {other:?}"),
        }
    }

    fn is_not_clean(&self, words: &str) {
        match self.read() {
            Err(Refusal::NotClean { why, .. }) if why.contains(words) => {}
            other => panic!("clean, without {words:?}: {other:?}"),
        }
    }

    fn is_unsupported(&self) {
        let found = self.read();
        assert!(matches!(found, Err(Refusal::Unsupported { .. })), "{found:?}");
    }
}

impl ReadAt for Volume {
    fn size_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.0.as_slice().read_at(offset_bytes, buffer)
    }
}

fn slot(inode: u32) -> usize {
    TABLE + 128 * (inode as usize - 1)
}

fn blocks_free(first: u64) -> Vec<Extent> {
    vec![Extent {
        start_bytes: first * 1024,
        len_bytes: (64 - first) * 1024,
    }]
}

#[test]
fn the_sound_ones_are_read() {
    for (volume, name, first, owners) in [
        (Volume::ext2(), "ext2", 12, 2),
        (Volume::ext3(), "ext3", 13, 3),
        (Volume::ext4(), "ext4", 12, 2),
    ] {
        let map = volume.read().unwrap();
        assert_eq!(map.name, name);
        assert_eq!(map.free, blocks_free(first));
        assert_eq!(map.owners_checked, owners);
        assert_eq!((map.unit_bytes, map.covered_bytes), (1024, 65536));
    }
}

/// Wherever one bit of metadata is flipped, nothing becomes free that was not.
#[test]
fn no_flipped_bit_frees_anything() {
    for (volume, first) in [(Volume::ext2(), 12), (Volume::ext3(), 13), (Volume::ext4(), 12)] {
        let areas = [
            SUPERBLOCK..SUPERBLOCK + 0x300,
            DESCRIPTOR..DESCRIPTOR + 32,
            BLOCK_BITMAP..BLOCK_BITMAP + 16,
            INODE_BITMAP..INODE_BITMAP + 4,
            slot(1)..slot(14),
            10 * BLOCK..10 * BLOCK + 64,
            12 * BLOCK..12 * BLOCK + 64,
        ];
        for at in areas.into_iter().flatten() {
            for bit in 0..8 {
                let mut flipped = Volume(volume.0.clone());
                flipped.0[at] ^= 1 << bit;
                if let Ok(map) = flipped.read() {
                    assert_eq!(map.free, blocks_free(first), "bit {bit} of byte {at}");
                }
            }
        }
    }
}

#[test]
fn a_map_against_the_owners() {
    let counted = |free: u32| {
        move |it: &mut Volume| {
            it.set32(SUPERBLOCK + 0xc, free);
            it.set16(DESCRIPTOR + 0xc, free as u16);
        }
    };
    // Freed although in use: a table, the root, the indirect block, a block of the file. The counts agree.
    for (bit, words) in [
        (4, "metadata lies there"),
        (6, "inode 2 uses it"),
        (9, "inode 12 uses it"),
        (10, "inode 12 uses it"),
    ] {
        Volume::ext2()
            .with(counted(53))
            .with(|it| it.set16(BLOCK_BITMAP, 0x07ff & !(1 << bit)))
            .contradicts(words);
    }
    Volume::ext2()
        .with(counted(51))
        .with(|it| it.set16(BLOCK_BITMAP, 0x0fff))
        .contradicts("nothing uses it");
    Volume::ext2()
        .with(|it| it.set16(BLOCK_BITMAP, 0x03ff))
        .contradicts("group 0 says 52 free clusters, its bitmap 53");
    Volume::ext2()
        .with(|it| it.set32(SUPERBLOCK + 0xc, 51))
        .contradicts("says 51 free blocks");
    // A file that loses a block to another, to metadata, to the outside.
    for (block, words) in [
        (7, "has an owner already"),
        (5, "has an owner already"),
        (64, "lies outside the volume"),
        (40, "calls cluster 40 free"),
    ] {
        Volume::ext2()
            .with(|it| it.set32(slot(FILE) + 0x28, block))
            .contradicts(words);
    }
    Volume::ext2()
        .with(|it| it.set32(slot(FILE) + 0x28, 0))
        .contradicts("maps 3072");
    Volume::ext2()
        .with(|it| it.set32(slot(FILE) + 0x28, 0))
        .with(|it| it.set32(slot(FILE) + 0x1c, 6))
        .contradicts("nothing uses it");
}

#[test]
fn an_inode_against_its_bitmap() {
    let free_inodes = |count: u32| {
        move |it: &mut Volume| {
            it.set32(SUPERBLOCK + 0x10, count);
            it.set16(DESCRIPTOR + 0xe, count as u16);
        }
    };
    Volume::ext2()
        .with(free_inodes(6))
        .with(|it| it.set16(INODE_BITMAP, 0x03ff))
        .contradicts("is free by the bitmap, and in use");
    Volume::ext2()
        .with(free_inodes(4))
        .with(|it| it.set16(INODE_BITMAP, 0x1bff))
        .contradicts("and has no name");
    Volume::ext2()
        .with(|it| it.set16(slot(13), 0x81a4))
        .contradicts("was not deleted");
    Volume::ext2()
        .with(|it| it.set32(slot(FILE) + 0x14, 1))
        .contradicts("and was deleted");
    Volume::ext2()
        .with(|it| it.set16(slot(FILE), 0x31a4))
        .contradicts("has a mode that makes no sense");
    Volume::ext2()
        .with(|it| it.set16(DESCRIPTOR + 0x10, 0))
        .contradicts("0 directories, its inodes 1");
    Volume::ext2()
        .with(|it| it.set32(SUPERBLOCK + 0x10, 4))
        .contradicts("says 4 free inodes");
    // Deleted files stay in the table.
    let deleted = Volume::ext2().with(|it| {
        it.inode(13, 0x81a4, 2, &[8]);
        it.set16(slot(13) + 0x1a, 0);
        it.set32(slot(13) + 0x14, 1_700_000_000);
    });
    assert_eq!(deleted.read().unwrap().free, blocks_free(12));
}

#[test]
fn trees_end() {
    let leaf = 10 * BLOCK;
    let depth = |it: &mut Volume, value| it.set16(slot(FILE) + 0x28 + 6, value);
    // A node that is its own child.
    Volume::ext4()
        .with(|it| {
            depth(it, 2);
            it.words(leaf, &[0x0001_f30a, 0x0001_0054, 0, 0, 10, 0]);
        })
        .contradicts("has an owner already");
    Volume::ext4().with(|it| depth(it, 6)).contradicts("too deep");
    Volume::ext4()
        .with(|it| depth(it, 0))
        .contradicts("outside the volume");
    Volume::ext4()
        .with(|it| it.set16(leaf, 0xf30b))
        .contradicts("is none");
    Volume::ext4()
        .with(|it| it.set16(leaf + 4, 85))
        .contradicts("makes no sense");
    Volume::ext4()
        .with(|it| it.set32(leaf + 24, 1))
        .contradicts("not in order");
    Volume::ext4()
        .with(|it| it.set16(leaf + 16, 0))
        .contradicts("the length of an extent");
    Volume::ext4()
        .with(|it| it.set16(leaf + 18, 1))
        .contradicts("outside the volume");
    Volume::ext4()
        .with(|it| it.set32(SUPERBLOCK + 0x60, 2))
        .contradicts("a flag without its feature");
    // An indirect block that names itself.
    Volume::ext2()
        .with(|it| it.set32(leaf, 10))
        .contradicts("has an owner already");
}

#[test]
fn a_journal_must_be_at_rest() {
    let journal = 12 * BLOCK;
    Volume::ext3()
        .with(|it| it.0[journal + 0x1f] = 1)
        .is_not_clean("must be replayed");
    Volume::ext3()
        .with(|it| it.0[journal + 0x23] = 5)
        .is_not_clean("tells of an error");
    Volume::ext3()
        .with(|it| it.0[journal] = 0)
        .contradicts("the journal's superblock is none");
    Volume::ext3()
        .with(|it| it.0[journal + 0x13] = 2)
        .contradicts("more blocks than it has");
    Volume::ext3()
        .with(|it| it.0[journal + 0x2a] = 1)
        .is_unsupported();
    Volume::ext3()
        .with(|it| it.0[journal + 0x2b] = 0x10)
        .contradicts("does not match its checksum");
    Volume::ext3()
        .with(|it| it.set32(SUPERBLOCK + 0x5c, 0))
        .contradicts("and no journal");
}

#[test]
fn what_is_not_at_rest_or_not_understood() {
    let at = |at: usize, value: u32| Volume::ext2().with(|it| it.set32(SUPERBLOCK + at, value));
    let state = |value: u16| Volume::ext2().with(|it| it.set16(SUPERBLOCK + 0x3a, value));
    state(0).is_not_clean("was not unmounted");
    state(3).is_not_clean("tells of errors");
    at(0x60, 0x6).is_not_clean("must be replayed");
    at(0xe8, 12).is_not_clean("deleted files");
    at(0x64, 0x1_0001).is_not_clean("deleted files");
    for (field, bits) in [
        (0x60, 0x1),
        (0x60, 0x20),
        (0x60, 0x800),
        (0x60, 0x1000),
        (0x60, 0x8_0000),
        (0x64, 0x4),
        (0x64, 0x80),
        (0x64, 0x800),
        (0x64, 0x2_0000),
        (0x5c, 0x40),
        (0x5c, 0x100),
        (0x5c, 0x2000),
        (0x4c, 2),
        (0x48, 5),
    ] {
        at(field, bits).is_unsupported();
    }
    // Multiple mount protection: block 40 holds none, then one in use.
    let protected = |sequence: u32| {
        at(0x60, 0x102).with(|it| {
            it.set32(SUPERBLOCK + 0x168, 40);
            it.words(40 * BLOCK, &[0x004d_4d50, sequence]);
        })
    };
    protected(7).is_not_clean("a host has it mounted");
    protected(0xff4d_4d50).contradicts("metadata lies there");
    let external = at(0x60, 0x8).read();
    assert!(matches!(external, Err(Refusal::NotThis { .. })), "{external:?}");
    let foreign = Volume(vec![0; 4096]).read();
    assert!(matches!(foreign, Err(Refusal::NotThis { .. })), "{foreign:?}");
    let short = Volume(vec![0; 1500]).read();
    assert!(matches!(short, Err(Refusal::NotThis { .. })), "{short:?}");
}

#[test]
fn numbers_of_the_superblock_fit_each_other() {
    for (at, value, words) in [
        (0x4, 65, "more than the volume"),
        (0x4, 1, "1 blocks"),
        (0x14, 0, "is the first one"),
        (0x18, 7, "blocks of 2^7 KiB"),
        (0x20, 63, "groups of 63 clusters"),
        (0x20, 0, "groups of 0 clusters"),
        (0x28, 0, "groups of 0 inodes"),
        (0x0, 17, "are not 17 inodes"),
        (0x54, 10, "inode 10 is the first one"),
        (0x58, 192, "inodes of 192 bytes"),
        (0x58, 64, "inodes of 64 bytes"),
        (0xcc, 1 << 16, "reserved for descriptors"),
        (0x4c, 0, "revision 0"),
        (0x64, 0x411, "exclude each other"),
    ] {
        Volume::ext2()
            .with(|it| it.set32(SUPERBLOCK + at, value))
            .contradicts(words);
    }
    // A checksum that is not there.
    Volume::ext2()
        .with(|it| it.set32(SUPERBLOCK + 0x64, 0x401))
        .is_unsupported();
    Volume::ext2()
        .with(|it| it.set32(SUPERBLOCK + 0x64, 0x401))
        .with(|it| it.0[SUPERBLOCK + 0x175] = 1)
        .contradicts("does not match its checksum");
    Volume::ext2()
        .with(|it| it.0.truncate(63 * BLOCK))
        .contradicts("more than the volume");
    Volume::ext2()
        .with(|it| it.set16(DESCRIPTOR + 0x12, 2))
        .contradicts("where nothing may be");
    Volume::ext2()
        .with(|it| it.set32(DESCRIPTOR, 100))
        .contradicts("outside the group");
    Volume::ext2()
        .with(|it| it.set32(DESCRIPTOR, 5))
        .contradicts("lies on other metadata");
}

#[test]
fn copies_lie_where_they_should() {
    let bytes: [u8; 1024] = Volume::ext2().0[BLOCK..2 * BLOCK].try_into().unwrap();
    let mut it = superblock::judge(&bytes, 65536).unwrap();
    let groups = |it: &superblock::Superblock| -> Vec<u32> {
        (0..130).filter(|group| it.has_superblock(*group)).collect()
    };
    assert_eq!(groups(&it), [0, 1, 3, 5, 7, 9, 25, 27, 49, 81, 125]);
    it.sparse_super = false;
    assert_eq!(groups(&it).len(), 130);
    it.sparse_super2 = Some([1, 77]);
    assert_eq!(groups(&it), [0, 1, 77]);
    assert_eq!(SUPERBLOCK_AT_BYTES, 1024);

    // Meta groups of 32: superblock with descriptors in group 0, only descriptors in the second and the last.
    it.meta_bg = true;
    it.gdt_blocks_together = 0;
    it.sparse_super2 = Some([0, 0]);
    let heads: Vec<(u32, u64)> = (0..65)
        .map(|group| (group, it.head(group).1))
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(
        heads,
        [(0, 2), (1, 1), (31, 1), (32, 1), (33, 1), (63, 1), (64, 1)]
    );
}

proptest! {
    /// Whatever the bytes are, there is an answer, and what is free lies in the volume.
    #[test]
    fn answers_anything(
        which in 0usize..3,
        changes in prop::collection::vec((0usize..BLOCKS * BLOCK, any::<u8>()), 0..40),
        fields in prop::collection::vec((0usize..0x100, any::<u32>()), 0..3),
        cut in 0usize..=BLOCKS * BLOCK,
    ) {
        let mut volume = match which {
            0 => Volume::ext2(),
            1 => Volume::ext3(),
            _ => Volume::ext4(),
        };
        for (at, byte) in changes {
            volume.0[at] = byte;
        }
        for (at, value) in fields {
            volume.set32(SUPERBLOCK + at * 4, value);
        }
        volume.0.truncate(cut.max(20 * BLOCK));
        if let Ok(map) = volume.read() {
            prop_assert!(map.free.iter().all(|e| e.end_bytes().unwrap() <= volume.0.len() as u64));
        }
    }
}
