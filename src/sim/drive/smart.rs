//! SMART: attributes, thresholds, self-tests and the logs that SMART READ LOG brings (ACS-2, "SMART").

use std::time::Duration;

use super::AtaDrive;
use crate::sim::buf::{put, put8, put16, put32, put48, seal};
use crate::sim::profiles::{AttributeProfile, NormalizedSource, Number, Packing, RawSource};
use crate::sim::spec::Health;

/// The switches and the self-test.
#[derive(Debug)]
pub struct Smart {
    pub enabled: bool,
    pub auto_offline: bool,
    offline_status: u8,
    running: Option<SelfTest>,
    done: Vec<SelfTestResult>,
}

#[derive(Debug, Clone, Copy)]
struct SelfTest {
    kind: u8,
    start: Duration,
    takes: Duration,
}

#[derive(Debug, Clone, Copy)]
struct SelfTestResult {
    kind: u8,
    status: u8,
    hours: u16,
}

impl Smart {
    /// As it comes from the factory: enabled.
    pub fn new() -> Self {
        Self {
            enabled: true,
            auto_offline: false,
            offline_status: 0x02,
            running: None,
            done: Vec::new(),
        }
    }

    /// Whether a self-test is running.
    pub fn self_test_running(&self) -> bool {
        self.running.is_some()
    }
}

impl AtaDrive {
    /// EXECUTE OFF-LINE IMMEDIATE; `false` for a subcommand that is not there.
    pub(super) fn execute_offline(&mut self, subcommand: u8) -> bool {
        let minutes = match subcommand & 0x7f {
            0x00 => {
                self.smart.offline_status = 0x02;
                return true;
            }
            0x01 => u64::from(self.profile.short_test_minutes),
            0x02 => u64::from(self.profile.extended_test_minutes),
            0x03 => 5,
            0x7f if subcommand == 0x7f => {
                if let Some(test) = self.smart.running.take() {
                    self.finish(test.kind, 0x10);
                }
                return true;
            }
            _ => return false,
        };
        if let Some(test) = self.smart.running.take() {
            self.finish(test.kind, 0x10);
        }
        let takes = Duration::from_secs(60 * minutes);
        if subcommand & 0x80 != 0 {
            // Captive: the command itself lasts as long as the test.
            self.spend(takes);
            self.finish(subcommand, 0);
        } else {
            self.smart.running = Some(SelfTest {
                kind: subcommand,
                start: self.now,
                takes,
            });
        }
        true
    }

    fn finish(&mut self, kind: u8, status: u8) {
        let status = if status == 0 && self.health == Health::Failing {
            0x70
        } else {
            status
        };
        self.smart.done.push(SelfTestResult {
            kind,
            status,
            hours: self.power_on_hours() as u16,
        });
        if self.smart.done.len() > 21 {
            self.smart.done.remove(0);
        }
    }

    /// Ends a background self-test whose time is over.
    pub(super) fn settle_self_test(&mut self) {
        if let Some(test) = self.smart.running
            && self.now.saturating_sub(test.start) >= test.takes
        {
            self.smart.running = None;
            self.finish(test.kind, 0);
        }
    }

    fn self_test_status(&self) -> u8 {
        match self.smart.running {
            Some(test) => {
                let spent = self.now.saturating_sub(test.start).as_secs_f64();
                let share = 1.0 - spent / test.takes.as_secs_f64().max(1.0);
                0xf0 | (share * 10.0).ceil().clamp(0.0, 9.0) as u8
            }
            None => self.smart.done.last().map_or(0, |r| r.status),
        }
    }

    /// SMART READ DATA, 512 bytes.
    pub(super) fn smart_data(&self) -> Vec<u8> {
        let mut sector = vec![0; 512];
        put16(&mut sector, 0, 0x0010);
        for (slot, attribute) in self.profile.attributes.iter().take(30).enumerate() {
            let at = 2 + slot * 12;
            put8(&mut sector, at, attribute.id);
            put16(&mut sector, at + 1, attribute.flags);
            let value = self.normalized(attribute, attribute.value);
            put8(&mut sector, at + 3, value);
            let worst = attribute.worst.map_or(value, |w| self.normalized(attribute, w));
            put8(&mut sector, at + 4, worst);
            put48(&mut sector, at + 5, self.raw(attribute));
        }
        let auto = u8::from(self.smart.auto_offline) << 7;
        put8(&mut sector, 362, self.smart.offline_status | auto);
        put8(&mut sector, 363, self.self_test_status());
        put16(&mut sector, 364, 0);
        // Execute immediate, automatic, abort on command, read scan, self-test, conveyance test.
        put8(&mut sector, 367, 0x3f);
        put16(&mut sector, 368, 0x0003);
        put8(&mut sector, 370, 0x01);
        put8(&mut sector, 372, self.profile.short_test_minutes);
        let extended = self.profile.extended_test_minutes;
        match u8::try_from(extended) {
            Ok(minutes) if minutes < 0xff => put8(&mut sector, 373, minutes),
            _ => {
                put8(&mut sector, 373, 0xff);
                put16(&mut sector, 375, extended);
            }
        }
        put8(&mut sector, 374, 5);
        seal(&mut sector);
        sector
    }

    /// SMART READ THRESHOLDS, 512 bytes.
    pub(super) fn smart_thresholds(&self) -> Vec<u8> {
        let mut sector = vec![0; 512];
        put16(&mut sector, 0, 0x0010);
        for (slot, attribute) in self.profile.attributes.iter().take(30).enumerate() {
            put(&mut sector, 2 + slot * 12, &[attribute.id, attribute.threshold]);
        }
        seal(&mut sector);
        sector
    }

