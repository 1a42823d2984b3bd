//! Guesses what some bytes are: strong evidence (checksums, signatures, lengths that fit) first, plausibility last.

use super::{DecodeError, Kind};
use crate::ata::identify::{Identify, Verdict};
use crate::nvme::identify::Controller;
use crate::nvme::log::SmartLog;
use crate::scsi::designator::Designator;
use crate::scsi::inquiry::{Inquiry, device_type_name};
use crate::scsi::sense::{Format, Sense};
use crate::scsi::vpd::page_name;
use crate::transport::usb::descriptors::Descriptors;
use crate::wire::{be16, le16, le64, sums_to_zero};

/// What the bytes are, and what speaks for it.
pub(super) fn guess(bytes: &[u8]) -> Result<(Kind, String), DecodeError> {
    let found = [usb, sector, small]
        .into_iter()
        .find_map(|attempt| attempt(bytes));
    found
        .map(|(kind, why)| (kind, why.to_owned()))
        .ok_or(DecodeError::Unrecognised {
            len_bytes: bytes.len(),
        })
}

fn usb(bytes: &[u8]) -> Option<(Kind, &'static str)> {
    let descriptors = Descriptors::parse(bytes).ok()?;
    if descriptors.truncated && descriptors.device.is_none() {
        return None;
    }
    let usual = |bcd: u16| matches!(bcd >> 8, 1..=4);
    if descriptors.device.is_some_and(|d| usual(d.bcd_usb)) {
        return Some((
            Kind::UsbDescriptors,
            "a USB device descriptor and lengths that fit",
        ));
    }
    let whole = descriptors
        .configurations
        .iter()
        .any(|c| !c.interfaces.is_empty() && usize::from(c.total_bytes) <= bytes.len());
    let bos = descriptors
        .bos
        .as_ref()
        .is_some_and(|b| usize::from(b.total_bytes) == bytes.len());
    (whole || bos).then_some((Kind::UsbDescriptors, "USB descriptors whose lengths fit"))
}

/// Whole sectors: ATA and NVMe.
fn sector(bytes: &[u8]) -> Option<(Kind, &'static str)> {
    if bytes.len() < 512
        || !bytes.len().is_multiple_of(512)
        || bytes.iter().all(|b| b == bytes.first().unwrap_or(&0))
    {
        return None;
    }
    let first = bytes.get(..512)?;
    let identify = Identify::parse(first).ok().map(|i| i.belief());
    if identify.as_ref().is_some_and(|b| b.verdict == Verdict::Proven) {
        return Some((Kind::Identify, "the signature A5h and a right checksum"));
    }
    // Other pages have many zero bytes and sum to 0 only by chance or on purpose.
    if sums_to_zero(first)
        && let Some(kind) = attribute_table(first, true)
    {
        return Some((
            kind,
            "a right checksum and a table of SMART attributes or thresholds",
        ));
    }
    if identify.is_some_and(|b| b.is_believed()) {
        return Some((
            Kind::Identify,
            "strings, capacity and validity codes of IDENTIFY DEVICE data",
        ));
    }
    if looks_like_device_statistics(bytes) {
        return Some((Kind::Devstat, "page headers and flags of device statistics"));
    }
    if looks_like_temperature_history(first) {
        return Some((Kind::SctTempHistory, "the header of an SCT temperature history"));
    }
    if looks_like_sct_status(first) {
        return Some((Kind::SctStatus, "the layout of an SCT status page"));
    }
    if Controller::parse(bytes).is_ok_and(|c| c.is_plausible()) {
        return Some((
            Kind::NvmeIdentify,
            "vendor and strings of NVMe Identify Controller data",
        ));
    }
    if bytes.len() == 512 && SmartLog::parse(bytes).is_ok_and(|l| l.is_plausible()) {
        return Some((
            Kind::NvmeSmart,
            "a temperature in kelvin and percentages in their range",
        ));
    }
    if bytes.len() > 512 {
        return None;
    }
    attribute_table(first, false).map(|kind| {
        (
            kind,
            "a table of SMART attributes or thresholds (the checksum is wrong)",
        )
    })
}

