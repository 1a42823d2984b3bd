//! Volumes built by hand, and what is refused of them.

use proptest::prelude::*;

use super::*;
use crate::freemap::ReadError;

/// A volume in memory.
struct Memory<'a>(&'a [u8]);

impl ReadAt for Memory<'_> {
    fn size_bytes(&self) -> u64 {
        self.0.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.0.read_at(offset_bytes, buffer)
    }
}

fn free_map(volume: &[u8]) -> Result<FreeMap, Refusal> {
    super::free_map(&Memory(volume))
}

const SECTOR: usize = 512;
const TABLE: usize = SECTOR;
const TABLE_SECTORS: usize = 24;
const ROOT: usize = TABLE + 2 * TABLE_SECTORS * SECTOR;
const ROOT_ENTRIES: usize = 512;
const DATA: usize = ROOT + ROOT_ENTRIES * 32;
const CLUSTERS: usize = 6000;

fn put(volume: &mut [u8], at: usize, bytes: &[u8]) {
    volume[at..at + bytes.len()].copy_from_slice(bytes);
}

fn link(volume: &mut [u8], cluster: usize, next: u16) {
    for copy in 0..2 {
        let at = TABLE + copy * TABLE_SECTORS * SECTOR + cluster * 2;
        put(volume, at, &next.to_le_bytes());
    }
}

fn file(name: &[u8; 11], attributes: u8, cluster: u16, size_bytes: u32) -> [u8; 32] {
    let mut out = [0; 32];
    put(&mut out, 0, name);
    out[11] = attributes;
    put(&mut out, 26, &cluster.to_le_bytes());
    put(&mut out, 28, &size_bytes.to_le_bytes());
    out
}

/// FAT16 with clusters of 512 bytes: A in 2 and 3, the directory D in 5, in it B in 6.
fn fat16() -> Vec<u8> {
    let mut v = vec![0; DATA + CLUSTERS * SECTOR];
    put(&mut v, 0, &[0xeb, 0x3c, 0x90]);
    put(&mut v, 11, &(SECTOR as u16).to_le_bytes());
    v[13] = 1;
    put(&mut v, 14, &1u16.to_le_bytes());
    v[16] = 2;
    put(&mut v, 17, &(ROOT_ENTRIES as u16).to_le_bytes());
    let sectors = (v.len() / SECTOR) as u16;
    put(&mut v, 19, &sectors.to_le_bytes());
    v[21] = 0xf8;
    put(&mut v, 22, &(TABLE_SECTORS as u16).to_le_bytes());
    put(&mut v, 54, b"FAT16   ");
    put(&mut v, 510, &[0x55, 0xaa]);
    link(&mut v, 0, 0xfff8);
    link(&mut v, 1, 0xffff);
    link(&mut v, 2, 3);
    link(&mut v, 3, 0xffff);
    link(&mut v, 5, 0xffff);
    link(&mut v, 6, 0xfff8);
    put(&mut v, ROOT, &file(b"A       TXT", 0x20, 2, 700));
    put(&mut v, ROOT + 32, &file(b"D          ", 0x10, 5, 0));
    let directory = DATA + 3 * SECTOR;
    put(&mut v, directory, &file(b".          ", 0x10, 5, 0));
    put(&mut v, directory + 32, &file(b"..         ", 0x10, 0, 0));
    put(&mut v, directory + 64, &file(b"B          ", 0x20, 6, 1));
    v
}

/// The same without the directory: nothing says where clusters lie.
fn flat() -> Vec<u8> {
    let mut v = fat16();
    put(&mut v, ROOT + 32, &[0; 32]);
    link(&mut v, 5, 0);
    link(&mut v, 6, 0);
    put(&mut v, DATA, &[0xaa; 700]);
    v
}

fn refusal(volume: &[u8]) -> String {
    match free_map(volume) {
        Ok(map) => panic!("taken: {map:?}"),
        Err(why) => why.to_string(),
    }
}

#[track_caller]
fn refused(change: impl Fn(&mut Vec<u8>), why: &str) {
    let mut volume = fat16();
    change(&mut volume);
    let got = refusal(&volume);
    assert!(got.contains(why), "{got}");
}

