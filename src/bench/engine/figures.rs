//! Figures of a run, computed from its samples, rows and verdict and from nothing else.

use std::collections::BTreeMap;

use crate::bench::run::{Figure, Phase, Row};
use crate::bench::series::{Op, Sample};
use crate::bench::verdict::{Cause, Event, Verdict};

/// What figures are computed from.
pub struct Source<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The samples.
    pub samples: &'a [Sample],
    /// The phases.
    pub phases: &'a [Phase],
    /// The rows.
    pub rows: &'a [Row],
    /// The rates of the rows, by the names of their figures, in MB/s.
    pub row_figures: &'a [(String, f64)],
    /// How long a request was waited for that never came back.
    pub gave_up_s: Option<f64>,
    /// The verdict on the samples.
    pub verdict: &'a Verdict,
}

/// Median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    percentile(values, 0.5)
}

/// Percentile with interpolation between neighbours; `None` of nothing.
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * (sorted.len().checked_sub(1)?) as f64;
    let low = *sorted.get(place.floor() as usize)?;
    let high = *sorted.get(place.ceil() as usize)?;
    Some(low + (high - low) * place.fract())
}

/// Samples that lie in a phase as a whole.
pub fn inside<'s>(samples: &'s [Sample], phase: &Phase) -> Vec<&'s Sample> {
    let from = |i: usize| {
        i.checked_sub(1)
            .and_then(|p| samples.get(p))
            .map_or(0.0, |s| s.t_s)
    };
    samples
        .iter()
        .enumerate()
        .filter(|(i, s)| from(*i) >= phase.start_s && s.t_s <= phase.end_s)
        .map(|(_, s)| s)
        .collect()
}

/// A firmware pause: its middle, its length and its lowest rate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stall {
    middle_s: f64,
    length_s: f64,
    /// Of those that fill a second.
    low_mb_s: Option<f64>,
}

impl Source<'_> {
    fn bytes(&self, op: Op) -> u64 {
        self.phases.iter().filter(|p| p.op == op).map(|p| p.bytes).sum()
    }

    /// Bytes of one operation before a time.
    fn bytes_until(&self, op: Op, t_s: f64) -> f64 {
        let mut before = 0;
        let mut sum = 0;
        for sample in self.samples.iter().take_while(|s| s.t_s < t_s) {
            let own = sample.cumulative_bytes.saturating_sub(before);
            before = sample.cumulative_bytes;
            if sample.op == op {
                sum += own;
            }
        }
        sum as f64
    }

    /// Bytes written before a fall. The second of the fall was partly fast: how far follows from the two levels.
    fn written_until_fall(&self, event: &Event) -> f64 {
        const MOST: usize = 3;
        let mut bytes = self.bytes_until(Op::Write, event.onset_s);
        let (Some(before), Some(after)) = (event.before_mb_s, event.after_mb_s) else {
            return bytes;
        };
        if event.cause == Cause::Thermal || before <= after {
            return bytes;
        }
        let from = self.samples.iter().filter(|s| s.t_s >= event.onset_s);
        for sample in from.take(MOST).take_while(|s| s.op == Op::Write) {
            let share = ((sample.mb_s - after) / (before - after)).clamp(0.0, 1.0);
            bytes += share * before * 1e6;
            // Noise of the fast level looks like a short slow part.
            if share < 0.9 {
                break;
            }
        }
        bytes
    }

    /// Rates of an operation in seconds that lie in its phases as a whole.
    fn rates(&self, op: Op, from_s: f64, to_s: f64) -> Vec<f64> {
        self.phases
            .iter()
            .filter(|p| p.op == op)
            .flat_map(|p| inside(self.samples, p))
            .filter(|s| s.t_s > from_s && s.t_s <= to_s)
            .map(|s| s.mb_s)
            .collect()
    }

    fn first(&self, causes: &[Cause]) -> Option<&Event> {
        self.verdict.events.iter().find(|e| causes.contains(&e.cause))
    }

    /// Pauses of writes after `from_s`. The share of a second that a pause took follows from the bytes that it cost.
    fn stalls(&self, from_s: f64) -> Vec<Stall> {
        const LOW: f64 = 0.45;
        let rates = self.rates(Op::Write, 0.0, f64::MAX);
        let Some(level) = median(&rates) else {
            return Vec::new();
        };
        let samples: Vec<&Sample> = self
            .samples
            .iter()
            .filter(|s| s.op == Op::Write && s.t_s >= from_s)
            .collect();
        let mut stalls = Vec::new();
        let mut i = 0;
        while let Some(sample) = samples.get(i) {
            if sample.mb_s >= LOW * level {
                i += 1;
                continue;
            }
            let length = samples
                .iter()
                .skip(i)
                .take_while(|s| s.mb_s < LOW * level)
                .count();
            let run = samples.get(i..i + length).unwrap_or_default();
            let low = run.iter().map(|s| s.mb_s).fold(f64::MAX, f64::min);
            // The seconds at both ends were partly paused.
            let around = samples
                .get(i.saturating_sub(1)..(i + length + 1).min(samples.len()))
                .unwrap_or_default();
            let lost = |s: &Sample| ((level - s.mb_s) / (level - low)).clamp(0.0, 1.0);
            let length_s: f64 = around.iter().map(|s| lost(s)).sum();
            let middle_s = around.iter().map(|s| (s.t_s - 0.5) * lost(s)).sum::<f64>() / length_s;
            stalls.push(Stall {
                middle_s,
                length_s,
                low_mb_s: (length > 1).then_some(low),
            });
            i += length;
        }
        stalls
    }
}

