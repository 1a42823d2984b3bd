//! The SCSI side: INQUIRY, pages, capacity, block commands, power.

use super::*;

#[test]
fn inquiry_and_pages_are_as_the_profile_says() {
    let mut target = open("ssd");
    let data = fetch(&mut target, "12 00 00 00 60 00", 96);
    assert_eq!(data.len(), 36);
    assert_eq!(&data[..8], [0, 0, 6, 2, 31, 0, 0, 0]);
    assert_eq!(&data[8..36], b"ASMT    2115            0   ");
    assert_eq!(fetch(&mut target, "12 00 00 00 05 00", 96).len(), 5);
    let pages = fetch(&mut target, "12 01 00 00 ff 00", 255);
    assert_eq!(pages, [0, 0, 0, 7, 0, 0x80, 0x83, 0x89, 0xb0, 0xb1, 0xb2]);
    let serial = fetch(&mut target, "12 01 80 00 ff 00", 255);
    assert_eq!(&serial[..4], [0, 0x80, 0, 16]);
    assert_eq!(&serial[4..], b"SIMSSD0000480001");
    let names = fetch(&mut target, "12 01 83 00 ff 00", 255);
    assert_eq!(&names[4..16], [1, 3, 0, 8, 0x50, 0, 0, 0, 0, 4, 0x80, 0x01]);
    let ata = fetch(&mut target, "12 01 89 02 3c 00", 572);
    assert_eq!(ata.len(), 572);
    assert_eq!(&ata[..4], [0, 0x89, 0x02, 0x38]);
    assert_eq!((ata[36], ata[56]), (0x34, 0xec));
    assert_eq!(&ata[60..], fetch(&mut target, IDENTIFY_12, 512));
    let limits = fetch(&mut target, "12 01 b0 00 ff 00", 255);
    assert_eq!(limits.len(), 64);
    assert_eq!(
        &limits[20..28],
        [0x01, 0xff, 0xfe, 0x00, 0, 0, 0, 1],
        "8 blocks of 64 ranges of 65535"
    );
    let rotation = fetch(&mut target, "12 01 b1 00 ff 00", 255);
    assert_eq!((&rotation[4..6], rotation[7]), (&[0, 1][..], 3));
    let provisioning = fetch(&mut target, "12 01 b2 00 ff 00", 255);
    assert_eq!(provisioning, [0, 0xb2, 0, 4, 0, 0xc4, 2, 0]);
    let got = send(&mut target, "12 01 c0 00 ff 00", &[], 255);
    assert_eq!(code(&got), (5, 0x24, 0));
    assert_eq!(&got.sense[15..18], [0xc0, 0, 2], "points at the page code");
    let got = send(&mut open("stick"), "12 01 00 00 ff 00", &[], 255);
    assert_eq!(code(&got), (5, 0x24, 0));
}

#[test]
fn capacity_is_told_in_both_forms() {
    let mut target = open("hdd");
    let short = fetch(&mut target, "25 00 00 00 00 00 00 00 00 00", 8);
    assert_eq!(short, [0xe8, 0xe0, 0x88, 0xaf, 0, 0, 2, 0]);
    let long = fetch(&mut target, "9e 10 00 00 00 00 00 00 00 00 00 00 00 20 00 00", 32);
    assert_eq!(&long[..12], [0, 0, 0, 0, 0xe8, 0xe0, 0x88, 0xaf, 0, 0, 2, 0]);
    assert_eq!((long[13], long[14]), (3, 0));
    let long = fetch(
        &mut open("ssd"),
        "9e 10 00 00 00 00 00 00 00 00 00 00 00 20 00 00",
        32,
    );
    assert_eq!(long[14], 0xc0, "trimmed blocks, and they read as zeros");
    let short = fetch(&mut open("hdd-4kn"), "25 00 00 00 00 00 00 00 00 00", 8);
    assert_eq!(&short[4..], [0, 0, 0x10, 0]);
    let facts = open("hdd-4kn").facts();
    assert_eq!(facts.size_bytes, Some(4_000_787_030_016));
    assert_eq!(facts.logical_block_bytes, Some(4096));
}

