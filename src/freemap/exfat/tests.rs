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
const TABLE: usize = 24 * SECTOR;
const HEAP: usize = 32 * SECTOR;
const CLUSTERS: usize = 200;
/// Clusters by number: the bitmap, the up-case table, the root directory, a file in one piece, one in two, a directory.
const BITMAP: usize = 2;
const UP_CASE: usize = 3;
const ROOT: usize = 4;

fn put(volume: &mut [u8], at: usize, bytes: &[u8]) {
    volume[at..at + bytes.len()].copy_from_slice(bytes);
}

fn at(cluster: usize) -> usize {
    HEAP + (cluster - 2) * SECTOR
}

fn link(volume: &mut [u8], cluster: usize, next: u32) {
    put(volume, TABLE + cluster * 4, &next.to_le_bytes());
}

/// Both boot regions with their checksums, from the first sector.
fn seal(volume: &mut [u8]) {
    let sum = volume[..11 * SECTOR]
        .iter()
        .enumerate()
        .filter(|(i, _)| !matches!(i, 106 | 107 | 112))
        .fold(0u32, |sum, (_, b)| {
            sum.rotate_right(1).wrapping_add(u32::from(*b))
        });
    for i in 0..SECTOR / 4 {
        put(volume, 11 * SECTOR + i * 4, &sum.to_le_bytes());
    }
    volume.copy_within(0..12 * SECTOR, 12 * SECTOR);
}

fn seal_set(set: &mut [u8]) {
    let sum = set
        .iter()
        .enumerate()
        .filter(|(i, _)| !matches!(i, 2 | 3))
        .fold(0u16, |sum, (_, b)| {
            sum.rotate_right(1).wrapping_add(u16::from(*b))
        });
    put(set, 2, &sum.to_le_bytes());
}

/// A file; `more` are entries behind its name.
fn file(directory: bool, flags: u8, cluster: u32, len_bytes: u64, more: &[[u8; 32]]) -> Vec<u8> {
    let mut set = vec![0; 96];
    set[0] = 0x85;
    set[1] = 2 + more.len() as u8;
    set[4] = if directory { 0x10 } else { 0x20 };
    set[32] = 0xc0;
    set[33] = flags;
    set[35] = 1;
    put(&mut set, 40, &len_bytes.to_le_bytes());
    put(&mut set, 52, &cluster.to_le_bytes());
    put(&mut set, 56, &len_bytes.to_le_bytes());
    set[64] = 0xc1;
    set[66] = b'a';
    set.extend(more.iter().flatten());
    seal_set(&mut set);
    set
}

/// Clusters of 512 bytes: a file in 5 and 6 in one piece, one in 8 and 7, a directory in 9 with an empty file in it.
fn exfat() -> Vec<u8> {
    let mut v = vec![0; HEAP + CLUSTERS * SECTOR];
    put(&mut v, 0, &[0xeb, 0x76, 0x90]);
    put(&mut v, 3, b"EXFAT   ");
    let sectors = (v.len() / SECTOR) as u64;
    put(&mut v, 72, &sectors.to_le_bytes());
    put(&mut v, 80, &24u32.to_le_bytes());
    put(&mut v, 84, &2u32.to_le_bytes());
    put(&mut v, 88, &32u32.to_le_bytes());
    put(&mut v, 92, &(CLUSTERS as u32).to_le_bytes());
    put(&mut v, 96, &(ROOT as u32).to_le_bytes());
    put(&mut v, 104, &[0, 1]);
    v[108] = 9;
    v[110] = 1;
    v[112] = 0xff;
    put(&mut v, 510, &[0x55, 0xaa]);
    seal(&mut v);
    link(&mut v, 0, 0xffff_fff8);
    for cluster in [1, BITMAP, UP_CASE, ROOT, 7] {
        link(&mut v, cluster, 0xffff_ffff);
    }
    link(&mut v, 8, 7);
    put(&mut v, at(BITMAP), &[0xff, 0]);
    let root = at(ROOT);
    v[root] = 0x81;
    put(&mut v, root + 20, &[BITMAP as u8]);
    put(&mut v, root + 24, &[25]);
    v[root + 32] = 0x82;
    // Four bytes of 0, whose checksum is 0.
    put(&mut v, root + 52, &[UP_CASE as u8]);
    put(&mut v, root + 56, &[4]);
    put(&mut v, root + 64, &file(false, 3, 5, 1000, &[]));
    put(&mut v, root + 160, &file(false, 1, 8, 513, &[]));
    put(&mut v, root + 256, &file(true, 3, 9, 512, &[]));
    put(&mut v, at(9), &file(false, 1, 0, 0, &[]));
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
    let mut volume = exfat();
    change(&mut volume);
    let got = refusal(&volume);
    assert!(got.contains(why), "{got}");
}

