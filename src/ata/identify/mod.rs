//! IDENTIFY DEVICE data: who the drive is and what it can do, and whether the sector is to be believed.

mod belief;
mod features;
mod summary;
mod versions;

use serde::Serialize;

pub use belief::{Belief, Verdict};
pub use features::{
    AdditionalFeatures, Feature, FeatureSets, SanitizeFeatures, SataFeatures, SctFeatures, SecurityStatus,
};
pub use summary::{IdentifySummary, SCHEMA};

use crate::text::ata_field;
use crate::units::{SectorSize, Sectors};
use crate::wire::{Checksum, WireError, le16, sums_to_zero};

/// The name of this structure in errors.
const STRUCTURE: &str = "IDENTIFY DEVICE data";

/// IDENTIFY DEVICE data, 512 bytes (ACS-4, "IDENTIFY DEVICE data"), kept raw and in drive order.
///
/// Accessors are named for what they mean; the words that they read stand in their first line.
#[derive(Clone, PartialEq, Eq)]
pub struct Identify {
    bytes: [u8; 512],
    byte_order: ByteOrder,
}

/// The byte order in which a sector arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ByteOrder {
    /// As a drive sends it.
    Drive,
    /// The two bytes of each word swapped, as some tools and bridges keep it.
    Swapped,
}

/// Nominal media rotation rate, word 217.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rotation {
    /// The drive does not say.
    Unknown,
    /// Solid state.
    NonRotating,
    /// Revolutions per minute.
    Rpm(u16),
}

/// How the drive is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AtaTransport {
    /// Parallel ATA.
    Parallel,
    /// Serial ATA.
    Serial,
    /// PCI Express.
    Pcie,
}

/// TRIM by DATA SET MANAGEMENT, words 69, 105 and 169.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Trim {
    /// Word 169 bit 0.
    pub supported: bool,
    /// Word 105: most 512-byte blocks of ranges in one command, where the drive sets a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_blocks: Option<u16>,
    /// Word 69 bit 14: trimmed sectors read the same each time.
    pub deterministic: bool,
    /// Word 69 bit 5: trimmed sectors read as zeros.
    pub zeroes: bool,
}

/// Whether a feature is there and on; `None` where the words that would tell are not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Switch {
    /// The drive has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supported: Option<bool>,
    /// It is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// World Wide Name, words 108-111.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wwn(pub u64);

impl Wwn {
    /// Name Address Authority: 5 for names by IEEE registration.
    pub fn naa(self) -> u8 {
        (self.0 >> 60) as u8
    }

    /// The vendor's 24-bit IEEE identifier.
    pub fn oui(self) -> u32 {
        ((self.0 >> 36) & 0x00ff_ffff) as u32
    }

    /// The 36 bits that the vendor numbers itself.
    pub fn id(self) -> u64 {
        self.0 & 0x000f_ffff_ffff
    }
}

impl std::fmt::Display for Wwn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Time that SECURITY ERASE UNIT needs, words 89 and 90.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EraseTime {
    /// Minutes, a multiple of two.
    pub minutes: u32,
    /// The field is at its end: it takes at least that long.
    pub at_least: bool,
}

impl EraseTime {
    /// Bit 15 tells the 15-bit format from the 8-bit one; both count two minutes, 0 says nothing.
    fn from_word(word: u16) -> Option<Self> {
        let (count, end) = if word & 0x8000 == 0 {
            (word & 0x00ff, 0x00ff)
        } else {
            (word & 0x7fff, 0x7fff)
        };
        let at_least = count == end;
        (count != 0).then(|| Self {
            minutes: u32::from(count - u16::from(at_least)) * 2,
            at_least,
        })
    }
}

/// Form factor, word 168 bits 3:0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FormFactor {
    /// The code as the drive gives it.
    pub code: u8,
    /// Its name, for codes that the standard defines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
}

