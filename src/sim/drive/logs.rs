//! Log directories and general purpose logging (ACS-2, "General Purpose Logging").

use super::AtaDrive;
use crate::sim::buf::{put8, put16, put32, put64, seal};

impl AtaDrive {
    /// Pages that a log has through READ LOG EXT; 0 where it is not there.
    fn gpl_pages(&self, log: u8) -> u16 {
        let sct = self.profile.sct & 1;
        match log {
            0x00 | 0x03 | 0x07 | 0x10 | 0x11 => 1,
            0x04 if !self.profile.statistics.is_empty() => 8,
            0x30 => 2,
            0x80..=0x9f => 16,
            0xe0 | 0xe1 => sct,
            _ => 0,
        }
    }

    /// Sectors that a log has through SMART READ LOG; 0 where it is not there.
    fn smart_log_sectors(&self, log: u8) -> u16 {
        let sct = self.profile.sct & 1;
        match log {
            0x00 | 0x01 | 0x06 | 0x09 => 1,
            0x04 if !self.profile.statistics.is_empty() => 8,
            0x30 if self.profile.gpl => 2,
            0x80..=0x9f => 16,
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
            (0x01, false) => self.summary_error_log(),
            (0x03, true) => {
                let mut sector = vec![0; 512];
                put8(&mut sector, 0, 1);
                seal(&mut sector);
                sector
            }
            (0x04, _) => self.statistics_page(page as u8),
            (0x06, false) => self.self_test_log(),
            (0x07, true) => self.extended_self_test_log(),
            (0x09, false) => self.selective_log(),
            (0x10, true) => {
                let mut sector = vec![0; 512];
                // No queued command has failed.
                put8(&mut sector, 0, 0x80);
                seal(&mut sector);
                sector
            }
            (0x11, true) => self.phy_counters(),
            (0x30, _) => self.identify_log(page),
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

    /// IDENTIFY DEVICE data log: the list of pages and the copy of IDENTIFY DEVICE data.
    fn identify_log(&self, page: u16) -> Vec<u8> {
        if page == 1 {
            return super::identify::page(self);
        }
        let mut sector = vec![0; 512];
        put64(&mut sector, 0, 1);
        put8(&mut sector, 8, 2);
        put8(&mut sector, 9, 0x00);
        put8(&mut sector, 10, 0x01);
        sector
    }
}
