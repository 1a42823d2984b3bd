//! Who uses a disk: mounts, swap, and whatever is stacked on it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::sysfs::Sysfs;

/// One use of a disk or of one of its partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Use {
    /// The node: `sdb1`.
    pub node: String,
    /// Its number on the disk; absent for the disk itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
    /// How: `mounted at /home`.
    pub how: String,
}

/// One line of `/proc/self/mountinfo` (Linux, `Documentation/filesystems/proc.rst`, 3.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// `8:17`; file systems over several devices have numbers of their own.
    pub number: String,
    /// Which directory of the file system is shown there; `/` is all of it.
    pub root: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// `ext4`.
    pub kind: String,
    /// `/dev/sdb1`.
    pub source: String,
}

/// Reads a mount table. Lines that are none are left out.
pub fn parse_mounts(text: &str) -> Vec<Mount> {
    text.lines()
        .filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let mut left = left.split(' ').skip(2);
            let (number, root, point) = (left.next()?, left.next()?, left.next()?);
            let mut right = right.split(' ');
            Some(Mount {
                number: number.to_owned(),
                root: unescape(root),
                point: PathBuf::from(unescape(point)),
                kind: right.next()?.to_owned(),
                source: unescape(right.next()?),
            })
        })
        .collect()
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(field: &str) -> String {
    let bytes = field.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 4).filter(|_| *byte == b'\\');
        let value = digits
            .and_then(|d| std::str::from_utf8(d).ok())
            .and_then(|d| u8::from_str_radix(d, 8).ok());
        match value {
            Some(value) => {
                out.push(value);
                at += 4;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The tables of a running system.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// What is mounted.
    pub mounts: Vec<Mount>,
    /// Paths that are swapped to.
    pub swaps: Vec<PathBuf>,
    /// Block devices that other processes have open for writing.
    pub writers: Vec<Writer>,
}

/// A process with a block device open for writing: an emulator, a network block device, a recovery tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// Process number.
    pub pid: u32,
    /// What it is called.
    pub name: String,
    /// The device: `8:17`.
    pub number: String,
}

/// All that can be seen; processes come and go meanwhile.
fn writers(proc: &Path) -> Vec<Writer> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let own = std::process::id();
    let mut found = Vec::new();
    let Ok(processes) = std::fs::read_dir(proc) else {
        return found;
    };
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        if pid == own {
            continue;
        }
        let Ok(descriptors) = std::fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        for descriptor in descriptors.flatten() {
            let Ok(meta) = std::fs::metadata(descriptor.path()) else {
                continue;
            };
            if !meta.file_type().is_block_device() {
                continue;
            }
            let info = process.path().join("fdinfo").join(descriptor.file_name());
            let flags = std::fs::read_to_string(info).ok().and_then(|text| {
                let flags = text.lines().find_map(|l| l.strip_prefix("flags:"))?;
                u32::from_str_radix(flags.trim(), 8).ok()
            });
            // The two lowest bits are the access mode: 0 is reading only.
            if flags.is_some_and(|flags| flags & 3 == 0) {
                continue;
            }
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            let rdev = meta.rdev();
            found.push(Writer {
                pid,
                name: name.trim().to_owned(),
                number: format!("{}:{}", nix::sys::stat::major(rdev), nix::sys::stat::minor(rdev)),
            });
        }
    }
    found.sort_by(|a, b| (a.pid, &a.number).cmp(&(b.pid, &b.number)));
    found.dedup();
    found
}

