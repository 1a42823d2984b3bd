//! Carries a simulated USB device to a host: usbredir for QEMU, USB/IP for any Linux kernel, and a line protocol to change
//! the device while a host uses it.
//!
//! ```text
//! usbredir, usbip   bytes to packets and back; a session each: packets in, frames out, no sockets, no clock
//! control           one text command a line, one JSON line as the answer
//! server            sockets, threads and time
//! ```
//!
//! A thread for each connection reads and decodes; one thread owns the device and does everything else, so that nothing in
//! here needs a lock. What a peer sends is bounded before it is believed.

mod address;
mod control;
mod device;
mod gather;
mod server;
#[doc(hidden)]
pub mod usbip;
#[doc(hidden)]
pub mod usbredir;

#[cfg(test)]
mod tests;

pub use self::address::{Address, AddressError};
pub use self::control::{AskError, HELP as CONTROL_HELP, ask};
#[doc(hidden)]
pub use self::gather::{Decode, Gather};
pub use self::server::{Config, ServeError, Server, Stopper, Summary};

/// The longest data that one transfer carries, in bytes.
pub const MAX_DATA_BYTES: usize = 64 << 20;

/// Transfers that a host may have pending at one time.
const MAX_PENDING: usize = 1024;

/// Bytes that the pending transfers of a host may have in all.
const MAX_PENDING_BYTES: usize = 256 << 20;

/// What a peer sent breaks the protocol; the connection cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The announced length is beyond all reason.
    #[error("{what} announces {declared_bytes} bytes; at most {limit_bytes} are taken")]
    TooLong {
        /// What is being read.
        what: &'static str,
        /// What the peer says.
        declared_bytes: u64,
        /// What is accepted.
        limit_bytes: u64,
    },
    /// The announced length does not fit what is announced.
    #[error("{what} has {declared_bytes} bytes instead of {expected_bytes}")]
    WrongLength {
        /// What is being read.
        what: &'static str,
        /// What the peer says.
        declared_bytes: u64,
        /// What it has to be.
        expected_bytes: u64,
    },
    /// The first packet is no greeting, or a greeting comes again.
    #[error("{what} where {expected} belongs")]
    OutOfOrder {
        /// What came.
        what: &'static str,
        /// What has to come.
        expected: &'static str,
    },
    /// The peer cannot do what is needed.
    #[error("the peer lacks {missing}")]
    Lacks {
        /// Capabilities by name.
        missing: String,
    },
    /// A version or command that does not exist.
    #[error("unknown {what} {value:#x}")]
    Unknown {
        /// What is being read.
        what: &'static str,
        /// What came.
        value: u32,
    },
    /// More at one time than any host has in flight.
    #[error("more than {MAX_PENDING} transfers or {MAX_PENDING_BYTES} bytes are pending")]
    TooMany,
    /// Two pending transfers have the same name.
    #[error("transfer {id:#x} is pending already")]
    SameName {
        /// The name.
        id: u64,
    },
    /// The connection ended inside a packet, or nothing was decoded after an error.
    #[error("nothing can follow the error before")]
    Broken,
}

/// What goes out at one time: head and data stay apart so that the data is never copied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// Headers.
    pub head: Vec<u8>,
    /// What follows.
    pub data: Vec<u8>,
}

impl Frame {
    /// Both as one, for tests.
    pub fn bytes(&self) -> Vec<u8> {
        [self.head.as_slice(), self.data.as_slice()].concat()
    }
}
