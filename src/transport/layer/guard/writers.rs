//! The commands that write, against a permit: every range in a CDB or parameter list is looked at, and one that is not
//! permitted refuses the whole command.

use super::{AtaFields, no_data};
use crate::permit::{BlockRange, Permit};
use crate::transport::Data;
use crate::wire::{be16, be32, be64};

const OUTSIDE: &str = "it would write outside what was permitted";

/// The verdict on a command that writes; `None` where it is none of those that a permit can allow.
pub(super) fn judge(cdb: &[u8], data: &Data, permit: &Permit) -> Option<Result<(), &'static str>> {
    let byte = |i: usize| cdb.get(i).copied().unwrap_or_default();
    let narrow = || u64::from(be32(cdb, 2).unwrap_or_default());
    let wide = || be64(cdb, 2).unwrap_or_default();
    Some(match (byte(0), cdb.len()) {
        // WRITE (10), WRITE (16)
        (0x2a, 10) => write(
            permit,
            byte(1),
            narrow(),
            u64::from(be16(cdb, 7).unwrap_or_default()),
            data,
        ),
        (0x8a, 16) => write(
            permit,
            byte(1),
            wide(),
            u64::from(be32(cdb, 10).unwrap_or_default()),
            data,
        ),
        // SYNCHRONIZE CACHE (10) and (16) only bring home what was written.
        (0x35, 10) | (0x91, 16) => no_data(data),
        (0x42, 10) => unmap(permit, cdb, data),
        (0x93, 16) => write_same(permit, cdb, data),
        (0x85, 16) => ata(permit, &AtaFields::from_cdb16(cdb), cdb, data)?,
        // A 28-bit FLUSH CACHE; DATA SET MANAGEMENT does not fit.
        (0xa1, 12) => {
            let fields = AtaFields::from_cdb12(cdb);
            match (fields.protocol, fields.command) {
                (3, 0xe7) => no_data(data),
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn write(permit: &Permit, flags: u8, first: u64, count: u64, data: &Data) -> Result<(), &'static str> {
    // WRPROTECT is no matter of ours; DPO and FUA may be.
    if flags & !0x18 != 0 {
        return Err("a field of this write is not understood");
    }
    let Data::Out(payload) = data else {
        return Err("a write needs data");
    };
    if count.checked_mul(u64::from(permit.block_bytes())) != Some(payload.len() as u64) {
        return Err("the data are not as long as the CDB says");
    }
    if !permit.may_write(BlockRange { first, count }) {
        return Err(OUTSIDE);
    }
    Ok(())
}

/// UNMAP (SBC-3, "UNMAP command"): without ANCHOR, the list exactly as long as both of its lengths say.
fn unmap(permit: &Permit, cdb: &[u8], data: &Data) -> Result<(), &'static str> {
    const ODD: &str = "the parameter list of this UNMAP is not well formed";
    let Data::Out(list) = data else { return Err(ODD) };
    if cdb.get(1..7).is_none_or(|rest| rest.iter().any(|b| *b != 0)) {
        return Err("a field of this UNMAP is not understood");
    }
    let announced = usize::from(be16(cdb, 7).unwrap_or_default());
    let data_length = usize::from(be16(list, 0).unwrap_or_default());
    let descriptors = usize::from(be16(list, 2).unwrap_or_default());
    let body = list.get(8..).unwrap_or_default();
    let fits = announced == list.len()
        && data_length + 2 == list.len()
        && descriptors == body.len()
        && !body.is_empty()
        && body.len().is_multiple_of(16);
    if !fits {
        return Err(ODD);
    }
    for entry in body.chunks_exact(16) {
        let range = BlockRange {
            first: be64(entry, 0).unwrap_or_default(),
            count: u64::from(be32(entry, 8).unwrap_or_default()),
        };
        if !permit.may_discard(range) {
            return Err(OUTSIDE);
        }
    }
    Ok(())
}

/// WRITE SAME (16) with UNMAP and a block of zeros (SBC-3, "WRITE SAME (16) command").
fn write_same(permit: &Permit, cdb: &[u8], data: &Data) -> Result<(), &'static str> {
    const UNMAP: u8 = 0x08;
    if cdb.get(1) != Some(&UNMAP) {
        return Err("a WRITE SAME that does not unmap would fill the disk");
    }
    let Data::Out(block) = data else {
        return Err("WRITE SAME needs one block of data");
    };
    if block.len() as u64 != u64::from(permit.block_bytes()) || block.iter().any(|b| *b != 0) {
        return Err("WRITE SAME may only carry one block of zeros");
    }
    // A count of 0 would mean up to the end, and is refused as an empty range.
    let range = BlockRange {
        first: be64(cdb, 2).unwrap_or_default(),
        count: u64::from(be32(cdb, 10).unwrap_or_default()),
    };
    if !permit.may_discard(range) {
        return Err(OUTSIDE);
    }
    Ok(())
}

/// FLUSH CACHE (EXT), and DATA SET MANAGEMENT with TRIM (ACS-4), in ATA PASS-THROUGH (16).
fn ata(permit: &Permit, ata: &AtaFields, cdb: &[u8], data: &Data) -> Option<Result<(), &'static str>> {
    match (ata.protocol, ata.command) {
        (3, 0xe7 | 0xea) => Some(no_data(data)),
        (6 | 11, 0x06) if !ata.from_device => Some(trim(permit, ata, cdb, data)),
        _ => None,
    }
}

