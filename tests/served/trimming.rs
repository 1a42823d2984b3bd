//! Our own TRIM under the kernel's drivers: free space goes, files stay, whatever happens in the middle.

use std::collections::BTreeSet;
use std::time::Duration;

use drivethru_vm::{GuestDisk, ServedDevice};
use serde_json::Value;

use crate::bench::{ATTACH, Bench, TIMEOUT, fresh, json, text};

/// A device, and the ways that are tried on it; the first is what `auto` takes.
pub const TRIMMED: &[(&str, &[&str])] = &[
    ("asm1153e", &["auto:kernel", "unmap"]),
    ("asm1153e,transport=bot", &["auto:unmap", "write-same:write_same"]),
    ("jms567", &["auto:ata"]),
    ("jms567,transport=bot", &["auto:ata"]),
    ("hdd-4kn,trim=zero,bridge=jms578,transport=bot", &["ata"]),
];

/// Sectors of 512 bytes in each partition.
const PARTITION_SECTORS: u64 = 64 << 11;

/// Three file systems with files, half of them deleted again; the sums of the others are kept.
fn fill(bench: &Bench, node: &str, sector_bytes: u64) -> Result<(), String> {
    let count = PARTITION_SECTORS * 512 / sector_bytes;
    bench.well(&format!(
        "printf 'label: gpt\\nsize={count}\\nsize={count}\\nsize={count}\\n' | sfdisk --quiet {node} && sleep 0.3 && ls {node}3"
    ))?;
    bench.well("[ -e /tmp/noise ] || head -c 3M /dev/urandom > /tmp/noise; mkdir -p /tmp/mnt")?;
    for (number, kind, make) in [
        (1, "ext4", "mkfs.ext4 -q -F"),
        (2, "vfat", "mkfs.vfat"),
        (3, "exfat", "mkfs.exfat"),
    ] {
        bench.well(&format!(
            "{make} {node}{number} >/tmp/made 2>&1 || {{ cat /tmp/made; exit 1; }}
             mount -t {kind} {node}{number} /tmp/mnt && mkdir /tmp/mnt/d && cd /tmp/mnt/d && \
             for n in $(seq 1 20); do dd if=/tmp/noise of=f$n bs=2053 skip=$((n * 9)) count=$((n * n / 7 + 1)) 2>/dev/null || exit 1; done && \
             rm f1 f3 f5 f7 f9 f11 f13 f15 f17 f19 && for n in $(seq 21 25); do dd if=/tmp/noise of=f$n bs=3001 count=$((n * 5 - 100)) 2>/dev/null || exit 1; done && \
             sha256sum f* > /tmp/sums{number} && cd / && umount /tmp/mnt"
        ))?;
    }
    Ok(())
}

/// Every file is what it was, and the checkers find nothing.
fn whole(bench: &Bench, what: &str, node: &str) -> Result<(), String> {
    for (number, kind, check) in [
        (1, "ext4", "e2fsck -f -n"),
        (2, "vfat", "fsck.vfat -n"),
        (3, "exfat", "fsck.exfat -n"),
    ] {
        let output = bench.run(&format!(
            "echo 3 > /proc/sys/vm/drop_caches; blockdev --flushbufs {node}; {check} {node}{number} && \
             mount -t {kind} -o ro {node}{number} /tmp/mnt && cd /tmp/mnt/d && sha256sum --quiet -c /tmp/sums{number}; \
             code=$?; cd /; umount /tmp/mnt; exit $code"
        ))?;
        bench.same(
            &format!("{what}: {kind}: {}{}", output.stdout_text(), output.stderr_text()),
            output.status,
            0,
        );
    }
    Ok(())
}

