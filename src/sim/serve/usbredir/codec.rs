//! Bytes of usbredir to packets and back.

use crate::sim::serve::gather::{Decode, Gather};
use crate::sim::serve::{Frame, MAX_DATA_BYTES, ProtocolError};
use crate::sim::usb::{Endpoint, Identity, Interface, Speed, TransferStatus};
use crate::wire::{le16, le32, le64};

/// Capabilities by bit.
pub mod capability {
    /// Bulk streams, and their number in the endpoint table.
    pub const STREAMS: u32 = 1 << 0;
    /// bcdDevice in the connect packet.
    pub const VERSION: u32 = 1 << 1;
    /// A disconnect is acknowledged.
    pub const DISCONNECT_ACK: u32 = 1 << 3;
    /// Packet sizes in the endpoint table.
    pub const MAX_PACKET: u32 = 1 << 4;
    /// Ids of 64 bits.
    pub const WIDE_IDS: u32 = 1 << 5;
    /// Bulk lengths of 32 bits.
    pub const WIDE_BULK: u32 = 1 << 6;

    /// What this side can do.
    pub const OURS: u32 = STREAMS | VERSION | DISCONNECT_ACK | MAX_PACKET | WIDE_IDS | WIDE_BULK;
    /// What the peer has to be able to do.
    pub const NEEDED: &[(u32, &str)] = &[
        (VERSION, "the device version in the connect packet (1)"),
        (MAX_PACKET, "packet sizes in the endpoint table (4)"),
        (WIDE_IDS, "64-bit ids (5)"),
        (WIDE_BULK, "32-bit bulk lengths (6)"),
    ];
}

/// Length of the version text in the first packet.
const VERSION_BYTES: usize = 64;
/// The longest list of capabilities that is read; only the first 32 mean anything.
const MAX_CAPABILITY_BYTES: usize = 256;
/// The longest packet of a type that is skipped.
const MAX_SKIPPED_BYTES: usize = 64 << 10;
/// The longest data of a control, interrupt or isochronous packet.
const MAX_SMALL_DATA_BYTES: usize = 0xffff;
/// Entries in the tables of endpoints and interfaces.
const TABLE: usize = 32;

/// Status of a packet on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketStatus {
    /// Done.
    Success,
    /// Taken back.
    Cancelled,
    /// Makes no sense.
    Invalid,
    /// The device did not answer, or is not there.
    IoError,
    /// The endpoint is halted.
    Stall,
    /// The device sent too much.
    Babble,
}

impl PacketStatus {
    /// The byte.
    pub fn byte(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Cancelled => 1,
            Self::Invalid => 2,
            Self::IoError => 3,
            Self::Stall => 4,
            Self::Babble => 6,
        }
    }
}

impl From<TransferStatus> for PacketStatus {
    fn from(status: TransferStatus) -> Self {
        match status {
            TransferStatus::Done => Self::Success,
            TransferStatus::Cancelled => Self::Cancelled,
            TransferStatus::Stall => Self::Stall,
            TransferStatus::Error => Self::IoError,
            TransferStatus::Babble => Self::Babble,
        }
    }
}

/// Fixed part of a control packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// 00h or 80h.
    pub endpoint: u8,
    /// bRequest.
    pub request: u8,
    /// bmRequestType.
    pub request_type: u8,
    /// wValue.
    pub value: u16,
    /// wIndex.
    pub index: u16,
    /// wLength, in bytes.
    pub length: u16,
}

/// Fixed part of a bulk packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bulk {
    /// Address, bit 7 set for IN.
    pub endpoint: u8,
    /// Bytes to move.
    pub length: u32,
    /// Stream, 0 for none.
    pub stream: u32,
}

/// Fixed part of an interrupt or isochronous packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Small {
    /// Address, bit 7 set for IN.
    pub endpoint: u8,
    /// Bytes to move.
    pub length: u16,
}

