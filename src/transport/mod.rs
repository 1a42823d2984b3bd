//! Carries CDBs and buffers to a device and brings back status, sense and data.
//!
//! This layer knows nothing of ATA, NVMe or bridges. A transport is queue-shaped: commands are submitted, reaped and
//! cancelled; almost everybody uses [`execute`] alone. Whatever must happen around every command (tracing, recording,
//! guarding) is a wrapper in [`layer`] that is a transport itself.
//!
//! An answer is not an error: CHECK CONDITION comes back as `Ok`, because SAT reports *success* that way when CK_COND is
//! set. `Err` means that the fate of the command is unknown.

pub mod block;
pub mod layer;
pub mod sg_io;
pub mod sim;
pub mod usb;

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::text;
use crate::time::SharedClock;

/// The longest CDB that any transport here carries, in bytes.
pub const MAX_CDB_BYTES: usize = 32;

/// A SCSI command descriptor block: 6 to 32 bytes, kept inline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cdb {
    bytes: [u8; MAX_CDB_BYTES],
    len: u8,
}

impl Cdb {
    /// Takes the bytes as they are; `None` unless there are 6 to 32 of them.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if !(6..=MAX_CDB_BYTES).contains(&bytes.len()) {
            return None;
        }
        let mut inline = [0; MAX_CDB_BYTES];
        inline.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self {
            bytes: inline,
            len: u8::try_from(bytes.len()).ok()?,
        })
    }

    /// For CDBs whose length is known when compiling.
    pub const fn from_array<const N: usize>(bytes: [u8; N]) -> Self {
        const { assert!(N >= 6 && N <= MAX_CDB_BYTES, "a CDB has 6 to 32 bytes") };
        let mut inline = [0; MAX_CDB_BYTES];
        let mut i = 0;
        while i < N {
            inline[i] = bytes[i];
            i += 1;
        }
        Self {
            bytes: inline,
            len: N as u8,
        }
    }

    /// The bytes on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Byte 0.
    pub fn opcode(&self) -> u8 {
        self.bytes.first().copied().unwrap_or_default()
    }

    /// What people call this command, as far as its bytes tell: `INQUIRY`, `ATA PASS-THROUGH (16) IDENTIFY DEVICE`.
    pub fn name(&self) -> String {
        layer::name::command_name(self.as_bytes())
    }
}

impl fmt::Debug for Cdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cdb({})", text::hex(self.as_bytes()))
    }
}

impl fmt::Display for Cdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::hex(self.as_bytes()))
    }
}

/// Bytes on their way to or from a device.
pub type Buffer = Vec<u8>;

/// Which way data goes, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// No data phase.
    None,
    /// From the device, at most this much.
    In {
        /// Length of the receive buffer in bytes.
        len_bytes: usize,
    },
    /// To the device.
    Out(Buffer),
}

/// One command. Owned, because several can be in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The CDB.
    pub cdb: Cdb,
    /// The data phase.
    pub data: Data,
    /// After this the transport gives up and the fate of the command is unknown.
    pub timeout: Duration,
}

impl Command {
    /// A command without data.
    pub fn non_data(cdb: Cdb, timeout: Duration) -> Self {
        Self {
            cdb,
            data: Data::None,
            timeout,
        }
    }

    /// A command that takes `data` to the device.
    pub fn data_out(cdb: Cdb, data: Buffer, timeout: Duration) -> Self {
        Self {
            cdb,
            data: Data::Out(data),
            timeout,
        }
    }

    /// A command that brings `len_bytes` from the device.
    pub fn data_in(cdb: Cdb, len_bytes: usize, timeout: Duration) -> Self {
        Self {
            cdb,
            data: Data::In { len_bytes },
            timeout,
        }
    }
}

/// SCSI status byte (SAM-5, "Status codes").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u8);

impl Status {
    /// The command ended well.
    pub const GOOD: Self = Self(0x00);
    /// Sense data tells more; for ATA PASS-THROUGH with CK_COND also the sign of success.
    pub const CHECK_CONDITION: Self = Self(0x02);
    /// The target is busy.
    pub const BUSY: Self = Self(0x08);
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0x00 => f.write_str("GOOD"),
            0x02 => f.write_str("CHECK CONDITION"),
            0x08 => f.write_str("BUSY"),
            0x18 => f.write_str("RESERVATION CONFLICT"),
            0x28 => f.write_str("TASK SET FULL"),
            0x40 => f.write_str("TASK ABORTED"),
            other => write!(f, "status {other:02x}h"),
        }
    }
}

