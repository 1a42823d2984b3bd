//! FAT12, FAT16 and FAT32 (Microsoft FAT specification 1.03; ECMA-107).
//!
//! A cluster is free where its table entry is 0. That is believed only after every chain of every file and directory was
//! followed, with no entry of 0 in it, no cluster in two of them, and lengths as the directories say. There is no
//! checksum, and FAT12 and FAT16 say only once where their clusters lie; what nothing confirms is held back (`doubt`).

mod boot;
mod doubt;
mod table;
#[cfg(test)]
mod tests;
mod tree;

use super::{Extent, FileSystem, FreeMap, ReadAt, Refusal};

const TOOL: &str = "fsck.vfat";

fn contradiction(why: impl Into<String>, offset_bytes: u64) -> Refusal {
    Refusal::Contradiction {
        why: why.into(),
        offset_bytes,
        tool: TOOL,
    }
}

/// The free space of a FAT volume.
///
/// # Errors
/// It is no FAT volume, was not unmounted cleanly, or two places of it contradict each other.
pub fn free_map(volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
    let layout = boot::read(volume)?;
    let mut table = table::Table::new(volume, &layout);
    let scan = table.scan()?;
    if let (Some(said), free) = (layout.free_clusters, scan.free_clusters())
        && said != free
    {
        return Err(contradiction(
            format!("FSInfo says that {said} clusters are free, and the table {free}"),
            layout.fs_info_bytes(),
        ));
    }
    let tree = tree::walk(volume, &layout, &mut table)?;
    let free = doubt::free(volume, &layout, &scan, &tree)?;
    Ok(FreeMap {
        file_system: FileSystem::Fat,
        name: layout.kind.name().to_owned(),
        unit_bytes: layout.cluster_bytes,
        covered_bytes: layout.total_sectors * u64::from(layout.sector_bytes),
        free,
        owners_checked: tree.owners,
    })
}
