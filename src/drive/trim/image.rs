//! An image in a regular file: the same plan, and holes instead of commands.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::fcntl::{FallocateFlags, Flock, FlockArg, fallocate};

use super::free::{self, Found};
use super::paths::{Method, Refused};
use super::plan::{PathLimits, Plan};
use super::report::{Done, Ending, Target, TrimReport, Verified};
use super::{Ask, LogEntry, Refusal, TrimError, TrimRun, Watch, What, stated_ranges};
use crate::drive::{DeviceRef, DriveError};
use crate::freemap::survey;
use crate::freemap::{ReadAt, ReadError};
use crate::permit::{BlockRange, Permit};
use crate::sys::sysfs::Sysfs;
use crate::sys::usage::Tables;
use crate::time::{Clock, RealClock};

/// Holes that are punched in one call, at most: so that the work can be stopped.
const HOLE_BLOCKS: u64 = 1 << 31;

struct Image(File);

impl ReadAt for Image {
    fn size_bytes(&self) -> u64 {
        self.0.metadata().map_or(0, |m| m.len())
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.0.read_exact_at(buffer, offset_bytes).map_err(|e| ReadError {
            offset_bytes,
            len_bytes: buffer.len(),
            why: e.to_string(),
        })
    }
}

/// Plans, and with [`Ask::commit`] punches holes into, an image file. Its blocks have 512 bytes, or 4096 where its partition
/// table was made for those.
///
/// # Errors
/// Nothing was done: bad ranges, or an image that is in use or cannot be opened or taken apart.
pub fn run_image(
    path: &Path,
    sysfs: &Sysfs,
    proc: &Path,
    ask: &Ask,
    watch: &mut dyn Watch,
) -> Result<TrimRun, TrimError> {
    let name = path.display().to_string();
    let io = |what: &str, error: &std::io::Error| {
        TrimError::Drive(DriveError::Odd {
            device: name.clone(),
            what: format!("{what}: {error}"),
        })
    };
    let real = path.canonicalize().map_err(|e| io("open", &e))?;
    refuse_in_use(&name, &real, sysfs, proc)?;
    if ask.method.is_some() {
        return Err(TrimError::BadRange(
            "--method names a way to a device, and an image has only holes".to_owned(),
        ));
    }
    let file = OpenOptions::new()
        .read(true)
        .write(ask.commit)
        .open(&real)
        .map_err(|e| match e.kind() {
            std::io::ErrorKind::PermissionDenied => TrimError::Drive(
                crate::transport::TransportError::PermissionDenied {
                    device: name.clone(),
                    what: "open".to_owned(),
                }
                .into(),
            ),
            _ => io("open", &e),
        })?;
    lock_ranges(&file, ask.commit).map_err(|errno| Refusal::UsageUnknown {
        device: name.clone(),
        why: format!("another program, an emulator perhaps, has locked it ({errno})"),
    })?;
    let lock =
        Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| Refusal::UsageUnknown {
            device: name.clone(),
            why: format!("another program has locked it ({errno})"),
        })?;
    let image = Image(lock.try_clone().map_err(|e| io("open", &e))?);
    let (block_bytes, surveyed) = survey_image(&image, ask, &name)?;
    let blocks = image.size_bytes() / u64::from(block_bytes);
    let base = BlockRange {
        first: 0,
        count: blocks,
    };
    let found = match (&ask.what, surveyed) {
        (What::Ranges(ranges), _) => Found::of(stated_ranges(ranges, base)?),
        (What::All, _) => Found::of(vec![base]),
        (What::Free { .. }, found) => found,
    };
    let limits = PathLimits::one_range(HOLE_BLOCKS);
    let method = Method::PunchHole;
    let plan = Plan::new(&found.ranges, 0, block_bytes, Some((method, limits)));
    let mut report = TrimReport {
        schema: "drivethru-trim/1",
        schema_version: 1,
        device: DeviceRef {
            name: name.clone(),
            lun: 0,
            bay: 0,
            model: None,
            serial: None,
            firmware: None,
            dialect: None,
            usb_id: None,
            simulated: false,
        },
        target: Target {
            kind: "image",
            name: name.clone(),
            partition: None,
            block_bytes,
            blocks,
            start_block: 0,
        },
        what: ask.what.word(),
        commit: ask.commit,
        method: Some(method),
        refused: Vec::<Refused>::new(),
        plan,
        volumes: found.volumes,
        left_alone: found.left_alone,
        failed_proofs: Vec::new(),
        stamp_left: None,
        proof: None,
        done: None,
        verified: None,
        ending: Ending::Planned,
    };
    if found.ranges.is_empty() {
        report.ending = Ending::NothingToDo;
    }
    if ask.commit && report.ending == Ending::Planned {
        let permit = Permit::to_discard(block_bytes, found.ranges.clone())
            .map_err(|e| TrimError::BadRange(e.to_string()))?;
        let error = punch(&image, &permit, &found.ranges, &limits, &mut report, watch);
        if error.is_some() {
            return Ok(TrimRun { report, error });
        }
        if ask.verify && report.ending == Ending::Done {
            look_again(&image, &found.ranges, block_bytes, &mut report);
        }
    }
    Ok(TrimRun { report, error: None })
}

