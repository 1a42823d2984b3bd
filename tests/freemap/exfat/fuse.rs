//! Volumes filled by exfat-fuse, over a loop device: only where both work.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use crate::support::{Rng, checksum, missing_program, run};

/// A loop device, and perhaps a mount; both gone when it is dropped.
struct Mount {
    device: String,
    point: Option<PathBuf>,
}

impl Mount {
    fn device(plain: &Path, sector_bytes: u64) -> Result<Self, String> {
        let sector = sector_bytes.to_string();
        let path = plain.to_str().ok_or("a path")?;
        let out = run("losetup", &["-b", &sector, "--show", "-f", path], &[0])?;
        Ok(Self {
            device: out.trim().to_owned(),
            point: None,
        })
    }

    fn mount(&mut self, point: &Path, options: &str) -> Result<(), String> {
        fs::create_dir_all(point).map_err(|e| e.to_string())?;
        let path = point.to_str().ok_or("a path")?;
        run("mount.exfat-fuse", &["-o", options, &self.device, path], &[0])?;
        self.point = Some(point.to_owned());
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), String> {
        let Some(point) = &self.point else {
            return Ok(());
        };
        // Files are closed some time after they were closed.
        let mut tries = 0;
        while let Err(why) = run("umount", &[point.to_str().ok_or("a path")?], &[0]) {
            if tries == 100 {
                return Err(why);
            }
            tries += 1;
            std::thread::sleep(Duration::from_millis(50));
        }
        self.point = None;
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.unmount().is_err()
            && let Some(point) = self.point.as_ref().and_then(|p| p.to_str())
        {
            let _ = run("umount", &["-l", point], &[0]);
        }
        let _ = run("losetup", &["-d", &self.device], &[0]);
    }
}

/// Whether loop devices and exfat-fuse work here.
pub fn usable() -> bool {
    static USABLE: OnceLock<bool> = OnceLock::new();
    *USABLE.get_or_init(|| {
        missing_program(&["mount.exfat-fuse", "losetup", "umount"]).is_none()
            && Path::new("/dev/fuse").exists()
            && try_out().is_ok()
    })
}

fn try_out() -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let plain = dir.path().join("plain");
    let file = fs::File::create(&plain).map_err(|e| e.to_string())?;
    file.set_len(8 << 20).map_err(|e| e.to_string())?;
    make(&mut Rng::new(1), &plain, dir.path(), 512, &[]).map(drop)
}

/// Makes a file system, fills it, and tells its files.
pub fn make(
    rng: &mut Rng,
    plain: &Path,
    dir: &Path,
    sector_bytes: u64,
    arguments: &[String],
) -> Result<Vec<(String, u64)>, String> {
    let mut mount = Mount::device(plain, sector_bytes)?;
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    words.push(&mount.device);
    run("mkfs.exfat", &words, &[0])?;
    let point = dir.join("mount");
    mount.mount(&point, "rw")?;
    let most = fs::metadata(plain).map_err(|e| e.to_string())?.len() / 8;
    for round in 0..1 + rng.below(3) {
        let mut directories = vec![point.clone()];
        let mut made = Vec::new();
        for number in 0..rng.below(30) {
            let long = "long name ".repeat(rng.below(12) as usize);
            let path = rng.pick(&directories).join(format!("{long}{round} {number}"));
            // A full disk is as good.
            if rng.chance(20) {
                if fs::create_dir(&path).is_ok() {
                    directories.push(path);
                }
            } else {
                let len = if rng.chance(60) {
                    rng.below(20000)
                } else {
                    rng.below(most.min(1 << 20))
                };
                if fs::write(&path, rng.bytes(len as usize)).is_ok() {
                    made.push(path);
                }
            }
        }
        for path in made {
            if rng.chance(30) {
                fs::remove_file(path).map_err(|e| e.to_string())?;
            } else if rng.chance(30) {
                let file = fs::OpenOptions::new().append(true).open(path);
                let mut file = file.map_err(|e| e.to_string())?;
                let _ = std::io::Write::write_all(&mut file, &rng.bytes(9000));
            }
        }
    }
    mount.unmount()?;
    drop(mount);
    // What was removed while it was open is gone only now.
    read(plain, dir, sector_bytes)
}

/// The files of a volume.
pub fn read(plain: &Path, dir: &Path, sector_bytes: u64) -> Result<Vec<(String, u64)>, String> {
    let mut mount = Mount::device(plain, sector_bytes)?;
    let point = dir.join("mount");
    mount.mount(&point, "ro")?;
    let files = sums(&point);
    mount.unmount()?;
    files
}

fn sums(point: &Path) -> Result<Vec<(String, u64)>, String> {
    let mut out = Vec::new();
    let mut pending = vec![point.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).map_err(|e| e.to_string())? {
            let path = entry.map_err(|e| e.to_string())?.path();
            let name = path.strip_prefix(point).map_err(|e| e.to_string())?;
            if path.is_dir() {
                out.push((name.display().to_string(), 0));
                pending.push(path);
            } else {
                let bytes = fs::read(&path).map_err(|e| e.to_string())?;
                out.push((name.display().to_string(), checksum(&bytes)));
            }
        }
    }
    Ok(out)
}
