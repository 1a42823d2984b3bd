//! Sense data: fixed and descriptor format (SPC-4, "Sense data"), with the ATA registers wherever a SAT layer puts them.

use serde::Serialize;

use super::asc;
pub use super::registers::{ATA_RETURN_DESCRIPTOR_BYTES, AtaRegisters};
use crate::text;
use crate::wire::{WireError, be16, be32, be64};

const STRUCTURE: &str = "sense data";

/// How the sense data is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Response codes 70h and 71h.
    Fixed,
    /// Response codes 72h and 73h.
    Descriptor,
}

/// Where the ATA registers were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RegistersPlace {
    /// In an ATA Status Return descriptor (09h) of descriptor format sense data.
    Descriptor,
    /// In INFORMATION and COMMAND-SPECIFIC INFORMATION of fixed format sense data with the code 00h/1Dh.
    Fixed,
    /// In a whole 09h descriptor appended to fixed format sense data at byte 18.
    FixedAppended,
    /// In bytes 8 to 11 of fixed format sense data with the code 21h/04h: libata before 2024.
    FixedLibata,
    /// In fixed format sense data with another code; inferred from a STATUS with ERR and an ERROR with ABRT in fields that
    /// mean nothing else for a refused command. INFORMATION is kept as well.
    FixedInferred,
}

/// SENSE KEY SPECIFIC, whose meaning depends on the sense key (SPC-4, "Sense key specific sense data").
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SenseKeySpecific {
    /// ILLEGAL REQUEST: which field was refused.
    FieldPointer {
        /// In the CDB (`true`) or in the parameter list.
        in_cdb: bool,
        /// The byte.
        byte: u16,
        /// The bit, if the device tells.
        #[serde(skip_serializing_if = "Option::is_none")]
        bit: Option<u8>,
    },
    /// HARDWARE, MEDIUM and RECOVERED ERROR: how often it was tried.
    RetryCount {
        /// The number of retries.
        count: u16,
    },
    /// NO SENSE and NOT READY: how far an operation has come.
    Progress {
        /// 65536ths.
        progress_65536: u16,
    },
    /// COPY ABORTED: which segment or field was bad.
    SegmentPointer {
        /// In the segment descriptor (`true`) or in the parameter list.
        in_segment: bool,
        /// The byte.
        byte: u16,
        /// The bit, if the device tells.
        #[serde(skip_serializing_if = "Option::is_none")]
        bit: Option<u8>,
    },
    /// UNIT ATTENTION: some were lost.
    UnitAttention {
        /// The queue of unit attentions overflowed.
        overflow: bool,
    },
}

/// A descriptor that has no field of its own in [`Sense`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherDescriptor {
    /// DESCRIPTOR TYPE.
    pub code: u8,
    /// What the standard calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
    /// The bytes after the two header bytes.
    pub hex: String,
}

/// An "another progress indication" descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AnotherProgress {
    /// Sense key of the other operation.
    pub key: u8,
    /// Its ADDITIONAL SENSE CODE.
    pub asc: u8,
    /// Its ADDITIONAL SENSE CODE QUALIFIER.
    pub ascq: u8,
    /// How far it has come, in 65536ths.
    pub progress_65536: u16,
}

/// One entry of a "user data segment referral" descriptor: who serves which blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Referral {
    /// First block of the segment.
    pub first_lba: u64,
    /// Last block of the segment.
    pub last_lba: u64,
    /// (target port group, asymmetric access state) pairs.
    pub port_groups: Vec<(u16, u8)>,
}