    fn normalized(&self, attribute: &AttributeProfile, number: Number<NormalizedSource>) -> u8 {
        let celsius = |t: i8| i16::from(t).clamp(0, 253);
        let value = match number {
            Number::Fixed(fixed) => i16::try_from(fixed).unwrap_or(253),
            Number::Live(source) => match source {
                NormalizedSource::Temperature => celsius(self.temperature_c().unwrap_or(0)),
                NormalizedSource::TemperatureHighest => celsius(self.extremes_c().1),
                NormalizedSource::HundredMinusTemperature => {
                    100 - i16::from(self.temperature_c().unwrap_or(0))
                }
                NormalizedSource::HundredMinusHighest => 100 - i16::from(self.extremes_c().1),
                NormalizedSource::LifeLeft => {
                    // Worn out is not failing: a pre-failure attribute stays above its threshold.
                    let floor = if attribute.flags & 1 == 1 {
                        i16::from(attribute.threshold) + 1
                    } else {
                        1
                    };
                    (100 - self.percent_used() as i16).max(floor)
                }
                NormalizedSource::Health if self.health == Health::Failing => {
                    (i16::from(attribute.threshold) - 2).max(1)
                }
                NormalizedSource::Health => {
                    if attribute.threshold > 100 {
                        200
                    } else {
                        100
                    }
                }
            },
        };
        match number {
            Number::Fixed(_) => value.clamp(0, 253) as u8,
            Number::Live(_) => value.clamp(1, 253) as u8,
        }
    }

    fn raw(&self, attribute: &AttributeProfile) -> u64 {
        let source = match attribute.raw {
            Number::Fixed(fixed) => return fixed,
            Number::Live(source) => source,
        };
        if let Some(packing) = source.packing() {
            return self.packed_temperature(packing);
        }
        let c = &self.counters;
        let bytes = |sectors: u64| sectors.saturating_mul(self.medium.sector_bytes());
        match source {
            RawSource::PowerOnHours => self.power_on_hours(),
            RawSource::PowerCycles => c.power_cycles,
            RawSource::SectorsWritten => c.sectors_written,
            RawSource::SectorsRead => c.sectors_read,
            RawSource::GibWritten => bytes(c.sectors_written) >> 30,
            RawSource::GibRead => bytes(c.sectors_read) >> 30,
            RawSource::UnsafeShutdowns => c.unsafe_shutdowns,
            RawSource::PercentUsed => self.percent_used(),
            RawSource::LifeLeft => 100u64.saturating_sub(self.percent_used()),
            RawSource::Reallocated => self.reallocated(),
            RawSource::SpinUps => c.spin_ups.saturating_add(self.power.wakes()),
            RawSource::LoadCycles => c.load_cycles.saturating_add(self.power.wakes()),
            RawSource::CrcErrors => c.crc_errors,
            RawSource::TemperaturePlain | RawSource::TemperatureLowHigh | RawSource::TemperatureWords => 0,
        }
    }

    fn packed_temperature(&self, packing: Packing) -> u64 {
        let Some(now) = self.temperature_c() else { return 0 };
        let (low, high) = self.extremes_c();
        let byte = |t: i8, n: u32| u64::from(t as u8) << (8 * n);
        let word = |t: i8, n: u32| u64::from(i16::from(t) as u16) << (8 * n);
        match packing {
            Packing::Plain => byte(now, 0),
            Packing::LowHigh => word(now, 0) | byte(low, 2) | byte(high, 3),
            Packing::Words => word(now, 0) | word(high, 2) | word(low, 4),
        }
    }

    /// Summary error log (01h): no errors.
    pub(super) fn summary_error_log(&self) -> Vec<u8> {
        let mut sector = vec![0; 512];
        put8(&mut sector, 0, 1);
        seal(&mut sector);
        sector
    }

    /// Self-test log (06h): 21 entries of 24 bytes, a ring.
    pub(super) fn self_test_log(&self) -> Vec<u8> {
        let mut sector = vec![0; 512];
        put16(&mut sector, 0, 1);
        for (slot, result) in self.smart.done.iter().enumerate() {
            let at = 2 + slot * 24;
            put(&mut sector, at, &[result.kind, result.status]);
            put16(&mut sector, at + 2, result.hours);
            put32(&mut sector, at + 5, u32::MAX);
        }
        put8(&mut sector, 508, self.smart.done.len() as u8);
        seal(&mut sector);
        sector
    }

    /// Extended self-test log (07h): 19 entries of 26 bytes, a ring.
    pub(super) fn extended_self_test_log(&self) -> Vec<u8> {
        let mut sector = vec![0; 512];
        put8(&mut sector, 0, 1);
        let recent = self.smart.done.iter().rev().take(19).rev();
        let mut entries = 0;
        for (slot, result) in recent.enumerate() {
            let at = 4 + slot * 26;
            put(&mut sector, at, &[result.kind, result.status]);
            put16(&mut sector, at + 2, result.hours);
            put48(&mut sector, at + 5, u64::MAX);
            entries += 1;
        }
        put16(&mut sector, 2, entries);
        seal(&mut sector);
        sector
    }

    /// Selective self-test log (09h): no spans.
    pub(super) fn selective_log(&self) -> Vec<u8> {
        let mut sector = vec![0; 512];
        put16(&mut sector, 0, 1);
        seal(&mut sector);
        sector
    }
}
