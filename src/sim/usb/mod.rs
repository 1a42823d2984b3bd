//! The second face of a simulated target: a USB mass storage device, as a host controller meets it.
//!
//! A [`UsbDevice`] is a pure state machine: transfers go in, finished transfers come out, and time is an argument. Whoever
//! carries it to a host (`sim::serve`) moves bytes and waits; nothing here does.

mod bot;
mod descriptors;
mod pipe;
mod uas;

use std::collections::VecDeque;
use std::time::Duration;

use self::bot::Bot;
use self::descriptors::Descriptors;
use self::pipe::{Pipe, ended};
use self::uas::Uas;
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

/// How long a device that fell off the bus stays away.
const REPLUG: Duration = Duration::from_millis(1500);

/// Transfers that may wait at one time. A host has a few hundred at most.
const WAITING_LIMIT: usize = 4096;

/// What the present setting speaks.
#[derive(Debug)]
enum Protocol {
    Bot(Bot),
    Uas(Uas),
}

/// A simulated target as a USB device.
#[derive(Debug)]
pub struct UsbDevice {
    target: Target,
    descriptors: Descriptors,
    plugged: bool,
    plug_at: Option<Duration>,
    /// 0: not configured.
    configuration: u8,
    setting: u8,
    protocol: Protocol,
    finished: VecDeque<Finished>,
}

