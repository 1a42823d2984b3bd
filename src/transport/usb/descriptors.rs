//! USB descriptors of mass storage devices, as sysfs keeps them or a control transfer returns them. Bytes to meaning only.
#![deny(clippy::indexing_slicing)]

use serde::Serialize;

use crate::text::hex;
use crate::wire::{WireError, le16, le32};

const CLASS_MASS_STORAGE: u8 = 0x08;
const PROTOCOL_BULK_ONLY: u8 = 0x50;
const PROTOCOL_UAS: u8 = 0x62;

/// Device descriptor, 18 bytes (USB 2.0, "Device").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Device {
    /// bcdUSB: 0320h is USB 3.2.
    pub bcd_usb: u16,
    /// bDeviceClass.
    pub class: u8,
    /// bDeviceSubClass.
    pub subclass: u8,
    /// bDeviceProtocol.
    pub protocol: u8,
    /// Largest packet of endpoint 0 in bytes; SuperSpeed devices give its logarithm, which is undone here.
    pub max_packet_bytes: u16,
    /// idVendor.
    pub vid: u16,
    /// idProduct.
    pub pid: u16,
    /// bcdDevice.
    pub bcd_device: u16,
    /// Index of the manufacturer string, 0 for none.
    pub manufacturer_index: u8,
    /// Index of the product string.
    pub product_index: u8,
    /// Index of the serial number string.
    pub serial_index: u8,
    /// Number of configurations.
    pub configurations: u8,
}

/// Configuration with all that belongs to it (USB 2.0, "Configuration").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Configuration {
    /// bConfigurationValue.
    pub value: u8,
    /// wTotalLength.
    pub total_bytes: u16,
    /// bNumInterfaces.
    pub interface_count: u8,
    /// Self powered.
    pub self_powered: bool,
    /// Remote wakeup.
    pub remote_wakeup: bool,
    /// Most current drawn from the bus, in mA.
    pub max_power_ma: u16,
    /// Interfaces, each alternate setting on its own.
    pub interfaces: Vec<Interface>,
}

/// How commands travel over an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StorageProtocol {
    /// Bulk-Only Transport.
    BulkOnly,
    /// USB Attached SCSI.
    Uas,
    /// Control/Bulk with or without Interrupt, or something else.
    Other,
}

/// One alternate setting of an interface (USB 2.0, "Interface").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// bInterfaceNumber.
    pub number: u8,
    /// bAlternateSetting.
    pub alternate: u8,
    /// bInterfaceClass.
    pub class: u8,
    /// bInterfaceSubClass: 06h is the SCSI transparent command set.
    pub subclass: u8,
    /// bInterfaceProtocol.
    pub protocol: u8,
    /// What the protocol is, for mass storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_protocol: Option<StorageProtocol>,
    /// Index of the interface string.
    pub string_index: u8,
    /// Endpoints in their order.
    pub endpoints: Vec<Endpoint>,
    /// Descriptors in it that are not understood.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Unknown>,
}

/// What a UAS endpoint carries (UAS, "Pipe Usage descriptor").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pipe {
    /// Command IUs.
    Command,
    /// Status IUs.
    Status,
    /// Data to the host.
    DataIn,
    /// Data to the device.
    DataOut,
}

/// Transfer type of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TransferType {
    /// Control.
    Control,
    /// Isochronous.
    Isochronous,
    /// Bulk.
    Bulk,
    /// Interrupt.
    Interrupt,
}

/// Endpoint (USB 2.0, "Endpoint") with its SuperSpeed companion and pipe usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// bEndpointAddress; bit 7 is the direction.
    pub address: u8,
    /// To the host.
    pub is_in: bool,
    /// Transfer type.
    pub transfer: TransferType,
    /// Largest packet in bytes.
    pub max_packet_bytes: u16,
    /// bInterval.
    pub interval: u8,
    /// Packets in one burst, from the SuperSpeed companion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_packets: Option<u16>,
    /// Streams, from the SuperSpeed companion of a bulk endpoint; 0 without streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_streams: Option<u32>,
    /// What it carries, if it is a UAS pipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipe: Option<Pipe>,
}

/// A descriptor that is not understood, kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// bDescriptorType.
    pub descriptor_type: u8,
    /// All its bytes.
    pub hex: String,
}

/// Binary Object Store (USB 3.2, "Binary Device Object Store").
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Bos {
    /// wTotalLength.
    pub total_bytes: u16,
    /// bNumDeviceCaps.
    pub capability_count: u8,
    /// USB 2.0 Extension: link power management (LPM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lpm: Option<bool>,
    /// SuperSpeed capability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superspeed: Option<SuperSpeed>,
    /// SuperSpeedPlus: signalling rates of its sublinks in Mbit/s.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub superspeed_plus_mbit_s: Vec<u64>,
    /// Container ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_id_hex: Option<String>,
    /// Capabilities that are not understood.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Unknown>,
}

