//! Boot sectors: FAT has no signature at all, and BitLocker wears the clothes of FAT32 and NTFS.

use super::{Kind, Probe, Signature, foreign};
use crate::freemap::{FileSystem, ReadError};
use crate::wire::{le16, le32};

/// The identifiers that BitLocker puts into boot sectors that otherwise look like FAT32 (on removable disks), at byte 424.
const BITLOCKER: [[u8; 16]; 2] = [
    // 4967D63B-2E29-4AD8-8399-F6A339E3D001
    [
        0x3b, 0xd6, 0x67, 0x49, 0x29, 0x2e, 0xd8, 0x4a, 0x83, 0x99, 0xf6, 0xa3, 0x39, 0xe3, 0xd0, 0x01,
    ],
    // 92A84D3B-DD80-4D0E-9E4E-B1E3284EAED8
    [
        0x3b, 0x4d, 0xa8, 0x92, 0x80, 0xdd, 0x0e, 0x4d, 0x9e, 0x4e, 0xb1, 0xe3, 0x28, 0x4e, 0xae, 0xd8,
    ],
];

/// What a boot sector with a parameter block is of; `None` where it is none.
pub(in crate::freemap) fn boot_sector(sector: &[u8]) -> Option<&'static str> {
    classify(sector).map(|(what, _)| what)
}

fn classify(sector: &[u8]) -> Option<(&'static str, Kind)> {
    let file_system = |what, which| Some((what, Kind::FileSystem(which)));
    let foreign = |what| Some((what, Kind::Foreign));
    let bitlocker = BITLOCKER.iter().any(|id| sector.get(424..440) == Some(id));
    match sector.get(3..11)? {
        b"-FVE-FS-" => return foreign("BitLocker"),
        b"MSWIN4.1" if bitlocker => return foreign("BitLocker"),
        b"ReFS\0\0\0\0" => return foreign("ReFS"),
        b"NTFS    " => return file_system("NTFS", FileSystem::Ntfs),
        b"EXFAT   " => return file_system("exFAT", FileSystem::Exfat),
        _ => {}
    }
    // FAT (Microsoft FAT specification 1.03, "Boot Sector and BPB"): every field of the parameter block must make sense.
    let byte = |at: usize| sector.get(at).copied();
    let jump = matches!((byte(0)?, byte(2)?), (0xeb, 0x90) | (0xe9, _));
    let total = le16(sector, 19)? != 0 || le32(sector, 32)? != 0;
    let fat = le16(sector, 22)? != 0 || le32(sector, 36)? != 0;
    let fits = jump
        && matches!(le16(sector, 11)?, 512 | 1024 | 2048 | 4096)
        && byte(13)?.is_power_of_two()
        && le16(sector, 14)? > 0
        && (1..=4).contains(&byte(16)?)
        && matches!(byte(21)?, 0xf0 | 0xf8..)
        && total
        && fat;
    if fits {
        return file_system("FAT", FileSystem::Fat);
    }
    None
}

/// Adds what the boot sector says.
pub(super) fn find(probe: &Probe<'_>, found: &mut Vec<Signature>) -> Result<(), ReadError> {
    let Some(sector) = probe.bytes(0, 512)? else {
        return Ok(());
    };
    if let Some((what, kind)) = classify(&sector) {
        found.push(Signature {
            kind,
            ..foreign(what, 0)
        });
    }
    Ok(())
}
