//! Figures of a run, computed from its samples, rows and verdict and from nothing else.

use std::collections::BTreeMap;

use crate::bench::run::{Figure, Phase, Row};
use crate::bench::series::{Moved, Op, Sample};
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

impl Source<'_> {
    /// Bytes written before what begins at a time.
    fn written_until(&self, t_s: f64) -> u64 {
        let until = self.samples.partition_point(|s| s.t_s <= t_s);
        Moved::by(self.samples.get(..until).unwrap_or(self.samples)).written_bytes
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

    /// A metric of the verdict: what both name has one value.
    fn metric(&self, name: &str) -> Option<f64> {
        self.verdict.metrics.get(name)?.as_f64()
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

    /// Whole bytes.
    fn put_bytes(&mut self, name: &str, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            let (value, unit) = (bytes as f64, "B".to_owned());
            self.0.insert(name.to_owned(), Figure { value, unit });
        }
    }

    fn totals(&mut self, s: &Source<'_>) {
        for (metric, name) in [
            ("written_bytes", "total_written_bytes"),
            ("read_bytes", "total_read_bytes"),
        ] {
            let bytes = s.verdict.metrics.get(metric).and_then(|v| v.as_u64());
            self.put_bytes(name, bytes.filter(|b| *b > 0));
        }
        let powers: Vec<f64> = s.samples.iter().filter_map(|s| s.power_w).collect();
        self.put("bus_power_max_w", powers.iter().copied().reduce(f64::max), "W");
        self.put("bus_power_min_w", powers.iter().copied().reduce(f64::min), "W");
    }

    fn temperatures(&mut self, s: &Source<'_>) {
        let temps: Vec<f64> = s.samples.iter().filter_map(|s| s.temp_c).collect();
        let (Some(first), Some(last)) = (temps.first(), temps.last()) else {
            return;
        };
        self.put("temp_start_c", Some(*first), "°C");
        self.put("temp_end_c", Some(*last), "°C");
        for name in ["temp_rise_c", "max_temp_c", "steady_temp_c"] {
            self.put(name, s.metric(name), "°C");
        }
    }

    /// The onset is that of the headline; the first fall of the level may be another.
    fn falls(&mut self, s: &Source<'_>) {
        let verdict = s.verdict;
        self.put("onset_time_s", verdict.onset_s, "s");
        self.put("onset_temp_c", verdict.onset_temp_c, "°C");
        self.put_bytes("onset_written_bytes", verdict.onset_written_bytes);
        let read = verdict.onset_total_bytes.zip(verdict.onset_written_bytes);
        let read = read.map(|(total, written)| total.saturating_sub(written));
        self.put_bytes("onset_read_bytes", read.filter(|bytes| *bytes > 0));
        if verdict.cause == Cause::Thermal {
            for op in [Op::Write, Op::Read] {
                for level in ["unthrottled", "throttled"] {
                    let value = s.metric(&format!("{level}_mb_s{{{}}}", op.word()));
                    self.put(&format!("{}_{level}", op.word()), value, "MB/s");
                }
            }
        }
        let Some(fall) = s.first(&[Cause::Thermal, Cause::SlcCache, Cause::CapacityCliff]) else {
            return;
        };
        self.put("first_fall_s", Some(fall.onset_s), "s");
        self.put_bytes("first_fall_written_bytes", Some(s.written_until(fall.onset_s)));
        self.put("first_fall_rate_before", fall.before_mb_s, "MB/s");
        self.put("first_fall_rate_after", fall.after_mb_s, "MB/s");
    }

    fn stalls(&mut self, s: &Source<'_>) {
        let Some(event) = s.first(&[Cause::PeriodicStall]) else {
            return;
        };
        self.put_bytes("stall_onset_written_bytes", Some(s.written_until(event.onset_s)));
        for (name, metric, unit) in [
            ("stall_count", "stall_count", ""),
            ("stall_s", "stall_s{median}", "s"),
            ("stall_gap_s", "stall_gap_s{median}", "s"),
            ("stall_floor_mb_s", "stall_floor_mb_s", "MB/s"),
        ] {
            self.put(name, s.metric(metric), unit);
        }
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
            self.put(&format!("{}_median", op.word()), Some(middle), "MB/s");
            let consistency = s.metric(&format!("consistency{{{}}}", op.word()));
            self.put(&format!("{}_consistency_p5_over_p50", op.word()), consistency, "");
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
