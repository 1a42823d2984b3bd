//! Figures of a run (throttling-detection.md §8); names end in their unit.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::bench::series::Op;
use crate::bench::verdict::Cause;

use super::cleaning::{Clean, Row};
use super::features::Lane;
use super::naming::Finding;
use super::robust;

/// Three decimals are more than any rate has.
fn number(value: f64) -> Value {
    if value.is_finite() {
        json!((value * 1000.0).round() / 1000.0)
    } else {
        Value::Null
    }
}

pub(super) fn metrics(
    clean: &Clean,
    lanes: &[Lane],
    found: &[Finding],
    headline: Option<&Finding>,
) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    levels(clean, lanes, found, headline, &mut out);
    onset(clean, headline, &mut out);
    temperatures(clean, headline, &mut out);
    stalls(lanes, &mut out);
    losses(clean, lanes, found, &mut out);
    power(clean, &mut out);
    out
}

/// `unthrottled`, `throttled`, `drop`, `consistency`, the longest gap.
fn levels(
    clean: &Clean,
    lanes: &[Lane],
    found: &[Finding],
    headline: Option<&Finding>,
    out: &mut BTreeMap<String, Value>,
) {
    let cause = headline.map(|h| h.event.cause);
    for lane in lanes {
        let word = lane.op.word();
        let Some(first) = lane.segments.first() else {
            continue;
        };
        out.insert(format!("unthrottled_mb_s{{{word}}}"), number(first.level()));
        let inside = |i: usize| {
            found
                .iter()
                .filter(|f| Some(f.event.cause) == cause)
                .any(|f| (f.row..f.end).contains(&i))
        };
        let throttled = robust::median(
            lane.rows
                .iter()
                .filter(|i| inside(**i))
                .filter_map(|i| clean.row(*i))
                .map(|r| r.mb_s),
        );
        if let Some(throttled) = throttled {
            out.insert(format!("throttled_mb_s{{{word}}}"), number(throttled));
            let drop = 100.0 * (1.0 - throttled / first.level());
            out.insert(format!("drop_pct{{{word}}}"), number(drop));
        }
        // Of the whole run, but not of the partial seconds at both ends of a phase.
        let mut rates: Vec<f64> = clean
            .rows
            .iter()
            .filter(|r| r.op == lane.op && !r.above_link && !r.edge)
            .map(|r| r.mb_s)
            .collect();
        let low = robust::quantile(&mut rates, 0.05);
        let middle = robust::median_of(&mut rates);
        if let (Some(low), Some(middle)) = (low, middle.filter(|m| *m > 0.0)) {
            out.insert(format!("consistency{{{word}}}"), number(low / middle));
            let mut longest = 0.0_f64;
            let mut gap = 0.0;
            for row in clean.rows.iter().filter(|r| r.op == lane.op) {
                gap = if row.mb_s < 0.5 * middle {
                    gap + row.len_s()
                } else {
                    0.0
                };
                longest = longest.max(gap);
            }
            out.insert(format!("p99_over_p50_gap_s{{{word}}}"), number(longest));
        }
    }
}

fn onset(clean: &Clean, headline: Option<&Finding>, out: &mut BTreeMap<String, Value>) {
    let Some(headline) = headline else { return };
    let before = headline.row.checked_sub(1).and_then(|i| clean.row(i));
    out.insert("onset_s".to_owned(), number(headline.event.onset_s));
    out.insert(
        "onset_written_bytes".to_owned(),
        json!(before.map_or(0, |r| r.written)),
    );
    out.insert("onset_read_bytes".to_owned(), json!(before.map_or(0, |r| r.read)));
    if let Some(t) = headline.event.temp_c {
        out.insert("onset_temp_c".to_owned(), number(t));
    }
    out.insert(
        "time_to_throttle_s".to_owned(),
        number(before.map_or(0.0, |r| r.active_s)),
    );
    if headline.event.cause == Cause::SlcCache {
        let bytes = before.map_or(0, |r| r.since_idle);
        out.insert("cache_bytes".to_owned(), json!(bytes));
    }
}

fn temperatures(clean: &Clean, headline: Option<&Finding>, out: &mut BTreeMap<String, Value>) {
    let known: Vec<f64> = clean.rows.iter().filter_map(|r| r.temp_c).collect();
    let (Some(first), Some(max)) = (known.first(), known.iter().copied().reduce(f64::max)) else {
        return;
    };
    out.insert("max_temp_c".to_owned(), number(max));
    out.insert("temp_rise_c".to_owned(), number(max - first));
    let third = clean.rows.len() - clean.rows.len() / 3;
    let mut last: Vec<f64> = clean
        .between(third, clean.rows.len())
        .iter()
        .filter_map(|r| r.temp_c)
        .collect();
    let (low, high) = (
        robust::quantile(&mut last, 0.05),
        robust::quantile(&mut last, 0.95),
    );
    let steady = robust::median_of(&mut last);
    if let (Some(low), Some(high), Some(steady)) = (low, high, steady) {
        let value = if high - low <= 4.0 {
            number(steady)
        } else {
            Value::Null
        };
        out.insert("steady_temp_c".to_owned(), value);
    }
    let Some(headline) = headline else { return };
    let points: Vec<(f64, f64)> = clean
        .between(headline.row.saturating_sub(60), headline.row)
        .iter()
        .filter_map(|r| Some((r.t_s / 60.0, r.temp_c?)))
        .collect();
    if let Some((_, slope)) = robust::line(&points) {
        out.insert("temp_slope_c_per_min".to_owned(), number(slope));
    }
}

