//! From a raw series to rows that can be compared (throttling-detection.md §2).

use crate::bench::series::{Context, Notice, Op, Sample, Series};

use super::robust;

/// More rows than this are joined into longer ones: four days and a half at one a second.
const MAX_ROWS: usize = 400_000;
/// Faster than this for so many rows in a row is not the device.
const ABOVE_LINK: f64 = 1.12;
const ABOVE_LINK_ROWS: usize = 3;
/// Time without a transfer that counts as idle.
pub(super) const IDLE_S: f64 = 3.0;

/// One interval with everything that is known at its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// End and start of the interval.
    pub t_s: f64,
    pub start_s: f64,
    pub mb_s: f64,
    pub op: Op,
    /// Bytes until the end of the row: all, written, read, written since the last idle time.
    pub bytes: u64,
    pub written: u64,
    pub read: u64,
    pub since_idle: u64,
    /// Last temperature, while it is not too old.
    pub temp_c: Option<f64>,
    /// First or last of its phase: partial.
    pub edge: bool,
    /// Faster than the link.
    pub above_link: bool,
    /// A slow reading of the temperature fell into it.
    pub disturbed: bool,
    /// How many idle times came before.
    pub idles: u32,
    /// Active seconds until the end of the row.
    pub active_s: f64,
    pub power_w: Option<f64>,
}

impl Row {
    /// Its length.
    pub fn len_s(&self) -> f64 {
        self.t_s - self.start_s
    }
}

/// Rows in the order of time, and what they have in common.
#[derive(Debug, Default)]
pub(super) struct Clean {
    pub rows: Vec<Row>,
    /// Median length of a row.
    /// Distance of temperature readings; zero without any.
    pub temp_interval_s: f64,
    /// Smallest step of the temperature.
    pub quantum_c: f64,
    pub has_temp: bool,
    pub capacity: Option<f64>,
    pub link_mb_s: Option<f64>,
    pub offset: f64,
    pub notices: Vec<Notice>,
    /// Runs of rows faster than the link: first row, and the one behind.
    pub above_link: Vec<(usize, usize)>,
}

impl Clean {
    /// Tolerance of every comparison of temperatures.
    pub fn tolerance_c(&self) -> f64 {
        self.quantum_c + 1.0
    }

    /// The row at an index that came from this series.
    pub fn row(&self, i: usize) -> Option<&Row> {
        self.rows.get(i)
    }

    /// Rows from one index to before another.
    pub fn between(&self, from: usize, to: usize) -> &[Row] {
        self.rows.get(from..to.min(self.rows.len())).unwrap_or(&[])
    }
}

pub(super) fn clean(series: &Series) -> Clean {
    let context = &series.context;
    let positive = |v: f64| (v.is_finite() && v > 0.0).then_some(v);
    let samples = order(&series.samples);
    let interval_s = interval(&samples);
    let samples = join(samples, interval_s);
    let interval_s = interval(&samples);
    let has_temp = context.has_temp != Some(false) && samples.iter().any(|s| temperature(s).is_some());
    let temp_interval_s = if has_temp {
        temp_interval(context, &samples, interval_s)
    } else {
        0.0
    };
    let mut clean = Clean {
        rows: rows(
            &samples,
            interval_s,
            if has_temp { temp_interval_s } else { -1.0 },
        ),
        temp_interval_s,
        quantum_c: quantum(&samples),
        has_temp,
        capacity: context.capacity_bytes.map(|c| c as f64).and_then(positive),
        link_mb_s: context.link_mb_s.and_then(positive),
        offset: context.start_offset_bytes as f64,
        notices: context
            .notices
            .iter()
            .filter(|n| n.t_s.is_finite())
            .cloned()
            .collect(),
        above_link: Vec::new(),
    };
    mark_edges(&mut clean.rows);
    mark_above_link(&mut clean);
    clean
}

/// A temperature that a drive can have.
fn temperature(sample: &Sample) -> Option<f64> {
    sample
        .temp_c
        .filter(|t| t.is_finite() && (-40.0..=125.0).contains(t))
}

/// Samples whose clock and rate are numbers, in the order of time, each moment once.
fn order(samples: &[Sample]) -> Vec<&Sample> {
    let usable = |s: &&Sample| s.t_s.is_finite() && s.mb_s.is_finite() && s.mb_s >= 0.0 && s.t_s.abs() < 1e12;
    let mut ordered: Vec<&Sample> = samples.iter().filter(usable).collect();
    if !ordered.is_sorted_by(|a, b| a.t_s <= b.t_s) {
        ordered.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    }
    ordered.dedup_by(|later, earlier| later.t_s - earlier.t_s < 1e-6);
    ordered
}

