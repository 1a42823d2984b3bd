//! The main and the backup boot region (exFAT specification, chapter 3).

use super::contradiction;
use crate::freemap::{ReadAt, Refusal};
use crate::wire::{le16, le32, le64};

/// Sectors that the checksum covers; the next one repeats it.
const SUMMED_SECTORS: u32 = 11;
const REGION_SECTORS: u32 = 12;
const MOST_CLUSTERS: u64 = 0xffff_fff5;
const SECOND_TABLE: u16 = 0x0001;
const DIRTY: u16 = 0x0002;
const MEDIA_FAILURE: u16 = 0x0004;

/// Where everything lies.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub cluster_bytes: u32,
    pub table_bytes: u64,
    pub heap_bytes: u64,
    pub clusters: u64,
    pub root_cluster: u32,
    pub covered_bytes: u64,
}

impl Layout {
    /// The index of a cluster from 0, where there is such a cluster.
    pub(super) fn index(&self, cluster: u32) -> Option<u64> {
        u64::from(cluster).checked_sub(2).filter(|i| *i < self.clusters)
    }

    /// The address of a cluster by its index.
    pub(super) fn start_bytes(&self, index: u64) -> u64 {
        self.heap_bytes + index * u64::from(self.cluster_bytes)
    }
}

fn not_this(why: impl Into<String>) -> Refusal {
    Refusal::NotThis {
        what: "exFAT file system",
        why: why.into(),
    }
}

/// One step of the checksum of chapter 3.4: 32 bits, rotated to the right.
pub(super) fn sum32(sum: u32, byte: u8) -> u32 {
    sum.rotate_right(1).wrapping_add(u32::from(byte))
}

/// `VolumeFlags` and `PercentInUse` change while it is mounted, and are in no checksum.
fn changes(at: usize) -> bool {
    matches!(at, 106 | 107 | 112)
}

pub(super) fn read(volume: &dyn ReadAt) -> Result<Layout, Refusal> {
    if volume.size_bytes() < 512 {
        return Err(not_this("it is shorter than a boot sector"));
    }
    let mut head = [0; 512];
    volume.read_at(0, &mut head)?;
    let byte = |at: usize| head.get(at).copied().unwrap_or_default();
    let word = |at: usize| le16(&head, at).unwrap_or_default();
    let long = |at: usize| le32(&head, at).unwrap_or_default();
    if head.get(3..11) != Some(b"EXFAT   ") {
        return Err(not_this("the boot sector does not name it"));
    }
    if word(510) != 0xaa55 || head.get(..3) != Some(&[0xeb, 0x76, 0x90]) {
        return Err(not_this("the boot sector has no signature"));
    }
    if head.get(11..64).unwrap_or_default().iter().any(|b| *b != 0) {
        return Err(contradiction("the boot sector has a parameter block of FAT", 11));
    }
    let (sector_shift, cluster_shift) = (u32::from(byte(108)), u32::from(byte(109)));
    if !(9..=12).contains(&sector_shift) || sector_shift + cluster_shift > 25 {
        return Err(contradiction(
            format!("sectors of 2^{sector_shift} bytes, clusters of 2^{cluster_shift} sectors"),
            108,
        ));
    }
    let sector_bytes = 1u32 << sector_shift;
    let regions = check_regions(volume, sector_bytes);
    let revision = word(104);
    if revision >> 8 != 1 {
        regions?;
        return Err(Refusal::Unsupported {
            why: format!("exFAT revision {}.{:02}", revision >> 8, revision & 0xff),
        });
    }
    regions?;
    check_state(word(106), byte(110), byte(112))?;

    let sector = u64::from(sector_bytes);
    let sectors = le64(&head, 72).unwrap_or_default();
    let (table, table_sectors) = (u64::from(long(80)), u64::from(long(84)));
    let heap = u64::from(long(88));
    let clusters = u64::from(long(92));
    let covered_bytes = sectors
        .checked_mul(sector)
        .filter(|bytes| *bytes <= volume.size_bytes())
        .ok_or_else(|| {
            contradiction(
                format!(
                    "it says that it has {sectors} sectors, and there are {} bytes",
                    volume.size_bytes()
                ),
                72,
            )
        })?;
    if clusters == 0 || clusters > MOST_CLUSTERS {
        return Err(contradiction(format!("{clusters} clusters"), 92));
    }
    if table < 2 * u64::from(REGION_SECTORS)
        || table_sectors < ((clusters + 2) * 4).div_ceil(sector)
        || table + table_sectors > heap
    {
        return Err(contradiction("the table does not fit where it is", 80));
    }
    if heap + (clusters << cluster_shift) > sectors {
        return Err(contradiction("the clusters do not fit into the volume", 88));
    }
    let layout = Layout {
        cluster_bytes: sector_bytes << cluster_shift,
        table_bytes: table * sector,
        heap_bytes: heap * sector,
        clusters,
        root_cluster: long(96),
        covered_bytes,
    };
    if layout.index(layout.root_cluster).is_none() {
        return Err(contradiction("the root directory starts at no cluster", 96));
    }
    Ok(layout)
}

/// The checksums of both regions, and that they say the same.
fn check_regions(volume: &dyn ReadAt, sector_bytes: u32) -> Result<(), Refusal> {
    let region_bytes = (REGION_SECTORS * sector_bytes) as usize;
    let summed_bytes = (SUMMED_SECTORS * sector_bytes) as usize;
    let mut both = vec![0; region_bytes * 2];
    volume.read_at(0, &mut both)?;
    let (main, backup) = both.split_at(region_bytes);
    for (region, start) in [(main, 0), (backup, region_bytes as u64)] {
        let (summed, sums) = region.split_at(summed_bytes);
        let sum = summed
            .iter()
            .enumerate()
            .filter(|(at, _)| !changes(*at))
            .fold(0, |sum, (_, byte)| sum32(sum, *byte));
        if sums.chunks_exact(4).any(|said| said != sum.to_le_bytes()) {
            return Err(contradiction(
                "the checksum of the boot region is wrong",
                start + summed_bytes as u64,
            ));
        }
    }
    let differs = |(at, (a, b)): (usize, (&u8, &u8))| !changes(at) && a != b;
    match main.iter().zip(backup).enumerate().find(|pair| differs(*pair)) {
        Some((at, _)) => Err(contradiction(
            "the boot region and its backup differ",
            (region_bytes + at) as u64,
        )),
        None => Ok(()),
    }
}

fn check_state(flags: u16, tables: u8, percent: u8) -> Result<(), Refusal> {
    if tables == 2 {
        return Err(Refusal::Unsupported {
            why: "TexFAT, with two tables and two bitmaps".to_owned(),
        });
    }
    if tables != 1 {
        return Err(contradiction(format!("{tables} tables"), 110));
    }
    if flags & SECOND_TABLE != 0 {
        return Err(contradiction("the second table is in use, of one", 106));
    }
    let why = if flags & DIRTY != 0 {
        "the boot sector says that it is mounted, or was not unmounted"
    } else if flags & MEDIA_FAILURE != 0 {
        "the boot sector says that the medium had errors"
    } else if percent > 100 && percent != 0xff {
        return Err(contradiction(format!("{percent} % are in use"), 112));
    } else {
        return Ok(());
    };
    Err(Refusal::NotClean {
        why: why.to_owned(),
        tool: super::TOOL,
    })
}
