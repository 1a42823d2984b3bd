//! Records of the MFT and the attributes in them.

use crate::wire::{le16, le32, le64};

/// Records are protected in steps of this many bytes, whatever the sectors are.
const STEP_BYTES: usize = 512;

pub(super) const ATTRIBUTE_LIST: u32 = 0x20;
pub(super) const FILE_NAME: u32 = 0x30;
pub(super) const VOLUME_INFORMATION: u32 = 0x70;
pub(super) const DATA: u32 = 0x80;
pub(super) const BITMAP: u32 = 0xb0;
const END: u32 = 0xffff_ffff;

pub(super) const COMPRESSED: u16 = 0x0001;
const COMPRESSION_MASK: u16 = 0x00ff;
const ENCRYPTED: u16 = 0x4000;
pub(super) const SPARSE: u16 = 0x8000;

const IN_USE: u16 = 0x0001;

/// Puts back the last two bytes of each 512, which stand in the update sequence array while the record is on disk.
/// Bytes that do not carry the update sequence number come from an older or torn write.
pub(super) fn mend(record: &mut [u8]) -> Result<(), &'static str> {
    let steps = record.len() / STEP_BYTES;
    let at = usize::from(le16(record, 4).ok_or("too short")?);
    let count = usize::from(le16(record, 6).ok_or("too short")?);
    if steps == 0 || count != steps + 1 || !record.len().is_multiple_of(STEP_BYTES) {
        return Err("an update sequence array of another size");
    }
    // The array lies in the first step, before the two bytes that it protects.
    let end = at + 2 * count;
    if at < 24 || !at.is_multiple_of(2) || end > STEP_BYTES - 2 {
        return Err("an update sequence array in an impossible place");
    }
    let array: Vec<u8> = record.get(at..end).ok_or("too short")?.to_vec();
    let (number, old) = array.split_at_checked(2).ok_or("too short")?;
    for (step, old) in record.chunks_exact_mut(STEP_BYTES).zip(old.chunks_exact(2)) {
        let tail = step.get_mut(STEP_BYTES - 2..).ok_or("too short")?;
        if tail != number {
            return Err("a sector of another write (its update sequence number differs)");
        }
        tail.copy_from_slice(old);
    }
    Ok(())
}

/// Whether these bytes, as they stand on disk, are a file record in use.
pub(super) fn looks_in_use(record: &[u8]) -> bool {
    record.starts_with(b"FILE") && le16(record, 22).is_some_and(|flags| flags & IN_USE != 0)
}

/// Number and sequence of a record, as references hold them.
pub(super) fn split_reference(reference: u64) -> (u64, u16) {
    (reference & 0xffff_ffff_ffff, (reference >> 48) as u16)
}

/// A file record in use, mended, with a header that makes sense.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    bytes: &'a [u8],
    /// Its own reference: number and sequence.
    pub reference: u64,
    /// Reference of the base record; none in a base record.
    pub base: Option<u64>,
    first_at: usize,
    used: usize,
}

impl<'a> Record<'a> {
    /// `bytes` is a mended record, `number` its place in the MFT.
    pub fn parse(bytes: &'a [u8], number: u64) -> Result<Self, &'static str> {
        if !bytes.starts_with(b"FILE") {
            return Err("no file record");
        }
        let short = "too short";
        if le16(bytes, 22).ok_or(short)? & IN_USE == 0 {
            return Err("it says that it is not in use");
        }
        let first_at = usize::from(le16(bytes, 20).ok_or(short)?);
        let used = le32(bytes, 24).ok_or(short)? as usize;
        let allocated = le32(bytes, 28).ok_or(short)? as usize;
        if allocated != bytes.len() {
            return Err("it has another size");
        }
        let array_at = usize::from(le16(bytes, 4).ok_or(short)?);
        let array_end = array_at + 2 * usize::from(le16(bytes, 6).ok_or(short)?);
        if first_at < array_end || !first_at.is_multiple_of(8) || used < first_at + 4 || used > allocated {
            return Err("its attributes start or end in an impossible place");
        }
        // NTFS 3.1 writes the number into the record; before, the update sequence array stood there.
        if array_at >= 48 && u64::from(le32(bytes, 44).ok_or(short)?) != number & 0xffff_ffff {
            return Err("it carries the number of another record");
        }
        let sequence = u64::from(le16(bytes, 16).ok_or(short)?);
        let base = le64(bytes, 32).ok_or(short)?;
        Ok(Self {
            bytes: bytes.get(..used).ok_or(short)?,
            reference: number | sequence << 48,
            base: (base != 0).then_some(base),
            first_at,
            used,
        })
    }

    /// Its attributes in order.
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes {
            bytes: self.bytes,
            at: self.first_at,
            used: self.used,
            last_kind: 0,
            done: false,
        }
    }

