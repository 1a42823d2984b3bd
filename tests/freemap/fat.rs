//! Random FAT volumes: mkfs.vfat makes them, mtools fill them and tell the clusters of each file, fsck.vfat checks them.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use drivethru::freemap::{Extent, FreeMap, ReadAt, Refusal};

use crate::support::{Case, Maker, Rng, checksum, copy_range, merged, missing_program, run};

/// What makes them.
pub fn makers() -> Vec<Box<dyn Maker>> {
    vec![Box::new(Fat)]
}

struct Fat;

const PROGRAMS: [&str; 7] = [
    "mkfs.vfat",
    "fsck.vfat",
    "mcopy",
    "mdel",
    "mdir",
    "mmd",
    "mshowfat",
];

impl Maker for Fat {
    fn name(&self) -> &'static str {
        "fat"
    }

    fn share(&self) -> usize {
        50
    }

    fn missing(&self) -> Option<String> {
        missing_program(&PROGRAMS)
    }

    fn make(&self, seed: u64, dir: &Path) -> Result<Case, String> {
        let mut rng = Rng::new(seed);
        let plain = dir.join("plain");
        let mut tries = 0;
        let plan = loop {
            let mut plan = Plan::new(&mut rng);
            match plan.format(&mut rng, &plain, dir) {
                Ok(()) => break plan,
                // Not each combination has a number of clusters that mkfs takes.
                Err(why) if tries == 20 => return Err(why),
                Err(_) => tries += 1,
            }
        };
        let label = plan.label();
        let fail = |why: String| format!("{label}: {why}");
        if plan.fills {
            fill(&mut rng, &plan, &plain, dir).map_err(fail)?;
        }
        let report = Report::of(&plain).map_err(fail)?;
        // mtools take FAT32 of few clusters for FAT16; it is empty, and mkfs starts the root directory at cluster 2.
        let used = if plan.small_fat32() {
            Ok(vec![(2, 2)])
        } else {
            used_clusters(&plain)
        };
        let mut used = used.map_err(fail)?;
        used.extend(report.bad(&plan.bad_blocks));
        let free_by_tools = report.free(&used).map_err(fail)?;
        let files = dump(&plain, &dir.join("before")).map_err(fail)?;
        let len_bytes = fs::metadata(&plain).map_err(|e| e.to_string())?.len();
        let start_bytes = if rng.chance(60) { rng.below(4096) * 512 } else { 0 };
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
        drivethru::freemap::fat::free_map(volume)
    }

    /// FAT12 and FAT16 have one boot sector, FAT32 has a second.
    fn size_has_a_witness(&self, case: &Case) -> bool {
        case.label.starts_with("FAT32")
    }

    fn still_whole(&self, case: &Case, image: &Path) -> Result<(), String> {
        let dir = image.parent().ok_or("no directory")?;
        let plain = dir.join("plain");
        let volume = case.volume;
        copy_range(image, volume.start_bytes, volume.len_bytes, &plain, 0)?;
        fsck(&plain)?;
        let files = dump(&plain, &dir.join("after"))?;
        if files != case.files {
            let what = case.files.iter().find(|f| !files.contains(f));
            return Err(format!("{what:?} is not what it was"));
        }
        Ok(())
    }
}

/// What mkfs is told.
struct Plan {
    kind: u32,
    sector_bytes: u64,
    cluster_sectors: u64,
    clusters: u64,
    extra_bytes: u64,
    arguments: Vec<String>,
    bad_blocks: Vec<u64>,
    fills: bool,
}

impl Plan {
    fn new(rng: &mut Rng) -> Self {
        let kind = *rng.pick(&[12, 12, 16, 16, 16, 32]);
        let sector_bytes = *rng.pick(&[512, 512, 512, 512, 1024, 2048, 4096]);
        let cluster_sectors = 1 << rng.below(8);
        // mtools want the clusters that the specification wants, mkfs makes FAT32 of fewer too.
        let small_fat32 = kind == 32 && rng.chance(15);
        let clusters = match kind {
            12 if rng.chance(30) => 8 + rng.below(200),
            12 => 100 + rng.below(3900),
            16 => 4200 + rng.below(12000),
            _ if small_fat32 => 1000 + rng.below(20000),
            _ => 65600 + rng.below(20000),
        };
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: u64| arguments.extend([name.to_owned(), value.to_string()]);
        let tables = if rng.chance(30) { 1 } else { 2 };
        if tables == 1 || rng.chance(50) {
            add("-f", tables);
        }
        if rng.chance(30) {
            add(
                "-R",
                if kind == 32 {
                    8 + rng.below(60)
                } else {
                    1 + rng.below(40)
                },
            );
        }
        if kind != 32 && rng.chance(35) {
            add(
                "-r",
                *rng.pick(&[16, 64, 112, 224, 240, 256, 512, 1000, 1024, 2048]),
            );
        }
        if rng.chance(20) {
            add("-h", rng.below(1 << 32));
        }
        if rng.chance(20) {
            arguments.push("-a".to_owned());
        }
        if rng.chance(30) {
            arguments.extend(["-n".to_owned(), format!("VOL {}", rng.below(10000))]);
        }
        Self {
            kind,
            sector_bytes,
            cluster_sectors,
            clusters,
            extra_bytes: rng.below(80 * sector_bytes),
            arguments,
            bad_blocks: Vec::new(),
            fills: !small_fat32 && rng.chance(95),
        }
    }

