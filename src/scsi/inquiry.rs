//! Standard INQUIRY data: what a logical unit says it is.

use serde::Serialize;

use crate::text::{ascii_field, hex};
use crate::wire::{WireError, be16};

const STRUCTURE: &str = "standard INQUIRY data";

bitflags::bitflags! {
    /// Bytes 1, 3, 5, 6 and 7 of the standard INQUIRY data, byte 1 in the highest bits (SPC-4 and SPC-2, "Standard
    /// INQUIRY data"). Multi-bit fields are not in here.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Flags: u64 {
        /// Removable medium.
        const RMB = 1 << 39;
        /// The logical unit is part of a conglomerate.
        const LU_CONG = 1 << 38;
        /// Obsolete: asynchronous event reporting.
        const AERC = 1 << 31;
        /// Obsolete: TERMINATE TASK.
        const TRMTSK = 1 << 30;
        /// The ACA bit is understood.
        const NORMACA = 1 << 29;
        /// LUNs are hierarchical.
        const HISUP = 1 << 28;
        /// Storage array controller inside.
        const SCCS = 1 << 23;
        /// Access controls coordinator inside.
        const ACC = 1 << 22;
        /// Third-party copy.
        const THIRD_PARTY_COPY = 1 << 19;
        /// Protection information.
        const PROTECT = 1 << 16;
        /// Obsolete: basic queuing.
        const BQUE = 1 << 15;
        /// Enclosure services inside.
        const ENCSERV = 1 << 14;
        /// Vendor specific.
        const VS = 1 << 13;
        /// Several ports.
        const MULTIP = 1 << 12;
        /// Obsolete: attached to a medium changer.
        const MCHNGR = 1 << 11;
        /// Obsolete: SPI request acknowledge.
        const ACKREQQ = 1 << 10;
        /// Wide SCSI addresses (SPI).
        const ADDR16 = 1 << 8;
        /// Obsolete: relative addressing.
        const RELADR = 1 << 7;
        /// Wide data bus (SPI).
        const WBUS16 = 1 << 5;
        /// Synchronous transfers (SPI).
        const SYNC = 1 << 4;
        /// Obsolete: linked commands.
        const LINKED = 1 << 3;
        /// Obsolete: CONTINUE TASK (SPI).
        const TRANDIS = 1 << 2;
        /// Command queuing.
        const CMDQUE = 1 << 1;
    }
}

/// A standard that the device claims to follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VersionDescriptor {
    /// The code.
    pub code: u16,
    /// The standard, as far as its code is in the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
}

/// Standard INQUIRY data, 36 bytes or more (SPC-4, "Standard INQUIRY data").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inquiry {
    /// PERIPHERAL QUALIFIER: 0 means that a device is there.
    pub peripheral_qualifier: u8,
    /// PERIPHERAL DEVICE TYPE.
    pub peripheral_device_type: u8,
    /// Single-bit fields.
    pub flags: Flags,
    /// HOT_PLUGGABLE, two bits.
    pub hot_pluggable: u8,
    /// VERSION: the SPC that it claims.
    pub version: u8,
    /// RESPONSE DATA FORMAT: 2 for all data since SCSI-2.
    pub response_data_format: u8,
    /// TPGS, two bits.
    pub target_port_group_support: u8,
    /// Length that the data claims, in bytes.
    pub claimed_bytes: usize,
    /// Fewer bytes arrived than that.
    pub truncated: bool,
    /// T10 VENDOR IDENTIFICATION, untrusted.
    pub vendor: Option<String>,
    /// PRODUCT IDENTIFICATION, untrusted.
    pub product: Option<String>,
    /// PRODUCT REVISION LEVEL, untrusted.
    pub revision: Option<String>,
    /// Bytes 36 to 55, vendor specific, if not all zero. Some bridges name themselves here.
    pub vendor_specific: Option<Vec<u8>>,
    /// CLOCKING, QAS and IUS of byte 56 (parallel SCSI), if it arrived.
    pub spi: Option<u8>,
    /// VERSION DESCRIPTORs that are not 0.
    pub version_descriptors: Vec<VersionDescriptor>,
}

