//! Error logs, self-tests and what they find.

use super::*;

const SHORT_TEST: &str = "85 06 00 00 d4 00 00 00 01 00 4f 00 c2 00 b0 00";
const LONG_TEST: &str = "85 06 00 00 d4 00 00 00 02 00 4f 00 c2 00 b0 00";
const SELECTIVE_TEST: &str = "85 06 00 00 d4 00 00 00 04 00 4f 00 c2 00 b0 00";
const SELF_TEST_LOG: &str = "a1 08 0e d5 01 06 4f c2 00 b0 00 00";
const SELECTIVE_LOG: &str = "a1 08 0e d5 01 09 4f c2 00 b0 00 00";
const SUMMARY: &str = "a1 08 0e d5 01 01 4f c2 00 b0 00 00";
const COMPREHENSIVE: &str = "a1 08 0e d5 04 02 4f c2 00 b0 00 00";
const EXTENDED: &str = "85 09 0e 00 00 00 04 00 03 00 00 00 00 40 2f 00";

#[test]
fn an_unreadable_sector_is_logged_with_what_came_before() {
    // LBA 12 3456h, seven sectors behind the start of the read.
    let mut target = open("hdd,bad=1193046+1");
    let empty = fetch(&mut target, SUMMARY, 512);
    assert_eq!((empty[0], empty[1], empty[452]), (1, 0, 0));
    target.clock().advance(Duration::from_secs(2));
    fetch(&mut target, IDENTIFY_12, 512);
    let got = send(
        &mut target,
        "85 09 0e 00 00 00 08 00 4f 00 34 00 12 40 24 00",
        &[],
        4096,
    );
    assert_eq!(got.sense[11], 0x40);
    let log = fetch(&mut target, SUMMARY, 512);
    assert_eq!(sum(&log), 0);
    assert_eq!((log[1], word(&log, 226)), (1, 1), "index and count");
    let entry = &log[2..92];
    // The fifth command is the one that failed: READ SECTORS EXT, low bytes; the fourth IDENTIFY DEVICE.
    assert_eq!(entry[48..56], bytes("00 00 08 4f 34 12 40 24"));
    assert_eq!(entry[36 + 7], 0xec);
    let milliseconds = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
    assert!((2000..3000).contains(&milliseconds(44)), "{}", milliseconds(44));
    assert!(milliseconds(56) >= milliseconds(44));
    assert_eq!(entry[60..68], bytes("00 40 08 56 34 12 40 51"));
    assert_eq!(
        (entry[87], word(&entry[88..], 0)),
        (3, 12043),
        "active, and the hour"
    );
    let long = fetch(&mut target, EXTENDED, 2048);
    assert_eq!((long[0], word(&long, 1), word(&long, 250)), (1, 1, 1));
    let entry = &long[4..128];
    assert_eq!(
        entry[72..85],
        bytes("00 00 00 08 00 4f 00 34 00 12 00 40 24"),
        "low and high bytes in turn"
    );
    assert_eq!(entry[90..102], bytes("00 40 08 00 56 00 34 00 12 00 40 51"));
    assert_eq!((entry[121], word(&entry[122..], 0)), (3, 12043));
    for sector in long.chunks(512) {
        assert_eq!(sum(sector), 0);
    }
    // The statistics count it.
    let page = fetch(
        &mut target,
        "85 09 0e 00 00 00 01 00 04 00 04 00 00 40 2f 00",
        512,
    );
    assert_eq!((page[8], page[15]), (1, 0xc0));
}

#[test]
fn the_rings_keep_the_newest() {
    let mut target = open("hdd,bad=0+100");
    for lba in 0..23 {
        let cdb = format!("85 09 0e 00 00 00 01 00 {lba:02x} 00 00 00 00 40 24 00");
        assert_eq!(send(&mut target, &cdb, &[], 512).status, 2);
    }
    // A command that is not there leaves nothing behind.
    send(
        &mut target,
        "85 06 00 00 00 00 00 00 00 00 00 00 00 40 0a 00",
        &[],
        0,
    );
    let log = fetch(&mut target, SUMMARY, 512);
    assert_eq!((log[1], word(&log, 226)), (3, 23), "23 is the third of five");
    let lbas = |log: &[u8]| -> Vec<u8> {
        log.chunks(512)
            .flat_map(|s| (0..5).map(|n| s[2 + 90 * n + 63]).collect::<Vec<_>>())
            .collect()
    };
    assert_eq!(lbas(&log), [20, 21, 22, 18, 19]);
    let log = fetch(&mut target, COMPREHENSIVE, 2048);
    assert_eq!((log[1], word(&log, 226)), (3, 23));
    assert_eq!(
        lbas(&log),
        [
            20, 21, 22, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
        ]
    );
    let log = fetch(&mut target, EXTENDED, 2048);
    assert_eq!(word(&log, 1), 7, "the seventh of sixteen");
    let second = &log[512 + 4 + 2 * 124..];
    assert_eq!(second[90 + 4], 22);
}