#[test]
fn what_is_written_over_scsi_is_read_over_ata() {
    let mut target = open("ssd");
    let payload: Vec<u8> = (0..1024u32).map(|i| (i * 7 % 256) as u8).collect();
    let got = send(&mut target, "2a 00 00 00 12 34 00 00 02 00", &payload, 0);
    assert_eq!(got.status, 0);
    // READ SECTORS EXT, two sectors at 1234h.
    let pio = fetch(
        &mut target,
        "85 09 0e 00 00 00 02 00 34 00 12 00 00 40 24 00",
        1024,
    );
    assert_eq!(pio, payload);
    let long = fetch(
        &mut target,
        "88 00 00 00 00 00 00 00 12 35 00 00 00 01 00 00",
        512,
    );
    assert_eq!(long, payload[512..]);
    assert_eq!(
        fetch(&mut target, "28 00 00 00 12 36 00 00 01 00", 512),
        vec![0; 512]
    );
    // One past the end: 937703088 = 37E436B0h.
    let got = send(&mut target, "28 00 37 e4 36 b0 00 00 01 00", &[], 512);
    assert_eq!(code(&got), (5, 0x21, 0));
    let got = send(&mut target, "28 00 37 e4 36 af 00 00 01 00", &[], 512);
    assert_eq!(got.data.len(), 512);
    let got = send(&mut target, "2a 00 00 00 00 00 00 00 02 00", &payload[..512], 0);
    assert_eq!(code(&got), (0x0b, 0x4b, 0), "half of the data is missing");
    for spec in ["stick", "asm1051-usb2", "hdd-4kn"] {
        let mut target = open(spec);
        let block = vec![0xa5; if spec == "hdd-4kn" { 4096 } else { 512 }];
        assert_eq!(
            send(&mut target, "2a 00 00 00 00 09 00 00 01 00", &block, 0).status,
            0
        );
        assert_eq!(
            fetch(&mut target, "28 00 00 00 00 09 00 00 01 00", block.len()),
            block
        );
    }
}

#[test]
fn trim_and_unmap_discard_what_they_name() {
    let mut target = open("ssd");
    let ones = vec![0x11; 512 * 64];
    send(&mut target, "2a 00 00 00 00 00 00 00 40 00", &ones, 0);
    let mut ranges = vec![0; 512];
    ranges[..8].copy_from_slice(&[8, 0, 0, 0, 0, 0, 4, 0]);
    ranges[8..16].copy_from_slice(&[20, 0, 0, 0, 0, 0, 1, 0]);
    let got = send(
        &mut target,
        "85 0d 06 00 01 00 01 00 00 00 00 00 00 40 06 00",
        &ranges,
        0,
    );
    assert_eq!(got.status, 0);
    let mut wanted = ones.clone();
    wanted[8 * 512..12 * 512].fill(0);
    wanted[20 * 512..21 * 512].fill(0);
    assert_eq!(
        fetch(&mut target, "28 00 00 00 00 00 00 00 40 00", 512 * 64),
        wanted
    );
    assert_eq!(target.trimmed_blocks(), 5);
    // UNMAP: one descriptor, 2 blocks at 30h.
    let list = bytes("00 16 00 10 00 00 00 00 00 00 00 00 00 00 00 30 00 00 00 02 00 00 00 00");
    assert_eq!(
        send(&mut target, "42 00 00 00 00 00 00 00 18 00", &list, 0).status,
        0
    );
    wanted[0x30 * 512..0x32 * 512].fill(0);
    assert_eq!(
        fetch(&mut target, "28 00 00 00 00 00 00 00 40 00", 512 * 64),
        wanted
    );
    // PIO out: there is no such form, the drive aborts.
    let got = send(
        &mut target,
        "85 0b 06 00 01 00 01 00 00 00 00 00 00 40 06 00",
        &ranges,
        0,
    );
    assert_eq!(
        (got.status, got.sense[1], got.sense[11], got.sense[21]),
        (2, 0x0b, 0x04, 0x51)
    );
    // Deterministic without zeros: the SandForce drive answers FFh.
    let mut target = open("mushkin-ventura-ultra-120gb");
    send(&mut target, "2a 00 00 00 00 08 00 00 04 00", &ones[..2048], 0);
    send(
        &mut target,
        "85 0d 06 00 01 00 01 00 00 00 00 00 00 40 06 00",
        &ranges,
        0,
    );
    assert_eq!(
        fetch(&mut target, "28 00 00 00 00 08 00 00 04 00", 2048),
        vec![0xff; 2048]
    );
    let got = send(&mut target, "42 00 00 00 00 00 00 00 18 00", &list, 0);
    assert_eq!(code(&got), (5, 0x20, 0), "its bridge translates no UNMAP");
}