/// All figures, by name.
pub fn figures(source: &Source<'_>) -> BTreeMap<String, Figure> {
    let mut all = Figures::default();
    all.totals(source);
    all.temperatures(source);
    all.falls(source);
    all.stalls(source);
    all.rates(source);
    all.put("give_up_after_s", source.gave_up_s, "s");
    for (name, mb_s) in source.row_figures {
        all.put(name, Some(*mb_s), "MB/s");
    }
    if source.workload == "mix" {
        let rows = source.rows.iter().filter_map(|r| r.figures.get("iops"));
        let iops: Vec<f64> = rows.copied().collect();
        all.put("rnd_mix_4k_iops", median(&iops), "IOPS");
    }
    all.0
}

#[derive(Default)]
struct Figures(BTreeMap<String, Figure>);

impl Figures {
    fn put(&mut self, name: &str, value: Option<f64>, unit: &str) {
        if let Some(value) = value.filter(|v| v.is_finite()) {
            let value = (value * 1e4).round() / 1e4;
            let unit = unit.to_owned();
            self.0.insert(name.to_owned(), Figure { value, unit });
        }
    }

    fn totals(&mut self, s: &Source<'_>) {
        for (op, name) in [(Op::Write, "total_written_bytes"), (Op::Read, "total_read_bytes")] {
            let bytes = s.bytes(op);
            self.put(name, (bytes > 0).then_some(bytes as f64 / 1e9), "GB");
        }
        let powers: Vec<f64> = s.samples.iter().filter_map(|s| s.power_w).collect();
        self.put("bus_power_max_w", powers.iter().copied().reduce(f64::max), "W");
        self.put("bus_power_min_w", powers.iter().copied().reduce(f64::min), "W");
    }

    fn temperatures(&mut self, s: &Source<'_>) {
        let temps: Vec<(f64, f64)> = s
            .samples
            .iter()
            .filter_map(|s| Some((s.t_s, s.temp_c?)))
            .collect();
        let (Some((_, first)), Some((end, last))) = (temps.first(), temps.last()) else {
            return;
        };
        self.put("temp_start_c", Some(*first), "°C");
        self.put("temp_end_c", Some(*last), "°C");
        self.put("temp_rise_c", Some(last - first), "°C");
        let highest = temps.iter().map(|(_, c)| *c).fold(f64::MIN, f64::max);
        self.put("max_temp_c", Some(highest), "°C");
        let late: Vec<f64> = temps
            .iter()
            .filter(|(t, _)| *t > end * 2.0 / 3.0)
            .map(|(_, c)| *c)
            .collect();
        let spread = percentile(&late, 0.95)
            .zip(percentile(&late, 0.05))
            .map(|(high, low)| high - low);
        let steady = median(&late).filter(|_| spread.is_some_and(|s| s <= 4.0));
        self.put("steady_temp_c", steady, "°C");
    }

