//! Nothing that writes or resets ever reaches a device, judged here by a reading of the standards of its own.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use drivethru::permit::PermitSlot;
use drivethru::transport::Cdb;
use drivethru::transport::layer::guard::{Allowance, Guard};

/// SCSI opcodes that the three verbs may send; all of them are answered without touching the medium.
const SCSI_SENT: [(u8, &str); 7] = [
    (0x00, "TEST UNIT READY"),
    (0x03, "REQUEST SENSE"),
    (0x12, "INQUIRY"),
    (0x25, "READ CAPACITY (10)"),
    (0x4d, "LOG SENSE"),
    (0x9e, "SERVICE ACTION IN (16)"),
    (0xa1, "ATA PASS-THROUGH (12)"),
];

/// ATA commands that the three verbs may send, with the features that they may have.
fn ata_sent(ata: &Ata) -> bool {
    match ata.command {
        // CHECK POWER MODE, IDENTIFY DEVICE
        0xe5 | 0xec => ata.feature == 0,
        // READ LOG EXT: directory and device statistics
        0x2f => matches!(ata.lba[0], 0x00 | 0x04),
        // SMART: READ DATA, READ THRESHOLDS, READ LOG, WRITE LOG to E0h, RETURN STATUS; never ENABLE or DISABLE
        0xb0 => {
            ata.lba[1..3] == [0x4f, 0xc2]
                && match ata.feature {
                    0xd0 | 0xd1 | 0xda => true,
                    0xd5 => matches!(ata.lba[0], 0x01 | 0x06 | 0xe0 | 0xe1),
                    0xd6 => ata.lba[0] == 0xe0,
                    _ => false,
                }
        }
        // RETURN RESPONSE INFORMATION carries no ATA command.
        0x00 => ata.protocol == 15,
        _ => false,
    }
}

/// The parameter block that asks for the SCT temperature history: action 5, function 1, table 2, zeros.
fn history_question() -> Vec<u8> {
    let mut block = vec![5, 0, 1, 0, 2, 0];
    block.resize(512, 0);
    block
}

fn assert_only_readers(dock: &Dock, spec: &str) -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    for entry in dock.sim().target().log() {
        let cdb = &entry.cdb;
        kinds.insert(word(cdb).split('/').next().unwrap_or_default().to_owned());
        if let Some(ata) = Ata::of(cdb) {
            assert!(ata_sent(&ata), "{spec}: {} [{cdb:02x?}]", word(cdb));
            assert!(
                matches!(ata.protocol, 3 | 4 | 5 | 15),
                "{spec}: protocol {}",
                ata.protocol
            );
            assert!(!ata.ck_cond || ata.protocol == 3, "{spec}: CK_COND with data");
            assert_eq!(ata.protocol == 5, ata.feature == 0xd6, "{spec}");
        } else {
            assert!(
                SCSI_SENT.iter().any(|(opcode, _)| *opcode == cdb[0]) && cdb[0] != 0xa1,
                "{spec}: {cdb:02x?}"
            );
        }
    }
    for (cdb, bytes) in data_out(&dock.sent.lock().expect("no test panicked in here")) {
        let ata = Ata::of(&cdb).unwrap_or_else(|| panic!("{spec}: data-out with {cdb:02x?}"));
        assert_eq!((ata.command, ata.feature, ata.count), (0xb0, 0xd6, 1), "{spec}");
        assert_eq!(bytes, history_question(), "{spec}");
    }
    kinds
}

