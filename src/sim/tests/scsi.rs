//! Block commands, mode pages and discards: what a bridge translates, and what it looks at first.

use super::*;
use crate::sim::spec;

#[test]
fn reads_and_writes_come_in_four_lengths() {
    for spec in ["ssd", "hdd-4kn", "stick", "asm1051-usb2"] {
        let mut target = open(spec);
        let block = if spec == "hdd-4kn" { 4096 } else { 512 };
        for (write, read, byte) in [
            ("0a 01 02 03 02 00", "08 01 02 03 02 00", 1),
            (
                "2a 00 00 01 02 03 00 00 02 00",
                "28 00 00 01 02 03 00 00 02 00",
                2,
            ),
            (
                "2a 08 00 01 02 03 00 00 02 00",
                "28 00 00 01 02 03 00 00 02 00",
                3,
            ),
            (
                "aa 00 00 01 02 03 00 00 00 02 00 00",
                "a8 00 00 01 02 03 00 00 00 02 00 00",
                4,
            ),
        ] {
            assert_eq!(send(&mut target, write, &vec![byte; 2 * block], 0).status, 0);
            let data = fetch(&mut target, read, 2 * block);
            assert_eq!(data, vec![byte; 2 * block], "{spec}: {read}");
        }
        // A count of zero: 256 blocks with 6 bytes, none with 10.
        assert_eq!(
            fetch(&mut target, "08 00 00 00 00 00", 256 * block).len(),
            256 * block
        );
        assert_eq!(fetch(&mut target, "28 00 00 00 00 00 00 00 00 00", 512).len(), 0);
        // With 12 bytes the count has 32 bits, and there is a limit.
        let got = send(&mut target, "a8 00 00 00 00 00 00 02 00 00 00 00", &[], 512);
        assert_eq!(code(&got), (5, 0x24, 0));
    }
}

#[test]
fn verify_compares_when_asked() {
    for spec in ["ssd", "stick"] {
        let mut target = open(spec);
        send(&mut target, "2a 00 00 00 00 00 00 00 02 00", &[7; 1024], 0);
        assert_eq!(
            send(&mut target, "2f 00 00 00 00 00 00 00 02 00", &[], 0).status,
            0
        );
        let compare = "2f 02 00 00 00 00 00 00 02 00";
        assert_eq!(send(&mut target, compare, &[7; 1024], 0).status, 0);
        let mut other = [7; 1024];
        other[1023] = 8;
        assert_eq!(code(&send(&mut target, compare, &other, 0)), (0x0e, 0x1d, 0));
        let got = send(&mut target, "2f 04 00 00 00 00 00 00 02 00", &[], 0);
        assert_eq!(code(&got), (5, 0x24, 0));
        let got = send(&mut target, "2f 00 ff ff ff ff 00 00 01 00", &[], 0);
        assert_eq!(code(&got), (5, 0x21, 0));
    }
    let long = "8f 00 00 00 00 00 00 00 00 00 00 00 00 02 00 00";
    assert_eq!(send(&mut open("ssd"), long, &[], 0).status, 0);
}

