//! What failed, and what came before it: the error logs (ACS-2, "Summary SMART error log", "Comprehensive SMART error log",
//! "Extended Comprehensive SMART error log").
//!
//! A command that is not there or makes no sense leaves no entry, as the standard has it; a sector that cannot be read and an
//! address that is not found do.

use std::collections::VecDeque;
use std::time::Duration;

use super::{AtaDrive, IDNF, Registers, Taskfile, UNC};
use crate::sim::buf::{put, put8, put16, put32, seal};

/// Commands that an entry holds, its own among them.
const COMMANDS: usize = 5;
/// Entries that are kept.
const KEPT: usize = 20;
/// Sectors of the comprehensive and the extended comprehensive log.
pub const SECTORS: u16 = 4;

#[derive(Debug, Clone, Copy)]
struct Heard {
    taskfile: Taskfile,
    at_ms: u32,
}

#[derive(Debug, Clone)]
struct Entry {
    commands: VecDeque<Heard>,
    registers: Registers,
    state: u8,
    hours: u16,
}

/// The last commands and the last errors.
#[derive(Debug, Default)]
pub struct ErrorLog {
    heard: VecDeque<Heard>,
    entries: VecDeque<Entry>,
    count: u16,
    unreadable: u64,
}

impl ErrorLog {
    /// A command has come, so long after power-on.
    pub fn hear(&mut self, taskfile: &Taskfile, since_power_on: Duration) {
        if self.heard.len() == COMMANDS {
            self.heard.pop_front();
        }
        self.heard.push_back(Heard {
            taskfile: *taskfile,
            // The field wraps after 49.7 days.
            at_ms: since_power_on.as_millis() as u32,
        });
    }

    /// Commands heard before power went away do not count.
    pub fn power_on(&mut self) {
        self.heard.clear();
    }

    /// Reads that failed for good.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Slot of the newest entry in a ring of `ring` entries, counted from 1, and what each slot holds.
    fn ring(&self, ring: usize) -> (u16, Vec<(usize, &Entry)>) {
        let newest = match usize::from(self.count) {
            0 => return (0, Vec::new()),
            count => (count - 1) % ring,
        };
        let slots = self
            .entries
            .iter()
            .rev()
            .take(ring)
            .enumerate()
            .map(|(age, entry)| ((newest + ring - age) % ring, entry))
            .collect();
        (newest as u16 + 1, slots)
    }
}

impl Entry {
    /// 90 bytes with 28-bit registers.
    fn short(&self) -> [u8; 90] {
        let mut out = [0; 90];
        // The newest command stands last.
        let empty = COMMANDS - self.commands.len();
        for (n, heard) in self.commands.iter().enumerate() {
            let tf = &heard.taskfile;
            let [l, m, h, ..] = tf.lba.to_le_bytes();
            let registers = [
                0,
                tf.features as u8,
                tf.count as u8,
                l,
                m,
                h,
                tf.device,
                tf.command,
            ];
            put(&mut out, 12 * (empty + n), &registers);
            put32(&mut out, 12 * (empty + n) + 8, heard.at_ms);
        }
        let r = &self.registers;
        let [l, m, h, ..] = r.lba.to_le_bytes();
        put(
            &mut out,
            60,
            &[0, r.error, r.count as u8, l, m, h, r.device, r.status],
        );
        put8(&mut out, 87, self.state);
        put16(&mut out, 88, self.hours);
        out
    }

    /// 124 bytes with 48-bit registers.
    fn long(&self) -> [u8; 124] {
        let mut out = [0; 124];
        let empty = COMMANDS - self.commands.len();
        for (n, heard) in self.commands.iter().enumerate() {
            let tf = &heard.taskfile;
            let [l, m, h, l_hi, m_hi, h_hi, ..] = tf.lba.to_le_bytes();
            let [features, features_hi] = tf.features.to_le_bytes();
            let [count, count_hi] = tf.count.to_le_bytes();
            let registers = [
                0,
                features,
                features_hi,
                count,
                count_hi,
                l,
                l_hi,
                m,
                m_hi,
                h,
                h_hi,
                tf.device,
                tf.command,
                0,
            ];
            put(&mut out, 18 * (empty + n), &registers);
            put32(&mut out, 18 * (empty + n) + 14, heard.at_ms);
        }
        let r = &self.registers;
        let [l, m, h, l_hi, m_hi, h_hi, ..] = r.lba.to_le_bytes();
        let [count, count_hi] = r.count.to_le_bytes();
        let registers = [
            0, r.error, count, count_hi, l, l_hi, m, m_hi, h, h_hi, r.device, r.status,
        ];
        put(&mut out, 90, &registers);
        put8(&mut out, 121, self.state);
        put16(&mut out, 122, self.hours);
        out
    }
}

impl AtaDrive {
    /// Takes a failed command into the logs, where it belongs there.
    pub(super) fn note_error(&mut self, registers: &Registers) {
        if registers.error & (UNC | IDNF) == 0 {
            return;
        }
        if registers.error & UNC != 0 {
            self.errors.unreadable += 1;
        }
        let entry = Entry {
            commands: self.errors.heard.clone(),
            registers: *registers,
            // Active or idle; or a self-test was running.
            state: if self.smart.self_test_running() { 4 } else { 3 },
            hours: self.power_on_hours() as u16,
        };
        let log = &mut self.errors;
        if log.entries.len() == KEPT {
            log.entries.pop_front();
        }
        log.entries.push_back(entry);
        log.count = log.count.saturating_add(1);
    }

    /// Summary error log (01h), 1 sector of 5 entries, or one sector of the comprehensive error log (02h).
    pub(super) fn error_log(&self, comprehensive: bool, sector: u16) -> Vec<u8> {
        let sectors = if comprehensive { usize::from(SECTORS) } else { 1 };
        let (newest, slots) = self.errors.ring(5 * sectors);
        let mut out = vec![0; 512];
        if sector == 0 {
            put8(&mut out, 0, 1);
            put8(&mut out, 1, newest as u8);
            put16(&mut out, 452, self.errors.count);
        }
        for (slot, entry) in slots {
            if slot / 5 == usize::from(sector) {
                put(&mut out, 2 + 90 * (slot % 5), &entry.short());
            }
        }
        seal(&mut out);
        out
    }

    /// One sector of the extended comprehensive error log (03h), 4 entries each.
    pub(super) fn extended_error_log(&self, sector: u16) -> Vec<u8> {
        let (newest, slots) = self.errors.ring(4 * usize::from(SECTORS));
        let mut out = vec![0; 512];
        if sector == 0 {
            put8(&mut out, 0, 1);
            put16(&mut out, 2, newest);
            put16(&mut out, 500, self.errors.count);
        }
        for (slot, entry) in slots {
            if slot / 4 == usize::from(sector) {
                put(&mut out, 4 + 124 * (slot % 4), &entry.long());
            }
        }
        seal(&mut out);
        out
    }
}
