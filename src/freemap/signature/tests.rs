use proptest::prelude::*;

use super::*;
use crate::freemap::testing::Disk;

fn names(disk: &Disk) -> Vec<&'static str> {
    signatures(disk).unwrap().iter().map(|s| s.what).collect()
}

#[test]
fn plain_places_are_found_where_they_are() {
    // 6 MiB and an odd number of sectors: the end is not where it is in the table.
    let size = (6 << 20) + 3 * 512;
    for place in ANYWHERE {
        let mut disk = Disk::new(size / 512, 512);
        let at = match place.at {
            At::Start(at) => at as usize,
            At::End(before) => size - before as usize,
        };
        disk.put(at, place.magic);
        assert_eq!(names(&disk), [place.what], "{} at {at}", place.what);
        let mut short = Disk::new(at / 512, 512);
        short.bytes.fill(0);
        assert!(signatures(&short).unwrap().is_empty());
    }
}

#[test]
fn file_systems_are_told() {
    let mut disk = Disk::new(4096, 512);
    disk.ext(0, 2048);
    assert_eq!(names(&disk), ["ext2/3/4"]);
    // The journal of another volume.
    disk.put(1024 + 96, &[8]);
    disk.put(1024 + 76, &[1]);
    assert_eq!(names(&disk), ["the journal of another ext volume"]);

    let mut disk = Disk::new(4096, 512);
    disk.fat(0, 4096);
    let found = signatures(&disk).unwrap();
    assert_eq!(found[0].kind, Kind::FileSystem(FileSystem::Fat));
    // BitLocker To Go.
    disk.put(3, b"MSWIN4.1");
    assert_eq!(names(&disk), ["FAT"]);
    disk.put(
        424,
        b"\x3b\xd6\x67\x49\x29\x2e\xd8\x4a\x83\x99\xf6\xa3\x39\xe3\xd0\x01",
    );
    assert_eq!(names(&disk), ["BitLocker"]);
    for (id, what) in [
        (b"-FVE-FS-", "BitLocker"),
        (b"NTFS    ", "NTFS"),
        (b"EXFAT   ", "exFAT"),
        (b"ReFS\0\0\0\0", "ReFS"),
    ] {
        disk.put(3, id);
        assert_eq!(names(&disk), [what]);
    }
}

#[test]
fn two_signatures_are_both_named() {
    let mut disk = Disk::new(4096, 512);
    disk.put(3, b"NTFS    ");
    disk.ext(0, 2048);
    assert_eq!(names(&disk), ["NTFS", "ext2/3/4"]);
}

#[test]
fn ends_depend_on_the_size() {
    // 3 MiB + 5 KiB: 64 KiB, 4 KiB and 512 bytes all end elsewhere.
    let size = (3 << 20) + 5 * 1024;
    let md = 0xa92b_4efcu32.to_le_bytes();
    let cases: [(&str, usize, Vec<u8>); 8] = [
        ("Linux RAID (md 0.90)", (3 << 20) - 65536, md.to_vec()),
        (
            "Linux RAID (md 0.90)",
            (3 << 20) - 65536,
            0xa92b_4efcu32.to_be_bytes().to_vec(),
        ),
        (
            "Linux RAID (md 1.0)",
            (3 << 20) - 4096,
            [&md[..], &[1, 0, 0, 0]].concat(),
        ),
        ("Linux RAID (md 1.1)", 0, [&md[..], &[1, 0, 0, 0]].concat()),
        ("Linux RAID (md 1.2)", 4096, [&md[..], &[1, 0, 0, 0]].concat()),
        ("DRBD", (3 << 20) + 60, 0x8374_026bu32.to_be_bytes().to_vec()),
        (
            "ZFS",
            (3 << 20) - 2 * (256 << 10) + (128 << 10) + 5 * 1024,
            0x00ba_b10cu64.to_be_bytes().to_vec(),
        ),
        (
            "Silicon Image RAID",
            size - 512 + 0x60,
            0x2f00_0000u32.to_le_bytes().to_vec(),
        ),
    ];
    for (what, at, bytes) in cases {
        let mut disk = Disk::new(size / 512, 512);
        disk.put(at, &bytes);
        assert_eq!(names(&disk), [what]);
    }
    let mut disk = Disk::new(size / 512, 512);
    disk.put(size - 512, &[0x55, 0xaa, 1]);
    disk.put(size - 512 + 50, &[0]);
    assert_eq!(names(&disk), ["VIA RAID"]);
    let mut disk = Disk::new(size / 512, 512);
    let rest = 0u16.wrapping_sub(u16::from_le_bytes(*b"JM"));
    disk.put(size - 512, b"JM");
    assert!(names(&disk).is_empty());
    disk.put(size - 510, &rest.to_le_bytes());
    assert_eq!(names(&disk), ["JMicron RAID"]);
}

#[test]
fn swap_of_any_page_size_and_its_sleep() {
    for page in [4096, 8192, 16384, 32768, 65536] {
        let mut disk = Disk::new(4096, 512);
        disk.put(page - 10, b"SWAPSPACE2");
        disk.put(1024, &[1, 0, 0, 0, 9, 0, 0, 0]);
        let found = signatures(&disk).unwrap();
        assert_eq!(found[0].what, "swap");
        assert_eq!(found[0].claims_bytes, Some(10 * page as u64));
        disk.put(page - 10, b"S1SUSPEND\0");
        assert_eq!(names(&disk), ["swap with a hibernated system"]);
    }
}

#[test]
fn weak_marks_want_more() {
    let mut disk = Disk::new(4096, 512);
    disk.put(1024, b"BD");
    disk.put(1024 + 6, &[0x34, 0x34]);
    disk.put(1024 + 24, &[0x5a, 0x4d]);
    disk.put(512, b"PM");
    disk.put(508, &[0xda, 0xbe]);
    assert!(names(&disk).is_empty());
    disk.put(1024 + 14, &[0, 3]);
    disk.put(1024 + 20, &[0, 0, 2, 0]);
    assert_eq!(names(&disk), ["HFS"]);
    disk.put(1024, &[2, 0, 0, 0]);
    disk.put(512 + 4, &[0, 0, 0, 9]);
    disk.put(0, &[0xda, 0xbe]);
    assert_eq!(
        names(&disk),
        ["a Sun disk label", "an Apple partition map", "NILFS2"]
    );
}

#[test]
fn blank_is_blank_where_it_was_looked() {
    let mut disk = Disk::new(8192, 512);
    assert_eq!(looks_blank(&disk), Ok(true));
    disk.put(8191 * 512 + 511, &[1]);
    assert_eq!(looks_blank(&disk), Ok(false));
    assert_eq!(looks_blank(&Disk::new(0, 512)), Ok(true));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(size in 0usize..700_000, seed in any::<u64>(), fill in any::<u8>()) {
        let mut bytes = vec![fill; size];
        let mut word = seed;
        for chunk in bytes.chunks_mut(97) {
            word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            chunk[0] = (word >> 56) as u8;
        }
        let disk = Disk { bytes, sector: 512 };
        prop_assert!(signatures(&disk).is_ok());
    }
}