/// Free bytes of the ext4 partition by dumpe2fs, as sectors of the drive.
fn free_by_dumpe2fs(
    bench: &Bench,
    node: &str,
    name: &str,
    sector_bytes: u64,
) -> Result<BTreeSet<u64>, String> {
    let out = bench.well(&format!("dumpe2fs {node}1 2>/dev/null"))?;
    let start = bench.well(&format!("cat /sys/block/{name}/{name}1/start"))?;
    let start: u64 = start.trim().parse().map_err(|_| format!("start {start:?}"))?;
    let size = out
        .lines()
        .find_map(|l| l.strip_prefix("Block size:")?.trim().parse::<u64>().ok())
        .ok_or("no block size")?;
    let mut free = BTreeSet::new();
    for list in out.lines().filter_map(|l| l.strip_prefix("  Free blocks:")) {
        for part in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |s: &str| s.parse::<u64>().map_err(|_| format!("free blocks {part:?}"));
            for block in number(first)?..=number(last)? {
                let sector = (start * 512 + block * size) / sector_bytes;
                free.extend(sector..sector + size / sector_bytes);
            }
        }
    }
    Ok(free)
}

/// What the model has discarded so far, as [first sector, count].
fn discarded(device: &ServedDevice<'_>) -> Result<Vec<(u64, u64)>, String> {
    let answer = device.control("discarded").map_err(text)?;
    let ranges = answer["ranges"].as_array().ok_or("no ranges")?;
    ranges
        .iter()
        .map(|pair| Some((pair[0].as_u64()?, pair[1].as_u64()?)))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| "odd ranges".to_owned())
}

/// Commands that write or discard among those that have arrived.
fn writing(device: &ServedDevice<'_>) -> Result<usize, String> {
    let log = device.log().map_err(text)?;
    let discards = |cdb: &str| {
        let cdb = cdb.replace(' ', "");
        ["42", "93", "2a", "8a"]
            .iter()
            .any(|opcode| cdb.starts_with(opcode))
            || (cdb.starts_with("85") && cdb.get(28..30) == Some("06"))
    };
    Ok(log
        .iter()
        .filter_map(|entry| entry["cdb"].as_str())
        .filter(|cdb| discards(cdb))
        .count())
}

fn plugged<'a>(bench: &'a Bench, spec: &str) -> Result<(ServedDevice<'a>, GuestDisk, String, u64), String> {
    let (device, disk) = bench.plug(spec)?;
    let info = json(&bench.ours(&format!("info {} --json", disk.node))?)?;
    let serial = info["device"]["serial"].as_str().ok_or("no serial")?.to_owned();
    let sector_bytes = info["sizes"]["host_block_bytes"]
        .as_u64()
        .ok_or("no block size")?;
    Ok((device, disk, serial, sector_bytes))
}

/// `trim --free --commit --verify` by each way of this device.
pub fn free_space(bench: &Bench, spec: &str, ways: &[&str]) -> Result<(), String> {
    for way in ways {
        let (asked, used) = way.split_once(':').unwrap_or((way, way));
        let (device, disk, serial, sector_bytes) = plugged(bench, spec)?;
        let node = disk.node.as_str();
        fill(bench, node, sector_bytes)?;
        // What mkfs has discarded itself says nothing about us.
        device.control("discarded clear").map_err(text)?;
        let output = bench
            .guest
            .run(
                &fresh(&format!(
                    "trim {node} --free --commit --serial {serial} --verify --rotational --method {asked} --json"
                )),
                3 * TIMEOUT,
            )
            .map_err(text)?;
        bench.same(&format!("{way}: {}", output.stderr_text()), output.status, 0);
        let report = json(&output)?;
        bench.same(way, report["method"].as_str(), Some(used));
        bench.same(
            &format!("{way}: proof"),
            report["proof"]["outcome"].as_str(),
            Some("zeroed"),
        );
        bench.same(
            &format!("{way}: verified"),
            report["verified"]["wrong_count"].as_u64(),
            Some(0),
        );
        bench.same(
            &format!("{way}: volumes"),
            report["volumes"]
                .as_array()
                .map(|v| v.iter().filter(|v| v["free_bytes"].is_u64()).count()),
            Some(3),
        );
        whole(bench, way, node)?;
        let free = free_by_dumpe2fs(bench, node, disk.name(), sector_bytes)?;
        let first = *free.first().ok_or("ext4 is full")?;
        let start: u64 = bench
            .well(&format!("cat /sys/block/{0}/{0}1/start", disk.name()))?
            .trim()
            .parse()
            .map_err(|_| "start".to_owned())?;
        let start = start * 512 / sector_bytes;
        let end = start + PARTITION_SECTORS * 512 / sector_bytes;
        let ours: BTreeSet<u64> = discarded(&device)?
            .iter()
            .flat_map(|(f, n)| *f..f + n)
            .filter(|s| (start..end).contains(s))
            .collect();
        let wrong = ours.iter().find(|sector| !free.contains(sector));
        bench.same(&format!("{way}: a sector that is not free"), wrong, None);
        bench.holds(
            &format!(
                "{way}: {} of {} free sectors (from {first})",
                ours.len(),
                free.len()
            ),
            ours.len() * 100 >= free.len() * 99,
        );
        bench.kernel_is_quiet(&["drop_caches: 3", "EXT4-fs (", "exFAT-fs (", "FAT-fs (", "GPT"])?;
    }
    Ok(())
}

