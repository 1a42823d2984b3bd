//! SMART: attributes, thresholds, self-tests and the switches (ACS-2, "SMART").

use super::selftest::{Offline, Selective, SelfTest, SelfTestResult};
use super::{ABRT, AtaDrive, Outcome, Taskfile, abort, done, fail};
use crate::sim::buf::{put, put8, put16, put48, seal};
use crate::sim::profiles::{AttributeProfile, NormalizedSource, Number, Packing, RawSource};
use crate::sim::spec::Health;

/// The switches and the self-test.
#[derive(Debug)]
pub struct Smart {
    pub enabled: bool,
    pub auto_offline: bool,
    pub offline_status: u8,
    pub running: Option<SelfTest>,
    /// The newest results, oldest first.
    pub done: Vec<SelfTestResult>,
    pub selective: Selective,
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
            selective: Selective::default(),
        }
    }

    /// Whether a self-test is running.
    pub fn self_test_running(&self) -> bool {
        self.running.is_some()
    }
}

impl AtaDrive {
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
        // Execute immediate, automatic, abort on command, read scan, self-test, conveyance and selective test.
        put8(&mut sector, 367, 0x7f);
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
            RawSource::Pending => self.medium.pending().total(),
            RawSource::Uncorrectable => self.errors.unreadable(),
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

    /// The subcommands of SMART.
    pub(super) fn smart_command(&mut self, tf: &Taskfile, data_out: &[u8]) -> Outcome {
        let subcommand = tf.features & 0xff;
        let signed = tf.lba >> 8 & 0xffff == 0xc24f;
        if !signed || !(self.smart.enabled || subcommand == 0xd8) {
            return abort(tf);
        }
        let low = tf.lba as u8;
        match subcommand {
            0xd0 | 0xd1 => {
                self.wake();
                let data = if subcommand == 0xd0 {
                    self.smart_data()
                } else {
                    self.smart_thresholds()
                };
                done(tf, data)
            }
            0xd5 => self.log_read(tf, false, low, 0, tf.count & 0xff),
            0xd6 => {
                let narrow = Taskfile {
                    count: tf.count & 0xff,
                    ..*tf
                };
                self.log_write(&narrow, false, low, 0, data_out)
            }
            0xd4 => {
                self.wake();
                match self.execute_offline(low) {
                    Offline::Done => done(tf, Vec::new()),
                    Offline::Failed => fail(tf, ABRT, tf.lba & !0xff_ff00 | 0x2c_f400),
                    Offline::Unknown => abort(tf),
                }
            }
            0xd8 | 0xd9 => {
                if subcommand == 0xd9 {
                    self.abort_self_test();
                }
                self.smart.enabled = subcommand == 0xd8;
                done(tf, Vec::new())
            }
            0xda => {
                let mut outcome = done(tf, Vec::new());
                if self.health == Health::Failing {
                    outcome.registers.lba = tf.lba & !0xff_ff00 | 0x2c_f400;
                }
                outcome
            }
            0xdb => match tf.count & 0xff {
                0xf8 | 0x00 => {
                    self.smart.auto_offline = tf.count & 0xff == 0xf8;
                    done(tf, Vec::new())
                }
                _ => abort(tf),
            },
            // Autosave on or off, save now: there is nothing to lose.
            0xd2 | 0xd3 => done(tf, Vec::new()),
            _ => abort(tf),
        }
    }
}
