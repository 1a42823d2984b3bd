//! Any bytes as a volume: whatever they are, the readers of free space answer, and name only ranges within.
#![no_main]

use drivethru::freemap::{self, ReadAt, ReadError};
use libfuzzer_sys::fuzz_target;

struct Bytes<'a>(&'a [u8]);

impl ReadAt for Bytes<'_> {
    fn size_bytes(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.0.read_at(offset_bytes, buffer)
    }
}

fuzz_target!(|data: &[u8]| {
    let volume = Bytes(data);
    for read in [
        freemap::ext::free_map,
        freemap::fat::free_map,
        freemap::exfat::free_map,
        freemap::ntfs::free_map,
    ] {
        if let Ok(map) = read(&volume) {
            let end = map.free.last().and_then(|e| e.end_bytes()).unwrap_or(0);
            assert!(end <= map.covered_bytes && map.covered_bytes <= volume.size_bytes());
        }
    }
    for sector_bytes in [512, 4096] {
        if let Ok(survey) = freemap::survey::survey(&volume, sector_bytes, &freemap::survey::Ask::default()) {
            assert!(survey.free.iter().all(|e| e.end_bytes().is_some_and(|end| end <= volume.size_bytes())));
        }
    }
});