/// Attributes and thresholds stand in the same table: 30 slots of 12 bytes from byte 2 on, each with its own number first.
///
/// Thresholds have zeroes behind the second byte as a rule; some drives leave other bytes in there, and what stands behind
/// the attributes behind the thresholds as well. Most attributes have a value of 1 to 253 at byte 3. The revision, in front,
/// is small. Without a checksum unused slots must be blank, and flags, values and worst values such as drives have.
fn attribute_table(sector: &[u8], checksum: bool) -> Option<Kind> {
    let slots = || sector.get(2..362).unwrap_or_default().chunks_exact(12);
    let used: Vec<&[u8]> = slots().filter(|s| s.first() != Some(&0)).collect();
    let mut ids: Vec<_> = used.iter().map(|s| s.first()).collect();
    ids.sort_unstable();
    ids.dedup();
    let unused_are_blank = slots()
        .filter(|s| s.first() == Some(&0))
        .all(|s| s.iter().all(|b| *b == 0));
    let enough = if checksum && unused_are_blank { 1 } else { 3 };
    let small_revision = sector.get(1) == Some(&0);
    if ids.len() != used.len() || used.len() < enough || !small_revision || !(checksum || unused_are_blank) {
        return None;
    }
    let bare = used
        .iter()
        .all(|s| s.get(2..).is_some_and(|rest| rest.iter().all(|b| *b == 0)));
    let valued = used
        .iter()
        .filter(|s| s.get(3).is_some_and(|v| (1..=253).contains(v)))
        .count();
    // Bits 6 to 15 of the flags are the vendor's, and used by hardly any.
    let usual = |s: &&&[u8]| {
        le16(s, 1).is_some_and(|flags| flags < 0x100) && s.get(4).is_some_and(|worst| *worst <= 253)
    };
    let believed = checksum || 10 * used.iter().filter(usual).count() >= 9 * used.len();
    if !bare && believed && 2 * valued >= used.len() {
        Some(Kind::SmartData)
    } else {
        (bare || checksum).then_some(Kind::SmartThresholds)
    }
}

/// Each page begins with a qword: revision 1 in bits 15:0, page number in bits 23:16; each statistic has its flags in the
/// top byte and says "supported" there.
fn looks_like_device_statistics(bytes: &[u8]) -> bool {
    let mut statistics = 0;
    let mut last_page = None;
    for page in bytes.chunks_exact(512) {
        let header = le64(page, 0).unwrap_or_default();
        let number = header >> 16 & 0xff;
        if header == 0 {
            continue;
        }
        if header & 0xffff == 0
            || header & 0xffff > 0xff
            || header >> 24 != 0
            || last_page.is_some_and(|l| number <= l)
        {
            return false;
        }
        last_page = Some(number);
        if number == 0 {
            let count = page.get(8).copied().unwrap_or_default();
            let listed = page.get(9..9 + usize::from(count)).unwrap_or_default();
            statistics += usize::from(listed.first() == Some(&0) && listed.is_sorted());
            continue;
        }
        for value in page.chunks_exact(8).skip(1).filter_map(|q| le64(q, 0)) {
            match value >> 56 {
                0 if value == 0 => {}
                flags if flags & 0x80 != 0 && flags & 0x07 == 0 => statistics += 1,
                _ => return false,
            }
        }
    }
    statistics > 0
}

/// Format version 2, periods, limits, then a ring buffer of 1 to 478 entries and filling of one kind.
fn looks_like_temperature_history(sector: &[u8]) -> bool {
    let word = |offset| le16(sector, offset).unwrap_or_default();
    let (size, index) = (word(30), word(32));
    word(0) == 2
        && (1..=478).contains(&size)
        && index < size
        && sector
            .get(10..30)
            .is_some_and(|reserved| reserved.iter().all(|b| *b == 0))
        && sector
            .get(34 + usize::from(size)..)
            .is_some_and(|rest| rest.iter().all(|b| Some(b) == rest.first()))
}

/// Format version 2 or 3, SCT version, support level, a device state and a temperature that can be.
fn looks_like_sct_status(sector: &[u8]) -> bool {
    let word = |offset| le16(sector, offset).unwrap_or_default();
    let temperature = sector.get(200).copied().unwrap_or_default() as i8;
    matches!(word(0), 2 | 3)
        && sector.get(10).is_some_and(|state| *state <= 5)
        && sector
            .get(48..200)
            .is_some_and(|reserved| reserved.iter().all(|b| *b == 0))
        && sector
            .get(11..14)
            .is_some_and(|reserved| reserved.iter().all(|b| *b == 0))
        && sector
            .get(216..480)
            .is_some_and(|reserved| reserved.iter().filter(|b| **b != 0).count() < 64)
        && (temperature == i8::MIN || (-40..=125).contains(&temperature))
        && sector.get(200..206).is_some_and(|t| t.iter().any(|b| *b != 0))
}

