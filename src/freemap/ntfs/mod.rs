//! NTFS 1.2 to 3.1, by `$Bitmap` and every record of the MFT.
//!
//! There is no public standard; the layout is the one that the documentation of the Linux-NTFS project and Microsoft's
//! own headers describe. `$Bitmap` is believed only where every attribute of every record in use agrees with it: each
//! cluster marked, none used twice, no stretch missing, the bitmap of the MFT and the records of one mind. Clusters that
//! are marked and belong to nobody stay used.

mod boot;
mod log;
mod owners;
mod record;
mod runs;
mod stream;
#[cfg(test)]
mod tests;

use super::{Extent, FileSystem, FreeMap, ReadAt, Refusal, UsedMap};
use crate::wire::le16;
use record::{BITMAP, Content, DATA, VOLUME_INFORMATION};
use stream::{Disk, Mft, Stream};

const TOOL: &str = "chkdsk /f";

const MFT_RECORD: u64 = 0;
const MIRROR_RECORD: u64 = 1;
const LOG_RECORD: u64 = 2;
const VOLUME_RECORD: u64 = 3;
const BITMAP_RECORD: u64 = 6;
/// `$MFTMirr` holds at least that many records; more are not kept up by everyone.
const MIRRORED_RECORDS: u64 = 4;

/// Flags of `$VOLUME_INFORMATION` that leave something to do: dirty, resize of the journal, upgrade, deletion of the
/// change journal, chkdsk at work, changed by chkdsk.
const VOLUME_UNDONE: u16 = 0x0001 | 0x0002 | 0x0004 | 0x0010 | 0x4000 | 0x8000;
const VOLUME_DIRTY: u16 = 0x0001;

const BUFFER_BYTES: usize = 256 << 10;

fn contradiction(why: impl Into<String>, offset_bytes: u64) -> Refusal {
    Refusal::Contradiction {
        why: why.into(),
        offset_bytes,
        tool: TOOL,
    }
}

fn not_clean(why: String) -> Refusal {
    Refusal::NotClean { why, tool: TOOL }
}

/// The free space of an NTFS volume.
///
/// # Errors
/// It is no NTFS volume, was not left cleanly, hibernates, has shadow copies, or contradicts itself.
pub fn free_map(volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
    let geometry = boot::read(volume)?;
    let disk = Disk { volume, geometry };
    let mft = Mft::open(disk)?;
    let (major, minor) = volume_version(&mft)?;
    log::check(&disk, &mft.attribute(LOG_RECORD, DATA, &[])?)?;
    check_mirror(&mft)?;
    let in_use = records_in_use(&mft)?;
    let used = clusters_in_use(&mft)?;
    let owners = owners::check(&mft, &in_use, &used)?;
    for file in &owners.hibernation_files {
        log::check_hibernation(&disk, &mft.attribute(*file, DATA, &[])?)?;
    }
    if owners.has_shadow_copies || boot::has_shadow_copies(volume)? {
        return Err(Refusal::Unsupported {
            why: "it has shadow copies (restore points), which use clusters that the volume calls free"
                .into(),
        });
    }
    let free = used
        .free_runs()
        .map(|(lcn, clusters)| Extent {
            start_bytes: geometry.byte_of(lcn),
            len_bytes: geometry.byte_of(clusters),
        })
        .collect();
    Ok(FreeMap {
        file_system: FileSystem::Ntfs,
        name: format!("NTFS {major}.{minor}"),
        unit_bytes: geometry.cluster_bytes,
        covered_bytes: geometry.sectors.saturating_mul(u64::from(geometry.sector_bytes)),
        free,
        owners_checked: owners.files,
    })
}

/// The version that `$Volume` names, if it was left cleanly.
fn volume_version(mft: &Mft) -> Result<(u8, u8), Refusal> {
    let at = mft.place(VOLUME_RECORD);
    let bad = |why: &str| contradiction(format!("$Volume: {why}"), at);
    let mut bytes = mft.read(VOLUME_RECORD)?;
    let record = stream::mended(&mut bytes, VOLUME_RECORD, at)?;
    for attribute in record.attributes() {
        let attribute = attribute.map_err(bad)?;
        let (VOLUME_INFORMATION, Content::Resident(value)) = (attribute.kind, attribute.content) else {
            continue;
        };
        let (Some(major), Some(minor), Some(flags)) =
            (value.get(8).copied(), value.get(9).copied(), le16(value, 10))
        else {
            return Err(bad("the information on the volume is cut off"));
        };
        if !matches!((major, minor), (1, 2) | (3, 0 | 1)) {
            return Err(Refusal::Unsupported {
                why: format!("NTFS of version {major}.{minor}"),
            });
        }
        if flags & VOLUME_UNDONE != 0 {
            let what = if flags & VOLUME_DIRTY != 0 {
                "is dirty"
            } else {
                "has work left to do"
            };
            return Err(not_clean(format!(
                "the volume says that it {what} (flags {flags:#06x})"
            )));
        }
        return Ok((major, minor));
    }
    Err(bad("there is no information on the volume"))
}

