//! Devices served to a running guest: found by their port, unplugged and plugged in, many at once and one after the other.
//!
//! It does without the usual harness, which would hide that something was skipped, and because this program is also the server:
//! called as `sim serve ...` it is a stick without a serial.

mod fake;

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use drivethru_vm::{Error, Guest, Served, Vm, setup};

const SHORT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "sim") {
        return match fake::serve(&arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    match sticks_come_and_go().and_then(|()| by_the_command_line()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Unavailable(why)) => {
            println!("SKIPPED: served devices: {why}");
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

fn sticks_come_and_go() -> Result<(), Error> {
    let this = std::env::current_exe().expect("the name of this program");
    let guest = Vm::builder().usb_slots(2).network().program(this).boot()?;
    println!("up in {:.1} s", guest.boot_time().as_secs_f64());
    guest.dmesg_new()?;
    assert!(guest.dmesg_new()?.is_empty());
    assert!(guest.usb_devices()?.is_empty());

    // Two alike, told apart by their ports.
    let stick = Served::profile("stick");
    let started = Instant::now();
    let first = guest.attach(&stick)?;
    let first_disk = first.wait_for_disk(SHORT)?;
    println!("disk after {:.2} s", started.elapsed().as_secs_f64());
    let second = guest.attach(&stick)?;
    let second_disk = second.wait_for_disk(SHORT)?;
    assert_ne!(first_disk.node, second_disk.node);
    assert_eq!((first.slot(), second.slot()), (Some(0), Some(1)));
    assert_eq!(first.disks()?, std::slice::from_ref(&first_disk));
    assert_eq!(second.disks()?, std::slice::from_ref(&second_disk));
    assert!(first_disk.serials.is_empty(), "{first_disk:?}");
    for device in [&first, &second] {
        assert_eq!(device.driver()?.as_deref(), Some("usb-storage"));
        let usb = device.usb()?.expect("it is there");
        assert_eq!((usb.ids, usb.mbit_per_s), ((0x1234, 0x5678), 480));
    }
    let news = guest.dmesg_new()?;
    assert!(
        news.iter()
            .any(|message| message.text.contains("Attached SCSI removable disk"))
    );
    assert!(
        matches!(guest.attach(&stick), Err(Error::Usage(_))),
        "a third in two slots"
    );

    // What it is asked, it answers; what it refuses is an error.
    first.clear_log()?;
    let size = guest.run(&format!("blockdev --getsize64 {}", first_disk.node), SHORT)?;
    assert_eq!(size.stdout_text().trim(), "65536");
    let read = format!(
        "dd if={} bs=64k iflag=direct status=none | wc -c",
        first_disk.node
    );
    assert_eq!(guest.run(&read, SHORT)?.stdout_text().trim(), "65536");
    let log = first.log()?;
    assert!(log.iter().any(|entry| entry["operation"] == 0x28), "{log:?}");
    assert!(matches!(first.control("dance"), Err(Error::Refused { .. })));

    // Out and in again, while the other one stays.
    first.unplug()?;
    first.wait_gone(SHORT)?;
    assert_eq!((first.usb()?, first.disks()?.len()), (None, 0));
    assert_eq!(second.disks()?, std::slice::from_ref(&second_disk));
    let started = Instant::now();
    first.plug()?;
    first.wait_for_disk(SHORT)?;
    println!("again after {:.2} s", started.elapsed().as_secs_f64());

    // The place is free when it is dropped, files and process are gone, and the next one can have it: QEMU listens again.
    let (log, process) = (first.log_file().to_owned(), first.process_id());
    assert!(log.exists() && is_running(process));
    drop(first);
    assert!(!log.exists() && !is_running(process));
    for round in 0..3 {
        let device = guest.attach(&stick)?;
        assert_eq!(device.slot(), Some(0), "round {round}");
        device.wait_for_disk(SHORT)?;
    }

    // Not plugged in yet.
    let later = guest.attach(&stick.clone().unplugged())?;
    match later.wait_for_disk(Duration::from_millis(500)) {
        Err(Error::NotSo { .. }) => {}
        other => panic!("not plugged in, yet {other:?}"),
    }
    later.plug()?;
    later.wait_for_usb(SHORT)?;
    later.wait_for_disk(SHORT)?;
    drop(later);

    // By USB/IP the same, two at once beside one by usbredir.
    match setup::require("usbip") {
        Ok(()) => by_usbip(&guest)?,
        Err(error) => println!("SKIPPED: USB/IP: {error}"),
    }

    // A server that does not start says why.
    match guest.attach(&Served::profile("broken")) {
        Err(Error::ServerEnded { output, .. }) => assert!(output.contains("no profile broken"), "{output}"),
        other => panic!("broken, yet {:?}", other.map(|device| device.slot())),
    }

    // Modules on demand, and the network.
    guest.load_module("drivetemp")?;
    guest.load_module("drivetemp")?;
    guest.load_module("scsi_debug dev_size_mb=8")?;
    let there = "cat /sys/module/scsi_debug/parameters/dev_size_mb && ls -d /sys/module/drivetemp";
    assert_eq!(
        guest.run(there, SHORT)?.stdout_text(),
        "8\n/sys/module/drivetemp\n"
    );
    assert!(guest.load_module("no_such_module").is_err());
    let address = "cat /sys/class/net/eth0/operstate && grep -c 10.0.2.15 /proc/net/fib_trie";
    let address = guest.run(address, SHORT)?.stdout_text();
    assert!(
        address.starts_with("up\n") || address.starts_with("unknown\n"),
        "{address}"
    );

    drop(second);
    guest.shutdown()
}

fn by_usbip(guest: &Guest) -> Result<(), Error> {
    let stick = Served::profile("stick").usbip();
    let started = Instant::now();
    let first = guest.attach(&stick)?;
    let first_disk = first.wait_for_disk(SHORT)?;
    println!("by USB/IP after {:.2} s", started.elapsed().as_secs_f64());
    let second = guest.attach(&stick)?;
    let second_disk = second.wait_for_disk(SHORT)?;
    assert_ne!(first_disk.node, second_disk.node);
    assert_eq!((first.slot(), first.disks()?), (None, vec![first_disk.clone()]));
    assert_eq!(second.disks()?, std::slice::from_ref(&second_disk));
    assert_eq!(first.driver()?.as_deref(), Some("usb-storage"));
    let read = format!(
        "dd if={} bs=64k iflag=direct status=none | wc -c",
        first_disk.node
    );
    assert_eq!(guest.run(&read, SHORT)?.stdout_text().trim(), "65536");
    first.unplug()?;
    first.wait_gone(SHORT)?;
    assert_eq!(second.disks()?, std::slice::from_ref(&second_disk));
    first.plug()?;
    first.wait_for_disk(SHORT)?;
    drop(second);
    let third = guest.attach(&stick.unplugged())?;
    assert!(third.disks()?.is_empty());
    third.plug()?;
    third.wait_for_disk(SHORT).map(drop)
}

/// `run --device`, and what becomes of the server when `run` is killed.
fn by_the_command_line() -> Result<(), Error> {
    let run = |command: &[&str]| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_drivethru-vm"));
        run.args([
            "run",
            "--device",
            "stick",
            "--device",
            "usbredir:stick",
            "--program",
        ]);
        run.arg(std::env::current_exe().expect("the name of this program"));
        run.arg("--").args(command);
        run
    };
    let output = run(&["cat", "/sys/block/sda/size", "/sys/block/sdb/size"])
        .output()
        .expect("our own program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(output.stdout, b"128\n128\n");
    assert!(said.contains("stick is /dev/sda, usb-storage"), "{said}");

    let mut owner = run(&["sleep", "1000"]).spawn().expect("our own program runs");
    let servers = || {
        let list = format!("/proc/{0}/task/{0}/children", owner.id());
        let children = std::fs::read_to_string(list).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|word| word.parse().ok());
        children.collect::<Vec<u32>>()
    };
    let until = Instant::now() + SHORT;
    while servers().len() < 3 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let servers = servers();
    assert_eq!(servers.len(), 3, "the emulator and two servers");
    owner.kill().expect("it is ours");
    owner.wait().expect("it is ours");
    let until = Instant::now() + SHORT;
    while servers.iter().any(|process| is_running(*process)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!servers.iter().any(|process| is_running(*process)));
    Ok(())
}

/// An ended process that nobody has waited for does not count.
fn is_running(process: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}
