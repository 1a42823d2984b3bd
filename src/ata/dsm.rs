//! The list of ranges that DATA SET MANAGEMENT with TRIM takes (ACS-4, "DATA SET MANAGEMENT command").

/// Bytes of one block of the list.
pub const BLOCK_BYTES: usize = 512;
/// Ranges in one block.
pub const RANGES_PER_BLOCK: usize = 64;
/// Sectors that one range can name.
pub const RANGE_SECTORS_MAX: u64 = 0xffff;

/// The list for ranges of (first logical sector, count): whole blocks, the rest filled with empty ranges.
///
/// `None` where an address has more than 48 bits, a count is 0 or more than [`RANGE_SECTORS_MAX`], or there are none.
pub fn range_list(ranges: &[(u64, u64)]) -> Option<Vec<u8>> {
    let blocks = ranges.len().div_ceil(RANGES_PER_BLOCK);
    let mut list = Vec::with_capacity(blocks * BLOCK_BYTES);
    for (first, count) in ranges {
        if *first >= 1 << 48 || *count == 0 || *count > RANGE_SECTORS_MAX {
            return None;
        }
        list.extend((first | count << 48).to_le_bytes());
    }
    list.resize(blocks * BLOCK_BYTES, 0);
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_six_bytes_of_address_and_two_of_count() {
        let list = range_list(&[(0x0102_0304_0506, 0x0708), (7, 0xffff)]).unwrap();
        assert_eq!(list.len(), 512);
        assert_eq!(list[..16], [6, 5, 4, 3, 2, 1, 8, 7, 7, 0, 0, 0, 0, 0, 0xff, 0xff]);
        assert!(list[16..].iter().all(|b| *b == 0));
        assert_eq!(range_list(&vec![(0, 1); 65]).unwrap().len(), 1024);
        for bad in [&[][..], &[(1 << 48, 1)], &[(0, 0)], &[(0, 0x1_0000)]] {
            assert_eq!(range_list(bad), None);
        }
    }
}
