//! What a series shows before anything is named: dips, stalls, stops, levels and falls (throttling-detection.md §3, §5).

use crate::bench::series::Op;

use super::cleaning::{Clean, Row};
use super::robust;
use super::segment::{self, Segment};

/// Samples on either side that make the local reference.
const HALF_WINDOW: usize = 45;
/// A sample under this part of its reference is a dip.
const DIP: f64 = 0.45;
/// A longer run of them is a level.
pub(super) const LONGEST_DIP_S: f64 = 12.0;
/// Under this part of the reference nothing moves.
const STOP: f64 = 0.03;
const STOP_S: f64 = 1.5;
/// Parts of the highest rates that count as nothing at all.
const NOTHING: f64 = 0.002;
/// A level is back when it is over this part of the level before.
pub(super) const BACK: f64 = 0.93;
/// A fall of less is not reported.
const MIN_FALL: f64 = 0.10;

/// A run of samples far under their reference.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dip {
    pub op: Op,
    /// First and last row.
    pub first: usize,
    pub last: usize,
    pub start_s: f64,
    pub end_s: f64,
    /// Its time on the clock of this operation, idle and other operations left out.
    pub active_s: f64,
    pub low_mb_s: f64,
    pub reference_mb_s: f64,
    /// Time that it cost.
    pub lost_s: f64,
}

impl Dip {
    /// Whether the transfer stopped.
    pub fn is_stop(&self) -> bool {
        self.low_mb_s < STOP * self.reference_mb_s && self.lost_s >= STOP_S
    }
}

/// One operation's rows, and its levels.
#[derive(Debug)]
pub(super) struct Lane {
    pub op: Op,
    /// Rows whose rate says something of a level.
    pub rows: Vec<usize>,
    pub segments: Vec<Segment>,
    pub sigma: f64,
    pub dips: Vec<Dip>,
    /// Samples far under the usual, and all of them.
    pub low: usize,
    pub active: usize,
    /// First row that is far under the usual.
    pub first_low: Option<usize>,
}

impl Lane {
    /// The first clean sample at or behind a row.
    pub fn index_of(&self, row: usize) -> usize {
        self.rows.partition_point(|r| *r < row)
    }

    /// Rates of the clean rows from one row to before another, at most `most` of them, the nearest to `from` first.
    pub fn rates<'a>(&'a self, clean: &'a Clean, from: usize, to: usize) -> impl Iterator<Item = f64> + 'a {
        self.rows
            .get(self.index_of(from)..self.index_of(to))
            .unwrap_or(&[])
            .iter()
            .filter_map(|r| clean.row(*r))
            .map(|r| r.mb_s)
    }

    /// Median of up to `most` clean rows before a row.
    pub fn level_before(&self, clean: &Clean, row: usize, most: usize, least: usize) -> Option<f64> {
        let end = self.index_of(row);
        let rows = self.rows.get(end.saturating_sub(most)..end).unwrap_or(&[]);
        if rows.len() < least.max(1) {
            return None;
        }
        robust::median(rows.iter().filter_map(|r| clean.row(*r)).map(|r| r.mb_s))
    }

    /// Median of up to `most` clean rows from a row to before another.
    pub fn level_after(
        &self,
        clean: &Clean,
        from: usize,
        to: usize,
        most: usize,
        least: usize,
    ) -> Option<f64> {
        let rates: Vec<f64> = self.rates(clean, from, to).take(most).collect();
        if rates.len() < least.max(1) {
            return None;
        }
        robust::median(rates)
    }
}

/// A level that falls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fall {
    pub op: Op,
    /// First row of the lower level.
    pub row: usize,
    /// First row at which it is back; absent when it never is.
    pub back: Option<usize>,
    /// It came back right after an idle time.
    pub back_after_idle: bool,
    pub before_mb_s: f64,
    pub after_mb_s: f64,
    /// Many small steps that follow the temperature.
    pub gradual: bool,
    pub onset_s: f64,
    pub temp_c: Option<f64>,
}

impl Fall {
    pub fn depth(&self) -> f64 {
        1.0 - self.after_mb_s / self.before_mb_s.max(1e-9)
    }

    /// The row behind it.
    pub fn end(&self, clean: &Clean) -> usize {
        self.back.unwrap_or(clean.rows.len())
    }
}

