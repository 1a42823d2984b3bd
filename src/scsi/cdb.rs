//! Builds the SCSI commands that are needed besides pass-through. Every one only reads.

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
        ];
        for (cdb, bytes) in cases {
            assert_eq!(cdb.to_string(), bytes);
        }
    }
}
