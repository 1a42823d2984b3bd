//! Whether a sector really is what the drive said.
//!
//! Bridges answer IDENTIFY DEVICE with success and with zeros, with what was left in their buffer, with an echo of the
//! command, or with a page that they made up for a drive that is not ATA at all.

use serde::Serialize;

use super::{Identify, STRUCTURE};
use crate::wire::{Checksum, WireError, sums_to_zero};

/// What a sector taken for IDENTIFY DEVICE data turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A drive's own answer: signature and checksum are right.
    Proven,
    /// No checksum to go by, but the fields fit together.
    Plausible,
    /// Strings only: no capacity, no LBA, no DMA. RTL9210 makes up such a page for NVMe drives.
    Fabricated,
    /// Something else: stale buffer, echo, damage.
    Rejected,
}

/// The verdict and what speaks for and against the sector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Belief {
    /// The verdict.
    pub verdict: Verdict,
    /// What speaks for it.
    pub evidence_for: Vec<&'static str>,
    /// What speaks against it.
    pub evidence_against: Vec<&'static str>,
}

impl Belief {
    /// Whether a drive's identity may be taken from the sector.
    pub fn is_believed(&self) -> bool {
        matches!(self.verdict, Verdict::Proven | Verdict::Plausible)
    }

    /// The error for a sector that is not believed.
    ///
    /// # Errors
    /// For [`Verdict::Fabricated`] and [`Verdict::Rejected`], with the evidence in words.
    pub fn require(&self) -> Result<(), WireError> {
        if self.is_believed() {
            return Ok(());
        }
        Err(WireError {
            structure: STRUCTURE,
            offset_bytes: 0,
            why: format!("not believed: {}", self.evidence_against.join(", ")),
        })
    }
}

/// Starts of other structures that are left over in a bridge's buffer.
const STALE: &[(&[u8], &str)] = &[
    (b"USBC", "starts like a USB command block wrapper"),
    (b"USBS", "starts like a USB command status wrapper"),
    (b"EFI PART", "starts like a GPT header"),
    (&[0xeb, 0x52, 0x90], "starts like a boot sector"),
    (&[0xeb, 0x3c, 0x90], "starts like a boot sector"),
    (&[0xeb, 0x58, 0x90], "starts like a boot sector"),
    (&[0xeb, 0x76, 0x90], "starts like a boot sector"),
    (&[0x33, 0xc0], "starts like a boot sector"),
    (&[0xfa, 0x33, 0xc0], "starts like a boot sector"),
];

impl Identify {
    /// Judges the sector by signature, checksum and whether its fields fit together.
    pub fn belief(&self) -> Belief {
        let mut evidence_for = Vec::new();
        let mut evidence_against = Vec::new();
        let checksum = self.checksum();
        match checksum {
            Checksum::Valid => evidence_for.push("signature and checksum are right"),
            Checksum::Invalid => evidence_against.push("the checksum is wrong"),
            Checksum::Absent => evidence_against.push("it has no checksum"),
        }

        let model = self.printable(27, 46);
        let firmware = self.printable(23, 26);
        let serial = self.printable(10, 19);
        note(
            model,
            "the model is printable",
            "the model is not printable",
            &mut evidence_for,
            &mut evidence_against,
        );
        note(
            firmware && serial,
            "serial and firmware are printable",
            "serial or firmware is not printable",
            &mut evidence_for,
            &mut evidence_against,
        );
        let codes = [83, 84, 87]
            .iter()
            .filter(|&&n| self.word(n) & 0xc000 == 0x4000)
            .count();
        let coded = codes == 3;
        if coded {
            evidence_for.push("words 83, 84 and 87 carry their validity code");
        }
        let old = !coded && self.word(83) == 0 && self.word(84) == 0;
        if !coded && !old {
            evidence_against.push("words 83, 84 and 87 do not carry their validity code");
        }
        let capacity = self.sectors().is_some();
        let lba = self.word(49) & 0x0200 != 0;
        let dma = self.word(49) & 0x0100 != 0;
        let geometry = self.word(1) != 0 && self.word(3) != 0 && self.word(6) != 0;
        let useful = (capacity && (lba || dma)) || geometry || !self.is_ata();
        note(
            useful,
            "capacity and transfer modes are filled in",
            "capacity, LBA and DMA are missing",
            &mut evidence_for,
            &mut evidence_against,
        );
        let stale = STALE.iter().find(|(start, _)| self.starts_with(start));
        if let Some((_, why)) = stale {
            evidence_against.push(why);
        }

        let sane_strings = model && firmware;
        let verdict = if stale.is_some() && checksum != Checksum::Valid {
            Verdict::Rejected
        } else if model && !useful && !lba && !dma {
            Verdict::Fabricated
        } else if checksum == Checksum::Valid && model {
            Verdict::Proven
        } else if sane_strings && useful && (coded || old) {
            // Also with a wrong checksum: bridges that patch words do not mend it.
            Verdict::Plausible
        } else {
            Verdict::Rejected
        };
        Belief {
            verdict,
            evidence_for,
            evidence_against,
        }
    }

