//! What a parser says when bytes are not what they claim to be, and the careful reads that parsers share.

use serde::Serialize;

/// A structure from a device or file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{structure}: {why} (at byte {offset_bytes})")]
pub struct WireError {
    /// The structure by its standard's name, for instance `IDENTIFY DEVICE data`.
    pub structure: &'static str,
    /// Where in the structure the problem lies.
    pub offset_bytes: usize,
    /// What is wrong, in words.
    pub why: String,
}

impl WireError {
    /// A structure that ends too early.
    pub fn truncated(structure: &'static str, have_bytes: usize, want_bytes: usize) -> Self {
        Self {
            structure,
            offset_bytes: have_bytes,
            why: format!("truncated: {have_bytes} bytes where {want_bytes} are needed"),
        }
    }

    /// From a `binrw` failure: its position and first line of text, without source lines.
    pub fn from_binrw(structure: &'static str, error: &binrw::Error) -> Self {
        let (offset_bytes, why) = match error.root_cause() {
            binrw::Error::AssertFail { pos, message } => (*pos, message.clone()),
            binrw::Error::BadMagic { pos, .. } => (*pos, "unexpected signature".to_owned()),
            binrw::Error::Io(_) => (0u64, "truncated".to_owned()),
            other => (0, other.to_string().lines().next().unwrap_or_default().to_owned()),
        };
        Self {
            structure,
            offset_bytes: usize::try_from(offset_bytes).unwrap_or(usize::MAX),
            why,
        }
    }
}

/// How far the two's complement checksum of an ATA sector can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Checksum {
    /// The bytes add up to 0 modulo 256.
    Valid,
    /// They do not.
    Invalid,
    /// The structure says that it carries none.
    Absent,
}

/// Whether the bytes add up to 0 modulo 256.
pub fn sums_to_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0u8, |sum, b| sum.wrapping_add(*b)) == 0
}

macro_rules! reader {
    ($name:ident, $type:ty, $from:ident, $doc:literal) => {
        #[doc = $doc]
        pub fn $name(bytes: &[u8], offset_bytes: usize) -> Option<$type> {
            let end = offset_bytes.checked_add(size_of::<$type>())?;
            Some(<$type>::$from(
                bytes.get(offset_bytes..end)?.try_into().ok()?,
            ))
        }
    };
}

reader!(
    le16,
    u16,
    from_le_bytes,
    "A little-endian 16-bit value, or `None` past the end."
);
reader!(
    le32,
    u32,
    from_le_bytes,
    "A little-endian 32-bit value, or `None` past the end."
);
reader!(
    le64,
    u64,
    from_le_bytes,
    "A little-endian 64-bit value, or `None` past the end."
);
reader!(
    le128,
    u128,
    from_le_bytes,
    "A little-endian 128-bit value, or `None` past the end."
);
reader!(
    be16,
    u16,
    from_be_bytes,
    "A big-endian 16-bit value, or `None` past the end."
);
reader!(
    be32,
    u32,
    from_be_bytes,
    "A big-endian 32-bit value, or `None` past the end."
);
reader!(
    be64,
    u64,
    from_be_bytes,
    "A big-endian 64-bit value, or `None` past the end."
);

/// The lower 48 bits at `offset_bytes`, little-endian (SMART raw values, LBAs), or `None` past the end.
pub fn le48(bytes: &[u8], offset_bytes: usize) -> Option<u64> {
    let low = u64::from(le32(bytes, offset_bytes)?);
    let high = u64::from(le16(bytes, offset_bytes.checked_add(4)?)?);
    Some(high << 32 | low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_end_at_the_end() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(le48(&bytes, 2), Some(0x0807_0605_0403));
        assert_eq!(le48(&bytes, 3), None);
        assert_eq!(be16(&bytes, 6), Some(0x0708));
        assert_eq!(be16(&bytes, 7), None);
        assert_eq!(le64(&bytes, usize::MAX), None);
    }

    #[test]
    fn checksum_is_a_sum() {
        assert!(sums_to_zero(&[]));
        assert!(sums_to_zero(&[0xff, 1]));
        assert!(!sums_to_zero(&[0xff]));
    }
}
