#![allow(clippy::indexing_slicing)]

use crate::sim::serve::Decode;
use std::time::Duration;

use proptest::prelude::*;

use super::codec::{self, capability};
use super::*;
use crate::sim::serve::device::Device;
use crate::sim::serve::tests::{Fake, bulk, host_hello, packet};
use crate::sim::serve::{Frame, ProtocolError};
use crate::sim::usb::{Endpoint, Identity, Interface, Speed};

const NOW: Duration = Duration::ZERO;

fn decode(bytes: &[u8]) -> Result<Vec<Packet>, ProtocolError> {
    let mut packets = Vec::new();
    Decoder::new().feed(bytes, &mut packets)?;
    Ok(packets)
}

/// What follows a hello.
fn after_hello(bytes: &[u8]) -> Result<Vec<Packet>, ProtocolError> {
    let mut packets = decode(&[&host_hello(), bytes].concat())?;
    assert_eq!(packets.remove(0), Packet::Hello { capabilities: 0xff });
    Ok(packets)
}

#[test]
fn requests_are_read() {
    let id = 0x1122_3344_5566_7788;
    for (kind, payload, wanted) in [
        (3, &[][..], Packet::Reset),
        (6, &[1], Packet::SetConfiguration { id, value: 1 }),
        (7, &[], Packet::GetConfiguration { id }),
        (
            9,
            &[0, 1],
            Packet::SetAlt {
                id,
                interface: 0,
                alt: 1,
            },
        ),
        (10, &[2], Packet::GetAlt { id, interface: 2 }),
        (12, &[0x83, 1, 2], Packet::StartIso { id, endpoint: 0x83 }),
        (13, &[0x83], Packet::StopIso { id, endpoint: 0x83 }),
        (15, &[0x83], Packet::StartInterrupt { id, endpoint: 0x83 }),
        (16, &[0x83], Packet::StopInterrupt { id, endpoint: 0x83 }),
        (
            18,
            &[0x1c, 0, 0x0e, 0, 0x20, 0, 0, 0],
            Packet::AllocStreams {
                id,
                endpoints: 0x000e_001c,
                count: 32,
            },
        ),
        (19, &[0x04, 0, 0, 0], Packet::FreeStreams { id, endpoints: 4 }),
        (21, &[], Packet::Cancel { id }),
        (22, &[], Packet::Skipped { kind: 22 }),
        (23, b"-1,-1,-1,-1,1\0", Packet::Skipped { kind: 23 }),
        (24, &[], Packet::DisconnectAck),
        (
            25,
            &[5, 0, 0, 0, 0, 2, 0, 0, 0x81, 4],
            Packet::StartBulkReceiving {
                id,
                stream: 5,
                endpoint: 0x81,
            },
        ),
        (
            26,
            &[5, 0, 0, 0, 0x81],
            Packet::StopBulkReceiving {
                id,
                stream: 5,
                endpoint: 0x81,
            },
        ),
        (
            100,
            &[0x80, 6, 0x80, 0, 0, 1, 9, 4, 18, 0],
            Packet::Control {
                id,
                control: Control {
                    endpoint: 0x80,
                    request: 6,
                    request_type: 0x80,
                    value: 0x0100,
                    index: 0x0409,
                    length: 18,
                },
                data: Vec::new(),
            },
        ),
        (
            101,
            &[0x02, 0, 3, 0, 0x07, 0, 0, 0, 0, 0, 0xaa, 0xbb, 0xcc],
            Packet::Bulk {
                id,
                bulk: Bulk {
                    endpoint: 2,
                    length: 3,
                    stream: 7,
                },
                data: vec![0xaa, 0xbb, 0xcc],
            },
        ),
        (
            101,
            &[0x81, 0, 0x00, 0x80, 0, 0, 0, 0, 0x07, 0],
            Packet::Bulk {
                id,
                bulk: Bulk {
                    endpoint: 0x81,
                    length: 0x0007_8000,
                    stream: 0,
                },
                data: Vec::new(),
            },
        ),
        (
            103,
            &[0x03, 0, 1, 0, 0xee],
            Packet::Interrupt {
                id,
                interrupt: Small {
                    endpoint: 3,
                    length: 1,
                },
                data: vec![0xee],
            },
        ),
        (
            102,
            &[0x84, 0, 0, 1],
            Packet::Iso {
                id,
                iso: Small {
                    endpoint: 0x84,
                    length: 256,
                },
                data: Vec::new(),
            },
        ),
    ] {
        assert_eq!(
            after_hello(&packet(kind, id, payload)),
            Ok(vec![wanted]),
            "{kind}"
        );
    }
}

