//! A run as Markdown (CommonMark with tables).

use super::compare::Comparison;
use super::escape::markdown as md;
use super::text::{PHASE_HEAD, phase_cells, row_table};
use super::words;
use crate::bench::run::Run;

fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|c| md(c)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut out = line(head);
    out.push_str(&format!("|{}\n", " --- |".repeat(head.len())));
    out.extend(rows.iter().map(|r| line(r)));
    out
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

/// A whole run; `chart` is the name of a picture beside it.
pub fn run(run: &Run, chart: Option<&str>) -> String {
    let verdict = &run.verdict;
    let over = words::extent(&run.samples);
    let mut out = format!(
        "# {}: {}\n\n",
        md(&words::title(&run.device)),
        md(&words::workload_line(run))
    );
    out.push_str(&format!(
        "**Verdict: {}.** {}\n\n",
        md(&words::headline(verdict, Some(&over))),
        words::cause_meaning(verdict.cause)
    ));
    let facts: Vec<String> = [words::falls_line(verdict), words::onset_line(verdict)]
        .into_iter()
        .flatten()
        .collect();
    for fact in facts {
        out.push_str(&format!("- {}\n", md(&fact)));
    }
    for (side, evidence) in words::evidence(verdict) {
        out.push_str(&format!(
            "- {}: {}\n",
            side.word(),
            md(&words::evidence_line(evidence, verdict.cause))
        ));
    }
    if verdict.ambiguous {
        out.push_str("- the series alone cannot decide\n");
    }
    if let Some(experiment) = &verdict.experiment {
        out.push_str(&format!("- to settle it: {}\n", md(experiment)));
    }
    if let Some(chart) = chart {
        out.push_str(&format!("\n![Rate and temperature over time]({chart})\n"));
    }
    if !verdict.events.is_empty() {
        out.push_str("\n## Events\n\n");
        for (i, event) in verdict.events.iter().enumerate() {
            out.push_str(&format!("{}. {}\n", i + 1, md(&words::event_line(event))));
        }
    }
    if !run.figures.is_empty() {
        out.push_str("\n## Figures\n\n");
        let rows: Vec<Vec<String>> = run
            .figures
            .iter()
            .map(|(name, f)| {
                let (value, unit) = words::figure(f);
                vec![name.replace('_', " "), value, unit]
            })
            .collect();
        out.push_str(&table(&head(&["Figure", "Value", "Unit"]), &rows));
    }
    if !run.phases.is_empty() {
        out.push_str("\n## Phases\n\n");
        let rows: Vec<Vec<String>> = run.phases.iter().map(phase_cells).collect();
        out.push_str(&table(&head(&PHASE_HEAD), &rows));
    }
    if !run.rows.is_empty() {
        out.push_str("\n## Rows\n\n");
        let (head, rows) = row_table(&run.rows);
        out.push_str(&table(&head, &rows));
    }
    out.push_str("\n## How it was measured\n\n");
    out.push_str(&table(&head(&["What", "Value"]), &super::method(run)));
    let notices = words::notices(run);
    if !notices.is_empty() {
        out.push_str("\n## The system said\n\n");
        for notice in notices {
            out.push_str(&format!(
                "- {}: {}\n",
                words::seconds(notice.t_s),
                md(&notice.text)
            ));
        }
    }
    if !run.notes.is_empty() {
        out.push_str("\n## Notes\n\n");
        for note in &run.notes {
            out.push_str(&format!("- {}\n", md(note)));
        }
    }
    out
}

/// Two runs side by side.
pub fn compare(comparison: &Comparison<'_>) -> String {
    let rows: Vec<Vec<String>> = comparison.rows.iter().map(|r| r.cells()).collect();
    format!(
        "# Two runs compared\n\n{}",
        table(&head(&super::compare::HEAD), &rows)
    )
}
