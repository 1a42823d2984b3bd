//! USB descriptors against the kernel's uevent of the same device.

use std::path::Path;

use drivethru::cli::decode::{Kind, decode, read_input};
use serde_json::{Value, json};

use crate::{Tally, cases};

const KIND: &str = "usb-descriptors";

/// Compares every USB case.
pub fn run(root: &Path, tally: &mut Tally) {
    for case in cases(root, KIND, tally) {
        let document =
            match read_input(&case.bytes).and_then(|b| decode(Kind::UsbDescriptors, &b, None, None)) {
                Ok(document) => document,
                Err(error) => {
                    tally.wrong(KIND, &case.name, &error.to_string());
                    continue;
                }
            };
        let ours = |pointer: &str| document.pointer(pointer).cloned().unwrap_or_default();
        for (name, pointer) in [
            ("idVendor", "/device/vid"),
            ("idProduct", "/device/pid"),
            ("bcdDevice", "/device/bcd_device"),
            ("bcdUSB", "/device/bcd_usb"),
        ] {
            if let Some(theirs) = case.expect.get(name).and_then(Value::as_str).and_then(hex) {
                tally.equal(KIND, &case.name, name, &ours(pointer), &json!(theirs));
            }
        }
        if let Some(product) = case.expect.get("product_uevent").and_then(Value::as_str) {
            let parts = product.split('/').filter_map(|p| u64::from_str_radix(p, 16).ok());
            for (theirs, pointer) in parts.zip(["/device/vid", "/device/pid", "/device/bcd_device"]) {
                tally.equal(KIND, &case.name, pointer, &ours(pointer), &json!(theirs));
            }
        }
        if let Some(how) = case.expect.get("how").and_then(Value::as_str) {
            if how.contains("driver usb-storage") {
                tally.equal(
                    KIND,
                    &case.name,
                    "usb-storage bound to it",
                    &ours("/bot"),
                    &json!(true),
                );
            }
            if how.contains("driver uas") {
                tally.equal(KIND, &case.name, "uas bound to it", &ours("/uas"), &json!(true));
            }
        }
    }
    tally.skipped(
        "lsusb",
        "text dumps of lsusb; decode reads descriptors, not prints of them",
    );
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}