/// Killed, unplugged and reset in the middle: nothing that was somebody's is lost.
pub fn interrupted(bench: &Bench, transport: &str) -> Result<(), String> {
    let quiet = &[
        "drop_caches: 3",
        "EXT4-fs (",
        "exFAT-fs (",
        "FAT-fs (",
        "GPT",
        "reset",
        "uas_",
        "I/O error",
        "device offline",
        "sense",
        "Sense",
        "CDB",
        "FAILED",
        "tag#",
        "hostbyte",
        "rejecting I/O",
        "Buffer I/O",
        "usb ",
        "Medium",
    ];
    for way in ["kill", "unplug", "reset"] {
        let spec = format!("asm1153e,transport={transport}");
        let (device, disk, serial, sector_bytes) = plugged(bench, &spec)?;
        let node = disk.node.clone();
        fill(bench, &node, sector_bytes)?;
        if way == "reset" {
            for option in ["fault_on=trim", "fault_after=6", "fault_count=1", "fault=timeout"] {
                device.control(&format!("set {option}")).map_err(text)?;
            }
        }
        device.control("discarded clear").map_err(text)?;
        let command = format!(
            "trim {node} --free --commit --serial {serial} --method write-same --log /tmp/trim.log --timeout 3s --json"
        );
        let script = match way {
            // One command for each range: by the fifth line of the log many are still to come.
            "kill" | "unplug" => format!(
                "rm -f /tmp/trim.log; {{ {} >/tmp/trim.out 2>&1; echo $? > /tmp/trim.code; }} & \
                 while [ $(grep -c '\"trim\"' /tmp/trim.log 2>/dev/null || echo 0) -lt 5 ]; do sleep 0.05; done; \
                 {} wait; true",
                fresh(&command),
                if way == "kill" {
                    "pkill -KILL -x drivethru;"
                } else {
                    "touch /tmp/now; sleep 0.2; exit 0;"
                }
            ),
            _ => format!("rm -f /tmp/trim.log; {} ", fresh(&command)),
        };
        let output = bench.guest.run(&script, TIMEOUT).map_err(text)?;
        let mut node = node;
        let mut _plugged_again = None;
        match way {
            "unplug" => {
                device.unplug().map_err(text)?;
                std::thread::sleep(Duration::from_millis(500));
                device.control("plug").map_err(text)?;
                let disk = device.wait_for_disk(ATTACH).map_err(text)?;
                node = disk.node.clone();
                _plugged_again = Some(disk);
            }
            "reset" => {
                bench.same(
                    &format!("after a reset: {}", output.stderr_text()),
                    output.status,
                    4,
                );
                let report = json(&output)?;
                bench.same("how it ended", report["ending"]["how"].as_str(), Some("stopped"));
                bench.holds(
                    &format!(
                        "what was done is told: {} {}",
                        report["done"], report["plan"]["commands"]
                    ),
                    report["done"]["commands"].as_u64().is_some_and(|n| n > 3),
                );
            }
            _ => {}
        }
        bench.well(&format!("sleep 1; ls {node}3"))?;
        whole(bench, way, &node)?;
        bench.unusual(quiet)?;
    }
    Ok(())
}

