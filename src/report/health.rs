//! `smart`: text.

use super::{Style, Tone, device_line, key_values, logs, table};
use crate::ata::smart::{AttributeReport, SelfTestStatus, WhenFailed};
use crate::drive::health::{HealthReport, Verdict};
use crate::report::temp::limits_text;
use crate::text::for_terminal;
use crate::units::human_bytes;

/// The whole document for people.
pub fn render(report: &HealthReport, style: Style) -> String {
    let mut out = format!("{}\n\n", device_line(&report.device));
    let (tone, word) = match report.verdict {
        Verdict::Ok => (Tone::Good, "ok"),
        Verdict::Warning => (Tone::Warn, "works, but look at this"),
        Verdict::Failing => (Tone::Bad, "FAILING: save your data now"),
        Verdict::Unknown => (Tone::Warn, "unknown"),
    };
    out.push_str(&format!("Health: {}\n", style.paint(tone, word)));
    for reason in &report.reasons {
        out.push_str(&format!("  - {}\n", for_terminal(&reason.what)));
    }
    let smart = &report.smart;
    let temperature = report.temperature.celsius.zip(report.temperature.source);
    let limits = limits_text(&report.temperature.limits);
    let others: Vec<String> = report
        .temperature
        .readings
        .iter()
        .filter(|r| Some(r.source) != report.temperature.source)
        .map(|r| match (r.celsius, r.plausible) {
            (Some(c), true) => format!("{} {}", r.source.word(), c.0),
            (Some(c), false) => format!("{} {} (implausible)", r.source.word(), c.0),
            (None, _) => format!("{} unknown", r.source.word()),
        })
        .collect();
    out.push_str(&key_values(&[
        (
            "own verdict",
            report
                .self_assessment_passed
                .map(|p| if p { "passed" } else { "FAILED" }.to_owned()),
        ),
        (
            "life left",
            report
                .life
                .as_ref()
                .map(|l| format!("{} % ({})", l.left_percent, l.source)),
        ),
        (
            "temperature",
            temperature.map(|(c, s)| format!("{} °C ({})", c.0, s.word())),
        ),
        ("also says", (!others.is_empty()).then(|| others.join(", "))),
        ("limits", (!limits.is_empty()).then_some(limits)),
        ("self-test", smart.self_test.status.as_ref().and_then(self_test)),
        ("power-on", smart.power_on_hours().map(hours)),
        ("power cycles", smart.power_cycles.map(|n| n.to_string())),
    ]));
    if report.temperature.sources_disagree {
        out.push_str("  the temperature sources disagree by more than 5 °C\n");
    }
    out.push('\n');
    out.push_str(&attributes(&smart.attributes, style));
    out.extend(report.logs.as_ref().map(logs::render));
    if !report.not_read.is_empty() {
        out.push_str("\nNot read:\n");
        for what in &report.not_read {
            out.push_str(&format!("  {}\n", for_terminal(what)));
        }
    }
    out
}

/// A test that runs, or the result of the last one; a drive that never ran one has code 0, as after a good one.
fn self_test(status: &SelfTestStatus) -> Option<String> {
    let text = status.status.text();
    match status.remaining_percent {
        Some(left) => Some(format!("{text}, {left} % left")),
        None => (status.code != 0).then(|| text.to_owned()),
    }
}

fn hours(hours: u64) -> String {
    let days = hours / 24;
    match days {
        0..=59 => format!("{hours} h"),
        _ => format!("{hours} h ({:.1} years)", hours as f64 / 8766.0),
    }
}

fn attributes(list: &[AttributeReport], style: Style) -> String {
    let rows = list
        .iter()
        .map(|a| {
            let failed = match a.when_failed {
                Some(WhenFailed::Now) => style.paint(Tone::Bad, "now"),
                Some(WhenFailed::Past) => style.paint(Tone::Warn, "past"),
                None => String::new(),
            };
            vec![
                a.id.to_string(),
                a.name.to_owned(),
                a.value.to_string(),
                a.worst.to_string(),
                a.threshold.map(|t| t.to_string()).unwrap_or_default(),
                if a.prefailure { "failure" } else { "age" }.to_owned(),
                failed,
                for_terminal(&a.raw_text.to_string()),
            ]
        })
        .collect();
    table(
        &[
            "ID",
            "Attribute",
            "Value",
            "Worst",
            "Limit",
            "Kind",
            "Failed",
            "Raw",
        ],
        rows,
    )
}

/// Bytes as people read them, with the exact number.
pub fn exact_bytes(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", human_bytes(bytes))
}
