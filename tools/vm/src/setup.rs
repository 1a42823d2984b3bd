//! What the bench needs from outside: QEMU and a kernel. Nothing of it is installed unless [`setup`] is called.
//!
//! The kernel is Debian's, as `apt-get download` brings it: it is unpacked into a cache directory and never installed.
//! The cloud flavour would not do, it has no USB.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::error::Error;

/// The package that depends on the current kernel.
const KERNEL_METAPACKAGE: &str = "linux-image-amd64";
/// Programs that every guest needs, and the packages that have them. The last three are what the guest's checks compare with.
const PROGRAMS: &[(&str, &str)] = &[
    (QEMU, "qemu-system-x86"),
    ("xz", "xz-utils"),
    ("smartctl", "smartmontools"),
    ("hdparm", "hdparm"),
    ("sg_inq", "sg3-utils"),
];
/// Programs that some checks need. A guest boots without them, and [`require`] tells who lacks them.
const MORE_PROGRAMS: &[(&str, &str)] = &[
    ("lsusb", "usbutils"),
    ("usbip", "usbip"),
    ("fio", "fio"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.vfat", "dosfstools"),
    ("mkfs.exfat", "exfatprogs"),
    ("mcopy", "mtools"),
    ("mkntfs", "ntfs-3g"),
    ("sfdisk", "fdisk"),
];
/// The emulator.
pub(crate) const QEMU: &str = "qemu-system-x86_64";
/// A directory is complete when this is in it.
const COMPLETE: &str = "complete";
/// Parts of the module tree that no guest loads, more than half of its size.
const UNWANTED_MODULES: &[&str] = &[
    "sound",
    "drivers/gpu",
    "drivers/media",
    "drivers/infiniband",
    "drivers/iio",
    "drivers/net/wireless",
];

/// An unpacked kernel in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// What `uname -r` says in the guest.
    pub release: String,
    /// Its directory in the cache.
    pub dir: PathBuf,
    /// The ELF image.
    pub vmlinux: PathBuf,
    /// The directory that holds `kernel/` and `modules.builtin`.
    pub modules: PathBuf,
}

impl Kernel {
    fn in_dir(dir: PathBuf) -> Option<Self> {
        let release = dir.file_name()?.to_str()?.strip_prefix("kernel-")?.to_owned();
        dir.join(COMPLETE).exists().then(|| Self {
            vmlinux: dir.join("vmlinux"),
            modules: dir.join("modules"),
            release,
            dir,
        })
    }
}

/// `DRIVETHRU_VM_CACHE`, else `drivethru-vm` in `XDG_CACHE_HOME` or `~/.cache`.
pub fn cache_dir() -> Result<PathBuf, Error> {
    let set = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("DRIVETHRU_VM_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("drivethru-vm")))
        .or_else(|| Some(set("HOME")?.join(".cache/drivethru-vm")))
        .ok_or_else(|| Error::Unavailable("no cache directory: HOME is not set".to_owned()))
}

/// The kernel that an earlier [`setup`] has left, the newest if there are several. Nothing is fetched or installed.
pub fn installed() -> Result<Kernel, Error> {
    look("; try: cargo run --manifest-path tools/vm/Cargo.toml -- setup")
}

/// Whether a program is there that not every guest needs.
///
/// # Errors
/// [`Error::Unavailable`], with the package that [`setup`] installs where it can.
pub fn require(program: &str) -> Result<(), Error> {
    if which(program).is_some() {
        return Ok(());
    }
    let known = PROGRAMS.iter().chain(MORE_PROGRAMS);
    let package = known
        .filter(|(name, _)| *name == program)
        .map(|(_, package)| format!(" (package {package})"))
        .next();
    Err(Error::Unavailable(format!(
        "{program} is not installed{}",
        package.unwrap_or_default()
    )))
}

/// What is there; `hint` ends the complaint if something is not.
fn look(hint: &str) -> Result<Kernel, Error> {
    for (program, package) in PROGRAMS {
        if which(program).is_none() {
            return Err(Error::Unavailable(format!(
                "{program} is not installed (package {package}){hint}"
            )));
        }
    }
    let cache = cache_dir()?;
    let made = |kernel: &Kernel| {
        fs::metadata(kernel.dir.join(COMPLETE))
            .and_then(|file| file.modified())
            .ok()
    };
    fs::read_dir(&cache)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Kernel::in_dir(entry.path()))
        .max_by_key(|kernel| made(kernel).unwrap_or(SystemTime::UNIX_EPOCH))
        .ok_or_else(|| Error::Unavailable(format!("no kernel in {}{hint}", cache.display())))
}

