//! Health: the drive's own verdict, what its attributes say against their thresholds, wear and life left.

use serde::Serialize;

use super::power::PowerState;
use super::temperature::Temperature;
use super::{Cost, DeviceRef, Drive, DriveError};
use crate::ata::commands::OfflineTest;
use crate::ata::devstat::DeviceStatistics;
use crate::ata::gplog::{ErrorLog, LogDirectory, SelfTestLog};
use crate::ata::sct::{SctStatus, TempHistory};
use crate::ata::smart::{SmartReport, Thresholds, WhenFailed};
use crate::bridge::taskfile::Taskfile;
use crate::bridge::{BridgeError, Failure, Registers, Request};
use crate::wire::Checksum;

/// The verdict in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing speaks against the drive.
    Ok,
    /// Works, but something wants attention.
    Warning,
    /// The drive announces its failure.
    Failing,
    /// Neither the drive's own verdict nor thresholds could be read.
    Unknown,
}

/// One thing that speaks against the drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// How grave it is.
    pub verdict: Verdict,
    /// What it is, in words.
    pub what: String,
}

/// Wear of flash memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Life {
    /// Percent left; 0 when it is used up.
    pub left_percent: u8,
    /// `devstat` (page 07h) or `smart` (an attribute that is known for this family).
    pub source: &'static str,
}

/// Logs that `smart --all` reads.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Logs {
    /// Which logs there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<LogDirectory>,
    /// Summary error log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<ErrorLog>,
    /// Self-test log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_tests: Option<SelfTestLog>,
    /// Device statistics, all pages that the drive has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics: Option<DeviceStatistics>,
    /// SCT status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sct_status: Option<SctStatus>,
    /// SCT temperature history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_history: Option<TempHistory>,
}

/// Document of `smart`: `drivethru-smart/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HealthReport {
    /// `drivethru-smart/1`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// When, RFC 3339; a fixed epoch on `sim:`.
    pub time: String,
    /// Which device.
    pub device: DeviceRef,
    /// The verdict.
    pub verdict: Verdict,
    /// What it rests on.
    pub reasons: Vec<Reason>,
    /// The drive's own verdict (SMART RETURN STATUS); absent when the bridge returned no registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_assessment_passed: Option<bool>,
    /// Life left, where the drive tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life: Option<Life>,
    /// Temperature from every source that the drive offers.
    pub temperature: Temperature,
    /// Attributes, hours, cycles, self-test state.
    pub smart: SmartReport,
    /// What could not be read, and why.
    pub not_read: Vec<String>,
    /// Logs, with `--all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<Logs>,
    /// Power state.
    pub power_state: PowerState,
    /// What it cost.
    pub cost: Cost,
}

/// Most pages of the Device Statistics log that are asked for in one command: a small transfer for any bridge.
const STATISTICS_PAGES: u16 = 8;