    /// All that is in use but the update sequence array, whose number changes with each write.
    pub fn content(&self) -> (&'a [u8], &'a [u8]) {
        let array_at = usize::from(le16(self.bytes, 4).unwrap_or_default());
        (
            self.bytes.get(..array_at).unwrap_or_default(),
            self.bytes.get(self.first_at..).unwrap_or_default(),
        )
    }
}

pub(super) struct Attributes<'a> {
    bytes: &'a [u8],
    at: usize,
    used: usize,
    last_kind: u32,
    done: bool,
}

impl<'a> Attributes<'a> {
    fn attribute(&mut self) -> Result<Option<Attribute<'a>>, &'static str> {
        let kind = le32(self.bytes, self.at).ok_or("attributes without their end")?;
        if kind == END {
            // The end mark takes four bytes, and four more that mean nothing.
            return if (self.at + 4..=self.at + 8).contains(&self.used) {
                Ok(None)
            } else {
                Err("its attributes end too early")
            };
        }
        if kind == 0 || !kind.is_multiple_of(16) || kind < self.last_kind {
            return Err("an attribute of an impossible type, or out of order");
        }
        let short = "an attribute that is cut off";
        let length = le32(self.bytes, self.at + 4).ok_or(short)? as usize;
        if length < 24 || !length.is_multiple_of(8) {
            return Err("an attribute of an impossible length");
        }
        let end = self.at.checked_add(length).ok_or(short)?;
        let bytes = self.bytes.get(self.at..end).ok_or(short)?;
        self.last_kind = kind;
        self.at = end;
        Attribute::parse(kind, bytes).map(Some)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let attribute = self.attribute();
        self.done = !matches!(attribute, Ok(Some(_)));
        attribute.transpose()
    }
}

/// One attribute record.
pub(super) struct Attribute<'a> {
    pub kind: u32,
    /// UTF-16, little-endian; empty for the unnamed one.
    pub name: &'a [u8],
    pub flags: u16,
    /// Tells the attributes of one record apart.
    pub instance: u16,
    pub content: Content<'a>,
}

pub(super) enum Content<'a> {
    /// The value stands in the record.
    Resident(&'a [u8]),
    /// The value, or a stretch of it, stands in clusters.
    Mapped(Mapped<'a>),
}

/// A stretch of a non-resident attribute.
pub(super) struct Mapped<'a> {
    pub lowest_vcn: u64,
    /// One past the last cluster of the stretch.
    pub end_vcn: u64,
    /// In the first stretch only.
    pub sizes: Option<Sizes>,
    pub pairs: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub allocated_bytes: u64,
    pub data_bytes: u64,
    /// What lies behind reads as zeros.
    pub initialized_bytes: u64,
    /// Bytes of the clusters that are really there, of compressed and sparse attributes.
    pub packed_bytes: Option<u64>,
}

