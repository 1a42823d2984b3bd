//! Volumes by hand: 64 clusters of 1 KiB, each of which holds one MFT record.

use super::*;
use crate::freemap::ReadError;

const CLUSTER: usize = 1024;
const CLUSTERS: u64 = 64;
const MFT_LCN: u64 = 8;
const RECORDS: u64 = 24;
const MIRROR_LCN: u64 = 34;
const LOG_LCN: u64 = 40;
const LOG_CLUSTERS: u64 = 8;
const BITMAP_LCN: u64 = 48;
const MFT_BITMAP_LCN: u64 = 49;
const DATA_LCN: u64 = 50;
/// The last record that the plain volume uses.
const FILE: u64 = 16;

const STANDARD_INFORMATION: u32 = 0x10;
const SPARSE: u16 = 0x8000;

struct Bytes(Vec<u8>);

impl ReadAt for Bytes {
    fn size_bytes(&self) -> u64 {
        self.0.as_slice().size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.0.as_slice().read_at(offset_bytes, buffer)
    }
}

/// One attribute record; its instance is its kind, so that a record may have one of each.
fn attribute(kind: u32, name: &str, flags: u16, body_at: usize, nonresident: bool) -> Vec<u8> {
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut out = vec![0; body_at];
    out[0..4].copy_from_slice(&kind.to_le_bytes());
    out[8] = nonresident.into();
    out[9] = (name.len() / 2) as u8;
    out[10..12].copy_from_slice(&(body_at as u16).to_le_bytes());
    out[12..14].copy_from_slice(&flags.to_le_bytes());
    out[14..16].copy_from_slice(&(kind as u16).to_le_bytes());
    out.extend(name);
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

fn finished(mut out: Vec<u8>) -> Vec<u8> {
    out.resize(out.len().next_multiple_of(8), 0);
    let len = out.len() as u32;
    out[4..8].copy_from_slice(&len.to_le_bytes());
    out
}

fn resident(kind: u32, value: &[u8]) -> Vec<u8> {
    let mut out = attribute(kind, "", 0, 24, false);
    out[16..20].copy_from_slice(&(value.len() as u32).to_le_bytes());
    out[20..22].copy_from_slice(&24u16.to_le_bytes());
    out.extend(value);
    finished(out)
}

struct Stretch<'a> {
    kind: u32,
    name: &'a str,
    flags: u16,
    lowest: u64,
    /// Clusters and one byte of distance; none for a hole.
    runs: &'a [(u8, Option<i8>)],
    /// Of the whole attribute, in the first stretch.
    clusters: u64,
    data_bytes: u64,
    solid: u64,
}

const NOTHING: Stretch<'static> = Stretch {
    kind: DATA,
    name: "",
    flags: 0,
    lowest: 0,
    runs: &[],
    clusters: 0,
    data_bytes: 0,
    solid: 0,
};

impl Stretch<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut out = attribute(self.kind, self.name, self.flags, 72, true);
        let put =
            |out: &mut Vec<u8>, at: usize, value: u64| out[at..at + 8].copy_from_slice(&value.to_le_bytes());
        let length: u64 = self.runs.iter().map(|(clusters, _)| u64::from(*clusters)).sum();
        put(&mut out, 16, self.lowest);
        put(&mut out, 24, (self.lowest + length).wrapping_sub(1));
        let pairs_at = out.len() as u16;
        out[32..34].copy_from_slice(&pairs_at.to_le_bytes());
        if self.lowest == 0 {
            put(&mut out, 40, self.clusters * CLUSTER as u64);
            put(&mut out, 48, self.data_bytes);
            put(&mut out, 56, self.data_bytes);
            put(&mut out, 64, self.solid * CLUSTER as u64);
        }
        for (clusters, delta) in self.runs {
            match delta {
                Some(delta) => out.extend([0x11, *clusters, *delta as u8]),
                None => out.extend([0x01, *clusters]),
            }
        }
        out.push(0);
        finished(out)
    }
}

