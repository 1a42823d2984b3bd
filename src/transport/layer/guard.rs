//! Lets through what is known to be harmless, and of what writes only what a permit names.
//!
//! The kernel's own filter looks at opcodes only and lets several writing ones pass, so the refusal lives here. Every CDB
//! is taken apart; what is not on the list of readers is refused, and so is every command whose data phase does not fit.
//! Three things that look like writing pass: the SMART WRITE LOG that *asks* for an SCT table or setting, SMART
//! ENABLE OPERATIONS, and a self-test when the caller asked for one.

mod writers;

use crate::permit::{Permit, PermitSlot};
use crate::transport::{Command, Data, Tag, Transport, TransportError};

/// What the caller asked for beyond reading, and what is known of the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// SMART EXECUTE OFF-LINE IMMEDIATE in its background forms may pass: the user asked for a self-test.
    pub self_test: bool,
    /// The device is known to be no disk: the opcodes of ATA PASS-THROUGH and of MAINTENANCE IN mean other things there
    /// (A1h is BLANK on an optical drive).
    pub no_disk: bool,
}

/// A transport that refuses whatever might change the device.
#[derive(Debug)]
pub struct Guard<T> {
    inner: T,
    allowance: Allowance,
    permits: PermitSlot,
}

impl<T: Transport> Guard<T> {
    /// Wraps `inner`; only harmless commands will reach it, and what the permit in `permits` allows while one is there.
    pub fn new(inner: T, allowance: Allowance, permits: PermitSlot) -> Self {
        Self {
            inner,
            allowance,
            permits,
        }
    }
}

impl<T: Transport> Transport for Guard<T> {
    pass_on!(device, clock, limits, reap, cancel, recover);

    fn submit(&mut self, command: Command) -> Result<Tag, TransportError> {
        let verdict = self
            .permits
            .with(|permit| judge(command.cdb.as_bytes(), &command.data, self.allowance, permit));
        match verdict {
            Ok(()) => self.inner.submit(command),
            Err(why) => Err(TransportError::Refused {
                device: self.inner.device().to_owned(),
                command: command.cdb.name(),
                cdb: command.cdb,
                why: why.to_owned(),
            }),
        }
    }
}

/// Whether a command only reads, or writes what is permitted; `Err` carries the rule that it breaks.
///
/// # Errors
/// The reason, in words for the user.
pub fn judge(
    cdb: &[u8],
    data: &Data,
    allowance: Allowance,
    permit: Option<&Permit>,
) -> Result<(), &'static str> {
    let byte = |i: usize| cdb.get(i).copied().unwrap_or_default();
    let expected_len = match byte(0) >> 5 {
        0 => 6,
        1 | 2 => 10,
        4 => 16,
        5 => 12,
        _ => return Err("opcodes of this group are vendor specific or variable in length"),
    };
    if cdb.len() != expected_len {
        return Err("the CDB's length does not fit its opcode");
    }
    if allowance.no_disk && matches!(byte(0), 0x85 | 0xa1 | 0xa3) {
        return Err("this opcode means something else on a device that is no disk");
    }
    if let Some(permit) = permit
        && let Some(verdict) = writers::judge(cdb, data, permit)
    {
        return verdict;
    }
    match byte(0) {
        0x85 => judge_ata(&AtaFields::from_cdb16(cdb), data, allowance)?,
        0xa1 => judge_ata(&AtaFields::from_cdb12(cdb), data, allowance)?,
        _ => {
            let reads = match byte(0) {
                // TEST UNIT READY
                0x00 => return no_data(data),
                // REQUEST SENSE, READ (6), INQUIRY, MODE SENSE (6), RECEIVE DIAGNOSTIC RESULTS
                0x03 | 0x08 | 0x12 | 0x1a | 0x1c => true,
                // READ CAPACITY (10), READ (10), MODE SENSE (10), READ (16), REPORT LUNS, READ (12)
                0x25 | 0x28 | 0x5a | 0x88 | 0xa0 | 0xa8 => true,
                // LOG SENSE; its SP bit saves parameters
                0x4d => byte(1) & 0x01 == 0,
                // SERVICE ACTION IN (16): READ CAPACITY (16), GET LBA STATUS
                0x9e => matches!(byte(1) & 0x1f, 0x10 | 0x12),
                // MAINTENANCE IN: REPORT SUPPORTED OPERATION CODES and TASK MANAGEMENT FUNCTIONS
                0xa3 => matches!(byte(1) & 0x1f, 0x0c | 0x0d),
                _ => false,
            };
            if !reads {
                return Err("it is not on the list of commands that only read");
            }
            if matches!(data, Data::Out(_)) {
                return Err("a reading command must not carry data to the device");
            }
        }
    }
    enough_room(cdb, data)
}