/// One operation, with the levels and dips that it has.
pub(super) fn lane(clean: &Clean, op: Op) -> Lane {
    let mine: Vec<usize> = clean
        .rows
        .iter()
        .enumerate()
        .filter(|(_, r)| r.op == op && !r.above_link)
        .map(|(i, _)| i)
        .collect();
    let rate = |i: &usize| clean.row(*i).map_or(0.0, |r| r.mb_s);
    let mut rates: Vec<f64> = mine.iter().map(rate).collect();
    let nothing = NOTHING * robust::quantile(&mut rates.clone(), 0.9).unwrap_or(0.0);
    let references = references(&rates, nothing);
    let dips = dips(clean, op, &mine, &references, nothing);

    let mut dip = dips.iter().peekable();
    let mut rows = Vec::with_capacity(mine.len());
    for i in mine.iter().copied() {
        while dip.peek().is_some_and(|d| d.last < i) {
            dip.next();
        }
        let in_dip = dip.peek().is_some_and(|d| (d.first..=d.last).contains(&i));
        let partial = clean.row(i).is_none_or(|r| r.edge || r.mb_s <= nothing);
        if !in_dip && !partial {
            rows.push(i);
        }
    }
    let ln: Vec<f64> = rows.iter().map(|i| rate(i).max(1e-6).ln()).collect();
    let segments = segment::segments(&ln);
    let sigma = robust::noise_sigma(&ln);

    // Partial rows are low for no reason.
    let whole: Vec<usize> = mine
        .iter()
        .copied()
        .filter(|i| clean.row(*i).is_some_and(|r| !r.edge))
        .collect();
    rates.clear();
    rates.extend(whole.iter().map(rate));
    let usual = robust::rolling(&rates, HALF_WINDOW, 0.75);
    let mut low = 0;
    let mut first_low = None;
    for ((row, rate), usual) in whole.iter().zip(&rates).zip(&usual) {
        if *rate < 0.7 * usual {
            low += 1;
            first_low = first_low.or(Some(*row));
        }
    }
    // A run shorter than its window, at one falling level, has its own first rows as the usual: no sign of anything.
    Lane {
        op,
        rows,
        segments,
        sigma,
        dips,
        low,
        active: whole.len(),
        first_low,
    }
}

/// The rolling median of the rows in which something moved; a row without takes that of its neighbour.
fn references(rates: &[f64], nothing: f64) -> Vec<f64> {
    let moving: Vec<f64> = rates.iter().copied().filter(|r| *r > nothing).collect();
    let medians = robust::rolling(&moving, HALF_WINDOW, 0.5);
    let mut next = medians.iter();
    let mut current = medians.first().copied().unwrap_or(0.0);
    rates
        .iter()
        .map(|r| {
            if *r > nothing {
                current = next.next().copied().unwrap_or(current);
            }
            current
        })
        .collect()
}

fn dips(clean: &Clean, op: Op, mine: &[usize], references: &[f64], nothing: f64) -> Vec<Dip> {
    struct Run {
        from: usize,
        to: usize,
    }
    let row_of = |k: usize| mine.get(k).and_then(|i| clean.row(*i));
    let mut runs: Vec<Run> = Vec::new();
    for (k, (i, reference)) in mine.iter().zip(references).enumerate() {
        let Some(row) = clean.row(*i) else { continue };
        if row.disturbed || row.mb_s >= DIP * reference && row.mb_s > nothing {
            continue;
        }
        match runs.last_mut() {
            // At most one sample between, and nothing else of the run.
            Some(run) if k - run.to <= 2 && mine.get(run.to).is_some_and(|p| i - p <= 2) => run.to = k,
            _ => runs.push(Run { from: k, to: k }),
        }
    }
    let mut active_s = 0.0;
    let mut clock = Vec::with_capacity(mine.len());
    for k in 0..mine.len() {
        clock.push(active_s);
        active_s += row_of(k).map_or(0.0, Row::len_s);
    }
    let mut dips = Vec::new();
    for run in runs {
        let (Some(&first), Some(&last)) = (mine.get(run.from), mine.get(run.to)) else {
            continue;
        };
        // A partial second alone is no dip.
        if clean
            .between(first, last + 1)
            .iter()
            .all(|r| r.edge && r.mb_s > nothing)
        {
            continue;
        }
        let reference = references.get(run.from).copied().unwrap_or(0.0).max(1e-9);
        let mut lost_s = 0.0;
        let mut low = f64::INFINITY;
        for row in clean.between(first, last + 1).iter().filter(|r| r.op == op) {
            lost_s += (1.0 - row.mb_s / reference).max(0.0) * row.len_s();
            low = low.min(row.mb_s);
        }
        // The seconds in which it began and ended are partly lost too.
        let neighbours = [run.from.checked_sub(1), Some(run.to + 1)];
        for row in neighbours.into_iter().flatten().filter_map(row_of) {
            if row.mb_s < 0.9 * reference && !row.edge {
                lost_s += (1.0 - row.mb_s / reference).max(0.0) * row.len_s();
            }
        }
        let (Some(a), Some(b)) = (clean.row(first), clean.row(last)) else {
            continue;
        };
        let stopped = low < STOP * reference;
        if b.t_s - a.start_s > LONGEST_DIP_S && !stopped {
            continue;
        }
        dips.push(Dip {
            op,
            first,
            last,
            start_s: a.start_s,
            end_s: b.t_s,
            active_s: clock.get(run.from).copied().unwrap_or(0.0),
            low_mb_s: low,
            reference_mb_s: reference,
            lost_s,
        });
    }
    dips
}

