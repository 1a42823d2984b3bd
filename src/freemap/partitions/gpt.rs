//! The GUID partition table (UEFI 2.10 section 5.3).

use super::{Edge, Partition, PartitionType, Scheme, Table, contradiction, extent, mbr::Slots, no_overlap};
use crate::freemap::{Extent, ReadAt, ReadError, Refusal};
use crate::wire::{le16, le32, le64};

const MAGIC: &[u8; 8] = b"EFI PART";

/// Usual tables have 16 KiB of entries; this is room for 8192 partitions.
const MOST_ENTRIES_BYTES: u64 = 1 << 20;

/// Whether a header could start here; past the end there is none.
pub(super) fn has_magic(target: &dyn ReadAt, at_bytes: u64) -> Result<bool, ReadError> {
    if at_bytes
        .checked_add(512)
        .is_none_or(|end| end > target.size_bytes())
    {
        return Ok(false);
    }
    let mut magic = [0; 8];
    target.read_at(at_bytes, &mut magic)?;
    Ok(&magic == MAGIC)
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    own_sector: u64,
    other_sector: u64,
    /// First and last sector that partitions may use.
    usable: (u64, u64),
    disk_guid: [u8; 16],
    entries_sector: u64,
    entries_count: u32,
    entry_bytes: u32,
    entries_crc: u32,
}

impl Header {
    fn read(target: &dyn ReadAt, sector: u64, sector_bytes: u32) -> Result<Self, Refusal> {
        let at_bytes = sector.saturating_mul(u64::from(sector_bytes));
        let mut bytes = vec![0; sector_bytes as usize];
        target.read_at(at_bytes, &mut bytes)?;
        let bad = |why: &str| contradiction(format!("the GPT header in sector {sector} {why}"), at_bytes);
        let header = Self::parse(&bytes).map_err(bad)?;
        if header.own_sector != sector {
            return Err(bad("says that it is in another one"));
        }
        Ok(header)
    }

    fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        const SHORT: &str = "is too short";
        if bytes.get(..8) != Some(MAGIC) {
            return Err("is not there");
        }
        let length = le32(bytes, 12).ok_or(SHORT)? as usize;
        let covered = bytes
            .get(..length)
            .filter(|b| b.len() >= 92)
            .ok_or("has an impossible length")?;
        let mut crc = Crc::new();
        for (part, range) in [(true, 0..16), (false, 16..20), (true, 20..length)] {
            let part_bytes = covered.get(range).ok_or(SHORT)?;
            crc.update(if part { part_bytes } else { &[0; 4] });
        }
        if Some(crc.finish()) != le32(bytes, 16) {
            return Err("has a wrong checksum");
        }
        if le32(bytes, 8) != Some(0x0001_0000) {
            return Err("has an unknown revision");
        }
        let field = |at| le64(bytes, at).ok_or(SHORT);
        let word = |at| le32(bytes, at).ok_or(SHORT);
        Ok(Self {
            own_sector: field(24)?,
            other_sector: field(32)?,
            usable: (field(40)?, field(48)?),
            disk_guid: bytes.get(56..72).and_then(|b| b.try_into().ok()).ok_or(SHORT)?,
            entries_sector: field(72)?,
            entries_count: word(80)?,
            entry_bytes: word(84)?,
            entries_crc: word(88)?,
        })
    }

    fn entries_bytes(&self) -> u64 {
        u64::from(self.entries_count) * u64::from(self.entry_bytes)
    }

    /// The entries, which must lie in these sectors (the end exclusive).
    fn entries(
        &self,
        target: &dyn ReadAt,
        sector_bytes: u32,
        room: (u64, u64),
    ) -> Result<(Vec<u8>, Extent), Refusal> {
        let header_bytes = self.own_sector.saturating_mul(u64::from(sector_bytes));
        let bad = |why: &str| contradiction(format!("the entries of the GPT {why}"), header_bytes);
        let sectors = self.entries_bytes().div_ceil(u64::from(sector_bytes));
        let end = self
            .entries_sector
            .checked_add(sectors)
            .ok_or_else(|| bad("are beyond any disk"))?;
        if self.entries_sector < room.0 || end > room.1 {
            return Err(bad("overlap its header or the partitions"));
        }
        let place = extent(self.entries_sector, sectors, sector_bytes, target.size_bytes())
            .ok_or_else(|| bad("are past the end"))?;
        // Bounded by MOST_ENTRIES_BYTES, which the caller has checked.
        let mut bytes = vec![0; self.entries_bytes() as usize];
        target.read_at(place.start_bytes, &mut bytes)?;
        let mut crc = Crc::new();
        crc.update(&bytes);
        if crc.finish() != self.entries_crc {
            return Err(contradiction(
                "the entries of the GPT have a wrong checksum",
                place.start_bytes,
            ));
        }
        Ok((bytes, place))
    }
}

