//! The verdict on a run: of its rows, each by itself, and of what needs no detector.

use serde_json::json;

use super::judge;
use super::plan::Plan;
use super::requests::StageResult;
use crate::bench::run::Ending;
use crate::bench::series::{Context, Moved, Op, Sample, Series};
use crate::bench::verdict::{self, Cause, Verdict};

/// The verdict on a run, and what is to be said beside it. Rows are requests of different kinds, whose rates differ by nature:
/// each is judged on its own. Events and evidence of all of them count, and the most serious verdict is the headline.
pub(super) fn judge_rows(plan: &Plan, results: &[StageResult], series: &Series) -> (Verdict, Option<String>) {
    /// With fewer requests a second the rate of a second is a matter of chance.
    const ENOUGH_PER_S: f64 = 20.0;
    if plan.stages.iter().all(|s| s.row.is_none()) {
        return (judge(series), None);
    }
    let mut judged: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    let (mut slow, mut hung): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for (stage, result) in plan.stages.iter().zip(results) {
        let (Some(key), Some(end)) = (&stage.row, result.end.filter(|end| *end > result.start)) else {
            continue;
        };
        let span = (result.start.as_secs_f64(), end.as_secs_f64());
        let requests = result.bytes as f64 / stage.block_bytes.max(1) as f64;
        if result.hang.is_some() {
            hung.push(&key.row);
        } else if requests < ENOUGH_PER_S * (span.1 - span.0) {
            slow.push(&key.row);
        } else if let Some((_, spans)) = judged.iter_mut().find(|(row, _)| *row == key.row) {
            spans.push(span);
        } else {
            judged.push((&key.row, vec![span]));
        }
    }
    // A row of which some runs were fast enough was judged by these.
    slow.retain(|row| judged.iter().all(|(known, _)| known != row));
    slow.dedup();
    let names: Vec<&str> = judged.iter().map(|(row, _)| *row).collect();
    let note = [
        ("judged by itself", &names),
        ("too slow to judge (fewer than 20 requests a second)", &slow),
        ("not judged, it hung", &hung),
    ]
    .iter()
    .filter(|(_, rows)| !rows.is_empty())
    .map(|(what, rows)| format!("{what}: {}", rows.join("; ")))
    .collect::<Vec<_>>()
    .join(". ");
    let verdicts = judged
        .iter()
        .map(|(row, spans)| (*row, judge_row(series, spans)))
        .collect();
    let verdict = one_of(verdicts, series);
    (verdict, Some(note).filter(|note| !note.is_empty()))
}

/// The verdict on the seconds of one row.
fn judge_row(series: &Series, spans: &[(f64, f64)]) -> Verdict {
    let of_row = Series {
        samples: series
            .samples
            .iter()
            .filter(|s| {
                spans
                    .iter()
                    .any(|(from, to)| s.t_s - 1.0 >= *from && s.t_s <= *to)
            })
            .cloned()
            .collect(),
        context: Context {
            notices: Vec::new(),
            ..series.context.clone()
        },
    };
    let mut verdict = judge(&of_row);
    // What lasts to the end of the row does not last to the end of the run.
    let end = of_row.samples.last().map(|s| s.t_s);
    if end < series.samples.last().map(|s| s.t_s) {
        for event in &mut verdict.events {
            event.end_s = event.end_s.or(end);
        }
    }
    verdict
}

/// One verdict out of those on rows, in the order of the plan.
pub(super) fn one_of(mut rows: Vec<(&str, Verdict)>, series: &Series) -> Verdict {
    /// Metrics that are of the run, not of what was judged.
    const OF_RUN: [&str; 9] = [
        "max_temp_c",
        "temp_rise_c",
        "steady_temp_c",
        "duration_s",
        "written_bytes",
        "read_bytes",
        "peak_w",
        "idle_w",
        "j_per_gb",
    ];
    let headline = (0..rows.len()).min_by_key(|i| rows.get(*i).map(|(_, v)| v.cause));
    let Some(headline) = headline else {
        return judge(&Series {
            samples: Vec::new(),
            context: series.context.clone(),
        });
    };
    for (row, verdict) in &mut rows {
        for evidence in &mut verdict.evidence {
            evidence.value = if evidence.value.is_empty() {
                (*row).to_owned()
            } else {
                format!("{row}: {}", evidence.value)
            };
        }
    }
    let (_, mut verdict) = rows.remove(headline);
    for (_, other) in rows {
        let known = verdict.cause == other.cause
            || other.cause == Cause::None
            || verdict.alternatives.iter().any(|a| a.cause == other.cause);
        if !known {
            let (cause, score) = (other.cause, other.confidence);
            verdict.alternatives.push(verdict::Alternative { cause, score });
        }
        verdict.events.extend(other.events);
        verdict.evidence.extend(other.evidence);
    }
    verdict.events.sort_by(|a, b| a.onset_s.total_cmp(&b.onset_s));
    // What a row does not show: bytes and metrics of the whole run.
    for event in &mut verdict.events {
        event.bytes = Some(Onset::at(&series.samples, event.onset_s).total_bytes);
    }
    if let Some(onset_s) = verdict.onset_s {
        let temp_c = verdict.onset_temp_c;
        let onset = Onset::at(&series.samples, onset_s);
        Onset { temp_c, ..onset }.becomes_that_of(&mut verdict, onset_s);
    }
    let whole = judge(series).metrics;
    for name in OF_RUN {
        verdict.metrics.remove(name);
        if let Some(value) = whole.get(name) {
            verdict.metrics.insert(name.to_owned(), value.clone());
        }
    }
    verdict
}

