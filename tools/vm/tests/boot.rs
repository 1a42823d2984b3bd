//! The bench itself: boots, passes output and status through, tells the ways to fail apart, leaves nothing behind.
//!
//! It does without the usual harness, which would hide that something was skipped.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use drivethru_vm::{Disk, Error, Guest, Vm};

const SHORT: Duration = Duration::from_secs(30);

type Test = fn() -> Result<(), Error>;

fn main() -> ExitCode {
    let tests: [(&str, Test); 5] = [
        (
            "one guest answers many questions",
            one_guest_answers_many_questions,
        ),
        (
            "a panic is told from a power-off",
            a_panic_is_told_from_a_power_off,
        ),
        (
            "a guest that does not boot is killed",
            a_guest_that_does_not_boot_is_killed,
        ),
        ("a guest ends with its owner", a_guest_ends_with_its_owner),
        ("nothing is left behind", nothing_is_left_behind),
    ];
    for (name, test) in tests {
        let started = Instant::now();
        match test() {
            Ok(()) => println!("{name}: ok ({:.1} s)", started.elapsed().as_secs_f64()),
            Err(Error::Unavailable(why)) => {
                println!("SKIPPED: {name}: {why}");
                if ["CI", "DRIVETHRU_REQUIRE_VM"]
                    .iter()
                    .any(|name| std::env::var_os(name).is_some())
                {
                    return ExitCode::FAILURE;
                }
            }
            Err(error) => {
                println!("{name}: FAILED: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn one_guest_answers_many_questions() -> Result<(), Error> {
    let guest = Vm::builder()
        .disk(Disk::usb_bot().serial("BOT1").size_bytes(32 << 20))
        .disk(
            Disk::ahci()
                .serial("AHCI1")
                .model("A model, with comma")
                .firmware("FW 1"),
        )
        .disk(Disk::usb_uas().serial("UAS1"))
        .disk(Disk::ahci_ssd().serial("AHCI2"))
        .disk(Disk::nvme().serial("NVME1"))
        .boot()?;
    println!(
        "  to the first command {:.1} s, of it {:.1} s to init and {:.1} s in init",
        guest.boot_time().as_secs_f64(),
        guest.guest_time().0.as_secs_f64(),
        (guest.guest_time().1 - guest.guest_time().0).as_secs_f64()
    );
    assert!(guest.boot_time() < Duration::from_secs(60));

    // Output and status.
    let uname = guest.run("uname -r", SHORT)?;
    assert_eq!((uname.status, uname.stdout_text().trim()), (0, guest.release()));
    let both = guest.run("printf 'out\\000\\377\\r\\n'; printf err >&2; exit 7", SHORT)?;
    assert_eq!(both.status, 7);
    assert_eq!(
        (both.stdout.as_slice(), both.stderr.as_slice()),
        (b"out\0\xff\r\n".as_slice(), b"err".as_slice())
    );
    let bytes = guest.run("seq 1 300000 | gzip -n", SHORT)?.stdout;
    let here = Command::new("sh")
        .args(["-c", "seq 1 300000 | gzip -n"])
        .output()
        .expect("sh and gzip");
    assert!(here.stdout.len() > 100_000);
    assert!(
        bytes == here.stdout,
        "{} bytes came of {}",
        bytes.len(),
        here.stdout.len()
    );
    assert_eq!(guest.run("kill -TERM $$", SHORT)?.status, 128 + 15);
    assert!(matches!(
        guest.run_args(&["/no/such/program"], SHORT),
        Err(Error::Refused { .. })
    ));
    let slept = guest.run_args(&["/bin/sleep", "0.3"], SHORT)?.elapsed;
    assert!(
        slept > Duration::from_millis(300) && slept < Duration::from_secs(3),
        "{slept:?}"
    );

    // A time-out kills the command with its children, keeps what was written, and the guest lives on.
    match guest.run("echo before; sleep 97 & sleep 98", Duration::from_secs(1)) {
        Err(Error::CommandTimedOut { output, .. }) => assert_eq!(output.stdout_text(), "before\n"),
        other => panic!("not a time-out: {other:?}"),
    }
    assert_eq!(guest.run("pgrep -x sleep", SHORT)?.stdout_text(), "");
    // A job in the background does not hold the answer back.
    let started = Instant::now();
    assert_eq!(guest.run("sleep 99 & echo $!", SHORT)?.status, 0);
    assert!(started.elapsed() < Duration::from_secs(10));

    // Files: what may be written, what must not.
    let writable =
        "for dir in /tmp /var/tmp /run $HOME /dev/shm /var/lib /etc; do echo x > $dir/x && cat $dir/x; done";
    assert_eq!(guest.run(writable, SHORT)?.stdout_text(), "x\n".repeat(7));
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert_eq!(
        guest
            .run(&format!("cat '{}'", Guest::host_path(&here)), SHORT)?
            .stdout,
        std::fs::read(&here).expect("the manifest is there")
    );
    let refused = guest.run(&format!("touch '{}'", Guest::host_path(&here)), SHORT)?;
    assert!(
        refused.status != 0 && refused.stderr_text().contains("Read-only"),
        "{refused:?}"
    );

    // Disks: each serial leads to its disk, whatever the order, and to the driver that it was made for.
    let drivers = [
        ("BOT1", "usb-storage"),
        ("UAS1", "uas"),
        ("AHCI1", "ahci"),
        ("AHCI2", "ahci"),
    ];
    for (serial, driver) in drivers {
        let disk = guest.find_disk(serial)?;
        let up = "cd -P /sys/block/NAME/device/.. && until [ -e driver ]; do cd ..; done && basename $(realpath driver)";
        let name = guest.run(&up.replace("NAME", disk.node.trim_start_matches("/dev/")), SHORT)?;
        assert_eq!(name.stdout_text().trim(), driver, "{serial}");
    }
    assert_eq!(guest.find_disk("NVME1")?.node, "/dev/nvme0n1");
    assert!(matches!(guest.find_disk("AHCI"), Err(Error::NoSuchDisk { .. })));
    let bot = guest.find_disk("BOT1")?.node;
    assert_eq!(
        guest
            .run(&format!("blockdev --getsize64 {bot}"), SHORT)?
            .stdout_text()
            .trim(),
        "33554432"
    );
    let ahci = guest.find_disk("AHCI1")?;
    let smart = guest
        .run(&format!("smartctl -i {}", ahci.node), SHORT)?
        .stdout_text();
    for wanted in ["AHCI1\n", "A model, with comma\n", "FW 1\n"] {
        assert!(smart.contains(wanted), "{wanted:?} is not in {smart}");
    }

    // CDBs: exactly those sent, to this disk alone.
    let send = "sg_raw -r 36 DEV 12 00 00 00 24 00 && sg_raw -r 512 DEV 85 08 0e 00 00 00 01 00 00 00 00 00 00 00 ec 00";
    let both = format!(
        "{} && sg_raw {bot} 00 00 00 00 00 00",
        send.replace("DEV", &ahci.node)
    );
    let (sent, cdbs) = guest.run_counted(&ahci, &both, SHORT)?;
    assert_eq!(sent.status, 0, "{}", sent.stderr_text());
    let wanted: [&[u8]; 2] = [
        &[0x12, 0, 0, 0, 0x24, 0],
        &[0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0],
    ];
    assert_eq!(cdbs, wanted);
    assert_eq!(guest.run_counted(&ahci, "true", SHORT)?.1.len(), 0);

    // The kernel's log.
    assert_eq!(
        guest.run("echo '<3>a line of ours' > /dev/kmsg", SHORT)?.status,
        0
    );
    let log = guest.dmesg()?;
    assert!(log.iter().any(|message| message.text.contains("Linux version")));
    let last = log.last().expect("a log");
    assert_eq!((last.level, last.text.as_str()), (3, "a line of ours"));

    guest.shutdown()
}

fn a_panic_is_told_from_a_power_off() -> Result<(), Error> {
    let guest = Vm::builder().boot()?;
    match guest.run("echo c > /proc/sysrq-trigger", SHORT) {
        Err(Error::GuestPanicked { console }) => assert!(console.contains("sysrq"), "{console}"),
        other => panic!("not a panic: {other:?}"),
    }
    assert!(guest.run("true", SHORT).is_err(), "a dead guest answers");
    let guest = Vm::builder().boot()?;
    match guest.run("echo o > /proc/sysrq-trigger; sleep 20", SHORT) {
        Err(Error::QemuExited { .. }) => Ok(()),
        other => panic!("not an exit: {other:?}"),
    }
}

fn a_guest_that_does_not_boot_is_killed() -> Result<(), Error> {
    match Vm::builder().boot_timeout(Duration::from_millis(300)).boot() {
        Err(Error::GuestSilent { .. }) => {}
        Err(error) => return Err(error),
        Ok(_) => panic!("booted in no time"),
    }
    match Vm::builder().qemu_args(["-device", "no-such-device"]).boot() {
        Err(Error::QemuExited { stderr, .. }) => assert!(stderr.contains("no-such-device"), "{stderr}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("booted with a device that does not exist"),
    }
    Ok(())
}

/// Even if the owner is killed while a command runs.
fn a_guest_ends_with_its_owner() -> Result<(), Error> {
    drivethru_vm::setup::installed()?;
    let mut owner = Command::new(env!("CARGO_BIN_EXE_drivethru-vm"))
        .args(["run", "--", "sleep", "1000"])
        .spawn()
        .expect("our own program runs");
    until("QEMU starts", || !children(owner.id()).is_empty());
    let qemu = children(owner.id());
    until("its files are gone again, the guest is up", || {
        scratch_dirs(owner.id()) == 0
    });
    owner.kill().expect("it is ours");
    owner.wait().expect("it is ours");
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", qemu.trim())).unwrap_or_default();
    until("QEMU ends", || state().is_empty() || state().contains(") Z "));
    Ok(())
}

/// Runs after the others, some of which have failed on purpose.
fn nothing_is_left_behind() -> Result<(), Error> {
    let own = std::process::id();
    let guest = Vm::builder().disk(Disk::ahci()).boot()?;
    assert_eq!(scratch_dirs(own), 0, "files while a guest runs");
    assert_ne!(children(own), "", "a guest without QEMU");
    drop(guest);
    assert_eq!(children(own), "", "processes after a guest");
    assert_eq!(scratch_dirs(own), 0, "files after a guest");
    Ok(())
}

fn scratch_dirs(owner: u32) -> usize {
    let prefix = format!("drivethru-vm-{owner}-");
    let entries = std::fs::read_dir(std::env::temp_dir()).expect("a directory for temporary files");
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .count()
}

/// The numbers of its child processes.
fn children(of: u32) -> String {
    let threads = std::fs::read_dir(format!("/proc/{of}/task")).expect("Linux, and a running process");
    let lists = threads
        .flatten()
        .map(|thread| std::fs::read_to_string(thread.path().join("children")));
    lists.map(Result::unwrap_or_default).collect()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "waited in vain until {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
