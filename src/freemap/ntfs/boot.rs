//! The boot sector: where everything is measured from.

use super::contradiction;
use crate::freemap::{ReadAt, Refusal};
use crate::wire;

const BOOT_BYTES: usize = 512;
const MAX_CLUSTER_BYTES: u64 = 2 << 20;
/// Where the Volume Shadow Copy service keeps its volume header.
const SHADOW_AT_BYTES: u64 = 0x1e00;
/// {3808876b-c176-4e48-b7ae-04046e6cc752} as it stands on disk.
const SHADOW_ID: [u8; 16] = [
    0x6b, 0x87, 0x08, 0x38, 0x76, 0xc1, 0x48, 0x4e, 0xb7, 0xae, 0x04, 0x04, 0x6e, 0x6c, 0xc7, 0x52,
];

/// What the boot sector says of the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    pub sector_bytes: u32,
    pub cluster_bytes: u32,
    /// Sectors that belong to clusters; the backup of the boot sector follows them.
    pub sectors: u64,
    pub clusters: u64,
    pub mft_lcn: u64,
    pub mirror_lcn: u64,
    pub record_bytes: u32,
}

impl Geometry {
    /// Where a cluster starts; clusters are within the volume, so this does not overflow.
    pub fn byte_of(&self, lcn: u64) -> u64 {
        lcn.saturating_mul(u64::from(self.cluster_bytes))
    }
}

/// Reads the boot sector of a volume.
pub(super) fn read(volume: &dyn ReadAt) -> Result<Geometry, Refusal> {
    if volume.size_bytes() < BOOT_BYTES as u64 {
        return Err(not_this("it is shorter than a sector"));
    }
    let mut boot = [0; BOOT_BYTES];
    volume.read_at(0, &mut boot)?;
    parse(&boot, volume.size_bytes())
}

fn not_this(why: &str) -> Refusal {
    Refusal::NotThis {
        what: "NTFS",
        why: why.to_owned(),
    }
}

fn parse(boot: &[u8; BOOT_BYTES], volume_bytes: u64) -> Result<Geometry, Refusal> {
    if boot.get(3..11) != Some(b"NTFS    ") {
        return Err(not_this("the boot sector has another name"));
    }
    let bad = |why: &str, at: u64| contradiction(format!("boot sector: {why}"), at);
    let le16 = |at| wire::le16(boot, at).unwrap_or_default();
    let le32 = |at| wire::le32(boot, at).unwrap_or_default();
    let le64 = |at| wire::le64(boot, at).unwrap_or_default();
    let byte = |at: usize| boot.get(at).copied().unwrap_or_default();
    if le16(510) != 0xaa55 {
        return Err(bad("it does not end with 55 AA", 510));
    }
    // What FAT keeps there is zero on NTFS: reserved sectors, FATs, root entries, small counts of sectors.
    for (at, value) in [
        (14, le16(14)),
        (16, u16::from(byte(16))),
        (17, le16(17)),
        (19, le16(19)),
        (22, le16(22)),
    ] {
        if value != 0 {
            return Err(bad("a field of FAT is not zero", at));
        }
    }
    if le32(32) != 0 {
        return Err(bad("a field of FAT is not zero", 32));
    }
    let sector_bytes = u64::from(le16(11));
    if !sector_bytes.is_power_of_two() || !(256..=4096).contains(&sector_bytes) {
        return Err(bad(&format!("sectors of {sector_bytes} bytes"), 11));
    }
    // Above 128 it is a negative exponent: F8h is 2^8 sectors.
    let sectors_per_cluster = match byte(13) {
        count @ 1..=128 if count.is_power_of_two() => u64::from(count),
        code @ 0xe1.. => 1u64 << (256 - u32::from(code)),
        code => return Err(bad(&format!("{code:#04x} sectors to a cluster"), 13)),
    };
    let cluster_bytes = sector_bytes.saturating_mul(sectors_per_cluster);
    if !(256..=MAX_CLUSTER_BYTES).contains(&cluster_bytes) {
        return Err(bad(&format!("clusters of {cluster_bytes} bytes"), 13));
    }
    let sectors = le64(40);
    if sectors
        .checked_mul(sector_bytes)
        .is_none_or(|end| end > volume_bytes)
    {
        return Err(bad(
            &format!("{sectors} sectors of {sector_bytes} bytes, and the volume has {volume_bytes} bytes"),
            40,
        ));
    }
    let clusters = sectors / sectors_per_cluster;
    let (mft_lcn, mirror_lcn) = (le64(48), le64(56));
    if mft_lcn == 0 || mft_lcn >= clusters {
        return Err(bad("the MFT lies outside the volume", 48));
    }
    if mirror_lcn == 0 || mirror_lcn >= clusters {
        return Err(bad("the mirror of the MFT lies outside the volume", 56));
    }
    // In clusters, or as a negative exponent of bytes: F6h is 2^10 bytes.
    let record_bytes = match byte(64) as i8 {
        count @ 1.. => cluster_bytes * u64::from(count.unsigned_abs()),
        code @ -31..=-1 => 1u64 << code.unsigned_abs(),
        _ => 0,
    };
    if !record_bytes.is_power_of_two() || !(512..=65536).contains(&record_bytes) {
        return Err(bad(&format!("MFT records of {record_bytes} bytes"), 64));
    }
    Ok(Geometry {
        sector_bytes: sector_bytes as u32,
        cluster_bytes: cluster_bytes as u32,
        sectors,
        clusters,
        mft_lcn,
        mirror_lcn,
        record_bytes: record_bytes as u32,
    })
}

