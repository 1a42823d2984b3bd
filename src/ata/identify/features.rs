//! Feature words of IDENTIFY DEVICE data as flags with names.

use bitflags::bitflags;
use serde::Serialize;

bitflags! {
    /// Command sets and features, words 82, 83, 84 and 119 (ACS-4, "Commands and feature sets supported or enabled").
    ///
    /// Word 82 fills bits 15:0, word 83 bits 31:16, word 84 bits 47:32, word 119 bits 63:48. Words 85, 86, 87 and 120
    /// have the same layout for what is enabled.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct FeatureSets: u64 {
        /// Word 82 bit 0.
        const SMART = 1 << 0;
        /// Word 82 bit 1.
        const SECURITY = 1 << 1;
        /// Word 82 bit 2, obsolete.
        const REMOVABLE_MEDIA = 1 << 2;
        /// Word 82 bit 3.
        const POWER_MANAGEMENT = 1 << 3;
        /// Word 82 bit 4.
        const PACKET = 1 << 4;
        /// Word 82 bit 5: volatile write cache.
        const WRITE_CACHE = 1 << 5;
        /// Word 82 bit 6: read look-ahead.
        const READ_LOOK_AHEAD = 1 << 6;
        /// Word 82 bit 7, obsolete.
        const RELEASE_INTERRUPT = 1 << 7;
        /// Word 82 bit 8, obsolete.
        const SERVICE_INTERRUPT = 1 << 8;
        /// Word 82 bit 9.
        const DEVICE_RESET = 1 << 9;
        /// Word 82 bit 10: Host Protected Area.
        const HPA = 1 << 10;
        /// Word 82 bit 12.
        const WRITE_BUFFER = 1 << 12;
        /// Word 82 bit 13.
        const READ_BUFFER = 1 << 13;
        /// Word 82 bit 14.
        const NOP = 1 << 14;
        /// Word 83 bit 0.
        const DOWNLOAD_MICROCODE = 1 << 16;
        /// Word 83 bit 1, obsolete.
        const TAGGED_QUEUING = 1 << 17;
        /// Word 83 bit 2.
        const CFA = 1 << 18;
        /// Word 83 bit 3: Advanced Power Management.
        const APM = 1 << 19;
        /// Word 83 bit 4, obsolete.
        const REMOVABLE_MEDIA_STATUS = 1 << 20;
        /// Word 83 bit 5: Power-Up In Standby.
        const PUIS = 1 << 21;
        /// Word 83 bit 6: SET FEATURES is needed to spin up.
        const SPIN_UP_BY_SET_FEATURES = 1 << 22;
        /// Word 83 bit 7, obsolete.
        const RESERVED_AREA_BOOT = 1 << 23;
        /// Word 83 bit 8.
        const SET_MAX_SECURITY = 1 << 24;
        /// Word 83 bit 9: Automatic Acoustic Management.
        const AAM = 1 << 25;
        /// Word 83 bit 10: 48-bit addresses.
        const LBA48 = 1 << 26;
        /// Word 83 bit 11: Device Configuration Overlay.
        const DCO = 1 << 27;
        /// Word 83 bit 12.
        const FLUSH_CACHE = 1 << 28;
        /// Word 83 bit 13.
        const FLUSH_CACHE_EXT = 1 << 29;
        /// Word 84 bit 0.
        const SMART_ERROR_LOG = 1 << 32;
        /// Word 84 bit 1.
        const SMART_SELF_TEST = 1 << 33;
        /// Word 84 bit 2.
        const MEDIA_SERIAL = 1 << 34;
        /// Word 84 bit 3, obsolete.
        const MEDIA_CARD_PASS_THROUGH = 1 << 35;
        /// Word 84 bit 4.
        const STREAMING = 1 << 36;
        /// Word 84 bit 5: General Purpose Logging, by READ LOG EXT.
        const GPL = 1 << 37;
        /// Word 84 bit 6.
        const WRITE_FUA_EXT = 1 << 38;
        /// Word 84 bit 7, obsolete.
        const WRITE_QUEUED_FUA_EXT = 1 << 39;
        /// Word 84 bit 8: World Wide Name.
        const WWN = 1 << 40;
        /// Word 84 bit 9, obsolete.
        const URG_READ_STREAM = 1 << 41;
        /// Word 84 bit 10, obsolete.
        const URG_WRITE_STREAM = 1 << 42;
        /// Word 84 bit 13.
        const IDLE_UNLOAD = 1 << 45;
        /// Word 119 bit 0, reserved since ACS-2: no data transfer after an error was detected.
        const NO_TRANSFER_AFTER_ERROR = 1 << 48;
        /// Word 119 bit 1.
        const WRITE_READ_VERIFY = 1 << 49;
        /// Word 119 bit 2.
        const WRITE_UNCORRECTABLE_EXT = 1 << 50;
        /// Word 119 bit 3: READ LOG DMA EXT and WRITE LOG DMA EXT.
        const LOG_DMA_EXT = 1 << 51;
        /// Word 119 bit 4.
        const SEGMENTED_MICROCODE = 1 << 52;
        /// Word 119 bit 5.
        const FREE_FALL = 1 << 53;
        /// Word 119 bit 6.
        const SENSE_DATA_REPORTING = 1 << 54;
        /// Word 119 bit 7: Extended Power Conditions.
        const EPC = 1 << 55;
        /// Word 119 bit 8: Accessible Max Address Configuration.
        const AMAC = 1 << 56;
        /// Word 119 bit 9: Device Statistics Notification.
        const DSN = 1 << 57;
    }

    /// Serial ATA capabilities (word 76, bits 15:0) and features (word 78, bits 31:16).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct SataFeatures: u32 {
        /// Word 76 bit 1: 1.5 Gbit/s.
        const GEN1 = 1 << 1;
        /// Word 76 bit 2: 3 Gbit/s.
        const GEN2 = 1 << 2;
        /// Word 76 bit 3: 6 Gbit/s.
        const GEN3 = 1 << 3;
        /// Word 76 bit 8: Native Command Queuing.
        const NCQ = 1 << 8;
        /// Word 76 bit 9: host-initiated link power management.
        const HIPM = 1 << 9;
        /// Word 76 bit 10.
        const PHY_EVENT_COUNTERS = 1 << 10;
        /// Word 76 bit 11.
        const UNLOAD_WITH_NCQ = 1 << 11;
        /// Word 76 bit 12.
        const NCQ_PRIORITY = 1 << 12;
        /// Word 76 bit 13.
        const HOST_AUTO_SLUMBER = 1 << 13;
        /// Word 76 bit 14.
        const DEVICE_AUTO_SLUMBER = 1 << 14;
        /// Word 76 bit 15: READ LOG DMA EXT works like READ LOG EXT.
        const READ_LOG_DMA_EXT = 1 << 15;
        /// Word 78 bit 1.
        const NON_ZERO_BUFFER_OFFSETS = 1 << 17;
        /// Word 78 bit 2.
        const DMA_SETUP_AUTO_ACTIVATE = 1 << 18;
        /// Word 78 bit 3: device-initiated link power management.
        const DIPM = 1 << 19;
        /// Word 78 bit 4.
        const IN_ORDER_DATA = 1 << 20;
        /// Word 78 bit 5 (asynchronous notification on ATAPI devices).
        const HARDWARE_FEATURE_CONTROL = 1 << 21;
        /// Word 78 bit 6.
        const SETTINGS_PRESERVATION = 1 << 22;
        /// Word 78 bit 7.
        const NCQ_AUTOSENSE = 1 << 23;
        /// Word 78 bit 8.
        const DEVSLP = 1 << 24;
    }

    /// Additional supported features, word 69 (ACS-4).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct AdditionalFeatures: u16 {
        /// Bit 2: the write cache survives a power loss.
        const NON_VOLATILE_CACHE = 1 << 2;
        /// Bit 3: words 230-233 hold the sector count.
        const EXTENDED_SECTORS = 1 << 3;
        /// Bit 4: all user data is encrypted.
        const ENCRYPTS = 1 << 4;
        /// Bit 5: trimmed sectors read as zeros (RZAT).
        const RZAT = 1 << 5;
        /// Bit 6: 28-bit commands are optional.
        const OPTIONAL_28BIT = 1 << 6;
        /// Bit 7.
        const IEEE_1667 = 1 << 7;
        /// Bit 8.
        const DOWNLOAD_MICROCODE_DMA = 1 << 8;
        /// Bit 9.
        const SET_MAX_PASSWORD_DMA = 1 << 9;
        /// Bit 10.
        const WRITE_BUFFER_DMA = 1 << 10;
        /// Bit 11.
        const READ_BUFFER_DMA = 1 << 11;
        /// Bit 12.
        const DCO_DMA = 1 << 12;
        /// Bit 13.
        const LONG_SECTOR_ALIGNMENT = 1 << 13;
        /// Bit 14: trimmed sectors read the same each time (DRAT).
        const DRAT = 1 << 14;
    }

    /// SMART Command Transport, word 206 (ACS-4, "SCT Command Transport").
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct SctFeatures: u16 {
        /// Bit 0: SCT itself.
        const SCT = 1 << 0;
        /// Bit 1, obsolete.
        const LONG_SECTOR_ACCESS = 1 << 1;
        /// Bit 2.
        const WRITE_SAME = 1 << 2;
        /// Bit 3.
        const ERROR_RECOVERY_CONTROL = 1 << 3;
        /// Bit 4.
        const FEATURE_CONTROL = 1 << 4;
        /// Bit 5: data tables, the temperature history among them.
        const DATA_TABLES = 1 << 5;
    }

    /// SANITIZE DEVICE, word 59 (ACS-4).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct SanitizeFeatures: u16 {
        /// Bit 10.
        const ANTIFREEZE_LOCK = 1 << 10;
        /// Bit 12: SANITIZE itself.
        const SANITIZE = 1 << 12;
        /// Bit 13.
        const CRYPTO_SCRAMBLE = 1 << 13;
        /// Bit 14.
        const OVERWRITE = 1 << 14;
        /// Bit 15.
        const BLOCK_ERASE = 1 << 15;
    }

    /// Security status, word 128 (ACS-4).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct SecurityStatus: u16 {
        /// Bit 0.
        const SUPPORTED = 1 << 0;
        /// Bit 1: a password is set.
        const ENABLED = 1 << 1;
        /// Bit 2.
        const LOCKED = 1 << 2;
        /// Bit 3.
        const FROZEN = 1 << 3;
        /// Bit 4: too many wrong passwords since power-on.
        const COUNT_EXPIRED = 1 << 4;
        /// Bit 5.
        const ENHANCED_ERASE = 1 << 5;
        /// Bit 8: master password capability is Maximum.
        const LEVEL_MAXIMUM = 1 << 8;
    }
}