/// An attribute in clusters in a row.
fn mapped(kind: u32, lcn: u64, clusters: u64, data_bytes: u64) -> Vec<u8> {
    Stretch {
        kind,
        runs: &[(clusters as u8, Some(lcn as i8))],
        clusters,
        data_bytes,
        ..NOTHING
    }
    .bytes()
}

fn file_name(parent: u64, name: &str) -> Vec<u8> {
    let mut value = vec![0; 66];
    value[0..8].copy_from_slice(&(parent | 1 << 48).to_le_bytes());
    value[64] = name.encode_utf16().count() as u8;
    value.extend(name.encode_utf16().flat_map(u16::to_le_bytes));
    resident(record::FILE_NAME, &value)
}

fn list_entry(kind: u32, lowest: u64, number: u64) -> Vec<u8> {
    let mut out = vec![0; 32];
    out[0..4].copy_from_slice(&kind.to_le_bytes());
    out[4] = 32;
    out[7] = 26;
    out[8..16].copy_from_slice(&lowest.to_le_bytes());
    out[16..24].copy_from_slice(&(number | 1 << 48).to_le_bytes());
    out[24..26].copy_from_slice(&(kind as u16).to_le_bytes());
    out
}

/// Protects a record or page as it goes to disk.
fn protect(bytes: &mut [u8], at: usize) {
    let steps = bytes.len() / 512;
    bytes[4..6].copy_from_slice(&(at as u16).to_le_bytes());
    bytes[6..8].copy_from_slice(&(steps as u16 + 1).to_le_bytes());
    bytes[at..at + 2].copy_from_slice(&7u16.to_le_bytes());
    for step in 0..steps {
        let tail = step * 512 + 510;
        let old = [bytes[tail], bytes[tail + 1]];
        bytes[at + 2 + 2 * step..at + 4 + 2 * step].copy_from_slice(&old);
        bytes[tail..tail + 2].copy_from_slice(&7u16.to_le_bytes());
    }
}

fn file_record(number: u64, base: u64, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![0; 56];
    out[0..4].copy_from_slice(b"FILE");
    out[16] = 1;
    out[20] = 56;
    out[22] = 1;
    out[28..32].copy_from_slice(&(CLUSTER as u32).to_le_bytes());
    out[32..40].copy_from_slice(&base.to_le_bytes());
    out[44..48].copy_from_slice(&(number as u32).to_le_bytes());
    out.extend(attributes.concat());
    out.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let used = out.len() as u32;
    out[24..28].copy_from_slice(&used.to_le_bytes());
    out.resize(CLUSTER, 0);
    protect(&mut out, 48);
    out
}

struct Volume(Vec<u8>);

impl Volume {
    /// The system files, and a file of three clusters.
    fn plain() -> Self {
        let mut volume = Self(vec![0; CLUSTERS as usize * CLUSTER + 512]);
        let boot = &mut volume.0;
        boot[3..11].copy_from_slice(b"NTFS    ");
        boot[11..13].copy_from_slice(&512u16.to_le_bytes());
        boot[13] = 2;
        boot[40..48].copy_from_slice(&(CLUSTERS * 2).to_le_bytes());
        boot[48..56].copy_from_slice(&MFT_LCN.to_le_bytes());
        boot[56..64].copy_from_slice(&MIRROR_LCN.to_le_bytes());
        boot[64] = 1;
        boot[510..512].copy_from_slice(&[0x55, 0xaa]);
        let at = LOG_LCN as usize * CLUSTER;
        volume.0[at..at + LOG_CLUSTERS as usize * CLUSTER].fill(0xff);
        let cluster = CLUSTER as u64;
        volume.record(
            0,
            &[
                mapped(DATA, MFT_LCN, RECORDS, RECORDS * cluster),
                mapped(BITMAP, MFT_BITMAP_LCN, 1, 8),
            ],
        );
        volume.record(1, &[mapped(DATA, MIRROR_LCN, 4, 4 * cluster)]);
        volume.record(2, &[mapped(DATA, LOG_LCN, LOG_CLUSTERS, LOG_CLUSTERS * cluster)]);
        volume.information((3, 1), 0);
        for number in [4, 5, 9, 10, 11] {
            volume.record(number, &[resident(STANDARD_INFORMATION, &[0; 48])]);
        }
        volume.record(6, &[mapped(DATA, BITMAP_LCN, 1, 8)]);
        volume.record(7, &[mapped(DATA, 0, 8, 8 * cluster)]);
        let bad = Stretch {
            name: "$Bad",
            runs: &[(CLUSTERS as u8, None)],
            clusters: CLUSTERS,
            ..NOTHING
        };
        volume.record(8, &[bad.bytes()]);
        volume.record(FILE, &[file_name(5, "a file"), mapped(DATA, DATA_LCN, 3, 3000)]);
        volume.use_clusters(0, 32);
        volume.use_clusters(MIRROR_LCN, 4);
        volume.use_clusters(LOG_LCN, 13);
        volume
    }