#[test]
fn mode_pages_follow_the_write_cache() {
    let mut target = open("hdd");
    let caching = fetch(&mut target, "1a 00 08 00 ff 00", 255);
    assert_eq!(caching[..7], [23, 0, 0, 0, 0x08, 0x12, 0x04]);
    let all = fetch(&mut target, "5a 00 3f 00 00 00 00 00 ff 00", 255);
    assert_eq!(all.len(), 8 + 20 + 12 + 12);
    assert_eq!((all[1], all[8], all[28], all[40]), (50, 0x08, 0x0a, 0x1c));
    let changeable = fetch(&mut target, "1a 00 48 00 ff 00", 255);
    assert_eq!(changeable[6], 0x04);
    assert!(changeable[7..].iter().all(|b| *b == 0));
    let got = send(&mut target, "1a 00 c8 00 ff 00", &[], 255);
    assert_eq!(code(&got), (5, 0x39, 0));
    let got = send(&mut target, "1a 00 19 00 ff 00", &[], 255);
    assert_eq!(code(&got), (5, 0x24, 0));
    // MODE SELECT switches it off, and the drive knows.
    let mut list = caching.clone();
    (list[0], list[6]) = (0, 0);
    assert_eq!(send(&mut target, "15 10 00 00 18 00", &list, 0).status, 0);
    assert_eq!(fetch(&mut target, "1a 00 08 00 ff 00", 255)[6], 0);
    assert_eq!(fetch(&mut target, "1a 00 88 00 ff 00", 255)[6], 4, "the default");
    assert_eq!(word(&fetch(&mut target, IDENTIFY_12, 512), 85) & 0x20, 0);
    // SET FEATURES switches it on and look-ahead off.
    send(
        &mut target,
        "85 06 00 00 02 00 00 00 00 00 00 00 00 40 ef 00",
        &[],
        0,
    );
    send(
        &mut target,
        "85 06 00 00 55 00 00 00 00 00 00 00 00 40 ef 00",
        &[],
        0,
    );
    let caching = fetch(&mut target, "1a 00 08 00 ff 00", 255);
    assert_eq!((caching[6], caching[16]), (0x04, 0x20));
    // Anything else cannot be changed; nothing is switched then.
    let mut wrong = list.clone();
    (wrong[6], wrong[10]) = (0, 1);
    assert_eq!(
        code(&send(&mut target, "15 10 00 00 18 00", &wrong, 0)),
        (5, 0x26, 0)
    );
    assert_eq!(fetch(&mut target, "1a 00 08 00 ff 00", 255)[6], 4);
    assert_eq!(
        code(&send(&mut target, "15 10 00 00 06 00", &list[..6], 0)),
        (5, 0x1a, 0)
    );
    assert_eq!(
        code(&send(&mut target, "15 11 00 00 18 00", &list, 0)),
        (5, 0x24, 0)
    );
}

#[test]
fn what_is_not_translated_is_refused() {
    // FORMAT UNIT, REPORT SUPPORTED OPERATION CODES, SECURITY PROTOCOL IN and OUT, WRITE BUFFER, SANITIZE.
    for cdb in [
        "04 00 00 00 00 00",
        "a3 0c 00 00 00 00 00 00 00 ff 00 00",
        "a2 00 00 00 00 00 00 00 00 01 00 00",
        "b5 00 00 00 00 00 00 00 00 00 00 00",
        "3b 05 00 00 00 00 00 00 00 00",
        "48 03 00 00 00 00 00 00 00 00",
    ] {
        for spec in ["hdd", "stick"] {
            assert_eq!(code(&send(&mut open(spec), cdb, &[], 0)), (5, 0x20, 0), "{cdb}");
        }
    }
    // SECURITY, DOWNLOAD MICROCODE, SANITIZE, DCO: the drive has none.
    for command in [
        "f1", "f2", "f3", "f4", "f5", "f6", "92", "93", "b4", "b1", "60", "61",
    ] {
        let cdb = format!("85 06 00 00 00 00 00 00 00 00 00 00 00 40 {command} 00");
        assert_eq!(send(&mut open("ssd"), &cdb, &[], 0).sense[11], 0x04, "{command}");
    }
    let stick = fetch(&mut open("stick"), "23 00 00 00 00 00 00 00 fc 00", 252);
    // 60062500 = 3947B24h.
    assert_eq!(stick, bytes("00 00 00 08 03 94 7b 24 02 00 02 00"));
    let got = send(&mut open("hdd"), "23 00 00 00 00 00 00 00 fc 00", &[], 252);
    assert_eq!(code(&got), (5, 0x20, 0));
}