/// Sense data, 8 to 252 bytes (SPC-4, "Sense data").
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sense {
    /// Layout.
    pub format: Format,
    /// The error belongs to an earlier command (71h, 73h).
    pub deferred: bool,
    /// SENSE KEY.
    pub key: u8,
    /// Its name.
    pub key_name: &'static str,
    /// ADDITIONAL SENSE CODE.
    pub asc: u8,
    /// ADDITIONAL SENSE CODE QUALIFIER.
    pub ascq: u8,
    /// What the two mean; absent when the table does not know them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_text: Option<String>,
    /// INFORMATION, if valid and not holding ATA registers; for a medium error the first bad block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub information: Option<u64>,
    /// COMMAND-SPECIFIC INFORMATION, if the device sent any and it does not hold ATA registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_specific: Option<u64>,
    /// SENSE KEY SPECIFIC, if valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sense_key_specific: Option<SenseKeySpecific>,
    /// FIELD REPLACEABLE UNIT CODE, if not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_replaceable_unit: Option<u8>,
    /// FILEMARK.
    #[serde(skip_serializing_if = "is_false")]
    pub filemark: bool,
    /// End of medium.
    #[serde(skip_serializing_if = "is_false")]
    pub eom: bool,
    /// Incorrect length indicator.
    #[serde(skip_serializing_if = "is_false")]
    pub ili: bool,
    /// SDAT_OVFL: the device had more sense data than there was room for.
    #[serde(skip_serializing_if = "is_false")]
    pub overflow: bool,
    /// Fewer bytes arrived than the sense data announces.
    pub truncated: bool,
    /// The registers of the ATA command behind it, if the SAT layer returned any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ata: Option<AtaRegisters>,
    /// Where they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers_place: Option<RegistersPlace>,
    /// Registers were announced (code 00h/1Dh, or a 09h descriptor), but what arrived is all zero: the bridge has none.
    /// A drive always sets at least DRDY in STATUS.
    #[serde(skip_serializing_if = "is_false")]
    pub ata_empty: bool,
    /// Progress of other operations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub another_progress: Vec<AnotherProgress>,
    /// User data segment referrals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub referrals: Vec<Referral>,
    /// Sense data that the device forwards from another one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forwarded: Vec<Sense>,
    /// Descriptors without a field of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_descriptors: Vec<OtherDescriptor>,
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// The name of a sense key (SPC-4, "Sense key and additional sense code definitions").
pub fn key_name(key: u8) -> &'static str {
    match key & 0x0f {
        0x0 => "No Sense",
        0x1 => "Recovered Error",
        0x2 => "Not Ready",
        0x3 => "Medium Error",
        0x4 => "Hardware Error",
        0x5 => "Illegal Request",
        0x6 => "Unit Attention",
        0x7 => "Data Protect",
        0x8 => "Blank Check",
        0x9 => "Vendor Specific",
        0xa => "Copy Aborted",
        0xb => "Aborted Command",
        0xc => "Reserved (Ch)",
        0xd => "Volume Overflow",
        0xe => "Miscompare",
        _ => "Completed",
    }
}

