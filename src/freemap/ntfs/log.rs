//! `$LogFile`: whether the journal has anything left to do.

use super::record;
use super::stream::{Disk, Stream};
use super::{TOOL, not_clean};
use crate::freemap::Refusal;
use crate::wire::{le16, le32, le64};

/// How much of the start has to be FFh for the journal to be empty: restart pages stand in its first two pages.
const EMPTY_BYTES: u64 = 1 << 20;
const MIN_PAGE_BYTES: usize = 512;
const MAX_PAGE_BYTES: usize = 64 << 10;
/// No client of the journal.
const NO_CLIENT: u16 = 0xffff;
/// RESTART_VOLUME_IS_CLEAN.
const CLEAN: u16 = 0x0002;

/// Refuses a journal that has to be replayed.
///
/// A journal is done with where it holds nothing but FFh (a new volume, or one that another system wrote to), or where
/// the newest of its restart pages says that the volume is clean or that no client uses the journal.
pub(super) fn check(disk: &Disk, log: &Stream) -> Result<(), Refusal> {
    let unclean = |why: &str| not_clean(format!("$LogFile: {why}"));
    let len = usize::try_from(log.data_bytes.min(EMPTY_BYTES)).unwrap_or_default();
    if len < 2 * MIN_PAGE_BYTES {
        return Err(unclean("it is too short for a journal"));
    }
    let mut bytes = vec![0; len];
    log.read(disk, 0, &mut bytes)?;
    if bytes.iter().all(|byte| *byte == 0xff) {
        return Ok(());
    }
    let first = restart(&bytes, 0)
        .map_err(unclean)?
        .ok_or_else(|| unclean("it has no restart page"))?;
    let second = restart(&bytes, first.page_bytes).map_err(unclean)?;
    for page in [Some(&first), second.as_ref()].into_iter().flatten() {
        if page.version.0 != 1 {
            return Err(unclean(&format!(
                "Windows keeps changes in memory over a shutdown (fast startup, journal of version {}.{}); shut it \
                 down fully",
                page.version.0, page.version.1
            )));
        }
    }
    let newest = second
        .as_ref()
        .map_or(first.lsn, |second| second.lsn.max(first.lsn));
    let dirty = [Some(&first), second.as_ref()]
        .into_iter()
        .flatten()
        .any(|page| page.lsn == newest && !page.is_done);
    if dirty {
        return Err(unclean("the journal has changes to replay"));
    }
    Ok(())
}

struct Restart {
    page_bytes: usize,
    version: (i16, i16),
    lsn: u64,
    is_done: bool,
}

/// The restart page at this offset; none where nothing says that there is one.
fn restart(log: &[u8], at: usize) -> Result<Option<Restart>, &'static str> {
    let bad = "a restart page makes no sense";
    let page = log.get(at..).ok_or(bad)?;
    // CHKD is what chkdsk leaves in place of RSTR.
    if !page.starts_with(b"RSTR") && !page.starts_with(b"CHKD") {
        return Ok(None);
    }
    let page_bytes = le32(page, 16).ok_or(bad)? as usize;
    if !page_bytes.is_power_of_two() || !(MIN_PAGE_BYTES..=MAX_PAGE_BYTES).contains(&page_bytes) {
        return Err(bad);
    }
    let mut page = page.get(..page_bytes).ok_or(bad)?.to_vec();
    record::mend(&mut page)?;
    let version = (
        i16::from_le_bytes(le16(&page, 28).ok_or(bad)?.to_le_bytes()),
        i16::from_le_bytes(le16(&page, 26).ok_or(bad)?.to_le_bytes()),
    );
    let area_at = usize::from(le16(&page, 24).ok_or(bad)?);
    if area_at < 30 || !area_at.is_multiple_of(8) {
        return Err(bad);
    }
    let area = page.get(area_at..).ok_or(bad)?;
    let clients = le16(area, 8).ok_or(bad)?;
    let in_use = le16(area, 12).ok_or(bad)?;
    if in_use != NO_CLIENT && in_use >= clients {
        return Err(bad);
    }
    Ok(Some(Restart {
        page_bytes,
        version,
        lsn: le64(area, 0).ok_or(bad)?,
        is_done: in_use == NO_CLIENT || le16(area, 14).ok_or(bad)? & CLEAN != 0,
    }))
}

/// Refuses a volume on which Windows hibernates.
pub(super) fn check_hibernation(disk: &Disk, file: &Stream) -> Result<(), Refusal> {
    let mut head = [0; 4];
    if file.data_bytes < 4 {
        return Ok(());
    }
    file.read(disk, 0, &mut head)?;
    // LINK names a file elsewhere, RSTR is one that is being resumed from; WAKE and zeros are done with.
    let asleep: [&[u8; 4]; 3] = [b"HIBR", b"RSTR", b"LINK"];
    if asleep.iter().any(|sign| head.eq_ignore_ascii_case(*sign)) {
        return Err(Refusal::NotClean {
            why: "Windows hibernates on it, or was shut down with fast startup; start it and shut it down fully".into(),
            tool: TOOL,
        });
    }
    Ok(())
}
