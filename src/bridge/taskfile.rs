//! The ATA command as the drive's registers see it, before any dialect packs it into a CDB.

/// How the data of an ATA command travels (SAT-4, PROTOCOL field; ACS-4, transport protocols).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// No data phase.
    NonData,
    /// Programmed I/O towards the host.
    PioIn,
    /// Programmed I/O towards the drive.
    PioOut,
    /// DMA towards the host.
    DmaIn,
    /// DMA towards the drive.
    DmaOut,
}

impl Protocol {
    /// Whether data travels towards the host.
    pub fn is_in(self) -> bool {
        matches!(self, Self::PioIn | Self::DmaIn)
    }

    /// Whether data travels towards the drive.
    pub fn is_out(self) -> bool {
        matches!(self, Self::PioOut | Self::DmaOut)
    }
}

/// The registers that make up one ATA command (ACS-4, "ATA command fields").
///
/// Fields hold the 48-bit widths; with `extend` false only the low byte of `feature` and `count` and the low 28 bits
/// of `lba` reach the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Taskfile {
    /// FEATURES.
    pub feature: u16,
    /// COUNT.
    pub count: u16,
    /// LBA, 48 bits. SMART's key 4Fh/C2h sits in bits 15:8 and 23:16, log addresses in bits 7:0.
    pub lba: u64,
    /// DEVICE: bit 6 LBA mode. The bridge fills in the drive select bit.
    pub device: u8,
    /// COMMAND.
    pub command: u8,
    /// A 48-bit command, whose registers are two bytes deep.
    pub extend: bool,
    /// How the data travels.
    pub protocol: Protocol,
    /// Length of the data phase in 512-byte sectors, which is what a bridge needs even where COUNT means something else.
    pub transfer_sectors: u16,
}

impl Taskfile {
    /// Length of the data phase in bytes.
    pub fn transfer_bytes(&self) -> usize {
        usize::from(self.transfer_sectors) * 512
    }

    /// LBA bits 7:0 (register L).
    pub fn lba_low(&self) -> u8 {
        self.lba.to_le_bytes()[0]
    }

    /// LBA bits 15:8 (register M).
    pub fn lba_mid(&self) -> u8 {
        self.lba.to_le_bytes()[1]
    }

    /// LBA bits 23:16 (register H).
    pub fn lba_high(&self) -> u8 {
        self.lba.to_le_bytes()[2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_the_bytes_of_the_lba() {
        let taskfile = Taskfile {
            feature: 0,
            count: 2,
            lba: 0x1234_5678_9abc,
            device: 0x40,
            command: 0x2f,
            extend: true,
            protocol: Protocol::PioIn,
            transfer_sectors: 2,
        };
        assert_eq!(
            [taskfile.lba_low(), taskfile.lba_mid(), taskfile.lba_high()],
            [0xbc, 0x9a, 0x78]
        );
        assert_eq!(taskfile.transfer_bytes(), 1024);
        assert!(taskfile.protocol.is_in() && !taskfile.protocol.is_out());
    }
}