    fn information(&mut self, version: (u8, u8), flags: u16) {
        let mut value = [0; 12];
        (value[8], value[9]) = version;
        value[10..12].copy_from_slice(&flags.to_le_bytes());
        self.record(3, &[resident(VOLUME_INFORMATION, &value)]);
    }

    fn record(&mut self, number: u64, attributes: &[Vec<u8>]) {
        self.extension(number, 0, attributes);
    }

    fn extension(&mut self, number: u64, base: u64, attributes: &[Vec<u8>]) {
        let base = if base == 0 { 0 } else { base | 1 << 48 };
        let record = file_record(number, base, attributes);
        self.put(MFT_LCN + number, &record);
        if number < 4 {
            self.put(MIRROR_LCN + number, &record);
        }
        self.0[MFT_BITMAP_LCN as usize * CLUSTER + number as usize / 8] |= 1 << (number % 8);
    }

    fn put(&mut self, lcn: u64, bytes: &[u8]) {
        let at = lcn as usize * CLUSTER;
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn use_clusters(&mut self, lcn: u64, count: u64) {
        for lcn in lcn..lcn + count {
            self.0[BITMAP_LCN as usize * CLUSTER + lcn as usize / 8] |= 1 << (lcn % 8);
        }
    }

    fn free_cluster(&mut self, lcn: u64) {
        self.0[BITMAP_LCN as usize * CLUSTER + lcn as usize / 8] &= !(1 << (lcn % 8));
    }

    /// Two restart pages.
    fn journal(&mut self, pages: [(u64, u16, u16); 2], major: u16) {
        for (index, (lsn, in_use, flags)) in pages.into_iter().enumerate() {
            let mut page = vec![0; CLUSTER];
            page[0..4].copy_from_slice(b"RSTR");
            page[16..20].copy_from_slice(&(CLUSTER as u32).to_le_bytes());
            page[24] = 64;
            page[26] = 1;
            page[28..30].copy_from_slice(&major.to_le_bytes());
            page[64..72].copy_from_slice(&lsn.to_le_bytes());
            page[72] = 1;
            page[76..78].copy_from_slice(&in_use.to_le_bytes());
            page[78..80].copy_from_slice(&flags.to_le_bytes());
            protect(&mut page, 30);
            self.put(LOG_LCN + index as u64, &page);
        }
    }

    fn free_map(self) -> Result<FreeMap, Refusal> {
        free_map(&Bytes(self.0))
    }

    fn refused(self) -> String {
        match self.free_map() {
            Err(refusal @ Refusal::Contradiction { .. }) => refusal.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn unclean(self) -> String {
        match self.free_map() {
            Err(refusal @ Refusal::NotClean { .. }) => refusal.to_string(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_nobody_has_is_free() {
    let map = Volume::plain().free_map().unwrap();
    let extent = |lcn: u64, clusters: u64| Extent {
        start_bytes: lcn * CLUSTER as u64,
        len_bytes: clusters * CLUSTER as u64,
    };
    assert_eq!(map.free, [extent(32, 2), extent(38, 2), extent(53, 11)]);
    assert_eq!((map.name.as_str(), map.owners_checked), ("NTFS 3.1", 13));
    assert_eq!(map.covered_bytes, CLUSTERS * CLUSTER as u64);
}

#[test]
fn marked_and_belonging_to_nobody_stays_used() {
    let mut volume = Volume::plain();
    volume.use_clusters(53, 11);
    assert_eq!(volume.free_map().unwrap().free.len(), 2);
}

#[test]
fn a_cluster_in_use_that_the_bitmap_calls_free_is_refused() {
    for lcn in [
        0,
        9,
        MIRROR_LCN,
        LOG_LCN + 7,
        BITMAP_LCN,
        MFT_BITMAP_LCN,
        DATA_LCN,
        DATA_LCN + 2,
    ] {
        let mut volume = Volume::plain();
        volume.free_cluster(lcn);
        assert!(volume.refused().contains("$Bitmap says it is free"), "{lcn}");
    }
}

#[test]
fn a_cluster_with_two_owners_is_refused() {
    let mut volume = Volume::plain();
    volume.record(17, &[mapped(DATA, DATA_LCN + 2, 1, 10)]);
    assert!(volume.refused().contains("belongs to something else"));
}

#[test]
fn records_and_their_bitmap_have_to_agree() {
    let mut volume = Volume::plain();
    volume.0[MFT_BITMAP_LCN as usize * CLUSTER + 2] = 0;
    assert!(volume.refused().contains("the bitmap of the MFT says it is free"));
    let mut volume = Volume::plain();
    volume.0[(MFT_LCN + FILE) as usize * CLUSTER + 22] = 0;
    assert!(volume.refused().contains("not in use"));
    let mut volume = Volume::plain();
    volume.0[MFT_BITMAP_LCN as usize * CLUSTER + 2] |= 2;
    assert!(volume.refused().contains("no file record"));
    let mut volume = Volume::plain();
    volume.0[MFT_BITMAP_LCN as usize * CLUSTER + 3] |= 1;
    assert!(volume.refused().contains("past the end"));
}

#[test]
fn torn_and_misplaced_records_are_refused() {
    let at = (MFT_LCN + FILE) as usize * CLUSTER;
    for (offset, value, why) in [
        (1022, 9, "another write"),
        (44, 17, "number of another"),
        (28, 1, "another size"),
        (24, 0x48, "cut off"),
        (20, 60, "in an impossible place"),
    ] {
        let mut volume = Volume::plain();
        volume.0[at + offset] = value;
        let found = volume.refused();
        assert!(found.contains(why), "{offset}: {found}");
    }
    let mut volume = Volume::plain();
    volume.0[at] = b'B';
    assert!(volume.refused().contains("no file record"));
}

#[test]
fn the_mirror_has_to_agree() {
    let mut volume = Volume::plain();
    volume.0[(MIRROR_LCN + 1) as usize * CLUSTER + 100] ^= 1;
    assert!(volume.refused().contains("$MFTMirr"));
    let mut volume = Volume::plain();
    volume.0[56] += 1;
    assert!(volume.refused().contains("$MFTMirr"));
}

#[test]
fn what_is_not_clean_is_refused() {
    for flags in [0x0001, 0x0002, 0x0004, 0x0010, 0x4000, 0x8000] {
        let mut volume = Volume::plain();
        volume.information((3, 1), flags);
        volume.unclean();
    }
    let mut volume = Volume::plain();
    volume.information((3, 0), 0x0080);
    assert_eq!(volume.free_map().unwrap().name, "NTFS 3.0");
    let mut volume = Volume::plain();
    volume.information((4, 0), 0);
    assert!(matches!(volume.free_map(), Err(Refusal::Unsupported { .. })));
}

#[test]
fn the_newest_restart_page_decides() {
    let journal = |pages, major| {
        let mut volume = Volume::plain();
        volume.journal(pages, major);
        volume
    };
    for pages in [
        [(5, 0xffff, 0), (5, 0xffff, 0)],
        [(5, 0, 2), (5, 0, 2)],
        [(4, 0, 0), (5, 0, 2)],
    ] {
        journal(pages, 1).free_map().unwrap();
    }
    for pages in [
        [(5, 0, 0), (5, 0, 0)],
        [(5, 0, 2), (5, 0, 0)],
        [(5, 0, 2), (6, 0, 0)],
        [(5, 3, 2), (5, 3, 2)],
    ] {
        journal(pages, 1).unclean();
    }
    assert!(
        journal([(5, 0, 2), (5, 0, 2)], 2)
            .unclean()
            .contains("fast startup")
    );
    let mut volume = Volume::plain();
    volume.0[LOG_LCN as usize * CLUSTER + 5000] = 0;
    assert!(volume.unclean().contains("no restart page"));
}

#[test]
fn hibernation_is_refused() {
    for (head, is_asleep) in [
        (*b"HIBR", true),
        (*b"hibr", true),
        (*b"RSTR", true),
        (*b"wake", false),
        ([0; 4], false),
    ] {
        for parent in [5, FILE] {
            let mut volume = Volume::plain();
            volume.record(
                17,
                &[file_name(parent, "HIBERFIL.sys"), mapped(DATA, 55, 1, 1000)],
            );
            volume.use_clusters(55, 1);
            volume.put(55, &head);
            if is_asleep && parent == 5 {
                assert!(volume.unclean().contains("hibernates"));
            } else {
                volume.free_map().unwrap();
            }
        }
    }
}

#[test]
fn shadow_copies_are_refused() {
    let id = [
        0x6b, 0x87, 0x08, 0x38, 0x76, 0xc1, 0x48, 0x4e, 0xb7, 0xae, 0x04, 0x04, 0x6e, 0x6c, 0xc7, 0x52,
    ];
    let mut volume = Volume::plain();
    volume.0[0x1e00..0x1e10].copy_from_slice(&id);
    let without = Volume(volume.0.clone());
    without.free_map().unwrap();
    volume.0[0x1e32] = 1;
    assert!(matches!(volume.free_map(), Err(Refusal::Unsupported { .. })));
    let mut volume = Volume::plain();
    let name = "{01234567-0123-0123-0123-012345678901}{3808876B-c176-4e48-b7ae-04046e6cc752}";
    volume.record(17, &[file_name(9, name)]);
    assert!(matches!(volume.free_map(), Err(Refusal::Unsupported { .. })));
}

/// A file whose data is in two extension records; `second` is the lowest VCN of the second.
fn in_stretches(second: u64, entries: &[Vec<u8>]) -> Volume {
    let mut volume = Volume::plain();
    volume.record(
        FILE,
        &[
            resident(STANDARD_INFORMATION, &[0; 48]),
            resident(record::ATTRIBUTE_LIST, &entries.concat()),
        ],
    );
    let first = Stretch {
        flags: SPARSE,
        runs: &[(2, Some(50)), (4, None)],
        clusters: 7,
        data_bytes: 7000,
        solid: 3,
        ..NOTHING
    };
    volume.extension(17, FILE, &[first.bytes()]);
    let last = Stretch {
        flags: SPARSE,
        lowest: second,
        runs: &[(1, Some(52))],
        ..NOTHING
    };
    volume.extension(18, FILE, &[last.bytes()]);
    volume
}

#[test]
fn stretches_have_to_be_complete() {
    let entries = |second| {
        [
            list_entry(STANDARD_INFORMATION, 0, FILE),
            list_entry(DATA, 0, 17),
            list_entry(DATA, second, 18),
        ]
    };
    in_stretches(6, &entries(6)).free_map().unwrap();
    assert!(in_stretches(5, &entries(5)).refused().contains("missing"));
    // One more than no list names does no harm, one that is named and not there may.
    in_stretches(6, &entries(6)[..2]).free_map().unwrap();
    assert!(in_stretches(6, &entries(7)).refused().contains("not there"));
    let mut volume = in_stretches(6, &entries(6));
    volume.put(MFT_LCN + 18, &[0; CLUSTER]);
    volume.0[MFT_BITMAP_LCN as usize * CLUSTER + 2] &= !4;
    assert!(volume.refused().contains("not there"));
    let mut volume = in_stretches(6, &entries(6)[..2]);
    volume.put(MFT_LCN + 18, &[0; CLUSTER]);
    volume.0[MFT_BITMAP_LCN as usize * CLUSTER + 2] &= !4;
    assert!(volume.refused().contains("allocated size"));
}

#[test]
fn sizes_have_to_fit_the_runs() {
    let stretch = |change: fn(&mut Stretch)| {
        let mut volume = Volume::plain();
        let mut stretch = Stretch {
            flags: SPARSE,
            runs: &[(2, Some(50)), (4, None), (1, Some(2))],
            clusters: 7,
            data_bytes: 7000,
            solid: 3,
            ..NOTHING
        };
        change(&mut stretch);
        volume.record(FILE, &[stretch.bytes()]);
        volume
    };
    stretch(|_| ()).free_map().unwrap();
    assert!(stretch(|s| s.flags = 0).refused().contains("hole"));
    assert!(stretch(|s| s.flags = 2).refused().contains("unknown flags"));
    assert!(stretch(|s| s.solid = 2).refused().contains("compressed size"));
    assert!(stretch(|s| s.clusters = 8).refused().contains("allocated size"));
    assert!(
        stretch(|s| s.data_bytes = 7169)
            .refused()
            .contains("impossible sizes")
    );
    assert!(
        stretch(|s| s.runs = &[(2, Some(50)), (5, Some(12))])
            .refused()
            .contains("past the end")
    );
}

#[test]
fn the_bitmap_goes_to_the_end_and_not_further() {
    let mut volume = Volume::plain();
    volume.record(6, &[mapped(DATA, BITMAP_LCN, 1, 7)]);
    assert!(volume.refused().contains("too short"));
    let mut volume = Volume::plain();
    volume.record(6, &[mapped(DATA, BITMAP_LCN, 1, 16)]);
    assert!(volume.refused().contains("past the end"));
}

#[test]
fn a_volume_that_is_cut_off_is_refused() {
    for len in [0, 100, 511, 512, 5000, 20_000, CLUSTERS as usize * CLUSTER - 1] {
        let mut volume = Volume::plain();
        volume.0.truncate(len);
        assert!(volume.free_map().is_err(), "{len}");
    }
    let mut volume = Volume::plain();
    volume.0.truncate(CLUSTERS as usize * CLUSTER);
    volume.free_map().unwrap();
}

/// Every byte of the metadata changed: no panic, and never free what is used.
#[test]
fn no_single_byte_makes_a_used_cluster_free() {
    let volume = Volume::plain();
    let sound = free_map(&Bytes(volume.0.clone())).unwrap();
    let mut bytes = Bytes(volume.0);
    for at in 0..bytes.0.len() {
        let old = bytes.0[at];
        let in_log = (LOG_LCN as usize * CLUSTER..BITMAP_LCN as usize * CLUSTER).contains(&at);
        if in_log || old == 0 && at % 61 != 0 {
            continue;
        }
        for new in [!old, old ^ 1 << (at % 8)] {
            bytes.0[at] = new;
            if let Ok(map) = free_map(&bytes) {
                for extent in &map.free {
                    let within = sound
                        .free
                        .iter()
                        .any(|s| s.start_bytes <= extent.start_bytes && extent.end_bytes() <= s.end_bytes());
                    assert!(within, "byte {at} as {new:#x}: {extent:?}");
                }
            }
        }
        bytes.0[at] = old;
    }
}
