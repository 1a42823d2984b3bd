//! Identify Controller and Identify Namespace.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{celsius_from_kelvin, serialize_counter};
use crate::text::ascii_field;
use crate::units::Celsius;
use crate::wire::{WireError, le16, le32, le64, le128};

/// Length of both data structures.
pub const IDENTIFY_BYTES: usize = 4096;

/// Identify Controller data, 4096 bytes, of which the first 512 are enough (NVM Express Base Specification 2.0, "Identify
/// Controller Data Structure"). What did not arrive is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    bytes: Vec<u8>,
}

/// One power state descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PowerState {
    /// Its number.
    pub state: u8,
    /// Most power it takes, in microwatts; absent when not reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_power_uw: Option<u64>,
    /// No I/O in this state.
    pub non_operational: bool,
    /// Time to enter it, in microseconds.
    pub entry_latency_us: u32,
    /// Time to leave it, in microseconds.
    pub exit_latency_us: u32,
}

/// (name in the specification, offset, length in bytes) of every plain number that tools print.
static FIELDS: &[(&str, usize, usize)] = &[
    ("vid", 0, 2),
    ("ssvid", 2, 2),
    ("rab", 72, 1),
    ("cmic", 76, 1),
    ("mdts", 77, 1),
    ("cntlid", 78, 2),
    ("ver", 80, 4),
    ("rtd3r", 84, 4),
    ("rtd3e", 88, 4),
    ("oaes", 92, 4),
    ("ctratt", 96, 4),
    ("rrls", 100, 2),
    ("cntrltype", 111, 1),
    ("crdt1", 128, 2),
    ("crdt2", 130, 2),
    ("crdt3", 132, 2),
    ("nvmsr", 253, 1),
    ("vwci", 254, 1),
    ("mec", 255, 1),
    ("oacs", 256, 2),
    ("acl", 258, 1),
    ("aerl", 259, 1),
    ("frmw", 260, 1),
    ("lpa", 261, 1),
    ("elpe", 262, 1),
    ("npss", 263, 1),
    ("avscc", 264, 1),
    ("apsta", 265, 1),
    ("wctemp", 266, 2),
    ("cctemp", 268, 2),
    ("mtfa", 270, 2),
    ("hmpre", 272, 4),
    ("hmmin", 276, 4),
    ("tnvmcap", 280, 16),
    ("unvmcap", 296, 16),
    ("rpmbs", 312, 4),
    ("edstt", 316, 2),
    ("dsto", 318, 1),
    ("fwug", 319, 1),
    ("kas", 320, 2),
    ("hctma", 322, 2),
    ("mntmt", 324, 2),
    ("mxtmt", 326, 2),
    ("sanicap", 328, 4),
    ("hmminds", 332, 4),
    ("hmmaxd", 336, 2),
    ("nsetidmax", 338, 2),
    ("endgidmax", 340, 2),
    ("anatt", 342, 1),
    ("anacap", 343, 1),
    ("anagrpmax", 344, 4),
    ("nanagrpid", 348, 4),
    ("pels", 352, 4),
    ("domainid", 356, 2),
    ("megcap", 368, 16),
    ("sqes", 512, 1),
    ("cqes", 513, 1),
    ("maxcmd", 514, 2),
    ("nn", 516, 4),
    ("oncs", 520, 2),
    ("fuses", 522, 2),
    ("fna", 524, 1),
    ("vwc", 525, 1),
    ("awun", 526, 2),
    ("awupf", 528, 2),
    ("icsvscc", 530, 1),
    ("nwpc", 531, 1),
    ("acwu", 532, 2),
    ("ocfs", 534, 2),
    ("sgls", 536, 4),
    ("mnan", 540, 4),
    ("maxdna", 544, 16),
    ("maxcna", 560, 4),
];

