//! The SMART document: attributes with names, temperature, hours, wear and what has failed.

use serde::Serialize;

use super::{
    Attribute, AttributeFlags, OfflineCapabilities, OfflineStatus, SelfTestStatus, SmartCapabilities,
    SmartData, Thresholds,
};
use crate::ata::attributes::{
    AttributeTable, Definition, Duration, Meaning, RawByte, RawFormat, RawHex, RawText, TemperatureSource,
    by_preference,
};
use crate::ata::identify::{FeatureSets, Identify};
use crate::units::Celsius;
use crate::wire::Checksum;

/// Name and version of [`SmartReport`].
pub const SCHEMA: &str = "drivethru-smart-data/1";

/// Whether an attribute is or was at or below its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenFailed {
    /// Its value is.
    Now,
    /// Its worst value was.
    Past,
}

/// One attribute in the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttributeReport {
    /// Number.
    pub id: u8,
    /// Name as the common tools print it.
    pub name: &'static str,
    /// Normalized value.
    pub value: u8,
    /// Lowest normalized value so far.
    pub worst: u8,
    /// Raw value as one number: 48 bits, or more where the packing takes in the bytes beside them.
    pub raw: u64,
    /// Raw value, most significant byte first.
    pub raw_hex: RawHex,
    /// Raw value by the packing that is known for it.
    pub raw_text: RawText,
    /// Threshold, where a valid threshold sector was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u8>,
    /// A failure is announced by this attribute, not wear.
    pub prefailure: bool,
    /// Flags.
    pub flags: FlagsReport,
    /// Failed against its threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_failed: Option<WhenFailed>,
    /// What it measures, as far as this program acts on it.
    #[serde(skip_serializing_if = "is_other")]
    pub meaning: Meaning,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_other(meaning: &Meaning) -> bool {
    *meaning == Meaning::Other
}

/// Attribute flags by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FlagsReport {
    /// All 16 bits.
    pub value: u16,
    /// Bit 1.
    pub updated_online: bool,
    /// Bit 2.
    pub performance: bool,
    /// Bit 3.
    pub error_rate: bool,
    /// Bit 4.
    pub event_count: bool,
    /// Bit 5.
    pub self_preserving: bool,
}

/// A temperature that an attribute tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TemperatureReport {
    /// Now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub celsius: Option<Celsius>,
    /// Which attribute.
    pub source: TemperatureSource,
    /// Lowest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Celsius>,
    /// Highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Celsius>,
    /// Number of the attribute.
    pub id: u8,
}

/// Off-line collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OfflineReport {
    /// Byte 362 and its meaning.
    #[serde(flatten)]
    pub status: OfflineStatus,
    /// Seconds that a collection takes.
    pub completion_seconds: u16,
}

/// Self-tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SelfTestReport {
    /// Byte 363 and its meaning; absent where the drive has no self-test.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub status: Option<SelfTestStatus>,
    /// Minutes for a short test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_minutes: Option<u16>,
    /// Minutes for an extended test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extended_minutes: Option<u16>,
    /// Minutes for a conveyance test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conveyance_minutes: Option<u16>,
}

/// Capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CapabilitiesReport {
    /// Byte 367.
    pub offline_bits: u8,
    /// Bytes 368-369.
    pub smart_bits: u16,
    /// EXECUTE OFF-LINE IMMEDIATE.
    pub execute_offline: bool,
    /// A new command aborts collection.
    pub abort_on_command: bool,
    /// Off-line read scan.
    pub surface_scan: bool,
    /// Short and extended self-test.
    pub self_test: bool,
    /// Conveyance self-test.
    pub conveyance_test: bool,
    /// Selective self-test.
    pub selective_test: bool,
    /// Data is saved before the drive goes to sleep.
    pub saves_before_power_mode: bool,
    /// Attribute autosave can be switched.
    pub autosave: bool,
    /// Error log, by this data or by IDENTIFY.
    pub error_logging: bool,
}

