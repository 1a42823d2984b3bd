//! READ CAPACITY: how large a logical unit is, as its SCSI side sees it.

use std::io::Cursor;

use binrw::BinRead;
use serde::Serialize;

use crate::wire::WireError;

/// Parameter data of READ CAPACITY(10), 8 bytes, or READ CAPACITY(16), 32 bytes (SBC-3, "READ CAPACITY parameter data").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capacity {
    /// The last logical block address.
    pub last_lba: u64,
    /// Logical block length in bytes.
    pub block_bytes: u32,
    /// Number of logical blocks; unknown when READ CAPACITY(10) says that it cannot count that far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Size in bytes, if it fits into 64 bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// READ CAPACITY(10) answered FFFFFFFFh: ask READ CAPACITY(16).
    pub needs_16: bool,
    /// What only READ CAPACITY(16) tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long: Option<LongCapacity>,
}

/// Bytes 12 to 15 of the READ CAPACITY(16) data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LongCapacity {
    /// PROT_EN: formatted with protection information.
    pub protected: bool,
    /// P_TYPE, the protection type less one.
    pub protection_type: u8,
    /// P_I_EXPONENT: protection information intervals per block, as a power of two.
    pub protection_interval_exponent: u8,
    /// LOGICAL BLOCKS PER PHYSICAL BLOCK EXPONENT.
    pub logical_per_physical_exponent: u8,
    /// Physical block length in bytes, if it fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical_block_bytes: Option<u32>,
    /// LBPME: logical block provisioning is on; without it Linux never discards.
    pub provisioning: bool,
    /// LBPRZ: unmapped blocks read as zeroes.
    pub reads_zeroes: bool,
    /// LOWEST ALIGNED LOGICAL BLOCK ADDRESS.
    pub lowest_aligned_lba: u16,
}

/// READ CAPACITY(10) parameter data, 8 bytes (SBC-3, "READ CAPACITY (10) parameter data").
#[derive(BinRead)]
#[br(big)]
struct Wire10 {
    last_lba: u32,
    #[br(assert(block_bytes != 0, "a block length of 0"))]
    block_bytes: u32,
}

/// The first 16 of the 32 bytes of READ CAPACITY(16) parameter data (SBC-3, "READ CAPACITY (16) parameter data").
#[derive(BinRead)]
#[br(big)]
struct Wire16 {
    last_lba: u64,
    #[br(assert(block_bytes != 0, "a block length of 0"))]
    block_bytes: u32,
    /// Bridges that answer with only 12 bytes are believed as far as they go.
    #[br(try)]
    long: Option<WireLong>,
}

#[derive(BinRead)]
#[br(big)]
struct WireLong {
    protection: u8,
    exponents: u8,
    flags: u16,
}

impl Capacity {
    /// Reads READ CAPACITY(10) data.
    ///
    /// # Errors
    /// Fewer than 8 bytes, or a block length of 0.
    pub fn parse_10(bytes: &[u8]) -> Result<Self, WireError> {
        let wire = Wire10::read(&mut Cursor::new(bytes))
            .map_err(|e| WireError::from_binrw("READ CAPACITY(10) data", &e))?;
        let needs_16 = wire.last_lba == u32::MAX;
        Ok(Self::new(
            u64::from(wire.last_lba),
            wire.block_bytes,
            needs_16,
            None,
        ))
    }

    /// Reads READ CAPACITY(16) data. Bridges that answer with only 12 bytes are believed as far as they go.
    ///
    /// # Errors
    /// Fewer than 12 bytes, or a block length of 0.
    pub fn parse_16(bytes: &[u8]) -> Result<Self, WireError> {
        let wire = Wire16::read(&mut Cursor::new(bytes))
            .map_err(|e| WireError::from_binrw("READ CAPACITY(16) data", &e))?;
        let long = wire.long.map(|long| LongCapacity {
            protected: long.protection & 0x01 != 0,
            protection_type: long.protection >> 1 & 0x07,
            protection_interval_exponent: long.exponents >> 4,
            logical_per_physical_exponent: long.exponents & 0x0f,
            physical_block_bytes: wire.block_bytes.checked_mul(1 << (long.exponents & 0x0f)),
            provisioning: long.flags & 0x8000 != 0,
            reads_zeroes: long.flags & 0x4000 != 0,
            lowest_aligned_lba: long.flags & 0x3fff,
        });
        Ok(Self::new(wire.last_lba, wire.block_bytes, false, long))
    }

    fn new(last_lba: u64, block_bytes: u32, needs_16: bool, long: Option<LongCapacity>) -> Self {
        let blocks = last_lba.checked_add(1).filter(|_| !needs_16);
        Self {
            last_lba,
            block_bytes,
            blocks,
            capacity_bytes: blocks.and_then(|b| b.checked_mul(u64::from(block_bytes))),
            needs_16,
            long,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_byte_capacity_knows_its_limit() {
        let small = Capacity::parse_10(&[0x0d, 0xf9, 0x4b, 0xaf, 0, 0, 2, 0]).unwrap();
        assert_eq!(small.capacity_bytes, Some(120_034_123_776));
        let large = Capacity::parse_10(&[0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0]).unwrap();
        assert!(large.needs_16);
        assert_eq!(large.blocks, None);
        assert!(Capacity::parse_10(&[0; 8]).is_err());
        assert!(Capacity::parse_10(&[0, 0, 0, 1, 0, 0, 2]).is_err());
    }

    #[test]
    fn short_answers_lack_the_long_part() {
        let mut bytes = vec![0, 0, 0, 3, 0xa3, 0x81, 0x2a, 0xaf, 0, 0, 2, 0];
        assert_eq!(Capacity::parse_16(&bytes).unwrap().long, None);
        bytes.extend([0, 3, 0xc0, 1]);
        let long = Capacity::parse_16(&bytes).unwrap().long.unwrap();
        assert_eq!(long.physical_block_bytes, Some(4096));
        assert!(long.provisioning && long.reads_zeroes);
        assert_eq!(long.lowest_aligned_lba, 1);
    }
}
