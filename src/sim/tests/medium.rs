//! What the medium holds, and how it and the bridge may be wrong about it.

use super::*;

const READ_0_8: &str = "28 00 00 00 00 00 00 00 08 00";
const WRITE_0_8: &str = "2a 00 00 00 00 00 00 00 08 00";
const CAPACITY_16: &str = "9e 10 00 00 00 00 00 00 00 00 00 00 00 20 00 00";

/// DATA SET MANAGEMENT of sectors 2 and 3.
fn trim_two(target: &mut Target) {
    let mut ranges = vec![0; 512];
    ranges[..8].copy_from_slice(&[2, 0, 0, 0, 0, 0, 2, 0]);
    let cdb = "85 0d 06 00 01 00 01 00 00 00 00 00 00 40 06 00";
    assert_eq!(send(target, cdb, &ranges, 0).status, 0);
}

#[test]
fn trim_does_what_the_option_says_and_the_claims_follow() {
    // What sectors 2, 3 and 4 hold after, word 69, LBPRZ of READ CAPACITY(16), VPD B2h byte 5.
    for (option, left, claims, rc16, b2) in [
        ("", [0x00, 0x00, 0x11], 0x4020, 0xc0, 0xc4),
        (",trim=zero", [0x00, 0x00, 0x11], 0x4020, 0xc0, 0xc4),
        (",trim=ones", [0xff, 0xff, 0x11], 0x4000, 0x80, 0xc0),
        (",trim=keep", [0x11, 0x11, 0x11], 0x0000, 0x80, 0xc0),
        (",trim=ignore", [0x11, 0x11, 0x11], 0x4020, 0xc0, 0xc4),
        (",trim=neighbour", [0x00, 0x00, 0x00], 0x4020, 0xc0, 0xc4),
    ] {
        let mut target = open(&format!("ssd{option}"));
        send(&mut target, WRITE_0_8, &[0x11; 4096], 0);
        trim_two(&mut target);
        let data = fetch(&mut target, READ_0_8, 4096);
        assert_eq!([data[1024], data[1536], data[2048]], left, "{option}");
        assert_eq!((data[1023], data[2560]), (0x11, 0x11), "{option}");
        let identify = fetch(&mut target, IDENTIFY_12, 512);
        assert_eq!(word(&identify, 69), claims, "{option}");
        assert_eq!(fetch(&mut target, CAPACITY_16, 32)[14], rc16, "{option}");
        assert_eq!(fetch(&mut target, "12 01 b2 00 ff 00", 255)[5], b2, "{option}");
    }
    let identify = fetch(&mut open("hdd,trim=zero"), IDENTIFY_12, 512);
    assert_eq!((word(&identify, 169) & 1, word(&identify, 105)), (1, 8));
}

#[test]
fn a_medium_in_a_file_is_there_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let spec = format!("ssd,store={}", path.display());
    let payload: Vec<u8> = (0..4096u32).map(|i| (i % 251) as u8).collect();
    let mut target = open(&spec);
    assert_eq!(send(&mut target, WRITE_0_8, &payload, 0).status, 0);
    trim_two(&mut target);
    drop(target);
    let mut wanted = payload;
    wanted[1024..2048].fill(0);
    let mut again = open(&spec);
    assert_eq!(fetch(&mut again, READ_0_8, 4096), wanted);
    let why = Target::open(&spec).unwrap_err().why;
    assert!(why.contains("another simulated drive has it"), "{why}");
    drop(again);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 937_703_088 * 512);
    // Another disk has another size.
    let other = format!("hdd,store={}", path.display());
    let why = Target::open(&other).unwrap_err().why;
    assert!(why.contains("480103981056"), "{why}");
}