#[test]
fn verbs_send_only_what_reads() {
    let options = [
        "",
        "power=idle",
        "power=standby",
        "power=sleep",
        "sat=12",
        "sat=16",
        "sat=none",
        "ckcond=ignore",
        "ckcond=empty",
        "ckcond=refuse",
        "sense=fixed",
        "sense=empty",
        "sense_cap=18",
        "sense_cap=learn",
        "log_temperature=1",
        "sat=none,log_temperature=1",
        "health=failing",
        "health=worn",
        "becoming_ready=3",
        "unit_attention=1",
        "fault=zero-success",
        "fault=echo",
        "fault=timeout",
        "fault=gone",
        "fault=short",
        "fault=bad-checksum",
        "fault=swapped",
        "fault=garbage-temp",
    ];
    let mut kinds = BTreeSet::new();
    for profile in drivethru::sim::profiles() {
        for option in options {
            for known in [true, false] {
                let spec = format!("{},{option}", profile.name);
                let spec = spec.trim_end_matches(',');
                let mut dock = Dock::new(spec);
                if !known {
                    dock.facts = NodeFacts {
                        simulated: true,
                        usb: dock.facts.usb.clone(),
                        ..NodeFacts::default()
                    };
                }
                for (options, care) in [
                    (OpenOptions::default(), Care::NoWake),
                    (waking(), Care::NoWake),
                    (OpenOptions::default(), Care::MayWake),
                ] {
                    if let Ok(mut drive) = dock.open(&options, care) {
                        let _ = drive.temp_report();
                        let _ = drive.health(true);
                        let _ = drive.info();
                        let _ = drive.temp_report();
                    }
                }
                kinds.extend(assert_only_readers(&dock, spec));
                assert_eq!(dock.sim().target().trimmed_blocks(), 0, "{spec}");
            }
        }
    }
    // The list is not longer than what is sent, so that a new command is noticed.
    for kind in [
        "check power mode",
        "identify",
        "inquiry",
        "log 00h page 00h",
        "log 04h page 00h",
        "log sense",
        "read capacity 10",
        "request sense",
        "return response information",
        "sct data",
        "sct request",
        "sct status",
        "smart log 01h",
        "smart log 06h",
        "smart read data",
        "smart read thresholds",
        "smart return status",
        "test unit ready",
    ] {
        assert!(kinds.contains(kind), "{kind} was never sent: {kinds:?}");
    }
}

/// Whether a CDB with this data phase leaves the device as it was: its data, its settings, its state.
///
/// From the standards, by command: SPC-4 and SBC-3 for SCSI, SAT-4 for the pass-through fields, ACS-4 for what is in
/// them. It is not asked whether a command is useful.
fn harmless(cdb: &[u8], data: &Data) -> bool {
    let outward = matches!(data, Data::Out(_));
    if let Some(ata) = Ata::of(cdb) {
        return harmless_ata(&ata, data);
    }
    if outward {
        return false;
    }
    match (cdb[0], cdb.len()) {
        // TEST UNIT READY, REQUEST SENSE, INQUIRY, READ (6), MODE SENSE (6), RECEIVE DIAGNOSTIC RESULTS
        (0x00 | 0x03 | 0x08 | 0x12 | 0x1a | 0x1c, 6) => true,
        // READ CAPACITY (10), READ (10), MODE SENSE (10), LOG SENSE without SP (save parameters)
        (0x25 | 0x28 | 0x5a, 10) => true,
        (0x4d, 10) => cdb[1] & 1 == 0,
        // REPORT LUNS, READ (12), READ (16), READ CAPACITY (16), GET LBA STATUS
        (0xa0 | 0xa8, 12) | (0x88, 16) => true,
        (0x9e, 16) => matches!(cdb[1] & 0x1f, 0x10 | 0x12),
        // REPORT SUPPORTED OPERATION CODES, REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS
        (0xa3, 12) => matches!(cdb[1] & 0x1f, 0x0c | 0x0d),
        _ => false,
    }
}

fn harmless_ata(ata: &Ata, data: &Data) -> bool {
    const NON_DATA: u8 = 3;
    const PIO_IN: u8 = 4;
    const PIO_OUT: u8 = 5;
    const DMA: u8 = 6;
    const UDMA_IN: u8 = 10;
    const RESPONSE: u8 = 15;
    let smart = ata.command == 0xb0 && ata.lba[1..3] == [0x4f, 0xc2];
    match (ata.protocol, data) {
        (RESPONSE, Data::In { .. }) => true,
        (NON_DATA, Data::None) => match ata.command {
            // CHECK POWER MODE (and its ATA-3 code), READ VERIFY SECTOR(S) (EXT), READ NATIVE MAX ADDRESS (EXT)
            0xe5 | 0x98 | 0x40 | 0x42 | 0xf8 | 0x27 => true,
            // RETURN STATUS; ENABLE OPERATIONS is let through knowingly
            0xb0 => smart && matches!(ata.feature, 0xda | 0xd8),
            // GET NATIVE MAX ADDRESS EXT
            0x78 => ata.feature == 0x0000,
            // SANITIZE STATUS EXT; COUNT bit 0 clears the failed state
            0xb4 => ata.feature == 0x0000 && ata.count & 1 == 0,
            _ => false,
        },
        (PIO_IN | DMA | UDMA_IN, Data::In { .. }) if ata.in_direction => match ata.command {
            // IDENTIFY (PACKET) DEVICE, READ LOG (DMA) EXT, READ SECTOR(S) (EXT), READ DMA (EXT)
            0xec | 0xa1 | 0x2f | 0x47 | 0x20 | 0x24 | 0xc8 | 0x25 => true,
            // READ DATA, READ THRESHOLDS, READ LOG
            0xb0 => smart && matches!(ata.feature, 0xd0 | 0xd1 | 0xd5),
            // DEVICE CONFIGURATION IDENTIFY
            0xb1 => ata.feature == 0xc2,
            _ => false,
        },
        // SCT commands that return something: error recovery control, feature control, and the temperature history
        (PIO_OUT, Data::Out(block)) if !ata.in_direction && block.len() == 512 && ata.count == 1 => {
            let log = match ata.command {
                0xb0 => smart && ata.feature == 0xd6,
                0x3f => false,
                _ => false,
            };
            let asks = matches!(
                block[..6],
                [3, 0, 2, 0, _, _] | [4, 0, 2 | 3, 0, _, _] | [5, 0, 1, 0, 2, 0]
            );
            log && ata.lba[0] == 0xe0 && asks
        }
        _ => false,
    }
}