    fn falls(&mut self, s: &Source<'_>) {
        let Some(event) = s.first(&[Cause::Thermal, Cause::SlcCache, Cause::CapacityCliff]) else {
            return;
        };
        let onset = event.onset_s;
        self.put("onset_time_s", Some(onset), "s");
        self.put("onset_temp_c", event.temp_c, "°C");
        self.put(
            "onset_written_bytes",
            Some(s.written_until_fall(event) / 1e9),
            "GB",
        );
        let read = s.bytes_until(Op::Read, onset);
        self.put("onset_read_bytes", (read > 0.0).then_some(read / 1e9), "GB");
        if event.cause != Cause::Thermal {
            self.put("rate_before", event.before_mb_s, "MB/s");
            self.put("rate_after", event.after_mb_s, "MB/s");
            return;
        }
        for op in [Op::Write, Op::Read] {
            let own: Vec<&Event> = s
                .verdict
                .events
                .iter()
                .filter(|e| e.cause == Cause::Thermal && e.op.is_none_or(|o| o == op))
                .collect();
            let Some(first) = own.first() else { continue };
            let before = s.rates(op, 0.0, first.onset_s.min(onset));
            let after: Vec<f64> = own
                .iter()
                .flat_map(|e| s.rates(op, e.onset_s, e.end_s.unwrap_or(f64::MAX)))
                .collect();
            self.put(&format!("{}_unthrottled", op.word()), median(&before), "MB/s");
            self.put(&format!("{}_throttled", op.word()), median(&after), "MB/s");
        }
    }

    fn stalls(&mut self, s: &Source<'_>) {
        let Some(event) = s.first(&[Cause::PeriodicStall]) else {
            return;
        };
        let onset = event.onset_s;
        self.put(
            "stall_onset_written_bytes",
            Some(s.bytes_until(Op::Write, onset) / 1e9),
            "GB",
        );
        let stalls = s.stalls(onset);
        let lengths: Vec<f64> = stalls.iter().map(|s| s.length_s).collect();
        let gaps: Vec<f64> = stalls
            .iter()
            .zip(stalls.iter().skip(1))
            .map(|(a, b)| b.middle_s - a.middle_s - (a.length_s + b.length_s) / 2.0)
            .collect();
        let floor = stalls.iter().filter_map(|s| s.low_mb_s).reduce(f64::max);
        self.put("stall_count", Some(stalls.len() as f64), "");
        self.put("stall_duration_s", median(&lengths), "s");
        self.put("stall_gap_s", median(&gaps), "s");
        self.put("stall_floor", floor, "MB/s");
    }

    fn rates(&mut self, s: &Source<'_>) {
        if !s.rows.is_empty() {
            return;
        }
        let mut ops = Vec::new();
        for op in [Op::Write, Op::Read] {
            let (bytes, seconds) = s
                .phases
                .iter()
                .filter(|p| p.op == op)
                .fold((0.0, 0.0), |(b, t), p| {
                    (b + p.bytes as f64, t + p.end_s - p.start_s)
                });
            let whole = (seconds > 0.0).then(|| bytes / seconds / 1e6);
            let name = if s.workload == "das" {
                format!("das_{}", op.word())
            } else {
                format!("seq_{}", op.word())
            };
            self.put(&name, whole, "MB/s");
            let rates = s.rates(op, 0.0, f64::MAX);
            // Less than a whole second has no more to tell.
            let Some(middle) = median(&rates) else { continue };
            ops.push(op);
            let p5 = percentile(&rates, 0.05);
            self.put(&format!("{}_median", op.word()), Some(middle), "MB/s");
            self.put(
                &format!("{}_consistency_p5_over_p50", op.word()),
                p5.map(|p| p / middle),
                "",
            );
            if let (Op::Write, Some((first, second))) = (op, s.halves(op)) {
                self.put("write_second_half_over_first", Some(second / first), "");
            }
        }
        if let [op] = ops.as_slice() {
            let name = format!("{}_consistency_p5_over_p50", op.word());
            let consistency = self.0.get(&name).map(|f| f.value);
            self.put("consistency_p5_over_p50", consistency, "");
            let middle = self.0.get(&format!("{}_median", op.word())).map(|f| f.value);
            self.put("rate", middle, "MB/s");
        }
    }
}

impl Source<'_> {
    /// Mean rates of the first and the second half of the seconds of an operation.
    fn halves(&self, op: Op) -> Option<(f64, f64)> {
        let rates = self.rates(op, 0.0, f64::MAX);
        let (first, second) = rates.split_at_checked(rates.len() / 2)?;
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        (!first.is_empty()).then(|| (mean(first), mean(second)))
    }
}
