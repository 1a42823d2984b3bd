//! A sleeping disk is left asleep.

use serde_json::Value;

use crate::bench::{Bench, text};

/// Disks that turn, behind both drivers.
pub const SLEEPERS: &[&str] = &["hdd,temp=31", "hdd,temp=31,transport=uas"];

/// Of the thousand polls, those that are a process of their own.
const PROCESSES: u64 = 250;
const SERIES: u64 = 750;

pub fn a_thousand_polls(bench: &Bench, spec: &str) -> Result<(), String> {
    let (device, disk) = bench.plug(spec)?;
    let node = disk.node.as_str();
    let number = |key: &str| -> Result<u64, String> {
        let status = device.control("status").map_err(text)?;
        status[key]
            .as_u64()
            .ok_or_else(|| format!("no {key} in {status}"))
    };
    let state = || -> Result<String, String> {
        let status = device.control("status").map_err(text)?;
        Ok(status["power_state"].as_str().unwrap_or_default().to_owned())
    };
    device.control("set power=standby").map_err(text)?;
    device.clear_log().map_err(text)?;
    let wakes = number("wakes")?;
    // One handle that stays open, and a process for each poll beside it.
    let script = format!(
        "export HOME=$(mktemp -d); /tmp/drivethru temp --json --every 100ms --count {SERIES} {node} > /tmp/series 2>/dev/null & \
         for n in $(seq {PROCESSES}); do /tmp/drivethru temp {node} >/dev/null 2>&1; echo $?; done | sort | uniq -c; \
         /tmp/drivethru list > /dev/null; wait $!; echo series $?"
    );
    let output = bench
        .guest
        .run(&script, std::time::Duration::from_secs(400))
        .map_err(text)?;
    bench.same(
        "exit codes",
        output
            .stdout_text()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        format!("{PROCESSES} 7 series 7"),
    );
    let series = bench.well("cat /tmp/series")?;
    let asleep = series
        .lines()
        .filter(|line| {
            serde_json::from_str::<Value>(line).is_ok_and(|d| {
                d["power_state"] == "standby" && d.pointer("/temperature/celsius").is_none_or(Value::is_null)
            })
        })
        .count();
    bench.same(
        "documents that say standby and no temperature",
        asleep as u64,
        SERIES,
    );
    bench.same("wakes", number("wakes")?, wakes);
    bench.same("state", state()?, "standby".to_owned());
    let log = device.log().map_err(text)?;
    bench.holds(
        &format!("each poll asked the disk ({} commands)", log.len()),
        log.len() as u64 >= PROCESSES + SERIES,
    );
    // Control: asked to, it wakes the disk, and the counter sees it.
    let woken = bench.ours(&format!("smart --wake --json {node}"))?;
    bench.same("exit code with --wake", woken.status, 0);
    bench.same("wakes after --wake", number("wakes")?, wakes + 1);
    bench.kernel_is_quiet(&[])?;
    Ok(())
}