fn interval<S: std::borrow::Borrow<Sample>>(samples: &[S]) -> f64 {
    robust::median(samples.windows(2).filter_map(|pair| match pair {
        [a, b] => Some(b.borrow().t_s - a.borrow().t_s),
        _ => None,
    }))
    .filter(|i| *i > 0.0)
    .unwrap_or(1.0)
}

/// Rows shorter than half a second become rows of a second, and too many rows become fewer.
fn join(samples: Vec<&Sample>, interval_s: f64) -> Vec<Sample> {
    let many = samples.len() > MAX_ROWS;
    if interval_s >= 0.5 && !many {
        return samples.into_iter().cloned().collect();
    }
    let mut width = interval_s.max(1.0);
    if let (Some(first), Some(last), true) = (samples.first(), samples.last(), many) {
        width = width.max((last.t_s - first.t_s) / MAX_ROWS as f64);
    }
    let begin = samples.first().map_or(0.0, |s| s.t_s - interval_s);
    let bin = |s: &Sample| ((s.t_s - begin) / width - 1e-9).floor();
    let mut out = Vec::new();
    let mut previous_t = begin;
    for group in samples.chunk_by(|a, b| bin(a) == bin(b)) {
        let Some(last) = group.last() else { continue };
        let mut moved = [0.0_f64; 3];
        let mut covered = 0.0;
        for s in group {
            let length = (s.t_s - previous_t).clamp(0.0, 2.0 * interval_s);
            previous_t = s.t_s;
            covered += length;
            let all = s.mb_s * length;
            let other = (s.other_bytes.unwrap_or(0) as f64 / 1e6).min(all);
            let parts = match s.op {
                Op::Write => [all - other, other, 0.0],
                Op::Read => [other, all - other, 0.0],
                Op::Idle => [0.0, 0.0, all],
            };
            for (sum, part) in moved.iter_mut().zip(parts) {
                *sum += part;
            }
        }
        let [written, read, other] = moved;
        let op = if written + read <= 0.0 {
            last.op
        } else if written >= read {
            Op::Write
        } else {
            Op::Read
        };
        let powers: Vec<f64> = group.iter().filter_map(|s| s.power_w).collect();
        out.push(Sample {
            mb_s: if covered > 0.0 {
                (written + read + other) / covered
            } else {
                0.0
            },
            temp_c: group.iter().rev().find_map(|s| temperature(s)),
            op,
            smart_ms: group.iter().filter_map(|s| s.smart_ms).reduce(f64::max),
            other_bytes: Some((written.min(read) * 1e6) as u64).filter(|bytes| *bytes > 0),
            power_w: (!powers.is_empty()).then(|| powers.iter().sum::<f64>() / powers.len() as f64),
            ..(*last).clone()
        });
    }
    out
}

fn temp_interval(context: &Context, samples: &[Sample], interval_s: f64) -> f64 {
    let times: Vec<f64> = samples
        .iter()
        .filter(|s| temperature(s).is_some())
        .map(|s| s.t_s)
        .collect();
    let seen = robust::median(times.windows(2).filter_map(|pair| match pair {
        [a, b] => Some(b - a),
        _ => None,
    }));
    let told = context
        .temp_interval_s
        .filter(|t| t.is_finite() && *t > 0.0 && *t < 3600.0);
    // A reader slower than promised is believed, not the promise.
    told.unwrap_or(0.0).max(seen.unwrap_or(0.0)).max(interval_s)
}

/// The smallest step between the values that the sensor shows, from 0.1 to 5 degrees.
fn quantum(samples: &[Sample]) -> f64 {
    let mut values: Vec<i32> = samples
        .iter()
        .filter_map(temperature)
        .map(|t| (t * 10.0).round() as i32)
        .collect();
    values.sort_unstable();
    values.dedup();
    let smallest = values
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] => Some(b - a),
            _ => None,
        })
        .min();
    smallest.map_or(1.0, |s| f64::from(s) / 10.0).clamp(0.1, 5.0)
}

