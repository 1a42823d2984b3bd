//! What a volume holds, told by the signatures of superblocks.
//!
//! A signature says only who might own the volume. Two of them mean that nobody can say; then it is left whole. The places and values are
//! those of the formats' own documents and of their public headers, named in the tables.

mod boot;
mod places;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;

use super::{FileSystem, ReadAt, ReadError};
use crate::wire::{be16, be32, be64, le16, le32, le64};
use places::{ANYWHERE, At};

pub(super) use boot::boot_sector;

/// Read at once from the start: all usual superblocks, and the first two labels of ZFS.
const HEAD_BYTES: u64 = 512 << 10;

/// ZFS rounds a device down to this before it places its last two labels.
const ZFS_LABEL_BYTES: u64 = 256 << 10;

/// What a signature stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A file system whose free space can be read.
    FileSystem(FileSystem),
    /// Something that is left alone.
    Foreign,
}

/// A signature that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signature {
    /// What it is the mark of: `ext2/3/4`, `LUKS`, `Linux RAID (md 1.0)`.
    pub what: &'static str,
    /// Whether it can be read.
    pub kind: Kind,
    /// Where the signature stands, in bytes of the volume.
    pub at_bytes: u64,
    /// How much of the volume it says that it uses, where it says so in a known place.
    pub claims_bytes: Option<u64>,
}

/// All signatures of a volume, in the order of their places. A few bytes at its start and end are read.
///
/// # Errors
/// These could not be read.
pub fn signatures(volume: &dyn ReadAt) -> Result<Vec<Signature>, ReadError> {
    let probe = Probe::new(volume)?;
    let mut found = Vec::new();
    boot::find(&probe, &mut found)?;
    heads(&probe, &mut found)?;
    tables(&probe, &mut found)?;
    ends(&probe, &mut found)?;
    zfs(&probe, &mut found)?;
    found.sort_by_key(|s| s.at_bytes);
    let mut seen = BTreeSet::new();
    found.retain(|s| seen.insert(s.what));
    Ok(found)
}

/// Whether all is zero wherever a signature could be. The bulk of the volume is not looked at.
///
/// # Errors
/// It could not be read.
pub fn looks_blank(volume: &dyn ReadAt) -> Result<bool, ReadError> {
    let probe = Probe::new(volume)?;
    let zero = |bytes: &[u8]| bytes.iter().all(|b| *b == 0);
    Ok(zero(&probe.head) && zero(&probe.tail))
}

/// The start and the end of a volume in memory, and spots between on demand.
struct Probe<'a> {
    volume: &'a dyn ReadAt,
    size_bytes: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
    tail_at_bytes: u64,
}

impl<'a> Probe<'a> {
    fn new(volume: &'a dyn ReadAt) -> Result<Self, ReadError> {
        let size_bytes = volume.size_bytes();
        let mut head = vec![0; size_bytes.min(HEAD_BYTES) as usize];
        volume.read_at(0, &mut head)?;
        let tail_at_bytes =
            (size_bytes / ZFS_LABEL_BYTES * ZFS_LABEL_BYTES).saturating_sub(2 * ZFS_LABEL_BYTES);
        let mut tail = vec![0; (size_bytes - tail_at_bytes) as usize];
        volume.read_at(tail_at_bytes, &mut tail)?;
        Ok(Self {
            volume,
            size_bytes,
            head,
            tail,
            tail_at_bytes,
        })
    }

    /// So many bytes from an address on; `None` where they do not lie within the volume.
    fn bytes(&self, at_bytes: u64, len: usize) -> Result<Option<Cow<'_, [u8]>>, ReadError> {
        let part = |buffer: &'_ Vec<u8>, start: u64| -> Option<std::ops::Range<usize>> {
            let from = usize::try_from(at_bytes.checked_sub(start)?).ok()?;
            let to = from.checked_add(len)?;
            (to <= buffer.len()).then_some(from..to)
        };
        if let Some(bytes) = part(&self.head, 0).and_then(|r| self.head.get(r)) {
            return Ok(Some(Cow::Borrowed(bytes)));
        }
        if let Some(bytes) = part(&self.tail, self.tail_at_bytes).and_then(|r| self.tail.get(r)) {
            return Ok(Some(Cow::Borrowed(bytes)));
        }
        if at_bytes
            .checked_add(len as u64)
            .is_none_or(|end| end > self.size_bytes)
        {
            return Ok(None);
        }
        let mut bytes = vec![0; len];
        self.volume.read_at(at_bytes, &mut bytes)?;
        Ok(Some(Cow::Owned(bytes)))
    }

    /// Whether these bytes stand at an address.
    fn has(&self, at_bytes: u64, magic: &[u8]) -> Result<bool, ReadError> {
        Ok(self.bytes(at_bytes, magic.len())?.as_deref() == Some(magic))
    }
}

