//! Values of attributes, wherever they are.

use super::boot::Geometry;
use super::contradiction;
use super::record::{self, ATTRIBUTE_LIST, Attribute, Content, DATA, Entries, Record};
use super::runs::{Run, Runs};
use crate::freemap::{ReadAt, Refusal};

/// Windows keeps attribute lists below this.
const MAX_LIST_BYTES: u64 = 256 << 10;

/// A volume with its boot sector read.
#[derive(Clone, Copy)]
pub(super) struct Disk<'a> {
    pub volume: &'a dyn ReadAt,
    pub geometry: Geometry,
}

/// The value of an attribute: in its record, or in clusters.
#[derive(Debug, Default)]
pub(super) struct Stream {
    inline: Vec<u8>,
    runs: Vec<Run>,
    end_vcn: u64,
    allocated_bytes: u64,
    pub data_bytes: u64,
    pub initialized_bytes: u64,
}

impl Stream {
    /// Adds the next stretch; the first one brings the sizes.
    fn append(&mut self, disk: &Disk, attribute: &Attribute) -> Result<(), &'static str> {
        match &attribute.content {
            Content::Resident(value) => {
                self.inline = value.to_vec();
                self.data_bytes = value.len() as u64;
                self.initialized_bytes = self.data_bytes;
            }
            Content::Mapped(mapped) => {
                if mapped.lowest_vcn != self.end_vcn {
                    return Err("a stretch of an attribute is missing");
                }
                if let Some(sizes) = mapped.sizes {
                    self.allocated_bytes = sizes.allocated_bytes;
                    self.data_bytes = sizes.data_bytes;
                    self.initialized_bytes = sizes.initialized_bytes;
                }
                for run in Runs::new(mapped.pairs, mapped.lowest_vcn, disk.geometry.clusters) {
                    let run = run?;
                    self.end_vcn = run.end_vcn();
                    self.runs.push(run);
                }
                if self.end_vcn != mapped.end_vcn {
                    return Err("a run list does not end where its attribute does");
                }
            }
        }
        Ok(())
    }

    /// Whether its clusters are there up to the allocated size, without holes.
    pub fn is_solid(&self, disk: &Disk) -> bool {
        self.runs.iter().all(|run| run.lcn.is_some())
            && self.end_vcn.checked_mul(u64::from(disk.geometry.cluster_bytes)) == Some(self.allocated_bytes)
    }

    /// The first cluster; none in a hole, or where there are no clusters.
    pub fn first_lcn(&self) -> Option<u64> {
        self.runs.first().and_then(|run| run.lcn)
    }

    fn run_at(&self, vcn: u64) -> Option<&Run> {
        let after = self.runs.partition_point(|run| run.vcn <= vcn);
        let run = self.runs.get(after.checked_sub(1)?)?;
        (vcn < run.end_vcn()).then_some(run)
    }

    /// Where a byte of it stands in the volume, for messages; 0 where it stands nowhere.
    pub fn place(&self, disk: &Disk, offset_bytes: u64) -> u64 {
        let cluster_bytes = u64::from(disk.geometry.cluster_bytes);
        let vcn = offset_bytes / cluster_bytes;
        self.run_at(vcn)
            .and_then(|run| {
                Some(disk.geometry.byte_of(run.lcn? + (vcn - run.vcn)) + offset_bytes % cluster_bytes)
            })
            .unwrap_or_default()
    }

    /// Fills `buffer` from `offset_bytes` on; holes and what was never written are zeros.
    pub fn read(&self, disk: &Disk, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Refusal> {
        let cluster_bytes = u64::from(disk.geometry.cluster_bytes);
        let mut at = offset_bytes;
        let mut rest = buffer;
        while !rest.is_empty() {
            let (want, source) = if at >= self.initialized_bytes {
                (rest.len() as u64, None)
            } else if self.runs.is_empty() {
                let inline = usize::try_from(at).ok().and_then(|at| self.inline.get(at..));
                let inline = inline.filter(|bytes| !bytes.is_empty());
                let inline = inline.ok_or_else(|| contradiction("an attribute ends too early", 0))?;
                let len = inline.len().min(rest.len());
                let (now, later) = rest.split_at_mut(len);
                now.copy_from_slice(inline.get(..len).unwrap_or_default());
                rest = later;
                at += len as u64;
                continue;
            } else {
                let vcn = at / cluster_bytes;
                let run = self
                    .run_at(vcn)
                    .ok_or_else(|| contradiction("an attribute ends before its data", 0))?;
                let end = run
                    .end_vcn()
                    .saturating_mul(cluster_bytes)
                    .min(self.initialized_bytes);
                let source = run
                    .lcn
                    .map(|lcn| disk.geometry.byte_of(lcn + (vcn - run.vcn)) + at % cluster_bytes);
                (end.saturating_sub(at), source)
            };
            let len = usize::try_from(want).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at_mut(len);
            match source {
                Some(source) => disk.volume.read_at(source, now)?,
                None => now.fill(0),
            }
            rest = later;
            at += len as u64;
        }
        Ok(())
    }
}

/// The MFT as a file.
pub(super) struct Mft<'a> {
    pub disk: Disk<'a>,
    pub stream: Stream,
}

impl<'a> Mft<'a> {
    /// Reads record 0 where the boot sector says, and from there all of the MFT's run list.
    pub fn open(disk: Disk<'a>) -> Result<Self, Refusal> {
        let at_bytes = disk.geometry.byte_of(disk.geometry.mft_lcn);
        let mut bytes = vec![0; disk.geometry.record_bytes as usize];
        disk.volume.read_at(at_bytes, &mut bytes)?;
        let record = mended(&mut bytes, 0, at_bytes)?;
        let stream = gather(&disk, None, &record, DATA, &[])?;
        if stream.first_lcn() != Some(disk.geometry.mft_lcn) || !stream.is_solid(&disk) {
            return Err(contradiction(
                "$MFT: its run list is not that of the MFT",
                at_bytes,
            ));
        }
        Ok(Self { disk, stream })
    }

