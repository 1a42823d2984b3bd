//! Builds the SCSI commands that are needed besides pass-through.

use std::ops::Range;

use byteorder::{BigEndian, ByteOrder};

use crate::transport::Cdb;

const OPCODE_TEST_UNIT_READY: u8 = 0x00;
const OPCODE_REQUEST_SENSE: u8 = 0x03;
const OPCODE_INQUIRY: u8 = 0x12;
const OPCODE_READ_CAPACITY_10: u8 = 0x25;
const OPCODE_LOG_SENSE: u8 = 0x4d;
const OPCODE_SERVICE_ACTION_IN_16: u8 = 0x9e;
const SERVICE_ACTION_READ_CAPACITY_16: u8 = 0x10;
const OPCODE_REPORT_LUNS: u8 = 0xa0;
const OPCODE_READ_10: u8 = 0x28;
const OPCODE_READ_16: u8 = 0x88;
const OPCODE_WRITE_10: u8 = 0x2a;
const OPCODE_WRITE_16: u8 = 0x8a;
const OPCODE_SYNCHRONIZE_CACHE_10: u8 = 0x35;
const OPCODE_UNMAP: u8 = 0x42;
const OPCODE_WRITE_SAME_16: u8 = 0x93;

/// Byte 1 of INQUIRY: a VPD page is asked for.
const INQUIRY_EVPD: u8 = 0x01;
/// Byte 1 of REQUEST SENSE: descriptor format is asked for.
const REQUEST_SENSE_DESC: u8 = 0x01;
/// Byte 2 of LOG SENSE, bits 7:6: cumulative current values.
const LOG_PAGE_CONTROL_CURRENT: u8 = 0x40;

/// Where the ALLOCATION LENGTH field of each CDB lies.
const INQUIRY_ALLOCATION: Range<usize> = 3..5;
const READ_CAPACITY_16_ALLOCATION: Range<usize> = 10..14;
const LOG_SENSE_ALLOCATION: Range<usize> = 7..9;
const REPORT_LUNS_ALLOCATION: Range<usize> = 6..10;

/// TEST UNIT READY, 6 bytes (SPC-4, "TEST UNIT READY command").
pub fn test_unit_ready() -> Cdb {
    Cdb::from_array([OPCODE_TEST_UNIT_READY, 0, 0, 0, 0, 0])
}

/// INQUIRY for the standard data, 6 bytes (SPC-4, "INQUIRY command").
///
/// `allocation_bytes` is the length of the reply that is wanted; 36 is what every device bears.
pub fn inquiry(allocation_bytes: u16) -> Cdb {
    let mut cdb = [OPCODE_INQUIRY, 0, 0, 0, 0, 0];
    BigEndian::write_u16(&mut cdb[INQUIRY_ALLOCATION], allocation_bytes);
    Cdb::from_array(cdb)
}

/// INQUIRY for one VPD page, 6 bytes. Some bridges crash on it.
pub fn inquiry_vpd(page: u8, allocation_bytes: u16) -> Cdb {
    let mut cdb = [OPCODE_INQUIRY, INQUIRY_EVPD, page, 0, 0, 0];
    BigEndian::write_u16(&mut cdb[INQUIRY_ALLOCATION], allocation_bytes);
    Cdb::from_array(cdb)
}

/// REQUEST SENSE, 6 bytes (SPC-4, "REQUEST SENSE command"); `descriptor` asks for descriptor format.
pub fn request_sense(allocation_bytes: u8, descriptor: bool) -> Cdb {
    let format = if descriptor { REQUEST_SENSE_DESC } else { 0 };
    Cdb::from_array([OPCODE_REQUEST_SENSE, format, 0, 0, allocation_bytes, 0])
}

