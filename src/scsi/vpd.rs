//! Vital product data: the pages that INQUIRY returns with EVPD set.

use serde::Serialize;

use super::designator::Designator;
use super::inquiry::device_type_name;
use crate::text::{ascii_field, ata_field, hex};
use crate::wire::{WireError, be16, be32, be64};

const STRUCTURE: &str = "VPD page";

/// A VPD page: 4 header bytes and the content (SPC-4, "Vital product data parameters").
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Vpd {
    /// PERIPHERAL QUALIFIER.
    pub peripheral_qualifier: u8,
    /// PERIPHERAL DEVICE TYPE.
    pub peripheral_device_type: u8,
    /// Its name.
    pub peripheral_device_type_name: &'static str,
    /// PAGE CODE.
    pub page_code: u8,
    /// Its name, where the table knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_name: Option<&'static str>,
    /// Length that the page claims, with its header.
    pub claimed_bytes: usize,
    /// Fewer bytes arrived than that.
    pub truncated: bool,
    /// What it says.
    #[serde(flatten)]
    pub content: Content,
}

/// What a page says, for the pages that are understood.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// 00h: codes of the pages that there are.
    SupportedPages(Vec<u8>),
    /// 80h: unit serial number, untrusted; `None` when it is blank.
    UnitSerialNumber(Option<String>),
    /// 83h.
    DeviceIdentification(DeviceIdentification),
    /// 89h.
    AtaInformation(Box<AtaInformation>),
    /// B0h.
    BlockLimits(BlockLimits),
    /// B1h.
    BlockDeviceCharacteristics(BlockDeviceCharacteristics),
    /// B2h.
    LogicalBlockProvisioning(LogicalBlockProvisioning),
    /// B5h.
    BlockDeviceCharacteristicsExtension(CharacteristicsExtension),
    /// B8h.
    FormatPresets(Vec<FormatPreset>),
    /// Any other page: its bytes.
    Hex(String),
}

/// Device Identification, 83h.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceIdentification {
    /// The designators in their order.
    pub designators: Vec<Designator>,
    /// The whole page is one bare NAA identifier, as old arrays had it before there were descriptors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legacy_identifier: Option<String>,
}

/// ATA Information, 89h, 572 bytes (SAT-4, "ATA Information VPD page").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AtaInformation {
    /// SAT VENDOR IDENTIFICATION: who made the translation layer, untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sat_vendor: Option<String>,
    /// SAT PRODUCT IDENTIFICATION, untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sat_product: Option<String>,
    /// SAT PRODUCT REVISION LEVEL, untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sat_revision: Option<String>,
    /// `sata` or `pata`, by the first byte of the device signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_transport: Option<&'static str>,
    /// The device signature, 20 bytes in the form of a Register Device to Host FIS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_hex: Option<String>,
    /// COMMAND CODE: ECh IDENTIFY DEVICE, A1h IDENTIFY PACKET DEVICE, 0 when there is no IDENTIFY data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_code: Option<u8>,
    /// Model of the drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Serial number of the drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Firmware revision of the drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// The 512 bytes of IDENTIFY data, if they all arrived.
    #[serde(skip)]
    pub identify: Option<Vec<u8>>,
}

/// Block Limits, B0h, 64 bytes (SBC-4, "Block Limits VPD page"). "Not reported" is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BlockLimits {
    /// WSNZ: WRITE SAME with a count of 0 is refused.
    pub write_same_nonzero: bool,
    /// COMPARE AND WRITE, longest; 0 means that the command is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_compare_and_write_blocks: Option<u8>,
    /// Optimal transfer length granularity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimal_transfer_granularity_blocks: Option<u16>,
    /// Longest transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_transfer_blocks: Option<u32>,
    /// Optimal transfer length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimal_transfer_blocks: Option<u32>,
    /// Longest prefetch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_prefetch_blocks: Option<u32>,
    /// Most blocks in one UNMAP command; 0 means that there is no UNMAP, FFFFFFFFh that there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unmap_blocks: Option<u32>,
    /// Most descriptors in one UNMAP command; 0 and FFFFFFFFh as above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unmap_descriptors: Option<u32>,
    /// Granularity of UNMAP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimal_unmap_granularity_blocks: Option<u32>,
    /// First LBA of that granularity, if UGAVALID is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmap_granularity_alignment: Option<u32>,
    /// Most blocks in one WRITE SAME.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_write_same_blocks: Option<u64>,
    /// Longest atomic write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_atomic_transfer_blocks: Option<u32>,
    /// Alignment of atomic writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atomic_alignment_blocks: Option<u32>,
    /// Granularity of atomic writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atomic_granularity_blocks: Option<u32>,
    /// Longest atomic write with a boundary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_atomic_transfer_with_boundary_blocks: Option<u32>,
    /// Largest atomic boundary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_atomic_boundary_blocks: Option<u32>,
}