/// Answers of a SCSI target, shorter than a sector as a rule.
fn small(bytes: &[u8]) -> Option<(Kind, &'static str)> {
    let claimed = 4 + usize::from(be16(bytes, 2)?);
    let rest_is_zero = bytes
        .get(claimed..)
        .is_some_and(|rest| rest.iter().all(|b| *b == 0));
    if claimed > 4 && rest_is_zero && is_vpd(bytes, claimed) {
        return Some((Kind::Vpd, "a VPD page code and a length that fits"));
    }
    if is_inquiry(bytes) {
        return Some((
            Kind::Inquiry,
            "vendor and product strings of standard INQUIRY data",
        ));
    }
    if is_sense(bytes) {
        return Some((Kind::Sense, "a sense response code"));
    }
    let cut = bytes.len() >= 8 && bytes.len() < claimed && claimed <= 2 * bytes.len();
    (cut && is_vpd(bytes, bytes.len()) && has_page_form(bytes, claimed))
        .then_some((Kind::Vpd, "the form of a VPD page (it is cut)"))
}

fn known_device_type(bytes: &[u8]) -> bool {
    bytes
        .first()
        .is_some_and(|b| device_type_name(b & 0x1f) != "reserved")
}

fn is_vpd(bytes: &[u8], end: usize) -> bool {
    let body = bytes.get(4..end).unwrap_or_default();
    known_device_type(bytes)
        && match bytes.get(1) {
            None => false,
            // The list of pages begins with itself and ascends.
            Some(0) => body.first() == Some(&0) && body.is_sorted(),
            Some(&code) => page_name(code).is_some(),
        }
}

/// Whether a page whose end is missing shows by its content and the length claimed what it is.
fn has_page_form(bytes: &[u8], claimed: usize) -> bool {
    let text =
        |field: Option<&[u8]>| field.is_some_and(|f| f.iter().all(|b| *b == 0 || (0x20..0x7f).contains(b)));
    match bytes.get(1) {
        Some(0x00) => true,
        Some(0x80) => text(bytes.get(4..)),
        Some(0x83) => has_designators(bytes.get(4..).unwrap_or_default()),
        Some(0x86 | 0xb1) => claimed == 64,
        Some(0x89) => claimed == 572 && text(bytes.get(8..bytes.len().min(36))),
        Some(0xb0) => matches!(claimed, 16 | 64),
        // Presets of 64 bytes, most of them reserved.
        Some(0xb8) => claimed % 64 == 4 && 2 * bytes.iter().filter(|b| **b == 0).count() > bytes.len(),
        _ => false,
    }
}

/// Code set, type, a reserved byte, a length; the last one may be cut.
fn has_designators(mut list: &[u8]) -> bool {
    let mut whole = 0;
    while let Some((designator, used)) = Designator::parse(list) {
        let known = designator.code_set != "reserved" && designator.association != "reserved";
        if !known || designator.designator_type > 0x0a || list.get(2) != Some(&0) || used <= 4 {
            return false;
        }
        whole += usize::from(!designator.truncated);
        list = list.get(used..).unwrap_or_default();
    }
    whole > 0
}

fn is_inquiry(bytes: &[u8]) -> bool {
    let strings = bytes.get(8..32).unwrap_or_default();
    bytes.len() >= 36
        && known_device_type(bytes)
        && strings.iter().all(|b| *b == 0 || (0x20..0x7f).contains(b))
        && strings.iter().any(|b| *b > 0x20)
        && Inquiry::parse(bytes)
            .is_ok_and(|i| i.response_data_format <= 2 && i.version <= 8 && i.claimed_bytes >= 36)
}

