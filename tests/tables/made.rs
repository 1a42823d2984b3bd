//! Volumes by their own makers, and readers simple enough to know their answers.

use std::fs;
use std::path::{Path, PathBuf};

use drivethru::freemap::survey::{Reader, Readers};
use drivethru::freemap::{Extent, FileSystem, FreeMap, ReadAt, Refusal};
use drivethru::wire::{le16, le32, le64};

use crate::support::{Rng, run, sparse};

/// What a partition of a random disk holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Zero,
    Noise,
    Ext,
    Fat,
    Ntfs,
    Exfat,
    Swap,
    Luks,
    /// ext with the remains of an NTFS boot sector.
    Both,
}

impl Content {
    pub fn random(rng: &mut Rng) -> Self {
        *rng.pick(&[
            Self::Zero,
            Self::Noise,
            Self::Ext,
            Self::Ext,
            Self::Ext,
            Self::Fat,
            Self::Fat,
            Self::Ntfs,
            Self::Exfat,
            Self::Swap,
            Self::Luks,
            Self::Both,
        ])
    }

    /// Whether a reader maps it.
    pub fn mapped(self) -> bool {
        matches!(self, Self::Ext | Self::Fat | Self::Ntfs | Self::Exfat)
    }

    /// Makes it in a file.
    pub fn make(self, path: &Path, rng: &mut Rng) -> Result<(), String> {
        let name = path.to_str().ok_or("a strange name")?;
        match self {
            Self::Zero => {}
            Self::Noise => put(path, 0, &rng.bytes(4096))?,
            Self::Ext => drop(run("mkfs.ext4", &["-q", "-F", name], &[0])?),
            Self::Fat => drop(run("mkfs.fat", &["--mbr=n", name], &[0])?),
            Self::Ntfs => drop(run(
                "mkntfs",
                &[
                    "-q", "-F", "-Q", "-s", "512", "-p", "0", "-H", "0", "-S", "0", name,
                ],
                &[0],
            )?),
            Self::Exfat => drop(run("mkfs.exfat", &[name], &[0])?),
            Self::Swap => drop(run("mkswap", &[name], &[0])?),
            Self::Luks => put(path, 0, b"LUKS\xba\xbe\0\x02")?,
            Self::Both => {
                run("mkfs.ext4", &["-q", "-F", name], &[0])?;
                put(path, 3, b"NTFS    ")?;
            }
        }
        Ok(())
    }
}

fn put(path: &Path, at: u64, bytes: &[u8]) -> Result<(), String> {
    use std::os::unix::fs::FileExt;
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|f| f.write_all_at(bytes, at))
        .map_err(|e| e.to_string())
}

/// One maker of signatures, and what we and `blkid` call what it makes.
pub struct Made {
    pub what: &'static str,
    pub programs: &'static [&'static str],
    size_bytes: u64,
    /// `{}` is the file.
    arguments: &'static [&'static str],
    pub names: &'static [&'static str],
    /// Empty where blkid does not say.
    pub blkid: &'static str,
}

const MIB: u64 = 1 << 20;

const fn made(
    what: &'static str,
    programs: &'static [&'static str],
    size_bytes: u64,
    arguments: &'static [&'static str],
    names: &'static [&'static str],
    blkid: &'static str,
) -> Made {
    Made {
        what,
        programs,
        size_bytes,
        arguments,
        names,
        blkid,
    }
}