impl Identify {
    /// Takes the first 512 bytes, in drive order or with the bytes of each word swapped.
    ///
    /// # Errors
    /// Fewer than 512 bytes, and sectors that hold one and the same byte throughout: bridges answer like that when
    /// they did not ask the drive. Any other content is accepted here and judged by [`Identify::belief`].
    pub fn parse(data: &[u8]) -> Result<Self, WireError> {
        let Some(sector) = data.first_chunk::<512>() else {
            return Err(WireError::truncated(STRUCTURE, data.len(), 512));
        };
        let first = sector.first().copied().unwrap_or_default();
        if sector.iter().all(|&b| b == first) {
            return Err(WireError {
                structure: STRUCTURE,
                offset_bytes: 0,
                why: format!("all 512 bytes are {first:02x}h: no drive answered"),
            });
        }
        let mut bytes = *sector;
        let mut byte_order = ByteOrder::Drive;
        if belief::looks_swapped(sector) {
            byte_order = ByteOrder::Swapped;
            for pair in bytes.chunks_exact_mut(2) {
                pair.reverse();
            }
        }
        Ok(Self { bytes, byte_order })
    }

    /// The 512 bytes in drive order.
    pub fn as_bytes(&self) -> &[u8; 512] {
        &self.bytes
    }

    /// The byte order in which they came.
    pub fn byte_order(&self) -> ByteOrder {
        self.byte_order
    }

    /// Word `n`; 0 for `n` above 255.
    pub fn word(&self, n: usize) -> u16 {
        n.checked_mul(2)
            .and_then(|offset| le16(&self.bytes, offset))
            .unwrap_or(0)
    }

    /// `count` words from `n` on as one number, the least significant word first.
    fn number(&self, n: usize, count: usize) -> u64 {
        (n..n + count)
            .rev()
            .fold(0, |number, i| number << 16 | u64::from(self.word(i)))
    }

    /// A word that carries its own validity code, bits 15:14 = 01b.
    fn coded_word(&self, n: usize) -> Option<u16> {
        Some(self.word(n)).filter(|word| word & 0xc000 == 0x4000)
    }

    /// A word without a code: 0 and FFFFh say that it is not implemented.
    fn optional_word(&self, n: usize) -> Option<u16> {
        Some(self.word(n)).filter(|word| !matches!(word, 0 | 0xffff))
    }

    fn text(&self, first_word: usize, last_word: usize) -> Option<String> {
        ata_field(self.bytes.get(first_word * 2..last_word * 2 + 2)?)
    }

    /// Words 27-46: model number.
    pub fn model(&self) -> Option<String> {
        self.text(27, 46)
    }

    /// Words 10-19: serial number.
    pub fn serial(&self) -> Option<String> {
        self.text(10, 19)
    }

    /// Words 23-26: firmware revision.
    pub fn firmware(&self) -> Option<String> {
        self.text(23, 26)
    }

    /// Word 0 bit 15: an ATA device, not ATAPI. CompactFlash cards (848Ah) are ATA devices too.
    pub fn is_ata(&self) -> bool {
        self.word(0) & 0x8000 == 0 || self.word(0) == 0x848a
    }

    /// Word 255: A5h in the low byte announces the checksum.
    pub fn checksum(&self) -> Checksum {
        if self.word(255) & 0x00ff != 0xa5 {
            Checksum::Absent
        } else if sums_to_zero(&self.bytes) {
            Checksum::Valid
        } else {
            Checksum::Invalid
        }
    }

    /// Words 82-84 and 119: supported; words without a valid code count as empty.
    pub fn supported(&self) -> Option<FeatureSets> {
        let word83 = self.coded_word(83)?;
        let word84 = self.coded_word(84).unwrap_or(0);
        let word119 = self.words_119_valid().then(|| self.coded_word(119)).flatten();
        Some(Self::feature_sets(
            self.word(82),
            word83,
            word84,
            word119.unwrap_or(0),
        ))
    }

    /// Words 85-87 and 120: enabled, if word 87 vouches for them.
    pub fn enabled(&self) -> Option<FeatureSets> {
        let word87 = self.coded_word(87)?;
        let word120 = self.words_119_valid().then(|| self.coded_word(120)).flatten();
        Some(Self::feature_sets(
            self.word(85),
            self.word(86),
            word87,
            word120.unwrap_or(0),
        ))
    }

