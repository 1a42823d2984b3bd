//! Capacity limits, resets and power cycles.

use super::*;

const NATIVE_EXT: &str = "85 07 20 00 00 00 00 00 00 00 00 00 00 40 27 00";
/// Last LBA 0FFFh: until the next reset, and for good.
const SET_PASSING: &str = "85 07 20 00 00 00 00 00 ff 00 0f 00 00 40 37 00";
const SET_LASTING: &str = "85 07 20 00 00 00 01 00 ff 00 0f 00 00 40 37 00";
const HARD_RESET: &str = "85 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00";

/// Sectors by IDENTIFY words 100 to 103.
fn sectors(target: &mut Target) -> u64 {
    let page = fetch(target, IDENTIFY_12, 512);
    assert_eq!(sum(&page), 0);
    u64::from_le_bytes(page[200..208].try_into().unwrap())
}

fn last_block(target: &mut Target) -> [u8; 4] {
    let data = fetch(target, "25 00 00 00 00 00 00 00 00 00", 8);
    data[..4].try_into().unwrap()
}

/// Error register of a pass-through command, 0 when it succeeded.
fn error(target: &mut Target, cdb: &str) -> u8 {
    let got = send(target, cdb, &[], 0);
    assert_eq!((got.status, got.sense[0]), (2, 0x72), "{cdb}");
    got.sense[11]
}

#[test]
fn a_passing_limit_lasts_until_the_reset() {
    let mut target = open("hdd");
    assert_eq!(error(&mut target, SET_PASSING), 0x04, "not asked before");
    assert_eq!(error(&mut target, NATIVE_EXT), 0);
    fetch(&mut target, IDENTIFY_12, 512);
    assert_eq!(error(&mut target, SET_PASSING), 0x04, "not just before");
    error(&mut target, NATIVE_EXT);
    assert_eq!(error(&mut target, SET_PASSING), 0);
    assert_eq!(sectors(&mut target), 4096);
    // The bridge does not know, and the drive refuses what lies behind.
    assert_eq!(last_block(&mut target), [0xe8, 0xe0, 0x88, 0xaf]);
    let got = send(&mut target, "28 00 00 00 10 00 00 00 01 00", &[], 512);
    assert_eq!(code(&got), (5, 0x21, 0));
    fetch(&mut target, "28 00 00 00 0f ff 00 00 01 00", 512);
    let got = send(&mut target, NATIVE_EXT, &[], 0);
    assert_eq!(
        (got.sense[14], got.sense[15]),
        (0xe8, 0xaf),
        "the native maximum stays"
    );
    // The narrow command may not touch a limit of the wide one.
    error(&mut target, "85 06 20 00 00 00 00 00 00 00 00 00 00 40 f8 00");
    let narrow = "85 06 20 00 00 00 00 00 ff 00 00 00 00 40 f9 00";
    assert_eq!(error(&mut target, narrow), 0x04);
    assert_eq!(send(&mut target, HARD_RESET, &[], 0).status, 0);
    assert_eq!(sectors(&mut target), 3_907_029_168);
    error(&mut target, "85 06 20 00 00 00 00 00 00 00 00 00 00 40 f8 00");
    assert_eq!(error(&mut target, narrow), 0);
    assert_eq!(sectors(&mut target), 256);
}

#[test]
fn a_lasting_limit_is_made_once_in_a_power_cycle() {
    let mut target = open("hdd");
    error(&mut target, NATIVE_EXT);
    assert_eq!(error(&mut target, SET_LASTING), 0);
    let full = "85 07 20 00 00 00 01 e8 af 00 88 00 e0 40 37 00";
    error(&mut target, NATIVE_EXT);
    assert_eq!(error(&mut target, full), 0x14);
    send(&mut target, HARD_RESET, &[], 0);
    assert_eq!(sectors(&mut target), 4096);
    let page = fetch(&mut target, "12 01 89 02 3c 00", 572);
    assert_eq!(word(&page[60..], 101), 0xe8e0, "the bridge's copy is old");
    target.power_cycle();
    assert_eq!(sectors(&mut target), 4096);
    assert_eq!(last_block(&mut target), [0, 0, 0x0f, 0xff]);
    let page = fetch(&mut target, "12 01 89 02 3c 00", 572);
    assert_eq!(word(&page[60..], 101), 0, "the bridge has asked again");
    // Behind the end of the drive: one more than there is.
    error(&mut target, NATIVE_EXT);
    let beyond = "85 07 20 00 00 00 01 e8 b0 00 88 00 e0 40 37 00";
    assert_eq!(error(&mut target, beyond), 0x04);
    error(&mut target, NATIVE_EXT);
    assert_eq!(error(&mut target, full), 0);
    target.power_cycle();
    assert_eq!(last_block(&mut target), [0xe8, 0xe0, 0x88, 0xaf]);
    // Passwords for SET MAX are not known.
    error(&mut target, NATIVE_EXT);
    assert_eq!(
        error(&mut target, "85 06 20 00 04 00 00 00 00 00 00 00 00 40 f9 00"),
        0x04
    );
}

