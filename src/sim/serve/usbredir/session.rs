//! One host on a usbredir connection: packets in, frames out.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::codec::{self, Bulk, Control, Packet, PacketStatus, capability};
use crate::sim::serve::device::Device;
use crate::sim::serve::{Frame, MAX_DATA_BYTES, MAX_PENDING, MAX_PENDING_BYTES, ProtocolError};
use crate::sim::usb::{Finished, Transfer, TransferStatus};

#[derive(Debug)]
enum Asked {
    Control(Control),
    Bulk(Bulk),
}

#[derive(Debug)]
struct Pending {
    asked: Asked,
    /// Room of an IN transfer.
    in_len: usize,
    /// What it counts against the limit.
    bytes: usize,
}

/// The state of the conversation.
#[derive(Debug)]
pub struct Session {
    /// The peer's capabilities, once it has said hello.
    peer: Option<u32>,
    /// The host has been told of the device.
    attached: bool,
    /// The host has been told that the device is gone, and has not acknowledged it.
    leaving: bool,
    pending: HashMap<u64, Pending>,
    pending_bytes: usize,
    out: VecDeque<Frame>,
}

impl Session {
    /// A new connection; the hello goes out first.
    pub fn new() -> Self {
        Self {
            peer: None,
            attached: false,
            leaving: false,
            pending: HashMap::new(),
            pending_bytes: 0,
            out: VecDeque::from([codec::hello()]),
        }
    }

    /// Whether the peer has introduced itself.
    pub fn greeted(&self) -> bool {
        self.peer.is_some()
    }

    /// The next frame for the host.
    pub fn next_frame(&mut self) -> Option<Frame> {
        self.out.pop_front()
    }

    /// Tells the host what has happened to the device since the last call.
    pub fn pump(&mut self, device: &mut dyn Device, now: Duration) {
        while let Some(finished) = device.finished(now) {
            self.finish(finished, device.plugged());
        }
        if self.attached && !device.plugged() {
            // Whatever the device forgot is ended here: no host waits for a device that is gone.
            let mut forgotten: Vec<u64> = self.pending.keys().copied().collect();
            forgotten.sort_unstable();
            for id in forgotten {
                let gone = Finished {
                    id,
                    status: TransferStatus::Cancelled,
                    data: Vec::new(),
                    moved_bytes: 0,
                };
                self.finish(gone, false);
            }
            self.attached = false;
            self.leaving = self.has(capability::DISCONNECT_ACK);
            self.out.push_back(codec::device_disconnect());
        }
        if !self.attached && !self.leaving && self.greeted() && device.plugged() {
            self.describe(device);
            self.out.push_back(codec::device_connect(&device.identity()));
            self.attached = true;
        }
    }

    fn has(&self, bit: u32) -> bool {
        self.peer.is_some_and(|peer| peer & bit != 0)
    }

    fn describe(&mut self, device: &dyn Device) {
        let streams = self.has(capability::STREAMS);
        self.out.push_back(codec::ep_info(&device.endpoints(), streams));
        self.out.push_back(codec::interface_info(&device.interfaces()));
    }