/// One feature in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Feature {
    /// The feature's name: the flag's name in lower case.
    pub name: &'static str,
    /// The drive has it.
    pub supported: bool,
    /// It is switched on; absent where a drive that has it cannot say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// Names of [`FeatureSets`] in documents.
const FEATURE_SETS: &[(FeatureSets, &str)] = &[
    (FeatureSets::SMART, "smart"),
    (FeatureSets::SECURITY, "security"),
    (FeatureSets::REMOVABLE_MEDIA, "removable_media"),
    (FeatureSets::POWER_MANAGEMENT, "power_management"),
    (FeatureSets::PACKET, "packet"),
    (FeatureSets::WRITE_CACHE, "write_cache"),
    (FeatureSets::READ_LOOK_AHEAD, "read_look_ahead"),
    (FeatureSets::RELEASE_INTERRUPT, "release_interrupt"),
    (FeatureSets::SERVICE_INTERRUPT, "service_interrupt"),
    (FeatureSets::DEVICE_RESET, "device_reset"),
    (FeatureSets::HPA, "hpa"),
    (FeatureSets::WRITE_BUFFER, "write_buffer"),
    (FeatureSets::READ_BUFFER, "read_buffer"),
    (FeatureSets::NOP, "nop"),
    (FeatureSets::DOWNLOAD_MICROCODE, "download_microcode"),
    (FeatureSets::TAGGED_QUEUING, "tagged_queuing"),
    (FeatureSets::CFA, "cfa"),
    (FeatureSets::APM, "apm"),
    (FeatureSets::REMOVABLE_MEDIA_STATUS, "removable_media_status"),
    (FeatureSets::PUIS, "power_up_in_standby"),
    (FeatureSets::SPIN_UP_BY_SET_FEATURES, "spin_up_by_set_features"),
    (FeatureSets::RESERVED_AREA_BOOT, "reserved_area_boot"),
    (FeatureSets::SET_MAX_SECURITY, "set_max_security"),
    (FeatureSets::AAM, "aam"),
    (FeatureSets::LBA48, "lba48"),
    (FeatureSets::DCO, "dco"),
    (FeatureSets::FLUSH_CACHE, "flush_cache"),
    (FeatureSets::FLUSH_CACHE_EXT, "flush_cache_ext"),
    (FeatureSets::SMART_ERROR_LOG, "smart_error_log"),
    (FeatureSets::SMART_SELF_TEST, "smart_self_test"),
    (FeatureSets::MEDIA_SERIAL, "media_serial"),
    (FeatureSets::MEDIA_CARD_PASS_THROUGH, "media_card_pass_through"),
    (FeatureSets::STREAMING, "streaming"),
    (FeatureSets::GPL, "gpl"),
    (FeatureSets::WRITE_FUA_EXT, "write_fua_ext"),
    (FeatureSets::WRITE_QUEUED_FUA_EXT, "write_queued_fua_ext"),
    (FeatureSets::WWN, "wwn"),
    (FeatureSets::URG_READ_STREAM, "urg_read_stream"),
    (FeatureSets::URG_WRITE_STREAM, "urg_write_stream"),
    (FeatureSets::IDLE_UNLOAD, "idle_unload"),
    (FeatureSets::NO_TRANSFER_AFTER_ERROR, "no_transfer_after_error"),
    (FeatureSets::WRITE_READ_VERIFY, "write_read_verify"),
    (FeatureSets::WRITE_UNCORRECTABLE_EXT, "write_uncorrectable_ext"),
    (FeatureSets::LOG_DMA_EXT, "log_dma_ext"),
    (FeatureSets::SEGMENTED_MICROCODE, "segmented_microcode"),
    (FeatureSets::FREE_FALL, "free_fall"),
    (FeatureSets::SENSE_DATA_REPORTING, "sense_data_reporting"),
    (FeatureSets::EPC, "epc"),
    (FeatureSets::AMAC, "amac"),
    (FeatureSets::DSN, "dsn"),
];

