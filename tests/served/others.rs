//! What does not fit elsewhere: USB/IP as the manual says it, two devices with one serial, pulling the plug, a vendor command
//! that kills, and what the program's commands cost.

use std::time::Duration;

use drivethru_vm::{Served, ServedDevice};

use crate::bench::{ATTACH, Bench, after, fresh, json, text};

/// Over USB/IP, where the kernel's virtual host controller is the other side.
pub fn usbip(bench: &Bench) -> Result<(), String> {
    for (spec, driver) in [
        ("ssd,temp=37,speed=480", "uas"),
        ("ssd,temp=37,transport=bot", "usb-storage"),
        ("rtl9201,temp=37", "usb-storage"),
        ("hdd-4kn,temp=37,speed=480", "uas"),
    ] {
        let device = bench.guest.attach(&Served::profile(spec).usbip()).map_err(text)?;
        let disk = device.wait_for_disk(ATTACH).map_err(text)?;
        bench.same(
            &format!("{spec}: driver"),
            device.driver().map_err(text)?.as_deref(),
            Some(driver),
        );
        let node = disk.node.as_str();
        let ours = json(&bench.ours(&format!("temp --json {node}"))?)?;
        bench.same(
            &format!("{spec}: temperature"),
            ours.pointer("/temperature/celsius")
                .and_then(serde_json::Value::as_i64),
            Some(37),
        );
        let theirs = json(&bench.run(&format!("smartctl -j -d sat -A {node}"))?)?;
        bench.same(
            &format!("{spec}: temperature of smartctl"),
            theirs
                .pointer("/temperature/current")
                .and_then(serde_json::Value::as_i64),
            Some(37),
        );
        bench.well(&format!(
            "dd if=/dev/urandom of=/tmp/a bs=1M count=4 2>/dev/null; dd if=/tmp/a of={node} bs=256k oflag=direct 2>/dev/null; \
             dd if={node} bs=256k count=16 iflag=direct 2>/dev/null | cmp - /tmp/a"
        ))?;
    }
    bench.kernel_is_quiet(&[
        "vhci_hcd",
        "usbip",
        "USB/IP Virtual Host Controller",
        "hub ",
        "usb usb",
        "SetAddress Request",
        "Please try an other USB controller if you wish to use UAS",
        "We don't know the algorithms for LPM",
        "The driver for the USB controller vhci_hcd does not support scatter-gather",
        "which is required by the UAS driver. Please try an other USB controller",
        "supporting scatter-gather",
    ])?;
    Ok(())
}

/// The two commands of the manual, as a person types them, in the guest's own network: server, client and kernel are all there.
pub fn two_commands(bench: &Bench) -> Result<(), String> {
    bench.guest.load_module("vhci_hcd").map_err(text)?;
    bench.well("ip link set lo up 2>/dev/null || ifconfig lo 127.0.0.1 up")?;
    let script = "/tmp/drivethru sim serve ssd,temp=37 --usbip 3240 > /dev/null 2> /tmp/served & server=$!; \
         for n in $(seq 25); do grep -q listening /tmp/served && break; sleep 0.2; done; \
         usbip attach -r 127.0.0.1 -b 1-1; \
         for n in $(seq 50); do d=$(ls /dev/sd? 2>/dev/null | tail -1); [ -n \"$d\" ] && break; sleep 0.2; done; sleep 1; \
         /tmp/drivethru temp $d; result=$?; usbip port | sed -n 's/^Port \\([0-9]*\\):.*/\\1/p' | while read port; do \
         usbip detach -p $port; done; kill $server; wait $server; exit $result";
    let output = bench.run(script)?;
    bench.holds(
        &format!(
            "the disk is there and says 37 °C: {:?} {:?}",
            output.stdout_text(),
            output.stderr_text()
        ),
        output.status == 0 && output.stdout_text().contains("37 °C (sct_status)"),
    );
    let _ = bench.unusual(&[]);
    Ok(())
}

