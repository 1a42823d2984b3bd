//! SMART Command Transport: status, temperature history, feature control (ACS-2, "SCT Command Transport").

use std::collections::VecDeque;
use std::time::Duration;

use super::AtaDrive;
use super::power::Mode;
use crate::sim::buf::{put8, put16, put32};
use crate::sim::spec::Health;
use crate::wire::le16;

/// Samples in the history table.
const HISTORY_LEN: usize = 478;

const OK: u16 = 0x0000;
const NO_COMMAND: u16 = 0x000b;
const INVALID_FUNCTION: u16 = 0x000c;
const INVALID_FEATURE: u16 = 0x000d;
const INVALID_STATE: u16 = 0x000e;
const INVALID_ACTION: u16 = 0x0010;
const INVALID_TABLE: u16 = 0x0011;
const INVALID_RECOVERY_FUNCTION: u16 = 0x0004;
const INVALID_RECOVERY_SELECTION: u16 = 0x0005;
const READ_TIMER_TOO_SHORT: u16 = 0x0006;
const WRITE_TIMER_TOO_SHORT: u16 = 0x0007;
const INVALID_OPTIONS: u16 = 0x000f;

/// Error recovery timers from the factory, in tenths of a second.
const RECOVERY: (u16, u16) = (70, 70);
/// The shortest timer that can be set.
const RECOVERY_MIN: u16 = 5;

/// The last command and the history.
#[derive(Debug)]
pub struct Sct {
    extended_status: u16,
    action: u16,
    function: u16,
    table_ready: bool,
    interval_minutes: u16,
    /// What power-on sets: the interval, and the state of the write cache.
    lasting: (u16, u16),
    write_cache_state: u16,
    reordering_state: u16,
    /// Option flags that each feature was last set with.
    options: [u16; 3],
    history: VecDeque<i8>,
    sampled: Duration,
    index: u16,
    recovery_deciseconds: (u16, u16),
    recovery_at_power_on: (u16, u16),
}

impl Sct {
    /// Nothing sent yet, one sample a minute.
    pub fn new() -> Self {
        Self {
            extended_status: OK,
            action: 0,
            function: 0,
            table_ready: false,
            interval_minutes: 1,
            lasting: (1, 1),
            write_cache_state: 1,
            reordering_state: 1,
            options: [0; 3],
            history: VecDeque::new(),
            sampled: Duration::ZERO,
            index: u16::MAX,
            recovery_deciseconds: RECOVERY,
            recovery_at_power_on: RECOVERY,
        }
    }

    /// What was not set to last is gone; the history starts anew.
    pub fn power_on(&mut self, now: Duration) {
        *self = Self {
            interval_minutes: self.lasting.0,
            write_cache_state: self.lasting.1,
            lasting: self.lasting,
            recovery_deciseconds: self.recovery_at_power_on,
            recovery_at_power_on: self.recovery_at_power_on,
            sampled: now,
            ..Self::new()
        };
    }

    /// Read timer of error recovery, if one is set.
    pub fn read_recovery(&self) -> Option<Duration> {
        match self.recovery_deciseconds.0 {
            0 => None,
            tenths => Some(Duration::from_millis(100 * u64::from(tenths))),
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(60 * u64::from(self.interval_minutes.max(1)))
    }

    /// When the next sample is due.
    pub fn next_sample(&self) -> Duration {
        self.sampled.saturating_add(self.interval())
    }

    /// Takes the sample that is due.
    pub fn sample(&mut self, celsius: Option<i8>) {
        self.sampled = self.next_sample();
        self.index = if usize::from(self.index) + 1 >= HISTORY_LEN || self.index == u16::MAX {
            0
        } else {
            self.index + 1
        };
        if self.history.len() == HISTORY_LEN {
            self.history.pop_front();
        }
        self.history.push_back(celsius.unwrap_or(i8::MIN));
    }

    /// Skips samples that a full ring would forget anyway before `until`.
    pub fn skip_towards(&mut self, until: Duration) {
        let keep = self.interval().saturating_mul(HISTORY_LEN as u32 + 2);
        let from = until.saturating_sub(keep);
        if from > self.sampled {
            let missed = from.saturating_sub(self.sampled).as_secs() / self.interval().as_secs().max(1);
            let missed = u32::try_from(missed).unwrap_or(u32::MAX);
            self.sampled = self
                .sampled
                .saturating_add(self.interval().saturating_mul(missed));
        }
    }
}

impl AtaDrive {
    /// Whether the volatile write cache is on: SET FEATURES decides, unless feature control does.
    pub(super) fn write_cache_on(&self) -> bool {
        match self.sct.write_cache_state {
            2 => true,
            3 => false,
            _ => self.write_cache,
        }
    }

    /// SCT status, 512 bytes, format version 3.
    pub(super) fn sct_status(&self) -> Vec<u8> {
        let mut sector = vec![0; 512];
        put16(&mut sector, 0, 3);
        put16(&mut sector, 2, 0x0100);
        put16(&mut sector, 4, 1);
        put32(&mut sector, 6, 1);
        let state = match self.power.mode() {
            Mode::Standby => 1,
            Mode::Sleep => 2,
            _ if self.smart.self_test_running() => 3,
            Mode::Active | Mode::Idle => 0,
        };
        put8(&mut sector, 10, state);
        put16(&mut sector, 14, self.sct.extended_status);
        put16(&mut sector, 16, self.sct.action);
        put16(&mut sector, 18, self.sct.function);
        let invalid = i8::MIN as u8;
        put8(
            &mut sector,
            200,
            self.temperature_c().map_or(invalid, |t| t as u8),
        );
        let known = self.temperature_c().is_some();
        let (low, high) = self.extremes_c();
        let lifetime = self.profile.limits_c.lifetime;
        for (at, value) in [
            (201, low),
            (202, high),
            (203, lifetime.0.min(low)),
            (204, lifetime.1.max(high)),
        ] {
            put8(&mut sector, at, if known { value as u8 } else { invalid });
        }
        put8(&mut sector, 205, self.profile.limits_c.operating.1 as u8);
        put16(
            &mut sector,
            214,
            if self.health == Health::Failing {
                0x2cf4
            } else {
                0xc24f
            },
        );
        if self.profile.sct >> 3 & 1 == 1 {
            put16(&mut sector, 216, RECOVERY_MIN);
        }
        sector
    }