/// Capabilities of word 76: a drive has them or not, there is no switch.
const SATA_CAPABILITIES: &[(SataFeatures, &str)] = &[
    (SataFeatures::NCQ, "ncq"),
    (SataFeatures::HIPM, "host_initiated_link_power"),
    (SataFeatures::PHY_EVENT_COUNTERS, "phy_event_counters"),
    (SataFeatures::UNLOAD_WITH_NCQ, "unload_with_ncq"),
    (SataFeatures::NCQ_PRIORITY, "ncq_priority"),
    (SataFeatures::HOST_AUTO_SLUMBER, "host_auto_slumber"),
    (SataFeatures::DEVICE_AUTO_SLUMBER, "device_auto_slumber"),
    (SataFeatures::READ_LOG_DMA_EXT, "read_log_dma_as_pio"),
];

/// Features of word 78, switched in word 79.
const SATA_FEATURES: &[(SataFeatures, &str)] = &[
    (SataFeatures::NON_ZERO_BUFFER_OFFSETS, "non_zero_buffer_offsets"),
    (SataFeatures::DMA_SETUP_AUTO_ACTIVATE, "dma_setup_auto_activate"),
    (SataFeatures::DIPM, "device_initiated_link_power"),
    (SataFeatures::IN_ORDER_DATA, "in_order_data"),
    (SataFeatures::HARDWARE_FEATURE_CONTROL, "hardware_feature_control"),
    (SataFeatures::SETTINGS_PRESERVATION, "settings_preservation"),
    (SataFeatures::NCQ_AUTOSENSE, "ncq_autosense"),
    (SataFeatures::DEVSLP, "devslp"),
];

