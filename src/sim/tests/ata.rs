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
