//! The two checksums of ext4's metadata.

/// CRC-32C (Castagnoli), reflected: RFC 3720 appendix B.4 names the polynomial 0x1edc6f41.
const CASTAGNOLI_REFLECTED: u32 = 0x82f6_3b78;
/// CRC-16 with the polynomial x^16 + x^15 + x^2 + 1, reflected.
const CRC16_REFLECTED: u16 = 0xa001;

static CRC32C_TABLES: [[u32; 256]; 8] = crc32c_tables();
static CRC16_TABLE: [u16; 256] = crc16_table();

// These run while compiling; an index too far would be a compile error.
#[allow(clippy::indexing_slicing)]
const fn crc32c_tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ CASTAGNOLI_REFLECTED
            } else {
                crc >> 1
            };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[table - 1][byte];
            tables[table][byte] = crc >> 8 ^ tables[0][(crc & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

#[allow(clippy::indexing_slicing)]
const fn crc16_table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u16;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ CRC16_REFLECTED
            } else {
                crc >> 1
            };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

fn entry<T: Copy + Default>(table: &[T; 256], byte: u8) -> T {
    table.get(usize::from(byte)).copied().unwrap_or_default()
}

/// Goes on with a CRC-32C as ext4 keeps it: it starts from all ones and is not inverted at the end.
pub fn crc32c(start: u32, bytes: &[u8]) -> u32 {
    let [t0, t1, t2, t3, t4, t5, t6, t7] = &CRC32C_TABLES;
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut crc = start;
    for [a, b, c, d, e, f, g, h] in eights {
        let [w, x, y, z] = crc.to_le_bytes();
        crc = entry(t7, a ^ w)
            ^ entry(t6, b ^ x)
            ^ entry(t5, c ^ y)
            ^ entry(t4, d ^ z)
            ^ entry(t3, *e)
            ^ entry(t2, *f)
            ^ entry(t1, *g)
            ^ entry(t0, *h);
    }
    rest.iter().fold(crc, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        crc >> 8 ^ entry(t0, byte ^ low)
    })
}

/// Goes on with the CRC-16 of group descriptors (`uninit_bg`); it starts from all ones.
pub fn crc16(start: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(start, |crc, byte| {
        let [low, _] = crc.to_le_bytes();
        crc >> 8 ^ entry(&CRC16_TABLE, byte ^ low)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of both sums over "123456789" (`CRC-32/ISCSI`, `CRC-16/MODBUS`).
    #[test]
    fn check_values() {
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
        assert_eq!(crc16(!0, b"123456789"), 0x4b37);
    }

    #[test]
    fn goes_on_where_it_stopped() {
        let bytes: Vec<u8> = (0..=99).collect();
        for cut in 0..bytes.len() {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(crc32c(crc32c(!0, a), b), crc32c(!0, &bytes));
            assert_eq!(crc16(crc16(!0, a), b), crc16(!0, &bytes));
        }
    }
}