/// SuperSpeed device capability, 10 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SuperSpeed {
    /// Latency tolerance messages.
    pub latency_tolerance_messages: bool,
    /// Runs at low speed (1.5 Mbit/s).
    pub low_speed: bool,
    /// Runs at full speed (12 Mbit/s).
    pub full_speed: bool,
    /// Runs at high speed (480 Mbit/s).
    pub high_speed: bool,
    /// Runs at SuperSpeed (5 Gbit/s).
    pub super_speed: bool,
    /// U1 exit latency in microseconds.
    pub u1_exit_us: u8,
    /// U2 exit latency in microseconds.
    pub u2_exit_us: u16,
}

/// All descriptors of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Descriptors {
    /// `VVVV:PPPP` in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A Bulk-Only interface is there.
    pub bot: bool,
    /// A UAS interface with all four pipes is there.
    pub uas: bool,
    /// Streams that UAS can use: the fewest of its stream pipes; 0 on USB 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uas_streams: Option<u32>,
    /// bMaxPower of the first configuration, in mA. 0 tells an ASM1153 from an ASM1051 with the same ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_power_ma: Option<u16>,
    /// Device descriptor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
    /// Configurations.
    pub configurations: Vec<Configuration>,
    /// Binary Object Store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bos: Option<Bos>,
    /// Descriptors outside a configuration that are not understood.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Unknown>,
    /// The last descriptor is cut, its length makes no sense, or a configuration or BOS is longer than what arrived; what
    /// did is in the result.
    pub truncated: bool,
}

impl Descriptors {
    /// Reads descriptors one after the other: a device descriptor, configurations with all that belongs to them, and a BOS,
    /// in any selection.
    ///
    /// # Errors
    /// The bytes do not begin with a device, configuration or BOS descriptor.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        const STRUCTURE: &str = "USB descriptors";
        if bytes.len() < 5 {
            return Err(WireError::truncated(STRUCTURE, bytes.len(), 18));
        }
        let starts_well = matches!(
            bytes,
            [0x12, 0x01, ..] | [0x09, 0x02 | 0x07, ..] | [0x05, 0x0f, ..]
        );
        if !starts_well {
            return Err(WireError {
                structure: STRUCTURE,
                offset_bytes: 0,
                why: "no device, configuration or BOS descriptor at the beginning".to_owned(),
            });
        }
        let mut walk = Walk::default();
        let mut rest = bytes;
        let mut announced = false;
        while let (Some(&length), Some(&kind)) = (rest.first(), rest.get(1)) {
            let length = usize::from(length);
            let Some(descriptor) = rest.get(..length).filter(|d| d.len() >= 2) else {
                break;
            };
            walk.take(kind, descriptor);
            // A configuration and a BOS say how long they are with all that belongs to them.
            if matches!(kind, 0x02 | 0x07 | 0x0f) {
                announced |= le16(descriptor, 2).is_some_and(|total| usize::from(total) > rest.len());
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(walk.finish(announced || !rest.is_empty()))
    }
}

#[derive(Default)]
struct Walk {
    device: Option<Device>,
    configurations: Vec<Configuration>,
    bos: Option<Bos>,
    unknown: Vec<Unknown>,
}

impl Walk {
    fn take(&mut self, kind: u8, d: &[u8]) {
        let known = match kind {
            0x01 => Device::parse(d).map(|device| {
                self.device.get_or_insert(device);
            }),
            // 07h is the configuration at the other speed.
            0x02 | 0x07 => {
                let super_speed = self.device.is_some_and(|d| d.bcd_usb >= 0x0300);
                Configuration::parse(d, super_speed).map(|c| self.configurations.push(c))
            }
            0x04 => Interface::parse(d).and_then(|i| {
                self.configurations.last_mut()?.interfaces.push(i);
                Some(())
            }),
            0x05 => Endpoint::parse(d).and_then(|e| {
                self.interface()?.endpoints.push(e);
                Some(())
            }),
            0x30 => self
                .interface()
                .and_then(|i| i.endpoints.last_mut()?.companion(d)),
            0x24 => self
                .interface()
                .filter(|i| i.storage_protocol == Some(StorageProtocol::Uas))
                .and_then(|i| i.endpoints.last_mut()?.pipe_usage(d)),
            0x0f => le16(d, 2).map(|total_bytes| {
                self.bos = Some(Bos {
                    total_bytes,
                    capability_count: d.get(4).copied().unwrap_or_default(),
                    ..Bos::default()
                });
            }),
            0x10 => self.bos.as_mut().and_then(|b| b.capability(d)),
            _ => None,
        };
        if known.is_none() {
            let unknown = Unknown {
                descriptor_type: kind,
                hex: hex(d),
            };
            match (kind, self.bos.as_mut()) {
                (0x10, Some(bos)) => bos.unknown.push(unknown),
                _ => match self.interface() {
                    Some(interface) => interface.unknown.push(unknown),
                    None => self.unknown.push(unknown),
                },
            }
        }
    }

