//! The ways by which a range can be discarded: which of them are open, what they carry, and one command on each.

use std::num::NonZeroU32;

use serde::Serialize;

use super::plan::PathLimits;
use crate::ata::dsm;
use crate::bridge::taskfile::Taskfile;
use crate::bridge::{BridgeError, Failure, Request};
use crate::drive::media::Geometry;
use crate::drive::{Access, Drive, DriveError};
use crate::permit::BlockRange;
use crate::scsi::cdb;
use crate::scsi::vpd::{BlockLimits, Content, LogicalBlockProvisioning, Vpd};
use crate::transport::block::Claim;
use crate::transport::{Command, TransportError};

/// A way to discard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// BLKDISCARD: whatever the kernel makes of it.
    Kernel,
    /// SCSI UNMAP.
    Unmap,
    /// ATA DATA SET MANAGEMENT through the bridge.
    Ata,
    /// SCSI WRITE SAME (16) with UNMAP.
    WriteSame,
    /// A mounted file system's own FITRIM.
    Fitrim,
    /// Holes punched into an image file.
    PunchHole,
}

impl Method {
    /// The order in which they are tried.
    pub const ORDER: [Self; 4] = [Self::Kernel, Self::Unmap, Self::Ata, Self::WriteSame];

    /// What the command is called where harmful commands are remembered.
    fn command(self) -> &'static str {
        match self {
            Self::Unmap => "UNMAP",
            Self::Ata => "DATA SET MANAGEMENT",
            Self::WriteSame => "WRITE SAME (16)",
            Self::Kernel | Self::Fitrim | Self::PunchHole => "",
        }
    }

    /// The word for it in every output and after `--method`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Unmap => "unmap",
            Self::Ata => "ata",
            Self::WriteSame => "write_same",
            Self::Fitrim => "fitrim",
            Self::PunchHole => "punch_hole",
        }
    }
}

/// A method that is not used, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Which.
    pub method: Method,
    /// The reason.
    pub why: String,
}

/// A way that is open as far as can be told without trying it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Which way.
    pub method: Method,
    /// What one command carries.
    pub limits: PathLimits,
    /// The device promises that what is discarded this way reads as zeroes.
    pub promises_zeroes: bool,
    /// Blocks of 512 bytes in one list of ATA ranges.
    pub payload_blocks: u16,
}

/// The paths that a device announces, and the reasons against the others.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    /// In the order in which they are tried.
    pub open: Vec<Path>,
    /// The others.
    pub refused: Vec<Refused>,
}

/// A device that discards only in units larger than this, or less than this in one command, is no use here.
const UNIT_BYTES_MAX: u64 = 16 << 20;
const COMMAND_BYTES_MIN: u64 = 64 << 10;
/// No range is cut finer than this: drives round to their pages, and not all of them inward.
const LEAST_UNIT_BYTES: u64 = 4096;

/// Longest list of ATA ranges that is sent, in blocks of 512 bytes: one transfer that every bridge carries.
const PAYLOAD_BLOCKS_MAX: u16 = 128;

/// Finds the open paths. Nothing is sent but INQUIRY for pages that the device is known to bear.
pub fn find(drive: &mut Drive, geometry: &Geometry, only: Option<Method>) -> Result<Paths, DriveError> {
    let mut paths = Paths::default();
    let pages = Pages::of(drive, geometry)?;
    for method in Method::ORDER {
        if only.is_some_and(|only| only != method) {
            continue;
        }
        let found = match method {
            Method::Kernel => kernel(drive, geometry),
            Method::Unmap => unmap(geometry, &pages),
            Method::Ata => ata(drive, geometry),
            Method::WriteSame => write_same(geometry, &pages),
            Method::Fitrim | Method::PunchHole => Err("not a way to a device".to_owned()),
        };
        let found = found
            .and_then(|path| in_whole_pages(drive, geometry, path))
            .and_then(|path| match drive.avoided(path.method.command()) {
                Some(why) => Err(why),
                None => Ok(path),
            });
        match found {
            Ok(path) => paths.open.push(path),
            Err(why) => paths.refused.push(Refused { method, why }),
        }
    }
    Ok(paths)
}

