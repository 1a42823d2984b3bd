//! Built-in profiles: one JSON document per simulated device.

use serde::{Deserialize, Serialize};

use super::SpecError;
use super::heat::{Noise, Rates, Thermal, ThrottleLevel};

/// The documents, in the order of their names.
const EMBEDDED: &[(&str, &str)] = &[
    ("asm1051-usb2", include_str!("asm1051-usb2.json")),
    ("hdd", include_str!("hdd.json")),
    ("hdd-4kn", include_str!("hdd-4kn.json")),
    (
        "mushkin-ventura-ultra-120gb",
        include_str!("mushkin-ventura-ultra-120gb.json"),
    ),
    ("ssd", include_str!("ssd.json")),
    ("stick", include_str!("stick.json")),
];

/// One simulated device, as its document says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub schema: String,
    pub name: String,
    pub title: String,
    pub usb: UsbProfile,
    pub bridge: BridgeProfile,
    /// Absent for native flash, where there is no ATA drive behind the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<DriveProfile>,
    pub medium: MediumProfile,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thermal: Option<Thermal>,
    #[serde(default)]
    pub throttle: Vec<ThrottleLevel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    pub ambient_c: f64,
}

/// What USB enumeration tells.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsbProfile {
    /// Hexadecimal, as lsusb prints it.
    pub vid: String,
    pub pid: String,
    pub bcd_device: String,
    pub manufacturer: String,
    pub product: String,
    pub serial: String,
    pub speed_mbit_s: u32,
    pub max_power_ma: u32,
    pub driver: Driver,
}

/// Which kernel driver would take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Driver {
    #[serde(rename = "uas")]
    Uas,
    #[serde(rename = "usb-storage")]
    UsbStorage,
}

/// Which pass-through CDBs a bridge takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sat {
    #[serde(rename = "both")]
    Both,
    #[serde(rename = "16")]
    Only16,
    #[serde(rename = "12")]
    Only12,
    #[serde(rename = "none")]
    None,
}

/// How pass-through results are put into sense data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SenseFormat {
    Descriptor,
    Fixed,
    Empty,
}

/// What CK_COND does on success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CkCond {
    Honour,
    Ignore,
    Empty,
    Refuse,
}

/// Whether RETURN RESPONSE INFORMATION works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rri {
    Absent,
    Any,
    /// Only with T_DIR set.
    Tdir,
}

/// For which commands a transfer length "in the transport" is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tpsiu {
    Any,
    IdentifyOnly,
}

/// How much of the sense data the host gets to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SenseCap {
    /// All of it.
    #[serde(rename = "full")]
    Full,
    /// Never more than 18 bytes.
    #[serde(rename = "18")]
    Eighteen,
    /// 18 bytes until the host has learned that there is more, as Linux usb-storage does.
    #[serde(rename = "learn")]
    Learn,
}

/// The bridge's habits.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BridgeProfile {
    pub chip: String,
    /// T10 vendor, product and revision of INQUIRY.
    pub vendor: String,
    pub product: String,
    pub revision: String,
    /// INQUIRY byte 2: 04h SPC-2, 05h SPC-3, 06h SPC-4.
    pub version: u8,
    pub removable: bool,
    pub sat: Sat,
    pub sense: SenseFormat,
    pub ckcond: CkCond,
    pub rri: Rri,
    pub tpsiu: Tpsiu,
    /// EXTEND is taken.
    pub ext: bool,
    /// PROTOCOL 6 is taken.
    pub dma: bool,
    /// PROTOCOL 10 and 11 are taken.
    pub udma: bool,
    pub max_passthrough_bytes: u64,
    pub vpd_pages: Vec<u8>,
    /// UNMAP and WRITE SAME(16) with UNMAP are translated.
    pub unmap: bool,
    /// Descriptors that one UNMAP may have.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub unmap_descriptors: u32,
    /// LOG SENSE page 0Dh is there.
    pub log_temperature: bool,
    pub mode_sense: bool,
    /// READ CAPACITY(16) and READ/WRITE(16).
    pub sixteen_byte_block_commands: bool,
    /// REQUEST SENSE tells of a sleeping drive.
    pub request_sense_tells_power: bool,
    pub sense_cap: SenseCap,
    /// Fixed cost of a command, in microseconds.
    pub command_us: u64,
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Size and speed of the medium.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediumProfile {
    pub sectors: u64,
    pub logical_sector_bytes: u32,
    pub physical_sector_bytes: u32,
    pub rates: Rates,
}

/// TRIM claims.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrimProfile {
    pub max_blocks: u16,
    pub deterministic: bool,
    pub zeroes: bool,
}

/// How the raw value of the temperature attribute is packed (R0 first).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Packing {
    /// R0 alone.
    Plain,
    /// R0 temperature, R2 lowest, R3 highest.
    LowHigh,
    /// R0 temperature, R2 highest, R4 lowest: signed 16-bit fields.
    Words,
}