fn stalls(lanes: &[Lane], out: &mut BTreeMap<String, Value>) {
    let stalls: Vec<_> = lanes
        .iter()
        .flat_map(|l| &l.dips)
        .filter(|d| (0.9..=12.0).contains(&d.lost_s))
        .collect();
    out.insert("stall_count".to_owned(), json!(stalls.len()));
    if stalls.is_empty() {
        return;
    }
    let mut lengths: Vec<f64> = stalls.iter().map(|d| d.lost_s).collect();
    let total: f64 = lengths.iter().sum();
    for (name, q) in [("min", 0.0), ("median", 0.5), ("max", 1.0)] {
        let value = robust::quantile(&mut lengths, q).unwrap_or(0.0);
        out.insert(format!("stall_s{{{name}}}"), number(value));
    }
    out.insert("stall_s{total}".to_owned(), number(total));
    let mut starts: Vec<f64> = stalls.iter().map(|d| d.start_s).collect();
    starts.sort_by(f64::total_cmp);
    let gaps: Vec<f64> = starts
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] => Some(b - a),
            _ => None,
        })
        .collect();
    if let Some(gap) = robust::median(gaps.iter().copied()) {
        out.insert("stall_gap_s{median}".to_owned(), number(gap));
    }
    if let Some(cv) = robust::variation(&gaps) {
        out.insert("stall_gap_s{cv}".to_owned(), number(cv));
    }
    let floor = robust::median(stalls.iter().map(|d| d.low_mb_s)).unwrap_or(0.0);
    out.insert("stall_floor_mb_s".to_owned(), number(floor));
}

/// What was lost against the first level, and to whom.
fn losses(clean: &Clean, lanes: &[Lane], found: &[Finding], out: &mut BTreeMap<String, Value>) {
    let full = |op: Op| {
        lanes
            .iter()
            .find(|l| l.op == op)
            .and_then(|l| l.segments.first())
            .map(|s| s.level())
    };
    let (mut possible, mut moved, mut active, mut thermal) = (0.0, 0.0, 0.0, 0.0);
    let mut by_cause: BTreeMap<&str, f64> = BTreeMap::new();
    let mut spans: Vec<(usize, usize, Cause)> = found.iter().map(|f| (f.row, f.end, f.event.cause)).collect();
    spans.sort_by_key(|s| (s.0, s.2));
    for (i, row) in clean.rows.iter().enumerate() {
        let (Some(level), false) = (full(row.op), row.above_link) else {
            continue;
        };
        let len = row.len_s();
        possible += level * len;
        moved += row.mb_s * len;
        active += len;
        // Of several events the one that began last is to blame.
        let to_blame = spans
            .iter()
            .filter(|(from, to, _)| (*from..*to).contains(&i))
            .max_by_key(|(from, _, _)| *from);
        if let Some((_, _, cause)) = to_blame {
            *by_cause.entry(cause.word()).or_default() += (level - row.mb_s) * len;
        }
        if spans
            .iter()
            .any(|(from, to, c)| *c == Cause::Thermal && (*from..*to).contains(&i))
        {
            thermal += len;
        }
    }
    if possible > 0.0 {
        out.insert("lost_pct".to_owned(), number(100.0 * (1.0 - moved / possible)));
        for (cause, lost) in by_cause {
            out.insert(
                format!("lost_pct{{{cause}}}"),
                number(100.0 * (lost / possible).max(0.0)),
            );
        }
    }
    if active > 0.0 {
        out.insert("thermal_duty".to_owned(), number(thermal / active));
    }
}

fn power(clean: &Clean, out: &mut BTreeMap<String, Value>) {
    let watts = |r: &Row| r.power_w;
    let Some(peak) = clean.rows.iter().filter_map(watts).reduce(f64::max) else {
        return;
    };
    out.insert("peak_w".to_owned(), number(peak));
    let idle = robust::median(clean.rows.iter().filter(|r| r.op == Op::Idle).filter_map(watts));
    if let Some(idle) = idle {
        out.insert("idle_w".to_owned(), number(idle));
    }
    let (mut joules, mut gigabytes) = (0.0, 0.0);
    for row in clean.rows.iter().filter(|r| r.op != Op::Idle) {
        if let Some(w) = row.power_w {
            joules += w * row.len_s();
            gigabytes += row.mb_s * row.len_s() / 1e3;
        }
    }
    if gigabytes > 0.0 {
        out.insert("j_per_gb".to_owned(), number(joules / gigabytes));
    }
}
