//! Sense data as a bridge builds it (SPC-4, "Sense data"; SAT, "ATA Status Return").

use crate::sim::buf::{put, put_be16, put8};
use crate::sim::drive::Registers;
use crate::sim::profiles::SenseFormat;

/// Sense key with additional sense code and qualifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    pub key: u8,
    pub asc: u8,
    pub ascq: u8,
}

impl Code {
    pub const NONE: Self = Self::new(0x00, 0x00, 0x00);
    pub const INVALID_OPCODE: Self = Self::new(0x05, 0x20, 0x00);
    pub const LBA_OUT_OF_RANGE: Self = Self::new(0x05, 0x21, 0x00);
    pub const INVALID_FIELD: Self = Self::new(0x05, 0x24, 0x00);
    pub const NO_SUCH_UNIT: Self = Self::new(0x05, 0x25, 0x00);
    pub const INVALID_PARAMETER: Self = Self::new(0x05, 0x26, 0x00);
    pub const PARAMETER_LENGTH: Self = Self::new(0x05, 0x1a, 0x00);
    pub const NO_SAVED_PAGES: Self = Self::new(0x05, 0x39, 0x00);
    pub const UNREADABLE: Self = Self::new(0x03, 0x11, 0x00);
    pub const WRITE_ERROR: Self = Self::new(0x03, 0x0c, 0x00);
    pub const MISCOMPARE: Self = Self::new(0x0e, 0x1d, 0x00);
    pub const BECOMING_READY: Self = Self::new(0x02, 0x04, 0x01);
    pub const START_UNIT_REQUIRED: Self = Self::new(0x02, 0x04, 0x02);
    pub const POWER_ON: Self = Self::new(0x06, 0x29, 0x00);
    pub const LOW_POWER: Self = Self::new(0x00, 0x5e, 0x00);
    pub const INTERNAL: Self = Self::new(0x04, 0x44, 0x00);
    pub const DATA_PHASE: Self = Self::new(0x0b, 0x4b, 0x00);
    pub const PASS_THROUGH_INFORMATION: Self = Self::new(0x01, 0x00, 0x1d);

    const fn new(key: u8, asc: u8, ascq: u8) -> Self {
        Self { key, asc, ascq }
    }

    /// What a failed taskfile means, first match wins.
    pub fn from_registers(registers: &Registers) -> Self {
        let (s, e) = (registers.status, registers.error);
        let has = |mask: u8| e & mask == mask;
        let (key, asc, ascq) = if s & 0x80 != 0 || has(0xd1) || has(0xd0) {
            (0x0b, 0x00, 0x00)
        } else if has(0x61) {
            (0x04, 0x00, 0x00)
        } else if has(0x84) {
            (0x0b, 0x47, 0x00)
        } else if has(0x37) || has(0x09) {
            (0x02, 0x04, 0x00)
        } else if has(0x01) {
            (0x03, 0x13, 0x00)
        } else if has(0x02) {
            (0x04, 0x00, 0x00)
        } else if has(0x08) {
            (0x02, 0x04, 0x00)
        } else if has(0x10) {
            (0x05, 0x21, 0x00)
        } else if has(0x20) {
            (0x06, 0x28, 0x00)
        } else if has(0x40) || has(0x80) {
            (0x03, 0x11, 0x04)
        } else if s & 0x20 != 0 {
            (0x04, 0x44, 0x00)
        } else if s & 0x04 != 0 {
            (0x01, 0x00, 0x00)
        } else {
            (0x0b, 0x00, 0x00)
        };
        Self::new(key, asc, ascq)
    }
}

/// Fixed format, 18 bytes.
pub fn fixed(code: Code) -> Vec<u8> {
    let mut sense = vec![0; 18];
    put8(&mut sense, 0, 0x70);
    put8(&mut sense, 2, code.key);
    put8(&mut sense, 7, 10);
    put(&mut sense, 12, &[code.asc, code.ascq]);
    sense
}

/// Fixed format with a field pointer into the CDB.
pub fn fixed_at(code: Code, cdb_byte: u8) -> Vec<u8> {
    let mut sense = fixed(code);
    put8(&mut sense, 15, 0xc0);
    put_be16(&mut sense, 16, u16::from(cdb_byte));
    sense
}

/// Fixed format with a block address in the information field; one that does not fit is left out.
pub fn fixed_about(code: Code, block: u64) -> Vec<u8> {
    let mut sense = fixed(code);
    if let Ok(block) = u32::try_from(block) {
        put8(&mut sense, 0, 0xf0);
        put(&mut sense, 3, &block.to_be_bytes());
    }
    sense
}