/// `temp_interval_s` below zero: there is no sensor.
fn rows(samples: &[Sample], interval_s: f64, temp_interval_s: f64) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::with_capacity(samples.len());
    let mut reading: Option<(f64, f64)> = None;
    let (mut bytes, mut written, mut read, mut since_idle) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut idles = 0_u32;
    let mut idle_s = 0.0;
    let mut active_s = 0.0;
    let mut previous: Option<&Sample> = None;
    for sample in samples {
        let gap = previous.map_or(interval_s, |p| sample.t_s - p.t_s);
        let by_rate = (sample.mb_s * interval_s * 1e6).clamp(0.0, 1e18) as u64;
        // A counter that goes back was reset: then only the rate tells.
        let moved = match previous {
            Some(p) => sample
                .cumulative_bytes
                .checked_sub(p.cumulative_bytes)
                .unwrap_or(by_rate),
            None => sample.cumulative_bytes.min(by_rate.saturating_mul(4)),
        };
        let len_s = length(sample.mb_s, moved, gap, interval_s);
        if let Some(t) = temperature(sample) {
            reading = Some((sample.t_s, t));
        }
        // A long hole in which nothing moved is an idle time that nobody wrote down.
        let hole = gap - len_s;
        if hole >= 10.0 && hole >= 5.0 * interval_s && moved <= by_rate.saturating_mul(3) / 2 {
            if idle_s < IDLE_S {
                idles = idles.saturating_add(1);
                since_idle = 0;
            }
            idle_s = IDLE_S;
        }
        bytes = bytes.saturating_add(moved);
        let other = sample.other_bytes.unwrap_or(0).min(moved);
        let own = moved - other;
        match sample.op {
            Op::Idle => {
                let before = idle_s;
                idle_s += len_s;
                if before < IDLE_S && idle_s >= IDLE_S {
                    idles = idles.saturating_add(1);
                    since_idle = 0;
                }
            }
            Op::Write => {
                idle_s = 0.0;
                written = written.saturating_add(own);
                since_idle = since_idle.saturating_add(own);
                read = read.saturating_add(other);
            }
            Op::Read => {
                idle_s = 0.0;
                read = read.saturating_add(own);
                written = written.saturating_add(other);
                since_idle = since_idle.saturating_add(other);
            }
        }
        if sample.op != Op::Idle {
            active_s += len_s;
        }
        rows.push(Row {
            t_s: sample.t_s,
            start_s: sample.t_s - len_s,
            mb_s: sample.mb_s,
            op: sample.op,
            bytes,
            written,
            read,
            since_idle,
            temp_c: reading
                .filter(|(at, _)| {
                    temp_interval_s > 0.0 && sample.t_s - at <= 3.0 * temp_interval_s + interval_s
                })
                .map(|(_, t)| t),
            edge: false,
            above_link: false,
            disturbed: sample.smart_ms.is_some_and(|ms| ms > 200.0),
            idles,
            active_s,
            power_w: sample.power_w.filter(|p| p.is_finite() && *p >= 0.0),
        });
        previous = Some(sample);
    }
    rows
}

/// How long the interval of a sample really was: rows may be missing before it, or the timer was late.
fn length(mb_s: f64, moved: u64, gap: f64, interval_s: f64) -> f64 {
    let usual = gap.min(interval_s);
    if gap <= 1.5 * interval_s {
        return gap;
    }
    if mb_s > 0.0 {
        let by_bytes = moved as f64 / 1e6 / mb_s;
        // Bytes of the missing rows are in `moved` too: only a low rate over the whole gap is a late timer.
        if (by_bytes - gap).abs() < 0.1 * gap && mb_s * gap * 1e6 > 0.0 && moved > 0 {
            return if gap > 3.0 * interval_s { gap } else { usual };
        }
        return usual;
    }
    if moved == 0 { gap } else { usual }
}

fn mark_edges(rows: &mut [Row]) {
    for phase in rows.chunk_by_mut(|a, b| a.op == b.op && a.idles == b.idles) {
        if let Some(first) = phase.first_mut() {
            first.edge = true;
        }
        if let Some(last) = phase.last_mut() {
            last.edge = true;
        }
    }
}

