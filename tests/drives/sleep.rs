//! A polling verb leaves a sleeper alone.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use drivethru::sys::sysfs::Sysfs;

use super::*;

/// What may reach a disk that could be asleep: questions for its power state, the good command that clears a bridge's
/// error state, and IDENTIFY where only it can tell that the media turns. A drive answers all of these from memory.
const NEVER_WAKES: [&str; 5] = [
    "check power mode",
    "request sense",
    "test unit ready",
    "return response information",
    "identify",
];

/// Every way in which a bridge may keep the power state to itself.
fn habits() -> Vec<String> {
    let mut all = Vec::new();
    for sat in ["both", "12", "16"] {
        for ckcond in ["honour", "ignore", "empty", "refuse"] {
            for sense in ["descriptor", "fixed", "empty"] {
                for cap in ["full", "18", "learn"] {
                    all.push(format!("sat={sat},ckcond={ckcond},sense={sense},sense_cap={cap}"));
                }
            }
        }
    }
    all
}

fn assert_left_alone(dock: &Dock, asleep: &'static str, what: &str) {
    assert_eq!(dock.wakes(), 0, "{what}: {:?}", dock.arrived());
    assert!(
        matches!(dock.power_state(), "standby" | "sleep"),
        "{what}: {asleep} became {}",
        dock.power_state()
    );
    for kind in dock.arrived_kinds() {
        assert!(
            NEVER_WAKES.contains(&kind.as_str()),
            "{what}: {kind} reached a sleeper"
        );
    }
}

#[test]
fn a_thousand_polls_do_not_wake_a_disk() {
    for (power, kinds) in [
        ("standby", vec!["check power mode"]),
        ("sleep", vec!["check power mode"]),
        // Nothing but REQUEST SENSE tells, and IDENTIFY is not needed.
        ("standby,ckcond=ignore", vec!["check power mode", "request sense"]),
        ("sleep,ckcond=refuse", vec!["check power mode", "request sense"]),
    ] {
        let dock = Dock::new(&format!("hdd,power={power}"));
        for _ in 0..1000 {
            let error = refusal(dock.poll());
            assert!(
                matches!(
                    error,
                    DriveError::Asleep {
                        state: drivethru::drive::power::PowerState::Standby,
                        ..
                    }
                ),
                "{error}"
            );
            dock.let_pass(Duration::from_secs(10));
        }
        assert_left_alone(&dock, "standby", power);
        let seen: BTreeSet<String> = dock.arrived_kinds().into_iter().collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), kinds, "{power}");
    }
}

#[test]
fn no_habit_of_a_bridge_makes_a_poll_wake_a_disk() {
    for profile in ["hdd", "hdd-4kn", "asm1051-usb2"] {
        for habit in habits() {
            for power in ["standby", "sleep"] {
                let spec = format!("{profile},power={power},{habit}");
                let dock = Dock::new(&spec);
                let (_dir, _memory, options) = with_memory();
                for options in [&OpenOptions::default(), &options, &options] {
                    let error = refusal(dock.poll_with(options));
                    assert!(matches!(error, DriveError::Asleep { .. }), "{spec}: {error}");
                    let health = dock
                        .open(options, Care::NoWake)
                        .and_then(|mut drive| drive.health(true));
                    assert!(matches!(health, Err(DriveError::Asleep { .. })), "{spec}");
                }
                assert_left_alone(&dock, power, &spec);
            }
        }
    }
}

#[test]
fn an_awake_disk_is_read_where_its_state_can_be_had() {
    // The registers come by CK_COND or RETURN RESPONSE INFORMATION, or REQUEST SENSE shows the state.
    for habit in habits() {
        let spec = format!("hdd,{habit}");
        let dock = Dock::new(&spec);
        match dock.poll() {
            Ok(report) => assert_eq!(report.temperature.celsius.map(|c| c.0), Some(36), "{spec}"),
            // No register at all: a disk that cannot be known to be awake is left alone, and that is said.
            Err(error) => {
                assert!(
                    matches!(
                        error,
                        DriveError::Asleep {
                            state: drivethru::drive::power::PowerState::Unknown,
                            ..
                        }
                    ),
                    "{spec}: {error}"
                );
                assert!(
                    !dock.arrived_kinds().contains(&"smart read data".to_owned()),
                    "{spec}"
                );
            }
        }
    }
    // The usual habits do give it.
    for habit in [
        "sense_cap=18",
        "sense_cap=learn",
        "ckcond=ignore",
        "ckcond=empty",
        "ckcond=refuse",
        "sense=fixed",
        "sat=12",
        "sat=16",
    ] {
        let dock = Dock::new(&format!("hdd,{habit}"));
        assert!(dock.poll().is_ok(), "{habit}: {:?}", dock.arrived());
    }
}