/// What SMART data says about a drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SmartReport {
    /// Checksum of the data.
    pub checksum: Checksum,
    /// Checksum of the thresholds; they are used only if it is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thresholds_checksum: Option<Checksum>,
    /// It looks like attributes at all.
    pub plausible: bool,
    /// Revision of the attribute structure.
    pub revision: u16,
    /// The attributes in the drive's order.
    pub attributes: Vec<AttributeReport>,
    /// The temperature to believe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<TemperatureReport>,
    /// Every attribute that holds a temperature, in order of preference.
    pub temperatures: Vec<TemperatureReport>,
    /// Hours with power on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_on_hours: Option<u64>,
    /// Minutes beyond them, where the drive counts finer than hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_on_minutes: Option<u8>,
    /// Times that power was switched on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cycles: Option<u64>,
    /// Life left, on drive families where the attribute for it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life_left_percent: Option<u8>,
    /// An attribute is at or below its threshold now; absent without thresholds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_now: Option<bool>,
    /// Off-line collection.
    pub offline: OfflineReport,
    /// Self-tests.
    pub self_test: SelfTestReport,
    /// Capabilities.
    pub capabilities: CapabilitiesReport,
}

/// An attribute fails when its value is not above a threshold that is not 0, except where a vendor keeps something else
/// in the value's place. A value of 0, though the standard has none, is where worn-out flash ends.
fn when_failed(attribute: &Attribute, threshold: u8, format: RawFormat) -> Option<WhenFailed> {
    let fails = |value: u8| threshold != 0 && value <= threshold;
    if format.takes(RawByte::Value) {
        None
    } else if fails(attribute.value) {
        Some(WhenFailed::Now)
    } else if fails(attribute.worst) && !format.takes(RawByte::Worst) {
        Some(WhenFailed::Past)
    } else {
        None
    }
}

fn attribute_report(attribute: &Attribute, threshold: Option<u8>, row: &Definition) -> AttributeReport {
    let has = |flag| attribute.flags.contains(flag);
    AttributeReport {
        id: attribute.id,
        name: row.name,
        value: attribute.value,
        worst: attribute.worst,
        raw: row.format.number(attribute),
        raw_hex: RawHex(row.format.number(attribute)),
        raw_text: row.format.text(attribute),
        threshold,
        prefailure: has(AttributeFlags::PREFAILURE),
        flags: FlagsReport {
            value: attribute.flags.bits(),
            updated_online: has(AttributeFlags::UPDATED_ONLINE),
            performance: has(AttributeFlags::PERFORMANCE),
            error_rate: has(AttributeFlags::ERROR_RATE),
            event_count: has(AttributeFlags::EVENT_COUNT),
            self_preserving: has(AttributeFlags::SELF_PRESERVING),
        },
        when_failed: threshold.and_then(|threshold| when_failed(attribute, threshold, row.format)),
        meaning: row.meaning,
    }
}

impl SmartReport {
    /// Gives the sectors meaning. Thresholds with a wrong checksum are reported and otherwise left aside.
    pub fn build(data: &SmartData, thresholds: Option<&Thresholds>, identify: Option<&Identify>) -> Self {
        let mut report = Self::build_with(data, thresholds, &AttributeTable::for_drive(identify));
        report.capabilities.error_logging |= identify
            .and_then(Identify::supported)
            .is_some_and(|features| features.contains(FeatureSets::SMART_ERROR_LOG));
        report
    }

