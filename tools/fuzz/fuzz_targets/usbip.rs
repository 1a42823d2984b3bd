//! USB/IP requests out of any bytes, whole and in pieces: the same requests, or the same error.
#![no_main]

use drivethru::sim::serve::Decode;
use drivethru::sim::serve::usbip::Decoder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&first, data)) = data.split_first() else {
        return;
    };
    // An odd first byte imports first, so that what follows is read as transfers.
    let mut bytes = Vec::new();
    if first & 1 == 1 {
        bytes.extend([0x01, 0x11, 0x80, 0x03, 0, 0, 0, 0]);
        bytes.extend(b"1-1");
        bytes.resize(40, 0);
    }
    bytes.extend(data);
    let mut whole = Vec::new();
    let at_once = Decoder::new().feed(&bytes, &mut whole);
    let (mut decoder, mut found, mut outcome) = (Decoder::new(), Vec::new(), Ok(()));
    for piece in bytes.chunks(usize::from(first >> 1) + 1) {
        outcome = outcome.and_then(|()| decoder.feed(piece, &mut found));
        assert!(decoder.space().len() <= 64 << 20);
    }
    assert_eq!(whole, found);
    assert_eq!(at_once, outcome);
});
