//! Habits and faults of bridges.

use super::*;

#[test]
fn pass_through_is_refused_as_asked() {
    for (spec, cdb, wanted) in [
        ("stick", IDENTIFY_12, (5, 0x20, 0)),
        ("stick", IDENTIFY_16, (5, 0x20, 0)),
        ("hdd,sat=none", IDENTIFY_16, (5, 0x20, 0)),
        ("hdd,sat=16", IDENTIFY_12, (5, 0x20, 0)),
        ("hdd,sat=12", IDENTIFY_16, (5, 0x20, 0)),
        ("asm1051-usb2", IDENTIFY_16, (5, 0x20, 0)),
        // PROTOCOL 2, 7, 12; UDMA on a bridge without it; data where T_LENGTH says none.
        (
            "hdd",
            "85 04 0e 00 00 00 01 00 00 00 00 00 00 00 ec 00",
            (5, 0x24, 0),
        ),
        (
            "hdd",
            "85 0e 0e 00 00 00 01 00 00 00 00 00 00 00 ec 00",
            (5, 0x24, 0),
        ),
        (
            "hdd",
            "85 18 0e 00 00 00 01 00 00 00 00 00 00 00 ec 00",
            (5, 0x24, 0),
        ),
        (
            "hdd",
            "85 15 0e 00 00 00 01 00 00 00 00 00 00 40 25 00",
            (5, 0x24, 0),
        ),
        ("hdd", "a1 08 0c 00 01 00 00 00 00 ec 00 00", (5, 0x24, 0)),
        // Length in the transport: for IDENTIFY only.
        ("hdd", "a1 08 0f d0 01 00 4f c2 00 b0 00 00", (5, 0x24, 0)),
        (
            "hdd,ckcond=refuse",
            "a1 08 2e 00 01 00 00 00 00 ec 00 00",
            (5, 0x24, 0),
        ),
    ] {
        let got = send(&mut open(spec), cdb, &[], 512);
        assert_eq!(code(&got), wanted, "{spec}: {cdb}");
        assert!(got.data.is_empty());
    }
    let got = send(&mut open("hdd"), "a1 08 0f 00 00 00 00 00 00 ec 00 00", &[], 512);
    assert_eq!((got.status, got.data.len()), (0, 512));
    let twelve = fetch(&mut open("asm1051-usb2"), IDENTIFY_12, 512);
    assert_eq!(sum(&twelve), 0);
}

#[test]
fn ck_cond_has_four_habits() {
    let got = send(&mut open("hdd,ckcond=ignore"), CHECK_POWER, &[], 0);
    assert_eq!((got.status, got.sense.len()), (0, 0));
    let got = send(&mut open("hdd,ckcond=empty"), CHECK_POWER, &[], 0);
    assert_eq!(
        got.sense,
        bytes("72 01 00 1d 00 00 00 0e 09 0c 00 00 00 00 00 00 00 00 00 00 00 00")
    );
    let got = send(&mut open("hdd,ckcond=empty,sense=fixed"), CHECK_POWER, &[], 0);
    assert_eq!(
        &got.sense[..14],
        bytes("f0 00 01 00 00 00 00 0a 00 00 00 00 00 1d")
    );
    let got = send(&mut open("hdd,sense=empty"), CHECK_POWER, &[], 0);
    assert_eq!((got.status, got.sense.len()), (2, 0));
    let got = send(&mut open("hdd,ckcond=refuse"), CHECK_POWER, &[], 0);
    assert_eq!(code(&got), (5, 0x24, 0));
    // The registers are still to be had.
    let mut target = open("hdd,ckcond=empty");
    send(&mut target, CHECK_POWER, &[], 0);
    let registers = fetch(&mut target, "a1 1e 0b 00 00 00 00 00 00 00 00 00", 14);
    assert_eq!(registers, bytes("09 0c 00 00 00 ff 00 00 00 00 00 00 00 50"));
    let got = send(&mut target, "a1 1e 03 00 00 00 00 00 00 00 00 00", &[], 14);
    assert_eq!(code(&got), (5, 0x24, 0), "this bridge wants T_DIR");
}