    /// Whether the words hold text: something, and nothing but printable ASCII and padding.
    fn printable(&self, first_word: usize, last_word: usize) -> bool {
        let field = self
            .bytes
            .get(first_word * 2..last_word * 2 + 2)
            .unwrap_or_default();
        field.iter().all(|&b| b == 0 || (0x20..0x7f).contains(&b)) && field.iter().any(|&b| b > 0x20)
    }

    /// In the order in which the bytes came.
    fn starts_with(&self, start: &[u8]) -> bool {
        let swapped = self.byte_order == super::ByteOrder::Swapped;
        start.iter().enumerate().all(|(i, &b)| {
            let at = if swapped { i ^ 1 } else { i };
            self.bytes.get(at) == Some(&b)
        })
    }
}

fn note(
    good: bool,
    yes: &'static str,
    no: &'static str,
    evidence_for: &mut Vec<&'static str>,
    evidence_against: &mut Vec<&'static str>,
) {
    if good {
        evidence_for.push(yes);
    } else {
        evidence_against.push(no);
    }
}

/// Whether the sector makes sense only with the two bytes of each word swapped.
///
/// The sum of all bytes is the same in both orders, so the signature's place decides first; then words whose high and
/// low bytes differ in kind are asked, and a tie is left as it came.
pub(super) fn looks_swapped(sector: &[u8; 512]) -> bool {
    let signature = 0xa5;
    let last = [sector.get(510).copied(), sector.get(511).copied()].map(|b| b == Some(signature));
    match last {
        [true, false] if sums_to_zero(sector) => return false,
        [false, true] if sums_to_zero(sector) => return true,
        _ => {}
    }
    swapped_score(sector, 1) > swapped_score(sector, 0)
}

/// How much of the sector makes sense when the low byte of each word is at its offset XOR `flip`.
fn swapped_score(sector: &[u8; 512], flip: usize) -> u32 {
    let byte = |offset: usize| sector.get(offset ^ flip).copied().unwrap_or(0);
    let low = |word: usize| byte(word * 2);
    let high = |word: usize| byte(word * 2 + 1);
    let mut score = 0;
    if low(255) == 0xa5 {
        score += 3;
    }
    for word in [83, 84, 87] {
        if high(word) & 0xc0 == 0x40 {
            score += 2;
        }
    }
    if high(47) == 0x80 && low(47) != 0x80 {
        score += 1;
    }
    if high(49) & 0x03 == 0x03 {
        score += 1;
    }
    if high(53) == 0 && matches!(low(53), 1..=7) {
        score += 1;
    }
    // Heads and sectors of a track: all that the oldest disks have to show.
    for word in [3, 6] {
        if high(word) == 0 && low(word) != 0 {
            score += 1;
        }
    }
    score
}
