//! SMART Command Transport: status and temperature history (ACS-4, "SCT Command Transport").

use std::io::Cursor;

use binrw::BinRead;
use binrw::meta::ReadEndian;
use serde::Serialize;

use crate::units::Celsius;
use crate::wire::WireError;

const STATUS: &str = "SCT status";
const HISTORY: &str = "SCT temperature history";

/// Name and version of [`SctStatus`] as a document.
pub const STATUS_SCHEMA: &str = "drivethru-sct-status/1";
/// Name and version of [`TempHistory`] as a document.
pub const HISTORY_SCHEMA: &str = "drivethru-sct-temp-history/1";

/// A code with its name, where the standard has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The code.
    pub code: u16,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
}

/// SCT status response, 512 bytes, log E0h (ACS-4, "SCT status response").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SctStatus {
    /// Bytes 0-1: 2 or 3.
    pub format_version: u16,
    /// Bytes 2-3, by the vendor.
    pub sct_version: u16,
    /// Bytes 4-5: level of the specification.
    pub sct_level: u16,
    /// Bytes 6-9: bit 0 initialized.
    pub flags: u32,
    /// Byte 10: what the drive does.
    pub state: Named,
    /// Bytes 14-15: how the last SCT command ended.
    pub extended_status: Named,
    /// Bytes 16-17: action code of the last SCT command.
    pub action: u16,
    /// Bytes 18-19: function code of it.
    pub function: u16,
    /// Bytes 40-47.
    pub lba: u64,
    /// Bytes 200-213.
    pub temperature: SctTemperature,
    /// Bytes 214-215: `passed` (C24Fh) or `failing` (2CF4h), where the drive puts it here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smart_status: Option<&'static str>,
    /// Bytes 216-217, in milliseconds: shortest time for error recovery control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_erc_ms: Option<u32>,
    /// Bytes 480-511, by the vendor; absent if all zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor_hex: Option<String>,
}

/// Temperatures of [`SctStatus`]; 80h on the wire is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SctTemperature {
    /// Byte 200: now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub celsius: Option<Celsius>,
    /// Whether that can be: 0 comes from drives without a sensor.
    pub plausible: bool,
    /// Byte 201: lowest since power-on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cycle_min: Option<Celsius>,
    /// Byte 202: highest since power-on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cycle_max: Option<Celsius>,
    /// Byte 203: lowest ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime_min: Option<Celsius>,
    /// Byte 204: highest ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime_max: Option<Celsius>,
    /// Byte 205: highest that the drive is specified for (ACS-4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op_limit_max: Option<Celsius>,
    /// Bytes 206-209: times above the limit since reset.
    pub over_limit_count: u32,
    /// Bytes 210-213: times below the limit since reset.
    pub under_limit_count: u32,
}

fn state_name(code: u8) -> Option<&'static str> {
    Some(match code {
        0 => "active_or_idle",
        1 => "standby",
        2 => "sleep",
        3 => "self_test_in_background",
        4 => "offline_collection_in_background",
        5 => "sct_command_in_background",
        _ => return None,
    })
}

/// The extended status codes of SCT (ACS-4, "SCT extended status code").
fn extended_status_name(code: u16) -> Option<&'static str> {
    Some(match code {
        0x0000 => "completed",
        0x0001 => "invalid function code",
        0x0002 => "LBA out of range",
        0x0003 => "block count overflow",
        0x0004 => "invalid function code in error recovery control",
        0x0005 => "invalid selection code in error recovery control",
        0x0006 => "read timer below minimum",
        0x0007 => "write timer below minimum",
        0x0008 => "background operation ended by a host command",
        0x0009 => "background operation ended by an unrecoverable error",
        0x000b => "data transfer without an SCT command before it",
        0x000c => "invalid function code in feature control",
        0x000d => "invalid feature code in feature control",
        0x000e => "invalid state in feature control",
        0x000f => "invalid option flags in feature control",
        0x0010 => "invalid action code",
        0x0011 => "invalid table",
        0x0012 => "ended because security is locked",
        0x0013 => "invalid revision code",
        0x0014 => "foreground operation ended by an unrecoverable error",
        0xffff => "running in background",
        _ => return None,
    })
}

