//! What a temperature costs: every CDB that we send counts.

use super::*;

/// Opens with no memory and reads once; the document's cost is the target's count.
fn first(dock: &Dock) -> TempReport {
    let report = dock.poll().expect("a temperature");
    assert_eq!(report.cost.commands, dock.arrived_count(), "{:?}", dock.arrived());
    report
}

#[test]
fn flash_that_the_kernel_knows_costs_two() {
    let dock = Dock::new("ssd");
    first(&dock);
    assert_eq!(dock.arrived(), ["identify/12", "sct status/12"]);
}

#[test]
fn rotating_and_unknown_media_cost_one_more() {
    for dock in [
        Dock::new("hdd"),
        Dock::new("hdd-4kn"),
        Dock::of_unknown_media("ssd"),
        Dock::of_unknown_media("hdd-4kn"),
    ] {
        first(&dock);
        assert_eq!(
            dock.arrived(),
            ["check power mode/12", "identify/12", "sct status/12"]
        );
    }
    // A drive without SCT: the attributes instead, at the same price.
    let dock = Dock::new("asm1051-usb2");
    first(&dock);
    assert_eq!(
        dock.arrived(),
        ["check power mode/12", "identify/12", "smart read data/12"]
    );
}

#[test]
fn a_remembered_bridge_costs_two_and_a_turning_disk_three() {
    for (spec, forms, commands) in [
        ("ssd", "both", 2),
        ("ssd", "12", 2),
        ("ssd", "16", 2),
        ("hdd", "both", 3),
        ("hdd", "12", 3),
        ("hdd", "16", 3),
    ] {
        let (_dir, _memory, options) = with_memory();
        let dock = Dock::new(&format!("{spec},sat={forms}"));
        dock.poll_with(&options).expect("a temperature");
        let before = dock.arrived_count();
        let report = dock.poll_with(&options).expect("a temperature");
        assert_eq!(report.cost.commands, commands, "{spec} {forms}");
        assert_eq!(dock.arrived_count() - before, commands, "{spec} {forms}");
    }
}

#[test]
fn each_further_sample_is_one_command_and_two_on_a_turning_disk() {
    for (dock, commands) in [
        (Dock::new("ssd"), 1),
        (Dock::of_unknown_media("ssd"), 1),
        (Dock::new("mushkin-ventura-ultra-120gb"), 1),
        (Dock::new("hdd"), 2),
        (Dock::new("hdd-4kn"), 2),
        (Dock::new("asm1051-usb2"), 2),
    ] {
        let mut drive = dock.open(&OpenOptions::default(), Care::NoWake).expect("a drive");
        drive.temp_report().expect("the first reading");
        for _ in 0..5 {
            let before = dock.arrived_count();
            let report = drive.temp_report().expect("a further reading");
            assert_eq!(report.cost.commands, commands, "{:?}", dock.arrived());
            assert_eq!(dock.arrived_count() - before, commands);
        }
        assert_eq!(drive.commands_sent(), dock.arrived_count());
    }
}

#[test]
fn waking_costs_no_question_on_a_known_bridge() {
    let dock = Dock::new("hdd,power=standby");
    let report = dock.poll_with(&waking()).expect("a temperature");
    assert_eq!(report.cost.commands, dock.arrived_count());
    assert_eq!(dock.arrived(), ["identify/12", "sct status/12"]);
}

#[test]
fn elapsed_time_is_that_of_the_devices_clock() {
    let dock = Dock::new("hdd");
    let report = dock.poll().expect("a temperature");
    let clock = dock.sim().target().clock();
    let now = drivethru::time::Clock::now(&*clock);
    assert_eq!(u128::from(report.cost.elapsed_us), now.as_micros());
    assert!(report.cost.elapsed_us > 0);
}
