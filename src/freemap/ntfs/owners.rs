//! Every file against `$Bitmap`: each cluster that an attribute uses has to be marked, and used once.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::contradiction;
use super::record::{self, Attribute, Content, Entries, FILE_NAME, Mapped, Record};
use super::runs::Runs;
use super::stream::{self, Disk, Mft};
use crate::freemap::{Refusal, UsedMap};
use crate::wire::le64;

/// How much of the MFT is read at once.
const CHUNK_BYTES: usize = 512 << 10;
const ROOT: u64 = 5;
/// `$BadClus`, whose stream `$Bad` is a hole as big as the volume.
const BAD_CLUSTERS: u64 = 8;
/// Files that hibernation may have been written to; the root has one name only.
const MAX_HIBERNATION_FILES: usize = 8;
/// How the stores of shadow copies end, after an identifier of their own.
const SHADOW_STORE: &str = "}{3808876b-c176-4e48-b7ae-04046e6cc752}";

/// What the walk through the MFT found.
pub(super) struct Owners {
    /// Base records in use.
    pub files: u64,
    /// Records of `hiberfil.sys` in the root.
    pub hibernation_files: Vec<u64>,
    /// Whether stores of shadow copies are there.
    pub has_shadow_copies: bool,
}

/// A stretch of an attribute that is not all of it.
struct Stretch {
    file: u64,
    /// Tells the attributes of a file apart.
    attribute: u64,
    lowest_vcn: u64,
    end_vcn: u64,
    /// Clusters that are not holes.
    solid_clusters: u64,
    /// In the first stretch: clusters in all.
    allocated_clusters: u64,
    /// In the first stretch: those of them that are not holes, where that is written down.
    packed_clusters: Option<u64>,
}

struct Walk<'a> {
    disk: &'a Disk<'a>,
    used: &'a UsedMap,
    claimed: UsedMap,
    stretches: Vec<Stretch>,
    /// Hashes of what attribute lists name, with the file.
    listed: Vec<(u64, u64)>,
    /// Hashes of what is there, in files of several records.
    found: Vec<(u64, u64)>,
    owners: Owners,
}

/// Reads the whole MFT and compares it with its own bitmap (`in_use`) and with that of the clusters (`used`).
pub(super) fn check(mft: &Mft, in_use: &UsedMap, used: &UsedMap) -> Result<Owners, Refusal> {
    let mut walk = Walk {
        disk: &mft.disk,
        used,
        claimed: UsedMap::all_free(used.units()),
        stretches: Vec::new(),
        listed: Vec::new(),
        found: Vec::new(),
        owners: Owners {
            files: 0,
            hibernation_files: Vec::new(),
            has_shadow_copies: false,
        },
    };
    let record_bytes = mft.disk.geometry.record_bytes as usize;
    let records = mft.records();
    let mut buffer = vec![0; CHUNK_BYTES.max(record_bytes)];
    let per_chunk = (buffer.len() / record_bytes) as u64;
    let mut number = 0;
    while number < records {
        let count = per_chunk.min(records - number);
        let chunk = buffer
            .get_mut(..count as usize * record_bytes)
            .unwrap_or_default();
        mft.stream
            .read(&mft.disk, number.saturating_mul(record_bytes as u64), chunk)?;
        for bytes in chunk.chunks_exact_mut(record_bytes) {
            let place = mft.place(number);
            if in_use.is_used(number) {
                let record = stream::mended(bytes, number, place)?;
                walk.record(&record)
                    .map_err(|why| contradiction(format!("MFT record {number}: {why}"), place))?;
            } else if record::looks_in_use(bytes) {
                let why = format!("MFT record {number} is in use, and the bitmap of the MFT says it is free");
                return Err(contradiction(why, place));
            } else if !looks_unused(bytes) {
                return Err(contradiction(format!("MFT record {number} is no record"), place));
            }
            number += 1;
        }
    }
    walk.finish()
        .map_err(|(file, why)| contradiction(format!("MFT record {file}: {why}"), mft.place(file)))?;
    if walk.claimed.first_free(0, 1).is_some() {
        return Err(contradiction("$Boot does not have the boot sector", mft.place(7)));
    }
    Ok(walk.owners)
}

/// A record that is not in use was one, or was never written.
fn looks_unused(bytes: &[u8]) -> bool {
    matches!(bytes.get(..4), Some(b"FILE" | b"BAAD" | [0, 0, 0, 0]))
}