#[test]
fn virtual_data_reads_as_something_and_the_same_each_time() {
    let mut target = open("ssd,payload=virtual");
    let blank = fetch(&mut target, READ_0_8, 4096);
    assert_eq!(blank, vec![0; 4096]);
    send(&mut target, WRITE_0_8, &[0; 4096], 0);
    let first = fetch(&mut target, READ_0_8, 4096);
    assert_ne!(first[..512], first[512..1024]);
    assert_eq!(fetch(&mut target, READ_0_8, 4096), first);
    let mut twin = open("ssd,payload=virtual");
    send(&mut twin, WRITE_0_8, &[9; 4096], 0);
    assert_eq!(fetch(&mut twin, READ_0_8, 4096), first, "the same run");
    let mut other = open("ssd,payload=virtual,seed=5");
    send(&mut other, WRITE_0_8, &[9; 4096], 0);
    assert_ne!(fetch(&mut other, READ_0_8, 4096), first, "another seed");
    send(&mut target, WRITE_0_8, &[0; 4096], 0);
    assert_ne!(fetch(&mut target, READ_0_8, 4096), first, "written again");
    // Without a payload at all.
    let mut target = open("ssd,payload=virtual");
    let reply = target.write_made_up(&bytes(WRITE_0_8), 4096, Duration::from_secs(9));
    assert!(matches!(reply, Reply::Answered { status: 0, .. }));
    assert_eq!(fetch(&mut target, READ_0_8, 4096), first);
}

#[test]
fn faulty_writes_are_answered_with_success() {
    let pio = "85 0b 06 00 00 00 08 00 00 00 00 00 00 40 34 00";
    for (fault, kept) in [("torn-write", 2048), ("lost-write", 0)] {
        for profile in ["ssd", "hdd", "stick"] {
            let mut wanted = vec![0x22; kept];
            wanted.resize(4096, 0);
            let mut target = open(&format!("{profile},fault={fault}"));
            assert_eq!(send(&mut target, WRITE_0_8, &[0x22; 4096], 0).status, 0);
            assert_eq!(fetch(&mut target, READ_0_8, 4096), wanted, "{profile} {fault}");
        }
        let mut target = open(&format!("ssd,fault={fault}"));
        assert_eq!(send(&mut target, pio, &[0x22; 4096], 0).status, 0);
        assert_eq!(fetch(&mut target, READ_0_8, 4096)[4095], 0, "{fault}");
    }
}

#[test]
fn a_bad_sector_fails_over_both_paths_until_it_is_written() {
    let mut target = open("hdd,bad=4+2");
    let raw = |target: &mut Target, id| {
        let data = fetch(target, READ_DATA, 512);
        attribute(&data, id)[5]
    };
    assert_eq!((raw(&mut target, 197), raw(&mut target, 5)), (2, 0));
    let before = target.clock().now();
    let got = send(&mut target, READ_0_8, &[], 4096);
    assert_eq!(code(&got), (3, 0x11, 4));
    assert_eq!(got.sense[..7], [0xf0, 0, 3, 0, 0, 0, 4], "information: the block");
    assert!(
        target.clock().now() - before >= Duration::from_secs(7),
        "the drive tries for as long as its recovery time says"
    );
    let got = send(
        &mut target,
        "85 09 0e 00 00 00 08 00 00 00 00 00 00 40 24 00",
        &[],
        4096,
    );
    assert_eq!(got.status, 2);
    assert_eq!((got.sense[11], got.sense[15], got.sense[21]), (0x40, 4, 0x51));
    // READ VERIFY sees it too; sectors beside it can be read.
    assert_eq!(
        code(&send(&mut target, "2f 00 00 00 00 05 00 00 01 00", &[], 0)),
        (3, 0x11, 4)
    );
    fetch(&mut target, "28 00 00 00 00 00 00 00 04 00", 2048);
    // Pending defects log: two entries.
    let defects = fetch(
        &mut target,
        "85 09 0e 00 00 00 01 00 0c 00 00 00 00 40 2f 00",
        512,
    );
    assert_eq!((defects[0], defects[24], defects[40]), (2, 4, 5));
    assert_eq!(
        send(&mut target, "2a 00 00 00 00 04 00 00 01 00", &[1; 512], 0).status,
        0
    );
    assert_eq!((raw(&mut target, 197), raw(&mut target, 5)), (1, 1));
    let got = send(&mut target, READ_0_8, &[], 4096);
    assert_eq!(got.sense[6], 5, "the next one");
    // WRITE UNCORRECTABLE EXT marks, and a write makes it whole without a spare.
    let mut target = open("hdd");
    let mark = "85 07 00 00 55 00 01 00 02 00 00 00 00 40 45 00";
    assert_eq!(send(&mut target, mark, &[], 0).status, 0);
    assert_eq!(send(&mut target, READ_0_8, &[], 4096).sense[6], 2);
    send(&mut target, WRITE_0_8, &[1; 4096], 0);
    assert_eq!(fetch(&mut target, READ_0_8, 4096), vec![1; 4096]);
    assert_eq!(raw(&mut target, 5), 0);
    let got = send(&mut open("stick,bad=7+1"), READ_0_8, &[], 4096);
    assert_eq!((code(&got), got.sense[6]), ((3, 0x11, 0), 7));
}

