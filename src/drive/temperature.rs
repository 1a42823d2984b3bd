//! Temperature with its provenance: which source, how plausible, within which limits.
//!
//! The rule: SCT status first (standard, one command, no wear on anything), then the SMART attributes 194, 190 and the
//! others that are temperatures for this model, then page 05h of the Device Statistics. The first source with a plausible
//! value is taken; the next readings ask it first, and the others only if it fails. Models that are known to freeze when
//! SCT is polled under load are never asked for SCT.

use std::time::Duration;

use serde::Serialize;

use super::power::PowerState;
use super::{Access, Cost, DeviceRef, Drive, DriveError};
use crate::ata::devstat::DeviceStatistics;
use crate::ata::identify::{Identify, SctFeatures};
use crate::ata::sct::SctStatus;
use crate::ata::smart::{SmartData, SmartReport};
use crate::bridge::BridgeError;
use crate::bridge::taskfile::Taskfile;
use crate::scsi::cdb;
use crate::scsi::log::TemperatureLog;
use crate::transport::{Command, Status};
use crate::units::Celsius;
use crate::wire::Checksum;

/// Where a temperature comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// SCT status, byte 200.
    SctStatus,
    /// Device Statistics log, page 05h.
    Devstat,
    /// SMART attribute 194.
    #[serde(rename = "smart_194")]
    Smart194,
    /// SMART attribute 190.
    #[serde(rename = "smart_190")]
    Smart190,
    /// SMART attribute 231, where this model keeps a temperature there.
    #[serde(rename = "smart_231")]
    Smart231,
    /// Another SMART attribute that is a temperature on this model.
    SmartOther,
    /// SCSI log page 0Dh.
    #[serde(rename = "scsi_log_0d")]
    ScsiLog0d,
}

impl Source {
    /// The word that stands in every output.
    pub fn word(self) -> &'static str {
        match self {
            Self::SctStatus => "sct_status",
            Self::Devstat => "devstat",
            Self::Smart194 => "smart_194",
            Self::Smart190 => "smart_190",
            Self::Smart231 => "smart_231",
            Self::SmartOther => "smart_other",
            Self::ScsiLog0d => "scsi_log_0d",
        }
    }

    fn of_attribute(id: u8) -> Self {
        match id {
            194 => Self::Smart194,
            190 => Self::Smart190,
            231 => Self::Smart231,
            _ => Self::SmartOther,
        }
    }
}

/// A value with its source and the device's time of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub source: Source,
    /// When, on the device's clock.
    pub at: Duration,
}

/// One source's word on the temperature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceReading {
    /// Where it comes from.
    pub source: Source,
    /// What it says, °C; absent when it says that it does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub celsius: Option<Celsius>,
    /// Whether a drive that answers can have this temperature.
    pub plausible: bool,
    /// The data that it stands in have a wrong checksum.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub checksum_wrong: bool,
}

/// What the drive itself says about its temperatures, °C; absent where it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Highest specified operating temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_operating_celsius: Option<Celsius>,
    /// Lowest specified operating temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_operating_celsius: Option<Celsius>,
    /// Highest seen since power-on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cycle_max_celsius: Option<Celsius>,
    /// Lowest seen since power-on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cycle_min_celsius: Option<Celsius>,
    /// Highest ever seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime_max_celsius: Option<Celsius>,
    /// Lowest ever seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime_min_celsius: Option<Celsius>,
    /// Highest that a SMART attribute keeps beside its value; whether since power-on or ever differs by maker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_max_celsius: Option<Celsius>,
    /// Lowest that a SMART attribute keeps beside its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_min_celsius: Option<Celsius>,
}

/// All that is known of the temperature.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Temperature {
    /// The chosen value, °C; absent when no source is plausible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub celsius: Option<Celsius>,
    /// Its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Every source that was asked.
    pub readings: Vec<SourceReading>,
    /// The drive's own limits and extremes.
    pub limits: Limits,
    /// Plausible sources lie more than 5 °C apart.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sources_disagree: bool,
}

/// Document of `temp`: `drivethru-temp/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TempReport {
    /// `drivethru-temp/1`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// When, RFC 3339; a fixed epoch on `sim:`.
    pub time: String,
    /// Which device.
    pub device: DeviceRef,
    /// The temperature.
    pub temperature: Temperature,
    /// Power state, as far as it is known.
    pub power_state: PowerState,
    /// What this reading cost; the first one includes finding the way to the drive.
    pub cost: Cost,
}

/// The source that worked last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preferred {
    Sct,
    Smart,
    Devstat,
}

/// Models that freeze or time out when SCT is polled while they write, until the next power cycle
/// (Linux, `drivers/hwmon/drivetemp.c`).
const SCT_FREEZES: &[&str] = &["TOSHIBA DT01ACA"];

/// Plausible sources may differ by so much before it is called a disagreement: sensors sit in different places.
const AGREE_WITHIN_CELSIUS: i16 = 5;

