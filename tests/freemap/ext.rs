//! Random ext2, ext3 and ext4 volumes: mke2fs with random features, filled by mke2fs and debugfs, sometimes changed by
//! tune2fs and resize2fs. What is free comes from dumpe2fs, whether it is sound from e2fsck.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

use drivethru::freemap::{Extent, FreeMap, ReadAt, Refusal};

use crate::support::{Case, Maker, Rng, checksum, merged, missing_program, run};

/// What makes them.
pub fn makers() -> Vec<Box<dyn Maker>> {
    vec![Box::new(Ext)]
}

struct Ext;

/// Options that mke2fs does not take together are tried again with others.
const ATTEMPTS: usize = 30;

impl Maker for Ext {
    fn name(&self) -> &'static str {
        "ext"
    }

    fn share(&self) -> usize {
        80
    }

    fn missing(&self) -> Option<String> {
        missing_program(&["mke2fs", "debugfs", "dumpe2fs", "e2fsck", "tune2fs", "resize2fs"])
    }

    fn make(&self, seed: u64, dir: &Path) -> Result<Case, String> {
        let mut rng = Rng::new(seed);
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            match attempt(&mut rng, dir) {
                Ok(case) => return Ok(case),
                Err(error) => why = error,
            }
        }
        Err(format!("no volume in {ATTEMPTS} attempts, at last: {why}"))
    }

    fn free_map(&self, volume: &dyn ReadAt) -> Result<FreeMap, Refusal> {
        drivethru::freemap::ext::free_map(volume)
    }

    fn still_whole(&self, case: &Case, image: &Path) -> Result<(), String> {
        let device = device(image, case.volume.start_bytes);
        run("e2fsck", &["-fn", &device], &[0])?;
        let dumped = image.with_extension("files");
        let files = files(&device, &dumped)?;
        let changed = case.files.iter().find(|file| !files.contains(file));
        match changed {
            None if files.len() == case.files.len() => Ok(()),
            None => Err(format!("{} files instead of {}", files.len(), case.files.len())),
            Some((name, _)) => Err(format!("{name} is not what it was")),
        }
    }
}

/// The name by which e2fsprogs find a volume within an image.
fn device(image: &Path, offset_bytes: u64) -> String {
    match offset_bytes {
        0 => image.display().to_string(),
        _ => format!("{}?offset={offset_bytes}", image.display()),
    }
}

fn attempt(rng: &mut Rng, dir: &Path) -> Result<Case, String> {
    let shape = Shape::random(rng);
    let image = dir.join("image");
    let offset_bytes = if rng.chance(40) { 0 } else { 512 * rng.below(5000) };
    let slack_bytes = 512 * rng.below(2 * shape.block_bytes / 512);
    let volume_bytes = shape.size_kib * 1024 + slack_bytes;
    let file = fs::File::create(&image).map_err(|e| e.to_string())?;
    if rng.chance(30) {
        // What was there before mkfs must not matter.
        let old = rng.bytes(1 << 16);
        for _ in 0..16 {
            let at = offset_bytes + rng.below(volume_bytes);
            file.write_all_at(&old, at).map_err(|e| e.to_string())?;
        }
    }
    file.set_len(offset_bytes + volume_bytes + 512 * rng.below(3000))
        .map_err(|e| e.to_string())?;
    let source = dir.join("source");
    let _ = fs::remove_dir_all(&source);
    let pool = Pool::new(rng, dir, shape.block_bytes, shape.size_kib * 1024)?;
    let mut arguments = shape.arguments(rng);
    if offset_bytes > 0 {
        arguments.extend(["-E".to_owned(), format!("offset={offset_bytes}")]);
    }
    if rng.chance(80) {
        fill(rng, &source, &pool, shape.size_kib * 1024 / 4)?;
        arguments.extend(["-d".to_owned(), source.display().to_string()]);
    }
    arguments.extend([image.display().to_string(), format!("{}k", shape.size_kib)]);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run("mke2fs", &words, &[0])?;
    let mut label = words[..words.len() - 2].join(" ");

    let device = device(&image, offset_bytes);
    if rng.chance(85) {
        debugfs(rng, dir, &device, &pool)?;
    }
    if offset_bytes == 0 && rng.chance(30) {
        let change = (*rng.pick(CHANGES)).to_owned();
        run("e2fsck", &["-fy", &device], &[0, 1, 2, 3])?;
        let mut words: Vec<&str> = change.split(' ').collect();
        words.push(&device);
        if run("tune2fs", &words, &[0]).is_ok() {
            label += &format!(", tune2fs {change}");
            // Some changes ask for a check.
            run("e2fsck", &["-fy", &device], &[0, 1, 2, 3])?;
        }
    }
    if offset_bytes == 0 && rng.chance(30) {
        run("e2fsck", &["-fy", &device], &[0, 1, 2, 3])?;
        let percent = 60 + rng.below(150);
        let size = format!("{}k", shape.size_kib * percent / 100);
        let before = fs::metadata(&image).map_err(|e| e.to_string())?.len();
        if run("resize2fs", &["-f", &device, &size], &[0]).is_ok() {
            label += &format!(", resize2fs {size}");
        }
        let after = fs::metadata(&image).map_err(|e| e.to_string())?.len();
        if after < before {
            file.set_len(before).map_err(|e| e.to_string())?;
        }
    }
    // debugfs leaves some things that it does not count; those are mended, and what is then not sound is given up.
    if run("e2fsck", &["-fn", &device], &[0]).is_err() {
        label += ", e2fsck -fy";
        run("e2fsck", &["-fy", &device], &[0, 1, 2, 3])?;
        run("e2fsck", &["-fn", &device], &[0])?;
    }
    let free_by_tools = free_by_tools(&device)?;
    let files = files(&device, &dir.join("files"))?;
    let image_bytes = fs::metadata(&image).map_err(|e| e.to_string())?.len();
    Ok(Case {
        label,
        image,
        volume: Extent {
            start_bytes: offset_bytes,
            len_bytes: if offset_bytes == 0 {
                image_bytes
            } else {
                volume_bytes
            },
        },
        free_by_tools,
        files,
    })
}