    /// [`SmartReport::build`] with the rows for the drive already looked up.
    pub fn build_with(data: &SmartData, thresholds: Option<&Thresholds>, table: &AttributeTable) -> Self {
        let usable = thresholds.filter(|t| t.checksum() == Checksum::Valid);
        let known: Vec<(Attribute, Definition)> =
            data.attributes().map(|a| (a, table.definition(a.id))).collect();
        let attributes: Vec<AttributeReport> = known
            .iter()
            .map(|(a, row)| attribute_report(a, usable.and_then(|t| t.of(a.id)), row))
            .collect();
        let mut temperatures: Vec<TemperatureReport> = known
            .iter()
            .filter_map(|(a, row)| {
                let value = row.temperature(a)?;
                Some(TemperatureReport {
                    celsius: value.celsius,
                    source: TemperatureSource::from_id(a.id),
                    min: value.min,
                    max: value.max,
                    id: a.id,
                })
            })
            .collect();
        by_preference(&mut temperatures, |t| t.source);
        let find = |meaning: Meaning| known.iter().find(|(_, row)| row.meaning == meaning);
        let power_on: Option<Duration> =
            find(Meaning::PowerOnTime).and_then(|(a, row)| row.format.duration(a));
        let has = |flag| data.offline_capabilities().contains(flag);
        let failing_now = usable.map(|_| attributes.iter().any(|a| a.when_failed == Some(WhenFailed::Now)));
        Self {
            checksum: data.checksum(),
            thresholds_checksum: thresholds.map(Thresholds::checksum),
            plausible: data.is_plausible(),
            revision: data.revision(),
            attributes,
            temperature: temperatures.iter().find(|t| t.celsius.is_some()).copied(),
            temperatures,
            power_on_hours: power_on.map(|time| time.hours),
            power_on_minutes: power_on.and_then(|time| time.minutes),
            power_cycles: find(Meaning::PowerCycles)
                .map(|(a, row)| row.format.number(a))
                .filter(|cycles| *cycles <= u64::from(u32::MAX)),
            life_left_percent: known.iter().find_map(|(a, row)| row.life_left_percent(a)),
            failing_now,
            offline: OfflineReport {
                status: data.offline_status(),
                completion_seconds: data.offline_seconds(),
            },
            self_test: SelfTestReport {
                status: has(OfflineCapabilities::SELF_TEST).then(|| data.self_test_status()),
                short_minutes: data.short_test_minutes(),
                extended_minutes: data.extended_test_minutes(),
                conveyance_minutes: data.conveyance_test_minutes(),
            },
            capabilities: CapabilitiesReport {
                offline_bits: data.offline_capabilities().bits(),
                smart_bits: data.smart_capabilities().bits(),
                execute_offline: has(OfflineCapabilities::EXECUTE_IMMEDIATE),
                abort_on_command: has(OfflineCapabilities::ABORT_ON_COMMAND),
                surface_scan: has(OfflineCapabilities::SURFACE_SCAN),
                self_test: has(OfflineCapabilities::SELF_TEST),
                conveyance_test: has(OfflineCapabilities::CONVEYANCE),
                selective_test: has(OfflineCapabilities::SELECTIVE),
                saves_before_power_mode: data
                    .smart_capabilities()
                    .contains(SmartCapabilities::SAVES_BEFORE_POWER_MODE),
                autosave: data.smart_capabilities().contains(SmartCapabilities::AUTOSAVE),
                error_logging: data.error_logging(),
            },
        }
    }

    /// The temperature to believe, and where it comes from.
    pub fn temperature(&self) -> Option<(Celsius, TemperatureSource)> {
        let chosen = self.temperature.as_ref()?;
        Some((chosen.celsius?, chosen.source))
    }

    /// Every attribute that holds a temperature, the preferred one first; some may have no usable value.
    pub fn temperature_candidates(&self) -> &[TemperatureReport] {
        &self.temperatures
    }

    /// Hours with power on.
    pub fn power_on_hours(&self) -> Option<u64> {
        self.power_on_hours
    }

    /// Percent of life left.
    pub fn life_left_percent(&self) -> Option<u8> {
        self.life_left_percent
    }

    /// The attributes that are or were at or below their thresholds.
    pub fn failing(&self) -> Vec<&AttributeReport> {
        self.attributes
            .iter()
            .filter(|a| a.when_failed.is_some())
            .collect()
    }
}