/// READ CAPACITY(10), 10 bytes, answered by 8 bytes (SBC-3, "READ CAPACITY (10) command").
pub fn read_capacity_10() -> Cdb {
    Cdb::from_array([OPCODE_READ_CAPACITY_10, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

/// READ CAPACITY(16), 16 bytes, answered by 32 bytes (SBC-3, "READ CAPACITY (16) command").
pub fn read_capacity_16(allocation_bytes: u32) -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = OPCODE_SERVICE_ACTION_IN_16;
    cdb[1] = SERVICE_ACTION_READ_CAPACITY_16;
    BigEndian::write_u32(&mut cdb[READ_CAPACITY_16_ALLOCATION], allocation_bytes);
    Cdb::from_array(cdb)
}

/// LOG SENSE, 10 bytes, for cumulative current values (SPC-4, "LOG SENSE command"). `page` has 6 bits.
pub fn log_sense(page: u8, subpage: u8, allocation_bytes: u16) -> Cdb {
    let page = LOG_PAGE_CONTROL_CURRENT | (page & 0x3f);
    let mut cdb = [OPCODE_LOG_SENSE, 0, page, subpage, 0, 0, 0, 0, 0, 0];
    BigEndian::write_u16(&mut cdb[LOG_SENSE_ALLOCATION], allocation_bytes);
    Cdb::from_array(cdb)
}

/// REPORT LUNS, 12 bytes, for the logical units that have a LUN of their own (SPC-4, "REPORT LUNS command").
pub fn report_luns(allocation_bytes: u32) -> Cdb {
    let mut cdb = [OPCODE_REPORT_LUNS, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    BigEndian::write_u32(&mut cdb[REPORT_LUNS_ALLOCATION], allocation_bytes);
    Cdb::from_array(cdb)
}

/// Byte 1 of READ and WRITE: past every cache.
const FORCE_UNIT_ACCESS: u8 = 0x08;
/// Byte 1 of WRITE SAME: unmap instead of writing.
const WRITE_SAME_UNMAP: u8 = 0x08;

/// READ (10), or READ (16) where the address or count does not fit it (SBC-3). `fua` reads past the caches; not every bridge
/// takes it.
pub fn read(first: u64, blocks: u32, fua: bool) -> Cdb {
    transfer(OPCODE_READ_10, OPCODE_READ_16, first, blocks, fua)
}

/// WRITE (10), or WRITE (16) where the address or count does not fit it (SBC-3).
pub fn write(first: u64, blocks: u32) -> Cdb {
    transfer(OPCODE_WRITE_10, OPCODE_WRITE_16, first, blocks, false)
}

fn transfer(short: u8, long: u8, first: u64, blocks: u32, fua: bool) -> Cdb {
    let flags = if fua { FORCE_UNIT_ACCESS } else { 0 };
    match (u32::try_from(first), u16::try_from(blocks)) {
        (Ok(first), Ok(blocks)) => {
            let mut cdb = [short, flags, 0, 0, 0, 0, 0, 0, 0, 0];
            BigEndian::write_u32(&mut cdb[2..6], first);
            BigEndian::write_u16(&mut cdb[7..9], blocks);
            Cdb::from_array(cdb)
        }
        _ => wide(long, flags, first, blocks),
    }
}

fn wide(opcode: u8, flags: u8, first: u64, blocks: u32) -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[1] = flags;
    BigEndian::write_u64(&mut cdb[2..10], first);
    BigEndian::write_u32(&mut cdb[10..14], blocks);
    Cdb::from_array(cdb)
}

/// SYNCHRONIZE CACHE (10) for the whole medium (SBC-3, "SYNCHRONIZE CACHE (10) command").
pub fn synchronize_cache() -> Cdb {
    Cdb::from_array([OPCODE_SYNCHRONIZE_CACHE_10, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

/// UNMAP, 10 bytes, with a parameter list of so many bytes (SBC-3, "UNMAP command").
pub fn unmap(list_bytes: u16) -> Cdb {
    let mut cdb = [OPCODE_UNMAP, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    BigEndian::write_u16(&mut cdb[7..9], list_bytes);
    Cdb::from_array(cdb)
}

/// WRITE SAME (16) with the UNMAP bit (SBC-3, "WRITE SAME (16) command"); one block of zeros goes with it. `blocks` is never
/// 0, which would mean up to the end.
pub fn write_same_unmap(first: u64, blocks: std::num::NonZeroU32) -> Cdb {
    wide(OPCODE_WRITE_SAME_16, WRITE_SAME_UNMAP, first, blocks.get())
}

/// Bytes of one block descriptor of an UNMAP parameter list.
pub const UNMAP_DESCRIPTOR_BYTES: usize = 16;
/// Descriptors that a parameter list can hold: its length has 16 bits.
pub const UNMAP_DESCRIPTORS_MAX: usize = (0xffff - 8) / UNMAP_DESCRIPTOR_BYTES;

/// UNMAP parameter list for ranges of (first block, count) (SBC-3, "UNMAP parameter list"); `None` for more than
/// [`UNMAP_DESCRIPTORS_MAX`] of them.
pub fn unmap_list(ranges: &[(u64, u32)]) -> Option<Vec<u8>> {
    if ranges.len() > UNMAP_DESCRIPTORS_MAX {
        return None;
    }
    let body_bytes = (ranges.len() * UNMAP_DESCRIPTOR_BYTES) as u16;
    let mut list = Vec::with_capacity(8 + usize::from(body_bytes));
    list.extend((body_bytes + 6).to_be_bytes());
    list.extend(body_bytes.to_be_bytes());
    list.extend([0; 4]);
    for (first, count) in ranges {
        list.extend(first.to_be_bytes());
        list.extend(count.to_be_bytes());
        list.extend([0; 4]);
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_land_where_the_standard_puts_them() {
        let cases = [
            (test_unit_ready(), "00 00 00 00 00 00"),
            (inquiry(36), "12 00 00 00 24 00"),
            (inquiry_vpd(0x89, 572), "12 01 89 02 3c 00"),
            (request_sense(252, true), "03 01 00 00 fc 00"),
            (request_sense(18, false), "03 00 00 00 12 00"),
            (read_capacity_10(), "25 00 00 00 00 00 00 00 00 00"),
            (
                read_capacity_16(32),
                "9e 10 00 00 00 00 00 00 00 00 00 00 00 20 00 00",
            ),
            (log_sense(0x0d, 0, 0x0102), "4d 00 4d 00 00 00 00 01 02 00"),
            (report_luns(0x0001_0203), "a0 00 00 00 00 00 00 01 02 03 00 00"),
            (read(0x0102_0304, 0x0506, false), "28 00 01 02 03 04 00 05 06 00"),
            (
                read(0x01_0203_0405, 8, true),
                "88 08 00 00 00 01 02 03 04 05 00 00 00 08 00 00",
            ),
            (
                write(7, 0x0001_0000),
                "8a 00 00 00 00 00 00 00 00 07 00 01 00 00 00 00",
            ),
            (write(0xffff_ffff, 0xffff), "2a 00 ff ff ff ff 00 ff ff 00"),
            (synchronize_cache(), "35 00 00 00 00 00 00 00 00 00"),
            (unmap(24), "42 00 00 00 00 00 00 00 18 00"),
            (
                write_same_unmap(0x1122_3344_5566, std::num::NonZeroU32::new(0x778899).unwrap()),
                "93 08 00 00 11 22 33 44 55 66 00 77 88 99 00 00",
            ),
        ];
        for (cdb, bytes) in cases {
            assert_eq!(cdb.to_string(), bytes);
        }
    }

    #[test]
    fn an_unmap_list_counts_itself() {
        let list = unmap_list(&[(0x0102_0304_0506_0708, 0x090a_0b0c)]).unwrap();
        assert_eq!(
            crate::text::hex(&list),
            "00 16 00 10 00 00 00 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 00 00 00 00"
        );
        assert_eq!(
            unmap_list(&vec![(0, 1); UNMAP_DESCRIPTORS_MAX]).unwrap().len(),
            65_528
        );
        assert_eq!(unmap_list(&vec![(0, 1); UNMAP_DESCRIPTORS_MAX + 1]), None);
    }
}
