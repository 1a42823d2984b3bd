//! One process at a time for each device: an advisory lock (flock) on a file named after the device.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};

use crate::time::Clock;

/// The lock is held as long as this lives.
#[derive(Debug)]
pub struct DeviceLock {
    _held: Flock<File>,
}

/// The lock could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody else holds it.
    #[error("locked by another process{}", .holder_pid.map(|p| format!(" (pid {p})")).unwrap_or_default())]
    Held {
        /// Who, if the kernel tells.
        holder_pid: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// Its path.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

/// Where lock files live: `/run/lock`, and `/tmp` where that is missing.
pub fn default_dir() -> PathBuf {
    let run = Path::new("/run/lock");
    if run.is_dir() {
        run.to_owned()
    } else {
        PathBuf::from("/tmp")
    }
}

/// Takes the lock for `key` (host:channel:target:lun, or a USB port, plus the bay), waiting at most `wait`.
///
/// # Errors
/// Another process holds it past the waiting time, or the file cannot be opened.
pub fn acquire(dir: &Path, key: &str, wait: Duration, clock: &dyn Clock) -> Result<DeviceLock, LockError> {
    const STEP: Duration = Duration::from_millis(50);
    let safe: String = key
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let path = dir.join(format!("drivethru-{safe}.lock"));
    let io = |source| LockError::Io {
        path: path.display().to_string(),
        source,
    };
    let mut file = open(&path).map_err(io)?;
    let start = clock.now();
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(held) => return Ok(DeviceLock { _held: held }),
            Err((back, nix::errno::Errno::EWOULDBLOCK)) if clock.now().saturating_sub(start) < wait => {
                file = back;
                clock.sleep(STEP);
            }
            Err((back, nix::errno::Errno::EWOULDBLOCK)) => {
                return Err(LockError::Held {
                    holder_pid: holder_pid(&back),
                });
            }
            Err((_, errno)) => return Err(io(errno.into())),
        }
    }
}

/// An existing file is opened without O_CREAT: in sticky directories the kernel refuses that on other users' files.
fn open(path: &Path) -> std::io::Result<File> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_CLOEXEC;
    for _ in 0..3 {
        match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            done => return done,
        }
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .custom_flags(flags)
            .open(path);
        match made {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// The process that holds a flock on `file`, from `/proc/locks`.
fn holder_pid(file: &File) -> Option<u32> {
    let meta = file.metadata().ok()?;
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    let (major, minor) = (
        nix::sys::stat::major(meta.dev()),
        nix::sys::stat::minor(meta.dev()),
    );
    let place = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|w| *w != "FLOCK");
        (words.clone().any(|w| w == place)).then_some(())?;
        words.nth(3)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{RealClock, VirtualClock};

    #[test]
    fn a_second_holder_is_refused_with_the_pid_and_the_first_can_let_go() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let clock = RealClock::new();
        let first = acquire(dir.path(), "6:0:0:0", Duration::ZERO, &clock).expect("free");
        let waited = VirtualClock::new();
        let second = acquire(dir.path(), "6:0:0:0", Duration::from_secs(2), &waited);
        assert!(
            waited.now() >= Duration::from_secs(2),
            "it waited as long as it was told"
        );
        match second {
            Err(LockError::Held { holder_pid }) => assert_eq!(holder_pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        acquire(dir.path(), "7:0:0:0", Duration::ZERO, &clock).expect("another device");
        drop(first);
        acquire(dir.path(), "6:0:0:0", Duration::ZERO, &clock).expect("free again");
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let victim = dir.path().join("victim");
        std::os::unix::fs::symlink(&victim, dir.path().join("drivethru-x.lock")).expect("link");
        assert!(matches!(
            acquire(dir.path(), "x", Duration::ZERO, &RealClock::new()),
            Err(LockError::Io { .. })
        ));
        assert!(!victim.exists());
    }
}
