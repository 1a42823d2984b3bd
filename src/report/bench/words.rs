//! Figures and findings in words, shared by all forms. Nothing is escaped here: each writer escapes whole lines.

use crate::bench::run::{Device, Ending, Run};
use crate::bench::series::{Notice, Op, Sample};
use crate::bench::verdict::{Cause, Event, Evidence, Verdict};
use crate::units::human_bytes;

/// A figure and its unit; bytes in a unit that fits.
pub fn figure(figure: &crate::bench::run::Figure) -> (String, String) {
    if figure.unit == "B" && figure.value >= 0.0 {
        let text = human_bytes(figure.value as u64);
        if let Some((value, unit)) = text.split_once(' ') {
            return (value.to_owned(), unit.to_owned());
        }
    }
    (number(figure.value), figure.unit.clone())
}

/// A number with three significant digits or all of its whole ones.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || size >= 1e9 {
        return format!("{value:.2e}");
    }
    let digits = match size {
        s if s >= 99.95 || s == 0.0 => 0,
        s if s >= 9.995 => 1,
        s if s >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    if text.trim_start_matches(['-', '0', '.']).is_empty() {
        return "0".to_owned();
    }
    text
}

/// A time on the run's clock: `12.5 s`, `291 s`.
pub fn seconds(value: f64) -> String {
    if value.is_finite() && value.abs() < 1e9 {
        let text = format!("{value:.1}");
        format!("{} s", text.strip_suffix(".0").unwrap_or(&text))
    } else {
        format!("{} s", number(value))
    }
}

/// A temperature.
pub fn celsius(value: f64) -> String {
    if value.is_finite() && value.abs() < 1e6 {
        let text = format!("{value:.1}");
        format!("{} °C", text.strip_suffix(".0").unwrap_or(&text))
    } else {
        format!("{} °C", number(value))
    }
}

/// A rate.
pub fn rate(value: f64) -> String {
    format!("{} MB/s", number(value))
}

/// The cause as a headline.
pub fn cause_title(cause: Cause) -> &'static str {
    match cause {
        Cause::Thermal => "thermal throttling",
        Cause::PeriodicStall => "periodic stalls",
        Cause::Link => "link trouble",
        Cause::CapacityCliff => "capacity cliff",
        Cause::SlcCache => "write cache full",
        Cause::HostNoise => "host noise",
        Cause::None => "no throttling",
    }
}

/// What the cause means, one sentence.
pub fn cause_meaning(cause: Cause) -> &'static str {
    match cause {
        Cause::Thermal => "The firmware slows the drive because it is warm.",
        Cause::PeriodicStall => "Garbage collection or the firmware stops the drive at regular distance.",
        Cause::Link => "A reset, an aborted command or a slower link held the transfer up.",
        Cause::CapacityCliff => "The drive is nearly full and has to make room while it writes.",
        Cause::SlcCache => "The fast write cache is full; what follows goes to the slower flash.",
        Cause::HostNoise => "The host, not the drive: other load, CPU or the page cache.",
        Cause::None => "The rate is steady, however slow or warm the drive is.",
    }
}

/// What a kind of event means, for those that do not explain themselves.
fn kind_meaning(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "step" => "the rate falls at once and stays low",
        "gradual" => "the rate falls little by little",
        "duty" => "the rate swings between two levels",
        "reset" => "the device was reset",
        "renegotiated" => "the link came back at another speed",
        "stalls" => "the transfer stops again and again",
        "page_cache" => "the host's memory took the data, faster than the link can",
        "plateau" => "a lower level for a while, that ends by itself",
        "load" => "irregular losses",
        "cliff" => "the rate falls and stays low",
        "unknown_fall" => "the rate falls, and nothing here says why",
        _ => return None,
    })
}

/// `write 100 → 80 MB/s (−20 %)`, as far as it is known.
pub fn fall(event: &Event) -> Option<String> {
    let who = event.op.map_or("both", Op::word);
    let drop = event
        .drop_pct
        .map(|pct| {
            let sign = if pct >= 0.0 { "−" } else { "+" };
            format!(" ({sign}{} %)", number(pct.abs()))
        })
        .unwrap_or_default();
    match (event.before_mb_s, event.after_mb_s) {
        (Some(before), Some(after)) => Some(format!("{who} {} → {}{drop}", number(before), rate(after))),
        (Some(before), None) => Some(format!("{who} from {}{drop}", rate(before))),
        (None, Some(after)) => Some(format!("{who} at {}{drop}", rate(after))),
        (None, None) => event.op.map(|op| format!("{}{drop}", op.word())),
    }
}