impl Controller {
    /// Takes Identify Controller data.
    ///
    /// # Errors
    /// Fewer than 72 bytes: the strings end there.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        const STRUCTURE: &str = "NVMe Identify Controller data";
        if bytes.len() < 72 {
            return Err(WireError::truncated(STRUCTURE, bytes.len(), IDENTIFY_BYTES));
        }
        Ok(Self {
            bytes: bytes.get(..IDENTIFY_BYTES).unwrap_or(bytes).to_vec(),
        })
    }

    fn field(&self, start: usize, end: usize) -> Option<String> {
        self.bytes.get(start..end).and_then(ascii_field)
    }

    /// A number by its name in the specification, in lower case (`wctemp`).
    pub fn number(&self, name: &str) -> Option<u128> {
        let &(_, offset, len) = FIELDS.iter().find(|(n, _, _)| *n == name)?;
        self.read(offset, len)
    }

    fn read(&self, offset: usize, len: usize) -> Option<u128> {
        let field = self.bytes.get(offset..offset + len)?;
        Some(field.iter().rev().fold(0, |value, b| value << 8 | u128::from(*b)))
    }

    /// PCI vendor ID.
    pub fn vendor_id(&self) -> Option<u16> {
        le16(&self.bytes, 0)
    }

    /// Serial number, untrusted.
    pub fn serial(&self) -> Option<String> {
        self.field(4, 24)
    }

    /// Model number, untrusted.
    pub fn model(&self) -> Option<String> {
        self.field(24, 64)
    }

    /// Firmware revision, untrusted.
    pub fn firmware(&self) -> Option<String> {
        self.field(64, 72)
    }

    /// IEEE OUI of the maker; 0 on sticks that invent their NVMe data.
    pub fn ieee_oui(&self) -> Option<u32> {
        self.read(73, 3).map(|v| v as u32)
    }

    /// Version of the specification: `1.4`. Controllers before 1.2 report 0.
    pub fn version(&self) -> Option<String> {
        let raw = le32(&self.bytes, 80).filter(|v| *v != 0)?;
        let (major, minor, tertiary) = (raw >> 16, raw >> 8 & 0xff, raw & 0xff);
        Some(if tertiary == 0 {
            format!("{major}.{minor}")
        } else {
            format!("{major}.{minor}.{tertiary}")
        })
    }

    /// WCTEMP: above this the controller warns.
    pub fn warning_celsius(&self) -> Option<Celsius> {
        le16(&self.bytes, 266).and_then(celsius_from_kelvin)
    }

    /// CCTEMP: above this it is about to shut down.
    pub fn critical_celsius(&self) -> Option<Celsius> {
        le16(&self.bytes, 268).and_then(celsius_from_kelvin)
    }

    /// HCTMA bit 0: the host can set throttling temperatures.
    pub fn host_thermal_management(&self) -> Option<bool> {
        le16(&self.bytes, 322).map(|v| v & 1 != 0)
    }

    /// MNTMT, the lowest throttling temperature that the host may set.
    pub fn min_thermal_management_celsius(&self) -> Option<Celsius> {
        le16(&self.bytes, 324).and_then(celsius_from_kelvin)
    }

    /// MXTMT, the highest.
    pub fn max_thermal_management_celsius(&self) -> Option<Celsius> {
        le16(&self.bytes, 326).and_then(celsius_from_kelvin)
    }

    /// TNVMCAP: total capacity in bytes; 0 means that it is not reported.
    pub fn capacity_bytes(&self) -> Option<u128> {
        le128(&self.bytes, 280).filter(|v| *v != 0)
    }

    /// NN: number of namespaces.
    pub fn namespaces(&self) -> Option<u32> {
        le32(&self.bytes, 516)
    }

    /// ONCS bit 2: DATASET MANAGEMENT, NVMe's TRIM.
    pub fn dataset_management(&self) -> Option<bool> {
        le16(&self.bytes, 520).map(|v| v & 1 << 2 != 0)
    }

    /// ONCS bit 3: WRITE ZEROES.
    pub fn write_zeroes(&self) -> Option<bool> {
        le16(&self.bytes, 520).map(|v| v & 1 << 3 != 0)
    }

    /// VWC bit 0: there is a volatile write cache.
    pub fn volatile_write_cache(&self) -> Option<bool> {
        self.bytes.get(525).map(|v| v & 1 != 0)
    }

    /// OACS bit 4: self-tests.
    pub fn self_test(&self) -> Option<bool> {
        le16(&self.bytes, 256).map(|v| v & 1 << 4 != 0)
    }

    /// SUBNQN.
    pub fn subsystem_name(&self) -> Option<String> {
        self.field(768, 1024)
    }

    /// Power states 0 to NPSS, as far as they arrived.
    pub fn power_states(&self) -> Vec<PowerState> {
        let last = self.bytes.get(263).copied().unwrap_or_default().min(31);
        (0..=last)
            .filter_map(|state| {
                let start = 2048 + 32 * usize::from(state);
                let d = self.bytes.get(start..start + 32)?;
                let flags = *d.get(3)?;
                let unit_uw = if flags & 1 != 0 { 100 } else { 10_000 };
                Some(PowerState {
                    state,
                    max_power_uw: le16(d, 0).filter(|p| *p != 0).map(|p| u64::from(p) * unit_uw),
                    non_operational: flags & 2 != 0,
                    entry_latency_us: le32(d, 4)?,
                    exit_latency_us: le32(d, 8)?,
                })
            })
            .collect()
    }

    /// Whether a controller can have sent this: printable strings and a vendor.
    pub fn is_plausible(&self) -> bool {
        let printable = |start, end| {
            self.bytes
                .get(start..end)
                .is_some_and(|f: &[u8]| f.iter().all(|b| *b == 0 || (0x20..0x7f).contains(b)))
        };
        printable(4, 24)
            && printable(24, 64)
            && printable(64, 72)
            && self.model().is_some()
            && self.firmware().is_some()
            && self.vendor_id().is_some_and(|v| v != 0 && v != 0xffff)
    }
}