    fn cluster_bytes(&self) -> u64 {
        self.sector_bytes * self.cluster_sectors
    }

    fn small_fat32(&self) -> bool {
        self.kind == 32 && self.clusters < 65525
    }

    fn label(&self) -> String {
        format!(
            "FAT{}, {} x {} x {} + {} bytes, {}",
            self.kind,
            self.clusters,
            self.cluster_sectors,
            self.sector_bytes,
            self.extra_bytes,
            self.arguments.join(" ")
        )
    }

    fn format(&mut self, rng: &mut Rng, plain: &Path, dir: &Path) -> Result<(), String> {
        let most_bytes = if self.kind == 32 { 90 << 20 } else { 64 << 20 };
        if self.clusters * self.cluster_bytes() > most_bytes {
            return Err("too large".to_owned());
        }
        let table_bytes = self.clusters * u64::from(self.kind) / 8;
        let size_bytes =
            self.clusters * self.cluster_bytes() + 2 * table_bytes + self.extra_bytes + (64 << 10);
        let _ = fs::remove_file(plain);
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(plain)
            .map_err(|e| e.to_string())?;
        file.set_len(size_bytes).map_err(|e| e.to_string())?;
        if rng.chance(25) {
            garbage(rng, &file, size_bytes)?;
        }
        let (kind, sector) = (self.kind.to_string(), self.sector_bytes.to_string());
        let (cluster, id) = (
            self.cluster_sectors.to_string(),
            format!("{:08x}", rng.next() as u32),
        );
        let mut arguments = vec!["-F", &kind, "-S", &sector, "-s", &cluster, "-i", &id];
        arguments.extend(self.arguments.iter().map(String::as_str));
        let plain = plain.to_str().ok_or("a path")?;
        let bad = dir.join("bad");
        if rng.chance(10) {
            // Blocks of 1024 bytes, well behind the tables.
            self.bad_blocks = (0..1 + rng.below(5))
                .map(|_| size_bytes / 2048 + rng.below(size_bytes / 2200))
                .collect();
            let lines: Vec<String> = self.bad_blocks.iter().map(u64::to_string).collect();
            fs::write(&bad, lines.join("\n") + "\n").map_err(|e| e.to_string())?;
            arguments.extend(["-l", bad.to_str().ok_or("a path")?]);
        }
        arguments.push(plain);
        run("mkfs.vfat", &arguments, &[0])?;
        if self.kind == 32 && !self.bad_blocks.is_empty() {
            // mkfs counts bad clusters as free.
            run("fsck.vfat", &["-a", plain], &[0, 1])?;
        }
        // mkfs makes root directories that fill no whole sectors: fsck dislikes some, mtools see their end elsewhere.
        let mut boot = [0; 2];
        file.read_exact_at(&mut boot, 17).map_err(|e| e.to_string())?;
        let root_bytes = u64::from(u16::from_le_bytes(boot)) * 32;
        if !root_bytes.is_multiple_of(self.sector_bytes) {
            return Err(format!("a root directory of {root_bytes} bytes"));
        }
        fsck(Path::new(plain)).map(drop)
    }
}

/// What was on the disk before.
fn garbage(rng: &mut Rng, file: &fs::File, size_bytes: u64) -> Result<(), String> {
    let bytes = rng.bytes(1 << 16);
    let mut at = 0;
    while at < size_bytes.min(8 << 20) {
        let len = (size_bytes - at).min(1 << 16) as usize;
        file.write_all_at(&bytes[..len], at).map_err(|e| e.to_string())?;
        at += 1 << 16;
    }
    Ok(())
}

