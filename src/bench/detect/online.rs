//! The same falls, seen while they happen: a two-sided CUSUM per operation, a test for slow declines, stops and stalls
//! (throttling-detection.md §4, "Online"). Memory does not grow.

use std::collections::VecDeque;

use crate::bench::series::{Context, Op, Sample};

use super::robust;

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
/// Samples at either end of a level that a slow decline is measured by.
const ENDS: usize = 30;
/// Smallest fall that is reported.
const MIN_FALL: f64 = 0.10;
/// A sample under this part of the reference is a dip.
const DIP: f64 = 0.45;
/// A stop of so long is reported at once; much lower than usual, but moving, of so long.
const STOP_S: f64 = 1.5;
const SLOW_S: f64 = 2.5;
/// Under this part of the reference nothing moves.
const STOP: f64 = 0.03;
/// A dip that cost less is no stall.
const STALL_S: f64 = 0.8;
/// Stalls that are enough if they are very regular and most of all dips, and those that always are; the spread of their
/// distances.
const FEW_STALLS: (usize, f64) = (4, 0.15);
const STALLS: (usize, f64) = (6, 0.25);
/// The part of all dips that a few stalls must be.
const MOST_DIPS: f64 = 0.6;
/// An error of a median against that of a mean.
const MEDIAN_ERROR: f64 = 1.25;

/// What an alarm is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AlarmKind {
    /// The level fell.
    Fall,
    /// It fell little by little.
    Decline,
    /// Nothing moves, or hardly anything.
    Stop,
    /// Short stops at regular distance.
    Stalls,
    /// The rate was above the link's and no longer is.
    PageCacheEnd,
}

/// Something was noticed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Alarm {
    /// When it was noticed, in seconds.
    pub t_s: f64,
    /// When it probably began.
    pub onset_s: f64,
    /// What it is.
    pub kind: AlarmKind,
    /// The operation.
    pub op: Op,
    /// Level before, in MB/s.
    pub before_mb_s: f64,
    /// Level after.
    pub after_mb_s: f64,
}

/// A detector that sees the samples one by one.
///
/// ```
/// use drivethru::bench::detect::Online;
/// use drivethru::bench::series::{Context, Op, Sample};
///
/// let mut online = Online::new(&Context::default());
/// let mut alarm = None;
/// for t in 1..=60 {
///     let mb_s = if t <= 40 { 400.0 } else { 120.0 };
///     let sample = Sample::new(f64::from(t), mb_s, Op::Write);
///     alarm = alarm.or(online.push(&sample));
/// }
/// let alarm = alarm.expect("a fall");
/// assert_eq!(alarm.onset_s, 40.0);
/// assert!(alarm.t_s <= 50.0);
/// ```
#[derive(Debug, Clone)]
pub struct Online {
    link_mb_s: Option<f64>,
    write: Watch,
    read: Watch,
    last_t_s: Option<f64>,
    last_op: Option<Op>,
    above_link: usize,
}

impl Online {
    /// A detector that has seen nothing.
    pub fn new(context: &Context) -> Self {
        Self {
            link_mb_s: context.link_mb_s.filter(|l| l.is_finite() && *l > 0.0),
            write: Watch::new(Op::Write),
            read: Watch::new(Op::Read),
            last_t_s: None,
            last_op: None,
            above_link: 0,
        }
    }

    /// The next sample. Samples without progress of the clock, and those that are no numbers, are passed over.
    pub fn push(&mut self, sample: &Sample) -> Option<Alarm> {
        let usable = sample.t_s.is_finite() && sample.mb_s.is_finite() && sample.mb_s >= 0.0;
        let gap = self.last_t_s.map_or(1.0, |last| sample.t_s - last);
        if !usable || gap <= 0.0 {
            return None;
        }
        self.last_t_s = Some(sample.t_s);
        let new_phase = self.last_op != Some(sample.op);
        self.last_op = Some(sample.op);
        let watch = match sample.op {
            Op::Idle => return None,
            Op::Write => &mut self.write,
            Op::Read => &mut self.read,
        };
        if self.link_mb_s.is_some_and(|l| sample.mb_s > 1.12 * l) {
            self.above_link += 1;
            return None;
        }
        let cached = std::mem::take(&mut self.above_link);
        if cached >= 3 {
            return Some(Alarm {
                t_s: sample.t_s,
                onset_s: sample.t_s - gap.min(10.0),
                kind: AlarmKind::PageCacheEnd,
                op: sample.op,
                before_mb_s: self.link_mb_s.unwrap_or(0.0),
                after_mb_s: sample.mb_s,
            });
        }
        watch.push(
            sample.t_s,
            gap,
            sample.mb_s,
            new_phase,
            sample.smart_ms.is_some_and(|ms| ms > 200.0),
        )
    }
}