pub const MAKERS: &[Made] = &[
    made(
        "ext2",
        &["mkfs.ext2"],
        8 * MIB,
        &["-q", "-F", "{}"],
        &["ext2/3/4"],
        "ext2",
    ),
    made(
        "ext4",
        &["mkfs.ext4"],
        8 * MIB,
        &["-q", "-F", "{}"],
        &["ext2/3/4"],
        "ext4",
    ),
    made(
        "ext4 of 64 KiB blocks",
        &["mkfs.ext4"],
        64 * MIB,
        &["-q", "-F", "-b", "65536", "{}"],
        &["ext2/3/4"],
        "ext4",
    ),
    made(
        "a journal",
        &["mkfs.ext4"],
        8 * MIB,
        &["-q", "-F", "-O", "journal_dev", "{}"],
        &["the journal of another ext volume"],
        "jbd",
    ),
    made(
        "FAT12",
        &["mkfs.fat"],
        2 * MIB,
        &["-F", "12", "{}"],
        &["FAT"],
        "vfat",
    ),
    made(
        "FAT16",
        &["mkfs.fat"],
        16 * MIB,
        &["-F", "16", "{}"],
        &["FAT"],
        "vfat",
    ),
    made(
        "FAT32",
        &["mkfs.fat"],
        40 * MIB,
        &["-F", "32", "{}"],
        &["FAT"],
        "vfat",
    ),
    made(
        "FAT of 4096-byte sectors",
        &["mkfs.fat"],
        40 * MIB,
        &["-S", "4096", "{}"],
        &["FAT"],
        "vfat",
    ),
    made("exFAT", &["mkfs.exfat"], 8 * MIB, &["{}"], &["exFAT"], "exfat"),
    made(
        "NTFS",
        &["mkntfs"],
        8 * MIB,
        &["-q", "-F", "-Q", "{}"],
        &["NTFS"],
        "ntfs",
    ),
    made("swap", &["mkswap"], 8 * MIB, &["{}"], &["swap"], "swap"),
    made(
        "swap of 64 KiB pages",
        &["mkswap"],
        8 * MIB,
        &["-p", "65536", "{}"],
        &["swap"],
        "",
    ),
    made(
        "btrfs",
        &["mkfs.btrfs"],
        128 * MIB,
        &["-q", "{}"],
        &["btrfs"],
        "btrfs",
    ),
    made("XFS", &["mkfs.xfs"], 320 * MIB, &["-q", "{}"], &["XFS"], "xfs"),
    made("F2FS", &["mkfs.f2fs"], 64 * MIB, &["-q", "{}"], &["F2FS"], "f2fs"),
    made("JFS", &["mkfs.jfs"], 32 * MIB, &["-q", "{}"], &["JFS"], "jfs"),
    made(
        "ReiserFS",
        &["mkreiserfs"],
        64 * MIB,
        &["-q", "-f", "-f", "{}"],
        &["ReiserFS"],
        "reiserfs",
    ),
    made(
        "NILFS2",
        &["mkfs.nilfs2"],
        160 * MIB,
        &["-q", "{}"],
        &["NILFS2"],
        "nilfs2",
    ),
    made("UDF", &["mkudffs"], 16 * MIB, &["{}"], &["UDF"], "udf"),
    made(
        "UDF of 4096-byte blocks",
        &["mkudffs"],
        16 * MIB,
        &["-b", "4096", "{}"],
        &["UDF"],
        "udf",
    ),
    made("Minix", &["mkfs.minix"], 4 * MIB, &["{}"], &["Minix"], "minix"),
    made(
        "Minix 3",
        &["mkfs.minix"],
        4 * MIB,
        &["-3", "{}"],
        &["Minix"],
        "minix",
    ),
    made(
        "cramfs",
        &["mkfs.cramfs"],
        0,
        &["/etc/apt", "{}"],
        &["cramfs"],
        "cramfs",
    ),
    made(
        "squashfs",
        &["mksquashfs"],
        0,
        &["/etc/apt", "{}", "-quiet", "-no-progress", "-noappend"],
        &["squashfs"],
        "squashfs",
    ),
    made(
        "EROFS",
        &["mkfs.erofs"],
        0,
        &["--quiet", "{}", "/etc/apt"],
        &["EROFS"],
        "erofs",
    ),
    made(
        "ISO 9660",
        &["genisoimage"],
        0,
        &["-quiet", "-o", "{}", "/etc/apt"],
        &["ISO 9660"],
        "iso9660",
    ),
    made(
        "bcache",
        &["make-bcache"],
        64 * MIB,
        &["-B", "{}"],
        &["bcache"],
        "bcache",
    ),
    made(
        "LUKS 1",
        &["cryptsetup"],
        32 * MIB,
        &[
            "luksFormat",
            "-q",
            "--type",
            "luks1",
            "--pbkdf-force-iterations",
            "1000",
            "{}",
            "/etc/hostname",
        ],
        &["LUKS"],
        "crypto_LUKS",
    ),
    made(
        "LUKS 2",
        &["cryptsetup"],
        32 * MIB,
        &[
            "luksFormat",
            "-q",
            "--type",
            "luks2",
            "--pbkdf",
            "pbkdf2",
            "--pbkdf-force-iterations",
            "1000",
            "{}",
            "/etc/hostname",
        ],
        &["LUKS"],
        "crypto_LUKS",
    ),
];

