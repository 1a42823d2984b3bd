//! `auto` must recognise every page of every kind.

use std::path::Path;

use drivethru::cli::decode::{Kind, decode, read_input, render_text};
use serde_json::json;

use crate::{Tally, cases};

const KIND: &str = "auto";

/// Guesses every case whose kind is known from its directory.
pub fn run(root: &Path, tally: &mut Tally) {
    let mut others = Tally::default();
    for (directory, kind) in [
        ("identify", Kind::Identify),
        ("identify-swapped", Kind::Identify),
        ("hdparm-istdout", Kind::Identify),
        ("smart-data", Kind::SmartData),
        ("smart-thresholds", Kind::SmartThresholds),
        ("sct-status", Kind::SctStatus),
        ("sct-temp-history", Kind::SctTempHistory),
        ("devstat", Kind::Devstat),
        ("nvme-smart", Kind::NvmeSmart),
        ("nvme-identify", Kind::NvmeIdentify),
        ("inquiry", Kind::Inquiry),
        ("vpd", Kind::Vpd),
        ("sense", Kind::Sense),
        ("usb-descriptors", Kind::UsbDescriptors),
    ] {
        for case in cases(root, directory, &mut others) {
            tally.case(KIND);
            let name = format!("{directory}/{}", case.name);
            // No page of a device may pass for text, nor be read as a dump.
            if case.name.ends_with(".bin") && read_input(&case.bytes).as_ref() != Ok(&case.bytes) {
                tally.wrong(KIND, &name, "binary, but taken for text");
            }
            match read_input(&case.bytes).and_then(|b| decode(Kind::Auto, &b, None, None)) {
                Ok(document) => {
                    tally.equal(KIND, &name, "kind", &document["kind"], &json!(kind.name()));
                    if render_text(&document).lines().count() < 3 {
                        tally.wrong(KIND, &name, "hardly any text");
                    }
                }
                Err(error) => tally.wrong(KIND, &name, &error.to_string()),
            }
        }
    }
}