impl Drive {
    /// Reads SMART data, thresholds, the drive's verdict, SCT status and statistics; with `all` the logs too.
    ///
    /// # Errors
    /// No way through, no SMART, left asleep, or the device failed. What the drive merely does not offer is listed in
    /// `not_read`.
    pub fn health(&mut self, all: bool) -> Result<HealthReport, DriveError> {
        let (start, before) = self.begin_report();
        self.require_ata()?;
        self.gate_power()?;
        let data = match self.read_smart_data() {
            Err(DriveError::Bridge(BridgeError::Failed { failure, .. })) if is_refusal(&failure) => {
                return Err(self.no_smart(&failure));
            }
            other => other?,
        };
        let mut not_read = Vec::new();
        let thresholds = optional(self.read_thresholds(), "thresholds", &mut not_read)?;
        if thresholds
            .as_ref()
            .is_some_and(|t| t.checksum() != Checksum::Valid)
        {
            not_read.push("thresholds: their checksum is wrong, so they are left aside".to_owned());
        }
        let passed = optional(self.self_assessment(), "the drive's own verdict", &mut not_read)?.flatten();
        if passed.is_none() && !not_read.iter().any(|n| n.starts_with("the drive's own verdict")) {
            not_read.push("the drive's own verdict: the bridge returned no registers".to_owned());
        }
        let smart = SmartReport::build(&data, thresholds.as_ref(), self.identify());
        let sct = optional(self.read_sct(), "SCT status", &mut not_read)?.flatten();
        let read = self.read_statistics(&mut not_read);
        let statistics = optional(read, "device statistics", &mut not_read)?.flatten();
        let mut temperature = Temperature::default();
        if let Some(status) = &sct {
            temperature.add_sct(status);
        }
        temperature.add_smart(&smart);
        if let Some(statistics) = &statistics {
            temperature.add_devstat(statistics);
        }
        let life = life(&smart, statistics.as_ref());
        let (verdict, reasons) = judge(passed, &smart, life.as_ref(), &temperature);
        let logs = if all {
            Some(self.read_logs(sct, statistics, &mut not_read)?)
        } else {
            None
        };
        Ok(HealthReport {
            schema: "drivethru-smart/1",
            schema_version: 1,
            time: self.clock().rfc3339(),
            device: self.device_ref(),
            verdict,
            reasons,
            self_assessment_passed: passed,
            life,
            temperature,
            smart,
            not_read,
            logs,
            power_state: self.power,
            cost: self.cost_since(start, before),
        })
    }

    /// Starts or aborts a self-test. The guard must have been told so when the drive was opened.
    ///
    /// # Errors
    /// No way through, or the drive refuses.
    pub fn self_test(&mut self, test: OfflineTest) -> Result<(), DriveError> {
        self.require_ata()?;
        self.ata(
            "SMART EXECUTE OFF-LINE IMMEDIATE",
            Taskfile::smart_execute_offline(test),
        )
        .map(drop)
    }

    fn no_smart(&self, failure: &Failure) -> DriveError {
        let smart = self.identify().map(|i| i.smart());
        let why = match (smart, failure) {
            (Some(switch), _) if switch.supported == Some(true) && switch.enabled == Some(false) => {
                "it is switched off in the drive".to_owned()
            }
            (Some(switch), _) if switch.supported == Some(false) => {
                "IDENTIFY says that it is not supported".to_owned()
            }
            (_, Failure::Aborted { status, error }) => {
                format!("the drive aborted SMART READ DATA (status {status:02x}h, error {error:02x}h)")
            }
            _ => "the bridge does not carry SMART READ DATA".to_owned(),
        };
        DriveError::NoSmart {
            device: self.name.clone(),
            why,
        }
    }

    fn read_thresholds(&mut self) -> Result<Thresholds, DriveError> {
        let reply = self.ata("SMART READ THRESHOLDS", Taskfile::smart_read_thresholds())?;
        Thresholds::parse(&reply.data.unwrap_or_default()).map_err(|source| DriveError::Garbage {
            device: self.name.clone(),
            source,
        })
    }

    fn self_assessment(&mut self) -> Result<Option<bool>, DriveError> {
        let reply = self.ata_registers("SMART RETURN STATUS", Taskfile::smart_return_status())?;
        Ok(passed(&reply.registers))
    }

