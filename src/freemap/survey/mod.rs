//! What is free on a whole disk, partition or image.

mod gaps;
mod volume;

use std::collections::BTreeMap;

use serde::Serialize;

use super::partitions::{self, Partition, Scheme, Table};
use super::signature::{Kind, signatures};
use super::{Extent, FileSystem, FreeMap, ReadAt, Refusal, Window};
use volume::{Judged, judge};

/// What to look at, and what to keep out of.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Take the gaps between partitions for free even where something is written in them.
    pub gaps: bool,
    /// What the target is.
    pub target: Target,
    /// Partitions that are in use, by number, each with the reason (`mounted on /home`, `held by dm-0`).
    pub in_use: BTreeMap<u32, String>,
}

/// What the caller knows of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A whole disk or an image: a partition table is looked for.
    #[default]
    Disk,
    /// One partition: a table inside it makes it ambiguous.
    Volume,
}

/// Reads the free space of one file system.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// Which.
    pub file_system: FileSystem,
    /// The function that reads it.
    pub free_map: fn(&dyn ReadAt) -> Result<FreeMap, Refusal>,
}

/// The file systems that can be read.
#[derive(Debug, Clone, Default)]
pub struct Readers(pub Vec<Reader>);

impl Readers {
    /// All that there are.
    pub fn all() -> Self {
        let reader = |file_system, free_map| Reader {
            file_system,
            free_map,
        };
        Self(vec![
            reader(FileSystem::Ext, super::ext::free_map),
            reader(FileSystem::Fat, super::fat::free_map),
            reader(FileSystem::Exfat, super::exfat::free_map),
            reader(FileSystem::Ntfs, super::ntfs::free_map),
        ])
    }

    fn get(&self, file_system: FileSystem) -> Option<&Reader> {
        self.0.iter().find(|r| r.file_system == file_system)
    }
}

/// What is free on a target, and why the rest is not called so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// The kind of partition table; `None` on a target without one.
    pub scheme: Option<Scheme>,
    /// The logical sectors that everything in `free` is a multiple of, in bytes.
    pub sector_bytes: u32,
    /// Free ranges in bytes of the target: sorted, merged, whole sectors.
    pub free: Vec<Extent>,
    /// Each volume, in the order of their numbers.
    pub volumes: Vec<VolumeReport>,
    /// What is not called free and why, in the order of the addresses; the used blocks of volumes that were read are not listed.
    pub left_alone: Vec<LeftAlone>,
}

impl Survey {
    /// Sum of the free ranges.
    pub fn free_bytes(&self) -> u64 {
        self.free.iter().map(|e| e.len_bytes).sum()
    }
}

/// One volume of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VolumeReport {
    /// The number of its partition; `None` where it is the whole target.
    pub number: Option<u32>,
    /// Where it lies.
    pub extent: Extent,
    /// What it holds: `ext4`, `LUKS`, `unknown`.
    pub what: String,
    /// Whether its free space is known.
    pub outcome: Outcome,
}

/// What became of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Its free space is known.
    Mapped(Summary),
    /// It is left whole.
    LeftAlone(Reason),
}

/// The figures of a [`FreeMap`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Whose map it was.
    pub file_system: FileSystem,
    /// Allocation unit in bytes.
    pub unit_bytes: u32,
    /// How much of the volume the file system covers.
    pub covered_bytes: u64,
    /// Sum of the free ranges in whole sectors.
    pub free_bytes: u64,
    /// How many there are.
    pub free_extents: u64,
    /// Files and directories whose blocks were compared with the map.
    pub owners_checked: u64,
}

/// Why something is not called free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The caller says so.
    #[error("in use: {0}")]
    InUse(String),
    /// It holds something that is not read.
    #[error("it holds {0}, which is left alone")]
    Foreign(String),
    /// It holds the marks of more than one thing.
    #[error("it holds the marks of {}: nobody can say which one is in use; wipefs removes the old ones", .0.join(" and "))]
    Ambiguous(Vec<String>),
    /// The partition is meant for something that spans more than itself.
    #[error("the type of its partition says that it belongs to {0}")]
    ByType(String),
    /// Nothing known (a volume of VeraCrypt looks like this, too).
    #[error("nothing known is in it")]
    Unknown,
    /// Nothing at all where a signature could be.
    #[error("it is blank at its start and end, so there is no map of its free space")]
    Blank,
    /// A known file system that would not be read.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Boot code and RAID metadata live outside the partitions.
    #[error("{0} may hold boot code, RAID metadata or the partition table")]
    Outside(&'static str),
    /// A gap with something in it.
    #[error("{0} (--gaps takes it for free)")]
    Gap(String),
    /// A gap that not even `gaps` takes.
    #[error("{0}")]
    Unsure(String),
}

