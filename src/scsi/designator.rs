//! Designation descriptors: names of logical units, ports and devices, in VPD page 83h and elsewhere.

use serde::Serialize;

use crate::text::{ascii_field, hex};
use crate::wire::{be16, be32, be64};

/// One designation descriptor, 4 header bytes and up to 255 more (SPC-4, "Designation descriptor").
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Designator {
    /// What it names: `logical_unit`, `target_port`, `target_device` or `reserved`.
    pub association: &'static str,
    /// DESIGNATOR TYPE.
    pub designator_type: u8,
    /// Its name.
    pub designator_type_name: &'static str,
    /// `binary`, `ascii`, `utf-8` or `reserved`.
    pub code_set: &'static str,
    /// PROTOCOL IDENTIFIER, where PIV says that it is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u8>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_name: Option<&'static str>,
    /// The designator itself for EUI-64 and NAA: `0x` and hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier: Option<String>,
    /// NAA: its format, the upper four bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naa: Option<u8>,
    /// The IEEE company identifier inside NAA 2, 5, 6 or EUI-64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ieee_company_id: Option<u32>,
    /// T10 vendor identification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor_id: Option<String>,
    /// The text of vendor specific designators, of what follows a T10 vendor identification, and of SCSI name strings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Relative target port identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_target_port: Option<u16>,
    /// Target port group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_port_group: Option<u16>,
    /// Logical unit group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logical_unit_group: Option<u16>,
    /// UUID in its usual spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// UAS port: address of the USB device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usb_device_address: Option<u8>,
    /// UAS port: number of the USB interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usb_interface_number: Option<u8>,
    /// SCSI over PCI Express port: routing ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_routing_id: Option<u16>,
    /// All bytes of the designator.
    pub hex: String,
    /// Fewer bytes arrived than it announces.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

impl Designator {
    /// Reads one descriptor; also says how many bytes it takes. `None` without a whole header.
    pub fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let (&first, &second, &len) = (bytes.first()?, bytes.get(1)?, bytes.get(3)?);
        let end = 4 + usize::from(len);
        let body = bytes.get(4..end.min(bytes.len()))?;
        let association = match second >> 4 & 0x03 {
            0 => "logical_unit",
            1 => "target_port",
            2 => "target_device",
            _ => "reserved",
        };
        let code_set = match first & 0x0f {
            1 => "binary",
            2 => "ascii",
            3 => "utf-8",
            _ => "reserved",
        };
        // Only ports and devices have a protocol.
        let protocol = (second & 0x80 != 0 && second & 0x30 != 0).then_some(first >> 4);
        let mut designator = Self {
            association,
            designator_type: second & 0x0f,
            designator_type_name: type_name(second & 0x0f),
            code_set,
            protocol,
            protocol_name: protocol.map(protocol_name),
            hex: hex(body),
            truncated: bytes.len() < end,
            ..Self::default()
        };
        if !designator.truncated {
            designator.read(body);
        }
        Some((designator, end))
    }

    /// Reads descriptors one after the other until the bytes end.
    pub fn parse_list(mut bytes: &[u8]) -> Vec<Self> {
        let mut list = Vec::new();
        while let Some((designator, used)) = Self::parse(bytes) {
            list.push(designator);
            bytes = bytes.get(used..).unwrap_or_default();
        }
        list
    }

    fn read(&mut self, body: &[u8]) {
        let readable = matches!(self.code_set, "ascii" | "utf-8");
        match self.designator_type {
            0x0 if readable => self.text = name_text(body),
            0x1 => {
                self.vendor_id = body.get(..8.min(body.len())).and_then(ascii_field);
                if readable {
                    self.text = body.get(8..).and_then(ascii_field);
                }
            }
            0x2 if matches!(body.len(), 8 | 12 | 16) => {
                self.identifier = Some(identifier(body));
                let eui = if body.len() == 16 {
                    body.get(8..)
                } else {
                    Some(body)
                };
                self.ieee_company_id = eui.and_then(|e| be32(e, 0)).map(|v| v >> 8);
            }
            0x3 if matches!(body.len(), 8 | 16) => {
                self.identifier = Some(identifier(body));
                self.naa = body.first().map(|b| b >> 4);
                self.ieee_company_id = be64(body, 0).and_then(|v| match v >> 60 {
                    2 => Some((v >> 24 & 0x00ff_ffff) as u32),
                    5 | 6 => Some((v >> 36 & 0x00ff_ffff) as u32),
                    _ => None,
                });
            }
            0x4 => self.relative_target_port = be16(body, 2),
            0x5 => self.target_port_group = be16(body, 2),
            0x6 => self.logical_unit_group = be16(body, 2),
            0x7 if body.len() == 16 => self.identifier = Some(identifier(body)),
            0x8 => self.text = name_text(body),
            0x9 if self.protocol == Some(0x9) => {
                self.usb_device_address = body.first().map(|b| b & 0x7f);
                self.usb_interface_number = body.get(2).copied();
            }
            0x9 if self.protocol == Some(0xa) => self.pcie_routing_id = be16(body, 0),
            0xa if body.first().is_some_and(|b| b >> 4 == 1) => {
                self.uuid = body.get(2..18).map(uuid);
            }
            _ => {}
        }
    }
}

