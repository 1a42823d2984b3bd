//! Runs a workload and watches rate and temperature on one clock.
//!
//! [`plan()`] lays out the stages, [`requests`] keeps their requests in flight, [`sampler`] reads the temperature beside them,
//! [`recorder`] makes samples of what comes back: all of them pure. [`sim`] drives them on the virtual clock of a simulated
//! device; that is the only kind of target in this version.

pub mod actor;
pub mod feed;
pub mod figures;
pub mod manifest;
mod notes;
pub mod plan;
pub mod random;
pub mod recorder;
pub mod requests;
pub mod sampler;
pub mod sets;
pub mod sim;
mod verdicts;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

pub use manifest::Manifest;
pub use plan::{Amount, Content, Options, WORKLOADS, Workload, plan};

use self::notes::{notes, notices};
use self::plan::{Plan, RowKey};
use self::requests::StageResult;
use self::sim::SimDriver;
use self::verdicts::{add_link, judge_rows};
use super::detect;
use super::run::{Device, Engine, Phase, Row, Run, SCHEMA, Workload as Done};
use super::series::{Context, Op, Sample, Series};
use super::verdict::Verdict;
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
    let manifest = driver.checked.manifest(&plan);
    notes.extend(manifest.as_ref().map(Manifest::note));
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

#[cfg(test)]
mod tests;