/// CDBs that look like real ones: an opcode of interest, then bytes that are mostly small or meaningful.
fn cdbs() -> impl Strategy<Value = Vec<u8>> {
    let opcode = prop_oneof![
        3 => prop::sample::select(vec![0x85u8, 0xa1]),
        1 => any::<u8>(),
    ];
    let field = prop_oneof![
        2 => Just(0u8),
        2 => prop::sample::select(vec![
            0x01, 0x02, 0x04, 0x06, 0x08, 0x0a, 0x0c, 0x0e, 0x12, 0x16, 0x1e, 0x20, 0x2c, 0x4f, 0xc2, 0xe0, 0xd0,
            0xd4, 0xd5, 0xd6, 0xd8, 0xda, 0x2f, 0x3f, 0x78, 0xb0, 0xb1, 0xb4, 0xec, 0xe5, 0x25, 0x35, 0x06u8,
        ]),
        1 => any::<u8>(),
    ];
    (
        opcode,
        prop::collection::vec(field, 31),
        any::<prop::sample::Index>(),
    )
        .prop_map(|(opcode, rest, index)| {
            let usual = match opcode >> 5 {
                0 => 6,
                1 | 2 => 10,
                4 => 16,
                5 => 12,
                _ => 16,
            };
            // Sometimes a length that does not fit.
            let len = if index.index(8) == 0 {
                [6, 10, 12, 16, 32][index.index(5)]
            } else {
                usual
            };
            let mut cdb = vec![opcode];
            cdb.extend(rest);
            cdb.truncate(len);
            cdb
        })
}

/// ATA PASS-THROUGH with every field near something that exists.
fn pass_through() -> impl Strategy<Value = Vec<u8>> {
    let select = |values: &'static [u8]| prop::sample::select(values);
    let command = prop_oneof![
        4 => select(&[0xb0, 0xec, 0xe5, 0x2f, 0x3f, 0x47, 0x78, 0xb4, 0xb1, 0x27, 0xf8, 0x06, 0x25, 0x35, 0x92, 0xf4]),
        1 => any::<u8>(),
    ];
    let feature = prop_oneof![
        3 => select(&[0, 0xd0, 0xd1, 0xd2, 0xd4, 0xd5, 0xd6, 0xd8, 0xd9, 0xda, 0xdb, 0xc2, 0xc0, 0x12]),
        1 => any::<u8>(),
    ];
    let flags = select(&[0x00, 0x06, 0x0e, 0x20, 0x26, 0x2e, 0x0b, 0x0f, 0x02]);
    let low = select(&[0x00, 0x01, 0x04, 0x7f, 0x80, 0x81, 0xe0, 0xe1]);
    let signature = prop_oneof![4 => Just([0x4fu8, 0xc2]), 1 => any::<[u8; 2]>()];
    let upper = prop_oneof![3 => Just(0u8), 1 => any::<u8>()];
    (
        any::<bool>(),
        0u8..16,
        any::<bool>(),
        flags,
        (feature, upper),
        0u8..3,
        low,
        signature,
        command,
    )
        .prop_map(
            |(long, protocol, extend, flags, (feature, upper), count, low, [mid, high], command)| {
                let second = protocol << 1;
                if long {
                    vec![
                        0x85,
                        second | u8::from(extend),
                        flags,
                        upper,
                        feature,
                        0,
                        count,
                        0,
                        low,
                        0,
                        mid,
                        0,
                        high,
                        0,
                        command,
                        0,
                    ]
                } else {
                    vec![
                        0xa1, second, flags, feature, count, low, mid, high, 0, command, 0, 0,
                    ]
                }
            },
        )
}