/// Installs missing programs (as root, by apt-get) and fetches the current kernel into the cache. Where that cannot be done,
/// what is there already will do. `say` hears what is done.
///
/// # Errors
/// [`Error::Unavailable`] if apt brings nothing and what is there does not suffice: a machine without network is no failure of
/// the bench. Other errors are.
pub fn setup(say: &mut dyn FnMut(&str)) -> Result<Kernel, Error> {
    match provide(say) {
        Err(Error::Unavailable(why)) => match look("") {
            Ok(kernel) => {
                say(&why);
                say(&format!(
                    "kernel {} is there and will do: {}",
                    kernel.release,
                    kernel.dir.display()
                ));
                Ok(kernel)
            }
            Err(Error::Unavailable(lacking)) => Err(Error::Unavailable(format!("{lacking}\n{why}"))),
            Err(error) => Err(error),
        },
        other => other,
    }
}

fn provide(say: &mut dyn FnMut(&str)) -> Result<Kernel, Error> {
    for program in ["apt-get", "apt-cache", "dpkg-deb"] {
        if which(program).is_none() {
            return Err(Error::Unavailable(format!("setup needs Debian's {program}")));
        }
    }
    let root = run_text(Command::new("id").arg("-u"))?.trim() == "0";
    let mut lists = Lists { may_update: root };
    let missing = missing(PROGRAMS);
    if !missing.is_empty() {
        if !root {
            return Err(Error::Unavailable(only_root_can(&missing)));
        }
        say(&format!("installing {}", missing.join(" ")));
        lists.update(say);
        install(&missing)?;
    }
    provide_more(root, &mut lists, say);
    let package = lists.retry(say, kernel_package)?;
    let release = package.trim_start_matches("linux-image-").to_owned();

    let cache = cache_dir()?;
    let unusable = |error: io::Error| Error::Unavailable(format!("cache {}: {error}", cache.display()));
    fs::create_dir_all(&cache).map_err(unusable)?;
    let lock = fs::File::create(cache.join("lock")).map_err(unusable)?;
    lock.lock().map_err(unusable)?;
    if let Some(kernel) = Kernel::in_dir(cache.join(format!("kernel-{release}"))) {
        say(&format!("kernel {release} is there: {}", kernel.dir.display()));
        return Ok(kernel);
    }
    say(&format!("fetching {package} into {}", cache.display()));
    let work = cache.join("unpacking");
    remove_dir(&work)?;
    fs::create_dir(&work).map_err(unusable)?;
    let kernel = lists
        .retry(say, || download(&package, &work))
        .and_then(|()| unpack(&release, &work, &cache));
    remove_dir(&work)?;
    let kernel = kernel?;
    say(&format!("kernel {release} is ready: {}", kernel.dir.display()));
    Ok(kernel)
}

/// What only some checks need; each for itself, and whatever comes of it, guests will boot.
fn provide_more(root: bool, lists: &mut Lists, say: &mut dyn FnMut(&str)) {
    let missing = missing(MORE_PROGRAMS);
    if missing.is_empty() {
        return;
    }
    if !root {
        return say(&only_root_can(&missing));
    }
    for package in missing {
        say(&format!("installing {package}"));
        if let Err(error) = lists.retry(say, || install(&[package])) {
            say(&error.to_string());
        }
    }
}

