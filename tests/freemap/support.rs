//! What the makers of random volumes share.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use drivethru::freemap::{Extent, FreeMap, ReadAt, ReadError, Refusal};

/// Makes volumes of one family from a seed, and knows what other programs say of them.
pub trait Maker: Sync {
    /// The family: `ext`, `fat`, `exfat`, `ntfs`.
    fn name(&self) -> &'static str;

    /// How many of the images of a usual run are its own.
    fn share(&self) -> usize;

    /// What is missing on this machine, if anything.
    fn missing(&self) -> Option<String>;

    /// Makes an image in `dir`; the same seed makes the same one, as far as mkfs lets it.
    fn make(&self, seed: u64, dir: &Path) -> Result<Case, String>;

    /// The reader to test.
    fn free_map(&self, volume: &dyn ReadAt) -> Result<FreeMap, Refusal>;

    /// Whether a second place tells how large the file system is, so that a damaged size is noticed.
    fn size_has_a_witness(&self, _case: &Case) -> bool {
        true
    }

    /// Called with an image whose free ranges were overwritten: the file system's own checker finds nothing, and each file
    /// holds what was written.
    fn still_whole(&self, case: &Case, image: &Path) -> Result<(), String>;
}

/// One image.
pub struct Case {
    /// How it was made, for messages.
    pub label: String,
    /// The file.
    pub image: PathBuf,
    /// The volume in it (an odd offset, as partitions have).
    pub volume: Extent,
    /// What the file system's own tools call free, relative to the volume; sorted and merged.
    pub free_by_tools: Vec<Extent>,
    /// Path and checksum of each file (whatever the maker needs to look again).
    pub files: Vec<(String, u64)>,
}

/// An image file.
pub struct Image(File);

impl Image {
    pub fn open(path: &Path) -> Result<Self, String> {
        File::open(path)
            .map(Self)
            .map_err(|e| format!("{}: {e}", path.display()))
    }
}

impl ReadAt for Image {
    fn size_bytes(&self) -> u64 {
        self.0.metadata().map_or(0, |m| m.len())
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.0.read_exact_at(buffer, offset_bytes).map_err(|e| ReadError {
            offset_bytes,
            len_bytes: buffer.len(),
            why: e.to_string(),
        })
    }
}

/// Numbers from a seed.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut out: Vec<u8> = Vec::with_capacity(len + 8);
        while out.len() < len {
            out.extend_from_slice(&self.next().to_le_bytes());
        }
        out.truncate(len);
        out
    }
}

/// FNV-1a, to tell whether a file is the same.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, b| {
        (sum ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Runs a program; its standard output, or what went wrong. `good` are the exit codes that are no failure.
pub fn run(program: &str, arguments: &[&str], good: &[i32]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .env("MTOOLS_SKIP_CHECK", "1")
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        Some(code) if good.contains(&code) => Ok(out),
        code => Err(format!(
            "{program} {arguments:?}: {code:?}: {out}{}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// The first of these programs that is not there.
pub fn missing_program(programs: &[&str]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    programs
        .iter()
        .find(|program| {
            !std::env::split_paths(&path)
                .chain(["/sbin".into(), "/usr/sbin".into()])
                .any(|dir| dir.join(program).is_file())
        })
        .map(|program| (*program).to_owned())
}

/// Sorts and merges.
pub fn merged(mut extents: Vec<Extent>) -> Vec<Extent> {
    extents.retain(|e| e.len_bytes > 0);
    extents.sort();
    let mut out: Vec<Extent> = Vec::with_capacity(extents.len());
    for extent in extents {
        match out.last_mut() {
            Some(last) if last.start_bytes + last.len_bytes >= extent.start_bytes => {
                let end = (extent.start_bytes + extent.len_bytes).max(last.start_bytes + last.len_bytes);
                last.len_bytes = end - last.start_bytes;
            }
            _ => out.push(extent),
        }
    }
    out
}

/// The first byte range of `inner` that does not lie in `outer`; both sorted and merged.
pub fn outside(inner: &[Extent], outer: &[Extent]) -> Option<Extent> {
    inner.iter().copied().find(|e| {
        let at = outer.partition_point(|o| o.start_bytes <= e.start_bytes);
        at.checked_sub(1)
            .and_then(|i| outer.get(i))
            .is_none_or(|o| o.start_bytes + o.len_bytes < e.start_bytes + e.len_bytes)
    })
}

pub fn total_bytes(extents: &[Extent]) -> u64 {
    extents.iter().map(|e| e.len_bytes).sum()
}

/// Copies a range of a file to an offset in another, which is made; what is zero stays a hole.
pub fn copy_range(
    from: &Path,
    start_bytes: u64,
    len_bytes: u64,
    to: &Path,
    at_bytes: u64,
) -> Result<(), String> {
    let text = |e: std::io::Error| e.to_string();
    let source = File::open(from).map_err(text)?;
    let target = File::create(to).map_err(text)?;
    target.set_len(at_bytes + len_bytes).map_err(text)?;
    let mut buffer = vec![0; 1 << 18];
    let mut done = 0;
    while done < len_bytes {
        let now = (len_bytes - done).min(buffer.len() as u64);
        let part = &mut buffer[..now as usize];
        source.read_exact_at(part, start_bytes + done).map_err(text)?;
        if part.iter().any(|b| *b != 0) {
            target.write_all_at(part, at_bytes + done).map_err(text)?;
        }
        done += now;
    }
    Ok(())
}
