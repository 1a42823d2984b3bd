//! Images, damage and foreign programs.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use drivethru::freemap::{ReadAt, ReadError};

pub use crate::disk::rows as sfdisk_rows;

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

/// An image with some bytes changed, or cut short.
pub struct Damaged<'a> {
    image: &'a Image,
    size_bytes: u64,
    changes: Vec<(u64, u8)>,
}

impl std::fmt::Debug for Damaged<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes with {:?}", self.size_bytes, self.changes)
    }
}

impl<'a> Damaged<'a> {
    pub fn new(image: &'a Image) -> Self {
        Self {
            image,
            size_bytes: image.size_bytes(),
            changes: Vec::new(),
        }
    }

    pub fn change(&mut self, at: u64, value: u8) {
        self.changes.push((at, value));
    }

    /// Whether it was cut short.
    pub fn cut(&self) -> bool {
        self.size_bytes < self.image.size_bytes()
    }

    /// Changes bits and bytes in one of these places: (start, from, how many).
    pub fn at_random(&mut self, places: &[(u64, u64, u64)], rng: &mut Rng) {
        if rng.chance(4) {
            self.size_bytes = rng.below(self.size_bytes / 512) * 512;
            return;
        }
        for _ in 0..*rng.pick(&[1, 1, 1, 2, 4]) {
            let (start, from, count) = *rng.pick(places);
            let at = start + from + rng.below(count);
            let mut old = [0];
            let _ = self.image.read_at(at, &mut old);
            let new = match rng.below(4) {
                0 => rng.next() as u8,
                1 => 0,
                _ => old[0] ^ (1 << rng.below(8)),
            };
            self.change(at, new);
        }
    }
}

impl ReadAt for Damaged<'_> {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        let end = offset_bytes + buffer.len() as u64;
        if end > self.size_bytes {
            return Err(ReadError::past_end(offset_bytes, buffer.len(), self.size_bytes));
        }
        self.image.read_at(offset_bytes, buffer)?;
        for (at, new) in &self.changes {
            if (offset_bytes..end).contains(at) {
                buffer[(at - offset_bytes) as usize] = *new;
            }
        }
        Ok(())
    }
}

/// Numbers from a seed (splitmix64).
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
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// An empty file of this size.
pub fn sparse(path: &Path, size_bytes: u64) -> Result<(), String> {
    File::create(path)
        .and_then(|f| f.set_len(size_bytes))
        .map_err(|e| format!("{}: {e}", path.display()))
}

/// Runs a program; its standard output, or what went wrong. `good` are the exit codes that are no failure.
pub fn run(program: &str, arguments: &[&str], good: &[i32]) -> Result<String, String> {
    finish(program, command(program, arguments).stdin(Stdio::null()), good)
}

/// The same with standard input.
pub fn run_with_input(program: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    let mut child = command(program, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{program}: {e}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    told(program, &output, &[0])
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C.UTF-8");
    command
}

fn finish(program: &str, command: &mut Command, good: &[i32]) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{program}: {e}"))?;
    told(program, &output, good)
}

fn told(program: &str, output: &std::process::Output, good: &[i32]) -> Result<String, String> {
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        Some(code) if good.contains(&code) => Ok(out),
        code => Err(format!(
            "{program}: {code:?}: {out}{}",
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
