//! Bytes of USB/IP to requests and back.

use crate::sim::serve::gather::{Decode, Gather, copy};
use crate::sim::serve::{Frame, MAX_DATA_BYTES, ProtocolError};
use crate::sim::usb::{Identity, Interface, Speed, TransferStatus};
use crate::wire::{be16, be32};

/// The protocol's version.
pub const VERSION: u16 = 0x0111;
/// The only device's name.
pub const BUS_ID: &str = "1-1";

const HEADER_BYTES: usize = 48;
const BUS_ID_BYTES: usize = 32;
const PATH_BYTES: usize = 256;
/// Descriptor of one packet of an isochronous transfer.
const ISO_DESCRIPTOR_BYTES: usize = 16;
/// The most packets that an isochronous transfer has.
const MAX_ISO_PACKETS: u32 = 1024;

/// Linux error numbers, negated as they travel.
pub mod status {
    /// Done.
    pub const DONE: i32 = 0;
    /// EINVAL.
    pub const INVALID: i32 = -22;
    /// EPIPE.
    pub const STALL: i32 = -32;
    /// EPROTO.
    pub const PROTOCOL: i32 = -71;
    /// EOVERFLOW.
    pub const OVERFLOW: i32 = -75;
    /// ECONNRESET.
    pub const TAKEN_BACK: i32 = -104;
    /// ESHUTDOWN.
    pub const GONE: i32 = -108;
    /// EREMOTEIO.
    pub const SHORT: i32 = -121;
}

/// How a transfer ended, as an error number.
pub fn error_number(status: TransferStatus) -> i32 {
    match status {
        TransferStatus::Done => status::DONE,
        TransferStatus::Cancelled => status::TAKEN_BACK,
        TransferStatus::Stall => status::STALL,
        TransferStatus::Error => status::PROTOCOL,
        TransferStatus::Babble => status::OVERFLOW,
    }
}

/// A transfer that the host asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submit {
    /// The host's number for it.
    pub seqnum: u32,
    /// Endpoint address, bit 7 set for IN.
    pub endpoint: u8,
    /// URB flags; 1: a short packet is an error.
    pub flags: u32,
    /// Bytes to move.
    pub length: usize,
    /// SETUP packet, meaningful on endpoint 0.
    pub setup: [u8; 8],
    /// What the host sends.
    pub data: Vec<u8>,
    /// It is isochronous.
    pub iso: bool,
}

/// What a host sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Which devices are there?
    List,
    /// Let me have the device of this name.
    Import {
        /// The name, as it came.
        bus_id: String,
    },
    /// Run a transfer.
    Submit(Submit),
    /// Take a transfer back.
    Unlink {
        /// Number of this request.
        seqnum: u32,
        /// Number of the transfer.
        victim: u32,
    },
}

#[derive(Debug)]
enum Stage {
    Operation,
    Import,
    Header,
    Data { submit: Submit, iso_len: usize },
    Iso { submit: Submit },
    Broken,
}

/// Reads requests out of a stream of bytes that comes in any pieces.
#[derive(Debug)]
pub struct Decoder {
    stage: Stage,
    gather: Gather,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// Waits for the first request.
    pub fn new() -> Self {
        Self {
            stage: Stage::Operation,
            gather: Gather::new(8),
        }
    }

    fn wait(&mut self, stage: Stage, want: usize) {
        self.stage = stage;
        self.gather = Gather::new(want);
    }
}

impl Decode for Decoder {
    type Packet = Request;
    const FIRST: &str = "request";

    fn is_first(packet: &Request) -> bool {
        matches!(packet, Request::Import { .. })
    }

    fn gather(&mut self) -> &mut Gather {
        &mut self.gather
    }

    fn is_broken(&self) -> bool {
        matches!(self.stage, Stage::Broken)
    }

    fn break_off(&mut self) {
        self.stage = Stage::Broken;
    }

    fn next_stage(&mut self) -> Result<Option<Request>, ProtocolError> {
        let piece = self.gather.take();
        match std::mem::replace(&mut self.stage, Stage::Broken) {
            Stage::Operation => {
                let version = be16(&piece, 0).unwrap_or_default();
                if version != VERSION {
                    return Err(ProtocolError::Unknown {
                        what: "version",
                        value: version.into(),
                    });
                }
                match be16(&piece, 2).unwrap_or_default() {
                    0x8005 => {
                        self.wait(Stage::Operation, 8);
                        Ok(Some(Request::List))
                    }
                    0x8003 => {
                        self.wait(Stage::Import, BUS_ID_BYTES);
                        Ok(None)
                    }
                    code => Err(ProtocolError::Unknown {
                        what: "request",
                        value: code.into(),
                    }),
                }
            }
            Stage::Import => {
                let name = piece.split(|b| *b == 0).next().unwrap_or_default();
                // A refused import ends the connection, so that only transfers can follow.
                self.wait(Stage::Header, HEADER_BYTES);
                Ok(Some(Request::Import {
                    bus_id: String::from_utf8_lossy(name).into_owned(),
                }))
            }
            Stage::Header => self.header(&piece),
            Stage::Data { mut submit, iso_len } => {
                submit.data = piece;
                self.wait(Stage::Iso { submit }, iso_len);
                Ok(None)
            }
            Stage::Iso { submit } => {
                self.wait(Stage::Header, HEADER_BYTES);
                Ok(Some(Request::Submit(submit)))
            }
            Stage::Broken => Err(ProtocolError::Broken),
        }
    }
}