/// One operation's level.
#[derive(Debug, Clone)]
struct Watch {
    op: Op,
    /// ln of the first samples of this level; the reference is their median.
    first: Vec<f64>,
    reference: f64,
    /// Noise of one sample, and by how much its slowness counts.
    sigma: f64,
    inflation: f64,
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
    fn new(op: Op) -> Self {
        Self {
            op,
            first: Vec::with_capacity(REFERENCE),
            reference: 0.0,
            sigma: 0.01,
            inflation: 1.0,
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

    fn restart(&mut self, with: &[f64]) {
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

    fn push(&mut self, t_s: f64, gap_s: f64, mb_s: f64, new_phase: bool, disturbed: bool) -> Option<Alarm> {
        let start_s = t_s - gap_s.min(10.0);
        let ln = mb_s.max(1e-3).ln();
        if self.first.len() < FIRST {
            // A phase begins with a partial second.
            if !new_phase && mb_s > 0.0 {
                self.first.push(ln);
                keep(&mut self.tail, ln, ENDS);
                self.differ(ln);
                self.learn();
            }
            return None;
        }
        if mb_s < DIP * self.reference.exp() {
            return self.dipped(t_s, start_s, gap_s, mb_s, new_phase, disturbed);
        }
        // A partial second neither ends a dip nor says anything of the level.
        if new_phase {
            return None;
        }
        let stalls = self.dip_over(t_s);
        self.differ(ln);
        let z = ((ln - self.reference) / self.sigma).clamp(-CLIP, CLIP);
        self.down.push(-z, ln, start_s);
        self.up.push(z, ln, start_s);
        keep(&mut self.tail, ln, ENDS);
        if self.first.len() < REFERENCE && !self.down.alarmed && !self.up.alarmed {
            self.first.push(ln);
            if self.first.len().is_multiple_of(5) {
                self.learn();
            }
        }
        let fall = self.confirm(t_s);
        let decline = if fall.is_none() { self.decline(t_s) } else { None };
        fall.or(decline).or(stalls)
    }

    fn differ(&mut self, ln: f64) {
        if let Some(previous) = self.previous {
            keep(&mut self.differences, ln - previous, 64);
        }
        self.previous = Some(ln);
    }

    /// Waits for enough samples of the new level after a CUSUM alarm.
    fn confirm(&mut self, t_s: f64) -> Option<Alarm> {
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
            let alarm = self.alarm(AlarmKind::Fall, t_s, onset_s, level);
            self.restart(&since);
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

    fn decline(&mut self, t_s: f64) -> Option<Alarm> {
        self.since_check += 1;
        if self.since_check < 5 || self.first.len() < REFERENCE || self.tail.len() < ENDS {
            return None;
        }
        self.since_check = 0;
        let begin = robust::median(self.first.iter().take(ENDS).copied())?;
        let end = robust::median(self.tail.iter().copied())?;
        let fall = begin - end;
        if fall < -(1.0 - MIN_FALL).ln() || fall < 5.0 * self.error(ENDS) * std::f64::consts::SQRT_2 {
            return None;
        }
        let alarm = self.alarm(AlarmKind::Decline, t_s, t_s - ENDS as f64, end);
        let tail: Vec<f64> = self.tail.iter().copied().collect();
        self.restart(&tail);
        Some(alarm)
    }

    /// A sample far under the reference: a stall, a stop or a much lower level.
    fn dipped(
        &mut self,
        t_s: f64,
        start_s: f64,
        gap_s: f64,
        mb_s: f64,
        new_phase: bool,
        disturbed: bool,
    ) -> Option<Alarm> {
        if self.dip.is_empty() {
            if new_phase || disturbed {
                return None;
            }
            self.dip_start_s = start_s;
            self.dip_lost_s = 0.0;
            self.dip_said = false;
        }
        let full = self.reference.exp();
        self.dip_lost_s += gap_s.min(60.0) * (1.0 - mb_s / full).max(0.0);
        keep(&mut self.dip, mb_s.max(1e-3).ln(), CONFIRM);
        let level = robust::median(self.dip.iter().copied())?;
        let moving = self.dip.iter().all(|ln| ln.exp() > STOP * full);
        if self.dip.len() >= CONFIRM && moving {
            let alarm = self.alarm(AlarmKind::Fall, t_s, self.dip_start_s, level);
            let new: Vec<f64> = self.dip.drain(..).collect();
            self.restart(&new);
            return Some(alarm);
        }
        let stopped = self.dip_lost_s >= STOP_S && mb_s < STOP * full;
        let slow = self.dip_lost_s >= SLOW_S && level.exp() < 0.2 * full;
        if !self.dip_said && (stopped || slow) && self.dip.len() >= 2 {
            self.dip_said = true;
            return Some(self.alarm(AlarmKind::Stop, t_s, self.dip_start_s, level));
        }
        None
    }

    /// The rate is back after a dip; the sixth of regular ones is reported, or the fourth
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
        let few = FEW_STALLS.0 as f64 >= MOST_DIPS * self.dips as f64;
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
        let first = first_of(STALLS).or_else(|| if few { first_of(FEW_STALLS) } else { None });
        let onset_s = first.filter(|_| !self.stalls_said)?;
        self.stalls_said = true;
        Some(self.alarm(AlarmKind::Stalls, t_s, onset_s, level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Normal noise from a linear congruence.
    struct Noise(u64);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as f64 / f64::from(1_u32 << 31)
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

    fn alarms(rates: impl IntoIterator<Item = f64>) -> Vec<Alarm> {
        let mut online = Online::new(&Context::default());
        rates
            .into_iter()
            .enumerate()
            .filter_map(|(i, rate)| online.push(&Sample::new(i as f64 + 1.0, rate, Op::Write)))
            .collect()
    }

    #[test]
    fn an_hour_of_noise_with_dips_alarms_nobody() {
        for seed in 1..=20 {
            let mut noise = Noise(seed);
            let rates: Vec<f64> = (0..3600)
                .map(|_| {
                    let dip = if noise.uniform() < 0.02 { 0.3 } else { 1.0 };
                    300.0 * dip * (0.10 * noise.normal()).exp()
                })
                .collect();
            assert_eq!(alarms(rates), [], "seed {seed}");
        }
    }

    #[test]
    fn falls_are_seen_soon_and_never_early() {
        for (part, within) in [(0.8, 15.0), (0.7, 12.0), (0.3, 10.0), (0.88, 25.0)] {
            for seed in 1..=10 {
                let mut noise = Noise(seed);
                let rates: Vec<f64> = (0..200)
                    .map(|i| 400.0 * if i < 120 { 1.0 } else { part } * (0.02 * noise.normal()).exp())
                    .collect();
                let alarms = alarms(rates);
                let first = alarms.first().expect("an alarm");
                assert!(
                    first.t_s > 120.0 && first.t_s - 120.0 <= within,
                    "{part} {seed}: {first:?}"
                );
                assert!((first.onset_s - 120.0).abs() <= 3.0, "{part} {seed}: {first:?}");
                assert_eq!(alarms.len(), 1, "{part} {seed}: {alarms:?}");
            }
        }
    }

    #[test]
    fn a_slow_decline_is_seen() {
        let rates: Vec<f64> = (0..900)
            .map(|i| 900.0 * (1.0 - f64::from((i - 100).max(0)) / 4000.0))
            .collect();
        assert!(alarms(rates).iter().any(|a| a.t_s < 700.0));
    }

    #[test]
    fn stops_and_regular_stalls_are_seen() {
        let stop: Vec<f64> = (0..100)
            .map(|i| if (50..60).contains(&i) { 0.0 } else { 400.0 })
            .collect();
        let seen = alarms(stop);
        assert_eq!(
            seen.first().map(|a| (a.kind, a.onset_s)),
            Some((AlarmKind::Stop, 50.0))
        );
        let stalls: Vec<f64> = (0..300)
            .map(|i| if i > 100 && i % 20 == 0 { 2.0 } else { 22.0 })
            .collect();
        let seen: Vec<_> = alarms(stalls)
            .iter()
            .map(|a| (a.kind, a.onset_s, a.t_s))
            .collect();
        assert_eq!(seen, [(AlarmKind::Stalls, 120.0, 182.0)]);
    }

    #[test]
    fn the_other_operation_between_does_not_hide_a_fall() {
        let mut online = Online::new(&Context::default());
        let mut seen = None;
        for t in 1..=130_u32 {
            let (op, mb_s) = match t {
                ..=70 => (Op::Write, 930.0),
                71..=76 => (Op::Write, 300.0),
                77..=99 => (Op::Read, 930.0),
                // A partial second.
                100 => (Op::Write, 500.0),
                _ => (Op::Write, 300.0),
            };
            seen = seen.or(online.push(&Sample::new(f64::from(t), mb_s, op)));
        }
        let seen = seen.expect("an alarm");
        assert_eq!((seen.kind, seen.onset_s), (AlarmKind::Fall, 70.0));
        assert!(seen.t_s <= 102.0, "{seen:?}");
    }

    #[test]
    fn rubbish_is_passed_over() {
        let mut online = Online::new(&Context {
            link_mb_s: Some(f64::NAN),
            ..Context::default()
        });
        for (t, rate) in [
            (f64::NAN, 1.0),
            (1.0, f64::NAN),
            (f64::INFINITY, 1.0),
            (2.0, -1.0),
            (3.0, f64::INFINITY),
            (3.0, 0.0),
            (1.0, 5.0),
        ] {
            assert_eq!(online.push(&Sample::new(t, rate, Op::Read)), None);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut online = Online::new(&Context::default());
        let mut noise = Noise(5);
        for i in 0..200_000 {
            let rate = 1000.0 * noise.uniform();
            online.push(&Sample::new(f64::from(i), rate, Op::Write));
        }
        let w = &online.write;
        let floats = w.first.capacity()
            + w.tail.capacity()
            + w.differences.capacity()
            + w.dip.capacity()
            + 2 * w.stalls.capacity()
            + w.down.since.capacity()
            + w.up.since.capacity();
        let bytes = size_of::<Online>() + 2 * 8 * floats;
        assert!(bytes < 64 * 1024, "{bytes}");
    }
}
