//! Logs, SCT tables, statistics, self-tests and what time does to a drive.

use super::*;

/// READ LOG EXT of one page.
fn gpl(target: &mut Target, log: u8, page: u8) -> Got {
    let cdb = format!("85 09 0e 00 00 00 01 00 {log:02x} 00 {page:02x} 00 00 40 2f 00");
    send(target, &cdb, &[], 512)
}

fn qword(page: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(page[offset..offset + 8].try_into().unwrap())
}

#[test]
fn directories_tell_what_can_be_read() {
    for profile in ["ssd", "hdd", "mushkin-ventura-ultra-120gb"] {
        let mut target = open(profile);
        let directory = gpl(&mut target, 0, 0).data;
        assert_eq!(word(&directory, 0), 1);
        for log in 1..=255u8 {
            let pages = word(&directory, usize::from(log));
            if log == 0xe1 {
                continue;
            }
            let last = pages.saturating_sub(1) as u8;
            assert_eq!(
                gpl(&mut target, log, last).status == 0,
                pages > 0,
                "log {log:02x}"
            );
            assert_eq!(
                gpl(&mut target, log, pages as u8).status,
                2,
                "log {log:02x} page {pages}"
            );
        }
        assert_eq!(word(&directory, 4), 8);
        let smart = fetch(&mut target, "a1 08 0e d5 01 00 4f c2 00 b0 00 00", 512);
        for (log, sectors) in [(1, 1), (4, 8), (6, 1), (0xe0, 1), (0xe1, 1)] {
            assert_eq!(word(&smart, log), sectors);
        }
        for log in ["01", "06", "09"] {
            let data = fetch(
                &mut target,
                &format!("a1 08 0e d5 01 {log} 4f c2 00 b0 00 00"),
                512,
            );
            assert_eq!(sum(&data), 0, "{log}");
        }
        for log in [0x03, 0x07, 0x10, 0x11] {
            assert_eq!(sum(&gpl(&mut target, log, 0).data), 0, "{log:02x}");
        }
        assert_eq!(
            gpl(&mut target, 0x30, 1).data,
            fetch(&mut target, IDENTIFY_12, 512)
        );
    }
    // Two pages at once, the second one statistics page 1.
    let got = send(
        &mut open("ssd"),
        "85 09 0e 00 00 00 02 00 04 00 00 00 00 40 2f 00",
        &[],
        1024,
    );
    assert_eq!((got.data.len(), got.data[514]), (1024, 1));
    // The upper page number travels in the upper LBA mid: page 0100h is not there.
    let got = send(
        &mut open("ssd"),
        "85 09 0e 00 00 00 01 00 04 01 00 00 00 40 2f 00",
        &[],
        512,
    );
    assert_eq!(got.status, 2);
}

#[test]
fn statistics_are_valid_where_they_say_so() {
    let mut target = open("ssd,temp=38,health=worn");
    let list = gpl(&mut target, 4, 0).data;
    assert_eq!(&list[8..15], [6, 0, 1, 4, 5, 6, 7]);
    let general = gpl(&mut target, 4, 1).data;
    assert_eq!((general[0], general[2]), (1, 1));
    assert_eq!(qword(&general, 8), 0xc000_0000_0000_019c);
    assert_eq!(qword(&general, 16), 0xc000_0000_0000_106b);
    let temperature = gpl(&mut target, 4, 5).data;
    assert_eq!(qword(&temperature, 8), 0xc000_0000_0000_0026);
    assert_eq!(
        qword(&temperature, 16),
        0x8000_0000_0000_0000,
        "supported, but no value"
    );
    let wear = gpl(&mut target, 4, 7).data;
    assert_eq!(qword(&wear, 8), 0xc000_0000_0000_0070, "112 % used");
    assert_eq!(gpl(&mut target, 4, 3).data, vec![0; 512], "no rotating media");
    let mut cold = open("hdd,temp=-9");
    assert_eq!(qword(&gpl(&mut cold, 4, 5).data, 8), 0xc000_0000_0000_00f7);
    // The same page through SMART READ LOG needs all pages up to it.
    let all = fetch(&mut cold, "a1 08 0e d5 08 04 4f c2 00 b0 00 00", 4096);
    assert_eq!(qword(&all, 5 * 512 + 8), 0xc000_0000_0000_00f7);
}