    fn words_119_valid(&self) -> bool {
        self.word(86) & 0x8000 != 0
    }

    /// Bits 15:14 of words 83, 84, 86, 87, 119 and 120 are validity, no features.
    fn feature_sets(first: u16, second: u16, third: u16, extended: u16) -> FeatureSets {
        let first = if first == 0xffff { 0 } else { first };
        let code = !0xc000u16;
        FeatureSets::from_bits_retain(
            u64::from(first)
                | u64::from(second & code) << 16
                | u64::from(third & code) << 32
                | u64::from(extended & code) << 48,
        )
    }

    /// One feature of [`Identify::supported`] and [`Identify::enabled`].
    pub fn switch(&self, feature: FeatureSets) -> Switch {
        Switch {
            supported: self.supported().map(|all| all.contains(feature)),
            enabled: self.enabled().map(|all| all.contains(feature)),
        }
    }

    /// Words 82 and 85 bit 0. A "no" from a bridge is not the last word: SMART may work all the same.
    pub fn smart(&self) -> Switch {
        self.switch(FeatureSets::SMART)
    }

    /// Words 60-61: sectors that 28-bit commands reach, if word 49 bit 9 says that there are LBAs at all.
    pub fn sectors_28bit(&self) -> Option<Sectors> {
        self.has_lba()
            .then(|| Sectors(self.number(60, 2)))
            .filter(|s| s.0 != 0)
    }

    /// Words 100-102, if word 83 bit 10 says that there are 48-bit commands; word 103 is above what they reach.
    pub fn sectors_48bit(&self) -> Option<Sectors> {
        (self.has_lba() && self.supported()?.contains(FeatureSets::LBA48))
            .then(|| Sectors(self.number(100, 3)))
            .filter(|s| s.0 != 0)
    }

    /// Word 49 bit 9. CHS-only disks have none, and something else in the words that would count sectors.
    fn has_lba(&self) -> bool {
        self.is_ata() && self.word(49) & 0x0200 != 0
    }

    /// The user addressable sectors: words 230-233, else 100-103, else 60-61.
    pub fn sectors(&self) -> Option<Sectors> {
        self.additional_features()
            .contains(AdditionalFeatures::EXTENDED_SECTORS)
            .then(|| Sectors(self.number(230, 4)))
            .filter(|s| s.0 != 0)
            .or_else(|| self.sectors_48bit())
            .or_else(|| self.sectors_28bit())
    }

    /// Words 106 and 117-118: 512 unless the drive says more; `None` for a size that cannot be.
    pub fn logical_sector(&self) -> Option<SectorSize> {
        match self.coded_word(106) {
            Some(word) if word & 0x1000 != 0 => {
                let bytes = self.number(117, 2).checked_mul(2)?;
                SectorSize::new(u32::try_from(bytes).ok()?)
            }
            _ => Some(SectorSize::S512),
        }
    }

    /// Word 106 bits 13 and 3:0: logical sectors in one physical sector, a power of two.
    pub fn logical_per_physical(&self) -> u32 {
        match self.coded_word(106) {
            Some(word) if word & 0x2000 != 0 => 1 << (word & 0x000f),
            _ => 1,
        }
    }

    /// The logical sector times [`Identify::logical_per_physical`].
    pub fn physical_sector(&self) -> Option<SectorSize> {
        let logical = self.logical_sector()?.bytes();
        SectorSize::new(logical.checked_mul(self.logical_per_physical())?)
    }

    /// Word 209: the offset of logical sector 0 within its physical sector, in logical sectors.
    pub fn alignment_sectors(&self) -> Option<u16> {
        self.coded_word(209)
            .map(|word| word & 0x3fff)
            .filter(|offset| u32::from(*offset) < self.logical_per_physical())
    }

    /// The user addressable bytes.
    pub fn capacity_bytes(&self) -> Option<u64> {
        self.sectors()?.bytes(self.logical_sector()?)
    }