fn payload() -> impl Strategy<Value = Data> {
    let sct = (0u8..7, 0u8..5, 0u8..4).prop_map(|(action, function, third)| {
        let mut block = vec![action, 0, function, 0, third, 0];
        block.resize(512, 0);
        Data::Out(block)
    });
    prop_oneof![
        2 => Just(Data::None),
        3 => Just(Data::In { len_bytes: 512 }),
        2 => sct,
        1 => prop::collection::vec(any::<u8>(), 0..1024).prop_map(Data::Out),
    ]
}

fn passes_the_guard(profile: &str, cdb: &[u8], data: &Data) -> Result<bool, TestCaseError> {
    let dock = Dock::new(profile);
    let mut transport = Guard::new(dock.plug(), Allowance::default(), PermitSlot::default());
    let Some(cdb) = Cdb::new(cdb) else {
        return Ok(false);
    };
    let result = execute(
        &mut transport,
        Command {
            cdb,
            data: data.clone(),
            timeout: Duration::from_secs(20),
        },
    );
    let refused = matches!(result, Err(TransportError::Refused { .. }));
    prop_assert_eq!(dock.arrived_count() == 0, refused, "refused means: never sent");
    Ok(!refused)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn whatever_passes_is_harmless(cdb in cdbs(), data in payload()) {
        if passes_the_guard("stick", &cdb, &data)? {
            prop_assert!(harmless(&cdb, &data), "{cdb:02x?} {data:?}");
        }
    }

    #[test]
    fn whatever_passes_through_a_bridge_is_harmless(cdb in pass_through(), data in payload()) {
        if passes_the_guard("stick", &cdb, &data)? {
            prop_assert!(harmless(&cdb, &data), "{cdb:02x?} {data:?}");
        }
    }
}

/// Each ATA command, each feature of SMART, each protocol: exhaustive where the property test only samples.
#[test]
fn every_ata_command_and_protocol_is_judged_alike() {
    let mut passed = 0;
    let mut transport = Guard::new(
        Dock::new("stick").plug(),
        Allowance::default(),
        PermitSlot::default(),
    );
    let question = Data::Out(history_question());
    for command in 0..=255u8 {
        for feature in (0..=255u8).filter(|f| matches!(command, 0xb0 | 0xb1 | 0xb4 | 0x78) || *f < 2) {
            for protocol in 0..16u8 {
                for (flags, data) in [
                    (0x00, &Data::None),
                    (0x0e, &Data::In { len_bytes: 512 }),
                    (0x06, &question),
                ] {
                    for log in [0x00, 0xe0] {
                        let cdb = [
                            0xa1,
                            protocol << 1,
                            flags,
                            feature,
                            1,
                            log,
                            0x4f,
                            0xc2,
                            0,
                            command,
                            0,
                            0,
                        ];
                        let result = execute(
                            &mut transport,
                            Command {
                                cdb: Cdb::from_array(cdb),
                                data: data.clone(),
                                timeout: Duration::from_secs(1),
                            },
                        );
                        if !matches!(result, Err(TransportError::Refused { .. })) {
                            passed += 1;
                            assert!(harmless(&cdb, data), "{cdb:02x?}");
                        }
                    }
                }
            }
        }
    }
    assert!(passed > 50, "the guard lets nothing through: {passed}");
}

#[test]
fn self_tests_start_only_when_asked_for() {
    use drivethru::ata::commands::OfflineTest;
    let dock = Dock::new("ssd");
    let mut drive = dock
        .open(&OpenOptions::default(), Care::MayWake)
        .expect("a drive");
    let before = dock.arrived_count();
    let error = refusal(drive.self_test(OfflineTest::Short));
    assert!(
        matches!(error, DriveError::Transport(TransportError::Refused { .. })),
        "{error}"
    );
    assert_eq!(dock.arrived_count(), before);
    let asked = OpenOptions {
        allowance: Allowance {
            self_test: true,
            ..Allowance::default()
        },
        ..OpenOptions::default()
    };
    let mut drive = dock.open(&asked, Care::MayWake).expect("a drive");
    drive.self_test(OfflineTest::Short).expect("started");
    assert_eq!(
        dock.arrived().last().map(String::as_str),
        Some("ata b0h 00d4h/12")
    );
    let running = drive.health(false).expect("health");
    let state = serde_json::to_value(running.smart.self_test).expect("a document");
    assert!(state.to_string().contains("progress"), "{state}");
    drive.self_test(OfflineTest::Abort).expect("aborted");
}
