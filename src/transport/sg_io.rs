//! Linux SG_IO: `/dev/sdX` and `/dev/sgN`, opened read-only.
//!
//! Success is judged from the sense data first and the host status second: under `uas` a command that ends in CHECK
//! CONDITION may carry host status DID_ERROR although the device answered (Linux, `drivers/usb/storage/uas.c`).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;

use super::{Command, Completion, Data, Finished, Limits, Recovery, Status, Tag, Transport, TransportError};
use crate::time::{RealClock, SharedClock};

/// Sense buffer that SG_IO is given: 8 bytes of header and room for every descriptor seen in the field.
const SENSE_BYTES: usize = 96;

/// `struct sg_io_hdr`, interface 'S' (Linux, `include/scsi/sg.h`).
#[repr(C)]
struct SgIoHdr {
    interface_id: i32,
    dxfer_direction: i32,
    cmd_len: u8,
    mx_sb_len: u8,
    iovec_count: u16,
    dxfer_len: u32,
    dxferp: *mut u8,
    cmdp: *const u8,
    sbp: *mut u8,
    timeout: u32,
    flags: u32,
    pack_id: i32,
    usr_ptr: *mut u8,
    status: u8,
    masked_status: u8,
    msg_status: u8,
    sb_len_wr: u8,
    host_status: u16,
    driver_status: u16,
    resid: i32,
    duration: u32,
    info: u32,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<SgIoHdr>() == 88);
#[cfg(target_pointer_width = "32")]
const _: () = assert!(size_of::<SgIoHdr>() == 64);

const SG_DXFER_NONE: i32 = -1;
const SG_DXFER_TO_DEV: i32 = -2;
const SG_DXFER_FROM_DEV: i32 = -3;

nix::ioctl_readwrite_bad!(
    /// SG_IO, request 2285h.
    sg_io_ioctl,
    0x2285,
    SgIoHdr
);

/// A SCSI device node.
#[derive(Debug)]
pub struct SgIo {
    device: String,
    file: File,
    clock: SharedClock,
    finished: Finished,
}