    /// How many records there are.
    pub fn records(&self) -> u64 {
        self.stream.data_bytes / u64::from(self.disk.geometry.record_bytes)
    }

    /// Where a record stands in the volume, for messages.
    pub fn place(&self, number: u64) -> u64 {
        let offset_bytes = number.saturating_mul(u64::from(self.disk.geometry.record_bytes));
        self.stream.place(&self.disk, offset_bytes)
    }

    /// Reads one record as it stands on disk.
    pub fn read(&self, number: u64) -> Result<Vec<u8>, Refusal> {
        if number >= self.records() {
            return Err(contradiction(format!("there is no MFT record {number}"), 0));
        }
        read_record(&self.disk, &self.stream, number)
    }

    /// The value of an attribute of a base record.
    pub fn attribute(&self, number: u64, kind: u32, name: &[u8]) -> Result<Stream, Refusal> {
        let mut bytes = self.read(number)?;
        let record = mended(&mut bytes, number, self.place(number))?;
        gather(&self.disk, Some(&self.stream), &record, kind, name)
    }
}

fn read_record(disk: &Disk, mft: &Stream, number: u64) -> Result<Vec<u8>, Refusal> {
    let record_bytes = u64::from(disk.geometry.record_bytes);
    let offset_bytes = number.checked_mul(record_bytes);
    let offset_bytes = offset_bytes
        .filter(|at| {
            at.checked_add(record_bytes)
                .is_some_and(|end| end <= mft.initialized_bytes)
        })
        .ok_or_else(|| contradiction(format!("MFT record {number} was never written"), 0))?;
    let mut bytes = vec![0; disk.geometry.record_bytes as usize];
    mft.read(disk, offset_bytes, &mut bytes)?;
    Ok(bytes)
}

/// Mends and parses a record that has to be in use.
pub(super) fn mended(bytes: &mut [u8], number: u64, at_bytes: u64) -> Result<Record<'_>, Refusal> {
    let bad = |why| contradiction(format!("MFT record {number}: {why}"), at_bytes);
    if !bytes.starts_with(b"FILE") {
        return Err(bad("it is in use and no file record"));
    }
    record::mend(bytes).map_err(bad)?;
    Record::parse(bytes, number).map_err(bad)
}

/// The bytes of the attribute list of a record, if it has one.
pub(super) fn attribute_list(disk: &Disk, record: &Record) -> Result<Option<Vec<u8>>, &'static str> {
    for attribute in record.attributes() {
        let attribute = attribute?;
        if attribute.kind != ATTRIBUTE_LIST {
            continue;
        }
        let mut stream = Stream::default();
        stream.append(disk, &attribute)?;
        let is_mapped = matches!(attribute.content, Content::Mapped(_));
        if is_mapped && !stream.is_solid(disk) || stream.data_bytes > MAX_LIST_BYTES {
            return Err("an attribute list of an impossible size");
        }
        let mut bytes = vec![0; stream.data_bytes as usize];
        stream
            .read(disk, 0, &mut bytes)
            .map_err(|_| "an attribute list that cannot be read")?;
        return Ok(Some(bytes));
    }
    Ok(None)
}

/// Puts the stretches of an attribute together. `mft` is none while the MFT itself is being found: its own stretches
/// then lie in what the earlier ones describe.
fn gather(
    disk: &Disk,
    mft: Option<&Stream>,
    base: &Record,
    kind: u32,
    name: &[u8],
) -> Result<Stream, Refusal> {
    let (number, _) = record::split_reference(base.reference);
    let bad = |why| {
        contradiction(
            format!("MFT record {number}: {why}"),
            mft.map_or(0, |mft| {
                mft.place(disk, number.saturating_mul(u64::from(disk.geometry.record_bytes)))
            }),
        )
    };
    let mut out = Stream::default();
    let mut found = false;
    let Some(list) = attribute_list(disk, base).map_err(bad)? else {
        for attribute in base.attributes() {
            let attribute = attribute.map_err(bad)?;
            if attribute.kind == kind && attribute.name == name {
                out.append(disk, &attribute).map_err(bad)?;
                found = true;
            }
        }
        return if found { Ok(out) } else { Err(bad(MISSING)) };
    };
    for entry in Entries(&list) {
        let entry = entry.map_err(bad)?;
        if entry.kind != kind || entry.name != name {
            continue;
        }
        let add = |record: &Record, out: &mut Stream| {
            for attribute in record.attributes() {
                let attribute = attribute?;
                if attribute.kind == kind && attribute.name == name && attribute.instance == entry.instance {
                    return out.append(disk, &attribute);
                }
            }
            Err("its attribute list names an attribute that is not there")
        };
        if entry.reference == base.reference {
            add(base, &mut out).map_err(bad)?;
        } else {
            let (number, _) = record::split_reference(entry.reference);
            let mft = mft.unwrap_or(&out);
            let mut bytes = read_record(disk, mft, number)?;
            let extension = mended(
                &mut bytes,
                number,
                mft.place(disk, number.saturating_mul(u64::from(disk.geometry.record_bytes))),
            )?;
            if extension.reference != entry.reference || extension.base != Some(base.reference) {
                return Err(bad("its attribute list names a record of another file"));
            }
            add(&extension, &mut out).map_err(bad)?;
        }
        found = true;
    }
    if found { Ok(out) } else { Err(bad(MISSING)) }
}

const MISSING: &str = "an attribute is missing that it must have";
