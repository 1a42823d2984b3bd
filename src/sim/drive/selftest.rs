//! Self-tests and their logs (ACS-2, "SMART EXECUTE OFF-LINE IMMEDIATE", "Self-test log", "Selective self-test log").
//!
//! A short or conveyance test reads the first hundredth of the medium, an extended one all of it, a selective one its spans.

use std::time::Duration;

use super::AtaDrive;
use crate::sim::buf::{put, put8, put16, put32, put48, put64, seal};
use crate::sim::spec::Health;
use crate::wire::{le16, le64};

/// Entries in the self-test log.
const KEPT: usize = 21;
/// Entries in the extended self-test log.
const KEPT_EXTENDED: usize = 19;

const ABORTED_BY_HOST: u8 = 0x1;
const INTERRUPTED_BY_RESET: u8 = 0x2;
const READ_FAILURE: u8 = 0x7;

/// A test that runs in the background.
#[derive(Debug, Clone, Copy)]
pub struct SelfTest {
    kind: u8,
    start: Duration,
    /// To the end, if nothing is found.
    takes: Duration,
    /// A bad sector, and when the test comes to it.
    finds: Option<(u64, Duration)>,
}

impl SelfTest {
    fn ends(&self) -> Duration {
        self.finds.map_or(self.takes, |(_, after)| after)
    }

    fn tenths_left(&self, now: Duration) -> u8 {
        let spent = now.saturating_sub(self.start).as_secs_f64();
        let left = 1.0 - spent / self.takes.as_secs_f64().max(1.0);
        (left * 10.0).ceil().clamp(0.0, 9.0) as u8
    }
}

/// An entry of the log.
#[derive(Debug, Clone, Copy)]
pub struct SelfTestResult {
    kind: u8,
    /// Result in the upper half, tenths that were left in the lower.
    status: u8,
    hours: u16,
    lba: Option<u64>,
}

/// What a host asks of a selective test.
#[derive(Debug, Clone, Default)]
pub struct Selective {
    spans: [(u64, u64); 5],
    flags: u16,
    pending_minutes: u16,
}

/// How a subcommand of EXECUTE OFF-LINE IMMEDIATE went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offline {
    Done,
    /// A captive test failed.
    Failed,
    Unknown,
}

impl AtaDrive {
    /// EXECUTE OFF-LINE IMMEDIATE.
    pub(super) fn execute_offline(&mut self, subcommand: u8) -> Offline {
        let sectors = self.sectors();
        let short = u64::from(self.profile.short_test_minutes);
        let extended = u64::from(self.profile.extended_test_minutes);
        let hundredth = vec![(0, sectors.div_ceil(100))];
        let (minutes, spans) = match subcommand & 0x7f {
            0x00 if subcommand == 0 => {
                self.smart.offline_status = 0x02;
                return Offline::Done;
            }
            0x01 => (short, hundredth),
            0x02 => (extended, vec![(0, sectors)]),
            0x03 => (5, hundredth),
            0x04 => {
                let spans = self.selective_spans();
                if spans.is_empty() {
                    return Offline::Unknown;
                }
                (extended, spans)
            }
            0x7f if subcommand == 0x7f => {
                self.stop_self_test(ABORTED_BY_HOST);
                return Offline::Done;
            }
            _ => return Offline::Unknown,
        };
        self.stop_self_test(ABORTED_BY_HOST);
        let total: u64 = spans.iter().map(|(_, count)| *count).sum();
        let mut takes = Duration::from_secs(60 * minutes);
        if subcommand & 0x7f == 4 {
            takes = takes.mul_f64((total as f64 / sectors.max(1) as f64).min(1.0));
        }
        let mut before = 0;
        let mut finds = None;
        for (first, count) in spans {
            if let Some(lba) = self.medium.first_unreadable(first, count) {
                let share = (before + lba - first) as f64 / total.max(1) as f64;
                finds = Some((lba, takes.mul_f64(share)));
                break;
            }
            before += count;
        }
        let test = SelfTest {
            kind: subcommand,
            start: self.now,
            takes,
            finds,
        };
        self.smart.running = Some(test);
        if subcommand & 0x80 == 0 {
            return Offline::Done;
        }
        // Captive: the answer waits for the end of the test, unless a reset comes first.
        self.hold(test.ends());
        if self.outcome(&test).0 >> 4 == 0 {
            Offline::Done
        } else {
            Offline::Failed
        }
    }

    /// The spans of a selective test that name something, as (first, count).
    fn selective_spans(&self) -> Vec<(u64, u64)> {
        let sectors = self.sectors();
        self.smart
            .selective
            .spans
            .iter()
            .filter(|(first, last)| *last > 0 && first <= last && *last < sectors)
            .map(|(first, last)| (*first, last - first + 1))
            .collect()
    }

    /// Status and address of a test that comes to its end.
    fn outcome(&self, test: &SelfTest) -> (u8, Option<u64>) {
        match test.finds {
            Some((lba, after)) => (
                READ_FAILURE << 4 | test.tenths_left(test.start.saturating_add(after)),
                Some(lba),
            ),
            None if self.health == Health::Failing => (READ_FAILURE << 4, None),
            None => (0, None),
        }
    }

    fn finish(&mut self, test: SelfTest) {
        let (status, lba) = self.outcome(&test);
        self.remember_self_test(test.kind, status, lba);
    }

