//! Exchange files: any text is read or refused, and what is read survives being written again.
#![no_main]

use drivethru::transport::layer::xchg;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(script) = xchg::parse(text) {
        let again: String = script.exchanges.iter().map(xchg::Exchange::to_text).collect();
        let copy = xchg::parse(&again).expect("own output");
        assert_eq!(copy.exchanges.len(), script.exchanges.len());
    }
});