/// Nothing finer than a page of 4 KiB or a physical sector, and nothing absurd.
fn in_whole_pages(drive: &Drive, geometry: &Geometry, mut path: Path) -> Result<Path, String> {
    let block = u64::from(geometry.block_bytes);
    let physical = drive
        .identify()
        .and_then(|i| i.physical_sector())
        .map_or(0, |s| u64::from(s.bytes()));
    let page = LEAST_UNIT_BYTES.max(physical) / block;
    let limits = &mut path.limits;
    if limits.granularity_blocks < page.max(1) {
        limits.granularity_blocks =
            limits.granularity_blocks.max(1) * page.max(1).div_ceil(limits.granularity_blocks.max(1));
    }
    if limits.granularity_blocks.saturating_mul(block) > UNIT_BYTES_MAX {
        return Err(format!(
            "it discards only units of {} blocks",
            limits.granularity_blocks
        ));
    }
    let most = limits
        .command_blocks
        .min(limits.range_blocks.saturating_mul(limits.ranges as u64));
    if most.saturating_mul(block) < COMMAND_BYTES_MIN || most < limits.granularity_blocks {
        return Err(format!("one command carries only {most} blocks"));
    }
    Ok(path)
}

/// The VPD pages about discarding, where the device is known to bear being asked.
#[derive(Debug, Default)]
struct Pages {
    limits: Option<BlockLimits>,
    provisioning: Option<LogicalBlockProvisioning>,
}

impl Pages {
    fn of(drive: &mut Drive, geometry: &Geometry) -> Result<Self, DriveError> {
        let mut pages = Self::default();
        // The kernel asked at least one page, or the device says that it unmaps: then it has the pages about it.
        let bears = !drive.facts().scsi.vpd_pages.is_empty() || geometry.provisioning == Some(true);
        if !bears {
            return Ok(pages);
        }
        for code in [0xb0, 0xb2] {
            let cached = drive.facts().scsi.vpd_pages.get(&code).cloned();
            let bytes = match cached {
                Some(bytes) => bytes,
                None => {
                    let command = Command::data_in(cdb::inquiry_vpd(code, 64), 64, drive.timeout());
                    match drive.ask(command) {
                        Ok(completion) => completion.data.unwrap_or_default(),
                        Err(DriveError::Answered { .. }) => continue,
                        Err(error) => return Err(error),
                    }
                }
            };
            match Vpd::parse(&bytes).map(|page| (page.page_code, page.content)) {
                Ok((0xb0, Content::BlockLimits(limits))) => pages.limits = Some(limits),
                Ok((0xb2, Content::LogicalBlockProvisioning(p))) => pages.provisioning = Some(p),
                _ => {}
            }
        }
        Ok(pages)
    }

    fn promises_zeroes(&self, geometry: &Geometry) -> bool {
        geometry.reads_zeroes
            || self
                .provisioning
                .as_ref()
                .is_some_and(|p| p.reads_zeroes & 1 == 1)
    }
}

fn kernel(drive: &Drive, geometry: &Geometry) -> Result<Path, String> {
    let facts = drive.facts();
    if facts.block_node.is_none() || drive.is_simulated() {
        return Err("no block device of the kernel's own".to_owned());
    }
    if facts.provisioning_mode.as_deref() == Some("writesame_zero") {
        return Err(
            "the kernel would fill it with zeroes instead (provisioning_mode is writesame_zero)".to_owned(),
        );
    }
    match facts.discard_max_bytes {
        Some(max) if max >= u64::from(geometry.block_bytes) => Ok(Path {
            method: Method::Kernel,
            // The kernel cuts what is longer by itself; 1 GiB at a time lets the work be stopped.
            limits: PathLimits::one_range((1 << 30) / u64::from(geometry.block_bytes)),
            promises_zeroes: geometry.reads_zeroes,
            payload_blocks: 0,
        }),
        _ => Err(format!(
            "the kernel has it switched off (discard_max_bytes is 0, provisioning_mode is {})",
            facts.provisioning_mode.as_deref().unwrap_or("not told")
        )),
    }
}

