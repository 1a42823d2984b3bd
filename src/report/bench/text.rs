//! A run for a terminal.

use std::collections::BTreeSet;

use super::{curve, words};
use crate::bench::run::{Phase, Row, Run};
use crate::bench::series::Series;
use crate::bench::verdict::Verdict;
use crate::report::{Style, Tone, key_values, table};
use crate::text::for_terminal;
use crate::units::human_bytes;

/// An unknown figure is a blank.
pub(super) fn known(value: Option<f64>) -> String {
    value.map(words::number).unwrap_or_default()
}

/// Heads of the table of phases.
pub(super) const PHASE_HEAD: [&str; 10] = [
    "Phase", "Op", "From s", "To s", "Bytes", "MB/s", "Min", "P5", "Median", "Flush s",
];

/// A phase's cells, not escaped.
pub(super) fn phase_cells(phase: &Phase) -> Vec<String> {
    vec![
        phase.name.clone(),
        phase.op.word().to_owned(),
        words::number(phase.start_s),
        words::number(phase.end_s),
        human_bytes(phase.bytes),
        known(phase.mb_s),
        known(phase.min_mb_s),
        known(phase.p5_mb_s),
        known(phase.median_mb_s),
        known(phase.flush_s),
    ]
}

/// Heads and cells of the table of rows: one column for each figure that any row has. Not escaped.
pub(super) fn row_table(rows: &[Row]) -> (Vec<String>, Vec<Vec<String>>) {
    let names: BTreeSet<&String> = rows.iter().flat_map(|r| r.figures.keys()).collect();
    let mut head = vec!["Row".to_owned()];
    head.extend(names.iter().map(|n| (*n).clone()));
    let cells = rows
        .iter()
        .map(|row| {
            let mut cells = vec![if row.hang {
                format!("{} (hung, given up)", row.name)
            } else {
                row.name.clone()
            }];
            cells.extend(names.iter().map(|n| known(row.figures.get(*n).copied())));
            cells
        })
        .collect();
    (head, cells)
}

fn escaped(cells: Vec<String>) -> Vec<String> {
    cells.iter().map(|c| for_terminal(c)).collect()
}

/// The verdict, painted, with the events below.
fn verdict_text(verdict: &Verdict, over: Option<&str>, style: Style) -> String {
    let tone = match verdict.cause {
        crate::bench::verdict::Cause::None => Tone::Good,
        crate::bench::verdict::Cause::Thermal => Tone::Bad,
        _ => Tone::Warn,
    };
    let mut out = String::new();
    for (i, line) in words::verdict_lines(verdict, over).iter().enumerate() {
        let line = for_terminal(line);
        out.push_str(&if i == 0 { style.paint(tone, &line) } else { line });
        out.push('\n');
    }
    if !verdict.events.is_empty() {
        out.push_str("\nEvents\n");
        for (i, event) in verdict.events.iter().enumerate() {
            out.push_str(&format!(
                "  {:>3} {}\n",
                i + 1,
                for_terminal(&words::event_line(event))
            ));
        }
    }
    out
}

/// A whole run.
pub fn run(run: &Run, style: Style) -> String {
    let mut out = format!(
        "{}: {}\n",
        for_terminal(&words::title(&run.device)),
        for_terminal(&words::workload_line(run))
    );
    let mut facts: Vec<(&str, Option<String>)> = words::device_parts(&run.device)
        .into_iter()
        .filter(|(name, _)| *name != "model")
        .map(|(name, value)| (name, Some(for_terminal(&value))))
        .collect();
    facts.extend([
        ("data", Some(for_terminal(&run.workload.data))),
        ("started", Some(for_terminal(&run.started))),
        ("ended", Some(words::ending(run.ending).to_owned())),
        ("extent", Some(words::extent(&run.samples))),
        ("engine", Some(for_terminal(&words::engine_line(run)))),
        ("temperature", Some(for_terminal(&words::sampler_line(run)))),
        ("link", run.context.link_mb_s.map(words::rate)),
    ]);
    out.push_str(&key_values(&facts));
    if !run.workload.options.is_empty() {
        let options: Vec<String> = run
            .workload
            .options
            .iter()
            .map(|(name, value)| format!("{name}={}", words::plain(value)))
            .collect();
        out.push_str(&format!("  options      {}\n", for_terminal(&options.join(" "))));
    }
    if !run.phases.is_empty() {
        out.push('\n');
        let rows = run.phases.iter().map(|p| escaped(phase_cells(p))).collect();
        out.push_str(&table(&PHASE_HEAD, rows));
    }
    if !run.rows.is_empty() {
        out.push('\n');
        let (head, cells) = row_table(&run.rows);
        let head = escaped(head);
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        out.push_str(&table(&head, cells.into_iter().map(escaped).collect()));
    }
    if !run.figures.is_empty() {
        out.push('\n');
        let rows = run
            .figures
            .iter()
            .map(|(name, figure)| {
                let (value, unit) = words::figure(figure);
                escaped(vec![name.replace('_', " "), value, unit])
            })
            .collect();
        out.push_str(&table(&["Figure", "Value", "Unit"], rows));
    }
    let curve = curve::draw(&run.samples, &run.verdict.events);
    if !curve.is_empty() {
        out.push('\n');
        out.push_str(&curve);
    }
    out.push('\n');
    let over = words::extent(&run.samples);
    out.push_str(&verdict_text(&run.verdict, Some(&over), style));
    let notices = words::notices(run);
    if !notices.is_empty() {
        out.push_str("\nThe system said\n");
        for notice in notices {
            out.push_str(&format!(
                "  {}: {}\n",
                words::seconds(notice.t_s),
                for_terminal(&notice.text)
            ));
        }
    }
    if !run.notes.is_empty() {
        out.push_str("\nNotes\n");
        for note in &run.notes {
            out.push_str(&format!("  {}\n", for_terminal(note)));
        }
    }
    out
}

/// A series from elsewhere and what is said of it.
pub fn series(name: &str, series: &Series, verdict: &Verdict, style: Style) -> String {
    let curve = curve::draw(&series.samples, &verdict.events);
    let over = words::extent(&series.samples);
    format!(
        "{}\n{curve}\n{}",
        for_terminal(name),
        verdict_text(verdict, Some(&over), style)
    )
}
