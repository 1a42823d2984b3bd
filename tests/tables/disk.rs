//! Random disks: a table by `sfdisk`, volumes by their makers.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use drivethru::freemap::partitions::Table;
use drivethru::freemap::survey::Readers;
use drivethru::freemap::{Extent, ReadAt, Window};

use crate::made::Content;
use crate::support::{Image, Rng, run, run_with_input, sparse};

/// One partition to be.
#[derive(Debug, Clone)]
pub struct Part {
    pub number: u32,
    pub start: u64,
    pub count: u64,
    pub extended: bool,
    pub content: Content,
}

/// A disk to be; in sectors of 512 bytes.
#[derive(Debug, Clone)]
pub struct Plan {
    pub gpt: bool,
    pub sectors: u64,
    pub parts: Vec<Part>,
    /// Whether something is written in each gap, in the order of their addresses.
    pub written: Vec<bool>,
}

const MIB: u64 = 2048;

impl Plan {
    pub fn random(rng: &mut Rng) -> Self {
        let gpt = rng.chance(50);
        let count = if gpt { 1 + rng.below(8) } else { 1 + rng.below(4) };
        let extended = (!gpt && rng.chance(60)).then(|| rng.below(count));
        let mut numbers: Vec<u32> = if gpt {
            (1..=40).collect()
        } else {
            (1..=4).collect()
        };
        let mut parts = Vec::new();
        let mut at = *rng.pick(&[63, 2048, 2048, 2048, 4096]);
        if gpt {
            at = at.max(64);
        }
        let mut written = Vec::new();
        for index in 0..count {
            // In order of their addresses mostly, as most disks are.
            let pick = if rng.chance(70) {
                0
            } else {
                rng.below(numbers.len() as u64) as usize
            };
            let number = numbers.remove(pick);
            if index > 0 {
                at += match rng.below(4) {
                    0 => 0,
                    1 => 1 + rng.below(100),
                    2 => MIB,
                    _ => MIB * (1 + rng.below(6)) + rng.below(2) * 7,
                };
                written.push(rng.chance(50));
            }
            if extended == Some(index) {
                let start = at;
                let logical = rng.below(4) as u32;
                let mut inner = Vec::new();
                for number in 5..5 + logical {
                    at += MIB + rng.below(2) * MIB;
                    let size = MIB * (5 + rng.below(12));
                    inner.push(Self::part(number, at, size, rng));
                    at += size;
                }
                at += MIB * (1 + rng.below(3));
                parts.push(Part {
                    number,
                    start,
                    count: at - start,
                    extended: true,
                    content: Content::Zero,
                });
                parts.extend(inner);
            } else {
                let size = MIB * (5 + rng.below(24)) + rng.below(2) * rng.below(50);
                parts.push(Self::part(number, at, size, rng));
                at += size;
            }
        }
        Self {
            gpt,
            sectors: at + 64 + rng.below(3) * MIB * 4,
            parts,
            written,
        }
    }

    fn part(number: u32, start: u64, count: u64, rng: &mut Rng) -> Part {
        Part {
            number,
            start,
            count,
            extended: false,
            content: Content::random(rng),
        }
    }

    /// Makes the disk with its table.
    pub fn write(&self, dir: &Path) -> Result<PathBuf, String> {
        let path = dir.join("disk");
        sparse(&path, self.sectors * 512)?;
        let mut script = format!(
            "label: {}\n{}\n",
            if self.gpt { "gpt" } else { "dos" },
            if self.gpt { "first-lba: 34" } else { "" }
        );
        for part in &self.parts {
            let kind = match (self.gpt, part.extended) {
                (true, _) => "0FC63DAF-8483-4772-8E79-3D69D8477DE4",
                (false, true) => "f",
                (false, false) => "83",
            };
            let _ = write!(
                script,
                "{} : start={}, size={}, type={kind}",
                part.number, part.start, part.count
            );
            if self.gpt && part.number % 3 == 0 {
                let _ = write!(script, ", name=\"na\u{ef}ve \u{2603} {}\"", part.number);
            }
            script.push('\n');
        }
        let name = path.to_str().ok_or("a strange name")?;
        run_with_input("sfdisk", &["--quiet", "--no-tell-kernel", name], &script)
            .map_err(|e| format!("{script}{e}"))?;
        Ok(path)
    }

