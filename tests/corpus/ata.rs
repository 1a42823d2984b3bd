//! ATA pages against smartctl, hdparm, libatasmart and CrystalDiskInfo.

mod identify;
mod logs;
mod reports;
mod smart;

use std::path::Path;

use serde_json::{Value, json};

use crate::{Tally, cases};

/// Compares every ATA kind.
pub fn run(root: &Path, tally: &mut Tally) {
    for kind in ["identify", "identify-swapped", "hdparm-istdout"] {
        for case in cases(root, kind, tally) {
            identify::identify(kind, &case, tally);
        }
    }
    for case in cases(root, "smart-data", tally) {
        smart::smart_data(root, &case, tally);
    }
    for case in cases(root, "smart-thresholds", tally) {
        smart::smart_thresholds(&case, tally);
    }
    for case in cases(root, "sct-status", tally) {
        logs::sct_status(&case, tally);
    }
    for case in cases(root, "sct-temp-history", tally) {
        logs::sct_temp_history(&case, tally);
    }
    for case in cases(root, "devstat", tally) {
        logs::devstat(&case, tally);
    }
    for case in cases(root, "smartctl-json", tally) {
        reports::smartctl_json(&case, tally);
    }
    for case in cases(root, "smartctl-text", tally) {
        reports::smartctl_text(&case, tally);
    }
}

/// One case while it is compared.
struct Compare<'a> {
    kind: &'static str,
    case: &'a str,
    tally: &'a mut Tally,
}

impl Compare<'_> {
    fn equal(&mut self, what: &str, ours: &Value, theirs: &Value) {
        self.tally.equal(self.kind, self.case, what, ours, theirs);
    }

    /// `ours` and `theirs` by JSON pointer; what a tool leaves out must be absent here too.
    fn fields(&mut self, ours: &Value, theirs: &Value, pairs: &[(&str, &str)]) {
        for (our_path, their_path) in pairs {
            self.equal(their_path, &at(ours, our_path), &at(theirs, their_path));
        }
    }

    fn wrong(&mut self, why: &str) {
        self.tally.wrong(self.kind, self.case, why);
    }

    fn disagreement(&mut self, why: &str) {
        self.tally.disagreement(self.kind, self.case, why);
    }
}

/// The value at a pointer, `null` where there is none.
fn at(value: &Value, pointer: &str) -> Value {
    value.pointer(pointer).cloned().unwrap_or(Value::Null)
}

fn first_number(text: &str) -> Value {
    let digits: String = text
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    digits.parse::<f64>().map_or(Value::Null, |n| json!(n))
}
