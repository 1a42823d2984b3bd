//! SMART / Health Information, log page 02h.

use std::io::Cursor;

use binrw::BinRead;
use serde::{Serialize, Serializer};

use super::{celsius_from_kelvin, serialize_counter};
use crate::units::Celsius;
use crate::wire::WireError;

const STRUCTURE: &str = "NVMe SMART / Health Information log";
/// Length of the log page.
pub const SMART_LOG_BYTES: usize = 512;
/// All counters end here; bridges that return less return nothing usable.
const SMALLEST_BYTES: usize = 192;
/// One data unit is a thousand sectors of 512 bytes.
const DATA_UNIT_BYTES: u128 = 512_000;

bitflags::bitflags! {
    /// Critical Warning, byte 0.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct CriticalWarning: u8 {
        /// Available spare is below its threshold.
        const SPARE_LOW = 1 << 0;
        /// A temperature is over or under a threshold.
        const TEMPERATURE = 1 << 1;
        /// Reliability is degraded by media errors.
        const RELIABILITY_DEGRADED = 1 << 2;
        /// The medium has become read-only.
        const READ_ONLY = 1 << 3;
        /// The volatile memory backup device has failed.
        const BACKUP_FAILED = 1 << 4;
        /// The persistent memory region has become read-only or unreliable.
        const PMR_UNRELIABLE = 1 << 5;
    }
}

impl Serialize for CriticalWarning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter_names().map(|(name, _)| name.to_ascii_lowercase()))
    }
}

/// One temperature sensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sensor {
    /// 1 to 8.
    pub sensor: u8,
    /// As it stands, in kelvin by the specification. Some controllers put °C here.
    pub kelvin: u16,
    /// In °C; absent when no controller can be that cold or hot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub celsius: Option<Celsius>,
}

/// The chosen temperature with its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Temperature {
    /// In °C.
    pub celsius: Celsius,
    /// `nvme_composite`.
    pub source: &'static str,
}

/// SMART / Health Information, log page 02h, 512 bytes (NVM Express Base Specification 2.0, "SMART / Health Information").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SmartLog {
    /// Critical Warning as it stands.
    pub critical_warning: u8,
    /// Names of its bits.
    pub critical_warnings: CriticalWarning,
    /// Composite temperature, if the controller reports one that can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// Composite temperature as it stands, in kelvin.
    pub composite_kelvin: u16,
    /// Temperature sensors that are implemented.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sensors: Vec<Sensor>,
    /// Available spare.
    pub available_spare_percent: u8,
    /// Below this the spare is low.
    pub available_spare_threshold_percent: u8,
    /// Percentage used: an estimate of the vendor, may exceed 100; 255 means 255 or more.
    pub percentage_used: u8,
    /// Endurance Group Critical Warning Summary.
    pub endurance_group_critical_warning: u8,
    /// Data units read, in thousands of 512 bytes.
    #[serde(serialize_with = "serialize_counter")]
    pub data_units_read: u128,
    /// The same in bytes.
    #[serde(serialize_with = "serialize_counter")]
    pub read_bytes: u128,
    /// Data units written, in thousands of 512 bytes.
    #[serde(serialize_with = "serialize_counter")]
    pub data_units_written: u128,
    /// The same in bytes.
    #[serde(serialize_with = "serialize_counter")]
    pub written_bytes: u128,
    /// Read commands.
    #[serde(serialize_with = "serialize_counter")]
    pub host_read_commands: u128,
    /// Write commands.
    #[serde(serialize_with = "serialize_counter")]
    pub host_write_commands: u128,
    /// Time with commands outstanding, in minutes.
    #[serde(serialize_with = "serialize_counter")]
    pub controller_busy_minutes: u128,
    /// Power cycles.
    #[serde(serialize_with = "serialize_counter")]
    pub power_cycles: u128,
    /// Power-on hours; time in low power states may be left out.
    #[serde(serialize_with = "serialize_counter")]
    pub power_on_hours: u128,
    /// Power lost without notice.
    #[serde(serialize_with = "serialize_counter")]
    pub unsafe_shutdowns: u128,
    /// Media and data integrity errors.
    #[serde(serialize_with = "serialize_counter")]
    pub media_errors: u128,
    /// Error Information log entries over the controller's life.
    #[serde(serialize_with = "serialize_counter")]
    pub error_log_entries: u128,
    /// Time above the warning temperature, in minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning_temp_minutes: Option<u32>,
    /// Time above the critical temperature, in minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_temp_minutes: Option<u32>,
    /// Times that the controller throttled lightly (thermal management temperature 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thermal_1_transitions: Option<u32>,
    /// Times that it throttled heavily (thermal management temperature 2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thermal_2_transitions: Option<u32>,
    /// Seconds throttled lightly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thermal_1_seconds: Option<u32>,
    /// Seconds throttled heavily.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thermal_2_seconds: Option<u32>,
    /// Fewer than 512 bytes arrived; what lies behind them is unknown.
    pub truncated: bool,
}

/// [`SmartLog`] as it lies in its page; bridges that cut it lose whole parts at the end.
#[derive(BinRead)]
#[br(little)]
struct WireSmartLog {
    critical_warning: u8,
    composite_kelvin: u16,
    available_spare_percent: u8,
    available_spare_threshold_percent: u8,
    percentage_used: u8,
    endurance_group_critical_warning: u8,
    /// Byte 32.
    #[br(pad_before = 25)]
    data_units_read: u128,
    data_units_written: u128,
    host_read_commands: u128,
    host_write_commands: u128,
    controller_busy_minutes: u128,
    power_cycles: u128,
    power_on_hours: u128,
    unsafe_shutdowns: u128,
    media_errors: u128,
    error_log_entries: u128,
    /// Byte 192.
    #[br(try)]
    warning_temp_minutes: Option<u32>,
    #[br(try)]
    critical_temp_minutes: Option<u32>,
    /// Byte 200.
    #[br(try)]
    sensors_kelvin: Option<[u16; 8]>,
    /// Byte 216.
    #[br(try)]
    thermal_1_transitions: Option<u32>,
    #[br(try)]
    thermal_2_transitions: Option<u32>,
    #[br(try)]
    thermal_1_seconds: Option<u32>,
    #[br(try)]
    thermal_2_seconds: Option<u32>,
}

