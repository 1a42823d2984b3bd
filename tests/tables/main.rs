//! Partition tables and signatures against the programs that write them: `sfdisk`, `fdisk`, `sgdisk`, the makers of file
//! systems, `blkid`. What is missing on a machine is skipped and named.
//!
//! `DRIVETHRU_TABLES=N` makes N random disks instead of a few.

mod disk;
mod made;
mod support;

use std::collections::BTreeSet;

use drivethru::freemap::partitions::{self, PartitionType, Scheme, Table};
use drivethru::freemap::signature::signatures;
use drivethru::freemap::survey::{Ask, Outcome, Reason, Survey, survey, survey_with};
use drivethru::freemap::{Extent, ReadAt};

use disk::Plan;
use support::{Damaged, Image, Rng, missing_program, run};

fn rounds() -> u64 {
    std::env::var("DRIVETHRU_TABLES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(16)
}

/// (number, start, sectors, type, name) as a program says it.
type Row = (u32, u64, u64, String, Option<String>);

fn rows(table: &Table) -> Vec<Row> {
    let size = u64::from(table.sector_bytes);
    table
        .partitions
        .iter()
        .map(|p| {
            let kind = match p.kind {
                PartitionType::Mbr(byte) => format!("{byte:x}"),
                PartitionType::Gpt(_) => p.kind.to_string(),
            };
            (
                p.number,
                p.extent.start_bytes / size,
                p.extent.len_bytes / size,
                kind,
                p.name.clone(),
            )
        })
        .collect()
}

#[test]
fn tables_are_what_sfdisk_says() {
    if let Some(program) = missing_program(&["sfdisk"]) {
        println!("SKIPPED: {program} is not here");
        return;
    }
    for seed in 0..rounds() {
        let dir = tempfile::tempdir().expect("a directory");
        let plan = Plan::random(&mut Rng::new(seed));
        let path = plan.write(dir.path()).expect("a disk");
        let image = Image::open(&path).expect("an image");
        let table = partitions::read(&image, 512)
            .unwrap_or_else(|e| panic!("seed {seed}: {plan:?}: {e}"))
            .expect("a table");
        assert_eq!(
            rows(&table),
            support::sfdisk_rows(&path).expect("what sfdisk says"),
            "seed {seed}: {plan:?}"
        );
    }
}

#[test]
fn tables_of_large_sectors_are_what_fdisk_says() {
    if let Some(program) = missing_program(&["fdisk"]) {
        println!("SKIPPED: {program} is not here");
        return;
    }
    for label in ["g", "o"] {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("disk");
        support::sparse(&path, 64 << 20).expect("an image");
        let name = path.to_str().expect("a name");
        let number = |n: u32| {
            if label == "g" {
                format!("{n}")
            } else {
                format!("p\n{n}")
            }
        };
        let script = format!(
            "{label}\nn\n{}\n256\n2000\nn\n{}\n3000\n5000\nw\n",
            number(1),
            number(3)
        );
        support::run_with_input("fdisk", &["-b", "4096", name], &script).expect("fdisk");
        let image = Image::open(&path).expect("an image");
        let table = partitions::read(&image, 4096).expect("sound").expect("a table");
        let found: Vec<_> = rows(&table).into_iter().map(|r| (r.0, r.1, r.2)).collect();
        assert_eq!(found, [(1, 256, 1745), (3, 3000, 2001)], "{label}");
        let listed = run("fdisk", &["-b", "4096", "-l", "-o", "Start,Sectors", name], &[0]).expect("fdisk");
        assert!(
            listed.contains("256    1745") && listed.contains("3000    2001"),
            "{listed}"
        );
        if label == "g" {
            let said = partitions::read(&image, 512).unwrap_err().to_string();
            assert!(said.contains("sectors of 4096 bytes"), "{said}");
        }
    }
}

#[test]
fn the_hybrid_mbr_of_sgdisk_is_read() {
    if let Some(program) = missing_program(&["sgdisk"]) {
        println!("SKIPPED: {program} is not here");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("disk");
    support::sparse(&path, 64 << 20).expect("an image");
    let name = path.to_str().expect("a name");
    run(
        "sgdisk",
        &["-n", "1:2048:+8M", "-n", "2:40960:+8M", "-h", "1:2", name],
        &[0],
    )
    .expect("sgdisk");
    let image = Image::open(&path).expect("an image");
    let table = partitions::read(&image, 512).expect("sound").expect("a table");
    assert_eq!((table.scheme, table.partitions.len()), (Scheme::Gpt, 2));
    // Changed by a program that knows only the MBR.
    let mut moved = Damaged::new(&image);
    moved.change(446 + 16 + 8, 1);
    partitions::read(&moved, 512).expect_err("a hybrid that disagrees");
}

#[test]
fn signatures_are_what_the_makers_write() {
    let mut made_count = 0;
    for maker in made::MAKERS {
        if let Some(program) = missing_program(maker.programs) {
            println!("SKIPPED: {}: {program} is not here", maker.what);
            continue;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let path = match maker.make(dir.path()) {
            Ok(path) => path,
            Err(why) => {
                println!("SKIPPED: {}: {why}", maker.what);
                continue;
            }
        };
        let image = Image::open(&path).expect("an image");
        let names: Vec<&str> = signatures(&image)
            .expect("readable")
            .iter()
            .map(|s| s.what)
            .collect();
        assert_eq!(names, maker.names, "{}", maker.what);
        if missing_program(&["blkid"]).is_none() && !maker.blkid.is_empty() {
            let name = path.to_str().expect("a name");
            let said = run("blkid", &["-p", "-s", "TYPE", "-o", "value", name], &[0, 2, 8]).expect("blkid");
            assert_eq!(said.trim(), maker.blkid, "{}", maker.what);
        }
        // Each claims no more than there is.
        for signature in signatures(&image).expect("readable") {
            assert!(
                signature
                    .claims_bytes
                    .is_none_or(|n| n > 0 && n <= image.size_bytes()),
                "{}: {signature:?}",
                maker.what
            );
        }
        made_count += 1;
    }
    println!("tables: {made_count} makers agreed");
    assert!(made_count > 0 || missing_program(&["mkswap"]).is_some());
}

/// mkfs.fat may write a table that names its own volume.
#[test]
fn a_fat_with_a_table_of_its_own_is_one_volume() {
    if let Some(program) = missing_program(&["mkfs.fat"]) {
        println!("SKIPPED: {program} is not here");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for (bits, cluster) in [("12", "64"), ("16", "4"), ("32", "1")] {
        let path = dir.path().join(bits);
        support::sparse(&path, 40 << 20).expect("an image");
        let name = path.to_str().expect("a name");
        run("mkfs.fat", &["--mbr=y", "-F", bits, "-s", cluster, name], &[0]).expect("mkfs.fat");
        let image = Image::open(&path).expect("an image");
        let found = survey_with(&image, 512, &Ask::default(), &made::readers()).expect("one volume");
        assert!(
            matches!(found.volumes[0].outcome, Outcome::Mapped(_)),
            "{:?}",
            found.volumes
        );
    }
}

/// Random disks with volumes: only what the readers call free, and gaps; with any damage to a table, no more than that.
#[test]
fn damaged_tables_free_nothing_more() {
    let programs = [
        "sfdisk",
        "mkfs.ext4",
        "mkfs.fat",
        "mkntfs",
        "mkfs.exfat",
        "mkswap",
    ];
    if let Some(program) = missing_program(&programs) {
        println!("SKIPPED: {program} is not here");
        return;
    }
    let readers = made::readers();
    let (mut damaged, mut refused, mut same, mut gaps_there, mut gaps_found) = (0u64, 0u64, 0u64, 0u64, 0u64);
    for seed in 0..rounds() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut rng = Rng::new(seed ^ 0xd15c);
        let plan = Plan::random(&mut rng);
        let path = plan.write(dir.path()).expect("a disk");
        plan.fill(&path, &mut rng).expect("volumes");
        let image = Image::open(&path).expect("an image");
        let with_gaps = Ask {
            gaps: true,
            ..Ask::default()
        };
        let table = partitions::read(&image, 512).expect("sound").expect("a table");
        let sound = survey_with(&image, 512, &with_gaps, &readers)
            .unwrap_or_else(|e| panic!("seed {seed}: {plan:?}: {e}"));
        let truth = plan.free(&readers, &image);
        let label = || format!("seed {seed}: {plan:?}\n{sound:#?}");
        assert!(within(&sound.free, &truth), "{}", label());
        volumes_are_told(&plan, &sound);
        // The real readers are asked for the same volumes.
        volumes_are_told(
            &plan,
            &survey(&image, 512, &with_gaps).unwrap_or_else(|e| panic!("{e}: {}", label())),
        );
        let zero_only = survey_with(&image, 512, &Ask::default(), &readers).expect("sound");
        assert!(within(&zero_only.free, &sound.free), "{}", label());
        assert!(
            plan.written_gaps()
                .iter()
                .all(|at| zero_only.free.iter().all(|e| !holds(e, *at))),
            "{}",
            label()
        );
        for gap in plan.gaps() {
            gaps_there += 1;
            let found = sound.free.iter().any(|e| holds(e, gap.start_bytes));
            gaps_found += u64::from(found);
            assert!(found || !plan.gpt, "{gap:?}: {}", label());
        }

        let sectors = plan.table_sectors(&table);
        for _ in 0..60 {
            let mut copy = Damaged::new(&image);
            copy.at_random(&sectors, &mut rng);
            damaged += 1;
            match partitions::read(&copy, 512) {
                Err(_) => refused += 1,
                Ok(found) if found.as_ref() == Some(&table) => same += 1,
                // With both signatures gone there is no table at all, and the survey finds no volume.
                Ok(None) => {}
                Ok(Some(_)) => assert!(!plan.gpt || copy.cut(), "{}: {copy:?}", label()),
            }
            if let Ok(found) = survey_with(&copy, 512, &with_gaps, &readers) {
                assert!(within(&found.free, &truth), "{}: {copy:?}: {found:#?}", label());
            }
        }
    }
    println!(
        "tables: {} disks, {gaps_found} of {gaps_there} gaps taken, {damaged} damages: {refused} refused, {same} the same",
        rounds()
    );
}

fn holds(extent: &Extent, at: u64) -> bool {
    extent.start_bytes <= at && extent.end_bytes().is_some_and(|end| at < end)
}

fn volumes_are_told(plan: &Plan, found: &Survey) {
    let mut seen = BTreeSet::new();
    for volume in &found.volumes {
        let number = volume.number.expect("a number");
        assert!(seen.insert(number));
        let content = plan.content(number).expect("a partition");
        match &volume.outcome {
            Outcome::Mapped(_) => assert!(content.mapped(), "{number}: {plan:?}"),
            Outcome::LeftAlone(Reason::Refused(why)) => panic!("{number}: {why}: {plan:?}"),
            Outcome::LeftAlone(_) => assert!(!content.mapped(), "{number}: {plan:?}"),
        }
    }
    assert_eq!(seen.len(), plan.volumes());
}

/// Whether all of `inner` lies in `outer`, which is merged.
fn within(inner: &[Extent], outer: &[Extent]) -> bool {
    inner.iter().all(|i| {
        outer
            .iter()
            .any(|o| o.start_bytes <= i.start_bytes && i.end_bytes() <= o.end_bytes())
    })
}