impl SgIo {
    /// Opens a node read-only and without waiting for media.
    ///
    /// # Errors
    /// It does not exist, rights are missing, or it is no node that takes SCSI commands.
    pub fn open(path: &Path) -> Result<Self, TransportError> {
        let device = path.display().to_string();
        let file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC)
            .open(path)
            .map_err(|error| open_error(&device, &error))?;
        let kind = file
            .metadata()
            .map_err(|error| open_error(&device, &error))?
            .file_type();
        let what = if kind.is_dir() {
            Some("this is a directory, not a device")
        } else if kind.is_file() {
            Some("this is a regular file, not a device")
        } else if !kind.is_block_device() && !kind.is_char_device() {
            Some("this is neither a block nor a character device")
        } else {
            None
        };
        if let Some(why) = what {
            return Err(TransportError::NotScsi {
                device,
                why: why.to_owned(),
            });
        }
        Ok(Self {
            device,
            file,
            clock: RealClock::shared(),
            finished: Finished::default(),
        })
    }

    fn run(&self, mut command: Command) -> Result<Completion, TransportError> {
        let mut sense = [0u8; SENSE_BYTES];
        let mut received = Vec::new();
        let (direction, pointer, len) = match &mut command.data {
            Data::None => (SG_DXFER_NONE, std::ptr::null_mut(), 0),
            Data::In { len_bytes } => {
                received.resize(*len_bytes, 0);
                (SG_DXFER_FROM_DEV, received.as_mut_ptr(), received.len())
            }
            Data::Out(buffer) => (SG_DXFER_TO_DEV, buffer.as_mut_ptr(), buffer.len()),
        };
        let cdb = command.cdb;
        let too_large = |what: &str| TransportError::TooLarge {
            device: self.device.clone(),
            command: cdb.name(),
            cdb,
            what: what.to_owned(),
        };
        let mut header = SgIoHdr {
            interface_id: i32::from(b'S'),
            dxfer_direction: direction,
            cmd_len: u8::try_from(cdb.as_bytes().len()).map_err(|_| too_large("the CDB is too long"))?,
            mx_sb_len: SENSE_BYTES as u8,
            iovec_count: 0,
            dxfer_len: u32::try_from(len).map_err(|_| too_large("the data phase is too long"))?,
            dxferp: pointer,
            cmdp: cdb.as_bytes().as_ptr(),
            sbp: sense.as_mut_ptr(),
            timeout: u32::try_from(command.timeout.as_millis())
                .unwrap_or(u32::MAX)
                .max(1),
            flags: 0,
            pack_id: 0,
            usr_ptr: std::ptr::null_mut(),
            status: 0,
            masked_status: 0,
            msg_status: 0,
            sb_len_wr: 0,
            host_status: 0,
            driver_status: 0,
            resid: 0,
            duration: 0,
            info: 0,
        };
        let start = self.clock.now();
        // SAFETY: `header` and the three buffers it points to (`sense`, `cdb`, and `received` or the command's own
        // buffer) are owned by this frame and their lengths are given truthfully. The kernel copies into them only inside
        // this call: no mapped or direct I/O is asked for, so even a call that a signal interrupts leaves nothing behind
        // that would write later.
        let outcome = unsafe { sg_io_ioctl(self.file.as_raw_fd(), &raw mut header) };
        let elapsed = self.clock.now().saturating_sub(start);
        if let Err(errno) = outcome {
            return Err(self.ioctl_error(&command, errno));
        }
        let sense_len = usize::from(header.sb_len_wr).min(SENSE_BYTES);
        let raw = Raw {
            status: header.status,
            host_status: header.host_status,
            driver_status: header.driver_status,
            sense: sense.get(..sense_len).unwrap_or_default(),
        };
        let status = raw
            .judge(elapsed >= command.timeout)
            .map_err(|broken| match broken {
                Broken::TimedOut => TransportError::TimedOut {
                    device: self.device.clone(),
                    command: cdb.name(),
                    cdb,
                    timeout: command.timeout,
                    elapsed,
                },
                Broken::Gone => TransportError::Gone {
                    device: self.device.clone(),
                    command: cdb.name(),
                    cdb,
                },
                Broken::Failed(what) => TransportError::Failed {
                    device: self.device.clone(),
                    command: cdb.name(),
                    cdb,
                    what,
                    elapsed,
                },
            })?;
        let mut transferred_bytes = len - usize::try_from(header.resid).unwrap_or(0).min(len);
        if received
            .get(transferred_bytes..)
            .is_some_and(|rest| rest.iter().any(|b| *b != 0))
        {
            // The buffer was zeroed before: bytes beyond the residue prove that the bridge miscounts (BOT, `ignore_residue`).
            transferred_bytes = len;
        }
        let data = matches!(command.data, Data::In { .. }).then(|| {
            received.truncate(transferred_bytes);
            received
        });
        Ok(Completion {
            status,
            sense: raw.sense.to_vec(),
            data,
            transferred_bytes,
            elapsed,
        })
    }

    fn ioctl_error(&self, command: &Command, errno: Errno) -> TransportError {
        let device = self.device.clone();
        let (name, cdb) = (command.cdb.name(), command.cdb);
        match errno {
            Errno::EPERM | Errno::EACCES => TransportError::PermissionDenied { device, what: name },
            Errno::ENODEV | Errno::ENXIO => TransportError::Gone {
                device,
                command: name,
                cdb,
            },
            Errno::ENOTTY | Errno::EINVAL => TransportError::NotScsi {
                device,
                why: "this node takes no SCSI commands (SG_IO)".to_owned(),
            },
            Errno::EIO | Errno::EMSGSIZE => TransportError::TooLarge {
                device,
                command: name,
                cdb,
                what: "the kernel's limit for this device is smaller".to_owned(),
            },
            source => TransportError::Os {
                device,
                what: name,
                source,
            },
        }
    }
}

fn open_error(device: &str, error: &io::Error) -> TransportError {
    let device = device.to_owned();
    match Errno::from_raw(error.raw_os_error().unwrap_or(nix::libc::EIO)) {
        Errno::ENOENT | Errno::ENOTDIR => TransportError::NotFound { device },
        Errno::ENODEV | Errno::ENXIO => TransportError::NotFound { device },
        Errno::EACCES | Errno::EPERM => TransportError::PermissionDenied {
            device,
            what: "open".to_owned(),
        },
        Errno::EBUSY => TransportError::Busy {
            device,
            holder_pid: None,
        },
        source => TransportError::Os {
            device,
            what: "open".to_owned(),
            source,
        },
    }
}

/// The four status fields of SG_IO.
struct Raw<'a> {
    status: u8,
    host_status: u16,
    driver_status: u16,
    sense: &'a [u8],
}

