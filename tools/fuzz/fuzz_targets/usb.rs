//! Any transfers into the USB device: wrappers, information units, data, requests. Each ends once, and says no more than it may.
#![no_main]

use std::collections::HashMap;
use std::time::Duration;

use drivethru::sim::usb::{Transfer, UsbDevice};
use libfuzzer_sys::fuzz_target;

const ENDPOINTS: [u8; 6] = [0x00, 0x80, 0x81, 0x02, 0x83, 0x04];

fuzz_target!(|data: &[u8]| {
    let Some((&first, data)) = data.split_first() else {
        return;
    };
    let speed = if first & 1 == 0 { 480 } else { 5000 };
    let Ok(mut device) = UsbDevice::open(&format!("ssd,speed={speed},unknown=stall")) else {
        return;
    };
    device.set_configuration(1, Duration::ZERO);
    device.set_interface(0, first >> 1 & 1, Duration::ZERO);
    let mut open = HashMap::new();
    let mut now = Duration::ZERO;
    for (id, piece) in (1u64..).zip(data.chunks(36)) {
        now += Duration::from_millis(u64::from(first));
        let (head, body) = piece.split_at(piece.len().min(4));
        let byte = |at: usize| head.get(at).copied().unwrap_or_default();
        let endpoint = ENDPOINTS[usize::from(byte(0)) % ENDPOINTS.len()];
        let mut setup = [0; 8];
        setup.iter_mut().zip(body).for_each(|(to, from)| *to = *from);
        // A wrapper that is valid but for its command, so that more than its checks are reached.
        let mut out = body.to_vec();
        if byte(3) & 1 == 1 && endpoint == 0x02 {
            out.resize(31, 0);
            out[..4].copy_from_slice(b"USBC");
            out[9] = 0;
            out[10] = 0;
            out[11] = 0;
            out[13] = 0;
            out[14] = 16;
        }
        let in_len = usize::from(byte(1)) * 8;
        open.insert(id, in_len);
        device.submit(
            Transfer {
                id,
                endpoint,
                stream: u32::from(byte(2) & 3),
                setup: (endpoint & 0x0f == 0).then_some(setup),
                out,
                in_len,
            },
            now,
        );
        if byte(3) == 0xff {
            device.cancel(id.saturating_sub(1), now);
        }
        while let Some(done) = device.finished(now) {
            let room = open.remove(&done.id).expect("it was open, and ends once");
            assert!(done.data.len() <= room);
        }
    }
    device.unplug(now);
    while let Some(done) = device.finished(now) {
        assert!(open.remove(&done.id).is_some());
    }
    assert!(open.is_empty());
});
