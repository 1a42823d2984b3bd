//! Log directories and general purpose logging (ACS-2, "General Purpose Logging").

use super::{AtaDrive, Outcome, Taskfile, abort, done, errors};
use crate::sim::buf::{put, put8, put16, put32, put64, seal};

/// Pages of each host vendor log.
pub const HOST_PAGES: u16 = 16;
/// Pages of the pending defects log: 31 entries on the first, 32 on each other.
const DEFECT_PAGES: u16 = 8;
/// Pages of the IDENTIFY DEVICE data log that say something.
const IDENTIFY_PAGES: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 8];
/// A qword of the IDENTIFY DEVICE data log that holds something.
const VALID: u64 = 1 << 63;

impl AtaDrive {
    /// Pages that a log has through READ LOG EXT; 0 where it is not there.
    fn gpl_pages(&self, log: u8) -> u16 {
        let sct = self.profile.sct & 1;
        match log {
            0x00 | 0x07 | 0x10 | 0x11 => 1,
            0x03 => errors::SECTORS,
            0x04 if !self.profile.statistics.is_empty() => 8,
            0x0c => DEFECT_PAGES,
            0x30 => 9,
            0x80..=0x9f => HOST_PAGES,
            0xe0 | 0xe1 => sct,
            _ => 0,
        }
    }

    /// Sectors that a log has through SMART READ LOG; 0 where it is not there.
    fn smart_log_sectors(&self, log: u8) -> u16 {
        let sct = self.profile.sct & 1;
        match log {
            0x00 | 0x01 | 0x06 | 0x09 => 1,
            0x02 => errors::SECTORS,
            0x04 if !self.profile.statistics.is_empty() => 8,
            0x30 if self.profile.gpl => 9,
            0x80..=0x9f => HOST_PAGES,
            0xe0 | 0xe1 => sct,
            _ => 0,
        }
    }

    /// READ LOG EXT and SMART READ LOG: whole sectors, or `None` for ABRT.
    pub(super) fn read_log(&mut self, gpl: bool, log: u8, first: u16, count: u16) -> Option<Vec<u8>> {
        let pages = if gpl {
            self.gpl_pages(log)
        } else {
            self.smart_log_sectors(log)
        };
        if count == 0 || first.checked_add(count)? > pages {
            return None;
        }
        if log == 0xe1 {
            return self.sct_read_data(usize::from(count));
        }
        let mut out = Vec::with_capacity(512 * usize::from(count));
        for page in first..first + count {
            out.extend(self.log_page(gpl, log, page));
        }
        Some(out)
    }

    fn log_page(&self, gpl: bool, log: u8, page: u16) -> Vec<u8> {
        match (log, gpl) {
            (0x00, _) => self.directory(gpl),
            (0x01, false) => self.error_log(false, page),
            (0x02, false) => self.error_log(true, page),
            (0x03, true) => self.extended_error_log(page),
            (0x04, _) => self.statistics_page(page as u8),
            (0x06, false) => self.self_test_log(),
            (0x07, true) => self.extended_self_test_log(),
            (0x09, false) => self.selective_log(),
            (0x0c, true) => self.pending_defects(page),
            (0x10, true) => {
                let mut sector = vec![0; 512];
                // No queued command has failed.
                put8(&mut sector, 0, 0x80);
                seal(&mut sector);
                sector
            }
            (0x11, true) => self.phy_counters(),
            (0x30, _) => self.identify_log(page as u8),
            (0x80..=0x9f, _) => {
                let held = self.host_logs.get(&(log, page));
                held.cloned().unwrap_or_else(|| vec![0; 512])
            }
            (0xe0, _) => self.sct_status(),
            _ => vec![0; 512],
        }
    }

    fn directory(&self, gpl: bool) -> Vec<u8> {
        let mut sector = vec![0; 512];
        put16(&mut sector, 0, 1);
        for log in 1..=255u8 {
            let pages = if gpl {
                self.gpl_pages(log)
            } else {
                self.smart_log_sectors(log)
            };
            put16(&mut sector, 2 * usize::from(log), pages);
        }
        sector
    }

    /// SATA phy event counters: 4-byte counters as (identifier with length, value).
    fn phy_counters(&self) -> Vec<u8> {
        let mut sector = vec![0; 512];
        let counters = [(0x2001, self.counters.crc_errors as u32), (0x200a, 1)];
        for (slot, (identifier, value)) in counters.into_iter().enumerate() {
            put16(&mut sector, 4 + slot * 6, identifier);
            put32(&mut sector, 6 + slot * 6, value);
        }
        seal(&mut sector);
        sector
    }

    /// Pending defects log (ACS-4, "Pending Defects log"): the number on the first page, then entries of 16 bytes.
    fn pending_defects(&self, page: u16) -> Vec<u8> {
        let mut sector = vec![0; 512];
        let pending = self.medium.pending();
        let (mut at, skip) = match page {
            0 => (16, 0),
            n => (0, 31 + 32 * (usize::from(n) - 1)),
        };
        if page == 0 {
            let room = 31 + 32 * (u64::from(DEFECT_PAGES) - 1);
            put32(&mut sector, 0, pending.total().min(room) as u32);
        }
        for lba in pending.iter().flat_map(|(first, end)| first..end).skip(skip) {
            if at >= 512 {
                break;
            }
            // When it was found is not known: at power-on at the latest.
            let hours = self.counters.power_on_minutes / 60;
            put32(&mut sector, at, hours as u32);
            put64(&mut sector, at + 8, lba);
            at += 16;
        }
        sector
    }

