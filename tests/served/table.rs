//! The tables of the documentation, made from what a whole run has found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// With this set, a whole run rewrites the tables; without it, a table that is not true any more is a failure.
const UPDATE: &str = "DRIVETHRU_UPDATE_DOCS";

/// The word of a cell whose check has failed.
pub const FAILED: &str = "FAILED";

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/simulator.md")
}

/// Cells by (row, column).
pub type Cells = BTreeMap<(String, String), String>;

/// A table: its name in the document, the heading of its first column, rows and columns in their order.
pub struct Layout {
    pub name: &'static str,
    pub heading: &'static str,
    pub rows: Vec<String>,
    pub columns: Vec<&'static str>,
}

impl Layout {
    fn render(&self, cells: &Cells) -> String {
        let mut out = format!("| {} | {} |\n", self.heading, self.columns.join(" | "));
        out.push_str(&"|---".repeat(self.columns.len() + 1));
        out.push_str("|\n");
        for row in &self.rows {
            let words: Vec<&str> = self
                .columns
                .iter()
                .map(|column| {
                    cells
                        .get(&(row.clone(), (*column).to_owned()))
                        .map_or("–", String::as_str)
                })
                .collect();
            out.push_str(&format!("| `{row}` | {} |\n", words.join(" | ")));
        }
        out
    }
}

/// Compares each table with the document, or writes it there. What is wrong, if anything.
pub fn settle(layouts: &[Layout], cells: &Cells) -> Vec<String> {
    let path = document();
    let mut text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return vec![format!("{}: {error}", path.display())],
    };
    let update = std::env::var_os(UPDATE).is_some();
    let mut wrong = Vec::new();
    for layout in layouts {
        let (begin, end) = (
            format!("<!-- table: {} -->\n", layout.name),
            "<!-- end -->".to_owned(),
        );
        let Some((head, rest)) = text.split_once(&begin) else {
            wrong.push(format!("{}: no table {}", path.display(), layout.name));
            continue;
        };
        let Some((old, tail)) = rest.split_once(&end) else {
            wrong.push(format!("{}: table {} has no end", path.display(), layout.name));
            continue;
        };
        let new = layout.render(cells);
        if let Some(row) = new.lines().find(|row| row.contains(FAILED)) {
            wrong.push(format!(
                "table {}: a failure is not written down as a fact: {row}",
                layout.name
            ));
            continue;
        }
        if old != new && !update {
            let differs = new.lines().zip(old.lines()).find(|(new, old)| new != old);
            wrong.push(format!(
                "{}: table {} is not what this run found ({differs:?}); {UPDATE}=1 writes it",
                path.display(),
                layout.name
            ));
        }
        text = format!("{head}{begin}{new}{end}{tail}");
    }
    if update && let Err(error) = std::fs::write(&path, text) {
        wrong.push(format!("{}: {error}", path.display()));
    }
    wrong
}
