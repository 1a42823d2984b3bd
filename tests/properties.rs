//! No bytes of any length make a parser panic, and every document can be shown.
#![cfg(feature = "cli")]

use std::path::Path;

use clap::ValueEnum;
use drivethru::cli::decode::{Kind, decode, read_input, render_text};
use drivethru::nvme::identify::{Controller, Namespace};
use drivethru::nvme::log::SmartLog;
use drivethru::scsi::capacity::Capacity;
use drivethru::scsi::designator::Designator;
use drivethru::scsi::inquiry::Inquiry;
use drivethru::scsi::log::{LogPage, SupportedLogPages, TemperatureLog};
use drivethru::scsi::sense::{AtaRegisters, Sense};
use drivethru::scsi::vpd::Vpd;
use drivethru::transport::usb::descriptors::Descriptors;
use proptest::prelude::*;

/// Every parser and every kind, with each result shown as JSON and text.
fn feed(bytes: &[u8]) {
    let _ = Sense::parse(bytes);
    let _ = AtaRegisters::from_descriptor(bytes);
    let _ = AtaRegisters::from_fixed(bytes);
    let _ = Inquiry::parse(bytes);
    let _ = Vpd::parse(bytes);
    let _ = Designator::parse_list(bytes);
    if let Ok(page) = LogPage::parse(bytes) {
        assert!(page.parameters().count() <= bytes.len());
    }
    let _ = TemperatureLog::parse(bytes);
    let _ = SupportedLogPages::parse(bytes);
    let _ = Capacity::parse_10(bytes);
    let _ = Capacity::parse_16(bytes);
    let _ = SmartLog::parse(bytes);
    let _ = Controller::parse(bytes);
    let _ = Namespace::parse(bytes);
    let _ = Descriptors::parse(bytes);
    for kind in Kind::value_variants() {
        if let Ok(document) = decode(*kind, bytes, None, None) {
            assert_eq!(document["schema"], "drivethru-decode/1");
            assert!(
                !render_text(&document).contains('\u{1b}'),
                "an escape reached the terminal"
            );
        }
        let _ = decode(*kind, bytes, Some(bytes), Some(bytes));
    }
    let _ = read_input(bytes);
}

/// Arbitrary bytes behind beginnings that lead into the parsers.
fn shaped() -> impl Strategy<Value = Vec<u8>> {
    let starts = prop::sample::select(vec![
        vec![],
        vec![0x70],
        vec![0xf1, 0],
        vec![0x72, 1, 0, 0x1d, 0, 0, 0],
        vec![0x73],
        vec![0, 0x80],
        vec![0, 0x83, 0],
        vec![0, 0x89, 2, 0x38],
        vec![0, 0xb0, 0, 0x3c],
        vec![0, 0xb2, 0],
        vec![0, 0xb8, 0],
        vec![0x12, 1, 0, 2, 0, 0, 0, 64],
        vec![9, 2, 32, 0, 1, 1, 0, 0xc0, 0, 9, 4, 0, 1, 4, 8, 6, 0x62, 0],
        vec![5, 0x0f, 22, 0, 2],
        vec![0x0d, 0],
        vec![0x4d, 0],
        vec![2, 0],
        vec![3, 0],
        vec![0x10, 0],
        vec![0x5a, 0x0c],
    ]);
    (starts, prop::collection::vec(any::<u8>(), 0..700)).prop_map(|(mut bytes, rest)| {
        bytes.extend(rest);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn nothing_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        feed(&bytes);
    }

    #[test]
    fn nothing_panics_behind_a_good_beginning(bytes in shaped()) {
        feed(&bytes);
    }

    #[test]
    fn nothing_panics_on_few_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        feed(&bytes);
    }

    #[test]
    fn any_text_can_be_read(text in "[0-9a-fx:|#*=, \\n\u{e4}-]{0,400}") {
        let _ = read_input(text.as_bytes());
    }

    /// Any dump of any bytes gives them back.
    #[test]
    fn dumps_give_the_bytes_back(bytes in prop::collection::vec(any::<u8>(), 1..300), style in 0..5) {
        let mut text = String::new();
        for (index, row) in bytes.chunks(16).enumerate() {
            let offset = index * 16;
            let hex: Vec<String> = row.iter().map(|b| format!("{b:02x}")).collect();
            let ascii: String = row.iter().map(|b| if (0x20..0x7f).contains(b) { char::from(*b) } else { '.' }).collect();
            let pairs: String = row.chunks(2).map(|p| p.iter().map(|b| format!("{b:02x}")).collect::<String>() + " ").collect();
            text += &match style {
                0 => format!("{:04x}: {}\n", offset, hex.join(" ")),
                1 => format!("{offset:08x}: {pairs:<40} {ascii}\n"),
                2 => format!("{offset:08x}  {:<23}  {:<23}  |{ascii}|\n", hex[..hex.len().min(8)].join(" "), hex.get(8..).unwrap_or(&[]).join(" ")),
                3 => format!("{}\n", hex.join(" ")),
                _ => format!("{offset:07o} {}\n", hex.join(" ")),
            };
        }
        // In the ASCII column a '#' or '|' may stand.
        prop_assume!(style != 1 || !text.contains(['#', '|']));
        prop_assume!(style != 2 || !text.contains('#'));
        prop_assert_eq!(read_input(text.as_bytes()).unwrap(), bytes);
    }
}

#[test]
fn vectors_may_end_anywhere() {
    let mut stack = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")];
    let mut vectors = 0;
    while let Some(path) = stack.pop() {
        if path.is_dir() {
            stack.extend(std::fs::read_dir(&path).unwrap().flatten().map(|e| e.path()));
        } else if path.extension().is_some_and(|e| e == "hex") {
            let bytes = read_input(&std::fs::read(&path).unwrap()).unwrap();
            // Every length of short pages; of long ones those around each end of a field group.
            let step = if bytes.len() > 1024 { 37 } else { 1 };
            for end in (0..=bytes.len()).step_by(step) {
                feed(&bytes[..end]);
            }
            vectors += 1;
        }
    }
    assert!(vectors > 0, "no vectors");
}
