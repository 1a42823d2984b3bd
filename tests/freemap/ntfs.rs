//! Random NTFS volumes: made by mkntfs, filled through ntfs-3g (or, where FUSE does not work, by the tools alone),
//! sometimes resized.

mod fill;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use drivethru::freemap::{Extent, FreeMap, ReadAt, Refusal, ntfs};

use crate::support::{Case, Maker, Rng, checksum, merged, missing_program, run};
use fill::{Mount, fill_mounted, fuse_works, listed};

/// What makes them.
pub fn makers() -> Vec<Box<dyn Maker>> {
    vec![Box::new(Ntfs)]
}

struct Ntfs;

const MIB: u64 = 1 << 20;
/// Before the name of a file that is read by ntfscat, not through a mount.
const BY_TOOL: &str = "ntfscat:";
const READ_ONLY: &str = "ro,streams_interface=windows";

impl Maker for Ntfs {
    fn name(&self) -> &'static str {
        "ntfs"
    }

    fn share(&self) -> usize {
        40
    }

    fn missing(&self) -> Option<String> {
        missing_program(&[
            "mkntfs",
            "ntfs-3g",
            "ntfscp",
            "ntfscat",
            "ntfsinfo",
            "ntfsfix",
            "ntfsresize",
            "umount",
        ])
    }

    fn make(&self, seed: u64, dir: &Path) -> Result<Case, String> {
        let mut rng = Rng::new(seed);
        let path = dir.join("volume");
        let (mut label, cluster_bytes) = format(&path, &mut rng)?;
        let mut files = Vec::new();
        let mut streams = None;
        if fuse_works() && rng.chance(85) {
            label += " mounted";
            streams = Some(fill_mounted(&path, dir, cluster_bytes, &mut rng)?);
        } else {
            label += " by tools";
            files = fill_by_tools(&path, dir, &mut rng)?;
        }
        if rng.chance(15) {
            label += &resize(&path, cluster_bytes, &mut rng)?;
        }
        consistent(&path).map_err(|e| format!("{label}: {e}"))?;
        if let Some(streams) = streams {
            // Not before: ntfs-3g mixes up the contents of hard links that are open at once.
            let mount = Mount::new(&path, dir, READ_ONLY)?;
            files = listed(&mount.root, &streams)?;
            mount.close()?;
        }
        let free_by_tools = free_by_tools(&path)?;
        let (image, volume) = place(&path, dir, &mut rng)?;
        Ok(Case {
            label,
            image,
            volume,
            free_by_tools,
            files,
        })
    }

    fn free_map(&self, volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
        ntfs::free_map(volume)
    }

    fn still_whole(&self, case: &Case, image: &Path) -> Result<(), String> {
        let dir = image.parent().ok_or("an image without a directory")?;
        let path = dir.join("again");
        let mut from = File::open(image).map_err(text)?;
        from.seek(SeekFrom::Start(case.volume.start_bytes))
            .map_err(text)?;
        let mut to = File::create(&path).map_err(text)?;
        std::io::copy(&mut from.take(case.volume.len_bytes), &mut to).map_err(text)?;
        consistent(&path)?;
        let by_mount = case.files.iter().any(|(name, _)| !name.starts_with(BY_TOOL));
        let mounted = if by_mount {
            Some(Mount::new(&path, dir, READ_ONLY)?)
        } else {
            None
        };
        for (name, sum) in &case.files {
            let found = match (name.strip_prefix(BY_TOOL), &mounted) {
                (Some(name), _) => cat(&path, &[name])?,
                (None, Some(mounted)) => {
                    fs::read(mounted.root.join(name)).map_err(|e| format!("{name}: {e}"))?
                }
                (None, None) => continue,
            };
            if checksum(&found) != *sum {
                return Err(format!("{name} has changed"));
            }
        }
        mounted.map_or(Ok(()), Mount::close)
    }
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

fn name_of(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| "a path that is no text".into())
}

