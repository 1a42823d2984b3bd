//! The files of a run, and whether what was read back is what was written.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::{PASSES, Plan};
use super::sets::Set;

/// Every file of a run: `drivethru-manifest/1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// `drivethru-manifest/1`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// Whether everything that was read back was compared.
    pub verified: bool,
    /// Bytes that were compared.
    pub compared_bytes: u64,
    /// Bytes that were not what had been written.
    pub wrong_bytes: u64,
    /// The files that these are in, in the order of the sets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<WrongFile>,
    /// The folders with their files.
    pub sets: Vec<Set>,
}

/// A file that came back changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrongFile {
    /// Its path.
    pub path: String,
    /// The pass in which it was read.
    pub pass: u32,
    /// Bytes that were not what had been written.
    pub bytes: u64,
}

/// What comparing came to, by the names of the contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    compared_bytes: u64,
    /// Bytes of a medium that keeps nothing.
    unknown_bytes: u64,
    wrong_bytes: BTreeMap<u64, u64>,
}

impl Checked {
    /// So many bytes of a content were read; of these so many are wrong, if that can be told.
    pub fn add(&mut self, content: u64, read_bytes: u64, wrong_bytes: Option<u64>) {
        match wrong_bytes {
            None => self.unknown_bytes = self.unknown_bytes.saturating_add(read_bytes),
            Some(wrong) => {
                self.compared_bytes = self.compared_bytes.saturating_add(read_bytes);
                // The last block of a file is not all of the file.
                let wrong = wrong.min(read_bytes);
                if wrong > 0 {
                    *self.wrong_bytes.entry(content).or_default() += wrong;
                }
            }
        }
    }

    /// The manifest of a plan that copies files.
    pub(super) fn manifest(&self, plan: &Plan) -> Option<Manifest> {
        if plan.sets.is_empty() {
            return None;
        }
        let mut wrong = Vec::new();
        if !self.wrong_bytes.is_empty() {
            for file in plan.sets.iter().flat_map(|set| &set.files) {
                wrong.extend((1..=PASSES).filter_map(|pass| {
                    Some(WrongFile {
                        path: file.path.clone(),
                        pass,
                        bytes: *self.wrong_bytes.get(&file.content(pass))?,
                    })
                }));
            }
        }
        Some(Manifest {
            schema: "drivethru-manifest/1",
            schema_version: 1,
            verified: self.compared_bytes > 0 && self.unknown_bytes == 0,
            compared_bytes: self.compared_bytes,
            wrong_bytes: self.wrong_bytes.values().sum(),
            wrong,
            sets: plan.sets.clone(),
        })
    }
}

impl Manifest {
    /// What is told of it beside the figures.
    pub(super) fn note(&self) -> String {
        let gb = |bytes: u64| bytes as f64 / 1e9;
        match self.wrong.first() {
            None if self.verified => format!(
                "read-back: all of the {:.1} GB are what was written, compared by the name of what each sector holds",
                gb(self.compared_bytes)
            ),
            None => "read-back: not compared, the medium keeps nothing".to_owned(),
            Some(first) => format!(
                "read_back_wrong: {} bytes in {} files are not what was written, first {} in pass {}",
                self.wrong_bytes,
                self.wrong.len(),
                first.path,
                first.pass
            ),
        }
    }
}