#[test]
fn buffers_and_blocks_of_sectors_work() {
    let mut target = open("ssd");
    let data: Vec<u8> = (0..512u32).map(|i| (i % 199) as u8).collect();
    let write = "85 0a 06 00 00 00 01 00 00 00 00 00 00 40 e8 00";
    assert_eq!(send(&mut target, write, &data, 0).status, 0);
    let read = "85 08 0e 00 00 00 01 00 00 00 00 00 00 40 e4 00";
    assert_eq!(fetch(&mut target, read, 512), data);
    // WRITE MULTIPLE, WRITE MULTIPLE FUA EXT, WRITE DMA FUA EXT; READ MULTIPLE EXT.
    for (n, cdb) in [
        "85 0a 06 00 00 00 01 00 05 00 00 00 00 40 c5 00",
        "85 0b 06 00 00 00 01 00 06 00 00 00 00 40 ce 00",
        "85 0d 06 00 00 00 01 00 07 00 00 00 00 40 3d 00",
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(send(&mut target, cdb, &[n as u8 + 1; 512], 0).status, 0, "{cdb}");
    }
    let multiple = "85 09 0e 00 00 00 03 00 05 00 00 00 00 40 29 00";
    let back = fetch(&mut target, multiple, 1536);
    assert_eq!((back[0], back[512], back[1024]), (1, 2, 3));
    // SET MULTIPLE MODE: 8 is fine, 3 and 32 are not, 0 switches it off.
    for (count, status) in [(8, 0), (3, 2), (32, 2), (0, 0)] {
        let cdb = format!("85 06 00 00 00 00 {count:02x} 00 00 00 00 00 00 40 c6 00");
        assert_eq!(send(&mut target, &cdb, &[], 0).status, status, "{count}");
    }
    assert_eq!(send(&mut target, multiple, &[], 1536).status, 2);
    assert_eq!(word(&fetch(&mut target, IDENTIFY_12, 512), 59), 0);
    // Transfer mode: Ultra DMA 6 is there, 7 is not.
    for (mode, status) in [(0x46, 0), (0x47, 2)] {
        let cdb = format!("85 06 00 00 03 00 {mode:02x} 00 00 00 00 00 00 40 ef 00");
        assert_eq!(send(&mut target, &cdb, &[], 0).status, status);
    }
}

/// An UNMAP list of (first, count).
fn unmap_list(extents: &[(u64, u32)]) -> Vec<u8> {
    let len = 16 * extents.len() as u16;
    let mut list = (len + 6).to_be_bytes().to_vec();
    list.extend(len.to_be_bytes());
    list.extend([0; 4]);
    for (first, count) in extents {
        list.extend(first.to_be_bytes());
        list.extend(count.to_be_bytes());
        list.extend([0; 4]);
    }
    list
}

fn unmap(target: &mut Target, list: &[u8]) -> Got {
    let [a, b] = (list.len() as u16).to_be_bytes();
    send(
        target,
        &format!("42 00 00 00 00 00 00 {a:02x} {b:02x} 00"),
        list,
        0,
    )
}

/// The SSD behind a bridge that takes four descriptors.
fn open_with_descriptors() -> Target {
    let mut target = open("ssd");
    let (mut profile, options) = spec::parse("ssd").unwrap();
    profile.bridge.unmap_descriptors = 4;
    target.bridge = Bridge::new(&profile, &options).unwrap();
    target
}

#[test]
fn unmap_is_looked_at_as_a_whole_before_any_of_it_is_done() {
    let last = 937_703_087;
    let most = 8 * 64 * 65_535u32;
    let fresh = || {
        let mut target = open_with_descriptors();
        send(&mut target, "2a 00 00 00 00 00 00 00 10 00", &[5; 8192], 0);
        target
    };
    let mut target = fresh();
    let limits = fetch(&mut target, "12 01 b0 00 ff 00", 255);
    assert_eq!((limits[4], limits[27]), (1, 4));
    for (extents, wanted) in [
        (vec![(0, 4), (last, 2)], (5, 0x21, 0)),
        (vec![(0, 4), (u64::MAX, 2)], (5, 0x21, 0)),
        (vec![(0, 4), (100, most - 3)], (5, 0x26, 0)),
        (vec![(0, 1), (2, 1), (4, 1), (6, 1), (8, 1)], (5, 0x26, 0)),
    ] {
        let mut target = fresh();
        let got = unmap(&mut target, &unmap_list(&extents));
        assert_eq!(code(&got), wanted, "{extents:?}");
        assert_eq!(target.trimmed_blocks(), 0, "{extents:?}");
        let data = fetch(&mut target, "28 00 00 00 00 00 00 00 10 00", 8192);
        assert_eq!(data, vec![5; 8192]);
    }
    let got = unmap(
        &mut target,
        &unmap_list(&[(0, 2), (4, 0), (last, 1), (8, most - 3)]),
    );
    assert_eq!(got.status, 0);
    assert_eq!(target.trimmed_blocks(), u64::from(most));
    let data = fetch(&mut target, "28 00 00 00 00 00 00 00 10 00", 8192);
    assert_eq!((data[1023], data[1024], data[4095], data[4096]), (0, 5, 5, 0));
    // A list that is shorter than it says, an anchor, no list at all, less data than announced.
    let mut list = unmap_list(&[(0, 2)]);
    list[3] = 32;
    assert_eq!(code(&unmap(&mut target, &list)), (5, 0x1a, 0));
    let got = send(&mut target, "42 01 00 00 00 00 00 00 18 00", &list, 0);
    assert_eq!(code(&got), (5, 0x24, 0));
    assert_eq!(
        send(&mut target, "42 00 00 00 00 00 00 00 00 00", &[], 0).status,
        0
    );
    let got = send(&mut target, "42 00 00 00 00 00 00 00 28 00", &list, 0);
    assert_eq!(code(&got), (0x0b, 0x4b, 0));
}