impl Inquiry {
    /// Reads standard INQUIRY data.
    ///
    /// # Errors
    /// Fewer than 5 bytes. Shorter strings than they should be are taken as they are.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let at = |offset: usize| bytes.get(offset).copied().unwrap_or_default();
        let Some(&additional) = bytes.get(4) else {
            return Err(WireError::truncated(STRUCTURE, bytes.len(), 5));
        };
        let claimed_bytes = 5 + usize::from(additional);
        let data = bytes.get(..claimed_bytes.min(bytes.len())).unwrap_or(bytes);
        let field = |start: usize, end: usize| data.get(start..end.min(data.len())).filter(|b| !b.is_empty());
        Ok(Self {
            peripheral_qualifier: at(0) >> 5,
            peripheral_device_type: at(0) & 0x1f,
            flags: Flags::from_bits_retain(
                u64::from(at(1) & 0xc0) << 32
                    | u64::from(at(3) & 0xf0) << 24
                    | u64::from(at(5) & 0xc9) << 16
                    | u64::from(at(6) & 0xfd) << 8
                    | u64::from(at(7) & 0xbe),
            ),
            hot_pluggable: at(1) >> 4 & 0x03,
            version: at(2),
            response_data_format: at(3) & 0x0f,
            target_port_group_support: at(5) >> 4 & 0x03,
            claimed_bytes,
            truncated: bytes.len() < claimed_bytes,
            vendor: field(8, 16).and_then(ascii_field),
            product: field(16, 32).and_then(ascii_field),
            revision: field(32, 36).and_then(ascii_field),
            vendor_specific: field(36, 56)
                .filter(|b| b.iter().any(|b| *b != 0))
                .map(<[u8]>::to_vec),
            spi: data.get(56).copied(),
            version_descriptors: (58..74)
                .step_by(2)
                .filter_map(|offset| be16(data, offset))
                .filter(|code| *code != 0)
                .map(|code| VersionDescriptor {
                    code,
                    name: version_descriptor_name(code),
                })
                .collect(),
        })
    }
}

impl Serialize for Inquiry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("peripheral_qualifier", &self.peripheral_qualifier)?;
        map.serialize_entry("peripheral_device_type", &self.peripheral_device_type)?;
        map.serialize_entry(
            "peripheral_device_type_name",
            device_type_name(self.peripheral_device_type),
        )?;
        for (name, value) in [
            ("vendor", &self.vendor),
            ("product", &self.product),
            ("revision", &self.revision),
        ] {
            if let Some(value) = value {
                map.serialize_entry(name, value)?;
            }
        }
        map.serialize_entry("version", &self.version)?;
        if let Some(name) = version_name(self.version) {
            map.serialize_entry("version_name", name)?;
        }
        map.serialize_entry("response_data_format", &self.response_data_format)?;
        map.serialize_entry("hot_pluggable", &self.hot_pluggable)?;
        map.serialize_entry("tpgs", &self.target_port_group_support)?;
        for (name, flag) in Flags::all().iter_names() {
            map.serialize_entry(&name.to_ascii_lowercase(), &self.flags.contains(flag))?;
        }
        if let Some(spi) = self.spi {
            map.serialize_entry("spi_clocking", &(spi >> 2 & 0x03))?;
            map.serialize_entry("spi_qas", &(spi & 0x02 != 0))?;
            map.serialize_entry("spi_ius", &(spi & 0x01 != 0))?;
        }
        if !self.version_descriptors.is_empty() {
            map.serialize_entry("version_descriptors", &self.version_descriptors)?;
        }
        if let Some(bytes) = &self.vendor_specific {
            map.serialize_entry("vendor_specific_hex", &hex(bytes))?;
        }
        map.serialize_entry("claimed_bytes", &self.claimed_bytes)?;
        map.serialize_entry("truncated", &self.truncated)?;
        map.end()
    }
}

/// What a PERIPHERAL DEVICE TYPE means (SPC-4, "Peripheral device type").
pub fn device_type_name(code: u8) -> &'static str {
    match code {
        0x00 => "disk",
        0x01 => "tape",
        0x02 => "printer",
        0x03 => "processor",
        0x04 => "write once optical disk",
        0x05 => "cd/dvd",
        0x06 => "scanner",
        0x07 => "optical memory device",
        0x08 => "medium changer",
        0x09 => "communications",
        0x0a | 0x0b => "graphics",
        0x0c => "storage array controller",
        0x0d => "enclosure services device",
        0x0e => "simplified direct access device",
        0x0f => "optical card reader/writer device",
        0x10 => "bridge controller commands",
        0x11 => "object based storage",
        0x12 => "automation/drive interface",
        0x13 => "security manager device",
        0x14 => "host managed zoned block",
        0x1e => "well known logical unit",
        0x1f => "unknown or no device type",
        _ => "reserved",
    }
}

/// What a VERSION byte means.
fn version_name(version: u8) -> Option<&'static str> {
    Some(match version {
        0x00 => "no conformance claimed",
        0x01 => "SCSI-1",
        0x02 => "SCSI-2",
        0x03 => "SPC",
        0x04 => "SPC-2",
        0x05 => "SPC-3",
        0x06 => "SPC-4",
        0x07 => "SPC-5",
        0x08 => "SPC-6",
        _ => return None,
    })
}