struct Counter(u128);

impl Serialize for Counter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_counter(&self.0, serializer)
    }
}

/// The numbers by their names in the specification.
struct Numbers<'a>(&'a Controller);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            FIELDS
                .iter()
                .filter_map(|&(name, offset, len)| Some((name, Counter(self.0.read(offset, len)?)))),
        )
    }
}

impl Serialize for Controller {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        macro_rules! known {
            ($($name:literal => $value:expr),* $(,)?) => {
                $(if let Some(value) = $value { map.serialize_entry($name, &value)?; })*
            };
        }
        known! {
            "model" => self.model(),
            "serial" => self.serial(),
            "firmware" => self.firmware(),
            "vendor_id" => self.vendor_id(),
            "subsystem_vendor_id" => le16(&self.bytes, 2),
            "ieee_oui" => self.ieee_oui(),
            "controller_id" => le16(&self.bytes, 78),
            "version" => self.version(),
            "subsystem_name" => self.subsystem_name(),
            "capacity_bytes" => self.capacity_bytes().map(Counter),
            "unallocated_bytes" => le128(&self.bytes, 296).filter(|_| self.capacity_bytes().is_some()).map(Counter),
            "namespaces" => self.namespaces(),
            "warning_celsius" => self.warning_celsius(),
            "critical_celsius" => self.critical_celsius(),
            "host_thermal_management" => self.host_thermal_management(),
            "min_thermal_management_celsius" => self.min_thermal_management_celsius(),
            "max_thermal_management_celsius" => self.max_thermal_management_celsius(),
            "dataset_management" => self.dataset_management(),
            "write_zeroes" => self.write_zeroes(),
            "volatile_write_cache" => self.volatile_write_cache(),
            "self_test" => self.self_test(),
        }
        let states = self.power_states();
        if !states.is_empty() {
            map.serialize_entry("power_states", &states)?;
        }
        map.serialize_entry("fields", &Numbers(self))?;
        map.serialize_entry("truncated", &(self.bytes.len() < IDENTIFY_BYTES))?;
        map.end()
    }
}

/// One LBA format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LbaFormat {
    /// Its index.
    pub index: u8,
    /// Sector length in bytes.
    pub sector_bytes: u64,
    /// Metadata per sector in bytes.
    pub metadata_bytes: u16,
    /// 0 best, 3 degraded.
    pub relative_performance: u8,
    /// The namespace is formatted with it.
    pub in_use: bool,
}

/// Identify Namespace data, 4096 bytes (NVM Express NVM Command Set Specification, "Identify Namespace Data Structure").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Namespace {
    /// NSZE: size in sectors.
    pub size_sectors: u64,
    /// NCAP: sectors that may be allocated.
    pub capacity_sectors: u64,
    /// NUSE: sectors that are allocated.
    pub used_sectors: u64,
    /// Length of one sector in bytes, by the format in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sector_bytes: Option<u64>,
    /// NSFEAT bit 0: thin provisioning.
    pub thin_provisioning: bool,
    /// DLFEAT bits 2:0: what deallocated sectors read as: 0 not reported, 1 zeroes, 2 FFh.
    pub deallocated_read: u8,
    /// LBA formats.
    pub formats: Vec<LbaFormat>,
}

