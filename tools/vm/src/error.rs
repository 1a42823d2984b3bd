//! Why there is no guest, or no answer from it.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::guest::Output;

/// What can go wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Something that the bench needs is not on this machine. A test that meets this has been skipped, not passed.
    Unavailable(String),
    /// Providing it was tried, and failed.
    Setup {
        /// What was being done.
        what: String,
        /// What came of it.
        why: String,
    },
    /// The host's side failed: a file, a process.
    Io {
        /// What was being done.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// The guest's kernel panicked.
    GuestPanicked {
        /// The end of its console.
        console: String,
    },
    /// QEMU ended, or the guest switched itself off, without being asked to.
    QemuExited {
        /// Exit status in words.
        status: String,
        /// What QEMU said.
        stderr: String,
        /// The end of the guest's console.
        console: String,
    },
    /// The guest gave no answer in time; it has been killed.
    GuestSilent {
        /// What was waited for.
        waiting_for: String,
        /// For how long.
        after: Duration,
        /// The end of its console.
        console: String,
    },
    /// The command ran into its time-out and was killed in the guest, which itself is well.
    CommandTimedOut {
        /// The command.
        command: String,
        /// Its time-out.
        after: Duration,
        /// What it had written until then.
        output: Box<Output>,
    },
    /// The guest could not carry out a request, for example start a program that does not exist.
    Refused {
        /// The request.
        request: String,
        /// The guest's words.
        why: String,
    },
    /// No disk has this serial.
    NoSuchDisk {
        /// The serial.
        serial: String,
        /// The disks that are there, as the guest lists them.
        disks: String,
    },
    /// Fewer disks came up than were plugged in.
    DisksMissing {
        /// Plugged in.
        wanted: usize,
        /// Seen by the kernel.
        found: usize,
        /// The end of the guest's console.
        console: String,
    },
    /// Something did not come about in time, while guest and server are well.
    NotSo {
        /// What was waited for.
        what: String,
        /// For how long.
        after: Duration,
        /// What the guest's kernel and the server said meanwhile.
        details: String,
    },
    /// The program that serves a device has ended without being asked to.
    ServerEnded {
        /// Profile and options.
        spec: String,
        /// Exit status in words.
        status: String,
        /// What it wrote.
        output: String,
    },
    /// An argument that makes no sense.
    Usage(String),
    /// An answer that the protocol does not know.
    Protocol(String),
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => write!(f, "unavailable: {why}"),
            Self::Setup { what, why } => write!(f, "{what}: {why}"),
            Self::Io { what, source } => write!(f, "{what}: {source}"),
            Self::GuestPanicked { console } => write!(f, "the guest's kernel panicked\n{console}"),
            Self::QemuExited {
                status,
                stderr,
                console,
            } => {
                write!(
                    f,
                    "the guest is gone, QEMU ended with {status}\n{stderr}\n{console}"
                )
            }
            Self::GuestSilent {
                waiting_for,
                after,
                console,
            } => {
                write!(
                    f,
                    "no answer from the guest in {after:.1?}, waiting for {waiting_for}\n{console}"
                )
            }
            Self::CommandTimedOut {
                command,
                after,
                output,
            } => write!(
                f,
                "{command}: killed after {after:.1?}, until then on stdout: {}, on stderr: {}",
                output.stdout_text(),
                output.stderr_text()
            ),
            Self::Refused { request, why } => write!(f, "{request}: {why}"),
            Self::NoSuchDisk { serial, disks } => {
                write!(f, "no disk with serial {serial}, there are:\n{disks}")
            }
            Self::DisksMissing {
                wanted,
                found,
                console,
            } => write!(f, "{found} of {wanted} disks came up\n{console}"),
            Self::NotSo { what, after, details } => write!(f, "not so after {after:.1?}: {what}\n{details}"),
            Self::ServerEnded { spec, status, output } => {
                write!(f, "the server of {spec} ended with {status}\n{output}")
            }
            Self::Usage(why) => f.write_str(why),
            Self::Protocol(why) => write!(f, "guest protocol: {why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