/// Emulators lock images by byte ranges, which `flock` does not see: all of the file, to write, or only asked for.
fn lock_ranges(file: &File, write: bool) -> Result<(), nix::errno::Errno> {
    let mut range = nix::libc::flock {
        l_type: nix::libc::F_WRLCK as nix::libc::c_short,
        l_whence: nix::libc::SEEK_SET as nix::libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    if write {
        return nix::fcntl::fcntl(file, nix::fcntl::FcntlArg::F_OFD_SETLK(&range)).map(|_| ());
    }
    nix::fcntl::fcntl(file, nix::fcntl::FcntlArg::F_OFD_GETLK(&mut range))?;
    if range.l_type == nix::libc::F_UNLCK as nix::libc::c_short {
        Ok(())
    } else {
        Err(nix::errno::Errno::EAGAIN)
    }
}

/// An image that a loop device or swap uses may be mounted by it.
fn refuse_in_use(name: &str, real: &Path, sysfs: &Sysfs, proc: &Path) -> Result<(), TrimError> {
    let tables = Tables::read(proc).map_err(|e| Refusal::UsageUnknown {
        device: name.to_owned(),
        why: format!("the mount table: {e}"),
    })?;
    let mut users = sysfs.loops_on(real);
    users.extend(
        tables
            .swaps
            .iter()
            .filter(|swap| *swap == real)
            .map(|_| "swap".to_owned()),
    );
    if users.is_empty() {
        return Ok(());
    }
    Err(Refusal::UsageUnknown {
        device: name.to_owned(),
        why: format!("{} uses this file", users.join(" and ")),
    }
    .into())
}

/// With blocks of 512 bytes, or of 4096 where only that makes sense of the partition table.
fn survey_image(image: &Image, ask: &Ask, name: &str) -> Result<(u32, Found), TrimError> {
    let What::Free { gaps } = ask.what else {
        return Ok((512, Found::default()));
    };
    let ask = survey::Ask {
        gaps,
        ..survey::Ask::default()
    };
    let small = free::survey_of(image, 512, &ask, name);
    match small {
        Ok(survey) => Ok((512, Found::from_survey(&survey, 0))),
        Err(refusal) => match free::survey_of(image, 4096, &ask, name) {
            Ok(survey) if survey.scheme.is_some() => Ok((4096, Found::from_survey(&survey, 0))),
            _ => Err(refusal),
        },
    }
}

fn punch(
    image: &Image,
    permit: &Permit,
    ranges: &[BlockRange],
    limits: &PathLimits,
    report: &mut TrimReport,
    watch: &mut dyn Watch,
) -> Option<TrimError> {
    let failed = |what: String| {
        TrimError::Drive(DriveError::Odd {
            device: "image".to_owned(),
            what,
        })
    };
    let mut error = None;
    let clock = RealClock::new();
    let start = clock.now();
    let block = i64::from(permit.block_bytes());
    let total_bytes = report.plan.bytes;
    let mut done = Done::default();
    report.ending = Ending::Done;
    for command in super::plan::commands(ranges, limits) {
        if watch.stop() {
            report.ending = Ending::Interrupted;
            break;
        }
        let mut result = Ok(());
        for range in &command {
            let place = i64::try_from(range.first).ok().and_then(|n| n.checked_mul(block));
            let len = i64::try_from(range.count).ok().and_then(|n| n.checked_mul(block));
            result = match place.zip(len).filter(|_| permit.may_discard(*range)) {
                Some((place, len)) => fallocate(
                    &image.0,
                    FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE,
                    place,
                    len,
                )
                .map_err(|errno| errno.to_string()),
                None => Err("a range outside what was permitted".to_owned()),
            };
        }
        let entry = LogEntry::Trim {
            at: clock.rfc3339(),
            method: Method::PunchHole,
            ranges: command.iter().map(|r| (r.first, r.count)).collect(),
            error: result.as_ref().err().cloned(),
        };
        let logged = watch.log(&entry);
        if let Err(why) = result {
            error = Some(failed(why));
            break;
        }
        done.commands += 1;
        done.bytes += command.iter().map(|r| r.count).sum::<u64>() * u64::from(permit.block_bytes());
        done.elapsed_seconds = clock.now().saturating_sub(start).as_secs_f64();
        watch.progress(done.bytes, total_bytes);
        if let Err(log) = logged {
            error = Some(TrimError::Log(log));
            break;
        }
    }
    if let Err(sync) = image.0.sync_data() {
        error.get_or_insert_with(|| failed(sync.to_string()));
    }
    if let Some(error) = &error {
        report.ending = Ending::Stopped {
            why: error.to_string(),
        };
    }
    report.done = Some(done);
    error
}

/// A hole reads as zeroes.
fn look_again(image: &Image, ranges: &[BlockRange], block_bytes: u32, report: &mut TrimReport) {
    let mut verified = Verified::default();
    let mut buffer = vec![0; block_bytes as usize];
    for range in ranges {
        for block in [
            range.first,
            range.first + range.count / 2,
            range.first + range.count - 1,
        ] {
            verified.samples += 1;
            match image.read_at(block * u64::from(block_bytes), &mut buffer) {
                Ok(()) if buffer.iter().all(|b| *b == 0) => verified.as_proven += 1,
                Ok(()) => verified.found(format!("block {block} was punched and does not read as zeroes")),
                Err(error) => verified.found(error.to_string()),
            }
        }
    }
    if verified.wrong_count > 0 {
        report.ending = Ending::VerifyFailed;
    }
    report.verified = Some(verified);
}