#[test]
fn a_handle_on_a_sleeper_may_ask_a_thousand_times() {
    let dock = Dock::new("hdd");
    let mut drive = dock
        .open(&OpenOptions::default(), Care::NoWake)
        .expect("an awake disk");
    drive.temp_report().expect("a reading");
    // The disk's standby timer runs out after 20 minutes; a reading from SCT status does not keep it awake.
    dock.let_pass(Duration::from_secs(1300));
    let before = dock.arrived().len();
    for _ in 0..1000 {
        let error = refusal(drive.temp_report());
        assert!(matches!(error, DriveError::Asleep { .. }), "{error}");
        dock.let_pass(Duration::from_secs(10));
    }
    let health = refusal(drive.health(true));
    assert!(matches!(health, DriveError::Asleep { .. }), "{health}");
    assert_eq!(dock.power_state(), "standby");
    assert_eq!(dock.wakes(), 0);
    for arrived in &dock.arrived()[before..] {
        assert_eq!(arrived, "check power mode/12");
    }
    assert_eq!(
        dock.arrived().len() - before,
        1001,
        "one question for each reading"
    );
}

#[test]
fn a_disk_that_wakes_up_by_itself_is_read_again_on_the_same_handle() {
    let dock = Dock::new("hdd");
    let mut drive = dock
        .open(&OpenOptions::default(), Care::NoWake)
        .expect("an awake disk");
    dock.let_pass(Duration::from_secs(1300));
    // The state that was read when opening is long out of date.
    refusal(drive.temp_report());
    assert_eq!(dock.wakes(), 0);
    // Somebody else reads a block: READ (10) of block 0.
    let read = drivethru::transport::Cdb::from_array([0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    let mut other = dock.plug();
    let block = execute(&mut *other, Command::data_in(read, 512, Duration::from_secs(20)));
    assert_eq!(block.expect("a block").transferred_bytes, 512);
    assert_eq!(dock.wakes(), 1);
    drive.temp_report().expect("it is awake now");
    assert_eq!(dock.wakes(), 1);
}

#[test]
fn asked_to_wake_it_reads_and_wakes_at_most_once() {
    for profile in ["hdd", "hdd-4kn", "asm1051-usb2"] {
        for power in ["standby", "sleep"] {
            let spec = format!("{profile},power={power}");
            let dock = Dock::new(&spec);
            let report = dock.poll_with(&waking()).expect("a temperature");
            assert!(report.temperature.celsius.is_some(), "{spec}");
            // SCT status is answered from memory; where there is none, SMART READ DATA spins the disk up.
            let state = serde_json::to_value(report.power_state).expect("a word");
            assert_eq!(state, dock.power_state(), "{spec}: {:?}", dock.arrived());
            assert_eq!(state == "standby", profile != "asm1051-usb2", "{spec}");
            let mut drive = dock.open(&waking(), Care::NoWake).expect("a drive");
            let health = drive.health(true).expect("health");
            assert_eq!(
                health.verdict,
                drivethru::drive::health::Verdict::Ok,
                "{spec}: {:?}",
                health.reasons
            );
            assert!(dock.wakes() <= 1, "{spec}: woken {} times", dock.wakes());
        }
    }
}

#[test]
fn a_suspended_device_is_not_even_opened() {
    let mut dock = Dock::new("ssd");
    dock.facts.runtime_status = Some("suspended".to_owned());
    let error = refusal(dock.poll());
    assert!(matches!(error, DriveError::Asleep { .. }), "{error}");
    assert_eq!(dock.arrived_count(), 0);
    dock.poll_with(&waking()).expect("asked to");
    dock.open(&OpenOptions::default(), Care::MayWake)
        .expect("one drive that the user named");
}

/// A `sys` tree with one disk behind a USB bridge, `sdq` and `sg7`. Its character device has the number of `/dev/null`,
/// which anybody may open, and which then turns out to be no SCSI device.
struct Tree {
    root: tempfile::TempDir,
}

const BRIDGE: &str = "devices/pci0000:00/usb1/1-1";
const LUN: &str = "devices/pci0000:00/usb1/1-1/1-1:1.0/host7/target7:0:0/7:0:0:0";

impl Tree {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        let tree = Self { root };
        tree.put(&format!("{BRIDGE}/idVendor"), "174c\n");
        tree.put(&format!("{BRIDGE}/idProduct"), "55aa\n");
        tree.put(&format!("{BRIDGE}/1-1:1.0/bInterfaceClass"), "08\n");
        tree.put(&format!("{LUN}/type"), "0\n");
        tree.put(&format!("{LUN}/block/sdq/size"), "2048\n");
        tree.put(&format!("{LUN}/scsi_generic/sg7/dev"), "1:3\n");
        tree.link(&format!("{LUN}/block/sdq/device"), LUN);
        tree.link(&format!("{LUN}/scsi_generic/sg7/device"), LUN);
        tree.link("class/block/sdq", &format!("{LUN}/block/sdq"));
        tree.link("class/scsi_generic/sg7", &format!("{LUN}/scsi_generic/sg7"));
        tree.link("dev/char/1:3", &format!("{LUN}/scsi_generic/sg7"));
        tree.device_is("active");
        tree.bridge_is("active");
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.root.path().join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("directories");
        path
    }

    fn put(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).expect("a file");
    }

    fn link(&self, name: &str, to: &str) {
        symlink(self.root.path().join(to), self.path(name)).expect("a link");
    }

    fn device_is(&self, status: &str) {
        self.put(&format!("{LUN}/power/runtime_status"), &format!("{status}\n"));
    }

    fn bridge_is(&self, status: &str) {
        self.put(&format!("{BRIDGE}/power/runtime_status"), &format!("{status}\n"));
    }

    fn options(&self) -> OpenOptions {
        OpenOptions {
            // sysfs itself is named without links on the way.
            sysfs: Sysfs::new(self.root.path().canonicalize().expect("it is there")),
            ..OpenOptions::default()
        }
    }
}