/// [`SctStatus`] as it lies in its sector.
#[derive(BinRead)]
#[br(little)]
struct WireStatus {
    #[br(assert([2, 3].contains(&format_version), "format version {format_version}, expected [2, 3]"))]
    format_version: u16,
    sct_version: u16,
    sct_level: u16,
    flags: u32,
    state: u8,
    #[br(pad_before = 3)]
    extended_status: u16,
    action: u16,
    function: u16,
    #[br(pad_before = 20)]
    lba: u64,
    /// Byte 200.
    #[br(pad_before = 152, map = Celsius::from_signed_byte)]
    current: Option<Celsius>,
    #[br(map = Celsius::from_signed_byte)]
    power_cycle_min: Option<Celsius>,
    #[br(map = Celsius::from_signed_byte)]
    power_cycle_max: Option<Celsius>,
    #[br(map = Celsius::from_signed_byte)]
    lifetime_min: Option<Celsius>,
    #[br(map = Celsius::from_signed_byte)]
    lifetime_max: Option<Celsius>,
    #[br(map = Celsius::from_signed_byte)]
    op_limit_max: Option<Celsius>,
    over_limit_count: u32,
    under_limit_count: u32,
    smart_status: u16,
    min_erc_100ms: u16,
    /// Bytes 480-511.
    #[br(pad_before = 262)]
    vendor: [u8; 32],
}

/// [`TempHistory`] as it lies in its sector.
#[derive(BinRead)]
#[br(little)]
struct WireHistory {
    #[br(assert(format_version == 2, "format version {format_version}, expected [2]"))]
    format_version: u16,
    sampling_minutes: u16,
    interval_minutes: u16,
    #[br(map = Celsius::from_signed_byte)]
    op_limit_max: Option<Celsius>,
    #[br(map = Celsius::from_signed_byte)]
    limit_max: Option<Celsius>,
    #[br(map = Celsius::from_signed_byte)]
    op_limit_min: Option<Celsius>,
    #[br(map = Celsius::from_signed_byte)]
    limit_min: Option<Celsius>,
    /// Byte 30.
    #[br(pad_before = 20, assert(size != 0, "a history of no entries"))]
    size: u16,
    index: u16,
    /// Bytes 34-511.
    ring: [u8; 478],
}

/// Reads one of the two; both are a whole sector.
fn read<T: for<'a> BinRead<Args<'a> = ()> + ReadEndian>(
    structure: &'static str,
    data: &[u8],
) -> Result<T, WireError> {
    if data.len() < 512 {
        return Err(WireError::truncated(structure, data.len(), 512));
    }
    T::read(&mut Cursor::new(data)).map_err(|e| WireError::from_binrw(structure, &e))
}

impl SctStatus {
    /// Takes the first 512 bytes.
    ///
    /// # Errors
    /// Fewer bytes, or a format version other than 2 and 3: all-zero and foreign sectors end here.
    pub fn parse(data: &[u8]) -> Result<Self, WireError> {
        let wire: WireStatus = read(STATUS, data)?;
        // Format 2 began without lowest temperatures: no drive has seen both of them at exactly 0.
        let zero = Some(Celsius(0));
        let has_lowest = wire.power_cycle_min != zero || wire.lifetime_min != zero;
        Ok(Self {
            format_version: wire.format_version,
            sct_version: wire.sct_version,
            sct_level: wire.sct_level,
            flags: wire.flags,
            state: Named {
                code: u16::from(wire.state),
                name: state_name(wire.state),
            },
            extended_status: Named {
                code: wire.extended_status,
                name: extended_status_name(wire.extended_status),
            },
            action: wire.action,
            function: wire.function,
            lba: wire.lba,
            temperature: SctTemperature {
                celsius: wire.current,
                plausible: wire.current.is_some_and(Celsius::is_plausible),
                power_cycle_min: wire.power_cycle_min.filter(|_| has_lowest),
                power_cycle_max: wire.power_cycle_max,
                lifetime_min: wire.lifetime_min.filter(|_| has_lowest),
                lifetime_max: wire.lifetime_max,
                op_limit_max: wire.op_limit_max.filter(|c| c.0 > 0),
                over_limit_count: wire.over_limit_count,
                under_limit_count: wire.under_limit_count,
            },
            smart_status: match wire.smart_status {
                0xc24f => Some("passed"),
                0x2cf4 => Some("failing"),
                _ => None,
            },
            min_erc_ms: Some(u32::from(wire.min_erc_100ms) * 100).filter(|ms| *ms != 0),
            vendor_hex: wire
                .vendor
                .iter()
                .any(|&b| b != 0)
                .then(|| crate::text::hex(&wire.vendor)),
        })
    }

