//! The checks after which something may be written: nobody uses the target, it is held for this process alone, and it is
//! the drive that the user named.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

use super::TrimError;
use super::report::Target;
use crate::ata::identify::Identify;
use crate::bridge::taskfile::Taskfile;
use crate::drive::media::{Geometry, Medium};
use crate::drive::{Drive, DriveError, OpenOptions, open};
use crate::freemap::partitions;
use crate::sys::NodeFacts;
use crate::sys::sysfs::Sysfs;
use crate::sys::usage::{Tables, Use};
use crate::transport::TransportError;
use crate::transport::block::{Claim, flush_node};

/// Why nothing is written, for safety.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Somebody uses it.
    #[error("{device}: in use: {}", .uses.iter().map(|u| format!("{} is {}", u.node, u.how)).collect::<Vec<_>>().join(", "))]
    InUse {
        /// The device.
        device: String,
        /// By whom.
        uses: Vec<Use>,
        /// The kernel could trim it while it is mounted.
        kernel_can_trim: bool,
    },
    /// Nobody knows whether it is in use.
    #[error("{device}: whether it is in use cannot be known: {why}")]
    UsageUnknown {
        /// The device.
        device: String,
        /// Why.
        why: String,
    },
    /// The serial number has to be typed.
    #[error("{device}: writing to it needs --serial, and the drive's serial number is {shown}")]
    SerialWanted {
        /// The device.
        device: String,
        /// What it is.
        shown: String,
    },
    /// It is another drive.
    #[error("{device}: this is not the drive you named: its serial number is {found}, not {wanted}")]
    OtherSerial {
        /// The device.
        device: String,
        /// What it has.
        found: String,
        /// What was typed.
        wanted: String,
    },
    /// Nothing tells this drive from others.
    #[error("{device}: no serial number tells this device from others: {why}")]
    NoSerial {
        /// The device.
        device: String,
        /// What was looked at.
        why: String,
    },
    /// Between planning and acting the drive became another.
    #[error("{device}: the drive has changed since the plan was made: {what}")]
    Changed {
        /// The device.
        device: String,
        /// What is different.
        what: String,
    },
    /// A disk with platters.
    #[error("{device}: this is a rotating disk")]
    Rotating {
        /// The device.
        device: String,
    },
    /// Its firmware does not bear it.
    #[error("{device}: {model} must not be trimmed: {why}")]
    Denied {
        /// The device.
        device: String,
        /// The model.
        model: String,
        /// What is known.
        why: &'static str,
    },
    /// The target cannot be taken apart.
    #[error("{device}: {why}")]
    Unclear {
        /// The device.
        device: String,
        /// What is unclear.
        why: String,
    },
}

/// Which drive it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Model, untrusted; empty where unknown.
    pub model: String,
    /// Serial number of the inner drive, untrusted.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Blocks of the host.
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
}

impl Identity {
    /// From what was read when the drive was opened.
    pub fn of(drive: &Drive, geometry: &Geometry) -> Self {
        let device = drive.device_ref();
        Self {
            model: device.model.unwrap_or_default(),
            serial: device.serial,
            firmware: device.firmware,
            blocks: geometry.blocks,
            block_bytes: geometry.block_bytes,
        }
    }
}

/// One run on one target: what is held, and how to know the drive again.
#[derive(Debug)]
pub struct Session {
    sysfs: Sysfs,
    claim: Option<Claim>,
    partition: Option<(u32, u64, u64)>,
    node: Option<String>,
    nonce: u64,
    /// Unit attentions that the drive had told of when the work began.
    attentions: u64,
}