#[test]
fn a_self_test_stops_at_the_bad_sector() {
    // Half of the way through.
    let mut target = open("hdd,bad=1953514584+8");
    send(&mut target, SHORT_TEST, &[], 0);
    target.clock().advance(Duration::from_secs(130));
    assert_eq!(
        fetch(&mut target, READ_DATA, 512)[363],
        0,
        "it does not get there"
    );
    send(&mut target, LONG_TEST, &[], 0);
    target.clock().advance(Duration::from_secs(150 * 60));
    assert_eq!(fetch(&mut target, READ_DATA, 512)[363], 0xf6);
    target.clock().advance(Duration::from_secs(6 * 60));
    assert_eq!(
        fetch(&mut target, READ_DATA, 512)[363],
        0x75,
        "read failure, half left"
    );
    let log = fetch(&mut target, SELF_TEST_LOG, 512);
    assert_eq!(log[508], 2);
    assert_eq!(log[26..28], [2, 0x75]);
    // 1953514584 = 74704458h.
    assert_eq!(log[31..35], [0x58, 0x44, 0x70, 0x74]);
    assert_eq!(log[7..11], [0xff; 4], "no sector to name");
    let long = fetch(
        &mut target,
        "85 09 0e 00 00 00 01 00 07 00 00 00 00 40 2f 00",
        512,
    );
    assert_eq!((word(&long, 1), long[30], long[31]), (2, 2, 0x75));
    assert_eq!(long[35..41], [0x58, 0x44, 0x70, 0x74, 0, 0]);
    // In captive mode the command lasts as long, and fails.
    let captive = "85 06 20 00 d4 00 00 00 81 00 4f 00 c2 00 b0 00";
    let mut target = open("hdd,bad=0+1");
    let got = send(&mut target, captive, &[], 0);
    assert_eq!((got.sense[11], got.sense[17], got.sense[19]), (0x04, 0xf4, 0x2c));
    assert_eq!(fetch(&mut target, SELF_TEST_LOG, 512)[2..4], [0x81, 0x79]);
}

#[test]
fn what_ends_a_self_test_is_told() {
    for (cdb, status) in [
        // STANDBY IMMEDIATE, SMART EXECUTE OFF-LINE abort, and a hard reset by the bridge.
        ("85 06 00 00 00 00 00 00 00 00 00 00 00 40 e0 00", 0x15),
        ("85 06 00 00 d4 00 00 00 7f 00 4f 00 c2 00 b0 00", 0x15),
        ("85 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", 0x25),
    ] {
        let mut target = open("hdd");
        send(&mut target, LONG_TEST, &[], 0);
        target.clock().advance(Duration::from_secs(155 * 60));
        assert_eq!(send(&mut target, cdb, &[], 0).status, 0);
        assert_eq!(fetch(&mut target, READ_DATA, 512)[363], status, "{cdb}");
    }
    // Reading does not end it.
    let mut target = open("hdd");
    send(&mut target, LONG_TEST, &[], 0);
    fetch(&mut target, "28 00 00 00 00 00 00 00 01 00", 512);
    assert_eq!(fetch(&mut target, READ_DATA, 512)[363] >> 4, 0xf);
}

#[test]
fn a_selective_test_reads_its_spans() {
    let mut target = open("hdd,bad=1500+1");
    let write = "a1 0a 06 d6 01 09 4f c2 00 b0 00 00";
    assert_eq!(send(&mut target, SELECTIVE_TEST, &[], 0).status, 2, "no span");
    let mut log = fetch(&mut target, SELECTIVE_LOG, 512);
    let mut span = |n: usize, first: u64, last: u64| {
        log[2 + 16 * n..10 + 16 * n].copy_from_slice(&first.to_le_bytes());
        log[10 + 16 * n..18 + 16 * n].copy_from_slice(&last.to_le_bytes());
    };
    span(0, 100, 199);
    span(1, 1000, 1999);
    assert_eq!(send(&mut target, write, &log, 0).status, 2, "the sum is wrong");
    let total = log[..511].iter().fold(0u8, |s, b| s.wrapping_add(*b));
    log[511] = 0u8.wrapping_sub(total);
    assert_eq!(send(&mut target, write, &log, 0).status, 0);
    assert_eq!(fetch(&mut target, SELECTIVE_LOG, 512), log);
    assert_eq!(send(&mut target, SELECTIVE_TEST, &[], 0).status, 0);
    target.clock().advance(Duration::from_secs(60));
    let done = fetch(&mut target, SELF_TEST_LOG, 512);
    assert_eq!((done[508], done[2], done[3] >> 4), (1, 4, 7));
    assert_eq!(done[7..11], 1500u32.to_le_bytes());
}