#[test]
fn a_sound_volume() {
    let map = free_map(&exfat()).unwrap();
    assert_eq!(map.owners_checked, 5);
    assert_eq!(
        map.free,
        [Extent {
            start_bytes: at(10) as u64,
            len_bytes: (CLUSTERS - 8) as u64 * 512
        }]
    );
}

#[test]
fn not_unmounted() {
    refused(|v| v[106] = 2, "mounted, or was not unmounted");
    refused(|v| v[106] = 4, "medium had errors");
    refused(|v| v[106] = 1, "second table is in use");
}

#[test]
fn boot_regions_that_contradict() {
    refused(|v| v[3] = b'N', "no exFAT file system here");
    refused(|v| v[92] ^= 1, "checksum of the boot region");
    refused(|v| v[12 * SECTOR + 92] ^= 1, "checksum of the boot region");
    refused(|v| v[11 * SECTOR + 40] ^= 1, "checksum of the boot region");
    refused(
        |v| {
            let old = v[..12 * SECTOR].to_vec();
            v[100] = 7;
            seal(v);
            put(v, 0, &old);
        },
        "and its backup differ",
    );
    let sealed = |at: usize, value: u8| {
        move |v: &mut Vec<u8>| {
            v[at] = value;
            seal(v);
        }
    };
    refused(sealed(110, 2), "TexFAT");
    refused(sealed(105, 2), "exFAT revision 2.00");
    refused(sealed(92, CLUSTERS as u8 + 1), "do not fit");
    refused(sealed(84, 1), "the table does not fit");
    refused(sealed(96, 1), "the root directory starts at no cluster");
    refused(sealed(108, 13), "sectors of 2^13 bytes");
    refused(sealed(109, 17), "clusters of 2^17 sectors");
    refused(sealed(20, 1), "parameter block of FAT");
    refused(|v| v[112] = 101, "101 % are in use");
    refused(|v| v.truncate(HEAP + 10 * SECTOR), "there are");
}

#[test]
fn clusters_that_contradict() {
    for cluster in 2..10 {
        let bit = cluster - 2;
        refused(
            |v| v[at(BITMAP) + bit / 8] ^= 1 << (bit % 8),
            "the bitmap calls it free",
        );
    }
    refused(|v| link(v, 8, 0), "is followed by 0h");
    refused(|v| link(v, 8, 0xffff_ffff), "has 1 clusters, not 2");
    refused(|v| link(v, 7, 8), "longer than 2 clusters");
    refused(|v| link(v, 7, 100), "longer than 2 clusters");
    refused(|v| link(v, 8, 6), "is followed by 0h");
    refused(|v| link(v, ROOT, 4), "twice to one");
    refused(|v| link(v, 1, 0), "does not start as it must");
    refused(
        |v| put(v, at(ROOT) + 64, &file(false, 3, 9, 1000, &[])),
        "two files",
    );
    refused(
        |v| put(v, at(ROOT) + 64, &file(false, 3, 201, 1000, &[])),
        "leave the volume",
    );
    refused(
        |v| put(v, at(ROOT) + 64, &file(false, 3, 5, u64::MAX, &[])),
        "leave the volume",
    );
    refused(
        |v| put(v, at(ROOT) + 64, &file(false, 3, 0, 5, &[])),
        "5 bytes from cluster 0",
    );
    refused(
        |v| put(v, at(ROOT) + 256, &file(true, 3, 9, 100, &[])),
        "a directory of 100 bytes",
    );
    // A directory within itself.
    refused(
        |v| put(v, at(9), &file(true, 3, 9, 512, &[])),
        "two files, or twice to one",
    );
}

