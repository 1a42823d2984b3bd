//! IDENTIFY DEVICE data as the document that `decode identify` prints.

use serde::Serialize;

use super::{
    AtaTransport, Belief, ByteOrder, EraseTime, Feature, FeatureSets, FormFactor, Identify, Rotation,
    SanitizeFeatures, SctFeatures, SecurityStatus, Switch, Trim,
};
use crate::wire::Checksum;

/// Name and version of [`IdentifySummary`].
pub const SCHEMA: &str = "drivethru-identify/1";

/// What IDENTIFY DEVICE data says; absent means unknown or not offered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct IdentifySummary {
    /// Model number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Serial number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Firmware revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// World Wide Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wwn: Option<WwnSummary>,
    /// User addressable logical sectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sectors: Option<u64>,
    /// Sectors by 28-bit commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sectors_28bit: Option<u64>,
    /// Sectors by 48-bit commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sectors_48bit: Option<u64>,
    /// User addressable bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Logical sector size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logical_sector_bytes: Option<u32>,
    /// Physical sector size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical_sector_bytes: Option<u32>,
    /// Offset of logical sector 0 within its physical sector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment_offset_bytes: Option<u64>,
    /// Revolutions per minute, 0 for solid state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation_rpm: Option<u16>,
    /// Form factor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form_factor: Option<FormFactor>,
    /// TRIM.
    pub trim: Trim,
    /// SMART.
    pub smart: Switch,
    /// Volatile write cache.
    pub write_cache: Switch,
    /// Read look-ahead.
    pub read_look_ahead: Switch,
    /// Standards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ata_version: Option<AtaVersion>,
    /// How it is attached, behind the bridge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<AtaTransport>,
    /// Serial ATA link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sata: Option<Sata>,
    /// Highest and selected Ultra DMA mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udma: Option<Udma>,
    /// Depth of the command queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u8>,
    /// Security feature set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    /// SMART Command Transport.
    pub sct: Sct,
    /// SANITIZE DEVICE.
    pub sanitize: Sanitize,
    /// General Purpose Logging.
    pub gpl: Switch,
    /// Host Protected Area.
    pub hpa: Switch,
    /// Device Configuration Overlay.
    pub dco: Switch,
    /// Accessible Max Address Configuration.
    pub amac: Switch,
    /// Advanced Power Management.
    pub apm: Apm,
    /// Automatic Acoustic Management.
    pub aam: Aam,
    /// Every named feature that the drive has.
    pub features: Vec<Feature>,
    /// An ATA device, not ATAPI.
    pub is_ata: bool,
    /// Checksum of the sector.
    pub checksum: Checksum,
    /// Byte order in which the sector came.
    pub byte_order: ByteOrder,
    /// The bridge made the page up.
    pub fabricated: bool,
    /// Whether to believe it.
    pub belief: Belief,
}

/// World Wide Name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WwnSummary {
    /// Name Address Authority.
    pub naa: u8,
    /// IEEE identifier.
    pub oui: u32,
    /// Number by the vendor.
    pub id: u64,
    /// All of it as 16 hex digits.
    pub text: String,
}

/// Version words 80 and 81.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AtaVersion {
    /// Word 80.
    pub major_bits: u16,
    /// The newest standard in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub major: Option<&'static str>,
    /// Word 81.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minor_code: Option<u16>,
    /// What word 81 names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minor: Option<&'static str>,
}

/// Serial ATA words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sata {
    /// Newest revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<&'static str>,
    /// Word 222 bits 11:0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_bits: Option<u16>,
    /// Fastest link rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_gbit_s: Option<f32>,
    /// Link rate between drive and bridge now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_gbit_s: Option<f32>,
    /// Native Command Queuing.
    pub ncq: bool,
}

/// Ultra DMA modes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Udma {
    /// Highest supported.
    pub max: u8,
    /// Selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<u8>,
}

/// Security words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Security {
    /// Word 128.
    pub state_bits: u16,
    /// The feature set is there.
    pub supported: bool,
    /// A password is set.
    pub enabled: bool,
    /// Locked.
    pub locked: bool,
    /// Frozen until the next power cycle.
    pub frozen: bool,
    /// Too many wrong passwords.
    pub count_expired: bool,
    /// Enhanced erase is there.
    pub enhanced_erase: bool,
    /// `high` or `maximum`: what the master password may do.
    pub level: &'static str,
    /// Time for a normal erase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erase: Option<EraseTime>,
    /// Time for an enhanced erase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enhanced: Option<EraseTime>,
    /// Master password identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_password_revision: Option<u16>,
}

/// SMART Command Transport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sct {
    /// SCT is there.
    pub supported: bool,
    /// Long sector access, obsolete.
    pub long_sector_access: bool,
    /// WRITE SAME.
    pub write_same: bool,
    /// Error recovery control.
    pub error_recovery_control: bool,
    /// Feature control, the temperature interval among it.
    pub feature_control: bool,
    /// Data tables, the temperature history among them.
    pub data_tables: bool,
}

/// SANITIZE DEVICE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sanitize {
    /// The feature set is there.
    pub supported: bool,
    /// BLOCK ERASE EXT.
    pub block_erase: bool,
    /// OVERWRITE EXT.
    pub overwrite: bool,
    /// CRYPTO SCRAMBLE EXT.
    pub crypto_scramble: bool,
    /// ANTIFREEZE LOCK EXT.
    pub antifreeze_lock: bool,
}

/// Advanced Power Management.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Apm {
    /// There and on.
    #[serde(flatten)]
    pub switch: Switch,
    /// Level, while it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
}