/// Raw sense data, up to 252 bytes; `scsi::sense` gives it meaning.
pub type SenseBytes = Vec<u8>;

/// What the device answered.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// SCSI status.
    pub status: Status,
    /// Sense data, empty when there is none.
    pub sense: SenseBytes,
    /// Data from the device, cut to what arrived; `None` for commands without a data-in phase.
    pub data: Option<Buffer>,
    /// Bytes moved in the data phase, as far as the transport can tell.
    pub transferred_bytes: usize,
    /// From submission to completion.
    pub elapsed: Duration,
}

/// What a transport can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Commands that may be in flight.
    pub queue_depth: usize,
    /// Longest CDB in bytes.
    pub cdb_bytes: usize,
    /// Largest data phase in bytes.
    pub transfer_bytes: usize,
    /// Longest sense data in bytes.
    pub sense_bytes: usize,
}

/// Names a submitted command until it is reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u64);

/// How to bring a stuck device back. Only ever at the caller's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovery {
    /// Reset the logical unit.
    LunReset,
    /// Reset the port or target.
    PortReset,
}

/// The fate of a command is unknown, or it was never sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The device node is not there.
    #[error("{device}: no such device")]
    NotFound {
        /// The name it was opened by.
        device: String,
    },
    /// Rights are missing to open the node or to send this command.
    #[error("{device}: {what}: permission denied")]
    PermissionDenied {
        /// The name it was opened by.
        device: String,
        /// What was tried: `open`, or the command's name.
        what: String,
    },
    /// The node exists but takes no SCSI commands.
    #[error("{device}: {why}")]
    NotScsi {
        /// The name it was opened by.
        device: String,
        /// What it is instead.
        why: String,
    },
    /// Somebody else has it: mounted, claimed, or locked by another process of ours.
    #[error("{device}: in use{}", .holder_pid.map(|p| format!(" by another drivethru process (pid {p})")).unwrap_or_default())]
    Busy {
        /// The name it was opened by.
        device: String,
        /// Who holds it, if the lock file tells.
        holder_pid: Option<u32>,
    },
    /// Nothing came back in time.
    #[error("{device}: {command} [{cdb}]: no answer within {:.1} s (waited {:.1} s)", .timeout.as_secs_f64(), .elapsed.as_secs_f64())]
    TimedOut {
        /// The device.
        device: String,
        /// The command's name.
        command: String,
        /// Its bytes.
        cdb: Cdb,
        /// The time-out that was asked for.
        timeout: Duration,
        /// How long it really took to give up.
        elapsed: Duration,
    },
    /// The host adapter, driver or link failed.
    #[error("{device}: {command} [{cdb}]: transport failed: {what}")]
    Failed {
        /// The device.
        device: String,
        /// The command's name.
        command: String,
        /// Its bytes.
        cdb: Cdb,
        /// Host and driver status in words.
        what: String,
        /// How long it took.
        elapsed: Duration,
    },
    /// The device went away in the middle of it.
    #[error("{device}: {command} [{cdb}]: the device is gone")]
    Gone {
        /// The device.
        device: String,
        /// The command's name.
        command: String,
        /// Its bytes.
        cdb: Cdb,
    },
    /// Not sent: it would exceed what the transport carries.
    #[error("{device}: {command} [{cdb}]: {what}")]
    TooLarge {
        /// The device.
        device: String,
        /// The command's name.
        command: String,
        /// Its bytes.
        cdb: Cdb,
        /// Which limit.
        what: String,
    },
    /// Not sent: it might write, and nothing permits that.
    #[error("{device}: {command} [{cdb}] not sent: {why}")]
    Refused {
        /// The device.
        device: String,
        /// The command's name.
        command: String,
        /// Its bytes.
        cdb: Cdb,
        /// The rule that refused it.
        why: String,
    },
    /// Not done: no permit names this range.
    #[error("{device}: {what} not done: it is outside what was permitted")]
    NotPermitted {
        /// The device.
        device: String,
        /// What was asked for.
        what: String,
    },
    /// A replayed exchange does not hold this command.
    #[error("{device}: {command} [{cdb}]: not in the recording: {why}")]
    ReplayMismatch {
        /// The recording.
        device: String,
        /// The command's name.
        command: String,
        /// Its bytes.
        cdb: Cdb,
        /// What was expected instead.
        why: String,
    },
    /// The operating system failed in a way of its own.
    #[error("{device}: {what}: {source}")]
    Os {
        /// The device.
        device: String,
        /// What was tried.
        what: String,
        /// The error number.
        source: nix::errno::Errno,
    },
}

