//! The boot sector with the BIOS parameter block, its backup, and FSInfo (FAT specification, chapters 3 and 5).

use super::contradiction;
use crate::freemap::{ReadAt, Refusal};
use crate::wire::{le16, le32};

const BOOT_BYTES: usize = 512;
/// Cluster counts from which on it is FAT16, and FAT32 (chapter 3.5).
const FAT16_CLUSTERS: u64 = 4085;
const FAT32_CLUSTERS: u64 = 65525;
/// 0FFF_FFF6h is the last cluster number that is no mark.
const MOST_CLUSTERS: u64 = 0x0fff_fff5;
const DIRTY: u8 = 0x01;
const SURFACE_TEST: u8 = 0x02;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Fat12,
    Fat16,
    Fat32,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Fat12 => "FAT12",
            Kind::Fat16 => "FAT16",
            Kind::Fat32 => "FAT32",
        }
    }

    pub(super) fn entry_bits(self) -> u64 {
        match self {
            Kind::Fat12 => 12,
            Kind::Fat16 => 16,
            Kind::Fat32 => 32,
        }
    }

    /// What so many clusters are, where the table has 12 or 16 bits (FAT32 is told by its boot sector).
    pub(super) fn of_small(clusters: u64) -> Option<Self> {
        match clusters {
            ..FAT16_CLUSTERS => Some(Kind::Fat12),
            FAT16_CLUSTERS..FAT32_CLUSTERS => Some(Kind::Fat16),
            _ => None,
        }
    }

    /// Sectors of the smallest table for so many clusters.
    pub(super) fn table_sectors(self, clusters: u64, sector_bytes: u32) -> u64 {
        ((clusters + 2) * self.entry_bits()).div_ceil(u64::from(sector_bytes) * 8)
    }
}

/// Where everything lies.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub kind: Kind,
    pub sector_bytes: u32,
    pub cluster_sectors: u32,
    pub cluster_bytes: u32,
    pub reserved_sectors: u64,
    pub tables: u64,
    pub table_sectors: u64,
    /// The one table in use; `None` where all are the same.
    pub active_table: Option<u64>,
    /// Entries of the fixed root directory; 0 on FAT32.
    pub root_entries: u64,
    /// Where the root directory starts on FAT32.
    pub root_cluster: Option<u32>,
    pub total_sectors: u64,
    pub clusters: u64,
    pub media: u8,
    /// The backup of the boot sector says the same.
    pub confirmed: bool,
    fs_info_sector: u64,
    /// What FSInfo says of it.
    pub free_clusters: Option<u64>,
}

impl Layout {
    pub(super) fn table_bytes(&self, copy: u64) -> u64 {
        (self.reserved_sectors + copy * self.table_sectors) * u64::from(self.sector_bytes)
    }

    pub(super) fn root_bytes(&self) -> u64 {
        self.table_bytes(self.tables)
    }

    pub(super) fn root_len_bytes(&self) -> u64 {
        self.root_entries * 32
    }

    pub(super) fn data_bytes(&self) -> u64 {
        self.root_bytes()
            + self
                .root_len_bytes()
                .next_multiple_of(u64::from(self.sector_bytes))
    }

    pub(super) fn data_sectors(&self) -> u64 {
        self.total_sectors - self.data_bytes() / u64::from(self.sector_bytes)
    }

    pub(super) fn fs_info_bytes(&self) -> u64 {
        self.fs_info_sector * u64::from(self.sector_bytes)
    }

    /// The address of a cluster, counted from 2.
    pub(super) fn cluster_start_bytes(&self, cluster: u32) -> u64 {
        self.data_bytes() + u64::from(cluster).saturating_sub(2) * u64::from(self.cluster_bytes)
    }

    /// Its index from 0, where there is such a cluster.
    pub(super) fn index(&self, cluster: u32) -> Option<u64> {
        u64::from(cluster).checked_sub(2).filter(|i| *i < self.clusters)
    }
}

fn not_this(why: impl Into<String>) -> Refusal {
    Refusal::NotThis {
        what: "FAT file system",
        why: why.into(),
    }
}

fn read_sector(volume: &dyn ReadAt, offset_bytes: u64) -> Result<[u8; BOOT_BYTES], Refusal> {
    let mut sector = [0; BOOT_BYTES];
    volume.read_at(offset_bytes, &mut sector)?;
    Ok(sector)
}

fn byte(sector: &[u8; BOOT_BYTES], at: usize) -> u8 {
    sector.get(at).copied().unwrap_or_default()
}

fn word(sector: &[u8; BOOT_BYTES], at: usize) -> u32 {
    u32::from(le16(sector, at).unwrap_or_default())
}

fn long(sector: &[u8; BOOT_BYTES], at: usize) -> u32 {
    le32(sector, at).unwrap_or_default()
}

