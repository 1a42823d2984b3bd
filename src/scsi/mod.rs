//! SCSI: command blocks, sense, INQUIRY, VPD pages, logs and capacity. Bytes to meaning and back; no I/O.
#![deny(clippy::indexing_slicing)]

pub mod asc;
pub mod capacity;
pub mod cdb;
pub mod designator;
pub mod inquiry;
pub mod log;
pub mod registers;
pub mod sense;
pub mod vpd;