impl Temperature {
    fn add(&mut self, source: Source, celsius: Option<Celsius>) {
        let plausible = celsius.is_some_and(Celsius::is_plausible);
        self.readings.push(SourceReading {
            source,
            celsius,
            plausible,
            checksum_wrong: false,
        });
        if plausible && self.celsius.is_none() {
            self.celsius = celsius;
            self.source = Some(source);
        }
        let plausible = self
            .readings
            .iter()
            .filter(|r| r.plausible)
            .filter_map(|r| r.celsius);
        let (low, high) = (plausible.clone().min(), plausible.max());
        self.sources_disagree = low
            .zip(high)
            .is_some_and(|(low, high)| high.0 - low.0 > AGREE_WITHIN_CELSIUS);
    }

    /// The chosen value as a reading at time `at`.
    pub fn reading(&self, at: Duration) -> Option<Reading<Celsius>> {
        Some(Reading {
            value: self.celsius?,
            source: self.source?,
            at,
        })
    }

    pub(super) fn add_sct(&mut self, status: &SctStatus) {
        let sct = &status.temperature;
        self.add(Source::SctStatus, sct.celsius);
        let limits = &mut self.limits;
        // A drive that leaves these bytes zero says nothing with them.
        let said = |c: Option<Celsius>| c.filter(|c| c.is_plausible());
        limits.max_operating_celsius = limits.max_operating_celsius.or(said(sct.op_limit_max));
        limits.power_cycle_max_celsius = limits.power_cycle_max_celsius.or(said(sct.power_cycle_max));
        limits.power_cycle_min_celsius = limits.power_cycle_min_celsius.or(said(sct.power_cycle_min));
        limits.lifetime_max_celsius = limits.lifetime_max_celsius.or(said(sct.lifetime_max));
        limits.lifetime_min_celsius = limits.lifetime_min_celsius.or(said(sct.lifetime_min));
    }

    pub(super) fn add_smart(&mut self, report: &SmartReport) {
        for candidate in report.temperature_candidates() {
            self.add(Source::of_attribute(candidate.id), candidate.celsius);
            if let (Checksum::Invalid, Some(reading)) = (report.checksum, self.readings.last_mut()) {
                reading.checksum_wrong = true;
            }
            let said = |c: Option<Celsius>| c.filter(|c| c.is_plausible());
            self.limits.recorded_max_celsius = self.limits.recorded_max_celsius.or(said(candidate.max));
            self.limits.recorded_min_celsius = self.limits.recorded_min_celsius.or(said(candidate.min));
        }
    }

    pub(super) fn add_devstat(&mut self, statistics: &DeviceStatistics) {
        let value = |offset: u16| {
            statistics
                .value(0x05, offset)
                .and_then(|v| i16::try_from(v).ok())
                .map(Celsius)
        };
        if let Some(current) = value(8) {
            self.add(Source::Devstat, Some(current));
        }
        // Each statistic has a flag that says whether it is valid, so a limit of 0 °C is one.
        let said = |offset| value(offset).filter(|c| c.is_plausible() || *c == Celsius(0));
        self.limits.max_operating_celsius = self.limits.max_operating_celsius.or(said(88));
        self.limits.min_operating_celsius = self.limits.min_operating_celsius.or(said(104));
        self.limits.lifetime_max_celsius = self.limits.lifetime_max_celsius.or(said(32));
        self.limits.lifetime_min_celsius = self.limits.lifetime_min_celsius.or(said(40));
    }
}

