//! Block commands: READ, WRITE, flush, power and unmap, translated to taskfiles (SBC-3; SAT).

use super::{Answer, Bridge, Inner, sense};
use crate::sim::buf::{byte, put_be16, put8};
use crate::sim::drive::{Outcome, Registers, Taskfile};
use crate::sim::media::MediumError;
use crate::sim::rng::Rng;
use crate::wire::{be16, be32, be64};
use sense::Code;

/// Mode pages, in the order of their numbers.
const MODE_PAGES: [u8; 3] = [0x08, 0x0a, 0x1c];

/// The key stream of a bridge that encrypts: a byte for each byte, by the sector's address. Both ways are the same.
fn encrypt(first: u64, sector_bytes: usize, data: &mut [u8]) {
    for (lba, sector) in (first..).zip(data.chunks_mut(sector_bytes.max(1))) {
        let mut rng = Rng::from_seed(lba ^ 0x6b65_7973);
        for piece in sector.chunks_mut(8) {
            for (byte, key) in piece.iter_mut().zip(rng.next_u64().to_le_bytes()) {
                *byte ^= key;
            }
        }
    }
}

/// What a translated command does.
#[derive(Debug, Clone, Copy)]
enum Way {
    Read,
    Write { fua: bool },
    Verify,
}

/// First block, number of blocks, and the byte of the CDB where the number stands.
pub(super) fn extent(cdb: &[u8]) -> (u64, u64, u8) {
    let narrow = || u64::from(be32(cdb, 2).unwrap_or_default());
    match byte(cdb, 0) {
        0x08 | 0x0a => {
            let first = be32(cdb, 0).unwrap_or_default() & 0x001f_ffff;
            // 0 means 256.
            (u64::from(first), u64::from(byte(cdb, 4).wrapping_sub(1)) + 1, 4)
        }
        0xa8 | 0xaa => (narrow(), u64::from(be32(cdb, 6).unwrap_or_default()), 6),
        0x88 | 0x8a | 0x8f => (
            be64(cdb, 2).unwrap_or_default(),
            u64::from(be32(cdb, 10).unwrap_or_default()),
            10,
        ),
        _ => (narrow(), u64::from(be16(cdb, 7).unwrap_or_default()), 7),
    }
}

/// What native flash came to.
fn answer_of(result: Result<Vec<u8>, MediumError>) -> Answer {
    match result {
        Ok(data) => Answer::good(data),
        Err(MediumError::Unreadable(block)) => Answer::unreadable(Code::UNREADABLE, block),
        Err(MediumError::Host) => Answer::check(Code::WRITE_ERROR),
    }
}

/// Sectors that 28-bit commands reach.
const NARROW_SECTORS: u64 = 1 << 28;

impl Bridge {
    /// READ and WRITE with 6, 10, 12 and 16 bytes.
    pub(super) fn read_write(&mut self, cdb: &[u8], data_out: &[u8]) -> Answer {
        let opcode = byte(cdb, 0);
        let (first, count, count_at) = extent(cdb);
        if first.checked_add(count).is_none_or(|end| end > self.sectors()) {
            return Answer::check(Code::LBA_OUT_OF_RANGE);
        }
        if count > self.max_transfer_blocks() {
            return Answer::invalid_field(count_at);
        }
        if self.stopped {
            return Answer::check(Code::START_UNIT_REQUIRED);
        }
        if count == 0 {
            return Answer::good(Vec::new());
        }
        if !matches!(opcode, 0x0a | 0x2a | 0xaa | 0x8a) {
            return match &mut self.inner {
                Inner::Flash(flash) => answer_of(flash.read(first, count)),
                Inner::Ata(_) => self.ata_transfer(Way::Read, first, count, &[]),
            };
        }
        let bytes = usize::try_from(count.saturating_mul(self.sector_bytes())).unwrap_or(usize::MAX);
        let Some(payload) = data_out.get(..bytes) else {
            return Answer::check(Code::DATA_PHASE);
        };
        let fua = opcode != 0x0a && byte(cdb, 1) & 0x08 != 0;
        match &mut self.inner {
            Inner::Flash(flash) => answer_of(flash.write(first, payload).map(|()| Vec::new())),
            Inner::Ata(_) => self.ata_transfer(Way::Write { fua }, first, count, payload),
        }
    }

