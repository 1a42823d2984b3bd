//! Every decoder against pages of real devices and what independent tools print for them.
//!
//! The corpus is not part of the package. It is looked for in `$DRIVETHRU_CORPUS`, then in `../shared/corpus` beside the
//! package. Without it the test says loudly that it was skipped.

mod ata;
mod guess;
mod nvme;
mod scsi;
mod usb;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

/// What was compared, kind by kind.
#[derive(Debug, Default)]
pub struct Tally {
    kinds: BTreeMap<&'static str, KindTally>,
}

#[derive(Debug, Default)]
struct KindTally {
    cases: usize,
    compared: usize,
    mismatches: Vec<String>,
    disagreements: Vec<String>,
    skipped: Option<String>,
}

impl Tally {
    /// A case of this kind begins.
    pub fn case(&mut self, kind: &'static str) {
        self.kinds.entry(kind).or_default().cases += 1;
    }

    /// Compares one value; both sides are shown when they differ.
    pub fn equal(&mut self, kind: &'static str, case: &str, what: &str, ours: &Value, theirs: &Value) {
        let tally = self.kinds.entry(kind).or_default();
        tally.compared += 1;
        if !same(ours, theirs) {
            tally
                .mismatches
                .push(format!("{case}: {what}: ours {ours}, theirs {theirs}"));
        }
    }

    /// Something is wrong that is no comparison: unreadable, missing, not decoded.
    pub fn wrong(&mut self, kind: &'static str, case: &str, why: &str) {
        self.kinds
            .entry(kind)
            .or_default()
            .mismatches
            .push(format!("{case}: {why}"));
    }

    /// The tools contradict each other here; says which one we follow, and why.
    pub fn disagreement(&mut self, kind: &'static str, case: &str, choice_and_reason: &str) {
        self.kinds
            .entry(kind)
            .or_default()
            .disagreements
            .push(format!("{case}: {choice_and_reason}"));
    }

    /// Files of this kind are not compared at all.
    pub fn skipped(&mut self, kind: &'static str, why: &str) {
        self.kinds.entry(kind).or_default().skipped = Some(why.to_owned());
    }
}

/// Numbers are equal by value, strings without regard to case.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::String(x), Value::String(y)) => x.eq_ignore_ascii_case(y),
        _ => a == b,
    }
}

/// A file of the corpus with what the tools say about it.
pub struct Case {
    /// File name.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The `.expect.json` beside it.
    pub expect: Value,
}

/// All cases in one directory of the corpus, in order. A file without an expect file is a mismatch, and so is a directory
/// that is missing or holds no case: that kind would silently not be compared.
pub fn cases(root: &Path, kind: &'static str, tally: &mut Tally) -> Vec<Case> {
    let dir = root.join(kind);
    let mut files: Vec<PathBuf> = match std::fs::read_dir(&dir) {
        Ok(entries) => entries.flatten().map(|e| e.path()).collect(),
        Err(error) => {
            tally.wrong(kind, &dir.display().to_string(), &error.to_string());
            return Vec::new();
        }
    };
    files.sort();
    if files.is_empty() {
        tally.wrong(kind, &dir.display().to_string(), "no case in it");
    }
    let mut cases = Vec::new();
    for path in files {
        let name = path
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        if name.ends_with(".expect.json") {
            continue;
        }
        tally.case(kind);
        let expect = path.with_extension("expect.json");
        let expect = std::fs::read(&expect)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok());
        match (std::fs::read(&path), expect) {
            (Ok(bytes), Some(expect)) => cases.push(Case { name, bytes, expect }),
            _ => tally.wrong(kind, &name, "unreadable, or no .expect.json beside it"),
        }
    }
    cases
}

/// The lines under a pointer like `/sg_inq/text`, or none.
pub fn lines<'a>(expect: &'a Value, pointer: &str) -> Vec<&'a str> {
    expect
        .pointer(pointer)
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// The corpus, if it is there.
fn corpus() -> Option<PathBuf> {
    let root = std::env::var_os("DRIVETHRU_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        PathBuf::from,
    );
    root.is_dir().then_some(root)
}

fn main() -> ExitCode {
    if std::env::args().any(|word| word == "--list") {
        println!("decoders agree with independent tools: test");
        return ExitCode::SUCCESS;
    }
    let Some(root) = corpus() else {
        println!("SKIPPED: no corpus of real devices; DRIVETHRU_CORPUS names its directory");
        return ExitCode::SUCCESS;
    };
    let mut tally = Tally::default();
    scsi::run(&root, &mut tally);
    nvme::run(&root, &mut tally);
    usb::run(&root, &mut tally);
    ata::run(&root, &mut tally);
    guess::run(&root, &mut tally);

    let (mut cases, mut compared, mut failures) = (0, 0, 0);
    for (kind, t) in &tally.kinds {
        if let Some(why) = &t.skipped {
            println!("{kind}: not compared: {why}");
            continue;
        }
        println!(
            "{kind}: {} cases, {} values compared, {} disagreements among the tools",
            t.cases,
            t.compared,
            t.disagreements.len()
        );
        for text in &t.disagreements {
            println!("    disagreement: {text}");
        }
        for text in &t.mismatches {
            println!("    MISMATCH: {text}");
        }
        if t.cases > 0 && t.compared == 0 {
            println!("    MISMATCH: cases, but nothing compared");
            failures += 1;
        }
        cases += t.cases;
        compared += t.compared;
        failures += t.mismatches.len();
    }
    println!("corpus: {cases} cases, {compared} values compared, {failures} mismatches");
    if compared == 0 {
        println!("FAILED: the corpus is there, but nothing was compared");
        return ExitCode::FAILURE;
    }
    if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