const ADDITIONAL: &[(AdditionalFeatures, &str)] = &[
    (AdditionalFeatures::NON_VOLATILE_CACHE, "non_volatile_cache"),
    (AdditionalFeatures::EXTENDED_SECTORS, "extended_sectors"),
    (AdditionalFeatures::ENCRYPTS, "encrypts_user_data"),
    (AdditionalFeatures::OPTIONAL_28BIT, "optional_28bit"),
    (AdditionalFeatures::IEEE_1667, "ieee_1667"),
    (
        AdditionalFeatures::DOWNLOAD_MICROCODE_DMA,
        "download_microcode_dma",
    ),
    (AdditionalFeatures::SET_MAX_PASSWORD_DMA, "set_max_password_dma"),
    (AdditionalFeatures::WRITE_BUFFER_DMA, "write_buffer_dma"),
    (AdditionalFeatures::READ_BUFFER_DMA, "read_buffer_dma"),
    (AdditionalFeatures::DCO_DMA, "dco_dma"),
    (AdditionalFeatures::LONG_SECTOR_ALIGNMENT, "long_sector_alignment"),
];

/// All that the drive has, in the order of the words.
pub(super) fn list(
    supported: FeatureSets,
    enabled: Option<FeatureSets>,
    sata: SataFeatures,
    sata_enabled: SataFeatures,
    additional: AdditionalFeatures,
) -> Vec<Feature> {
    let mut features = Vec::new();
    for (flag, name) in FEATURE_SETS {
        if supported.contains(*flag) {
            let enabled = enabled.map(|e| e.contains(*flag));
            features.push(Feature {
                name,
                supported: true,
                enabled,
            });
        }
    }
    for (flag, name) in SATA_CAPABILITIES {
        if sata.contains(*flag) {
            features.push(Feature {
                name,
                supported: true,
                enabled: None,
            });
        }
    }
    for (flag, name) in SATA_FEATURES {
        if sata.contains(*flag) {
            features.push(Feature {
                name,
                supported: true,
                enabled: Some(sata_enabled.contains(*flag)),
            });
        }
    }
    for (flag, name) in ADDITIONAL {
        if additional.contains(*flag) {
            features.push(Feature {
                name,
                supported: true,
                enabled: None,
            });
        }
    }
    features
}