/// What a host sends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Packet {
    Hello {
        capabilities: u32,
    },
    Reset,
    SetConfiguration {
        id: u64,
        value: u8,
    },
    GetConfiguration {
        id: u64,
    },
    SetAlt {
        id: u64,
        interface: u8,
        alt: u8,
    },
    GetAlt {
        id: u64,
        interface: u8,
    },
    StartIso {
        id: u64,
        endpoint: u8,
    },
    StopIso {
        id: u64,
        endpoint: u8,
    },
    StartInterrupt {
        id: u64,
        endpoint: u8,
    },
    StopInterrupt {
        id: u64,
        endpoint: u8,
    },
    AllocStreams {
        id: u64,
        endpoints: u32,
        count: u32,
    },
    FreeStreams {
        id: u64,
        endpoints: u32,
    },
    StartBulkReceiving {
        id: u64,
        stream: u32,
        endpoint: u8,
    },
    StopBulkReceiving {
        id: u64,
        stream: u32,
        endpoint: u8,
    },
    Cancel {
        id: u64,
    },
    DisconnectAck,
    Control {
        id: u64,
        control: Control,
        data: Vec<u8>,
    },
    Bulk {
        id: u64,
        bulk: Bulk,
        data: Vec<u8>,
    },
    Iso {
        id: u64,
        iso: Small,
        data: Vec<u8>,
    },
    Interrupt {
        id: u64,
        interrupt: Small,
        data: Vec<u8>,
    },
    /// Read over.
    Skipped {
        kind: u32,
    },
}

/// Name, length of the fixed part and the longest data of a type that a host may send.
fn shape(kind: u32) -> (&'static str, usize, usize) {
    match kind {
        0 => ("hello", VERSION_BYTES, MAX_CAPABILITY_BYTES),
        3 => ("reset", 0, 0),
        6 => ("set configuration", 1, 0),
        7 => ("get configuration", 0, 0),
        9 => ("set alternate setting", 2, 0),
        10 => ("get alternate setting", 1, 0),
        12 => ("start isochronous stream", 3, 0),
        13 => ("stop isochronous stream", 1, 0),
        15 => ("start interrupt receiving", 1, 0),
        16 => ("stop interrupt receiving", 1, 0),
        18 => ("allocate streams", 8, 0),
        19 => ("free streams", 4, 0),
        21 => ("cancel", 0, 0),
        24 => ("disconnect acknowledgement", 0, 0),
        25 => ("start bulk receiving", 10, 0),
        26 => ("stop bulk receiving", 5, 0),
        100 => ("control packet", 10, MAX_SMALL_DATA_BYTES),
        101 => ("bulk packet", 10, MAX_DATA_BYTES),
        102 => ("isochronous packet", 4, MAX_SMALL_DATA_BYTES),
        103 => ("interrupt packet", 4, MAX_SMALL_DATA_BYTES),
        _ => ("packet of another type", 0, MAX_SKIPPED_BYTES),
    }
}

#[derive(Debug)]
enum Stage {
    Header,
    Fixed { kind: u32, id: u64, data_len: usize },
    Data { kind: u32, id: u64, fixed: Vec<u8> },
    Broken,
}

/// Reads packets out of a stream of bytes that comes in any pieces.
#[derive(Debug)]
pub struct Decoder {
    greeted: bool,
    wide_ids: bool,
    stage: Stage,
    gather: Gather,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// Waits for the peer's hello.
    pub fn new() -> Self {
        Self {
            greeted: false,
            wide_ids: false,
            stage: Stage::Header,
            gather: Gather::new(12),
        }
    }
}

impl Decode for Decoder {
    type Packet = Packet;
    const FIRST: &str = "hello";