impl Walk<'_> {
    fn record(&mut self, record: &Record) -> Result<(), String> {
        let list = stream::attribute_list(self.disk, record)?;
        let (file, _) = record::split_reference(record.base.unwrap_or(record.reference));
        if record.base.is_some() && list.is_some() {
            return Err("an extension record with an attribute list".into());
        }
        if record.base.is_none() {
            self.owners.files += 1;
        }
        if let Some(list) = &list {
            for entry in Entries(list) {
                let entry = entry?;
                let hash = hash_of(&(
                    record.reference,
                    entry.reference,
                    entry.kind,
                    entry.name,
                    entry.lowest_vcn,
                    entry.instance,
                ));
                self.listed.push((file, hash));
            }
        }
        let in_family = list.is_some() || record.base.is_some();
        for attribute in record.attributes() {
            let attribute = attribute?;
            let lowest_vcn = match &attribute.content {
                Content::Resident(_) => 0,
                Content::Mapped(mapped) => mapped.lowest_vcn,
            };
            if in_family {
                let hash = hash_of(&(
                    record.base.unwrap_or(record.reference),
                    record.reference,
                    attribute.kind,
                    attribute.name,
                    lowest_vcn,
                    attribute.instance,
                ));
                self.found.push((file, hash));
            }
            match &attribute.content {
                Content::Resident(value) if attribute.kind == FILE_NAME => self.name(value, file)?,
                Content::Resident(_) => {}
                Content::Mapped(mapped) => self.mapped(&attribute, mapped, file)?,
            }
        }
        Ok(())
    }

    /// Looks for files that speak of more than themselves.
    fn name(&mut self, value: &[u8], file: u64) -> Result<(), String> {
        let bad = "a file name that makes no sense";
        let (parent, _) = record::split_reference(le64(value, 0).ok_or(bad)?);
        let length = usize::from(*value.get(64).ok_or(bad)?);
        let name = value.get(66..66 + 2 * length).ok_or(bad)?;
        if parent == ROOT && ends_with(name, "hiberfil.sys") && length == "hiberfil.sys".len() {
            let files = &mut self.owners.hibernation_files;
            if !files.contains(&file) {
                if files.len() == MAX_HIBERNATION_FILES {
                    return Err("one more hiberfil.sys in the root".into());
                }
                files.push(file);
            }
        }
        self.owners.has_shadow_copies |= ends_with(name, SHADOW_STORE);
        Ok(())
    }

    fn mapped(&mut self, attribute: &Attribute, mapped: &Mapped, file: u64) -> Result<(), String> {
        let cluster_bytes = u64::from(self.disk.geometry.cluster_bytes);
        let holes = attribute.may_have_holes() || file == BAD_CLUSTERS;
        let mut end_vcn = mapped.lowest_vcn;
        let mut solid_clusters = 0u64;
        for run in Runs::new(mapped.pairs, mapped.lowest_vcn, self.used.units()) {
            let run = run?;
            end_vcn = run.end_vcn();
            let Some(lcn) = run.lcn else {
                if !holes {
                    return Err("a hole in an attribute that has none".into());
                }
                continue;
            };
            if let Some(twice) = self.claimed.first_used(lcn, run.clusters) {
                return Err(format!("cluster {twice} belongs to something else too"));
            }
            if let Some(free) = self.used.first_free(lcn, run.clusters) {
                return Err(format!("cluster {free} is in use, and $Bitmap says it is free"));
            }
            self.claimed.use_units(lcn, run.clusters);
            solid_clusters += run.clusters;
        }
        if end_vcn != mapped.end_vcn {
            return Err("a run list does not end where its attribute does".into());
        }
        let mut stretch = Stretch {
            file,
            attribute: hash_of(&(attribute.kind, attribute.name)),
            lowest_vcn: mapped.lowest_vcn,
            end_vcn,
            solid_clusters,
            allocated_clusters: 0,
            packed_clusters: None,
        };
        if let Some(sizes) = mapped.sizes {
            if !sizes.allocated_bytes.is_multiple_of(cluster_bytes) {
                return Err("an allocated size that is not in clusters".into());
            }
            stretch.allocated_clusters = sizes.allocated_bytes / cluster_bytes;
            if let Some(bytes) = sizes.packed_bytes {
                if !bytes.is_multiple_of(cluster_bytes) {
                    return Err("a compressed size that is not in clusters".into());
                }
                stretch.packed_clusters = Some(bytes / cluster_bytes);
            }
            if stretch.allocated_clusters == end_vcn {
                return chain(&[stretch]).map_err(Into::into);
            }
        }
        self.stretches.push(stretch);
        Ok(())
    }

    /// What can be judged only with every record seen.
    fn finish(&mut self) -> Result<(), (u64, &'static str)> {
        // Something that no list names (ntfs-3g leaves such records on full volumes) still has its clusters; something
        // that is named and not there may have had some.
        self.listed.sort_unstable();
        self.found.sort_unstable();
        let mut found = self.found.iter().peekable();
        for listed in &self.listed {
            while found.next_if(|found| *found < listed).is_some() {}
            if found.peek() != Some(&listed) {
                return Err((
                    listed.0,
                    "its attribute list names an attribute that is not there",
                ));
            }
        }
        self.stretches
            .sort_unstable_by_key(|s| (s.file, s.attribute, s.lowest_vcn));
        let same = |a: &Stretch, b: &Stretch| (a.file, a.attribute) == (b.file, b.attribute);
        for stretches in self.stretches.chunk_by(same) {
            let file = stretches.first().map_or(0, |s| s.file);
            chain(stretches).map_err(|why| (file, why))?;
        }
        Ok(())
    }
}

/// Whether the stretches of an attribute follow each other from its first cluster to the last one.
fn chain(stretches: &[Stretch]) -> Result<(), &'static str> {
    let mut end_vcn = 0;
    let mut solid_clusters = 0u64;
    for stretch in stretches {
        if stretch.lowest_vcn != end_vcn {
            return Err("a stretch of an attribute is missing");
        }
        end_vcn = stretch.end_vcn;
        solid_clusters = solid_clusters.saturating_add(stretch.solid_clusters);
    }
    let first = stretches.first().ok_or("an attribute without a stretch")?;
    if end_vcn != first.allocated_clusters {
        return Err("an attribute does not have the clusters of its allocated size");
    }
    if first
        .packed_clusters
        .is_some_and(|packed| packed != solid_clusters)
    {
        return Err("an attribute does not have the clusters of its compressed size");
    }
    Ok(())
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Whether a UTF-16 name ends so, in letters of either case.
fn ends_with(name: &[u8], end: &str) -> bool {
    let Some(start) = name.len().checked_sub(2 * end.len()) else {
        return false;
    };
    let tail = name.get(start..).unwrap_or_default();
    tail.chunks_exact(2)
        .zip(end.bytes())
        .all(|(unit, wanted)| matches!(unit, [low, 0] if low.eq_ignore_ascii_case(&wanted)))
}
