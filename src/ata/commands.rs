//! The ATA commands that are sent to a drive, as taskfiles (ACS-4, "Command descriptions").
//!
//! COUNT is 1 wherever one sector travels, also for commands that ignore it: bridges take the length from there.

use crate::bridge::taskfile::{Protocol, Taskfile};

/// SMART's key in LBA bits 23:8; without it a drive aborts the command.
const SMART_KEY: u64 = 0x00c2_4f00;
/// DEVICE with the LBA bit, which 48-bit commands want set.
const DEVICE_LBA: u8 = 0x40;

/// Subcommands of SMART EXECUTE OFFLINE IMMEDIATE that run beside normal work (ACS-3, "SMART EXECUTE OFF-LINE
/// IMMEDIATE"). The captive forms are left out: a bridge times out long before the drive answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OfflineTest {
    /// 00h: collect offline data.
    Collect,
    /// 01h: short self-test.
    Short,
    /// 02h: extended self-test.
    Extended,
    /// 03h: conveyance self-test.
    Conveyance,
    /// 04h: selective self-test, spans as set in log 09h.
    Selective,
    /// 7Fh: abort the self-test in progress.
    Abort,
}

impl OfflineTest {
    /// The value of LBA bits 7:0.
    pub fn code(self) -> u8 {
        match self {
            Self::Collect => 0x00,
            Self::Short => 0x01,
            Self::Extended => 0x02,
            Self::Conveyance => 0x03,
            Self::Selective => 0x04,
            Self::Abort => 0x7f,
        }
    }
}

impl Taskfile {
    /// READ DMA EXT (25h) of `count` logical sectors of `sector_bytes` each, from `lba` on: what the drive itself has there.
    pub fn read_dma_ext(lba: u64, count: u8, sector_bytes: u32) -> Self {
        Self {
            feature: 0,
            count: u16::from(count),
            lba,
            device: DEVICE_LBA,
            command: 0x25,
            extend: true,
            protocol: Protocol::DmaIn,
            transfer_sectors: u16::from(count).saturating_mul((sector_bytes / 512).max(1) as u16),
        }
    }

    /// DATA SET MANAGEMENT (06h) with TRIM: so many 512-byte blocks of ranges, see [`crate::ata::dsm`]. There is no PIO form.
    pub fn trim(payload_blocks: u16) -> Self {
        Self {
            feature: 1,
            count: payload_blocks,
            lba: 0,
            device: DEVICE_LBA,
            command: 0x06,
            extend: true,
            protocol: Protocol::DmaOut,
            transfer_sectors: payload_blocks,
        }
    }

    /// IDENTIFY DEVICE (ECh): 512 bytes, see [`crate::ata::identify`].
    pub fn identify_device() -> Self {
        Self {
            feature: 0,
            count: 1,
            lba: 0,
            device: 0,
            command: 0xec,
            extend: false,
            protocol: Protocol::PioIn,
            transfer_sectors: 1,
        }
    }

    /// SMART READ DATA (B0h/D0h): 512 bytes, see [`crate::ata::smart`].
    pub fn smart_read_data() -> Self {
        Self::smart_in(0xd0, 0, 1)
    }

    /// SMART READ THRESHOLDS (B0h/D1h): 512 bytes. LBA bits 7:0 are 1, as older drives want it.
    pub fn smart_read_thresholds() -> Self {
        Self::smart_in(0xd1, 1, 1)
    }

    /// SMART READ LOG (B0h/D5h) of `sectors` sectors from log `address`.
    pub fn smart_read_log(address: u8, sectors: u8) -> Self {
        Self::smart_in(0xd5, address, sectors)
    }

    /// SMART WRITE LOG (B0h/D6h) of one sector to log `address`; log E0h carries SCT commands.
    pub fn smart_write_log(address: u8) -> Self {
        Self {
            protocol: Protocol::PioOut,
            ..Self::smart_in(0xd6, address, 1)
        }
    }

    /// SMART RETURN STATUS (B0h/DAh): the answer stands in LBA bits 23:8 (C24Fh well, 2CF4h failing).
    pub fn smart_return_status() -> Self {
        Self::smart_non_data(0xda, 0)
    }

    /// SMART ENABLE OPERATIONS (B0h/D8h).
    pub fn smart_enable() -> Self {
        Self::smart_non_data(0xd8, 0)
    }