const CHANGES: &[&str] = &[
    "-O ^has_journal",
    "-j",
    "-O metadata_csum",
    "-O ^metadata_csum",
    "-O uninit_bg",
    "-O ^resize_inode",
    "-O quota",
    "-O ^quota",
    "-O project",
    "-O orphan_file",
    "-O ^orphan_file",
    "-O fast_commit",
    "-O extent",
    "-O ea_inode",
    "-O encrypt",
    "-O verity",
    "-O large_dir",
    "-O casefold",
    "-O mmp",
    "-O sparse_super2",
    "-O ^sparse_super",
    "-O metadata_csum_seed",
    "-O ^flex_bg",
    "-O ^huge_file",
    "-I 256",
    "-I 512",
    "-U random",
    "-m 0",
    "-e panic",
];

/// What mke2fs is asked for.
struct Shape {
    family: &'static str,
    block_bytes: u64,
    size_kib: u64,
    features: Vec<String>,
    options: Vec<String>,
}

impl Shape {
    fn random(rng: &mut Rng) -> Self {
        let family = *rng.pick(&["ext2", "ext2", "ext3", "ext4", "ext4", "ext4", "ext4", "ext4"]);
        let block_bytes = match rng.below(100) {
            0..40 => 1024,
            40..60 => 2048,
            60..93 => 4096,
            93..97 => 8192,
            _ => 65536,
        };
        let most_kib = match block_bytes {
            1024 => 40_000,
            2048 => 50_000,
            _ => 64_000,
        };
        let least_kib = match block_bytes {
            65536 => 60_000,
            8192 => 16_000,
            _ => 1_000,
        };
        let size_kib = least_kib + rng.below(most_kib - least_kib);
        let mut shape = Self {
            family,
            block_bytes,
            size_kib,
            features: Vec::new(),
            options: Vec::new(),
        };
        if family == "ext2" && rng.chance(8) {
            shape.option("-r", "0");
            return shape;
        }
        if rng.chance(3) {
            shape.option("-o", "hurd");
        }
        shape.layout(rng);
        match family {
            "ext4" => shape.of_ext4(rng),
            _ => {
                shape.maybe(rng, 5, "^filetype");
                shape.maybe(rng, 5, "^large_file");
                shape.maybe(rng, 5, "^ext_attr");
                shape.maybe(rng, 5, "uninit_bg");
                shape.maybe(rng, 5, "extent");
                shape.maybe(rng, 5, "flex_bg");
            }
        }
        if family != "ext2" && rng.chance(30) {
            shape.option("-J", "size=1");
        }
        shape
    }