#[test]
fn a_stopped_unit_wants_to_be_started() {
    let mut target = open("hdd");
    assert_eq!(send(&mut target, "1b 00 00 00 00 00", &[], 0).status, 0);
    assert_eq!(target.power_state(), "standby");
    // Stopping and flushing a disk at rest leaves it at rest.
    assert_eq!(send(&mut target, "1b 00 00 00 00 00", &[], 0).status, 0);
    assert_eq!(
        send(&mut target, "35 00 00 00 00 00 00 00 00 00", &[], 0).status,
        0
    );
    assert_eq!(code(&send(&mut target, "00 00 00 00 00 00", &[], 0)), (2, 4, 2));
    assert_eq!(
        code(&send(&mut target, "28 00 00 00 00 00 00 00 01 00", &[], 512)),
        (2, 4, 2)
    );
    assert_eq!(target.wakes(), 0);
    assert_eq!(send(&mut target, "1b 00 00 00 01 00", &[], 0).status, 0);
    assert_eq!((target.power_state(), target.wakes()), ("active", 1));
    assert_eq!(send(&mut target, "00 00 00 00 00 00", &[], 0).status, 0);
}

#[test]
fn request_sense_tells_of_sleep_where_the_bridge_knows() {
    let data = fetch(&mut open("hdd,power=standby"), "03 00 00 00 12 00", 18);
    assert_eq!((data[0], data[2], data[12], data[13]), (0x70, 0, 0x5e, 0));
    let data = fetch(&mut open("hdd,power=standby"), "03 01 00 00 12 00", 18);
    assert_eq!(data, [0x72, 0, 0x5e, 0, 0, 0, 0, 0]);
    let data = fetch(&mut open("hdd"), "03 00 00 00 12 00", 18);
    assert_eq!((data[2], data[12]), (0, 0));
    let data = fetch(&mut open("asm1051-usb2,power=standby"), "03 00 00 00 12 00", 18);
    assert_eq!((data[2], data[12]), (0, 0));
}

#[test]
fn the_temperature_log_page_is_there_when_the_profile_says_so() {
    let got = send(&mut open("hdd"), "4d 00 4d 00 00 00 00 00 40 00", &[], 64);
    assert_eq!(code(&got), (5, 0x20, 0));
    let page = fetch(
        &mut open("hdd,log_temperature=1,temp=44"),
        "4d 00 4d 00 00 00 00 00 40 00",
        64,
    );
    assert_eq!(page, bytes("0d 00 00 0c 00 00 03 02 00 2c 00 01 03 02 00 3c"));
}

#[test]
fn facts_hold_what_the_driver_would_have_read() {
    let facts = open("mushkin-ventura-ultra-120gb").facts();
    let usb = facts.usb.unwrap();
    assert_eq!((usb.vid, usb.pid), (0x174c, 0x55aa));
    assert_eq!(facts.driver.as_deref(), Some("uas"));
    assert_eq!(facts.block_node, None);
    assert_eq!(facts.size_bytes, Some(120_034_123_776));
    assert_eq!(facts.scsi.vendor.as_deref(), Some("Mushkin"));
    assert_eq!(facts.scsi.vpd_pages[&0x89].len(), 572);
    let facts = open("hdd").facts();
    assert_eq!(facts.driver.as_deref(), Some("usb-storage"));
    assert!(facts.scsi.vpd_pages.is_empty());
    assert_eq!(facts.scsi.inquiry.unwrap().len(), 36);
}