#[test]
fn ids_are_short_until_both_sides_know_long_ones() {
    let mut bytes = host_hello();
    bytes[76] = 0x13;
    // Type 7, no payload, id of 32 bits.
    bytes.extend([7, 0, 0, 0, 0, 0, 0, 0, 0x44, 0x33, 0x22, 0x11]);
    assert_eq!(
        decode(&bytes),
        Ok(vec![
            Packet::Hello { capabilities: 0x13 },
            Packet::GetConfiguration { id: 0x1122_3344 }
        ])
    );
    let mut bare = vec![0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0];
    bare.extend([b'v'; 64]);
    assert_eq!(decode(&bare), Ok(vec![Packet::Hello { capabilities: 0 }]));
}

#[test]
fn lengths_beyond_reason_are_errors_before_anything_is_kept() {
    let long = |kind: u32, declared: u32| {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(declared.to_le_bytes());
        bytes.extend([0; 8]);
        after_hello(&bytes)
    };
    assert_eq!(
        long(101, (64 << 20) + 11),
        Err(ProtocolError::TooLong {
            what: "bulk packet",
            declared_bytes: (64 << 20) + 11,
            limit_bytes: (64 << 20) + 10,
        })
    );
    assert_eq!(long(101, (64 << 20) + 10), Ok(Vec::new()));
    for (kind, declared) in [(100, 0x1_0010), (99, 0x1_0001), (23, u32::MAX), (101, u32::MAX)] {
        assert!(
            matches!(long(kind, declared), Err(ProtocolError::TooLong { .. })),
            "{kind}"
        );
    }
    for (kind, declared) in [(6, 0), (6, 2), (3, 1), (100, 9), (101, 0), (21, 4), (18, 7)] {
        assert!(
            matches!(long(kind, declared), Err(ProtocolError::WrongLength { .. })),
            "{kind} {declared}"
        );
    }
    // Data where there is none, and less than announced.
    for bad in [
        bulk(1, 0x81, 4, 0, &[1, 2, 3, 4]),
        bulk(1, 0x02, 4, 0, &[1, 2, 3]),
        packet(100, 1, &[0, 9, 0, 0, 1, 0, 0, 0, 2, 0, 1]),
    ] {
        assert!(matches!(
            after_hello(&bad),
            Err(ProtocolError::WrongLength { .. })
        ));
    }
}

#[test]
fn the_order_of_the_beginning_is_kept() {
    assert!(matches!(
        decode(&packet(7, 0, &[])),
        Err(ProtocolError::OutOfOrder { .. })
    ));
    assert!(matches!(
        after_hello(&packet(0, 0, &[0; 68])),
        Err(ProtocolError::OutOfOrder { .. })
    ));
    let mut decoder = Decoder::new();
    let mut packets = Vec::new();
    assert!(decoder.feed(&[0xff; 12], &mut packets).is_err());
    assert_eq!(
        decoder.feed(&host_hello(), &mut packets),
        Err(ProtocolError::Broken)
    );
    assert!(decoder.space().is_empty());
}

