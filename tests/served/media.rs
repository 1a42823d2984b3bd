//! What is written comes back, what is trimmed reads as the profile says, file systems survive, on every transport.

use drivethru_vm::{GuestDisk, ServedDevice};

use crate::bench::{Bench, text};
use crate::peers::Model;

/// Devices whose medium is tried, with what UNMAP and DATA SET MANAGEMENT are to leave in trimmed blocks.
pub const TRIMS: &[Trim] = &[
    Trim::new("asm1153e", Unmap::Taken, Left::Zeros),
    Trim::new("asm1153e,transport=bot", Unmap::Taken, Left::Zeros),
    Trim::new("asm1153e,speed=480", Unmap::Taken, Left::Zeros),
    Trim::new("jms578,trim=ones", Unmap::Taken, Left::Ones),
    Trim::new("jms578,trim=ones,transport=bot", Unmap::Taken, Left::Ones),
    Trim::new("rtl9201,trim=keep", Unmap::Taken, Left::Old),
    Trim::new("asm225cm,trim=ignore", Unmap::Taken, Left::Old),
    Trim::new("asm1051e", Unmap::Refused, Left::Zeros),
    Trim::new("jms567", Unmap::Refused, Left::Zeros),
];

/// Whether UNMAP is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmap {
    Taken,
    Refused,
}

/// What a trimmed block reads as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    Zeros,
    Ones,
    Old,
}

#[derive(Debug, Clone, Copy)]
pub struct Trim {
    pub spec: &'static str,
    unmap: Unmap,
    left: Left,
}

impl Trim {
    pub const fn new(spec: &'static str, unmap: Unmap, left: Left) -> Self {
        Self { spec, unmap, left }
    }
}

/// First block of the scratch extent, its blocks, and the trimmed ones in it.
const FIRST: u64 = 4096;
const BLOCKS: u64 = 64;
const HOLE: (u64, u64) = (24, 16);

/// `sg_unmap` and `hdparm --trim-sector-ranges` trim what they were told to, and nothing beside it.
pub fn trim(bench: &Bench, trim: &Trim) -> Result<(), String> {
    let (device, disk) = bench.plug(trim.spec)?;
    let before = bench.failure_count();
    trim_leaves(bench, trim, &device, &disk)?;
    bench.kernel_is_quiet(&[])?;
    let left = match trim.left {
        Left::Zeros => "zeros",
        Left::Ones => "ones",
        Left::Old => "as before",
    };
    let good = bench.failure_count() == before;
    let word = |text: &str| {
        if good {
            text.to_owned()
        } else {
            crate::table::FAILED.to_owned()
        }
    };
    let unmap = if trim.unmap == Unmap::Taken {
        left
    } else {
        "refused"
    };
    bench.cell(trim.spec, "sg_unmap", word(unmap));
    bench.cell(trim.spec, "hdparm --trim-sector-ranges", word(left));
    Ok(())
}

pub fn trim_leaves(
    bench: &Bench,
    trim: &Trim,
    device: &ServedDevice<'_>,
    disk: &GuestDisk,
) -> Result<(), String> {
    let node = disk.node.as_str();
    let unmap = format!(
        "sg_unmap --lba={} --num={} --force {node}",
        FIRST + HOLE.0,
        HOLE.1
    );
    let stamp = stamp(bench, node)?;
    let output = bench.run(&unmap)?;
    bench.same(
        &format!("sg_unmap: {}", output.stderr_text()),
        output.status == 0,
        trim.unmap == Unmap::Taken,
    );
    if output.status == 0 {
        expect(bench, "after sg_unmap", trim.left, device, node, &stamp)?;
    } else {
        expect(bench, "after a refused sg_unmap", Left::Old, device, node, &stamp)?;
    }
    let stamp = self::stamp(bench, node)?;
    let output = bench.run(&format!(
        "hdparm --please-destroy-my-drive --trim-sector-ranges {}:{} {node}",
        FIRST + HOLE.0,
        HOLE.1
    ))?;
    bench.same(
        &format!("hdparm --trim-sector-ranges: {}", output.stderr_text()),
        output.status,
        0,
    );
    expect(bench, "after hdparm", trim.left, device, node, &stamp)
}