impl Session {
    /// Refuses a target that is in use, then claims it. Nothing is sent.
    pub(super) fn begin(
        name: &str,
        options: &OpenOptions,
        proc: &Path,
        commit: bool,
    ) -> Result<(Self, open::Target), TrimError> {
        let target = open::Target::resolve(name, &options.sysfs)?;
        let facts = match &target {
            open::Target::Node { facts, .. } => facts,
            open::Target::Sim(_) => return Ok((Self::new(options.sysfs.clone(), None, true), target)),
            open::Target::Replay(_) if commit => {
                return Err(Refusal::Unclear {
                    device: name.to_owned(),
                    why: "a recording cannot be written to".to_owned(),
                }
                .into());
            }
            open::Target::Replay(_) => return Ok((Self::new(options.sysfs.clone(), None, true), target)),
        };
        let unknown = |why: String| Refusal::UsageUnknown {
            device: name.to_owned(),
            why,
        };
        let Some(disk) = &facts.block_node else {
            return Err(unknown("the kernel has no disk for this node".to_owned()).into());
        };
        let short = disk.strip_prefix("/dev/").unwrap_or(disk);
        let tables = Tables::read(proc).map_err(|e| unknown(format!("the mount table: {e}")))?;
        let mut uses = tables.uses(&options.sysfs, short);
        if facts.partition.is_some() {
            // Its siblings are others' business: that they do not overlap is seen in the table.
            uses.retain(|u| u.partition == facts.partition || u.partition.is_none());
        }
        if !uses.is_empty() {
            return Err(Refusal::InUse {
                device: name.to_owned(),
                uses,
                kernel_can_trim: facts.discard_max_bytes.is_some_and(|n| n > 0),
            }
            .into());
        }
        let node = match facts.partition {
            Some(number) => format!("{disk}{number}"),
            None => disk.clone(),
        };
        let start_bytes = match (facts.partition, facts.partition_bytes) {
            (None, _) => 0,
            (Some(_), Some((start, _))) => start,
            (Some(_), None) => {
                return Err(Refusal::Unclear {
                    device: name.to_owned(),
                    why: "where the partition lies is not known".to_owned(),
                }
                .into());
            }
        };
        let in_use = |how: &str| Refusal::InUse {
            device: name.to_owned(),
            uses: vec![Use {
                node: node.trim_start_matches("/dev/").to_owned(),
                partition: facts.partition,
                how: how.to_owned(),
            }],
            kernel_can_trim: false,
        };
        let claim = match Claim::take(&PathBuf::from(&node), start_bytes, commit) {
            Err(TransportError::Busy { .. }) => {
                return Err(in_use("claimed by something that the mount table does not show").into());
            }
            other => other?,
        };
        let names = options.sysfs.with_partitions(short);
        let number = names
            .iter()
            .find(|n| n.partition == facts.partition)
            .map(|n| n.number.as_str());
        if number != Some(claim.number()?.as_str()) {
            return Err(unknown(format!("{node} is not the device that the kernel calls so")).into());
        }
        // What the kernel still holds belongs on the medium before it is looked at; each node has a cache of its own.
        claim.flush_buffers()?;
        for other in &names {
            let path = PathBuf::from("/dev").join(&other.name);
            if other.partition != facts.partition
                && let Err(error) = flush_node(&path)
                && !matches!(error, TransportError::NotFound { .. })
            {
                return Err(error.into());
            }
        }
        let mut session = Self::new(options.sysfs.clone(), Some(claim), false);
        session.partition = facts
            .partition
            .zip(facts.partition_bytes)
            .map(|(number, (start, len))| (number, start, len));
        session.node = Some(node);
        Ok((session, target))
    }

    /// For a drive that the caller has to itself.
    pub(super) fn unclaimed(facts: &NodeFacts) -> Self {
        Self::new(Sysfs::default(), None, facts.simulated)
    }

    fn new(sysfs: Sysfs, claim: Option<Claim>, same_each_time: bool) -> Self {
        // The stamps of two runs must differ on a real drive; a simulated run stays the same.
        let nonce = if same_each_time {
            0x5eed
        } else {
            RandomState::new().hash_one(std::process::id())
        };
        Self {
            sysfs,
            claim,
            partition: None,
            node: None,
            nonce,
            attentions: 0,
        }
    }

    pub(super) fn claim(&self) -> Option<&Claim> {
        self.claim.as_ref()
    }

    pub(super) fn start_watching(&mut self, drive: &Drive) {
        self.attentions = drive.attentions();
    }

    pub(super) fn attentions(&self) -> u64 {
        self.attentions
    }

    pub(super) fn nonce(&self) -> u64 {
        self.nonce
    }