/// Block Device Characteristics, B1h, 64 bytes (SBC-4, "Block Device Characteristics VPD page").
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BlockDeviceCharacteristics {
    /// Turns per minute; 0 on media that do not rotate; absent when not reported or reserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation_rpm: Option<u16>,
    /// Whether the medium rotates, if the page tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotating: Option<bool>,
    /// PRODUCT TYPE: 1 CFast, 2 CompactFlash, 3 MemoryStick, 4 MultiMediaCard, 5 SD, 6 XQD, 7 UFS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product_type: Option<u8>,
    /// WABEREQ: what a read of unwritten blocks before a format returns.
    pub write_after_block_erase_required: u8,
    /// WACEREQ: the same after a cryptographic erase.
    pub write_after_crypto_erase_required: u8,
    /// NOMINAL FORM FACTOR, the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form_factor: Option<u8>,
    /// Its meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form_factor_name: Option<&'static str>,
    /// ZONED: 1 host aware, 2 device managed.
    pub zoned: u8,
    /// RBWZ: background zeroing is reported.
    pub reassign_background_write_zeroes: bool,
    /// BOCS: background operation control is there.
    pub background_operation_control: bool,
    /// FUAB: how FUA acts on SYNCHRONIZE CACHE.
    pub force_unit_access_behaviour: bool,
    /// VBULS: VERIFY with byte check of unmapped blocks works.
    pub verify_unmapped: bool,
    /// Time that depopulation takes at most, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depopulation_seconds: Option<u32>,
}

/// Logical Block Provisioning, B2h, 8 bytes or more (SBC-4, "Logical Block Provisioning VPD page").
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LogicalBlockProvisioning {
    /// Exponent of the threshold set size.
    pub threshold_exponent: u8,
    /// LBPU: UNMAP works.
    pub unmap: bool,
    /// LBPWS: WRITE SAME(16) with UNMAP works.
    pub write_same_16_unmap: bool,
    /// LBPWS10: WRITE SAME(10) with UNMAP works.
    pub write_same_10_unmap: bool,
    /// LBPRZ, three bits: bit 0 set means that unmapped blocks read as zeroes, 2 that they read a vendor's pattern.
    pub reads_zeroes: u8,
    /// ANC_SUP: anchored blocks.
    pub anchors: bool,
    /// DP: a provisioning group descriptor follows.
    pub descriptor_present: bool,
    /// Minimum percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_percentage: Option<u8>,
    /// PROVISIONING TYPE: 0 unknown or fully provisioned, 1 resource, 2 thin.
    pub provisioning_type: u8,
    /// Threshold percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_percentage: Option<u8>,
    /// Which provisioning group it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_group: Option<Designator>,
}

/// Block Device Characteristics Extension, B5h, 128 bytes (SBC-4, page of that name).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CharacteristicsExtension {
    /// UTILIZATION TYPE: 1 writes and reads combined, 2 writes only, 3 separate.
    pub utilization_type: u8,
    /// UTILIZATION UNITS: 2 MB, 3 GB, 4 TB, 5 PB, 6 EB.
    pub utilization_units: u8,
    /// UTILIZATION INTERVAL: Ah day, Eh year.
    pub utilization_interval: u8,
    /// UTILIZATION B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization_b: Option<u32>,
    /// UTILIZATION A.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization_a: Option<u32>,
}

/// One descriptor of Format Presets, B8h, 64 bytes (SBC-5, "Format Presets VPD page").
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FormatPreset {
    /// PRESET IDENTIFIER.
    pub preset_identifier: u32,
    /// SCHEMA TYPE: 1 no zones, 2 host aware, 3 host managed, ...
    pub schema_type: u8,
    /// LOGICAL BLOCKS PER PHYSICAL BLOCK EXPONENT.
    pub logical_per_physical_exponent: u8,
    /// LOGICAL BLOCK LENGTH in bytes.
    pub logical_block_bytes: u32,
    /// DESIGNED LAST LOGICAL BLOCK ADDRESS.
    pub designed_last_lba: u64,
    /// FMTPINFO.
    pub format_protection_information: u8,
    /// PROTECTION FIELD USAGE.
    pub protection_field_usage: u8,
    /// PROTECTION INTERVAL EXPONENT.
    pub protection_interval_exponent: u8,
    /// Conventional zones at low LBAs, in tenths of a percent; only with zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_conventional_tenths_percent: Option<u8>,
    /// Conventional zones at high LBAs, in tenths of a percent; only with zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_conventional_tenths_percent: Option<u8>,
    /// Logical blocks per zone; only with zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks_per_zone: Option<u32>,
}

