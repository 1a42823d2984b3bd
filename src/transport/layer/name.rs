//! Names of commands, for messages and traces.
//!
//! A name is a courtesy to the reader: nothing decides by it.

/// What people call this command, as far as its bytes tell: `INQUIRY`, `ATA PASS-THROUGH (16): IDENTIFY DEVICE`.
pub fn command_name(cdb: &[u8]) -> String {
    let byte = |i: usize| cdb.get(i).copied().unwrap_or_default();
    match byte(0) {
        0x12 if byte(1) & 1 == 1 => format!("INQUIRY (VPD page {:02x}h)", byte(2)),
        0x4d => format!("LOG SENSE (page {:02x}h)", byte(2) & 0x3f),
        0x85 => format!(
            "ATA PASS-THROUGH (16): {}",
            ata_name(byte(1), byte(14), byte(4), byte(8))
        ),
        0xa1 => format!(
            "ATA PASS-THROUGH (12): {}",
            ata_name(byte(1), byte(9), byte(3), byte(5))
        ),
        0x9e if byte(1) & 0x1f == 0x10 => "READ CAPACITY (16)".to_owned(),
        0x9e if byte(1) & 0x1f == 0x12 => "GET LBA STATUS".to_owned(),
        0xa3 if byte(1) & 0x1f == 0x0c => "REPORT SUPPORTED OPERATION CODES".to_owned(),
        opcode => scsi_name(opcode).map_or_else(|| format!("command {opcode:02x}h"), str::to_owned),
    }
}

fn scsi_name(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        0x00 => "TEST UNIT READY",
        0x03 => "REQUEST SENSE",
        0x04 => "FORMAT UNIT",
        0x08 => "READ (6)",
        0x0a => "WRITE (6)",
        0x12 => "INQUIRY",
        0x15 => "MODE SELECT (6)",
        0x1a => "MODE SENSE (6)",
        0x1b => "START STOP UNIT",
        0x1c => "RECEIVE DIAGNOSTIC RESULTS",
        0x1d => "SEND DIAGNOSTIC",
        0x25 => "READ CAPACITY (10)",
        0x28 => "READ (10)",
        0x2a => "WRITE (10)",
        0x2e => "WRITE AND VERIFY (10)",
        0x2f => "VERIFY (10)",
        0x35 => "SYNCHRONIZE CACHE (10)",
        0x3b => "WRITE BUFFER",
        0x3c => "READ BUFFER",
        0x41 => "WRITE SAME (10)",
        0x42 => "UNMAP",
        0x48 => "SANITIZE",
        0x4c => "LOG SELECT",
        0x55 => "MODE SELECT (10)",
        0x5a => "MODE SENSE (10)",
        0x88 => "READ (16)",
        0x8a => "WRITE (16)",
        0x8f => "VERIFY (16)",
        0x91 => "SYNCHRONIZE CACHE (16)",
        0x93 => "WRITE SAME (16)",
        0xa0 => "REPORT LUNS",
        0xa2 => "SECURITY PROTOCOL IN",
        0xa8 => "READ (12)",
        0xaa => "WRITE (12)",
        0xb5 => "SECURITY PROTOCOL OUT",
        _ => return None,
    })
}

fn ata_name(byte1: u8, command: u8, feature: u8, lba_low: u8) -> String {
    if (byte1 >> 1) & 0x0f == 15 {
        return "RETURN RESPONSE INFORMATION".to_owned();
    }
    let name = match (command, feature) {
        (0x06, _) => "DATA SET MANAGEMENT",
        (0x20, _) => "READ SECTORS",
        (0x24, _) => "READ SECTORS EXT",
        (0x25, _) => "READ DMA EXT",
        (0x27, _) => "READ NATIVE MAX ADDRESS EXT",
        (0x2f, _) => return format!("READ LOG EXT (log {lba_low:02x}h)"),
        (0x30, _) => "WRITE SECTORS",
        (0x34, _) => "WRITE SECTORS EXT",
        (0x35, _) => "WRITE DMA EXT",
        (0x37, _) => "SET MAX ADDRESS EXT",
        (0x3f, _) => return format!("WRITE LOG EXT (log {lba_low:02x}h)"),
        (0x47, _) => return format!("READ LOG DMA EXT (log {lba_low:02x}h)"),
        (0x78, _) => "ACCESSIBLE MAX ADDRESS CONFIGURATION",
        (0x98 | 0xe5, _) => "CHECK POWER MODE",
        (0xa1, _) => "IDENTIFY PACKET DEVICE",
        (0xb0, 0xd0) => "SMART READ DATA",
        (0xb0, 0xd1) => "SMART READ THRESHOLDS",
        (0xb0, 0xd4) => "SMART EXECUTE OFFLINE",
        (0xb0, 0xd5) => return format!("SMART READ LOG (log {lba_low:02x}h)"),
        (0xb0, 0xd6) => return format!("SMART WRITE LOG (log {lba_low:02x}h)"),
        (0xb0, 0xd8) => "SMART ENABLE OPERATIONS",
        (0xb0, 0xd9) => "SMART DISABLE OPERATIONS",
        (0xb0, 0xda) => "SMART RETURN STATUS",
        (0xb0, _) => "SMART",
        (0xb1, _) => "DEVICE CONFIGURATION",
        (0xb4, _) => "SANITIZE DEVICE",
        (0xc8, _) => "READ DMA",
        (0xca, _) => "WRITE DMA",
        (0xe0, _) => "STANDBY IMMEDIATE",
        (0xe1, _) => "IDLE IMMEDIATE",
        (0xe7, _) => "FLUSH CACHE",
        (0xea, _) => "FLUSH CACHE EXT",
        (0xec, _) => "IDENTIFY DEVICE",
        (0xef, _) => "SET FEATURES",
        (0xf8, _) => "READ NATIVE MAX ADDRESS",
        (0xf9, _) => "SET MAX ADDRESS",
        (other, _) => return format!("ATA command {other:02x}h"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::command_name;

    #[test]
    fn names_follow_the_bytes() {
        assert_eq!(command_name(&[0x12, 0, 0, 0, 36, 0]), "INQUIRY");
        assert_eq!(
            command_name(&[0x12, 1, 0x89, 2, 0x3c, 0]),
            "INQUIRY (VPD page 89h)"
        );
        let identify = [0xa1, 8, 0x0e, 0, 1, 0, 0, 0, 0, 0xec, 0, 0];
        assert_eq!(command_name(&identify), "ATA PASS-THROUGH (12): IDENTIFY DEVICE");
        let status = [0x85, 6, 0x2c, 0, 0xda, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0];
        assert_eq!(
            command_name(&status),
            "ATA PASS-THROUGH (16): SMART RETURN STATUS"
        );
        assert_eq!(command_name(&[0xe6]), "command e6h");
        assert_eq!(command_name(&[]), "TEST UNIT READY");
    }
}