pub(super) fn read(volume: &dyn ReadAt) -> Result<Layout, Refusal> {
    if volume.size_bytes() < BOOT_BYTES as u64 {
        return Err(not_this("it is shorter than a boot sector"));
    }
    let boot = read_sector(volume, 0)?;
    if word(&boot, 510) != 0xaa55 {
        return Err(not_this("the boot sector has no signature"));
    }
    if !matches!((byte(&boot, 0), byte(&boot, 2)), (0xeb, 0x90) | (0xe9, _)) {
        return Err(not_this("the boot sector starts with no jump"));
    }
    let sector_bytes = word(&boot, 11);
    if !matches!(sector_bytes, 512 | 1024 | 2048 | 4096) {
        return Err(not_this(format!("sectors of {sector_bytes} bytes")));
    }
    let cluster_sectors = u32::from(byte(&boot, 13));
    if !cluster_sectors.is_power_of_two() {
        return Err(not_this(format!("clusters of {cluster_sectors} sectors")));
    }
    let reserved_sectors = u64::from(word(&boot, 14));
    let tables = u64::from(byte(&boot, 16));
    if reserved_sectors == 0 || tables == 0 {
        return Err(not_this(format!(
            "{reserved_sectors} reserved sectors, {tables} tables"
        )));
    }
    let media = byte(&boot, 21);
    if !matches!(media, 0xf0 | 0xf8..) {
        return Err(not_this(format!("medium {media:02x}h")));
    }
    let mut layout = Layout {
        kind: Kind::Fat32,
        sector_bytes,
        cluster_sectors,
        cluster_bytes: sector_bytes * cluster_sectors,
        reserved_sectors,
        tables,
        table_sectors: u64::from(word(&boot, 22)),
        active_table: None,
        root_entries: u64::from(word(&boot, 17)),
        root_cluster: None,
        total_sectors: total_sectors(&boot)?,
        clusters: 0,
        media,
        confirmed: false,
        fs_info_sector: 0,
        free_clusters: None,
    };
    let small = layout.table_sectors != 0;
    if small {
        // Where the last sector is not filled, systems disagree on where clusters start; Linux does not mount it.
        if layout.root_entries == 0 || !layout.root_len_bytes().is_multiple_of(u64::from(sector_bytes)) {
            return Err(contradiction(
                format!(
                    "a root directory of {} entries fills no whole sectors",
                    layout.root_entries
                ),
                17,
            ));
        }
    } else {
        fat32(&boot, &mut layout)?;
    }
    count_clusters(&mut layout, small)?;
    check_size(volume, &layout)?;
    check_name(&boot, layout.kind)?;
    if !small {
        if layout.root_cluster.and_then(|c| layout.index(c)).is_none() {
            return Err(contradiction("the root directory starts at no cluster", 44));
        }
        check_backup(volume, &boot, &mut layout)?;
        read_fs_info(volume, &boot, &mut layout)?;
    }
    check_clean(&boot, small)?;
    Ok(layout)
}

fn total_sectors(boot: &[u8; BOOT_BYTES]) -> Result<u64, Refusal> {
    match (word(boot, 19), long(boot, 32)) {
        (0, 0) => Err(contradiction("it has no sectors", 32)),
        (short, 0) => Ok(u64::from(short)),
        (0, long) => Ok(u64::from(long)),
        (short, long) if short == long => Ok(u64::from(short)),
        (short, long) => Err(contradiction(
            format!("{short} sectors in one place, {long} in the other"),
            19,
        )),
    }
}

/// What only FAT32 has. It is told by the place of the table's size, as all systems do: mkfs makes FAT32 of fewer clusters
/// than the specification wants.
fn fat32(boot: &[u8; BOOT_BYTES], layout: &mut Layout) -> Result<(), Refusal> {
    layout.table_sectors = u64::from(long(boot, 36));
    if layout.table_sectors == 0 {
        return Err(not_this("tables of 0 sectors"));
    }
    if layout.root_entries != 0 {
        return Err(contradiction("FAT32 with a fixed root directory", 17));
    }
    let version = word(boot, 42);
    if version != 0 {
        return Err(Refusal::Unsupported {
            why: format!("FAT32 version {version:04x}h"),
        });
    }
    let flags = word(boot, 40);
    if flags & 0x80 != 0 {
        let active = u64::from(flags & 0x0f);
        if active >= layout.tables {
            return Err(contradiction(
                format!("table {active} is in use, of {}", layout.tables),
                40,
            ));
        }
        layout.active_table = Some(active);
    }
    layout.root_cluster = Some(long(boot, 44));
    Ok(())
}