/// Whether it is left asleep; if not, it was opened, and is no SCSI device. A node is locked before it is opened, so that a
/// lock file tells that somebody was about to.
fn is_left_alone(options: &OpenOptions, care: Care) -> bool {
    let locks = tempfile::tempdir().expect("a temporary directory");
    let options = OpenOptions {
        lock_dir: Some(locks.path().to_owned()),
        ..options.clone()
    };
    let error = refusal(Drive::open("/dev/null", &options, care));
    let untouched = fs::read_dir(locks.path()).expect("it is there").count() == 0;
    match error {
        DriveError::Asleep { device, .. } => {
            assert_eq!(device, "/dev/null");
            assert!(untouched, "it was locked, and so opened");
            true
        }
        DriveError::Transport(TransportError::NotScsi { .. }) => {
            assert!(!untouched, "it was not locked");
            false
        }
        error => panic!("{error}"),
    }
}

#[test]
fn a_suspended_node_is_not_opened_by_a_poll() {
    let tree = Tree::new();
    let options = tree.options();
    let waking = OpenOptions {
        wake: true,
        ..tree.options()
    };
    for (device, bridge, asleep) in [
        ("active", "active", false),
        ("suspended", "active", true),
        ("suspending", "active", true),
        ("active", "suspended", true),
        ("suspended", "suspended", true),
        ("resuming", "resuming", false),
        ("unsupported", "active", false),
    ] {
        tree.device_is(device);
        tree.bridge_is(bridge);
        let what = format!("device {device}, bridge {bridge}");
        assert_eq!(is_left_alone(&options, Care::NoWake), asleep, "{what}");
        assert!(!is_left_alone(&waking, Care::NoWake), "{what}, asked to wake it");
        assert!(
            !is_left_alone(&options, Care::MayWake),
            "{what}, named by the user"
        );
    }
}

