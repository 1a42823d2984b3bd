//! Built-in profiles: one JSON document per simulated device, one per bridge.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SpecError;
use super::heat::{Op, Thermal, ThrottleLevel};
use super::speed::{Both, Cache, Noise, Random, Rates, Stalls};

/// Bridges, in the order of their names.
const BRIDGES: &[(&str, &str)] = &[
    ("asm1051-usb2", include_str!("bridges/asm1051-usb2.json")),
    ("asm1051e", include_str!("bridges/asm1051e.json")),
    ("asm1053e", include_str!("bridges/asm1053e.json")),
    ("asm1153e", include_str!("bridges/asm1153e.json")),
    ("asm225cm", include_str!("bridges/asm225cm.json")),
    ("jms567", include_str!("bridges/jms567.json")),
    ("jms578", include_str!("bridges/jms578.json")),
    ("phison-stick", include_str!("bridges/phison-stick.json")),
    ("rtl9201", include_str!("bridges/rtl9201.json")),
    ("stick", include_str!("bridges/stick.json")),
    ("vl716", include_str!("bridges/vl716.json")),
];

/// The profile whose drive is behind a bridge that is named alone.
const USUAL_DRIVE: &str = "ssd";

/// The documents, in the order of their names. Each names the bridge that its drive is behind, and may change what that says.
const EMBEDDED: &[(&str, &str)] = &[
    ("asm1051-usb2", include_str!("asm1051-usb2.json")),
    ("brandx-240gb", include_str!("brandx-240gb.json")),
    ("corsair-16gb-usb3", include_str!("corsair-16gb-usb3.json")),
    (
        "corsair-voyager-gt-128gb",
        include_str!("corsair-voyager-gt-128gb.json"),
    ),
    (
        "corsair-voyager-gtx-256gb",
        include_str!("corsair-voyager-gtx-256gb.json"),
    ),
    (
        "crucial-mx500-mirror-xfs",
        include_str!("crucial-mx500-mirror-xfs.json"),
    ),
    ("hdd", include_str!("hdd.json")),
    ("hdd-4kn", include_str!("hdd-4kn.json")),
    (
        "kingston-v100-64gb-sata2",
        include_str!("kingston-v100-64gb-sata2.json"),
    ),
    (
        "lacie-rugged-tb-500gb",
        include_str!("lacie-rugged-tb-500gb.json"),
    ),
    ("mushkin-atom-64gb", include_str!("mushkin-atom-64gb.json")),
    (
        "mushkin-ventura-ultra-120gb",
        include_str!("mushkin-ventura-ultra-120gb.json"),
    ),
    ("pny-128gb-usb31", include_str!("pny-128gb-usb31.json")),
    (
        "samsung-970evoplus-x1-mirror-xfs",
        include_str!("samsung-970evoplus-x1-mirror-xfs.json"),
    ),
    (
        "sandisk-extreme-pro-v2-2tb-gen2x2",
        include_str!("sandisk-extreme-pro-v2-2tb-gen2x2.json"),
    ),
    ("ssd", include_str!("ssd.json")),
    ("stick", include_str!("stick.json")),
    ("supertech-8gb-usb3", include_str!("supertech-8gb-usb3.json")),
    (
        "usb-20g-lockup-rnd4k-q32t16",
        include_str!("usb-20g-lockup-rnd4k-q32t16.json"),
    ),
    (
        "velociraptor-mirror-xfs",
        include_str!("velociraptor-mirror-xfs.json"),
    ),
    (
        "wd-black-p50-1tb-egfx",
        include_str!("wd-black-p50-1tb-egfx.json"),
    ),
    (
        "wd-black-p50-1tb-gen2",
        include_str!("wd-black-p50-1tb-gen2.json"),
    ),
    (
        "wd-black-p50-1tb-gen2x2",
        include_str!("wd-black-p50-1tb-gen2x2.json"),
    ),
    ("zfs-tank-4x3tb", include_str!("zfs-tank-4x3tb.json")),
];

/// One simulated device, as its document says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub schema: String,
    pub name: String,
    pub title: String,
    /// Name of the bridge.
    pub behind: String,
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
    pub self_powered: bool,
    /// bcdUSB, as lsusb prints it.
    pub usb_version: String,
    pub bot: BotEndpoints,
    /// Absent where there is no UAS setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uas: Option<UasEndpoints>,
}

/// Bulk endpoints of alternate setting 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BotEndpoints {
    pub in_endpoint: u8,
    pub out_endpoint: u8,
}

/// Bulk endpoints of alternate setting 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UasEndpoints {
    pub command: u8,
    pub status: u8,
    pub data_in: u8,
    pub data_out: u8,
    /// Streams at SuperSpeed.
    pub streams: u32,
}

/// Which kernel driver would take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    Uas,
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
    /// The same, and EXTEND is never set in the answer.
    TdirNoExtend,
}

/// What an unknown opcode does on the bulk pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    /// CHECK CONDITION, 05/20/00.
    Sense,
    /// The pipe is halted first.
    Stall,
}

