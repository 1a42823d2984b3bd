//! From a name to a transport stack and the facts about what is behind it.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::DriveError;
use crate::bridge::memory::Memory;
use crate::permit::PermitSlot;
use crate::sys::NodeFacts;
use crate::sys::lock::{self, DeviceLock};
use crate::sys::sysfs::Sysfs;
use crate::time::RealClock;
use crate::transport::layer::count::{CommandCount, Count};
use crate::transport::layer::guard::{Allowance, Guard};
use crate::transport::layer::record::Record;
use crate::transport::layer::replay::Replay;
use crate::transport::layer::trace::Trace;
use crate::transport::sg_io::SgIo;
use crate::transport::sim::SimTransport;
use crate::transport::{Transport, TransportError};

/// How to open a drive. [`OpenOptions::default`] asks nothing and remembers nothing.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Where sysfs is.
    pub sysfs: Sysfs,
    /// Where bridges are remembered; `None` remembers nothing.
    pub memory: Option<Memory>,
    /// Forget this bridge first.
    pub forget: bool,
    /// A dialect's name instead of detection (`sat`, `sat12`, `sat16`, `scsi`, smartctl's names).
    pub dialect: Option<String>,
    /// Time-out of each command.
    pub timeout: Duration,
    /// Read a drive even if that wakes it, or might.
    pub wake: bool,
    /// What the guard lets pass beyond reading.
    pub allowance: Allowance,
    /// 0 is silent, 1 traces every command to stderr, 2 its data too.
    pub trace: u8,
    /// Record every exchange here; a device that is opened again goes on in the same file.
    pub record: Option<RecordFile>,
    /// Where lock files are; `None` does not lock.
    pub lock_dir: Option<PathBuf>,
    /// How long to wait for another process to let go of the device.
    pub lock_wait: Duration,
}

/// Long enough for a disk that spins up behind a slow bridge, short enough for a person.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            sysfs: Sysfs::default(),
            memory: None,
            forget: false,
            dialect: None,
            timeout: DEFAULT_TIMEOUT,
            wake: false,
            allowance: Allowance::default(),
            trace: 0,
            record: None,
            lock_dir: None,
            lock_wait: Duration::from_secs(10),
        }
    }
}

/// What a name leads to, before anything is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A SCSI node of the kernel.
    Node {
        /// The path to open: the whole disk where a partition was named.
        path: PathBuf,
        /// What sysfs says.
        facts: Box<NodeFacts>,
    },
    /// A simulated device.
    Sim(String),
    /// A recorded exchange.
    Replay(PathBuf),
}

impl Target {
    /// Resolves a name without opening a device.
    ///
    /// # Errors
    /// The name means nothing, or what it names is no disk behind a bridge.
    pub fn resolve(name: &str, sysfs: &Sysfs) -> Result<Self, DriveError> {
        let bad = |why: &str| DriveError::BadName {
            name: name.to_owned(),
            why: why.to_owned(),
        };
        if name.starts_with("sim:") {
            return Ok(Self::Sim(name.to_owned()));
        }
        if let Some(file) = name.strip_prefix("replay:") {
            return Ok(Self::Replay(PathBuf::from(file)));
        }
        if name.starts_with("usb:") {
            return Err(bad(
                "raw USB access is not part of this version; use the disk's /dev/sdX or /dev/sgN node",
            ));
        }
        if name.is_empty() {
            return Err(bad("an empty name"));
        }
        let given = Path::new(name);
        let path = given.canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => DriveError::Transport(TransportError::PermissionDenied {
                device: name.to_owned(),
                what: "open".to_owned(),
            }),
            _ => DriveError::Transport(TransportError::NotFound {
                device: name.to_owned(),
            }),
        })?;
        let base = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if path.starts_with("/dev") && base.starts_with("nvme") {
            return Err(DriveError::NativeNvme {
                name: name.to_owned(),
            });
        }
        let meta = std::fs::metadata(&path).map_err(|_| {
            DriveError::Transport(TransportError::NotFound {
                device: name.to_owned(),
            })
        })?;
        let kind = meta.file_type();
        if kind.is_dir() {
            return Err(bad("this is a directory, not a device"));
        }
        if kind.is_file() {
            return Err(bad(
                "this is a regular file, not a device; `decode` reads dumps and `replay:FILE` plays recordings",
            ));
        }
        if !kind.is_block_device() && !kind.is_char_device() {
            return Err(bad("this is neither a block nor a character device"));
        }
        let (major, minor) = (
            nix::sys::stat::major(meta.rdev()),
            nix::sys::stat::minor(meta.rdev()),
        );
        // What sysfs does not know as a SCSI device is not even opened: opening a watchdog or a tape has effects, and a
        // mapped volume would pass commands on to a disk that was not named.
        let facts = sysfs
            .by_number(kind.is_block_device(), major, minor)
            .filter(|f| f.hctl.is_some());
        let Some(facts) = facts else {
            return Err(bad(
                "this is no SCSI disk; for a mapped or RAID volume name the disk below it",
            ));
        };
        let path = match (&facts.block_node, facts.partition) {
            (Some(disk), Some(_)) => PathBuf::from(disk),
            _ => path,
        };
        Ok(Self::Node {
            path,
            facts: Box::new(facts),
        })
    }
}

/// A stack of transports, ready for commands, and what belongs to it.
pub(super) struct Opened {
    pub transport: Box<dyn Transport>,
    pub facts: NodeFacts,
    pub count: CommandCount,
    pub permits: PermitSlot,
    pub lock: Option<DeviceLock>,
}