/// A host that expects less than the device sends makes it a phase error on BOT and a babble on UAS; both end in a reset.
fn enough_room(cdb: &[u8], data: &Data) -> Result<(), &'static str> {
    let room_bytes = match data {
        Data::In { len_bytes } => *len_bytes,
        Data::None => 0,
        Data::Out(_) => return Ok(()),
    };
    if data_in_bytes(cdb).is_some_and(|sent_bytes| sent_bytes > room_bytes) {
        return Err("the device would send more than there is room for, and the bridge be reset");
    }
    Ok(())
}

/// How much data-in a reading CDB asks for, in bytes; `None` when the CDB does not say (the length is in the transport).
///
/// Reads of the medium are counted in blocks of 512 bytes, the smallest that there are.
pub fn data_in_bytes(cdb: &[u8]) -> Option<usize> {
    let byte = |i: usize| usize::from(cdb.get(i).copied().unwrap_or_default());
    let be16 = |i: usize| byte(i) << 8 | byte(i + 1);
    let be32 = |i: usize| be16(i) << 16 | be16(i + 2);
    const BLOCK_BYTES: usize = 512;
    match byte(0) {
        0x00 => Some(0),
        0x03 | 0x1a => Some(byte(4)),
        0x12 | 0x1c => Some(be16(3)),
        // READ (6): 0 stands for 256 blocks.
        0x08 => Some(if byte(4) == 0 { 256 } else { byte(4) } * BLOCK_BYTES),
        0x25 => Some(8),
        0x28 => Some(be16(7) * BLOCK_BYTES),
        0x4d | 0x5a => Some(be16(7)),
        0x88 => be32(10).checked_mul(BLOCK_BYTES),
        0x9e => Some(be32(10)),
        0xa0 | 0xa3 => Some(be32(6)),
        0xa8 => be32(6).checked_mul(BLOCK_BYTES),
        0x85 | 0xa1 => {
            let (count, feature) = if byte(0) == 0x85 {
                (be16(5), be16(3))
            } else {
                (byte(4), byte(3))
            };
            let extend = byte(0) == 0x85 && byte(1) & 1 == 1;
            let field = |wide: usize| {
                if byte(0) == 0x85 && !extend {
                    wide & 0xff
                } else {
                    wide
                }
            };
            let flags = byte(2);
            let from_device = flags & 0x08 != 0;
            let protocol = byte(1) >> 1 & 0x0f;
            if !from_device || protocol == 3 {
                return Some(0);
            }
            let length = match flags & 0x03 {
                0 => return Some(0),
                1 => field(feature),
                2 => field(count),
                _ => return None,
            };
            Some(if flags & 0x04 == 0 {
                length
            } else {
                length * BLOCK_BYTES
            })
        }
        _ => None,
    }
}

/// The fields of an ATA PASS-THROUGH CDB that decide.
struct AtaFields {
    protocol: u8,
    from_device: bool,
    command: u8,
    feature: u16,
    count: u16,
    log_address: u8,
    signature_mid: u8,
    signature_high: u8,
}