impl SmartLog {
    /// Reads log page 02h.
    ///
    /// # Errors
    /// Fewer than 192 bytes: the counters end there.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        if bytes.len() < SMALLEST_BYTES {
            return Err(WireError::truncated(STRUCTURE, bytes.len(), SMART_LOG_BYTES));
        }
        let wire =
            WireSmartLog::read(&mut Cursor::new(bytes)).map_err(|e| WireError::from_binrw(STRUCTURE, &e))?;
        let sensors = wire.sensors_kelvin.unwrap_or_default();
        Ok(Self {
            critical_warning: wire.critical_warning,
            critical_warnings: CriticalWarning::from_bits_retain(wire.critical_warning),
            temperature: celsius_from_kelvin(wire.composite_kelvin).map(|celsius| Temperature {
                celsius,
                source: "nvme_composite",
            }),
            composite_kelvin: wire.composite_kelvin,
            sensors: (1u8..)
                .zip(sensors)
                .filter(|(_, kelvin)| *kelvin != 0)
                .map(|(sensor, kelvin)| Sensor {
                    sensor,
                    kelvin,
                    celsius: celsius_from_kelvin(kelvin),
                })
                .collect(),
            available_spare_percent: wire.available_spare_percent,
            available_spare_threshold_percent: wire.available_spare_threshold_percent,
            percentage_used: wire.percentage_used,
            endurance_group_critical_warning: wire.endurance_group_critical_warning,
            data_units_read: wire.data_units_read,
            read_bytes: wire.data_units_read.saturating_mul(DATA_UNIT_BYTES),
            data_units_written: wire.data_units_written,
            written_bytes: wire.data_units_written.saturating_mul(DATA_UNIT_BYTES),
            host_read_commands: wire.host_read_commands,
            host_write_commands: wire.host_write_commands,
            controller_busy_minutes: wire.controller_busy_minutes,
            power_cycles: wire.power_cycles,
            power_on_hours: wire.power_on_hours,
            unsafe_shutdowns: wire.unsafe_shutdowns,
            media_errors: wire.media_errors,
            error_log_entries: wire.error_log_entries,
            warning_temp_minutes: wire.warning_temp_minutes,
            critical_temp_minutes: wire.critical_temp_minutes,
            thermal_1_transitions: wire.thermal_1_transitions,
            thermal_2_transitions: wire.thermal_2_transitions,
            thermal_1_seconds: wire.thermal_1_seconds,
            thermal_2_seconds: wire.thermal_2_seconds,
            truncated: bytes.len() < SMART_LOG_BYTES,
        })
    }

    /// Whether a controller can have sent this: a temperature, percentages in their range, and a page that is not blank.
    ///
    /// Bridges and sticks answer with zeroes, stale buffers or invented pages.
    pub fn is_plausible(&self) -> bool {
        self.temperature.is_some_and(|t| t.celsius.is_plausible())
            && self.available_spare_percent <= 100
            && self.available_spare_threshold_percent <= 100
            && self.critical_warning & 0xc0 == 0
            && self.power_on_hours < 1 << 32
            && self.data_units_written < 1 << 64
            && self.data_units_read < 1 << 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Vec<u8> {
        let mut bytes = vec![0; SMART_LOG_BYTES];
        for (offset, value) in [
            (0, 0x05),
            (1, 0x3a),
            (2, 0x01),
            (3, 100),
            (4, 10),
            (5, 2),
            (202, 0x45),
            (203, 0x01),
        ] {
            if let Some(slot) = bytes.get_mut(offset) {
                *slot = value;
            }
        }
        bytes
    }

    #[test]
    fn kelvin_becomes_celsius_and_warnings_have_names() {
        let log = SmartLog::parse(&page()).unwrap();
        assert_eq!(log.temperature.map(|t| t.celsius), Some(Celsius(41)));
        assert_eq!(
            log.sensors,
            [Sensor {
                sensor: 2,
                kelvin: 0x145,
                celsius: Some(Celsius(52))
            }]
        );
        let json = serde_json::to_value(&log).unwrap();
        assert_eq!(
            json.get("critical_warnings"),
            Some(&serde_json::json!(["spare_low", "reliability_degraded"]))
        );
        assert!(log.is_plausible());
    }

    #[test]
    fn counters_beyond_64_bits_become_text() {
        let mut bytes = page();
        bytes.get_mut(112..128).unwrap().fill(0xff);
        let json = serde_json::to_value(SmartLog::parse(&bytes).unwrap()).unwrap();
        assert_eq!(
            json.get("power_cycles"),
            Some(&serde_json::json!("340282366920938463463374607431768211455"))
        );
    }

    #[test]
    fn a_blank_or_cut_page_is_seen() {
        assert!(!SmartLog::parse(&[0; 512]).unwrap().is_plausible());
        assert!(SmartLog::parse(&[0; 191]).is_err());
        let cut = SmartLog::parse(page().get(..192).unwrap()).unwrap();
        assert_eq!((cut.warning_temp_minutes, cut.truncated), (None, true));
    }
}