#[test]
fn host_logs_keep_what_the_host_writes() {
    let mut target = open("ssd");
    let page: Vec<u8> = (0..1024u32).map(|i| (i % 253) as u8).collect();
    // WRITE LOG EXT to 80h, pages 3 and 4; SMART READ LOG brings the same.
    let write = "85 0b 06 00 00 00 02 00 80 00 03 00 00 40 3f 00";
    assert_eq!(send(&mut target, write, &page, 0).status, 0);
    target.power_cycle();
    let all = fetch(&mut target, "a1 08 0e d5 10 80 4f c2 00 b0 00 00", 8192);
    assert_eq!(all[3 * 512..5 * 512], page);
    assert!(all[..3 * 512].iter().all(|b| *b == 0));
    let write = "a1 0a 06 d6 01 9f 4f c2 00 b0 00 00";
    assert_eq!(send(&mut target, write, &page[..512], 0).status, 0);
    let read = "85 09 0e 00 00 00 01 00 9f 00 00 00 00 40 2f 00";
    assert_eq!(fetch(&mut target, read, 512), page[..512]);
    // Behind the last page, and a log that is not the host's.
    let beyond = "85 0b 06 00 00 00 02 00 80 00 0f 00 00 40 3f 00";
    assert_eq!(send(&mut target, beyond, &page, 0).status, 2);
    let other = "85 0b 06 00 00 00 01 00 04 00 00 00 00 40 3f 00";
    assert_eq!(send(&mut target, other, &page[..512], 0).status, 2);
}

#[test]
fn the_identify_log_lists_its_pages_and_agrees_with_identify() {
    let mut target = open("hdd-4kn");
    let page = |target: &mut Target, n: u8| {
        let cdb = format!("85 09 0e 00 00 00 01 00 30 00 {n:02x} 00 00 40 2f 00");
        fetch(target, &cdb, 512)
    };
    assert_eq!(
        page(&mut target, 0)[..17],
        bytes("01 00 00 00 00 00 00 00 08 00 01 02 03 04 05 06 08")
    );
    let identify = page(&mut target, 1);
    let capacity = page(&mut target, 2);
    assert_eq!(capacity[..8], bytes("01 00 02 00 00 00 00 80"));
    assert_eq!(capacity[8..14], identify[200..206]);
    assert_eq!(capacity[24..28], identify[234..238], "words per sector");
    let strings = page(&mut target, 5);
    assert_eq!(strings[8..28], identify[20..40]);
    assert_eq!(strings[48..88], identify[54..94]);
    assert_eq!(page(&mut target, 7), vec![0; 512]);
}

#[test]
fn recovery_timers_have_a_value_for_power_on() {
    let mut target = open("hdd");
    let write = "a1 0a 26 d6 01 e0 4f c2 00 b0 00 00";
    let sct = |target: &mut Target, words: [u16; 5]| {
        let mut block = vec![0; 512];
        for (n, value) in words.iter().enumerate() {
            block[2 * n..2 * n + 2].copy_from_slice(&value.to_le_bytes());
        }
        let got = send(target, write, &block, 0);
        let status = fetch(target, SCT_STATUS, 512);
        (got.sense[13], got.sense[11], word(&status, 7))
    };
    assert_eq!(sct(&mut target, [3, 1, 1, 30, 0]), (0, 0, 0));
    assert_eq!(sct(&mut target, [3, 2, 1, 0, 0]), (30, 0, 0));
    assert_eq!(
        sct(&mut target, [3, 1, 1, 4, 0]).2,
        6,
        "shorter than the shortest"
    );
    assert_eq!(sct(&mut target, [3, 1, 2, 4, 0]).2, 7);
    assert_eq!(sct(&mut target, [3, 9, 1, 0, 0]).2, 4);
    assert_eq!(sct(&mut target, [3, 2, 3, 0, 0]).2, 5);
    assert_eq!(sct(&mut target, [3, 3, 2, 90, 0]), (0, 0, 0));
    target.power_cycle();
    assert_eq!(sct(&mut target, [3, 2, 1, 0, 0]).0, 70);
    assert_eq!(sct(&mut target, [3, 2, 2, 0, 0]).0, 90);
    // The interval, once for good and once not; the option flags can be read.
    sct(&mut target, [4, 1, 3, 5, 1]);
    assert_eq!(sct(&mut target, [4, 3, 3, 0, 0]).0, 1);
    sct(&mut target, [4, 1, 3, 9, 0]);
    target.power_cycle();
    assert_eq!(sct(&mut target, [4, 2, 3, 0, 0]).0, 5);
    assert_eq!(sct(&mut target, [4, 1, 3, 5, 2]).2, 0x0f);
    // Feature control of the write cache goes before SET FEATURES.
    sct(&mut target, [4, 1, 1, 3, 0]);
    assert_eq!(word(&fetch(&mut target, IDENTIFY_12, 512), 85) & 0x20, 0);
}