/// First row of a lower level: from the border back while rows are nearer to the lower level, then forward while not.
fn refine(clean: &Clean, lane: &Lane, border: usize, before: f64, after: f64) -> usize {
    let middle = f64::midpoint(before, after);
    let lower = |k: usize| {
        lane.rows.get(k).and_then(|i| clean.row(*i)).is_some_and(|r| {
            if before > after {
                r.mb_s < middle
            } else {
                r.mb_s > middle
            }
        })
    };
    let mut k = border;
    while k > 0 && border - k < 8 && lower(k - 1) {
        k -= 1;
    }
    if k == border {
        while k < border + 4 && k + 1 < lane.rows.len() && !lower(k) {
            k += 1;
        }
    }
    k
}

/// Every fall of an operation's level, in the order of time.
pub(super) fn falls(clean: &Clean, lane: &Lane) -> Vec<Fall> {
    let mut falls = Vec::new();
    let mut run: Vec<Fall> = Vec::new();
    for (j, pair) in lane.segments.windows(2).enumerate() {
        let [upper, lower] = pair else { continue };
        if lower.ln_level >= upper.ln_level {
            settle(clean, lane, &mut run, &mut falls);
            continue;
        }
        let k = refine(clean, lane, lower.start, upper.level(), lower.level());
        let Some(row) = lane.rows.get(k).copied() else {
            continue;
        };
        let back = lane
            .segments
            .iter()
            .skip(j + 2)
            .find(|s| s.level() >= BACK * upper.level());
        let (back, back_after_idle) = match back {
            Some(s) => came_back(clean, lane, s, lower.level(), upper.level()),
            None => (None, false),
        };
        run.push(Fall {
            op: lane.op,
            row,
            back,
            back_after_idle,
            before_mb_s: upper.level(),
            after_mb_s: lower.level(),
            gradual: false,
            onset_s: clean.row(row).map_or(0.0, |r| r.start_s),
            temp_c: clean.row(row).and_then(|r| r.temp_c),
        });
    }
    settle(clean, lane, &mut run, &mut falls);
    falls
}

/// The row at which a level is back, and whether an idle time came right before it.
fn came_back(clean: &Clean, lane: &Lane, s: &Segment, low: f64, full: f64) -> (Option<usize>, bool) {
    let k = refine(clean, lane, s.start, low, full);
    let idles = |k: usize| lane.rows.get(k).and_then(|i| clean.row(*i)).map(|r| r.idles);
    let after_idle = idles(k.saturating_sub(4)) != idles(k + 2);
    (lane.rows.get(k).copied(), after_idle)
}

/// A row of steps down ends: one gradual fall if it follows the temperature, else each step of its own.
fn settle(clean: &Clean, lane: &Lane, run: &mut Vec<Fall>, falls: &mut Vec<Fall>) {
    let steps = std::mem::take(run);
    let (Some(first), Some(last)) = (steps.first().copied(), steps.last().copied()) else {
        return;
    };
    if steps.len() >= 2
        && 1.0 - last.after_mb_s / first.before_mb_s >= MIN_FALL
        && let Some(proportional) = proportional(clean, lane, &first, &last)
    {
        falls.push(proportional);
        return;
    }
    let enough =
        |f: &Fall| f.depth() >= MIN_FALL.max(3.0 * lane.sigma / (segment::MIN_SAMPLES as f64).sqrt());
    falls.extend(steps.into_iter().filter(enough));
}

