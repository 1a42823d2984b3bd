//! `setup` where apt does not do what it should: what is there has to do, and where it does not suffice, the bench is
//! unavailable, which is not a failure.
//!
//! The programs are scripts in a directory that is all of `PATH`; each notes how it was called.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

const READY: i32 = 0;
const UNAVAILABLE: i32 = 77;
const FAILED: i32 = 125;

const OFFLINE: &str = "echo 'Temporary failure resolving deb.debian.org' >&2; exit 100";
const NAMES_A_KERNEL: &str = "echo linux-image-amd64; echo '  Depends: linux-image-9.9.9-amd64'";

/// Without these there is no guest.
const NEEDED: [&str; 5] = ["qemu-system-x86_64", "xz", "smartctl", "hdparm", "sg_inq"];
/// Without these there are only some things that it cannot do.
const WELCOME: [&str; 9] = [
    "lsusb",
    "usbip",
    "fio",
    "mkfs.ext4",
    "mkfs.vfat",
    "mkfs.exfat",
    "sfdisk",
    "mcopy",
    "mkntfs",
];

/// One test at a time: a script that is still open for writing in a process just forked by another test cannot be run.
static TURN: Mutex<()> = Mutex::new(());

/// A machine on which everything is installed, with the lists of apt but without network, and nothing in the cache.
struct Machine {
    dir: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Machine {
    fn new(name: &str) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("bin")).expect("a directory");
        fs::create_dir_all(dir.join("cache")).expect("a directory");
        let machine = Self { dir, _turn: turn };
        for program in NEEDED.iter().chain(&WELCOME) {
            machine.program(program, "exit 0");
        }
        machine.program("id", "echo 0");
        machine.program("apt-get", OFFLINE);
        machine.program("apt-cache", NAMES_A_KERNEL);
        machine.program("dpkg-deb", "exit 2");
        machine
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.dir.join("bin").join(name);
        let log = self.dir.join("log");
        let script = format!("#!/bin/sh\necho {name} \"$@\" >> '{}'\n{script}\n", log.display());
        fs::write(&path, script).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }

    fn without(&self, name: &str) {
        fs::remove_file(self.dir.join("bin").join(name)).expect("it was there");
    }

    fn with_kernel(&self, release: &str) {
        let kernel = self.dir.join("cache").join(format!("kernel-{release}"));
        fs::create_dir(&kernel).expect("a directory");
        fs::write(kernel.join("complete"), "").expect("a file");
    }

    fn setup(&self) -> Output {
        Command::new(env!("CARGO_BIN_EXE_drivethru-vm"))
            .arg("setup")
            .env("PATH", self.dir.join("bin"))
            .env("DRIVETHRU_VM_CACHE", self.dir.join("cache"))
            .output()
            .expect("it starts")
    }

    /// Exit code as expected, and each of the words in what it says.
    #[track_caller]
    fn expect(&self, status: i32, words: &[&str]) {
        let output = self.setup();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        for word in words {
            assert!(said.contains(word), "{word:?} is not in {said}");
        }
    }

    /// Whether a program has been called with these first arguments.
    fn called(&self, call: &str) -> bool {
        let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        log.lines().any(|line| line.starts_with(call))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn no_network_and_an_empty_cache() {
    let machine = Machine::new("offline-empty");
    machine.expect(UNAVAILABLE, &["no kernel in", "download", "Temporary failure"]);
    assert!(machine.called("apt-get update"));
    let left: Vec<_> = fs::read_dir(machine.dir.join("cache"))
        .expect("a directory")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left, ["lock"], "nothing half done is left");
}

#[test]
fn no_network_and_an_older_kernel() {
    let machine = Machine::new("offline-older");
    machine.with_kernel("6.1.0-1-amd64");
    machine.expect(
        READY,
        &["Temporary failure", "kernel 6.1.0-1-amd64 is there and will do"],
    );
}

#[test]
fn the_current_kernel_is_not_fetched_again() {
    let machine = Machine::new("current");
    machine.with_kernel("9.9.9-amd64");
    machine.expect(READY, &["kernel 9.9.9-amd64 is there"]);
    assert!(!machine.called("apt-get"));
}

