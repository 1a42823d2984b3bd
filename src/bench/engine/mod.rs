//! Runs a workload and watches rate and temperature on one clock.
//!
//! [`plan()`] lays out the stages, [`requests`] keeps their requests in flight, [`sampler`] reads the temperature beside them,
//! [`recorder`] makes samples of what comes back: all of them pure. [`sim`] drives them on the virtual clock of a simulated
//! device; that is the only kind of target in this version.

pub mod actor;
pub mod feed;
pub mod figures;
pub mod plan;
pub mod random;
pub mod recorder;
pub mod requests;
pub mod sampler;
pub mod sets;
pub mod sim;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

pub use plan::{Amount, Content, Options, WORKLOADS, Workload, plan};

use self::plan::{Plan, RowKey};
use self::requests::StageResult;
use self::sim::SimDriver;
use super::detect;
use super::run::{Device, Ending, Engine, Phase, Row, Run, SCHEMA, Workload as Done};
use super::series::{Context, Moved, Notice, Op, Sample, Series};
use super::verdict::{self, Cause, Verdict};
use crate::drive::{Care, Drive, DriveError, OpenOptions};
use crate::sys::{NodeFacts, UsbFacts};
use crate::transport::Transport;
use crate::transport::sim::SimTransport;

/// Why there was no run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The target is of a kind that this version does not run on.
    #[error("{target}: benchmarks run on simulated devices only in this version")]
    NotSimulated {
        /// The target.
        target: String,
    },
    /// Nothing permits writing to a real device.
    #[error("{target}: a benchmark writes, and nothing permits that on a real device in this version")]
    NotPermitted {
        /// The target.
        target: String,
    },
    /// Options that do not go together, or do not fit the device.
    #[error("{why}")]
    Options {
        /// Which.
        why: String,
    },
    /// The drive could not be opened.
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// Somebody who looks on, and may stop the run.
pub trait Watch {
    /// The run is about to begin; what is known of device and link.
    fn begin(&mut self, _context: &Context) {}
    /// A stage begins.
    fn stage(&mut self, _name: &str) {}
    /// An interval is over; all samples so far.
    fn sample(&mut self, _samples: &[Sample]) {}
    /// Whether the run is to end.
    fn stop(&mut self) -> bool {
        false
    }
}

/// Looks the other way.
#[derive(Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// Every file of a run: `drivethru-manifest/1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// `drivethru-manifest/1`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// Whether what was read back was compared.
    pub verified: bool,
    /// The folders with their files.
    pub sets: Vec<sets::Set>,
}

/// A run and what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The document.
    pub run: Run,
    /// Files, for workloads that copy some.
    pub manifest: Option<Manifest>,
}

/// The verdict on a series.
pub fn judge(series: &Series) -> Verdict {
    detect::analyze(series)
}