impl Tables {
    /// Reads `/proc`.
    ///
    /// # Errors
    /// The mount table cannot be read: then nobody knows what is in use.
    pub fn read(proc: &Path) -> std::io::Result<Self> {
        let mounts = parse_mounts(&std::fs::read_to_string(proc.join("self/mountinfo"))?);
        // A kernel without swap has no such file.
        let swaps = std::fs::read_to_string(proc.join("swaps")).unwrap_or_default();
        let swaps = swaps
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next())
            .map(|path| PathBuf::from(unescape(path)))
            .collect();
        Ok(Self {
            mounts,
            swaps,
            writers: writers(proc),
        })
    }

    /// Everything that uses the disk `name` or one of its partitions.
    pub fn uses(&self, sysfs: &Sysfs, name: &str) -> Vec<Use> {
        let mut found = Vec::new();
        for node in sysfs.with_partitions(name) {
            let mut add = |how: String| {
                found.push(Use {
                    node: node.name.clone(),
                    partition: node.partition,
                    how,
                });
            };
            let path = Path::new("/dev").join(&node.name);
            let is_it = |named: &Path| named == path || named.canonicalize().is_ok_and(|real| real == path);
            for mount in &self.mounts {
                if mount.number == node.number || is_it(Path::new(&mount.source)) {
                    add(format!("mounted at {}", mount.point.display()));
                }
            }
            if self.swaps.iter().any(|swap| is_it(swap)) {
                add("used as swap".to_owned());
            }
            for holder in &node.holders {
                add(format!("held by {holder}"));
            }
            for holder in sysfs.loops_on(&path) {
                add(format!("held by {holder}"));
            }
            for process in &self.writers {
                if process.number == node.number {
                    add(format!(
                        "open for writing in process {} ({})",
                        process.pid, process.name
                    ));
                }
            }
        }
        found
    }

    /// The mount whose point is exactly this directory; of several on top of each other the last.
    pub fn mounted_at(&self, directory: &Path) -> Option<&Mount> {
        self.mounts.iter().rfind(|mount| mount.point == directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const MOUNTS: &str = "\
22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
40 22 8:17 / /mnt/my\\040disk rw,nosuid - vfat /dev/sdb1 rw,uid=1000
41 22 0:35 /@home /home rw - btrfs /dev/sdc rw
not a line
";

    #[test]
    fn a_mount_table_is_read() {
        let mounts = parse_mounts(MOUNTS);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[1].point, Path::new("/mnt/my disk"));
        assert_eq!(
            (mounts[2].root.as_str(), mounts[2].kind.as_str()),
            ("/@home", "btrfs")
        );
        assert_eq!(unescape("a\\134b\\01"), "a\\b\\01");
    }

    #[test]
    fn every_use_of_a_disk_is_found() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, content: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        put("class/block/sdb/dev", "8:16\n");
        put("class/block/sdb/sdb1/dev", "8:17\n");
        put("class/block/sdb/sdb1/partition", "1\n");
        put("class/block/sdb/sdb2/dev", "8:18\n");
        put("class/block/sdb/sdb2/partition", "2\n");
        fs::create_dir_all(root.path().join("class/block/sdb/sdb2/holders/dm-0")).unwrap();
        put("class/block/sdc/dev", "8:32\n");
        put("class/block/sdd/dev", "8:48\n");
        put("proc/self/mountinfo", MOUNTS);
        put(
            "proc/swaps",
            "Filename Type Size Used Priority\n/dev/sdd partition 1 0 -2\n",
        );
        let tables = Tables::read(&root.path().join("proc")).unwrap();
        let sysfs = Sysfs::new(root.path());
        let how = |name: &str| -> Vec<String> {
            let uses = tables.uses(&sysfs, name);
            uses.iter().map(|u| format!("{}: {}", u.node, u.how)).collect()
        };
        assert_eq!(
            how("sdb"),
            ["sdb1: mounted at /mnt/my disk", "sdb2: held by dm-0"]
        );
        assert_eq!(
            how("sdc"),
            ["sdc: mounted at /home"],
            "by its source: btrfs has a number of its own"
        );
        assert_eq!(how("sdd"), ["sdd: used as swap"]);
        assert_eq!(how("sde"), [""; 0]);
        assert!(Tables::read(Path::new("/nonexistent")).is_err());
        assert_eq!(tables.mounted_at(Path::new("/home")).unwrap().source, "/dev/sdc");
    }
}
