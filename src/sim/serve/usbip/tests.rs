#![allow(clippy::indexing_slicing)]

use crate::sim::serve::Decode;
use std::time::Duration;

use proptest::prelude::*;

use super::codec;
use super::*;
use crate::sim::serve::device::Device;
use crate::sim::serve::tests::{Fake, words};
use crate::sim::serve::{Frame, ProtocolError};
use crate::sim::usb::Speed;

const NOW: Duration = Duration::ZERO;
const DEVID: u32 = 0x1_0002;

fn import() -> Vec<u8> {
    let mut bytes = vec![0x01, 0x11, 0x80, 0x03, 0, 0, 0, 0];
    bytes.extend(b"1-1");
    bytes.resize(40, 0);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Vec<Request>, ProtocolError> {
    let mut requests = Vec::new();
    Decoder::new().feed(bytes, &mut requests)?;
    Ok(requests)
}

fn after_import(bytes: &[u8]) -> Result<Vec<Request>, ProtocolError> {
    let mut requests = decode(&[&import(), bytes].concat())?;
    assert_eq!(
        requests.remove(0),
        Request::Import {
            bus_id: "1-1".to_owned()
        }
    );
    Ok(requests)
}

fn submit(seqnum: u32, endpoint: u8, length: usize, data: &[u8]) -> Submit {
    Submit {
        seqnum,
        endpoint,
        flags: 0,
        length,
        setup: [0; 8],
        data: data.to_vec(),
        iso: false,
    }
}

#[test]
fn requests_are_read() {
    assert_eq!(
        decode(&[0x01, 0x11, 0x80, 0x05, 0, 0, 0, 0]),
        Ok(vec![Request::List])
    );
    let setup = *b"\x80\x06\x00\x01\x00\x00\x12\x00";
    let control = words(&[1, 7, DEVID, 1, 0, 0x200, 18, 0, u32::MAX, 0], setup);
    assert_eq!(
        after_import(&control),
        Ok(vec![Request::Submit(Submit {
            flags: 0x200,
            setup,
            ..submit(7, 0x80, 18, &[])
        })])
    );
    let mut out = words(&[1, 8, DEVID, 0, 2, 0, 3, 0, 0, 0], [0; 8]);
    out.extend([1, 2, 3]);
    out.extend(words(&[2, 9, DEVID, 0, 0, 8], [0; 8]));
    assert_eq!(
        after_import(&out),
        Ok(vec![
            Request::Submit(submit(8, 2, 3, &[1, 2, 3])),
            Request::Unlink { seqnum: 9, victim: 8 }
        ])
    );
    // Two isochronous packets with their descriptors, then something else.
    let mut iso = words(&[1, 10, DEVID, 0, 3, 0, 4, 0, 2, 1], [0; 8]);
    iso.extend([9; 4 + 32]);
    iso.extend(words(&[2, 11, DEVID, 0, 0, 10], [0; 8]));
    let requests = after_import(&iso).unwrap();
    assert_eq!(
        requests[0],
        Request::Submit(Submit {
            iso: true,
            ..submit(10, 3, 4, &[9; 4])
        })
    );
    assert_eq!(requests.len(), 2);
}

#[test]
fn nonsense_is_refused_before_anything_is_kept() {
    for bad in [
        vec![0x01, 0x06, 0x80, 0x05, 0, 0, 0, 0],
        vec![0x01, 0x11, 0x80, 0x06, 0, 0, 0, 0],
        [import(), words(&[5, 1], [0; 8])].concat(),
        [import(), words(&[1, 1, DEVID, 1, 16], [0; 8])].concat(),
        [import(), words(&[1, 1, DEVID, 0, 1, 0, (64 << 20) + 1], [0; 8])].concat(),
        [import(), words(&[1, 1, DEVID, 1, 1, 0, u32::MAX], [0; 8])].concat(),
        [import(), words(&[1, 1, DEVID, 1, 1, 0, 0, 0, 1025], [0; 8])].concat(),
    ] {
        let mut decoder = Decoder::new();
        let mut requests = Vec::new();
        assert!(decoder.feed(&bad, &mut requests).is_err(), "{bad:x?}");
        assert_eq!(decoder.feed(&[0; 8], &mut requests), Err(ProtocolError::Broken));
    }
}

#[test]
fn records_have_their_bytes() {
    let mut fake = Fake::new();
    let list = answer_list(&fake).bytes();
    assert_eq!(list.len(), 12 + 312 + 4);
    assert_eq!(list[..12], [0x01, 0x11, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1]);
    let record = &list[12..];
    assert!(record[..256].starts_with(b"/sys/devices/") && record[255] == 0);
    assert_eq!(&record[256..260], b"1-1\0");
    assert_eq!(record[288..300], [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5]);
    assert_eq!(record[300..306], [0x17, 0x4c, 0x55, 0xaa, 0x01, 0x00]);
    assert_eq!(record[306..], [0, 0, 0, 1, 1, 1, 8, 6, 0x50, 0]);
    for (speed, number) in [(Speed::High, 3), (Speed::Super, 5), (Speed::SuperPlus, 5)] {
        let mut identity = fake.identity();
        identity.speed = speed;
        assert_eq!(codec::import_granted(&identity, 0, 1).bytes()[8 + 299], number);
    }
    fake.unplug(NOW);
    assert_eq!(
        answer_list(&fake).bytes(),
        [0x01, 0x11, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0]
    );
}

#[test]
fn an_import_is_granted_to_one_host_under_the_right_name() {
    let mut fake = Fake::new();
    let refused = |status: u8| Frame {
        head: vec![0x01, 0x11, 0, 3, 0, 0, 0, status],
        data: Vec::new(),
    };
    let Granted::Yes(frame) = answer_import(&fake, "1-1", false) else {
        panic!()
    };
    assert_eq!(frame.bytes().len(), 8 + 312);
    for (bus_id, busy, status) in [("1-1", true, 1), ("1-2", false, 4)] {
        let Granted::No(frame, _) = answer_import(&fake, bus_id, busy) else {
            panic!()
        };
        assert_eq!(frame, refused(status));
    }
    fake.unplug(NOW);
    assert!(matches!(answer_import(&fake, "1-1", false), Granted::No(..)));
}

fn run(session: &mut Session, fake: &mut Fake, request: Request) -> Vec<Vec<u8>> {
    session.receive(fake, request, NOW).unwrap();
    session.pump(fake, NOW);
    std::iter::from_fn(|| session.next_frame())
        .map(|f| f.bytes())
        .collect()
}

/// A reply: command, number, status, length, data.
fn reply(command: u32, seqnum: u32, status: i32, length: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = words(
        &[command, seqnum, 0, 0, 0, status.cast_unsigned(), length],
        [0; 8],
    );
    bytes.extend(data);
    bytes
}

#[test]
fn transfers_are_answered_with_what_moved() {
    let (mut session, mut fake) = (Session::new(), Fake::new());
    let mut go = |submit: Submit| run(&mut session, &mut fake, Request::Submit(submit));
    assert_eq!(go(submit(1, 0x81, 4, &[])), [reply(3, 1, 0, 4, &[0; 4])]);
    assert_eq!(go(submit(2, 0x81, 14, &[])), [reply(3, 2, -32, 0, &[])]);
    assert_eq!(go(submit(3, 2, 3, &[1, 2, 3])), [reply(3, 3, 0, 3, &[])]);
    let control = Submit {
        setup: *b"\x80\x06\x00\x01\x00\x00\x40\x00",
        ..submit(4, 0x80, 64, &[])
    };
    assert_eq!(go(control.clone()), [reply(3, 4, 0, 8, &control.setup)]);
    let strict = Submit {
        seqnum: 5,
        flags: 1,
        ..control
    };
    assert_eq!(go(strict.clone()), [reply(3, 5, -121, 8, &strict.setup)]);
    let iso = Submit {
        iso: true,
        ..submit(6, 0x83, 8, &[])
    };
    assert_eq!(go(iso), [reply(3, 6, -22, 0, &[])]);
    assert!(fake.calls[0].starts_with("submit 81"), "{:?}", fake.calls);
}

#[test]
fn unlinks_tell_whether_they_came_in_time() {
    let (mut session, mut fake) = (Session::new(), Fake::new());
    let unlink = |seqnum, victim| Request::Unlink { seqnum, victim };
    assert!(run(&mut session, &mut fake, Request::Submit(submit(1, 0x81, 13, &[]))).is_empty());
    assert_eq!(
        run(&mut session, &mut fake, unlink(2, 1)),
        [reply(4, 2, -104, 0, &[])]
    );
    assert_eq!(
        run(&mut session, &mut fake, unlink(3, 1)),
        [reply(4, 3, 0, 0, &[])]
    );
    // It ended, but the answer was not fetched when the unlink came.
    session
        .receive(&mut fake, Request::Submit(submit(4, 0x81, 1, &[])), NOW)
        .unwrap();
    assert_eq!(
        run(&mut session, &mut fake, unlink(5, 4)),
        [reply(3, 4, 0, 1, &[0]), reply(4, 5, 0, 0, &[])]
    );
}

#[test]
fn a_reset_and_a_pulled_plug_end_what_is_pending() {
    let (mut session, mut fake) = (Session::new(), Fake::new());
    run(&mut session, &mut fake, Request::Submit(submit(1, 0x81, 13, &[])));
    let reset = Submit {
        setup: [0x23, 3, 4, 0, 0, 0, 0, 0],
        ..submit(2, 0, 0, &[])
    };
    assert_eq!(
        run(&mut session, &mut fake, Request::Submit(reset)),
        [reply(3, 1, -104, 0, &[]), reply(3, 2, 0, 0, &[])]
    );
    run(&mut session, &mut fake, Request::Submit(submit(3, 0x81, 13, &[])));
    assert_eq!(
        session.receive(&mut fake, Request::Submit(submit(3, 0x81, 1, &[])), NOW),
        Err(ProtocolError::SameName { id: 3 })
    );
    fake.unplug(NOW);
    assert_eq!(
        run(&mut session, &mut fake, Request::Submit(submit(4, 0x81, 1, &[]))),
        [reply(3, 4, -108, 0, &[]), reply(3, 3, -108, 0, &[])]
    );
    assert!(session.receive(&mut fake, Request::List, NOW).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 512 }))]

    #[test]
    fn any_bytes_in_any_pieces_are_read_or_refused(
        bytes in proptest::collection::vec(prop_oneof![3 => Just(0u8), 2 => 0u8..4, 1 => any::<u8>()], 0..600),
        imported: bool,
        piece in 1usize..100,
    ) {
        let bytes = [if imported { import() } else { Vec::new() }, bytes].concat();
        let mut whole = Vec::new();
        let at_once = Decoder::new().feed(&bytes, &mut whole);
        let (mut decoder, mut found, mut outcome) = (Decoder::new(), Vec::new(), Ok(()));
        for chunk in bytes.chunks(piece) {
            outcome = outcome.and_then(|()| decoder.feed(chunk, &mut found));
        }
        prop_assert_eq!(&whole, &found);
        prop_assert_eq!(at_once, outcome);
        let (mut session, mut fake) = (Session::new(), Fake::new());
        for request in found {
            if session.receive(&mut fake, request, NOW).is_err() {
                break;
            }
            session.pump(&mut fake, NOW);
            while session.next_frame().is_some() {}
        }
    }
}
