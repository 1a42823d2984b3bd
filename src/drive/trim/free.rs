//! Free space of the file systems on a target, in its blocks.

use super::report::{LeftAlone, Volume};
use super::{Refusal, TrimError};
use crate::drive::Drive;
use crate::drive::media::{Geometry, Medium};
use crate::freemap::partitions;
use crate::freemap::signature::signatures;
use crate::freemap::survey::{self, Outcome, Survey};
use crate::freemap::{Extent, ReadAt, Refusal as MapRefusal, Window};
use crate::permit::BlockRange;
use crate::units::human_bytes;

/// What may be trimmed, and what is left alone.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Blocks of the whole disk, in order.
    pub ranges: Vec<BlockRange>,
    pub volumes: Vec<Volume>,
    pub left_alone: Vec<LeftAlone>,
}

impl Found {
    pub fn of(ranges: Vec<BlockRange>) -> Self {
        Self {
            ranges,
            ..Self::default()
        }
    }

    /// What a survey found, with its addresses moved to `first_block`.
    pub fn from_survey(survey: &Survey, first_block: u64) -> Self {
        let block = u64::from(survey.sector_bytes.max(1));
        let ranges = survey.free.iter().map(|e| BlockRange {
            first: first_block + e.start_bytes / block,
            count: e.len_bytes / block,
        });
        let volumes = survey.volumes.iter().map(|volume| {
            let mapped = match &volume.outcome {
                Outcome::Mapped(summary) => Some(summary),
                Outcome::LeftAlone(_) => None,
            };
            Volume {
                partition: volume.number,
                what: volume.what.clone(),
                bytes: volume.extent.len_bytes,
                free_bytes: mapped.map(|m| m.free_bytes),
                owners_checked: mapped.map(|m| m.owners_checked),
            }
        });
        let left_alone = survey.left_alone.iter().map(|left| LeftAlone {
            what: format!(
                "{}, {} at block {}",
                left.what,
                human_bytes(left.extent.len_bytes),
                left.extent.start_bytes / block
            ),
            why: left.why.to_string(),
        });
        Self {
            ranges: super::merged(ranges.collect()),
            volumes: volumes.collect(),
            left_alone: left_alone.collect(),
        }
    }
}

/// Surveys the part `base` of the medium: all of it, or one partition.
pub(super) fn find(
    drive: &mut Drive,
    geometry: &Geometry,
    base: BlockRange,
    gaps: bool,
) -> Result<Found, TrimError> {
    let device = drive.name().to_owned();
    let block = u64::from(geometry.block_bytes);
    let whole = base.first == 0 && base.count == geometry.blocks;
    let extent = Extent {
        start_bytes: base.first.saturating_mul(block),
        len_bytes: base.count.saturating_mul(block),
    };
    let medium = Medium::new(drive, geometry.clone());
    let ask = survey::Ask {
        gaps,
        target: if whole {
            survey::Target::Disk
        } else {
            survey::Target::Volume
        },
        ..survey::Ask::default()
    };
    let surveyed = match Window::new(&medium, extent) {
        Some(window) => survey_of(&window, geometry.block_bytes, &ask, &device),
        None => Err(Refusal::Unclear {
            device: device.clone(),
            why: "the target does not lie on its disk".to_owned(),
        }
        .into()),
    };
    // A medium that cannot be read is the device's failure, whatever the reader made of it.
    if let Some(error) = medium.into_error() {
        return Err(error.into());
    }
    Ok(Found::from_survey(&surveyed?, base.first))
}

/// What stands in ranges that the user named himself, so that the plan says what would be lost.
pub(super) fn holdings(
    drive: &mut Drive,
    geometry: &Geometry,
    base: BlockRange,
) -> Result<Vec<Volume>, TrimError> {
    let block = u64::from(geometry.block_bytes);
    let extent = Extent {
        start_bytes: base.first.saturating_mul(block),
        len_bytes: base.count.saturating_mul(block),
    };
    let medium = Medium::new(drive, geometry.clone());
    let names = Window::new(&medium, extent).map(|window| {
        let mut names: Vec<&str> = signatures(&window)
            .unwrap_or_default()
            .iter()
            .map(|s| s.what)
            .collect();
        if matches!(
            partitions::read(&window, geometry.block_bytes),
            Ok(Some(_)) | Err(MapRefusal::Contradiction { .. })
        ) {
            names.push("a partition table");
        }
        names.dedup();
        names.join(" and ")
    });
    if let Some(error) = medium.into_error() {
        return Err(error.into());
    }
    Ok(names
        .into_iter()
        .filter(|names| !names.is_empty())
        .map(|names| Volume {
            partition: None,
            what: format!("holds {names}"),
            bytes: extent.len_bytes,
            free_bytes: None,
            owners_checked: None,
        })
        .collect())
}

/// Surveys anything; a table that cannot be read is a refusal.
pub(super) fn survey_of(
    target: &dyn ReadAt,
    block_bytes: u32,
    ask: &survey::Ask,
    name: &str,
) -> Result<Survey, TrimError> {
    survey::survey(target, block_bytes, ask).map_err(|refusal: MapRefusal| {
        Refusal::Unclear {
            device: name.to_owned(),
            why: refusal.to_string(),
        }
        .into()
    })
}