fn foreign(what: &'static str, at_bytes: u64) -> Signature {
    Signature {
        what,
        kind: Kind::Foreign,
        at_bytes,
        claims_bytes: None,
    }
}

/// Whatever has a plain magic number in a fixed place, and the formats near the start that want a closer look.
fn heads(probe: &Probe<'_>, found: &mut Vec<Signature>) -> Result<(), ReadError> {
    for place in ANYWHERE {
        let at_bytes = match place.at {
            At::Start(offset_bytes) => Some(offset_bytes),
            At::End(before_bytes) => (probe.size_bytes / 512 * 512).checked_sub(before_bytes),
        };
        if let Some(at_bytes) = at_bytes
            && probe.has(at_bytes, place.magic)?
        {
            found.push(foreign(place.what, at_bytes));
        }
    }
    if let Some(signature) = ext(probe)? {
        found.push(signature);
    }
    for signature in found.iter_mut() {
        signature.claims_bytes = claims(probe, signature)?;
    }
    swap(probe, found)?;
    // UDF: a chain of volume structure descriptors of 2 KiB from 32 KiB on (ECMA-167 2/8.3), with sectors of 4 KiB each in one of its own.
    for step in [2048, 4096] {
        for index in 0..16 {
            let at_bytes = (32 << 10) + index * step + 1;
            if probe.has(at_bytes, b"NSR02")? || probe.has(at_bytes, b"NSR03")? {
                found.push(foreign("UDF", at_bytes));
            }
        }
    }
    // HFS (Inside Macintosh: Files, "Master Directory Blocks"): 16 bits alone are too few.
    if let Some(block) = probe.bytes(1024, 64)?
        && be16(&block, 0) == Some(0x4244)
        && be32(&block, 20).is_some_and(|n| n > 0 && n.is_multiple_of(512))
        && be16(&block, 14) == Some(3)
    {
        found.push(foreign("HFS", 1024));
    }
    // HFS+ and HFSX (Apple TN1150): the version follows the signature.
    if probe.has(1024, b"H+\0\x04")? || probe.has(1024, b"HX\0\x05")? {
        found.push(foreign("HFS+", 1024));
    }
    // NILFS2 (`nilfs2_ondisk.h`): revision 2, then the magic number.
    if let Some(block) = probe.bytes(1024, 8)?
        && le32(&block, 0) == Some(2)
        && le16(&block, 6) == Some(0x3434)
    {
        found.push(foreign("NILFS2", 1024));
    }
    // Minix (`minix_fs.h`): 16 bits, and zones that make sense.
    if let Some(block) = probe.bytes(1024, 32)? {
        let old = matches!(le16(&block, 16), Some(0x137f | 0x138f | 0x2468 | 0x2478))
            && le16(&block, 10).is_some_and(|zone_shift| zone_shift == 0)
            && le16(&block, 4).is_some_and(|maps| maps > 0);
        let new = le16(&block, 24) == Some(0x4d5a)
            && le16(&block, 28).is_some_and(|size| matches!(size, 1024 | 2048 | 4096));
        if old || new {
            found.push(foreign("Minix", 1024));
        }
    }
    Ok(())
}

