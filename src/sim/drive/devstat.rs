//! Device Statistics log, log 04h (ACS-3, "Device Statistics log").

use super::AtaDrive;
use crate::sim::buf::{put, put8, put16, put64};

/// Supported and valid.
const VALID: u64 = 0xc0 << 56;
/// Supported, but no value.
const SUPPORTED: u64 = 0x80 << 56;

impl AtaDrive {
    /// One page; a page that the drive does not list is all zeros.
    pub(super) fn statistics_page(&self, page: u8) -> Vec<u8> {
        let mut sector = vec![0; 512];
        if !self.profile.statistics.contains(&page) {
            return sector;
        }
        put16(&mut sector, 0, 1);
        put8(&mut sector, 2, page);
        let c = &self.counters;
        let rotating = self.profile.rotation != 1;
        let entries: Vec<(usize, u64)> = match page {
            0 => {
                put8(&mut sector, 8, self.profile.statistics.len() as u8);
                put(&mut sector, 9, &self.profile.statistics);
                Vec::new()
            }
            1 => vec![
                (8, c.power_cycles & 0xffff_ffff),
                (16, self.power_on_hours()),
                (24, c.sectors_written),
                (32, c.write_commands),
                (40, c.sectors_read),
                (48, c.read_commands),
                (64, self.medium.pending().total()),
            ],
            3 => vec![
                (8, self.power_on_hours()),
                (16, self.power_on_hours()),
                (24, c.load_cycles.saturating_add(self.power.wakes())),
                (32, self.reallocated()),
                (40, 0),
                (48, 0),
            ],
            4 => vec![(8, self.errors.unreadable()), (16, 0)],
            5 => {
                self.temperature_page(&mut sector);
                Vec::new()
            }
            6 => vec![(8, c.resets), (16, 0), (24, c.crc_errors)],
            7 if !rotating => vec![(8, self.percent_used())],
            _ => Vec::new(),
        };
        for (offset, value) in entries {
            put64(&mut sector, offset, VALID | (value & 0xffff_ffff_ffff));
        }
        sector
    }

    fn temperature_page(&self, sector: &mut [u8]) {
        let limits = &self.profile.limits_c;
        let (low, high) = self.extremes_c();
        let (low, high) = (limits.lifetime.0.min(low), limits.lifetime.1.max(high));
        let celsius = |t: i8| VALID | u64::from(t as u8);
        let now = self.temperature_c().map_or(SUPPORTED, celsius);
        put64(sector, 8, now);
        // Averages need more history than one session has.
        for offset in [16, 24, 48, 56, 64, 72] {
            put64(sector, offset, SUPPORTED);
        }
        let known = self.temperature_c().is_some();
        put64(sector, 32, if known { celsius(high) } else { SUPPORTED });
        put64(sector, 40, if known { celsius(low) } else { SUPPORTED });
        put64(sector, 80, VALID);
        put64(sector, 88, celsius(limits.operating.1));
        put64(sector, 96, VALID);
        put64(sector, 104, celsius(limits.operating.0));
    }
}