#[derive(Debug, PartialEq, Eq)]
enum Broken {
    TimedOut,
    Gone,
    Failed(String),
}

impl Raw<'_> {
    /// Sense first, then host status, then driver status. `late`: the time-out has passed.
    fn judge(&self, late: bool) -> Result<Status, Broken> {
        let sense_is_valid = self
            .sense
            .first()
            .is_some_and(|b| matches!(b & 0x7f, 0x70..=0x73));
        if sense_is_valid {
            return Ok(if self.status == 0 {
                Status::CHECK_CONDITION
            } else {
                Status(self.status)
            });
        }
        match self.host_status {
            0x00 => {}
            0x03 => return Err(Broken::TimedOut),
            0x01 | 0x04 => return Err(Broken::Gone),
            // `uas` calls a command aborted, failed or reset that it reset the device for because no answer came.
            0x05 | 0x07 | 0x08 if late => return Err(Broken::TimedOut),
            other => return Err(Broken::Failed(format!("host status {}", host_status_name(other)))),
        }
        // 08h (DRIVER_SENSE) goes with CHECK CONDITION; other bits are failures that old kernels report.
        match self.driver_status & 0x0f {
            0x00 | 0x08 => Ok(Status(self.status)),
            0x06 => Err(Broken::TimedOut),
            other => Err(Broken::Failed(format!("driver status {other:02x}h"))),
        }
    }
}

fn host_status_name(code: u16) -> String {
    let name = match code {
        0x01 => "DID_NO_CONNECT",
        0x02 => "DID_BUS_BUSY",
        0x03 => "DID_TIME_OUT",
        0x04 => "DID_BAD_TARGET",
        0x05 => "DID_ABORT",
        0x06 => "DID_PARITY",
        0x07 => "DID_ERROR",
        0x08 => "DID_RESET",
        0x09 => "DID_BAD_INTR",
        0x0a => "DID_PASSTHROUGH",
        0x0b => "DID_SOFT_ERROR",
        0x0c => "DID_IMM_RETRY",
        0x0d => "DID_REQUEUE",
        0x0e => "DID_TRANSPORT_DISRUPTED",
        0x0f => "DID_TRANSPORT_FAILFAST",
        0x14 => "DID_TRANSPORT_MARGINAL",
        _ => return format!("{code:02x}h"),
    };
    format!("{code:02x}h {name}")
}