#[test]
fn a_bridge_may_claim_another_capacity() {
    let mut target = open("hdd,capacity=7814058336");
    let long = fetch(&mut target, CAPACITY_16, 32);
    // 7814058335 = 1D1C1115Fh.
    assert_eq!(long[..8], [0, 0, 0, 1, 0xd1, 0xc1, 0x11, 0x5f]);
    assert_eq!(
        fetch(&mut target, "25 00 00 00 00 00 00 00 00 00", 8)[..4],
        [0xff; 4]
    );
    let identify = fetch(&mut target, IDENTIFY_12, 512);
    assert_eq!(word(&identify, 101), 0xe8e0, "the drive tells the truth");
    // The first sector that is not there: the drive says so, not the bridge.
    let got = send(&mut target, "28 00 e8 e0 88 b0 00 00 01 00", &[], 512);
    assert_eq!(code(&got), (5, 0x21, 0));
    fetch(&mut target, "28 00 e8 e0 88 af 00 00 01 00", 512);
    let mut small = open("hdd,capacity=1000");
    assert_eq!(small.facts().size_bytes, Some(512_000));
    let got = send(&mut small, "28 00 00 00 03 e8 00 00 01 00", &[], 512);
    assert_eq!(code(&got), (5, 0x21, 0));
}

#[test]
fn a_bridge_may_make_large_blocks_of_small_sectors() {
    let mut target = open("ssd,fake_4k=1");
    let long = fetch(&mut target, CAPACITY_16, 32);
    // 937703088 / 8 - 1 = 117212885 = 6FC86D5h.
    assert_eq!(long[..12], [0, 0, 0, 0, 6, 0xfc, 0x86, 0xd5, 0, 0, 0x10, 0]);
    assert_eq!(long[13] & 0x0f, 0);
    let identify = fetch(&mut target, IDENTIFY_12, 512);
    assert_eq!((word(&identify, 106), word(&identify, 100)), (0x6003, 0x36b0));
    let block: Vec<u8> = (0..8192u32).map(|i| (i / 512) as u8 + 1).collect();
    assert_eq!(
        send(&mut target, "2a 00 00 00 00 05 00 00 02 00", &block, 0).status,
        0
    );
    // Block 5 is sectors 28h to 2Fh, and a sector of the drive has 512 bytes.
    let pio = fetch(
        &mut target,
        "85 09 0e 00 00 00 02 00 2f 00 00 00 00 40 24 00",
        1024,
    );
    assert_eq!((pio[0], pio[512], pio.len()), (8, 9, 1024));
    // UNMAP of block 5 takes eight sectors.
    let list = bytes("00 16 00 10 00 00 00 00 00 00 00 00 00 00 00 05 00 00 00 01 00 00 00 00");
    assert_eq!(
        send(&mut target, "42 00 00 00 00 00 00 00 18 00", &list, 0).status,
        0
    );
    assert_eq!(target.trimmed_blocks(), 8);
    let data = fetch(&mut target, "28 00 00 00 00 05 00 00 02 00", 8192);
    assert_eq!((data[4095], data[4096]), (0, 9));
    assert_eq!(target.facts().logical_block_bytes, Some(4096));
}