/// ext2, ext3, ext4 (kernel documentation, "Super Block"): 16 bits, so the fields around them must make sense too.
fn ext(probe: &Probe<'_>) -> Result<Option<Signature>, ReadError> {
    let Some(block) = probe.bytes(1024, 1024)? else {
        return Ok(None);
    };
    let (Some(inodes), Some(blocks), Some(shift), Some(incompatible)) = (
        le32(&block, 0),
        le32(&block, 4),
        le32(&block, 24),
        le32(&block, 96),
    ) else {
        return Ok(None);
    };
    let blocks = blocks > 0 || le32(&block, 0x150) != Some(0);
    if le16(&block, 56) != Some(0xef53) || shift > 6 || !blocks {
        return Ok(None);
    }
    // Incompatible feature 0008h: no file system, but the journal of another one.
    if incompatible & 8 != 0 && le32(&block, 76) != Some(0) {
        return Ok(Some(foreign("the journal of another ext volume", 1024 + 56)));
    }
    if inodes == 0 {
        return Ok(None);
    }
    Ok(Some(Signature {
        what: "ext2/3/4",
        kind: Kind::FileSystem(FileSystem::Ext),
        at_bytes: 1024 + 56,
        claims_bytes: None,
    }))
}

/// The size that a format without a reader says it has.
fn claims(probe: &Probe<'_>, signature: &Signature) -> Result<Option<u64>, ReadError> {
    let field = |at: u64, read: fn(&[u8], usize) -> Option<u64>| -> Result<Option<u64>, ReadError> {
        Ok(probe.bytes(at, 8)?.and_then(|b| read(&b, 0)))
    };
    Ok(match signature.what {
        // Block size and number of blocks (`xfs_dsb`).
        "XFS" => {
            let block = field(4, be64)?.map(|word| word >> 32);
            field(8, be64)?
                .zip(block)
                .and_then(|(n, size)| n.checked_mul(size))
        }
        // `dev_item.total_bytes` of the device itself.
        "btrfs" => field((64 << 10) + 0xc9 + 8, le64)?,
        // The size of the device in the header that follows its label: identifier of 32 bytes first.
        "LVM" => {
            let offset = field(signature.at_bytes + 20, le64)?.map(|word| word & 0xffff_ffff);
            match offset {
                Some(offset) => field(signature.at_bytes + offset + 32, le64)?,
                None => None,
            }
        }
        _ => None,
    })
}

/// Swap (`mkswap(8)`, kernel `union swap_header`): the mark ends the first page, whatever the page size is; hibernation
/// puts its own in the same place.
fn swap(probe: &Probe<'_>, found: &mut Vec<Signature>) -> Result<(), ReadError> {
    const ASLEEP: [&[u8]; 5] = [
        b"S1SUSPEND",
        b"S2SUSPEND",
        b"ULSUSPEND",
        b"LINHIB0001",
        b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c",
    ];
    for page_bytes in [4096u64, 8192, 16384, 32768, 65536] {
        let at_bytes = page_bytes - 10;
        if probe.has(at_bytes, b"SWAPSPACE2")? || probe.has(at_bytes, b"SWAP-SPACE")? {
            let pages = probe.bytes(1024, 8)?.and_then(|b| match le32(&b, 0) {
                Some(1) => le32(&b, 4),
                _ => None,
            });
            found.push(Signature {
                claims_bytes: pages.and_then(|last| (u64::from(last) + 1).checked_mul(page_bytes)),
                ..foreign("swap", at_bytes)
            });
        }
        for mark in ASLEEP {
            if probe.has(at_bytes, mark)? {
                found.push(foreign("swap with a hibernated system", at_bytes));
            }
        }
    }
    Ok(())
}

/// Partition tables where a volume should be.
fn tables(probe: &Probe<'_>, found: &mut Vec<Signature>) -> Result<(), ReadError> {
    // Apple partition map (Inside Macintosh: Devices, "Partition Map"): the number of entries bounds the guess.
    if let Some(entry) = probe.bytes(512, 16)?
        && entry.get(..4) == Some(b"PM\0\0")
        && be32(&entry, 4).is_some_and(|entries| (1..=1024).contains(&entries))
    {
        found.push(foreign("an Apple partition map", 512));
    }
    let Some(sector) = probe.bytes(0, 512)? else {
        return Ok(());
    };
    // Sun label: the sum over all words is zero.
    if be16(&sector, 508) == Some(0xdabe)
        && (0..512)
            .step_by(2)
            .filter_map(|at| be16(&sector, at))
            .fold(0, |sum, word| sum ^ word)
            == 0
    {
        found.push(foreign("a Sun disk label", 508));
    }
    // BSD: the magic number twice, 132 bytes apart; in the first or second sector.
    for at_bytes in [0u64, 64, 512] {
        let magic = 0x8256_4557u32.to_le_bytes();
        if probe.has(at_bytes, &magic)? && probe.has(at_bytes + 132, &magic)? {
            found.push(foreign("a BSD disk label", at_bytes));
        }
    }
    for index in 0..16 {
        if probe.has(index * 512, b"RDSK")? {
            found.push(foreign("an Amiga partition table", index * 512));
        }
    }
    Ok(())
}

