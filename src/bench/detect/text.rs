//! A verdict in words (throttling-detection.md §7).

use std::fmt::Write;

use crate::bench::series::{Op, Series};
use crate::bench::verdict::{Cause, Event, Verdict};
use crate::units::human_bytes;

fn name(cause: Cause) -> &'static str {
    match cause {
        Cause::Thermal => "thermal throttling",
        Cause::PeriodicStall => "periodic stalls",
        Cause::Link => "the link",
        Cause::CapacityCliff => "the drive is nearly full",
        Cause::SlcCache => "the write cache is full",
        Cause::HostNoise => "the host",
        Cause::None => "no throttling",
    }
}

fn kind(event: &Event) -> &'static str {
    match event.kind.as_str() {
        "page_cache" => "page cache",
        "plateau" => "a plateau that ended by itself",
        "load" => "other load",
        "unknown_fall" => "a fall of reads that nothing explains",
        "renegotiated" => "a slower link after a stop",
        "reset" => "a reset",
        "gradual" => "little by little",
        "duty" => "in turns",
        "stalls" => "stalls",
        "cliff" => "",
        _ => "a step",
    }
}

fn figure(verdict: &Verdict, name: &str) -> Option<f64> {
    verdict.metrics.get(name).and_then(serde_json::Value::as_f64)
}

/// A rate with as many digits as it is worth.
fn rate(mb_s: f64) -> String {
    if mb_s < 9.95 {
        format!("{mb_s:.1}")
    } else {
        format!("{mb_s:.0}")
    }
}

/// `write 100 -> 80 MB/s (-20 %)`.
fn fall(event: &Event) -> Option<String> {
    let (before, after) = (event.before_mb_s?, event.after_mb_s?);
    let op = event.op.map_or("all", Op::word);
    let pct = event
        .drop_pct
        .map_or_else(String::new, |d| format!(" ({:+.0} %)", -d));
    Some(format!("{op} {} -> {} MB/s{pct}", rate(before), rate(after)))
}

/// The verdict in a few lines, each ended by a line feed. Strings in it are not escaped.
pub fn render(verdict: &Verdict) -> String {
    let mut out = String::new();
    let doubt = if verdict.ambiguous { ", ambiguous" } else { "" };
    let confidence = verdict.confidence;
    if verdict.cause == Cause::None {
        let seconds = figure(verdict, "duration_s").unwrap_or(0.0);
        let moved = ["written_bytes", "read_bytes"]
            .iter()
            .filter_map(|n| verdict.metrics.get(*n).and_then(serde_json::Value::as_u64))
            .fold(0, u64::saturating_add);
        let _ = writeln!(
            out,
            "verdict: no throttling in {seconds:.0} s / {} (confidence {confidence:.2})",
            human_bytes(moved)
        );
        for op in ["write", "read"] {
            if let Some(level) = figure(verdict, &format!("unthrottled_mb_s{{{op}}}")) {
                let _ = writeln!(out, "  {op} {} MB/s", rate(level));
            }
        }
    } else {
        let first = verdict.events.iter().find(|e| e.cause == verdict.cause);
        let kind = match first.map(kind) {
            Some("") | None => String::new(),
            Some(kind) => format!(": {kind}"),
        };
        let _ = writeln!(
            out,
            "verdict: {}{kind} (confidence {confidence:.2}{doubt})",
            name(verdict.cause)
        );
        headline(&mut out, verdict);
    }
    arguments(&mut out, verdict);
    others(&mut out, verdict);
    if let Some(experiment) = &verdict.experiment {
        let _ = writeln!(out, "  to settle it: {experiment}");
    }
    out
}

/// Levels and onset of the headline.
fn headline(out: &mut String, verdict: &Verdict) {
    let mine: Vec<&Event> = verdict
        .events
        .iter()
        .filter(|e| e.cause == verdict.cause)
        .collect();
    let mut falls: Vec<String> = Vec::new();
    let mut ops: Vec<Option<Op>> = Vec::new();
    for event in &mine {
        if !ops.contains(&event.op) {
            ops.push(event.op);
            falls.extend(fall(event));
        }
    }
    if !falls.is_empty() {
        let _ = writeln!(out, "  {}", falls.join(", "));
    }
    let Some(onset) = verdict.onset_s else { return };
    let mut parts = vec![format!("onset {onset:.0} s")];
    if let Some(written) = verdict.onset_written_bytes {
        if written > 0 {
            parts.push(format!("{} written", human_bytes(written)));
        }
        let read = verdict.onset_total_bytes.unwrap_or(0).saturating_sub(written);
        if read > 0 {
            parts.push(format!("{} read", human_bytes(read)));
        }
    }
    if let Some(t) = verdict.onset_temp_c {
        parts.push(format!("{t:.0} °C"));
    }
    if let Some(detected) = verdict.detected_s {
        parts.push(format!("noticed at {detected:.0} s"));
    }
    if mine.len() > 1 {
        parts.push(format!("{} events", mine.len()));
    }
    let _ = writeln!(out, "  {}", parts.join(", "));
}

/// One line per piece of evidence.
fn arguments(out: &mut String, verdict: &Verdict) {
    let mut lines: Vec<(bool, &str, f64)> = Vec::new();
    for e in &verdict.evidence {
        let weight = if e.speaks_for == verdict.cause {
            e.weight
        } else {
            -e.weight
        };
        // The same feature may weigh on both sides: it is said once, by its greater weight.
        match lines.iter_mut().find(|l| l.1 == e.value) {
            Some(line) if weight.abs() > line.2.abs() => *line = (weight > 0.0, &e.value, weight),
            Some(_) => {}
            None => lines.push((weight > 0.0, &e.value, weight)),
        }
    }
    for (side, word) in [(true, "for:"), (false, "against:")] {
        for (_, value, weight) in lines.iter().filter(|l| l.0 == side) {
            let _ = writeln!(out, "  {word:<9}{value} ({weight:+.0})");
        }
    }
}

/// What else happened.
fn others(out: &mut String, verdict: &Verdict) {
    for event in verdict.events.iter().filter(|e| e.cause != verdict.cause) {
        let mut line = format!("  also:    {}", name(event.cause));
        let kind = kind(event);
        if !kind.is_empty() {
            let _ = write!(line, ": {kind}");
        }
        let _ = write!(line, ", from {:.0} s", event.onset_s);
        if let Some(fall) = fall(event) {
            let _ = write!(line, ", {fall}");
        }
        let _ = writeln!(out, "{line}");
    }
}

/// The rate over time in one line of block characters, at most `width` of them; idle times are blank.
pub fn curve(series: &Series, width: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let rates: Vec<Option<f64>> = series
        .samples
        .iter()
        .map(|s| (s.op != Op::Idle && s.mb_s.is_finite() && s.mb_s >= 0.0).then_some(s.mb_s))
        .collect();
    if rates.is_empty() || width == 0 {
        return String::new();
    }
    let means: Vec<Option<f64>> = rates
        .chunks(rates.len().div_ceil(width))
        .map(|chunk| {
            let active: Vec<f64> = chunk.iter().flatten().copied().collect();
            (!active.is_empty()).then(|| active.iter().sum::<f64>() / active.len() as f64)
        })
        .collect();
    let highest = means.iter().flatten().copied().fold(0.0, f64::max);
    means
        .iter()
        .map(|mean| match mean {
            None => ' ',
            Some(_) if highest <= 0.0 => '▁',
            Some(m) => {
                let step = ((m / highest) * 8.0).ceil().clamp(1.0, 8.0) as usize;
                BLOCKS.get(step - 1).copied().unwrap_or('█')
            }
        })
        .collect()
}