fn count_clusters(layout: &mut Layout, small: bool) -> Result<(), Refusal> {
    let sector_bytes = u64::from(layout.sector_bytes);
    let data_sectors = layout
        .total_sectors
        .saturating_sub(layout.data_bytes() / sector_bytes);
    layout.clusters = data_sectors / u64::from(layout.cluster_sectors);
    if layout.clusters == 0 || layout.clusters > MOST_CLUSTERS {
        return Err(contradiction(format!("{} clusters", layout.clusters), 19));
    }
    if small {
        layout.kind = Kind::of_small(layout.clusters).ok_or_else(|| {
            contradiction(
                format!("{} clusters with a table of FAT12 or FAT16", layout.clusters),
                22,
            )
        })?;
    }
    let need = layout.kind.table_sectors(layout.clusters, layout.sector_bytes);
    if layout.table_sectors < need {
        return Err(contradiction(
            format!(
                "tables of {} sectors, and {} clusters need {need}",
                layout.table_sectors, layout.clusters
            ),
            22,
        ));
    }
    Ok(())
}

fn check_size(volume: &dyn ReadAt, layout: &Layout) -> Result<(), Refusal> {
    let size_bytes = layout.total_sectors * u64::from(layout.sector_bytes);
    if size_bytes > volume.size_bytes() {
        return Err(contradiction(
            format!(
                "it says that it has {size_bytes} bytes, and there are {}",
                volume.size_bytes()
            ),
            19,
        ));
    }
    Ok(())
}

/// The name of the kind means nothing by the specification, but one that tells another kind tells of damage.
fn check_name(boot: &[u8; BOOT_BYTES], kind: Kind) -> Result<(), Refusal> {
    let at = if kind == Kind::Fat32 { 82 } else { 54 };
    let name = boot.get(at..at + 5).unwrap_or_default();
    let other = [Kind::Fat12, Kind::Fat16, Kind::Fat32]
        .into_iter()
        .find(|k| *k != kind && k.name().as_bytes() == name);
    match other {
        Some(other) => Err(contradiction(
            format!("it calls itself {}, and is {}", other.name(), kind.name()),
            at as u64,
        )),
        None => Ok(()),
    }
}

/// Everything of the parameter block but the geometry for the BIOS (24 to 31).
fn geometry(sector: &[u8; BOOT_BYTES]) -> impl Iterator<Item = &u8> {
    let part = |range: std::ops::Range<usize>| sector.get(range).unwrap_or_default().iter();
    part(11..24).chain(part(32..52))
}

fn check_backup(volume: &dyn ReadAt, boot: &[u8; BOOT_BYTES], layout: &mut Layout) -> Result<(), Refusal> {
    let at = word(boot, 50);
    if matches!(at, 0 | 0xffff) {
        return Ok(());
    }
    if u64::from(at) >= layout.reserved_sectors {
        return Err(contradiction(
            format!("the backup of the boot sector is at sector {at}"),
            50,
        ));
    }
    let offset_bytes = u64::from(at) * u64::from(layout.sector_bytes);
    let backup = read_sector(volume, offset_bytes)?;
    if word(&backup, 510) != 0xaa55 || geometry(boot).ne(geometry(&backup)) {
        return Err(contradiction(
            "the boot sector and its backup differ",
            offset_bytes,
        ));
    }
    layout.confirmed = true;
    Ok(())
}

fn read_fs_info(volume: &dyn ReadAt, boot: &[u8; BOOT_BYTES], layout: &mut Layout) -> Result<(), Refusal> {
    let at = word(boot, 48);
    if matches!(at, 0 | 0xffff) {
        return Ok(());
    }
    if u64::from(at) >= layout.reserved_sectors {
        return Err(contradiction(format!("FSInfo is at sector {at}"), 48));
    }
    layout.fs_info_sector = u64::from(at);
    let info = read_sector(volume, layout.fs_info_bytes())?;
    let signatures = [(0, 0x4161_5252), (484, 0x6141_7272), (508, 0xaa55_0000)];
    if signatures.iter().any(|(at, sign)| long(&info, *at) != *sign) {
        return Err(contradiction(
            "FSInfo has not its signatures",
            layout.fs_info_bytes(),
        ));
    }
    let free = long(&info, 488);
    layout.free_clusters = (free != u32::MAX).then(|| u64::from(free));
    Ok(())
}

/// The bits that systems of today keep in `BS_Reserved1`.
fn check_clean(boot: &[u8; BOOT_BYTES], small: bool) -> Result<(), Refusal> {
    let state = byte(boot, if small { 37 } else { 65 });
    let why = if state & DIRTY != 0 {
        "the boot sector says that it is mounted, or was not unmounted"
    } else if state & SURFACE_TEST != 0 {
        "the boot sector asks for a test of the medium"
    } else {
        return Ok(());
    };
    Err(Refusal::NotClean {
        why: why.to_owned(),
        tool: super::TOOL,
    })
}
