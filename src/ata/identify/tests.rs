#![allow(clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;

/// Writes words into a zeroed sector.
fn sector(words: &[(usize, u16)]) -> [u8; 512] {
    let mut bytes = [0; 512];
    for &(n, word) in words {
        bytes[n * 2..n * 2 + 2].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Puts `text` at word `n`, padded with blanks, first character in the high byte.
fn put_text(bytes: &mut [u8; 512], n: usize, words: usize, text: &str) {
    let mut padded: Vec<u8> = text.bytes().collect();
    padded.resize(words * 2, b' ');
    for (i, pair) in padded.chunks(2).enumerate() {
        bytes[(n + i) * 2] = pair[1];
        bytes[(n + i) * 2 + 1] = pair[0];
    }
}

/// A solid state drive of 2000 sectors as the standard wants it, without checksum.
fn ssd() -> [u8; 512] {
    let mut bytes = sector(&[
        (0, 0x0040),
        (47, 0x8001),
        (49, 0x2f00),
        (53, 0x0007),
        (60, 2000),
        (75, 31),
        (76, 0x850e),
        (77, 0x0006),
        (80, 0x0ff8),
        (82, 0x746b),
        (83, 0x7d01),
        (84, 0x4163),
        (85, 0x7469),
        (86, 0xbc01),
        (87, 0x4163),
        (88, 0x407f),
        (100, 2000),
        (105, 8),
        (169, 1),
        (217, 1),
        (222, 0x10ff),
    ]);
    put_text(&mut bytes, 10, 10, "S1");
    put_text(&mut bytes, 23, 4, "F1");
    put_text(&mut bytes, 27, 20, "MODEL A");
    bytes
}

fn with_checksum(mut bytes: [u8; 512]) -> [u8; 512] {
    bytes[510] = 0xa5;
    bytes[511] = 0;
    let sum: u32 = bytes.iter().map(|&b| u32::from(b)).sum();
    bytes[511] = (256 - sum % 256) as u8;
    bytes
}

fn swapped(bytes: [u8; 512]) -> [u8; 512] {
    std::array::from_fn(|i| bytes[i ^ 1])
}

#[test]
fn both_byte_orders_read_the_same() {
    for sector in [ssd(), with_checksum(ssd())] {
        let straight = Identify::parse(&sector).unwrap();
        let turned = Identify::parse(&swapped(sector)).unwrap();
        assert_eq!(straight.byte_order(), ByteOrder::Drive);
        assert_eq!(turned.byte_order(), ByteOrder::Swapped);
        assert_eq!(straight.as_bytes(), turned.as_bytes());
        assert_eq!(turned.model().as_deref(), Some("MODEL A"));
    }
}

#[test]
fn answers_that_are_none_are_errors() {
    assert!(Identify::parse(&[]).unwrap_err().why.contains("truncated"));
    assert!(Identify::parse(&ssd()[..511]).is_err());
    assert!(Identify::parse(&[0; 512]).unwrap_err().why.contains("00h"));
    assert!(Identify::parse(&[0xff; 512]).is_err());
    let mut long = ssd().to_vec();
    long.extend([0x5a; 100]);
    assert_eq!(Identify::parse(&long).unwrap().as_bytes(), &ssd());
}

#[test]
fn checksums_are_valid_invalid_or_absent() {
    let good = with_checksum(ssd());
    assert_eq!(Identify::parse(&good).unwrap().checksum(), Checksum::Valid);
    let mut bad = good;
    bad[40] ^= 1;
    let bad = Identify::parse(&bad).unwrap();
    assert_eq!(bad.checksum(), Checksum::Invalid);
    assert_eq!(bad.belief().verdict, Verdict::Plausible);
    assert_eq!(Identify::parse(&ssd()).unwrap().checksum(), Checksum::Absent);
}

#[test]
fn belief_tells_drives_from_bridges() {
    assert_eq!(
        Identify::parse(&with_checksum(ssd())).unwrap().belief().verdict,
        Verdict::Proven
    );
    assert_eq!(
        Identify::parse(&ssd()).unwrap().belief().verdict,
        Verdict::Plausible
    );

    let mut made_up = [0; 512];
    put_text(&mut made_up, 10, 10, "S1");
    put_text(&mut made_up, 23, 4, "F1");
    put_text(&mut made_up, 27, 20, "NVME DRIVE");
    let made_up = Identify::parse(&made_up).unwrap();
    assert_eq!(made_up.belief().verdict, Verdict::Fabricated);
    assert!(made_up.belief().require().is_err());
    assert!(made_up.summary().fabricated);
    assert_eq!(made_up.sectors(), None);
    assert_eq!(made_up.smart().supported, None);

    let mut echo = [0; 512];
    echo[..4].copy_from_slice(b"USBC");
    assert_eq!(
        Identify::parse(&echo).unwrap().belief().verdict,
        Verdict::Rejected
    );
    let noise: [u8; 512] = std::array::from_fn(|i| (i * 37 % 251) as u8);
    assert_eq!(
        Identify::parse(&noise).unwrap().belief().verdict,
        Verdict::Rejected
    );
}

#[test]
fn capacity_follows_the_widest_valid_words() {
    let capacity = |words: &[(usize, u16)]| {
        let mut all = vec![(0, 0x40), (49, 0x0200), (60, 0xffff), (61, 0x0fff)];
        all.extend_from_slice(words);
        Identify::parse(&sector(&all)).unwrap().sectors().map(|s| s.0)
    };
    assert_eq!(capacity(&[]), Some(0x0fff_ffff));
    assert_eq!(capacity(&[(101, 0x1234)]), Some(0x0fff_ffff));
    assert_eq!(capacity(&[(83, 0x4400), (101, 0x1234)]), Some(0x1234_0000));
    assert_eq!(
        capacity(&[(83, 0x4400), (101, 0x1234), (69, 0x0004), (231, 0x5678)]),
        Some(0x1234_0000)
    );
    assert_eq!(
        capacity(&[(83, 0x4400), (101, 0x1234), (69, 0x0008), (231, 0x5678)]),
        Some(0x5678_0000)
    );
    // 48 bits are three words.
    assert_eq!(
        capacity(&[(83, 0x4400), (101, 0x1234), (103, 0x0100)]),
        Some(0x1234_0000)
    );
}

#[test]
fn a_disk_without_lba_is_a_disk_of_unknown_capacity() {
    let mut bytes = sector(&[
        (0, 0x045a),
        (1, 977),
        (3, 10),
        (6, 17),
        (60, 0x1234),
        (61, 0x5678),
    ]);
    put_text(&mut bytes, 10, 10, "00012345");
    put_text(&mut bytes, 23, 4, "1.10");
    put_text(&mut bytes, 27, 20, "OLD DISK 85MB");
    let disk = Identify::parse(&bytes).unwrap();
    assert_eq!(disk.byte_order(), ByteOrder::Drive);
    assert_eq!(disk.belief().verdict, Verdict::Plausible);
    assert_eq!((disk.sectors(), disk.capacity_bytes()), (None, None));
    assert_eq!(
        disk.smart(),
        Switch {
            supported: None,
            enabled: None
        }
    );
    for pair in bytes.chunks_exact_mut(2) {
        pair.reverse();
    }
    assert_eq!(
        Identify::parse(&bytes).unwrap().model().as_deref(),
        Some("OLD DISK 85MB")
    );
}

#[test]
fn an_alignment_beyond_the_physical_sector_is_none() {
    let alignment = |word: u16| {
        Identify::parse(&sector(&[(0, 0x40), (106, 0x6003), (209, word)]))
            .unwrap()
            .alignment_sectors()
    };
    assert_eq!(alignment(0x4001), Some(1));
    assert_eq!(alignment(0x4007), Some(7));
    assert_eq!(alignment(0x4008), None);
    assert_eq!(alignment(0x0001), None);
}

#[test]
fn sector_sizes_need_the_validity_code() {
    let sizes = |words: &[(usize, u16)]| {
        let mut all = vec![(0, 0x40)];
        all.extend_from_slice(words);
        let id = Identify::parse(&sector(&all)).unwrap();
        (
            id.logical_sector().map(SectorSize::bytes),
            id.physical_sector().map(SectorSize::bytes),
        )
    };
    assert_eq!(sizes(&[(117, 256)]), (Some(512), Some(512)));
    assert_eq!(sizes(&[(106, 0x6003)]), (Some(512), Some(4096)));
    assert_eq!(sizes(&[(106, 0x2003)]), (Some(512), Some(512)));
    assert_eq!(sizes(&[(106, 0xe003)]), (Some(512), Some(512)));
    assert_eq!(sizes(&[(106, 0x5000), (117, 2048)]), (Some(4096), Some(4096)));
    assert_eq!(sizes(&[(106, 0x5000), (117, 260)]), (None, None));
    assert_eq!(sizes(&[(106, 0x700f), (118, 0x8000)]), (None, None));
}

#[test]
fn features_need_the_validity_code() {
    let id = Identify::parse(&sector(&[(0, 0x40), (82, 1), (85, 1)])).unwrap();
    assert_eq!(
        id.smart(),
        Switch {
            supported: None,
            enabled: None
        }
    );
    let id = Identify::parse(&sector(&[
        (82, 1),
        (83, 0x4000),
        (84, 0x4020),
        (85, 0),
        (86, 0x8000),
        (87, 0x4000),
        (119, 0x4100),
        (120, 0x4000),
    ]))
    .unwrap();
    let off = Switch {
        supported: Some(true),
        enabled: Some(false),
    };
    assert_eq!(id.smart(), off);
    assert_eq!(id.switch(FeatureSets::AMAC), off);
    let names: Vec<_> = id.features().iter().map(|f| (f.name, f.enabled)).collect();
    assert_eq!(
        names,
        [
            ("smart", Some(false)),
            ("gpl", Some(false)),
            ("amac", Some(false))
        ]
    );
}

#[test]
fn small_fields_know_their_edges() {
    assert_eq!(EraseTime::from_word(0), None);
    assert_eq!(
        EraseTime::from_word(0x0003).map(|t| (t.minutes, t.at_least)),
        Some((6, false))
    );
    assert_eq!(
        EraseTime::from_word(0x00ff).map(|t| (t.minutes, t.at_least)),
        Some((508, true))
    );
    assert_eq!(
        EraseTime::from_word(0x80f6).map(|t| (t.minutes, t.at_least)),
        Some((492, false))
    );
    let rotation = |word| {
        Identify::parse(&sector(&[(0, 0x40), (217, word)]))
            .unwrap()
            .rotation()
    };
    assert_eq!(rotation(0), Rotation::Unknown);
    assert_eq!(rotation(1), Rotation::NonRotating);
    assert_eq!(rotation(0x0400), Rotation::Unknown);
    assert_eq!(rotation(0x0401), Rotation::Rpm(1025));
    assert_eq!(rotation(0xffff), Rotation::Unknown);
}

#[test]
fn wwn_is_most_significant_word_first() {
    let mut words = vec![
        (83, 0x4000),
        (84, 0x4100),
        (87, 0x4100),
        (108, 0x5002),
        (109, 0x5385),
    ];
    words.extend([(110, 0x1234), (111, 0x5678)]);
    let wwn = Identify::parse(&sector(&words)).unwrap().wwn().unwrap();
    assert_eq!((wwn.naa(), wwn.oui(), wwn.id()), (5, 0x00_2538, 0x5_1234_5678));
    assert_eq!(wwn.to_string(), "5002538512345678");
    words.drain(3..);
    assert_eq!(Identify::parse(&sector(&words)).unwrap().wwn(), None);
}

#[test]
fn the_document_has_the_agreed_keys() {
    let json = serde_json::to_value(Identify::parse(&with_checksum(ssd())).unwrap().summary()).unwrap();
    assert_eq!(json["model"], "MODEL A");
    assert_eq!(json["sectors"], 2000);
    assert_eq!(json["rotation_rpm"], 0);
    assert_eq!(
        json["trim"],
        serde_json::json!({"supported": true, "max_blocks": 8, "deterministic": false, "zeroes": false})
    );
    assert_eq!(
        json["smart"],
        serde_json::json!({"supported": true, "enabled": true})
    );
    assert_eq!(json["checksum"], "valid");
    assert_eq!(json["byte_order"], "drive");
    assert_eq!(json["sata"]["version"], "SATA 3.2");
    assert_eq!(json["sata"]["max_gbit_s"], 6.0);
    assert_eq!(json["belief"]["verdict"], "proven");
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1100)) {
        if let Ok(id) = Identify::parse(&bytes) {
            prop_assert!(bytes.len() >= 512);
            prop_assert!(serde_json::to_string(&id.summary()).is_ok());
        } else {
            prop_assert!(bytes.len() < 512);
        }
    }

    /// Each order of a drive's sector is told apart, whatever its name, size and sum.
    #[test]
    fn the_byte_order_is_found(model in "[A-Z0-9 ]{1,40}", sectors in 1u16.., checksum: bool) {
        let mut bytes = ssd();
        put_text(&mut bytes, 27, 20, &model);
        bytes[200..202].copy_from_slice(&sectors.to_le_bytes());
        if checksum {
            bytes = with_checksum(bytes);
        }
        let turned = Identify::parse(&swapped(bytes)).unwrap();
        prop_assert_eq!(turned.byte_order(), ByteOrder::Swapped);
        prop_assert_eq!(turned.as_bytes(), &bytes);
        prop_assert_eq!(Identify::parse(&bytes).unwrap().byte_order(), ByteOrder::Drive);
    }
}
