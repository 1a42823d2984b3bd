//! Why a transfer slows down: from a series to a verdict, without I/O, clock or panic.
//!
//! ```text
//! cleaning   rows in order, bytes, the age of temperatures, rows above the link
//! features   dips, stops, levels (segment: PELT), falls
//! naming     the gates (stalls: the fourth), then weighing: thermal against cache
//! metrics    figures; text: the verdict in words; online: the same while it happens
//! ```
//!
//! Temperature alone never decides, and without a temperature nothing is thermal.
#![deny(clippy::indexing_slicing)]

mod cleaning;
mod features;
mod metrics;
mod naming;
mod online;
mod robust;
mod segment;
mod stalls;
mod weighing;

pub use online::{Alarm, AlarmKind, Online};

use super::series::{Op, Sample, Series};
use super::verdict::{self, Cause, Verdict};
use cleaning::Clean;
use features::Lane;
use naming::{Finding, Scene};

/// Says why the rate of a series fell, if it did.
///
/// ```
/// use drivethru::bench::detect::analyze;
/// use drivethru::bench::series::Series;
/// use drivethru::bench::verdict::Cause;
///
/// let verdict = analyze(&Series::default());
/// assert_eq!(verdict.cause, Cause::None);
/// ```
pub fn analyze(series: &Series) -> Verdict {
    let clean = cleaning::clean(series);
    let lanes: Vec<Lane> = [Op::Write, Op::Read]
        .into_iter()
        .map(|op| features::lane(&clean, op))
        .collect();
    let mut dips: Vec<_> = lanes.iter().flat_map(|l| l.dips.iter().copied()).collect();
    dips.sort_by_key(|d| d.first);
    let (low, active) = lanes
        .iter()
        .fold((0, 0), |(low, active), l| (low + l.low, active + l.active));
    let low_share = if active > 0 {
        low as f64 / active as f64
    } else {
        0.0
    };
    let falls = lanes.iter().flat_map(|l| features::falls(&clean, l)).collect();
    let mut found = naming::name(Scene {
        clean: &clean,
        lanes: &lanes,
        falls,
        dips,
        low_share,
    });
    found.sort_by(|a, b| a.event.onset_s.total_cmp(&b.event.onset_s));
    conclude(&clean, &lanes, &found)
}

/// `thermal` before `periodic_stall` before `link` ... before `none`: the order of the causes.
fn headline(found: &[Finding]) -> Option<&Finding> {
    // The first of equal causes: the list is in the order of time.
    found.iter().min_by_key(|f| f.event.cause)
}

fn conclude(clean: &Clean, lanes: &[Lane], found: &[Finding]) -> Verdict {
    let first = headline(found);
    let cause = first.map_or(Cause::None, |f| f.event.cause);
    let same: Vec<&Finding> = found.iter().filter(|f| f.event.cause == cause).collect();
    // The first event of the headline's cause is the one that is shown, with its evidence; how sure the cause is, the best
    // founded one says.
    let best = same
        .iter()
        .copied()
        .max_by(|a, b| a.confidence.total_cmp(&b.confidence));
    let before = first
        .and_then(|f| f.row.checked_sub(1))
        .and_then(|i| clean.row(i));
    let mut metrics = metrics::metrics(clean, lanes, found, first);
    if let Some(last) = clean.rows.last() {
        let begin = clean.rows.first().map_or(0.0, |r| r.start_s);
        metrics.insert("duration_s".to_owned(), serde_json::json!(last.t_s - begin));
        metrics.insert("written_bytes".to_owned(), serde_json::json!(last.written));
        metrics.insert("read_bytes".to_owned(), serde_json::json!(last.read));
    }
    let mut alternatives = first.map(|f| f.alternatives.clone()).unwrap_or_default();
    for f in found.iter().filter(|f| f.event.cause != cause) {
        if alternatives.iter().all(|a| a.cause != f.event.cause) {
            alternatives.push(verdict::Alternative {
                cause: f.event.cause,
                score: f.confidence,
            });
        }
    }
    Verdict {
        schema: verdict::SCHEMA.to_owned(),
        schema_version: 1,
        cause,
        throttled: cause == Cause::Thermal,
        confidence: round(best.map_or_else(|| nothing_found(clean), |f| f.confidence)),
        onset_s: first.map(|f| f.event.onset_s),
        detected_s: first.and_then(|f| detected(clean, f)),
        onset_written_bytes: first.map(|_| before.map_or(0, |r| r.written)),
        onset_total_bytes: first.map(|_| before.map_or(0, |r| r.bytes)),
        onset_temp_c: first.and_then(|f| f.event.temp_c),
        events: found.iter().map(|f| f.event.clone()).collect(),
        metrics,
        evidence: first.map(|f| f.evidence.clone()).unwrap_or_default(),
        alternatives,
        ambiguous: best.is_some_and(|f| f.ambiguous),
        experiment: best.and_then(|f| f.experiment.clone()),
    }
}

fn round(confidence: f64) -> f64 {
    (confidence * 1000.0).round() / 1000.0
}

/// How sure it is that nothing happened: a short run says little.
fn nothing_found(clean: &Clean) -> f64 {
    let Some(last) = clean.rows.last() else { return 0.0 };
    let begin = clean.rows.first().map_or(0.0, |r| r.start_s);
    let mut confidence = 0.9;
    if last.t_s - begin < 60.0 {
        confidence -= 0.3;
    }
    let written = last.bytes as f64;
    if written < 10e9 || clean.capacity.is_some_and(|c| written < 0.05 * c) {
        confidence -= 0.2;
    }
    if !clean.has_temp {
        confidence -= 0.2;
    }
    confidence
}

/// When somebody who saw the rows one by one knew of it.
fn detected(clean: &Clean, headline: &Finding) -> Option<f64> {
    let mut online = Online::new(&super::series::Context {
        link_mb_s: clean.link_mb_s,
        ..super::series::Context::default()
    });
    let onset_s = headline.event.onset_s;
    clean
        .rows
        .iter()
        .filter_map(|row| {
            let mut sample = Sample::new(row.t_s, row.mb_s, row.op);
            sample.smart_ms = row.disturbed.then_some(1000.0);
            sample.temp_c = row.temp_c;
            online.push(&sample)
        })
        .map(|alarm| alarm.t_s)
        .find(|t| *t >= onset_s)
}