    /// VERIFY(10) and (16), with or without a comparison.
    pub(super) fn verify(&mut self, cdb: &[u8], data_out: &[u8]) -> Answer {
        let (first, count, count_at) = extent(cdb);
        let compare = match byte(cdb, 1) >> 1 & 0x03 {
            0 => false,
            1 => true,
            _ => return Answer::invalid_field(1),
        };
        if first.checked_add(count).is_none_or(|end| end > self.sectors()) {
            return Answer::check(Code::LBA_OUT_OF_RANGE);
        }
        if count > self.max_transfer_blocks() {
            return Answer::invalid_field(count_at);
        }
        if self.stopped {
            return Answer::check(Code::START_UNIT_REQUIRED);
        }
        if count == 0 {
            return Answer::good(Vec::new());
        }
        let bytes = usize::try_from(count.saturating_mul(self.sector_bytes())).unwrap_or(usize::MAX);
        let wanted = data_out.get(..bytes);
        if compare && wanted.is_none() {
            return Answer::check(Code::DATA_PHASE);
        }
        let answer = match &mut self.inner {
            Inner::Flash(flash) => answer_of(flash.read(first, count)),
            Inner::Ata(_) if compare => self.ata_transfer(Way::Read, first, count, &[]),
            Inner::Ata(_) => self.ata_transfer(Way::Verify, first, count, &[]),
        };
        if answer.status != 0 {
            return answer;
        }
        if compare && wanted != Some(answer.data.as_slice()) {
            return Answer::check(Code::MISCOMPARE);
        }
        Answer::good(Vec::new())
    }

    fn ata_transfer(&mut self, way: Way, first_block: u64, blocks: u64, payload: &[u8]) -> Answer {
        let first = first_block.saturating_mul(self.sectors_per_block);
        let count = blocks.saturating_mul(self.sectors_per_block);
        // `ext` is about what hosts may send; for its own transfers a bridge reaches all of the drive.
        let wide = self.profile.ext || first.saturating_add(count) > NARROW_SECTORS;
        let command = match (way, wide) {
            (Way::Read, true) => 0x25,
            (Way::Read, false) => 0xc8,
            (Way::Write { fua: true }, true) => 0x3d,
            (Way::Write { .. }, true) => 0x35,
            (Way::Write { .. }, false) => 0xca,
            (Way::Verify, true) => 0x42,
            (Way::Verify, false) => 0x40,
        };
        let step = if wide { 0x1_0000 } else { 256 };
        let sector_bytes = usize::try_from(self.drive_sector_bytes()).unwrap_or(512);
        let mut data = Vec::new();
        let mut done = 0;
        while done < count {
            let (lba, until_wrap) = self.place(first + done);
            let now = (count - done).min(step).min(until_wrap);
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
            let plain = payload.get(from..).unwrap_or_default();
            let mut outcome = if self.encrypts && !plain.is_empty() {
                let mut secret = plain.to_vec();
                encrypt(lba, sector_bytes, &mut secret);
                self.ata(&taskfile, &secret)
            } else {
                self.ata(&taskfile, plain)
            };
            if self.encrypts
                && let Some(outcome) = &mut outcome
            {
                encrypt(lba, sector_bytes, &mut outcome.data);
            }
            match outcome {
                // One command brings it all nearly always: then nothing is copied.
                Some(outcome) if !outcome.registers.failed() && data.is_empty() => data = outcome.data,
                Some(outcome) if !outcome.registers.failed() => data.extend(outcome.data),
                Some(outcome) => return self.failed_transfer(&outcome.registers, wide),
                None => return Answer::check(Code::INVALID_OPCODE),
            }
            done += now;
        }
        Answer::good(data)
    }

    /// Where the drive has a sector of the host, and how many follow until the end wraps around.
    fn place(&self, sector: u64) -> (u64, u64) {
        let all = self.medium().sectors();
        if self.shift_sectors == 0 || all == 0 {
            return (sector, u64::MAX);
        }
        let there = sector.wrapping_add(self.shift_sectors) % all;
        (there, all - there)
    }

