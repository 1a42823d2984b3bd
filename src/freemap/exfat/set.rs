//! Entry sets: a primary entry and the secondary ones that belong to it (exFAT specification, chapters 6 and 7).

use super::contradiction;
use crate::freemap::Refusal;
use crate::wire::{le16, le32, le64};

pub(super) const ENTRY_BYTES: usize = 32;
pub(super) const FILE: u8 = 0x85;
const STREAM: u8 = 0xc0;
const NAME: u8 = 0xc1;
const BENIGN: u8 = 0x20;
const IN_USE_SECONDARY: u8 = 0xc0;
const DIRECTORY: u16 = 0x10;
const ALLOCATION_POSSIBLE: u16 = 0x01;
const NO_FAT_CHAIN: u16 = 0x02;
const NAME_UNITS: u8 = 15;

/// Clusters that something has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stream {
    pub first_cluster: u32,
    pub len_bytes: u64,
    /// In one piece; the table says nothing of it.
    pub contiguous: bool,
    pub directory: bool,
    /// The address of the entry that says so.
    pub at: u64,
}

impl Stream {
    /// From the generic fields of an entry.
    pub(super) fn of(entry: &[u8], flags: u16, at: u64) -> Self {
        Self {
            first_cluster: le32(entry, 20).unwrap_or_default(),
            len_bytes: le64(entry, 24).unwrap_or_default(),
            contiguous: flags & NO_FAT_CHAIN != 0,
            directory: false,
            at,
        }
    }
}

/// An entry set that is being read.
pub(super) struct Set {
    at: u64,
    kind: u8,
    directory: bool,
    left: u8,
    sum: u16,
    said: u16,
    /// Name entries that are still to come; `None` before the stream extension.
    names: Option<u8>,
    pub streams: Vec<Stream>,
}

fn byte(entry: &[u8], at: usize) -> u8 {
    entry.get(at).copied().unwrap_or_default()
}

/// One step of the checksum of chapter 6.3.3.
fn sum16(sum: u16, byte: u8) -> u16 {
    sum.rotate_right(1).wrapping_add(u16::from(byte))
}

impl Set {
    /// A file, or a benign primary entry of any kind.
    pub(super) fn start(entry: &[u8], at: u64) -> Result<Self, Refusal> {
        let kind = byte(entry, 0);
        let left = byte(entry, 1);
        if kind == FILE && !(2..=18).contains(&left) {
            return Err(contradiction(format!("a file of {left} secondary entries"), at));
        }
        let mut set = Self {
            at,
            kind,
            directory: kind == FILE && le16(entry, 4).unwrap_or_default() & DIRECTORY != 0,
            left,
            sum: entry
                .iter()
                .enumerate()
                .filter(|(i, _)| !matches!(i, 2 | 3))
                .fold(0, |sum, (_, b)| sum16(sum, *b)),
            said: le16(entry, 2).unwrap_or_default(),
            names: None,
            streams: Vec::new(),
        };
        let flags = le16(entry, 4).unwrap_or_default();
        if kind != FILE && flags & ALLOCATION_POSSIBLE != 0 {
            set.streams.push(Stream::of(entry, flags, at));
        }
        Ok(set)
    }

    /// Whether it needs no more entries.
    pub(super) fn complete(&self) -> bool {
        self.left == 0
    }

    pub(super) fn push(&mut self, entry: &[u8], at: u64) -> Result<(), Refusal> {
        let kind = byte(entry, 0);
        if kind & IN_USE_SECONDARY != IN_USE_SECONDARY {
            return Err(contradiction("an entry set is cut off", at));
        }
        self.sum = entry.iter().fold(self.sum, |sum, b| sum16(sum, *b));
        self.left = self.left.saturating_sub(1);
        let flags = u16::from(byte(entry, 1));
        match (kind, self.kind, self.names) {
            (STREAM, FILE, None) => self.stream(entry, flags, at)?,
            (NAME, FILE, Some(names)) if names > 0 => self.names = Some(names - 1),
            _ if self.kind == FILE && self.names != Some(0) => {
                return Err(contradiction("a file lacks its stream or its name", at));
            }
            _ if kind & BENIGN != 0 => {
                if flags & ALLOCATION_POSSIBLE != 0 {
                    self.streams.push(Stream::of(entry, flags, at));
                }
            }
            (STREAM | NAME, ..) => return Err(contradiction("a file has too many entries", at)),
            _ => {
                return Err(Refusal::Unsupported {
                    why: format!("a directory entry of type {kind:02x}h"),
                });
            }
        }
        Ok(())
    }

    fn stream(&mut self, entry: &[u8], flags: u16, at: u64) -> Result<(), Refusal> {
        let name_units = byte(entry, 3);
        let stream = Stream {
            directory: self.directory,
            ..Stream::of(entry, flags, at)
        };
        let valid_bytes = le64(entry, 8).unwrap_or_default();
        if flags & ALLOCATION_POSSIBLE == 0 || name_units == 0 || valid_bytes > stream.len_bytes {
            return Err(contradiction("a stream extension says what cannot be", at));
        }
        self.names = Some(name_units.div_ceil(NAME_UNITS));
        self.streams.push(stream);
        Ok(())
    }

    /// With all its entries: whether they are what was written.
    pub(super) fn finish(&self) -> Result<(), Refusal> {
        if self.sum != self.said {
            return Err(contradiction("the checksum of an entry set is wrong", self.at));
        }
        if self.kind == FILE && self.names != Some(0) {
            return Err(contradiction("a file lacks its stream or its name", self.at));
        }
        Ok(())
    }
}
