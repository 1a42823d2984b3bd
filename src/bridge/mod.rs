//! Bridges: how an ATA taskfile or an NVMe admin command travels inside SCSI commands.
#![deny(clippy::indexing_slicing)]

pub mod taskfile;
