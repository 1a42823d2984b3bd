//! Block commands: READ, WRITE, flush, power and unmap, translated to taskfiles (SBC-3; SAT).

use super::{Answer, Bridge, Inner, sense};
use crate::sim::buf::{byte, put_be16, put8};
use crate::sim::drive::{Outcome, Taskfile};
use crate::wire::{be16, be32, be64};
use sense::Code;

impl Bridge {
    /// READ(10), READ(16), WRITE(10), WRITE(16).
    pub(super) fn read_write(&mut self, cdb: &[u8], data_out: &[u8]) -> Answer {
        let opcode = byte(cdb, 0);
        let (first, count) = if matches!(opcode, 0x88 | 0x8a) {
            (
                be64(cdb, 2).unwrap_or_default(),
                u64::from(be32(cdb, 10).unwrap_or_default()),
            )
        } else {
            (
                u64::from(be32(cdb, 2).unwrap_or_default()),
                u64::from(be16(cdb, 7).unwrap_or_default()),
            )
        };
        if first.checked_add(count).is_none_or(|end| end > self.sectors()) {
            return Answer::check(Code::LBA_OUT_OF_RANGE);
        }
        if count > self.max_transfer_blocks() {
            return Answer::invalid_field(if matches!(opcode, 0x88 | 0x8a) { 10 } else { 7 });
        }
        if self.stopped {
            return Answer::check(Code::START_UNIT_REQUIRED);
        }
        if count == 0 {
            return Answer::good(Vec::new());
        }
        let bytes = usize::try_from(count.saturating_mul(self.sector_bytes())).unwrap_or(usize::MAX);
        if matches!(opcode, 0x2a | 0x8a) {
            let Some(payload) = data_out.get(..bytes) else {
                return Answer::check(Code::DATA_PHASE);
            };
            match &mut self.inner {
                Inner::Flash(flash) => {
                    flash.write(first, payload);
                    Answer::good(Vec::new())
                }
                Inner::Ata(_) => self.ata_transfer(false, first, count, payload),
            }
        } else {
            match &mut self.inner {
                Inner::Flash(flash) => Answer::good(flash.read(first, count)),
                Inner::Ata(_) => self.ata_transfer(true, first, count, &[]),
            }
        }
    }

    fn ata_transfer(&mut self, read: bool, first: u64, count: u64, payload: &[u8]) -> Answer {
        let wide = self.profile.ext;
        let command = match (read, wide) {
            (true, true) => 0x25,
            (true, false) => 0xc8,
            (false, true) => 0x35,
            (false, false) => 0xca,
        };
        let step = if wide { 0x1_0000 } else { 256 };
        let sector_bytes = usize::try_from(self.sector_bytes()).unwrap_or(512);
        let mut data = Vec::new();
        let mut done = 0;
        while done < count {
            let now = (count - done).min(step);
            let lba = first + done;
            let taskfile = Taskfile {
                count: now as u16,
                lba: if wide { lba } else { lba & 0x00ff_ffff },
                device: 0x40 | if wide { 0 } else { (lba >> 24 & 0x0f) as u8 },
                command,
                ..Taskfile::default()
            };
            let from = usize::try_from(done)
                .unwrap_or_default()
                .saturating_mul(sector_bytes);
            let outcome = self.ata(&taskfile, payload.get(from..).unwrap_or_default());
            match outcome {
                Some(outcome) if !outcome.registers.failed() => data.extend(outcome.data),
                Some(outcome) => return Answer::check(Code::from_registers(&outcome.registers)),
                None => return Answer::check(Code::INVALID_OPCODE),
            }
            done += now;
        }
        Answer::good(data)
    }

    /// Sends a taskfile of the bridge's own.
    pub(super) fn ata(&mut self, taskfile: &Taskfile, data_out: &[u8]) -> Option<Outcome> {
        match &mut self.inner {
            Inner::Ata(drive) => Some(drive.execute(taskfile, data_out)),
            Inner::Flash(_) => None,
        }
    }