fn fill(rng: &mut Rng, plan: &Plan, plain: &Path, dir: &Path) -> Result<(), String> {
    let image = plain.to_str().ok_or("a path")?;
    let rounds = 1 + rng.below(3);
    // Most of it stays free; the tools fail where all is full, and that leaves lost clusters.
    let mut left_bytes = plan.clusters * plan.cluster_bytes() * *rng.pick(&[5, 30, 60, 80]) / 100;
    left_bytes = left_bytes.min(12 << 20);
    let few_slots = plan.arguments.iter().any(|a| a == "16" || a == "64");
    let deep = rng.chance(70);
    for round in 0..rounds {
        let source = dir.join(format!("source{round}"));
        let files = write_files(rng, plan, &source, &mut left_bytes, deep, few_slots)?;
        if files.is_empty() {
            continue;
        }
        let mut arguments = vec!["-s", "-n", "-Q", "-i", image];
        arguments.extend(files.iter().map(String::as_str));
        arguments.push("::/");
        // The root directory may be full; what is there then is as good.
        run("mcopy", &arguments, &[0, 1])?;
        fs::remove_dir_all(&source).map_err(|e| e.to_string())?;
        if round + 1 < rounds {
            let mut victims: Vec<String> = list(plain)?.into_iter().filter(|p| !p.ends_with('/')).collect();
            victims.retain(|_| rng.chance(50));
            victims.truncate(200);
            if !victims.is_empty() {
                let mut arguments = vec!["-i", image];
                arguments.extend(victims.iter().map(String::as_str));
                run("mdel", &arguments, &[0])?;
            }
        }
    }
    if rng.chance(30)
        && let Some(one) = list(plain)?.first()
    {
        run("mattrib", &["+h", "+s", "+r", "-i", image, one], &[0])?;
    }
    Ok(())
}

/// Files and directories on the host; those at the top.
fn write_files(
    rng: &mut Rng,
    plan: &Plan,
    source: &Path,
    left_bytes: &mut u64,
    deep: bool,
    few_slots: bool,
) -> Result<Vec<String>, String> {
    let mut directories = vec![source.to_owned()];
    fs::create_dir_all(source).map_err(|e| e.to_string())?;
    let mut top = Vec::new();
    let count = if few_slots {
        1 + rng.below(4)
    } else {
        1 + rng.below(40)
    };
    let cluster = plan.cluster_bytes();
    for number in 0..count {
        let directory = rng.pick(&directories).clone();
        let path = directory.join(name(rng, number, few_slots));
        if deep && rng.chance(25) && *left_bytes > cluster * 2 {
            fs::create_dir(&path).map_err(|e| e.to_string())?;
            *left_bytes -= cluster;
            directories.push(path.clone());
        } else {
            let size = match rng.below(6) {
                0 => 0,
                1 => rng.below(cluster) + 1,
                2 => cluster * (1 + rng.below(4)),
                3 => rng.below(600),
                4 => rng.below(cluster * 20 + 1),
                _ => rng.below(*left_bytes / 2 + 1),
            };
            let takes = size.next_multiple_of(cluster) + 512;
            if takes > *left_bytes {
                continue;
            }
            *left_bytes -= takes;
            let bytes = if rng.chance(10) {
                vec![0; size as usize]
            } else {
                rng.bytes(size as usize)
            };
            fs::write(&path, bytes).map_err(|e| e.to_string())?;
        }
        if directory == source {
            top.push(path.to_str().ok_or("a path")?.to_owned());
        }
    }
    if deep && rng.chance(20) && !few_slots && *left_bytes > cluster * 200 + (1 << 16) {
        let many = source.join("many");
        fs::create_dir(&many).map_err(|e| e.to_string())?;
        for i in 0..100 {
            fs::write(many.join(format!("a file with a long name, number {i}")), [i; 7])
                .map_err(|e| e.to_string())?;
        }
        *left_bytes -= cluster * 102 + (1 << 16);
        top.push(many.to_str().ok_or("a path")?.to_owned());
    }
    Ok(top)
}

fn name(rng: &mut Rng, number: u64, short: bool) -> String {
    let tag = rng.below(1000);
    match rng.below(if short { 2 } else { 4 }) {
        0 => format!("F{number}_{tag}"),
        1 => format!("G{number}.{tag:03}"),
        2 => format!("a name of some length {number} {tag}.text"),
        _ => format!(
            "{}{number}-{tag}",
            "very long ".repeat(1 + rng.below(18) as usize)
        ),
    }
}

/// All paths, directories with a `/` at the end.
fn list(plain: &Path) -> Result<Vec<String>, String> {
    let image = plain.to_str().ok_or("a path")?;
    let out = run("mdir", &["-/", "-a", "-b", "-i", image, "::/"], &[0, 1])?;
    Ok(out
        .lines()
        .filter(|l| l.starts_with("::/") && l.len() > 3)
        .map(str::to_owned)
        .collect())
}

