//! exFAT (Microsoft exFAT file system specification, revision 1.00).
//!
//! The boot region has a checksum and a backup, and each entry set of a directory a checksum. The allocation bitmap has
//! none, so it is believed only after everything that is in a directory was found in it, each cluster once.

mod boot;
mod chain;
mod set;
#[cfg(test)]
mod tests;
mod tree;

use super::{Extent, FileSystem, FreeMap, ReadAt, Refusal};

const TOOL: &str = "fsck.exfat";

fn contradiction(why: impl Into<String>, offset_bytes: u64) -> Refusal {
    Refusal::Contradiction {
        why: why.into(),
        offset_bytes,
        tool: TOOL,
    }
}

/// The free space of an exFAT volume.
///
/// # Errors
/// It is no exFAT volume, was not unmounted cleanly, has what is not understood, or two places of it contradict each other.
pub fn free_map(volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
    let layout = boot::read(volume)?;
    let mut table = chain::Table::new(volume, &layout);
    let tree = tree::walk(volume, &layout, &mut table)?;
    let mut used = tree.used;
    for (start, count) in used.free_runs() {
        if let Some(index) = tree.claimed.first_used(start, count) {
            return Err(contradiction(
                format!("cluster {} has data, and the bitmap calls it free", index + 2),
                tree.bitmap_bytes + index / 8,
            ));
        }
    }
    table.scan(&mut used)?;
    let cluster_bytes = u64::from(layout.cluster_bytes);
    let free = used
        .free_runs()
        .map(|(start, count)| Extent {
            start_bytes: layout.heap_bytes + start * cluster_bytes,
            len_bytes: count * cluster_bytes,
        })
        .collect();
    Ok(FreeMap {
        file_system: FileSystem::Exfat,
        name: "exFAT".to_owned(),
        unit_bytes: layout.cluster_bytes,
        covered_bytes: layout.covered_bytes,
        free,
        owners_checked: tree.owners,
    })
}
