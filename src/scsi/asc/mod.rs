//! Additional sense codes by name (SPC-6, "ASC and ASCQ assignments"): what disks, bridges and enclosures return.

mod high;
mod low;

/// What an ADDITIONAL SENSE CODE and its qualifier mean; `None` for codes that the table does not hold.
pub fn code_text(asc: u8, ascq: u8) -> Option<String> {
    let table = if asc < 0x30 { low::CODES } else { high::CODES };
    if let Ok(index) = table.binary_search_by_key(&(asc, ascq), |&(a, q, _)| (a, q)) {
        return table.get(index).map(|&(_, _, text)| text.to_owned());
    }
    match (asc, ascq) {
        (0x5d, 0x10..=0x6c) => impending_failure(ascq),
        (0x40, 0x80..) => Some(format!("Diagnostic failure on component {ascq:02x}h")),
        (0x4d, _) => Some(format!("Tagged overlapped commands (task tag {ascq:02x}h)")),
        (0x70, _) => Some(format!("Decompression exception short algorithm id {ascq:02x}h")),
        (0x80.., _) => Some(format!("Vendor specific code {asc:02x}h/{ascq:02x}h")),
        (_, 0x80..) => Some(format!(
            "Vendor specific qualifier {ascq:02x}h of code {asc:02x}h"
        )),
        _ => None,
    }
}

/// What is about to fail, by the high digit of the qualifiers of code 5Dh, from 1 on.
const FAILING: [&str; 6] = [
    "Hardware",
    "Controller",
    "Data channel",
    "Servo",
    "Spindle",
    "Firmware",
];

/// What it is seen by, by the low digit.
const SEEN_BY: [&str; 13] = [
    "general hard drive failure",
    "drive error rate too high",
    "data error rate too high",
    "seek error rate too high",
    "too many block reassigns",
    "access times too high",
    "start unit times too high",
    "channel parametrics",
    "controller detected",
    "throughput performance",
    "seek time performance",
    "spin-up retry count",
    "drive calibration retry count",
];

/// 5Dh/10h to 6Ch: a failure is predicted.
fn impending_failure(ascq: u8) -> Option<String> {
    let what = FAILING.get(usize::from(ascq >> 4).checked_sub(1)?)?;
    let cause = SEEN_BY.get(usize::from(ascq & 0x0f))?;
    Some(format!("{what} impending failure {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_without_doubles() {
        for table in [low::CODES, high::CODES] {
            assert!(table.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
        }
        assert!(low::CODES.iter().all(|row| row.0 < 0x30));
        assert!(high::CODES.iter().all(|row| row.0 >= 0x30));
    }

    #[test]
    fn qualifiers_in_ranges_are_named() {
        assert_eq!(
            code_text(0x00, 0x1d).as_deref(),
            Some("ATA pass through information available")
        );
        assert_eq!(
            code_text(0x40, 0x85).as_deref(),
            Some("Diagnostic failure on component 85h")
        );
        assert_eq!(code_text(0x24, 0x7f), None);
        assert_eq!(
            code_text(0x5d, 0x64).as_deref(),
            Some("Firmware impending failure too many block reassigns")
        );
        assert_eq!(code_text(0x5d, 0x6d), None);
        assert_eq!(
            code_text(0x5d, 0x1d).as_deref(),
            Some("Hardware impending failure power loss protection circuit")
        );
    }
}
