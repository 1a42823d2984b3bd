//! Two runs side by side.

use serde_json::json;

use super::words;
use crate::bench::run::Run;
use crate::report::table;
use crate::text::for_terminal;
use crate::units::human_bytes;

/// Name and version of the document.
pub const SCHEMA: &str = "drivethru-compare/1";

/// Heads of the table.
pub(super) const HEAD: [&str; 5] = ["What", "A", "B", "Unit", "B against A"];

/// One line of the table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    what: String,
    a: String,
    b: String,
    unit: String,
    /// Change from A to B in percent, where both are figures of one unit.
    change_pct: Option<f64>,
    values: [Option<f64>; 2],
}

impl Line {
    /// Its cells, not escaped.
    pub(super) fn cells(&self) -> Vec<String> {
        let change = self
            .change_pct
            .map(|pct| {
                let sign = if pct < 0.0 { "−" } else { "+" };
                format!("{sign}{} %", words::number(pct.abs()))
            })
            .unwrap_or_default();
        vec![
            self.what.clone(),
            self.a.clone(),
            self.b.clone(),
            self.unit.clone(),
            change,
        ]
    }
}

/// Two runs side by side: what they are, their verdicts, and every figure that one of them has.
pub struct Comparison<'a> {
    /// The first.
    pub a: &'a Run,
    /// The second.
    pub b: &'a Run,
    pub(super) rows: Vec<Line>,
}

impl<'a> Comparison<'a> {
    /// Puts them side by side.
    pub fn new(a: &'a Run, b: &'a Run) -> Self {
        let mut rows = Vec::new();
        let mut words_of = |what: &str, of: &dyn Fn(&Run) -> String| {
            rows.push(Line {
                what: what.to_owned(),
                a: of(a),
                b: of(b),
                unit: String::new(),
                change_pct: None,
                values: [None; 2],
            });
        };
        words_of("device", &|r| r.device.name.clone());
        words_of("model", &|r| words::title(&r.device));
        words_of("firmware", &|r| r.device.firmware.clone().unwrap_or_default());
        words_of("bridge", &|r| r.device.bridge.clone().unwrap_or_default());
        words_of("workload", &words::workload_line);
        words_of("started", &|r| r.started.clone());
        words_of("ended", &|r| words::ending(r.ending).to_owned());
        words_of("verdict", &|r| words::headline(&r.verdict, None));
        words_of("onset", &|r| {
            r.verdict.onset_s.map(words::seconds).unwrap_or_default()
        });
        words_of("onset temperature", &|r| {
            r.verdict.onset_temp_c.map(words::celsius).unwrap_or_default()
        });
        words_of("moved", &|r| {
            human_bytes(r.samples.last().map_or(0, |s| s.cumulative_bytes))
        });
        let names: std::collections::BTreeSet<&String> = a.figures.keys().chain(b.figures.keys()).collect();
        for name in names {
            let (left, right) = (a.figures.get(name), b.figures.get(name));
            let same = left.zip(right).is_none_or(|(l, r)| l.unit == r.unit);
            let shown = |figure: Option<&crate::bench::run::Figure>| {
                figure
                    .map(|f| {
                        let (value, unit) = words::figure(f);
                        if same && f.unit != "B" {
                            value
                        } else {
                            format!("{value} {unit}")
                        }
                    })
                    .unwrap_or_default()
            };
            rows.push(Line {
                what: name.replace('_', " "),
                a: shown(left),
                b: shown(right),
                unit: if same {
                    left.or(right)
                        .filter(|f| f.unit != "B")
                        .map(|f| f.unit.clone())
                        .unwrap_or_default()
                } else {
                    String::new()
                },
                change_pct: left
                    .zip(right)
                    .filter(|(l, _)| same && l.value != 0.0)
                    .map(|(l, r)| 100.0 * (r.value - l.value) / l.value.abs())
                    .filter(|pct| pct.is_finite()),
                values: [left.map(|f| f.value), right.map(|f| f.value)],
            });
        }
        Self { a, b, rows }
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let rows = self
            .rows
            .iter()
            .map(|r| r.cells().iter().map(|c| for_terminal(c)).collect())
            .collect();
        let mut out = table(&HEAD, rows);
        for (letter, run) in [("A", self.a), ("B", self.b)] {
            let curve = super::curve::draw(&run.samples, &run.verdict.events);
            if !curve.is_empty() {
                out.push_str(&format!("\n{letter}\n{curve}"));
            }
        }
        out
    }

    /// As a document.
    pub fn json(&self) -> serde_json::Value {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|r| {
                let mut row = json!({"what": r.what, "unit": r.unit, "change_pct": r.change_pct});
                if r.values == [None; 2] {
                    row["a"] = json!(r.a);
                    row["b"] = json!(r.b);
                } else {
                    row["a"] = json!(r.values[0]);
                    row["b"] = json!(r.values[1]);
                }
                if let Some(fields) = row.as_object_mut() {
                    fields.retain(|_, v| !v.is_null() && v.as_str() != Some(""));
                }
                row
            })
            .collect();
        json!({"schema": SCHEMA, "schema_version": 1, "rows": rows})
    }
}