#[test]
fn frames_have_their_bytes() {
    let hello = codec::hello().bytes();
    assert_eq!(hello.len(), 80);
    assert_eq!(hello[..12], [0, 0, 0, 0, 68, 0, 0, 0, 0, 0, 0, 0]);
    assert!(hello[12..].starts_with(b"drivethru "));
    assert_eq!(hello[76..], [0x7b, 0, 0, 0]);

    let identity = Identity {
        speed: Speed::High,
        class: (0xef, 2, 1),
        vid: 0x174c,
        pid: 0x5106,
        bcd_device: 0x0001,
        configuration: 1,
    };
    assert_eq!(
        codec::device_connect(&identity).bytes(),
        [
            1, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0xef, 2, 1, 0x4c, 0x17, 0x06, 0x51, 1, 0
        ]
    );
    let endpoint = Endpoint {
        address: 0x83,
        kind: 2,
        interval: 9,
        interface: 1,
        max_packet_bytes: 1024,
        max_streams: 32,
    };
    let table = codec::ep_info(&[endpoint], true).bytes();
    assert_eq!(table.len(), 16 + 288);
    assert_eq!(table[..8], [5, 0, 0, 0, 0x20, 1, 0, 0]);
    let table = &table[16..];
    assert_eq!((table[0], table[16], table[19], table[3]), (0, 0, 2, 255));
    assert_eq!((table[32 + 19], table[64 + 19]), (9, 1));
    assert_eq!(table[96 + 38..96 + 40], [0, 4]);
    assert_eq!(table[160 + 76..160 + 80], [32, 0, 0, 0]);
    assert_eq!(codec::ep_info(&[endpoint], false).bytes().len(), 16 + 160);

    let interface = Interface {
        number: 4,
        class: (8, 6, 0x62),
    };
    let table = codec::interface_info(&[interface]).bytes();
    assert_eq!(table[..8], [4, 0, 0, 0, 132, 0, 0, 0]);
    assert_eq!(table[16..21], [1, 0, 0, 0, 4]);
    assert_eq!((table[52], table[84], table[116]), (8, 6, 0x62));

    let small = |frame: Frame| frame.bytes()[16..].to_vec();
    assert_eq!(
        small(codec::streams_status(1, PacketStatus::Success, 0x000e_0010, 32)),
        [0x10, 0, 0x0e, 0, 32, 0, 0, 0, 0]
    );
    assert_eq!(small(codec::alt_status(1, PacketStatus::Stall, 2, 1)), [4, 2, 1]);
    assert_eq!(
        small(codec::configuration_status(1, PacketStatus::IoError, 0)),
        [3, 0]
    );
    assert_eq!(codec::device_disconnect().bytes(), packet(2, 0, &[]));
    let request = Bulk {
        endpoint: 0x81,
        length: 0x20_0000,
        stream: 9,
    };
    assert_eq!(
        codec::bulk_answer(0x55, &request, PacketStatus::Babble, 0x0102_0304, vec![1]).bytes(),
        packet(101, 0x55, &[0x81, 6, 4, 3, 9, 0, 0, 0, 2, 1, 1])
    );
}

/// A session with a host that has seen the device.
fn attached() -> (Session, Fake) {
    let (mut session, mut fake) = (Session::new(), Fake::new());
    assert_eq!(heads(&mut session), [0]);
    session.pump(&mut fake, NOW);
    assert_eq!(
        heads(&mut session),
        [] as [u32; 0],
        "nothing before the peer's hello"
    );
    run(&mut session, &mut fake, Packet::Hello { capabilities: 0xff });
    assert_eq!(heads(&mut session), [5, 4, 1]);
    (session, fake)
}

fn run(session: &mut Session, fake: &mut Fake, packet: Packet) {
    session.receive(fake, packet, NOW).unwrap();
    session.pump(fake, NOW);
}

fn frames(session: &mut Session) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| session.next_frame())
        .map(|f| f.bytes())
        .collect()
}

fn heads(session: &mut Session) -> Vec<u32> {
    frames(session)
        .iter()
        .map(|f| u32::from_le_bytes(f[..4].try_into().unwrap()))
        .collect()
}