    fn ata_plain(&mut self, command: u8) -> Answer {
        let taskfile = Taskfile {
            command,
            device: 0x40,
            count: 1,
            ..Taskfile::default()
        };
        match self.ata(&taskfile, &[]) {
            Some(outcome) if outcome.registers.failed() => {
                Answer::check(Code::from_registers(&outcome.registers))
            }
            _ => Answer::good(Vec::new()),
        }
    }

    /// SYNCHRONIZE CACHE(10) and (16).
    pub(super) fn synchronize_cache(&mut self) -> Answer {
        let command = if self.profile.ext { 0xea } else { 0xe7 };
        self.ata_plain(command)
    }

    /// START STOP UNIT: start, stop, and the power conditions active, idle and standby.
    pub(super) fn start_stop(&mut self, cdb: &[u8]) -> Answer {
        let control = byte(cdb, 4);
        match (control >> 4, control & 0x03) {
            (0, 0) => {
                self.synchronize_cache();
                self.stopped = true;
                self.ata_plain(0xe0)
            }
            (0, 1) | (1, _) => {
                self.stopped = false;
                // A verify of sector 0 brings the medium up to speed.
                self.ata_plain(0x40)
            }
            (2, _) => self.ata_plain(0xe1),
            (3, _) => self.ata_plain(0xe0),
            _ => Answer::invalid_field(4),
        }
    }

    /// MODE SENSE(6) and (10): the header and, when asked, the caching page.
    pub(super) fn mode_sense(&self, cdb: &[u8]) -> Answer {
        if !self.profile.mode_sense {
            return Answer::check(Code::INVALID_OPCODE);
        }
        let short = byte(cdb, 0) == 0x1a;
        let page = byte(cdb, 2) & 0x3f;
        if !matches!(page, 0x08 | 0x3f) || byte(cdb, 3) != 0 {
            return Answer::invalid_field(2);
        }
        let mut caching = vec![0; 20];
        put8(&mut caching, 0, 0x08);
        put8(&mut caching, 1, 0x12);
        put8(&mut caching, 2, 0x04);
        let mut data = if short { vec![0; 4] } else { vec![0; 8] };
        data.extend(caching);
        let allocation = if short {
            put8(&mut data, 0, 23);
            usize::from(byte(cdb, 4))
        } else {
            put_be16(&mut data, 0, 26);
            usize::from(be16(cdb, 7).unwrap_or_default())
        };
        data.truncate(allocation);
        Answer::good(data)
    }

    /// LOG SENSE: the list of pages and the temperature page.
    pub(super) fn log_sense(&self, cdb: &[u8]) -> Answer {
        if !self.profile.log_temperature {
            return Answer::check(Code::INVALID_OPCODE);
        }
        let page = byte(cdb, 2) & 0x3f;
        let mut data = match page {
            0x00 => vec![0x00, 0x00, 0x00, 0x02, 0x00, 0x0d],
            0x0d => {
                let celsius = match &self.inner {
                    Inner::Ata(drive) => drive.temperature_c(),
                    Inner::Flash(_) => None,
                };
                // FFh: not known; negative values cannot be told.
                let shown = celsius.map_or(0xff, |t| t.max(0) as u8);
                let limit = match &self.inner {
                    Inner::Ata(drive) => drive.profile().limits_c.operating.1.max(0) as u8,
                    Inner::Flash(_) => 0xff,
                };
                vec![
                    0x0d, 0x00, 0x00, 0x0c, 0x00, 0x00, 0x03, 0x02, 0x00, shown, 0x00, 0x01, 0x03, 0x02,
                    0x00, limit,
                ]
            }
            _ => return Answer::invalid_field(2),
        };
        data.truncate(usize::from(be16(cdb, 7).unwrap_or_default()));
        Answer::good(data)
    }

