//! ATA registers as a SAT layer hands them back: in sense data, or as the reply to RETURN RESPONSE INFORMATION.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// Length of an ATA Status Return descriptor with its two header bytes.
pub const ATA_RETURN_DESCRIPTOR_BYTES: usize = 14;

/// The output registers of one ATA command; a register that the bridge did not return is `None`, never 0.
///
/// `_hi` are the upper ("previous content") bytes of a 48-bit command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtaRegisters {
    /// The EXTEND bit: the upper bytes have meaning. Some bridges return upper bytes without setting it.
    pub extend: Option<bool>,
    /// ERROR register.
    pub error: Option<u8>,
    /// STATUS register.
    pub status: Option<u8>,
    /// DEVICE register.
    pub device: Option<u8>,
    /// COUNT 7:0.
    pub count: Option<u8>,
    /// LBA 7:0.
    pub lba_low: Option<u8>,
    /// LBA 15:8.
    pub lba_mid: Option<u8>,
    /// LBA 23:16.
    pub lba_high: Option<u8>,
    /// COUNT 15:8.
    pub count_hi: Option<u8>,
    /// LBA 31:24.
    pub lba_low_hi: Option<u8>,
    /// LBA 39:32.
    pub lba_mid_hi: Option<u8>,
    /// LBA 47:40.
    pub lba_high_hi: Option<u8>,
}

impl AtaRegisters {
    /// From an ATA Status Return descriptor, code 09h, 14 bytes with its header (SAT-4, "ATA Status Return sense data
    /// descriptor"); RETURN RESPONSE INFORMATION replies with the same 14 bytes as data.
    ///
    /// Fewer bytes leave the missing registers unknown. `None` when this is no such descriptor or when no register byte
    /// arrived. Use [`Self::is_all_zero`] to tell an empty answer.
    pub fn from_descriptor(bytes: &[u8]) -> Option<Self> {
        if bytes.first() != Some(&0x09) || bytes.len() < 4 {
            return None;
        }
        let at = |offset: usize| bytes.get(offset).copied();
        Some(Self {
            extend: at(2).map(|b| b & 1 != 0),
            error: at(3),
            count_hi: at(4),
            count: at(5),
            lba_low_hi: at(6),
            lba_low: at(7),
            lba_mid_hi: at(8),
            lba_mid: at(9),
            lba_high_hi: at(10),
            lba_high: at(11),
            device: at(12),
            status: at(13),
        })
    }

    /// From the INFORMATION and COMMAND-SPECIFIC INFORMATION fields of fixed format sense data (SAT-4, "Fixed format
    /// sense data"), whatever the sense code is: the caller must know that the fields hold registers.
    ///
    /// The upper bytes do not travel in this format: they are known to be 0 when EXTEND is set and the sense data does
    /// not say that they are non-zero, and unknown otherwise. `None` when STATUS (byte 4) is missing or 0, which is how
    /// bridges answer that announce registers and have none.
    pub fn from_fixed(sense: &[u8]) -> Option<Self> {
        let at = |offset: usize| sense.get(offset).copied();
        let status = at(4).filter(|s| *s != 0)?;
        let flags = at(8);
        let extend = flags.map(|f| f & 0x80 != 0);
        let upper = |nonzero_bit: u8| {
            flags
                .is_some_and(|f| f & 0x80 != 0 && f & nonzero_bit == 0)
                .then_some(0)
        };
        Some(Self {
            extend,
            error: at(3),
            status: Some(status),
            device: at(5),
            count: at(6),
            lba_low: at(9),
            lba_mid: at(10),
            lba_high: at(11),
            count_hi: upper(0x40),
            lba_low_hi: upper(0x20),
            lba_mid_hi: upper(0x20),
            lba_high_hi: upper(0x20),
        })
    }

    /// Whether every register that arrived is 0: a bridge that announces registers and has none.
    pub fn is_all_zero(&self) -> bool {
        let registers = [
            self.error,
            self.status,
            self.device,
            self.count,
            self.lba_low,
            self.lba_mid,
            self.lba_high,
            self.count_hi,
            self.lba_low_hi,
            self.lba_mid_hi,
            self.lba_high_hi,
        ];
        registers.iter().flatten().all(|r| *r == 0)
    }

    /// LBA 23:0, if all three registers are known.
    pub fn lba24(&self) -> Option<u32> {
        Some(u32::from_be_bytes([
            0,
            self.lba_high?,
            self.lba_mid?,
            self.lba_low?,
        ]))
    }

    /// LBA 27:0 of a 28-bit command, whose top four bits are in DEVICE.
    pub fn lba28(&self) -> Option<u32> {
        Some(u32::from(self.device? & 0x0f) << 24 | self.lba24()?)
    }

