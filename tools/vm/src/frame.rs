//! Messages between host and guest, over a virtio-serial port.
//!
//! A message is `kind: u8`, `fields: u8`, then for each field a `u32` length (little-endian) and that many bytes. Nothing is
//! escaped, so that any output passes unchanged. This file is compiled into the library and into the guest's init.

use std::io::{self, Read, Write};

/// Guest to host, once: ready. Fields: kernel release, disks found, microseconds since boot at init's start and now.
pub const HELLO: u8 = 1;
/// Host to guest: run a command. Fields: time-out in milliseconds, what to count, then the arguments, the first of which
/// is the program. What to count is empty, or the SCSI host number whose CDBs are to be returned.
pub const RUN: u8 = 2;
/// Guest to host: a command has ended. Fields: exit code (128 + signal if killed), `1` if the time ran out, nanoseconds from
/// fork to exit, microseconds of user and of system time, standard output, standard error, trace.
pub const DONE: u8 = 3;
/// Host to guest: which disks are there? No fields.
pub const DISKS: u8 = 4;
/// Host to guest: the kernel's log, please. One field: the sequence number of the first record that is wanted.
pub const DMESG: u8 = 5;
/// Host to guest: load a module, if it is not there. Fields: its name, path in the guest, parameters.
pub const INSMOD: u8 = 6;
/// Host to guest: power off. No fields, and no answer but the end of QEMU.
pub const POWEROFF: u8 = 7;
/// Guest to host: the answer to every request for which no other is named. One field, text.
pub const TEXT: u8 = 8;
/// Guest to host: the request could not be carried out. One field, why.
pub const FAILED: u8 = 9;
/// Host to guest: which USB devices are there? No fields.
pub const USB: u8 = 10;
/// Host to guest: bring the network up. Fields: our IPv4 address, its mask.
pub const NETWORK: u8 = 11;

/// A field longer than this is taken for a broken stream.
const MAX_FIELD_BYTES: usize = 512 << 20;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// One of the constants above.
    pub kind: u8,
    /// What it carries, in the order that its kind defines.
    pub fields: Vec<Vec<u8>>,
}

impl Message {
    /// A message with these fields.
    pub fn new<F: Into<Vec<u8>>>(kind: u8, fields: impl IntoIterator<Item = F>) -> Self {
        Self {
            kind,
            fields: fields.into_iter().map(Into::into).collect(),
        }
    }

    /// The field as text, with replacement characters where it is none; empty if there is no such field.
    pub fn text(&self, index: usize) -> String {
        self.fields
            .get(index)
            .map(|field| String::from_utf8_lossy(field).into_owned())
            .unwrap_or_default()
    }

    /// The field as a decimal number.
    pub fn number(&self, index: usize) -> Option<u64> {
        self.text(index).parse().ok()
    }

    /// Writes it in one piece.
    pub fn write_to(&self, mut to: impl Write) -> io::Result<()> {
        let too_much = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let mut bytes = vec![self.kind, u8::try_from(self.fields.len()).map_err(too_much)?];
        for field in &self.fields {
            bytes.extend(u32::try_from(field.len()).map_err(too_much)?.to_le_bytes());
            bytes.extend(field);
        }
        to.write_all(&bytes)?;
        to.flush()
    }

    /// Reads one; an end of the stream before the first byte is `UnexpectedEof`, as is one in the middle.
    pub fn read_from(mut from: impl Read) -> io::Result<Self> {
        let mut head = [0; 2];
        from.read_exact(&mut head)?;
        let [kind, count] = head;
        let mut fields = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let mut len = [0; 4];
            from.read_exact(&mut len)?;
            let len = u32::from_le_bytes(len) as usize;
            if len > MAX_FIELD_BYTES {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a field of impossible length",
                ));
            }
            let mut field = Vec::new();
            if from.by_ref().take(len as u64).read_to_end(&mut field)? < len {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            fields.push(field);
        }
        Ok(Self { kind, fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_on_the_wire_are_as_documented() {
        let mut wire = Vec::new();
        Message::new(RUN, ["ab", ""]).write_to(&mut wire).unwrap();
        assert_eq!(wire, b"\x02\x02\x02\0\0\0ab\0\0\0\0");
    }

    #[test]
    fn two_messages_in_one_stream_are_kept_apart() {
        let wire: &[u8] = b"\x08\x01\x03\0\0\0\xff\0\n\x05\0";
        let mut stream = wire;
        assert_eq!(
            Message::read_from(&mut stream).unwrap(),
            Message::new(TEXT, [b"\xff\0\n".as_slice()])
        );
        assert_eq!(Message::read_from(&mut stream).unwrap().kind, DMESG);
        assert_eq!(
            Message::read_from(&mut stream).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn a_cut_message_is_an_error_at_every_length() {
        let wire: &[u8] = b"\x03\x02\x01\0\0\0x\x02\0\0\0yz";
        for len in 0..wire.len() {
            assert!(Message::read_from(wire.get(..len).unwrap()).is_err(), "{len}");
        }
        assert!(Message::read_from(wire).is_ok());
    }

    #[test]
    fn an_absurd_length_is_refused_before_anything_is_allocated() {
        let wire: &[u8] = b"\x03\x01\xff\xff\xff\xff";
        assert_eq!(
            Message::read_from(wire).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }
}