/// The first records against their copies in `$MFTMirr`.
fn check_mirror(mft: &Mft) -> Result<(), Refusal> {
    let disk = &mft.disk;
    let record_bytes = u64::from(disk.geometry.record_bytes);
    let mirror = mft.attribute(MIRROR_RECORD, DATA, &[])?;
    if mirror.first_lcn() != Some(disk.geometry.mirror_lcn)
        || !mirror.is_solid(disk)
        || mirror.initialized_bytes < MIRRORED_RECORDS * record_bytes
    {
        return Err(contradiction(
            "$MFTMirr is not where the boot sector says",
            mft.place(MIRROR_RECORD),
        ));
    }
    for number in 0..MIRRORED_RECORDS {
        let at = mirror.place(disk, number * record_bytes);
        let mut copy = vec![0; disk.geometry.record_bytes as usize];
        mirror.read(disk, number * record_bytes, &mut copy)?;
        let mut bytes = mft.read(number)?;
        let record = stream::mended(&mut bytes, number, mft.place(number))?;
        let copy = stream::mended(&mut copy, number, at)?;
        // The number of the write may differ, nothing else that is in use.
        if record.content() != copy.content() {
            let why = format!("$MFTMirr holds another MFT record {number}");
            return Err(contradiction(why, at));
        }
    }
    Ok(())
}

/// The bitmap of the MFT.
fn records_in_use(mft: &Mft) -> Result<UsedMap, Refusal> {
    let bitmap = mft.attribute(MFT_RECORD, BITMAP, &[])?;
    let at = mft.place(MFT_RECORD);
    if bitmap.data_bytes < mft.records().div_ceil(8) {
        return Err(contradiction("the bitmap of the MFT is too short", at));
    }
    load_bitmap(&mft.disk, &bitmap, mft.records(), Past::Free, at)
}

/// `$Bitmap`.
fn clusters_in_use(mft: &Mft) -> Result<UsedMap, Refusal> {
    let clusters = mft.disk.geometry.clusters;
    let bitmap = mft.attribute(BITMAP_RECORD, DATA, &[])?;
    let at = mft.place(BITMAP_RECORD);
    if bitmap.initialized_bytes < clusters.div_ceil(8) || bitmap.initialized_bytes != bitmap.data_bytes {
        return Err(contradiction("$Bitmap is too short for the volume", at));
    }
    load_bitmap(&mft.disk, &bitmap, clusters, Past::Used, at)
}

/// What the bits past the end of a bitmap are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Past {
    Free,
    Used,
}

fn load_bitmap(disk: &Disk, bitmap: &Stream, units: u64, past: Past, at: u64) -> Result<UsedMap, Refusal> {
    if !bitmap.is_solid(disk) {
        return Err(contradiction("a bitmap has holes", at));
    }
    let mut map = UsedMap::all_used(units);
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut offset_bytes = 0;
    while offset_bytes < bitmap.data_bytes {
        let len = (bitmap.data_bytes - offset_bytes).min(BUFFER_BYTES as u64) as usize;
        let bytes = buffer.get_mut(..len).unwrap_or_default();
        bitmap.read(disk, offset_bytes, bytes)?;
        let start = offset_bytes.saturating_mul(8);
        let count = units.saturating_sub(start).min(len as u64 * 8);
        map.load(start, count, bytes);
        let alike = if past == Past::Used { 0xff } else { 0 };
        for (index, byte) in bytes.iter().enumerate().skip((count / 8) as usize) {
            let known = count.saturating_sub(index as u64 * 8).min(8) as u32;
            let mask = 0xffu8.checked_shl(known).unwrap_or(0);
            if (byte ^ alike) & mask != 0 {
                let place = bitmap.place(disk, offset_bytes + index as u64);
                return Err(contradiction(
                    "a bitmap goes on past the end of what it maps",
                    place,
                ));
            }
        }
        offset_bytes += len as u64;
    }
    Ok(map)
}
