//! Descriptors of a bridge (USB 2.0, chapter 9.6; USB 3.2, chapter 9.6; UAS, "Pipe usage descriptor").

use super::{Endpoint, Interface, Speed};
use crate::sim::profiles::UsbProfile;

/// bConfigurationValue.
pub const CONFIGURATION: u8 = 1;

/// Mass storage, SCSI transparent, Bulk-Only Transport.
pub const BOT_CLASS: (u8, u8, u8) = (0x08, 0x06, 0x50);
/// Mass storage, SCSI transparent, USB Attached SCSI.
pub const UAS_CLASS: (u8, u8, u8) = (0x08, 0x06, 0x62);

/// String descriptors by index.
const MANUFACTURER: u8 = 1;
const PRODUCT: u8 = 2;
const SERIAL: u8 = 3;

/// One bulk endpoint of a setting.
#[derive(Debug, Clone, Copy)]
struct Bulk {
    address: u8,
    /// Pipe of UAS: 1 command, 2 status, 3 data in, 4 data out.
    pipe: Option<u8>,
    streams: u32,
}

/// What the bridge says of itself at one speed.
#[derive(Debug, Clone)]
pub struct Descriptors {
    usb: UsbProfile,
    speed: Speed,
}

impl Descriptors {
    /// Those of a bridge.
    pub fn new(usb: UsbProfile) -> Self {
        let speed = match usb.speed_mbit_s {
            ..5000 => Speed::High,
            5000..10_000 => Speed::Super,
            _ => Speed::SuperPlus,
        };
        Self { usb, speed }
    }

    /// Speed of the link.
    pub fn speed(&self) -> Speed {
        self.speed
    }

    fn is_super(&self) -> bool {
        self.speed != Speed::High
    }

    /// idVendor, idProduct, bcdDevice.
    pub fn ids(&self) -> (u16, u16, u16) {
        (
            hexadecimal(&self.usb.vid),
            hexadecimal(&self.usb.pid),
            hexadecimal(&self.usb.bcd_device),
        )
    }

    /// Whether there is such an alternate setting.
    pub fn has_setting(&self, setting: u8) -> bool {
        setting == 0 || (setting == 1 && self.usb.uas.is_some())
    }

    /// The interface in a setting.
    pub fn interface(&self, setting: u8) -> Interface {
        Interface {
            number: 0,
            class: if setting == 0 { BOT_CLASS } else { UAS_CLASS },
        }
    }

    /// The endpoints of a setting.
    pub fn endpoints(&self, setting: u8) -> Vec<Endpoint> {
        self.bulk(setting)
            .into_iter()
            .map(|bulk| Endpoint {
                address: bulk.address,
                kind: 2,
                interval: 0,
                interface: 0,
                max_packet_bytes: self.max_packet(),
                max_streams: bulk.streams,
            })
            .collect()
    }

    fn bulk(&self, setting: u8) -> Vec<Bulk> {
        match (setting, self.usb.uas) {
            (1, Some(uas)) => {
                let streams = if self.is_super() { uas.streams } else { 0 };
                let pipe = |address, pipe, streams| Bulk {
                    address,
                    pipe: Some(pipe),
                    streams,
                };
                vec![
                    pipe(uas.data_in, 3, streams),
                    pipe(uas.data_out, 4, streams),
                    pipe(uas.status, 2, streams),
                    pipe(uas.command, 1, 0),
                ]
            }
            _ => [self.usb.bot.in_endpoint, self.usb.bot.out_endpoint]
                .map(|address| Bulk {
                    address,
                    pipe: None,
                    streams: 0,
                })
                .to_vec(),
        }
    }

    /// wMaxPacketSize of the bulk endpoints.
    pub fn max_packet(&self) -> u16 {
        if self.is_super() { 1024 } else { 512 }
    }

    /// GET_DESCRIPTOR: the bytes of `kind` and `index`, whole; `None` stalls.
    pub fn get(&self, kind: u8, index: u8) -> Option<Vec<u8>> {
        match (kind, index) {
            (1, 0) => Some(self.device()),
            (2, 0) => Some(self.configuration(2, self.max_packet())),
            (3, _) => self.string(index),
            (6, 0) if !self.is_super() => Some(self.qualifier()),
            // At the other speed, full speed, bulk packets have 64 bytes.
            (7, 0) if !self.is_super() => Some(self.configuration(7, 64)),
            (15, 0) if self.is_super() || self.version() > 0x0200 => Some(self.object_store()),
            _ => None,
        }
    }

