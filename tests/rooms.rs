//! Keeps the arrows between the rooms one-way, and `unsafe` where it belongs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Used by all, and using only each other.
const LEAVES: &[&str] = &["units", "text", "time", "wire", "permit", "sys"];

/// Each room and the rooms that it may use beside the leaves.
const ROOMS: &[(&str, &[&str])] = &[
    ("sim", &[]),
    ("freemap", &[]),
    ("transport", &["sim"]),
    ("scsi", &["transport"]),
    ("bridge", &["scsi", "transport"]),
    ("ata", &["bridge"]),
    ("nvme", &["bridge"]),
    (
        "drive",
        &["ata", "nvme", "bridge", "scsi", "transport", "freemap"],
    ),
    (
        "bench",
        &["drive", "ata", "nvme", "bridge", "scsi", "transport", "sim"],
    ),
    (
        "report",
        &["bench", "drive", "ata", "nvme", "bridge", "scsi", "freemap"],
    ),
    (
        "cli",
        &[
            "report",
            "bench",
            "drive",
            "ata",
            "nvme",
            "bridge",
            "scsi",
            "transport",
            "sim",
            "freemap",
        ],
    ),
];

/// The only files with `unsafe` in them.
const UNSAFE_FILES: &[&str] = &["transport/sg_io.rs", "transport/block.rs"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a source directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The rooms that a source text names by `crate::ROOM`, also in braces (`crate::{a, b::c}`), comments left out.
fn rooms_named(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .map(|l| l.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut rooms = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let mut depth = 0;
        let mut word = String::new();
        let mut first_of_path = true;
        for c in after.chars() {
            match c {
                'a'..='z' | '_' | '0'..='9' if first_of_path => word.push(c),
                '{' => depth += 1,
                '}' | ',' | ':' | ';' | '(' | ')' | ' ' | '\n' | '<' | '>' if depth == 0 => break,
                ',' => {
                    rooms.insert(std::mem::take(&mut word));
                    first_of_path = true;
                }
                ':' => first_of_path = false,
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                ' ' | '\n' => {}
                _ => first_of_path = false,
            }
        }
        rooms.insert(word);
    }
    rooms.remove("");
    rooms
}

fn room_of(path: &Path) -> String {
    let relative = path.strip_prefix(source()).expect("below src");
    let first = relative
        .components()
        .next()
        .expect("a component")
        .as_os_str()
        .to_string_lossy()
        .into_owned();
    first.trim_end_matches(".rs").to_owned()
}

fn known_rooms() -> BTreeSet<&'static str> {
    LEAVES
        .iter()
        .copied()
        .chain(ROOMS.iter().map(|(name, _)| *name))
        .collect()
}

#[test]
fn arrows_point_one_way() {
    let known = known_rooms();
    let mut files = Vec::new();
    rust_files(&source(), &mut files);
    let mut checked = 0;
    let mut broken = Vec::new();
    for file in &files {
        let room = room_of(file);
        if room == "lib" || room == "main" {
            continue;
        }
        assert!(
            known.contains(room.as_str()),
            "{room} is a room that this test does not know"
        );
        let allowed = ROOMS
            .iter()
            .find(|(name, _)| *name == room)
            .map_or(&[][..], |(_, allowed)| *allowed);
        for named in rooms_named(&fs::read_to_string(file).expect("a source file")) {
            if !known.contains(named.as_str()) || named == room {
                continue;
            }
            checked += 1;
            if !LEAVES.contains(&named.as_str()) && !allowed.contains(&named.as_str()) {
                broken.push(format!("{}: {room} -> {named}", file.display()));
            }
        }
    }
    assert!(
        checked > 100,
        "only {checked} arrows were found: does the test still see them?"
    );
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_reader_of_arrows_reads_them() {
    let named = |text: &str| rooms_named(text).into_iter().collect::<Vec<_>>();
    assert_eq!(named("use crate::scsi::sense::Sense;"), ["scsi"]);
    assert_eq!(
        named("use crate::{ata::smart, text, units::Lba};"),
        ["ata", "text", "units"]
    );
    assert_eq!(
        named("use crate::scsi::{cdb, vpd};\nlet x = crate::time::RealClock::new();"),
        ["scsi", "time"]
    );
    assert_eq!(named("// use crate::drive::Drive;"), Vec::<String>::new());
}

#[test]
fn unsafe_stays_in_its_files() {
    let mut files = Vec::new();
    rust_files(&source(), &mut files);
    for file in files {
        let relative = file
            .strip_prefix(source())
            .expect("below src")
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&file).expect("a source file");
        let code = text.lines().map(|l| l.split("//").next().unwrap_or_default());
        let has_unsafe = code
            .clone()
            .any(|l| l.contains("unsafe {") || l.contains("unsafe fn") || l.contains("allow(unsafe_code)"));
        assert_eq!(
            has_unsafe,
            UNSAFE_FILES.contains(&relative.as_str()),
            "{relative}"
        );
        if has_unsafe {
            assert!(text.contains("// SAFETY:"), "{relative} says why it is sound");
        }
    }
}
