//! USB/IP 0x0111, the side that has the device.
//!
//! Written from the observed wire format: big-endian. A connection begins with one request (list or import); after a
//! granted import it carries transfers under headers of 48 bytes.

mod codec;
mod session;

#[cfg(test)]
mod tests;

pub use self::codec::{Decoder, Request, Submit};
pub(crate) use self::session::{Granted, Session, answer_import, answer_list};