#[test]
fn a_sound_volume() {
    let map = free_map(&fat16()).unwrap();
    assert_eq!(map.name, "FAT16");
    assert_eq!(map.unit_bytes, 512);
    assert_eq!(map.owners_checked, 4);
    let start = |cluster: usize| (DATA + (cluster - 2) * SECTOR) as u64;
    assert_eq!(
        map.free,
        [
            Extent {
                start_bytes: start(4),
                len_bytes: 512
            },
            Extent {
                start_bytes: start(7),
                len_bytes: (CLUSTERS - 5) as u64 * 512
            },
        ]
    );
}

#[test]
fn not_unmounted() {
    refused(|v| v[37] = 1, "mounted, or was not unmounted");
    refused(|v| v[37] = 2, "test of the medium");
    refused(|v| link(v, 1, 0x7fff), "mounted, or was not unmounted");
    refused(|v| link(v, 1, 0xbfff), "medium had errors");
}

#[test]
fn chains_that_contradict() {
    refused(
        |v| link(v, 3, 0),
        "cluster 3 is free, and another is followed by it",
    );
    refused(
        |v| link(v, 6, 0),
        "cluster 6, in the chain from 6, is marked as free",
    );
    refused(|v| link(v, 6, 0xfff7), "marked as bad");
    refused(|v| link(v, 3, 2), "is longer than 2 clusters");
    refused(|v| link(v, 3, 6), "is longer than 2 clusters");
    refused(|v| link(v, 2, 0xffff), "has 1 clusters, not 2");
    refused(|v| link(v, 5, 5), "twice to one");
    refused(|v| link(v, 9, 3), "two clusters are followed by cluster 3");
    refused(|v| link(v, 9, 0xfff0), "is followed by fff0h, which is none");
    refused(|v| link(v, 9, 1), "is followed by 1h, which is none");
    refused(|v| v[TABLE + 20] = 1, "table 2 differs from the first");
    refused(|v| link(v, 0, 0xfff0), "the table starts with fff0h");
    refused(|v| link(v, 1, 0x0fff), "the second entry of the table");
}

#[test]
fn directories_that_contradict() {
    let directory = DATA + 3 * SECTOR;
    refused(|v| v[ROOT + 26] = 6, "not 2");
    refused(|v| v[ROOT + 26] = 0, "starts at cluster 0, which is none");
    refused(|v| put(v, ROOT + 26, &[0xff, 0xff]), "starts at cluster 65535");
    refused(
        |v| put(v, ROOT + 28, &[0; 4]),
        "an empty file starts at cluster 2",
    );
    refused(|v| v[ROOT + 29] = 8, "clusters, not 5");
    refused(|v| v[ROOT + 11] = 0x10, "the right `.` and `..`");
    refused(|v| v[ROOT + 11] = 0x80, "something that is no entry");
    refused(|v| v[ROOT + 3] = 1, "something that is no entry");
    refused(|v| v[directory + 26] = 6, "the right `.` and `..`");
    refused(|v| v[directory + 32 + 26] = 2, "the right `.` and `..`");
    refused(|v| v[directory] = 0xe5, "the right `.` and `..`");
    refused(|v| v[directory + 64 + 26] = 3, "two files");
    // A directory within itself.
    refused(
        |v| put(v, directory + 64, &file(b"B          ", 0x10, 5, 0)),
        "two files, or twice to one",
    );
}

#[test]
fn boot_sectors_that_contradict() {
    refused(|v| v[510] = 0, "no FAT file system here");
    refused(|v| v[11] = 1, "no FAT file system here");
    refused(|v| v[13] = 3, "no FAT file system here");
    refused(|v| v[16] = 0, "no FAT file system here");
    refused(|v| v[14] = 2, "differs from the first");
    refused(|v| v[16] = 1, "is no entry");
    refused(|v| v[17] = 8, "fills no whole sectors");
    refused(|v| v[22] = 23, "clusters need 24");
    refused(|v| v[22] = 25, "differs from the first");
    refused(|v| v[19] += 1, "and there are");
    refused(|v| put(v, 32, &[1]), "in the other");
    refused(|v| v[54 + 4] = b'2', "it calls itself FAT12");
    refused(|v| v.truncate(DATA + 100), "and there are");
    refused(|v| v.truncate(100), "shorter than a boot sector");
}