    fn interface(&mut self) -> Option<&mut Interface> {
        self.configurations.last_mut()?.interfaces.last_mut()
    }

    fn finish(self, truncated: bool) -> Descriptors {
        let uas_pipes = |i: &Interface| {
            let has = |pipe| i.endpoints.iter().any(|e| e.pipe == Some(pipe));
            i.storage_protocol == Some(StorageProtocol::Uas)
                && [Pipe::Command, Pipe::Status, Pipe::DataIn, Pipe::DataOut]
                    .into_iter()
                    .all(has)
        };
        let interfaces = || self.configurations.iter().flat_map(|c| &c.interfaces);
        let uas_interface = interfaces().find(|i| uas_pipes(i));
        Descriptors {
            id: self.device.map(|d| format!("{:04x}:{:04x}", d.vid, d.pid)),
            bot: interfaces().any(|i| i.storage_protocol == Some(StorageProtocol::BulkOnly)),
            uas: uas_interface.is_some(),
            uas_streams: uas_interface.and_then(|i| {
                i.endpoints
                    .iter()
                    .filter(|e| e.pipe.is_some_and(|p| p != Pipe::Command))
                    .map(|e| e.max_streams.unwrap_or_default())
                    .min()
            }),
            max_power_ma: self.configurations.first().map(|c| c.max_power_ma),
            device: self.device,
            configurations: self.configurations,
            bos: self.bos,
            unknown: self.unknown,
            truncated,
        }
    }
}

impl Device {
    fn parse(d: &[u8]) -> Option<Self> {
        let at = |offset: usize| d.get(offset).copied();
        let bcd_usb = le16(d, 2)?;
        let packet = at(7)?;
        Some(Self {
            bcd_usb,
            class: at(4)?,
            subclass: at(5)?,
            protocol: at(6)?,
            max_packet_bytes: if bcd_usb >= 0x0300 && packet < 16 {
                1 << packet
            } else {
                u16::from(packet)
            },
            vid: le16(d, 8)?,
            pid: le16(d, 10)?,
            bcd_device: le16(d, 12)?,
            manufacturer_index: at(14)?,
            product_index: at(15)?,
            serial_index: at(16)?,
            configurations: at(17)?,
        })
    }
}

impl Configuration {
    /// bMaxPower counts in steps of 2 mA, and of 8 mA on a SuperSpeed link; the device descriptor of a link below
    /// SuperSpeed says at most 0210h in bcdUSB.
    fn parse(d: &[u8], super_speed: bool) -> Option<Self> {
        let at = |offset: usize| d.get(offset).copied();
        let attributes = at(7)?;
        Some(Self {
            value: at(5)?,
            total_bytes: le16(d, 2)?,
            interface_count: at(4)?,
            self_powered: attributes & 0x40 != 0,
            remote_wakeup: attributes & 0x20 != 0,
            max_power_ma: u16::from(at(8)?) * if super_speed { 8 } else { 2 },
            interfaces: Vec::new(),
        })
    }
}

impl Interface {
    fn parse(d: &[u8]) -> Option<Self> {
        let at = |offset: usize| d.get(offset).copied();
        let (class, protocol) = (at(5)?, at(7)?);
        Some(Self {
            number: at(2)?,
            alternate: at(3)?,
            class,
            subclass: at(6)?,
            protocol,
            storage_protocol: (class == CLASS_MASS_STORAGE).then_some(match protocol {
                PROTOCOL_BULK_ONLY => StorageProtocol::BulkOnly,
                PROTOCOL_UAS => StorageProtocol::Uas,
                _ => StorageProtocol::Other,
            }),
            string_index: at(8)?,
            endpoints: Vec::new(),
            unknown: Vec::new(),
        })
    }
}

impl Endpoint {
    fn parse(d: &[u8]) -> Option<Self> {
        let address = *d.get(2)?;
        Some(Self {
            address,
            is_in: address & 0x80 != 0,
            transfer: match d.get(3)? & 0x03 {
                0 => TransferType::Control,
                1 => TransferType::Isochronous,
                2 => TransferType::Bulk,
                _ => TransferType::Interrupt,
            },
            max_packet_bytes: le16(d, 4)? & 0x07ff,
            interval: *d.get(6)?,
            burst_packets: None,
            max_streams: None,
            pipe: None,
        })
    }