/// A volume of random size and geometry; what it is, and the size of its clusters.
fn format(path: &Path, rng: &mut Rng) -> Result<(String, u64), String> {
    let sector_bytes: u64 = *rng.pick(&[512, 512, 512, 512, 256, 1024, 2048, 4096]);
    let cluster_bytes = if rng.chance(50) {
        sector_bytes.max(4096)
    } else {
        let exponents = sector_bytes.trailing_zeros()..=(sector_bytes.trailing_zeros() + 12).min(21);
        1 << (u64::from(*exponents.start()) + rng.below(exponents.count() as u64))
    };
    // Journal and MFT take a few megabytes, and as many clusters as they must.
    let least = (3 * MIB).max(cluster_bytes * 40);
    let span = if rng.chance(10) { 90 * MIB } else { 24 * MIB };
    let sectors = (least + rng.below(span)) / sector_bytes;
    File::create(path)
        .and_then(|f| f.set_len(sectors * sector_bytes))
        .map_err(text)?;
    let mut words = vec![
        "-F".to_owned(),
        "-Q".into(),
        "-q".into(),
        "-c".into(),
        cluster_bytes.to_string(),
        "-s".into(),
        sector_bytes.to_string(),
        "-p".into(),
        (rng.below(1 << 20)).to_string(),
        "-H".into(),
        rng.pick(&["16", "255"]).to_string(),
        "-S".into(),
        "63".into(),
        "-z".into(),
        (1 + rng.below(4)).to_string(),
    ];
    for (percent, word) in [(30, "-C"), (10, "-I"), (10, "-T")] {
        if rng.chance(percent) {
            words.push(word.into());
        }
    }
    if rng.chance(50) {
        words.extend(["-L".into(), format!("volume {}", rng.below(1000))]);
    }
    words.push(name_of(path)?.into());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run("mkntfs", &words, &[0])?;
    let label = format!("{sectors} sectors of {sector_bytes}, clusters of {cluster_bytes}");
    Ok((label, cluster_bytes))
}

/// Files by ntfscp, which can only add them.
fn fill_by_tools(volume: &Path, dir: &Path, rng: &mut Rng) -> Result<Vec<(String, u64)>, String> {
    let source = dir.join("source");
    let mut files = Vec::new();
    for index in 0..rng.below(24) {
        let size = match rng.below(3) {
            0 => rng.below(800),
            1 => rng.below(100_000),
            _ => rng.below(volume.metadata().map_err(text)?.len() / 30),
        };
        fs::write(&source, rng.bytes(size as usize)).map_err(text)?;
        let name = format!("file{index}");
        let mut words = vec!["-f", "-q"];
        if index > 2 && rng.chance(10) {
            words.extend(["-N", "stream"]);
            words.extend([name_of(volume)?, name_of(&source)?, "file0"]);
            run("ntfscp", &words, &[0, 1])?;
            continue;
        }
        words.extend([name_of(volume)?, name_of(&source)?, &name]);
        // It may be full; what is there now is what counts.
        run("ntfscp", &words, &[0, 1])?;
        if let Ok(bytes) = cat(volume, &[&name]) {
            files.push((format!("{BY_TOOL}{name}"), checksum(&bytes)));
        }
    }
    Ok(files)
}