    /// Device statistics in one command where the bridge carries it, page by page where it returns only the first.
    fn read_statistics(
        &mut self,
        not_read: &mut Vec<String>,
    ) -> Result<Option<DeviceStatistics>, DriveError> {
        if !self.identify().is_some_and(super::has_gpl) {
            return Ok(None);
        }
        let reply = self.ata(
            "READ LOG EXT (device statistics)",
            Taskfile::read_log_ext(0x04, 0, STATISTICS_PAGES),
        );
        let pages = match reply {
            Ok(reply) => reply.data.unwrap_or_default(),
            Err(DriveError::Bridge(BridgeError::Failed { .. })) => match self.read_devstat_page(0)? {
                Some(page) => page,
                None => return Ok(None),
            },
            Err(error) => return Err(error),
        };
        let listed = pages.get(..512).map(listed_pages).unwrap_or_default();
        let mut whole = pages.get(..512).unwrap_or_default().to_vec();
        for page in listed.into_iter().filter(|p| (1..=7).contains(p)) {
            let offset = usize::from(page) * 512;
            match pages
                .get(offset..offset + 512)
                .filter(|bytes| bytes.get(2) == Some(&page))
            {
                Some(bytes) => whole.extend_from_slice(bytes),
                // The bridge returned only the first page, or another one in its place.
                None => match self.read_devstat_page(page) {
                    Ok(bytes) => whole.extend(bytes.unwrap_or_default()),
                    Err(
                        error @ (DriveError::Bridge(_)
                        | DriveError::Garbage { .. }
                        | DriveError::Avoided { .. }),
                    ) => {
                        not_read.push(format!("device statistics, page {page:02x}h: {error}"));
                    }
                    Err(error) => return Err(error),
                },
            }
        }
        DeviceStatistics::parse(&whole)
            .map(Some)
            .map_err(|source| DriveError::Garbage {
                device: self.name.clone(),
                source,
            })
    }

    fn read_logs(
        &mut self,
        sct_status: Option<SctStatus>,
        statistics: Option<DeviceStatistics>,
        not_read: &mut Vec<String>,
    ) -> Result<Logs, DriveError> {
        let garbage = |device: &str, source| DriveError::Garbage {
            device: device.to_owned(),
            source,
        };
        let name = self.name.clone();
        let directory = if self.identify().is_some_and(super::has_gpl) {
            let reply = self
                .ata("READ LOG EXT (directory)", Taskfile::read_log_ext(0x00, 0, 1))
                .and_then(|reply| {
                    LogDirectory::parse_gpl(&reply.data.unwrap_or_default()).map_err(|e| garbage(&name, e))
                });
            optional(reply, "log directory", not_read)?
        } else {
            None
        };
        let errors = self
            .ata("SMART READ LOG (errors)", Taskfile::smart_read_log(0x01, 1))
            .and_then(|reply| {
                ErrorLog::parse_summary(&reply.data.unwrap_or_default()).map_err(|e| garbage(&name, e))
            });
        let errors = optional(errors, "error log", not_read)?;
        let tests = self
            .ata("SMART READ LOG (self-tests)", Taskfile::smart_read_log(0x06, 1))
            .and_then(|reply| {
                SelfTestLog::parse(&reply.data.unwrap_or_default()).map_err(|e| garbage(&name, e))
            });
        let self_tests = optional(tests, "self-test log", not_read)?;
        let history = match &sct_status {
            Some(status) => optional(self.read_history(status), "temperature history", not_read)?.flatten(),
            None => None,
        };
        Ok(Logs {
            directory,
            errors,
            self_tests,
            statistics,
            sct_status,
            temperature_history: history,
        })
    }

    /// The SCT temperature history: ask for the table, read it, and check that it answers this question.
    fn read_history(&mut self, before: &SctStatus) -> Result<Option<TempHistory>, DriveError> {
        if !self.identify().is_some_and(super::has_sct_tables) || before.is_busy() {
            return Ok(None);
        }
        let mut request = Request::new(
            "SMART WRITE LOG (SCT: read temperature history)",
            Taskfile::smart_write_log(0xe0),
            self.timeout(),
        );
        request.data_out = Some(read_history_block());
        self.request(request)?;
        let table = self.ata("SMART READ LOG (SCT data)", Taskfile::smart_read_log(0xe1, 1))?;
        let after = self.read_sct()?;
        if !after.is_some_and(|s| s.extended_status.code == 0 && (s.action, s.function) == HISTORY_QUESTION) {
            return Ok(None);
        }
        TempHistory::parse(&table.data.unwrap_or_default())
            .map(Some)
            .map_err(|source| DriveError::Garbage {
                device: self.name.clone(),
                source,
            })
    }
}

/// Action and function codes of "data table, read" (ACS-4, "SCT Data Tables").
const HISTORY_QUESTION: (u16, u16) = (5, 1);

