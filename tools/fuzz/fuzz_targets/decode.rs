//! Every kind of `decode` on any bytes: an answer or an error, never a panic. The first byte picks the kind.
#![no_main]

use drivethru::cli::decode::{Kind, decode, read_input, render_text};
use libfuzzer_sys::fuzz_target;

const KINDS: [Kind; 13] = [
    Kind::Auto,
    Kind::Identify,
    Kind::SmartData,
    Kind::SmartThresholds,
    Kind::SctStatus,
    Kind::SctTempHistory,
    Kind::Devstat,
    Kind::NvmeSmart,
    Kind::NvmeIdentify,
    Kind::Inquiry,
    Kind::Vpd,
    Kind::Sense,
    Kind::UsbDescriptors,
];

fuzz_target!(|data: &[u8]| {
    let Some((&pick, bytes)) = data.split_first() else { return };
    let kind = KINDS[usize::from(pick) % KINDS.len()];
    let bytes = read_input(bytes).unwrap_or_else(|_| bytes.to_vec());
    if let Ok(document) = decode(kind, &bytes, None, None) {
        let _ = render_text(&document);
    }
});