/// The inner ATA drive.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveProfile {
    pub model: String,
    pub firmware: String,
    pub serial: String,
    /// Hexadecimal, 16 digits.
    pub wwn: String,
    /// IDENTIFY word 217: 1 for solid state, else turns per minute.
    pub rotation: u16,
    pub form_factor: u8,
    /// IDENTIFY words 80, 81, 222 and the low nibble of 77.
    pub major_version: u16,
    pub minor_version: u16,
    pub transport_version: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<TrimProfile>,
    /// ACCESSIBLE MAX ADDRESS CONFIGURATION in place of the host protected area.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub amac: bool,
    /// IDENTIFY word 206; 0 for no SCT.
    pub sct: u16,
    pub gpl: bool,
    /// Pages of the device statistics log, empty for none.
    pub statistics: Vec<u8>,
    /// Default of the standby timer, absent for off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby_timer_s: Option<u64>,
    /// From standby to ready.
    pub spin_up_ms: u64,
    pub short_test_minutes: u8,
    pub extended_test_minutes: u16,
    pub limits_c: LimitsProfile,
    pub counters: CountersProfile,
    pub attributes: Vec<AttributeProfile>,
}

/// Temperature limits that SCT and the statistics report.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsProfile {
    pub recommended: (i8, i8),
    pub operating: (i8, i8),
    /// Lifetime lowest and highest before this power-on.
    pub lifetime: (i8, i8),
}

/// Where the counters stand at power-on.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountersProfile {
    pub power_on_minutes: u64,
    pub power_cycles: u64,
    pub sectors_written: u64,
    pub sectors_read: u64,
    #[serde(default)]
    pub unsafe_shutdowns: u64,
    #[serde(default)]
    pub percent_used: u64,
    #[serde(default)]
    pub reallocated: u64,
    #[serde(default)]
    pub spin_ups: u64,
    #[serde(default)]
    pub load_cycles: u64,
    #[serde(default)]
    pub crc_errors: u64,
}

/// One SMART attribute.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttributeProfile {
    pub id: u8,
    pub flags: u16,
    pub value: Number<NormalizedSource>,
    /// `value` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<Number<NormalizedSource>>,
    pub threshold: u8,
    pub raw: Number<RawSource>,
}

/// A fixed number, or the name of something that lives.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Number<S> {
    Fixed(u64),
    Live(S),
}

/// What a normalized value may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormalizedSource {
    /// The temperature itself.
    Temperature,
    /// The highest temperature.
    TemperatureHighest,
    /// 100 minus the temperature.
    HundredMinusTemperature,
    /// 100 minus the highest temperature.
    HundredMinusHighest,
    /// 100 minus the wear in percent, at least 1.
    LifeLeft,
    /// 100, or below the threshold when the drive fails.
    Health,
}

/// What a raw value may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RawSource {
    PowerOnHours,
    PowerCycles,
    SectorsWritten,
    SectorsRead,
    GibWritten,
    GibRead,
    UnsafeShutdowns,
    PercentUsed,
    LifeLeft,
    Reallocated,
    SpinUps,
    LoadCycles,
    CrcErrors,
    /// Sectors that wait to be replaced.
    Pending,
    /// Reads that failed for good.
    Uncorrectable,
    TemperaturePlain,
    TemperatureLowHigh,
    TemperatureWords,
}

impl RawSource {
    /// How a temperature is packed, if it is one.
    pub fn packing(self) -> Option<Packing> {
        match self {
            Self::TemperaturePlain => Some(Packing::Plain),
            Self::TemperatureLowHigh => Some(Packing::LowHigh),
            Self::TemperatureWords => Some(Packing::Words),
            _ => None,
        }
    }
}

/// All names, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, _)| *name)
}

/// Reads one profile.
pub fn load(name: &str) -> Result<Profile, SpecError> {
    let Some((_, text)) = EMBEDDED.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = names().collect();
        return Err(SpecError {
            why: format!("no simulated device {name:?}; there are: {}", known.join(", ")),
        });
    };
    serde_json::from_str(text).map_err(|e| SpecError {
        why: format!("profile {name}: {e}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_loads_under_its_own_name() {
        let mut sorted: Vec<&str> = names().collect();
        sorted.sort_unstable();
        assert_eq!(sorted, names().collect::<Vec<_>>());
        for name in names() {
            let profile = load(name).unwrap();
            assert_eq!(profile.name, name);
            assert_eq!(profile.schema, "drivethru-sim-profile/1");
            for hex in [&profile.usb.vid, &profile.usb.pid, &profile.usb.bcd_device] {
                assert!(u16::from_str_radix(hex, 16).is_ok(), "{name}: {hex}");
            }
        }
        assert!(load("nothing").unwrap_err().why.contains("hdd, hdd-4kn"));
    }
}
