//! Mounts, and what happens to a volume while it is mounted.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::{MIB, name_of, text};
use crate::support::{Rng, checksum, run};

/// Whether a volume can be mounted here.
pub(super) fn fuse_works() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| {
        let attempt = || -> Result<(), String> {
            let dir = tempfile::tempdir().map_err(text)?;
            let path = dir.path().join("volume");
            File::create(&path)
                .and_then(|f| f.set_len(4 * MIB))
                .map_err(text)?;
            run("mkntfs", &["-F", "-Q", "-q", name_of(&path)?], &[0])?;
            Mount::new(&path, dir.path(), "rw")?.close()
        };
        match attempt() {
            Ok(()) => true,
            Err(why) => {
                println!("freemap ntfs: no mounts, tools only: {why}");
                false
            }
        }
    })
}

/// A mounted volume, unmounted when dropped.
pub(super) struct Mount {
    pub(super) root: PathBuf,
    driver: Child,
    is_open: bool,
}

impl Mount {
    pub(super) fn new(volume: &Path, dir: &Path, options: &str) -> Result<Self, String> {
        let root = dir.join("mounted");
        fs::create_dir_all(&root).map_err(text)?;
        let outside = fs::metadata(&root).map_err(text)?.dev();
        let driver = Command::new("ntfs-3g")
            .args(["-o", &format!("no_detach,{options}")])
            .args([volume, &root])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(text)?;
        let mut mount = Self {
            root,
            driver,
            is_open: true,
        };
        let start = Instant::now();
        loop {
            if fs::metadata(&mount.root).is_ok_and(|m| m.dev() != outside) {
                return Ok(mount);
            }
            if let Ok(Some(status)) = mount.driver.try_wait() {
                mount.is_open = false;
                return Err(format!("ntfs-3g does not mount it: {status}"));
            }
            if start.elapsed() > Duration::from_secs(20) {
                return Err("ntfs-3g takes too long".into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Unmounts and waits until all is written.
    pub(super) fn close(mut self) -> Result<(), String> {
        self.unmount()
    }

    fn unmount(&mut self) -> Result<(), String> {
        self.is_open = false;
        let root = name_of(&self.root)?;
        for _ in 0..50 {
            if run("umount", &[root], &[0]).is_ok() {
                self.driver.wait().map_err(text)?;
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let detached = run("umount", &["-l", root], &[0]);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        detached?;
        Err("it stays busy".into())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.is_open {
            let _ = self.unmount();
        }
    }
}

/// Files and directories come and go; the names of the streams that were made.
pub(super) fn fill_mounted(
    volume: &Path,
    dir: &Path,
    cluster_bytes: u64,
    rng: &mut Rng,
) -> Result<Vec<String>, String> {
    let mut streams = Vec::new();
    for round in 0..1 + rng.below(2) {
        let mut options = String::from("rw,streams_interface=windows");
        for (percent, option) in [
            (70, ",compression"),
            (30, ",permissions"),
            (20, ",hide_hid_files"),
        ] {
            if rng.chance(percent) {
                options += option;
            }
        }
        let mount = Mount::new(volume, dir, &options)?;
        let budget = volume.metadata().map_err(text)?.len();
        let mut filler = Filler {
            root: mount.root.clone(),
            cluster_bytes,
            budget,
            count: round * 100_000,
            streams: &mut streams,
        };
        if rng.chance(12) && cluster_bytes <= 4096 && budget < 25 * MIB {
            let _ = filler.shred(rng);
        }
        for _ in 0..4 + rng.below(24) {
            // A full volume and what NTFS does not know are no failures: what counts is what is there in the end.
            let _ = filler.step(rng);
        }
        mount.close()?;
    }
    Ok(streams)
}

/// The files below a directory and these streams, with checksums.
pub(super) fn listed(root: &Path, streams: &[String]) -> Result<Vec<(String, u64)>, String> {
    let mut names: Vec<PathBuf> = streams.iter().map(PathBuf::from).collect();
    for (path, is_file) in tree(root).map_err(text)? {
        if is_file {
            names.push(path);
        }
    }
    let mut files = Vec::new();
    for name in names {
        let short = name.strip_prefix(root).unwrap_or(&name);
        // A stream goes with its file.
        let Ok(bytes) = fs::read(root.join(short)) else {
            continue;
        };
        files.push((name_of(short)?.to_owned(), checksum(&bytes)));
    }
    Ok(files)
}

/// Everything below a directory, and whether it is a regular file.
fn tree(root: &Path) -> std::io::Result<Vec<(PathBuf, bool)>> {
    let mut out = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            }
            out.push((entry.path(), kind.is_file()));
        }
    }
    Ok(out)
}

struct Filler<'a> {
    root: PathBuf,
    cluster_bytes: u64,
    budget: u64,
    count: u64,
    streams: &'a mut Vec<String>,
}

impl Filler<'_> {
    /// Something to fill files with: noise, or what compresses.
    fn content(&self, len: u64, rng: &mut Rng) -> Vec<u8> {
        let len = len as usize;
        match rng.below(3) {
            0 => rng.bytes(len),
            1 => {
                let word_bytes = 1 + rng.below(30) as usize;
                let word = rng.bytes(word_bytes);
                word.iter().copied().cycle().take(len).collect()
            }
            _ => {
                let mut out = Vec::with_capacity(len);
                while out.len() < len {
                    let piece = (1 + rng.below(20_000)) as usize;
                    if rng.chance(50) {
                        out.extend(rng.bytes(piece));
                    } else {
                        out.extend(std::iter::repeat_n(rng.next() as u8, piece));
                    }
                }
                out.truncate(len);
                out
            }
        }
    }

    fn size(&self, rng: &mut Rng) -> u64 {
        match rng.below(5) {
            0 => rng.below(900),
            1 | 2 => rng.below(self.cluster_bytes.min(65536) * 4),
            3 => rng.below(300_000),
            _ => rng.below(self.budget / 12),
        }
    }

    fn fresh(&mut self, dir: &Path, rng: &mut Rng) -> PathBuf {
        self.count += 1;
        let most = if rng.chance(10) { 200 } else { 12 };
        let tail = "n".repeat(rng.below(most) as usize);
        dir.join(format!("{}-{tail}", self.count))
    }

    fn a_dir(&self, rng: &mut Rng) -> PathBuf {
        let dirs: Vec<PathBuf> = tree(&self.root)
            .unwrap_or_default()
            .into_iter()
            .filter(|(path, _)| path.is_dir() && !path.is_symlink())
            .map(|(path, _)| path)
            .collect();
        if dirs.is_empty() || rng.chance(40) {
            self.root.clone()
        } else {
            rng.pick(&dirs).clone()
        }
    }

    fn some_files(&self, percent: u64, rng: &mut Rng) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = tree(&self.root)
            .unwrap_or_default()
            .into_iter()
            .filter(|(_, is_file)| *is_file)
            .map(|(path, _)| path)
            .collect();
        files.sort();
        files.retain(|_| rng.chance(percent));
        files
    }