#[test]
fn the_history_fills_with_time() {
    let table = {
        let mut block = vec![0; 512];
        block[..6].copy_from_slice(&[5, 0, 1, 0, 2, 0]);
        block
    };
    let write = "a1 0a 06 d6 01 e0 4f c2 00 b0 00 00";
    let read = "a1 08 0e d5 01 e1 4f c2 00 b0 00 00";
    let mut target = open("mushkin-ventura-ultra-120gb");
    let got = send(&mut target, read, &[], 512);
    assert_eq!(got.status, 2, "no table was asked for");
    assert_eq!(&fetch(&mut target, SCT_STATUS, 512)[14..16], [0x0b, 0x00]);
    target.clock().advance(Duration::from_secs(190));
    assert_eq!(send(&mut target, write, &table, 0).status, 0);
    let history = fetch(&mut target, read, 512);
    assert_eq!(
        (word(&history, 0), word(&history, 1), word(&history, 2)),
        (2, 1, 1)
    );
    assert_eq!(&history[6..10], [70, 75, 0, 0xfb]);
    assert_eq!((word(&history, 15), word(&history, 16)), (478, 2));
    assert_eq!(&history[34..38], [31, 31, 31, 0x80]);
    let status = fetch(&mut target, SCT_STATUS, 512);
    assert_eq!(&status[14..20], [0, 0, 5, 0, 1, 0]);
    // A year of rest fills the ring.
    target.clock().advance(Duration::from_secs(365 * 86_400));
    send(&mut target, write, &table, 0);
    let history = fetch(&mut target, read, 512);
    assert!(history[34..].iter().all(|t| *t == 31), "full and at rest");
    // An unknown table.
    let mut wrong = table.clone();
    wrong[4] = 9;
    assert_eq!(send(&mut target, write, &wrong, 0).status, 2);
    assert_eq!(&fetch(&mut target, SCT_STATUS, 512)[14..16], [0x11, 0]);
}

#[test]
fn the_interval_is_set_and_returned_in_registers() {
    let mut target = open("hdd");
    let mut block = vec![0; 512];
    block[..10].copy_from_slice(&[4, 0, 1, 0, 3, 0, 5, 0, 0, 0]);
    let write = "a1 0a 26 d6 01 e0 4f c2 00 b0 00 00";
    assert_eq!(send(&mut target, write, &block, 0).sense[3], 0x1d);
    block[2] = 2;
    let got = send(&mut target, write, &block, 0);
    assert_eq!((got.sense[13], got.sense[15]), (5, 0), "count and LBA low");
    // Error recovery: 7 s read timer, in tenths of a second.
    block[..8].copy_from_slice(&[3, 0, 2, 0, 1, 0, 0, 0]);
    let got = send(&mut target, write, &block, 0);
    assert_eq!((got.sense[13], got.sense[15]), (70, 0));
    // The SandForce drive has no feature control.
    let mut target = open("mushkin-ventura-ultra-120gb");
    block[..10].copy_from_slice(&[4, 0, 2, 0, 3, 0, 0, 0, 0, 0]);
    assert_eq!(send(&mut target, write, &block, 0).sense[11], 0x04);
}

#[test]
fn self_tests_run_in_the_background_and_are_remembered() {
    let mut target = open("hdd");
    let short = "85 06 00 00 d4 00 00 00 01 00 4f 00 c2 00 b0 00";
    assert_eq!(send(&mut target, short, &[], 0).status, 0);
    target.clock().advance(Duration::from_secs(60));
    let data = fetch(&mut target, READ_DATA, 512);
    assert_eq!(data[363] >> 4, 0xf);
    assert_eq!(data[363] & 0xf, 5, "half of the two minutes is left");
    assert_eq!(fetch(&mut target, SCT_STATUS, 512)[10], 3);
    target.clock().advance(Duration::from_secs(61));
    assert_eq!(fetch(&mut target, READ_DATA, 512)[363], 0);
    let log = fetch(&mut target, "a1 08 0e d5 01 06 4f c2 00 b0 00 00", 512);
    assert_eq!((&log[2..4], log[508]), (&[1, 0][..], 1));
    // 722580 minutes.
    assert_eq!(word(&log, 2), 12043);
    send(&mut target, short, &[], 0);
    send(
        &mut target,
        "85 06 00 00 d4 00 00 00 7f 00 4f 00 c2 00 b0 00",
        &[],
        0,
    );
    let log = fetch(&mut target, "a1 08 0e d5 01 06 4f c2 00 b0 00 00", 512);
    assert_eq!(
        (log[27], log[508]),
        (0x19, 2),
        "aborted by the host with nine tenths left"
    );
}

