//! `trim --free` from end to end on a disk image and on a simulated drive whose medium is a file: files stay, checkers are
//! content, free space goes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn drivethru(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_drivethru"))
        .args(arguments)
        .output()
        .expect("it runs")
}

fn there(program: &str) -> bool {
    let found = ["/sbin", "/usr/sbin", "/bin", "/usr/bin"]
        .iter()
        .any(|dir| Path::new(dir).join(program).exists());
    if !found {
        println!("SKIPPED: trim on images: {program} is not here");
    }
    found
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An ext4 of so many bytes with some files in it, half of them deleted again.
fn volume(dir: &Path, name: &str, bytes: u64) -> String {
    let tree = dir.join("tree");
    fs::create_dir_all(&tree).unwrap();
    for n in 0..40usize {
        let data: Vec<u8> = (0..n * n * 211).map(|i| (i * 31 + n) as u8 | 1).collect();
        fs::write(tree.join(format!("f{n}")), data).unwrap();
    }
    let image = dir.join(name).display().to_string();
    fs::File::create(&image).unwrap().set_len(bytes).unwrap();
    run(
        "mkfs.ext4",
        &["-q", "-F", "-d", &tree.display().to_string(), &image],
    );
    for n in (0..40).step_by(2) {
        run("debugfs", &["-w", "-R", &format!("rm f{n}"), &image]);
    }
    image
}

fn whole(image: &str) {
    run("e2fsck", &["-f", "-n", image]);
    for n in (1..40usize).step_by(2) {
        let output = Command::new("debugfs")
            .args(["-R", &format!("cat f{n}"), image])
            .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
            .output()
            .unwrap();
        let expected: Vec<u8> = (0..n * n * 211).map(|i| (i * 31 + n) as u8 | 1).collect();
        assert!(output.stdout == expected, "f{n} is not what it was");
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        panic!(
            "{e}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

#[test]
fn holes_are_punched_into_an_image() {
    if !there("mkfs.ext4") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = volume(dir.path(), "disk.img", 48 << 20);
    let before = fs::read(&image).unwrap();
    let planned = json(&drivethru(&["trim", &image, "--free", "--json"]));
    assert_eq!(planned["ending"]["how"], "planned");
    assert!(fs::read(&image).unwrap() == before, "a dry run writes nothing");
    let output = drivethru(&["trim", &image, "--free", "--commit", "--verify", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let done = json(&output);
    assert_eq!(done["plan"]["extents"], planned["plan"]["extents"]);
    assert_eq!(done["done"]["bytes"], done["plan"]["bytes"]);
    assert_eq!(done["verified"]["wrong_count"], 0);
    // Only what was planned has changed.
    let after = fs::read(&image).unwrap();
    assert_eq!(after.len(), before.len());
    let free: Vec<(usize, usize)> = planned["plan"]["extents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| {
            let first = e[0].as_u64().unwrap() as usize * 512;
            (first, first + e[1].as_u64().unwrap() as usize * 512)
        })
        .collect();
    let mut at = 0;
    for (first, end) in free {
        assert!(
            before[at..first] == after[at..first],
            "used bytes {at}..{first} have changed"
        );
        assert!(after[first..end].iter().all(|b| *b == 0));
        at = end;
    }
    assert!(before[at..] == after[at..]);
    whole(&image);
}

#[test]
fn a_simulated_drive_with_a_file_system_keeps_its_files() {
    if !there("mkfs.ext4") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // As large as the drive; nearly all of it is a hole.
    let image = volume(dir.path(), "medium", 937_703_088 * 512);
    for (bridge, method) in [("asm1153e", "unmap"), ("jms567", "ata")] {
        let device = format!("sim:{bridge},store={image}");
        let output = drivethru(&[
            "trim",
            &device,
            "--free",
            "--commit",
            "--serial",
            "SIMSSD0000480001",
            "--verify",
            "--json",
        ]);
        let report = json(&output);
        assert_eq!(output.status.code(), Some(0), "{report}");
        assert_eq!(report["method"], method);
        assert_eq!(report["proof"]["outcome"], "zeroed");
        assert!(report["done"]["bytes"].as_u64().unwrap() > 400_000_000_000);
        whole(&image);
    }
}

#[test]
fn an_image_that_is_in_use_is_left_alone() {
    if !there("mkfs.ext4") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = volume(dir.path(), "disk.img", 16 << 20);
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&image)
        .unwrap();
    // As an emulator locks: some bytes of it.
    let range = nix::libc::flock {
        l_type: nix::libc::F_WRLCK as _,
        l_whence: nix::libc::SEEK_SET as _,
        l_start: 100,
        l_len: 100,
        l_pid: 0,
    };
    nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_OFD_SETLK(&range)).unwrap();
    let before = fs::read(&image).unwrap();
    let output = drivethru(&["trim", &image, "--free", "--commit"]);
    assert_eq!(
        output.status.code(),
        Some(6),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(fs::read(&image).unwrap() == before);
    drop(file);
    assert_eq!(
        drivethru(&["trim", &image, "--free", "--commit"]).status.code(),
        Some(0)
    );
    // A journal that waits to be replayed.
    run(
        "debugfs",
        &["-w", "-R", "set_super_value feature_incompat 0x2c6", &image],
    );
    let output = drivethru(&["trim", &image, "--free", "--commit"]);
    assert_eq!(
        output.status.code(),
        Some(6),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
