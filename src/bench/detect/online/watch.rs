//! What is known of one operation while it runs.

use std::collections::VecDeque;

use crate::bench::detect::robust;
use crate::bench::series::Op;

use super::{Alarm, AlarmKind};

/// Samples that make the first reference of a level, and those that make the final one.
const FIRST: usize = 10;
const REFERENCE: usize = 60;
/// Drift, limit and clip of the CUSUM, in deviations.
const DRIFT: f64 = 1.0;
const LIMIT: f64 = 8.0;
const CLIP: f64 = 4.0;
/// Samples of the new level before anything is said, and those after which it is given up.
const CONFIRM: usize = 8;
const GIVE_UP: usize = 40;
/// Samples at the begin of a level that a slow decline is measured from, and those at its end: the fewer, the sooner the
/// fall is seen, where the noise is small enough.
const ENDS: usize = 30;
const LAST: [usize; 3] = [ENDS, 20, 12];
/// Smallest fall that is reported, and the smallest of a drive that has never been warmer: what is smaller is no border
/// of levels.
const MIN_FALL: f64 = 0.10;
const MIN_WARM_FALL: f64 = 0.08;
/// So much of a rise, in °C, is none yet.
const RISE_C: f64 = 2.0;
/// A sample under this part of the reference is a dip.
const DIP: f64 = 0.45;
/// A stop of so long is reported at once; a rate under this part of the reference, but moving, of so long.
const STOP_S: f64 = 1.5;
const SLOW_S: f64 = 2.5;
const SLOW: f64 = 0.25;
/// Under this part of the reference nothing moves; a second that a stop does not fill shows more.
const STOP: f64 = 0.03;
const PART_STOP: f64 = 0.06;
/// Seconds in a row at one level far under the reference are no stall, if they move more than this part of it and differ
/// by less than that.
const STEADY: usize = 5;
const STEADY_LEAST: f64 = 0.2;
const STEADY_SPREAD: f64 = 0.15;
/// A dip that cost less is no stall.
const STALL_S: f64 = 0.8;
/// Stalls that are enough if they are most of all dips, and those that always are, with the spread of their distances:
/// the fewer they are, the more regular must they be, or pauses at random would often pass.
const FEW_STALLS: [(usize, f64); 4] = [(4, 0.08), (5, 0.12), (6, 0.15), (7, 0.18)];
const STALLS: (usize, f64) = (8, 0.20);
/// The part of all dips that a few stalls must be.
const MOST_DIPS: f64 = 0.6;
/// An error of a median against that of a mean.
const MEDIAN_ERROR: f64 = 1.25;

/// One sample of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Second {
    pub t_s: f64,
    pub start_s: f64,
    pub gap_s: f64,
    pub mb_s: f64,
    pub new_phase: bool,
    pub disturbed: bool,
    pub hot_c: Option<f64>,
}

/// One operation's level.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    op: Op,
    /// ln of the first samples of this level; the reference is their median.
    first: Vec<f64>,
    reference: f64,
    /// Noise of one sample, and by how much its slowness counts.
    sigma: f64,
    inflation: f64,
    /// Temperature of a warm drive when this level began; absent while it was cool.
    begin_c: Option<f64>,
    /// The last samples of this level.
    tail: VecDeque<f64>,
    /// Differences of neighbours, of all levels.
    differences: VecDeque<f64>,
    previous: Option<f64>,
    down: Cusum,
    up: Cusum,
    since_check: usize,
    /// The present run of dips.
    dip: VecDeque<f64>,
    dip_start_s: f64,
    dip_lost_s: f64,
    dip_said: bool,
    /// Start and lost time of the last stalls.
    stalls: VecDeque<(f64, f64)>,
    stalls_said: bool,
    /// All dips so far.
    dips: usize,
}

/// One side of the CUSUM.
#[derive(Debug, Clone, Default)]
struct Cusum {
    sum: f64,
    alarmed: bool,
    start_s: f64,
    since: VecDeque<f64>,
    count: usize,
}

