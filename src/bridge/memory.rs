//! What is remembered between runs: which dialect a bridge revision speaks, and which probe harmed it.
//!
//! The key is the bridge, never the drive: a docked disk may have been swapped since. One small JSON file holds it all;
//! a file that cannot be read is as good as none, and one that cannot be written costs only the memory.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

/// One bridge revision: VID:PID:bcdDevice and the INQUIRY revision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BridgeKey(String);

impl BridgeKey {
    /// The key of a USB bridge.
    pub fn new(vid: u16, pid: u16, bcd_device: u16, inquiry_revision: &str) -> Self {
        let revision: String = inquiry_revision
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '.')
            .collect();
        Self(format!("{vid:04x}:{pid:04x}:{bcd_device:04x}:{revision}"))
    }

    /// As it stands in the file.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is known of one bridge revision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remembered {
    /// The dialect that worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// CHECK POWER MODE once said "standby" of flash memory: its answer means nothing here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub power_mode_lies: bool,
    /// Commands that ended in a time-out or transport error once the way was known, by name; they are not sent again.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub avoid: BTreeMap<String, Harm>,
    /// A probe that ended in a reset, time-out or transport error; nothing more is probed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harmed_by: Option<Harm>,
}

/// A probe that the bridge did not take well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Harm {
    /// The command, with its bytes.
    pub command: String,
    /// What happened.
    pub what: String,
    /// When, RFC 3339.
    pub when: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct File {
    schema: String,
    bridges: BTreeMap<String, Remembered>,
}

/// More than this is no memory file.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The memory file.
#[derive(Debug, Clone)]
pub struct Memory {
    path: PathBuf,
}

impl Memory {
    /// Memory in the file `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// `$XDG_STATE_HOME/drivethru/bridges.json`, by default under `~/.local/state`; `None` without a home.
    pub fn default_path(state_home: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
        let state = match state_home {
            Some(dir) if dir.is_absolute() => dir.to_owned(),
            _ => home?.join(".local/state"),
        };
        Some(state.join("drivethru/bridges.json"))
    }

    /// What is known of `key`.
    pub fn recall(&self, key: &BridgeKey) -> Remembered {
        self.load().bridges.remove(key.as_str()).unwrap_or_default()
    }

    /// Changes what is known of `key`; writes only if that is a change.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn update(&self, key: &BridgeKey, change: impl FnOnce(&mut Remembered)) -> std::io::Result<()> {
        let _lock = self.lock();
        let mut file = self.load();
        let entry = file.bridges.entry(key.as_str().to_owned()).or_default();
        let before = entry.clone();
        change(entry);
        if *entry == before {
            return Ok(());
        }
        self.store(&file)
    }

    /// Forgets `key`; whether there was anything to forget.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn forget(&self, key: &BridgeKey) -> std::io::Result<bool> {
        let _lock = self.lock();
        let mut file = self.load();
        if file.bridges.remove(key.as_str()).is_none() {
            return Ok(false);
        }
        self.store(&file).map(|()| true)
    }

    /// Two processes that change the file at once must not lose each other's entries. Without a lock, better a lost entry
    /// than no work.
    fn lock(&self) -> Option<Flock<std::fs::File>> {
        let dir = self.path.parent()?;
        std::fs::create_dir_all(dir).ok()?;
        let path = self.path.with_extension("lock");
        let file = std::fs::File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .ok()?;
        Flock::lock(file, FlockArg::LockExclusive).ok()
    }

    fn load(&self) -> File {
        let mut bytes = Vec::new();
        let read =
            std::fs::File::open(&self.path).and_then(|f| f.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
        if read.is_err() {
            return File::default();
        }
        serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            tracing::warn!("{}: not readable, starting afresh: {error}", self.path.display());
            File::default()
        })
    }

    /// Writes beside the file and renames, so that a reader never sees half of it.
    fn store(&self, file: &File) -> std::io::Result<()> {
        if let Some(dir) = self.path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let named = File {
            schema: "drivethru-bridges/1".to_owned(),
            bridges: file.bridges.clone(),
        };
        let mut text = serde_json::to_string_pretty(&named)?;
        text.push('\n');
        let draft = self.path.with_extension(format!("json.{}", std::process::id()));
        std::fs::write(&draft, text)?;
        std::fs::rename(&draft, &self.path).inspect_err(|_| {
            let _ = std::fs::remove_file(&draft);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bridge_is_remembered_and_forgotten() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let memory = Memory::at(dir.path().join("deep/bridges.json"));
        let key = BridgeKey::new(0x174c, 0x55aa, 0x0100, "0 \u{1b}");
        assert_eq!(key.as_str(), "174c:55aa:0100:0");
        assert_eq!(memory.recall(&key), Remembered::default());
        memory
            .update(&key, |r| r.dialect = Some("sat12".into()))
            .expect("written");
        assert_eq!(memory.recall(&key).dialect.as_deref(), Some("sat12"));
        assert_eq!(memory.recall(&BridgeKey::new(1, 2, 3, "")), Remembered::default());
        assert!(memory.forget(&key).expect("written"));
        assert!(!memory.forget(&key).expect("nothing to do"));
        assert_eq!(memory.recall(&key), Remembered::default());
    }

    #[test]
    fn a_broken_file_is_no_file() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("bridges.json");
        std::fs::write(&path, "{\"bridges\": 7").expect("written");
        let memory = Memory::at(&path);
        let key = BridgeKey::new(1, 2, 3, "x");
        assert_eq!(memory.recall(&key), Remembered::default());
        memory
            .update(&key, |r| r.power_mode_lies = true)
            .expect("rewritten");
        assert!(memory.recall(&key).power_mode_lies);
    }

    #[test]
    fn the_state_directory_follows_the_environment() {
        let home = Path::new("/home/u");
        let path =
            |state: Option<&str>, home: Option<&Path>| Memory::default_path(state.map(Path::new), home);
        assert_eq!(
            path(None, Some(home)),
            Some("/home/u/.local/state/drivethru/bridges.json".into())
        );
        assert_eq!(
            path(Some("/s"), Some(home)),
            Some("/s/drivethru/bridges.json".into())
        );
        assert_eq!(path(Some("relative"), Some(home)), path(None, Some(home)));
        assert_eq!(path(None, None), None);
    }
}