/// Carries commands to one logical unit.
pub trait Transport: Send {
    /// The name that the device was opened by, for messages.
    fn device(&self) -> &str;
    /// The device's clock: real, or virtual for the simulator.
    fn clock(&self) -> SharedClock;
    /// What fits.
    fn limits(&self) -> Limits;
    /// Sends a command, or refuses it.
    fn submit(&mut self, command: Command) -> Result<Tag, TransportError>;
    /// The next completion, waiting for it at most `wait`; `Ok(None)` when none came.
    fn reap(&mut self, wait: Duration) -> Result<Option<(Tag, Completion)>, TransportError>;
    /// Tries to take a command back.
    fn cancel(&mut self, tag: Tag) -> Result<(), TransportError>;
    /// Resets; never called behind the caller's back.
    fn recover(&mut self, how: Recovery) -> Result<(), TransportError>;
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn device(&self) -> &str {
        (**self).device()
    }
    fn clock(&self) -> SharedClock {
        (**self).clock()
    }
    fn limits(&self) -> Limits {
        (**self).limits()
    }
    fn submit(&mut self, command: Command) -> Result<Tag, TransportError> {
        (**self).submit(command)
    }
    fn reap(&mut self, wait: Duration) -> Result<Option<(Tag, Completion)>, TransportError> {
        (**self).reap(wait)
    }
    fn cancel(&mut self, tag: Tag) -> Result<(), TransportError> {
        (**self).cancel(tag)
    }
    fn recover(&mut self, how: Recovery) -> Result<(), TransportError> {
        (**self).recover(how)
    }
}

/// Submits one command and waits for its completion.
///
/// # Errors
/// Whatever the transport says; the fate of the command is then unknown, or it was never sent.
pub fn execute(transport: &mut dyn Transport, command: Command) -> Result<Completion, TransportError> {
    let (cdb, timeout) = (command.cdb, command.timeout);
    let clock = transport.clock();
    let start = clock.now();
    let tag = transport.submit(command)?;
    loop {
        let waited = clock.now().saturating_sub(start);
        match transport.reap(timeout.saturating_sub(waited))? {
            Some((done, completion)) if done == tag => return Ok(completion),
            Some(_) => {}
            None if clock.now().saturating_sub(start) >= timeout => {
                return Err(TransportError::TimedOut {
                    device: transport.device().to_owned(),
                    command: cdb.name(),
                    cdb,
                    timeout,
                    elapsed: clock.now().saturating_sub(start),
                });
            }
            None => {}
        }
    }
}

/// The completions of a transport that finishes each command inside `submit`.
#[derive(Debug, Default)]
struct Finished {
    next_tag: u64,
    queue: VecDeque<(Tag, Completion)>,
}

impl Finished {
    fn push(&mut self, completion: Completion) -> Tag {
        let tag = Tag(self.next_tag);
        self.next_tag = self.next_tag.wrapping_add(1);
        self.queue.push_back((tag, completion));
        tag
    }

    fn pop(&mut self) -> Option<(Tag, Completion)> {
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cdbs_have_six_to_thirty_two_bytes() {
        assert_eq!(Cdb::new(&[0; 5]), None);
        assert_eq!(Cdb::new(&[0; 33]), None);
        assert_eq!(Cdb::new(&[0x12; 6]).map(|c| c.as_bytes().len()), Some(6));
        assert_eq!(
            Cdb::from_array([0x12, 0, 0, 0, 36, 0]).to_string(),
            "12 00 00 00 24 00"
        );
    }
}