    /// Takes one packet. [`Session::pump`] has to follow.
    ///
    /// # Errors
    /// The peer lacks something, or sends what no host sends: the connection has to end.
    pub fn receive(
        &mut self,
        device: &mut dyn Device,
        packet: Packet,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        let here = self.attached && device.plugged();
        match packet {
            Packet::Hello { capabilities } => return self.greet(capabilities),
            Packet::DisconnectAck => self.leaving = false,
            Packet::Reset if here => {
                device.bus_reset(now);
                while let Some(finished) = device.finished(now) {
                    self.finish(finished, device.plugged());
                }
                // The default state has other endpoints than the setting that the host left.
                self.describe(device);
            }
            Packet::Cancel { id } if here => {
                device.cancel(id, now);
            }
            Packet::Reset | Packet::Cancel { .. } | Packet::Skipped { .. } => {}
            Packet::SetConfiguration { id, value } => {
                let status = if !here {
                    PacketStatus::IoError
                } else if device.set_configuration(value, now) {
                    PacketStatus::Success
                } else {
                    PacketStatus::Stall
                };
                if here {
                    self.describe(device);
                }
                let present = if here { device.configuration() } else { 0 };
                self.out
                    .push_back(codec::configuration_status(id, status, present));
            }
            Packet::GetConfiguration { id } => {
                let (status, value) = if here {
                    (PacketStatus::Success, device.configuration())
                } else {
                    (PacketStatus::IoError, 0)
                };
                self.out.push_back(codec::configuration_status(id, status, value));
            }
            Packet::SetAlt { id, interface, alt } => {
                let status = if !here {
                    PacketStatus::IoError
                } else if device.set_interface(interface, alt, now) {
                    PacketStatus::Success
                } else {
                    PacketStatus::Stall
                };
                if here {
                    self.describe(device);
                }
                let present = device.setting(interface).filter(|_| here).unwrap_or_default();
                self.out
                    .push_back(codec::alt_status(id, status, interface, present));
            }
            Packet::GetAlt { id, interface } => {
                let (status, alt) = match device.setting(interface) {
                    _ if !here => (PacketStatus::IoError, 0),
                    Some(alt) => (PacketStatus::Success, alt),
                    None => (PacketStatus::Invalid, 0),
                };
                self.out.push_back(codec::alt_status(id, status, interface, alt));
            }
            Packet::AllocStreams { id, endpoints, count } => {
                self.allocate(device, id, endpoints, count, here);
            }
            Packet::FreeStreams { id, endpoints } => {
                let status = if here {
                    PacketStatus::Success
                } else {
                    PacketStatus::IoError
                };
                self.out
                    .push_back(codec::streams_status(id, status, endpoints, 0));
            }
            // No endpoint of these kinds exists.
            Packet::StartIso { id, endpoint } => {
                let answer = codec::iso_status(id, PacketStatus::Invalid, endpoint);
                self.out.push_back(answer);
            }
            Packet::StopIso { id, endpoint } => {
                let answer = codec::iso_status(id, PacketStatus::Success, endpoint);
                self.out.push_back(answer);
            }
            Packet::StartInterrupt { id, endpoint } => {
                let answer = codec::interrupt_status(id, PacketStatus::Invalid, endpoint);
                self.out.push_back(answer);
            }
            Packet::StopInterrupt { id, endpoint } => {
                let answer = codec::interrupt_status(id, PacketStatus::Success, endpoint);
                self.out.push_back(answer);
            }
            Packet::StartBulkReceiving { id, stream, endpoint } => {
                let answer = codec::bulk_receiving_status(id, PacketStatus::Invalid, stream, endpoint);
                self.out.push_back(answer);
            }
            Packet::StopBulkReceiving { id, stream, endpoint } => {
                let answer = codec::bulk_receiving_status(id, PacketStatus::Success, stream, endpoint);
                self.out.push_back(answer);
            }
            Packet::Iso { id, iso, .. } => {
                let answer = codec::small_answer(102, id, iso.endpoint, PacketStatus::Invalid, 0);
                self.out.push_back(answer);
            }
            Packet::Interrupt { id, interrupt, .. } => {
                let answer = codec::small_answer(103, id, interrupt.endpoint, PacketStatus::Invalid, 0);
                self.out.push_back(answer);
            }
            Packet::Control { id, control, data } => {
                return self.control(device, id, control, data, here, now);
            }
            Packet::Bulk { id, bulk, data } => return self.bulk(device, id, bulk, data, here, now),
        }
        Ok(())
    }

    fn greet(&mut self, capabilities: u32) -> Result<(), ProtocolError> {
        let missing: Vec<&str> = capability::NEEDED
            .iter()
            .filter(|(bit, _)| capabilities & bit == 0)
            .map(|(_, name)| *name)
            .collect();
        if !missing.is_empty() {
            return Err(ProtocolError::Lacks {
                missing: missing.join(", "),
            });
        }
        self.peer = Some(capabilities);
        Ok(())
    }

    /// As many streams as were asked for, or as many as every named endpoint has.
    fn allocate(&mut self, device: &dyn Device, id: u64, mask: u32, count: u32, here: bool) {
        let endpoints = device.endpoints();
        let streams: Vec<u32> = (0..32u32)
            .filter(|bit| mask >> bit & 1 != 0)
            .map(|bit| {
                endpoints
                    .iter()
                    .find(|e| u32::from(codec::table_index(e.address)) == bit)
                    .map_or(0, |e| e.max_streams)
            })
            .collect();
        let granted = streams.iter().copied().min().unwrap_or_default().min(count);
        let answer = if !here {
            codec::streams_status(id, PacketStatus::IoError, mask, 0)
        } else if granted == 0 {
            codec::streams_status(id, PacketStatus::Invalid, mask, 0)
        } else {
            codec::streams_status(id, PacketStatus::Success, mask, granted)
        };
        self.out.push_back(answer);
    }

