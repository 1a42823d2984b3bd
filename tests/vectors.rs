//! Walks `vectors/<area>/<kind>/NAME.hex` and compares what is decoded with `NAME.json` beside it.
//!
//! The JSON holds the fields that matter, not all: every key in it must be equal in the document; `null` stands for "must
//! not be there". A file without its partner is a failure.
#![cfg(feature = "cli")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use drivethru::cli::decode::{Kind, decode, read_input};
use drivethru::scsi::capacity::Capacity;
use drivethru::scsi::log::{SupportedLogPages, TemperatureLog};
use serde_json::{Value, json};

/// Reads the vector format by its own rules: `OFFSET: bytes`, comments, gaps of zeroes; anything else is an error.
fn read_vector(text: &str) -> Result<Vec<u8>, String> {
    let mut out: Vec<u8> = Vec::new();
    if !text.starts_with('#') {
        return Err("no comment with size, provenance and standard at the top".into());
    }
    for (index, raw) in text.lines().enumerate() {
        let line = raw.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let problem = |why: &str| format!("line {}: {why}", index + 1);
        let (offset, bytes) = line.split_once(':').ok_or_else(|| problem("no offset"))?;
        let offset = usize::from_str_radix(offset.trim(), 16).map_err(|_| problem("bad offset"))?;
        if offset < out.len() {
            return Err(problem("overlaps what precedes it, or is out of order"));
        }
        out.resize(offset, 0);
        for token in bytes.split_whitespace() {
            if token.len() != 2 {
                return Err(problem("a byte has two digits"));
            }
            out.push(u8::from_str_radix(token, 16).map_err(|_| problem("bad byte"))?);
        }
    }
    Ok(out)
}

/// Decodes by the name of the directory; the pages that `decode` does not offer go to their parsers.
fn document(kind: &str, bytes: &[u8], companion: impl Fn(&str) -> Option<Vec<u8>>) -> Result<Value, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let json = |v: Result<Value, serde_json::Error>| v.map_err(|e| e.to_string());
    match kind {
        "log-temperature" => json(serde_json::to_value(
            TemperatureLog::parse(bytes).map_err(|e| text(&e))?,
        )),
        "log-pages" => json(serde_json::to_value(
            SupportedLogPages::parse(bytes).map_err(|e| text(&e))?,
        )),
        "capacity-10" => json(serde_json::to_value(
            Capacity::parse_10(bytes).map_err(|e| text(&e))?,
        )),
        "capacity-16" => json(serde_json::to_value(
            Capacity::parse_16(bytes).map_err(|e| text(&e))?,
        )),
        name => {
            let kind = Kind::from_str(name, false).map_err(|_| format!("no kind {name}"))?;
            let (identify, thresholds) = (companion("identify"), companion("smart-thresholds"));
            decode(kind, bytes, identify.as_deref(), thresholds.as_deref()).map_err(|e| text(&e))
        }
    }
}

/// Counts the values compared; each difference becomes a line.
fn compare(
    path: &str,
    expected: &Value,
    got: Option<&Value>,
    compared: &mut usize,
    problems: &mut Vec<String>,
) {
    match (expected, got) {
        (Value::Object(map), Some(Value::Object(got))) => {
            for (key, value) in map {
                compare(&format!("{path}/{key}"), value, got.get(key), compared, problems);
            }
        }
        (Value::Array(list), Some(Value::Array(got))) => {
            if list.len() != got.len() {
                problems.push(format!("{path}: {} entries, expected {}", got.len(), list.len()));
            }
            for (index, value) in list.iter().enumerate() {
                compare(
                    &format!("{path}/{index}"),
                    value,
                    got.get(index),
                    compared,
                    problems,
                );
            }
        }
        (Value::Null, None) => *compared += 1,
        (expected, got) => {
            *compared += 1;
            if got != Some(expected) {
                problems.push(format!(
                    "{path}: expected {expected}, got {}",
                    got.unwrap_or(&json!("nothing"))
                ));
            }
        }
    }
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn vectors_decode_to_what_stands_beside_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let mut all = Vec::new();
    files(&root, &mut all);
    all.sort();
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut problems = Vec::new();
    for path in &all {
        let relative = path.strip_prefix(&root).unwrap().display().to_string();
        let extension = path.extension().and_then(|e| e.to_str());
        let partner = match extension {
            Some("hex") => path.with_extension("json"),
            Some("json") => path.with_extension("hex"),
            _ => {
                problems.push(format!("{relative}: neither .hex nor .json"));
                continue;
            }
        };
        if !partner.exists() {
            problems.push(format!("{relative}: {} is missing", partner.display()));
            continue;
        }
        if extension != Some("hex") {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let bytes = match read_vector(&text) {
            Ok(bytes) => bytes,
            Err(why) => {
                problems.push(format!("{relative}: {why}"));
                continue;
            }
        };
        if read_input(text.as_bytes()).as_ref() != Ok(&bytes) {
            problems.push(format!("{relative}: decode reads other bytes from it"));
        }
        let expected: Value = match serde_json::from_slice(&std::fs::read(&partner).unwrap()) {
            Ok(expected) => expected,
            Err(error) => {
                problems.push(format!("{relative}: its .json: {error}"));
                continue;
            }
        };
        let kind_path = path.parent().unwrap();
        let kind = kind_path.file_name().unwrap().to_string_lossy().into_owned();
        // The same name in identify/ and smart-thresholds/ is the same drive.
        let companion = |other: &str| {
            let name = path.file_name()?;
            let text = std::fs::read_to_string(kind_path.parent()?.join(other).join(name)).ok()?;
            read_vector(&text).ok()
        };
        let count = counts.entry(kind.clone()).or_default();
        count.0 += 1;
        match (document(&kind, &bytes, companion), expected.get("error")) {
            (Ok(got), None) => compare(&relative, &expected, Some(&got), &mut count.1, &mut problems),
            (Err(error), Some(part)) => {
                count.1 += 1;
                if !error.contains(part.as_str().unwrap_or("?")) {
                    problems.push(format!("{relative}: error {error:?} does not contain {part}"));
                }
            }
            (Ok(_), Some(_)) => problems.push(format!("{relative}: decoded, though an error is expected")),
            (Err(error), None) => problems.push(format!("{relative}: {error}")),
        }
    }
    let mut total = 0;
    for (kind, (vectors, compared)) in &counts {
        println!("{kind}: {vectors} vectors, {compared} values compared");
        total += compared;
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(total > 0, "no value was compared");
}

#[test]
fn a_wrong_expectation_is_found() {
    let (mut compared, mut problems) = (0, Vec::new());
    let got = json!({"a": 1, "list": [1, 2], "b": {"c": "x"}});
    let expected = json!({"a": 2, "list": [1], "b": {"c": "x", "d": null}, "e": 1});
    compare("", &expected, Some(&got), &mut compared, &mut problems);
    assert_eq!(compared, 5);
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(read_vector("# x\n0000: 01 02\n0001: 03\n").is_err());
    assert!(read_vector("0000: 01\n").is_err());
}