/// Reads both copies, which must say the same, behind a protective MBR.
pub(super) fn read(target: &dyn ReadAt, sector_bytes: u32, slots: &Slots) -> Result<Table, Refusal> {
    let sectors = target.size_bytes() / u64::from(sector_bytes);
    let primary = Header::read(target, 1, sector_bytes)?;
    let at_bytes = u64::from(sector_bytes);
    let entry_known = primary.entry_bytes >= 128
        && primary.entry_bytes.is_power_of_two()
        && (1..=MOST_ENTRIES_BYTES).contains(&primary.entries_bytes());
    if !entry_known {
        return Err(Refusal::Unsupported {
            why: format!(
                "a GPT with {} entries of {} bytes",
                primary.entries_count, primary.entry_bytes
            ),
        });
    }
    if primary.other_sector >= sectors {
        return Err(contradiction(
            "the second copy of the GPT is past the end of the disk (is a part of it hidden?)",
            at_bytes,
        ));
    }
    if primary.other_sector <= 1 {
        return Err(contradiction("the GPT names no second copy", at_bytes));
    }
    let backup = Header::read(target, primary.other_sector, sector_bytes)?;
    let mirrored = Header {
        own_sector: backup.other_sector,
        other_sector: backup.own_sector,
        entries_sector: primary.entries_sector,
        ..backup.clone()
    };
    if mirrored != primary {
        return Err(contradiction("the two copies of the GPT disagree", at_bytes));
    }
    // The disk may have grown since (an image written to a larger one); then nothing may sit where the copy would be now.
    if primary.other_sector != sectors - 1 && has_magic(target, (sectors - 1) * u64::from(sector_bytes))? {
        return Err(contradiction(
            "another GPT header is at the end of the disk",
            (sectors - 1) * u64::from(sector_bytes),
        ));
    }
    let (first, last) = primary.usable;
    if first > last || last >= backup.own_sector {
        return Err(contradiction(
            "the range of sectors that the GPT lets partitions use is impossible",
            at_bytes,
        ));
    }
    let (entries, entries_place) = primary.entries(target, sector_bytes, (2, first))?;
    let (_, backup_place) = backup.entries(target, sector_bytes, (last + 1, backup.own_sector))?;

    let mut partitions = Vec::new();
    for (number, entry) in (1..).zip(entries.chunks(primary.entry_bytes as usize)) {
        if let Some(found) = partition(number, entry, sector_bytes, primary.usable, target.size_bytes())
            .map_err(|why| contradiction(why, entries_place.start_bytes))?
        {
            partitions.push(found);
        }
    }
    no_overlap(partitions.iter().map(|p| ("partition", p.number, p.extent)))?;
    hybrid(slots, &partitions, sector_bytes)?;
    Ok(Table {
        scheme: Scheme::Gpt,
        sector_bytes,
        partitions,
        own: vec![
            Extent {
                start_bytes: 0,
                len_bytes: 2 * u64::from(sector_bytes),
            },
            entries_place,
            backup_place,
            Extent {
                start_bytes: backup.own_sector * u64::from(sector_bytes),
                len_bytes: u64::from(sector_bytes),
            },
        ],
    })
}

fn partition(
    number: u32,
    entry: &[u8],
    sector_bytes: u32,
    usable: (u64, u64),
    disk_bytes: u64,
) -> Result<Option<Partition>, String> {
    let kind: Option<[u8; 16]> = entry.get(..16).and_then(|b| b.try_into().ok());
    let (Some(kind), Some(start), Some(last)) = (kind, le64(entry, 32), le64(entry, 40)) else {
        return Ok(None);
    };
    if kind == [0; 16] {
        return Ok(None);
    }
    if start < usable.0 || last > usable.1 {
        return Err(format!(
            "partition {number} leaves the sectors that the GPT lets partitions use"
        ));
    }
    let extent = last
        .checked_sub(start)
        .and_then(|n| extent(start, n + 1, sector_bytes, disk_bytes))
        .ok_or_else(|| format!("partition {number} has an impossible range"))?;
    let units: Vec<u16> = (56..128)
        .step_by(2)
        .map_while(|at| le16(entry, at))
        .take_while(|unit| *unit != 0)
        .collect();
    Ok(Some(Partition {
        number,
        extent,
        kind: PartitionType::Gpt(kind),
        name: (!units.is_empty()).then(|| String::from_utf16_lossy(&units)),
        container: false,
        start: Edge::Confirmed,
        end: Edge::Confirmed,
    }))
}

/// An MBR with more than the protective slot must name partitions of the GPT.
fn hybrid(slots: &Slots, partitions: &[Partition], sector_bytes: u32) -> Result<(), Refusal> {
    if !slots.0.iter().any(|s| s.kind == 0xee && s.start == 1) {
        return Err(contradiction(
            "the protective MBR does not start where the GPT does",
            0,
        ));
    }
    let same = |start: u64, count: u64| {
        let wanted = (start * u64::from(sector_bytes), count * u64::from(sector_bytes));
        partitions
            .iter()
            .any(|p| (p.extent.start_bytes, p.extent.len_bytes) == wanted)
    };
    for slot in slots.0.iter().filter(|s| !s.is_empty() && s.kind != 0xee) {
        if !same(slot.start, slot.count) {
            return Err(contradiction(
                "the MBR names a partition that is not in the GPT",
                0,
            ));
        }
    }
    Ok(())
}

/// CRC-32 of ISO 3309, reflected, polynomial 04C11DB7h.
pub(super) struct Crc(u32);

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                value >> 1 ^ 0xedb8_8320
            } else {
                value >> 1
            };
            bit += 1;
        }
        // A constant: an index that does not fit would not compile.
        #[allow(clippy::indexing_slicing)]
        {
            table[index] = value;
        }
        index += 1;
    }
    table
};

impl Crc {
    pub(super) fn new() -> Self {
        Self(u32::MAX)
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let index = (self.0 ^ u32::from(*byte)) & 0xff;
            let entry = CRC_TABLE.get(index as usize).copied().unwrap_or_default();
            self.0 = self.0 >> 8 ^ entry;
        }
    }

    pub(super) fn finish(self) -> u32 {
        !self.0
    }
}