    /// UNMAP: each descriptor becomes ranges of DATA SET MANAGEMENT.
    pub(super) fn unmap(&mut self, cdb: &[u8], data_out: &[u8]) -> Answer {
        if !self.profile.unmap {
            return Answer::check(Code::INVALID_OPCODE);
        }
        let announced = usize::from(be16(cdb, 7).unwrap_or_default());
        let list = data_out.get(..announced).unwrap_or(data_out);
        let descriptors = usize::from(be16(list, 2).unwrap_or_default());
        let Some(body) = list.get(8..).and_then(|b| b.get(..descriptors)) else {
            return if announced == 0 {
                Answer::good(Vec::new())
            } else {
                Answer::check(Code::INVALID_PARAMETER)
            };
        };
        if body.len() > 16 {
            return Answer::check(Code::INVALID_PARAMETER);
        }
        for entry in body.chunks_exact(16) {
            let first = be64(entry, 0).unwrap_or_default();
            let count = u64::from(be32(entry, 8).unwrap_or_default());
            let answer = self.discard(first, count);
            if answer.status != 0 {
                return answer;
            }
        }
        Answer::good(Vec::new())
    }

    /// WRITE SAME(16) with UNMAP and a block of zeros.
    pub(super) fn write_same(&mut self, cdb: &[u8], data_out: &[u8]) -> Answer {
        let flags = byte(cdb, 1);
        if !self.profile.unmap {
            return Answer::check(Code::INVALID_OPCODE);
        }
        let without_data = flags & 0x01 != 0;
        if flags & 0x08 == 0 || (!without_data && data_out.iter().any(|b| *b != 0)) {
            return Answer::invalid_field(1);
        }
        self.discard(
            be64(cdb, 2).unwrap_or_default(),
            u64::from(be32(cdb, 10).unwrap_or_default()),
        )
    }

    fn discard(&mut self, first: u64, count: u64) -> Answer {
        if first.checked_add(count).is_none_or(|end| end > self.sectors()) {
            return Answer::check(Code::LBA_OUT_OF_RANGE);
        }
        if count > self.unmap_ranges().saturating_mul(65_535) {
            return Answer::check(Code::INVALID_PARAMETER);
        }
        let mut payload = Vec::new();
        let (mut at, end) = (first, first + count);
        while at < end {
            let length = (end - at).min(65_535);
            payload.extend((at | length << 48).to_le_bytes());
            at += length;
        }
        if payload.is_empty() {
            return Answer::good(Vec::new());
        }
        payload.resize(payload.len().div_ceil(512) * 512, 0);
        let taskfile = Taskfile {
            features: 1,
            count: (payload.len() / 512) as u16,
            lba: 0,
            device: 0x40,
            command: 0x06,
        };
        match self.ata(&taskfile, &payload) {
            Some(outcome) if !outcome.registers.failed() => Answer::good(Vec::new()),
            Some(outcome) => Answer::check(Code::from_registers(&outcome.registers)),
            None => Answer::check(Code::INVALID_OPCODE),
        }
    }

    /// TEST UNIT READY.
    pub(super) fn test_unit_ready(&self) -> Answer {
        if self.stopped {
            Answer::check(Code::START_UNIT_REQUIRED)
        } else {
            Answer::good(Vec::new())
        }
    }

    /// REQUEST SENSE: nothing is kept here, since every answer brings its own sense; a bridge that knows tells of a
    /// sleeping drive.
    pub(super) fn request_sense(&mut self, cdb: &[u8]) -> Answer {
        let asleep = match &self.inner {
            Inner::Ata(drive) => drive.asleep(),
            Inner::Flash(_) => false,
        };
        let code = if self.stopped {
            Code::START_UNIT_REQUIRED
        } else if asleep && self.profile.request_sense_tells_power {
            Code::LOW_POWER
        } else {
            Code::NONE
        };
        let mut data = if byte(cdb, 1) & 0x01 != 0 {
            sense::descriptor(code)
        } else {
            sense::fixed(code)
        };
        data.truncate(usize::from(byte(cdb, 4)));
        Answer::good(data)
    }
}