impl Cusum {
    fn clear(&mut self) {
        self.sum = 0.0;
        self.alarmed = false;
        self.since.clear();
        self.count = 0;
    }

    /// `toward` is the deviation in the watched direction.
    fn push(&mut self, toward: f64, ln: f64, start_s: f64) {
        let grown = self.sum + toward - DRIFT;
        if grown <= 0.0 && !self.alarmed {
            self.clear();
            return;
        }
        if self.count == 0 {
            self.start_s = start_s;
        }
        self.sum = grown.clamp(0.0, 4.0 * LIMIT);
        self.count += 1;
        keep(&mut self.since, ln, GIVE_UP);
        self.alarmed |= self.sum > LIMIT;
        if self.alarmed && self.sum <= 0.0 {
            self.clear();
        }
    }
}

fn keep<T>(ring: &mut VecDeque<T>, value: T, most: usize) {
    if ring.len() >= most {
        ring.pop_front();
    }
    ring.push_back(value);
}

impl Watch {
    pub fn new(op: Op) -> Self {
        Self {
            op,
            first: Vec::with_capacity(REFERENCE),
            reference: 0.0,
            sigma: 0.01,
            inflation: 1.0,
            begin_c: None,
            tail: VecDeque::with_capacity(ENDS),
            differences: VecDeque::with_capacity(64),
            previous: None,
            down: Cusum::default(),
            up: Cusum::default(),
            since_check: 0,
            dip: VecDeque::with_capacity(GIVE_UP),
            dip_start_s: 0.0,
            dip_lost_s: 0.0,
            dip_said: false,
            stalls: VecDeque::with_capacity(8),
            stalls_said: false,
            dips: 0,
        }
    }

    fn restart(&mut self, with: &[f64], hot_c: Option<f64>) {
        self.begin_c = hot_c;
        self.first.clear();
        self.first.extend(with.iter().take(REFERENCE));
        self.tail.clear();
        self.tail.extend(with.iter().rev().take(ENDS).rev());
        self.down.clear();
        self.up.clear();
        self.since_check = 0;
        self.learn();
    }

    /// Reference and noise from the first samples of the level.
    fn learn(&mut self) {
        let Some(reference) = robust::median(self.first.iter().copied()) else {
            return;
        };
        self.reference = reference;
        let quick = robust::mad_sigma(self.differences.make_contiguous())
            .filter(|_| self.differences.len() >= 8)
            .unwrap_or(0.05)
            / std::f64::consts::SQRT_2;
        let whole = robust::mad_sigma(&self.first)
            .filter(|_| self.first.len() >= 2 * FIRST)
            .unwrap_or(quick);
        self.sigma = quick.max(whole).max(0.01);
        // Neighbours that are alike tell less: (1 + rho) / (1 - rho) of an autoregressive noise.
        let rho = (1.0 - (quick / self.sigma).powi(2)).clamp(0.0, 0.9);
        self.inflation = ((1.0 + rho) / (1.0 - rho)).sqrt();
    }

    /// Error of a median of `n` samples.
    fn error(&self, n: usize) -> f64 {
        MEDIAN_ERROR * self.sigma * self.inflation / (n.max(1) as f64).sqrt()
    }

    fn alarm(&self, kind: AlarmKind, t_s: f64, onset_s: f64, after_ln: f64) -> Alarm {
        Alarm {
            t_s,
            onset_s,
            kind,
            op: self.op,
            before_mb_s: self.reference.exp(),
            after_mb_s: after_ln.exp(),
        }
    }

