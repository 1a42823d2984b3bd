//! Commands that touch the medium: reads, writes, verify, flush and TRIM.

use std::time::Duration;

use super::{AtaDrive, IDNF, Outcome, Taskfile, abort, done, fail};
use crate::sim::heat::Op;
use crate::sim::media::Media;
use crate::wire::{le16, le48};

/// Where a taskfile points: first sector and how many.
fn extent(tf: &Taskfile) -> (u64, u64) {
    let wide = matches!(tf.command, 0x24 | 0x25 | 0x34 | 0x35 | 0x42);
    if wide {
        let count = if tf.count == 0 {
            0x1_0000
        } else {
            u64::from(tf.count)
        };
        (tf.lba & 0xffff_ffff_ffff, count)
    } else {
        let count = match tf.count & 0xff {
            0 => 256,
            n => u64::from(n),
        };
        (tf.lba & 0x00ff_ffff | u64::from(tf.device & 0x0f) << 24, count)
    }
}

impl AtaDrive {
    /// Bytes that a read or write moves; `None` for every other command.
    pub fn media_bytes(&self, tf: &Taskfile) -> Option<u64> {
        matches!(tf.command, 0x20 | 0x24 | 0xc8 | 0x25 | 0x30 | 0x34 | 0xca | 0x35)
            .then(|| extent(tf).1.saturating_mul(self.medium.sector_bytes()))
    }

    pub(super) fn media_command(&mut self, tf: &Taskfile, data_out: &[u8]) -> Outcome {
        if matches!(tf.command, 0xe7 | 0xea) {
            if !self.power.asleep() {
                self.spend(Duration::from_millis(1));
            }
            return done(tf, Vec::new());
        }
        self.wake();
        let (first, count) = extent(tf);
        if !self.medium.holds(first, count) {
            return fail(tf, IDNF, first.max(self.medium.sectors()) & 0xffff_ffff_ffff);
        }
        let bytes = count.saturating_mul(self.medium.sector_bytes());
        let data = match tf.command {
            0x20 | 0x24 | 0xc8 | 0x25 => {
                self.counters.sectors_read += count;
                self.counters.read_commands += 1;
                self.move_data(Op::Read, first, count);
                self.medium.read(first, count)
            }
            0x30 | 0x34 | 0xca | 0x35 => {
                let Some(payload) = usize::try_from(bytes).ok().and_then(|len| data_out.get(..len)) else {
                    return abort(tf);
                };
                self.medium.write(first, payload);
                self.counters.sectors_written += count;
                self.counters.write_commands += 1;
                self.move_data(Op::Write, first, count);
                Vec::new()
            }
            _ => {
                self.move_data(Op::Read, first, count);
                Vec::new()
            }
        };
        let mut outcome = done(tf, data);
        outcome.registers.lba = first + count - 1;
        outcome
    }

    /// Time and heat of a transfer.
    fn move_data(&mut self, op: Op, first: u64, count: u64) {
        let bytes = count.saturating_mul(self.medium.sector_bytes());
        let took = self.speed.transfer(op, bytes, first == self.next_lba);
        self.next_lba = first + count;
        self.now = self.now.saturating_add(took);
        self.power.wake(self.now);
        self.catch_up(self.now);
    }

    /// DATA SET MANAGEMENT with TRIM: 64 ranges of 8 bytes in each block.
    pub(super) fn trim(&mut self, tf: &Taskfile, data_out: &[u8]) -> Outcome {
        let limit = self.profile.trim.as_ref().map_or(0, |t| t.max_blocks);
        let len = 512 * usize::from(tf.count);
        let Some(payload) = data_out.get(..len) else {
            return abort(tf);
        };
        if tf.features & 0xff != 1 || tf.count == 0 || tf.count > limit.max(1) {
            return abort(tf);
        }
        let ranges: Vec<(u64, u64)> = payload
            .chunks_exact(8)
            .filter_map(|entry| Some((le48(entry, 0)?, u64::from(le16(entry, 6)?))))
            .filter(|(_, count)| *count > 0)
            .collect();
        if let Some((first, _)) = ranges.iter().find(|(f, c)| !self.medium.holds(*f, *c)) {
            return fail(tf, IDNF, *first);
        }
        self.wake();
        for (first, count) in &ranges {
            self.medium.trim(*first, *count);
        }
        self.spend(Duration::from_micros(200 + 20 * ranges.len() as u64));
        done(tf, Vec::new())
    }
}

/// Native flash without an ATA face: the same medium and speed model, nothing else.
#[derive(Debug)]
pub struct Flash {
    pub medium: Media,
    speed: crate::sim::heat::Speed,
    next_lba: u64,
    now: Duration,
}

impl Flash {
    /// An empty stick.
    pub fn new(medium: Media, speed: crate::sim::heat::Speed) -> Self {
        Self {
            medium,
            speed,
            next_lba: 0,
            now: Duration::ZERO,
        }
    }

    /// Lets time pass.
    pub fn catch_up(&mut self, now: Duration) {
        self.speed.rest(now.saturating_sub(self.now), false);
        self.now = self.now.max(now);
    }

    /// Changes the air's temperature in °C; false without a thermal model.
    pub fn set_ambient(&mut self, celsius: f64) -> bool {
        self.speed.set_ambient(celsius)
    }

    /// The stick's clock.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Reads sectors that are known to exist.
    pub fn read(&mut self, first: u64, count: u64) -> Vec<u8> {
        self.move_data(Op::Read, first, count);
        self.medium.read(first, count)
    }

    /// Writes sectors that are known to exist.
    pub fn write(&mut self, first: u64, data: &[u8]) {
        let count = data.len() as u64 / self.medium.sector_bytes();
        self.move_data(Op::Write, first, count);
        self.medium.write(first, data);
    }

    fn move_data(&mut self, op: Op, first: u64, count: u64) {
        let bytes = count.saturating_mul(self.medium.sector_bytes());
        let took = self.speed.transfer(op, bytes, first == self.next_lba);
        self.next_lba = first.saturating_add(count);
        self.now = self.now.saturating_add(took);
    }
}