/// How a data phase ends on BOT when there is nothing to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyDataIn {
    ZeroLength,
    Stall,
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
    pub unknown: Unknown,
    pub empty_data_in: EmptyDataIn,
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
    /// Rates where a host copies files, small ones among them; `rates` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_mb_s: Option<Both>,
    /// What the rate is multiplied by when all data compresses to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress_gain: Option<Both>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random: Option<Random>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hang: Option<HangProfile>,
    /// Links that it was measured on, for `link=`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, LinkProfile>,
    /// Power of the link's other end, which a meter sees too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub link_w: f64,
}

/// Random requests of this kind with so many in flight are never answered, once they have come for so long.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HangProfile {
    pub op: Op,
    pub in_flight: u32,
    pub after_s: f64,
}

/// What a link changes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkProfile {
    pub cap_mb_s: f64,
    pub cmd_us: f64,
    pub speed_mbit_s: u32,
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
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

/// All names, in order: those of the profiles, and those of the bridges that have none.
pub fn names() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&str> = EMBEDDED.iter().chain(BRIDGES).map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter()
}

/// Names of the bridges, in order.
pub fn bridges() -> impl Iterator<Item = &'static str> {
    BRIDGES.iter().map(|(name, _)| *name)
}

/// A bridge's document.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BridgeDocument {
    schema: String,
    name: String,
    title: String,
    usb: serde_json::Value,
    bridge: serde_json::Value,
}

fn bridge(name: &str) -> Result<BridgeDocument, SpecError> {
    let text = text_of(BRIDGES, name).ok_or_else(|| SpecError {
        why: format!("no bridge {name:?}; there are: {}", list(bridges())),
    })?;
    let document: BridgeDocument = serde_json::from_str(text).map_err(|e| SpecError {
        why: format!("bridge {name}: {e}"),
    })?;
    if document.schema != "drivethru-sim-bridge/1" || document.name != name {
        return Err(SpecError {
            why: format!("bridge {name}: its document is another one"),
        });
    }
    Ok(document)
}

fn text_of(documents: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    documents
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Puts the fields of `over` in the place of those in `under`; `null` takes one away.
fn lay_over(under: &mut serde_json::Value, over: &serde_json::Value) {
    let (Some(under), Some(over)) = (under.as_object_mut(), over.as_object()) else {
        return;
    };
    for (key, value) in over {
        under.insert(key.clone(), value.clone());
    }
}

/// Reads one profile.
pub fn load(name: &str) -> Result<Profile, SpecError> {
    match text_of(EMBEDDED, name) {
        Some(text) => assemble(name, text),
        None if text_of(BRIDGES, name).is_some() => {
            let mut profile = load(USUAL_DRIVE)?;
            put_behind(&mut profile, name)?;
            profile.title = format!("{}; behind it the drive of {USUAL_DRIVE}", bridge(name)?.title);
            name.clone_into(&mut profile.name);
            Ok(profile)
        }
        None => Err(SpecError {
            why: format!("no simulated device {name:?}; there are: {}", list(names())),
        }),
    }
}

fn assemble(name: &str, text: &str) -> Result<Profile, SpecError> {
    let wrong = |why: String| SpecError {
        why: format!("profile {name}: {why}"),
    };
    let mut document: serde_json::Value = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
    let behind = document
        .get("behind")
        .and_then(serde_json::Value::as_str)
        .ok_or_else(|| wrong("behind which bridge?".to_owned()))?;
    let BridgeDocument { usb, bridge, .. } = self::bridge(behind)?;
    for (key, mut under) in [("usb", usb), ("bridge", bridge)] {
        if let Some(over) = document.get(key) {
            lay_over(&mut under, over);
        }
        if let Some(fields) = document.as_object_mut() {
            fields.insert(key.to_owned(), under);
        }
    }
    serde_json::from_value(document).map_err(|e| wrong(e.to_string()))
}

/// Puts the drive behind another bridge.
pub fn put_behind(profile: &mut Profile, name: &str) -> Result<(), SpecError> {
    let document = bridge(name)?;
    let wrong = |e: serde_json::Error| SpecError {
        why: format!("bridge {name}: {e}"),
    };
    profile.usb = serde_json::from_value(document.usb).map_err(wrong)?;
    profile.bridge = serde_json::from_value(document.bridge).map_err(wrong)?;
    name.clone_into(&mut profile.behind);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_loads_under_its_own_name() {
        for documents in [EMBEDDED, BRIDGES] {
            assert!(documents.is_sorted_by_key(|(name, _)| name));
        }
        for name in names() {
            let profile = load(name).unwrap();
            assert_eq!(profile.name, name);
            assert_eq!(profile.schema, "drivethru-sim-profile/1");
            for hex in [&profile.usb.vid, &profile.usb.pid, &profile.usb.bcd_device] {
                assert!(u16::from_str_radix(hex, 16).is_ok(), "{name}: {hex}");
            }
        }
        for name in bridges() {
            assert_eq!(load(name).unwrap().behind, name);
        }
        assert!(load("nothing").unwrap_err().why.contains("hdd, hdd-4kn"));
        assert!(bridge("nothing").unwrap_err().why.contains("asm1153e, asm225cm"));
    }
}
