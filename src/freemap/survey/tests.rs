use proptest::prelude::*;

use super::*;
use crate::freemap::testing::Disk;
use crate::wire::{le16, le32};

/// All but the first 8 KiB of the volume of an ext superblock is free.
fn ext(volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
    let mut block = [0; 1024];
    volume.read_at(1024, &mut block)?;
    map(
        volume,
        FileSystem::Ext,
        u64::from(le32(&block, 4).unwrap()) * 1024,
    )
}

fn fat(volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
    let mut sector = [0; 512];
    volume.read_at(0, &mut sector)?;
    map(
        volume,
        FileSystem::Fat,
        u64::from(le16(&sector, 19).unwrap()) * 512,
    )
}

fn map(volume: &dyn ReadAt, file_system: FileSystem, covered_bytes: u64) -> Result<FreeMap, Refusal> {
    if covered_bytes > volume.size_bytes() || covered_bytes <= 8192 {
        return Err(Refusal::Unsupported {
            why: "a volume of another size".to_owned(),
        });
    }
    Ok(FreeMap {
        file_system,
        name: format!("{file_system:?}"),
        unit_bytes: 1024,
        covered_bytes,
        free: vec![Extent {
            start_bytes: 8192,
            len_bytes: covered_bytes - 8192,
        }],
        owners_checked: 1,
    })
}

fn readers() -> Readers {
    Readers(vec![
        Reader {
            file_system: FileSystem::Ext,
            free_map: ext,
        },
        Reader {
            file_system: FileSystem::Fat,
            free_map: fat,
        },
    ])
}

fn asked(disk: &Disk, ask: &Ask) -> Survey {
    survey_with(disk, disk.sector as u32, ask, &readers()).unwrap()
}

fn of(disk: &Disk) -> Survey {
    asked(disk, &Ask::default())
}

fn with_gaps() -> Ask {
    Ask {
        gaps: true,
        ..Ask::default()
    }
}

fn sectors(survey: &Survey) -> Vec<(u64, u64)> {
    let size = u64::from(survey.sector_bytes);
    survey
        .free
        .iter()
        .map(|e| (e.start_bytes / size, (e.start_bytes + e.len_bytes) / size))
        .collect()
}

fn said(survey: &Survey) -> String {
    survey
        .left_alone
        .iter()
        .map(|l| format!("{}: {}\n", l.what, l.why))
        .collect()
}

/// ext in partition 1 (1 MiB, slack of 24 KiB behind it), LUKS in 2, FAT in 3; gaps of 1000 sectors.
fn gpt() -> Disk {
    let mut disk = Disk::new(16384, 512);
    disk.gpt(&[(0, 2048, 4143), (1, 5144, 7143), (2, 8144, 10143)]);
    disk.ext(2048 * 512, 1024);
    disk.put(5144 * 512, b"LUKS\xba\xbe");
    disk.fat(8144 * 512, 2000);
    disk
}

/// The same with an MBR and gaps of 3000 sectors; FAT is a logical partition.
fn mbr() -> Disk {
    let mut disk = Disk::new(16384, 512);
    disk.record(0, &[(0x83, 2048, 2096), (0x83, 7144, 2000), (0x0f, 12144, 3000)]);
    disk.record(12144, &[(0x06, 8, 2000)]);
    disk.ext(2048 * 512, 1024);
    disk.put(7144 * 512, b"LUKS\xba\xbe");
    disk.fat(12152 * 512, 2000);
    disk
}

#[test]
fn a_whole_volume_needs_no_table() {
    let mut disk = Disk::new(4096, 512);
    disk.ext(0, 2000);
    for target in [Target::Disk, Target::Volume] {
        let survey = asked(
            &disk,
            &Ask {
                target,
                ..Ask::default()
            },
        );
        assert_eq!(sectors(&survey), [(16, 4000)]);
        assert_eq!(survey.scheme, None);
        assert_eq!(survey.volumes[0].number, None);
        assert!(said(&survey).contains("behind the file system"));
    }
}

