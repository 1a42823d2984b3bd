//! A run as one page that needs nothing else: no network, no other file.

use std::fmt::Write;

use super::chart::scene::INKS;
use super::chart::{Plot, svg};
use super::compare::{Comparison, HEAD};
use super::escape::xml;
use super::text::{PHASE_HEAD, phase_cells, row_table};
use super::words;
use crate::bench::run::Run;
use crate::bench::verdict::{Cause, Verdict};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page's frame: nothing in it may reach out, whatever a device calls itself.
fn page(title: &str, body: &str, data: &str) -> String {
    let (mut light, mut dark) = (String::new(), String::new());
    for (_, class, on_white, on_black) in INKS {
        let _ = write!(light, "--{class}:{on_white};");
        let _ = write!(dark, "--{class}:{on_black};");
    }
    let style = STYLE
        .replace("VARIABLES_LIGHT", &light)
        .replace("VARIABLES_DARK", &dark);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"generator\" content=\"drivethru {}\"/>\n<title>{}</title>\n<style>\n{style}</style>\n</head>\n\
         <body>\n<main>\n{body}</main>\n{data}<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        xml(title),
    )
}

fn data(id: &str, name: &str, run: &Run) -> String {
    format!(
        "<script type=\"application/json\" id=\"{id}\" data-name=\"{name}\">{}</script>\n",
        super::json(run)
    )
}