    fn control(
        &mut self,
        device: &mut dyn Device,
        id: u64,
        control: Control,
        data: Vec<u8>,
        here: bool,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        let refusal = if !here {
            Some(PacketStatus::IoError)
        } else if control.endpoint & 0x7f != 0 {
            Some(PacketStatus::Invalid)
        } else {
            None
        };
        if let Some(status) = refusal {
            self.out
                .push_back(codec::control_answer(id, &control, status, 0, Vec::new()));
            return Ok(());
        }
        let [value_low, value_high] = control.value.to_le_bytes();
        let [index_low, index_high] = control.index.to_le_bytes();
        let [length_low, length_high] = control.length.to_le_bytes();
        let setup = [
            control.request_type,
            control.request,
            value_low,
            value_high,
            index_low,
            index_high,
            length_low,
            length_high,
        ];
        let transfer = Transfer {
            id,
            endpoint: control.endpoint,
            stream: 0,
            setup: Some(setup),
            out: data,
            in_len: in_len(control.endpoint, control.length.into()),
        };
        self.submit(device, transfer, Asked::Control(control), now)
    }

    fn bulk(
        &mut self,
        device: &mut dyn Device,
        id: u64,
        bulk: Bulk,
        data: Vec<u8>,
        here: bool,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        let length = usize::try_from(bulk.length).unwrap_or(usize::MAX);
        let known = || {
            device
                .endpoints()
                .iter()
                .any(|e| e.address == bulk.endpoint && e.kind == 2)
        };
        let refusal = if !here {
            Some(PacketStatus::IoError)
        } else if length > MAX_DATA_BYTES || !known() {
            Some(PacketStatus::Invalid)
        } else {
            None
        };
        if let Some(status) = refusal {
            self.out
                .push_back(codec::bulk_answer(id, &bulk, status, 0, Vec::new()));
            return Ok(());
        }
        let transfer = Transfer {
            id,
            endpoint: bulk.endpoint,
            stream: bulk.stream,
            setup: None,
            out: data,
            in_len: in_len(bulk.endpoint, length),
        };
        self.submit(device, transfer, Asked::Bulk(bulk), now)
    }

    fn submit(
        &mut self,
        device: &mut dyn Device,
        transfer: Transfer,
        asked: Asked,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        let bytes = transfer.in_len.saturating_add(transfer.out.len());
        if self.pending.len() >= MAX_PENDING || self.pending_bytes.saturating_add(bytes) > MAX_PENDING_BYTES {
            return Err(ProtocolError::TooMany);
        }
        if self.pending.contains_key(&transfer.id) {
            return Err(ProtocolError::SameName { id: transfer.id });
        }
        self.pending_bytes += bytes;
        self.pending.insert(
            transfer.id,
            Pending {
                asked,
                in_len: transfer.in_len,
                bytes,
            },
        );
        device.submit(transfer, now);
        Ok(())
    }

    fn finish(&mut self, mut finished: Finished, plugged: bool) {
        // What nobody asked for belongs to a host that is gone.
        let Some(pending) = self.pending.remove(&finished.id) else {
            return;
        };
        self.pending_bytes = self.pending_bytes.saturating_sub(pending.bytes);
        let endpoint = match &pending.asked {
            Asked::Control(control) => control.endpoint,
            Asked::Bulk(bulk) => bulk.endpoint,
        };
        let mut status = PacketStatus::from(finished.status);
        if status == PacketStatus::IoError && !plugged {
            // As a host's own redirector ends what is pending before it takes the device away.
            status = PacketStatus::Cancelled;
        }
        let moved = if endpoint & 0x80 == 0 {
            finished.data.clear();
            finished.moved_bytes
        } else {
            if finished.data.len() > pending.in_len {
                finished.data.truncate(pending.in_len);
                status = PacketStatus::Babble;
            }
            finished.data.len()
        };
        let id = finished.id;
        self.out.push_back(match &pending.asked {
            Asked::Control(control) => {
                let moved = u16::try_from(moved).unwrap_or(u16::MAX);
                codec::control_answer(id, control, status, moved, finished.data)
            }
            Asked::Bulk(bulk) => {
                let moved = u32::try_from(moved).unwrap_or(u32::MAX);
                codec::bulk_answer(id, bulk, status, moved, finished.data)
            }
        });
    }
}

/// The room that the host has, if the transfer goes IN.
fn in_len(endpoint: u8, length: usize) -> usize {
    if endpoint & 0x80 == 0 { 0 } else { length }
}