fn cat(volume: &Path, what: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new("ntfscat")
        .arg(volume)
        .args(what)
        .output()
        .map_err(text)?;
    if !output.status.success() {
        return Err(format!(
            "ntfscat {what:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(output.stdout)
}

/// Grows or shrinks the volume, which moves clusters and the MFT; then takes away the dirty flag that this leaves.
fn resize(path: &Path, cluster_bytes: u64, rng: &mut Rng) -> Result<String, String> {
    let name = name_of(path)?;
    let len = path.metadata().map_err(text)?.len();
    let to = if rng.chance(50) {
        let to = len + cluster_bytes * 8 + rng.below(20 * MIB);
        let file = OpenOptions::new().write(true).open(path).map_err(text)?;
        file.set_len(to).map_err(text)?;
        to
    } else {
        len / 100 * (60 + rng.below(38))
    };
    // What does not fit stays as it is.
    let done = run(
        "ntfsresize",
        &["-f", "-f", "-P", "-s", &to.to_string(), name],
        &[0, 1],
    )?;
    let happened = done.contains("Successfully resized");
    if happened && to < len {
        // As the partition is shrunk afterwards.
        let file = OpenOptions::new().write(true).open(path).map_err(text)?;
        file.set_len(to).map_err(text)?;
    }
    run("ntfsfix", &["-d", name], &[0])?;
    Ok(format!(
        ", resized from {len} to {to}{}",
        if happened { "" } else { " (not)" }
    ))
}

/// The checkers that there are: that of ntfsresize compares every cluster with every file.
fn consistent(volume: &Path) -> Result<(), String> {
    let name = name_of(volume)?;
    let mut boot = [0; 16];
    File::open(volume)
        .and_then(|f| f.read_exact_at(&mut boot, 0))
        .map_err(text)?;
    // With sectors of 256 bytes ntfsfix looks for the backup of the boot sector in the wrong place.
    if boot[11..13] != 256u16.to_le_bytes() {
        run("ntfsfix", &["-n", name], &[0])?;
    }
    // It fails on a full volume, after the checks; and where ntfs-3g, on a full volume, lost clusters that are marked.
    let out = run("ntfsresize", &["-i", "-f", "-P", name], &[0, 1])?;
    let only_lost = out.contains("Cluster accounting failed")
        && out
            .lines()
            .filter(|line| line.contains("Cluster accounting failed"))
            .all(|line| line.contains("extra cluster in $Bitmap"));
    if out.contains("Collecting resizing constraints") || only_lost {
        Ok(())
    } else {
        Err(format!("ntfsresize: {out}"))
    }
}

/// `$Bitmap` as ntfscat reads it, with as many free clusters as ntfsinfo counts.
fn free_by_tools(volume: &Path) -> Result<Vec<Extent>, String> {
    let info = run("ntfsinfo", &["-m", name_of(volume)?], &[0])?;
    let number = |what: &str| -> Result<u64, String> {
        let line = info.lines().find_map(|line| line.trim().strip_prefix(what));
        line.and_then(|rest| rest.split_whitespace().next())
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| format!("ntfsinfo does not say {what}"))
    };
    let cluster_bytes = number("Cluster Size:")?;
    let clusters = number("Volume Size in Clusters:")?;
    let bytes = cat(volume, &["-i", "6"])?;
    let mut free = Vec::new();
    for lcn in 0..clusters {
        let byte = bytes.get((lcn / 8) as usize).ok_or("$Bitmap is too short")?;
        if byte >> (lcn % 8) & 1 == 0 {
            free.push(Extent {
                start_bytes: lcn * cluster_bytes,
                len_bytes: cluster_bytes,
            });
        }
    }
    if number("Free Clusters:")? != free.len() as u64 {
        return Err("ntfsinfo and ntfscat do not agree".into());
    }
    Ok(merged(free))
}

/// Puts the volume into an image, at an offset as partitions have and with something behind it.
fn place(path: &Path, dir: &Path, rng: &mut Rng) -> Result<(PathBuf, Extent), String> {
    let start_bytes = 512 * *rng.pick(&[0, 1, 63, 2048, 34, 4095]);
    let len_bytes = path.metadata().map_err(text)?.len();
    let image = dir.join("image");
    let to = File::create(&image).map_err(text)?;
    to.set_len(start_bytes + len_bytes + 512 * rng.below(100))
        .map_err(text)?;
    let mut from = File::open(path).map_err(text)?;
    let mut buffer = vec![0; 1 << 16];
    let mut at = start_bytes;
    loop {
        let len = from.read(&mut buffer).map_err(text)?;
        if len == 0 {
            break;
        }
        let piece = &buffer[..len];
        if piece.iter().any(|byte| *byte != 0) {
            to.write_all_at(piece, at).map_err(text)?;
        }
        at += len as u64;
    }
    fs::remove_file(path).map_err(text)?;
    Ok((
        image,
        Extent {
            start_bytes,
            len_bytes,
        },
    ))
}