impl Decoder {
    fn header(&mut self, piece: &[u8]) -> Result<Option<Request>, ProtocolError> {
        let word = |at: usize| be32(piece, at).unwrap_or_default();
        let seqnum = word(4);
        match word(0) {
            1 => {
                let inward = word(12) == 1;
                let endpoint = word(16);
                if endpoint > 15 {
                    return Err(ProtocolError::Unknown {
                        what: "endpoint",
                        value: endpoint,
                    });
                }
                let length = usize::try_from(word(24)).unwrap_or(usize::MAX);
                if length > MAX_DATA_BYTES {
                    return Err(ProtocolError::TooLong {
                        what: "a transfer",
                        declared_bytes: u64::from(word(24)),
                        limit_bytes: MAX_DATA_BYTES as u64,
                    });
                }
                // Both 0 and all ones stand for a transfer that is not isochronous.
                let packets = match word(32) {
                    u32::MAX => 0,
                    packets if packets > MAX_ISO_PACKETS => {
                        return Err(ProtocolError::TooLong {
                            what: "an isochronous transfer",
                            declared_bytes: u64::from(packets) * ISO_DESCRIPTOR_BYTES as u64,
                            limit_bytes: u64::from(MAX_ISO_PACKETS) * ISO_DESCRIPTOR_BYTES as u64,
                        });
                    }
                    packets => packets,
                };
                let mut setup = [0; 8];
                copy(&mut setup, piece.get(40..).unwrap_or_default());
                let submit = Submit {
                    seqnum,
                    endpoint: (endpoint & 0x0f) as u8 | if inward { 0x80 } else { 0 },
                    flags: word(20),
                    length,
                    setup,
                    data: Vec::new(),
                    iso: packets > 0,
                };
                let iso_len = packets as usize * ISO_DESCRIPTOR_BYTES;
                self.wait(Stage::Data { submit, iso_len }, if inward { 0 } else { length });
                Ok(None)
            }
            2 => {
                self.wait(Stage::Header, HEADER_BYTES);
                Ok(Some(Request::Unlink {
                    seqnum,
                    victim: word(20),
                }))
            }
            command => Err(ProtocolError::Unknown {
                what: "command",
                value: command,
            }),
        }
    }
}

fn operation(code: u16, status: u32) -> Vec<u8> {
    let mut head = VERSION.to_be_bytes().to_vec();
    head.extend_from_slice(&code.to_be_bytes());
    head.extend_from_slice(&status.to_be_bytes());
    head
}

fn text(into: &mut Vec<u8>, text: &str, len: usize) {
    let end = into.len() + len;
    into.extend(text.bytes().take(len.saturating_sub(1)));
    into.resize(end, 0);
}

fn record(into: &mut Vec<u8>, identity: &Identity, configuration: u8, interfaces: usize) {
    text(into, "/sys/devices/platform/drivethru-sim/usb1/1-1", PATH_BYTES);
    text(into, BUS_ID, BUS_ID_BYTES);
    let speed: u32 = match identity.speed {
        Speed::High => 3,
        // The virtual host controller of Linux takes no device that says 6, faster than SuperSpeed.
        Speed::Super | Speed::SuperPlus => 5,
    };
    for word in [1, 2, speed] {
        into.extend_from_slice(&word.to_be_bytes());
    }
    for word in [identity.vid, identity.pid, identity.bcd_device] {
        into.extend_from_slice(&word.to_be_bytes());
    }
    let (class, subclass, protocol) = identity.class;
    let count = u8::try_from(interfaces).unwrap_or(u8::MAX);
    into.extend_from_slice(&[class, subclass, protocol, configuration, 1, count]);
}

/// Answer to a list request: the device, if it is there.
pub fn list(device: Option<(&Identity, &[Interface])>) -> Frame {
    let mut head = operation(0x0005, 0);
    head.extend_from_slice(&u32::from(device.is_some()).to_be_bytes());
    if let Some((identity, interfaces)) = device {
        let shown = interfaces.get(..32).unwrap_or(interfaces);
        record(&mut head, identity, identity.configuration, shown.len());
        for interface in shown {
            let (class, subclass, protocol) = interface.class;
            head.extend_from_slice(&[class, subclass, protocol, 0]);
        }
    }
    Frame {
        head,
        data: Vec::new(),
    }
}

/// Answer to an import that is granted.
pub fn import_granted(identity: &Identity, configuration: u8, interfaces: usize) -> Frame {
    let mut head = operation(0x0003, 0);
    record(&mut head, identity, configuration, interfaces);
    Frame {
        head,
        data: Vec::new(),
    }
}

/// Answer to an import that is not: 1 refused, 4 no such device.
pub fn import_refused(status: u32) -> Frame {
    Frame {
        head: operation(0x0003, status),
        data: Vec::new(),
    }
}

fn reply(command: u32, seqnum: u32, words: &[u32], data: Vec<u8>) -> Frame {
    let mut head = Vec::with_capacity(HEADER_BYTES);
    for word in [command, seqnum, 0, 0, 0].iter().chain(words) {
        head.extend_from_slice(&word.to_be_bytes());
    }
    head.resize(HEADER_BYTES, 0);
    Frame { head, data }
}

/// Answer to a submit; `moved` bytes, which `data` holds if they went IN.
pub fn submit_answer(seqnum: u32, status: i32, moved: u32, data: Vec<u8>) -> Frame {
    reply(3, seqnum, &[status.cast_unsigned(), moved], data)
}

/// Answer to an unlink.
pub fn unlink_answer(seqnum: u32, status: i32) -> Frame {
    reply(4, seqnum, &[status.cast_unsigned()], Vec::new())
}