/// Something that is not called free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftAlone {
    /// Where it lies.
    pub extent: Extent,
    /// What it is: `partition 2 (LUKS)`, `gap behind partition 1`.
    pub what: String,
    /// The reason.
    pub why: Reason,
}

/// Finds what is free on `target`, with all readers there are. Everything comes out in whole sectors of `logical_sector_bytes`.
///
/// # Errors
/// The partition table is broken, ambiguous or made for other sectors, or could not be read. What concerns one volume
/// only is no error but its [`Outcome`].
pub fn survey(target: &dyn ReadAt, logical_sector_bytes: u32, ask: &Ask) -> Result<Survey, Refusal> {
    survey_with(target, logical_sector_bytes, ask, &Readers::all())
}

/// The same with these readers.
///
/// # Errors
/// As [`survey`].
pub fn survey_with(
    target: &dyn ReadAt,
    logical_sector_bytes: u32,
    ask: &Ask,
    readers: &Readers,
) -> Result<Survey, Refusal> {
    if !partitions::SECTOR_SIZES.contains(&logical_sector_bytes) {
        return Err(Refusal::Unsupported {
            why: format!("a medium with sectors of {logical_sector_bytes} bytes"),
        });
    }
    let mut work = Work {
        target,
        ask,
        readers,
        out: Survey {
            scheme: None,
            sector_bytes: logical_sector_bytes,
            free: Vec::new(),
            volumes: Vec::new(),
            left_alone: Vec::new(),
        },
    };
    let table = match ask.target {
        Target::Volume => None,
        Target::Disk => match partitions::read(target, logical_sector_bytes) {
            Ok(table) => table.filter(|t| !t.partitions.is_empty()),
            // An image of a CD that boots from a stick has a table that overlaps everything.
            Err(Refusal::Contradiction { .. })
                if signatures(target)?
                    .iter()
                    .any(|s| matches!(s.what, "ISO 9660" | "UDF")) =>
            {
                None
            }
            Err(refusal) => return Err(refusal),
        },
    };
    match table {
        None => work.whole(),
        Some(table) => {
            work.out.scheme = Some(table.scheme);
            work.partitioned(&table)?;
        }
    }
    Ok(work.finish())
}

struct Work<'a> {
    target: &'a dyn ReadAt,
    ask: &'a Ask,
    readers: &'a Readers,
    out: Survey,
}