/// `thermal, step`.
pub fn event_name(event: &Event) -> String {
    if event.kind.is_empty() {
        event.cause.word().to_owned()
    } else {
        format!("{}, {}", event.cause.word(), event.kind)
    }
}

/// When and at which state an event began, and until when it lasted.
pub fn event_place(event: &Event) -> String {
    let mut place = format!("at {}", seconds(event.onset_s));
    if let Some(bytes) = event.bytes {
        place.push_str(&format!(", after {}", human_bytes(bytes)));
    }
    if let Some(temp) = event.temp_c {
        place.push_str(&format!(", at {}", celsius(temp)));
    }
    match event.end_s {
        Some(end) => place.push_str(&format!(", until {}", seconds(end))),
        None => place.push_str(", to the end"),
    }
    place
}

/// An event in one sentence.
pub fn event_line(event: &Event) -> String {
    let mut line = format!("{} {}", event_name(event), event_place(event));
    if let Some(fall) = fall(event) {
        line.push_str(&format!(": {fall}"));
    }
    if let Some(meaning) = kind_meaning(&event.kind) {
        line.push_str(&format!("; {meaning}"));
    }
    line
}

/// What a piece of evidence does to the headline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// It supports it.
    For,
    /// It speaks against it, or for another cause.
    Against,
    /// It rules another cause out.
    Not,
}

impl Side {
    /// The word in front of a line.
    pub fn word(self) -> &'static str {
        match self {
            Self::For => "for",
            Self::Against => "against",
            Self::Not => "not",
        }
    }
}

/// On which side a piece of evidence stands.
pub fn side(evidence: &Evidence, cause: Cause) -> Side {
    match (evidence.speaks_for == cause, evidence.weight >= 0.0) {
        (true, true) => Side::For,
        (true, false) | (false, true) => Side::Against,
        (false, false) => Side::Not,
    }
}

/// The evidence of a verdict with its side: what is for it first, then against, then what rules others out.
pub fn evidence(verdict: &Verdict) -> Vec<(Side, &Evidence)> {
    let mut sorted: Vec<_> = verdict
        .evidence
        .iter()
        .map(|e| (side(e, verdict.cause), e))
        .collect();
    sorted.sort_by_key(|(side, _)| *side);
    sorted
}

/// `both operations fall: read -28 %, write -24 %`, with the other cause where it speaks of another.
pub fn evidence_line(evidence: &Evidence, cause: Cause) -> String {
    let mut line = evidence.feature.replace('_', " ");
    if !evidence.value.is_empty() {
        line.push_str(&format!(": {}", evidence.value));
    }
    match side(evidence, cause) {
        Side::For => line,
        Side::Against if evidence.speaks_for == cause => line,
        Side::Against => format!("{line} (speaks for {})", evidence.speaks_for.word()),
        Side::Not => format!("{} ({line})", evidence.speaks_for.word()),
    }
}

/// The headline: `thermal throttling (confidence 0.93)`.
pub fn headline(verdict: &Verdict, over: Option<&str>) -> String {
    let mut line = cause_title(verdict.cause).to_owned();
    if let (Cause::None, Some(over)) = (verdict.cause, over) {
        line.push_str(&format!(" in {over}"));
    }
    line.push_str(&format!(" (confidence {:.2})", verdict.confidence));
    if verdict.ambiguous {
        line.push_str(", open");
    }
    line
}

/// `onset 291 s, 17.9 GB written, 15.6 GB read, 45 °C`.
pub fn onset_line(verdict: &Verdict) -> Option<String> {
    let mut line = format!("onset {}", seconds(verdict.onset_s?));
    if let Some(written) = verdict.onset_written_bytes {
        line.push_str(&format!(", {} written", human_bytes(written)));
    }
    match (verdict.onset_total_bytes, verdict.onset_written_bytes) {
        (Some(total), Some(written)) if total > written => {
            line.push_str(&format!(", {} read", human_bytes(total - written)));
        }
        (Some(total), None) => line.push_str(&format!(", {} moved", human_bytes(total))),
        _ => {}
    }
    if let Some(temp) = verdict.onset_temp_c {
        line.push_str(&format!(", {}", celsius(temp)));
    }
    if let Some(detected) = verdict.detected_s {
        line.push_str(&format!(" (known at {})", seconds(detected)));
    }
    Some(line)
}