    fn failed_transfer(&self, registers: &Registers, wide: bool) -> Answer {
        let code = Code::from_registers(registers);
        if registers.error & 0x40 == 0 {
            return Answer::check(code);
        }
        let lba = if wide {
            registers.lba
        } else {
            registers.lba & 0x00ff_ffff | u64::from(registers.device & 0x0f) << 24
        };
        Answer::unreadable(code, lba / self.sectors_per_block.max(1))
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

    /// Caching, control and informational exceptions: the present values, or what of them can be changed.
    fn mode_page(&self, page: u8, control: u8) -> Option<Vec<u8>> {
        let (write_cache, look_ahead, changeable) = match &self.inner {
            Inner::Ata(_) if control == 2 => (true, true, true),
            Inner::Ata(drive) => {
                let (write_cache, look_ahead) = drive.caching();
                (write_cache, look_ahead, true)
            }
            Inner::Flash(_) => (true, true, false),
        };
        let mut data = match page {
            0x08 => vec![0; 20],
            // GLTSD: nothing is saved by itself; busy for as long as it takes; 30 s of self-test.
            0x0a => vec![0, 0, 0x02, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 30],
            // DEXCPT: informational exceptions are not reported.
            0x1c => vec![0, 0, 0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            _ => return None,
        };
        if page == 0x08 {
            put8(&mut data, 2, u8::from(write_cache) << 2);
            put8(&mut data, 12, u8::from(!look_ahead) << 5);
        }
        if control == 1 {
            data.fill(0);
            if page == 0x08 {
                put8(&mut data, 2, u8::from(changeable) << 2);
            }
        }
        put8(&mut data, 0, page);
        let len = data.len().saturating_sub(2) as u8;
        put8(&mut data, 1, len);
        Some(data)
    }

    /// MODE SENSE(6) and (10): the header and one page, or all.
    pub(super) fn mode_sense(&self, cdb: &[u8]) -> Answer {
        if !self.profile.mode_sense {
            return Answer::check(Code::INVALID_OPCODE);
        }
        let short = byte(cdb, 0) == 0x1a;
        let (page, control) = (byte(cdb, 2) & 0x3f, byte(cdb, 2) >> 6);
        if control == 3 {
            return Answer::check(Code::NO_SAVED_PAGES);
        }
        let pages: Vec<u8> = match page {
            0x3f => MODE_PAGES
                .iter()
                .filter_map(|page| self.mode_page(*page, control))
                .flatten()
                .collect(),
            page => self.mode_page(page, control).unwrap_or_default(),
        };
        if pages.is_empty() || byte(cdb, 3) != 0 {
            return Answer::invalid_field(2);
        }
        let mut data = if short { vec![0; 4] } else { vec![0; 8] };
        data.extend(pages);
        let allocation = if short {
            let len = data.len().saturating_sub(1) as u8;
            put8(&mut data, 0, len);
            usize::from(byte(cdb, 4))
        } else {
            let len = data.len().saturating_sub(2) as u16;
            put_be16(&mut data, 0, len);
            usize::from(be16(cdb, 7).unwrap_or_default())
        };
        data.truncate(allocation);
        Answer::good(data)
    }

    /// MODE SELECT(6) and (10): the write cache can be switched, all else has to be as it is.
    pub(super) fn mode_select(&mut self, cdb: &[u8], data_out: &[u8]) -> Answer {
        if !self.profile.mode_sense {
            return Answer::check(Code::INVALID_OPCODE);
        }
        // PF set, SP clear.
        if byte(cdb, 1) & 0x11 != 0x10 {
            return Answer::invalid_field(1);
        }
        let short = byte(cdb, 0) == 0x15;
        let (announced, header) = if short {
            (usize::from(byte(cdb, 4)), 4)
        } else {
            (usize::from(be16(cdb, 7).unwrap_or_default()), 8)
        };
        if announced == 0 {
            return Answer::good(Vec::new());
        }
        let Some(list) = data_out.get(..announced) else {
            return Answer::check(Code::DATA_PHASE);
        };
        let descriptors = if short {
            usize::from(byte(list, 3))
        } else {
            usize::from(be16(list, 6).unwrap_or_default())
        };
        let Some(mut rest) = list.get(header + descriptors..) else {
            return Answer::check(Code::PARAMETER_LENGTH);
        };
        let mut write_cache = None;
        while !rest.is_empty() {
            let len = 2 + usize::from(byte(rest, 1));
            let Some(page) = rest.get(..len) else {
                return Answer::check(Code::PARAMETER_LENGTH);
            };
            let number = byte(page, 0) & 0x3f;
            let (Some(present), Some(mask)) = (self.mode_page(number, 0), self.mode_page(number, 1)) else {
                return Answer::check(Code::INVALID_PARAMETER);
            };
            let fixed = page.len() == present.len()
                && (2..len).all(|n| (byte(page, n) ^ byte(&present, n)) & !byte(&mask, n) == 0);
            if !fixed {
                return Answer::check(Code::INVALID_PARAMETER);
            }
            if number == 0x08 && byte(&mask, 2) & 0x04 != 0 {
                write_cache = Some(byte(page, 2) & 0x04 != 0);
            }
            rest = rest.get(len..).unwrap_or_default();
        }
        let Some(on) = write_cache else {
            return Answer::good(Vec::new());
        };
        let taskfile = Taskfile {
            features: if on { 0x02 } else { 0x82 },
            device: 0x40,
            command: 0xef,
            ..Taskfile::default()
        };
        match self.ata(&taskfile, &[]) {
            Some(outcome) if outcome.registers.failed() => {
                Answer::check(Code::from_registers(&outcome.registers))
            }
            _ => Answer::good(Vec::new()),
        }
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

    /// Blocks that one UNMAP or WRITE SAME may discard.
    pub(super) fn most_unmapped_blocks(&self) -> u64 {
        self.unmap_ranges().saturating_mul(65_535) / self.sectors_per_block.max(1)
    }

    /// UNMAP: each descriptor becomes ranges of DATA SET MANAGEMENT. All of it is looked at before any of it is done.
    pub(super) fn unmap(&mut self, cdb: &[u8], data_out: &[u8]) -> Answer {
        if !self.profile.unmap {
            return Answer::check(Code::INVALID_OPCODE);
        }
        // No anchored blocks.
        if byte(cdb, 1) & 0x01 != 0 {
            return Answer::invalid_field(1);
        }
        let announced = usize::from(be16(cdb, 7).unwrap_or_default());
        if announced == 0 {
            return Answer::good(Vec::new());
        }
        let Some(list) = data_out.get(..announced) else {
            return Answer::check(Code::DATA_PHASE);
        };
        let descriptors = usize::from(be16(list, 2).unwrap_or_default());
        let Some(body) = list.get(8..).and_then(|b| b.get(..descriptors)) else {
            return Answer::check(Code::PARAMETER_LENGTH);
        };
        let extents: Vec<(u64, u64)> = body
            .chunks_exact(16)
            .map(|entry| {
                let count = be32(entry, 8).unwrap_or_default();
                (be64(entry, 0).unwrap_or_default(), u64::from(count))
            })
            .collect();
        if extents.len() > self.profile.unmap_descriptors as usize {
            return Answer::check(Code::INVALID_PARAMETER);
        }
        if extents
            .iter()
            .any(|(first, count)| !self.has_blocks(*first, *count))
        {
            return Answer::check(Code::LBA_OUT_OF_RANGE);
        }
        let total = extents
            .iter()
            .fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
        if total > self.most_unmapped_blocks() {
            return Answer::check(Code::INVALID_PARAMETER);
        }
        self.discard(&extents)
    }

    /// WRITE SAME(16) with UNMAP and a block of zeros, or none with NDOB.
    pub(super) fn write_same(&mut self, cdb: &[u8], data_out: &[u8]) -> Answer {
        let flags = byte(cdb, 1);
        if !self.profile.unmap {
            return Answer::check(Code::INVALID_OPCODE);
        }
        // UNMAP alone, or with NDOB: no protection, no anchor.
        if flags & !0x01 != 0x08 {
            return Answer::invalid_field(1);
        }
        let first = be64(cdb, 2).unwrap_or_default();
        let count = u64::from(be32(cdb, 10).unwrap_or_default());
        if count == 0 || count > self.most_unmapped_blocks() {
            return Answer::invalid_field(10);
        }
        if !self.has_blocks(first, count) {
            return Answer::check(Code::LBA_OUT_OF_RANGE);
        }
        if flags & 0x01 == 0 {
            let block = usize::try_from(self.sector_bytes()).unwrap_or(usize::MAX);
            let Some(data) = data_out.get(..block) else {
                return Answer::check(Code::DATA_PHASE);
            };
            // Any other pattern would have to be written, and this bridge does not.
            if data.iter().any(|b| *b != 0) {
                return Answer::invalid_field(1);
            }
        }
        self.discard(&[(first, count)])
    }

    fn has_blocks(&self, first: u64, count: u64) -> bool {
        first.checked_add(count).is_some_and(|end| end <= self.sectors())
    }

    /// DATA SET MANAGEMENT for block extents that were found to be good.
    fn discard(&mut self, extents: &[(u64, u64)]) -> Answer {
        let mut ranges = Vec::new();
        for (first, count) in extents {
            let mut at = first.saturating_mul(self.sectors_per_block);
            let end = at.saturating_add(count.saturating_mul(self.sectors_per_block));
            while at < end {
                let (there, until_wrap) = self.place(at);
                let length = (end - at).min(65_535).min(until_wrap);
                ranges.push(there | length << 48);
                at += length;
            }
        }
        let most = usize::try_from(self.unmap_ranges()).unwrap_or_default().max(64);
        for part in ranges.chunks(most) {
            let mut payload: Vec<u8> = part.iter().flat_map(|range| range.to_le_bytes()).collect();
            payload.resize(payload.len().div_ceil(512) * 512, 0);
            let taskfile = Taskfile {
                features: 1,
                count: (payload.len() / 512) as u16,
                lba: 0,
                device: 0x40,
                command: 0x06,
            };
            match self.ata(&taskfile, &payload) {
                Some(outcome) if !outcome.registers.failed() => {}
                Some(outcome) => return Answer::check(Code::from_registers(&outcome.registers)),
                None => return Answer::check(Code::INVALID_OPCODE),
            }
        }
        Answer::good(Vec::new())
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