/// Two bridges that say they are the same one are two devices.
pub fn one_serial_twice(bench: &Bench) -> Result<(), String> {
    let serials = "serial=SAME0001,usb_serial=SAME0001";
    let devices: Vec<(ServedDevice<'_>, String)> = [33, 44]
        .into_iter()
        .map(|celsius| {
            let (device, disk) = bench.plug(&format!("ssd,{serials},temp={celsius}"))?;
            Ok((device, disk.node))
        })
        .collect::<Result<_, String>>()?;
    for ((_, node), celsius) in devices.iter().zip([33, 44]) {
        let temp = json(&bench.ours(&format!("temp --json {node}"))?)?;
        bench.same(
            &format!("temperature of {node}"),
            temp.pointer("/temperature/celsius")
                .and_then(serde_json::Value::as_i64),
            Some(celsius),
        );
    }
    let list = json(&bench.run(&fresh("list --json"))?)?;
    let ports: Vec<&str> = list["devices"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|d| d.pointer("/usb/port").or_else(|| d.pointer("/host/usb/port")))
        .filter_map(serde_json::Value::as_str)
        .collect();
    bench.holds(
        &format!("list has both, at ports of their own: {list}"),
        list["devices"].as_array().is_some_and(|d| d.len() == 2) && (ports.len() < 2 || ports[0] != ports[1]),
    );
    bench.kernel_is_quiet(&[])?;
    Ok(())
}

/// Plug out, plug in: a power cycle that the drive counts; and the disk works again.
pub fn plug(bench: &Bench) -> Result<(), String> {
    for spec in ["ssd,temp=37", "ssd,temp=37,transport=bot"] {
        let (device, disk) = bench.plug(spec)?;
        let cycles = |node: &str| -> Result<Option<i64>, String> {
            let smart = json(&bench.run(&format!("smartctl -j -d sat -A {node}"))?)?;
            Ok(smart
                .pointer("/power_cycle_count")
                .and_then(serde_json::Value::as_i64))
        };
        let before = cycles(&disk.node)?;
        device.unplug().map_err(text)?;
        device.wait_gone(ATTACH).map_err(text)?;
        let gone = bench.ours(&format!("temp {}", disk.node))?;
        bench.same("exit code without the device", gone.status, 3);
        device.plug().map_err(text)?;
        let disk = device.wait_for_disk(ATTACH).map_err(text)?;
        bench.same("power cycles", cycles(&disk.node)?, before.map(|n| n + 1));
    }
    bench.kernel_is_quiet(ABOUT_LEAVING)?;
    Ok(())
}

const ABOUT_LEAVING: &[&str] = &["device offline", "rejecting I/O", "I/O error, dev"];

/// A transfer is cut by the device's leaving; the kernel sees an error, and the disk again.
pub fn leaving_in_mid_transfer(bench: &Bench) -> Result<(), String> {
    for (bridge, on, direction) in [
        ("asm1153e", "read", "if={} of=/dev/null iflag=direct"),
        (
            "asm1153e,transport=bot",
            "write",
            "if=/dev/zero of={} oflag=direct",
        ),
    ] {
        let (device, disk) = bench.plug(bridge)?;
        for option in [
            "fault_on=".to_owned() + on,
            "fault_after=5".into(),
            "fault_count=1".into(),
            "fault=replug".into(),
        ] {
            device.control(&format!("set {option}")).map_err(text)?;
        }
        let direction = direction.replace("{}", &disk.node);
        let output = bench.run(&format!("dd {direction} bs=64k count=40 2>&1"))?;
        bench.holds(
            &format!("dd sees an error: {}", output.stdout_text()),
            output.status != 0,
        );
        let disk = device.wait_for_disk(ATTACH).map_err(text)?;
        bench.well(&format!(
            "dd if={} of=/dev/null bs=64k count=40 iflag=direct 2>&1",
            disk.node
        ))?;
    }
    let _ = bench.unusual(&[]);
    Ok(())
}

/// A host protected area, by hdparm: the drive shrinks at once, the bridge notices after a power cycle, and a second lasting change
/// has to wait for one.
pub fn hidden_area(bench: &Bench) -> Result<(), String> {
    let (all, less) = (937_703_088u64, 900_000_000u64);
    let (device, disk) = bench.plug("asm1153e")?;
    let node = disk.node.as_str();
    let set = |node: &str, sectors: u64| {
        bench.run(&format!(
            "hdparm --yes-i-know-what-i-am-doing -Np{sectors} {node} 2>&1"
        ))
    };
    let area = |node: &str| -> Result<String, String> {
        let out = bench.run(&format!("hdparm -N {node} 2>&1"))?.stdout_text();
        Ok(after(&out, "max sectors   =").unwrap_or(out))
    };
    let blocks = |node: &str| -> Result<Option<u64>, String> {
        let out = bench.well(&format!("sg_readcap {node}"))?;
        Ok(after(&out, "Number of logical blocks=").and_then(|text| text.parse().ok()))
    };
    set(node, less)?;
    let found = area(node)?;
    bench.holds(
        &format!("hidden: {found}"),
        found.starts_with(&format!("{less}/{all}")),
    );
    bench.same("READ CAPACITY before the power cycle", blocks(node)?, Some(all));
    let beyond = format!("dd if={node} of=/dev/null bs=4096 count=1 skip=115000000 iflag=direct 2>&1");
    bench.holds(
        "blocks beyond the end cannot be read",
        bench.run(&beyond)?.status != 0,
    );
    set(node, less - 1000)?;
    let found = area(node)?;
    bench.holds(
        &format!("a second change waits for a power cycle: {found}"),
        found.starts_with(&format!("{less}/{all}")),
    );
    device.unplug().map_err(text)?;
    device.wait_gone(ATTACH).map_err(text)?;
    device.plug().map_err(text)?;
    let disk = device.wait_for_disk(ATTACH).map_err(text)?;
    bench.same("READ CAPACITY after it", blocks(&disk.node)?, Some(less));
    set(&disk.node, all)?;
    let found = area(&disk.node)?;
    bench.holds(
        &format!("and back: {found}"),
        found.starts_with(&format!("{all}/{all}")),
    );
    let _ = bench.unusual(&[]);
    Ok(())
}

/// A sector that cannot be read: the kernel gets a medium error at its address, smartctl finds it in the drive's error logs, and a
/// write makes it whole.
pub fn an_unreadable_sector(bench: &Bench) -> Result<(), String> {
    for spec in ["hdd,bad=80000+1", "ssd,bad=80000+1"] {
        let (_device, disk) = bench.plug(spec)?;
        let node = disk.node.as_str();
        let read = format!("dd if={node} of=/dev/null bs=4096 count=1 skip=10000 iflag=direct 2>&1");
        bench.holds("the read fails", bench.run(&read)?.status != 0);
        let kernel = bench.unusual(&[])?;
        bench.holds(
            &format!("the kernel knows where: {kernel:?}"),
            kernel.iter().any(|text| text.contains("sector 80000")),
        );
        let log = json(&bench.run(&format!("smartctl -j -d sat -l error -l xerror {node}"))?)?;
        let lba = log
            .pointer("/ata_smart_error_log/extended/table/0/completion_registers/lba")
            .or_else(|| log.pointer("/ata_smart_error_log/summary/table/0/completion_registers/lba"))
            .and_then(serde_json::Value::as_u64);
        bench.same("the address in the error log", lba, Some(80000));
        bench.well(&format!(
            "dd if=/dev/zero of={node} bs=4096 count=1 seek=10000 oflag=direct 2>&1"
        ))?;
        bench.well(&read)?;
        let _ = bench.unusual(&[]);
    }
    Ok(())
}

/// A medium in a file outlives its server.
pub fn a_medium_in_a_file(bench: &Bench) -> Result<(), String> {
    let path = std::env::temp_dir().join(format!("drivethru-served-{}.img", std::process::id()));
    let spec = format!("ssd,store={}", path.display());
    let tried = (|| {
        let (device, disk) = bench.plug(&spec)?;
        bench.well(&format!(
            "dd if=/dev/urandom of=/tmp/kept bs=1M count=2 2>/dev/null; dd if=/tmp/kept of={} bs=1M seek=300 oflag=direct conv=fsync 2>&1",
            disk.node
        ))?;
        drop(device);
        let (_device, disk) = bench.plug(&spec)?;
        bench.well(&format!(
            "dd if={} bs=1M skip=300 count=2 iflag=direct 2>/dev/null | cmp - /tmp/kept",
            disk.node
        ))
    })();
    let _ = std::fs::remove_file(&path);
    tried?;
    bench.kernel_is_quiet(ABOUT_LEAVING)?;
    Ok(())
}

/// The first read after a vendor command kills this bridge: ours never sends one, others do.
pub fn a_vendor_command_kills(bench: &Bench) -> Result<(), String> {
    let (device, disk) = bench.plug("asm1153e,temp=37,transport=bot,fault=die-after-vendor")?;
    let node = disk.node.as_str();
    for verb in ["temp", "info", "smart", "list"] {
        let of = if verb == "list" { "" } else { node };
        bench.same(
            &format!("{verb}: exit code"),
            bench.ours(&format!("{verb} {of}"))?.status,
            0,
        );
    }
    let vendor = |log: &[serde_json::Value]| {
        log.iter()
            .filter_map(|entry| entry["cdb"].as_str())
            .filter(|cdb| {
                cdb.as_bytes().first().is_some_and(|b| b"cdef".contains(b)) || cdb.starts_with("06")
            })
            .count()
    };
    bench.same("vendor commands of ours", vendor(&device.log().map_err(text)?), 0);
    let read = format!("dd if={node} of=/dev/null bs=4096 count=1 iflag=direct 2>&1");
    bench.well(&read)?;
    // Control: the vendor command of another tool, then the same read.
    bench.run(&format!("sg_raw -r 512 {node} e6 00 00 00 00 00 2>&1"))?;
    bench.same(
        "vendor commands of another tool",
        vendor(&device.log().map_err(text)?),
        1,
    );
    let resets = bench.guest.kernel_mark().map_err(text)?;
    let late = bench
        .guest
        .run(&format!("timeout 50 {read}"), Duration::from_secs(60))
        .map_err(text)?;
    let log = bench.guest.dmesg_since(resets).map_err(text)?;
    bench.holds(
        &format!("the read hung until a reset: {}, {log:?}", late.elapsed.as_secs()),
        log.iter()
            .any(|message| message.text.contains("reset SuperSpeed USB device")),
    );
    let _ = bench.unusual(&[]);
    Ok(())
}

/// Bridges with what CHECK POWER MODE adds to the first reading and to further ones. Behind `uas` the kernel has read that the
/// media is flash; behind usb-storage it is IDENTIFY that tells.
pub const COSTS: &[(&str, usize, usize)] = &[
    ("asm1051-usb2", 1, 1),
    ("asm1051e", 1, 0),
    ("asm1053e", 0, 0),
    ("asm1053e,transport=bot", 1, 0),
    ("asm1153e", 0, 0),
    ("asm1153e,transport=bot", 1, 0),
    ("asm1153e,speed=480", 0, 0),
    ("asm225cm", 0, 0),
    ("hdd", 1, 1),
    ("hdd-4kn", 1, 1),
    ("hdd-4kn,transport=bot", 1, 1),
    // Without registers it is asked twice, since Linux may have cut the first answer, and REQUEST SENSE once.
    ("jms567", 3, 0),
    ("jms578", 0, 0),
    ("mushkin-ventura-ultra-120gb", 0, 0),
    ("phison-stick", 1, 0),
    ("rtl9201", 0, 0),
    ("rtl9201,transport=bot", 1, 0),
    ("vl716", 0, 0),
    ("vl716,transport=bot", 3, 0),
];

/// How many commands a reading costs, counted at the bridge and by the kernel: three for the first temperature of an unknown SAT
/// bridge, two of a known one, one for each further sample; one more where the media may rotate.
pub fn what_a_reading_costs(bench: &Bench, cost: &(&str, usize, usize)) -> Result<(), String> {
    let &(spec, at_first, later) = cost;
    let (device, disk) = bench.plug(spec)?;
    let counted = |command: &str| -> Result<usize, String> {
        device.clear_log().map_err(text)?;
        let (output, kernel) = bench
            .guest
            .run_counted(&disk, command, Duration::from_secs(60))
            .map_err(text)?;
        bench.same(command, output.status, 0);
        // The kernel's own: what it asks removable media when they are opened and closed, and, at the bridge only, REQUEST SENSE
        // after a failure.
        let dispatched: Vec<u8> = kernel
            .iter()
            .filter_map(|cdb| cdb.first().copied())
            .filter(|opcode| !matches!(opcode, 0x00 | 0x1e))
            .collect();
        let log = device.log().map_err(text)?;
        let arrived = log
            .iter()
            .filter_map(|entry| entry["cdb"].as_str()?.get(..2))
            .filter(|opcode| !matches!(*opcode, "00" | "1e" | "03"))
            .count();
        let without_sense = dispatched.iter().filter(|opcode| **opcode != 0x03).count();
        bench.same("commands at the bridge and in the kernel", arrived, without_sense);
        Ok(dispatched.len())
    };
    bench.well("rm -rf /tmp/home; mkdir /tmp/home")?;
    let temp = format!("HOME=/tmp/home /tmp/drivethru temp {}", disk.node);
    let first = counted(&temp)?;
    bench.holds(&format!("the first reading costs {first}"), first <= 3 + at_first);
    let second = counted(&temp)?;
    bench.holds(
        &format!("of a known bridge it costs {second}"),
        second <= 2 + at_first,
    );
    let series = counted(&format!("{temp} --every 100ms --count 11"))?;
    bench.same("ten more cost", series - second, 10 * (1 + later));
    bench.cell(spec, "first temperature", first.to_string());
    bench.cell(spec, "known bridge", second.to_string());
    bench.cell(spec, "further sample", ((series - second) / 10).to_string());
    bench.kernel_is_quiet(&[])?;
    Ok(())
}