impl Sense {
    /// Reads sense data of any length.
    ///
    /// # Errors
    /// When there are no bytes or the response code is none of 70h to 73h; all other shortcomings are in the result.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        Self::parse_nested(bytes, 0)
    }

    fn parse_nested(bytes: &[u8], depth: u8) -> Result<Self, WireError> {
        let Some(&first) = bytes.first() else {
            return Err(WireError::truncated(STRUCTURE, 0, 8));
        };
        match first & 0x7f {
            code @ (0x70 | 0x71) => Ok(Self::parse_fixed(bytes, code == 0x71)),
            code @ (0x72 | 0x73) => Ok(Self::parse_descriptors(bytes, code == 0x73, depth)),
            other => Err(WireError {
                structure: STRUCTURE,
                offset_bytes: 0,
                why: format!("response code {other:02x}h is none of 70h to 73h"),
            }),
        }
    }

    fn new(format: Format, deferred: bool, key: u8, asc: u8, ascq: u8) -> Self {
        Self {
            format,
            deferred,
            key,
            key_name: key_name(key),
            asc,
            ascq,
            code_text: asc::code_text(asc, ascq),
            information: None,
            command_specific: None,
            sense_key_specific: None,
            field_replaceable_unit: None,
            filemark: false,
            eom: false,
            ili: false,
            overflow: false,
            truncated: false,
            ata: None,
            registers_place: None,
            ata_empty: false,
            another_progress: Vec::new(),
            referrals: Vec::new(),
            forwarded: Vec::new(),
            other_descriptors: Vec::new(),
        }
    }

    fn parse_fixed(bytes: &[u8], deferred: bool) -> Self {
        let at = |offset: usize| bytes.get(offset).copied().unwrap_or_default();
        let valid = at(0) & 0x80 != 0;
        let mut sense = Self::new(Format::Fixed, deferred, at(2) & 0x0f, at(12), at(13));
        sense.filemark = at(2) & 0x80 != 0;
        sense.eom = at(2) & 0x40 != 0;
        sense.ili = at(2) & 0x20 != 0;
        sense.overflow = at(2) & 0x10 != 0;
        sense.truncated = bytes.len() < 8 + usize::from(at(7));
        if valid {
            sense.information = be32(bytes, 3).map(u64::from);
        }
        sense.command_specific = be32(bytes, 8).filter(|v| *v != 0).map(u64::from);
        sense.field_replaceable_unit = Some(at(14)).filter(|f| *f != 0);
        if let (Some(flags), Some(value)) = (bytes.get(15), be16(bytes, 16)) {
            sense.sense_key_specific = sense_key_specific(sense.key, *flags, value);
        }
        sense.fixed_registers(bytes, valid);
        sense
    }

    fn fixed_registers(&mut self, bytes: &[u8], valid: bool) {
        let announced = (self.asc, self.ascq) == (0x00, 0x1d);
        let appended = bytes.get(18..).filter(|d| d.starts_with(&[0x09, 0x0c]));
        if let Some(registers) = appended.and_then(AtaRegisters::from_descriptor) {
            if registers.is_all_zero() {
                self.ata_empty = true;
            } else {
                self.found(registers, RegistersPlace::FixedAppended);
                return;
            }
        }
        if announced {
            match AtaRegisters::from_fixed(bytes) {
                Some(registers) => self.found(registers, RegistersPlace::Fixed),
                None => self.ata_empty = true,
            }
            return;
        }
        if (self.asc, self.ascq) == (0x21, 0x04)
            && !valid
            && let Some(&[error, status, device, count]) = bytes.get(8..12)
            && status & 0xc0 == 0x40
        {
            self.found(
                AtaRegisters {
                    error: Some(error),
                    status: Some(status),
                    device: Some(device),
                    count: Some(count),
                    ..AtaRegisters::default()
                },
                RegistersPlace::FixedLibata,
            );
            return;
        }
        // For a refused or aborted command INFORMATION means nothing, so E = ABRT and S = DRDY + ERR there are no accident.
        if matches!(self.key, 0x5 | 0xb)
            && valid
            && let Some(registers) = AtaRegisters::from_fixed(bytes)
            && registers.error.is_some_and(|e| e & 0x04 != 0)
            && registers.status.is_some_and(|s| s & 0xc1 == 0x41)
        {
            self.found(registers, RegistersPlace::FixedInferred);
        }
    }

    fn found(&mut self, registers: AtaRegisters, place: RegistersPlace) {
        self.ata = Some(registers);
        self.registers_place = Some(place);
        self.ata_empty = false;
        if matches!(place, RegistersPlace::Fixed | RegistersPlace::FixedLibata) {
            self.information = None;
            self.command_specific = None;
        }
    }

    fn parse_descriptors(bytes: &[u8], deferred: bool, depth: u8) -> Self {
        let at = |offset: usize| bytes.get(offset).copied().unwrap_or_default();
        let mut sense = Self::new(Format::Descriptor, deferred, at(1) & 0x0f, at(2), at(3));
        sense.overflow = at(4) & 0x80 != 0;
        let announced_end = 8 + usize::from(at(7));
        sense.truncated = bytes.len() < announced_end;
        let mut list = bytes.get(8..announced_end.min(bytes.len())).unwrap_or_default();
        if list.is_empty() && (sense.asc, sense.ascq) == (0x00, 0x1d) {
            // Registers are announced but the length is 0: believe the code if a whole descriptor follows.
            list = bytes
                .get(8..8 + ATA_RETURN_DESCRIPTOR_BYTES)
                .filter(|d| d.starts_with(&[0x09, 0x0c]))
                .unwrap_or_default();
        }
        while let Some(&code) = list.first() {
            let claimed = 2 + usize::from(list.get(1).copied().unwrap_or_default());
            if code == 0x09 {
                let used = claimed.clamp(12, ATA_RETURN_DESCRIPTOR_BYTES);
                // A last descriptor that says it is short while the list has exactly the rest: the list is right.
                let used = if list.len() == ATA_RETURN_DESCRIPTOR_BYTES {
                    list.len()
                } else {
                    used
                };
                sense.ata_descriptor(list.get(..used).unwrap_or(list));
            } else {
                sense.descriptor(
                    code,
                    list.get(2..claimed).or(list.get(2..)).unwrap_or_default(),
                    depth,
                );
            }
            list = list.get(claimed..).unwrap_or_default();
        }
        if (sense.asc, sense.ascq) == (0x00, 0x1d) && sense.ata.is_none() {
            sense.ata_empty = true;
        }
        sense
    }

    fn ata_descriptor(&mut self, bytes: &[u8]) {
        let Some(mut registers) = AtaRegisters::from_descriptor(bytes) else {
            self.ata_empty |= self.ata.is_none();
            return;
        };
        let missing = |register: Option<u8>| register.unwrap_or_default() == 0;
        if missing(registers.status) && missing(registers.device) && missing(registers.lba_high) {
            // STATUS 00h is no answer of a drive. Linux usb-storage asks for 18 bytes of sense, which ends inside the
            // descriptor, and hands out a longer buffer with zeroes behind: the last four registers never arrived.
            // Zeroes in the others then tell nothing: a bridge without registers looks the same.
            registers.status = None;
            registers.device = None;
            registers.lba_high = None;
            registers.lba_high_hi = None;
            if registers.is_all_zero() {
                self.ata_empty |= self.ata.is_none();
                return;
            }
            self.truncated = true;
        }
        if self.ata.is_none() {
            self.found(registers, RegistersPlace::Descriptor);
        }
    }

    fn descriptor(&mut self, code: u8, body: &[u8], depth: u8) {
        let at = |offset: usize| body.get(offset).copied();
        match code {
            0x00 => {
                self.information = at(0).filter(|b| b & 0x80 != 0).and_then(|_| be64(body, 2));
            }
            0x01 => self.command_specific = be64(body, 2),
            0x02 => {
                if let (Some(flags), Some(value)) = (at(2), be16(body, 3)) {
                    self.sense_key_specific = sense_key_specific(self.key, flags, value);
                }
            }
            0x03 => self.field_replaceable_unit = at(1).filter(|f| *f != 0),
            0x04 => {
                let flags = at(1).unwrap_or_default();
                self.filemark |= flags & 0x80 != 0;
                self.eom |= flags & 0x40 != 0;
                self.ili |= flags & 0x20 != 0;
            }
            0x05 => self.ili |= at(1).unwrap_or_default() & 0x20 != 0,
            0x0a => {
                if let (Some(key), Some(asc), Some(ascq), Some(progress_65536)) =
                    (at(0), at(1), at(2), be16(body, 4))
                {
                    self.another_progress.push(AnotherProgress {
                        key: key & 0x0f,
                        asc,
                        ascq,
                        progress_65536,
                    });
                }
            }
            0x0b => self.referrals = referrals(body),
            0x0c if depth < 2 => {
                if let Some(Ok(inner)) = body.get(2..).map(|inner| Self::parse_nested(inner, depth + 1)) {
                    self.forwarded.push(inner);
                } else {
                    self.other(code, body);
                }
            }
            0x0d => self.direct_access(body),
            _ => self.other(code, body),
        }
    }

    /// Direct-access block device descriptor (0Dh): the other descriptors' fields in one.
    fn direct_access(&mut self, body: &[u8]) {
        let at = |offset: usize| body.get(offset).copied().unwrap_or_default();
        if at(0) & 0x80 != 0 {
            self.information = be64(body, 6);
        }
        self.ili |= at(0) & 0x20 != 0;
        if let Some(value) = be16(body, 3) {
            self.sense_key_specific = sense_key_specific(self.key, at(2), value);
        }
        self.field_replaceable_unit = Some(at(5)).filter(|f| *f != 0);
        self.command_specific = be64(body, 14).filter(|v| *v != 0);
    }

    fn other(&mut self, code: u8, body: &[u8]) {
        self.other_descriptors.push(OtherDescriptor {
            code,
            name: match code {
                0x06 => Some("OSD object identification"),
                0x07 => Some("OSD response integrity check value"),
                0x08 => Some("OSD attribute identification"),
                0x0c => Some("forwarded sense data"),
                0x0e => Some("device designation"),
                0x0f => Some("microcode activation"),
                0x80.. => Some("vendor specific"),
                _ => None,
            },
            hex: text::hex(body),
        });
    }

    /// The name of the sense key.
    pub fn key_name(&self) -> &'static str {
        key_name(self.key)
    }

    /// What ASC and ASCQ mean, if the table knows them.
    pub fn code_text(&self) -> Option<&str> {
        self.code_text.as_deref()
    }

    /// Whether this is sense key, code and qualifier `(key, asc, ascq)`.
    pub fn is(&self, key: u8, asc: u8, ascq: u8) -> bool {
        (self.key, self.asc, self.ascq) == (key, asc, ascq)
    }

    /// Whether it says nothing at all: NO SENSE, code 00h/00h and no registers. Bridges send this after a command that
    /// failed as well as after one that did not.
    pub fn is_empty(&self) -> bool {
        self.is(0, 0, 0) && self.ata.is_none() && !self.filemark && !self.eom && !self.ili
    }

    /// Key and code as people quote them: `05/24/00`.
    pub fn code_triple(&self) -> String {
        format!("{:02x}/{:02x}/{:02x}", self.key, self.asc, self.ascq)
    }
}