fn is_sense(bytes: &[u8]) -> bool {
    let Ok(sense) = Sense::parse(bytes) else {
        return false;
    };
    let announced = 8 + usize::from(bytes.get(7).copied().unwrap_or_default());
    let reserved_is_zero = match sense.format {
        // A segment number of old, 0 today.
        Format::Fixed => bytes.get(1) == Some(&0),
        Format::Descriptor => bytes.get(5..7) == Some(&[0, 0]),
    };
    (8..=252).contains(&bytes.len()) && announced <= 252 && reserved_is_zero
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sector with these bytes at these offsets and a right checksum.
    fn sector_of(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0u8; 512];
        for (offset, part) in parts {
            bytes[*offset..offset + part.len()].copy_from_slice(part);
        }
        bytes[511] = bytes.iter().fold(0u8, |sum, b| sum.wrapping_sub(*b));
        bytes
    }

    fn kind(bytes: &[u8]) -> Option<Kind> {
        guess(bytes).ok().map(|(kind, _)| kind)
    }

    #[test]
    fn thresholds_with_filling_and_capabilities_are_no_attributes() {
        let slots: [(usize, &[u8]); 5] = [
            (0, &[0x10, 0]),
            (2, &[0x01, 0x33, 0xc8, 0xc8, 0xc8]),
            (14, &[0x03, 0x15]),
            (26, &[0x04]),
            (362, &[0x82, 0, 0xb4, 0x3c, 1, 0x7b, 3, 0, 1]),
        ];
        assert_eq!(kind(&sector_of(&slots)), Some(Kind::SmartThresholds));
    }

    #[test]
    fn attributes_without_flags_are_attributes() {
        let slots: [(usize, &[u8]); 4] = [
            (0, &[0x10, 0]),
            (2, &[0x94, 0, 0, 0x64, 0x64]),
            (14, &[0x95, 0, 0, 0x64, 0x64]),
            (26, &[0xc2, 0x22, 0, 0x4a, 0x2e, 0x1a]),
        ];
        assert_eq!(kind(&sector_of(&slots)), Some(Kind::SmartData));
    }

    #[test]
    fn an_sct_status_that_sums_to_zero_is_no_table() {
        let status = sector_of(&[(0, &[2, 0, 1, 2, 1]), (200, &[0x1d, 0x15, 0x23, 0x80, 0x25])]);
        assert_eq!(kind(&status), Some(Kind::SctStatus));
    }

    #[test]
    fn a_serial_number_page_is_no_inquiry() {
        let mut page = vec![0x0c, 0x80, 0, 0x20];
        page.extend(b"0000000000000000000000000000001\0");
        assert_eq!(kind(&page), Some(Kind::Vpd));
    }

    #[test]
    fn a_cut_page_is_known_by_its_form_only() {
        let mut page = vec![0, 0x83, 0, 0x20];
        page.extend([0x01, 0x03, 0, 8, 0x50, 0, 0, 0, 0, 0, 0, 1]);
        page.extend([0x02, 0x01, 0, 16, b'A', b'C', b'M', b'E']);
        assert_eq!(kind(&page), Some(Kind::Vpd));
        page[6] = 0x55;
        assert_eq!(kind(&page), None);
        let limits = |claimed| {
            let mut page = vec![0, 0xb0, 0, claimed];
            page.extend([1; 32]);
            kind(&page)
        };
        assert_eq!((limits(0x3c), limits(0x30)), (Some(Kind::Vpd), None));
    }

    #[test]
    fn attributes_with_a_wrong_checksum_must_look_like_those_of_drives() {
        let mut table = sector_of(&[
            (0, &[0x10, 0]),
            (2, &[0x01, 0x0b, 0, 0x64, 0x64]),
            (14, &[0x05, 0x33, 0, 0x64, 0x64]),
            (26, &[0xc2, 0x22, 0, 0x4a, 0x2e, 0x1a]),
            // Such an hour count no NVMe log has.
            (38, &[0xc5, 0x12, 0, 0x64, 0x64]),
            (134, &[0xc6, 0x10, 0, 0x64, 0x64]),
        ]);
        table[511] ^= 0x55;
        assert_eq!(kind(&table), Some(Kind::SmartData));
        let mut strange = table.clone();
        strange[4] = 0x77;
        assert_eq!(kind(&strange), None, "flags");
        let mut strange = table.clone();
        strange[60] = 1;
        assert_eq!(kind(&strange), None, "a slot without a number");
        table.resize(1024, 0);
        assert_eq!(kind(&table), None, "two sectors");
    }
}