/// Automatic Acoustic Management.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Aam {
    /// There and on.
    #[serde(flatten)]
    pub switch: Switch,
    /// Level now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// Level that the vendor recommends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommended: Option<u8>,
}

fn gbit_s(generation: u8) -> Option<f32> {
    match generation {
        1 => Some(1.5),
        2 => Some(3.0),
        3 => Some(6.0),
        _ => None,
    }
}

impl Identify {
    /// The whole document.
    pub fn summary(&self) -> IdentifySummary {
        let belief = self.belief();
        IdentifySummary {
            model: self.model(),
            serial: self.serial(),
            firmware: self.firmware(),
            wwn: self.wwn().map(|wwn| WwnSummary {
                naa: wwn.naa(),
                oui: wwn.oui(),
                id: wwn.id(),
                text: wwn.to_string(),
            }),
            sectors: self.sectors().map(|s| s.0),
            sectors_28bit: self.sectors_28bit().map(|s| s.0),
            sectors_48bit: self.sectors_48bit().map(|s| s.0),
            capacity_bytes: self.capacity_bytes(),
            logical_sector_bytes: self.logical_sector().map(|s| s.bytes()),
            physical_sector_bytes: self.physical_sector().map(|s| s.bytes()),
            alignment_offset_bytes: self.alignment_offset_bytes(),
            rotation_rpm: match self.rotation() {
                Rotation::Unknown => None,
                Rotation::NonRotating => Some(0),
                Rotation::Rpm(rpm) => Some(rpm),
            },
            form_factor: self.form_factor(),
            trim: self.trim(),
            smart: self.smart(),
            write_cache: self.switch(FeatureSets::WRITE_CACHE),
            read_look_ahead: self.switch(FeatureSets::READ_LOOK_AHEAD),
            ata_version: self.major_version_bits().map(|major_bits| AtaVersion {
                major_bits,
                major: self.major_version_name(),
                minor_code: self.minor_version_code(),
                minor: self.minor_version_name(),
            }),
            transport: self.transport(),
            sata: self.sata_summary(),
            udma: self.udma_max().map(|max| Udma {
                max,
                active: self.udma_active(),
            }),
            queue_depth: self.queue_depth(),
            security: self.security().map(|status| self.security_summary(status)),
            sct: sct_summary(self.sct()),
            sanitize: sanitize_summary(self.sanitize()),
            gpl: self.switch(FeatureSets::GPL),
            hpa: self.switch(FeatureSets::HPA),
            dco: self.switch(FeatureSets::DCO),
            amac: self.switch(FeatureSets::AMAC),
            apm: Apm {
                switch: self.switch(FeatureSets::APM),
                level: self.apm_level(),
            },
            aam: Aam {
                switch: self.switch(FeatureSets::AAM),
                level: self.aam_levels().map(|levels| levels.0),
                recommended: self.aam_levels().map(|levels| levels.1),
            },
            features: self.features(),
            is_ata: self.is_ata(),
            checksum: self.checksum(),
            byte_order: self.byte_order(),
            fabricated: belief.verdict == super::Verdict::Fabricated,
            belief,
        }
    }

    fn alignment_offset_bytes(&self) -> Option<u64> {
        let logical = u64::from(self.logical_sector()?.bytes());
        u64::from(self.alignment_sectors()?).checked_mul(logical)
    }

    fn sata_summary(&self) -> Option<Sata> {
        if self.transport()? != AtaTransport::Serial {
            return None;
        }
        Some(Sata {
            version: self.sata_version_name(),
            version_bits: self.optional_word(222).map(|word| word & 0x0fff),
            max_gbit_s: self.sata_max_generation().and_then(gbit_s),
            current_gbit_s: self.sata_current_generation().and_then(gbit_s),
            ncq: self.sata_features().contains(super::SataFeatures::NCQ),
        })
    }

    fn security_summary(&self, status: SecurityStatus) -> Security {
        let maximum = status.contains(SecurityStatus::LEVEL_MAXIMUM);
        Security {
            state_bits: status.bits(),
            supported: status.contains(SecurityStatus::SUPPORTED),
            enabled: status.contains(SecurityStatus::ENABLED),
            locked: status.contains(SecurityStatus::LOCKED),
            frozen: status.contains(SecurityStatus::FROZEN),
            count_expired: status.contains(SecurityStatus::COUNT_EXPIRED),
            enhanced_erase: status.contains(SecurityStatus::ENHANCED_ERASE),
            level: if maximum { "maximum" } else { "high" },
            erase: self.erase_time(),
            enhanced: self.enhanced_erase_time(),
            master_password_revision: self.master_password_revision(),
        }
    }
}

fn sct_summary(sct: SctFeatures) -> Sct {
    Sct {
        supported: sct.contains(SctFeatures::SCT),
        long_sector_access: sct.contains(SctFeatures::LONG_SECTOR_ACCESS),
        write_same: sct.contains(SctFeatures::WRITE_SAME),
        error_recovery_control: sct.contains(SctFeatures::ERROR_RECOVERY_CONTROL),
        feature_control: sct.contains(SctFeatures::FEATURE_CONTROL),
        data_tables: sct.contains(SctFeatures::DATA_TABLES),
    }
}

fn sanitize_summary(sanitize: SanitizeFeatures) -> Sanitize {
    Sanitize {
        supported: sanitize.contains(SanitizeFeatures::SANITIZE),
        block_erase: sanitize.contains(SanitizeFeatures::BLOCK_ERASE),
        overwrite: sanitize.contains(SanitizeFeatures::OVERWRITE),
        crypto_scramble: sanitize.contains(SanitizeFeatures::CRYPTO_SCRAMBLE),
        antifreeze_lock: sanitize.contains(SanitizeFeatures::ANTIFREEZE_LOCK),
    }
}