/// Bridges on which the drive's addresses are not the host's never get an ATA TRIM.
pub fn other_addresses(bench: &Bench, transport: &str) -> Result<(), String> {
    for habit in ["shift=2048", "encrypt=1", "fake_4k=1"] {
        let (device, disk, serial, _) = plugged(bench, &format!("jms567,{habit},transport={transport}"))?;
        let output = bench.ours(&format!(
            "trim {} --range 20000+60000 --commit --serial {serial} --json",
            disk.node
        ))?;
        let expected = if habit == "fake_4k=1" { 5 } else { 1 };
        bench.same(
            &format!("{habit}: {}", output.stderr_text()),
            output.status,
            expected,
        );
        let log = device.log().map_err(text)?;
        let sent = log
            .iter()
            .filter_map(|entry| entry["cdb"].as_str())
            .filter(|cdb| cdb.starts_with("85") && cdb.replace(' ', "").get(28..30) == Some("06"))
            .count();
        bench.same(&format!("{habit}: ATA TRIMs"), sent, 0);
        bench.same(&format!("{habit}: discarded"), discarded(&device)?.len(), 0);
    }
    bench.unusual(&[])?;
    Ok(())
}

/// What is mounted, held or not the drive that was named is refused, and nothing is written.
pub fn refusals(bench: &Bench) -> Result<(), String> {
    for (spec, kernel) in [("asm1153e", true), ("asm1153e,transport=bot", false)] {
        let (device, disk, serial, sector_bytes) = plugged(bench, spec)?;
        let node = disk.node.as_str();
        fill(bench, node, sector_bytes)?;
        bench.well(&format!("mount -t ext4 -o ro {node}1 /tmp/mnt"))?;
        device.control("log clear").map_err(text)?;
        for (what, exit) in [
            (format!("{node} --all --commit --serial {serial}"), 6),
            (format!("{node} --free --commit --serial {serial}"), 6),
            (format!("{node}1 --range 0+1000 --commit --serial {serial}"), 6),
            (format!("{node}2 --free --commit --serial WRONG"), 6),
            (format!("{node}2 --free --commit"), 6),
            (format!("{node}2 --all --commit"), 6),
            (
                format!("{node}2 --range 99999999+1 --commit --serial {serial}"),
                2,
            ),
            (format!("{node}2 --range 5+0 --commit --serial {serial}"), 2),
            (format!("{node}2 --range 0+10 5+10 --commit --serial {serial}"), 2),
        ] {
            let output = bench.ours(&format!("trim {what}"))?;
            bench.same(
                &format!("trim {what}: {}", output.stderr_text()),
                output.status,
                exit,
            );
        }
        bench.same("commands that write", writing(&device)?, 0);
        // The mounted one, through its file system.
        bench.well("mount -o remount,rw /tmp/mnt")?;
        let output = bench.ours("trim /tmp/mnt --free --commit --json")?;
        bench.same(
            &format!("FITRIM: {}", output.stderr_text()),
            output.status,
            if kernel { 0 } else { 6 },
        );
        if kernel {
            let report = json(&output)?;
            bench.same("FITRIM", report["method"].as_str(), Some("fitrim"));
            bench.holds(
                "bytes",
                report["done"]["bytes"].as_u64().is_some_and(|n| n > 1 << 20),
            );
        } else {
            bench.holds("advice", output.stderr_text().contains("unmount first"));
        }
        // One partition that nobody uses, beside one that is mounted.
        let output = bench.ours(&format!(
            "trim {node}3 --free --commit --serial {serial} --verify --json"
        ))?;
        bench.same(&format!("beside: {}", output.stderr_text()), output.status, 0);
        bench.well("umount /tmp/mnt")?;
        whole(bench, "after the refusals", node)?;
        bench.unusual(&[])?;
    }
    Ok(())
}