    fn step(&mut self, rng: &mut Rng) -> std::io::Result<()> {
        let dir = self.a_dir(rng);
        match rng.below(16) {
            0..=2 => {
                for _ in 0..1 + rng.below(6) {
                    let path = self.fresh(&dir, rng);
                    let size = self.size(rng);
                    fs::write(path, self.content(size, rng))?;
                }
            }
            3 => fs::create_dir(self.fresh(&dir, rng))?,
            4 => {
                for _ in 0..10 + rng.below(120) {
                    let path = self.fresh(&dir, rng);
                    let size = rng.below(1500);
                    fs::write(path, self.content(size, rng))?;
                }
            }
            5 | 6 => {
                let percent = *rng.pick(&[5, 30, 60]);
                for file in self.some_files(percent, rng) {
                    fs::remove_file(file)?;
                }
            }
            7 => {
                let mut file = File::create(self.fresh(&dir, rng))?;
                let mut at = 0;
                for _ in 0..1 + rng.below(40) {
                    at += rng.below(self.cluster_bytes * 40);
                    file.seek(SeekFrom::Start(at))?;
                    let size = 1 + rng.below(self.cluster_bytes.min(16384) * 2);
                    file.write_all(&self.content(size, rng))?;
                }
                if rng.chance(50) {
                    file.set_len(at + rng.below(100 * MIB))?;
                }
            }
            8 => {
                for file in self.some_files(10, rng) {
                    let len = fs::metadata(&file)?.len();
                    let file = OpenOptions::new().write(true).open(file)?;
                    file.set_len(rng.below(2 * len + 10_000))?;
                }
            }
            9 | 10 => self.interleave(&dir, rng)?,
            11 => {
                for file in self.some_files(15, rng) {
                    let len = fs::metadata(&file)?.len();
                    let file = OpenOptions::new().write(true).open(file)?;
                    let size = 1 + rng.below(30_000);
                    file.write_all_at(&self.content(size, rng), rng.below(len + 1))?;
                }
            }
            12 => {
                if let Some(file) = self.some_files(30, rng).pop() {
                    for _ in 0..1 + rng.below(40) {
                        fs::hard_link(&file, self.fresh(&dir, rng))?;
                    }
                }
                std::os::unix::fs::symlink("somewhere/else", self.fresh(&dir, rng))?;
            }
            13 => {
                for file in self.some_files(8, rng) {
                    for index in 0..1 + rng.below(6) {
                        let mut name = file.clone().into_os_string();
                        name.push(format!(":stream{index}"));
                        let size = self.size(rng) / 4;
                        fs::write(&name, self.content(size, rng))?;
                        let name = PathBuf::from(name);
                        let short = name.strip_prefix(&self.root).unwrap_or(&name);
                        self.streams.push(short.to_string_lossy().into_owned());
                    }
                }
            }
            14 => {
                for file in self.some_files(5, rng) {
                    let to = self.fresh(&dir, rng);
                    fs::rename(file, to)?;
                }
            }
            _ => {
                // Until it is full, now and then.
                if rng.chance(15) {
                    let mut file = File::create(self.fresh(&dir, rng))?;
                    let piece = self.content(200_000, rng);
                    for _ in 0..400 {
                        file.write_all(&piece)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Leaves free space in pieces of a cluster, for the MFT to grow into.
    fn shred(&mut self, rng: &mut Rng) -> std::io::Result<()> {
        let dir = self.root.clone();
        let paths = [self.fresh(&dir, rng), self.fresh(&dir, rng)];
        let files = [File::create(&paths[0])?, File::create(&paths[1])?];
        let clusters = (self.budget / self.cluster_bytes / 2).min(4000);
        // Holes first: what is appended comes in bigger pieces.
        for file in &files {
            file.set_len(clusters * self.cluster_bytes)?;
        }
        for index in 0..clusters {
            let piece = rng.bytes(self.cluster_bytes as usize);
            let full = files
                .iter()
                .any(|file| file.write_all_at(&piece, index * self.cluster_bytes).is_err());
            if full {
                break;
            }
        }
        drop(files);
        // The rest in one piece, so that the holes are needed.
        let mut rest = File::create(self.fresh(&dir, rng))?;
        let piece = rng.bytes(1 << 16);
        while rest.write_all(&piece).is_ok() {}
        fs::remove_file(&paths[0])?;
        // Thousands of them, now and then: the run list of the MFT outgrows its record.
        let most = if rng.chance(20) {
            6000
        } else {
            200 + rng.below(700)
        };
        for _ in 0..most {
            let path = self.fresh(&dir, rng);
            let size = rng.below(300);
            fs::write(path, rng.bytes(size as usize))?;
        }
        Ok(())
    }

    /// Files that grow in turns, so that each is in many pieces.
    fn interleave(&mut self, dir: &Path, rng: &mut Rng) -> std::io::Result<()> {
        let mut files = Vec::new();
        for _ in 0..2 + rng.below(3) {
            files.push(File::create(self.fresh(dir, rng))?);
        }
        let unit = self.cluster_bytes.max(*rng.pick(&[512, 4096]));
        let most = self.budget / 6 / unit / files.len() as u64;
        if rng.chance(60) {
            for file in &files {
                file.set_len(most * unit)?;
            }
        }
        for _ in 0..most.min(*rng.pick(&[20, 100, 500])) {
            for file in &mut files {
                let piece = self.content(unit, rng);
                file.write_all(&piece)?;
                if rng.chance(3) {
                    file.seek(SeekFrom::Current((unit * 20) as i64))?;
                }
            }
        }
        Ok(())
    }
}
