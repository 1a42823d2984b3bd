//! Free space against the file systems' own tools, on volumes made at random.
//!
//! For each image: what [`drivethru::freemap`] calls free is free to the tools too, and at least 99 % of what they call free;
//! with all of it overwritten the checker is content and every file is what it was; and with random damage the answer
//! is a refusal or a part of the true free space.
//!
//! `cargo test --test freemap -- --images N --seed S --only FAMILY`

mod exfat;
mod ext;
mod fat;
mod ntfs;
mod support;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use drivethru::freemap::{Extent, FreeMap, ReadAt, ReadError, Window};
use support::{Case, Image, Maker, Rng, outside, total_bytes};

/// Damaged copies of each image.
const DAMAGES: u64 = 24;

struct Plan {
    images: usize,
    seed: u64,
    only: Option<String>,
}

fn plan() -> Result<Plan, String> {
    let mut plan = Plan {
        images: 200,
        seed: 1,
        only: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--images" => plan.images = value()?.parse().map_err(|e| format!("--images: {e}"))?,
            "--seed" => plan.seed = value()?.parse().map_err(|e| format!("--seed: {e}"))?,
            "--only" => plan.only = Some(value()?),
            // What the test runner of cargo is given for other tests.
            _ if word.starts_with("--") => {}
            _ => plan.only = Some(word),
        }
    }
    Ok(plan)
}

#[derive(Default)]
struct Tally {
    images: usize,
    free_bytes: u64,
    free_by_tools_bytes: u64,
    owners: u64,
    damaged: u64,
    refused: u64,
    failures: Vec<String>,
}

fn main() -> ExitCode {
    let plan = match plan() {
        Ok(plan) => plan,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let makers: Vec<Box<dyn Maker>> = [ext::makers(), fat::makers(), exfat::makers(), ntfs::makers()]
        .into_iter()
        .flatten()
        .filter(|m| plan.only.as_ref().is_none_or(|only| m.name() == only))
        .collect();
    let shares: usize = makers.iter().map(|m| m.share()).sum();
    let mut failed = false;
    for maker in &makers {
        if let Some(program) = maker.missing() {
            println!("SKIPPED: freemap {}: {program} is not here", maker.name());
            continue;
        }
        let images = (plan.images * maker.share()).div_ceil(shares.max(1));
        let start = Instant::now();
        let tally = family(&**maker, images, plan.seed);
        for failure in tally.failures.iter().take(20) {
            println!("FAILED: freemap {failure}");
        }
        failed |= !tally.failures.is_empty();
        println!(
            "freemap: {} {} images, {:.2} % of {} free bytes, {} owners, {} of {} damaged ones refused, {} failures, {:.0} s",
            tally.images,
            maker.name(),
            100.0 * tally.free_bytes as f64 / tally.free_by_tools_bytes.max(1) as f64,
            tally.free_by_tools_bytes,
            tally.owners,
            tally.refused,
            tally.damaged,
            tally.failures.len(),
            start.elapsed().as_secs_f64()
        );
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn family(maker: &dyn Maker, images: usize, seed: u64) -> Tally {
    let tally = Mutex::new(Tally::default());
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= images {
                        break;
                    }
                    let one = seed.wrapping_mul(1_000_003).wrapping_add(index as u64);
                    if let Err(why) = check(maker, one, &tally) {
                        let mut tally = tally.lock().expect("the tally");
                        tally.failures.push(format!("{} seed {one}: {why}", maker.name()));
                    }
                }
            });
        }
    });
    tally.into_inner().expect("the tally")
}

fn check(maker: &dyn Maker, seed: u64, tally: &Mutex<Tally>) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let case = maker.make(seed, dir.path())?;
    let label = &case.label;
    let image = Image::open(&case.image)?;
    let window = Window::new(&image, case.volume).ok_or("the volume lies outside its image")?;
    // What is read is what decides: there the damage is done later.
    let reading = Reading {
        volume: &window,
        places: std::cell::RefCell::default(),
    };
    let map = maker
        .free_map(&reading)
        .map_err(|e| format!("{label}: refused a sound volume: {e}"))?;
    well_formed(&map, case.volume.len_bytes).map_err(|e| format!("{label}: {e}"))?;
    if let Some(extent) = outside(&map.free, &case.free_by_tools) {
        return Err(format!(
            "{label}: {extent:?} is called free, and the tools say it is not"
        ));
    }
    let (free, by_tools) = (map.free_bytes(), total_bytes(&case.free_by_tools));
    if u128::from(free) * 100 < u128::from(by_tools) * 99 {
        return Err(format!("{label}: {free} bytes found of {by_tools} free ones"));
    }
    let trimmed = dir.path().join("trimmed");
    overwrite(&case, &map, &trimmed).map_err(|e| format!("{label}: {e}"))?;
    maker
        .still_whole(&case, &trimmed)
        .map_err(|e| format!("{label}: with the free space overwritten: {e}"))?;

    let places = reading.places.into_inner();
    let mut rng = Rng::new(seed ^ 0x5eed);
    // A damaged size may reach behind the file system, where none of its blocks is; all that is in use before stays forbidden.
    let behind = if maker.size_has_a_witness(&case) {
        case.volume.len_bytes
    } else {
        end_of_use(&case, &map)
    };
    let mut nobodys = case.free_by_tools.clone();
    nobodys.push(Extent {
        start_bytes: behind,
        len_bytes: case.volume.len_bytes.saturating_sub(behind),
    });
    let nobodys = support::merged(nobodys);
    let mut refused = 0;
    for round in 0..DAMAGES {
        let damaged = Damaged::new(&window, &map, &places, &mut rng);
        match maker.free_map(&damaged) {
            Err(_) => refused += 1,
            Ok(found) => {
                well_formed(&found, damaged.size_bytes())
                    .map_err(|e| format!("{label}: damage {round} ({}): {e}", damaged.what))?;
                if let Some(extent) = outside(&found.free, &nobodys) {
                    return Err(format!(
                        "{label}: damage {round} ({}): {extent:?} is called free",
                        damaged.what
                    ));
                }
            }
        }
    }
    let mut tally = tally.lock().expect("the tally");
    tally.images += 1;
    tally.free_bytes += free;
    tally.free_by_tools_bytes += by_tools;
    tally.owners += map.owners_checked;
    tally.damaged += DAMAGES;
    tally.refused += refused;
    Ok(())
}