#[test]
fn a_disk_left_alone_goes_to_standby_and_cools() {
    let mut target = open("hdd");
    assert_eq!(fetch(&mut target, SCT_STATUS, 512)[200], 36);
    target.clock().advance(Duration::from_secs(1195));
    assert_eq!(send(&mut target, CHECK_POWER, &[], 0).sense[13], 0xff);
    target.clock().advance(Duration::from_secs(10));
    assert_eq!(send(&mut target, CHECK_POWER, &[], 0).sense[13], 0x00);
    target.clock().advance(Duration::from_secs(7200));
    assert_eq!(fetch(&mut target, SCT_STATUS, 512)[200], 27);
    assert_eq!(target.wakes(), 0);
    fetch(&mut target, "28 00 00 00 00 00 00 00 01 00", 512);
    assert_eq!(target.wakes(), 1);
    // STANDBY with a timer of 5 s, a read, then 6 s of rest.
    send(
        &mut target,
        "85 06 00 00 00 00 01 00 00 00 00 00 00 40 e2 00",
        &[],
        0,
    );
    fetch(&mut target, "28 00 00 00 00 00 00 00 01 00", 512);
    assert_eq!(target.power_state(), "active");
    target.clock().advance(Duration::from_secs(6));
    assert_eq!(send(&mut target, CHECK_POWER, &[], 0).sense[13], 0x00);
    // SLEEP: the bridge has to reset the drive before it hears anything.
    let mut target = open("hdd,power=sleep");
    assert_eq!(target.power_state(), "sleep");
    assert_eq!(send(&mut target, CHECK_POWER, &[], 0).sense[13], 0x00);
    assert_eq!((target.wakes(), target.power_state()), (0, "standby"));
}

#[test]
fn hours_and_counters_go_with_the_clock_and_the_data() {
    let mut target = open("ssd");
    let hours = |data: &[u8]| u32::from_le_bytes(attribute(data, 9)[5..9].try_into().unwrap());
    let before = hours(&fetch(&mut target, READ_DATA, 512));
    target.clock().advance(Duration::from_secs(3 * 3600));
    let data = fetch(&mut target, READ_DATA, 512);
    assert_eq!(hours(&data) - before, 3);
    let written = qword(&gpl(&mut target, 4, 1).data, 24) & 0xffff_ffff_ffff;
    send(&mut target, "2a 00 00 00 00 00 00 00 10 00", &[1; 8192], 0);
    let after = qword(&gpl(&mut target, 4, 1).data, 24) & 0xffff_ffff_ffff;
    assert_eq!(after - written, 16);
}

#[test]
fn a_long_write_through_the_bridge_heats_and_throttles() {
    let mut target = open("mushkin-ventura-ultra-120gb,payload=drop");
    let block = vec![0xa5; 1 << 20];
    let mut rates = Vec::new();
    for step in 0..40 {
        let start = target.clock().now();
        for n in 0..1000u32 {
            let [a, b, c, d] = ((step * 1000 + n) * 2048).to_be_bytes();
            let cdb = [0x2a, 0, a, b, c, d, 0, 0x08, 0x00, 0];
            let reply = target.command(&cdb, &block, 0, Duration::from_secs(30));
            assert!(matches!(reply, Reply::Answered { status: 0, .. }));
        }
        let seconds = (target.clock().now() - start).as_secs_f64();
        rates.push(1048.576 / seconds);
    }
    let sct = fetch(&mut target, SCT_STATUS, 512);
    assert!((44..50).contains(&sct[200]), "{}", sct[200]);
    assert!(sct[202] >= 45);
    assert!((93.0..105.0).contains(&rates[0]), "{rates:?}");
    assert!((74.0..85.0).contains(&rates[39]), "{rates:?}");
    // The same run again is the same to the nanosecond.
    let end = target.clock().now();
    let mut again = open("mushkin-ventura-ultra-120gb,payload=drop");
    let mut first = open("mushkin-ventura-ultra-120gb,payload=drop,seed=7");
    for target in [&mut again, &mut first] {
        for n in 0..40_000u32 {
            let [a, b, c, d] = (n * 2048).to_be_bytes();
            let _ = target.command(
                &[0x2a, 0, a, b, c, d, 0, 0x08, 0x00, 0],
                &block,
                0,
                Duration::from_secs(30),
            );
        }
        fetch(target, SCT_STATUS, 512);
    }
    assert_eq!(again.clock().now(), end);
    assert_ne!(first.clock().now(), end, "another seed, another run");
}

#[test]
fn native_maximum_is_told_in_both_widths() {
    let mut target = open("hdd");
    let got = send(
        &mut target,
        "85 07 20 00 00 00 00 00 00 00 00 00 00 40 27 00",
        &[],
        0,
    );
    // 3907029167 = E8E088AFh.
    assert_eq!(
        got.sense,
        bytes("72 01 00 1d 00 00 00 0e 09 0c 01 00 00 00 e8 af 00 88 00 e0 40 50")
    );
    let got = send(
        &mut open("hdd,sense=fixed"),
        "85 07 20 00 00 00 00 00 00 00 00 00 00 40 27 00",
        &[],
        0,
    );
    assert_eq!(
        got.sense,
        bytes("f0 00 01 00 50 40 00 0a a0 af 88 e0 00 1d 00 00 00 00")
    );
    let got = send(
        &mut target,
        "85 06 20 00 00 00 00 00 00 00 00 00 00 40 f8 00",
        &[],
        0,
    );
    assert_eq!(
        (got.sense[15], got.sense[17], got.sense[19], got.sense[20]),
        (0xfe, 0xff, 0xff, 0x4f)
    );
}