    /// SuperSpeed Endpoint Companion, 6 bytes (USB 3.2, page of that name).
    fn companion(&mut self, d: &[u8]) -> Option<()> {
        let (burst, attributes) = (*d.get(2)?, *d.get(3)?);
        self.burst_packets = Some(u16::from(burst) + 1);
        if self.transfer == TransferType::Bulk {
            self.max_streams = Some(match attributes & 0x1f {
                0 => 0,
                // More than 16 is reserved.
                exponent => 1 << exponent.min(16),
            });
        }
        Some(())
    }

    fn pipe_usage(&mut self, d: &[u8]) -> Option<()> {
        self.pipe = Some(match *d.get(2)? {
            1 => Pipe::Command,
            2 => Pipe::Status,
            3 => Pipe::DataIn,
            4 => Pipe::DataOut,
            _ => return None,
        });
        Some(())
    }
}

impl Bos {
    fn capability(&mut self, d: &[u8]) -> Option<()> {
        match *d.get(2)? {
            0x02 => self.lpm = Some(le32(d, 3)? & 0x02 != 0),
            0x03 => {
                let speeds = le16(d, 4)?;
                self.superspeed = Some(SuperSpeed {
                    latency_tolerance_messages: d.get(3)? & 0x02 != 0,
                    low_speed: speeds & 0x01 != 0,
                    full_speed: speeds & 0x02 != 0,
                    high_speed: speeds & 0x04 != 0,
                    super_speed: speeds & 0x08 != 0,
                    u1_exit_us: *d.get(7)?,
                    u2_exit_us: le16(d, 8)?,
                });
            }
            0x04 => self.container_id_hex = Some(hex(d.get(4..20)?)),
            0x0a => {
                let count = (le32(d, 4)? & 0x1f) as usize + 1;
                self.superspeed_plus_mbit_s = d
                    .get(12..)?
                    .chunks_exact(4)
                    .take(count)
                    .filter_map(|attribute| le32(attribute, 0))
                    .map(|attribute| {
                        let mantissa = u64::from(attribute >> 16);
                        match attribute >> 4 & 0x03 {
                            0 => mantissa / 1_000_000,
                            1 => mantissa / 1000,
                            2 => mantissa,
                            _ => mantissa * 1000,
                        }
                    })
                    .collect();
                self.superspeed_plus_mbit_s.dedup();
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uas_wants_all_four_pipes() {
        let mut bytes = vec![9, 2, 0, 0, 1, 1, 0, 0xc0, 18];
        bytes.extend([9, 4, 0, 1, 4, 8, 6, 0x62, 0]);
        for (address, pipe) in [(0x04, 1), (0x83, 2), (0x81, 3)] {
            bytes.extend([7, 5, address, 2, 0, 2, 0, 4, 0x24, pipe, 0]);
        }
        let three = Descriptors::parse(&bytes).unwrap();
        assert!(!three.uas);
        bytes.extend([7, 5, 2, 2, 0, 2, 0, 4, 0x24, 4, 0]);
        let four = Descriptors::parse(&bytes).unwrap();
        assert!(four.uas && !four.bot);
        assert_eq!(four.uas_streams, Some(0));
        assert_eq!(four.max_power_ma, Some(36));
    }

    #[test]
    fn a_set_that_ends_between_two_descriptors_is_cut_too() {
        let mut bytes = vec![5, 0x0f, 12, 0, 1];
        assert!(Descriptors::parse(&bytes).unwrap().truncated);
        bytes.extend([7, 0x10, 2, 2, 0, 0, 0]);
        assert!(!Descriptors::parse(&bytes).unwrap().truncated);
        let mut bytes = vec![9, 2, 18, 0, 1, 1, 0, 0xc0, 18];
        assert!(Descriptors::parse(&bytes).unwrap().truncated);
        bytes.extend([9, 4, 0, 0, 0, 8, 6, 0x50, 0]);
        assert!(!Descriptors::parse(&bytes).unwrap().truncated);
    }

    #[test]
    fn a_length_of_zero_ends_the_walk() {
        let cut = Descriptors::parse(&[9, 2, 0, 0, 1, 1, 0, 0xc0, 18, 0, 4, 1]).unwrap();
        assert!(cut.truncated);
        assert_eq!(cut.configurations.len(), 1);
        assert!(Descriptors::parse(&[0; 18]).is_err());
    }
}
