//! The guest, and what is noted about a check.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use drivethru_vm::{Error, Guest, GuestDisk, Output, Served, ServedDevice, Vm};
use serde_json::Value;

pub const TIMEOUT: Duration = Duration::from_secs(60);
/// From plugging in to a disk that can be used.
pub const ATTACH: Duration = Duration::from_secs(20);

/// What the kernel may say of a device that comes, is used and goes. All else fails the check.
pub const USUAL: &[&str] = &[
    // enumeration
    "new high-speed USB device",
    "new SuperSpeed USB device",
    "new SuperSpeed Plus Gen 2x1 USB device",
    "LPM exit latency is zeroed",
    "New USB device found",
    "New USB device strings",
    "Product:",
    "Manufacturer:",
    "SerialNumber:",
    "USB disconnect",
    // the drivers
    "USB Mass Storage device detected",
    "UAS is ignored for this device, using usb-storage instead",
    "Quirks match for vid",
    // the disk
    "Direct-Access",
    "Attached scsi generic",
    "Attached SCSI",
    "logical blocks:",
    "physical blocks",
    "Write Protect is off",
    "Mode Sense:",
    "Write cache:",
    "No Caching mode page found",
    "Assuming drive cache: write through",
    // JMicron's FUA is broken, and known to be; ASMedia's old bridges have no MODE SENSE.
    "Disabling FUA",
    "Test WP failed, assume Write Enabled",
    "Asking for cache data failed",
    "Optimal transfer size",
    "Preferred minimum I/O size",
    "Synchronizing SCSI cache",
    "Synchronize Cache(10) failed",
    "Stopping disk",
    "Starting disk",
    // the kernel
    "random: crng init done",
    "tsc: ",
    "clocksource: ",
    "APIC calibration not consistent with PM-Timer",
    "APIC delta adjusted to PM-Timer",
    "hrtimer: interrupt took",
];

/// Lines whose text after the kernel's prefix is a partition table: ` sda: sda1`.
fn is_partition_table(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("sd") && text.split_once(':').is_some_and(|(name, _)| !name.contains(' '))
}

/// `scsi host6: uas`, and no word more.
fn is_new_host(text: &str) -> bool {
    text.starts_with("scsi host") && (text.ends_with(": uas") || text.contains(": usb-storage "))
}

/// One guest and what its checks have found.
pub struct Bench {
    pub guest: Guest,
    compared: Cell<usize>,
    failures: RefCell<Vec<String>>,
    check: RefCell<String>,
    /// Cells of the table: (device, column) to word.
    pub table: RefCell<BTreeMap<(String, String), String>>,
}

/// What a guest's checks came to.
pub struct Findings {
    pub compared: usize,
    pub failures: Vec<String>,
    pub table: BTreeMap<(String, String), String>,
}

impl Bench {
    pub fn boot() -> Result<Self, Error> {
        for program in [
            "lsusb",
            "usbip",
            "fio",
            "sfdisk",
            "mkfs.ext4",
            "mkfs.vfat",
            "mkfs.exfat",
        ] {
            drivethru_vm::setup::require(program)?;
        }
        let guest = Vm::builder()
            .usb_slots(2)
            .network()
            .program(env!("CARGO_BIN_EXE_drivethru"))
            .boot()?;
        // Into the guest's memory: the host's files come over 9p, slowly.
        let program = Guest::host_path(Path::new(env!("CARGO_BIN_EXE_drivethru")));
        let copied = guest.run(&format!("cp '{program}' /tmp/drivethru"), TIMEOUT)?;
        assert_eq!(copied.status, 0, "{}", copied.stderr_text());
        guest.dmesg_new()?;
        Ok(Self {
            guest,
            compared: Cell::new(0),
            failures: RefCell::default(),
            check: RefCell::default(),
            table: RefCell::default(),
        })
    }

    pub fn begin(&self, check: impl Into<String>) {
        self.check.replace(check.into());
    }

    pub fn into_findings(self) -> Findings {
        let findings = Findings {
            compared: self.compared.get(),
            failures: self.failures.take(),
            table: self.table.take(),
        };
        let _ = self.guest.shutdown();
        findings
    }