    /// Whether an SCT command runs in the background: none may be sent until it ends.
    pub fn is_busy(&self) -> bool {
        self.extended_status.code == 0xffff
    }
}

/// SCT temperature history table, 512 bytes, log E1h after a data table command (ACS-4, "HDA Temperature History
/// table").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TempHistory {
    /// Bytes 0-1: 2.
    pub format_version: u16,
    /// Bytes 2-3: minutes between two measurements.
    pub sampling_minutes: u16,
    /// Bytes 4-5: minutes between two entries.
    pub interval_minutes: u16,
    /// Byte 6: highest recommended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op_limit_max: Option<Celsius>,
    /// Byte 7: highest allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_max: Option<Celsius>,
    /// Byte 8: lowest recommended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op_limit_min: Option<Celsius>,
    /// Byte 9: lowest allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_min: Option<Celsius>,
    /// Bytes 30-31: entries in the ring, as claimed.
    pub size: u16,
    /// Bytes 32-33: position of the newest entry.
    pub index: u16,
    /// The entries from the oldest to the newest; `null` where the drive took no sample. Empty if `index` lies outside
    /// the ring, for then no order is known.
    pub samples: Vec<Option<Celsius>>,
    /// The ring as it lies in the table.
    pub ring: Vec<Option<Celsius>>,
}

