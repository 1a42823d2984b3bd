//! ATA sectors and registers through ATA PASS-THROUGH.

use super::*;

#[test]
fn identify_is_sealed_and_says_what_the_profile_says() {
    for profile in ["mushkin-ventura-ultra-120gb", "ssd", "hdd", "hdd-4kn"] {
        let mut target = open(profile);
        let page = fetch(&mut target, IDENTIFY_12, 512);
        assert_eq!(page.len(), 512);
        assert_eq!(page[510], 0xa5);
        assert_eq!(sum(&page), 0, "{profile}");
        assert_eq!(fetch(&mut target, IDENTIFY_16, 512), page);
        for n in [83, 84, 87, 106, 119, 120, 209] {
            assert_eq!(word(&page, n) >> 14, 1, "{profile} word {n}");
        }
        assert_eq!(word(&page, 0) & 0x8000, 0);
    }
    let mut target = open("hdd,serial=WD-TEST1");
    let page = fetch(&mut target, IDENTIFY_12, 512);
    // "WD-TEST1" with the characters of each word swapped, then blanks.
    assert_eq!(&page[20..30], b"DWT-SE1T  ");
    assert_eq!(&page[54..62], b"IS MDH D");
    assert_eq!(word(&page, 60), 0xffff);
    assert_eq!(word(&page, 61), 0x0fff);
    // 3907029168 = E8E088B0h.
    assert_eq!(
        [word(&page, 100), word(&page, 101), word(&page, 102)],
        [0x88b0, 0xe8e0, 0]
    );
    assert_eq!(word(&page, 106), 0x6003);
    assert_eq!(word(&page, 217), 5400);
    let page = fetch(&mut open("mushkin-ventura-ultra-120gb"), IDENTIFY_12, 512);
    assert_eq!(word(&page, 217), 1);
    assert_eq!(word(&page, 169) & 1, 1);
    assert_eq!(word(&page, 105), 1);
    assert_eq!(word(&page, 69), 0x4000, "deterministic, but not zeros");
    let page = fetch(&mut open("hdd-4kn"), IDENTIFY_12, 512);
    assert_eq!(word(&page, 106), 0x5000);
    assert_eq!([word(&page, 117), word(&page, 118)], [2048, 0]);
}

#[test]
fn smart_data_and_thresholds_are_sealed_and_the_temperature_is_packed() {
    let mut target = open("ssd,temp=41");
    let data = fetch(&mut target, READ_DATA, 512);
    assert_eq!(sum(&data), 0);
    let temperature = attribute(&data, 194);
    assert_eq!(temperature[3], 59);
    assert_eq!(&temperature[5..], [41, 0, 41, 41, 0, 0, 0]);
    // 252180 minutes.
    assert_eq!(&attribute(&data, 9)[5..9], 4203u32.to_le_bytes());
    let thresholds = fetch(&mut target, THRESHOLDS, 512);
    assert_eq!(sum(&thresholds), 0);
    assert_eq!(&thresholds[2..4], [5, 10]);
    let mut target = open("mushkin-ventura-ultra-120gb,temp=-3");
    let data = fetch(&mut target, READ_DATA, 512);
    assert_eq!(
        &attribute(&data, 194)[5..],
        [0xfd, 0xff, 0xfd, 0xff, 0xfd, 0xff, 0]
    );
}

#[test]
fn return_status_tells_good_from_failing_in_both_sense_formats() {
    let got = send(&mut open("ssd"), RETURN_STATUS, &[], 0);
    assert_eq!(got.status, 2);
    assert_eq!(
        got.sense,
        bytes("72 01 00 1d 00 00 00 0e 09 0c 00 00 00 00 00 00 00 4f 00 c2 00 50")
    );
    let got = send(&mut open("ssd,health=failing,sense=fixed"), RETURN_STATUS, &[], 0);
    assert_eq!(
        got.sense,
        bytes("f0 00 01 00 50 00 00 0a 00 00 f4 2c 00 1d 00 00 00 00")
    );
    let mut target = open("ssd,health=failing");
    let got = send(&mut target, RETURN_STATUS, &[], 0);
    assert_eq!((got.sense[17], got.sense[19]), (0xf4, 0x2c));
    let data = fetch(&mut target, READ_DATA, 512);
    let thresholds = fetch(&mut target, THRESHOLDS, 512);
    let failing = attribute(&data, 5)[3];
    assert!(failing <= thresholds[3] && failing > 0, "{failing}");
    let sct = fetch(&mut target, SCT_STATUS, 512);
    assert_eq!(&sct[214..216], [0xf4, 0x2c]);
}