impl Vpd {
    /// Reads any VPD page; the content is clamped to what arrived.
    ///
    /// # Errors
    /// Fewer than 4 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let (Some(&first), Some(&page_code), Some(length)) = (bytes.first(), bytes.get(1), be16(bytes, 2))
        else {
            return Err(WireError::truncated(STRUCTURE, bytes.len(), 4));
        };
        // Page 00h has an 8-bit length; so had 80h, whose byte 2 is reserved.
        let length = usize::from(if page_code == 0 { length & 0xff } else { length });
        let claimed_bytes = 4 + length;
        let page = bytes.get(..claimed_bytes.min(bytes.len())).unwrap_or(bytes);
        Ok(Self {
            peripheral_qualifier: first >> 5,
            peripheral_device_type: first & 0x1f,
            peripheral_device_type_name: device_type_name(first & 0x1f),
            page_code,
            page_name: page_name(page_code),
            claimed_bytes,
            truncated: bytes.len() < claimed_bytes,
            content: Content::parse(page_code, page),
        })
    }
}

impl Content {
    /// `page` includes the header, so that offsets are those of the standard.
    fn parse(code: u8, page: &[u8]) -> Self {
        let body = page.get(4..).unwrap_or_default();
        match code {
            0x00 => Self::SupportedPages(body.to_vec()),
            0x80 => Self::UnitSerialNumber(ascii_field(body)),
            0x83 => Self::DeviceIdentification(DeviceIdentification::parse(body)),
            0x89 if body.len() >= 4 => Self::AtaInformation(Box::new(AtaInformation::parse(page))),
            0xb0 if body.len() >= 4 => Self::BlockLimits(BlockLimits::parse(page)),
            0xb1 if body.len() >= 4 => {
                Self::BlockDeviceCharacteristics(BlockDeviceCharacteristics::parse(page))
            }
            0xb2 if body.len() >= 4 => Self::LogicalBlockProvisioning(LogicalBlockProvisioning::parse(page)),
            0xb5 if body.len() >= 4 => {
                Self::BlockDeviceCharacteristicsExtension(CharacteristicsExtension::parse(page))
            }
            0xb8 => Self::FormatPresets(body.chunks(64).filter_map(FormatPreset::parse).collect()),
            _ => Self::Hex(hex(body)),
        }
    }
}

impl DeviceIdentification {
    fn parse(body: &[u8]) -> Self {
        let designators = Designator::parse_list(body);
        let well_formed = designators
            .iter()
            .all(|d| !d.truncated && d.code_set != "reserved");
        let naa = body.first().map(|b| b >> 4);
        let bare_naa = matches!((naa, body.len()), (Some(2 | 3 | 5), 8) | (Some(6), 16));
        if !well_formed && bare_naa {
            return Self {
                designators: Vec::new(),
                legacy_identifier: Some(format!("0x{}", hex(body).replace(' ', ""))),
            };
        }
        Self {
            designators,
            legacy_identifier: None,
        }
    }
}

impl AtaInformation {
    fn parse(page: &[u8]) -> Self {
        let field = |start: usize, end: usize| page.get(start..end).and_then(ascii_field);
        let signature = page.get(36..56);
        let identify = page.get(60..572).filter(|i| i.iter().any(|b| *b != 0));
        let words = |first: usize, last: usize| {
            identify
                .and_then(|i| i.get(first * 2..last * 2 + 2))
                .and_then(ata_field)
        };
        Self {
            sat_vendor: field(8, 16),
            sat_product: field(16, 32),
            sat_revision: field(32, 36),
            signature_transport: signature.and_then(|s| match s.first() {
                Some(0x34) => Some("sata"),
                Some(0x00) => Some("pata"),
                _ => None,
            }),
            signature_hex: signature.map(hex),
            command_code: page.get(56).copied(),
            model: words(27, 46),
            serial: words(10, 19),
            firmware: words(23, 26),
            identify: identify.map(<[u8]>::to_vec),
        }
    }
}