impl Work<'_> {
    /// The target is one volume.
    fn whole(&mut self) {
        let extent = self.all();
        let judged = judge(self.target, None, self.readers);
        self.report(None, extent, judged);
    }

    fn all(&self) -> Extent {
        Extent {
            start_bytes: 0,
            len_bytes: self.target.size_bytes(),
        }
    }

    fn partitioned(&mut self, table: &Table) -> Result<(), Refusal> {
        // Marks of the whole disk, outside of all partitions: it is a member of a RAID set, or was something else before.
        let marks: Vec<String> = signatures(self.target)?
            .into_iter()
            .filter(|s| {
                let own = table
                    .own
                    .iter()
                    .any(|e| (e.start_bytes..e.start_bytes + e.len_bytes).contains(&s.at_bytes));
                !own && table.holder(s.at_bytes).is_none()
            })
            .map(|s| s.what.to_owned())
            .collect();
        if !marks.is_empty() {
            let names = marks
                .into_iter()
                .chain([format!("a partition table ({})", table.scheme)])
                .collect();
            let judged = Judged::left_alone(Reason::Ambiguous(names));
            let extent = self.all();
            self.report(None, extent, judged);
            return Ok(());
        }
        let mut judged = BTreeMap::new();
        for partition in table.partitions.iter().filter(|p| !p.container) {
            judged.insert(partition.number, self.partition(partition));
        }
        if table.scheme == Scheme::Mbr && judged.values().all(|j| !j.starts) {
            self.other_sectors(table)?;
        }
        gaps::find(self.target, self.ask.gaps, table, &judged, &mut self.out);
        for partition in table.partitions.iter().filter(|p| !p.container) {
            if let Some(judged) = judged.remove(&partition.number) {
                self.report(Some(partition.number), partition.extent, judged);
            }
        }
        Ok(())
    }

    fn partition(&self, partition: &Partition) -> Judged {
        let Some(window) = Window::new(self.target, partition.extent) else {
            return Judged::left_alone(Reason::Unknown);
        };
        match self.ask.in_use.get(&partition.number) {
            Some(why) => Judged::in_use(&window, why),
            None => judge(&window, Some(partition.kind), self.readers),
        }
    }

    /// An MBR has no place that tells its sectors. Where nothing is found at its addresses, but something is at those in other
    /// sectors, it was made for these.
    fn other_sectors(&self, table: &Table) -> Result<(), Refusal> {
        for other in partitions::SECTOR_SIZES
            .into_iter()
            .filter(|s| *s != table.sector_bytes)
        {
            let scaled = |bytes: u64| (bytes / u64::from(table.sector_bytes)).checked_mul(u64::from(other));
            for partition in table.partitions.iter().take(4) {
                let Some((start_bytes, len_bytes)) =
                    scaled(partition.extent.start_bytes).zip(scaled(partition.extent.len_bytes))
                else {
                    continue;
                };
                let extent = Extent {
                    start_bytes,
                    len_bytes,
                };
                if let Some(window) = Window::new(self.target, extent)
                    && !signatures(&window)?.is_empty()
                {
                    return Err(partitions::other_sectors(other, table.sector_bytes));
                }
            }
        }
        Ok(())
    }

    fn report(&mut self, number: Option<u32>, extent: Extent, judged: Judged) {
        let name = match number {
            Some(number) => format!("partition {number} ({})", judged.what),
            None => judged.what.clone(),
        };
        let outcome = match judged.map {
            Ok(map) => {
                let sector_bytes = self.out.sector_bytes;
                let before = self.out.free.len();
                self.out.free.extend(map.free.iter().filter_map(|free| {
                    shrink(
                        Extent {
                            start_bytes: extent.start_bytes.checked_add(free.start_bytes)?,
                            len_bytes: free.len_bytes,
                        },
                        sector_bytes,
                    )
                }));
                let free = self.out.free.get(before..).unwrap_or_default();
                let summary = Summary {
                    file_system: map.file_system,
                    unit_bytes: map.unit_bytes,
                    covered_bytes: map.covered_bytes,
                    free_bytes: free.iter().map(|e| e.len_bytes).sum(),
                    free_extents: free.len() as u64,
                    owners_checked: map.owners_checked,
                };
                if map.covered_bytes < extent.len_bytes {
                    self.out.left_alone.push(LeftAlone {
                        extent: Extent {
                            start_bytes: extent.start_bytes + map.covered_bytes,
                            len_bytes: extent.len_bytes - map.covered_bytes,
                        },
                        what: format!("behind the file system of {name}"),
                        why: Reason::Outside("the rest of a volume"),
                    });
                }
                Outcome::Mapped(summary)
            }
            Err(why) => {
                self.out.left_alone.push(LeftAlone {
                    extent,
                    what: name,
                    why: why.clone(),
                });
                Outcome::LeftAlone(why)
            }
        };
        self.out.volumes.push(VolumeReport {
            number,
            extent,
            what: judged.what,
            outcome,
        });
    }

    fn finish(mut self) -> Survey {
        self.out.volumes.sort_by_key(|v| v.number);
        self.out.left_alone.sort_by_key(|l| l.extent);
        self.out.free.sort();
        let mut merged: Vec<Extent> = Vec::with_capacity(self.out.free.len());
        for extent in self.out.free.drain(..) {
            match merged.last_mut() {
                Some(last) if last.start_bytes + last.len_bytes == extent.start_bytes => {
                    last.len_bytes += extent.len_bytes;
                }
                _ => merged.push(extent),
            }
        }
        self.out.free = merged;
        self.out
    }
}

/// The whole sectors of a range; `None` where there is none.
fn shrink(extent: Extent, sector_bytes: u32) -> Option<Extent> {
    let sector_bytes = u64::from(sector_bytes);
    let start_bytes = extent.start_bytes.checked_next_multiple_of(sector_bytes)?;
    let end_bytes = extent.end_bytes()? / sector_bytes * sector_bytes;
    (end_bytes > start_bytes).then(|| Extent {
        start_bytes,
        len_bytes: end_bytes - start_bytes,
    })
}

#[cfg(test)]
mod tests;
