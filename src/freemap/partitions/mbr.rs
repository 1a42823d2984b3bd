//! The table in the first sector, and the chain of extended boot records.

use std::collections::BTreeSet;

use super::{Edge, Partition, PartitionType, Scheme, Table, contradiction, extent, no_overlap};
use crate::freemap::signature::boot_sector;
use crate::freemap::{Extent, ReadAt, Refusal};
use crate::wire::{le16, le32};

/// Where the four slots start, and the length of one.
const SLOTS_AT: usize = 446;
const SLOT_BYTES: usize = 16;

/// Linux gives nodes to 255 partitions of a disk at most.
const MOST_LOGICAL: usize = 256;

/// One slot of a table or boot record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    raw: [u8; SLOT_BYTES],
    status: u8,
    pub(super) kind: u8,
    pub(super) start: u64,
    pub(super) count: u64,
}

impl Slot {
    fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            raw: bytes.get(..SLOT_BYTES)?.try_into().ok()?,
            status: *bytes.first()?,
            kind: *bytes.get(4)?,
            start: u64::from(le32(bytes, 8)?),
            count: u64::from(le32(bytes, 12)?),
        })
    }

    fn is_zero(&self) -> bool {
        self.raw.iter().all(|b| *b == 0)
    }

    /// Nothing in it. The status and the cylinder addresses of a deleted partition may linger.
    pub(super) fn is_empty(&self) -> bool {
        self.kind == 0 && self.start == 0 && self.count == 0 && matches!(self.status, 0 | 0x80)
    }

    fn extended(&self) -> bool {
        matches!(self.kind, 0x05 | 0x0f | 0x85)
    }

    /// A partition as programs write it.
    fn proper(&self) -> bool {
        matches!(self.status, 0 | 0x80) && self.kind != 0 && self.start > 0 && self.count > 0
    }

    /// What a proper one may be after a byte has changed.
    fn remotely(&self, disk_sectors: u64) -> bool {
        let status = matches!(self.status, 0 | 0x80) && self.kind != 0 && self.count > 0;
        let range = self.kind != 0 && self.count > 0 && self.start + self.count <= disk_sectors;
        status || (range && !self.is_text())
    }

    /// The messages of boot code stand where the slots are.
    fn is_text(&self) -> bool {
        self.raw
            .iter()
            .all(|b| matches!(b, 0x20..=0x7e | b'\r' | b'\n' | 0 | 0xff))
    }

    /// Compares cylinder, head and sector at `at` with a block address. The geometry is that of all large disks, 255
    /// heads and 63 sectors; the last cylinder stands for all beyond.
    fn edge(&self, at: usize, sector: u64) -> Edge {
        let byte = |i: usize| u64::from(self.raw.get(at + i).copied().unwrap_or_default());
        let (head, low, high) = (byte(0), byte(1), byte(2));
        let cylinder = (low & 0xc0) << 2 | high;
        let in_track = low & 0x3f;
        if in_track == 0 || cylinder == 1023 {
            Edge::Unconfirmed
        } else if head < 255 && (cylinder * 255 + head) * 63 + in_track - 1 == sector {
            Edge::Confirmed
        } else {
            Edge::Disputed
        }
    }
}

/// The four slots of a sector with the signature 55h AAh.
#[derive(Debug, Clone)]
pub(super) struct Slots(pub(super) [Slot; 4]);

impl Slots {
    pub(super) fn parse(sector: &[u8]) -> Option<Self> {
        if le16(sector, 510)? != 0xaa55 {
            return None;
        }
        let slot = |i: usize| Slot::parse(sector.get(SLOTS_AT + i * SLOT_BYTES..)?);
        Some(Self([slot(0)?, slot(1)?, slot(2)?, slot(3)?]))
    }

    /// A slot of type EEh: a GPT should follow.
    pub(super) fn protective(&self) -> bool {
        self.0.iter().any(|s| s.kind == 0xee && s.count > 0)
    }

    /// All proper or empty.
    fn proper(&self) -> bool {
        self.0.iter().all(|s| s.is_empty() || s.proper())
    }

    fn used(&self) -> impl Iterator<Item = (u32, &Slot)> {
        (1..).zip(&self.0).filter(|(_, s)| !s.is_empty())
    }

    /// A table with at least one partition, all of them within so many sectors and apart from each other.
    pub(super) fn fits(&self, sectors: u64) -> bool {
        let extents = self.used().filter_map(|(n, s)| {
            Some((
                "slot",
                n,
                extent(s.start, s.count, 512, sectors.saturating_mul(512))?,
            ))
        });
        self.proper()
            && self.used().next().is_some()
            && self.used().all(|(_, s)| s.start + s.count <= sectors)
            && no_overlap(extents).is_ok()
    }
}