    /// IDENTIFY DEVICE data log (ACS-3, "IDENTIFY DEVICE data log").
    fn identify_log(&self, page: u8) -> Vec<u8> {
        let mut sector = vec![0; 512];
        if !IDENTIFY_PAGES.contains(&page) {
            return sector;
        }
        if page == 1 {
            return super::identify::page(self);
        }
        // Revision 0001h and the page number; the list of pages has no bit 63.
        let valid = if page == 0 { 0 } else { VALID };
        put64(&mut sector, 0, valid | u64::from(page) << 16 | 1);
        let identify = super::identify::page(self);
        let words = |word: usize, count: usize| {
            let text = identify.get(2 * word..2 * (word + count));
            text.unwrap_or_default().to_vec()
        };
        match page {
            0 => {
                put8(&mut sector, 8, IDENTIFY_PAGES.len() as u8);
                put(&mut sector, 9, &IDENTIFY_PAGES);
            }
            2 => {
                let logical = self.medium.sector_bytes();
                let per_physical = (self.physical_sector_bytes / logical.max(1)).max(1);
                put64(&mut sector, 8, VALID | self.sectors());
                // Bits 62 and 61: the relation and the size below are there.
                let relation = u64::from(per_physical.trailing_zeros());
                put64(&mut sector, 16, VALID | 3 << 61 | relation << 16);
                put64(&mut sector, 24, VALID | (logical / 2));
            }
            3 => {
                let trim = self.profile.trim.as_ref();
                // WRITE UNCORRECTABLE, logs by DMA, error log, self-test, logs, FUA, APM, 48-bit, FLUSH CACHE EXT, SMART, power
                // management, write cache, look-ahead, READ and WRITE BUFFER.
                let bits = [
                    (1, true),
                    (2, self.profile.gpl),
                    (7, true),
                    (8, true),
                    (11, self.profile.gpl),
                    (12, true),
                    (16, self.profile.rotation != 1),
                    (20, true),
                    (22, true),
                    (23, true),
                    (24, true),
                    (25, true),
                    (26, true),
                    (28, true),
                    (29, true),
                    (31, trim.is_some_and(|t| t.zeroes)),
                    (38, trim.is_some_and(|t| t.deterministic)),
                    (40, self.profile.amac),
                ];
                let supported = bits.iter().fold(0, |all, (bit, on)| all | u64::from(*on) << bit);
                put64(&mut sector, 8, VALID | supported);
            }
            5 => {
                put(&mut sector, 8, &words(10, 10));
                put(&mut sector, 32, &words(23, 4));
                put(&mut sector, 48, &words(27, 20));
            }
            // Current settings, security and Serial ATA: the pages are there, their fields say nothing.
            _ => {}
        }
        sector
    }

    /// READ LOG (DMA) EXT and SMART READ LOG.
    pub(super) fn log_read(&mut self, tf: &Taskfile, gpl: bool, log: u8, first: u16, count: u16) -> Outcome {
        if log != 0xe0 {
            self.wake();
        }
        match self.read_log(gpl, log, first, count) {
            Some(data) => done(tf, data),
            None => abort(tf),
        }
    }

    /// WRITE LOG (DMA) EXT and SMART WRITE LOG.
    pub(super) fn log_write(
        &mut self,
        tf: &Taskfile,
        gpl: bool,
        log: u8,
        first: u16,
        data_out: &[u8],
    ) -> Outcome {
        let Some(data) = data_out
            .get(..512 * usize::from(tf.count))
            .filter(|d| !d.is_empty())
        else {
            return abort(tf);
        };
        if (0x80..=0x9f).contains(&log) {
            if u32::from(first) + u32::from(tf.count) > u32::from(HOST_PAGES) {
                return abort(tf);
            }
            self.wake();
            for (page, sector) in (first..).zip(data.chunks_exact(512)) {
                self.host_logs.insert((log, page), sector.to_vec());
            }
            return done(tf, Vec::new());
        }
        if log == 0x09 && !gpl && tf.count == 1 {
            self.wake();
            return if self.write_selective_log(data) {
                done(tf, Vec::new())
            } else {
                abort(tf)
            };
        }
        if log != 0xe0 || self.profile.sct & 1 == 0 || tf.count != 1 {
            return abort(tf);
        }
        match self.sct_command(data_out) {
            Ok(value) => {
                let mut outcome = done(tf, Vec::new());
                if let Some(value) = value {
                    outcome.registers.count = value & 0xff;
                    outcome.registers.lba = outcome.registers.lba & !0xff | u64::from(value >> 8);
                }
                outcome
            }
            Err(()) => abort(tf),
        }
    }
}