impl TempHistory {
    /// Takes the first 512 bytes.
    ///
    /// # Errors
    /// Fewer bytes, a format version other than 2, or a ring without entries.
    pub fn parse(data: &[u8]) -> Result<Self, WireError> {
        let wire: WireHistory = read(HISTORY, data)?;
        let ring: Vec<Option<Celsius>> = wire
            .ring
            .iter()
            .take(usize::from(wire.size))
            .map(|&b| Celsius::from_signed_byte(b))
            .collect();
        let mut samples = Vec::new();
        if usize::from(wire.index) < ring.len() {
            samples.clone_from(&ring);
            samples.rotate_left((usize::from(wire.index) + 1) % ring.len());
        }
        Ok(Self {
            format_version: wire.format_version,
            sampling_minutes: wire.sampling_minutes,
            interval_minutes: wire.interval_minutes,
            op_limit_max: wire.op_limit_max,
            limit_max: wire.limit_max,
            op_limit_min: wire.op_limit_min,
            limit_min: wire.limit_min,
            size: wire.size,
            index: wire.index,
            samples,
            ring,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    fn put(bytes: &mut [u8; 512], offset: usize, values: &[u8]) {
        for (slot, value) in bytes.iter_mut().skip(offset).zip(values) {
            *slot = *value;
        }
    }

    fn status() -> [u8; 512] {
        let mut bytes = [0; 512];
        put(&mut bytes, 0, &[3, 0, 0x0a, 2, 1, 0, 1, 0, 0, 0, 5]);
        put(&mut bytes, 14, &[0xff, 0xff, 5, 0, 1, 0]);
        put(
            &mut bytes,
            200,
            &[
                0xf6, 0xf1, 40, 0x80, 61, 69, 1, 2, 0, 0, 7, 0, 0, 0, 0xf4, 0x2c, 65, 0,
            ],
        );
        bytes
    }

    #[test]
    fn status_fields_stand_where_the_standard_has_them() {
        let status = SctStatus::parse(&status()).unwrap();
        assert_eq!(
            (status.format_version, status.sct_version, status.flags),
            (3, 0x020a, 1)
        );
        assert_eq!(status.state.name, Some("sct_command_in_background"));
        assert!(status.is_busy());
        assert_eq!((status.action, status.function), (5, 1));
        let t = status.temperature;
        assert_eq!((t.celsius, t.plausible), (Some(Celsius(-10)), true));
        assert_eq!(
            (t.power_cycle_min, t.power_cycle_max),
            (Some(Celsius(-15)), Some(Celsius(40)))
        );
        assert_eq!((t.lifetime_min, t.lifetime_max), (None, Some(Celsius(61))));
        assert_eq!(
            (t.op_limit_max, t.over_limit_count, t.under_limit_count),
            (Some(Celsius(69)), 513, 7)
        );
        assert_eq!(status.smart_status, Some("failing"));
        assert_eq!(status.min_erc_ms, Some(6500));
        let json = serde_json::to_value(&status).unwrap();
        assert!(json["temperature"].get("lifetime_min").is_none());
    }

    #[test]
    fn lowest_temperatures_that_were_never_filled_in_are_unknown() {
        let lowest = |power_cycle: u8, lifetime: u8| {
            let mut bytes = status();
            put(&mut bytes, 201, &[power_cycle, 40, lifetime]);
            let t = SctStatus::parse(&bytes).unwrap().temperature;
            (t.power_cycle_min.map(|c| c.0), t.lifetime_min.map(|c| c.0))
        };
        assert_eq!(lowest(0, 0), (None, None));
        assert_eq!(lowest(0, 0xfb), (Some(0), Some(-5)));
        assert_eq!(lowest(20, 0), (Some(20), Some(0)));
    }

    #[test]
    fn foreign_sectors_are_refused() {
        assert!(SctStatus::parse(&[0; 512]).unwrap_err().why.contains("version 0"));
        assert!(SctStatus::parse(&[0xff; 512]).is_err());
        assert!(SctStatus::parse(&status()[..511]).is_err());
        let mut version_1 = status();
        version_1[0] = 1;
        assert!(SctStatus::parse(&version_1).is_err());
        let mut version_2 = status();
        version_2[0] = 2;
        assert!(SctStatus::parse(&version_2).is_ok());
    }

    fn history(size: u8, index: u8, ring: &[u8]) -> [u8; 512] {
        let mut bytes = [0x80; 512];
        put(&mut bytes, 0, &[2, 0, 1, 0, 10, 0, 60, 70, 0xfb, 0x80]);
        put(&mut bytes, 30, &[size, 0, index, 0]);
        put(&mut bytes, 34, ring);
        bytes
    }

    #[test]
    fn history_is_told_from_the_oldest_to_the_newest() {
        let table = TempHistory::parse(&history(5, 1, &[30, 31, 27, 0x80, 0xfe])).unwrap();
        let samples: Vec<_> = table.samples.iter().map(|s| s.map(|c| c.0)).collect();
        assert_eq!(samples, [Some(27), None, Some(-2), Some(30), Some(31)]);
        let ring: Vec<_> = table.ring.iter().map(|s| s.map(|c| c.0)).collect();
        assert_eq!(ring, [Some(30), Some(31), Some(27), None, Some(-2)]);
        assert_eq!((table.op_limit_min, table.limit_min), (Some(Celsius(-5)), None));
        assert_eq!((table.sampling_minutes, table.interval_minutes), (1, 10));
        // The newest in the last place: nothing wraps.
        let table = TempHistory::parse(&history(3, 2, &[1, 2, 3])).unwrap();
        assert_eq!(table.samples, table.ring);
    }

    #[test]
    fn history_with_a_wrong_index_has_no_order() {
        let table = TempHistory::parse(&history(3, 3, &[1, 2, 3])).unwrap();
        assert!(table.samples.is_empty());
        assert_eq!(table.ring.len(), 3);
        assert!(TempHistory::parse(&history(0, 0, &[])).is_err());
        let mut huge = history(3, 0, &[]);
        huge[31] = 0xff;
        assert_eq!(TempHistory::parse(&huge).unwrap().ring.len(), 478);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..600), version in 0u8..4) {
            if let Some(first) = bytes.get_mut(0) { *first = version; }
            if let Some(second) = bytes.get_mut(1) { *second = 0; }
            let _ = SctStatus::parse(&bytes);
            if let Ok(table) = TempHistory::parse(&bytes) {
                prop_assert!(table.samples.is_empty() || table.samples.len() == table.ring.len());
            }
        }
    }
}