/// A flipped bit in the size of the root directory moves all clusters; a directory tells, and without one what might be
/// a file is not free.
#[test]
fn a_moved_root_directory_frees_nothing_of_a_file() {
    let true_end = DATA as u64 + 2 * SECTOR as u64;
    for bit in 0..16 {
        let entries = (ROOT_ENTRIES as u16 ^ (1 << bit)).to_le_bytes();
        for mut volume in [fat16(), flat()] {
            put(&mut volume, 17, &entries);
            if let Ok(map) = free_map(&volume) {
                let hit = map
                    .free
                    .iter()
                    .any(|e| e.start_bytes < true_end && e.start_bytes + e.len_bytes > ROOT as u64);
                assert!(!hit, "bit {bit}: {map:?}");
            }
        }
    }
}

/// The same where the file starts with zeros behind free clusters, so that the moved root directory looks right.
#[test]
fn a_moved_root_directory_is_doubted_without_a_directory() {
    let mut sound = flat();
    put(&mut sound, DATA, &[0; 700]);
    link(&mut sound, 2, 0);
    link(&mut sound, 3, 0);
    link(&mut sound, 1000, 1001);
    link(&mut sound, 1001, 0xffff);
    put(&mut sound, ROOT, &file(b"A       TXT", 0x20, 1000, 700));
    let (start, end) = ((DATA + 998 * SECTOR) as u64, (DATA + 1000 * SECTOR) as u64);
    let free_bytes = (CLUSTERS - 2) as u64 * 512;
    assert_eq!(free_map(&sound).unwrap().free_bytes(), free_bytes);
    let mut taken = 0;
    for bit in 0..16 {
        let mut volume = sound.clone();
        put(&mut volume, 17, &(ROOT_ENTRIES as u16 ^ (1 << bit)).to_le_bytes());
        if let Ok(map) = free_map(&volume) {
            taken += 1;
            let hit = map
                .free
                .iter()
                .any(|e| e.start_bytes < end && e.start_bytes + e.len_bytes > start);
            assert!(!hit, "bit {bit}: {map:?}");
        }
    }
    assert!(taken > 0, "all were refused");
}

#[test]
fn lost_clusters_stay_used_where_a_directory_tells_the_place() {
    let mut volume = fat16();
    link(&mut volume, 100, 0xffff);
    let map = free_map(&volume).unwrap();
    let at = (DATA + 98 * SECTOR) as u64;
    assert!(
        map.free
            .iter()
            .all(|e| e.start_bytes + e.len_bytes <= at || e.start_bytes > at)
    );
    let mut volume = flat();
    link(&mut volume, 100, 0xffff);
    assert!(refusal(&volume).contains("no file has them"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Any bytes, any damage: an answer, and never one of a used cluster.
    #[test]
    fn damage_frees_nothing(changes in prop::collection::vec((0..DATA + 6 * SECTOR, any::<u8>()), 1..3), cut in any::<bool>()) {
        let mut volume = fat16();
        for (at, value) in &changes {
            volume[*at] = *value;
        }
        if cut {
            volume.truncate(changes[0].0);
        }
        if let Ok(map) = free_map(&volume) {
            for cluster in [2, 3, 5, 6] {
                let at = (DATA + (cluster - 2) * SECTOR) as u64;
                prop_assert!(map.free.iter().all(|e| e.start_bytes + e.len_bytes <= at || e.start_bytes >= at + 512));
            }
        }
    }

    #[test]
    fn never_panics(mut bytes in prop::collection::vec(any::<u8>(), 512..4096)) {
        put(&mut bytes, 0, &fat16()[..64]);
        put(&mut bytes, 510, &[0x55, 0xaa]);
        let _ = free_map(&bytes);
    }
}