/// Fills the extent with bytes that no drive makes up, and returns them.
fn stamp(bench: &Bench, node: &str) -> Result<Vec<u8>, String> {
    bench.well(&format!(
        "dd if=/dev/urandom of=/tmp/stamp bs=32k count=1 2>/dev/null && \
         dd if=/tmp/stamp of={node} bs=32k seek=$(({FIRST} / 64)) count=1 oflag=direct conv=fsync 2>/dev/null"
    ))?;
    bytes(bench, "cat /tmp/stamp")
}

/// The extent as the kernel reads it from the device.
fn read(bench: &Bench, node: &str) -> Result<Vec<u8>, String> {
    bytes(
        bench,
        &format!("dd if={node} bs=32k skip=$(({FIRST} / 64)) count=1 iflag=direct 2>/dev/null"),
    )
}

fn bytes(bench: &Bench, script: &str) -> Result<Vec<u8>, String> {
    let output = bench.run(script)?;
    if output.stdout.len() as u64 == BLOCKS * 512 {
        Ok(output.stdout)
    } else {
        Err(format!(
            "{script}: {} bytes, {}",
            output.stdout.len(),
            output.stderr_text()
        ))
    }
}

fn expect(
    bench: &Bench,
    when: &str,
    left: Left,
    device: &ServedDevice<'_>,
    node: &str,
    stamp: &[u8],
) -> Result<(), String> {
    let read = read(bench, node)?;
    let hole = HOLE.0 as usize * 512..(HOLE.0 + HOLE.1) as usize * 512;
    let outside = |bytes: &[u8]| [&bytes[..hole.start], &bytes[hole.end..]].concat();
    bench.holds(
        &format!("{when}: the neighbours are as before"),
        outside(&read) == outside(stamp),
    );
    let found = &read[hole.clone()];
    let found = if found.iter().all(|byte| *byte == 0) {
        "zeros"
    } else if found.iter().all(|byte| *byte == 0xff) {
        "ones"
    } else if found == &stamp[hole] {
        "what was there"
    } else {
        "something else"
    };
    let expected = match left {
        Left::Zeros => "zeros",
        Left::Ones => "ones",
        Left::Old => "what was there",
    };
    bench.same(&format!("{when}: trimmed blocks read as"), found, expected);
    // The medium itself, without the bridge and the kernel in between.
    let peeked = peek(device, FIRST + HOLE.0)?;
    let zeros = peeked.bytes().all(|digit| digit == b'0');
    bench.same(
        &format!("{when}: zeros on the medium itself"),
        zeros,
        left == Left::Zeros,
    );
    Ok(())
}

/// One block as the model holds it, in hexadecimal without blanks.
fn peek(device: &ServedDevice<'_>, lba: u64) -> Result<String, String> {
    let answer = device.control(&format!("read {lba} 1")).map_err(text)?;
    let hex = answer["hex"].as_str().ok_or("no hex")?;
    Ok(hex.replace(' ', ""))
}

/// Devices that get file systems and fio, with the columns of the table.
pub const USED: &[&str] = &[
    "asm1153e",
    "asm1153e,transport=bot",
    "asm1153e,speed=480",
    "hdd-4kn",
    "hdd-4kn,transport=bot",
    "stick",
];

