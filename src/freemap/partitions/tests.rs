use proptest::prelude::*;

use super::*;
use crate::freemap::testing::{DATA, Disk};

fn numbers(disk: &Disk) -> Vec<(u32, u64, u64)> {
    let table = read(disk, disk.sector as u32).unwrap().unwrap();
    let sector = disk.sector as u64;
    table
        .partitions
        .iter()
        .map(|p| {
            (
                p.number,
                p.extent.start_bytes / sector,
                p.extent.len_bytes / sector,
            )
        })
        .collect()
}

/// What a refusal says.
fn refusal(disk: &Disk) -> String {
    match read(disk, disk.sector as u32) {
        Err(refusal) => refusal.to_string(),
        Ok(table) => panic!("accepted: {table:?}"),
    }
}

fn gpt() -> Disk {
    let mut disk = Disk::new(2048, 512);
    disk.gpt(&[(0, 64, 99), (3, 200, 1000)]);
    disk
}

/// Primary partitions 1 and 3, an extended one in slot 2 with two logical ones.
fn mbr() -> Disk {
    let mut disk = Disk::new(2048, 512);
    disk.record(0, &[(0x83, 63, 100), (0x05, 200, 800), (0x07, 1100, 900)]);
    disk.record(200, &[(0x83, 10, 90), (0x05, 300, 200)]);
    disk.record(500, &[(0x0b, 1, 199)]);
    disk
}

#[test]
fn checksum_has_its_check_value() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
}

#[test]
fn numbers_are_those_of_linux() {
    assert_eq!(
        numbers(&mbr()),
        [
            (1, 63, 100),
            (2, 200, 800),
            (3, 1100, 900),
            (5, 210, 90),
            (6, 501, 199)
        ]
    );
    assert_eq!(numbers(&gpt()), [(1, 64, 36), (4, 200, 801)]);
    let mut disk = Disk::new(2048, 4096);
    disk.gpt(&[(1, 6, 2000)]);
    assert_eq!(numbers(&disk), [(2, 6, 1995)]);
}

#[test]
fn types_and_names_are_kept() {
    let table = read(&gpt(), 512).unwrap().unwrap();
    let first = &table.partitions[0];
    assert_eq!(first.kind.to_string(), "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7");
    assert_eq!(first.kind.member_of(), None);
    assert_eq!(first.name.as_deref(), Some("p1"));
    assert_eq!(PartitionType::Mbr(0xfd).member_of(), Some("Linux RAID"));
    let mut raid = DATA;
    raid.copy_from_slice(b"\x0f\x88\x9d\xa1\xfc\x05\x3b\x4d\xa0\x06\x74\x3f\x0f\x84\x91\x1e");
    assert_eq!(PartitionType::Gpt(raid).member_of(), Some("Linux RAID"));
}

#[test]
fn cylinders_confirm_what_they_can() {
    let mut disk = mbr();
    // 0/1/1 is sector 63 of a disk with 63 sectors a track, 0/2/37 is 162.
    disk.put(446 + 1, &[1, 1, 0]);
    disk.put(446 + 5, &[2, 37, 0]);
    let table = read(&disk, 512).unwrap().unwrap();
    let confirmed: Vec<_> = table.partitions.iter().map(|p| (p.start, p.end)).collect();
    assert_eq!(confirmed[0], (Edge::Confirmed, Edge::Confirmed));
    assert_eq!(confirmed[1], (Edge::Unconfirmed, Edge::Unconfirmed));
    disk.put(446 + 5, &[2, 38, 0]);
    let table = read(&disk, 512).unwrap().unwrap();
    assert_eq!(table.partitions[0].end, Edge::Disputed);
}

#[test]
fn no_table_is_none() {
    let disk = Disk::new(64, 512);
    assert_eq!(read(&disk, 512), Ok(None));
    assert_eq!(read(&Disk::new(0, 512), 512), Ok(None));
    let mut signed = Disk::new(64, 512);
    signed.record(0, &[]);
    assert_eq!(read(&signed, 512), Ok(None));
    assert!(read(&disk, 520).is_err());
}