impl BlockLimits {
    fn parse(page: &[u8]) -> Self {
        let reported = |offset: usize| be32(page, offset).filter(|v| *v != 0);
        let alignment = be32(page, 32);
        Self {
            write_same_nonzero: page.get(4).is_some_and(|b| b & 1 != 0),
            max_compare_and_write_blocks: page.get(5).copied(),
            optimal_transfer_granularity_blocks: be16(page, 6).filter(|v| *v != 0),
            max_transfer_blocks: reported(8),
            optimal_transfer_blocks: reported(12),
            max_prefetch_blocks: reported(16),
            max_unmap_blocks: be32(page, 20),
            max_unmap_descriptors: be32(page, 24),
            optimal_unmap_granularity_blocks: reported(28),
            unmap_granularity_alignment: alignment
                .filter(|a| a & 0x8000_0000 != 0)
                .map(|a| a & 0x7fff_ffff),
            max_write_same_blocks: be64(page, 36).filter(|v| *v != 0),
            max_atomic_transfer_blocks: reported(44),
            atomic_alignment_blocks: reported(48),
            atomic_granularity_blocks: reported(52),
            max_atomic_transfer_with_boundary_blocks: reported(56),
            max_atomic_boundary_blocks: reported(60),
        }
    }
}

impl BlockDeviceCharacteristics {
    fn parse(page: &[u8]) -> Self {
        let at = |offset: usize| page.get(offset).copied().unwrap_or_default();
        let rate = be16(page, 4);
        let form_factor = page.get(7).map(|b| b & 0x0f).filter(|f| *f != 0);
        Self {
            rotation_rpm: match rate {
                Some(1) => Some(0),
                Some(rpm @ 0x0401..=0xfffe) => Some(rpm),
                _ => None,
            },
            rotating: match rate {
                Some(1) => Some(false),
                Some(0x0401..=0xfffe) => Some(true),
                _ => None,
            },
            product_type: page.get(6).copied().filter(|p| *p != 0),
            write_after_block_erase_required: at(7) >> 6,
            write_after_crypto_erase_required: at(7) >> 4 & 0x03,
            form_factor,
            form_factor_name: form_factor.and_then(form_factor_name),
            zoned: at(8) >> 4 & 0x03,
            reassign_background_write_zeroes: at(8) & 0x08 != 0,
            background_operation_control: at(8) & 0x04 != 0,
            force_unit_access_behaviour: at(8) & 0x02 != 0,
            verify_unmapped: at(8) & 0x01 != 0,
            depopulation_seconds: be32(page, 12).filter(|v| *v != 0),
        }
    }
}

fn form_factor_name(code: u8) -> Option<&'static str> {
    Some(match code {
        1 => "5.25 inch",
        2 => "3.5 inch",
        3 => "2.5 inch",
        4 => "1.8 inch",
        5 => "less than 1.8 inch",
        _ => return None,
    })
}

impl LogicalBlockProvisioning {
    fn parse(page: &[u8]) -> Self {
        let at = |offset: usize| page.get(offset).copied().unwrap_or_default();
        let flags = at(5);
        let descriptor_present = flags & 0x01 != 0;
        Self {
            threshold_exponent: at(4),
            unmap: flags & 0x80 != 0,
            write_same_16_unmap: flags & 0x40 != 0,
            write_same_10_unmap: flags & 0x20 != 0,
            reads_zeroes: flags >> 2 & 0x07,
            anchors: flags & 0x02 != 0,
            descriptor_present,
            min_percentage: Some(at(6) >> 3).filter(|p| *p != 0),
            provisioning_type: at(6) & 0x07,
            threshold_percentage: Some(at(7)).filter(|p| *p != 0),
            provisioning_group: page
                .get(8..)
                .filter(|_| descriptor_present)
                .and_then(Designator::parse)
                .map(|(designator, _)| designator),
        }
    }
}

impl CharacteristicsExtension {
    fn parse(page: &[u8]) -> Self {
        let at = |offset: usize| page.get(offset).copied().unwrap_or_default();
        Self {
            utilization_type: at(5) & 0x0f,
            utilization_units: at(6),
            utilization_interval: at(7),
            utilization_b: be32(page, 8),
            utilization_a: be32(page, 12),
        }
    }
}