/// The packages of programs that are not there.
fn missing(programs: &[(&str, &'static str)]) -> Vec<&'static str> {
    let missing = programs.iter().filter(|(program, _)| which(program).is_none());
    missing.map(|(_, package)| *package).collect()
}

fn only_root_can(packages: &[&str]) -> String {
    format!("not installed, and only root can: {}", packages.join(" "))
}

fn install(packages: &[&str]) -> Result<(), Error> {
    apt(Command::new("apt-get")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["install", "-y", "--no-install-recommends"])
        .args(packages))
    .map(drop)
}

/// The package lists, which may be too old to name files that the servers still have.
struct Lists {
    /// They have not been updated yet, and may be.
    may_update: bool,
}

impl Lists {
    /// A server that does not answer is no reason not to try with the lists that are there.
    fn update(&mut self, say: &mut dyn FnMut(&str)) {
        self.may_update = false;
        say("updating the package lists");
        if let Err(error) = apt(Command::new("apt-get").arg("update")) {
            say(&error.to_string());
        }
    }

    /// Once more with fresh lists, if it fails with these.
    fn retry<T>(
        &mut self,
        say: &mut dyn FnMut(&str),
        step: impl Fn() -> Result<T, Error>,
    ) -> Result<T, Error> {
        match step() {
            Err(_) if self.may_update => {
                self.update(say);
                step()
            }
            other => other,
        }
    }
}

/// Runs a command of apt. Its failure is one of network, servers or rights, and so makes something unavailable.
fn apt(command: &mut Command) -> Result<String, Error> {
    // A network that swallows packets must not take the two minutes for each address that are apt's default.
    command.args([
        "-o",
        "Acquire::http::Timeout=20",
        "-o",
        "Acquire::https::Timeout=20",
    ]);
    run_text(command).map_err(|error| Error::Unavailable(error.to_string()))
}

/// The package that the metapackage depends on.
fn kernel_package() -> Result<String, Error> {
    let listing = apt(Command::new("apt-cache").args(["depends", KERNEL_METAPACKAGE]))?;
    listing
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| name.starts_with("linux-image-") && !name.contains("cloud"))
        .map(str::to_owned)
        .ok_or_else(|| {
            Error::Unavailable(format!(
                "no kernel is behind {KERNEL_METAPACKAGE}: apt-cache says {listing:?}"
            ))
        })
}

fn download(package: &str, into: &Path) -> Result<(), Error> {
    apt(Command::new("apt-get")
        .args(["download", package])
        .current_dir(into))
    .map(drop)
}

/// The downloaded package in `work` becomes `kernel-RELEASE` in the cache.
fn unpack(release: &str, work: &Path, cache: &Path) -> Result<Kernel, Error> {
    let package = fs::read_dir(work)
        .map_err(Error::io(format!("reading {}", work.display())))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .ok_or_else(|| Error::Setup {
            what: format!("looking for the package in {}", work.display()),
            why: "apt-get download left none".to_owned(),
        })?;
    let tree = work.join("tree");
    run_text(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&tree))?;

    let made = work.join("made");
    let doing = || Error::io(format!("arranging {}", made.display()));
    fs::create_dir(&made).map_err(doing())?;
    let image = tree.join(format!("boot/vmlinuz-{release}"));
    let image = fs::read(&image).map_err(Error::io(format!("reading {}", image.display())))?;
    let packed = made.join("vmlinux.xz");
    fs::write(&packed, payload(&image)?).map_err(doing())?;
    run_text(Command::new("xz").args(["-d"]).arg(&packed))?;
    let modules = ["usr/lib/modules", "lib/modules"]
        .map(|dir| tree.join(dir).join(release))
        .into_iter()
        .find(|dir| dir.join("kernel").is_dir())
        .ok_or_else(|| Error::Setup {
            what: format!("looking for modules in {}", package.display()),
            why: "there are none".to_owned(),
        })?;
    for unwanted in UNWANTED_MODULES {
        remove_dir(&modules.join("kernel").join(unwanted))?;
    }
    fs::rename(&modules, made.join("modules")).map_err(doing())?;
    fs::write(made.join(COMPLETE), "").map_err(doing())?;
    let dir = cache.join(format!("kernel-{release}"));
    remove_dir(&dir)?;
    fs::rename(&made, &dir).map_err(doing())?;
    Kernel::in_dir(dir).ok_or_else(|| Error::Protocol("the kernel just unpacked is gone".to_owned()))
}

/// The compressed kernel in a bzImage (kernel documentation, "The Linux/x86 Boot Protocol"): it starts `payload_offset`
/// (bytes 248h..24Ch) behind the setup sectors (byte 1F1h, plus the boot sector) and is `payload_length` (24Ch..250h) long.
/// QEMU boots the ELF file in it directly, which saves the guest the unpacking.
fn payload(image: &[u8]) -> Result<&[u8], Error> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    let found = (|| {
        let setup_sectors = usize::from(*image.get(0x1f1)?);
        let start = (setup_sectors + 1) * 512 + word(0x248)?;
        // The last four bytes are the unpacked size, not part of the stream.
        image.get(start..start.checked_add(word(0x24c)?.checked_sub(4)?)?)
    })();
    found
        .filter(|payload| payload.starts_with(b"\xfd7zXZ\0"))
        .ok_or_else(|| Error::Setup {
            what: "unpacking the kernel".to_owned(),
            why: "no xz stream where the boot protocol says".to_owned(),
        })
}

fn remove_dir(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io(format!("removing {}", dir.display()))(error))
        }
        _ => Ok(()),
    }
}

/// Runs it, and gives back what it wrote.
fn run_text(command: &mut Command) -> Result<String, Error> {
    let name = format!("{command:?}");
    let run = command.output().map_err(Error::io(name.clone()))?;
    if run.status.success() {
        return Ok(String::from_utf8_lossy(&run.stdout).into_owned());
    }
    Err(Error::Setup {
        what: name,
        why: format!("{}: {}", run.status, String::from_utf8_lossy(&run.stderr).trim()),
    })
}

/// Where a program is; `sbin` counts also where `PATH` of an ordinary user leaves it out.
fn which(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(more)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_found_by_the_header() {
        let mut image = vec![0; 2048];
        image[0x1f1] = 1; // one setup sector, so that the protected-mode part starts at 1024
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(6_u32 + 4).to_le_bytes());
        image[1040..1050].copy_from_slice(b"\xfd7zXZ\0size");
        assert_eq!(payload(&image).unwrap(), b"\xfd7zXZ\0");
        for len in [0, 0x1f1, 0x24f, 1043] {
            assert!(payload(&image[..len]).is_err(), "{len}");
        }
        image[1040] = 0;
        assert!(payload(&image).is_err());
        image[0x24c..0x250].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(payload(&image).is_err());
    }
}