#[test]
fn a_boot_sector_is_no_table() {
    let mut disk = Disk::new(2048, 512);
    disk.fat(0, 2048);
    assert_eq!(read(&disk, 512), Ok(None));
    // Its messages reach into the slots.
    disk.put(446, b"Disk error\xff\r\nPress any key to restart\r\n\0\0\0\0\0");
    assert_eq!(read(&disk, 512), Ok(None));
    disk.put(446, &[0; 64]);
    // mkfs.fat --mbr.
    disk.record(0, &[(0x06, 0, 2048)]);
    assert_eq!(read(&disk, 512), Ok(None));
    // fdisk keeps an old boot sector.
    disk.record(0, &[(0x06, 63, 1000)]);
    assert!(refusal(&disk).contains("both a boot sector of FAT"));
    // One that a bit has hit.
    disk.put(446, &[1]);
    assert!(refusal(&disk).contains("both a boot sector of FAT"));
}

#[test]
fn code_in_the_slots_is_no_table() {
    let mut disk = Disk::new(2048, 512);
    disk.record(0, &[]);
    disk.put(446, &[0xe8; 64]);
    assert_eq!(read(&disk, 512), Ok(None));
}

#[test]
fn broken_mbrs_are_refused() {
    type Damage = fn(&mut Disk);
    let damages: [(&str, Damage); 15] = [
        ("broken", |d| d.put(446, &[1])),
        ("broken", |d| d.put(446 + 4, &[0])),
        ("broken", |d| d.put(446 + 8, &[0; 4])),
        ("broken", |d| d.put(446 + 12, &[0; 4])),
        ("past the end", |d| d.put(446 + 12 + 3, &[1])),
        ("overlap", |d| d.put(446 + 12, &[200])),
        ("boot record is broken", |d| d.put(200 * 512 + 510, &[0])),
        ("boot record is broken", |d| {
            d.record(200, &[(0x05, 1, 90), (0x05, 300, 200)])
        }),
        ("boot record is broken", |d| {
            d.record(200, &[(0x83, 1, 90), (0x83, 300, 200)])
        }),
        ("boot record is broken", |d| {
            d.put(200 * 512 + 446 + 32, &[0, 1, 1, 1, 1])
        }),
        ("leaves the extended", |d| d.record(500, &[(0x0b, 1, 600)])),
        ("points out", |d| {
            d.record(200, &[(0x83, 10, 90), (0x05, 900, 100)])
        }),
        ("circle", |d| d.record(500, &[(0x0b, 1, 199), (0x05, 300, 200)])),
        ("overlap", |d| d.record(200, &[(0x83, 10, 400), (0x05, 300, 200)])),
        ("second copy of a GPT", |d| d.put(2047 * 512, b"EFI PART")),
    ];
    for (what, damage) in damages {
        let mut disk = mbr();
        damage(&mut disk);
        let said = refusal(&disk);
        assert!(said.contains(what), "{what}: {said}");
    }
}

#[test]
fn an_extended_partition_may_be_empty() {
    let mut disk = Disk::new(2048, 512);
    disk.record(0, &[(0x0f, 100, 1000)]);
    assert_eq!(numbers(&disk), [(1, 100, 1000)]);
}