fn sense_key_specific(key: u8, flags: u8, value: u16) -> Option<SenseKeySpecific> {
    if flags & 0x80 == 0 {
        return None;
    }
    let bit = (flags & 0x08 != 0).then_some(flags & 0x07);
    Some(match key {
        0x5 => SenseKeySpecific::FieldPointer {
            in_cdb: flags & 0x40 != 0,
            byte: value,
            bit,
        },
        0x1 | 0x3 | 0x4 => SenseKeySpecific::RetryCount { count: value },
        0x0 | 0x2 => SenseKeySpecific::Progress {
            progress_65536: value,
        },
        0xa => SenseKeySpecific::SegmentPointer {
            in_segment: flags & 0x20 != 0,
            byte: value,
            bit,
        },
        0x6 => SenseKeySpecific::UnitAttention {
            overflow: flags & 0x01 != 0,
        },
        _ => return None,
    })
}

fn referrals(body: &[u8]) -> Vec<Referral> {
    let mut out = Vec::new();
    let mut rest = body.get(2..).unwrap_or_default();
    while let (Some(&groups), Some(first_lba), Some(last_lba)) = (rest.get(3), be64(rest, 4), be64(rest, 12))
    {
        let groups_end = 20 + 4 * usize::from(groups);
        let port_groups = rest
            .get(20..groups_end.min(rest.len()))
            .unwrap_or_default()
            .chunks_exact(4)
            .filter_map(|group| Some((be16(group, 2)?, group.first()? & 0x0f)))
            .collect();
        out.push(Referral {
            first_lba,
            last_lba,
            port_groups,
        });
        rest = rest.get(groups_end..).unwrap_or_default();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(hex: &str) -> Sense {
        Sense::parse(&text::parse_hex(hex).unwrap()).unwrap()
    }

    #[test]
    fn a_refused_field_is_pointed_at() {
        let sense = parse("f0 00 05 00 00 00 00 0a 00 00 00 00 24 00 00 c8 00 0e");
        assert!(sense.is(5, 0x24, 0));
        assert_eq!(
            sense.sense_key_specific,
            Some(SenseKeySpecific::FieldPointer {
                in_cdb: true,
                byte: 14,
                bit: Some(0)
            })
        );
        assert_eq!((sense.ata, sense.ata_empty), (None, false));
        assert_eq!(sense.code_text(), Some("Invalid field in CDB"));
    }

    #[test]
    fn the_register_descriptor_is_found_behind_others() {
        let sense = parse(
            "72 0b 00 00 00 00 00 1a 00 0a 80 00 00 00 00 00 00 00 00 07 \
             09 0c 01 04 00 01 00 02 00 4f 00 c2 40 51",
        );
        assert_eq!(sense.information, Some(7));
        let ata = sense.ata.unwrap();
        assert_eq!(ata.lba48(), Some(0xc2_4f02));
        assert_eq!(ata.is_aborted(), Some(true));
        assert_eq!(sense.registers_place, Some(RegistersPlace::Descriptor));
        assert!(!sense.truncated);
    }

    #[test]
    fn eighteen_bytes_of_sense_lose_the_last_registers() {
        let cut = parse("72 01 00 1d 00 00 00 0e 09 0c 00 00 00 ff 00 01 00 4f");
        let ata = cut.ata.unwrap();
        assert_eq!((ata.count, ata.lba_mid), (Some(0xff), Some(0x4f)));
        assert_eq!((ata.lba_high, ata.device, ata.status), (None, None, None));
        assert!(cut.truncated);
        // As Linux hands it out: the cut bytes with zeroes behind.
        let padded = parse("72 01 00 1d 00 00 00 0e 09 0c 00 00 00 ff 00 01 00 4f 00 00 00 00");
        assert_eq!(padded.ata, cut.ata);
        assert!(padded.truncated);
    }

    #[test]
    fn announced_but_empty_registers_are_none() {
        for empty in [
            "72 01 00 1d 00 00 00 0e 09 0c 00 00 00 00 00 00 00 00 00 00 00 00",
            "72 01 00 1d 00 00 00 00",
            "f0 00 01 00 00 00 00 0a 00 00 00 00 00 1d 00 00 00 00",
        ] {
            let sense = parse(empty);
            assert_eq!((sense.ata, sense.ata_empty), (None, true), "{empty}");
        }
    }

    #[test]
    fn a_list_length_of_zero_does_not_hide_announced_registers() {
        let sense = parse("72 01 00 1d 00 00 00 00 09 0c 00 00 00 ff 00 00 00 00 00 00 40 50");
        assert_eq!(sense.ata.unwrap().count, Some(0xff));
    }

    #[test]
    fn fixed_sense_holds_the_low_registers() {
        let sense = parse("f0 00 01 00 50 00 ff 0a 00 00 4f c2 00 1d 00 00 00 00");
        let ata = sense.ata.unwrap();
        assert_eq!(
            (ata.count, ata.lba_mid, ata.lba_high),
            (Some(0xff), Some(0x4f), Some(0xc2))
        );
        assert_eq!(ata.count_hi, None, "a 28-bit command has no upper bytes");
        assert_eq!((sense.information, sense.command_specific), (None, None));
    }

    #[test]
    fn fixed_sense_may_carry_a_whole_descriptor_behind() {
        let sense = parse(
            "70 00 01 00 50 40 00 18 e0 55 00 00 00 1d 00 00 00 00 \
             09 0c 01 00 00 00 e8 55 00 e0 00 0e 40 50",
        );
        assert_eq!(sense.registers_place, Some(RegistersPlace::FixedAppended));
        assert_eq!(sense.ata.unwrap().lba48(), Some(0xe80e_e055));
    }

    #[test]
    fn libata_of_old_puts_them_at_eight() {
        let sense = parse("70 00 05 00 00 00 00 0a 04 53 40 01 21 04 00 00 00 00");
        let ata = sense.ata.unwrap();
        assert_eq!(
            (ata.error, ata.status, ata.device, ata.count),
            (Some(4), Some(0x53), Some(0x40), Some(1))
        );
        assert_eq!(sense.registers_place, Some(RegistersPlace::FixedLibata));
        // A real unaligned write of a zoned disk has no such fields.
        assert_eq!(
            parse("70 00 05 00 00 00 00 0a 00 00 00 00 21 04 00 00 00 00").ata,
            None
        );
    }

    #[test]
    fn registers_of_a_refused_command_are_inferred_but_a_bad_block_is_not() {
        let refused = parse("f0 00 05 04 53 00 01 0a 80 1e 09 00 24 00 00 00 00 00");
        assert_eq!(refused.registers_place, Some(RegistersPlace::FixedInferred));
        assert_eq!(refused.information, Some(0x0453_0001));
        let medium = parse("f0 00 03 04 51 00 01 0a 00 00 00 00 11 04 00 00 00 00");
        assert_eq!((medium.ata, medium.information), (None, Some(0x0451_0001)));
    }

    #[test]
    fn a_short_register_descriptor_is_clamped() {
        let sense = parse("72 01 00 1d 00 00 00 10 09 0a 00 00 00 ff 00 01 00 4f 00 c2 03 02 00 07");
        assert_eq!(sense.ata.unwrap().lba_high, Some(0xc2));
        assert_eq!(sense.ata.unwrap().device, None);
        assert_eq!(sense.field_replaceable_unit, Some(7));
    }

    #[test]
    fn no_sense_is_empty_and_nonsense_is_an_error() {
        assert!(parse("70 00 00 00 00 00 00 0a 00 00 00 00 00 00 00 00 00 00").is_empty());
        assert!(Sense::parse(&[]).is_err());
        assert!(Sense::parse(&[0; 18]).is_err());
    }
}
