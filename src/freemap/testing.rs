//! Hand-built disks for the unit tests.

use super::partitions::crc32;
use super::{ReadAt, ReadError};

/// A GUID that no table knows.
pub(super) const DATA: [u8; 16] = *b"\xa2\xa0\xd0\xeb\xe5\xb9\x33\x44\x87\xc0\x68\xb6\xb7\x26\x99\xc7";

/// A disk in memory.
pub(super) struct Disk {
    pub(super) bytes: Vec<u8>,
    pub(super) sector: usize,
}

impl Disk {
    pub(super) fn new(sectors: usize, sector: usize) -> Self {
        Self {
            bytes: vec![0; sectors * sector],
            sector,
        }
    }

    pub(super) fn sectors(&self) -> u64 {
        (self.bytes.len() / self.sector) as u64
    }

    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// A table or boot record in a sector: slots of (type, start, count).
    pub(super) fn record(&mut self, sector: usize, slots: &[(u8, u32, u32)]) {
        let at = sector * self.sector;
        self.put(at + 510, &[0x55, 0xaa]);
        for (i, (kind, start, count)) in slots.iter().enumerate() {
            let at = at + 446 + i * 16;
            self.put(at, &[0, 0xfe, 0xff, 0xff, *kind, 0xfe, 0xff, 0xff]);
            self.put(at + 8, &start.to_le_bytes());
            self.put(at + 12, &count.to_le_bytes());
        }
    }

    /// A GPT of 128 entries with partitions of (slot, first, last), and its protective MBR.
    pub(super) fn gpt(&mut self, partitions: &[(usize, u64, u64)]) {
        let last = self.sectors() - 1;
        self.record(0, &[(0xee, 1, last as u32)]);
        let mut entries = vec![0; 128 * 128];
        for (slot, start, end) in partitions {
            let at = slot * 128;
            entries[at..at + 16].copy_from_slice(&DATA);
            entries[at + 16] = *slot as u8 + 1;
            entries[at + 32..at + 40].copy_from_slice(&start.to_le_bytes());
            entries[at + 40..at + 48].copy_from_slice(&end.to_le_bytes());
            entries[at + 56..at + 60].copy_from_slice(&[b'p', 0, b'1', 0]);
        }
        let size = (128 * 128usize).div_ceil(self.sector) as u64;
        self.put(2 * self.sector, &entries);
        self.put((last - size) as usize * self.sector, &entries);
        let crc = crc32(&entries);
        self.header(1, last, 2, (2 + size, last - size - 1), crc);
        self.header(last, 1, last - size, (2 + size, last - size - 1), crc);
    }

    pub(super) fn header(&mut self, own: u64, other: u64, entries: u64, usable: (u64, u64), crc: u32) {
        let mut h = vec![0; 92];
        h[..8].copy_from_slice(b"EFI PART");
        h[8..12].copy_from_slice(&[0, 0, 1, 0]);
        h[12] = 92;
        for (at, value) in [
            (24, own),
            (32, other),
            (40, usable.0),
            (48, usable.1),
            (72, entries),
        ] {
            h[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        h[56..72].copy_from_slice(&[7; 16]);
        h[80] = 128;
        h[84] = 128;
        h[88..92].copy_from_slice(&crc.to_le_bytes());
        let sum = crc32(&h);
        h[16..20].copy_from_slice(&sum.to_le_bytes());
        self.put(own as usize * self.sector, &h);
    }

    /// Makes the checksum of a header right again.
    pub(super) fn seal(&mut self, sector: usize) {
        let at = sector * self.sector;
        self.put(at + 16, &[0; 4]);
        let sum = crc32(&self.bytes[at..at + 92]);
        self.put(at + 16, &sum.to_le_bytes());
    }

    /// An ext superblock whose volume starts at `at` and has so many blocks of 1 KiB.
    pub(super) fn ext(&mut self, at: usize, blocks: u32) {
        self.put(at + 1024, &16u32.to_le_bytes());
        self.put(at + 1028, &blocks.to_le_bytes());
        self.put(at + 1024 + 56, &[0x53, 0xef]);
    }

    /// The boot sector of a FAT volume.
    pub(super) fn fat(&mut self, at: usize, sectors: u16) {
        self.put(at, b"\xeb\x3c\x90mkfs.fat");
        self.put(
            at + 11,
            &[
                0,
                2,
                4,
                1,
                0,
                2,
                0,
                2,
                sectors as u8,
                (sectors >> 8) as u8,
                0xf8,
                9,
                0,
            ],
        );
        self.put(at + 510, &[0x55, 0xaa]);
    }
}

impl ReadAt for Disk {
    fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.bytes[..].read_at(offset_bytes, buffer)
    }
}