impl AtaFields {
    fn from_cdb16(cdb: &[u8]) -> Self {
        let byte = |i: usize| cdb.get(i).copied().unwrap_or_default();
        let extend = byte(1) & 1 == 1;
        let wide = |high: u8, low: u8| {
            if extend {
                u16::from_be_bytes([high, low])
            } else {
                u16::from(low)
            }
        };
        Self {
            protocol: byte(1) >> 1 & 0x0f,
            from_device: byte(2) & 0x08 != 0,
            command: byte(14),
            feature: wide(byte(3), byte(4)),
            count: wide(byte(5), byte(6)),
            log_address: byte(8),
            signature_mid: byte(10),
            signature_high: byte(12),
        }
    }

    fn from_cdb12(cdb: &[u8]) -> Self {
        let byte = |i: usize| cdb.get(i).copied().unwrap_or_default();
        Self {
            protocol: byte(1) >> 1 & 0x0f,
            from_device: byte(2) & 0x08 != 0,
            command: byte(9),
            feature: u16::from(byte(3)),
            count: u16::from(byte(4)),
            log_address: byte(5),
            signature_mid: byte(6),
            signature_high: byte(7),
        }
    }

    fn is_smart(&self) -> bool {
        self.command == 0xb0 && self.signature_mid == 0x4f && self.signature_high == 0xc2
    }
}

fn judge_ata(ata: &AtaFields, data: &Data, allowance: Allowance) -> Result<(), &'static str> {
    match ata.protocol {
        // Non-data
        3 => {
            no_data(data)?;
            judge_ata_non_data(ata, allowance)
        }
        // PIO data-in; DMA and UDMA data-in
        4 | 10 => judge_ata_read(ata, data),
        6 if ata.from_device => judge_ata_read(ata, data),
        // PIO data-out
        5 => judge_sct_request(ata, data),
        // Return response information reads the registers of the last command and names no command itself; a bridge that
        // does not know the protocol might run what is named.
        15 if ata.command == 0 && matches!(data, Data::In { .. }) => Ok(()),
        15 => Err("RETURN RESPONSE INFORMATION reads, and names no ATA command"),
        0 | 1 | 9 => Err("this protocol resets the drive (or, on an NVMe bridge, means a vendor command)"),
        8 => Err("EXECUTE DEVICE DIAGNOSTIC disturbs the drive"),
        _ => Err("this protocol writes, queues or is reserved"),
    }
}

fn judge_ata_read(ata: &AtaFields, data: &Data) -> Result<(), &'static str> {
    if !matches!(data, Data::In { .. }) || !ata.from_device {
        return Err("a data-in protocol needs a data-in phase");
    }
    let reads = match ata.command {
        // IDENTIFY DEVICE, IDENTIFY PACKET DEVICE
        0xec | 0xa1 => true,
        // READ LOG EXT, READ LOG DMA EXT; a FEATURE other than 0 resets counters in some logs (11h)
        0x2f | 0x47 => ata.feature == 0,
        // READ SECTORS, READ SECTORS EXT, READ DMA, READ DMA EXT
        0x20 | 0x24 | 0xc8 | 0x25 => true,
        // SMART READ DATA, READ THRESHOLDS, READ LOG
        0xb0 => ata.is_smart() && matches!(ata.feature, 0xd0 | 0xd1 | 0xd5),
        // DEVICE CONFIGURATION IDENTIFY
        0xb1 => ata.feature == 0xc2,
        _ => false,
    };
    if reads {
        Ok(())
    } else {
        Err("this ATA command is not on the list of readers")
    }
}