impl UsbDevice {
    /// Opens what follows `sim:`: `PROFILE[,option=value...]`.
    ///
    /// # Errors
    /// An unknown profile or option, with the known ones in the text.
    pub fn open(spec: &str) -> Result<Self, SpecError> {
        let target = Target::open(spec)?;
        let descriptors = Descriptors::new(target.usb().clone());
        let protocol = bot(&target, &descriptors);
        Ok(Self {
            target,
            descriptors,
            plugged: true,
            plug_at: None,
            configuration: 0,
            setting: 0,
            protocol,
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
        let (vid, pid, bcd_device) = self.descriptors.ids();
        Identity {
            speed: self.descriptors.speed(),
            class: (0, 0, 0),
            vid,
            pid,
            bcd_device,
            configuration: descriptors::CONFIGURATION,
        }
    }

    /// Interfaces in their present setting. Before the device is configured: as configuration 1, setting 0 has them.
    pub fn interfaces(&self) -> Vec<Interface> {
        vec![self.descriptors.interface(self.setting)]
    }

    /// Endpoints of the present setting without the control endpoint.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.descriptors.endpoints(self.setting)
    }

    /// Whether it is plugged in: a fault, [`UsbDevice::unplug`] or [`UsbDevice::plug`] changes that at any time. Whoever
    /// carries the device looks after each call.
    pub fn plugged(&self) -> bool {
        self.plugged
    }

    /// Pulls the plug: bus power goes, all that is pending ends with [`TransferStatus::Error`].
    pub fn unplug(&mut self, now: Duration) {
        self.plugged = false;
        self.plug_at = None;
        self.forget(TransferStatus::Error, now);
    }

    /// Puts the plug back: a power cycle of bridge and drive has happened.
    pub fn plug(&mut self, now: Duration) {
        if !self.plugged {
            self.target.replug(now);
            self.plugged = true;
            self.plug_at = None;
        }
    }

    /// A reset of the port: default state, everything pending ends as cancelled.
    pub fn bus_reset(&mut self, now: Duration) {
        self.forget(TransferStatus::Cancelled, now);
    }

    /// Everything pending ends; not configured, setting 0.
    fn forget(&mut self, how: TransferStatus, now: Duration) {
        self.end_all(how, now);
        self.configuration = 0;
        self.setting = 0;
        self.protocol = bot(&self.target, &self.descriptors);
    }

    /// Everything pending ends, and so does the command that is running.
    fn end_all(&mut self, how: TransferStatus, now: Duration) {
        let busy = match &self.protocol {
            Protocol::Bot(bot) => bot.is_busy(now),
            Protocol::Uas(uas) => uas.is_busy(now),
        };
        if busy {
            self.target.give_up(now);
        }
        let finished = &mut self.finished;
        match &mut self.protocol {
            Protocol::Bot(bot) => {
                for pipe in [&mut bot.out, &mut bot.input] {
                    finished.extend(pipe.drain().map(|t| ended(&t, how)));
                }
            }
            Protocol::Uas(uas) => {
                for pipe in uas.pipes() {
                    finished.extend(pipe.drain().map(|t| ended(&t, how)));
                }
            }
        }
    }

    /// SET_CONFIGURATION; false stalls.
    pub fn set_configuration(&mut self, value: u8, now: Duration) -> bool {
        if !matches!(value, 0 | descriptors::CONFIGURATION) {
            return false;
        }
        self.forget(TransferStatus::Cancelled, now);
        self.configuration = value;
        true
    }

    /// GET_CONFIGURATION.
    pub fn configuration(&self) -> u8 {
        self.configuration
    }

    /// SET_INTERFACE; false stalls.
    pub fn set_interface(&mut self, interface: u8, setting: u8, now: Duration) -> bool {
        if self.configuration == 0 || interface != 0 || !self.descriptors.has_setting(setting) {
            return false;
        }
        self.end_all(TransferStatus::Cancelled, now);
        self.setting = setting;
        self.protocol = match (setting, self.target.usb().uas) {
            (1, Some(endpoints)) => {
                let fast = self.descriptors.speed() != Speed::High;
                Protocol::Uas(Uas::new(endpoints, if fast { endpoints.streams } else { 0 }))
            }
            _ => bot(&self.target, &self.descriptors),
        };
        true
    }

    /// GET_INTERFACE, if there is that interface.
    pub fn setting(&self, interface: u8) -> Option<u8> {
        (self.configuration != 0 && interface == 0).then_some(self.setting)
    }

    /// Takes a transfer. It ends in [`UsbDevice::finished`], at once or later.
    pub fn submit(&mut self, transfer: Transfer, now: Duration) {
        if !self.plugged {
            self.finished.push_back(ended(&transfer, TransferStatus::Error));
            return;
        }
        if transfer.endpoint & 0x0f == 0 {
            let done = self.control(&transfer, now);
            self.finished.push_back(done);
        } else if let Err(transfer) = self.give(transfer) {
            self.finished.push_back(ended(&transfer, TransferStatus::Stall));
        }
        self.advance(now);
    }

    fn give(&mut self, transfer: Transfer) -> Result<(), Transfer> {
        let configured = self.configuration != 0;
        match self.pipe(transfer.endpoint) {
            Some(pipe) if configured && pipe.waiting() < WAITING_LIMIT => {
                pipe.push(transfer);
                Ok(())
            }
            _ => Err(transfer),
        }
    }

    /// Takes a transfer back. True: it was pending, and ends with [`TransferStatus::Cancelled`].
    pub fn cancel(&mut self, id: u64, _now: Duration) -> bool {
        let taken = match &mut self.protocol {
            Protocol::Bot(bot) => bot.out.cancel(id).or_else(|| bot.input.cancel(id)),
            Protocol::Uas(uas) => uas.pipes().into_iter().find_map(|pipe| pipe.cancel(id)),
        };
        if let Some(transfer) = &taken {
            self.finished
                .push_back(ended(transfer, TransferStatus::Cancelled));
        }
        taken.is_some()
    }

    /// The next transfer that has ended by `now`.
    pub fn finished(&mut self, now: Duration) -> Option<Finished> {
        if self.plug_at.is_some_and(|at| at <= now) {
            self.plug(now);
        }
        self.advance(now);
        self.finished.pop_front()
    }

    /// When to call [`UsbDevice::finished`] again though nothing was submitted meanwhile; `None`: not before.
    pub fn next_due(&self) -> Option<Duration> {
        let protocol = match &self.protocol {
            Protocol::Bot(bot) => bot.next_due(),
            Protocol::Uas(uas) => uas.next_due(),
        };
        [self.plug_at, protocol].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Duration) {
        if !self.plugged || self.configuration == 0 {
            return;
        }
        let leaves = match &mut self.protocol {
            Protocol::Bot(bot) => bot.advance(&mut self.target, now, &mut self.finished),
            Protocol::Uas(uas) => uas.advance(&mut self.target, now, &mut self.finished),
        };
        if leaves {
            self.unplug(now);
            if !self.target.gone() {
                self.plug_at = Some(now.saturating_add(REPLUG));
            }
        }
    }

    /// Requests on the control endpoint (USB 2.0, chapter 9.4; USB 3.2, chapter 9.4; BOT 1.0, clause 3).
    fn control(&mut self, transfer: &Transfer, now: Duration) -> Finished {
        let Some(
            [
                kind,
                request,
                value_low,
                value_high,
                index_low,
                index_high,
                length_low,
                length_high,
            ],
        ) = transfer.setup
        else {
            return ended(transfer, TransferStatus::Stall);
        };
        let value = u16::from_le_bytes([value_low, value_high]);
        let index = u16::from_le_bytes([index_low, index_high]);
        let length = usize::from(u16::from_le_bytes([length_low, length_high]));
        let answer = match (kind, request) {
            (0x80, 0x06) => self.descriptors.get(value_high, value_low),
            (0x80, 0x00) => Some(vec![u8::from(self.target.usb().self_powered), 0]),
            (0x81, 0x00) => Some(vec![0, 0]),
            (0x82, 0x00) => self.pipe(index_low).map(|pipe| vec![u8::from(pipe.halted()), 0]),
            (0x80, 0x08) => Some(vec![self.configuration]),
            (0x00, 0x09) => self.set_configuration(value_low, now).then(Vec::new),
            (0x81, 0x0a) => self.setting(index_low).map(|setting| vec![setting]),
            (0x01, 0x0b) => self.set_interface(index_low, value_low, now).then(Vec::new),
            // SET_ADDRESS is the host controller's; U1, U2, latency tolerance, remote wake-up and function suspend are taken
            // and change nothing here. SET_SEL and SET_ISOCH_DELAY only inform.
            (0x00, 0x05 | 0x30 | 0x31) => Some(Vec::new()),
            (0x00, 0x01 | 0x03) if matches!(value, 1 | 48..=50) => Some(Vec::new()),
            (0x01, 0x01 | 0x03) if value == 0 => Some(Vec::new()),
            (0x02, 0x01) if value == 0 => self.clear_halt(index_low),
            (0x02, 0x03) if value == 0 => self.pipe(index_low).map(|pipe| {
                pipe.halt();
                Vec::new()
            }),
            // Get Max LUN, and Bulk-Only Mass Storage Reset.
            (0xa1, 0xfe) if self.configuration != 0 && index == 0 && value == 0 => Some(vec![0]),
            (0x21, 0xff) if index == 0 && value == 0 => match &mut self.protocol {
                Protocol::Bot(bot) if self.configuration != 0 => {
                    bot.class_reset();
                    Some(Vec::new())
                }
                _ => None,
            },
            _ => None,
        };
        match answer {
            Some(mut data) => {
                data.truncate(length.min(transfer.in_len));
                Finished {
                    moved_bytes: if kind & 0x80 == 0 {
                        transfer.out.len()
                    } else {
                        data.len()
                    },
                    data,
                    ..ended(transfer, TransferStatus::Done)
                }
            }
            None => ended(transfer, TransferStatus::Stall),
        }
    }

    fn pipe(&mut self, endpoint: u8) -> Option<&mut Pipe> {
        match &mut self.protocol {
            Protocol::Bot(bot) => bot.pipe(endpoint),
            Protocol::Uas(uas) => uas.pipe(endpoint),
        }
    }

    fn clear_halt(&mut self, endpoint: u8) -> Option<Vec<u8>> {
        if endpoint & 0x0f == 0 {
            return Some(Vec::new());
        }
        self.pipe(endpoint)?.clear();
        if let Protocol::Bot(bot) = &mut self.protocol {
            bot.halt_again_if_broken();
        }
        Some(Vec::new())
    }
}

fn bot(target: &Target, descriptors: &Descriptors) -> Protocol {
    let endpoints = target.usb().bot;
    Protocol::Bot(Bot::new(
        endpoints.in_endpoint,
        endpoints.out_endpoint,
        descriptors.max_packet(),
    ))
}
