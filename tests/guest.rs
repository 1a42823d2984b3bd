//! The tool on a real kernel: one guest with four disks, and beside every figure of ours the one that smartctl, hdparm or
//! sg3_utils read from the same disk. How many commands a run costs is counted by the kernel.
//!
//! Runs without the usual harness, which would hide a SKIPPED. `cargo test --test guest -- WORD...` runs the checks whose names
//! hold one of the words.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use drivethru_vm::{Disk, Error, Guest, GuestDisk, KernelMessage, Output, Vm};
use serde_json::{Map, Value};

const TIMEOUT: Duration = Duration::from_secs(60);
/// A SATA disk that does not tell its rotation rate.
const UNKNOWN: &str = "QMUNKNOWN0001";
/// A SATA disk that says it is solid state.
const FLASH: &str = "QMFLASH00002";
/// USB disks without SAT.
const BOT: &str = "QMBOT0000003";
const UAS: &str = "QMUAS0000004";

/// A name and what to do. What cannot even be compared is the error.
type Check = (&'static str, fn(&Bench) -> Result<(), String>);

const CHECKS: &[Check] = &[
    ("info of SATA disks", info_of_sata_disks),
    ("decode identify of dumps", decode_identify_of_dumps),
    ("smart of SATA disks", smart_of_sata_disks),
    ("temp of SATA disks", temp_of_sata_disks),
    ("temp costs what it promises", temp_costs_what_it_promises),
    ("temp again and again", temp_again_and_again),
    ("USB disks without SAT", usb_disks_without_sat),
    (
        "plain disks get no dangerous commands",
        plain_disks_get_no_dangerous_commands,
    ),
    ("list", list_has_every_disk),
    ("list against other tools", list_is_right_about_every_disk),
    ("list --mask", list_hides_serials),
    ("list as text", list_for_people),
    ("a disk that the kernel has suspended", a_suspended_disk),
    ("several devices", several_devices),
    ("no such device", no_such_device),
    ("two processes at one disk", two_processes_at_one_disk),
    ("a lock that is held", a_lock_that_is_held),
];

/// What the kernel may say at warning level or worse while booting, and what it may say at all during a check.
const USUAL_AT_BOOT: &[&str] = &["Power-on or device reset occurred"];
const USUAL_LATER: &[&str] = &[
    "random: crng init done",
    "Synchronizing SCSI cache",
    "Stopping disk",
    "Starting disk",
];
/// What it says at any time of the clocks of an emulated processor, when the host is busy.
const ABOUT_CLOCKS: &[&str] = &[
    "tsc: ",
    "clocksource: ",
    "APIC calibration not consistent with PM-Timer",
    "APIC delta adjusted to PM-Timer",
    "hrtimer: interrupt took",
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--list") {
        CHECKS.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let chosen: Vec<&Check> = CHECKS
        .iter()
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())))
        .collect();
    if chosen.is_empty() {
        return ExitCode::SUCCESS;
    }
    match run(&chosen) {
        Ok(failures) if failures.is_empty() => ExitCode::SUCCESS,
        Ok(failures) => {
            failures.iter().for_each(|failure| println!("FAILED: {failure}"));
            ExitCode::FAILURE
        }
        Err(Error::Unavailable(why)) => {
            println!("SKIPPED: {} checks on a real kernel: {why}", chosen.len());
            let required = ["CI", "DRIVETHRU_REQUIRE_VM"]
                .iter()
                .any(|name| std::env::var_os(name).is_some());
            if required {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            }
        }
        Err(error) => {
            println!("FAILED: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(chosen: &[&Check]) -> Result<Vec<String>, Error> {
    let sata = |disk: Disk, serial: &str| disk.serial(serial).model("QM Emulated Disk").firmware("QM-1.02");
    let guest = Vm::builder()
        .disk(sata(Disk::ahci(), UNKNOWN).size_bytes(96 << 20))
        .disk(sata(Disk::ahci_ssd(), FLASH).size_bytes(80 << 20))
        .disk(Disk::usb_bot().serial(BOT))
        .disk(Disk::usb_uas().serial(UAS))
        .boot()?;
    let bench = Bench {
        compared: Cell::new(0),
        failures: RefCell::default(),
        check: Cell::new("boot"),
        guest,
    };
    bench.look_at_the_kernel_log(|message| message.level <= 4, USUAL_AT_BOOT)?;
    // Into the guest's memory: the host's files come over 9p, slowly.
    let program = Guest::host_path(Path::new(env!("CARGO_BIN_EXE_drivethru")));
    let copied = bench
        .guest
        .run(&format!("cp '{program}' /tmp/drivethru"), TIMEOUT)?;
    assert_eq!(copied.status, 0, "{}", copied.stderr_text());

    for (name, check) in chosen {
        bench.check.set(name);
        let before = bench.failures.borrow().len();
        if let Err(why) = check(&bench) {
            bench.fail(why);
        }
        bench.look_at_the_kernel_log(|_| true, USUAL_LATER)?;
        let verdict = if bench.failures.borrow().len() == before {
            "ok"
        } else {
            "FAILED"
        };
        println!("{name}: {verdict}");
    }
    println!(
        "guest: {} checks, {} values compared (kernel {}, up in {:.1} s)",
        chosen.len(),
        bench.compared.get(),
        bench.guest.release(),
        bench.guest.boot_time().as_secs_f64()
    );
    let Bench { guest, failures, .. } = bench;
    guest.shutdown()?;
    Ok(failures.into_inner())
}

// --- the checks

fn info_of_sata_disks(bench: &Bench) -> Result<(), String> {
    for serial in [UNKNOWN, FLASH] {
        let disk = bench.disk(serial)?;
        let info = bench.json(&format!("info {}", disk.node))?;
        let drive = object_with(&info, &["model", "serial", "sectors"])
            .ok_or_else(|| format!("nothing in it has model, serial and sectors: {info}"))?;
        bench.compare_identity(serial, drive, &disk)?;
    }
    Ok(())
}

/// The same page, as binary and as hdparm's text, without the device.
fn decode_identify_of_dumps(bench: &Bench) -> Result<(), String> {
    for serial in [UNKNOWN, FLASH] {
        let disk = bench.disk(serial)?;
        for dump in [
            format!("hdparm --Istdout {}", disk.node),
            format!("sg_sat_identify --raw {}", disk.node),
        ] {
            bench.theirs(&format!("{dump} > /tmp/identify"), 0)?;
            let decoded = bench.json("decode identify /tmp/identify")?;
            let decoded = decoded.as_object().ok_or("not an object")?;
            bench.compare_identity(&format!("{serial}, {dump}"), decoded, &disk)?;
        }
    }
    Ok(())
}

fn smart_of_sata_disks(bench: &Bench) -> Result<(), String> {
    for serial in [UNKNOWN, FLASH] {
        let node = bench.disk(serial)?.node;
        let smart = bench.json(&format!("smart {node}"))?;
        let smartctl = bench.smartctl(&format!("-a {node}"))?;
        let ours = object_with(&smart, &["attributes"])
            .and_then(|object| object["attributes"].as_array())
            .ok_or_else(|| format!("no list of attributes: {smart}"))?;
        let theirs = smartctl
            .pointer("/ata_smart_attributes/table")
            .and_then(Value::as_array)
            .ok_or("smartctl has no attributes")?;
        let ids = |list: &[Value]| {
            list.iter()
                .map(|attribute| attribute["id"].as_u64())
                .collect::<Vec<_>>()
        };
        bench.same(&format!("{serial}: attributes"), ids(ours), ids(theirs));
        for (ours, theirs) in ours.iter().zip(theirs) {
            let what = |field: &str| format!("{serial}: attribute {} {field}", theirs["id"]);
            for field in ["value", "worst"] {
                bench.same(&what(field), ours[field].as_u64(), theirs[field].as_u64());
            }
            // Six bytes, the most significant first. "raw" may be a figure that is taken out of them.
            let hex = ours["raw_hex"]
                .as_str()
                .map(|text| text.trim_start_matches("0x").replace(' ', ""));
            let raw = hex.as_deref().and_then(|hex| u64::from_str_radix(hex, 16).ok());
            bench.same(&what("raw_hex"), raw, theirs["raw"]["value"].as_u64());
        }
        bench.same(
            &format!("{serial}: is it well"),
            bench.ours(&format!("smart {node}"))?.status == 0,
            smartctl["smart_status"]["passed"] == true,
        );
    }
    Ok(())
}

fn temp_of_sata_disks(bench: &Bench) -> Result<(), String> {
    for serial in [UNKNOWN, FLASH] {
        let node = bench.disk(serial)?.node;
        let ours = bench.json(&format!("temp {node}"))?;
        let theirs = bench.smartctl(&format!("-A {node}"))?;
        let celsius = ours.pointer("/temperature/celsius").and_then(Value::as_f64);
        bench.same(
            &format!("{serial}: temperature"),
            celsius,
            theirs["temperature"]["current"].as_f64(),
        );
        // The emulated disk has neither SCT nor statistics, and of the attributes only this one.
        bench.same(
            &format!("{serial}: source"),
            ours["temperature"]["source"].as_str(),
            Some("smart_190"),
        );
        let readings = ours["temperature"]["readings"].as_array().map(Vec::len);
        bench.same(&format!("{serial}: readings"), readings, Some(1));
        let power = ours["power_state"].as_str();
        let spins = bench
            .theirs(&format!("hdparm -C {node}"), 0)?
            .contains("active/idle");
        let awake = matches!(power, Some("active" | "idle")) || (serial == FLASH && power == Some("unknown"));
        bench.same(&format!("{serial}: awake ({power:?})"), awake, spins);
    }
    Ok(())
}

/// DESIGN section 5: power mode (not for flash), IDENTIFY, SMART data; and our own account agrees with the kernel's.
fn temp_costs_what_it_promises(bench: &Bench) -> Result<(), String> {
    for (serial, promised) in [(UNKNOWN, 3), (FLASH, 2)] {
        let disk = bench.disk(serial)?;
        let (output, cdbs) = bench.counted(&disk, &format!("temp --json {}", disk.node))?;
        bench.same(
            &format!("{serial}: commands {}", listed(&cdbs)),
            cdbs.len(),
            promised,
        );
        let document = document(&output)?;
        let own = document.pointer("/cost/commands").and_then(Value::as_u64);
        bench.same(&format!("{serial}: own account"), own, Some(cdbs.len() as u64));
        // The second run may know more, and must not cost more.
        let (_, again) = bench.counted(&disk, &format!("temp --json {}", disk.node))?;
        bench.holds(
            &format!("{serial}: second run {}", listed(&again)),
            again.len() <= promised,
        );
    }
    Ok(())
}

fn temp_again_and_again(bench: &Bench) -> Result<(), String> {
    for (serial, first, further) in [(UNKNOWN, 3, 2), (FLASH, 2, 1)] {
        let disk = bench.disk(serial)?;
        let (output, cdbs) =
            bench.counted(&disk, &format!("temp --json --every 1s --count 3 {}", disk.node))?;
        bench.same(
            &format!("{serial}: commands {}", listed(&cdbs)),
            cdbs.len(),
            first + 2 * further,
        );
        let text = output.stdout_text();
        let costs: Vec<Option<u64>> = text
            .lines()
            .map(|line| {
                serde_json::from_str::<Value>(line)
                    .ok()?
                    .pointer("/cost/commands")?
                    .as_u64()
            })
            .collect();
        let [first, further] = [first, further].map(|count| Some(count as u64));
        bench.same(
            &format!("{serial}: own account"),
            costs,
            vec![first, further, further],
        );
        let took = output.elapsed;
        bench.holds(
            &format!("{serial}: samples a second apart, in {took:?}"),
            took >= Duration::from_millis(1900),
        );
    }
    Ok(())
}

fn usb_disks_without_sat(bench: &Bench) -> Result<(), String> {
    for serial in [BOT, UAS] {
        let node = bench.disk(serial)?.node;
        for verb in ["temp", "smart"] {
            let output = bench.ours(&format!("{verb} {node}"))?;
            bench.same(&format!("{serial}: exit code of {verb}"), output.status, 5);
            let said = output.stderr_text();
            bench.holds(
                &format!("{serial}: {verb} explains itself: {said:?}"),
                said.contains(&node),
            );
        }
        let output = bench.ours(&format!("info --json {node}"))?;
        bench.same(&format!("{serial}: exit code of info"), output.status, 0);
        let info = document(&output)?;
        let inquiry = bench.theirs(&format!("sg_inq {node}"), 0)?;
        for label in ["Product identification:", "Product revision level:"] {
            let theirs = after(&inquiry, label).ok_or_else(|| format!("sg_inq has no {label}"))?;
            bench.holds(
                &format!("{serial}: info has {theirs:?}: {info}"),
                mentions(&info, &theirs),
            );
        }
        bench.holds(
            &format!("{serial}: info has the serial: {info}"),
            mentions(&info, serial),
        );
    }
    Ok(())
}

/// Vendor opcodes, A1h in any form but SAT's PIO data-in and non-data (others reset a drive), anything that writes.
fn plain_disks_get_no_dangerous_commands(bench: &Bench) -> Result<(), String> {
    const HARMLESS: &[u8] = &[0x00, 0x03, 0x12, 0x1a, 0x25, 0x4d, 0x5a, 0x85, 0x9e, 0xa0];
    for serial in [BOT, UAS] {
        let disk = bench.disk(serial)?;
        for verb in ["temp", "info", "smart", "list"] {
            let device = if verb == "list" { "" } else { &disk.node };
            let (_, cdbs) = bench.counted(&disk, &format!("{verb} {device}"))?;
            let harmless = cdbs.iter().all(|cdb| match (cdb.first(), cdb.get(1)) {
                (Some(0xa1), Some(protocol)) => matches!(protocol, 0x06 | 0x08),
                (Some(opcode), _) => HARMLESS.contains(opcode),
                _ => false,
            });
            bench.holds(&format!("{serial}: {verb} sends {}", listed(&cdbs)), harmless);
        }
    }
    Ok(())
}

fn list_has_every_disk(bench: &Bench) -> Result<(), String> {
    let usb = bench.json("list")?;
    let nodes = |list: &Value| -> Result<Vec<String>, String> {
        let devices = list["devices"].as_array().ok_or("no list of devices")?;
        let node = |entry: &Value| entry["host"]["block_node"].as_str().map(str::to_owned);
        Ok(devices.iter().filter_map(node).collect())
    };
    let theirs = bench.theirs("lsblk -n -d -o NAME,TRAN", 0)?;
    let listed = |wanted: fn(&str) -> bool| -> Vec<String> {
        let rows = theirs.lines().filter_map(|line| line.split_once(' '));
        rows.filter(|(name, transport)| name.starts_with("sd") && wanted(transport.trim()))
            .map(|(name, _)| format!("/dev/{name}"))
            .collect()
    };
    bench.same("list", nodes(&usb)?, listed(|transport| transport == "usb"));
    let all = bench.json("list --all")?;
    bench.same("list --all", nodes(&all)?, listed(|_| true));
    bench.same("list --all has four", nodes(&all)?.len(), 4);
    for (what, list) in [("list", &usb), ("list --all", &all)] {
        bench.same(
            &format!("{what}: bridges without a disk"),
            list["without_disk"].as_array().map(Vec::len),
            Some(0),
        );
    }
    for serial in [BOT, UAS] {
        let node = bench.disk(serial)?.node;
        bench.same(
            &format!("{serial}: the same entry in both"),
            entry_of(&usb, &node)?,
            entry_of(&all, &node)?,
        );
    }
    Ok(())
}

/// Each entry against what smartctl, sg_inq, lsblk and the links of sysfs tell of the same disk.
fn list_is_right_about_every_disk(bench: &Bench) -> Result<(), String> {
    let list = bench.json("list --all")?;
    for (serial, sat) in [(UNKNOWN, true), (FLASH, true), (BOT, false), (UAS, false)] {
        let disk = bench.disk(serial)?;
        let node = &disk.node;
        let entry = entry_of(&list, node)?;
        let ours = |pointer: &str| entry.pointer(pointer).cloned().unwrap_or_default();
        let same = |pointer: &str, theirs: Value| {
            bench.same(&format!("{serial}: {pointer}"), ours(pointer), theirs);
        };

        let lsblk = bench.theirs(&format!("lsblk -J -b -d -o SIZE,LOG-SEC,RM,HCTL,REV {node}"), 0)?;
        let lsblk: Value = serde_json::from_str(&lsblk).map_err(|error| format!("lsblk: {error}"))?;
        let lsblk = &lsblk["blockdevices"][0];
        same("/host/size_bytes", lsblk["size"].clone());
        same("/host/logical_block_bytes", lsblk["log-sec"].clone());
        same("/host/removable", lsblk["rm"].clone());
        same("/host/hctl", lsblk["hctl"].clone());
        same("/host/scsi/revision", lsblk["rev"].as_str().map(str::trim).into());
        let driver = bench.theirs(&driver_of(node, !sat), 0)?;
        same("/host/driver", driver.trim().into());
        same("/device/name", node.as_str().into());

        if sat {
            let smartctl = bench.smartctl(&format!("-i {node}"))?;
            same("/device/model", smartctl["model_name"].clone());
            same("/device/serial", smartctl["serial_number"].clone());
            same("/device/firmware", smartctl["firmware_version"].clone());
            bench.same(
                &format!("{serial}: size by smartctl"),
                ours("/host/size_bytes"),
                smartctl["user_capacity"]["bytes"].clone(),
            );
            same("/device/dialect", "sat".into());
            same("/works", "smart".into());
            bench.same(
                &format!("{serial}: it has SMART"),
                &smartctl["smart_support"]["available"],
                &Value::Bool(true),
            );
            same("/why", Value::Null);
            same("/host/usb", Value::Null);
        } else {
            let inquiry = bench.theirs(&format!("sg_inq {node}"), 0)?;
            let field = |label: &str| after(&inquiry, label).ok_or_else(|| format!("sg_inq has no {label}"));
            let vendor = field("Vendor identification:")?;
            let product = field("Product identification:")?;
            same("/device/model", format!("{vendor} {product}").into());
            same("/device/serial", Value::Null);
            same("/device/firmware", Value::Null);
            same("/device/dialect", Value::Null);
            same("/works", "scsi_only".into());
            let why = ours("/why");
            let why = why.as_str().unwrap_or_default();
            bench.holds(
                &format!("{serial}: it says why: {why:?}"),
                why.contains("05/20/00"),
            );
            // From the LUN up: target, host, USB interface, USB device.
            let device = format!(
                "$(readlink -f $(readlink -f /sys/block/{}/device)/../../../..)",
                base(node)
            );
            let attribute = |name: &str| -> Result<String, String> {
                let text = bench.theirs(&format!("cat {device}/{name}"), 0)?;
                Ok(text.trim().to_owned())
            };
            let port = bench.theirs(&format!("basename {device}"), 0)?;
            same("/host/usb/port", port.trim().into());
            same("/host/usb/serial", attribute("serial")?.into());
            same("/host/usb/product", attribute("product")?.into());
            let ids = [attribute("idVendor")?, attribute("idProduct")?].join(":");
            same("/device/usb_id", ids.into());
            let speed: u64 = attribute("speed")?
                .parse()
                .map_err(|error| format!("speed: {error}"))?;
            same("/host/usb/speed_mbit_s", speed.into());
        }
    }
    Ok(())
}

fn list_hides_serials(bench: &Bench) -> Result<(), String> {
    for (command, serials) in [
        ("list", [BOT, UAS].as_slice()),
        ("list --all", &[BOT, UAS, UNKNOWN, FLASH]),
    ] {
        let plain = bench.json(command)?;
        let masked = bench.json(&format!("{command} --mask"))?;
        let [plain_text, masked_text] = [&plain, &masked].map(Value::to_string);
        for serial in serials {
            bench.holds(
                &format!("{command}: {serial} is there"),
                plain_text.contains(serial),
            );
            bench.holds(
                &format!("{command} --mask: {serial} is hidden in {masked_text}"),
                !masked_text.contains(serial),
            );
        }
        // Nothing else is: with the two serials put back it is the same document.
        let mut restored = masked.clone();
        let entries = restored["devices"].as_array_mut().ok_or("no list of devices")?;
        for (entry, plain) in entries
            .iter_mut()
            .zip(plain["devices"].as_array().into_iter().flatten())
        {
            for pointer in ["/device/serial", "/host/usb/serial"] {
                if let (Some(hidden), Some(shown)) = (entry.pointer_mut(pointer), plain.pointer(pointer)) {
                    let text = hidden.as_str().unwrap_or_default();
                    bench.holds(&format!("{command} --mask: {text:?}"), text.contains("***"));
                    *hidden = shown.clone();
                }
            }
        }
        bench.same(&format!("{command} --mask: the rest"), restored, plain);
    }
    Ok(())
}

fn list_for_people(bench: &Bench) -> Result<(), String> {
    let output = bench.ours("list --all")?;
    bench.same("exit code", output.status, 0);
    let text = output.stdout_text();
    let mut lines = text.lines();
    bench.same(
        "columns",
        lines
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>(),
        vec![
            "Node", "Port", "Link", "Driver", "Bridge", "Drive", "Size", "Dialect", "Works",
        ],
    );
    let rows: Vec<Vec<String>> = lines.map(cells).collect();
    bench.same("rows", rows.len(), 4);
    for (serial, driver, drive, size, dialect, works) in [
        (
            UNKNOWN,
            "ahci",
            "QM Emulated Disk",
            "101 MB",
            "sat",
            "temp, smart",
        ),
        (FLASH, "ahci", "QM Emulated Disk", "83.9 MB", "sat", "temp, smart"),
        (
            BOT,
            "usb-storage",
            "QEMU QEMU HARDDISK",
            "67.1 MB",
            "-",
            "SCSI only",
        ),
        (UAS, "uas", "QEMU QEMU HARDDISK", "67.1 MB", "-", "SCSI only"),
    ] {
        let node = bench.disk(serial)?.node;
        let row = rows.iter().find(|row| row.first() == Some(&node));
        let row = row.ok_or_else(|| format!("no row of {node}: {text}"))?;
        bench.same(&format!("{serial}: cells of {row:?}"), row.len(), 9);
        let cell = |at: usize| row.get(at).map(String::as_str).unwrap_or_default();
        for (at, expected) in [(3, driver), (5, drive), (6, size), (7, dialect), (8, works)] {
            bench.same(&format!("{serial}: cell {at}"), cell(at), expected);
        }
    }
    let usb = bench.ours("list")?.stdout_text();
    bench.same("lines of list", usb.lines().count(), 3);
    Ok(())
}

/// A command would resume it, and so would opening its sg node: nothing that polls does either, and --wake does.
fn a_suspended_disk(bench: &Bench) -> Result<(), String> {
    for (serial, woken) in [(UNKNOWN, 0), (FLASH, 0), (BOT, 5), (UAS, 5)] {
        let disk = bench.disk(serial)?;
        let node = &disk.node;
        let device = format!("/sys/block/{}/device", base(node));
        let generic = bench.theirs(&format!("ls {device}/scsi_generic"), 0)?;
        let generic = format!("/dev/{}", generic.trim());
        let power = format!("{device}/power");
        let status = || -> Result<String, String> {
            let status = bench.theirs(&format!("cat {power}/runtime_status"), 0)?;
            Ok(status.trim().to_owned())
        };
        bench.theirs(
            &format!(
                "echo 0 > {power}/autosuspend_delay_ms && echo auto > {power}/control && \
                 for i in $(seq 100); do grep -q suspended {power}/runtime_status && exit 0; sleep 0.1; done; exit 1"
            ),
            0,
        )?;
        for (arguments, expected) in [
            (format!("temp {node}"), 7),
            (format!("temp {generic}"), 7),
            (format!("smart {generic}"), 7),
            ("list --all".to_owned(), 0),
        ] {
            let (output, cdbs) = bench.counted(&disk, &format!("{arguments} --json"))?;
            bench.same(
                &format!("{serial}: exit code of {arguments}"),
                output.status,
                expected,
            );
            // Were it resumed and suspended again, the kernel would have sent some.
            bench.same(
                &format!("{serial}: {arguments}: commands {}", listed(&cdbs)),
                cdbs.len(),
                0,
            );
            bench.same(
                &format!("{serial}: after {arguments}"),
                status()?.as_str(),
                "suspended",
            );
            if arguments.starts_with("list") {
                let list = document(&output)?;
                let entry = entry_of(&list, node)?;
                bench.same(
                    &format!("{serial}: works"),
                    entry["works"].as_str(),
                    Some("asleep"),
                );
            }
        }
        // Longer than a reading takes, so that its end can be seen.
        bench.theirs(&format!("echo 30000 > {power}/autosuspend_delay_ms"), 0)?;
        let output = bench.ours(&format!("temp --wake {node}"))?;
        bench.same(
            &format!("{serial}: exit code of temp --wake"),
            output.status,
            woken,
        );
        bench.same(
            &format!("{serial}: after temp --wake"),
            status()?.as_str(),
            "active",
        );
        bench.theirs(&format!("echo on > {power}/control"), 0)?;
    }
    Ok(())
}

/// The most serious code counts, and what could be read is there.
fn several_devices(bench: &Bench) -> Result<(), String> {
    let [flash, bot] = [bench.disk(FLASH)?.node, bench.disk(BOT)?.node];
    let output = bench.ours(&format!("temp --json {bot} {flash}"))?;
    bench.same("exit code", output.status, 5);
    let text = output.stdout_text();
    let read = text.lines().any(|line| {
        serde_json::from_str(line).is_ok_and(|line: Value| line.pointer("/temperature/celsius").is_some())
    });
    bench.holds(&format!("the temperature of {flash}: {text:?}"), read);
    Ok(())
}

/// A series lets others at the disk between its readings.
fn two_processes_at_one_disk(bench: &Bench) -> Result<(), String> {
    let node = bench.disk(FLASH)?.node;
    let drivethru = "/tmp/drivethru";
    let script = format!(
        "{drivethru} temp --json --every 300ms --count 8 {node} > /tmp/series & sleep 0.5; {drivethru} smart --json {node}; \
         first=$?; wait $!; echo series $? smart $first lines $(wc -l < /tmp/series)"
    );
    let text = bench.shell(&script)?;
    bench.same(
        "both processes",
        text.lines().last().unwrap_or_default(),
        "series 0 smart 0 lines 8",
    );
    Ok(())
}

/// While another process works on the disk, drivethru waits, then says who it is.
fn a_lock_that_is_held(bench: &Bench) -> Result<(), String> {
    let disk = bench.disk(FLASH)?;
    let lock = format!(
        "/run/lock/drivethru-{}.lock",
        disk.address.clone().unwrap_or_default().replace(':', "-")
    );
    let drivethru = "/tmp/drivethru";
    let node = &disk.node;
    let script = format!(
        "mkdir -p /run/lock; : > {lock}; flock {lock} sleep 14 & sleep 0.5; {drivethru} temp {node} 2>&1; echo exit $?; \
         wait; {drivethru} temp {node} > /dev/null; echo exit $?"
    );
    let text = bench.shell(&script)?;
    bench.holds(
        &format!("it names the holder: {text}"),
        text.contains("locked by another process (pid "),
    );
    bench.holds(
        &format!("refused, then not: {text}"),
        text.contains("exit 3") && text.ends_with("exit 0\n"),
    );
    Ok(())
}

fn no_such_device(bench: &Bench) -> Result<(), String> {
    for verb in ["temp", "info", "smart"] {
        let output = bench.ours(&format!("{verb} /dev/sdzz"))?;
        bench.same(&format!("exit code of {verb}"), output.status, 3);
        bench.holds(
            &format!("{verb} names it"),
            output.stderr_text().contains("/dev/sdzz"),
        );
    }
    Ok(())
}

// --- helpers

struct Bench {
    guest: Guest,
    compared: Cell<usize>,
    failures: RefCell<Vec<String>>,
    check: Cell<&'static str>,
}

impl Bench {
    /// One value of ours against the same one of somebody else. A difference is noted, and the check goes on.
    fn same<T: PartialEq + Debug>(&self, what: &str, ours: T, theirs: T) {
        self.compared.set(self.compared.get() + 1);
        if ours != theirs {
            self.fail(format!("{what}: {ours:?} here, expected {theirs:?}"));
        }
    }

    fn holds(&self, what: &str, holds: bool) {
        self.compared.set(self.compared.get() + 1);
        if !holds {
            self.fail(format!("{what}: does not hold"));
        }
    }

    fn fail(&self, why: String) {
        self.failures
            .borrow_mut()
            .push(format!("{}: {why}", self.check.get()));
    }

    fn disk(&self, serial: &str) -> Result<GuestDisk, String> {
        self.guest.find_disk(serial).map_err(|error| error.to_string())
    }

    /// Our tool, each time with a home that knows nothing.
    fn ours(&self, arguments: &str) -> Result<Output, String> {
        self.guest
            .run(&fresh(arguments), TIMEOUT)
            .map_err(|error| error.to_string())
    }

    /// The same, and what it sent to this disk.
    fn counted(&self, disk: &GuestDisk, arguments: &str) -> Result<(Output, Vec<Vec<u8>>), String> {
        self.guest
            .run_counted(disk, &fresh(arguments), TIMEOUT)
            .map_err(|error| error.to_string())
    }

    /// A script in the guest, whatever its status.
    fn shell(&self, script: &str) -> Result<String, String> {
        let output = self
            .guest
            .run(script, TIMEOUT)
            .map_err(|error| error.to_string())?;
        Ok(output.stdout_text())
    }

    /// Our tool's one document; it must have ended well.
    fn json(&self, arguments: &str) -> Result<Value, String> {
        let output = self.ours(&format!("{arguments} --json"))?;
        if output.status != 0 {
            return Err(format!(
                "{arguments} ended with {}: {}",
                output.status,
                output.stderr_text()
            ));
        }
        document(&output)
    }

    /// Somebody else's tool; bits of its exit code that are not `accepted` are a failure of the check.
    fn theirs(&self, command: &str, accepted: i32) -> Result<String, String> {
        let output = self
            .guest
            .run(command, TIMEOUT)
            .map_err(|error| error.to_string())?;
        if output.status & !accepted != 0 {
            return Err(format!(
                "{command} ended with {}: {}",
                output.status,
                output.stderr_text()
            ));
        }
        Ok(output.stdout_text())
    }

    /// Bit 2 of smartctl's exit code tells that some log is not there.
    fn smartctl(&self, arguments: &str) -> Result<Value, String> {
        let text = self.theirs(&format!("smartctl -j -d sat {arguments}"), 4)?;
        serde_json::from_str(&text).map_err(|error| format!("smartctl {arguments}: {error}"))
    }

    /// Against smartctl, hdparm and what the kernel itself tells through SCSI.
    fn compare_identity(&self, who: &str, ours: &Map<String, Value>, disk: &GuestDisk) -> Result<(), String> {
        let node = &disk.node;
        let text = |key: &str| ours.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| ours.get(key).and_then(Value::as_u64);

        let smartctl = self.smartctl(&format!("-i {node}"))?;
        for (key, theirs) in [
            ("model", "model_name"),
            ("serial", "serial_number"),
            ("firmware", "firmware_version"),
        ] {
            let theirs = smartctl[theirs].as_str().map(str::to_owned);
            self.same(&format!("{who}: {key} (smartctl)"), text(key), theirs);
        }
        let pairs = [
            ("sectors", "/user_capacity/blocks"),
            ("logical_sector_bytes", "/logical_block_size"),
            ("physical_sector_bytes", "/physical_block_size"),
            ("rotation_rpm", "/rotation_rate"),
        ];
        for (key, theirs) in pairs {
            let theirs = smartctl.pointer(theirs).and_then(Value::as_u64);
            self.same(&format!("{who}: {key} (smartctl)"), number(key), theirs);
        }

        let hdparm = self.theirs(&format!("hdparm -I {node}"), 0)?;
        for (key, label) in [
            ("model", "Model Number:"),
            ("serial", "Serial Number:"),
            ("firmware", "Firmware Revision:"),
        ] {
            self.same(
                &format!("{who}: {key} (hdparm)"),
                text(key),
                after(&hdparm, label),
            );
        }
        let theirs = after(&hdparm, "LBA48  user addressable sectors:").and_then(|text| text.parse().ok());
        self.same(&format!("{who}: sectors (hdparm)"), number("sectors"), theirs);
        let solid =
            after(&hdparm, "Nominal Media Rotation Rate:").is_some_and(|text| text == "Solid State Device");
        self.same(
            &format!("{who}: solid state (hdparm)"),
            number("rotation_rpm") == Some(0),
            solid,
        );

        let capacity = self.theirs(&format!("sg_readcap {node}"), 0)?;
        let theirs = after(&capacity, "Number of logical blocks=").and_then(|text| text.parse().ok());
        self.same(
            &format!("{who}: sectors (READ CAPACITY)"),
            number("sectors"),
            theirs,
        );
        let theirs = after(&capacity, "Logical block length=");
        let theirs = theirs.and_then(|text| text.strip_suffix(" bytes")?.parse().ok());
        self.same(
            &format!("{who}: sector size (READ CAPACITY)"),
            number("logical_sector_bytes"),
            theirs,
        );
        let unit = self.theirs(&format!("sg_vpd --page=sn {node}"), 0)?;
        self.same(
            &format!("{who}: serial (VPD 80h)"),
            text("serial"),
            after(&unit, "Unit serial number:"),
        );
        Ok(())
    }

    /// What has come since the last look and is not among the usual is a failure. The look counts as one value: how much
    /// the kernel has to say differs from run to run.
    fn look_at_the_kernel_log(
        &self,
        counts: fn(&KernelMessage) -> bool,
        usual: &[&str],
    ) -> Result<(), Error> {
        let is_usual = |text: &str| usual.iter().chain(ABOUT_CLOCKS).any(|usual| text.contains(usual));
        let news = self.guest.dmesg_new()?;
        let unusual: Vec<String> = news
            .iter()
            .filter(|message| counts(message) && !is_usual(&message.text))
            .map(|message| format!("(level {}) {}", message.level, message.text))
            .collect();
        self.same("what the kernel says", unusual, Vec::new());
        Ok(())
    }
}

fn fresh(arguments: &str) -> String {
    format!("HOME=$(mktemp -d) NO_COLOR=1 /tmp/drivethru {arguments}")
}

fn document(output: &Output) -> Result<Value, String> {
    let text = output.stdout_text();
    serde_json::from_str(&text).map_err(|error| {
        format!(
            "not one JSON document ({error}): {text:?}, exit code {}, on stderr {:?}",
            output.status,
            output.stderr_text()
        )
    })
}

/// The first object, from the outside in, that has all these keys.
fn object_with<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a Map<String, Value>> {
    match value {
        Value::Object(object) if keys.iter().all(|key| object.contains_key(*key)) => Some(object),
        Value::Object(object) => object.values().find_map(|inner| object_with(inner, keys)),
        Value::Array(list) => list.iter().find_map(|inner| object_with(inner, keys)),
        _ => None,
    }
}

/// Whether one of the strings in it, at any depth, is this one.
fn mentions(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Array(list) => list.iter().any(|inner| mentions(inner, wanted)),
        Value::Object(object) => object.values().any(|inner| mentions(inner, wanted)),
        _ => false,
    }
}

/// What stands behind this label, to the end of the line, without blanks around it.
fn after(text: &str, label: &str) -> Option<String> {
    text.lines()
        .find_map(|line| Some(line.split_once(label)?.1.trim().to_owned()))
}

/// What `list` says of this node.
fn entry_of<'a>(list: &'a Value, node: &str) -> Result<&'a Value, String> {
    let devices = list["devices"].as_array().ok_or("no list of devices")?;
    devices
        .iter()
        .find(|entry| entry["host"]["block_node"] == node)
        .ok_or_else(|| format!("{node} is not in {list}"))
}

/// `sda` of `/dev/sda`.
fn base(node: &str) -> &str {
    node.rsplit('/').next().unwrap_or_default()
}

/// A command that prints the driver of the disk's host: of the USB interface, else of the PCI device.
fn driver_of(node: &str, is_usb: bool) -> String {
    // From the LUN up: target, host, and then the interface, or the ATA port and the controller.
    let up = if is_usb { "../../.." } else { "../../../.." };
    format!(
        "basename $(readlink -f $(readlink -f /sys/block/{}/device)/{up}/driver)",
        base(node)
    )
}

/// The cells of a line of a table: two blanks or more are between them.
fn cells(line: &str) -> Vec<String> {
    line.split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .map(str::to_owned)
        .collect()
}

fn listed(cdbs: &[Vec<u8>]) -> String {
    let hex = |cdb: &Vec<u8>| {
        cdb.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    format!("[{}]", cdbs.iter().map(hex).collect::<Vec<_>>().join(", "))
}