/// The innermost transport of a target, what is known of it, and the lock that goes with it.
pub(super) struct Inner {
    pub transport: Box<dyn Transport>,
    pub facts: NodeFacts,
    pub lock: Option<DeviceLock>,
}

/// Opens the innermost transport. A node of the kernel is locked first, since opening it may already send commands.
pub(super) fn inner(target: Target, options: &OpenOptions) -> Result<Inner, DriveError> {
    let unlocked = |transport: Box<dyn Transport>, facts| Inner {
        transport,
        facts,
        lock: None,
    };
    match target {
        Target::Sim(name) => {
            let sim = SimTransport::open(&name).map_err(|error| DriveError::BadName {
                name: name.clone(),
                why: error.to_string(),
            })?;
            let facts = sim.facts();
            Ok(unlocked(Box::new(sim), facts))
        }
        Target::Replay(path) => {
            let replay = Replay::open(&path)?;
            let facts = replay
                .facts_json()
                .and_then(|json| serde_json::from_str(json).ok())
                .unwrap_or_default();
            Ok(unlocked(Box::new(replay), facts))
        }
        Target::Node { path, facts } => {
            let lock = lock_device(&path.display().to_string(), &facts, options)?;
            Ok(Inner {
                transport: Box::new(SgIo::open(&path)?),
                facts: *facts,
                lock,
            })
        }
    }
}

/// Puts the layers around a transport: count, record, trace, guard.
pub(super) fn stack(inner: Inner, options: &OpenOptions) -> Result<Opened, DriveError> {
    let Inner {
        transport,
        facts,
        lock,
    } = inner;
    let count = CommandCount::default();
    let permits = PermitSlot::default();
    let mut transport: Box<dyn Transport> = Box::new(Count::new(transport, count.clone()));
    if let Some(path) = &options.record {
        transport = Box::new(record_into(path, transport, &facts)?);
    }
    if options.trace > 0 {
        transport = Box::new(Trace::new(transport, std::io::stderr(), options.trace > 1));
    }
    let no_disk = facts.scsi.peripheral_type.is_some_and(|kind| !is_disk(kind));
    let allowance = Allowance {
        no_disk: no_disk || options.allowance.no_disk,
        ..options.allowance
    };
    let transport: Box<dyn Transport> = Box::new(Guard::new(transport, allowance, permits.clone()));
    Ok(Opened {
        transport,
        facts,
        count,
        permits,
        lock,
    })
}

/// Direct access (00h) and simplified direct access (0Eh) devices take ATA PASS-THROUGH; to others its opcodes mean
/// something else.
pub(super) fn is_disk(peripheral_type: u8) -> bool {
    matches!(peripheral_type, 0x00 | 0x0e)
}

/// Takes the lock of a device, waiting as long as the options say. A device is one LUN of one target, and both of its nodes
/// share the lock; where sysfs names no such address there is nothing to lock.
pub(super) fn lock_device(
    device: &str,
    facts: &NodeFacts,
    options: &OpenOptions,
) -> Result<Option<DeviceLock>, DriveError> {
    let (Some(dir), Some(key)) = (&options.lock_dir, &facts.hctl) else {
        return Ok(None);
    };
    lock::acquire(dir, key, options.lock_wait, &RealClock::new())
        .map(Some)
        .map_err(|source| DriveError::Locked {
            device: device.to_owned(),
            source,
        })
}

fn record_into(
    file: &RecordFile,
    inner: Box<dyn Transport>,
    facts: &NodeFacts,
) -> Result<impl Transport + use<>, DriveError> {
    let bad = |error: &dyn std::fmt::Display| DriveError::BadName {
        name: file.path.display().to_string(),
        why: format!("cannot record: {error}"),
    };
    let facts_json = serde_json::to_string(facts).map_err(|e| bad(&e))?;
    Record::new(inner, file.clone(), &facts_json).map_err(|e| bad(&e))
}

/// A new `.xchg` file, shared by everything that is recorded in one run.
#[derive(Debug, Clone)]
pub struct RecordFile {
    path: PathBuf,
    file: Arc<File>,
}

impl RecordFile {
    /// Creates the file; an existing one is never overwritten.
    ///
    /// # Errors
    /// It exists, or cannot be created.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        let file = File::options().write(true).create_new(true).open(path)?;
        Ok(Self {
            path: path.to_owned(),
            file: Arc::new(file),
        })
    }
}

impl Write for RecordFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (&*self.file).write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        (&*self.file).flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(name: &str) -> Result<Target, DriveError> {
        Target::resolve(name, &Sysfs::new("/nonexistent"))
    }

    #[test]
    fn names_that_are_no_devices_are_told_apart() {
        assert!(matches!(resolve("/"), Err(DriveError::BadName { .. })));
        assert!(matches!(resolve(""), Err(DriveError::BadName { .. })));
        assert!(matches!(
            resolve("usb:174c:55aa"),
            Err(DriveError::BadName { .. })
        ));
        assert!(matches!(
            resolve("/dev/sd-none"),
            Err(DriveError::Transport(TransportError::NotFound { .. }))
        ));
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(matches!(
            resolve(&file.path().display().to_string()),
            Err(DriveError::BadName { .. })
        ));
        assert_eq!(
            resolve("sim:ssd").expect("a name"),
            Target::Sim("sim:ssd".to_owned())
        );
        assert_eq!(
            resolve("replay:x.xchg").expect("a name"),
            Target::Replay("x.xchg".into())
        );
        assert!(
            matches!(resolve("/dev/null"), Err(DriveError::BadName { .. })),
            "not in sysfs as a SCSI device"
        );
    }

    #[test]
    fn a_recording_never_overwrites() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let error = RecordFile::create(file.path()).expect_err("it exists");
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    }
}
