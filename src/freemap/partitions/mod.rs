//! Partition tables: where the volumes of a disk lie.
//!
//! A table that could be read in two ways is not read at all: what is not a partition may be trimmed as a gap, and a volume
//! looked for in the wrong place may be the remains of an old one. Sources: UEFI 2.10 section 5 (GPT, protective MBR); for the MBR and its extended
//! boot records, which no standard defines, what Linux reads and `fdisk` writes.

mod gpt;
mod mbr;

use std::fmt::{self, Write};

use serde::{Serialize, Serializer};

use super::{Extent, ReadAt, Refusal};
use mbr::Slots;

/// Says what the table should be looked at with.
const TOOL: &str = "fdisk";

/// The kinds of tables that are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// The table of DOS in the first sector, with a chain of extended boot records.
    Mbr,
    /// The GUID partition table of UEFI behind a protective (or hybrid) MBR.
    Gpt,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mbr => "MBR",
            Self::Gpt => "GPT",
        })
    }
}

/// What a table says that a partition is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartitionType {
    /// The byte of an MBR.
    Mbr(u8),
    /// The GUID of a GPT, as its bytes stand on disk.
    Gpt([u8; 16]),
}

impl fmt::Display for PartitionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mbr(byte) => write!(f, "0x{byte:02x}"),
            Self::Gpt(bytes) => f.write_str(&guid(bytes)),
        }
    }
}

impl Serialize for PartitionType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Types whose volumes belong to something that spans more than one partition, or that only its owner may touch.
const MEMBERS_MBR: &[(u8, &str)] = &[
    (0x42, "a Windows dynamic disk"),
    (0x84, "hibernation"),
    (0x8e, "LVM"),
    (0xfb, "VMware VMFS"),
    (0xfc, "VMware swap"),
    (0xfd, "Linux RAID"),
];

const MEMBERS_GPT: &[(&str, &str)] = &[
    ("A19D880F-05FC-4D3B-A006-743F0F84911E", "Linux RAID"),
    ("E6D6D379-F507-44C2-A23C-238F2A3DF928", "LVM"),
    ("CA7D7CCB-63ED-4C53-861C-1742536059CC", "LUKS"),
    ("7FFEC5C9-2D00-49B7-8941-3EA10A5586B7", "dm-crypt"),
    ("AF9B60A0-1431-4F62-BC68-3311714A69AD", "a Windows dynamic disk"),
    ("5808C8AA-7E8F-42E0-85D2-E1E90434CFB3", "a Windows dynamic disk"),
    ("E75CAF8F-F680-4CEE-AFA3-B001E56EFC2D", "Windows Storage Spaces"),
    ("AA31E02A-400F-11DB-9590-000C2911D1B8", "VMware VMFS"),
    ("6A898CC3-1DD2-11B2-99A6-080020736631", "ZFS"),
    ("516E7CBA-6ECF-11D6-8FF8-00022D71012B", "ZFS"),
    ("52414944-0000-11AA-AA11-00306543ECAC", "Apple RAID"),
    ("52414944-5F4F-11AA-AA11-00306543ECAC", "Apple RAID"),
    ("53746F72-6167-11AA-AA11-00306543ECAC", "Apple Core Storage"),
    ("7C3457EF-0000-11AA-AA11-00306543ECAC", "APFS"),
    ("D3BFE2DE-3DAF-11DF-BA40-E3A556D89593", "hibernation"),
];

impl PartitionType {
    /// The set, pool or owner that a partition of this type belongs to, where it is no volume of its own.
    pub fn member_of(&self) -> Option<&'static str> {
        match self {
            Self::Mbr(byte) => MEMBERS_MBR.iter().find(|(b, _)| b == byte).map(|(_, what)| *what),
            Self::Gpt(bytes) => {
                let guid = guid(bytes);
                MEMBERS_GPT
                    .iter()
                    .find(|(g, _)| *g == guid)
                    .map(|(_, what)| *what)
            }
        }
    }
}

/// A GUID as it is written: the first three groups are little-endian.
fn guid(bytes: &[u8; 16]) -> String {
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut out = String::with_capacity(36);
    for (place, index) in order.into_iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        let _ = write!(out, "{:02X}", bytes.get(index).copied().unwrap_or_default());
    }
    out
}

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Partition {
    /// Its number as Linux counts: the slot of a GPT or MBR from 1 on, logical partitions from 5 on.
    pub number: u32,
    /// Where it lies, in bytes of the disk.
    pub extent: Extent,
    /// What it is for.
    pub kind: PartitionType,
    /// Its name in a GPT. Untrusted: to be escaped before it is shown.
    pub name: Option<String>,
    /// An extended partition: it only holds others.
    pub container: bool,
    /// What else the table says of its first sector.
    pub start: Edge,
    /// And of its last.
    pub end: Edge,
}

/// Whether a table says where a partition starts or ends in more than one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Edge {
    /// A checksum covers it, or a cylinder address says the same.
    Confirmed,
    /// Said once: one changed bit moves it, and nobody can tell.
    Unconfirmed,
    /// The cylinder address says something else: another geometry, or damage.
    Disputed,
}

/// A partition table without contradictions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Its kind.
    pub scheme: Scheme,
    /// The logical sectors that it counts in, in bytes.
    pub sector_bytes: u32,
    /// In the order of their numbers. None overlaps another, except that logical ones lie in their container.
    pub partitions: Vec<Partition>,
    /// The table itself: headers, entries, boot records. Sorted.
    pub own: Vec<Extent>,
}