#[test]
fn a_series_stops_while_the_kernel_has_the_device_suspended() {
    let tree = Tree::new();
    for node in ["block", "generic"] {
        let mut dock = Dock::new("ssd");
        match node {
            "block" => dock.facts.block_node = Some("/dev/sdq".to_owned()),
            _ => dock.facts.sg_node = Some("/dev/sg7".to_owned()),
        }
        let mut drive = dock
            .open(&tree.options(), Care::NoWake)
            .expect("it is not suspended");
        drive.temp_report().expect("a reading");
        for suspend in [Tree::device_is, Tree::bridge_is] {
            let before = dock.arrived_count();
            suspend(&tree, "suspended");
            for _ in 0..3 {
                let error = refusal(drive.temp_report());
                assert!(matches!(error, DriveError::Asleep { .. }), "{node}: {error}");
            }
            let error = refusal(drive.health(true));
            assert!(matches!(error, DriveError::Asleep { .. }), "{node}: {error}");
            assert_eq!(dock.arrived_count(), before, "{node}: {:?}", dock.arrived());

            suspend(&tree, "active");
            drive.temp_report().expect("somebody else has woken it");
            assert_eq!(dock.arrived_count(), before + 1, "{node}");
        }
    }
}

#[test]
fn flash_is_read_in_any_power_state() {
    for power in ["idle", "standby", "sleep"] {
        let dock = Dock::new(&format!("ssd,power={power}"));
        let report = dock.poll().expect("flash minds nothing");
        assert_eq!(report.temperature.celsius.map(|c| c.0), Some(32), "{power}");
    }
}

#[test]
fn flash_that_says_standby_behind_a_silent_kernel_is_learned_once() {
    let (_dir, memory, options) = with_memory();
    let dock = Dock::of_unknown_media("ssd,power=standby");
    let error = refusal(dock.poll_with(&options));
    assert!(matches!(error, DriveError::Asleep { .. }), "{error}");
    assert_eq!(dock.arrived(), ["check power mode/12"], "it may be a disk");
    assert!(!dock.remembered(&memory).power_mode_lies);

    let wake = OpenOptions {
        wake: true,
        ..options.clone()
    };
    dock.poll_with(&wake).expect("asked to");
    assert!(
        dock.remembered(&memory).power_mode_lies,
        "{:?}",
        dock.remembered(&memory)
    );

    let before = dock.arrived().len();
    dock.poll_with(&options).expect("flash behind a bridge that lies");
    assert_eq!(dock.arrived()[before..], ["identify/12", "sct status/12"]);
}

#[test]
fn a_disk_in_a_dock_that_once_lied_about_flash_is_still_left_asleep() {
    let (_dir, memory, options) = with_memory();
    for (dock, kinds) in [
        // The kernel's copy of VPD page B1h says that it turns: its power state is the only question.
        (Dock::new("hdd-4kn,power=standby"), vec!["check power mode/12"]),
        (
            Dock::of_unknown_media("hdd,power=standby"),
            vec!["identify/12", "check power mode/12"],
        ),
    ] {
        memory
            .update(&dock.key(), |r| {
                r.dialect = Some("sat".to_owned());
                r.power_mode_lies = true;
            })
            .expect("written");
        for _ in 0..10 {
            let error = refusal(dock.poll_with(&options));
            assert!(matches!(error, DriveError::Asleep { .. }), "{error}");
        }
        assert_left_alone(&dock, "standby", "lies");
        assert_eq!(dock.arrived(), kinds.repeat(10));
    }
}

#[test]
fn a_disk_that_is_woken_does_not_make_its_bridge_a_liar() {
    let (_dir, memory, options) = with_memory();
    let dock = Dock::of_unknown_media("hdd,power=standby");
    let wake = OpenOptions {
        wake: true,
        ..options
    };
    dock.poll_with(&wake).expect("asked to");
    assert!(!dock.remembered(&memory).power_mode_lies);
}
