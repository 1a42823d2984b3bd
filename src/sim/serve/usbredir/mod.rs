//! usbredir, the side that has the device.
//!
//! Written from the observed wire format: little-endian, packed; a header (type, length of what follows, id), a part of
//! fixed length that depends on the type, then data. The id has 32 bits in the first packet of each side and 64 bits
//! afterwards.

mod codec;
mod session;

#[cfg(test)]
mod tests;

pub use self::codec::{Bulk, Control, Decoder, Packet, PacketStatus, Small};
pub(crate) use self::session::Session;