    /// What decides where metadata lies.
    fn layout(&mut self, rng: &mut Rng) {
        match rng.below(10) {
            0 | 1 => self.features.push("meta_bg,^resize_inode".to_owned()),
            2 => self.features.push("^resize_inode".to_owned()),
            _ => {}
        }
        match rng.below(10) {
            0 | 1 => {
                self.features.push("sparse_super2".to_owned());
                let copies = rng.below(3).to_string();
                self.extended(&format!("num_backup_sb={copies}"));
            }
            2 => self.features.push("^sparse_super".to_owned()),
            _ => {}
        }
        self.maybe(rng, 10, "^dir_index");
        if rng.chance(50) {
            let most = self.block_bytes * 8;
            let least = 256;
            let blocks = (least + rng.below(most - least) / (1 + rng.below(16))) / 8 * 8;
            self.option("-g", &blocks.max(256).to_string());
        }
        if rng.chance(50) {
            let sizes: &[u64] = &[128, 256, 512, 1024, 2048];
            let bytes = *rng.pick(sizes);
            if bytes <= self.block_bytes {
                self.option("-I", &bytes.to_string());
            }
        }
        match rng.below(6) {
            0 => {
                let count = (16 + rng.below(6000)).to_string();
                self.option("-N", &count);
            }
            1 => {
                let ratio = self.block_bytes << rng.below(7);
                self.option("-i", &ratio.to_string());
            }
            _ => {}
        }
        if rng.chance(30) {
            self.option("-m", "0");
        }
        if rng.chance(20) {
            let (stride, width) = (1 << rng.below(7), 1 << rng.below(9));
            self.extended(&format!("stride={stride},stripe_width={width}"));
        }
        if rng.chance(50) {
            self.extended(&format!("lazy_itable_init={}", rng.below(2)));
        }
        if rng.chance(20) {
            self.extended("lazy_journal_init=1");
        }
        if rng.chance(10) {
            self.extended("packed_meta_blocks=1");
        }
        if rng.chance(10) {
            let blocks = self.size_kib * 1024 / self.block_bytes * (2 + rng.below(500));
            self.extended(&format!("resize={blocks}"));
        }
    }

    fn of_ext4(&mut self, rng: &mut Rng) {
        match rng.below(10) {
            0 | 1 => self.features.push("^metadata_csum,uninit_bg".to_owned()),
            2 | 3 => self.features.push("^metadata_csum".to_owned()),
            _ => {}
        }
        if rng.chance(20) {
            let ratio = 2 << rng.below(6);
            self.features.push("bigalloc".to_owned());
            self.option("-C", &(self.block_bytes * ratio).to_string());
        } else {
            self.maybe(rng, 10, "^extents");
        }
        if rng.chance(25) {
            self.features.push("^flex_bg".to_owned());
        } else if rng.chance(50) {
            let groups = 1 << rng.below(9);
            self.option("-G", &groups.to_string());
        }
        for (percent, feature) in [
            (30, "^64bit"),
            (25, "^has_journal"),
            (25, "inline_data"),
            (15, "quota"),
            (10, "project,quota"),
            (10, "encrypt"),
            (10, "casefold"),
            (15, "ea_inode"),
            (10, "large_dir"),
            (10, "verity"),
            (10, "mmp"),
            (10, "metadata_csum_seed"),
            (15, "orphan_file"),
            (10, "fast_commit"),
            (5, "stable_inodes"),
            (10, "^huge_file"),
            (5, "^extra_isize"),
            (5, "^dir_nlink"),
        ] {
            self.maybe(rng, percent, feature);
        }
        if rng.chance(5) {
            self.extended("mmp_update_interval=5");
        }
    }

    fn maybe(&mut self, rng: &mut Rng, percent: u64, feature: &str) {
        if rng.chance(percent) {
            self.features.push(feature.to_owned());
        }
    }

    fn option(&mut self, name: &str, value: &str) {
        self.options.extend([name.to_owned(), value.to_owned()]);
    }

    fn extended(&mut self, value: &str) {
        self.option("-E", value);
    }

    fn arguments(&self, rng: &mut Rng) -> Vec<String> {
        let uuid = format!("{:016x}{:016x}", rng.next(), rng.next());
        let uuid = [
            &uuid[..8],
            &uuid[8..12],
            &uuid[12..16],
            &uuid[16..20],
            &uuid[20..],
        ]
        .join("-");
        let mut words: Vec<String> = [
            "-q",
            "-F",
            "-t",
            self.family,
            "-U",
            &uuid,
            "-b",
            &self.block_bytes.to_string(),
        ]
        .map(str::to_owned)
        .into();
        words.extend(self.options.iter().cloned());
        if !self.features.is_empty() {
            words.extend(["-O".to_owned(), self.features.join(",")]);
        }
        words
    }
}

