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
//! Devices that the `drivethru` program simulates are plugged in while the guest runs:
//!
//! ```no_run
//! use std::time::Duration;
//! use drivethru_vm::{Served, Vm};
//!
//! # fn main() -> Result<(), drivethru_vm::Error> {
//! let guest = Vm::builder().usb_slots(4).program("target/debug/drivethru").boot()?;
//! let device = guest.attach(&Served::profile("ssd,temp=50"))?;
//! let disk = device.wait_for_disk(Duration::from_secs(10))?;
//! guest.run(&format!("smartctl -d sat -i {}", disk.node), Duration::from_secs(20))?;
//! println!("{:?} {:?}", device.driver()?, device.log()?);
//! # Ok(())
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
mod served;
pub mod setup;
mod vm;

pub use disk::{Disk, DiskKind};
pub use error::Error;
pub use guest::{Guest, GuestDisk, KernelMessage, Output, UsbDevice, UsbInterface};
pub use served::{Served, ServedDevice, Way, default_program};
pub use vm::{Builder, Vm};