fn judge_ata_non_data(ata: &AtaFields, allowance: Allowance) -> Result<(), &'static str> {
    let harmless = match ata.command {
        // CHECK POWER MODE and its old code; READ VERIFY, READ VERIFY EXT; READ NATIVE MAX ADDRESS (EXT)
        0xe5 | 0x98 | 0x40 | 0x42 | 0xf8 | 0x27 => true,
        // SMART RETURN STATUS, SMART ENABLE OPERATIONS
        0xb0 if ata.is_smart() && matches!(ata.feature, 0xda | 0xd8) => true,
        // SMART EXECUTE OFF-LINE IMMEDIATE: short, extended, conveyance in the background, and abort
        0xb0 if ata.is_smart() && ata.feature == 0xd4 => {
            if !allowance.self_test {
                return Err("a self-test was not asked for");
            }
            matches!(ata.log_address, 0x01..=0x03 | 0x7f)
        }
        // GET NATIVE MAX ADDRESS EXT
        0x78 => ata.feature == 0,
        // SANITIZE STATUS EXT; COUNT bit 0 would clear the "sanitize operation failed" state
        0xb4 => ata.feature == 0 && ata.count == 0,
        _ => false,
    };
    if harmless {
        Ok(())
    } else {
        Err("this ATA command changes the drive or is unknown")
    }
}

/// SMART WRITE LOG to log E0h, when its parameter block only asks (ACS-4, "SCT Command Transport").
fn judge_sct_request(ata: &AtaFields, data: &Data) -> Result<(), &'static str> {
    const WHY: &str = "data-out is allowed only for an SCT request that reads";
    let to_sct_log = ata.command == 0xb0 && ata.is_smart() && ata.feature == 0xd6;
    let Data::Out(block) = data else { return Err(WHY) };
    if !to_sct_log || ata.from_device || ata.log_address != 0xe0 || ata.count != 1 || block.len() != 512 {
        return Err(WHY);
    }
    let word = |i: usize| match (block.get(2 * i), block.get(2 * i + 1)) {
        (Some(&low), Some(&high)) => u16::from_le_bytes([low, high]),
        _ => 0,
    };
    let asks = match (word(0), word(1)) {
        // Error recovery control: return the timer
        (3, 2) => true,
        // Feature control: return the state, return the options
        (4, 2 | 3) => true,
        // Data table: read the temperature history
        (5, 1) => word(2) == 2,
        _ => false,
    };
    if asks { Ok(()) } else { Err(WHY) }
}