/// Files on the host that become files in the volume.
struct Pool {
    files: Vec<String>,
    values: Vec<String>,
}

impl Pool {
    fn new(rng: &mut Rng, dir: &Path, block_bytes: u64, volume_bytes: u64) -> Result<Self, String> {
        let pool = dir.join("pool");
        fs::create_dir_all(&pool).map_err(|e| e.to_string())?;
        let mut files = Vec::new();
        for index in 0..8 {
            let path = pool.join(format!("f{index}"));
            let most = volume_bytes / 12;
            let len = match rng.below(8) {
                0 => 0,
                1 => 1 + rng.below(150),
                2 => rng.below(block_bytes),
                3 | 4 => block_bytes * rng.below(12),
                5 => block_bytes * 12 + rng.below(block_bytes * 20),
                _ => rng.below(most),
            };
            let file = fs::File::create(&path).map_err(|e| e.to_string())?;
            if rng.chance(40) {
                // With holes, which reach the higher levels of a block map.
                let blocks = match rng.below(20) {
                    0 => 70_000,
                    1..8 => 2_000,
                    _ => 300,
                };
                let logical = block_bytes * blocks;
                file.set_len(logical.min(80 << 20)).map_err(|e| e.to_string())?;
                for _ in 0..1 + rng.below(12) {
                    let at = rng.below(logical.min(80 << 20)) / block_bytes * block_bytes;
                    let len = block_bytes * (1 + rng.below(3));
                    let some = rng.bytes(len as usize);
                    file.write_all_at(&some, at).map_err(|e| e.to_string())?;
                }
            } else {
                let bytes = rng.bytes(len.min(most) as usize);
                file.write_all_at(&bytes, 0).map_err(|e| e.to_string())?;
            }
            files.push(path.display().to_string());
        }
        let mut values = Vec::new();
        for (index, len) in [8, 90, 400, block_bytes - 200, 3 * block_bytes]
            .into_iter()
            .enumerate()
        {
            let path = pool.join(format!("v{index}"));
            fs::write(&path, rng.bytes(len.min(60_000) as usize)).map_err(|e| e.to_string())?;
            values.push(path.display().to_string());
        }
        Ok(Self { files, values })
    }
}

/// The tree that mke2fs takes over.
fn fill(rng: &mut Rng, root: &Path, pool: &Pool, most_bytes: u64) -> Result<(), String> {
    let io = |e: std::io::Error| e.to_string();
    fs::create_dir_all(root).map_err(io)?;
    let mut dirs = vec![root.to_path_buf()];
    let mut left = most_bytes;
    for index in 0..rng.below(60) {
        let dir = rng.pick(&dirs).clone();
        match rng.below(10) {
            0 => {
                let new = dir.join(format!("dir{index}"));
                fs::create_dir(&new).map_err(io)?;
                dirs.push(new);
            }
            1 => {
                let target = "t".repeat(1 + rng.below(200) as usize);
                symlink(target, dir.join(format!("link{index}"))).map_err(io)?;
            }
            2 => {
                let path = dir.join(format!("small{index}"));
                let len = rng.below(300) as usize;
                fs::write(path, rng.bytes(len)).map_err(io)?;
            }
            3 if rng.chance(20) => {
                for entry in 0..rng.below(300) {
                    fs::write(dir.join(format!("one-of-many-{index}-{entry}")), b"").map_err(io)?;
                }
            }
            _ => {
                let from = rng.pick(&pool.files);
                // Holes count as bytes here, so volumes do not get too full.
                let len = fs::metadata(from).map_err(io)?.len();
                if len.min(2 << 20) <= left {
                    left -= len.min(2 << 20);
                    fs::copy(from, dir.join(format!("file{index}"))).map_err(io)?;
                }
            }
        }
    }
    Ok(())
}

