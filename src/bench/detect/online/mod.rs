//! The same falls, seen while they happen: a two-sided CUSUM per operation, a test for slow declines, stops and stalls
//! (throttling-detection.md §4, "Online"). Memory does not grow.

mod watch;

use crate::bench::series::{Context, Op, Sample};

use watch::{Second, Watch};

/// A drive under it is not warm, in °C.
const WARM_C: f64 = 44.0;

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
    /// The last temperature and when it was read, and the highest so far.
    last_c: Option<(f64, f64)>,
    highest_c: f64,
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
            last_c: None,
            highest_c: f64::NEG_INFINITY,
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
        let hot_c = self.hottest(sample);
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
        watch.push(&Second {
            t_s: sample.t_s,
            start_s: sample.t_s - gap.min(10.0),
            gap_s: gap,
            mb_s: sample.mb_s,
            new_phase,
            disturbed: sample.smart_ms.is_some_and(|ms| ms > 200.0),
            hot_c,
        })
    }

    /// The present temperature, if the drive is warm and has not been warmer yet.
    fn hottest(&mut self, sample: &Sample) -> Option<f64> {
        /// A reading that is older is unknown: three times the longest distance of readings.
        const OLDEST_S: f64 = 90.0;
        let read = sample
            .temp_c
            .filter(|c| c.is_finite() && (-40.0..=125.0).contains(c));
        if let Some(celsius) = read {
            self.last_c = Some((sample.t_s, celsius));
            self.highest_c = self.highest_c.max(celsius);
        }
        let (at, celsius) = self.last_c?;
        let hottest = celsius >= WARM_C && celsius > self.highest_c - 1.5;
        (hottest && sample.t_s - at <= OLDEST_S).then_some(celsius)
    }
}

#[cfg(test)]
mod tests;
