//! A writer of exFAT, from the specification: files in one piece and in many, directories, what was deleted.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use drivethru::freemap::Extent;

use crate::support::{Rng, checksum, merged};

const END: u32 = 0xffff_ffff;

pub struct Disk {
    file: File,
    pub cluster_bytes: u64,
    table_bytes: u64,
    heap_bytes: u64,
    bitmap_cluster: u32,
    used: Vec<bool>,
    root: Vec<u32>,
}

fn text(e: std::io::Error) -> String {
    e.to_string()
}

impl Disk {
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(text)?;
        let mut boot = [0; 512];
        file.read_exact_at(&mut boot, 0).map_err(text)?;
        let long = |at: usize| {
            u64::from(u32::from_le_bytes([
                boot[at],
                boot[at + 1],
                boot[at + 2],
                boot[at + 3],
            ]))
        };
        let sector = 1u64 << boot[108];
        let mut disk = Self {
            file,
            cluster_bytes: sector << boot[109],
            table_bytes: long(80) * sector,
            heap_bytes: long(88) * sector,
            bitmap_cluster: 0,
            used: vec![false; long(92) as usize],
            root: vec![long(96) as u32],
        };
        loop {
            let next = disk.next(*disk.root.last().ok_or("a root")?)?;
            if next == END {
                break;
            }
            disk.root.push(next);
        }
        let root = disk.read_clusters(&disk.root)?;
        let bitmap = root
            .chunks_exact(32)
            .find(|e| e[0] == 0x81)
            .ok_or("no bitmap in the root directory")?;
        disk.bitmap_cluster = u32::from_le_bytes([bitmap[20], bitmap[21], bitmap[22], bitmap[23]]);
        let mut bits = vec![0; disk.used.len().div_ceil(8)];
        let at = disk.address(disk.bitmap_cluster);
        disk.file.read_exact_at(&mut bits, at).map_err(text)?;
        for (i, used) in disk.used.iter_mut().enumerate() {
            *used = bits[i / 8] >> (i % 8) & 1 == 1;
        }
        Ok(disk)
    }

    pub fn free(&self) -> Vec<Extent> {
        merged(
            self.used
                .iter()
                .enumerate()
                .filter(|(_, used)| !**used)
                .map(|(i, _)| Extent {
                    start_bytes: self.heap_bytes + i as u64 * self.cluster_bytes,
                    len_bytes: self.cluster_bytes,
                })
                .collect(),
        )
    }

    fn address(&self, cluster: u32) -> u64 {
        self.heap_bytes + (u64::from(cluster) - 2) * self.cluster_bytes
    }

    fn next(&self, cluster: u32) -> Result<u32, String> {
        let mut entry = [0; 4];
        self.file
            .read_exact_at(&mut entry, self.table_bytes + u64::from(cluster) * 4)
            .map_err(text)?;
        Ok(u32::from_le_bytes(entry))
    }

    fn link(&self, clusters: &[u32]) -> Result<(), String> {
        for (i, cluster) in clusters.iter().enumerate() {
            let next = clusters.get(i + 1).copied().unwrap_or(END);
            self.file
                .write_all_at(&next.to_le_bytes(), self.table_bytes + u64::from(*cluster) * 4)
                .map_err(text)?;
        }
        Ok(())
    }

    fn read_clusters(&self, clusters: &[u32]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let mut one = vec![0; self.cluster_bytes as usize];
        for cluster in clusters {
            self.file
                .read_exact_at(&mut one, self.address(*cluster))
                .map_err(text)?;
            out.extend_from_slice(&one);
        }
        Ok(out)
    }

    fn write_clusters(&self, clusters: &[u32], bytes: &[u8]) -> Result<(), String> {
        for (cluster, part) in clusters.iter().zip(bytes.chunks(self.cluster_bytes as usize)) {
            self.file
                .write_all_at(part, self.address(*cluster))
                .map_err(text)?;
        }
        Ok(())
    }

    /// Clusters in one piece or in several; none where there is no room.
    fn allocate(&mut self, rng: &mut Rng, count: u64, contiguous: bool) -> Vec<u32> {
        let units = self.used.len() as u64;
        let start = if rng.chance(50) { 0 } else { rng.below(units) };
        let mut found = Vec::new();
        for step in 0..units {
            let index = ((start + step) % units) as usize;
            if found.len() as u64 == count {
                break;
            }
            if self.used[index] || (!contiguous && rng.chance(20)) {
                if contiguous {
                    found.clear();
                }
                continue;
            }
            if contiguous && index == 0 {
                found.clear();
            }
            found.push(index as u32 + 2);
        }
        if found.len() as u64 != count {
            return Vec::new();
        }
        if !contiguous && rng.chance(30) {
            found.reverse();
        }
        for cluster in &found {
            self.used[*cluster as usize - 2] = true;
        }
        found
    }

    fn release(&mut self, clusters: &[u32]) {
        for cluster in clusters {
            self.used[*cluster as usize - 2] = false;
        }
    }

    /// Writes a tree of files and directories; each file as `name offset+length ...` with its checksum.
    pub fn fill(&mut self, rng: &mut Rng) -> Result<Vec<(String, u64)>, String> {
        let mut files = Vec::new();
        let mut budget = 1 + rng.below(60);
        let room = self.used.iter().filter(|used| !**used).count() as u64;
        let mut left = room * *rng.pick(&[0, 10, 50, 90, 100]) / 100;
        left = left.min((16 << 20) / self.cluster_bytes);
        let entries = self.tree(rng, 0, &mut budget, &mut left, &mut files)?;
        let mut root = self.read_clusters(&self.root)?;
        let end = root
            .chunks_exact(32)
            .position(|e| e[0] == 0)
            .unwrap_or(root.len() / 32)
            * 32;
        root.truncate(end);
        root.extend_from_slice(&entries);
        let count = (root.len() as u64).div_ceil(self.cluster_bytes);
        let more = count.saturating_sub(self.root.len() as u64);
        let clusters = self.allocate(rng, more, false);
        if more > 0 && clusters.is_empty() {
            // The tree is too large for what is left: what it has stays allocated, as lost clusters.
            root.truncate(end);
        }
        self.root.extend(clusters);
        root.resize(self.root.len() * self.cluster_bytes as usize, 0);
        if root[end..].iter().all(|b| *b == 0) {
            files.clear();
        }
        self.link(&self.root)?;
        self.write_clusters(&self.root, &root)?;
        let mut bits = vec![0u8; self.used.len().div_ceil(8)];
        for (i, used) in self.used.iter().enumerate() {
            bits[i / 8] |= u8::from(*used) << (i % 8);
        }
        self.file
            .write_all_at(&bits, self.address(self.bitmap_cluster))
            .map_err(text)?;
        if rng.chance(50) {
            let used = self.used.iter().filter(|used| **used).count();
            let percent = if rng.chance(20) {
                0xff
            } else {
                (used * 100 / self.used.len()) as u8
            };
            self.file.write_all_at(&[percent], 112).map_err(text)?;
        }
        Ok(files)
    }

    /// The entries of one directory.
    fn tree(
        &mut self,
        rng: &mut Rng,
        depth: u32,
        budget: &mut u64,
        left: &mut u64,
        files: &mut Vec<(String, u64)>,
    ) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        for number in 0..rng.below(14) {
            if *budget == 0 {
                break;
            }
            *budget -= 1;
            let long = "long name ".repeat(rng.below(12) as usize);
            let name = format!("{long}{number} {depth} {}", rng.below(1000));
            let directory = depth < 12 && rng.chance(25);
            let bytes = if directory {
                let mut inner = self.tree(rng, depth + 1, budget, left, files)?;
                let unit = self.cluster_bytes as usize;
                inner.resize(inner.len().next_multiple_of(unit).max(unit), 0);
                inner
            } else {
                let most = (*left * self.cluster_bytes / 2 + 1).min(2 << 20);
                let len = match rng.below(4) {
                    0 => 0,
                    1 => rng.below(self.cluster_bytes),
                    _ => rng.below(most),
                };
                rng.bytes(len as usize)
            };
            let count = (bytes.len() as u64).div_ceil(self.cluster_bytes);
            if count > *left && !directory {
                continue;
            }
            *left = left.saturating_sub(count);
            let contiguous = rng.chance(60);
            let mut clusters = self.allocate(rng, count, contiguous);
            let mut chained = !contiguous;
            if clusters.is_empty() && count > 0 {
                chained = true;
                clusters = self.allocate(rng, count, false);
            }
            if clusters.is_empty() && count > 0 {
                continue;
            }
            if contiguous && !chained && rng.chance(30) {
                // In one piece, and chained nevertheless.
                chained = true;
            }
            self.write_clusters(&clusters, &bytes)?;
            if chained {
                self.link(&clusters)?;
            } else {
                // What the table says of it means nothing.
                for cluster in &clusters {
                    let junk = if rng.chance(50) {
                        0
                    } else {
                        rng.next() as u32 & 0xffff
                    };
                    self.file
                        .write_all_at(&junk.to_le_bytes(), self.table_bytes + u64::from(*cluster) * 4)
                        .map_err(text)?;
                }
            }
            let first = clusters.first().copied().unwrap_or_default();
            let flags = if chained || first == 0 { 1 } else { 3 };
            let mut set = entry_set(&name, directory, flags, first, bytes.len() as u64, rng);
            if !directory && rng.chance(20) {
                self.release(&clusters);
                *left += count;
                for entry in set.chunks_exact_mut(32) {
                    entry[0] &= 0x7f;
                }
            } else if !directory {
                let mut pieces = "file".to_owned();
                let mut rest = bytes.len() as u64;
                for cluster in &clusters {
                    let now = rest.min(self.cluster_bytes);
                    pieces += &format!(" {}+{now}", self.address(*cluster));
                    rest -= now;
                }
                files.push((pieces, checksum(&bytes)));
            }
            out.extend_from_slice(&set);
        }
        Ok(out)
    }
}