/// The verdict on a run, and what is to be said beside it. Rows are requests of different kinds, whose rates differ by nature:
/// each is judged on its own. Events and evidence of all of them count, and the most serious verdict is the headline.
fn judge_rows(plan: &Plan, results: &[StageResult], series: &Series) -> (Verdict, Option<String>) {
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
fn one_of(mut rows: Vec<(&str, Verdict)>, series: &Series) -> Verdict {
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
fn add_link(verdict: &mut Verdict, plan: &Plan, results: &[StageResult], ending: Ending, samples: &[Sample]) {
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

/// Runs a workload on `target`.
///
/// # Errors
/// The target is not simulated, the options do not fit, or the drive cannot be opened.
pub fn run(
    target: &str,
    options: &Options,
    open: &OpenOptions,
    watch: &mut dyn Watch,
) -> Result<Outcome, BenchError> {
    if !target.starts_with("sim:") {
        let target = target.to_owned();
        return Err(if target.starts_with("/dev/") || target.starts_with("usb:") {
            BenchError::NotPermitted { target }
        } else {
            BenchError::NotSimulated { target }
        });
    }
    let sim = SimTransport::open(&without_bytes(target)).map_err(|error| DriveError::BadName {
        name: target.to_owned(),
        why: error.to_string(),
    })?;
    let facts = sim.facts();
    let sim = sim.shared();
    let has_meter = sim.with(|sim| sim.target_mut().energy_joules().is_some());
    let capacity_bytes = facts.size_bytes.unwrap_or_default();
    let mut plan = plan(options, capacity_bytes).map_err(|why| BenchError::Options { why })?;
    if has_meter {
        plan.rest_at_the_end();
    }
    let plan = Arc::new(plan);
    let drive = Drive::from_transport(Box::new(sim.clone()), facts.clone(), open, Care::MayWake)?;
    let known = Context {
        capacity_bytes: Some(capacity_bytes),
        link_mb_s: facts.usb.as_ref().and_then(ceiling_mb_s),
        ..Context::default()
    };
    watch.begin(&known);
    let block_bytes = u64::from(facts.logical_block_bytes.unwrap_or(512));
    let mut driver = SimDriver::new(sim.clone(), drive, block_bytes, &plan, options, watch);
    driver.prepare();
    let started = sim.clock().rfc3339();
    let ending = driver.run();
    let device = device_of(target, &driver, &facts);
    let told = driver.sampler.told.clone();
    let phases = phases(&plan, &driver.requests.results, &driver.recorder.samples);
    let notices = notices(&plan, &driver.requests.results);
    let context = Context {
        temp_interval_s: told.interval_s,
        has_temp: Some(told.source.is_some()),
        notices: notices.clone(),
        ..known
    };
    let (rows, row_figures) = rows(&plan, &driver.requests.results);
    let series = Series {
        samples: std::mem::take(&mut driver.recorder.samples),
        context,
    };
    let (mut verdict, judged) = judge_rows(&plan, &driver.requests.results, &series);
    add_link(
        &mut verdict,
        &plan,
        &driver.requests.results,
        ending,
        &series.samples,
    );
    let gave_up_s = driver
        .requests
        .results
        .iter()
        .find_map(|r| Some(r.hang?.1.as_secs_f64()));
    let figures = figures::figures(&figures::Source {
        workload: options.workload.word(),
        samples: &series.samples,
        phases: &phases,
        rows: &rows,
        row_figures: &row_figures,
        gave_up_s,
        verdict: &verdict,
    });
    let deepest = plan.stages.iter().max_by_key(|s| s.depth);
    let engine = Engine {
        name: "sim".to_owned(),
        block_bytes: deepest.map_or(0, |s| s.block_bytes),
        depth: deepest.map_or(0, |s| s.depth),
        reached_depth: driver
            .requests
            .reached_depth()
            .map(|d| (d * 100.0).round() / 100.0),
        requests: driver.requests.completed,
        errors: driver.requests.errors,
    };
    let mut chosen = plan.chosen.clone();
    // Without a temperature there is no limit.
    if told.source.is_some() {
        chosen.insert("max_temp_c".to_owned(), json!(driver.sampler.max_c()));
    }
    let mut notes = notes(&plan, &driver, &facts, &row_figures, has_meter);
    notes.extend(judged);
    let run = Run {
        schema: SCHEMA.to_owned(),
        schema_version: 1,
        device,
        workload: Done {
            name: options.workload.word().to_owned(),
            data: options.content.to_string(),
            options: chosen,
        },
        started,
        ending,
        samples: series.samples,
        context: series.context,
        phases,
        rows,
        verdict,
        figures,
        engine,
        sampler: told,
        notes,
        notices,
    };
    let manifest = (!plan.sets.is_empty()).then(|| Manifest {
        schema: "drivethru-manifest/1",
        schema_version: 1,
        verified: false,
        sets: plan.sets.clone(),
    });
    Ok(Outcome { run, manifest })
}

/// The same target, but what is written to it is not held, unless the name says what becomes of it.
fn without_bytes(target: &str) -> String {
    let says = target
        .split(',')
        .skip(1)
        .any(|option| option.starts_with("payload=") || option.starts_with("store="));
    if says {
        target.to_owned()
    } else {
        format!("{target},payload=virtual")
    }
}

fn device_of(target: &str, driver: &SimDriver<'_>, facts: &NodeFacts) -> Device {
    let known = driver.drive().device_ref();
    Device {
        name: target.to_owned(),
        simulated: facts.simulated,
        model: known.model,
        serial: known.serial,
        firmware: known.firmware,
        bridge: facts.usb.as_ref().map(|usb| {
            let product = usb.product.as_deref().unwrap_or("USB bridge");
            format!("{product} ({:04x}:{:04x})", usb.vid, usb.pid)
        }),
    }
}

/// What the negotiated link carries at best, in MB/s.
fn ceiling_mb_s(usb: &UsbFacts) -> Option<f64> {
    Some(match usb.speed_mbit_s? {
        ..480 => 1.2,
        480..5000 => 45.0,
        5000..10_000 => 440.0,
        10_000..20_000 => 1050.0,
        _ => 2000.0,
    })
}

fn phases(plan: &Plan, results: &[StageResult], samples: &[Sample]) -> Vec<Phase> {
    let rounded = |value: f64| (value * 1e4).round() / 1e4;
    plan.stages
        .iter()
        .zip(results)
        .filter_map(|(stage, result)| {
            let end = result.end.filter(|end| *end > result.start)?;
            let mut phase = Phase {
                name: stage.name.clone(),
                op: stage.op,
                start_s: result.start.as_secs_f64(),
                end_s: end.as_secs_f64(),
                bytes: result.bytes,
                mb_s: None,
                min_mb_s: None,
                p5_mb_s: None,
                median_mb_s: None,
                flush_s: result.flush.map(|f| f.as_secs_f64()),
            };
            if stage.op != Op::Idle {
                let seconds = phase.end_s - phase.start_s;
                phase.mb_s = Some(rounded(result.bytes as f64 / seconds / 1e6));
                let rates: Vec<f64> = figures::inside(samples, &phase).iter().map(|s| s.mb_s).collect();
                phase.min_mb_s = rates.iter().copied().reduce(f64::min);
                phase.p5_mb_s = figures::percentile(&rates, 0.05).map(rounded);
                phase.median_mb_s = figures::median(&rates).map(rounded);
            }
            Some(phase)
        })
        .collect()
}

fn notices(plan: &Plan, results: &[StageResult]) -> Vec<Notice> {
    plan.stages
        .iter()
        .zip(results)
        .filter_map(|(stage, result)| {
            let (at, waited) = result.hang?;
            Some(Notice {
                t_s: at.as_secs_f64(),
                text: format!(
                    "hang: {}: no completion for {:.0} s with {} requests in flight; given up",
                    stage.name,
                    waited.as_secs_f64(),
                    stage.depth
                ),
            })
        })
        .collect()
}

/// Rows in the order of the plan, each the best of its runs, and their rates by the names of their figures.
fn rows(plan: &Plan, results: &[StageResult]) -> (Vec<Row>, Vec<(String, f64)>) {
    let mut rows: Vec<(RowKey, Row)> = Vec::new();
    for (stage, result) in plan.stages.iter().zip(results) {
        let Some(key) = &stage.row else { continue };
        let figures = row_figures(result);
        let hang = result.hang.is_some();
        match rows.iter_mut().find(|(known, _)| known == key) {
            Some((_, row)) => {
                row.hang |= hang;
                let better = figures
                    .get("mb_s")
                    .zip(row.figures.get("mb_s"))
                    .is_none_or(|(new, old)| new > old);
                if better && !figures.is_empty() {
                    row.figures = figures;
                }
            }
            None => rows.push((
                key.clone(),
                Row {
                    name: key.row.clone(),
                    figures,
                    hang,
                },
            )),
        }
    }
    for (_, row) in rows.iter_mut().filter(|(_, row)| row.hang) {
        row.figures.clear();
    }
    let named = rows
        .iter()
        .filter_map(|(key, row)| Some((key.figure.clone(), *row.figures.get("mb_s")?)))
        .collect();
    (rows.into_iter().map(|(_, row)| row).collect(), named)
}

fn row_figures(result: &StageResult) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    let Some(end) = result.end.filter(|end| *end > result.scored_from) else {
        return figures;
    };
    let seconds = (end - result.scored_from).as_secs_f64();
    let requests: u64 = result.scored.iter().map(|(requests, _)| requests).sum();
    let bytes: u64 = result.scored.iter().map(|(_, bytes)| bytes).sum();
    if requests == 0 {
        return figures;
    }
    let rounded = |value: f64, scale: f64| (value * scale).round() / scale;
    figures.insert("mb_s".to_owned(), rounded(bytes as f64 / seconds / 1e6, 1e5));
    figures.insert("iops".to_owned(), rounded(requests as f64 / seconds, 1e3));
    for (latencies, op) in result.latencies_us.iter().zip(["read", "write"]) {
        let mut sorted = latencies.clone();
        sorted.sort_unstable();
        let Some(last) = sorted.len().checked_sub(1) else {
            continue;
        };
        for (name, place) in [("p50", last / 2), ("p99", last * 99 / 100), ("max", last)] {
            if let Some(us) = sorted.get(place) {
                figures.insert(format!("{op}_{name}_us"), f64::from(*us));
            }
        }
        let mean = sorted.iter().map(|us| u64::from(*us)).sum::<u64>() as f64 / sorted.len() as f64;
        figures.insert(format!("{op}_mean_us"), rounded(mean, 100.0));
    }
    figures
}

fn notes(
    plan: &Plan,
    driver: &SimDriver<'_>,
    facts: &NodeFacts,
    row_figures: &[(String, f64)],
    has_meter: bool,
) -> Vec<String> {
    let mut notes = plan.notes.clone();
    notes.push(
        "simulated: no hardware was touched, and the bytes were neither made nor compared, only counted"
            .to_owned(),
    );
    if !plan.sets.is_empty() {
        notes.push("files lie one behind the other from the start of the medium, without a file system; the read-back is not verified".to_owned());
    }
    let deep = plan.stages.iter().any(|s| s.depth > 1);
    if deep && facts.driver.as_deref() == Some("usb-storage") {
        notes.push(
            "usb-storage carries one command at a time: a deeper queue only fills the block layer".to_owned(),
        );
    }
    if has_meter {
        notes
            .push("power is that of the simulated drive's model, as a meter in the cable sees it".to_owned());
    }
    let sampler = &driver.sampler;
    match (&sampler.why, sampler.told.retired_s) {
        (Some(why), Some(at)) => notes.push(format!("temp: gave up at t={at:.0}: {why}")),
        (Some(why), None) if sampler.told.source.is_none() => {
            notes.push(format!("no temperature: {why}"));
        }
        _ => {}
    }
    for (stage, result) in plan.stages.iter().zip(&driver.requests.results) {
        if result.failed {
            notes.push(format!("{}: ended after errors in a row", stage.name));
        }
    }
    notes.extend(compressibility(row_figures));
    notes.extend(random_write_collapse(row_figures));
    notes
}

/// Whether small random writes are so slow that the drive is no good for anything but copying.
fn random_write_collapse(row_figures: &[(String, f64)]) -> Option<String> {
    let of = |name: &str| row_figures.iter().find(|(n, _)| n == name).map(|(_, mb_s)| *mb_s);
    let (random, sequential) = (of("rnd_write_4k_qd1")?, of("seq_write")?);
    (random < 1.0 && random < sequential / 50.0).then(|| {
        format!("random_write_collapse: 4 KiB random writes at {random:.3} MB/s, sequential ones at {sequential:.1}")
    })
}

/// What the compressibility probe found out.
fn compressibility(row_figures: &[(String, f64)]) -> Option<String> {
    const AGREE: f64 = 0.10;
    const GAIN: f64 = 1.25;
    let of = |name: &str| row_figures.iter().find(|(n, _)| n == name).map(|(_, mb_s)| *mb_s);
    let (first, last, zero) = (
        of("write_random_first")?,
        of("write_random_last")?,
        of("write_zero")?,
    );
    if (first - last).abs() > AGREE * first {
        return Some(
            "compressing controller: unknown, the two runs with random bytes do not agree".to_owned(),
        );
    }
    let gain = zero / ((first + last) / 2.0);
    Some(if gain > GAIN {
        format!("compressing controller: yes, gain {gain:.2}")
    } else {
        "compressing controller: no".to_owned()
    })
}

#[cfg(test)]
mod tests;