#[test]
fn sct_status_has_the_temperature() {
    let sct = fetch(&mut open("hdd,temp=-7"), SCT_STATUS, 512);
    assert_eq!(&sct[0..2], [3, 0]);
    assert_eq!(sct[10], 0);
    assert_eq!(sct[200], 0xf9);
    let sct = fetch(&mut open("mushkin-ventura-ultra-120gb"), SCT_STATUS, 512);
    // 22 °C + 0.6 W through 14.8 K/W.
    assert_eq!(sct[200], 31);
    let sct = fetch(&mut open("hdd,power=standby"), SCT_STATUS, 512);
    assert_eq!(sct[10], 1);
    // 25 °C + 0.4 W through 4 K/W.
    assert_eq!(sct[200], 27);
}

#[test]
fn check_power_mode_never_wakes_and_read_data_does() {
    let mut target = open("hdd,power=standby");
    for _ in 0..3 {
        let got = send(&mut target, CHECK_POWER, &[], 0);
        assert_eq!(got.sense[13], 0x00);
    }
    fetch(&mut target, IDENTIFY_12, 512);
    fetch(&mut target, SCT_STATUS, 512);
    assert_eq!((target.wakes(), target.power_state()), (0, "standby"));
    let before = target.clock().now();
    fetch(&mut target, READ_DATA, 512);
    assert!(
        target.clock().now() - before >= Duration::from_secs(5),
        "spinning up takes time"
    );
    assert_eq!((target.wakes(), target.power_state()), (1, "active"));
    let got = send(&mut target, CHECK_POWER, &[], 0);
    assert_eq!(got.sense[13], 0xff);
    let got = send(&mut open("hdd,power=idle"), CHECK_POWER, &[], 0);
    assert_eq!(got.sense[13], 0x80);
}

/// What a row of the table must come to.
enum Row {
    /// GOOD with this many bytes.
    In(usize),
    /// GOOD without data.
    Done,
    /// Registers on success: count and LBA.
    Registers(u16, u64),
    /// ABRT by the drive, seen in the registers.
    Aborted,
}