impl Table {
    /// The partition that holds this byte; a logical one rather than its container.
    pub fn holder(&self, at_bytes: u64) -> Option<&Partition> {
        let holds = |p: &&Partition| {
            p.extent.start_bytes <= at_bytes && p.extent.end_bytes().is_some_and(|end| at_bytes < end)
        };
        let mut holders = self.partitions.iter().filter(holds);
        let first = holders.next()?;
        if first.container {
            return Some(holders.next().unwrap_or(first));
        }
        Some(first)
    }
}

/// Sector sizes that disks have, or that bridges pretend.
pub(super) const SECTOR_SIZES: [u32; 4] = [512, 1024, 2048, 4096];

/// The sector size that the GPT of this disk or image counts in; `None` where there is no GPT. For images, whose
/// medium does not tell.
///
/// # Errors
/// It could not be read.
pub fn gpt_sector_bytes(target: &dyn ReadAt) -> Result<Option<u32>, Refusal> {
    for sector_bytes in SECTOR_SIZES {
        if gpt::has_magic(target, u64::from(sector_bytes))? {
            return Ok(Some(sector_bytes));
        }
    }
    Ok(None)
}

/// Reads the partition table of a disk; `None` where there is none, as on a disk that is one file system.
///
/// # Errors
/// There is a table, and it is broken, ambiguous, made for other sectors than `sector_bytes`, or could not be read.
pub fn read(target: &dyn ReadAt, sector_bytes: u32) -> Result<Option<Table>, Refusal> {
    if !SECTOR_SIZES.contains(&sector_bytes) {
        return Err(Refusal::Unsupported {
            why: format!("a medium with sectors of {sector_bytes} bytes"),
        });
    }
    if target.size_bytes() < 512 {
        return Ok(None);
    }
    let mut first = [0; 512];
    target.read_at(0, &mut first)?;
    let slots = Slots::parse(&first);
    let protective = slots.as_ref().is_some_and(Slots::protective);
    let gpt_here = gpt::has_magic(target, u64::from(sector_bytes))?;
    if gpt_here && !protective {
        return Err(contradiction(
            "a GPT without the protective MBR that belongs to it",
            0,
        ));
    }
    match slots {
        Some(slots) if protective => {
            if !gpt_here && let Some(other) = gpt_sector_bytes(target)? {
                return Err(other_sectors(other, sector_bytes));
            }
            gpt::read(target, sector_bytes, &slots).map(Some)
        }
        Some(slots) => {
            let table = mbr::read(target, sector_bytes, &first, &slots)?;
            let last = (target.size_bytes() / u64::from(sector_bytes)).saturating_sub(1);
            let last_bytes = last * u64::from(sector_bytes);
            if table.is_some() && gpt::has_magic(target, last_bytes)? {
                return Err(contradiction(
                    "an MBR, and the second copy of a GPT at the end of the disk",
                    last_bytes,
                ));
            }
            Ok(table)
        }
        None => Ok(None),
    }
}

/// A table that counts in other sectors than its disk.
pub(super) fn other_sectors(table_bytes: u32, disk_bytes: u32) -> Refusal {
    Refusal::Unsupported {
        why: format!(
            "a partition table made for sectors of {table_bytes} bytes on a disk that counts in {disk_bytes} (does a bridge fake its sectors?)"
        ),
    }
}

/// Whether a sector holds a partition table with at least one partition, for volumes that should hold none.
pub(super) fn looks_like_mbr(first: &[u8], volume_bytes: u64) -> bool {
    Slots::parse(first).is_some_and(|slots| slots.protective() || slots.fits(volume_bytes / 512))
}

fn contradiction(why: impl Into<String>, offset_bytes: u64) -> Refusal {
    Refusal::Contradiction {
        why: why.into(),
        offset_bytes,
        tool: TOOL,
    }
}

/// Refuses partitions that overlap. Logical ones are compared with each other and with boot records by the caller.
fn no_overlap<'a>(extents: impl Iterator<Item = (&'a str, u32, Extent)>) -> Result<(), Refusal> {
    let mut all: Vec<_> = extents.collect();
    all.sort_by_key(|(_, _, extent)| *extent);
    for pair in all.windows(2) {
        if let [(kind, number, a), (other_kind, other, b)] = pair
            && a.end_bytes().is_none_or(|end| end > b.start_bytes)
        {
            return Err(contradiction(
                format!("{kind} {number} and {other_kind} {other} overlap"),
                b.start_bytes,
            ));
        }
    }
    Ok(())
}

/// So many sectors from `start` on in bytes, if they lie within the disk.
fn extent(start: u64, count: u64, sector_bytes: u32, disk_bytes: u64) -> Option<Extent> {
    let extent = Extent {
        start_bytes: start.checked_mul(u64::from(sector_bytes))?,
        len_bytes: count.checked_mul(u64::from(sector_bytes))?,
    };
    (count > 0 && extent.end_bytes()? <= disk_bytes).then_some(extent)
}

/// For the tests, which make tables of their own.
#[cfg(test)]
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = gpt::Crc::new();
    crc.update(bytes);
    crc.finish()
}

#[cfg(test)]
mod tests;