/// What is kept at the end, in a place that depends on the size: RAID sets, replication.
fn ends(probe: &Probe<'_>, found: &mut Vec<Signature>) -> Result<(), ReadError> {
    let size = probe.size_bytes;
    // Linux md (`md_p.h`): 0.90 in the last whole 64 KiB but one, in the byte order of its maker; 1.0 at least 8 KiB before the end.
    if let Some(at_bytes) = (size / 65536 * 65536).checked_sub(65536)
        && let Some(block) = probe.bytes(at_bytes, 8)?
        && (le32(&block, 0) == Some(0xa92b_4efc) || be32(&block, 0) == Some(0xa92b_4efc))
    {
        found.push(foreign("Linux RAID (md 0.90)", at_bytes));
    }
    let md_1 = [
        ("Linux RAID (md 1.1)", Some(0)),
        ("Linux RAID (md 1.2)", Some(4096)),
        (
            "Linux RAID (md 1.0)",
            (size / 512).checked_sub(16).map(|s| s / 8 * 4096),
        ),
    ];
    for (what, at_bytes) in md_1 {
        if let Some(at_bytes) = at_bytes
            && let Some(block) = probe.bytes(at_bytes, 8)?
            && le32(&block, 0) == Some(0xa92b_4efc)
            && le32(&block, 4) == Some(1)
        {
            found.push(foreign(what, at_bytes));
        }
    }
    // DRBD keeps its metadata in the last 4 KiB: 8374026xh, the digit is the version (`drbdmeta`).
    for end in [size / 4096 * 4096, size / 512 * 512] {
        if let Some(at_bytes) = end.checked_sub(4096)
            && let Some(block) = probe.bytes(at_bytes, 64)?
            && be32(&block, 60).is_some_and(|magic| (0x8374_0267..=0x8374_026f).contains(&magic))
        {
            found.push(foreign("DRBD", at_bytes));
        }
    }
    let Some(last) = (size / 512 * 512).checked_sub(512) else {
        return Ok(());
    };
    let Some(sector) = probe.bytes(last, 512)? else {
        return Ok(());
    };
    // JMicron and VIA have two bytes of signature; their checksums make them sure.
    let words = (0..128).step_by(2).filter_map(|at| le16(&sector, at));
    if sector.get(..2) == Some(b"JM") && words.fold(0u16, u16::wrapping_add) <= 1 {
        found.push(foreign("JMicron RAID", last));
    }
    let sum = sector.iter().take(50).fold(0u8, |sum, b| sum.wrapping_add(*b));
    if le16(&sector, 0) == Some(0xaa55)
        && sector.get(2).is_some_and(|version| *version <= 1)
        && sector.get(50) == Some(&sum)
    {
        found.push(foreign("VIA RAID", last));
    }
    if le32(&sector, 0x60) == Some(0x2f00_0000) {
        found.push(foreign("Silicon Image RAID", last));
    }
    Ok(())
}

/// ZFS ("ZFS On-Disk Specification", 1.2): four labels, each with a ring of uberblocks in its upper half.
fn zfs(probe: &Probe<'_>, found: &mut Vec<Signature>) -> Result<(), ReadError> {
    const MAGIC: u64 = 0x00ba_b10c;
    let rounded = probe.size_bytes / ZFS_LABEL_BYTES * ZFS_LABEL_BYTES;
    let labels = [
        Some(0),
        Some(ZFS_LABEL_BYTES),
        rounded.checked_sub(2 * ZFS_LABEL_BYTES),
        rounded.checked_sub(ZFS_LABEL_BYTES),
    ];
    for label in labels.into_iter().flatten() {
        let ring_at = label + (128 << 10);
        let Some(ring) = probe.bytes(ring_at, 128 << 10)? else {
            continue;
        };
        for (slot, block) in (0u64..).zip(ring.chunks(1024)) {
            if le64(block, 0) == Some(MAGIC) || be64(block, 0) == Some(MAGIC) {
                found.push(foreign("ZFS", ring_at + slot * 1024));
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