fn unmap(geometry: &Geometry, pages: &Pages) -> Result<Path, String> {
    if geometry.provisioning == Some(false) {
        return Err("the bridge says that it does not unmap (READ CAPACITY (16): LBPME is 0)".to_owned());
    }
    if pages.provisioning.as_ref().is_some_and(|p| !p.unmap) {
        return Err("the bridge says that it has no UNMAP (VPD page B2h: LBPU is 0)".to_owned());
    }
    let limits = pages.limits.as_ref().and_then(|l| {
        let blocks = l.max_unmap_blocks.filter(|n| *n > 0)?;
        let ranges = l.max_unmap_descriptors.filter(|n| *n > 0)?;
        Some((l, blocks, ranges))
    });
    let Some((page, blocks, ranges)) = limits else {
        return Err("the bridge does not announce it (no limits in VPD page B0h)".to_owned());
    };
    // All ones means no limit.
    let command_blocks = if blocks == u32::MAX {
        u64::MAX
    } else {
        u64::from(blocks)
    };
    Ok(Path {
        method: Method::Unmap,
        limits: PathLimits {
            ranges: usize::try_from(ranges)
                .unwrap_or(usize::MAX)
                .min(cdb::UNMAP_DESCRIPTORS_MAX),
            range_blocks: u64::from(blocks),
            command_blocks,
            granularity_blocks: u64::from(page.optimal_unmap_granularity_blocks.unwrap_or(1).max(1)),
            alignment_blocks: u64::from(page.unmap_granularity_alignment.unwrap_or(0)),
        },
        promises_zeroes: pages.promises_zeroes(geometry),
        payload_blocks: 0,
    })
}

fn ata(drive: &Drive, geometry: &Geometry) -> Result<Path, String> {
    let Access::Ata(_) = drive.access() else {
        return Err("there is no way through to the drive".to_owned());
    };
    let Some(identify) = drive.identify() else {
        return Err("the drive's identity is not known".to_owned());
    };
    let trim = identify.trim();
    if !trim.supported {
        return Err("the drive says that it has no TRIM (IDENTIFY DEVICE, word 169)".to_owned());
    }
    let sector_bytes = identify.logical_sector().map(|s| s.bytes());
    let sectors = identify.sectors().map(|s| s.0);
    if sector_bytes != Some(geometry.block_bytes) || sectors != Some(geometry.blocks) {
        return Err(format!(
            "the bridge shows {} blocks of {} bytes where the drive has {} sectors of {}: their addresses are not the same",
            geometry.blocks,
            geometry.block_bytes,
            sectors.map_or("?".to_owned(), |n| n.to_string()),
            sector_bytes.map_or("?".to_owned(), |n| n.to_string()),
        ));
    }
    // 0 and absent both mean one block.
    let payload_blocks = trim.max_blocks.unwrap_or(1).clamp(1, PAYLOAD_BLOCKS_MAX);
    Ok(Path {
        method: Method::Ata,
        limits: PathLimits::ata(payload_blocks),
        promises_zeroes: trim.deterministic && trim.zeroes,
        payload_blocks,
    })
}

fn write_same(geometry: &Geometry, pages: &Pages) -> Result<Path, String> {
    if geometry.provisioning != Some(true) {
        return Err("the bridge does not say that it unmaps (READ CAPACITY (16): LBPME)".to_owned());
    }
    match &pages.provisioning {
        Some(p) if !p.write_same_16_unmap => {
            return Err(
                "the bridge says that WRITE SAME does not unmap (VPD page B2h: LBPWS is 0)".to_owned(),
            );
        }
        // Without the page WRITE SAME might write what it should unmap.
        None => return Err("nothing says that WRITE SAME unmaps (no VPD page B2h)".to_owned()),
        Some(_) => {}
    }
    let most = pages
        .limits
        .as_ref()
        .and_then(|l| l.max_write_same_blocks)
        .filter(|n| *n > 0)
        .unwrap_or(0xffff);
    let granularity = pages
        .limits
        .as_ref()
        .and_then(|l| l.optimal_unmap_granularity_blocks);
    let alignment = pages.limits.as_ref().and_then(|l| l.unmap_granularity_alignment);
    Ok(Path {
        method: Method::WriteSame,
        limits: PathLimits {
            granularity_blocks: u64::from(granularity.unwrap_or(1).max(1)),
            alignment_blocks: u64::from(alignment.unwrap_or(0)),
            ..PathLimits::one_range(most.min(u64::from(u32::MAX)))
        },
        promises_zeroes: pages.promises_zeroes(geometry),
        payload_blocks: 0,
    })
}