#[test]
fn partitions_are_surveyed_one_by_one() {
    let survey = of(&gpt());
    // The gaps are zero.
    assert_eq!(
        sectors(&survey),
        [(2064, 4096), (4144, 5144), (7144, 8144), (8160, 10144)]
    );
    let said = said(&survey);
    for part in [
        "behind the file system of partition 1",
        "partition 2 (LUKS): it holds LUKS",
        "before the first",
        "behind the last",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let mut written = gpt();
    written.put(4500 * 512, &[1]);
    assert_eq!(
        sectors(&of(&written)),
        [(2064, 4096), (7144, 8144), (8160, 10144)]
    );
    assert_eq!(asked(&written, &with_gaps()).free, survey.free);
}

#[test]
fn an_extended_partition_is_never_free() {
    // LUKS does not say where it ends, nor does the table. ext does, but 1 MiB behind it is kept.
    let survey = asked(&mbr(), &with_gaps());
    assert_eq!(sectors(&survey), [(2064, 4096), (6192, 7144), (12168, 14152)]);
    let text = said(&survey);
    assert!(text.contains("says where partition 2 ends"), "{text}");
    assert!(text.contains("extended partition 3"), "{text}");
    assert!(text.contains("gap behind partition 1"), "{text}");
    // A cylinder address does (0/145/9 is the last sector, 9143)...
    let mut disk = mbr();
    disk.put(446 + 16 + 5, &[145, 9, 0]);
    assert_eq!(
        sectors(&asked(&disk, &with_gaps())),
        [(2064, 4096), (6192, 7144), (9144, 12144), (12168, 14152)]
    );
    // ... unless it is another one.
    disk.put(446 + 16 + 5, &[145, 10, 0]);
    let survey = asked(&disk, &with_gaps());
    assert_eq!(sectors(&survey).len(), 3);
    assert!(said(&survey).contains("partition 2 ends, and they differ"));
    // XFS does, if it fits.
    let mut disk = mbr();
    disk.put(7144 * 512, b"XFSB\0\0\x02\0\0\0\0\0\0\0\x07\xd0");
    assert_eq!(
        sectors(&asked(&disk, &with_gaps())),
        [(2064, 4096), (6192, 7144), (11192, 12144), (12168, 14152)]
    );
    disk.put(7144 * 512, b"XFSB\0\0\x02\0\0\0\0\0\0\0\x07\xd1");
    assert_eq!(sectors(&asked(&disk, &with_gaps())).len(), 3);
}

#[test]
fn what_starts_in_a_gap_of_an_mbr_is_kept() {
    let mut disk = mbr();
    // The start of partition 2 has moved.
    disk.put(446 + 16 + 8, &7160u32.to_le_bytes());
    disk.put(446 + 16 + 12, &1984u32.to_le_bytes());
    let survey = asked(&disk, &with_gaps());
    assert_eq!(sectors(&survey), [(2064, 4096), (12168, 14152)]);
    assert!(said(&survey).contains("says where partition 2 starts"));
    let mut disk = mbr();
    disk.ext(4144 * 512, 100);
    let survey = asked(&disk, &with_gaps());
    assert_eq!(sectors(&survey), [(2064, 4096), (12168, 14152)]);
    assert!(said(&survey).contains("marks of ext2/3/4"));
}

#[test]
fn what_is_in_use_is_left_alone() {
    let ask = Ask {
        in_use: [(1, "mounted on /home".to_owned())].into(),
        ..Ask::default()
    };
    let survey = asked(&gpt(), &ask);
    assert!(survey.free.iter().all(|e| e.start_bytes >= 4144 * 512));
    assert!(said(&survey).contains("partition 1 (ext2/3/4): in use: mounted on /home"));
}

#[test]
fn two_marks_leave_a_volume_alone() {
    let mut disk = gpt();
    disk.put(2048 * 512 + 3, b"NTFS    ");
    let survey = of(&disk);
    assert!(said(&survey).contains("the marks of NTFS and ext2/3/4"));
    assert!(matches!(
        survey.volumes[0].outcome,
        Outcome::LeftAlone(Reason::Ambiguous(_))
    ));
    // A table inside a partition.
    let mut disk = gpt();
    disk.record(2048, &[(0x83, 63, 100)]);
    assert!(said(&of(&disk)).contains("ext2/3/4 and a partition table"));
    // RAID metadata at the end of a partition.
    let mut disk = gpt();
    disk.put((2048 + 2096 - 16) / 8 * 4096, b"\xfc\x4e\x2b\xa9\x01\0\0\0");
    assert!(said(&of(&disk)).contains("ext2/3/4 and Linux RAID (md 1.0)"));
}

#[test]
fn marks_of_the_whole_disk_leave_all_alone() {
    let mut disk = mbr();
    disk.put(16382 * 512, b"Intel Raid ISM Cfg Sig. ");
    let survey = asked(&disk, &with_gaps());
    assert!(survey.free.is_empty());
    assert!(said(&survey).contains("Intel RAID and a partition table"));
    let mut disk = mbr();
    disk.ext(0, 8192);
    assert!(of(&disk).free.is_empty());
}

#[test]
fn the_type_of_a_partition_counts() {
    let mut disk = mbr();
    disk.put(446 + 4, &[0xfd]);
    let survey = of(&disk);
    assert!(said(&survey).contains("belongs to Linux RAID"));
    assert_eq!(survey.volumes[0].what, "ext2/3/4");
}

#[test]
fn nothing_known_is_left_alone() {
    let mut disk = Disk::new(4096, 512);
    assert!(said(&of(&disk)).contains("blank"));
    disk.put(1000, &[1]);
    assert!(said(&of(&disk)).contains("nothing known"));
    assert!(said(&asked(&disk, &with_gaps())).contains("nothing known"));
}

#[test]
fn a_table_for_other_sectors_is_refused() {
    // Partition 1 starts at sector 256 of 4096 bytes.
    let mut disk = Disk::new(8192, 512);
    disk.record(0, &[(0x83, 256, 700)]);
    disk.ext(256 * 4096, 1024);
    let refused = survey_with(&disk, 512, &Ask::default(), &readers()).unwrap_err();
    assert!(refused.to_string().contains("sectors of 4096"), "{refused}");
    disk.sector = 4096;
    assert_eq!(of(&disk).free.len(), 1);
}

#[test]
fn whole_sectors_only() {
    let mut disk = Disk::new(1024, 4096);
    disk.gpt(&[(0, 256, 700)]);
    disk.ext(256 * 4096, 1021);
    assert_eq!(sectors(&of(&disk)), [(258, 256 + 255)]);
}

#[test]
fn a_cd_that_boots_from_a_stick_is_named() {
    let mut disk = Disk::new(4096, 512);
    disk.record(0, &[(0x00, 0, 4096), (0xef, 200, 10)]);
    assert!(survey_with(&disk, 512, &Ask::default(), &readers()).is_err());
    disk.put(0x8001, b"CD001");
    assert!(said(&of(&disk)).contains("ISO 9660"));
}

/// Whether all of `inner` lies in `outer`.
fn within(inner: &[Extent], outer: &[Extent]) -> bool {
    inner.iter().all(|i| {
        outer
            .iter()
            .any(|o| o.start_bytes <= i.start_bytes && i.end_bytes() <= o.end_bytes())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A changed byte in a table frees nothing that was not free.
    #[test]
    fn no_change_of_a_table_frees_more(
        which in 0u8..2,
        place in 0usize..4,
        at in 0usize..512,
        bit in 0u32..8,
        gaps in any::<bool>(),
        cut in prop::option::of(0usize..16384),
    ) {
        let mut disk = if which == 0 { gpt() } else { mbr() };
        let ask = Ask { gaps, ..Ask::default() };
        let sound = survey_with(&disk, 512, &with_gaps(), &readers()).unwrap();
        let sector = match place { 0 => 0, 1 => 1, 2 => if which == 0 { 2 } else { 12144 }, _ => 16383 };
        disk.bytes[sector * 512 + at] ^= 1 << bit;
        if let Some(cut) = cut { disk.bytes.truncate(cut * 512); }
        if let Ok(found) = survey_with(&disk, 512, &ask, &readers()) {
            prop_assert!(within(&found.free, &sound.free), "{:?} in {:?}", found.free, sound.free);
        }
    }

    /// Everything stays within the target, sorted and merged, whatever is in it.
    #[test]
    fn any_bytes_are_survived(
        which in 0u8..2,
        changes in prop::collection::vec((prop::sample::select(vec![0usize, 1, 2, 3, 2048, 2050, 5144, 7144, 8144, 12144, 12152, 16382, 16383]), 0usize..512, any::<u8>()), 0..40),
        gaps in any::<bool>(),
        volume in any::<bool>(),
        sector_bytes in prop::sample::select(vec![512u32, 1024, 4096, 520]),
        cut in 0usize..20_000,
    ) {
        let mut disk = if which == 0 { gpt() } else { mbr() };
        for (sector, at, value) in changes {
            disk.bytes[sector * 512 + at] = value;
        }
        disk.bytes.truncate(cut * 509);
        let target = if volume { Target::Volume } else { Target::Disk };
        let ask = Ask { gaps, target, ..Ask::default() };
        if let Ok(found) = survey_with(&disk, sector_bytes, &ask, &readers()) {
            let mut end = None;
            for extent in &found.free {
                prop_assert!(end.is_none_or(|end| end < extent.start_bytes));
                prop_assert!(extent.len_bytes > 0 && extent.start_bytes.is_multiple_of(u64::from(sector_bytes)));
                end = extent.end_bytes();
                prop_assert!(end.unwrap() <= disk.bytes.len() as u64 && end.unwrap().is_multiple_of(u64::from(sector_bytes)));
            }
        }
    }
}