/// Tells a table from a boot sector, and reads it.
pub(super) fn read(
    target: &dyn ReadAt,
    sector_bytes: u32,
    first: &[u8],
    slots: &Slots,
) -> Result<Option<Table>, Refusal> {
    let disk_sectors = target.size_bytes() / u64::from(sector_bytes);
    if slots.0.iter().all(Slot::is_empty) {
        return Ok(None);
    }
    if let Some(what) = boot_sector(first) {
        // `mkfs.fat --mbr` covers the whole disk with one partition that starts at its own boot sector.
        let mut used = slots.used();
        if let (Some((_, only)), None) = (used.next(), used.next())
            && only.start == 0
            && only.kind != 0
            && matches!(only.status, 0 | 0x80)
            && (1..=disk_sectors).contains(&only.count)
        {
            return Ok(None);
        }
        let zero = slots.0.iter().any(Slot::is_zero);
        let remains = slots.0.iter().any(|s| {
            s.proper()
                || (matches!(s.status, 0 | 0x80) && s.remotely(disk_sectors))
                || (zero && s.remotely(disk_sectors))
        });
        return if remains {
            Err(contradiction(
                format!("the first sector is both a boot sector of {what} and a partition table"),
                0,
            ))
        } else {
            Ok(None)
        };
    }
    if !slots.proper() {
        // Boot code of a file system that keeps its first sectors free: nothing in it looks like a slot.
        let code = slots.0.iter().all(|s| !s.is_zero() && !s.remotely(disk_sectors));
        return if code {
            Ok(None)
        } else {
            Err(contradiction(
                "the partition table in the first sector is broken",
                0,
            ))
        };
    }
    table(target, sector_bytes, slots).map(Some)
}

fn table(target: &dyn ReadAt, sector_bytes: u32, slots: &Slots) -> Result<Table, Refusal> {
    let mut table = Table {
        scheme: Scheme::Mbr,
        sector_bytes,
        partitions: Vec::new(),
        own: vec![Extent {
            start_bytes: 0,
            len_bytes: u64::from(sector_bytes),
        }],
    };
    let disk_bytes = target.size_bytes();
    for (number, slot) in slots.used() {
        table
            .partitions
            .push(partition(number, slot, slot.start, sector_bytes, disk_bytes, 0)?);
    }
    no_overlap(table.partitions.iter().map(|p| ("partition", p.number, p.extent)))?;
    let containers: Vec<Extent> = table
        .partitions
        .iter()
        .filter(|p| p.container)
        .map(|p| p.extent)
        .collect();
    for container in containers {
        chain(target, container, &mut table)?;
    }
    let logical = table.partitions.iter().filter(|p| p.number > 4);
    let records = (1..)
        .zip(table.own.iter().skip(1))
        .map(|(n, record)| ("extended boot record", n, *record));
    no_overlap(logical.map(|p| ("partition", p.number, p.extent)).chain(records))?;
    table.own.sort();
    Ok(table)
}

fn partition(
    number: u32,
    slot: &Slot,
    start: u64,
    sector_bytes: u32,
    disk_bytes: u64,
    seen_at_bytes: u64,
) -> Result<Partition, Refusal> {
    let extent = extent(start, slot.count, sector_bytes, disk_bytes).ok_or_else(|| {
        contradiction(
            format!("partition {number} goes past the end of the disk"),
            seen_at_bytes,
        )
    })?;
    Ok(Partition {
        number,
        extent,
        kind: PartitionType::Mbr(slot.kind),
        name: None,
        container: slot.extended(),
        start: slot.edge(1, start),
        end: slot.edge(5, start + slot.count - 1),
    })
}

/// Follows the boot records of an extended partition: the first slot is a logical partition counted from the record, the second the next
/// record, counted from the container.
fn chain(target: &dyn ReadAt, container: Extent, table: &mut Table) -> Result<(), Refusal> {
    let sector_bytes = u64::from(table.sector_bytes);
    let (base, count) = (
        container.start_bytes / sector_bytes,
        container.len_bytes / sector_bytes,
    );
    let within = |start: u64, sectors: u64| start >= base && start + sectors <= base + count;
    let mut seen = BTreeSet::new();
    let mut at = base;
    loop {
        let at_bytes = at * sector_bytes;
        if seen.len() >= MOST_LOGICAL || !seen.insert(at) {
            return Err(contradiction(
                "the extended boot records go round in a circle",
                at_bytes,
            ));
        }
        let mut record = [0; 512];
        target.read_at(at_bytes, &mut record)?;
        // A container nothing was ever put into.
        if at == base && record.iter().all(|b| *b == 0) {
            return Ok(());
        }
        let Some(slots) = Slots::parse(&record) else {
            return Err(contradiction("an extended boot record is broken", at_bytes));
        };
        table.own.push(Extent {
            start_bytes: at_bytes,
            len_bytes: sector_bytes,
        });
        let [logical, next, third, fourth] = &slots.0;
        let known = (logical.is_empty() || (logical.proper() && !logical.extended()))
            && (next.is_empty() || (next.proper() && next.extended()))
            && third.is_empty()
            && fourth.is_empty();
        if !known {
            return Err(contradiction("an extended boot record is broken", at_bytes));
        }
        if !logical.is_empty() {
            let number = 5 + table.partitions.iter().filter(|p| p.number > 4).count() as u32;
            let start = at + logical.start;
            if !within(start, logical.count) {
                return Err(contradiction(
                    format!("partition {number} leaves the extended partition that holds it"),
                    at_bytes,
                ));
            }
            table.partitions.push(partition(
                number,
                logical,
                start,
                table.sector_bytes,
                target.size_bytes(),
                at_bytes,
            )?);
        }
        if next.is_empty() {
            return Ok(());
        }
        at = base + next.start;
        if !within(at, 1) {
            return Err(contradiction(
                "an extended boot record points out of its partition",
                at_bytes,
            ));
        }
    }
}