#[test]
fn the_commands_that_hosts_send_come_to_what_they_should() {
    let rows = [
        (IDENTIFY_12, Row::In(512)),
        (IDENTIFY_16, Row::In(512)),
        (READ_DATA, Row::In(512)),
        (THRESHOLDS, Row::In(512)),
        ("a1 08 0e d1 01 00 4f c2 00 b0 00 00", Row::In(512)),
        (SCT_STATUS, Row::In(512)),
        (RETURN_STATUS, Row::Registers(0, 0xc2_4f00)),
        ("85 06 00 00 d8 00 00 00 00 00 4f 00 c2 00 b0 00", Row::Done),
        ("85 06 00 00 d2 00 f1 00 00 00 4f 00 c2 00 b0 00", Row::Done),
        ("85 06 00 00 d3 00 00 00 00 00 4f 00 c2 00 b0 00", Row::Done),
        ("85 06 00 00 db 00 f8 00 00 00 4f 00 c2 00 b0 00", Row::Done),
        ("85 06 00 00 db 00 17 00 00 00 4f 00 c2 00 b0 00", Row::Aborted),
        ("85 06 00 00 d4 00 00 00 01 00 4f 00 c2 00 b0 00", Row::Done),
        (CHECK_POWER, Row::Registers(0xff, 0)),
        ("85 09 0e 00 00 00 01 00 04 00 05 00 00 40 2f 00", Row::In(512)),
        ("85 09 0e 00 00 00 01 00 e0 00 00 00 00 40 2f 00", Row::In(512)),
        ("85 0d 0e 00 00 00 01 00 e0 00 00 00 00 40 47 00", Row::In(512)),
        (
            "85 07 20 00 00 00 00 00 00 00 00 00 00 40 27 00",
            Row::Registers(0, 937_703_087),
        ),
        // HPA changes, AMAC, DCO, SANITIZE: not there, so the drive aborts.
        ("85 07 20 00 00 00 00 34 9a 12 78 00 56 40 37 00", Row::Aborted),
        ("85 07 20 00 00 00 00 00 00 00 00 00 00 40 78 00", Row::Aborted),
        ("85 08 0e 00 c2 00 01 00 00 00 00 00 00 40 b1 00", Row::Aborted),
        ("85 07 20 00 00 00 00 00 00 00 00 00 00 40 b4 00", Row::Aborted),
        // READ SECTORS, 28-bit, two sectors; READ DMA; READ VERIFY; FLUSH CACHE EXT.
        ("a1 08 0e 00 02 00 00 00 40 20 00 00", Row::In(1024)),
        ("a1 0c 0e 00 01 00 00 00 40 c8 00 00", Row::In(512)),
        ("a1 06 00 00 01 00 00 00 40 40 00 00", Row::Done),
        ("85 07 00 00 00 00 00 00 00 00 00 00 00 40 ea 00", Row::Done),
        // IDENTIFY as DMA and without data: the drive and the bridge do not meet.
        ("a1 0c 0e 00 01 00 00 00 00 ec 00 00", Row::Aborted),
    ];
    for (cdb, row) in rows {
        // A fresh drive each time.
        let mut target = open("ssd");
        let in_len = if bytes(cdb)[2] & 3 == 0 { 0 } else { 4096 };
        let got = send(&mut target, cdb, &[], in_len);
        match row {
            Row::In(len) => assert_eq!((got.status, got.data.len()), (0, len), "{cdb}"),
            Row::Done => assert_eq!((got.status, got.data.len()), (0, 0), "{cdb}"),
            Row::Registers(count, lba) => {
                let s = &got.sense;
                assert_eq!((got.status, s[1], s[3], s[21]), (2, 1, 0x1d, 0x50), "{cdb}");
                assert_eq!(u16::from_be_bytes([s[12], s[13]]), count, "{cdb}");
                let read = u64::from_be_bytes([0, 0, s[18], s[16], s[14], s[19], s[17], s[15]]);
                assert_eq!(read, lba, "{cdb}");
            }
            Row::Aborted => {
                let s = &got.sense;
                assert_eq!((got.status, s[1], s[11], s[21]), (2, 0x0b, 0x04, 0x51), "{cdb}");
            }
        }
    }
}

#[test]
fn a_48_bit_address_travels_interleaved() {
    // WRITE SECTORS EXT to LBA 00E8E088AFh: the last sector of the disk.
    let mut target = open("hdd");
    let got = send(
        &mut target,
        "85 0b 06 00 00 00 01 e8 af 00 88 00 e0 40 34 00",
        &[0x77; 512],
        0,
    );
    assert_eq!(got.status, 0);
    let data = fetch(&mut target, "28 00 e8 e0 88 af 00 00 01 00", 512);
    assert_eq!(data, vec![0x77; 512]);
    // Without EXTEND the upper bytes mean nothing: WRITE SECTORS to E088AFh with device bits 3:0 = 8.
    let got = send(
        &mut target,
        "85 0a 06 00 00 00 01 e8 af 00 88 00 e0 48 30 00",
        &[0x33; 512],
        0,
    );
    assert_eq!(got.status, 0);
    let data = fetch(&mut target, "28 00 08 e0 88 af 00 00 01 00", 512);
    assert_eq!(data, vec![0x33; 512]);
}