    pub fn push(&mut self, second: &Second) -> Option<Alarm> {
        let Second {
            t_s, mb_s, new_phase, ..
        } = *second;
        let ln = mb_s.max(1e-3).ln();
        if self.first.len() < FIRST {
            // A phase begins with a partial second.
            if !new_phase && mb_s > 0.0 {
                if self.first.is_empty() {
                    self.begin_c = second.hot_c;
                }
                self.first.push(ln);
                keep(&mut self.tail, ln, ENDS);
                self.differ(ln);
                self.learn();
            }
            return None;
        }
        if mb_s < DIP * self.reference.exp() {
            return self.dipped(second);
        }
        // A partial second neither ends a dip nor says anything of the level.
        if new_phase {
            return None;
        }
        let stalls = self.dip_over(t_s);
        self.differ(ln);
        let z = ((ln - self.reference) / self.sigma).clamp(-CLIP, CLIP);
        self.down.push(-z, ln, second.start_s);
        self.up.push(z, ln, second.start_s);
        keep(&mut self.tail, ln, ENDS);
        if self.first.len() < REFERENCE && !self.down.alarmed && !self.up.alarmed {
            self.first.push(ln);
            if self.first.len().is_multiple_of(5) {
                self.learn();
            }
        }
        let fall = self.confirm(second);
        let decline = if fall.is_none() {
            self.decline(second)
        } else {
            None
        };
        fall.or(decline).or(stalls)
    }

    fn differ(&mut self, ln: f64) {
        if let Some(previous) = self.previous {
            keep(&mut self.differences, ln - previous, 64);
        }
        self.previous = Some(ln);
    }

    /// Waits for enough samples of the new level after a CUSUM alarm.
    fn confirm(&mut self, second: &Second) -> Option<Alarm> {
        let falling = self.down.alarmed;
        if !falling && !self.up.alarmed {
            return None;
        }
        let side = if falling { &self.down } else { &self.up };
        let (count, onset_s) = (side.count, side.start_s);
        if count < CONFIRM {
            return None;
        }
        let since: Vec<f64> = side.since.iter().copied().collect();
        let level = robust::median(since.iter().copied())?;
        let change = (level - self.reference).abs();
        let enough = change > -(1.0 - MIN_FALL).ln() && change > 4.0 * self.error(since.len());
        if enough {
            let alarm = self.alarm(AlarmKind::Fall, second.t_s, onset_s, level);
            self.restart(&since, second.hot_c);
            return falling.then_some(alarm);
        }
        if count >= GIVE_UP {
            // A small change of level: the new reference, and nothing to report.
            if change > 4.0 * self.error(since.len()) && change < -(1.0 - MIN_FALL / 2.0).ln() {
                self.down.clear();
                self.up.clear();
            } else if falling {
                self.down.clear();
            } else {
                self.up.clear();
            }
        }
        None
    }

    fn decline(&mut self, second: &Second) -> Option<Alarm> {
        self.since_check += 1;
        // A step is the other detector's, which knows its begin.
        if self.down.alarmed && self.down.count < GIVE_UP / 3 {
            return None;
        }
        if self.since_check < 3 || self.first.len() < REFERENCE || self.tail.len() < ENDS {
            return None;
        }
        self.since_check = 0;
        let begin = robust::median(self.first.iter().take(ENDS).copied())?;
        // A drive that grows warmer while it grows slower is believed sooner.
        let warmer = second
            .hot_c
            .is_some_and(|hot| self.begin_c.is_none_or(|begin| hot >= begin + RISE_C));
        let least = if warmer { MIN_WARM_FALL } else { MIN_FALL };
        for last in LAST {
            let end = robust::median(self.tail.iter().rev().take(last).copied())?;
            let fall = begin - end;
            let error = self.error(ENDS).hypot(self.error(last));
            if fall < -(1.0 - least).ln() || fall < 5.0 * error {
                continue;
            }
            let alarm = self.alarm(AlarmKind::Decline, second.t_s, second.t_s - last as f64, end);
            let tail: Vec<f64> = self.tail.iter().rev().take(last).rev().copied().collect();
            self.restart(&tail, second.hot_c);
            return Some(alarm);
        }
        None
    }