impl FormatPreset {
    fn parse(d: &[u8]) -> Option<Self> {
        let at = |offset: usize| d.get(offset).copied();
        let schema_type = at(4)?;
        let zoned = schema_type != 1;
        Some(Self {
            preset_identifier: be32(d, 0)?,
            schema_type,
            logical_per_physical_exponent: at(7)? & 0x0f,
            logical_block_bytes: be32(d, 8)?,
            designed_last_lba: be64(d, 16)?,
            format_protection_information: at(38)? >> 6,
            protection_field_usage: at(38)? & 0x07,
            protection_interval_exponent: at(39)? & 0x0f,
            low_conventional_tenths_percent: at(40).filter(|_| zoned),
            high_conventional_tenths_percent: at(41).filter(|_| zoned),
            blocks_per_zone: be32(d, 52).filter(|_| zoned),
        })
    }
}

/// The name of a VPD page (SPC-4 and SBC-4, "Vital product data page codes").
pub fn page_name(code: u8) -> Option<&'static str> {
    Some(match code {
        0x00 => "Supported VPD pages",
        0x80 => "Unit serial number",
        0x83 => "Device identification",
        0x84 => "Software interface identification",
        0x85 => "Management network addresses",
        0x86 => "Extended INQUIRY data",
        0x87 => "Mode page policy",
        0x88 => "SCSI ports",
        0x89 => "ATA information",
        0x8a => "Power condition",
        0x8b => "Device constituents",
        0x8c => "CFA profile information",
        0x8d => "Power consumption",
        0x8f => "Third party copy",
        0x90 => "Protocol-specific logical unit information",
        0x91 => "Protocol-specific port information",
        0x92 => "SCSI feature sets",
        0xb0 => "Block limits",
        0xb1 => "Block device characteristics",
        0xb2 => "Logical block provisioning",
        0xb3 => "Referrals",
        0xb4 => "Supported block lengths and protection types",
        0xb5 => "Block device characteristics extension",
        0xb6 => "Zoned block device characteristics",
        0xb7 => "Block limits extension",
        0xb8 => "Format presets",
        0xb9 => "Concurrent positioning ranges",
        0xc0.. => "Vendor specific",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_shorter_than_it_claims_says_so() {
        let page = Vpd::parse(&[0, 0x80, 0, 8, b'A', b'B', b'C']).unwrap();
        assert!(page.truncated);
        assert_eq!(page.content, Content::UnitSerialNumber(Some("ABC".into())));
        assert!(Vpd::parse(&[0, 0x80, 0]).is_err());
    }

    #[test]
    fn bytes_behind_the_page_are_not_part_of_it() {
        let page = Vpd::parse(&[0, 0, 0, 2, 0x00, 0x80, 0x83, 0x89]).unwrap();
        assert_eq!(page.content, Content::SupportedPages(vec![0, 0x80]));
    }

    #[test]
    fn block_limits_of_16_bytes_know_nothing_of_unmap() {
        let mut bytes = vec![0, 0xb0, 0, 0x0c, 0, 0, 0, 8];
        bytes.resize(16, 0);
        let page = Vpd::parse(&bytes).unwrap();
        let Content::BlockLimits(limits) = page.content else {
            panic!("not block limits");
        };
        assert_eq!(limits.optimal_transfer_granularity_blocks, Some(8));
        assert_eq!(limits.max_unmap_blocks, None);
    }

    #[test]
    fn arrays_of_old_give_a_bare_name() {
        let mut bytes = vec![0, 0x83, 0, 16, 0x60, 0x06, 0x04, 0x80];
        bytes.extend([0x11; 12]);
        let Content::DeviceIdentification(page) = Vpd::parse(&bytes).unwrap().content else {
            panic!("not device identification");
        };
        assert!(page.designators.is_empty());
        assert!(page.legacy_identifier.is_some());
    }

    #[test]
    fn rotation_rates_that_mean_nothing_are_unknown() {
        for (rate, rpm, rotating) in [
            (0u16, None, None),
            (1, Some(0), Some(false)),
            (2, None, None),
            (5400, Some(5400), Some(true)),
            (0xffff, None, None),
        ] {
            let [high, low] = rate.to_be_bytes();
            let page = Vpd::parse(&[0, 0xb1, 0, 4, high, low, 0, 0]).unwrap();
            let Content::BlockDeviceCharacteristics(c) = page.content else {
                panic!("not characteristics");
            };
            assert_eq!((c.rotation_rpm, c.rotating), (rpm, rotating));
        }
    }
}