impl<'a> Attribute<'a> {
    fn parse(kind: u32, bytes: &'a [u8]) -> Result<Self, &'static str> {
        let short = "an attribute that is too short";
        let flags = le16(bytes, 12).ok_or(short)?;
        if flags & !(COMPRESSION_MASK | ENCRYPTED | SPARSE) != 0 || flags & COMPRESSION_MASK > COMPRESSED {
            return Err("an attribute with unknown flags");
        }
        let name_bytes = 2 * usize::from(*bytes.get(9).ok_or(short)?);
        let name_at = usize::from(le16(bytes, 10).ok_or(short)?);
        let name = if name_bytes == 0 {
            &[]
        } else {
            bytes
                .get(name_at..name_at + name_bytes)
                .ok_or("an attribute with an impossible name")?
        };
        let content = match bytes.get(8).ok_or(short)? {
            0 => {
                let length = le32(bytes, 16).ok_or(short)? as usize;
                let at = usize::from(le16(bytes, 20).ok_or(short)?);
                let end = at.checked_add(length).ok_or(short)?;
                Content::Resident(
                    bytes
                        .get(at..end)
                        .ok_or("an attribute with an impossible value")?,
                )
            }
            1 => Content::Mapped(Mapped::parse(flags, bytes)?),
            _ => return Err("an attribute of an impossible form"),
        };
        Ok(Self {
            kind,
            name,
            flags,
            instance: le16(bytes, 14).ok_or(short)?,
            content,
        })
    }

    /// Whether clusters may be left out of it.
    pub fn may_have_holes(&self) -> bool {
        self.flags & (COMPRESSED | SPARSE) != 0
    }
}

impl<'a> Mapped<'a> {
    fn parse(flags: u16, bytes: &'a [u8]) -> Result<Self, &'static str> {
        let short = "an attribute that is too short";
        let lowest_vcn = le64(bytes, 16).ok_or(short)?;
        // The highest one is -1 where there is none.
        let end_vcn = le64(bytes, 24).ok_or(short)?.wrapping_add(1);
        if end_vcn < lowest_vcn || end_vcn > i64::MAX as u64 {
            return Err("an attribute with impossible cluster numbers");
        }
        let pairs_at = usize::from(le16(bytes, 32).ok_or(short)?);
        let sizes = if lowest_vcn == 0 {
            let packed = flags & (COMPRESSED | SPARSE) != 0;
            if pairs_at < if packed { 72 } else { 64 } {
                return Err("an attribute with its run list in an impossible place");
            }
            let sizes = Sizes {
                allocated_bytes: le64(bytes, 40).ok_or(short)?,
                data_bytes: le64(bytes, 48).ok_or(short)?,
                initialized_bytes: le64(bytes, 56).ok_or(short)?,
                packed_bytes: if packed {
                    Some(le64(bytes, 64).ok_or(short)?)
                } else {
                    None
                },
            };
            if sizes.data_bytes > sizes.allocated_bytes || sizes.initialized_bytes > sizes.data_bytes {
                return Err("an attribute with impossible sizes");
            }
            Some(sizes)
        } else if pairs_at < 40 {
            return Err("an attribute with its run list in an impossible place");
        } else {
            None
        };
        Ok(Self {
            lowest_vcn,
            end_vcn,
            sizes,
            pairs: bytes.get(pairs_at..).ok_or(short)?,
        })
    }
}

/// An entry of `$ATTRIBUTE_LIST`: where a stretch of an attribute is.
pub(super) struct Entry<'a> {
    pub kind: u32,
    pub name: &'a [u8],
    pub lowest_vcn: u64,
    /// Reference of the record that has it.
    pub reference: u64,
    pub instance: u16,
}

/// The entries of an attribute list.
pub(super) struct Entries<'a>(pub &'a [u8]);

impl<'a> Entries<'a> {
    fn entry(&mut self) -> Option<Entry<'a>> {
        let length = usize::from(le16(self.0, 4)?);
        let (bytes, rest) = self.0.split_at_checked(length)?;
        let name_bytes = 2 * usize::from(*bytes.get(6)?);
        let name_at = usize::from(*bytes.get(7)?);
        let name = if name_bytes == 0 {
            &[]
        } else {
            bytes.get(name_at..name_at + name_bytes)?
        };
        let entry = Entry {
            kind: le32(bytes, 0)?,
            name,
            lowest_vcn: le64(bytes, 8)?,
            reference: le64(bytes, 16)?,
            instance: le16(bytes, 24)?,
        };
        self.0 = rest;
        Some(entry)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_none() {
            self.0 = &[];
        }
        Some(entry.ok_or("an attribute list that is cut off"))
    }
}