#[test]
fn no_package_lists() {
    let machine = Machine::new("no-lists");
    machine.program("apt-cache", "echo 'E: No packages found' >&2; exit 100");
    machine.expect(UNAVAILABLE, &["no kernel in", "No packages found"]);
    assert!(machine.called("apt-get update"));
    machine.with_kernel("6.1.0-1-amd64");
    machine.expect(READY, &["No packages found", "will do"]);

    machine.program("apt-cache", "echo linux-image-amd64");
    machine.expect(READY, &["no kernel is behind linux-image-amd64", "will do"]);
}

#[test]
fn stale_lists_of_somebody_who_may_not_update_them() {
    let machine = Machine::new("stale");
    machine.program("id", "echo 1000");
    machine.program("apt-get", "echo '404  Not Found' >&2; exit 100");
    machine.expect(UNAVAILABLE, &["no kernel in", "404  Not Found"]);
    machine.with_kernel("6.1.0-1-amd64");
    machine.expect(READY, &["404  Not Found", "will do"]);
    assert!(machine.called("apt-get download linux-image-9.9.9-amd64"));
    assert!(!machine.called("apt-get update"));
}

#[test]
fn a_program_that_cannot_be_installed() {
    let machine = Machine::new("no-qemu");
    machine.without("qemu-system-x86_64");
    machine.with_kernel("9.9.9-amd64");
    machine.expect(
        UNAVAILABLE,
        &["qemu-system-x86_64 is not installed", "Temporary failure"],
    );
    assert!(machine.called("apt-get install -y --no-install-recommends qemu-system-x86"));
    machine.program("id", "echo 1000");
    machine.expect(
        UNAVAILABLE,
        &["qemu-system-x86_64 is not installed", "only root can"],
    );
}

/// (The others are in `/usr/sbin`, where it is looked whatever `PATH` says.)
#[test]
fn programs_that_only_some_checks_need() {
    let machine = Machine::new("no-fio");
    machine.without("fio");
    machine.without("lsusb");
    machine.with_kernel("9.9.9-amd64");
    machine.expect(
        READY,
        &["installing usbutils", "installing fio", "Temporary failure"],
    );
    assert!(machine.called("apt-get install -y --no-install-recommends usbutils"));
    assert!(machine.called("apt-get install -y --no-install-recommends fio"));
    machine.program("id", "echo 1000");
    machine.expect(READY, &["only root can: usbutils fio"]);
}

#[test]
fn lists_that_cannot_be_updated_may_still_do() {
    let machine = Machine::new("install");
    machine.without("qemu-system-x86_64");
    machine.with_kernel("9.9.9-amd64");
    let qemu = machine.dir.join("bin/qemu-system-x86_64");
    machine.program(
        "apt-get",
        &format!(
            "case $1 in install) : > '{}';; *) {OFFLINE};; esac",
            qemu.display()
        ),
    );
    machine.expect(
        READY,
        &["installing qemu-system-x86", "kernel 9.9.9-amd64 is there"],
    );
}

#[test]
fn no_debian() {
    for program in ["apt-get", "apt-cache", "dpkg-deb"] {
        let machine = Machine::new(&format!("without-{program}"));
        machine.without(program);
        machine.expect(
            UNAVAILABLE,
            &["no kernel in", &format!("needs Debian's {program}")],
        );
        machine.with_kernel("6.1.0-1-amd64");
        machine.expect(READY, &["will do"]);
    }
}

#[test]
fn a_cache_that_cannot_be_made() {
    let machine = Machine::new("no-cache");
    let cache = machine.dir.join("cache");
    fs::remove_dir(&cache).expect("it is empty");
    fs::write(&cache, "").expect("a file in its place");
    machine.expect(UNAVAILABLE, &["no kernel in", "cache "]);
}

/// What arrived and cannot be used is a failure, whatever else is there.
#[test]
fn a_package_that_cannot_be_unpacked() {
    let machine = Machine::new("bad-package");
    machine.with_kernel("6.1.0-1-amd64");
    machine.program("apt-get", ": > linux-image-9.9.9-amd64.deb");
    machine.expect(FAILED, &["dpkg-deb"]);
    assert!(!machine.dir.join("cache/unpacking").exists());
}
