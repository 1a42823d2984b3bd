//! A writer for the `newc` cpio archives that the kernel unpacks as its first root file system (kernel documentation,
//! "initramfs buffer format").

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// An archive under construction.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// A directory; its parents must have been added.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, (0, 0), &[]);
    }

    /// A regular file, executable.
    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, EXECUTABLE, (0, 0), content);
    }

    /// A character device node.
    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, CHARACTER_DEVICE, (major, minor), &[]);
    }

    /// The whole archive, with its trailer.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self.bytes
    }

    /// Magic, thirteen fields of eight hex digits, the name with its NUL, the content; both padded to four bytes.
    fn entry(&mut self, path: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        self.entries += 1;
        let len = u32::try_from(content.len()).expect("an initrd file is smaller than 4 GiB");
        let name_len = u32::try_from(path.len() + 1).expect("a path is short");
        let links = 1;
        let (owner, group, time, archive_device, checksum) = (0, 0, 0, (0, 0), 0);
        self.bytes.extend(b"070701");
        for field in [
            self.entries,
            mode,
            owner,
            group,
            links,
            time,
            len,
            archive_device.0,
            archive_device.1,
            major,
            minor,
            name_len,
            checksum,
        ] {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// The `cpio` program, where there is one, lists what was put in.
    #[test]
    fn cpio_lists_what_was_archived() {
        let mut archive = Archive::default();
        archive.directory("dev");
        archive.character_device("dev/null", 1, 3);
        archive.file("odd", b"12345");
        let bytes = archive.finish();
        let Ok(mut cpio) = Command::new("cpio")
            .args(["-itv", "--quiet", "--numeric-uid-gid"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
        else {
            println!("SKIPPED: no cpio program here");
            return;
        };
        cpio.stdin.take().unwrap().write_all(&bytes).unwrap();
        let listing = String::from_utf8(cpio.wait_with_output().unwrap().stdout).unwrap();
        let words: Vec<Vec<&str>> = listing
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(words.len(), 3, "{listing}");
        assert_eq!((words[0][0], words[0].last()), ("drwxr-xr-x", Some(&"dev")));
        assert_eq!((words[1][0], words[1][4], words[1][5]), ("crw-------", "1,", "3"));
        assert_eq!(
            (words[2][0], words[2][4], words[2].last()),
            ("-rwxr-xr-x", "5", Some(&"odd"))
        );
    }
}