impl Made {
    /// Makes it in a new file.
    pub fn make(&self, dir: &Path) -> Result<PathBuf, String> {
        let path = dir.join("volume");
        if self.size_bytes > 0 {
            sparse(&path, self.size_bytes)?;
        }
        let name = path.to_str().ok_or("a strange name")?;
        let arguments: Vec<&str> = self
            .arguments
            .iter()
            .map(|word| if *word == "{}" { name } else { *word })
            .collect();
        run(self.programs[0], &arguments, &[0])?;
        Ok(path)
    }
}

/// Readers that call the second half of a volume free, once its size fits.
pub fn readers() -> Readers {
    let reader = |file_system, free_map| Reader {
        file_system,
        free_map,
    };
    Readers(vec![
        reader(FileSystem::Ext, ext),
        reader(FileSystem::Fat, fat),
        reader(FileSystem::Exfat, exfat),
        reader(FileSystem::Ntfs, ntfs),
    ])
}

fn block(volume: &dyn ReadAt, at_bytes: u64) -> Result<[u8; 512], Refusal> {
    let mut bytes = [0; 512];
    volume.read_at(at_bytes, &mut bytes)?;
    Ok(bytes)
}

fn not(what: &'static str) -> Refusal {
    Refusal::NotThis {
        what,
        why: "the signature is not there".to_owned(),
    }
}

fn ext(volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
    let b = block(volume, 1024)?;
    let (Some(0xef53), Some(blocks), Some(shift)) = (le16(&b, 56), le32(&b, 4), le32(&b, 24)) else {
        return Err(not("ext"));
    };
    half(volume, FileSystem::Ext, u64::from(blocks) << (10 + shift.min(6)))
}

fn fat(volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
    let b = block(volume, 0)?;
    let (Some(sector), Some(few), Some(many)) = (le16(&b, 11), le16(&b, 19), le32(&b, 32)) else {
        return Err(not("FAT"));
    };
    let sectors = if few == 0 { many } else { u32::from(few) };
    half(volume, FileSystem::Fat, u64::from(sector) * u64::from(sectors))
}

fn exfat(volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
    let b = block(volume, 0)?;
    if b[3..11] != *b"EXFAT   " {
        return Err(not("exFAT"));
    }
    let sectors = le64(&b, 72).unwrap_or_default();
    half(volume, FileSystem::Exfat, sectors << (b[108] & 15))
}

fn ntfs(volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
    let b = block(volume, 0)?;
    if b[3..11] != *b"NTFS    " {
        return Err(not("NTFS"));
    }
    let sectors = le64(&b, 40).unwrap_or_default();
    half(volume, FileSystem::Ntfs, sectors.saturating_mul(512))
}

fn half(volume: &dyn ReadAt, file_system: FileSystem, covered_bytes: u64) -> Result<FreeMap, Refusal> {
    if covered_bytes < 1024 || covered_bytes > volume.size_bytes() {
        return Err(Refusal::Contradiction {
            why: "the file system is larger than its volume".to_owned(),
            offset_bytes: 0,
            tool: "fsck",
        });
    }
    let start_bytes = covered_bytes / 2 / 512 * 512;
    Ok(FreeMap {
        file_system,
        name: "a file system".to_owned(),
        unit_bytes: 512,
        covered_bytes,
        free: vec![Extent {
            start_bytes,
            len_bytes: covered_bytes / 512 * 512 - start_bytes,
        }],
        owners_checked: 0,
    })
}