fn trim(permit: &Permit, ata: &AtaFields, cdb: &[u8], data: &Data) -> Result<(), &'static str> {
    if !permit.allows_ata() {
        return Err("it was not shown that the drive counts its sectors as the host does");
    }
    let field = |i: usize| cdb.get(i).copied().unwrap_or_default();
    // One plain command: the length in blocks of 512 bytes, in COUNT or in the transport, to drive 0, asking for no registers.
    if field(1) >> 5 != 0 || !matches!(field(2), 0x06 | 0x07) || field(13) & 0x10 != 0 || field(15) != 0 {
        return Err("a field of this DATA SET MANAGEMENT is not understood");
    }
    let extend = field(1) & 1 == 1;
    let lba_is_zero = cdb.get(7..13).is_some_and(|lba| lba.iter().all(|b| *b == 0));
    if !extend || ata.feature != 1 || !lba_is_zero {
        return Err("a field of this DATA SET MANAGEMENT is not understood");
    }
    let Data::Out(payload) = data else {
        return Err("DATA SET MANAGEMENT needs its list of ranges");
    };
    if payload.is_empty() || usize::from(ata.count) * 512 != payload.len() {
        return Err("the list of ranges is not as long as COUNT says");
    }
    let mut any = false;
    for entry in payload.chunks_exact(8) {
        let Some(entry) = entry.first_chunk::<8>().map(|e| u64::from_le_bytes(*e)) else {
            continue;
        };
        let range = BlockRange {
            first: entry & 0xffff_ffff_ffff,
            count: entry >> 48,
        };
        if entry == 0 {
            continue;
        }
        if !permit.may_discard(range) {
            return Err(OUTSIDE);
        }
        any = true;
    }
    if any {
        Ok(())
    } else {
        Err("the list of ranges is empty")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Allowance, judge as judge_all};
    use super::*;
    use proptest::prelude::*;

    fn permit() -> Permit {
        let ranges = vec![
            BlockRange {
                first: 100,
                count: 50,
            },
            BlockRange {
                first: 1000,
                count: 70_000,
            },
        ];
        Permit::to_discard(512, ranges)
            .and_then(|p| {
                p.with_scratch(BlockRange {
                    first: 2000,
                    count: 100,
                })
            })
            .unwrap()
            .with_ata()
    }

    fn allowed(cdb: &[u8], data: &Data) -> bool {
        judge_all(cdb, data, Allowance::default(), Some(&permit())).is_ok()
    }

    fn unmap_of(ranges: &[(u64, u32)]) -> ([u8; 10], Data) {
        let mut list = Vec::new();
        list.extend((ranges.len() as u16 * 16 + 6).to_be_bytes());
        list.extend((ranges.len() as u16 * 16).to_be_bytes());
        list.extend([0; 4]);
        for (first, count) in ranges {
            list.extend(first.to_be_bytes());
            list.extend(count.to_be_bytes());
            list.extend([0; 4]);
        }
        let mut cdb = [0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        cdb[7..9].copy_from_slice(&(list.len() as u16).to_be_bytes());
        (cdb, Data::Out(list))
    }

    fn trim_of(entries: &[(u64, u64)]) -> ([u8; 16], Data) {
        let mut payload: Vec<u8> = entries
            .iter()
            .flat_map(|(first, count)| (first | count << 48).to_le_bytes())
            .collect();
        payload.resize(payload.len().div_ceil(512).max(1) * 512, 0);
        let blocks = (payload.len() / 512) as u8;
        let cdb = [0x85, 0x0d, 0x06, 0, 1, 0, blocks, 0, 0, 0, 0, 0, 0, 0x40, 0x06, 0];
        (cdb, Data::Out(payload))
    }

    #[test]
    fn ranges_within_pass_and_others_do_not() {
        for (ranges, good) in [
            (&[(100, 50)][..], true),
            (&[(100, 50), (1000, 70_000)], true),
            (&[(100, 51)], false),
            (&[(99, 1)], false),
            (&[(100, 50), (999, 1)], false),
            (&[(100, 0)], false),
        ] {
            let (cdb, data) = unmap_of(ranges);
            assert_eq!(allowed(&cdb, &data), good, "{ranges:?}");
        }
        for (entries, good) in [
            (&[(100, 50)][..], true),
            (&[(1000, 65_535), (66_535, 4465)], true),
            (&[(1000, 65_535), (66_535, 4466)], false),
            (&[(100, 0)], false),
            (&[(0, 0)], false),
            (&[(0, 1)], false),
        ] {
            let (cdb, data) = trim_of(entries);
            assert_eq!(allowed(&cdb, &data), good, "{entries:?}");
        }
        let write = |first: u32, count: u16| {
            let mut cdb = [0x2a, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            cdb[2..6].copy_from_slice(&first.to_be_bytes());
            cdb[7..9].copy_from_slice(&count.to_be_bytes());
            allowed(&cdb, &Data::Out(vec![7; usize::from(count) * 512]))
        };
        assert!(write(2000, 100));
        assert!(!write(2000, 101) && !write(1999, 1) && !write(100, 1) && !write(2000, 0));
        let same = |first: u64, count: u32, flags: u8, fill: u8| {
            let mut cdb = [0; 16];
            (cdb[0], cdb[1]) = (0x93, flags);
            cdb[2..10].copy_from_slice(&first.to_be_bytes());
            cdb[10..14].copy_from_slice(&count.to_be_bytes());
            allowed(&cdb, &Data::Out(vec![fill; 512]))
        };
        assert!(same(1000, 70_000, 8, 0));
        assert!(!same(1000, 70_001, 8, 0), "one block too many");
        assert!(!same(1000, 0, 8, 0), "0 means up to the end");
        assert!(!same(1000, 1, 0, 0), "without UNMAP it writes");
        assert!(!same(1000, 1, 8, 1), "not a block of zeros");
    }

    #[test]
    fn a_list_whose_length_is_told_otherwise_is_refused() {
        let (good, data) = trim_of(&[(100, 50)]);
        assert!(allowed(&good, &data));
        for (byte, value) in [
            (1, 0xed),
            (2, 0x00),
            (2, 0x01),
            (2, 0x02),
            (2, 0x16),
            (2, 0x26),
            (2, 0xe6),
            (13, 0x50),
            (15, 4),
        ] {
            let mut cdb = good;
            cdb[byte] = value;
            assert!(!allowed(&cdb, &data), "byte {byte} = {value:02x}");
        }
        let mut in_transport = good;
        in_transport[2] = 0x07;
        assert!(allowed(&in_transport, &data));
    }

    #[test]
    fn without_a_permit_or_the_same_count_nothing_passes() {
        let (cdb, data) = trim_of(&[(100, 50)]);
        let no_ata = Permit::to_discard(
            512,
            vec![BlockRange {
                first: 100,
                count: 50,
            }],
        )
        .unwrap();
        assert!(judge_all(&cdb, &data, Allowance::default(), Some(&no_ata)).is_err());
        assert!(judge_all(&cdb, &data, Allowance::default(), None).is_err());
        let (cdb, data) = unmap_of(&[(100, 50)]);
        assert!(judge_all(&cdb, &data, Allowance::default(), Some(&no_ata)).is_ok());
        assert!(judge_all(&cdb, &data, Allowance::default(), None).is_err());
        assert!(
            judge_all(
                &[0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                &Data::None,
                Allowance::default(),
                None
            )
            .is_err()
        );
    }

    proptest! {
        /// Whatever the bytes are, an UNMAP that passes names nothing outside.
        #[test]
        fn no_list_gets_by(lens in (0u16..200, 0u16..200, 0u16..200), body in prop::collection::vec(any::<u8>(), 0..160)) {
            let mut list = Vec::new();
            list.extend(lens.0.to_be_bytes());
            list.extend(lens.1.to_be_bytes());
            list.extend([0; 4]);
            list.extend(&body);
            let mut cdb = [0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            cdb[7..9].copy_from_slice(&lens.2.to_be_bytes());
            prop_assert!(!allowed(&cdb, &Data::Out(list)) || body.is_empty());
        }

        #[test]
        fn any_ranges_are_judged_one_by_one(ranges in prop::collection::vec((0u64..80_000, 0u32..80_000), 1..6)) {
            let inside = |first: u64, count: u64| count > 0 && ((first >= 100 && first + count <= 150) || (first >= 1000 && first + count <= 71_000));
            let (cdb, data) = unmap_of(&ranges);
            prop_assert_eq!(allowed(&cdb, &data), ranges.iter().all(|(f, c)| inside(*f, u64::from(*c))));
            let (cdb, data) = trim_of(&ranges.iter().map(|(f, c)| (*f, u64::from(c & 0xffff))).collect::<Vec<_>>());
            let nothing = |f: u64, c: u32| f == 0 && c & 0xffff == 0;
            let good = ranges.iter().all(|(f, c)| nothing(*f, *c) || inside(*f, u64::from(c & 0xffff)))
                && ranges.iter().any(|(f, c)| !nothing(*f, *c));
            prop_assert_eq!(allowed(&cdb, &data), good);
        }
    }
}