/// The clusters of all files and directories, as mtools tell them.
fn used_clusters(plain: &Path) -> Result<Vec<(u64, u64)>, String> {
    let image = plain.to_str().ok_or("a path")?;
    let mut paths = list(plain)?;
    paths.push("::/".to_owned());
    let mut out = Vec::new();
    for some in paths.chunks(100) {
        let mut arguments = vec!["-i", image];
        arguments.extend(some.iter().map(|p| match p.as_str() {
            "::/" => p,
            _ => p.trim_end_matches('/'),
        }));
        for line in run("mshowfat", &arguments, &[0])?.lines() {
            for range in line.split('<').skip(1) {
                let range = range.split('>').next().unwrap_or_default();
                let mut ends = range.split('-').map(str::parse);
                let first: u64 = ends
                    .next()
                    .and_then(Result::ok)
                    .ok_or_else(|| format!("mshowfat: {line}"))?;
                let last = ends.next().and_then(Result::ok).unwrap_or(first);
                out.push((first, last));
            }
        }
    }
    Ok(out)
}

/// Every file with its checksum, every directory with 0.
fn dump(plain: &Path, to: &Path) -> Result<Vec<(String, u64)>, String> {
    let image = plain.to_str().ok_or("a path")?;
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).map_err(|e| e.to_string())?;
    if !list(plain)?.is_empty() {
        let target = to.to_str().ok_or("a path")?;
        run("mcopy", &["-s", "-n", "-Q", "-i", image, "::/*", target], &[0])?;
    }
    let mut out = Vec::new();
    let mut pending = vec![to.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).map_err(|e| e.to_string())? {
            let path = entry.map_err(|e| e.to_string())?.path();
            let name = path
                .strip_prefix(to)
                .map_err(|e| e.to_string())?
                .display()
                .to_string();
            if path.is_dir() {
                out.push((name, 0));
                pending.push(path);
            } else {
                out.push((name, checksum(&fs::read(&path).map_err(|e| e.to_string())?)));
            }
        }
    }
    out.sort();
    fs::remove_dir_all(to).map_err(|e| e.to_string())?;
    Ok(out)
}

fn fsck(plain: &Path) -> Result<String, String> {
    let out = run("fsck.vfat", &["-n", "-v", plain.to_str().ok_or("a path")?], &[0])?;
    if out.contains("differ") || out.contains("wrong") || out.contains("Orphan") {
        return Err(out);
    }
    Ok(out)
}

/// What fsck tells of a sound volume.
struct Report {
    data_bytes: u64,
    cluster_bytes: u64,
    clusters: u64,
    used: u64,
}

impl Report {
    fn of(plain: &Path) -> Result<Self, String> {
        let out = fsck(plain)?;
        let number = |before: &str, after: &str| -> Result<u64, String> {
            out.lines()
                .filter_map(|line| line.trim().split_once(before))
                .filter_map(|(_, rest)| rest.split_once(after))
                .find_map(|(value, _)| value.trim().parse().ok())
                .ok_or_else(|| format!("fsck.vfat says nothing of {before}{after}: {out}"))
        };
        let totals = out.lines().last().unwrap_or_default();
        let used = totals
            .split_once("files, ")
            .and_then(|(_, rest)| rest.split_once('/'))
            .and_then(|(used, _)| used.parse().ok())
            .ok_or_else(|| format!("fsck.vfat: {totals}"))?;
        Ok(Self {
            data_bytes: number("Data area starts at byte ", " ")?,
            cluster_bytes: number("", "bytes per cluster")?,
            clusters: number("", "data clusters")?,
            used,
        })
    }

    /// The clusters of bad blocks.
    fn bad(&self, blocks: &[u64]) -> Vec<(u64, u64)> {
        let mut clusters: Vec<u64> = blocks
            .iter()
            .flat_map(|block| [block * 1024, block * 1024 + 1023])
            .filter_map(|at| at.checked_sub(self.data_bytes))
            .map(|at| at / self.cluster_bytes + 2)
            .collect();
        clusters.sort_unstable();
        clusters.dedup();
        clusters.into_iter().map(|c| (c, c)).collect()
    }

    /// All clusters that no file has.
    fn free(&self, used: &[(u64, u64)]) -> Result<Vec<Extent>, String> {
        let mut map = vec![false; self.clusters as usize + 2];
        for (first, last) in used {
            for cluster in *first..=*last {
                let flag = map
                    .get_mut(cluster as usize)
                    .ok_or(format!("cluster {cluster}"))?;
                if *flag {
                    return Err(format!("cluster {cluster} twice"));
                }
                *flag = true;
            }
        }
        let count = map.iter().filter(|used| **used).count() as u64;
        if count != self.used {
            return Err(format!(
                "mtools find {count} used clusters, fsck.vfat {}",
                self.used
            ));
        }
        Ok(merged(
            map.iter()
                .enumerate()
                .skip(2)
                .filter(|(_, used)| !**used)
                .map(|(cluster, _)| Extent {
                    start_bytes: self.data_bytes + (cluster as u64 - 2) * self.cluster_bytes,
                    len_bytes: self.cluster_bytes,
                })
                .collect(),
        ))
    }
}