    /// LBA 47:0 of a 48-bit command, if all six registers are known. EXTEND is not asked for: some bridges forget it.
    pub fn lba48(&self) -> Option<u64> {
        Some(u64::from_be_bytes([
            0,
            0,
            self.lba_high_hi?,
            self.lba_mid_hi?,
            self.lba_low_hi?,
            self.lba_high?,
            self.lba_mid?,
            self.lba_low?,
        ]))
    }

    /// COUNT 15:0 of a 48-bit command.
    pub fn count16(&self) -> Option<u16> {
        Some(u16::from_be_bytes([self.count_hi?, self.count?]))
    }

    /// Whether STATUS says that the command succeeded: BSY, DF, DRQ and ERR clear, DRDY set. Unknown without STATUS.
    ///
    /// A mask without DF and DRQ would take a failed drive for a success.
    pub fn is_success(&self) -> Option<bool> {
        self.status.map(|s| s & 0xe9 == 0x40)
    }

    /// Whether the drive itself aborted the command: ERR in STATUS and ABRT in ERROR. Sense codes alone cannot tell this
    /// from a bridge that does not know the command.
    pub fn is_aborted(&self) -> Option<bool> {
        Some(self.status? & 0x01 != 0 && self.error? & 0x04 != 0)
    }
}

impl Serialize for AtaRegisters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields: [(&'static str, Option<u8>); 11] = [
            ("error", self.error),
            ("status", self.status),
            ("device", self.device),
            ("count", self.count),
            ("lba_low", self.lba_low),
            ("lba_mid", self.lba_mid),
            ("lba_high", self.lba_high),
            ("count_hi", self.count_hi),
            ("lba_low_hi", self.lba_low_hi),
            ("lba_mid_hi", self.lba_mid_hi),
            ("lba_high_hi", self.lba_high_hi),
        ];
        let mut out = serializer.serialize_struct("AtaRegisters", 15)?;
        if let Some(extend) = self.extend {
            out.serialize_field("extend", &extend)?;
        }
        for (name, value) in fields {
            if let Some(value) = value {
                out.serialize_field(name, &value)?;
            }
        }
        if let Some(lba) = self.lba24() {
            out.serialize_field("lba24", &lba)?;
        }
        if self.extend == Some(true)
            && let Some(lba) = self.lba48()
        {
            out.serialize_field("lba48", &lba)?;
        }
        if let Some(success) = self.is_success() {
            out.serialize_field("success", &success)?;
        }
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_bytes_land_in_their_registers() {
        let reply = [
            0x09, 0x0c, 0x01, 0x04, 0xc1, 0xc0, 0x33, 0x30, 0x22, 0x20, 0x11, 0x10, 0x40, 0x51,
        ];
        let registers = AtaRegisters::from_descriptor(&reply).unwrap();
        assert_eq!(registers.extend, Some(true));
        assert_eq!(registers.count16(), Some(0xc1c0));
        assert_eq!(registers.lba24(), Some(0x10_2030));
        assert_eq!(registers.lba48(), Some(0x1122_3310_2030));
        assert_eq!(registers.is_success(), Some(false));
        assert_eq!(registers.is_aborted(), Some(true));
    }

    #[test]
    fn what_did_not_arrive_is_unknown() {
        let cut = AtaRegisters::from_descriptor(&[9, 12, 0, 0, 0, 0xff, 0, 0, 0, 0x4f]).unwrap();
        assert_eq!((cut.count, cut.lba_mid), (Some(0xff), Some(0x4f)));
        assert_eq!((cut.lba_high, cut.device, cut.status), (None, None, None));
        assert_eq!((cut.is_success(), cut.lba48()), (None, None));
        assert_eq!(AtaRegisters::from_descriptor(&[9, 12]), None);
        assert_eq!(AtaRegisters::from_descriptor(&[0x0a; 14]), None);
    }

    #[test]
    fn success_needs_more_than_a_clear_error_bit() {
        let with = |status| AtaRegisters {
            status: Some(status),
            ..AtaRegisters::default()
        };
        assert_eq!(with(0x50).is_success(), Some(true));
        assert_eq!(with(0x70).is_success(), Some(false), "device fault");
        assert_eq!(with(0x58).is_success(), Some(false), "DRQ left set");
        assert_eq!(with(0x00).is_success(), Some(false), "not ready");
        assert_eq!(with(0x7f).is_success(), Some(false), "no device");
    }

    #[test]
    fn fixed_fields_hide_nonzero_upper_bytes() {
        let mut sense = [
            0xf0, 0, 1, 0, 0x50, 0x40, 7, 10, 0x80, 1, 2, 3, 0, 0x1d, 0, 0, 0, 0,
        ];
        let known = AtaRegisters::from_fixed(&sense).unwrap();
        assert_eq!((known.lba48(), known.count16()), (Some(0x03_0201), Some(7)));
        if let Some(flags) = sense.get_mut(8) {
            *flags = 0xa0;
        }
        let hidden = AtaRegisters::from_fixed(&sense).unwrap();
        assert_eq!((hidden.lba48(), hidden.count16()), (None, Some(7)));
    }
}