#[test]
fn the_newer_form_needs_no_question_and_never_passes() {
    let get = "85 07 20 00 00 00 00 00 00 00 00 00 00 40 78 00";
    let set = "85 07 20 00 01 00 00 00 ff 00 0f 00 00 40 78 00";
    let freeze = "85 07 20 00 02 00 00 00 00 00 00 00 00 40 78 00";
    assert_eq!(error(&mut open("ssd"), get), 0x04);
    let mut target = open("ssd,amac=1");
    let page = fetch(&mut target, IDENTIFY_12, 512);
    assert_eq!(word(&page, 82) & 0x0400, 0);
    assert_eq!(
        (word(&page, 119) & 0x0100, word(&page, 120) & 0x0100),
        (0x0100, 0x0100)
    );
    assert_eq!(
        error(&mut target, NATIVE_EXT),
        0x04,
        "the older form is not there"
    );
    let got = send(&mut target, get, &[], 0);
    // 937703087 = 37E436AFh.
    assert_eq!((got.sense[11], got.sense[14], got.sense[15]), (0, 0x37, 0xaf));
    assert_eq!(error(&mut target, set), 0);
    assert_eq!(sectors(&mut target), 4096);
    assert_eq!(error(&mut target, set), 0x04, "once in a power cycle");
    send(&mut target, HARD_RESET, &[], 0);
    assert_eq!((sectors(&mut target), error(&mut target, set)), (4096, 0x04));
    target.power_cycle();
    assert_eq!(sectors(&mut target), 4096);
    assert_eq!(
        error(&mut target, "85 07 20 00 01 00 00 37 b0 00 36 00 e4 40 78 00"),
        0x10,
        "one too many"
    );
    assert_eq!(error(&mut target, freeze), 0);
    assert_eq!(error(&mut target, set), 0x04, "frozen");
    target.power_cycle();
    assert_eq!(
        error(&mut target, "85 07 20 00 01 00 00 37 af 00 36 00 e4 40 78 00"),
        0
    );
    assert_eq!(sectors(&mut target), 937_703_088);
}

#[test]
fn power_that_goes_away_takes_some_settings_along() {
    let mut target = open("hdd");
    let raw = |target: &mut Target, id| {
        let data = fetch(target, READ_DATA, 512);
        u16::from_le_bytes([attribute(&data, id)[5], attribute(&data, id)[6]])
    };
    let (cycles, unsafe_ones) = (raw(&mut target, 12), raw(&mut target, 192));
    // Write cache off, APM 1, standby timer 5 s, SMART off; then a self-test would be refused.
    for cdb in [
        "85 06 00 00 82 00 00 00 00 00 00 00 00 40 ef 00",
        "85 06 00 00 05 00 01 00 00 00 00 00 00 40 ef 00",
        "85 06 00 00 00 00 01 00 00 00 00 00 00 40 e3 00",
    ] {
        assert_eq!(send(&mut target, cdb, &[], 0).status, 0, "{cdb}");
    }
    let page = fetch(&mut target, IDENTIFY_12, 512);
    assert_eq!((word(&page, 85) & 0x20, word(&page, 91)), (0, 1));
    send(
        &mut target,
        "85 06 00 00 d4 00 00 00 02 00 4f 00 c2 00 b0 00",
        &[],
        0,
    );
    let before = target.clock().now();
    target.power_cycle();
    assert!(
        target.clock().now() - before >= Duration::from_secs(5),
        "it spins up"
    );
    let page = fetch(&mut target, IDENTIFY_12, 512);
    assert_eq!((word(&page, 85) & 0x20, word(&page, 91)), (0x20, 0x80));
    assert_eq!(fetch(&mut target, READ_DATA, 512)[363], 0x29, "interrupted");
    assert_eq!(
        (raw(&mut target, 12), raw(&mut target, 192)),
        (cycles + 1, unsafe_ones + 1)
    );
    target.clock().advance(Duration::from_secs(60));
    assert_eq!(
        send(&mut target, CHECK_POWER, &[], 0).sense[13],
        0xff,
        "the timer is the old one"
    );
    // In standby the loss of power is no harm; SMART stays off.
    send(
        &mut target,
        "85 06 00 00 d9 00 00 00 00 00 4f 00 c2 00 b0 00",
        &[],
        0,
    );
    send(
        &mut target,
        "85 06 00 00 00 00 00 00 00 00 00 00 00 40 e0 00",
        &[],
        0,
    );
    target.power_cycle();
    assert_eq!(word(&fetch(&mut target, IDENTIFY_12, 512), 85) & 1, 0);
    send(
        &mut target,
        "85 06 00 00 d8 00 00 00 00 00 4f 00 c2 00 b0 00",
        &[],
        0,
    );
    assert_eq!(
        (raw(&mut target, 12), raw(&mut target, 192)),
        (cycles + 2, unsafe_ones + 1)
    );
    assert_eq!(target.wakes(), 0);
    // What the bridge does after power-on, it does again; and one that was lost is back.
    let mut target = open("ssd,unit_attention=1,fault=gone");
    assert_eq!(
        code(&send(&mut target, "00 00 00 00 00 00", &[], 0)),
        (6, 0x29, 0)
    );
    assert_eq!(
        target.command(&bytes(IDENTIFY_12), &[], 512, Duration::from_secs(9)),
        Reply::Gone
    );
    target.power_cycle();
    assert_eq!(
        code(&send(&mut target, "00 00 00 00 00 00", &[], 0)),
        (6, 0x29, 0)
    );
    assert_eq!(send(&mut target, "00 00 00 00 00 00", &[], 0).status, 0);
}