/// Median rate and temperature of each ten seconds of an operation, from one row to before another.
fn tens(clean: &Clean, lane: &Lane, from: usize, to: usize) -> Vec<(f64, f64)> {
    let rows: Vec<&Row> = lane
        .rows
        .get(lane.index_of(from)..lane.index_of(to))
        .unwrap_or(&[])
        .iter()
        .filter_map(|i| clean.row(*i))
        .collect();
    let width = 10.0_f64.max(clean.temp_interval_s);
    let mut out = Vec::new();
    for group in rows.chunk_by(|a, b| (a.t_s / width).floor() == (b.t_s / width).floor()) {
        let rate = robust::median(group.iter().map(|r| r.mb_s));
        let known: Vec<f64> = group.iter().filter_map(|r| r.temp_c).collect();
        if let (Some(rate), false) = (rate, known.is_empty()) {
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            out.push((mean, rate));
        }
    }
    out
}

/// The steps as one fall, if the rate follows the temperature all the way.
fn proportional(clean: &Clean, lane: &Lane, first: &Fall, last: &Fall) -> Option<Fall> {
    let end = last.end(clean);
    let onset = lane.index_of(first.row);
    let from = lane.rows.get(onset.saturating_sub(60)).copied().unwrap_or(0);
    let points = tens(clean, lane, from, end);
    let (temps, rates): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let span = |t: &[f64]| {
        let low = t.iter().copied().reduce(f64::min).unwrap_or(0.0);
        t.iter().copied().reduce(f64::max).unwrap_or(0.0) - low
    };
    if span(&temps) < 5.0 || robust::rank_correlation(&temps, &rates)? > -0.8 {
        return None;
    }
    // Where the fitted line crosses the level before, the fall began.
    let falling: Vec<(f64, f64)> = points
        .iter()
        .copied()
        .filter(|(_, rate)| *rate < 0.97 * first.before_mb_s)
        .collect();
    let (at_zero, slope) = robust::line(&falling)?;
    // Levels that stand while the temperature climbs are steps, not a line.
    let spread = falling
        .iter()
        .map(|(t, r)| (r - at_zero - slope * t).abs() / first.before_mb_s);
    let total = 1.0 - last.after_mb_s / first.before_mb_s;
    if slope >= 0.0 || robust::median(spread)? > 0.12 * total.max(0.1) {
        return None;
    }
    let crossing = (first.before_mb_s - at_zero) / slope;
    let row = crossing_row(clean, lane, crossing, first.row).unwrap_or(first.row);
    Some(Fall {
        row,
        onset_s: clean.row(row).map_or(first.onset_s, |r| r.start_s),
        temp_c: clean.row(row).and_then(|r| r.temp_c),
        after_mb_s: last.after_mb_s,
        back: last.back,
        back_after_idle: last.back_after_idle,
        gradual: true,
        ..*first
    })
}

/// The first row, in the minutes before the first step, at which the smoothed temperature is over `crossing`.
fn crossing_row(clean: &Clean, lane: &Lane, crossing: f64, step: usize) -> Option<usize> {
    let half_s = 20.0_f64.max(2.0 * clean.temp_interval_s);
    let to = lane.index_of(step) + segment::MIN_SAMPLES;
    let from = to.saturating_sub(400);
    let rows: Vec<(usize, f64, f64)> = lane
        .rows
        .get(from..to.min(lane.rows.len()))
        .unwrap_or(&[])
        .iter()
        .filter_map(|i| clean.row(*i).and_then(|r| Some((*i, r.t_s, r.temp_c?))))
        .collect();
    rows.iter()
        .find(|(_, t, _)| {
            let near: Vec<f64> = rows
                .iter()
                .filter(|(_, u, _)| (u - t).abs() <= half_s)
                .map(|(_, _, temp)| *temp)
                .collect();
            near.iter().sum::<f64>() / near.len().max(1) as f64 >= crossing
        })
        .map(|(i, _, _)| *i)
}