    /// Puts volumes into the partitions, and something into some gaps.
    pub fn fill(&self, disk: &Path, rng: &mut Rng) -> Result<(), String> {
        let file = OpenOptions::new()
            .write(true)
            .open(disk)
            .map_err(|e| e.to_string())?;
        for part in self.parts.iter().filter(|p| !p.extended) {
            let made = disk.with_extension("part");
            let _ = fs::remove_file(&made);
            sparse(&made, part.count * 512)?;
            part.content.make(&made, rng)?;
            let bytes = fs::read(&made).map_err(|e| e.to_string())?;
            for (index, chunk) in (0u64..).zip(bytes.chunks(4096)) {
                if chunk.iter().any(|b| *b != 0) {
                    file.write_all_at(chunk, part.start * 512 + index * 4096)
                        .map_err(|e| e.to_string())?;
                }
            }
            fs::remove_file(&made).map_err(|e| e.to_string())?;
        }
        for at in self.written_gaps() {
            file.write_all_at(&rng.bytes(32), at).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn outer(&self) -> Vec<&Part> {
        let mut outer: Vec<&Part> = self.parts.iter().filter(|p| self.gpt || p.number <= 4).collect();
        outer.sort_by_key(|p| p.start);
        outer
    }

    fn all_gaps(&self) -> Vec<Extent> {
        self.outer()
            .windows(2)
            .map(|pair| Extent {
                start_bytes: (pair[0].start + pair[0].count) * 512,
                len_bytes: (pair[1].start - pair[0].start - pair[0].count) * 512,
            })
            .collect()
    }

    /// What lies between the partitions.
    pub fn gaps(&self) -> Vec<Extent> {
        self.all_gaps().into_iter().filter(|g| g.len_bytes > 0).collect()
    }

    /// Where something is written in gaps.
    pub fn written_gaps(&self) -> Vec<u64> {
        self.all_gaps()
            .iter()
            .zip(&self.written)
            .filter(|(gap, written)| **written && gap.len_bytes > 0)
            .map(|(gap, _)| gap.start_bytes + gap.len_bytes / 1024 * 512)
            .collect()
    }

    /// All that may be called free, by the readers' word for each volume.
    pub fn free(&self, readers: &Readers, image: &Image) -> Vec<Extent> {
        let mut free = self.gaps();
        for part in self.parts.iter().filter(|p| p.content.mapped()) {
            let extent = Extent {
                start_bytes: part.start * 512,
                len_bytes: part.count * 512,
            };
            let window = Window::new(image, extent).expect("within the disk");
            let map = readers
                .0
                .iter()
                .find_map(|r| (r.free_map)(&window as &dyn ReadAt).ok())
                .expect("a map");
            free.extend(map.free.iter().map(|e| Extent {
                start_bytes: e.start_bytes + extent.start_bytes,
                len_bytes: e.len_bytes,
            }));
        }
        free.sort();
        let mut merged: Vec<Extent> = Vec::new();
        for extent in free {
            match merged.last_mut() {
                Some(last) if last.start_bytes + last.len_bytes == extent.start_bytes => {
                    last.len_bytes += extent.len_bytes;
                }
                _ => merged.push(extent),
            }
        }
        merged
    }

    pub fn content(&self, number: u32) -> Option<Content> {
        self.parts.iter().find(|p| p.number == number).map(|p| p.content)
    }

    pub fn volumes(&self) -> usize {
        self.parts.iter().filter(|p| !p.extended).count()
    }

    /// The sectors that the table takes, with the bytes in each that mean something.
    pub fn table_sectors(&self, table: &Table) -> Vec<(u64, u64, u64)> {
        let mut out = Vec::new();
        for own in &table.own {
            let (start, len) = (own.start_bytes, own.len_bytes);
            if self.gpt {
                // Not all of the entries: most are empty.
                out.push((start, 0, len.min(if len > 1024 { 1024 } else { len })));
            } else {
                out.push((start, 446, 66));
            }
        }
        if self.gpt {
            out.push((0, 446, 66));
            out.push((512, 0, 92));
        }
        out
    }
}

/// `sfdisk --json`, as rows.
pub fn rows(path: &Path) -> Result<Vec<crate::Row>, String> {
    let name = path.to_str().ok_or("a strange name")?;
    let text = run("sfdisk", &["--json", name], &[0])?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let parts = json["partitiontable"]["partitions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut rows = Vec::new();
    for part in parts {
        let node = part["node"].as_str().ok_or("no node")?;
        let number = node.strip_prefix(name).ok_or("another node")?;
        rows.push((
            number.trim_start_matches('p').parse().map_err(|_| "no number")?,
            part["start"].as_u64().ok_or("no start")?,
            part["size"].as_u64().ok_or("no size")?,
            part["type"].as_str().ok_or("no type")?.to_owned(),
            part["name"].as_str().map(str::to_owned),
        ));
    }
    rows.sort();
    Ok(rows)
}
