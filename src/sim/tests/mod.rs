//! The simulator, spoken to in hand-assembled CDBs and checked against hand-read bytes.
#![allow(clippy::indexing_slicing)]

mod any;
mod ata;
mod bridge;
mod errors;
mod faults;
mod limit;
mod logs;
mod medium;
mod scsi;
mod usb;

use std::time::Duration;

use super::*;

pub const IDENTIFY_12: &str = "a1 08 0e 00 01 00 00 00 00 ec 00 00";
pub const IDENTIFY_16: &str = "85 08 0e 00 00 00 01 00 00 00 00 00 00 00 ec 00";
pub const READ_DATA: &str = "a1 08 0e d0 01 00 4f c2 00 b0 00 00";
pub const THRESHOLDS: &str = "a1 08 0e d1 01 01 4f c2 00 b0 00 00";
pub const SCT_STATUS: &str = "a1 08 0e d5 01 e0 4f c2 00 b0 00 00";
pub const RETURN_STATUS: &str = "85 06 2c 00 da 00 00 00 00 00 4f 00 c2 00 b0 00";
pub const CHECK_POWER: &str = "85 06 20 00 00 00 00 00 00 00 00 00 00 00 e5 00";

/// Status, sense and data of a command that was answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Got {
    pub status: u8,
    pub sense: Vec<u8>,
    pub data: Vec<u8>,
}

pub fn open(spec: &str) -> Target {
    Target::open(spec).unwrap_or_else(|e| panic!("{spec}: {e}"))
}

pub fn bytes(hex: &str) -> Vec<u8> {
    crate::text::parse_hex(hex).unwrap_or_else(|| panic!("not hex: {hex}"))
}

pub fn send(target: &mut Target, cdb: &str, data_out: &[u8], in_len: usize) -> Got {
    match target.command(&bytes(cdb), data_out, in_len, Duration::from_secs(30)) {
        Reply::Answered {
            status, sense, data, ..
        } => Got { status, sense, data },
        other => panic!("{cdb}: {other:?}"),
    }
}

/// A data-in command that must succeed.
pub fn fetch(target: &mut Target, cdb: &str, in_len: usize) -> Vec<u8> {
    let got = send(target, cdb, &[], in_len);
    assert_eq!((got.status, got.sense.as_slice()), (0, &[][..]), "{cdb}");
    got.data
}

/// Sense key, ASC and ASCQ of fixed sense data.
pub fn code(got: &Got) -> (u8, u8, u8) {
    assert_eq!(got.status, 2, "{got:?}");
    assert_eq!(got.sense[0] & 0x7f, 0x70, "{got:?}");
    (got.sense[2] & 0x0f, got.sense[12], got.sense[13])
}

pub fn word(page: &[u8], n: usize) -> u16 {
    u16::from_le_bytes([page[2 * n], page[2 * n + 1]])
}

pub fn sum(page: &[u8]) -> u8 {
    page.iter().fold(0, |s, b| s.wrapping_add(*b))
}

/// Raw bytes of a SMART attribute.
pub fn attribute(data: &[u8], id: u8) -> [u8; 12] {
    data[2..362]
        .chunks_exact(12)
        .find(|a| a[0] == id)
        .unwrap_or_else(|| panic!("no attribute {id}"))
        .try_into()
        .unwrap()
}

#[test]
fn the_other_side_imports_only_leaves() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sim");
    let mut rooms = vec![root];
    let mut seen = 0;
    while let Some(room) = rooms.pop() {
        for entry in std::fs::read_dir(room).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                rooms.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                seen += 1;
                let text = std::fs::read_to_string(&path).unwrap();
                for used in text.split("crate::").skip(1) {
                    let room = used
                        .split(|c: char| !c.is_alphanumeric() && c != '_')
                        .next()
                        .unwrap();
                    let leaf = matches!(room, "units" | "text" | "time" | "sys" | "wire" | "sim" | "");
                    assert!(leaf, "{}: crate::{room}", path.display());
                }
            }
        }
    }
    assert!(seen > 20, "{seen} files");
}