/// One list of ranges before several programs: what each needs for it. `DRIVETHRU_RANGES=10000` makes it long.
pub fn side_by_side(bench: &Bench) -> Result<(), String> {
    let wanted = std::env::var("DRIVETHRU_RANGES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(200u64);
    let ranges: Vec<(u64, u64)> = (1..wanted).map(|i| (100_000 + i * 64, 8 + i % 5 * 8)).collect();
    // One that is large enough to prove a way on.
    let ranges: Vec<(u64, u64)> = ranges.into_iter().chain([(50_000, 4096)]).collect();
    let bytes: u64 = ranges.iter().map(|(_, n)| n * 512).sum();
    let plain: Vec<String> = ranges.iter().map(|(f, n)| format!("{f}:{n}")).collect();
    bench.well(&format!(
        "cat > /tmp/ranges <<'X'\n{}\nX\nwc -l < /tmp/ranges",
        plain.join("\n")
    ))?;
    println!("side by side: {wanted} ranges, {bytes} bytes");
    let all = [
        ("drivethru, unmap", "unmap"),
        ("drivethru, ata", "ata"),
        ("hdparm --trim-sector-ranges-stdin", "hdparm"),
        ("sg_unmap (one call for each range)", "sg_unmap"),
        ("blkdiscard (one call for each range)", "blkdiscard"),
    ];
    for (name, way) in all {
        let (device, disk, serial, _) = plugged(bench, "asm1153e")?;
        let node = disk.node.as_str();
        device.control("log clear").map_err(text)?;
        let script = match way {
            "unmap" | "ata" => fresh(&format!(
                "trim {node} --range - --method {way} --commit --serial {serial} < /tmp/ranges"
            )),
            "hdparm" => {
                format!(
                    "hdparm --please-destroy-my-drive --trim-sector-ranges-stdin {node} < /tmp/ranges >/dev/null"
                )
            }
            "sg_unmap" => format!(
                "while IFS=: read f n; do sg_unmap --force --lba=$f --num=$n {node} || exit 1; done < /tmp/ranges"
            ),
            _ => format!(
                "while IFS=: read f n; do blkdiscard -f -o $((f * 512)) -l $((n * 512)) {node} || exit 1; done < /tmp/ranges"
            ),
        };
        let start = std::time::Instant::now();
        let output = bench.guest.run(&script, 20 * TIMEOUT).map_err(text)?;
        let took = start.elapsed();
        let done: u64 = discarded(&device)?.iter().map(|(_, n)| n * 512).sum();
        let log = device.control("log").map_err(text)?;
        let total = log["log"].as_array().map_or(0, Vec::len) as u64 + log["dropped"].as_u64().unwrap_or(0);
        println!(
            "side by side: {name}: exit {}, {} commands in all, {} of them discard, {done} bytes, {:.1} s",
            output.status,
            total,
            trims(&log),
            took.as_secs_f64()
        );
        bench.same(&format!("{name}: {}", output.stderr_text()), output.status, 0);
        // The proof's scratch range lies in the largest of them.
        bench.same(&format!("{name}: bytes"), done, bytes);
    }
    bench.unusual(&[])?;
    Ok(())
}

fn trims(log: &Value) -> usize {
    let entries = log["log"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| entry["cdb"].as_str())
        .filter(|cdb| {
            let cdb = cdb.replace(' ', "");
            cdb.starts_with("42")
                || cdb.starts_with("93")
                || (cdb.starts_with("85") && cdb.get(28..30) == Some("06"))
        })
        .count()
}
