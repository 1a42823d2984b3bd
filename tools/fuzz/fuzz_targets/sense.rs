//! Sense data, registers and the guard's judgement of any CDB.
#![no_main]

use drivethru::scsi::sense::Sense;
use drivethru::transport::Data;
use drivethru::transport::layer::guard::{Allowance, judge};
use drivethru::transport::layer::name::command_name;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(sense) = Sense::parse(data) {
        let _ = sense.ata.map(|registers| (registers.is_success(), registers.lba48()));
    }
    let _ = command_name(data);
    for phase in [Data::None, Data::In { len_bytes: 512 }, Data::Out(vec![0; 512])] {
        let _ = judge(data, &phase, Allowance { self_test: true, ..Allowance::default() });
    }
});
