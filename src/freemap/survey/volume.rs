//! One volume: who owns it, and what its own map says.

use super::{Extent, FreeMap, Kind, ReadAt, Readers, Reason, Refusal, signatures};
use crate::freemap::partitions::{PartitionType, looks_like_mbr};
use crate::freemap::signature::{Signature, looks_blank};

/// Superblocks in the first of these confirm where a volume starts.
const START_BYTES: u64 = 1 << 20;
/// Metadata in the last of these confirm where it ends.
const END_BYTES: u64 = 128 << 10;

/// What a volume is.
pub(super) struct Judged {
    pub(super) what: String,
    pub(super) map: Result<FreeMap, Reason>,
    /// Its content confirms where it starts.
    pub(super) starts: bool,
    /// Its content confirms where it ends, or that what is in it ends before.
    pub(super) ends: bool,
}

impl Judged {
    pub(super) fn left_alone(why: Reason) -> Self {
        let what = match &why {
            Reason::Foreign(what) => what.clone(),
            Reason::Ambiguous(names) => names.join(" or "),
            Reason::Blank => "blank".to_owned(),
            _ => "unknown".to_owned(),
        };
        Self {
            what,
            map: Err(why),
            starts: false,
            ends: false,
        }
    }

    /// Not read, but for its name.
    pub(super) fn in_use(volume: &dyn ReadAt, why: &str) -> Self {
        let found = signatures(volume).unwrap_or_default();
        let names: Vec<&str> = found.iter().map(|s| s.what).collect();
        let mut judged = Self::left_alone(Reason::InUse(why.to_owned()));
        if !names.is_empty() {
            judged.what = names.join(" or ");
        }
        judged.confirm(&found, volume.size_bytes());
        judged
    }

    fn confirm(&mut self, found: &[Signature], size_bytes: u64) {
        self.starts = found.iter().any(|s| s.at_bytes < START_BYTES);
        self.ends = found.iter().any(|s| {
            let at_end = s.at_bytes >= START_BYTES && s.at_bytes >= size_bytes.saturating_sub(END_BYTES);
            at_end || s.claims_bytes.is_some_and(|claimed| claimed <= size_bytes)
        });
    }
}

/// Reads a volume's free space, if exactly one known file system is in it.
pub(super) fn judge(volume: &dyn ReadAt, kind: Option<PartitionType>, readers: &Readers) -> Judged {
    let size_bytes = volume.size_bytes();
    let found = match signatures(volume) {
        Ok(found) => found,
        Err(error) => return Judged::left_alone(Reason::Refused(error.into())),
    };
    let mut judged = verdict(volume, kind, readers, &found);
    judged.confirm(&found, size_bytes);
    // The reader has seen that the file system fits.
    judged.ends |= judged.map.is_ok();
    judged
}

fn verdict(
    volume: &dyn ReadAt,
    kind: Option<PartitionType>,
    readers: &Readers,
    found: &[Signature],
) -> Judged {
    let mut names: Vec<String> = found.iter().map(|s| s.what.to_owned()).collect();
    let mut first = [0; 512];
    if volume.read_at(0, &mut first).is_ok() && looks_like_mbr(&first, volume.size_bytes()) {
        names.push("a partition table (MBR)".to_owned());
    }
    let only = match (found, names.len()) {
        ([only], 1) => only,
        (_, 0) => {
            return match looks_blank(volume) {
                Ok(true) => Judged::left_alone(Reason::Blank),
                Ok(false) => Judged::left_alone(Reason::Unknown),
                Err(error) => Judged::left_alone(Reason::Refused(error.into())),
            };
        }
        (_, 1) => return Judged::left_alone(Reason::Foreign(names.concat())),
        _ => return Judged::left_alone(Reason::Ambiguous(names)),
    };
    let Kind::FileSystem(file_system) = only.kind else {
        return Judged::left_alone(Reason::Foreign(only.what.to_owned()));
    };
    let named = |why| Judged {
        what: only.what.to_owned(),
        ..Judged::left_alone(why)
    };
    if let Some(owner) = kind.and_then(|k| k.member_of()) {
        return named(Reason::ByType(owner.to_owned()));
    }
    let Some(reader) = readers.get(file_system) else {
        return Judged::left_alone(Reason::Foreign(only.what.to_owned()));
    };
    let checked = (reader.free_map)(volume).and_then(|map| {
        if well_formed(&map, volume.size_bytes()) {
            Ok(map)
        } else {
            Err(Refusal::Contradiction {
                why: "its map of free space leaves the volume".to_owned(),
                offset_bytes: 0,
                tool: "fsck",
            })
        }
    });
    match checked {
        Ok(map) => Judged {
            what: map.name.clone(),
            map: Ok(map),
            starts: true,
            ends: true,
        },
        Err(refusal) => named(Reason::Refused(refusal)),
    }
}

/// Sorted, apart, within the part of the volume that the file system covers.
fn well_formed(map: &FreeMap, size_bytes: u64) -> bool {
    let mut last_end = 0;
    map.covered_bytes <= size_bytes
        && map.free.iter().all(|extent: &Extent| {
            let sound =
                extent.start_bytes >= last_end && extent.end_bytes().is_some_and(|e| e <= map.covered_bytes);
            last_end = extent.start_bytes.saturating_add(extent.len_bytes);
            sound
        })
}