/// What needs no detector, because it was waited for or told: hangs, and the loss of the device. They are events of the link,
/// and the headline unless there is a graver one, or the same earlier.
pub(super) fn add_link(
    verdict: &mut Verdict,
    plan: &Plan,
    results: &[StageResult],
    ending: Ending,
    samples: &[Sample],
) {
    for (stage, result) in plan.stages.iter().zip(results) {
        if let Some((at, waited)) = result.hang {
            let value = format!("{}: no completion for {:.0} s", stage.name, waited.as_secs_f64());
            let onset_s = at.saturating_sub(waited).as_secs_f64();
            add_link_event(
                verdict,
                samples,
                ("hang", value),
                stage.op,
                onset_s,
                Some(at.as_secs_f64()),
            );
        }
    }
    if ending == Ending::Lost
        && let Some((stage, result)) = plan.stages.iter().zip(results).next_back()
    {
        let at = result.end.map(|end| end.as_secs_f64());
        let onset_s = at
            .or(samples.last().map(|s| s.t_s))
            .unwrap_or(result.start.as_secs_f64());
        let value = format!("{}: the device is gone", stage.name);
        add_link_event(verdict, samples, ("lost", value), stage.op, onset_s, None);
    }
    verdict.events.sort_by(|a, b| a.onset_s.total_cmp(&b.onset_s));
}

fn add_link_event(
    verdict: &mut Verdict,
    samples: &[Sample],
    (kind, value): (&str, String),
    op: Op,
    onset_s: f64,
    end_s: Option<f64>,
) {
    // Nothing moved after the onset: the interval in which it lies counts as a whole.
    let until = samples.partition_point(|s| s.t_s < onset_s) + 1;
    let onset = Onset::of(samples.get(..until).unwrap_or(samples));
    verdict.events.push(verdict::Event {
        cause: Cause::Link,
        kind: kind.to_owned(),
        onset_s,
        end_s,
        op: Some(op).filter(|op| *op != Op::Idle),
        before_mb_s: None,
        after_mb_s: Some(0.0),
        drop_pct: Some(100.0),
        temp_c: onset.temp_c,
        bytes: Some(onset.total_bytes),
    });
    verdict.evidence.push(verdict::Evidence {
        feature: kind.to_owned(),
        value,
        weight: 5.0,
        speaks_for: Cause::Link,
    });
    let earlier = verdict.onset_s.is_none_or(|known| onset_s < known);
    if verdict.cause < Cause::Link || (verdict.cause == Cause::Link && !earlier) {
        return;
    }
    verdict.alternatives.retain(|a| a.cause != Cause::Link);
    if !matches!(verdict.cause, Cause::Link | Cause::None)
        && verdict.alternatives.iter().all(|a| a.cause != verdict.cause)
    {
        let (cause, score) = (verdict.cause, verdict.confidence);
        verdict.alternatives.push(verdict::Alternative { cause, score });
    }
    verdict.cause = Cause::Link;
    verdict.throttled = false;
    verdict.confidence = 0.95;
    verdict.detected_s = Some(end_s.unwrap_or(onset_s));
    verdict.ambiguous = false;
    verdict.experiment = None;
    // What was measured of the former headline.
    verdict.metrics.retain(|name, _| {
        ![
            "throttled_mb_s",
            "drop_pct",
            "time_to_throttle_s",
            "cache_bytes",
            "temp_slope",
        ]
        .iter()
        .any(|of| name.starts_with(of))
    });
    onset.becomes_that_of(verdict, onset_s);
}

/// What had been moved at an onset.
#[derive(Debug, Clone, Copy, Default)]
struct Onset {
    written_bytes: u64,
    total_bytes: u64,
    temp_c: Option<f64>,
}

impl Onset {
    /// Before what begins at a time.
    fn at(samples: &[Sample], t_s: f64) -> Self {
        let until = samples.partition_point(|s| s.t_s <= t_s);
        Self::of(samples.get(..until).unwrap_or(samples))
    }

    /// After these samples.
    fn of(samples: &[Sample]) -> Self {
        let moved = Moved::by(samples);
        Self {
            written_bytes: moved.written_bytes,
            total_bytes: moved.total_bytes,
            temp_c: samples.iter().rev().find_map(|s| s.temp_c),
        }
    }

    fn becomes_that_of(self, verdict: &mut Verdict, onset_s: f64) {
        verdict.onset_s = Some(onset_s);
        verdict.onset_written_bytes = Some(self.written_bytes);
        verdict.onset_total_bytes = Some(self.total_bytes);
        verdict.onset_temp_c = self.temp_c;
        let read_bytes = self.total_bytes - self.written_bytes;
        let metrics = &mut verdict.metrics;
        metrics.insert("onset_s".to_owned(), json!(onset_s));
        metrics.insert("onset_written_bytes".to_owned(), json!(self.written_bytes));
        metrics.insert("onset_read_bytes".to_owned(), json!(read_bytes));
        metrics.remove("onset_temp_c");
        if let Some(temp_c) = self.temp_c {
            metrics.insert("onset_temp_c".to_owned(), json!(temp_c));
        }
    }
}