    fn version(&self) -> u16 {
        let declared = hexadecimal(&self.usb.usb_version.replace('.', ""));
        // A device tells of USB 3 only where it runs at that speed.
        if self.is_super() {
            declared
        } else {
            declared.min(0x0210)
        }
    }

    fn device(&self) -> Vec<u8> {
        let (vid, pid, bcd) = self.ids();
        let mut out = vec![18, 1];
        out.extend(self.version().to_le_bytes());
        out.extend([0, 0, 0, if self.is_super() { 9 } else { 64 }]);
        for id in [vid, pid, bcd] {
            out.extend(id.to_le_bytes());
        }
        let serial = if self.usb.serial.is_empty() { 0 } else { SERIAL };
        out.extend([MANUFACTURER, PRODUCT, serial, 1]);
        out
    }

    fn qualifier(&self) -> Vec<u8> {
        let mut out = vec![10, 6];
        out.extend(self.version().to_le_bytes());
        out.extend([0, 0, 0, 64, 1, 0]);
        out
    }

    fn configuration(&self, kind: u8, packet_bytes: u16) -> Vec<u8> {
        let mut body = Vec::new();
        for setting in [0, 1].into_iter().filter(|s| self.has_setting(*s)) {
            let endpoints = self.bulk(setting);
            let (class, subclass, protocol) = self.interface(setting).class;
            body.extend([
                9,
                4,
                0,
                setting,
                endpoints.len() as u8,
                class,
                subclass,
                protocol,
                0,
            ]);
            for endpoint in endpoints {
                body.extend([7, 5, endpoint.address, 2]);
                body.extend(packet_bytes.to_le_bytes());
                body.push(0);
                if self.is_super() {
                    let exponent = endpoint.streams.checked_ilog2().unwrap_or_default() as u8;
                    body.extend([6, 0x30, 15, exponent, 0, 0]);
                }
                if let Some(pipe) = endpoint.pipe {
                    body.extend([4, 0x24, pipe, 0]);
                }
            }
        }
        let unit_ma = if self.is_super() { 8 } else { 2 };
        let power = (self.usb.max_power_ma / unit_ma).min(250) as u8;
        let attributes = 0x80 | u8::from(self.usb.self_powered) << 6;
        let mut out = vec![9, kind];
        out.extend((9 + body.len() as u16).to_le_bytes());
        out.extend([1, CONFIGURATION, 0, attributes, power]);
        out.extend(body);
        out
    }

    fn string(&self, index: u8) -> Option<Vec<u8>> {
        let text = match index {
            0 => return Some(vec![4, 3, 0x09, 0x04]),
            MANUFACTURER => &self.usb.manufacturer,
            PRODUCT => &self.usb.product,
            SERIAL if !self.usb.serial.is_empty() => &self.usb.serial,
            _ => return None,
        };
        let units: Vec<u8> = text.encode_utf16().take(126).flat_map(u16::to_le_bytes).collect();
        let mut out = vec![2 + units.len() as u8, 3];
        out.extend(units);
        Some(out)
    }

    /// Binary device object store: USB 2.0 extension, and at SuperSpeed that capability.
    fn object_store(&self) -> Vec<u8> {
        let mut body = vec![7, 16, 2, 0x02, 0, 0, 0];
        let mut capabilities = 1;
        if self.is_super() {
            body.extend([10, 16, 3, 0, 0x0e, 0, 1, 10, 0xff, 0x07]);
            capabilities += 1;
        }
        if self.speed == Speed::SuperPlus {
            // One sublink of 10 Gbit/s each way.
            body.extend([20, 16, 10, 0, 1, 0, 0, 0, 0x00, 0x11, 0, 0]);
            body.extend(0x000a_4030_u32.to_le_bytes());
            body.extend(0x000a_40b0_u32.to_le_bytes());
            capabilities += 1;
        }
        let mut out = vec![5, 15];
        out.extend((5 + body.len() as u16).to_le_bytes());
        out.push(capabilities);
        out.extend(body);
        out
    }
}

/// Profiles are checked when they are loaded by a test of their own.
fn hexadecimal(text: &str) -> u16 {
    u16::from_str_radix(text, 16).unwrap_or_default()
}
