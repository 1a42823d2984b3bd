//! A real Linux kernel with virtual disks, for tests: Debian's kernel under QEMU's own emulation, without KVM, host modules
//! or root.
//!
//! ```no_run
//! use std::time::Duration;
//! use drivethru_vm::{Disk, Vm};
//!
//! # fn main() -> Result<(), drivethru_vm::Error> {
//! let guest = Vm::builder().disk(Disk::ahci().serial("QM1")).disk(Disk::usb_uas().serial("QM2")).boot()?;
//! let disk = guest.find_disk("QM1")?;
//! let output = guest.run(&format!("smartctl -i {}", disk.node), Duration::from_secs(20))?;
//! assert_eq!(output.status, 0, "{}", output.stderr_text());
//! guest.shutdown()
//! # }
//! ```
//!
//! The guest sees the host's root read-only, so that every program and library of the host is there; a file of the host is
//! named by [`Guest::host_path`]. What is missing on this machine is reported as [`Error::Unavailable`], which a test must
//! count as skipped; [`setup::setup`] provides it.

mod cpio;
mod disk;
mod error;
mod frame;
mod guest;
mod initrd;
mod modules;
pub mod setup;
mod vm;

pub use disk::{Disk, DiskKind};
pub use error::Error;
pub use guest::{Guest, GuestDisk, KernelMessage, Output};
pub use vm::{Builder, Vm};