    /// Word 217.
    pub fn rotation(&self) -> Rotation {
        match self.word(217) {
            1 => Rotation::NonRotating,
            rpm @ 0x0401..=0xfffe => Rotation::Rpm(rpm),
            _ => Rotation::Unknown,
        }
    }

    /// Word 168.
    pub fn form_factor(&self) -> Option<FormFactor> {
        const NAMES: [&str; 10] = [
            "",
            "5.25 inches",
            "3.5 inches",
            "2.5 inches",
            "1.8 inches",
            "< 1.8 inches",
            "mSATA",
            "M.2",
            "MicroSSD",
            "CFast",
        ];
        let code = (self.optional_word(168)? & 0x000f) as u8;
        let name = NAMES.get(usize::from(code)).copied().filter(|n| !n.is_empty());
        (code != 0).then_some(FormFactor { code, name })
    }

    /// Word 80 as it is: one bit for each standard.
    pub fn major_version_bits(&self) -> Option<u16> {
        self.optional_word(80)
    }

    /// The newest standard that word 80 claims.
    pub fn major_version_name(&self) -> Option<&'static str> {
        versions::major_name(self.word(80))
    }

    /// Word 81 as it is.
    pub fn minor_version_code(&self) -> Option<u16> {
        self.optional_word(81)
    }

    /// The draft or standard that word 81 names.
    pub fn minor_version_name(&self) -> Option<&'static str> {
        versions::minor_name(self.word(81))
    }

    /// Word 222 bits 15:12; else, for older drives, word 76 (serial) or word 93 (parallel).
    pub fn transport(&self) -> Option<AtaTransport> {
        match self.optional_word(222).map(|word| word >> 12) {
            Some(0) => Some(AtaTransport::Parallel),
            Some(1) => Some(AtaTransport::Serial),
            Some(0xe) => Some(AtaTransport::Pcie),
            Some(_) => None,
            None if self.optional_word(76).is_some() => Some(AtaTransport::Serial),
            None if self.coded_word(93).is_some() => Some(AtaTransport::Parallel),
            None => None,
        }
    }

    /// Word 222 bits 11:0: the newest Serial ATA revision.
    pub fn sata_version_name(&self) -> Option<&'static str> {
        let word = self.optional_word(222)?;
        (word >> 12 == 1).then(|| versions::sata_name(word)).flatten()
    }

    /// Words 76 and 78.
    pub fn sata_features(&self) -> SataFeatures {
        let word76 = self.optional_word(76).unwrap_or(0);
        let word78 = self.optional_word(78).unwrap_or(0);
        SataFeatures::from_bits_retain(u32::from(word76) | u32::from(word78) << 16)
    }

    /// Word 79: which of word 78 is on. Same layout as [`Identify::sata_features`]; the low half is empty.
    pub fn sata_enabled(&self) -> SataFeatures {
        SataFeatures::from_bits_retain(u32::from(self.optional_word(79).unwrap_or(0)) << 16)
    }

    /// Word 76 bits 3:1: the fastest link generation, 1 to 3.
    pub fn sata_max_generation(&self) -> Option<u8> {
        let sata = self.sata_features();
        [
            (SataFeatures::GEN3, 3),
            (SataFeatures::GEN2, 2),
            (SataFeatures::GEN1, 1),
        ]
        .into_iter()
        .find_map(|(flag, generation)| sata.contains(flag).then_some(generation))
    }

    /// Word 77 bits 3:1: the generation that the link negotiated, between drive and bridge.
    pub fn sata_current_generation(&self) -> Option<u8> {
        self.optional_word(76)?;
        let generation = ((self.optional_word(77)? >> 1) & 0x7) as u8;
        (1..=3).contains(&generation).then_some(generation)
    }

    /// Word 75 bits 4:0, plus one; `None` where no queuing is offered.
    pub fn queue_depth(&self) -> Option<u8> {
        let queued = self.sata_features().contains(SataFeatures::NCQ)
            || self
                .supported()
                .is_some_and(|f| f.contains(FeatureSets::TAGGED_QUEUING));
        (queued || self.optional_word(75).is_some()).then(|| (self.word(75) & 0x1f) as u8 + 1)
    }

    /// Words 69, 105 and 169.
    pub fn trim(&self) -> Trim {
        let supported = self.optional_word(169).is_some_and(|word| word & 1 != 0);
        let additional = self.additional_features();
        Trim {
            supported,
            max_blocks: self.optional_word(105).filter(|_| supported),
            deterministic: supported && additional.contains(AdditionalFeatures::DRAT),
            zeroes: supported && additional.contains(AdditionalFeatures::RZAT),
        }
    }

    /// Word 69.
    pub fn additional_features(&self) -> AdditionalFeatures {
        AdditionalFeatures::from_bits_retain(self.optional_word(69).unwrap_or(0))
    }

    /// Word 206; empty unless bit 0 says that there is SCT at all.
    pub fn sct(&self) -> SctFeatures {
        let word = self.optional_word(206).filter(|word| word & 1 != 0);
        SctFeatures::from_bits_retain(word.unwrap_or(0))
    }

    /// Word 59 bits 15:8; empty unless bit 12 says that there is SANITIZE at all.
    pub fn sanitize(&self) -> SanitizeFeatures {
        let word = self.optional_word(59).filter(|word| word & 0x1000 != 0);
        SanitizeFeatures::from_bits_retain(word.unwrap_or(0) & 0xff00)
    }

    /// Word 128.
    pub fn security(&self) -> Option<SecurityStatus> {
        self.optional_word(128).map(SecurityStatus::from_bits_retain)
    }

    /// Word 89: normal erase.
    pub fn erase_time(&self) -> Option<EraseTime> {
        EraseTime::from_word(self.word(89))
    }

    /// Word 90: enhanced erase.
    pub fn enhanced_erase_time(&self) -> Option<EraseTime> {
        EraseTime::from_word(self.word(90))
    }

    /// Word 92: master password identifier.
    pub fn master_password_revision(&self) -> Option<u16> {
        self.optional_word(92)
    }

    /// Words 108-111, if word 87 (or 84) bit 8 announces them; an all-zero name is none.
    pub fn wwn(&self) -> Option<Wwn> {
        let announced = [self.supported(), self.enabled()]
            .into_iter()
            .flatten()
            .any(|f| f.contains(FeatureSets::WWN));
        let name = (108..112).fold(0, |name, n| name << 16 | u64::from(self.word(n)));
        (announced && name != 0).then_some(Wwn(name))
    }

    /// Word 88 low byte: the highest Ultra DMA mode supported.
    pub fn udma_max(&self) -> Option<u8> {
        self.udma_word()
            .and_then(|word| (word & 0x00ff).checked_ilog2())
            .map(|n| n as u8)
    }

    /// Word 88 high byte: the Ultra DMA mode selected.
    pub fn udma_active(&self) -> Option<u8> {
        self.udma_word()
            .and_then(|word| (word >> 8).checked_ilog2())
            .map(|n| n as u8)
    }

    fn udma_word(&self) -> Option<u16> {
        (self.word(53) & 0x0004 != 0)
            .then(|| self.optional_word(88))
            .flatten()
    }

    /// Word 91 low byte: the APM level, while APM is on.
    pub fn apm_level(&self) -> Option<u8> {
        self.switch(FeatureSets::APM)
            .enabled?
            .then(|| self.word(91).to_le_bytes()[0])
    }

    /// Word 94: the acoustic level now (low byte) and recommended (high byte), while AAM is supported.
    pub fn aam_levels(&self) -> Option<(u8, u8)> {
        let [current, recommended] = self.word(94).to_le_bytes();
        self.switch(FeatureSets::AAM)
            .supported?
            .then_some((current, recommended))
    }

    /// Every named feature that the drive has.
    pub fn features(&self) -> Vec<Feature> {
        features::list(
            self.supported().unwrap_or(FeatureSets::empty()),
            self.enabled(),
            self.sata_features(),
            self.sata_enabled(),
            self.additional_features(),
        )
    }
}

impl std::fmt::Debug for Identify {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identify")
            .field("model", &self.model())
            .field("firmware", &self.firmware())
            .field("byte_order", &self.byte_order)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