fn bulk_in(id: u64, length: u32) -> Packet {
    Packet::Bulk {
        id,
        bulk: Bulk {
            endpoint: 0x81,
            length,
            stream: 0,
        },
        data: Vec::new(),
    }
}

#[test]
fn a_peer_that_lacks_something_is_told_what() {
    let mut session = Session::new();
    let error = session
        .receive(&mut Fake::new(), Packet::Hello { capabilities: 0x13 }, NOW)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the peer lacks 64-bit ids (5), 32-bit bulk lengths (6)"
    );
    assert!(!session.greeted());
    let needed: u32 = capability::NEEDED.iter().map(|(bit, _)| bit).sum();
    assert!(
        session
            .receive(&mut Fake::new(), Packet::Hello { capabilities: needed }, NOW)
            .is_ok()
    );
}

#[test]
fn the_tables_come_before_the_answer_to_a_new_setting() {
    let (mut session, mut fake) = attached();
    run(
        &mut session,
        &mut fake,
        Packet::SetConfiguration { id: 1, value: 1 },
    );
    let sent = frames(&mut session);
    assert_eq!(sent.iter().map(|f| f[0]).collect::<Vec<_>>(), [5, 4, 8]);
    assert_eq!(sent[2], packet(8, 1, &[0, 1]));
    run(
        &mut session,
        &mut fake,
        Packet::SetAlt {
            id: 2,
            interface: 0,
            alt: 1,
        },
    );
    let sent = frames(&mut session);
    assert_eq!(sent.iter().map(|f| f[0]).collect::<Vec<_>>(), [5, 4, 11]);
    assert_eq!(sent[0][16 + 160 + 17 * 4], 32, "streams of the new setting");
    assert_eq!(sent[2], packet(11, 2, &[0, 0, 1]));
    run(
        &mut session,
        &mut fake,
        Packet::SetConfiguration { id: 3, value: 9 },
    );
    assert_eq!(frames(&mut session)[2], packet(8, 3, &[4, 1]));
    run(&mut session, &mut fake, Packet::GetAlt { id: 4, interface: 0 });
    run(&mut session, &mut fake, Packet::GetAlt { id: 5, interface: 7 });
    run(&mut session, &mut fake, Packet::GetConfiguration { id: 6 });
    assert_eq!(
        frames(&mut session),
        [
            packet(11, 4, &[0, 0, 1]),
            packet(11, 5, &[2, 7, 0]),
            packet(8, 6, &[0, 1])
        ]
    );
    run(&mut session, &mut fake, Packet::Reset);
    assert_eq!(heads(&mut session), [5, 4]);
    assert_eq!(fake.calls, ["bus reset"]);
    assert_eq!(fake.configuration, 0);
}

#[test]
fn streams_are_granted_as_far_as_they_go() {
    let (mut session, mut fake) = attached();
    let alloc = |id, endpoints, count| Packet::AllocStreams { id, endpoints, count };
    run(&mut session, &mut fake, alloc(1, 0x0002_0004, 16));
    fake.alt = 1;
    run(&mut session, &mut fake, alloc(2, 0x0002_0004, 16));
    run(&mut session, &mut fake, alloc(3, 0x0002_0004, 4096));
    run(&mut session, &mut fake, alloc(4, 0x0008_0000, 16));
    run(&mut session, &mut fake, alloc(5, 0, 16));
    run(
        &mut session,
        &mut fake,
        Packet::FreeStreams {
            id: 6,
            endpoints: 0x0002_0004,
        },
    );
    let status: Vec<(u8, u8)> = frames(&mut session).iter().map(|f| (f[20], f[24])).collect();
    assert_eq!(status, [(0, 2), (16, 0), (32, 0), (0, 2), (0, 2), (0, 0)]);
}

