//! How much of the medium may be reached: the host protected area (ATA8-ACS, "Host Protected Area") or ACCESSIBLE MAX ADDRESS
//! CONFIGURATION (ACS-3, "Accessible Max Address Configuration").

use super::{ABRT, AtaDrive, IDNF, Outcome, Taskfile, abort, done, fail, put_lba};

/// Limits below the native capacity, in sectors.
#[derive(Debug, Default)]
pub struct Limit {
    /// Survives a power cycle; with it, whether the 48-bit command set it.
    lasting: Option<(u64, bool)>,
    /// Until the next reset; the same.
    passing: Option<(u64, bool)>,
    /// A lasting change was made since power-on.
    changed: bool,
    frozen: bool,
}

impl Limit {
    /// A hardware reset takes a passing limit back.
    pub fn hard_reset(&mut self) {
        self.passing = None;
    }

    /// Power-on allows a lasting change again.
    pub fn power_on(&mut self) {
        self.hard_reset();
        self.changed = false;
        self.frozen = false;
    }
}

impl AtaDrive {
    /// Sectors that may be reached at present.
    pub fn sectors(&self) -> u64 {
        let native = self.medium.sectors();
        let limit = self.limit.passing.or(self.limit.lasting);
        limit.map_or(native, |(sectors, _)| sectors.min(native))
    }

    /// READ NATIVE MAX ADDRESS and its 48-bit form.
    pub(super) fn native_max(&mut self, tf: &Taskfile) -> Outcome {
        let last = self.medium.sectors().saturating_sub(1);
        let mut outcome = done(tf, Vec::new());
        if tf.command == 0xf8 {
            put_lba(&mut outcome.registers, last.min(0x0fff_fffe), false);
        } else {
            put_lba(&mut outcome.registers, last, true);
        }
        outcome
    }

    /// SET MAX ADDRESS and its 48-bit form; `before` is the command that came just before.
    pub(super) fn set_max(&mut self, tf: &Taskfile, before: u8) -> Outcome {
        let wide = tf.command == 0x37;
        let (pair, last) = if wide {
            (0x27, tf.lba & 0xffff_ffff_ffff)
        } else {
            (0xf8, tf.lba & 0x00ff_ffff | u64::from(tf.device & 0x0f) << 24)
        };
        let lasting = tf.count & 1 == 1;
        let native = self.medium.sectors();
        // The narrow command may not touch what the wide one has set.
        let set_wide = |limit: Option<(u64, bool)>| limit.is_some_and(|(_, wide)| wide);
        let taken = !wide && (set_wide(self.limit.passing) || set_wide(self.limit.lasting));
        if before != pair || last >= native || taken {
            return abort(tf);
        }
        if lasting && self.limit.changed {
            return fail(tf, IDNF | ABRT, tf.lba);
        }
        let sectors = last + 1;
        if lasting {
            self.limit.changed = true;
            self.limit.lasting = (sectors < native).then_some((sectors, wide));
            self.limit.passing = None;
        } else {
            self.limit.passing = Some((sectors, wide));
        }
        let mut outcome = done(tf, Vec::new());
        put_lba(&mut outcome.registers, last, wide);
        outcome
    }

    /// ACCESSIBLE MAX ADDRESS CONFIGURATION: get, set, freeze.
    pub(super) fn accessible_max(&mut self, tf: &Taskfile) -> Outcome {
        let native = self.medium.sectors();
        match tf.features {
            0 => {
                let mut outcome = done(tf, Vec::new());
                put_lba(&mut outcome.registers, native.saturating_sub(1), true);
                outcome
            }
            1 if self.limit.frozen || self.limit.changed => abort(tf),
            1 if tf.lba >= native => fail(tf, IDNF, tf.lba),
            1 => {
                self.limit.changed = true;
                self.limit.lasting = (tf.lba + 1 < native).then_some((tf.lba + 1, true));
                done(tf, Vec::new())
            }
            2 if !self.limit.frozen => {
                self.limit.frozen = true;
                done(tf, Vec::new())
            }
            _ => abort(tf),
        }
    }
}