    pub fn failure_count(&self) -> usize {
        self.failures.borrow().len()
    }

    /// Takes the failures since `before` back: a negative control wanted them.
    pub fn take_failures(&self, before: usize) -> Vec<String> {
        self.failures.borrow_mut().split_off(before)
    }

    /// One value against the one that it should be. A difference is noted, and the check goes on.
    pub fn same<T: PartialEq + Debug>(&self, what: &str, got: T, expected: T) -> bool {
        self.compared.set(self.compared.get() + 1);
        let same = got == expected;
        if !same {
            self.fail(format!("{what}: {got:?}, expected {expected:?}"));
        }
        same
    }

    pub fn holds(&self, what: &str, holds: bool) -> bool {
        self.compared.set(self.compared.get() + 1);
        if !holds {
            self.fail(format!("{what}: does not hold"));
        }
        holds
    }

    pub fn fail(&self, why: impl Into<String>) {
        let why = why.into();
        eprintln!("{}: {why}", self.check.borrow());
        self.failures
            .borrow_mut()
            .push(format!("{}: {why}", self.check.borrow()));
    }

    /// Plugs a device in and waits for its disk.
    pub fn plug(&self, spec: &str) -> Result<(ServedDevice<'_>, GuestDisk), String> {
        let device = self.guest.attach(&Served::profile(spec)).map_err(text)?;
        let disk = device.wait_for_disk(ATTACH).map_err(text)?;
        Ok((device, disk))
    }

    /// A script in the guest.
    pub fn run(&self, script: &str) -> Result<Output, String> {
        self.guest.run(script, TIMEOUT).map_err(text)
    }

    /// A script in the guest that must end well; its output.
    pub fn well(&self, script: &str) -> Result<String, String> {
        let output = self.run(script)?;
        if output.status != 0 {
            return Err(format!(
                "{script} ended with {}: {}{}",
                output.status,
                output.stdout_text(),
                output.stderr_text()
            ));
        }
        Ok(output.stdout_text())
    }

    /// Our tool, with a home that knows nothing.
    pub fn ours(&self, arguments: &str) -> Result<Output, String> {
        self.run(&fresh(arguments))
    }

    /// What the kernel has said since the last look, but for what is usual.
    pub fn unusual(&self, also_usual: &[&str]) -> Result<Vec<String>, String> {
        let log = self.guest.dmesg_new().map_err(text)?;
        Ok(log
            .into_iter()
            .map(|message| message.text)
            .filter(|text| {
                !USUAL.iter().chain(also_usual).any(|usual| text.contains(usual))
                    && !is_partition_table(text)
                    && !is_new_host(text)
            })
            .collect())
    }

    /// The kernel has said nothing unusual since the last look.
    pub fn kernel_is_quiet(&self, also_usual: &[&str]) -> Result<bool, String> {
        let unusual = self.unusual(also_usual)?;
        Ok(self.same("what the kernel says", unusual, Vec::new()))
    }

    /// Notes a cell of the table.
    pub fn cell(&self, device: &str, column: &str, word: impl Into<String>) {
        self.table
            .borrow_mut()
            .insert((device.to_owned(), column.to_owned()), word.into());
    }
}

/// Our tool without memory of former runs.
pub fn fresh(arguments: &str) -> String {
    format!("HOME=$(mktemp -d) NO_COLOR=1 /tmp/drivethru {arguments}")
}

pub fn text(error: Error) -> String {
    error.to_string()
}

/// What a program has printed, as JSON.
pub fn json(output: &Output) -> Result<Value, String> {
    let text = output.stdout_text();
    serde_json::from_str(&text).map_err(|error| {
        format!(
            "no JSON ({error}): {text:?}, exit code {}, on stderr {:?}",
            output.status,
            output.stderr_text()
        )
    })
}

/// What stands behind this label, to the end of the line, without blanks around it.
pub fn after(text: &str, label: &str) -> Option<String> {
    text.lines()
        .find_map(|line| Some(line.split_once(label)?.1.trim().to_owned()))
}