#[test]
fn an_aborted_command_brings_its_registers() {
    // Command 0Ah is not there.
    let got = send(
        &mut open("hdd"),
        "85 06 00 00 00 00 00 00 00 00 00 00 00 40 0a 00",
        &[],
        0,
    );
    assert_eq!(
        got.sense,
        bytes("72 0b 00 00 00 00 00 0e 09 0c 00 04 00 00 00 00 00 00 00 00 40 51")
    );
    let got = send(
        &mut open("hdd,sense=fixed"),
        "85 06 00 00 00 00 00 00 00 00 00 00 00 40 0a 00",
        &[],
        0,
    );
    assert_eq!(
        got.sense,
        bytes("f0 00 0b 04 51 40 00 0a 00 00 00 00 00 00 00 00 00 00")
    );
    // SMART without its signature, and disabled.
    let mut target = open("hdd");
    let got = send(&mut target, "a1 08 0e d0 01 00 4f 00 00 b0 00 00", &[], 512);
    assert_eq!((got.sense[1], got.sense[11]), (0x0b, 0x04));
    let off = "85 06 00 00 d9 00 00 00 00 00 4f 00 c2 00 b0 00";
    let on = "85 06 00 00 d8 00 00 00 00 00 4f 00 c2 00 b0 00";
    assert_eq!(send(&mut target, off, &[], 0).status, 0);
    assert_eq!(send(&mut target, READ_DATA, &[], 512).status, 2);
    assert_eq!(word(&fetch(&mut target, IDENTIFY_12, 512), 85) & 1, 0);
    assert_eq!(send(&mut target, on, &[], 0).status, 0);
    assert_eq!(fetch(&mut target, READ_DATA, 512).len(), 512);
    // Past the end: READ SECTORS EXT at the number of sectors.
    let got = send(
        &mut target,
        "85 09 0e 00 00 00 01 e8 b0 00 88 00 e0 40 24 00",
        &[],
        512,
    );
    assert_eq!((got.sense[1], got.sense[2], got.sense[11]), (5, 0x21, 0x10));
}

#[test]
fn false_successes_look_like_successes() {
    let data = fetch(&mut open("hdd,fault=zero-success"), IDENTIFY_12, 512);
    assert_eq!(data, vec![0; 512]);
    let mut target = open("hdd,fault=echo");
    let data = fetch(&mut target, IDENTIFY_12, 512);
    assert_eq!(&data[..12], bytes(IDENTIFY_12));
    assert_eq!(data.len(), 512);
    // SCT feature control "return interval": the count and LBA low that were sent come back.
    let mut block = vec![0; 512];
    block[..6].copy_from_slice(&[4, 0, 2, 0, 3, 0]);
    let got = send(&mut target, "a1 0a 26 d6 01 e0 4f c2 00 b0 00 00", &block, 0);
    assert_eq!((got.sense[13], got.sense[15]), (0x01, 0xe0));
    assert_eq!(fetch(&mut open("hdd,fault=short"), IDENTIFY_12, 512).len(), 256);
    let bad = fetch(&mut open("hdd,fault=bad-checksum"), IDENTIFY_12, 512);
    assert_ne!(sum(&bad), 0);
    assert_ne!(
        sum(&fetch(&mut open("hdd,fault=bad-checksum"), READ_DATA, 512)),
        0
    );
    let good = fetch(&mut open("hdd"), IDENTIFY_12, 512);
    let swapped = fetch(&mut open("hdd,fault=swapped"), IDENTIFY_12, 512);
    assert!(
        good.chunks(2)
            .zip(swapped.chunks(2))
            .all(|(a, b)| a[0] == b[1] && a[1] == b[0])
    );
    assert_eq!(&swapped[54..62], b"SIM HDD ");
    let mut target = open("hdd,fault=garbage-temp");
    assert_eq!(fetch(&mut target, SCT_STATUS, 512)[200], 127);
    assert_eq!(attribute(&fetch(&mut target, READ_DATA, 512), 194)[5], 127);
}