/// Names of the standards that disks, enclosures and bridges claim (SPC-4, "Version descriptor values").
///
/// Codes between a standard's "no version claimed" and its final revision are drafts of it.
fn version_descriptor_name(code: u16) -> Option<&'static str> {
    Some(match code {
        0x0020..0x0040 => "SAM",
        0x0040..0x0060 => "SAM-2",
        0x0060..0x0080 => "SAM-3",
        0x0080..0x00a0 => "SAM-4",
        0x00a0..0x00c0 => "SAM-5",
        0x00c0..0x00e0 => "SAM-6",
        0x0120..0x0140 => "SPC",
        0x0140..0x0160 => "MMC",
        0x0180..0x01a0 => "SBC",
        0x01c0..0x01e0 => "SES",
        0x0260..0x0280 => "SPC-2",
        0x0300..0x0320 => "SPC-3",
        0x0320..0x0340 => "SBC-2",
        0x03a0..0x03c0 => "MMC-4",
        0x03e0..0x0400 => "SES-2",
        0x0460..0x0480 => "SPC-4",
        0x04c0..0x04e0 => "SBC-3",
        0x0580..0x05a0 => "SES-3",
        0x05c0..0x05e0 => "SPC-5",
        0x0600..0x0620 => "SBC-4",
        0x0900..0x0920 => "FCP",
        0x0960..0x0980 => "iSCSI",
        0x0be0..0x0c00 => "SAS",
        0x0c00..0x0c20 => "SAS-1.1",
        0x0c20..0x0c40 => "SAS-2",
        0x0c40..0x0c60 => "SAS-2.1",
        0x0c60..0x0c80 => "SAS-3",
        0x15e0..0x1600 => "ATA/ATAPI-6",
        0x1600..0x1620 => "ATA/ATAPI-7",
        0x1620..0x1640 => "ATA/ATAPI-8",
        0x1728 => "Universal Serial Bus Specification, Revision 1.1",
        0x1729 => "Universal Serial Bus Specification, Revision 2.0",
        0x1730 => "USB Mass Storage Class Bulk-Only Transport, Revision 1.0",
        0x1740..=0x175f => "UAS",
        0x1761 => "ACS-2",
        0x1765 => "ACS-3",
        0x1780..0x17a0 => "UAS-2",
        0x1ea0..0x1ec0 => "SAT",
        0x1ec0..0x1ee0 => "SAT-2",
        0x1ee0..0x1f00 => "SAT-3",
        0x1f00..0x1f20 => "SAT-4",
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut bytes = vec![0x80u8 >> 7 & 0x1f, 0x80, 0x06, 0x02, 0x5b, 0x09, 0x10, 0x02];
        bytes.extend(b"VENDOR  PRODUCT NAME    0103");
        bytes.resize(96, 0);
        for (slot, value) in bytes
            .iter_mut()
            .skip(58)
            .zip([0x17u8, 0x29, 0x17, 0x30, 0x04, 0x60])
        {
            *slot = value;
        }
        bytes
    }

    #[test]
    fn flags_and_strings_are_read() {
        let inquiry = Inquiry::parse(&sample()).unwrap();
        assert_eq!(
            inquiry.flags,
            Flags::RMB | Flags::THIRD_PARTY_COPY | Flags::PROTECT | Flags::MULTIP | Flags::CMDQUE
        );
        assert_eq!(inquiry.vendor.as_deref(), Some("VENDOR"));
        assert_eq!(inquiry.product.as_deref(), Some("PRODUCT NAME"));
        assert_eq!(inquiry.revision.as_deref(), Some("0103"));
        assert_eq!(inquiry.version_descriptors.len(), 3);
        assert_eq!(
            inquiry.version_descriptors.first().and_then(|d| d.name),
            Some("Universal Serial Bus Specification, Revision 2.0")
        );
        assert!(!inquiry.truncated);
    }

    #[test]
    fn claimed_length_bounds_the_fields() {
        let mut bytes = sample();
        bytes[4] = 31;
        let short = Inquiry::parse(&bytes).unwrap();
        assert_eq!(short.claimed_bytes, 36);
        assert!(short.version_descriptors.is_empty());
        let cut = Inquiry::parse(&sample()[..20]).unwrap();
        assert!(cut.truncated);
        assert_eq!(cut.product.as_deref(), Some("PROD"));
        assert_eq!(cut.revision, None);
        assert!(Inquiry::parse(&[0; 4]).is_err());
    }
}
