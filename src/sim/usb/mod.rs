//! The second face of a simulated target: a USB mass storage device, as a host controller meets it.
//!
//! A [`UsbDevice`] is a pure state machine: transfers go in, finished transfers come out, and time is an argument. Whoever
//! carries it to a host (`sim::serve`) moves bytes and waits; nothing here does.

use std::collections::VecDeque;
use std::time::Duration;

use super::{SpecError, Target};

/// Speed of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// 480 Mbit/s.
    High,
    /// 5 Gbit/s.
    Super,
    /// 10 Gbit/s and more.
    SuperPlus,
}

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferStatus {
    /// It moved what there was to move.
    Done,
    /// The host took it back.
    Cancelled,
    /// The endpoint is halted, or the request is not known.
    Stall,
    /// The device is not there any more, or answered with noise.
    Error,
    /// The device has more to send than the host asked for.
    Babble,
}

/// One transfer that the host asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The host's name for it; unique among those that are pending.
    pub id: u64,
    /// Endpoint address, bit 7 set for IN; 00h and 80h are the control endpoint.
    pub endpoint: u8,
    /// Stream, 0 where there are none.
    pub stream: u32,
    /// SETUP packet, on the control endpoint only.
    pub setup: Option<[u8; 8]>,
    /// What the host sends.
    pub out: Vec<u8>,
    /// What the host has room for.
    pub in_len: usize,
}

/// A transfer that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Name of the transfer.
    pub id: u64,
    /// How it ended.
    pub status: TransferStatus,
    /// What the device sent.
    pub data: Vec<u8>,
    /// Bytes that the device took of an OUT transfer, or sent in an IN transfer.
    pub moved_bytes: usize,
}

/// One endpoint of the present setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// Address, bit 7 set for IN.
    pub address: u8,
    /// bmAttributes: 0 control, 2 bulk, 3 interrupt.
    pub kind: u8,
    /// bInterval.
    pub interval: u8,
    /// Interface that it belongs to.
    pub interface: u8,
    /// wMaxPacketSize.
    pub max_packet_bytes: u16,
    /// Streams that it can have; 0 for none.
    pub max_streams: u32,
}

/// One interface in its present setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// bInterfaceNumber.
    pub number: u8,
    /// bInterfaceClass, bInterfaceSubClass, bInterfaceProtocol.
    pub class: (u8, u8, u8),
}

/// What the device descriptor says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Speed of the link.
    pub speed: Speed,
    /// bDeviceClass, bDeviceSubClass, bDeviceProtocol.
    pub class: (u8, u8, u8),
    /// idVendor.
    pub vid: u16,
    /// idProduct.
    pub pid: u16,
    /// bcdDevice.
    pub bcd_device: u16,
    /// bConfigurationValue of the only configuration.
    pub configuration: u8,
}

/// A simulated target as a USB device.
#[derive(Debug)]
pub struct UsbDevice {
    target: Target,
    plugged: bool,
    finished: VecDeque<Finished>,
}

impl UsbDevice {
    /// Opens what follows `sim:`: `PROFILE[,option=value...]`.
    ///
    /// # Errors
    /// An unknown profile or option, with the known ones in the text.
    pub fn open(spec: &str) -> Result<Self, SpecError> {
        Ok(Self {
            target: Target::open(spec)?,
            plugged: true,
            finished: VecDeque::new(),
        })
    }

    /// The target behind the plug.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The target behind the plug, to change it.
    pub fn target_mut(&mut self) -> &mut Target {
        &mut self.target
    }

    /// Device descriptor in short.
    pub fn identity(&self) -> Identity {
        todo!()
    }

    /// Interfaces in their present setting. Before the device is configured: as configuration 1, setting 0 has them.
    pub fn interfaces(&self) -> Vec<Interface> {
        todo!()
    }

    /// Endpoints of the present setting without the control endpoint.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        todo!()
    }

    /// Whether it is plugged in: a fault, [`UsbDevice::unplug`] or [`UsbDevice::plug`] changes that at any time. Whoever
    /// carries the device looks after each call.
    pub fn plugged(&self) -> bool {
        self.plugged
    }

    /// Pulls the plug: bus power goes, all that is pending ends with [`TransferStatus::Error`].
    pub fn unplug(&mut self, _now: Duration) {
        todo!()
    }

    /// Puts the plug back: a power cycle of bridge and drive has happened.
    pub fn plug(&mut self, _now: Duration) {
        todo!()
    }

    /// A reset of the port: default state, everything pending ends as cancelled.
    pub fn bus_reset(&mut self, _now: Duration) {
        todo!()
    }

    /// SET_CONFIGURATION; false stalls.
    pub fn set_configuration(&mut self, _value: u8, _now: Duration) -> bool {
        todo!()
    }

    /// GET_CONFIGURATION.
    pub fn configuration(&self) -> u8 {
        todo!()
    }

    /// SET_INTERFACE; false stalls.
    pub fn set_interface(&mut self, _interface: u8, _setting: u8, _now: Duration) -> bool {
        todo!()
    }

    /// GET_INTERFACE, if there is that interface.
    pub fn setting(&self, _interface: u8) -> Option<u8> {
        todo!()
    }

    /// Takes a transfer. It ends in [`UsbDevice::finished`], at once or later.
    pub fn submit(&mut self, _transfer: Transfer, _now: Duration) {
        todo!()
    }

    /// Takes a transfer back. True: it was pending, and ends with [`TransferStatus::Cancelled`].
    pub fn cancel(&mut self, _id: u64, _now: Duration) -> bool {
        todo!()
    }

    /// The next transfer that has ended by `now`.
    pub fn finished(&mut self, _now: Duration) -> Option<Finished> {
        self.finished.pop_front()
    }

    /// When to call [`UsbDevice::finished`] again though nothing was submitted meanwhile; `None`: not before.
    pub fn next_due(&self) -> Option<Duration> {
        None
    }
}