fn no_data(data: &Data) -> Result<(), &'static str> {
    if matches!(data, Data::None) {
        Ok(())
    } else {
        Err("a command without data must not carry any")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const READ_512: Data = Data::In { len_bytes: 512 };

    fn allowed(cdb: &[u8], data: &Data) -> bool {
        judge(cdb, data, Allowance::default(), None).is_ok()
    }

    #[test]
    fn readers_pass() {
        assert!(allowed(&[0x12, 0, 0, 0, 36, 0], &Data::In { len_bytes: 36 }));
        assert!(allowed(&[0xa1, 8, 0x0e, 0, 1, 0, 0, 0, 0, 0xec, 0, 0], &READ_512));
        assert!(allowed(
            &[0xa1, 8, 0x0e, 0xd5, 1, 0xe0, 0x4f, 0xc2, 0, 0xb0, 0, 0],
            &READ_512
        ));
        let status = [0x85, 6, 0x2c, 0, 0xda, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0];
        assert!(allowed(&status, &Data::None));
        let check_power = [0x85, 6, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe5, 0];
        assert!(allowed(&check_power, &Data::None));
        let read_log = [0x85, 9, 0x0e, 0, 0, 0, 1, 0, 4, 0, 5, 0, 0, 0x40, 0x2f, 0];
        assert!(allowed(&read_log, &READ_512));
    }

    #[test]
    fn writers_and_resets_do_not() {
        let out = Data::Out(vec![0; 512]);
        // WRITE (10), UNMAP, WRITE SAME (16), FORMAT UNIT, START STOP UNIT, MODE SELECT, SANITIZE, WRITE BUFFER
        for opcode in [
            0x2a, 0x42, 0x93, 0x04, 0x1b, 0x15, 0x48, 0x3b, 0x3c, 0x35, 0x55, 0x4c,
        ] {
            let len = match opcode >> 5 {
                0 => 6,
                4 => 16,
                _ => 10,
            };
            let mut cdb = vec![0; len];
            cdb[0] = opcode;
            for data in [&Data::None, &out, &READ_512] {
                assert!(!allowed(&cdb, data), "{opcode:02x}");
            }
        }
        // The NVMe collision: A1h with protocol 0 is a hardware reset on a SATA bridge.
        assert!(!allowed(&[0xa1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &out));
        // DATA SET MANAGEMENT, WRITE DMA EXT, SET MAX ADDRESS EXT, SECURITY ERASE UNIT, DOWNLOAD MICROCODE
        assert!(!allowed(
            &[0x85, 0x0d, 6, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0x06, 0],
            &out
        ));
        assert!(!allowed(
            &[0x85, 0x0d, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0x35, 0],
            &out
        ));
        assert!(!allowed(
            &[
                0x85, 7, 0x20, 0, 0, 0, 0, 0x34, 0x9a, 0x12, 0x78, 0, 0x56, 0x40, 0x37, 0
            ],
            &Data::None
        ));
        assert!(!allowed(
            &[0x85, 0x0a, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xf4, 0],
            &out
        ));
        assert!(!allowed(
            &[0x85, 0x0a, 6, 0, 7, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x92, 0],
            &out
        ));
        // SMART DISABLE OPERATIONS; SMART RETURN STATUS without its signature
        assert!(!allowed(
            &[0x85, 6, 0, 0, 0xd9, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0],
            &Data::None
        ));
        assert!(!allowed(
            &[0x85, 6, 0, 0, 0xda, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xb0, 0],
            &Data::None
        ));
        // AMAC SET; SANITIZE block erase
        assert!(!allowed(
            &[0x85, 7, 0x20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x78, 0],
            &Data::None
        ));
        assert!(!allowed(
            &[0x85, 7, 0x20, 0, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0xb4, 0],
            &Data::None
        ));
        // SANITIZE STATUS EXT asks; with COUNT bit 0 it clears the failed state
        let mut status = [0x85, 7, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0xb4, 0];
        assert!(allowed(&status, &Data::None));
        status[6] = 1;
        assert!(!allowed(&status, &Data::None));
        // Vendor opcodes
        for opcode in [0xdf, 0xd8, 0xe6, 0xf8, 0x24, 0xea, 0x06, 0x7f] {
            for len in [6, 10, 12, 16] {
                let mut cdb = vec![0; len];
                cdb[0] = opcode;
                assert!(!allowed(&cdb, &READ_512), "{opcode:02x} {len}");
            }
        }
    }

    #[test]
    fn sct_requests_pass_only_when_they_read() {
        let cdb = [0xa1, 0x0a, 6, 0xd6, 1, 0xe0, 0x4f, 0xc2, 0, 0xb0, 0, 0];
        let block = |words: [u16; 5]| {
            let mut block = vec![0; 512];
            for (i, w) in words.into_iter().enumerate() {
                block[2 * i..2 * i + 2].copy_from_slice(&w.to_le_bytes());
            }
            Data::Out(block)
        };
        assert!(allowed(&cdb, &block([5, 1, 2, 0, 0])));
        assert!(allowed(&cdb, &block([3, 2, 1, 0, 0])));
        assert!(
            !allowed(&cdb, &block([3, 1, 1, 70, 0])),
            "sets error recovery control"
        );
        assert!(
            !allowed(&cdb, &block([4, 1, 3, 5, 0])),
            "sets the temperature interval"
        );
        assert!(
            !allowed(&cdb, &block([2, 1, 0, 0, 0])),
            "SCT WRITE SAME erases the disk"
        );
        let mut other_log = cdb;
        other_log[5] = 0x80;
        assert!(!allowed(&other_log, &block([5, 1, 2, 0, 0])));
        let mut two_blocks = cdb;
        two_blocks[4] = 2;
        assert!(!allowed(&two_blocks, &block([5, 1, 2, 0, 0])));
    }

    /// On a real bridge a command whose data the host does not expect ends in a reset.
    #[test]
    fn there_must_be_room_for_what_the_device_sends() {
        let inquiry = [0x12, 0, 0, 0, 36, 0];
        assert!(!allowed(&inquiry, &Data::None));
        assert!(!allowed(&inquiry, &Data::In { len_bytes: 35 }));
        assert!(allowed(&inquiry, &Data::In { len_bytes: 36 }));
        assert!(
            allowed(&inquiry, &Data::In { len_bytes: 512 }),
            "more room than needed is fine"
        );
        assert!(
            allowed(&[0x12, 0, 0, 0, 0, 0], &Data::None),
            "nothing is asked for"
        );
        assert!(!allowed(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &Data::None));
        assert!(!allowed(&[0x28, 0, 0, 0, 0, 0, 0, 0, 2, 0], &READ_512));
        assert!(
            !allowed(&[0x08, 0, 0, 0, 0, 0], &READ_512),
            "0 stands for 256 blocks"
        );
        let log = [0x85, 9, 0x0e, 0, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0x40, 0x2f, 0];
        assert!(!allowed(&log, &READ_512));
        assert!(allowed(&log, &Data::In { len_bytes: 1024 }));
        let tpsiu = [0xa1, 8, 0x0f, 0, 1, 0, 0, 0, 0, 0xec, 0, 0];
        assert!(allowed(&tpsiu, &READ_512), "the transport's length is the length");
    }

    #[test]
    fn opcodes_that_mean_other_things_elsewhere_stay_at_disks() {
        let optical = Allowance {
            no_disk: true,
            ..Allowance::default()
        };
        let identify = [0xa1, 8, 0x0e, 0, 1, 0, 0, 0, 0, 0xec, 0, 0];
        assert!(judge(&identify, &READ_512, Allowance::default(), None).is_ok());
        assert!(
            judge(&identify, &READ_512, optical, None).is_err(),
            "A1h is BLANK there"
        );
        assert!(judge(&[0x12, 0, 0, 0, 36, 0], &READ_512, optical, None).is_ok());
    }

    #[test]
    fn return_response_information_names_no_command() {
        let mut twelve = [0xa1, 0x1e, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut sixteen = [0x85, 0x1e, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let room = Data::In { len_bytes: 14 };
        assert!(allowed(&twelve, &room));
        assert!(allowed(&sixteen, &room));
        assert!(!allowed(&twelve, &Data::None));
        for command in 1..=0xff {
            twelve[9] = command;
            sixteen[14] = command;
            assert!(!allowed(&twelve, &room), "{command:02x}");
            assert!(!allowed(&sixteen, &room), "{command:02x}");
        }
    }

    #[test]
    fn logs_are_read_and_not_reset() {
        let mut log = [0x85, 9, 0x0e, 0, 0, 0, 1, 0, 0x11, 0, 0, 0, 0, 0x40, 0x2f, 0];
        assert!(allowed(&log, &READ_512));
        log[4] = 1;
        assert!(
            !allowed(&log, &READ_512),
            "FEATURE 1 resets the phy event counters"
        );
    }

    #[test]
    fn self_tests_pass_only_when_asked_for() {
        let short = [0x85, 6, 0, 0, 0xd4, 0, 0, 0, 1, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0];
        assert!(!allowed(&short, &Data::None));
        let asked = Allowance {
            self_test: true,
            ..Allowance::default()
        };
        assert!(judge(&short, &Data::None, asked, None).is_ok());
        let mut captive = short;
        captive[8] = 0x81;
        assert!(
            judge(&captive, &Data::None, asked, None).is_err(),
            "captive tests outlive every time-out"
        );
    }

    proptest! {
        /// Whatever passes with data-out is an SCT request; nothing else may carry data to a drive.
        #[test]
        fn data_out_is_only_ever_an_sct_request(cdb in proptest::collection::vec(any::<u8>(), 6..=32), fill in any::<u8>()) {
            let out = Data::Out(vec![fill; 512]);
            if judge(&cdb, &out, Allowance { self_test: true, ..Allowance::default() }, None).is_ok() {
                let command = if cdb[0] == 0x85 { cdb[14] } else { cdb[9] };
                prop_assert_eq!(command, 0xb0);
            }
        }
    }
}