    /// The target in blocks of the whole disk.
    pub(super) fn target(&self, drive: &mut Drive, geometry: &Geometry) -> Result<Target, TrimError> {
        let device = drive.name().to_owned();
        let unclear = |why: String| {
            TrimError::from(Refusal::Unclear {
                device: device.clone(),
                why,
            })
        };
        if let (Some(kernel), Some(device)) = (drive.facts().size_bytes, geometry.bytes())
            && kernel != 0
            && kernel != device
        {
            return Err(unclear(format!(
                "the kernel knows it with {kernel} bytes, and the device says {device}: was the drive changed?"
            )));
        }
        let name = self.node.clone().unwrap_or_else(|| drive.name().to_owned());
        let Some((number, start, len)) = self.partition else {
            return Ok(Target {
                kind: "disk",
                name,
                partition: None,
                block_bytes: geometry.block_bytes,
                blocks: geometry.blocks,
                start_block: 0,
            });
        };
        let block = u64::from(geometry.block_bytes.max(1));
        let fits = start
            .checked_add(len)
            .zip(geometry.bytes())
            .is_some_and(|(end, size)| end <= size);
        if !start.is_multiple_of(block) || !len.is_multiple_of(block) || !fits || len == 0 {
            return Err(unclear(format!(
                "partition {number} ({len} bytes at byte {start}) does not fit the device"
            )));
        }
        // The table on the disk itself: the kernel may remember that of another disk in the same dock.
        let medium = Medium::new(drive, geometry.clone());
        let table = partitions::read(&medium, geometry.block_bytes);
        if let Some(error) = medium.into_error() {
            return Err(error.into());
        }
        let table = table.map_err(|refusal| unclear(refusal.to_string()))?;
        let found = table
            .iter()
            .flat_map(|t| &t.partitions)
            .find(|p| p.number == number)
            .map(|p| (p.extent.start_bytes, p.extent.len_bytes));
        if found != Some((start, len)) {
            return Err(unclear(format!(
                "the kernel knows partition {number} with {len} bytes at byte {start}, and the table on the disk {}: read it again \
                 (partprobe, or unplug it)",
                found.map_or("has none".to_owned(), |(s, l)| format!("says {l} at {s}"))
            )));
        }
        Ok(Target {
            kind: "partition",
            name,
            partition: Some(number),
            block_bytes: geometry.block_bytes,
            blocks: len / block,
            start_block: start / block,
        })
    }

    /// The serial number that the user typed must be the drive's, and must tell it from all others here.
    pub(super) fn check_serial(
        &self,
        drive: &Drive,
        identity: &Identity,
        typed: Option<&str>,
    ) -> Result<(), Refusal> {
        let device = drive.name().to_owned();
        let found = match &identity.serial {
            Some(serial) if !serial.trim().is_empty() => serial.trim().to_owned(),
            _ => self.outer_serial(drive)?,
        };
        match typed.map(str::trim) {
            None => Err(Refusal::SerialWanted { device, shown: found }),
            Some(typed) if typed == found => Ok(()),
            Some(typed) => Err(Refusal::OtherSerial {
                device,
                found,
                wanted: typed.to_owned(),
            }),
        }
    }

    /// Where the drive's own number cannot be read: that of the USB device, if no other here has the same.
    fn outer_serial(&self, drive: &Drive) -> Result<String, Refusal> {
        let none = |why: &str| Refusal::NoSerial {
            device: drive.name().to_owned(),
            why: why.to_owned(),
        };
        let usb = drive.facts().usb.as_ref();
        let serial = usb
            .and_then(|usb| usb.serial.as_deref())
            .map(str::trim)
            .filter(|s| !s.is_empty())
            .ok_or_else(|| none("neither the drive nor the USB device tells one"))?;
        let alike = self
            .sysfs
            .usb_serials()
            .iter()
            .filter(|other| other.trim() == serial)
            .count();
        if alike > 1 && !drive.is_simulated() {
            return Err(none(&format!("{alike} USB devices here say {serial}")));
        }
        Ok(serial.to_owned())
    }

    /// Reads the identity again: it must be the drive that was planned for.
    pub(super) fn check_identity(
        &self,
        drive: &mut Drive,
        geometry: &Geometry,
        planned: &Identity,
    ) -> Result<(), super::work::Stopped> {
        let device = drive.name().to_owned();
        let changed = |what: String| {
            super::work::Stopped::Refused(Refusal::Changed {
                device: device.clone(),
                what,
            })
        };
        let now = drive.geometry()?;
        if drive.attentions() != self.attentions {
            return Err(changed(
                "it was reset, or its medium changed, as a unit attention tells".to_owned(),
            ));
        }
        if now != *geometry {
            return Err(changed(format!(
                "{} blocks of {} bytes where there were {} of {}",
                now.blocks, now.block_bytes, geometry.blocks, geometry.block_bytes
            )));
        }
        if drive.identify().is_none() {
            return Ok(());
        }
        let reply = drive.ata("IDENTIFY DEVICE", Taskfile::identify_device())?;
        let identify = Identify::parse(&reply.data.unwrap_or_default()).map_err(|source| {
            super::work::Stopped::Drive(DriveError::Garbage {
                device: device.clone(),
                source,
            })
        })?;
        for (what, then, now) in [
            (
                "model",
                Some(planned.model.clone()),
                Some(identify.model().unwrap_or_default()),
            ),
            ("serial number", planned.serial.clone(), identify.serial()),
            ("firmware", planned.firmware.clone(), identify.firmware()),
        ] {
            if then != now {
                return Err(changed(format!(
                    "its {what} is {} and was {}",
                    now.unwrap_or_else(|| "not told".to_owned()),
                    then.unwrap_or_else(|| "not told".to_owned())
                )));
            }
        }
        Ok(())
    }
}