    /// SCT data transfer, `count` sectors; `None` without a preceding table command.
    pub(super) fn sct_read_data(&mut self, count: usize) -> Option<Vec<u8>> {
        if !self.sct.table_ready || count == 0 {
            self.sct.extended_status = NO_COMMAND;
            return None;
        }
        self.sct.table_ready = false;
        let mut sector = vec![0; 512];
        put16(&mut sector, 0, 2);
        put16(&mut sector, 2, 1);
        put16(&mut sector, 4, self.sct.interval_minutes);
        let limits = &self.profile.limits_c;
        for (at, value) in [
            (6, limits.recommended.1),
            (7, limits.operating.1),
            (8, limits.recommended.0),
            (9, limits.operating.0),
        ] {
            put8(&mut sector, at, value as u8);
        }
        put16(&mut sector, 30, HISTORY_LEN as u16);
        let newest = if self.sct.history.is_empty() {
            0
        } else {
            self.sct.index
        };
        put16(&mut sector, 32, newest);
        for slot in 0..HISTORY_LEN {
            put8(&mut sector, 34 + slot, i8::MIN as u8);
        }
        for (age, sample) in self.sct.history.iter().rev().enumerate() {
            let slot = (usize::from(newest) + HISTORY_LEN - age) % HISTORY_LEN;
            put8(&mut sector, 34 + slot, *sample as u8);
        }
        sector.resize(512 * count.min(256), 0);
        Some(sector)
    }

    /// An SCT command block; `Ok` holds what goes into count and LBA low, `Err` means ABRT.
    pub(super) fn sct_command(&mut self, block: &[u8]) -> Result<Option<u16>, ()> {
        let word = |n: usize| le16(block, 2 * n).unwrap_or_default();
        self.sct.action = word(0);
        self.sct.function = word(1);
        self.sct.table_ready = false;
        let supported = |bit: u16| self.profile.sct >> bit & 1 == 1;
        let outcome = match word(0) {
            3 if supported(3) => self.error_recovery(word(1), word(2), word(3)),
            4 if supported(4) => self.feature_control(word(1), word(2), word(3), word(4)),
            5 if supported(5) => match (word(1), word(2)) {
                (1, 2) => {
                    self.sct.table_ready = true;
                    Ok(None)
                }
                (1, _) => Err(INVALID_TABLE),
                _ => Err(0x0001),
            },
            _ => Err(INVALID_ACTION),
        };
        self.sct.extended_status = outcome.err().unwrap_or(OK);
        outcome.map_err(|_| ())
    }

    fn error_recovery(&mut self, function: u16, selection: u16, value: u16) -> Result<Option<u16>, u16> {
        if function == 5 {
            self.sct.recovery_deciseconds = RECOVERY;
            self.sct.recovery_at_power_on = RECOVERY;
            return Ok(None);
        }
        let timers = match function {
            1 | 2 => &mut self.sct.recovery_deciseconds,
            3 | 4 => &mut self.sct.recovery_at_power_on,
            _ => return Err(INVALID_RECOVERY_FUNCTION),
        };
        let (timer, too_short) = match selection {
            1 => (&mut timers.0, READ_TIMER_TOO_SHORT),
            2 => (&mut timers.1, WRITE_TIMER_TOO_SHORT),
            _ => return Err(INVALID_RECOVERY_SELECTION),
        };
        if matches!(function, 2 | 4) {
            return Ok(Some(*timer));
        }
        // 0 switches the limit off.
        if (1..RECOVERY_MIN).contains(&value) {
            return Err(too_short);
        }
        *timer = value;
        Ok(None)
    }

    fn feature_control(
        &mut self,
        function: u16,
        feature: u16,
        value: u16,
        options: u16,
    ) -> Result<Option<u16>, u16> {
        let sct = &mut self.sct;
        let (current, used) = match (feature, &mut sct.options) {
            (1, [used, _, _]) => (sct.write_cache_state, used),
            (2, [_, used, _]) => (sct.reordering_state, used),
            (3, [_, _, used]) => (sct.interval_minutes, used),
            _ => return Err(INVALID_FEATURE),
        };
        match function {
            1 => {}
            2 => return Ok(Some(current)),
            3 => return Ok(Some(*used)),
            _ => return Err(INVALID_FUNCTION),
        }
        let good = match feature {
            1 => (1..=3).contains(&value),
            2 => (1..=2).contains(&value),
            _ => value > 0,
        };
        if !good {
            return Err(INVALID_STATE);
        }
        if options > 1 {
            return Err(INVALID_OPTIONS);
        }
        *used = options;
        match feature {
            1 => {
                sct.write_cache_state = value;
                if options == 1 {
                    sct.lasting.1 = value;
                }
            }
            2 => sct.reordering_state = value,
            _ => {
                sct.interval_minutes = value;
                if options == 1 {
                    sct.lasting.0 = value;
                }
                sct.history.clear();
                sct.index = u16::MAX;
                sct.sampled = self.now;
            }
        }
        Ok(None)
    }
}