/// A file or directory: 85h, C0h and C1h with their checksum and the hash of the name.
fn entry_set(name: &str, directory: bool, flags: u8, first: u32, len_bytes: u64, rng: &mut Rng) -> Vec<u8> {
    let units: Vec<u16> = name.encode_utf16().collect();
    let names = units.len().div_ceil(15);
    let mut out = vec![0u8; 32 * (2 + names)];
    out[0] = 0x85;
    out[1] = 1 + names as u8;
    out[4] = if directory { 0x10 } else { 0x20 };
    for at in [8, 12, 16] {
        out[at..at + 4].copy_from_slice(&0x5a21_6000u32.to_le_bytes());
    }
    let hash = name
        .to_ascii_uppercase()
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .fold(0u16, |sum, b| sum.rotate_right(1).wrapping_add(u16::from(b)));
    let stream = &mut out[32..64];
    stream[0] = 0xc0;
    stream[1] = flags;
    stream[3] = units.len() as u8;
    stream[4..6].copy_from_slice(&hash.to_le_bytes());
    let valid = if directory || rng.chance(80) {
        len_bytes
    } else {
        rng.below(len_bytes + 1)
    };
    stream[8..16].copy_from_slice(&valid.to_le_bytes());
    stream[20..24].copy_from_slice(&first.to_le_bytes());
    stream[24..32].copy_from_slice(&len_bytes.to_le_bytes());
    for (i, part) in units.chunks(15).enumerate() {
        let entry = &mut out[64 + 32 * i..96 + 32 * i];
        entry[0] = 0xc1;
        for (j, unit) in part.iter().enumerate() {
            entry[2 + 2 * j..4 + 2 * j].copy_from_slice(&unit.to_le_bytes());
        }
    }
    let sum = out
        .iter()
        .enumerate()
        .filter(|(i, _)| !matches!(i, 2 | 3))
        .fold(0u16, |sum, (_, b)| {
            sum.rotate_right(1).wrapping_add(u16::from(*b))
        });
    out[2..4].copy_from_slice(&sum.to_le_bytes());
    out
}