/// Creates, changes and deletes files within the volume. What has no room fails, and that is fine.
fn debugfs(rng: &mut Rng, dir: &Path, device: &str, pool: &Pool) -> Result<(), String> {
    let mut script = String::new();
    let mut dirs = vec![String::new()];
    // With the length of each; debugfs takes a short link or inline data for a block map when it is told to punch it.
    let mut names: Vec<(String, u64)> = Vec::new();
    for index in 0..rng.below(70) {
        let parent = rng.pick(&dirs).clone();
        let line = match rng.below(14) {
            0 => {
                let name = format!("{parent}/d{index}");
                dirs.push(name.clone());
                format!("mkdir {name}")
            }
            1 => {
                let target = "x".repeat(1 + rng.below(180) as usize);
                names.push((format!("{parent}/s{index}"), 0));
                format!("symlink {parent}/s{index} {target}")
            }
            2 | 3 if !names.is_empty() => {
                let at = rng.below(names.len() as u64) as usize;
                format!("rm {}", names.swap_remove(at).0)
            }
            pick @ 4..=8 if !names.is_empty() => {
                let (name, len) = rng.pick(&names).clone();
                let start = rng.below(40);
                let end = start + rng.below(50);
                match pick {
                    4 | 5 if len > 0 => {
                        let value = rng.pick(&pool.values).clone();
                        format!("ea_set -f {value} {name} user.a{}", rng.below(4))
                    }
                    6 if len > 4096 => format!("fallocate {name} {start} {end}"),
                    7 | 8 if len > 4096 => format!("punch {name} {start} {end}"),
                    _ => continue,
                }
            }
            9 => {
                let node = *rng.pick(&["p", "c 1 3", "b 8 1"]);
                format!("cd {parent}/\nmknod n{index} {node}\ncd /")
            }
            10 if rng.chance(50) => format!("expand_dir {}/", parent),
            _ => {
                let name = format!("{parent}/w{index}");
                let from = rng.pick(&pool.files);
                let len = fs::metadata(from).map_err(|e| e.to_string())?.len();
                names.push((name.clone(), len));
                format!("write {from} {name}")
            }
        };
        script += &line;
        script += "\n";
    }
    let path = dir.join("script");
    fs::write(&path, script).map_err(|e| e.to_string())?;
    run(
        "debugfs",
        &["-w", "-f", &path.display().to_string(), device],
        &[0],
    )
    .map(|_| ())
}

/// The free ranges as dumpe2fs tells them.
fn free_by_tools(device: &str) -> Result<Vec<Extent>, String> {
    let out = run("dumpe2fs", &[device], &[0])?;
    let field = |name: &str| {
        out.lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|value| value.trim().parse::<u64>().ok())
    };
    let block_bytes = field("Block size:").ok_or("dumpe2fs tells no block size")?;
    let blocks = field("Block count:").ok_or("dumpe2fs tells no blocks")?;
    // With clusters a range ends with the first block of its last cluster.
    let unit = field("Cluster size:").map_or(1, |bytes| bytes / block_bytes);
    let mut free = Vec::new();
    for line in out.lines() {
        // Indented, for without that it is the count.
        let Some(ranges) = line.strip_prefix("  Free blocks:") else {
            continue;
        };
        for range in ranges.split(',').map(str::trim).filter(|r| !r.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| text.parse::<u64>().map_err(|e| format!("{range}: {e}"));
            let (first, end) = (number(first)?, (number(last)? + unit).min(blocks));
            free.push(Extent {
                start_bytes: first * block_bytes,
                len_bytes: (end - first) * block_bytes,
            });
        }
    }
    Ok(merged(free))
}

/// Every file with its checksum, sorted.
fn files(device: &str, to: &Path) -> Result<Vec<(String, u64)>, String> {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).map_err(|e| e.to_string())?;
    run(
        "debugfs",
        &["-R", &format!("rdump / {}", to.display()), device],
        &[0],
    )?;
    let mut found = Vec::new();
    let mut dirs = vec![to.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).map_err(|e| e.to_string())? {
            let entry = entry.map_err(|e| e.to_string())?;
            let path = entry.path();
            let kind = entry.file_type().map_err(|e| e.to_string())?;
            let sum = if kind.is_dir() {
                dirs.push(path.clone());
                0
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).map_err(|e| e.to_string())?;
                checksum(target.as_os_str().as_encoded_bytes())
            } else if kind.is_file() {
                checksum(&fs::read(&path).map_err(|e| e.to_string())?)
            } else {
                1
            };
            let name = path
                .strip_prefix(to)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            found.push((name, sum));
        }
    }
    let _ = fs::remove_dir_all(to);
    found.sort();
    Ok(found)
}