/// Descriptor format without descriptors, 8 bytes.
pub fn descriptor(code: Code) -> Vec<u8> {
    vec![0x72, code.key, code.asc, code.ascq, 0, 0, 0, 0]
}

/// The ATA Status Return descriptor, 14 bytes; RETURN RESPONSE INFORMATION brings the same.
pub fn status_return(registers: &Registers, extend: bool) -> [u8; 14] {
    let [l, m, h, l_hi, m_hi, h_hi, _, _] = registers.lba.to_le_bytes();
    let [count, count_hi] = registers.count.to_le_bytes();
    let upper = |byte: u8| if extend { byte } else { 0 };
    [
        0x09,
        0x0c,
        u8::from(extend),
        registers.error,
        upper(count_hi),
        count,
        upper(l_hi),
        l,
        upper(m_hi),
        m,
        upper(h_hi),
        h,
        registers.device,
        registers.status,
    ]
}

/// A pass-through result in the bridge's format.
pub fn pass_through(code: Code, registers: &Registers, extend: bool, format: SenseFormat) -> Vec<u8> {
    match format {
        SenseFormat::Empty => Vec::new(),
        SenseFormat::Descriptor => {
            let mut sense = descriptor(code);
            put8(&mut sense, 7, 14);
            sense.extend(status_return(registers, extend));
            sense
        }
        SenseFormat::Fixed => {
            let mut sense = fixed(code);
            let [l, m, h, upper @ ..] = registers.lba.to_le_bytes();
            let [count, count_hi] = registers.count.to_le_bytes();
            put8(&mut sense, 0, 0xf0);
            put(
                &mut sense,
                3,
                &[registers.error, registers.status, registers.device, count],
            );
            let mut flags = 0;
            if extend {
                flags = 0x80 | u8::from(count_hi != 0) << 6 | u8::from(upper.iter().any(|b| *b != 0)) << 5;
            }
            put(&mut sense, 8, &[flags, l, m, h]);
            sense
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(status: u8, error: u8) -> Registers {
        Registers {
            error,
            count: 0x1234,
            lba: 0xaabb_ccdd_eeff,
            device: 0x40,
            status,
        }
    }

    #[test]
    fn errors_map_in_order() {
        for (s, e, key, asc, ascq) in [
            (0xd0, 0x04, 0x0b, 0x00, 0x00),
            (0x51, 0xd0, 0x0b, 0x00, 0x00),
            (0x51, 0x61, 0x04, 0x00, 0x00),
            (0x51, 0x84, 0x0b, 0x47, 0x00),
            (0x51, 0x01, 0x03, 0x13, 0x00),
            (0x51, 0x10, 0x05, 0x21, 0x00),
            (0x51, 0x20, 0x06, 0x28, 0x00),
            (0x51, 0x40, 0x03, 0x11, 0x04),
            (0x51, 0x04, 0x0b, 0x00, 0x00),
            (0x71, 0x04, 0x04, 0x44, 0x00),
            (0x55, 0x04, 0x01, 0x00, 0x00),
        ] {
            let code = Code::from_registers(&registers(s, e));
            assert_eq!(
                (code.key, code.asc, code.ascq),
                (key, asc, ascq),
                "{s:02x} {e:02x}"
            );
        }
    }

    #[test]
    fn both_layouts_put_registers_where_the_standard_says() {
        let code = Code::PASS_THROUGH_INFORMATION;
        let long = pass_through(code, &registers(0x50, 0), true, SenseFormat::Descriptor);
        assert_eq!(
            crate::text::hex(&long),
            "72 01 00 1d 00 00 00 0e 09 0c 01 00 12 34 cc ff bb ee aa dd 40 50"
        );
        let short = pass_through(code, &registers(0x50, 0), false, SenseFormat::Descriptor);
        assert_eq!(
            crate::text::hex(&short),
            "72 01 00 1d 00 00 00 0e 09 0c 00 00 00 34 00 ff 00 ee 00 dd 40 50"
        );
        let fixed = pass_through(code, &registers(0x50, 0), true, SenseFormat::Fixed);
        assert_eq!(
            crate::text::hex(&fixed),
            "f0 00 01 00 50 40 34 0a e0 ff ee dd 00 1d 00 00 00 00"
        );
    }
}
