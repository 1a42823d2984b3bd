//! The simulated bridge and drive under any sequence of CDBs.
#![no_main]

use std::time::Duration;

use drivethru::sim::{Reply, Target};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(mut target) = Target::open("ssd") else { return };
    for command in data.chunks(18) {
        let (head, cdb) = command.split_at(command.len().min(2));
        let in_len_bytes = usize::from(head.first().copied().unwrap_or_default()) * 64;
        let out = vec![head.last().copied().unwrap_or_default(); if in_len_bytes == 0 { 512 } else { 0 }];
        if let Reply::Answered { data, .. } = target.command(cdb, &out, in_len_bytes, Duration::from_secs(10)) {
            assert!(data.len() <= in_len_bytes);
        }
    }
});
