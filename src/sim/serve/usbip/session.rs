//! One host that has imported the device: requests in, frames out.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::codec::{self, Request, Submit, status};
use crate::sim::serve::device::Device;
use crate::sim::serve::{Frame, MAX_PENDING, MAX_PENDING_BYTES, ProtocolError};
use crate::sim::usb::{Finished, Transfer, TransferStatus};

/// URB flag: a short packet is an error.
const SHORT_NOT_OK: u32 = 1;

/// SET_FEATURE(PORT_RESET) to a port, which hosts send to the device here.
const PORT_RESET: [u8; 6] = [0x23, 0x03, 0x04, 0x00, 0x00, 0x00];

/// What an import request comes to.
#[derive(Debug)]
pub enum Granted {
    /// The device is the host's now.
    Yes(Frame),
    /// It is not; the connection ends after the frame.
    No(Frame, &'static str),
}

/// Answers a list request.
pub fn answer_list(device: &dyn Device) -> Frame {
    let identity = device.identity();
    let interfaces = device.interfaces();
    codec::list(device.plugged().then_some((&identity, interfaces.as_slice())))
}

/// Answers an import request; `busy` if another host has the device.
pub fn answer_import(device: &dyn Device, bus_id: &str, busy: bool) -> Granted {
    if busy {
        Granted::No(codec::import_refused(1), "another host has the device")
    } else if bus_id != codec::BUS_ID {
        Granted::No(codec::import_refused(4), "no device has this bus id")
    } else if !device.plugged() {
        Granted::No(codec::import_refused(4), "the device is unplugged")
    } else {
        Granted::Yes(codec::import_granted(
            &device.identity(),
            device.configuration(),
            device.interfaces().len(),
        ))
    }
}

#[derive(Debug)]
struct Pending {
    inward: bool,
    in_len: usize,
    short_is_error: bool,
    bytes: usize,
    /// The unlink that took it back.
    unlink: Option<u32>,
}

/// The state of an import.
#[derive(Debug, Default)]
pub struct Session {
    pending: HashMap<u64, Pending>,
    pending_bytes: usize,
    out: VecDeque<Frame>,
}

impl Session {
    /// An import that was just granted.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next frame for the host.
    pub fn next_frame(&mut self) -> Option<Frame> {
        self.out.pop_front()
    }

    /// Sends what has finished. A device that is gone is for the carrier to notice: the connection ends then.
    pub fn pump(&mut self, device: &mut dyn Device, now: Duration) {
        while let Some(finished) = device.finished(now) {
            self.finish(finished, device.plugged());
        }
    }

    /// Takes one request. [`Session::pump`] has to follow.
    ///
    /// # Errors
    /// The host sends what no host sends: the connection has to end.
    pub fn receive(
        &mut self,
        device: &mut dyn Device,
        request: Request,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        match request {
            Request::Submit(submit) => self.submit(device, submit, now),
            Request::Unlink { seqnum, victim } => {
                // What has ended by now was never pending.
                self.pump(device, now);
                let id = u64::from(victim);
                let pending = self.pending.contains_key(&id) && device.cancel(id, now);
                match self.pending.get_mut(&id) {
                    Some(entry) if pending => entry.unlink = Some(seqnum),
                    _ => self.out.push_back(codec::unlink_answer(seqnum, status::DONE)),
                }
                Ok(())
            }
            Request::List | Request::Import { .. } => Err(ProtocolError::OutOfOrder {
                what: "a list or import request",
                expected: "a transfer",
            }),
        }
    }

    fn submit(
        &mut self,
        device: &mut dyn Device,
        submit: Submit,
        now: Duration,
    ) -> Result<(), ProtocolError> {
        let seqnum = submit.seqnum;
        let inward = submit.endpoint & 0x80 != 0;
        let control = submit.endpoint & 0x0f == 0;
        let refusal = if !device.plugged() {
            Some(status::GONE)
        } else if submit.iso {
            Some(status::INVALID)
        } else {
            None
        };
        if let Some(status) = refusal {
            self.out
                .push_back(codec::submit_answer(seqnum, status, 0, Vec::new()));
            return Ok(());
        }
        if control && submit.setup.starts_with(&PORT_RESET) {
            device.bus_reset(now);
            self.pump(device, now);
            self.out
                .push_back(codec::submit_answer(seqnum, status::DONE, 0, Vec::new()));
            return Ok(());
        }
        let id = u64::from(seqnum);
        if self.pending.len() >= MAX_PENDING
            || self.pending_bytes.saturating_add(submit.length) > MAX_PENDING_BYTES
        {
            return Err(ProtocolError::TooMany);
        }
        if self.pending.contains_key(&id) {
            return Err(ProtocolError::SameName { id });
        }
        let in_len = if inward { submit.length } else { 0 };
        self.pending_bytes += submit.length;
        self.pending.insert(
            id,
            Pending {
                inward,
                in_len,
                short_is_error: inward && submit.flags & SHORT_NOT_OK != 0,
                bytes: submit.length,
                unlink: None,
            },
        );
        let transfer = Transfer {
            id,
            endpoint: submit.endpoint,
            stream: 0,
            setup: control.then_some(submit.setup),
            out: submit.data,
            in_len,
        };
        device.submit(transfer, now);
        Ok(())
    }

    fn finish(&mut self, mut finished: Finished, plugged: bool) {
        // What nobody asked for belongs to a host that is gone.
        let Some(pending) = self.pending.remove(&finished.id) else {
            return;
        };
        self.pending_bytes = self.pending_bytes.saturating_sub(pending.bytes);
        if let Some(unlink) = pending.unlink {
            self.out
                .push_back(codec::unlink_answer(unlink, status::TAKEN_BACK));
            return;
        }
        let mut number = codec::error_number(finished.status);
        if finished.status == TransferStatus::Error && !plugged {
            number = status::GONE;
        }
        let moved = if pending.inward {
            if finished.data.len() > pending.in_len {
                finished.data.truncate(pending.in_len);
                number = status::OVERFLOW;
            }
            finished.data.len()
        } else {
            finished.data.clear();
            finished.moved_bytes
        };
        if pending.short_is_error && number == status::DONE && moved < pending.in_len {
            number = status::SHORT;
        }
        let seqnum = u32::try_from(finished.id).unwrap_or_default();
        let moved = u32::try_from(moved).unwrap_or(u32::MAX);
        self.out
            .push_back(codec::submit_answer(seqnum, number, moved, finished.data));
    }
}