/// Whether the volume has shadow copies (restore points, previous versions): the header that the service keeps in the
/// boot area names a catalog. Their old blocks stay where they were when the file system gave them up, so they lie in
/// clusters that `$Bitmap` calls free.
pub(super) fn has_shadow_copies(volume: &dyn ReadAt) -> Result<bool, Refusal> {
    let mut header = [0; 0x38];
    if volume.size_bytes() < SHADOW_AT_BYTES + header.len() as u64 {
        return Ok(false);
    }
    volume.read_at(SHADOW_AT_BYTES, &mut header)?;
    let catalog_at_bytes = wire::le64(&header, 0x30).unwrap_or_default();
    Ok(header.starts_with(&SHADOW_ID) && catalog_at_bytes != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> [u8; 512] {
        let mut boot = [0; 512];
        boot[3..11].copy_from_slice(b"NTFS    ");
        boot[11..13].copy_from_slice(&512u16.to_le_bytes());
        boot[13] = 8;
        boot[40..48].copy_from_slice(&8000u64.to_le_bytes());
        boot[48] = 4;
        boot[56] = 90;
        boot[64] = 0xf6;
        boot[510] = 0x55;
        boot[511] = 0xaa;
        boot
    }

    const VOLUME_BYTES: u64 = 8001 * 512;

    #[test]
    fn sizes_are_numbers_or_exponents() {
        let geometry = parse(&sample(), VOLUME_BYTES).unwrap();
        assert_eq!((geometry.cluster_bytes, geometry.record_bytes), (4096, 1024));
        assert_eq!(geometry.clusters, 1000);
        let mut boot = sample();
        boot[13] = 0xf4;
        boot[40..48].copy_from_slice(&(4096u64 * 100).to_le_bytes());
        let geometry = parse(&boot, 1 << 30).unwrap();
        assert_eq!((geometry.cluster_bytes, geometry.clusters), (2 << 20, 100));
        let mut boot = sample();
        boot[64] = 1;
        assert_eq!(parse(&boot, VOLUME_BYTES).unwrap().record_bytes, 4096);
    }

    #[test]
    fn nonsense_is_refused() {
        for (at, value) in [
            (12, 3),
            (11, 1),
            (13, 3),
            (13, 0),
            (13, 0x81),
            (13, 0xf3),
            (14, 1),
            (16, 2),
            (32, 1),
            (46, 1),
            (48, 0),
            (52, 1),
            (60, 1),
            (64, 0),
            (64, 3),
            (64, 0x80),
            (64, 0xf0 - 1),
            (510, 0),
        ] {
            let mut boot = sample();
            boot[at] = value;
            let found = parse(&boot, VOLUME_BYTES);
            assert!(
                matches!(found, Err(Refusal::Contradiction { .. })),
                "{at} {value:#x}: {found:?}"
            );
        }
        assert!(parse(&sample(), 8000 * 512 - 1).is_err());
        let mut boot = sample();
        boot[3] = b'M';
        assert!(matches!(parse(&boot, VOLUME_BYTES), Err(Refusal::NotThis { .. })));
    }
}