fn identifier(body: &[u8]) -> String {
    format!("0x{}", hex(body).replace(' ', ""))
}

fn uuid(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (i, b) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push_str(&format!("{b:02x}"));
    }
    out
}

/// ASCII or UTF-8 with the padding dropped and control characters replaced.
fn name_text(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let trimmed = text.trim_matches(|c| c == ' ' || c == '\0');
    (!trimmed.is_empty()).then(|| {
        trimmed
            .chars()
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect()
    })
}

fn type_name(code: u8) -> &'static str {
    match code {
        0x0 => "vendor specific",
        0x1 => "T10 vendor identification",
        0x2 => "EUI-64 based",
        0x3 => "NAA",
        0x4 => "Relative target port",
        0x5 => "Target port group",
        0x6 => "Logical unit group",
        0x7 => "MD5 logical unit identifier",
        0x8 => "SCSI name string",
        0x9 => "Protocol specific port identifier",
        0xa => "UUID identifier",
        _ => "reserved",
    }
}

/// The name of a PROTOCOL IDENTIFIER (SPC-4, "Protocol identifier").
pub fn protocol_name(code: u8) -> &'static str {
    match code {
        0x0 => "Fibre Channel (FCP)",
        0x1 => "Parallel SCSI (SPI)",
        0x2 => "Serial Storage Architecture (SSA)",
        0x3 => "IEEE 1394 (SBP)",
        0x4 => "RDMA (SRP)",
        0x5 => "iSCSI",
        0x6 => "Serial Attached SCSI (SPL)",
        0x7 => "Automation/drive interface (ADT)",
        0x8 => "ATA",
        0x9 => "USB Attached SCSI (UAS)",
        0xa => "SCSI over PCI Express (SOP)",
        0xf => "no specific protocol",
        _ => "reserved",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn company_identifiers_are_found_in_each_format() {
        let company = |bytes: &[u8]| Designator::parse(bytes).unwrap().0.ieee_company_id;
        let naa5 = [1, 3, 0, 8, 0x50, 0x02, 0x53, 0x8e, 0x12, 0x34, 0x56, 0x78];
        assert_eq!(company(&naa5), Some(0x00_2538));
        let eui = [1, 2, 0, 8, 0x00, 0x25, 0x38, 1, 2, 3, 4, 5];
        assert_eq!(company(&eui), Some(0x00_2538));
        let naa2 = [1, 3, 0, 8, 0x21, 0x23, 0x00, 0x25, 0x38, 1, 2, 3];
        assert_eq!(company(&naa2), Some(0x00_2538));
    }

    #[test]
    fn cut_designators_say_so_and_carry_no_values() {
        let list = Designator::parse_list(&[1, 3, 0, 8, 0x50, 0x02, 0x53]);
        assert_eq!(list.len(), 1);
        assert!(list.iter().all(|d| d.truncated && d.identifier.is_none()));
        assert!(Designator::parse_list(&[1, 3, 0]).is_empty());
    }
}