impl Drive {
    /// One reading: from the source that worked last time, else from the first that is plausible.
    ///
    /// # Errors
    /// Left asleep, no way through, no source with a value that can be believed, or the device failed.
    pub fn temperature(&mut self) -> Result<Temperature, DriveError> {
        self.gate_power()?;
        let mut temperature = Temperature::default();
        let order = match &self.access {
            Access::ScsiOnly(why) => {
                let why = why.clone();
                self.read_scsi_log(&mut temperature)?;
                return match temperature.celsius {
                    Some(_) => Ok(temperature),
                    None => Err(DriveError::NoPassThrough {
                        device: self.name.clone(),
                        why,
                    }),
                };
            }
            Access::Ata(_) => {
                // The one that worked last time; the others only if it fails now.
                let mut order = vec![Preferred::Sct, Preferred::Smart, Preferred::Devstat];
                order.sort_by_key(|source| Some(*source) != self.preferred);
                order
            }
        };
        let mut refused = Vec::new();
        for source in order {
            let outcome = match source {
                Preferred::Sct => self.read_sct_into(&mut temperature),
                Preferred::Smart => self.read_smart_into(&mut temperature),
                Preferred::Devstat => self.read_devstat_into(&mut temperature),
            };
            match outcome {
                Ok(()) if temperature.celsius.is_some() => {
                    self.preferred = Some(source);
                    return Ok(temperature);
                }
                Ok(()) => {}
                Err(
                    error @ (DriveError::Bridge(BridgeError::Failed { .. })
                    | DriveError::Garbage { .. }
                    | DriveError::Avoided { .. }),
                ) => refused.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Err(DriveError::NoTemperature {
            device: self.name.clone(),
            why: why_none(&temperature, &refused),
        })
    }

    /// A reading as a document, with its cost.
    ///
    /// # Errors
    /// As [`Drive::temperature`].
    pub fn temp_report(&mut self) -> Result<TempReport, DriveError> {
        let (start, before) = self.begin_report();
        let temperature = self.temperature()?;
        Ok(TempReport {
            schema: "drivethru-temp/1",
            schema_version: 1,
            time: self.clock().rfc3339(),
            device: self.device_ref(),
            temperature,
            power_state: self.power,
            cost: self.cost_since(start, before),
        })
    }

    /// SCT status where the drive has it and takes it well; `None` where it is left alone.
    pub(super) fn read_sct(&mut self) -> Result<Option<SctStatus>, DriveError> {
        if !self.identify.as_ref().is_some_and(may_read_sct) {
            return Ok(None);
        }
        let reply = self.ata("SMART READ LOG (SCT status)", Taskfile::smart_read_log(0xe0, 1))?;
        let status =
            SctStatus::parse(&reply.data.unwrap_or_default()).map_err(|source| DriveError::Garbage {
                device: self.name.clone(),
                source,
            })?;
        // A drive answers this from memory, asleep or not, and the sector says which: 1 is stand-by, 2 sleep.
        match status.state.code {
            1 | 2 => self.power = PowerState::Standby,
            _ => self.note_awake(),
        }
        Ok(Some(status))
    }

    /// SMART READ DATA.
    pub(super) fn read_smart_data(&mut self) -> Result<SmartData, DriveError> {
        let reply = self.ata("SMART READ DATA", Taskfile::smart_read_data())?;
        self.note_awake();
        SmartData::parse(&reply.data.unwrap_or_default()).map_err(|source| DriveError::Garbage {
            device: self.name.clone(),
            source,
        })
    }

    /// One page of the Device Statistics log, where the drive says that it has General Purpose Logging.
    pub(super) fn read_devstat_page(&mut self, page: u8) -> Result<Option<Vec<u8>>, DriveError> {
        if !self.identify.as_ref().is_some_and(super::has_gpl) {
            return Ok(None);
        }
        let reply = self.ata(
            "READ LOG EXT (device statistics)",
            Taskfile::read_log_ext(0x04, u16::from(page), 1),
        )?;
        self.note_awake();
        Ok(reply.data)
    }

    fn read_sct_into(&mut self, temperature: &mut Temperature) -> Result<(), DriveError> {
        if let Some(status) = self.read_sct()? {
            temperature.add_sct(&status);
        }
        Ok(())
    }

    fn read_smart_into(&mut self, temperature: &mut Temperature) -> Result<(), DriveError> {
        let data = self.read_smart_data()?;
        let report = SmartReport::build(&data, None, self.identify.as_ref());
        temperature.add_smart(&report);
        Ok(())
    }

    fn read_devstat_into(&mut self, temperature: &mut Temperature) -> Result<(), DriveError> {
        if let Some(page) = self.read_devstat_page(0x05)?
            && let Ok(statistics) = DeviceStatistics::parse(&page)
        {
            temperature.add_devstat(&statistics);
        }
        Ok(())
    }

    /// LOG SENSE page 0Dh, only of devices that claim a modern command set: old sticks may hang on it.
    fn read_scsi_log(&mut self, temperature: &mut Temperature) -> Result<(), DriveError> {
        const SPC_3: u8 = 5;
        let modern = self.inquiry.as_ref().is_some_and(|i| i.version >= SPC_3);
        let behind_bot = self.facts.driver.as_deref() == Some("usb-storage");
        if !modern || behind_bot {
            return Ok(());
        }
        let command = Command::data_in(cdb::log_sense(0x0d, 0, 64), 64, self.options.timeout);
        let completion = self.scsi(command)?;
        let page = completion.data.filter(|_| completion.status == Status::GOOD);
        if let Some(log) = page.and_then(|p| TemperatureLog::parse(&p).ok()) {
            temperature.add(Source::ScsiLog0d, log.temp_celsius);
            temperature.limits.max_operating_celsius = log.reference_celsius;
        }
        Ok(())
    }
}

fn may_read_sct(identify: &Identify) -> bool {
    let model = identify.model().unwrap_or_default();
    identify.sct().contains(SctFeatures::SCT) && !SCT_FREEZES.iter().any(|prefix| model.starts_with(prefix))
}

fn why_none(temperature: &Temperature, refused: &[String]) -> String {
    let said: Vec<String> = temperature
        .readings
        .iter()
        .map(|r| match r.celsius {
            Some(c) => format!("{} says {} °C, which no drive has", r.source.word(), c.0),
            None => format!("{} says that it is not known", r.source.word()),
        })
        .collect();
    match (said.is_empty(), refused.is_empty()) {
        (true, true) => "the drive has no sensor that it tells of".to_owned(),
        (false, _) => said.join("; "),
        (true, false) => refused.join("; "),
    }
}