    /// A sample far under the reference: a stall, a stop or a much lower level.
    fn dipped(&mut self, second: &Second) -> Option<Alarm> {
        let Second { t_s, mb_s, .. } = *second;
        if self.dip.is_empty() {
            if second.new_phase || second.disturbed {
                return None;
            }
            self.dip_start_s = second.start_s;
            self.dip_lost_s = 0.0;
            self.dip_said = false;
        }
        let full = self.reference.exp();
        self.dip_lost_s += second.gap_s.min(60.0) * (1.0 - mb_s / full).max(0.0);
        keep(&mut self.dip, mb_s.max(1e-3).ln(), CONFIRM);
        let level = robust::median(self.dip.iter().copied())?;
        let moving = self.dip.iter().all(|ln| ln.exp() > STOP * full);
        if moving && (self.dip.len() >= CONFIRM || self.steady(full)) {
            let alarm = self.alarm(AlarmKind::Fall, t_s, self.dip_start_s, level);
            let new: Vec<f64> = self.dip.drain(..).collect();
            self.restart(&new, second.hot_c);
            return Some(alarm);
        }
        let lowest = self.dip.iter().copied().fold(f64::INFINITY, f64::min).exp();
        let stopped = self.dip_lost_s >= STOP_S && (mb_s < STOP * full || lowest < PART_STOP * full);
        let slow = self.dip_lost_s >= SLOW_S && level.exp() < SLOW * full;
        if !self.dip_said && (stopped || slow) && self.dip.len() >= 2 {
            self.dip_said = true;
            return Some(self.alarm(AlarmKind::Stop, t_s, self.dip_start_s, level));
        }
        None
    }

    /// Whether the last seconds of a dip are a level of their own. The first one of a dip may be partial.
    fn steady(&self, full: f64) -> bool {
        let last = || self.dip.iter().rev().take(STEADY).copied();
        let low = last().fold(f64::INFINITY, f64::min);
        let high = last().fold(f64::NEG_INFINITY, f64::max);
        self.dip.len() >= STEADY && low.exp() > STEADY_LEAST * full && high - low < STEADY_SPREAD
    }

    /// The rate is back after a dip; the eighth of regular ones is reported, or the fourth
    /// if hardly anything else was a dip.
    fn dip_over(&mut self, t_s: f64) -> Option<Alarm> {
        if self.dip.is_empty() {
            return None;
        }
        let level = robust::median(self.dip.iter().copied()).unwrap_or(self.reference);
        self.dip.clear();
        self.dips += 1;
        if self.dip_lost_s < STALL_S {
            return None;
        }
        keep(&mut self.stalls, (self.dip_start_s, self.dip_lost_s), STALLS.0);
        let last: Vec<(f64, f64)> = self.stalls.iter().rev().copied().collect();
        let first_of = |(count, spread): (usize, f64)| {
            let run = last.get(..count)?;
            let gaps: Vec<f64> = run
                .windows(2)
                .filter_map(|pair| match pair {
                    [later, earlier] => Some(later.0 - earlier.0),
                    _ => None,
                })
                .collect();
            let lengths: Vec<f64> = run.iter().map(|l| l.1).collect();
            let regular = robust::variation(&gaps).is_some_and(|v| v < spread)
                && robust::variation(&lengths).is_some_and(|v| v < 0.6);
            regular.then(|| run.last().map(|l| l.0)).flatten()
        };
        let few = FEW_STALLS
            .into_iter()
            .filter(|(count, _)| *count as f64 >= MOST_DIPS * self.dips as f64);
        let first = first_of(STALLS).or_else(|| few.into_iter().find_map(first_of));
        let onset_s = first.filter(|_| !self.stalls_said)?;
        self.stalls_said = true;
        Some(self.alarm(AlarmKind::Stalls, t_s, onset_s, level))
    }

    /// What it holds on the heap.
    #[cfg(test)]
    pub fn heap_bytes(&self) -> usize {
        let floats = self.first.capacity()
            + self.tail.capacity()
            + self.differences.capacity()
            + self.dip.capacity()
            + 2 * self.stalls.capacity()
            + self.down.since.capacity()
            + self.up.since.capacity();
        floats * size_of::<f64>()
    }
}
