//! Random exFAT volumes: mkfs.exfat makes them, a writer of our own or exfat-fuse fills them, and fsck.exfat and dump.exfat
//! say what they are.

mod disk;
mod fuse;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use disk::Disk;
use drivethru::freemap::{Extent, FreeMap, ReadAt, Refusal};

use crate::support::{Case, Maker, Rng, checksum, copy_range, missing_program, run};

/// What makes them.
pub fn makers() -> Vec<Box<dyn Maker>> {
    vec![Box::new(Exfat)]
}

struct Exfat;

impl Maker for Exfat {
    fn name(&self) -> &'static str {
        "exfat"
    }

    fn share(&self) -> usize {
        30
    }

    fn missing(&self) -> Option<String> {
        missing_program(&["mkfs.exfat", "fsck.exfat", "dump.exfat"])
    }

    fn make(&self, seed: u64, dir: &Path) -> Result<Case, String> {
        let mut rng = Rng::new(seed);
        let plain = dir.join("plain");
        let cluster_bytes = 512u64 << rng.below(11);
        let most = if rng.chance(10) { 60000 } else { 4000 };
        let clusters = (32 + rng.below(most)).min((64 << 20) / cluster_bytes);
        let align_bytes = 1u64 << (12 + rng.below(9));
        let mut size_bytes =
            clusters * cluster_bytes + clusters * 4 + 3 * align_bytes + (128 << 10) + rng.below(9000);
        let file = fs::File::create(&plain).map_err(|e| e.to_string())?;
        let with_fuse = rng.chance(35) && fuse::usable();
        let sector_bytes = if with_fuse && cluster_bytes >= 4096 {
            *rng.pick(&[512, 512, 1024, 2048, 4096])
        } else {
            512
        };
        if sector_bytes > 512 {
            // A loop device cannot read half a page at its end.
            size_bytes = size_bytes.next_multiple_of(4096);
        }
        file.set_len(size_bytes).map_err(|e| e.to_string())?;
        let mut arguments = vec!["-c".to_owned(), cluster_bytes.to_string()];
        if rng.chance(70) {
            arguments.extend(["-b".to_owned(), align_bytes.max(cluster_bytes).to_string()]);
            if rng.chance(20) {
                arguments.push("--pack-bitmap".to_owned());
            }
        } else {
            file.set_len(size_bytes + (4 << 20)).map_err(|e| e.to_string())?;
        }
        if rng.chance(40) {
            arguments.extend(["-L".to_owned(), format!("volume {}", rng.below(1000))]);
        }
        let by = if with_fuse { "exfat-fuse" } else { "us" };
        let label = format!(
            "exFAT, {clusters} clusters, {}, sectors of {sector_bytes}, filled by {by}",
            arguments.join(" ")
        );
        let fail = |why: String| format!("{label}: {why}");
        let mut files = if with_fuse {
            fuse::make(&mut rng, &plain, dir, sector_bytes, &arguments).map_err(fail)?
        } else {
            arguments.push(plain.to_str().ok_or("a path")?.to_owned());
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            run("mkfs.exfat", &arguments, &[0]).map_err(fail)?;
            let mut disk = Disk::open(&plain).map_err(fail)?;
            disk.fill(&mut rng).map_err(fail)?
        };
        files.sort();
        let report = sound(&plain).map_err(fail)?;
        let disk = Disk::open(&plain).map_err(fail)?;
        let free_by_tools = disk.free();
        let free = crate::support::total_bytes(&free_by_tools) / disk.cluster_bytes;
        if report != free {
            return Err(fail(format!(
                "dump.exfat finds {report} free clusters, and the bitmap says {free}"
            )));
        }
        let len_bytes = fs::metadata(&plain).map_err(|e| e.to_string())?.len();
        let start_bytes = if rng.chance(50) { rng.below(4096) * 512 } else { 0 };
        let image = dir.join("image");
        copy_range(&plain, 0, len_bytes, &image, start_bytes)?;
        fs::remove_file(&plain).map_err(|e| e.to_string())?;
        Ok(Case {
            label,
            image,
            volume: Extent {
                start_bytes,
                len_bytes,
            },
            free_by_tools,
            files,
        })
    }

    fn free_map(&self, volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
        drivethru::freemap::exfat::free_map(volume)
    }

    fn still_whole(&self, case: &Case, image: &Path) -> Result<(), String> {
        let dir = image.parent().ok_or("no directory")?;
        let plain = dir.join("plain");
        let volume = case.volume;
        copy_range(image, volume.start_bytes, volume.len_bytes, &plain, 0)?;
        sound(&plain)?;
        let files = if case.label.ends_with("exfat-fuse") {
            let sector: Vec<&str> = case.label.split("sectors of ").collect();
            let sector = sector.get(1).and_then(|s| s.split(',').next());
            fuse::read(
                &plain,
                dir,
                sector.and_then(|s| s.parse().ok()).ok_or("no sector size")?,
            )?
        } else {
            let file = fs::File::open(&plain).map_err(|e| e.to_string())?;
            case.files
                .iter()
                .map(|(pieces, _)| Ok((pieces.clone(), sum_of_pieces(&file, pieces)?)))
                .collect::<Result<_, String>>()?
        };
        let mut files: Vec<(String, u64)> = files;
        files.sort();
        if files != case.files {
            let what = case.files.iter().find(|f| !files.contains(f));
            return Err(format!("{what:?} is not what it was"));
        }
        Ok(())
    }
}

/// The checksum of what lies at `name offset+length offset+length`.
fn sum_of_pieces(file: &fs::File, pieces: &str) -> Result<u64, String> {
    let mut bytes = Vec::new();
    for piece in pieces.split(' ').skip(1) {
        let (offset, len) = piece.split_once('+').ok_or("a piece")?;
        let start = bytes.len();
        bytes.resize(start + len.parse::<usize>().map_err(|e| e.to_string())?, 0);
        file.read_exact_at(
            &mut bytes[start..],
            offset.parse::<u64>().map_err(|e| e.to_string())?,
        )
        .map_err(|e| e.to_string())?;
    }
    Ok(checksum(&bytes))
}

/// fsck.exfat finds nothing; the number of free clusters by dump.exfat.
fn sound(plain: &Path) -> Result<u64, String> {
    let path = plain.to_str().ok_or("a path")?;
    let out = run("fsck.exfat", &["-n", path], &[0])?;
    if !out.contains(": clean.") {
        return Err(out);
    }
    let out = run("dump.exfat", &[path], &[0])?;
    out.lines()
        .find_map(|line| line.strip_prefix("Free Clusters:"))
        .and_then(|value| value.trim().parse().ok())
        .ok_or_else(|| format!("dump.exfat says no free clusters: {out}"))
}