    fn remember_self_test(&mut self, kind: u8, status: u8, lba: Option<u64>) {
        let result = SelfTestResult {
            kind,
            status,
            hours: self.power_on_hours() as u16,
            lba,
        };
        if self.smart.done.len() == KEPT {
            self.smart.done.remove(0);
        }
        self.smart.done.push(result);
    }

    fn stop_self_test(&mut self, why: u8) {
        if let Some(test) = self.smart.running.take() {
            let left = test.tenths_left(self.now);
            self.remember_self_test(test.kind, why << 4 | left, None);
        }
    }

    /// The host has sent what ends a test: STANDBY IMMEDIATE, SLEEP or SMART DISABLE.
    pub(super) fn abort_self_test(&mut self) {
        self.stop_self_test(ABORTED_BY_HOST);
    }

    /// A reset or the loss of power has ended it.
    pub(super) fn interrupt_self_test(&mut self) {
        self.stop_self_test(INTERRUPTED_BY_RESET);
    }

    /// Ends a background self-test whose time is over.
    pub(super) fn settle_self_test(&mut self) {
        if let Some(test) = self.smart.running
            && self.now.saturating_sub(test.start) >= test.ends()
        {
            self.smart.running = None;
            self.finish(test);
        }
    }

    /// Byte 363 of SMART READ DATA.
    pub(super) fn self_test_status(&self) -> u8 {
        match self.smart.running {
            Some(test) => 0xf0 | test.tenths_left(self.now),
            None => self.smart.done.last().map_or(0, |r| r.status),
        }
    }

    /// Self-test log (06h): 21 entries of 24 bytes.
    pub(super) fn self_test_log(&self) -> Vec<u8> {
        let mut sector = vec![0; 512];
        put16(&mut sector, 0, 1);
        for (slot, result) in self.smart.done.iter().enumerate() {
            let at = 2 + slot * 24;
            put(&mut sector, at, &[result.kind, result.status]);
            put16(&mut sector, at + 2, result.hours);
            put32(&mut sector, at + 5, result.lba.map_or(u32::MAX, |lba| lba as u32));
        }
        put8(&mut sector, 508, self.smart.done.len() as u8);
        seal(&mut sector);
        sector
    }

    /// Extended self-test log (07h): 19 entries of 26 bytes.
    pub(super) fn extended_self_test_log(&self) -> Vec<u8> {
        let mut sector = vec![0; 512];
        put8(&mut sector, 0, 1);
        let done = &self.smart.done;
        let recent = done
            .get(done.len().saturating_sub(KEPT_EXTENDED)..)
            .unwrap_or(done);
        for (slot, result) in recent.iter().enumerate() {
            let at = 4 + slot * 26;
            put(&mut sector, at, &[result.kind, result.status]);
            put16(&mut sector, at + 2, result.hours);
            put48(&mut sector, at + 5, result.lba.unwrap_or(u64::MAX));
        }
        put16(&mut sector, 2, recent.len() as u16);
        seal(&mut sector);
        sector
    }

    /// Selective self-test log (09h): the spans and how far the test has come.
    pub(super) fn selective_log(&self) -> Vec<u8> {
        let mut sector = vec![0; 512];
        let selective = &self.smart.selective;
        put16(&mut sector, 0, 1);
        for (n, (first, last)) in selective.spans.iter().enumerate() {
            put64(&mut sector, 2 + 16 * n, *first);
            put64(&mut sector, 10 + 16 * n, *last);
        }
        let running = self.smart.running.filter(|test| test.kind & 0x7f == 4);
        if let Some(test) = running {
            let spans = self.selective_spans();
            let total: u64 = spans.iter().map(|(_, count)| *count).sum();
            let share = self.now.saturating_sub(test.start).as_secs_f64() / test.takes.as_secs_f64().max(1.0);
            let mut ahead = (total as f64 * share.min(1.0)) as u64;
            for (first, count) in spans {
                if ahead < count {
                    let slot = selective.spans.iter().position(|(start, _)| *start == first);
                    put64(&mut sector, 492, first + ahead);
                    put16(&mut sector, 500, slot.map_or(0, |n| n as u16 + 1));
                    break;
                }
                ahead -= count;
            }
        }
        // Bit 4: a scan after the selective test is going on; there is none in this model, only the wish for it.
        put16(&mut sector, 502, selective.flags & 0x000a);
        put16(&mut sector, 508, selective.pending_minutes);
        seal(&mut sector);
        sector
    }

    /// SMART WRITE LOG to 09h; `false` for a sector that makes no sense.
    pub(super) fn write_selective_log(&mut self, sector: &[u8]) -> bool {
        let sum = sector
            .get(..512)
            .unwrap_or_default()
            .iter()
            .fold(0u8, |sum, b| sum.wrapping_add(*b));
        if sum != 0 || le16(sector, 0) != Some(1) || self.smart.running.is_some() {
            return false;
        }
        let mut selective = Selective {
            flags: le16(sector, 502).unwrap_or_default(),
            pending_minutes: le16(sector, 508).unwrap_or_default(),
            ..Selective::default()
        };
        for (n, span) in selective.spans.iter_mut().enumerate() {
            let qword = |offset: usize| le64(sector, offset + 16 * n).unwrap_or_default();
            *span = (qword(2), qword(10));
        }
        self.smart.selective = selective;
        true
    }
}