/// The 512-byte parameter block that asks for table 2, the temperature history.
fn read_history_block() -> Vec<u8> {
    let (action, function) = HISTORY_QUESTION;
    let words = [action, function, 2];
    let mut block: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    block.resize(512, 0);
    block
}

/// The drive aborted it, or the bridge knows no such command.
fn is_refusal(failure: &Failure) -> bool {
    match failure {
        Failure::Aborted { .. } | Failure::CannotCarry { .. } | Failure::FieldRefused { .. } => true,
        // What many bridges make of the drive's abort: 0B/00/00, 0B/4E/00.
        Failure::CheckCondition { sense: Some(sense) } => {
            sense.key == 0x0b && matches!(sense.asc, 0x00 | 0x4e)
        }
        _ => false,
    }
}

/// A failed part is noted; a failed transport ends everything.
fn optional<T>(
    result: Result<T, DriveError>,
    what: &str,
    not_read: &mut Vec<String>,
) -> Result<Option<T>, DriveError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error @ (DriveError::Bridge(_) | DriveError::Garbage { .. } | DriveError::Avoided { .. })) => {
            not_read.push(format!("{what}: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Page 00h of the Device Statistics log: byte 8 counts the page numbers that follow.
fn listed_pages(page: &[u8]) -> Vec<u8> {
    let count = usize::from(page.get(8).copied().unwrap_or_default());
    page.get(9..)
        .unwrap_or_default()
        .iter()
        .take(count)
        .copied()
        .collect()
}

/// SMART RETURN STATUS (ACS-3): LBA 23:8 is C24Fh when all is well and 2CF4h when a threshold is exceeded.
///
/// One half is enough (18-byte sense loses the other), and one bridge family swaps the low and high bytes.
pub fn passed(registers: &Registers) -> Option<bool> {
    let (low, mid, high) = (registers.lba_low, registers.lba_mid, registers.lba_high);
    match (mid, high) {
        (Some(0x4f), Some(0xc2) | None) => Some(true),
        (Some(0xf4), Some(0x2c) | None) => Some(false),
        (None, Some(0xc2)) => Some(true),
        (None, Some(0x2c)) => Some(false),
        (Some(0x4f), Some(_)) if low == Some(0xc2) => Some(true),
        (Some(0xf4), Some(_)) if low == Some(0x2c) => Some(false),
        _ => None,
    }
}

fn life(smart: &SmartReport, statistics: Option<&DeviceStatistics>) -> Option<Life> {
    // Percentage Used Endurance Indicator: may exceed 100.
    if let Some(used) = statistics.and_then(|s| s.value(0x07, 8)) {
        let left = 100i64.saturating_sub(used).clamp(0, 100);
        return Some(Life {
            left_percent: u8::try_from(left).unwrap_or_default(),
            source: "devstat",
        });
    }
    smart.life_left_percent().map(|left| Life {
        left_percent: left.min(100),
        source: "smart",
    })
}

/// Attributes whose raw value counts sectors in doubt: 197 pending, 198 uncorrectable.
fn sector_counts(smart: &SmartReport) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    smart.attributes.iter().filter_map(|a| {
        let what = match (a.id, a.name) {
            (197, "Current_Pending_Sector") => "sectors wait to be reallocated",
            (198, "Offline_Uncorrectable") => "sectors could not be read off-line",
            _ => return None,
        };
        // The upper bytes hold other counters on some drives.
        Some((what, a.raw & 0xffff_ffff)).filter(|(_, n)| *n > 0)
    })
}

fn judge(
    passed: Option<bool>,
    smart: &SmartReport,
    life: Option<&Life>,
    temperature: &Temperature,
) -> (Verdict, Vec<Reason>) {
    let mut reasons = Vec::new();
    let mut add = |verdict, what: String| reasons.push(Reason { verdict, what });
    if passed == Some(false) {
        add(
            Verdict::Failing,
            "the drive itself says that it is about to fail (SMART RETURN STATUS)".to_owned(),
        );
    }
    if smart.checksum == Checksum::Invalid {
        add(
            Verdict::Warning,
            "the SMART data have a wrong checksum: they may be garbled on the way".to_owned(),
        );
    }
    // Of garbled data only the drive's own word makes it a failing drive.
    let failing = if smart.checksum == Checksum::Invalid {
        Verdict::Warning
    } else {
        Verdict::Failing
    };
    for attribute in &smart.attributes {
        let name = format!("attribute {} {}", attribute.id, attribute.name);
        let threshold = attribute.threshold.unwrap_or_default();
        match (attribute.when_failed, attribute.prefailure) {
            (Some(WhenFailed::Now), true) => {
                add(
                    failing,
                    format!(
                        "{name} is at {} of at least {}",
                        attribute.value,
                        u16::from(threshold) + 1
                    ),
                );
            }
            (Some(WhenFailed::Now), false) => {
                add(
                    Verdict::Warning,
                    format!("{name} is worn to {} (limit {threshold})", attribute.value),
                );
            }
            (Some(WhenFailed::Past), true) => {
                add(
                    Verdict::Warning,
                    format!("{name} was at {} once (limit {threshold})", attribute.worst),
                );
            }
            _ => {}
        }
    }
    for (what, count) in sector_counts(smart) {
        add(Verdict::Warning, format!("{count} {what}"));
    }
    match life {
        Some(life) if life.left_percent == 0 => {
            add(Verdict::Warning, "its rated endurance is used up".to_owned())
        }
        Some(life) if life.left_percent <= 10 => {
            add(
                Verdict::Warning,
                format!("{} % of its rated endurance is left", life.left_percent),
            );
        }
        _ => {}
    }
    if let (Some(now), Some(limit)) = (temperature.celsius, temperature.limits.max_operating_celsius)
        && now > limit
    {
        add(
            Verdict::Warning,
            format!("{} °C is above its operating limit of {} °C", now.0, limit.0),
        );
    }
    if let Some(status) = smart
        .self_test
        .status
        .as_ref()
        .filter(|s| s.passed == Some(false))
    {
        add(
            Verdict::Warning,
            format!("the last self-test failed: {}", status.status.text()),
        );
    }
    let known = passed.is_some() || smart.failing_now.is_some();
    let verdict = match reasons
        .iter()
        .map(|r| r.verdict)
        .max_by_key(|v| *v == Verdict::Failing)
    {
        Some(Verdict::Failing) => Verdict::Failing,
        Some(_) => Verdict::Warning,
        None if known => Verdict::Ok,
        None => Verdict::Unknown,
    };
    (verdict, reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(low: Option<u8>, mid: Option<u8>, high: Option<u8>) -> Registers {
        Registers {
            lba_low: low,
            lba_mid: mid,
            lba_high: high,
            ..Registers::default()
        }
    }

    #[test]
    fn return_status_is_read_from_what_is_left_of_it() {
        assert_eq!(passed(&registers(Some(0), Some(0x4f), Some(0xc2))), Some(true));
        assert_eq!(passed(&registers(Some(0), Some(0xf4), Some(0x2c))), Some(false));
        assert_eq!(
            passed(&registers(Some(0), Some(0xf4), None)),
            Some(false),
            "18-byte sense"
        );
        assert_eq!(
            passed(&registers(Some(0xc2), Some(0x4f), Some(0))),
            Some(true),
            "swapped"
        );
        assert_eq!(passed(&registers(None, None, None)), None);
        assert_eq!(
            passed(&registers(Some(0), Some(0x4f), Some(0x2c))),
            None,
            "contradiction"
        );
        assert_eq!(passed(&registers(Some(0), Some(0), Some(0))), None);
    }

    #[test]
    fn page_lists_are_clamped() {
        let mut page = vec![0; 12];
        page[8] = 200;
        page[9..12].copy_from_slice(&[0, 1, 5]);
        assert_eq!(listed_pages(&page), [0, 1, 5]);
        assert!(listed_pages(&[]).is_empty());
    }
}