#[test]
fn entries_that_contradict() {
    let root = at(ROOT);
    refused(|v| v[root + 70] ^= 1, "checksum of an entry set");
    refused(|v| v[root + 64] = 0x05, "no primary one");
    refused(|v| v[root + 64] = 0, "follows the end of a directory");
    refused(|v| v[root + 96] = 0x40, "an entry set is cut off");
    refused(|v| v[root + 65] = 1, "1 secondary entries");
    refused(|v| v[root + 64] = 0x86, "a directory entry of type 86h");
    refused(|v| v[root] = 0x01, "names no bitmap");
    refused(|v| v[root + 1] = 1, "TexFAT");
    refused(|v| v[root + 24] = 24, "not the one bitmap of 25 bytes");
    refused(|v| v[root + 20] = 7, "two files");
    refused(|v| v[root + 32] = 0x02, "names no up-case table");
    refused(|v| v[at(UP_CASE)] = 1, "checksum of the up-case table");
    refused(|v| v[at(9)] = 0x81, "outside of the root directory");
    refused(
        |v| {
            for at in (root + 352..root + 480).step_by(32) {
                v[at] = 0x05;
            }
            put(v, root + 480, &file(false, 1, 0, 0, &[])[..32]);
        },
        "ends within an entry set",
    );
}

#[test]
fn bad_clusters_are_never_free() {
    let mut volume = exfat();
    link(&mut volume, 100, 0xffff_fff7);
    let map = free_map(&volume).unwrap();
    assert_eq!(map.free.len(), 2);
    assert_eq!(map.free[1].start_bytes, at(101) as u64);
}

/// Allocations of vendors, and primary entries that may be ignored, have their clusters.
#[test]
fn benign_entries_have_clusters() {
    let mut vendor = [0; 32];
    vendor[0] = 0xe1;
    vendor[1] = 3;
    vendor[20] = 20;
    vendor[24] = 1;
    let mut guid = [0; 32];
    guid[0] = 0xa0;
    seal_set(&mut guid);
    let mut volume = exfat();
    put(&mut volume, at(ROOT) + 352, &file(false, 1, 0, 0, &[vendor]));
    put(&mut volume, at(ROOT) + 480, &guid);
    assert!(refusal(&volume).contains("cluster 20 has data"));
    volume[at(BITMAP) + 2] = 1 << 2;
    let map = free_map(&volume).unwrap();
    assert_eq!(map.owners_checked, 7);
    volume[at(ROOT) + 490] = 1;
    assert!(refusal(&volume).contains("checksum of an entry set"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Any damage: an answer, and never one of a used cluster.
    #[test]
    fn damage_frees_nothing(changes in prop::collection::vec((0..at(10), any::<u8>()), 1..4), cut in any::<bool>()) {
        let mut volume = exfat();
        for (at, value) in &changes {
            volume[*at] = *value;
        }
        if cut {
            volume.truncate(changes[0].0);
        }
        if let Ok(map) = free_map(&volume) {
            prop_assert!(map.free.iter().all(|e| e.start_bytes >= at(10) as u64));
        }
    }

    /// Damage behind a right checksum.
    #[test]
    fn sealed_damage_never_panics(changes in prop::collection::vec((64usize..120, any::<u8>()), 1..4)) {
        let mut volume = exfat();
        for (at, value) in &changes {
            volume[*at] = *value;
        }
        seal(&mut volume);
        let _ = free_map(&volume);
    }
}