/// The first fall of the headline cause for each operation, in one line.
pub fn falls_line(verdict: &Verdict) -> Option<String> {
    let mut ops = Vec::new();
    let mut parts = Vec::new();
    for event in verdict.events.iter().filter(|e| e.cause == verdict.cause) {
        if ops.contains(&event.op) || event.before_mb_s.is_none() {
            continue;
        }
        ops.push(event.op);
        parts.extend(fall(event));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The verdict in words: one line of verdict, then one line for each piece of evidence. `over` says what it was judged on.
/// Not escaped.
pub fn verdict_lines(verdict: &Verdict, over: Option<&str>) -> Vec<String> {
    let mut lines = vec![format!("verdict: {}", headline(verdict, over))];
    lines.extend(falls_line(verdict).map(|l| format!("  {l}")));
    lines.extend(onset_line(verdict).map(|l| format!("  {l}")));
    for (side, evidence) in evidence(verdict) {
        lines.push(format!(
            "  {:<8} {}",
            format!("{}:", side.word()),
            evidence_line(evidence, verdict.cause)
        ));
    }
    if verdict.ambiguous {
        lines.push("  the series alone cannot decide".to_owned());
    }
    if let Some(experiment) = &verdict.experiment {
        lines.push(format!("  try:     {experiment}"));
    }
    lines
}

/// The device without its name: `Model, serial S, firmware F, behind BRIDGE`.
pub fn device_parts(device: &Device) -> Vec<(&'static str, String)> {
    let mut parts = vec![("device", device.name.clone())];
    let mut add = |name, value: &Option<String>| parts.extend(value.clone().map(|v| (name, v)));
    add("model", &device.model);
    add("serial", &device.serial);
    add("firmware", &device.firmware);
    add("bridge", &device.bridge);
    parts
}

/// A title: the model, or else the name.
pub fn title(device: &Device) -> String {
    let mut title = device.model.clone().unwrap_or_else(|| device.name.clone());
    if device.simulated {
        title.push_str(" [simulated]");
    }
    title
}

/// `seq, random data`, options left out.
pub fn workload_line(run: &Run) -> String {
    if run.workload.data.is_empty() {
        run.workload.name.clone()
    } else {
        format!("{}, {} data", run.workload.name, run.workload.data)
    }
}

/// `io_uring, 131072 bytes × 32 (reached 31.8), 12345 requests, 0 failed`.
pub fn engine_line(run: &Run) -> String {
    let engine = &run.engine;
    let reached = engine
        .reached_depth
        .map(|d| format!(" (reached {})", number(d)))
        .unwrap_or_default();
    format!(
        "{}, {} bytes × {}{reached}, {} requests, {} failed",
        engine.name, engine.block_bytes, engine.depth, engine.requests, engine.errors
    )
}

/// How the temperature was read.
pub fn sampler_line(run: &Run) -> String {
    let sampler = &run.sampler;
    let Some(source) = &sampler.source else {
        return "no temperature".to_owned();
    };
    let mut line = source.clone();
    if let Some(interval) = sampler.interval_s {
        line.push_str(&format!(" every {}", seconds(interval)));
    }
    if let Some(cost) = sampler.cost_ms {
        line.push_str(&format!(", {} ms a reading", number(cost)));
    }
    line.push_str(&format!(
        ", {} readings, {} failed",
        sampler.readings, sampler.failures
    ));
    if let Some(retired) = sampler.retired_s {
        line.push_str(&format!(", given up at {}", seconds(retired)));
    }
    line
}

/// How the run ended.
pub fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Complete => "complete",
        Ending::Aborted => "stopped early",
        Ending::TooHot => "ended because the drive was too hot",
        Ending::Lost => "ended because the device was lost",
    }
}

/// What the run was judged on: `60 s / 12.0 GB`.
pub fn extent(samples: &[Sample]) -> String {
    let last = samples.last();
    format!(
        "{} / {}",
        seconds(last.map_or(0.0, |s| s.t_s)),
        human_bytes(last.map_or(0, |s| s.cumulative_bytes))
    )
}

/// What the system said, from both places, without what was said twice.
pub fn notices(run: &Run) -> Vec<&Notice> {
    let mut all: Vec<&Notice> = Vec::new();
    for notice in run.notices.iter().chain(&run.context.notices) {
        if !all.contains(&notice) {
            all.push(notice);
        }
    }
    all.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    all
}

/// A JSON value as a person reads it: strings bare, the rest as JSON.
pub fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Number(number) if number.is_f64() => {
            self::number(number.as_f64().unwrap_or(f64::NAN))
        }
        other => other.to_string(),
    }
}