#[test]
fn silence_takes_the_whole_timeout_and_a_lost_bridge_stays_lost() {
    let mut target = open("hdd,fault=timeout");
    let reply = target.command(&bytes(IDENTIFY_12), &[], 512, Duration::from_secs(7));
    let Reply::TimedOut { elapsed } = reply else {
        panic!("{reply:?}")
    };
    assert!(elapsed >= Duration::from_secs(7));
    assert_eq!(target.clock().now(), elapsed);
    assert_eq!(send(&mut target, "00 00 00 00 00 00", &[], 0).status, 0);
    let mut target = open("hdd,fault=gone");
    assert_eq!(send(&mut target, "12 00 00 00 24 00", &[], 36).status, 0);
    let reply = target.command(&bytes(IDENTIFY_12), &[], 512, Duration::from_secs(7));
    assert_eq!(reply, Reply::Gone);
    let reply = target.command(&bytes("12 00 00 00 24 00"), &[], 36, Duration::from_secs(7));
    assert_eq!(reply, Reply::Gone);
    // Spinning up takes longer than a host may wait.
    let mut target = open("hdd,power=standby");
    let reply = target.command(&bytes(READ_DATA), &[], 512, Duration::from_secs(2));
    assert!(matches!(reply, Reply::TimedOut { .. }), "{reply:?}");
}

#[test]
fn a_device_that_just_arrived_says_so() {
    let mut target = open("hdd,unit_attention=1,becoming_ready=2");
    assert_eq!(send(&mut target, "12 00 00 00 24 00", &[], 36).status, 0);
    assert_eq!(code(&send(&mut target, IDENTIFY_12, &[], 512)), (6, 0x29, 0));
    assert_eq!(code(&send(&mut target, IDENTIFY_12, &[], 512)), (2, 4, 1));
    assert_eq!(code(&send(&mut target, "00 00 00 00 00 00", &[], 0)), (2, 4, 1));
    assert_eq!(send(&mut target, IDENTIFY_12, &[], 512).status, 0);
}

#[test]
fn sense_is_cut_where_the_host_cuts_it() {
    let cut = "72 01 00 1d 00 00 00 0a 09 0c 00 00 00 ff 00 00 00 00";
    let got = send(&mut open("hdd,sense_cap=18"), CHECK_POWER, &[], 0);
    assert_eq!(got.sense, bytes(cut));
    // A host that believes an old bridge learns from the first long sense, or from an IDENTIFY that went well.
    let old = "asm1051-usb2,sense=descriptor";
    let check = "a1 06 20 00 00 00 00 00 00 e5 00 00";
    let mut target = open(old);
    assert_eq!(send(&mut target, check, &[], 0).sense, bytes(cut));
    assert_eq!(send(&mut target, check, &[], 0).sense.len(), 22);
    let mut target = open(old);
    fetch(&mut target, IDENTIFY_12, 512);
    assert_eq!(send(&mut target, check, &[], 0).sense.len(), 22);
}

#[test]
fn the_log_holds_every_command() {
    let mut target = open("hdd,fault=timeout");
    send(&mut target, "00 00 00 00 00 00", &[], 0);
    let _ = target.command(&bytes(IDENTIFY_12), &[], 512, Duration::from_secs(1));
    send(&mut target, "12 01 80 00 ff 00", &[], 255);
    let seen: Vec<(u8, Option<u8>)> = target.log().iter().map(|e| (e.cdb[0], e.status)).collect();
    assert_eq!(seen, [(0x00, Some(0)), (0xa1, None), (0x12, Some(0))]);
    assert_eq!(
        serde_json::to_string(&target.log()[0]).unwrap(),
        r#"{"cdb":"00 00 00 00 00 00","at_us":0,"status":0}"#
    );
    assert!(target.log()[1].at < target.log()[2].at);
    target.clear_log();
    assert!(target.log().is_empty());
}

#[test]
fn listing_and_showing_need_no_device() {
    let all = profiles();
    assert!(all.iter().any(|p| p.name == "stick" && p.drive == "native flash"));
    let shown = serde_json::to_value(show("hdd,serial=ABC").unwrap()).unwrap();
    assert_eq!(shown["drive"]["serial"], "ABC");
    assert_eq!(shown["schema"], "drivethru-sim-profile/1");
    assert!(show("nothing").is_err());
    assert!(options().iter().any(|(name, _)| *name == "becoming_ready"));
}

#[test]
fn a_host_that_expects_less_than_is_sent_gets_a_reset() {
    let mut target = open("stick");
    for in_len in [0, 35] {
        let reply = target.command(&bytes("12 00 00 00 24 00"), &[], in_len, Duration::from_secs(5));
        assert!(matches!(reply, Reply::TimedOut { .. }), "{in_len}: {reply:?}");
    }
    assert_eq!(send(&mut target, "12 00 00 00 24 00", &[], 64).data.len(), 36);
}