#[test]
fn write_same_discards_with_zeros_or_without_data() {
    let same = |flags: u8, count: u32| {
        let [a, b, c, d] = count.to_be_bytes();
        format!("93 {flags:02x} 00 00 00 00 00 00 00 04 {a:02x} {b:02x} {c:02x} {d:02x} 00 00")
    };
    let most = 8 * 64 * 65_535u32;
    let fresh = || {
        let mut target = open("ssd");
        send(&mut target, "2a 00 00 00 00 00 00 00 10 00", &[5; 8192], 0);
        target
    };
    let zeros = [0; 512];
    for (flags, count, data, wanted) in [
        (0x00, 2, &zeros[..], (5, 0x24, 0)),
        (0x18, 2, &zeros[..], (5, 0x24, 0)),
        (0x08, 0, &zeros[..], (5, 0x24, 0)),
        (0x08, most + 1, &zeros[..], (5, 0x24, 0)),
        (0x08, 2, &[1; 512][..], (5, 0x24, 0)),
        (0x08, 2, &zeros[..256], (0x0b, 0x4b, 0)),
    ] {
        let mut target = fresh();
        let got = send(&mut target, &same(flags, count), data, 0);
        assert_eq!(code(&got), wanted, "{flags:02x} {count}");
        assert_eq!(target.trimmed_blocks(), 0);
    }
    for (flags, data) in [(0x08, &zeros[..]), (0x09, &[][..])] {
        let mut target = fresh();
        assert_eq!(send(&mut target, &same(flags, 2), data, 0).status, 0);
        assert_eq!(target.trimmed_blocks(), 2);
        let back = fetch(&mut target, "28 00 00 00 00 00 00 00 10 00", 8192);
        assert_eq!((back[2047], back[2048], back[3071], back[3072]), (5, 0, 0, 5));
    }
    let beyond = "93 08 00 00 00 00 37 e4 36 af 00 00 00 02 00 00";
    assert_eq!(code(&send(&mut fresh(), beyond, &zeros, 0)), (5, 0x21, 0));
    // A bridge that translates neither claims neither.
    let mut target = open("hdd");
    let got = send(&mut target, &same(8, 2), &zeros, 0);
    assert_eq!(code(&got), (5, 0x20, 0));
    assert_eq!(fetch(&mut target, "12 01 b0 00 ff 00", 255)[20..44], [0; 24]);
}

#[test]
fn a_4kn_drive_counts_in_its_own_sectors() {
    let mut target = open("hdd-4kn,trim=zero");
    send(&mut target, "2a 00 00 00 00 00 00 00 04 00", &[9; 16384], 0);
    let mut ranges = vec![0; 512];
    ranges[..8].copy_from_slice(&[1, 0, 0, 0, 0, 0, 2, 0]);
    let cdb = "85 0d 06 00 01 00 01 00 00 00 00 00 00 40 06 00";
    assert_eq!(send(&mut target, cdb, &ranges, 0).status, 0);
    let data = fetch(&mut target, "28 00 00 00 00 00 00 00 04 00", 16384);
    assert_eq!((data[4095], data[4096], data[12287], data[12288]), (9, 0, 0, 9));
    // READ SECTORS EXT of one sector: 4096 bytes. A log page has 512 all the same.
    let read = "85 09 0e 00 00 00 01 00 03 00 00 00 00 40 24 00";
    assert_eq!(fetch(&mut target, read, 4096), vec![9; 4096]);
    let log = "85 09 0e 00 00 00 01 00 00 00 00 00 00 40 2f 00";
    assert_eq!(fetch(&mut target, log, 512).len(), 512);
    let long = fetch(&mut target, "9e 10 00 00 00 00 00 00 00 00 00 00 00 20 00 00", 32);
    assert_eq!((long[10], long[13]), (0x10, 0), "one sector is one physical one");
    let limits = fetch(&mut target, "12 01 b0 00 ff 00", 255);
    assert_eq!(limits[6..12], [0, 1, 0, 0, 0x20, 0], "8192 blocks are 32 MiB");
}
