//! Which kernel modules a guest needs, and in what order.
//!
//! Debian's package has no `modules.dep` (installing would make it), so the order comes from the modules themselves: each
//! holds a string `depends=a,b`. Files are named with `-` or `_`, and `depends=` is no more consistent: names are compared
//! with `-` mapped to `_`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;

/// The modules of every guest, with their parameters. The ones marked optional are what others want without saying so in
/// `depends=`, and have other names, or are built in, in other kernels.
pub const BASE: &[Wanted] = &[
    Wanted::optional("crc32c_generic"),
    Wanted::optional("crct10dif_generic"),
    Wanted::optional("crc64_rocksoft_generic"),
    Wanted::new("virtio_pci", ""),
    Wanted::new("virtio_console", ""),
    Wanted::new("9pnet_virtio", ""),
    Wanted::new("9p", ""),
    Wanted::new("sd_mod", ""),
    Wanted::new("sg", ""),
    Wanted::new("ahci", ""),
    Wanted::new("nvme", ""),
    Wanted::new("loop", ""),
    Wanted::new("ext4", ""),
    Wanted::optional("nls_ascii"),
    Wanted::optional("nls_utf8"),
    Wanted::optional("nls_cp437"),
    Wanted::new("vfat", ""),
    Wanted::new("exfat", ""),
    Wanted::new("usbmon", ""),
    Wanted::new("usb_storage", "delay_use=0"),
    Wanted::new("uas", ""),
    // Without it no disk appears behind a Cypress bridge, which usb_storage leaves to it.
    Wanted::new("ums_cypress", ""),
    Wanted::new("xhci_pci", ""),
];

/// One module to be loaded.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub name: &'static str,
    pub parameters: &'static str,
    pub optional: bool,
}

impl Wanted {
    const fn new(name: &'static str, parameters: &'static str) -> Self {
        Self {
            name,
            parameters,
            optional: false,
        }
    }

    const fn optional(name: &'static str) -> Self {
        Self {
            name,
            parameters: "",
            optional: true,
        }
    }
}

/// The modules of one kernel.
pub struct Tree {
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

impl Tree {
    /// `root` is the directory that holds `kernel/` and `modules.builtin`.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let mut files = BTreeMap::new();
        let mut dirs = vec![root.join("kernel")];
        while let Some(dir) = dirs.pop() {
            let fail = || Error::io(format!("reading {}", dir.display()));
            for entry in fs::read_dir(&dir).map_err(fail())? {
                let path = entry.map_err(fail())?.path();
                if path.is_dir() {
                    dirs.push(path);
                } else if let Some(name) = module_name(&path) {
                    files.insert(name, path);
                }
            }
        }
        let list = root.join("modules.builtin");
        let built_in = fs::read_to_string(&list).map_err(Error::io(format!("reading {}", list.display())))?;
        let built_in = built_in
            .lines()
            .filter_map(|line| module_name(Path::new(line)))
            .collect();
        Ok(Self { files, built_in })
    }

    /// The module and what it needs, dependencies in front, without what `done` holds already; `done` grows.
    pub fn closure(&self, name: &str, done: &mut BTreeSet<String>) -> Result<Vec<Module>, Error> {
        let name = normal(name);
        if self.built_in.contains(&name) || !done.insert(name.clone()) {
            return Ok(Vec::new());
        }
        let path = self.files.get(&name).ok_or_else(|| Error::Setup {
            what: format!("module {name}"),
            why: "this kernel has none of that name".to_owned(),
        })?;
        let bytes = content(path)?;
        let mut found = Vec::new();
        for dependency in depends(&bytes) {
            found.extend(self.closure(&dependency, done)?);
        }
        found.push(Module {
            name,
            bytes,
            path: path.clone(),
            is_packed: is_packed(path),
        });
        Ok(found)
    }

    /// Whether there is such a module, or the kernel has it built in.
    pub fn has(&self, name: &str) -> bool {
        let name = normal(name);
        self.files.contains_key(&name) || self.built_in.contains(&name)
    }
}

/// A module.
pub struct Module {
    pub name: String,
    /// Its content, unpacked.
    pub bytes: Vec<u8>,
    pub path: PathBuf,
    /// Whether the file is a compressed one.
    pub is_packed: bool,
}

fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// `kernel/drivers/usb/storage/usb-storage.ko` or `.ko.xz`: `usb_storage`.
pub fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let stem = file.strip_suffix(".ko").or_else(|| file.strip_suffix(".ko.xz"))?;
    Some(normal(stem))
}

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "xz")
}

fn content(path: &Path) -> Result<Vec<u8>, Error> {
    let fail = || Error::io(format!("reading {}", path.display()));
    if is_packed(path) {
        let run = Command::new("xz").arg("-dc").arg(path).output().map_err(fail())?;
        if !run.status.success() {
            return Err(Error::Setup {
                what: format!("unpacking {}", path.display()),
                why: String::from_utf8_lossy(&run.stderr).into_owned(),
            });
        }
        return Ok(run.stdout);
    }
    fs::read(path).map_err(fail())
}

/// The names in the module's `depends=` string.
fn depends(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(at) = module.windows(key.len()).position(|window| window == key) else {
        return Vec::new();
    };
    let value = module.get(at + key.len()..).unwrap_or_default();
    let value = value.split(|byte| *byte == 0).next().unwrap_or_default();
    let value = String::from_utf8_lossy(value);
    value
        .split(',')
        .filter(|name| !name.is_empty())
        .map(normal)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depends_are_read_up_to_the_nul() {
        assert_eq!(
            depends(b"x\0license=GPL\0depends=scsi-mod,usbcore\0name=uas\0"),
            ["scsi_mod", "usbcore"]
        );
        assert!(depends(b"\0depends=\0retpoline=Y\0").is_empty());
        assert!(depends(b"\0mydepends=a\0").is_empty());
        assert!(depends(b"").is_empty());
    }

    #[test]
    fn names_of_files_lose_dashes_and_endings() {
        assert_eq!(
            module_name(Path::new("kernel/a/usb-storage.ko")).as_deref(),
            Some("usb_storage")
        );
        assert_eq!(module_name(Path::new("sd_mod.ko.xz")).as_deref(), Some("sd_mod"));
        assert_eq!(module_name(Path::new("modules.order")), None);
    }
}