    /// SMART EXECUTE OFF-LINE IMMEDIATE (B0h/D4h).
    pub fn smart_execute_offline(test: OfflineTest) -> Self {
        Self::smart_non_data(0xd4, test.code())
    }

    /// READ LOG EXT (2Fh) of `count` 512-byte pages from `page` on of log `address`.
    pub fn read_log_ext(address: u8, page: u16, count: u16) -> Self {
        let [page_low, page_high] = page.to_le_bytes();
        Self {
            feature: 0,
            count,
            lba: u64::from(address) | u64::from(page_low) << 8 | u64::from(page_high) << 32,
            device: DEVICE_LBA,
            command: 0x2f,
            extend: true,
            protocol: Protocol::PioIn,
            transfer_sectors: count,
        }
    }

    /// CHECK POWER MODE (E5h): the answer stands in COUNT, see [`crate::ata::power`]. Never wakes a drive.
    pub fn check_power_mode() -> Self {
        Self {
            feature: 0,
            count: 0,
            lba: 0,
            device: 0,
            command: 0xe5,
            extend: false,
            protocol: Protocol::NonData,
            transfer_sectors: 0,
        }
    }

    fn smart_in(feature: u8, lba_low: u8, sectors: u8) -> Self {
        Self {
            count: u16::from(sectors),
            protocol: Protocol::PioIn,
            transfer_sectors: u16::from(sectors),
            ..Self::smart_non_data(feature, lba_low)
        }
    }

    fn smart_non_data(feature: u8, lba_low: u8) -> Self {
        Self {
            feature: u16::from(feature),
            count: 0,
            lba: SMART_KEY | u64::from(lba_low),
            device: 0,
            command: 0xb0,
            extend: false,
            protocol: Protocol::NonData,
            transfer_sectors: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F, C, L, M, H, D and CMD of the 28-bit form.
    fn registers(taskfile: &Taskfile) -> [u8; 7] {
        [
            taskfile.feature.to_le_bytes()[0],
            taskfile.count.to_le_bytes()[0],
            taskfile.lba_low(),
            taskfile.lba_mid(),
            taskfile.lba_high(),
            taskfile.device,
            taskfile.command,
        ]
    }

    #[test]
    fn registers_are_those_of_known_good_commands() {
        let cases = [
            (Taskfile::identify_device(), [0, 1, 0, 0, 0, 0, 0xec]),
            (Taskfile::smart_read_data(), [0xd0, 1, 0, 0x4f, 0xc2, 0, 0xb0]),
            (
                Taskfile::smart_read_thresholds(),
                [0xd1, 1, 1, 0x4f, 0xc2, 0, 0xb0],
            ),
            (
                Taskfile::smart_read_log(0xe0, 1),
                [0xd5, 1, 0xe0, 0x4f, 0xc2, 0, 0xb0],
            ),
            (
                Taskfile::smart_write_log(0xe0),
                [0xd6, 1, 0xe0, 0x4f, 0xc2, 0, 0xb0],
            ),
            (Taskfile::smart_return_status(), [0xda, 0, 0, 0x4f, 0xc2, 0, 0xb0]),
            (Taskfile::smart_enable(), [0xd8, 0, 0, 0x4f, 0xc2, 0, 0xb0]),
            (
                Taskfile::smart_execute_offline(OfflineTest::Short),
                [0xd4, 0, 1, 0x4f, 0xc2, 0, 0xb0],
            ),
            (Taskfile::check_power_mode(), [0, 0, 0, 0, 0, 0, 0xe5]),
        ];
        for (taskfile, expected) in cases {
            assert_eq!(registers(&taskfile), expected, "{taskfile:?}");
            assert!(!taskfile.extend);
        }
        assert_eq!(Taskfile::smart_write_log(0xe0).protocol, Protocol::PioOut);
        assert_eq!(Taskfile::smart_enable().transfer_bytes(), 0);
    }

    #[test]
    fn log_pages_straddle_the_lba_registers() {
        let taskfile = Taskfile::read_log_ext(0x04, 0x0105, 3);
        assert_eq!(taskfile.lba, 0x0001_0000_0504);
        assert_eq!((taskfile.device, taskfile.command), (0x40, 0x2f));
        assert!(taskfile.extend);
        assert_eq!(taskfile.transfer_bytes(), 1536);
    }
}