#[test]
fn broken_gpts_are_refused() {
    type Damage = fn(&mut Disk);
    let damages: [(&str, Damage); 19] = [
        ("protective", |d| d.put(510, &[0])),
        ("protective", |d| d.record(0, &[(0x83, 1, 2047)])),
        ("does not start", |d| d.record(0, &[(0xee, 2, 2046)])),
        ("not in the GPT", |d| {
            d.record(0, &[(0xee, 1, 63), (0x83, 64, 35)])
        }),
        ("header in sector 1 is not there", |d| d.put(512, &[0])),
        ("wrong checksum", |d| d.put(512 + 60, &[0])),
        ("revision", |d| {
            d.put(512 + 8, &[1]);
            d.seal(1);
        }),
        ("impossible length", |d| d.put(512 + 12, &[91])),
        ("impossible length", |d| {
            d.put(512 + 12, &[0xff, 0xff, 0xff, 0xff])
        }),
        ("another one", |d| {
            d.put(512 + 24, &[2]);
            d.seal(1);
        }),
        ("sector 2047 is not there", |d| d.put(2047 * 512, &[0])),
        ("disagree", |d| {
            d.put(2047 * 512 + 56, &[9]);
            d.seal(2047);
        }),
        ("entries of the GPT have a wrong checksum", |d| {
            d.put(1024 + 60, &[1])
        }),
        ("entries of the GPT have a wrong checksum", |d| {
            d.put(2020 * 512, &[1])
        }),
        ("past the end of the disk", |d| {
            d.bytes.truncate(2047 * 512);
        }),
        ("entries of 64 bytes", |d| {
            d.put(512 + 84, &[64]);
            d.seal(1);
        }),
        ("2147483776 entries", |d| {
            d.put(512 + 83, &[0x80]);
            d.seal(1);
        }),
        ("overlap", |d| d.gpt(&[(0, 64, 99), (1, 99, 200)])),
        ("lets partitions use", |d| d.gpt(&[(0, 20, 99)])),
    ];
    for (what, damage) in damages {
        let mut disk = gpt();
        damage(&mut disk);
        let said = refusal(&disk);
        assert!(said.contains(what), "{what}: {said}");
    }
    let mut backwards = gpt();
    backwards.gpt(&[(0, 99, 64)]);
    assert!(refusal(&backwards).contains("impossible range"));
}

#[test]
fn a_hybrid_mbr_may_name_the_same_partitions() {
    let mut disk = gpt();
    disk.record(0, &[(0xee, 1, 63), (0x83, 64, 36)]);
    assert_eq!(numbers(&disk).len(), 2);
}

#[test]
fn a_disk_may_have_grown_behind_its_gpt() {
    let mut disk = gpt();
    disk.bytes.resize(4096 * 512, 0);
    assert_eq!(numbers(&disk).len(), 2);
    disk.put(4095 * 512, b"EFI PART");
    assert!(refusal(&disk).contains("another GPT header"));
}

#[test]
fn other_sectors_are_told() {
    let disk = gpt();
    let said = read(&disk, 4096).unwrap_err().to_string();
    assert!(said.contains("made for sectors of 512 bytes"), "{said}");
    assert_eq!(gpt_sector_bytes(&disk), Ok(Some(512)));
    let mut large = Disk::new(64, 4096);
    large.gpt(&[(0, 6, 40)]);
    let said = read(&large, 512).unwrap_err().to_string();
    assert!(said.contains("made for sectors of 4096 bytes"), "{said}");
}

proptest! {
    /// Whatever the bytes are: no panic, and no partition outside of the disk or over another one.
    #[test]
    fn any_bytes_are_survived(
        which in 0u8..3,
        changes in prop::collection::vec((0usize..2048, 0usize..512, any::<u8>()), 0..24),
        near in prop::collection::vec((440usize..1536, any::<u8>()), 0..24),
        sector_bytes in prop::sample::select(vec![512u32, 4096]),
        cut in 0usize..4096,
    ) {
        let mut disk = match which { 0 => gpt(), 1 => mbr(), _ => Disk::new(2048, 512) };
        if which == 2 { disk.record(0, &[]); }
        for (sector, at, value) in changes {
            disk.put(sector * 512 + at, &[value]);
        }
        for (at, value) in near {
            disk.put(at, &[value]);
        }
        disk.bytes.truncate(cut * 512);
        if let Ok(Some(table)) = read(&disk, sector_bytes) {
            let mut end = 0;
            let mut plain: Vec<_> = table.partitions.iter().filter(|p| !p.container).map(|p| p.extent).collect();
            plain.sort();
            for extent in plain {
                prop_assert!(extent.start_bytes >= end && extent.len_bytes > 0);
                end = extent.end_bytes().unwrap();
                prop_assert!(end <= disk.bytes.len() as u64);
            }
        }
    }

    /// A GPT has checksums: with a changed byte in it there are the same partitions or none.
    #[test]
    fn a_changed_gpt_is_refused_or_the_same(at in 0usize..17408, end in any::<bool>(), value in any::<u8>()) {
        let mut disk = gpt();
        let sound = read(&disk, 512).unwrap();
        let at = if end { disk.bytes.len() - 1 - at } else { at };
        disk.put(at, &[value]);
        if let Ok(found) = read(&disk, 512) {
            prop_assert_eq!(found, sound);
        }
    }
}
