//! Commands that touch the medium: reads, writes, verify, flush and TRIM.

use std::time::Duration;

use super::{ABRT, AtaDrive, IDNF, Outcome, Taskfile, UNC, abort, done, fail, put_lba};
use crate::sim::heat::Op;
use crate::sim::media::{Media, MediumError};
use crate::sim::speed::Speed;
use crate::wire::{le16, le48};

/// What a command does to the sectors that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Read,
    Write,
    /// READ and WRITE MULTIPLE, which SET MULTIPLE MODE can switch off.
    ReadBlocks,
    WriteBlocks,
    Verify,
    Spoil,
}

/// The deed of a command, and whether its address has 48 bits.
fn deed(command: u8) -> Option<(Deed, bool)> {
    Some(match command {
        0x20 | 0xc8 => (Deed::Read, false),
        0x24 | 0x25 => (Deed::Read, true),
        0x30 | 0xca => (Deed::Write, false),
        // WRITE DMA FUA EXT among them.
        0x34 | 0x35 | 0x3d => (Deed::Write, true),
        0xc4 => (Deed::ReadBlocks, false),
        0x29 => (Deed::ReadBlocks, true),
        0xc5 => (Deed::WriteBlocks, false),
        // WRITE MULTIPLE FUA EXT among them.
        0x39 | 0xce => (Deed::WriteBlocks, true),
        0x40 => (Deed::Verify, false),
        0x42 => (Deed::Verify, true),
        0x45 => (Deed::Spoil, true),
        _ => return None,
    })
}

/// Whether a command moves the sectors that it names between host and drive.
pub fn moves_sectors(command: u8) -> bool {
    !matches!(deed(command), None | Some((Deed::Verify | Deed::Spoil, _)))
}

/// Where a taskfile points: first sector and how many.
fn extent(tf: &Taskfile, wide: bool) -> (u64, u64) {
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
        let (_, wide) = deed(tf.command).filter(|_| moves_sectors(tf.command))?;
        Some(extent(tf, wide).1.saturating_mul(self.medium.sector_bytes()))
    }

    fn within_limit(&self, first: u64, count: u64) -> bool {
        first.checked_add(count).is_some_and(|end| end <= self.sectors())
    }

    pub(super) fn media_command(&mut self, tf: &Taskfile, data_out: &[u8]) -> Outcome {
        if matches!(tf.command, 0xe7 | 0xea) {
            if !self.power.asleep() {
                self.spend(Duration::from_millis(1));
            }
            return done(tf, Vec::new());
        }
        let Some((deed, wide)) = deed(tf.command) else {
            return abort(tf);
        };
        if matches!(deed, Deed::ReadBlocks | Deed::WriteBlocks) && self.multiple == 0 {
            return abort(tf);
        }
        self.wake();
        let (first, count) = extent(tf, wide);
        if !self.within_limit(first, count) {
            return self.failed_at(tf, wide, IDNF, first.max(self.sectors()));
        }
        let result = match deed {
            Deed::Read | Deed::ReadBlocks => {
                let read = self.medium.read(first, count);
                if read.is_ok() {
                    self.counters.sectors_read += count;
                    self.counters.read_commands += 1;
                    self.move_data(Op::Read, first, count);
                }
                read
            }
            Deed::Write | Deed::WriteBlocks => {
                let bytes = count.saturating_mul(self.medium.sector_bytes());
                let Some(payload) = usize::try_from(bytes).ok().and_then(|len| data_out.get(..len)) else {
                    return abort(tf);
                };
                let written = self.medium.write(first, payload);
                self.counters.sectors_written += count;
                self.counters.write_commands += 1;
                self.move_data(Op::Write, first, count);
                written.map(|replaced| {
                    self.counters.reallocated += replaced;
                    Vec::new()
                })
            }
            Deed::Verify => match self.medium.first_unreadable(first, count) {
                Some(lba) => Err(MediumError::Unreadable(lba)),
                None => {
                    self.move_data(Op::Read, first, count);
                    Ok(Vec::new())
                }
            },
            Deed::Spoil => match tf.features & 0xff {
                // Pseudo-uncorrectable and flagged, each with its opposite in how an error is logged.
                0x55 | 0x5a | 0xaa | 0xa5 => {
                    self.medium.mark_unreadable(first, count);
                    Ok(Vec::new())
                }
                _ => return abort(tf),
            },
        };
        match result {
            Ok(data) => {
                let mut outcome = done(tf, data);
                put_lba(&mut outcome.registers, first + count - 1, wide);
                outcome
            }
            Err(MediumError::Unreadable(lba)) => {
                // What stands before it is read, then the drive tries again until its recovery time is over.
                self.move_data(Op::Read, first, lba.saturating_sub(first));
                let tries = if self.profile.rotation == 1 {
                    Duration::from_millis(20)
                } else {
                    self.sct.read_recovery().unwrap_or(Duration::from_secs(20))
                };
                self.hold(tries);
                self.failed_at(tf, wide, UNC, lba)
            }
            Err(MediumError::Host) => {
                let mut outcome = self.failed_at(tf, wide, ABRT, first);
                // Device fault.
                outcome.registers.status |= 0x20;
                outcome
            }
        }
    }

    fn failed_at(&self, tf: &Taskfile, wide: bool, error: u8, lba: u64) -> Outcome {
        let mut outcome = fail(tf, error, 0);
        put_lba(&mut outcome.registers, lba, wide);
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

    /// DATA SET MANAGEMENT with TRIM: 64 ranges of 8 bytes in each block. Nothing is discarded unless all of it can be.
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
        if let Some((first, _)) = ranges.iter().find(|(f, c)| !self.within_limit(*f, *c)) {
            return fail(tf, IDNF, *first);
        }
        self.wake();
        for (first, count) in &ranges {
            if self.medium.trim(*first, *count).is_err() {
                return abort(tf);
            }
        }
        self.spend(Duration::from_micros(200 + 20 * ranges.len() as u64));
        done(tf, Vec::new())
    }
}

/// Native flash without an ATA face: the same medium and speed model, nothing else.
#[derive(Debug)]
pub struct Flash {
    pub medium: Media,
    speed: Speed,
    next_lba: u64,
    now: Duration,
}

impl Flash {
    /// An empty stick.
    pub fn new(medium: Media, speed: Speed) -> Self {
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

    /// Its speed model.
    pub fn speed(&self) -> &Speed {
        &self.speed
    }

    /// Its speed model, to tell it of the load.
    pub fn speed_mut(&mut self) -> &mut Speed {
        &mut self.speed
    }

    /// The stick's clock.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Reads sectors that are known to exist.
    pub fn read(&mut self, first: u64, count: u64) -> Result<Vec<u8>, MediumError> {
        self.move_data(Op::Read, first, count);
        self.medium.read(first, count)
    }

    /// Writes sectors that are known to exist.
    pub fn write(&mut self, first: u64, data: &[u8]) -> Result<(), MediumError> {
        let count = data.len() as u64 / self.medium.sector_bytes();
        self.move_data(Op::Write, first, count);
        self.medium.write(first, data).map(|_| ())
    }

    fn move_data(&mut self, op: Op, first: u64, count: u64) {
        let bytes = count.saturating_mul(self.medium.sector_bytes());
        let took = self.speed.transfer(op, bytes, first == self.next_lba);
        self.next_lba = first.saturating_add(count);
        self.now = self.now.saturating_add(took);
    }
}