impl Namespace {
    /// Reads Identify Namespace data.
    ///
    /// # Errors
    /// Fewer than 192 bytes, or a size of 0: an inactive namespace answers with zeroes.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        const STRUCTURE: &str = "NVMe Identify Namespace data";
        let too_short = || WireError::truncated(STRUCTURE, bytes.len(), IDENTIFY_BYTES);
        let byte = |offset: usize| bytes.get(offset).copied().ok_or_else(too_short);
        let number = |offset: usize| le64(bytes, offset).ok_or_else(too_short);
        byte(191)?;
        let size_sectors = number(0)?;
        if size_sectors == 0 {
            return Err(WireError {
                structure: STRUCTURE,
                offset_bytes: 0,
                why: "a size of 0: the namespace is not active".to_owned(),
            });
        }
        let current = (byte(26)? & 0x0f) | (byte(26)? >> 1 & 0x30);
        let last = byte(25)?.min(63);
        let formats: Vec<_> = (0..=last)
            .filter_map(|index| {
                let raw = le32(bytes, 128 + 4 * usize::from(index))?;
                let exponent = raw >> 16 & 0xff;
                Some(LbaFormat {
                    index,
                    sector_bytes: 1u64.checked_shl(exponent).filter(|_| exponent >= 9)?,
                    metadata_bytes: (raw & 0xffff) as u16,
                    relative_performance: (raw >> 24 & 0x03) as u8,
                    in_use: index == current,
                })
            })
            .collect();
        Ok(Self {
            size_sectors,
            capacity_sectors: number(8)?,
            used_sectors: number(16)?,
            sector_bytes: formats.iter().find(|f| f.in_use).map(|f| f.sector_bytes),
            thin_provisioning: byte(24)? & 1 != 0,
            deallocated_read: byte(33)? & 0x07,
            formats,
        })
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
        bytes
            .get_mut(offset..offset + value.len())
            .unwrap()
            .copy_from_slice(value);
    }

    fn controller() -> Vec<u8> {
        let mut bytes = vec![0; IDENTIFY_BYTES];
        put(&mut bytes, 0, &[0x4d, 0x14]);
        put(&mut bytes, 4, b"SN0123              ");
        put(&mut bytes, 24, b"MODEL                                   ");
        put(&mut bytes, 64, b"FW1.0   ");
        put(&mut bytes, 80, &[0, 4, 1, 0]);
        put(&mut bytes, 263, &[1]);
        put(&mut bytes, 266, &[0x5c, 1, 0x61, 1]);
        put(&mut bytes, 520, &[0x0c, 0]);
        put(&mut bytes, 2048, &[0x58, 0x02]);
        put(&mut bytes, 2080, &[0xe8, 0x03, 0, 0x03, 5]);
        bytes
    }

    #[test]
    fn the_first_512_bytes_leave_the_rest_unknown() {
        let bytes = controller();
        let whole = Controller::parse(&bytes).unwrap();
        assert!(whole.is_plausible());
        assert_eq!(whole.warning_celsius(), Some(Celsius(75)));
        assert_eq!(whole.dataset_management(), Some(true));
        assert_eq!(whole.version().as_deref(), Some("1.4"));
        let half = Controller::parse(bytes.get(..512).unwrap()).unwrap();
        assert_eq!(half.model().as_deref(), Some("MODEL"));
        assert_eq!(half.dataset_management(), None);
        assert!(half.power_states().is_empty());
        assert!(Controller::parse(&bytes[..71]).is_err());
    }

    #[test]
    fn power_scales_differ_by_state() {
        let states = Controller::parse(&controller()).unwrap().power_states();
        let power: Vec<_> = states
            .iter()
            .map(|s| (s.max_power_uw, s.non_operational))
            .collect();
        assert_eq!(power, [(Some(6_000_000), false), (Some(100_000), true)]);
    }

    #[test]
    fn namespace_format_in_use_gives_the_sector() {
        let mut bytes = vec![0; 512];
        put(&mut bytes, 0, &[0, 0, 0, 1]);
        put(&mut bytes, 25, &[1, 1]);
        put(&mut bytes, 128, &[0, 0, 9, 2, 8, 0, 12, 0]);
        let namespace = Namespace::parse(&bytes).unwrap();
        assert_eq!(namespace.sector_bytes, Some(4096));
        assert_eq!(namespace.formats.len(), 2);
        assert!(Namespace::parse(&[0; 512]).is_err());
    }
}