impl Transport for SgIo {
    fn device(&self) -> &str {
        &self.device
    }
    fn clock(&self) -> SharedClock {
        self.clock.clone()
    }
    fn limits(&self) -> Limits {
        Limits {
            queue_depth: 1,
            cdb_bytes: 32,
            transfer_bytes: 120 << 10,
            sense_bytes: SENSE_BYTES,
        }
    }
    fn submit(&mut self, command: Command) -> Result<Tag, TransportError> {
        let completion = self.run(command)?;
        Ok(self.finished.push(completion))
    }
    fn reap(&mut self, _wait: Duration) -> Result<Option<(Tag, Completion)>, TransportError> {
        Ok(self.finished.pop())
    }
    fn cancel(&mut self, _tag: Tag) -> Result<(), TransportError> {
        // The ioctl returns when the command is over; nothing is ever left in flight.
        Ok(())
    }
    fn recover(&mut self, how: Recovery) -> Result<(), TransportError> {
        tracing::debug!("{}: SG_IO leaves recovery ({how:?}) to the kernel", self.device);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(status: u8, host_status: u16, driver_status: u16, sense: &[u8]) -> Result<Status, Broken> {
        Raw {
            status,
            host_status,
            driver_status,
            sense,
        }
        .judge(false)
    }

    #[test]
    fn sense_comes_before_host_status() {
        let sense = [0x72, 1, 0, 0x1d, 0, 0, 0, 0];
        assert_eq!(
            raw(2, 7, 8, &sense),
            Ok(Status::CHECK_CONDITION),
            "uas reports DID_ERROR with valid sense"
        );
        assert_eq!(
            raw(0, 7, 0, &[]),
            Err(Broken::Failed("host status 07h DID_ERROR".to_owned()))
        );
        assert_eq!(raw(0, 3, 0, &[]), Err(Broken::TimedOut));
        assert_eq!(raw(0, 1, 0, &[]), Err(Broken::Gone));
        assert_eq!(raw(0, 0, 6, &[]), Err(Broken::TimedOut));
        assert_eq!(
            raw(2, 0, 8, &[]),
            Ok(Status::CHECK_CONDITION),
            "empty sense stays an answer"
        );
        assert_eq!(raw(8, 0, 0, &[]), Ok(Status::BUSY));
        let late = |host_status, sense| {
            Raw {
                status: 0,
                host_status,
                driver_status: 0,
                sense,
            }
            .judge(true)
        };
        for host_status in [5, 7, 8] {
            assert_eq!(
                late(host_status, &[]),
                Err(Broken::TimedOut),
                "uas after its reset"
            );
        }
        assert_eq!(late(7, &sense), Ok(Status::CHECK_CONDITION));
        assert_eq!(late(1, &[]), Err(Broken::Gone));
    }

    /// The kernel's header, by a C compiler, against ours.
    #[test]
    fn the_header_lies_in_memory_as_the_kernel_has_it() {
        let ours = [
            ("interface_id", std::mem::offset_of!(SgIoHdr, interface_id)),
            ("dxfer_direction", std::mem::offset_of!(SgIoHdr, dxfer_direction)),
            ("cmd_len", std::mem::offset_of!(SgIoHdr, cmd_len)),
            ("mx_sb_len", std::mem::offset_of!(SgIoHdr, mx_sb_len)),
            ("iovec_count", std::mem::offset_of!(SgIoHdr, iovec_count)),
            ("dxfer_len", std::mem::offset_of!(SgIoHdr, dxfer_len)),
            ("dxferp", std::mem::offset_of!(SgIoHdr, dxferp)),
            ("cmdp", std::mem::offset_of!(SgIoHdr, cmdp)),
            ("sbp", std::mem::offset_of!(SgIoHdr, sbp)),
            ("timeout", std::mem::offset_of!(SgIoHdr, timeout)),
            ("flags", std::mem::offset_of!(SgIoHdr, flags)),
            ("pack_id", std::mem::offset_of!(SgIoHdr, pack_id)),
            ("usr_ptr", std::mem::offset_of!(SgIoHdr, usr_ptr)),
            ("status", std::mem::offset_of!(SgIoHdr, status)),
            ("masked_status", std::mem::offset_of!(SgIoHdr, masked_status)),
            ("msg_status", std::mem::offset_of!(SgIoHdr, msg_status)),
            ("sb_len_wr", std::mem::offset_of!(SgIoHdr, sb_len_wr)),
            ("host_status", std::mem::offset_of!(SgIoHdr, host_status)),
            ("driver_status", std::mem::offset_of!(SgIoHdr, driver_status)),
            ("resid", std::mem::offset_of!(SgIoHdr, resid)),
            ("duration", std::mem::offset_of!(SgIoHdr, duration)),
            ("info", std::mem::offset_of!(SgIoHdr, info)),
        ];
        let mut source = "#include <scsi/sg.h>\n#include <stddef.h>\n".to_owned();
        source.push_str(&format!(
            "_Static_assert(sizeof(struct sg_io_hdr) == {}, \"size\");\n",
            size_of::<SgIoHdr>()
        ));
        source.push_str("_Static_assert(SG_IO == 0x2285, \"SG_IO\");\n");
        for (field, offset) in ours {
            source.push_str(&format!(
                "_Static_assert(offsetof(struct sg_io_hdr, {field}) == {offset}, \"{field}\");\n"
            ));
        }
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("header.c");
        std::fs::write(&file, source).expect("written");
        let compiled = std::process::Command::new("cc")
            .arg("-fsyntax-only")
            .arg(&file)
            .output();
        match compiled {
            Ok(output) => assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            ),
            Err(error) => println!("SKIPPED: no C compiler: {error}"),
        }
    }

    #[test]
    fn nodes_that_take_no_commands_are_named() {
        assert!(matches!(
            SgIo::open(Path::new("/")),
            Err(TransportError::NotScsi { .. })
        ));
        assert!(matches!(
            SgIo::open(Path::new("/dev/none-such")),
            Err(TransportError::NotFound { .. })
        ));
        let mut null = SgIo::open(Path::new("/dev/null")).expect("a character device");
        let command = Command::non_data(super::super::Cdb::from_array([0; 6]), Duration::from_secs(1));
        assert!(matches!(
            super::super::execute(&mut null, command),
            Err(TransportError::NotScsi { .. })
        ));
    }
}