/// Behind this nothing belongs to the file system: where it ends, or, if its last whole unit is free, where that does (less than
/// a unit can follow, which nobody can use).
fn end_of_use(case: &Case, map: &FreeMap) -> u64 {
    let last_free = case
        .free_by_tools
        .last()
        .map_or(0, |e| e.start_bytes + e.len_bytes);
    if last_free + u64::from(map.unit_bytes) > map.covered_bytes {
        last_free
    } else {
        map.covered_bytes
    }
}

/// Sorted, merged, not empty, within the volume.
fn well_formed(map: &FreeMap, volume_bytes: u64) -> Result<(), String> {
    let mut end = None;
    for extent in &map.free {
        if extent.len_bytes == 0 || end.is_some_and(|end| extent.start_bytes <= end) {
            return Err(format!(
                "{extent:?} is empty, out of order, or touches the one before"
            ));
        }
        end = Some(extent.end_bytes().ok_or("an extent beyond 64 bits")?);
    }
    if end.unwrap_or(0) > map.covered_bytes || map.covered_bytes > volume_bytes {
        return Err(format!(
            "free up to {end:?}, covered {} of {volume_bytes} bytes",
            map.covered_bytes
        ));
    }
    Ok(())
}

fn overwrite(case: &Case, map: &FreeMap, to: &Path) -> Result<(), String> {
    fs::copy(&case.image, to).map_err(|e| e.to_string())?;
    let file = fs::OpenOptions::new()
        .write(true)
        .open(to)
        .map_err(|e| e.to_string())?;
    let garbage = vec![0xa5; 1 << 16];
    for extent in &map.free {
        let mut at = case.volume.start_bytes + extent.start_bytes;
        let end = at + extent.len_bytes;
        while at < end {
            let len = (end - at).min(garbage.len() as u64);
            file.write_all_at(&garbage[..len as usize], at)
                .map_err(|e| e.to_string())?;
            at += len;
        }
    }
    Ok(())
}

/// A volume with some of its used bytes changed, or cut short.
struct Damaged<'a> {
    volume: &'a dyn ReadAt,
    size_bytes: u64,
    changes: Vec<(u64, u8)>,
    what: String,
}

impl<'a> Damaged<'a> {
    fn new(volume: &'a dyn ReadAt, map: &FreeMap, places: &[(u64, u64)], rng: &mut Rng) -> Self {
        let size_bytes = volume.size_bytes();
        if rng.chance(5) {
            let cut = rng.below(size_bytes);
            return Self {
                volume,
                size_bytes: cut,
                changes: Vec::new(),
                what: format!("cut at {cut}"),
            };
        }
        let count = *rng.pick(&[1, 1, 1, 2, 3, 8, 64]);
        let mut changes = Vec::new();
        while changes.len() < count {
            let at = used_byte(map, places, size_bytes, rng);
            let mut old = [0];
            let _ = volume.read_at(at, &mut old);
            // Zero bytes of metadata are many, and most of them mean nothing.
            if old[0] == 0 && rng.chance(80) {
                continue;
            }
            let new = match rng.below(4) {
                0 => rng.next() as u8,
                1 => 0,
                2 => 0xff,
                _ => old[0] ^ (1 << rng.below(8)),
            };
            changes.push((at, new));
        }
        Self {
            volume,
            size_bytes,
            what: format!("bytes {changes:?}"),
            changes,
        }
    }
}

/// A byte that the map does not call free: mostly one that was read, else any.
fn used_byte(map: &FreeMap, places: &[(u64, u64)], size_bytes: u64, rng: &mut Rng) -> u64 {
    loop {
        let at = if rng.chance(80) {
            let (offset, len) = *rng.pick(places);
            offset + rng.below(len)
        } else if rng.chance(50) {
            rng.below(size_bytes.min(1 << 16))
        } else {
            rng.below(size_bytes)
        };
        let index = map.free.partition_point(|e| e.start_bytes <= at);
        let free = index
            .checked_sub(1)
            .and_then(|i| map.free.get(i))
            .is_some_and(|e| e.start_bytes + e.len_bytes > at);
        if !free {
            return at;
        }
    }
}

/// Notes what is read of a volume.
struct Reading<'a> {
    volume: &'a dyn ReadAt,
    places: std::cell::RefCell<Vec<(u64, u64)>>,
}

impl ReadAt for Reading<'_> {
    fn size_bytes(&self) -> u64 {
        self.volume.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.volume.read_at(offset_bytes, buffer)?;
        if !buffer.is_empty() {
            self.places.borrow_mut().push((offset_bytes, buffer.len() as u64));
        }
        Ok(())
    }
}

impl ReadAt for Damaged<'_> {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        let end = offset_bytes + buffer.len() as u64;
        if end > self.size_bytes {
            return Err(ReadError::past_end(offset_bytes, buffer.len(), self.size_bytes));
        }
        self.volume.read_at(offset_bytes, buffer)?;
        for (at, new) in &self.changes {
            if (offset_bytes..end).contains(at) {
                buffer[(at - offset_bytes) as usize] = *new;
            }
        }
        Ok(())
    }
}