/// A table; columns from `numbers` on hold numbers.
fn table(head: &[String], rows: &[Vec<String>], numbers: usize) -> String {
    let mut out = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
    let class = |i: usize| if i >= numbers { " class=\"n\"" } else { "" };
    for (i, name) in head.iter().enumerate() {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(i), xml(name));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (i, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(i), xml(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

fn tone(cause: Cause) -> &'static str {
    match cause {
        Cause::Thermal => "bad",
        Cause::None => "good",
        _ => "warn",
    }
}

fn verdict_card(verdict: &Verdict, over: &str, letter: &str) -> String {
    let title = format!("{letter}{}", words::cause_title(verdict.cause));
    let over = if verdict.cause == Cause::None {
        format!(" in {over}")
    } else {
        String::new()
    };
    let mut out = format!(
        "<section class=\"card {}\">\n<h2>{}{}</h2>\n<p>{}</p>\n",
        tone(verdict.cause),
        xml(&title),
        xml(&over),
        words::cause_meaning(verdict.cause)
    );
    for line in [words::falls_line(verdict), words::onset_line(verdict)]
        .into_iter()
        .flatten()
    {
        let _ = writeln!(out, "<p>{}</p>", xml(&line));
    }
    let percent = (verdict.confidence.clamp(0.0, 1.0) * 100.0).round();
    let _ = writeln!(
        out,
        "<p class=\"sub\">confidence {:.2}{}</p>\n<span class=\"meter\"><i style=\"width:{percent}%\"></i></span>",
        verdict.confidence,
        if verdict.ambiguous {
            ": the series alone cannot decide"
        } else {
            ""
        }
    );
    if !verdict.evidence.is_empty() {
        out.push_str("<ul class=\"plain\">\n");
        for (side, evidence) in words::evidence(verdict) {
            let _ = writeln!(
                out,
                "<li><span class=\"side\">{}</span> {}</li>",
                side.word(),
                xml(&words::evidence_line(evidence, verdict.cause))
            );
        }
        out.push_str("</ul>\n");
    }
    if let Some(experiment) = &verdict.experiment {
        let _ = writeln!(out, "<p><b>To settle it:</b> {}</p>", xml(experiment));
    }
    if !verdict.alternatives.is_empty() {
        let others: Vec<String> = verdict
            .alternatives
            .iter()
            .map(|a| format!("{} ({})", words::cause_title(a.cause), words::number(a.score)))
            .collect();
        let _ = writeln!(
            out,
            "<p class=\"sub\">also weighed, with their scores: {}</p>",
            xml(&others.join(", "))
        );
    }
    out.push_str("</section>\n");
    out
}

fn events(prefix: &str, verdict: &Verdict) -> String {
    let mut out = String::new();
    for (i, event) in verdict.events.iter().enumerate() {
        let class = if event.cause == Cause::Thermal {
            " thermal"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "<li><span class=\"badge{class}\">{prefix}{}</span><span>{}<br/><span class=\"sub\">{}</span></span></li>",
            i + 1,
            xml(&words::event_line(event)),
            words::cause_meaning(event.cause)
        );
    }
    out
}

fn chart(plot: &Plot<'_>) -> String {
    format!(
        "<figure>\n<div class=\"scroll\">{}</div><output id=\"readout\">Point at the chart to read it; with the keyboard, the arrow keys.</output>\n</figure>\n",
        svg::render(&plot.bare_scene(), svg::Home::Page)
    )
}

/// A whole run.
pub fn run(run: &Run) -> String {
    let verdict = &run.verdict;
    let title = format!("{}: {}", words::title(&run.device), words::workload_line(run));
    let facts: Vec<String> = words::device_parts(&run.device)
        .into_iter()
        .filter(|(name, _)| *name != "model")
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let mut out = format!(
        "<h1>{}</h1>\n<p class=\"sub\">{}</p>\n<p class=\"sub\">started {}, {}; {}</p>\n",
        xml(&title),
        xml(&facts.join(", ")),
        xml(&run.started),
        words::ending(run.ending),
        xml(&words::extent(&run.samples)),
    );
    if run.device.simulated {
        out.push_str("<p><span class=\"tag\">simulated: no hardware was measured</span></p>\n");
    }
    out.push_str(&verdict_card(verdict, &words::extent(&run.samples), ""));
    out.push_str(&chart(&Plot::of_run(run)));
    if !verdict.events.is_empty() {
        let _ = write!(
            out,
            "<h2>What happened</h2>\n<ol class=\"falls\">\n{}</ol>\n",
            events("", verdict)
        );
    }
    if !run.figures.is_empty() {
        out.push_str("<h2>Figures</h2>\n<div class=\"tiles\">\n");
        for (name, figure) in &run.figures {
            let (value, unit) = words::figure(figure);
            let _ = writeln!(
                out,
                "<div class=\"tile\"><b>{} {}</b><span>{}</span></div>",
                xml(&value),
                xml(&unit),
                xml(&name.replace('_', " "))
            );
        }
        out.push_str("</div>\n");
    }
    if !run.phases.is_empty() {
        let rows: Vec<_> = run.phases.iter().map(phase_cells).collect();
        let _ = write!(out, "<h2>Phases</h2>\n{}", table(&strings(&PHASE_HEAD), &rows, 2));
    }
    if !run.rows.is_empty() {
        let (head, rows) = row_table(&run.rows);
        let _ = write!(out, "<h2>Rows</h2>\n{}", table(&head, &rows, 1));
    }
    let _ = write!(
        out,
        "<h2>How it was measured</h2>\n{}",
        table(&strings(&["What", "Value"]), &super::method(run), usize::MAX)
    );
    if !verdict.metrics.is_empty() {
        let rows: Vec<_> = verdict
            .metrics
            .iter()
            .map(|(name, value)| vec![name.clone(), words::plain(value)])
            .collect();
        let _ = write!(
            out,
            "<details><summary>Metrics of the verdict</summary>\n{}</details>\n",
            table(&strings(&["Metric", "Value"]), &rows, usize::MAX)
        );
    }
    let notices = words::notices(run);
    if !notices.is_empty() {
        out.push_str("<h2>What the system said</h2>\n<ul>\n");
        for notice in notices {
            let _ = writeln!(
                out,
                "<li>{}: {}</li>",
                words::seconds(notice.t_s),
                xml(&notice.text)
            );
        }
        out.push_str("</ul>\n");
    }
    if !run.notes.is_empty() {
        out.push_str("<h2>Notes</h2>\n<ul>\n");
        for note in &run.notes {
            let _ = writeln!(out, "<li>{}</li>", xml(note));
        }
        out.push_str("</ul>\n");
    }
    let _ = write!(
        out,
        "<h2>Raw samples</h2>\n<p>This page holds the whole document of the run with its {} samples; every figure above can be \
         computed again from it.</p>\n<p><button type=\"button\" data-save=\"0\">Save run.json</button></p>\n",
        run.samples.len()
    );
    page(&title, &out, &data("run", "", run))
}

/// Two runs side by side.
pub fn compare(comparison: &Comparison<'_>) -> String {
    let (a, b) = (comparison.a, comparison.b);
    let rows: Vec<_> = comparison.rows.iter().map(|r| r.cells()).collect();
    let mut out = String::from("<h1>Two runs compared</h1>\n");
    if a.device.simulated || b.device.simulated {
        out.push_str("<p><span class=\"tag\">simulated devices are marked so below</span></p>\n");
    }
    out.push_str(&chart(&Plot::of_two(a, b)));
    out.push_str(&table(&strings(&HEAD), &rows, usize::MAX));
    out.push_str(&verdict_card(&a.verdict, &words::extent(&a.samples), "A: "));
    out.push_str(&verdict_card(&b.verdict, &words::extent(&b.samples), "B: "));
    let told = events("A", &a.verdict) + &events("B", &b.verdict);
    if !told.is_empty() {
        let _ = write!(out, "<h2>What happened</h2>\n<ol class=\"falls\">\n{told}</ol>\n");
    }
    out.push_str(
        "<h2>Raw samples</h2>\n<p><button type=\"button\" data-save=\"0\">Save run.json of A</button> \
         <button type=\"button\" data-save=\"1\">Save run.json of B</button></p>\n",
    );
    let both = data("run-a", "A", a) + &data("run-b", "B", b);
    page("Two runs compared", &out, &both)
}
