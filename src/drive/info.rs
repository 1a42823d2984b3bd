//! Identity and capabilities of bridge and drive.

use serde::Serialize;

use super::power::Media;
use super::{Access, Cost, DeviceRef, Drive, DriveError, FoundBy, NoPassThrough, Rejected};
use crate::ata::identify::IdentifySummary;
use crate::scsi::capacity::Capacity;
use crate::scsi::cdb;
use crate::scsi::inquiry::Inquiry;
use crate::scsi::vpd::Vpd;
use crate::sys::NodeFacts;
use crate::transport::{Command, Status};
use crate::wire::Checksum;

/// How commands reach the drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccessReport {
    /// The dialect; absent when there is no way through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<&'static str>,
    /// How it was found.
    pub found_by: FoundBy,
    /// What was tried before and rejected.
    pub tried: Vec<Rejected>,
    /// Why there is no way through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_pass_through: Option<NoPassThrough>,
}

/// Sizes from both sides of the bridge, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// What the host sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_bytes: Option<u64>,
    /// Logical block size that the host sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_block_bytes: Option<u32>,
    /// What the drive says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_bytes: Option<u64>,
    /// Logical sector size of the drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_sector_bytes: Option<u32>,
    /// Whether the two sizes are equal; absent when one is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agree: Option<bool>,
}

/// Document of `info`: `drivethru-info/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InfoReport {
    /// `drivethru-info/1`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// Which device.
    pub device: DeviceRef,
    /// What the operating system knows: node, USB identity, link, driver.
    pub host: NodeFacts,
    /// Standard INQUIRY data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inquiry: Option<Inquiry>,
    /// VPD pages that the kernel had cached, decoded.
    pub vpd_pages: Vec<Vpd>,
    /// The way to the drive.
    pub access: AccessReport,
    /// Flash, rotating or unknown.
    pub media: Media,
    /// IDENTIFY DEVICE data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identify: Option<IdentifySummary>,
    /// Sizes.
    pub sizes: Sizes,
    /// What is odd about it, in words.
    pub remarks: Vec<String>,
    /// What it cost.
    pub cost: Cost,
}

impl Drive {
    /// Everything that identifies bridge and drive. READ CAPACITY is sent where the kernel does not know the size, and nothing
    /// else beyond what opening sent.
    ///
    /// # Errors
    /// The transport failed.
    pub fn info(&mut self) -> Result<InfoReport, DriveError> {
        let (start, before) = self.begin_report();
        let identify = self.identify().map(|i| i.summary());
        let mut sizes = Sizes {
            host_bytes: self.facts.size_bytes.filter(|n| *n > 0),
            host_block_bytes: self.facts.logical_block_bytes,
            drive_bytes: identify.as_ref().and_then(|i| i.capacity_bytes),
            drive_sector_bytes: identify.as_ref().and_then(|i| i.logical_sector_bytes),
            agree: None,
        };
        if sizes.host_bytes.is_none()
            && let Some(capacity) = self.read_capacity()?
        {
            sizes.host_bytes = capacity.capacity_bytes;
            sizes.host_block_bytes = Some(capacity.block_bytes);
        }
        sizes.agree = sizes
            .host_bytes
            .zip(sizes.drive_bytes)
            .map(|(host, drive)| host == drive);
        let mut remarks = Vec::new();
        if sizes.agree == Some(false) {
            remarks.push("the bridge shows another size than the drive has".to_owned());
        }
        if let (Some(host), Some(drive)) = (sizes.host_block_bytes, sizes.drive_sector_bytes)
            && host != drive
        {
            remarks.push(format!(
                "the bridge shows blocks of {host} bytes where the drive has sectors of {drive}"
            ));
        }
        if identify.as_ref().is_some_and(|i| i.checksum == Checksum::Invalid) {
            remarks.push(
                "the IDENTIFY data have a wrong checksum: the bridge patches them, or they are garbled"
                    .to_owned(),
            );
        }
        if let Some(identify) = &identify
            && identify.smart.supported == Some(true)
            && identify.smart.enabled == Some(false)
        {
            remarks.push("SMART is switched off in the drive".to_owned());
        }
        let pages = self.facts.scsi.vpd_pages.values();
        let vpd_pages = pages.filter_map(|page| Vpd::parse(page).ok()).collect();
        let (dialect, no_pass_through) = match &self.access {
            Access::Ata(dialect) => (Some(dialect.name()), None),
            Access::ScsiOnly(why) => (None, Some(why.clone())),
        };
        Ok(InfoReport {
            schema: "drivethru-info/1",
            schema_version: 1,
            device: self.device_ref(),
            host: without_raw(&self.facts),
            inquiry: self.inquiry.clone(),
            vpd_pages,
            access: AccessReport {
                dialect,
                found_by: self.found_by.clone(),
                tried: self.tried.clone(),
                no_pass_through,
            },
            media: self.media,
            identify,
            sizes,
            remarks,
            cost: self.cost_since(start, before),
        })
    }

    /// READ CAPACITY (10), and (16) where that cannot count far enough.
    fn read_capacity(&mut self) -> Result<Option<Capacity>, DriveError> {
        let timeout = self.options.timeout;
        let short = self.scsi(Command::data_in(cdb::read_capacity_10(), 8, timeout))?;
        let short = short
            .data
            .filter(|_| short.status == Status::GOOD)
            .and_then(|d| Capacity::parse_10(&d).ok());
        match short {
            Some(capacity) if capacity.blocks.is_some() => Ok(Some(capacity)),
            Some(_) => {
                let long = self.scsi(Command::data_in(cdb::read_capacity_16(32), 32, timeout))?;
                Ok(long
                    .data
                    .filter(|_| long.status == Status::GOOD)
                    .and_then(|d| Capacity::parse_16(&d).ok()))
            }
            None => Ok(None),
        }
    }
}

/// The decoded pages stand in the document; their bytes need not.
fn without_raw(facts: &NodeFacts) -> NodeFacts {
    let mut facts = facts.clone();
    facts.scsi.inquiry = None;
    facts.scsi.vpd_pages.clear();
    facts
}