#[test]
fn transfers_are_answered_with_what_moved() {
    let (mut session, mut fake) = attached();
    run(&mut session, &mut fake, bulk_in(1, 4));
    run(&mut session, &mut fake, bulk_in(2, 14));
    run(
        &mut session,
        &mut fake,
        Packet::Bulk {
            id: 3,
            bulk: Bulk {
                endpoint: 2,
                length: 3,
                stream: 1,
            },
            data: vec![1, 2, 3],
        },
    );
    let control = Control {
        endpoint: 0x80,
        request: 6,
        request_type: 0x80,
        value: 0x0302,
        index: 0x0409,
        length: 255,
    };
    run(
        &mut session,
        &mut fake,
        Packet::Control {
            id: 4,
            control,
            data: Vec::new(),
        },
    );
    assert_eq!(
        frames(&mut session),
        [
            packet(101, 1, &[0x81, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            packet(101, 2, &[0x81, 4, 0, 0, 0, 0, 0, 0, 0, 0]),
            packet(101, 3, &[2, 0, 3, 0, 1, 0, 0, 0, 0, 0]),
            packet(
                100,
                4,
                &[0x80, 6, 0x80, 0, 2, 3, 9, 4, 8, 0, 0x80, 6, 2, 3, 9, 4, 255, 0]
            ),
        ]
    );
}

#[test]
fn what_is_not_there_is_answered_too() {
    let (mut session, mut fake) = attached();
    let small = Small {
        endpoint: 0x83,
        length: 8,
    };
    let mut unknown = bulk_in(1, 8);
    if let Packet::Bulk { bulk, .. } = &mut unknown {
        bulk.endpoint = 0x8f;
    }
    for request in [
        unknown,
        bulk_in(2, u32::MAX),
        Packet::Iso {
            id: 3,
            iso: small,
            data: Vec::new(),
        },
        Packet::Interrupt {
            id: 4,
            interrupt: small,
            data: Vec::new(),
        },
    ] {
        run(&mut session, &mut fake, request);
        let sent = frames(&mut session);
        assert_eq!((sent.len(), sent[0][17]), (1, 2), "{sent:?}");
    }
    for (request, answer) in [
        (
            Packet::StartIso {
                id: 5,
                endpoint: 0x83,
            },
            packet(14, 5, &[2, 0x83]),
        ),
        (
            Packet::StopIso {
                id: 5,
                endpoint: 0x83,
            },
            packet(14, 5, &[0, 0x83]),
        ),
        (
            Packet::StartInterrupt {
                id: 5,
                endpoint: 0x83,
            },
            packet(17, 5, &[2, 0x83]),
        ),
        (
            Packet::StopInterrupt {
                id: 5,
                endpoint: 0x83,
            },
            packet(17, 5, &[0, 0x83]),
        ),
        (
            Packet::StartBulkReceiving {
                id: 5,
                stream: 6,
                endpoint: 0x81,
            },
            packet(27, 5, &[6, 0, 0, 0, 0x81, 2]),
        ),
    ] {
        run(&mut session, &mut fake, request);
        assert_eq!(frames(&mut session), [answer]);
    }
    run(&mut session, &mut fake, Packet::Skipped { kind: 23 });
    run(&mut session, &mut fake, Packet::Cancel { id: 77 });
    assert!(frames(&mut session).is_empty());
    assert!(fake.calls.is_empty());
}

#[test]
fn what_is_pending_can_be_taken_back_or_pulled_away() {
    let (mut session, mut fake) = attached();
    run(&mut session, &mut fake, bulk_in(1, 13));
    run(&mut session, &mut fake, bulk_in(2, 13));
    assert!(frames(&mut session).is_empty());
    run(&mut session, &mut fake, Packet::Cancel { id: 1 });
    let cancelled = |id| packet(101, id, &[0x81, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(frames(&mut session), [cancelled(1)]);
    assert_eq!(
        session.receive(&mut fake, bulk_in(2, 13), NOW),
        Err(ProtocolError::SameName { id: 2 })
    );
    fake.unplug(NOW);
    session.pump(&mut fake, NOW);
    assert_eq!(frames(&mut session), [cancelled(2), packet(2, 0, &[])]);
    // The device comes back before the host has seen it go: it is shown after the acknowledgement only.
    fake.plug(NOW);
    session.pump(&mut fake, NOW);
    run(&mut session, &mut fake, bulk_in(3, 8));
    run(
        &mut session,
        &mut fake,
        Packet::SetConfiguration { id: 4, value: 1 },
    );
    run(&mut session, &mut fake, Packet::GetAlt { id: 5, interface: 0 });
    assert_eq!(
        frames(&mut session),
        [
            packet(101, 3, &[0x81, 3, 0, 0, 0, 0, 0, 0, 0, 0]),
            packet(8, 4, &[3, 0]),
            packet(11, 5, &[3, 0, 0])
        ]
    );
    run(&mut session, &mut fake, Packet::DisconnectAck);
    assert_eq!(heads(&mut session), [5, 4, 1]);
}

#[test]
fn an_empty_plug_is_shown_when_it_is_filled() {
    let (mut session, mut fake) = (Session::new(), Fake::new());
    fake.unplug(NOW);
    run(&mut session, &mut fake, Packet::Hello { capabilities: 0xff });
    assert_eq!(heads(&mut session), [0]);
    fake.plug(NOW);
    session.pump(&mut fake, NOW);
    assert_eq!(heads(&mut session), [5, 4, 1]);
}

#[test]
fn what_a_host_may_have_pending_is_bounded() {
    let (mut session, mut fake) = attached();
    for id in 0..1024 {
        session.receive(&mut fake, bulk_in(id, 13), NOW).unwrap();
    }
    assert_eq!(
        session.receive(&mut fake, bulk_in(5000, 13), NOW),
        Err(ProtocolError::TooMany)
    );
    let (mut session, mut fake) = attached();
    let mut result = Ok(());
    for id in 0..8 {
        // Finished, but not fetched.
        result = result.and_then(|()| session.receive(&mut fake, bulk_in(id, 64 << 20), NOW));
        fake.calls.clear();
    }
    assert_eq!(result, Err(ProtocolError::TooMany));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 512 }))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..512), greet: bool) {
        let start = if greet { host_hello() } else { Vec::new() };
        let _ = decode(&[start, bytes].concat());
    }

    /// Likely bytes: real types and short lengths, in pieces of any size, against a device.
    #[test]
    fn any_packets_in_any_pieces_are_answered(
        packets in proptest::collection::vec((0u32..30, any::<bool>(), any::<u8>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..40),
        piece in 1usize..100,
    ) {
        let mut bytes = host_hello();
        for (kind, data, id, payload) in packets {
            let kind = if data { 100 + kind % 5 } else { kind };
            let (_, fixed, more) = [(3, 0, 0), (6, 1, 0), (9, 2, 0), (18, 8, 0), (19, 4, 0), (21, 0, 0), (24, 0, 0), (100, 10, 0), (101, 10, 0)]
                .into_iter().find(|(k, _, _)| *k == kind).unwrap_or((kind, payload.len(), 0));
            let mut payload = payload;
            payload.resize(fixed + more, 0x81);
            if kind >= 100 && !payload.is_empty() {
                payload[0] |= 0x80;
            }
            bytes.extend(packet(kind, u64::from(id), &payload));
        }
        let mut whole = Vec::new();
        let at_once = Decoder::new().feed(&bytes, &mut whole);
        let (mut decoder, mut found, mut outcome) = (Decoder::new(), Vec::new(), Ok(()));
        for chunk in bytes.chunks(piece) {
            outcome = outcome.and_then(|()| decoder.feed(chunk, &mut found));
        }
        prop_assert_eq!(&whole, &found);
        prop_assert_eq!(at_once, outcome);
        let (mut session, mut fake) = (Session::new(), Fake::new());
        for packet in found {
            if session.receive(&mut fake, packet, NOW).is_err() {
                break;
            }
            session.pump(&mut fake, NOW);
            while session.next_frame().is_some() {}
        }
    }
}