impl Path {
    /// Discards the ranges of one command.
    ///
    /// # Errors
    /// The permit does not name them, or the device failed.
    pub fn discard(
        &self,
        drive: &mut Drive,
        claim: Option<&Claim>,
        ranges: &[BlockRange],
        block_bytes: u32,
    ) -> Result<(), DriveError> {
        let timeout = drive.timeout().saturating_mul(super::PATIENCE);
        match self.method {
            Method::Kernel => {
                let claim = claim.ok_or_else(|| drive.odd("the kernel's node is not held".to_owned()))?;
                let permits = drive.permits.clone();
                for range in ranges {
                    permits.with(|permit| match permit {
                        Some(permit) => claim.discard(permit, *range),
                        None => Err(TransportError::NotPermitted {
                            device: drive.name().to_owned(),
                            what: "BLKDISCARD".to_owned(),
                        }),
                    })?;
                }
                Ok(())
            }
            Method::Unmap => {
                let narrow: Option<Vec<(u64, u32)>> = ranges
                    .iter()
                    .map(|r| Some((r.first, u32::try_from(r.count).ok()?)))
                    .collect();
                let list = narrow.and_then(|ranges| cdb::unmap_list(&ranges));
                let list = list.ok_or_else(|| drive.odd("more ranges than an UNMAP holds".to_owned()))?;
                let length = u16::try_from(list.len()).unwrap_or(u16::MAX);
                drive
                    .tell(Command::data_out(cdb::unmap(length), list, timeout))
                    .map(|_| ())
            }
            Method::WriteSame => {
                for range in ranges {
                    let count = u32::try_from(range.count).ok().and_then(NonZeroU32::new);
                    let count =
                        count.ok_or_else(|| drive.odd("a range that WRITE SAME cannot name".to_owned()))?;
                    let zeros = vec![0; block_bytes as usize];
                    let _ = drive.tell(Command::data_out(
                        cdb::write_same_unmap(range.first, count),
                        zeros,
                        timeout,
                    ))?;
                }
                Ok(())
            }
            Method::Ata => {
                let pairs: Vec<(u64, u64)> = ranges.iter().map(|r| (r.first, r.count)).collect();
                let list = dsm::range_list(&pairs);
                let list = list.ok_or_else(|| drive.odd("a range that TRIM cannot name".to_owned()))?;
                send_ata(drive, list, timeout)
            }
            Method::Fitrim | Method::PunchHole => Err(drive.odd("not a way to a device".to_owned())),
        }
    }

    /// The same for one range, with the longest list that the path would use: shows whether the bridge carries it. Where it
    /// does not, the list is halved until it does.
    ///
    /// # Errors
    /// As [`Path::discard`].
    pub fn discard_to_prove(
        &mut self,
        drive: &mut Drive,
        claim: Option<&Claim>,
        range: BlockRange,
        block_bytes: u32,
    ) -> Result<(), DriveError> {
        if self.method != Method::Ata {
            for command in super::plan::commands(&[range], &self.limits) {
                self.discard(drive, claim, &command, block_bytes)?;
            }
            return Ok(());
        }
        let timeout = drive.timeout().saturating_mul(super::PATIENCE);
        loop {
            let commands = super::plan::commands(&[range], &self.limits);
            let mut result = Ok(());
            for command in &commands {
                let pairs: Vec<(u64, u64)> = command.iter().map(|r| (r.first, r.count)).collect();
                let list = dsm::range_list(&pairs).map(|mut list| {
                    list.resize(usize::from(self.payload_blocks) * dsm::BLOCK_BYTES, 0);
                    list
                });
                let list = list.ok_or_else(|| drive.odd("a range that TRIM cannot name".to_owned()))?;
                result = send_ata(drive, list, timeout);
                if result.is_err() {
                    break;
                }
            }
            match result {
                Err(error) if self.payload_blocks > 1 && refused_for_length(&error) => {
                    self.payload_blocks /= 2;
                    self.limits = PathLimits::ata(self.payload_blocks);
                }
                other => return other,
            }
        }
    }
}

fn send_ata(drive: &mut Drive, list: Vec<u8>, timeout: std::time::Duration) -> Result<(), DriveError> {
    let blocks = u16::try_from(list.len() / dsm::BLOCK_BYTES).unwrap_or(u16::MAX);
    let mut request = Request::new("DATA SET MANAGEMENT", Taskfile::trim(blocks), timeout);
    request.data_out = Some(list);
    drive.request(request).map(|_| ())
}

/// The bridge or drive refused the command outright, so that nothing was done and a shorter one may pass.
fn refused_for_length(error: &DriveError) -> bool {
    match error {
        DriveError::Bridge(BridgeError::Failed { failure, .. }) => {
            failure.never_reached_the_drive() || matches!(failure, Failure::Aborted { .. })
        }
        DriveError::Transport(TransportError::TooLarge { .. }) => true,
        _ => false,
    }
}
