//! The kernel's block layer: claiming a node for oneself, and the kernel's own ways to discard.
//!
//! Not a [`super::Transport`]: no CDBs go through here. What discards is held to the same permit all the same.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;

use super::TransportError;
use crate::permit::{BlockRange, Permit};

nix::ioctl_none_bad!(
    /// BLKFLSBUF, request 1261h: writes out what is dirty, and forgets what is cached.
    blkflsbuf,
    0x1261
);
nix::ioctl_write_ptr_bad!(
    /// BLKDISCARD, request 1277h: start and length in bytes.
    blkdiscard,
    0x1277,
    [u64; 2]
);
nix::ioctl_readwrite!(
    /// FITRIM: the file system discards its own free space.
    fitrim,
    b'X',
    121,
    FstrimRange
);

/// `struct fstrim_range` (Linux, `include/uapi/linux/fs.h`), in bytes.
#[repr(C)]
pub struct FstrimRange {
    start: u64,
    len: u64,
    minlen: u64,
}

/// A node of the block layer that nobody else can mount, swap to or claim while this lives.
#[derive(Debug)]
pub struct Claim {
    device: String,
    file: File,
    /// Where the node starts on its disk: a partition's addresses count from there.
    start_bytes: u64,
}

impl Claim {
    /// Opens the node for this process alone (`O_EXCL`), for writing or only to keep others out. Of a whole disk that fails
    /// while one of its partitions is in use. `start_bytes` is where a partition's node starts on its disk, 0 for the disk itself.
    ///
    /// # Errors
    /// It is in use ([`TransportError::Busy`]), is not there, or rights are missing.
    pub fn take(path: &Path, start_bytes: u64, write: bool) -> Result<Self, TransportError> {
        let device = path.display().to_string();
        let file = OpenOptions::new()
            .read(true)
            .write(write)
            .custom_flags(nix::libc::O_EXCL | nix::libc::O_CLOEXEC)
            .open(path)
            .map_err(|error| os_error(&device, "open", &error))?;
        Ok(Self {
            device,
            file,
            start_bytes,
        })
    }

    /// The device number of the node, `8:17`.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn number(&self) -> Result<String, TransportError> {
        use std::os::unix::fs::MetadataExt;
        let meta = self
            .file
            .metadata()
            .map_err(|error| os_error(&self.device, "stat", &error))?;
        Ok(format!(
            "{}:{}",
            nix::sys::stat::major(meta.rdev()),
            nix::sys::stat::minor(meta.rdev())
        ))
    }

    /// Has the kernel write out what it holds of this node, and forget what it had read.
    ///
    /// # Errors
    /// The kernel could not.
    pub fn flush_buffers(&self) -> Result<(), TransportError> {
        // SAFETY: BLKFLSBUF takes no argument; the descriptor is open for as long as `self.file` lives.
        let done = unsafe { blkflsbuf(self.file.as_raw_fd()) };
        done.map(|_| ()).map_err(|errno| self.failed("BLKFLSBUF", errno))
    }

    /// Discards one range by BLKDISCARD. The range counts blocks of the whole disk.
    ///
    /// # Errors
    /// The permit does not name it, or the kernel or the device failed.
    pub fn discard(&self, permit: &Permit, range: BlockRange) -> Result<(), TransportError> {
        let block = u64::from(permit.block_bytes());
        let bytes = range
            .first
            .checked_mul(block)
            .and_then(|start| start.checked_sub(self.start_bytes))
            .zip(range.count.checked_mul(block))
            .filter(|_| permit.may_discard(range));
        let Some((start, len)) = bytes else {
            return Err(TransportError::NotPermitted {
                device: self.device.clone(),
                what: format!("BLKDISCARD of {} blocks at {}", range.count, range.first),
            });
        };
        let argument = [start, len];
        // SAFETY: BLKDISCARD reads two 64-bit numbers, which `argument` holds for the time of the call.
        let done = unsafe { blkdiscard(self.file.as_raw_fd(), &raw const argument) };
        done.map(|_| ()).map_err(|errno| self.failed("BLKDISCARD", errno))
    }

    fn failed(&self, what: &str, errno: Errno) -> TransportError {
        match errno {
            Errno::EACCES | Errno::EPERM => TransportError::PermissionDenied {
                device: self.device.clone(),
                what: what.to_owned(),
            },
            source => TransportError::Os {
                device: self.device.clone(),
                what: what.to_owned(),
                source,
            },
        }
    }
}

/// Has the kernel write out what it holds of a node, and forget what it had read, without claiming it.
///
/// # Errors
/// It cannot be opened, or the kernel could not.
pub fn flush_node(path: &Path) -> Result<(), TransportError> {
    let device = path.display().to_string();
    let file = File::open(path).map_err(|error| os_error(&device, "open", &error))?;
    let claim = Claim {
        device,
        file,
        start_bytes: 0,
    };
    claim.flush_buffers()
}

/// Has a mounted file system discard its free space (FITRIM), and returns how many bytes it says it did.
///
/// # Errors
/// The file system or the device does not discard, or rights are missing.
pub fn trim_mounted(point: &Path) -> Result<u64, TransportError> {
    let device = point.display().to_string();
    let directory = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_DIRECTORY | nix::libc::O_CLOEXEC)
        .open(point)
        .map_err(|error| os_error(&device, "open", &error))?;
    let mut range = FstrimRange {
        start: 0,
        len: u64::MAX,
        minlen: 0,
    };
    // SAFETY: FITRIM reads and writes one `fstrim_range`, which lives in this frame.
    let done = unsafe { fitrim(directory.as_raw_fd(), &raw mut range) };
    done.map_err(|errno| os_error(&device, "FITRIM", &io::Error::from_raw_os_error(errno as i32)))?;
    Ok(range.len)
}

fn os_error(device: &str, what: &str, error: &io::Error) -> TransportError {
    let device = device.to_owned();
    let what = what.to_owned();
    match Errno::from_raw(error.raw_os_error().unwrap_or(nix::libc::EIO)) {
        Errno::ENOENT | Errno::ENOTDIR | Errno::ENXIO | Errno::ENODEV => TransportError::NotFound { device },
        Errno::EACCES | Errno::EPERM => TransportError::PermissionDenied { device, what },
        Errno::EBUSY => TransportError::Busy {
            device,
            holder_pid: None,
        },
        source => TransportError::Os { device, what, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_permitted_does_not_reach_the_kernel() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let claim = Claim {
            device: "it".to_owned(),
            file: file.reopen().unwrap(),
            start_bytes: 4096,
        };
        let permit = Permit::to_discard(512, vec![BlockRange { first: 0, count: 100 }]).unwrap();
        for range in [
            BlockRange { first: 100, count: 1 },
            BlockRange { first: 8, count: 0 },
            // Before the partition.
            BlockRange { first: 7, count: 1 },
        ] {
            assert!(matches!(
                claim.discard(&permit, range),
                Err(TransportError::NotPermitted { .. })
            ));
        }
        // A file is no block device, and the kernel says so.
        assert!(matches!(
            claim.discard(&permit, BlockRange { first: 8, count: 1 }),
            Err(TransportError::Os { .. })
        ));
    }
}