fn mark_above_link(clean: &mut Clean) {
    let Some(link) = clean.link_mb_s else { return };
    let over = |r: &Row| r.op != Op::Idle && r.mb_s > ABOVE_LINK * link;
    let mut at = 0;
    for run in clean.rows.chunk_by_mut(|a, b| over(a) == over(b)) {
        let from = at;
        at += run.len();
        if run.len() >= ABOVE_LINK_ROWS && run.first().is_some_and(over) {
            for row in run.iter_mut() {
                row.above_link = true;
            }
            clean.above_link.push((from, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(t_s: f64, mb_s: f64, op: Op, temp_c: Option<f64>, cumulative_bytes: u64) -> Sample {
        Sample {
            t_s,
            mb_s,
            cumulative_bytes,
            temp_c,
            op,
            smart_ms: None,
            power_w: None,
            iops: None,
            lat_p99_us: None,
            other_bytes: None,
        }
    }

    fn of(samples: Vec<Sample>, context: Context) -> Clean {
        clean(&Series { samples, context })
    }

    #[test]
    fn rubbish_rows_are_left_out() {
        let w = Op::Write;
        let clean = of(
            vec![
                sample(f64::NAN, 100.0, w, None, 1),
                sample(2.0, f64::INFINITY, w, None, 2),
                sample(3.0, -1.0, w, None, 2),
                sample(2.0, 100.0, w, Some(300.0), 200_000_000),
                sample(1.0, 100.0, w, Some(f64::NAN), 100_000_000),
                sample(2.0, 100.0, w, None, 200_000_000),
            ],
            Context::default(),
        );
        assert_eq!(clean.rows.len(), 2);
        assert_eq!(clean.rows.last().map(|r| r.written), Some(200_000_000));
        assert!(!clean.has_temp);
        assert!(of(vec![], Context::default()).rows.is_empty());
    }

    #[test]
    fn a_temperature_ages() {
        let samples = (1_u32..=20)
            .map(|i| {
                let temp = (i % 2 == 0 && i <= 8).then_some(40.0 + f64::from(i));
                sample(f64::from(i), 100.0, Op::Write, temp, u64::from(i) * 100_000_000)
            })
            .collect();
        let clean = of(samples, Context::default());
        assert!((clean.temp_interval_s - 2.0).abs() < 1e-9);
        assert_eq!(clean.rows.get(8).and_then(|r| r.temp_c), Some(48.0));
        assert_eq!(clean.rows.last().and_then(|r| r.temp_c), None);
        assert!((clean.quantum_c - 2.0).abs() < 1e-9);
    }

    #[test]
    fn short_rows_are_joined_and_bytes_kept() {
        let samples = (1_u32..=1000)
            .map(|i| {
                sample(
                    f64::from(i) * 0.01,
                    200.0,
                    Op::Read,
                    None,
                    u64::from(i) * 2_000_000,
                )
            })
            .collect();
        let clean = of(samples, Context::default());
        assert_eq!(clean.rows.len(), 10);
        assert!(clean.rows.iter().all(|r| (r.mb_s - 200.0).abs() < 1.0));
        assert_eq!(clean.rows.last().map(|r| r.bytes), Some(2_000_000_000));
    }

    #[test]
    fn idle_times_start_the_count_of_bytes_again() {
        let mut samples: Vec<Sample> = (1_u32..=10)
            .map(|i| sample(f64::from(i), 100.0, Op::Write, None, u64::from(i) * 100_000_000))
            .collect();
        for i in 11_u32..=20 {
            samples.push(sample(f64::from(i), 0.0, Op::Idle, None, 1_000_000_000));
        }
        samples.push(sample(21.0, 100.0, Op::Write, None, 1_100_000_000));
        // Nobody wrote the next idle time down.
        samples.push(sample(82.0, 100.0, Op::Write, None, 1_200_000_000));
        let clean = of(samples, Context::default());
        let since: Vec<u64> = clean.rows.iter().rev().take(2).map(|r| r.since_idle).collect();
        assert_eq!(since, [100_000_000, 100_000_000]);
        assert_eq!(clean.rows.last().map(|r| (r.idles, r.edge)), Some((2, true)));
    }

    #[test]
    fn faster_than_the_link_is_marked() {
        let samples = (1_u32..=20)
            .map(|i| {
                sample(
                    f64::from(i),
                    if i <= 4 || i == 9 { 1700.0 } else { 120.0 },
                    Op::Write,
                    None,
                    0,
                )
            })
            .collect();
        let context = Context {
            link_mb_s: Some(440.0),
            ..Context::default()
        };
        assert_eq!(of(samples, context).above_link, [(0, 4)]);
    }
}