    fn is_first(packet: &Packet) -> bool {
        matches!(packet, Packet::Hello { .. })
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

    fn next_stage(&mut self) -> Result<Option<Packet>, ProtocolError> {
        let piece = self.gather.take();
        match std::mem::replace(&mut self.stage, Stage::Broken) {
            Stage::Header => {
                let kind = le32(&piece, 0).unwrap_or_default();
                let declared = u64::from(le32(&piece, 4).unwrap_or_default());
                let id = if self.wide_ids {
                    le64(&piece, 8)
                } else {
                    le32(&piece, 8).map(u64::from)
                };
                let (fixed_len, data_len) = self.admit(kind, declared)?;
                self.stage = Stage::Fixed {
                    kind,
                    id: id.unwrap_or_default(),
                    data_len,
                };
                self.gather = Gather::new(fixed_len);
                Ok(None)
            }
            Stage::Fixed { kind, id, data_len } => {
                self.stage = Stage::Data {
                    kind,
                    id,
                    fixed: piece,
                };
                self.gather = Gather::new(data_len);
                Ok(None)
            }
            Stage::Data { kind, id, fixed } => {
                let packet = build(kind, id, &fixed, piece)?;
                if let Packet::Hello { capabilities } = packet {
                    self.greeted = true;
                    self.wide_ids = capabilities & capability::WIDE_IDS != 0;
                }
                self.stage = Stage::Header;
                self.gather = Gather::new(if self.wide_ids { 16 } else { 12 });
                Ok(Some(packet))
            }
            Stage::Broken => Err(ProtocolError::Broken),
        }
    }
}

impl Decoder {
    /// Lengths of the fixed part and of the data, if this type may have so many bytes and come now.
    fn admit(&self, kind: u32, declared: u64) -> Result<(usize, usize), ProtocolError> {
        let (what, fixed_len, data_limit) = shape(kind);
        match (self.greeted, kind) {
            (false, 1..) => {
                return Err(ProtocolError::OutOfOrder {
                    what,
                    expected: "hello",
                });
            }
            (true, 0) => {
                return Err(ProtocolError::OutOfOrder {
                    what: "a second hello",
                    expected: "a request",
                });
            }
            _ => {}
        }
        let limit = (fixed_len + data_limit) as u64;
        if declared < fixed_len as u64 || (data_limit == 0 && declared != limit) {
            return Err(ProtocolError::WrongLength {
                what,
                declared_bytes: declared,
                expected_bytes: fixed_len as u64,
            });
        }
        if declared > limit {
            return Err(ProtocolError::TooLong {
                what,
                declared_bytes: declared,
                limit_bytes: limit,
            });
        }
        let data_len = usize::try_from(declared)
            .unwrap_or(limit as usize)
            .saturating_sub(fixed_len);
        Ok((fixed_len, data_len))
    }
}

fn build(kind: u32, id: u64, fixed: &[u8], data: Vec<u8>) -> Result<Packet, ProtocolError> {
    let u8_at = |at: usize| fixed.get(at).copied().unwrap_or_default();
    let u16_at = |at: usize| le16(fixed, at).unwrap_or_default();
    let u32_at = |at: usize| le32(fixed, at).unwrap_or_default();
    let small = || Small {
        endpoint: u8_at(0),
        length: u16_at(2),
    };
    let packet = match kind {
        0 => Packet::Hello {
            // A peer without capabilities sends none.
            capabilities: le32(&data, 0).unwrap_or_default(),
        },
        3 => Packet::Reset,
        6 => Packet::SetConfiguration { id, value: u8_at(0) },
        7 => Packet::GetConfiguration { id },
        9 => Packet::SetAlt {
            id,
            interface: u8_at(0),
            alt: u8_at(1),
        },
        10 => Packet::GetAlt {
            id,
            interface: u8_at(0),
        },
        12 => Packet::StartIso {
            id,
            endpoint: u8_at(0),
        },
        13 => Packet::StopIso {
            id,
            endpoint: u8_at(0),
        },
        15 => Packet::StartInterrupt {
            id,
            endpoint: u8_at(0),
        },
        16 => Packet::StopInterrupt {
            id,
            endpoint: u8_at(0),
        },
        18 => Packet::AllocStreams {
            id,
            endpoints: u32_at(0),
            count: u32_at(4),
        },
        19 => Packet::FreeStreams {
            id,
            endpoints: u32_at(0),
        },
        21 => Packet::Cancel { id },
        24 => Packet::DisconnectAck,
        25 => Packet::StartBulkReceiving {
            id,
            stream: u32_at(0),
            endpoint: u8_at(8),
        },
        26 => Packet::StopBulkReceiving {
            id,
            stream: u32_at(0),
            endpoint: u8_at(4),
        },
        100 => {
            let control = Control {
                endpoint: u8_at(0),
                request: u8_at(1),
                request_type: u8_at(2),
                value: u16_at(4),
                index: u16_at(6),
                length: u16_at(8),
            };
            check_data("control data", control.endpoint, control.length.into(), &data)?;
            Packet::Control { id, control, data }
        }
        101 => {
            let bulk = Bulk {
                endpoint: u8_at(0),
                length: u32::from(u16_at(2)) | u32::from(u16_at(8)) << 16,
                stream: u32_at(4),
            };
            check_data("bulk data", bulk.endpoint, bulk.length, &data)?;
            Packet::Bulk { id, bulk, data }
        }
        102 => Packet::Iso {
            id,
            iso: small(),
            data,
        },
        103 => {
            check_data("interrupt data", small().endpoint, small().length.into(), &data)?;
            Packet::Interrupt {
                id,
                interrupt: small(),
                data,
            }
        }
        _ => Packet::Skipped { kind },
    };
    Ok(packet)
}

/// OUT packets carry what they say, IN packets nothing.
fn check_data(what: &'static str, endpoint: u8, length: u32, data: &[u8]) -> Result<(), ProtocolError> {
    let expected = if endpoint & 0x80 == 0 {
        u64::from(length)
    } else {
        0
    };
    if data.len() as u64 == expected {
        Ok(())
    } else {
        Err(ProtocolError::WrongLength {
            what,
            declared_bytes: data.len() as u64,
            expected_bytes: expected,
        })
    }
}

fn frame(kind: u32, id: u64, fixed: &[u8], data: Vec<u8>) -> Frame {
    let length = u32::try_from(fixed.len().saturating_add(data.len())).unwrap_or(u32::MAX);
    let mut head = Vec::with_capacity(16 + fixed.len());
    head.extend_from_slice(&kind.to_le_bytes());
    head.extend_from_slice(&length.to_le_bytes());
    head.extend_from_slice(&id.to_le_bytes());
    head.extend_from_slice(fixed);
    Frame { head, data }
}

/// The first packet, the only one with a short id.
pub fn hello() -> Frame {
    let mut head = Vec::with_capacity(12 + VERSION_BYTES + 4);
    head.extend_from_slice(&0u32.to_le_bytes());
    head.extend_from_slice(&(VERSION_BYTES as u32 + 4).to_le_bytes());
    head.extend_from_slice(&0u32.to_le_bytes());
    let mut version = concat!("drivethru ", env!("CARGO_PKG_VERSION"))
        .as_bytes()
        .to_vec();
    version.resize(VERSION_BYTES, 0);
    head.extend_from_slice(&version);
    head.extend_from_slice(&capability::OURS.to_le_bytes());
    Frame {
        head,
        data: Vec::new(),
    }
}

/// Place of an endpoint in the tables.
pub fn table_index(address: u8) -> u8 {
    address & 0x0f | (address & 0x80) >> 3
}

/// All endpoints; the maximum of streams only for a peer that knows of streams.
pub fn ep_info(endpoints: &[Endpoint], with_streams: bool) -> Frame {
    let mut kinds = [0xffu8; TABLE];
    let mut intervals = [0u8; TABLE];
    let mut interfaces = [0u8; TABLE];
    let mut packets = [0u16; TABLE];
    let mut streams = [0u32; TABLE];
    let control = [0x00, 0x80].map(|address| Endpoint {
        address,
        kind: 0,
        interval: 0,
        interface: 0,
        max_packet_bytes: 64,
        max_streams: 0,
    });
    for endpoint in control.iter().chain(endpoints) {
        let at = usize::from(table_index(endpoint.address));
        set(&mut kinds, at, endpoint.kind);
        set(&mut intervals, at, endpoint.interval);
        set(&mut interfaces, at, endpoint.interface);
        set(&mut packets, at, endpoint.max_packet_bytes);
        set(&mut streams, at, endpoint.max_streams);
    }
    let mut fixed = Vec::with_capacity(TABLE * 9);
    fixed.extend_from_slice(&kinds);
    fixed.extend_from_slice(&intervals);
    fixed.extend_from_slice(&interfaces);
    fixed.extend(packets.iter().flat_map(|p| p.to_le_bytes()));
    if with_streams {
        fixed.extend(streams.iter().flat_map(|s| s.to_le_bytes()));
    }
    frame(5, 0, &fixed, Vec::new())
}

fn set<T>(table: &mut [T], at: usize, value: T) {
    if let Some(place) = table.get_mut(at) {
        *place = value;
    }
}

/// All interfaces; more than the table holds are left out.
pub fn interface_info(interfaces: &[Interface]) -> Frame {
    let mut columns = [[0u8; TABLE]; 4];
    let [numbers, classes, subclasses, protocols] = &mut columns;
    for (at, interface) in interfaces.iter().take(TABLE).enumerate() {
        set(numbers, at, interface.number);
        set(classes, at, interface.class.0);
        set(subclasses, at, interface.class.1);
        set(protocols, at, interface.class.2);
    }
    let count = interfaces.len().min(TABLE) as u32;
    let mut fixed = count.to_le_bytes().to_vec();
    fixed.extend(columns.iter().flatten());
    frame(4, 0, &fixed, Vec::new())
}

/// Here is a device.
pub fn device_connect(identity: &Identity) -> Frame {
    let speed = match identity.speed {
        Speed::High => 2,
        Speed::Super | Speed::SuperPlus => 3,
    };
    let (class, subclass, protocol) = identity.class;
    let mut fixed = vec![speed, class, subclass, protocol];
    for word in [identity.vid, identity.pid, identity.bcd_device] {
        fixed.extend_from_slice(&word.to_le_bytes());
    }
    frame(1, 0, &fixed, Vec::new())
}

/// The device is gone.
pub fn device_disconnect() -> Frame {
    frame(2, 0, &[], Vec::new())
}

/// Answer to set and get configuration.
pub fn configuration_status(id: u64, status: PacketStatus, value: u8) -> Frame {
    frame(8, id, &[status.byte(), value], Vec::new())
}

/// Answer to set and get alternate setting.
pub fn alt_status(id: u64, status: PacketStatus, interface: u8, alt: u8) -> Frame {
    frame(11, id, &[status.byte(), interface, alt], Vec::new())
}

/// Answer to starting and stopping isochronous streams.
pub fn iso_status(id: u64, status: PacketStatus, endpoint: u8) -> Frame {
    frame(14, id, &[status.byte(), endpoint], Vec::new())
}

/// Answer to starting and stopping to receive from an interrupt endpoint.
pub fn interrupt_status(id: u64, status: PacketStatus, endpoint: u8) -> Frame {
    frame(17, id, &[status.byte(), endpoint], Vec::new())
}

/// Answer to allocating and freeing streams.
pub fn streams_status(id: u64, status: PacketStatus, endpoints: u32, count: u32) -> Frame {
    let mut fixed = endpoints.to_le_bytes().to_vec();
    fixed.extend_from_slice(&count.to_le_bytes());
    fixed.push(status.byte());
    frame(20, id, &fixed, Vec::new())
}

/// Answer to starting and stopping to receive from a bulk endpoint.
pub fn bulk_receiving_status(id: u64, status: PacketStatus, stream: u32, endpoint: u8) -> Frame {
    let mut fixed = stream.to_le_bytes().to_vec();
    fixed.extend_from_slice(&[endpoint, status.byte()]);
    frame(27, id, &fixed, Vec::new())
}

/// Answer to a control packet; `moved` bytes, which `data` holds if it went IN.
pub fn control_answer(id: u64, control: &Control, status: PacketStatus, moved: u16, data: Vec<u8>) -> Frame {
    let mut fixed = vec![
        control.endpoint,
        control.request,
        control.request_type,
        status.byte(),
    ];
    for word in [control.value, control.index, moved] {
        fixed.extend_from_slice(&word.to_le_bytes());
    }
    frame(100, id, &fixed, data)
}

/// Answer to a bulk packet; `moved` bytes, which `data` holds if it went IN.
pub fn bulk_answer(id: u64, bulk: &Bulk, status: PacketStatus, moved: u32, data: Vec<u8>) -> Frame {
    let mut fixed = vec![bulk.endpoint, status.byte()];
    fixed.extend_from_slice(&(moved as u16).to_le_bytes());
    fixed.extend_from_slice(&bulk.stream.to_le_bytes());
    fixed.extend_from_slice(&((moved >> 16) as u16).to_le_bytes());
    frame(101, id, &fixed, data)
}

/// Answer to an interrupt (103) or isochronous (102) packet.
pub fn small_answer(kind: u32, id: u64, endpoint: u8, status: PacketStatus, moved: u16) -> Frame {
    let [low, high] = moved.to_le_bytes();
    frame(kind, id, &[endpoint, status.byte(), low, high], Vec::new())
}