/// ext4, FAT and exFAT: made, filled, checked, and read again from the medium.
pub fn file_systems(bench: &Bench, spec: &str) -> Result<(), String> {
    let (device, disk) = bench.plug(spec)?;
    let node = disk.node.as_str();
    let sector = Model::of(spec)?.number("/medium/logical_sector_bytes");
    let count = (192 << 20) / sector;
    bench.well(&format!(
        "printf 'label: gpt\\nsize={count}\\nsize={count}\\nsize={count}\\n' | sfdisk --quiet {node} && sleep 0.3 && ls {node}3"
    ))?;
    bench.well(
        "mkdir -p /tmp/tree /tmp/mnt; cd /tmp/tree; [ -e big ] || { dd if=/dev/urandom of=big bs=1M count=24 2>/dev/null; \
         for n in $(seq 60); do head -c $((n * 517)) big > small$n; done; }",
    )?;
    let makers = [
        ("ext4", "mkfs.ext4 -q -F", "e2fsck -f -n"),
        ("vfat", "mkfs.vfat -F 32", "fsck.vfat -n"),
        ("exfat", "mkfs.exfat", "fsck.exfat -n"),
    ];
    for (number, (kind, make, check)) in (1..).zip(makers) {
        let before = bench.failure_count();
        let part = format!("{node}{number}");
        let done = bench.well(&format!(
            "{make} {part} >/tmp/made 2>&1 || {{ cat /tmp/made; exit 1; }}
             mount -t {kind} {part} /tmp/mnt && cp -r /tmp/tree /tmp/mnt/ && umount /tmp/mnt && \
             echo 3 > /proc/sys/vm/drop_caches && {check} {part} && \
             mount -t {kind} -o ro {part} /tmp/mnt && diff -r /tmp/tree /tmp/mnt/tree && umount /tmp/mnt"
        ));
        if let Err(why) = done {
            bench.fail(why);
            let _ = bench.run("umount /tmp/mnt");
        }
        let good = bench.failure_count() == before;
        bench.holds(&format!("{kind} is clean"), good);
        bench.cell(
            spec,
            &format!("{kind} + fsck"),
            if good { "clean" } else { crate::table::FAILED },
        );
    }
    // That the medium holds it, and not some cache: the model's own view of the first partition's superblock.
    let start = bench.well(&format!("cat /sys/block/{0}/{0}1/start", disk.name()))?;
    let start: u64 = start.trim().parse().map_err(|_| format!("start {start:?}"))?;
    let superblock = start * 512 / sector + 1024 / sector;
    let peeked = peek(&device, superblock)?;
    let at = if sector == 512 {
        0x38 * 2
    } else {
        (1024 + 0x38) * 2
    };
    let magic = peeked.get(at..at + 4);
    bench.same("the superblock's magic on the medium", magic, Some("53ef"));
    bench.kernel_is_quiet(&[
        "drop_caches: 3",
        "EXT4-fs (",
        "exFAT-fs (",
        "FAT-fs (",
        "Volume was not properly unmounted",
        "GPT",
    ])?;
    Ok(())
}

/// fio writes with a checksum in each block, at random and with several in flight, and reads it all back.
pub fn fio(bench: &Bench, spec: &str) -> Result<(), String> {
    let before = bench.failure_count();
    fio_verifies(bench, spec)?;
    let good = bench.failure_count() == before;
    bench.cell(
        spec,
        "fio verify",
        if good { "passes" } else { crate::table::FAILED },
    );
    bench.kernel_is_quiet(&[])?;
    Ok(())
}

pub fn fio_verifies(bench: &Bench, spec: &str) -> Result<(), String> {
    let (_device, disk) = bench.plug(spec)?;
    let job = |rw: &str, depth: u32, sizes: &str| {
        format!(
            "fio --name=v --filename={} --rw={rw} --bsrange={sizes} --size=24M --offset=64M --direct=1 --ioengine=libaio \
             --iodepth={depth} --verify=crc32c --verify_fatal=1 --do_verify=1 --randseed=7 --allow_mounted_write=0 \
             --output-format=terse --minimal",
            disk.node
        )
    };
    for (rw, depth, sizes) in [("write", 4, "512k-512k"), ("randwrite", 16, "4k-64k")] {
        let output = bench.run(&job(rw, depth, sizes))?;
        bench.same(
            &format!("fio {rw}: {}{}", output.stdout_text(), output.stderr_text()),
            output.status,
            0,
        );
    }
    Ok(())
}
