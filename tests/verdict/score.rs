//! Scores a detector the way the traces' description says.

use std::fmt;
use std::ops::Range;

use drivethru::bench::detect::Online;
use drivethru::bench::series::{Op, Series};
use drivethru::bench::verdict::{Cause, Verdict};

const CAUSES: [Cause; 7] = [
    Cause::Thermal,
    Cause::PeriodicStall,
    Cause::Link,
    Cause::CapacityCliff,
    Cause::SlcCache,
    Cause::HostNoise,
    Cause::None,
];

/// A trace and the truth.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub cause: Cause,
    pub onset_s: Option<f64>,
    /// What ran in each second; the end of the second.
    pub ran: Vec<(f64, Op)>,
    /// Until then nothing happened; absent where that is not known.
    pub quiet_until_s: Option<f64>,
    /// When somebody who sees the samples one by one says something.
    pub alarms_s: Vec<f64>,
}

impl Case {
    /// With what is in the series.
    pub fn new(name: String, cause: Cause, onset_s: Option<f64>, series: &Series) -> Self {
        let mut online = Online::new(&series.context);
        Self {
            name,
            cause,
            onset_s,
            ran: series.samples.iter().map(|s| (s.t_s, s.op)).collect(),
            quiet_until_s: None,
            alarms_s: series
                .samples
                .iter()
                .filter_map(|s| online.push(s))
                .map(|a| a.t_s)
                .collect(),
        }
    }
}

/// The median, and the value that a tenth lies over.
pub fn middle_and_worst(mut delays: Vec<f64>) -> (f64, f64) {
    delays.sort_by(f64::total_cmp);
    let at = |i: usize| delays.get(i).copied().unwrap_or(f64::NAN);
    (at(delays.len() / 2), at(delays.len() * 9 / 10))
}

#[derive(Debug, Default)]
pub struct Score {
    rows: Vec<(Case, Verdict)>,
}

impl Score {
    pub fn add(&mut self, case: Case, verdict: &Verdict) {
        assert!((0.0..=1.0).contains(&verdict.confidence), "{}", case.name);
        self.rows.push((case, verdict.clone()));
    }

    fn count(&self, test: impl Fn(&Case, &Verdict) -> bool) -> f64 {
        self.rows.iter().filter(|(c, v)| test(c, v)).count() as f64
    }

    pub fn precision(&self, cause: Cause) -> f64 {
        let said = self.count(|_, v| v.cause == cause);
        if said == 0.0 {
            return 1.0;
        }
        self.count(|c, v| v.cause == cause && c.cause == cause) / said
    }

    fn f1(&self, cause: Cause) -> Option<f64> {
        let right = self.count(|c, v| v.cause == cause && c.cause == cause);
        let said = self.count(|_, v| v.cause == cause);
        let is = self.count(|c, _| c.cause == cause);
        (said + is > 0.0).then(|| 2.0 * right / (said + is))
    }

    pub fn macro_f1(&self) -> f64 {
        let all: Vec<f64> = CAUSES.iter().filter_map(|c| self.f1(*c)).collect();
        all.iter().sum::<f64>() / all.len() as f64
    }

    fn hit(case: &Case, verdict: &Verdict) -> Option<bool> {
        let onset = case.onset_s?;
        let near = |o: f64| (o - onset).abs() <= (0.05 * onset).max(5.0);
        Some(verdict.cause == case.cause && verdict.onset_s.is_some_and(near))
    }

    pub fn onset_hits(&self) -> f64 {
        let scored: Vec<bool> = self.rows.iter().filter_map(|(c, v)| Self::hit(c, v)).collect();
        scored.iter().filter(|h| **h).count() as f64 / scored.len().max(1) as f64
    }

    pub fn brier(&self) -> f64 {
        let sum: f64 = self
            .rows
            .iter()
            .map(|(c, v)| (v.confidence - f64::from(u8::from(c.cause == v.cause))).powi(2))
            .sum();
        sum / self.rows.len().max(1) as f64
    }

    fn delays(&self) -> Vec<f64> {
        let mut delays: Vec<f64> = self
            .rows
            .iter()
            .filter(|(c, v)| c.cause == v.cause)
            .filter_map(|(c, v)| Some(v.detected_s? - c.onset_s?))
            .collect();
        delays.sort_by(f64::total_cmp);
        delays
    }

    pub fn median_delay_s(&self) -> f64 {
        let delays = self.delays();
        delays.get(delays.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn worst_tenth_s(&self) -> f64 {
        let delays = self.delays();
        delays.get(delays.len() * 9 / 10).copied().unwrap_or(f64::NAN)
    }

    /// Delays of falls whose depth in percent lies in a range: the trace, seconds on the clock, seconds in which the operation
    /// that fell ran.
    pub fn delays_of(&self, depth: Range<f64>) -> Vec<(String, f64, f64)> {
        self.rows
            .iter()
            .filter(|(c, v)| c.cause == v.cause)
            .filter_map(|(c, v)| {
                let event = v.events.iter().find(|e| e.cause == v.cause)?;
                let (onset, detected) = (c.onset_s?, v.detected_s?);
                let away: f64 = c
                    .ran
                    .iter()
                    .filter(|(t, op)| *t > onset && *t <= detected && event.op.is_some_and(|o| o != *op))
                    .count() as f64;
                event
                    .drop_pct
                    .is_some_and(|d| depth.contains(&d))
                    .then(|| (c.name.clone(), detected - onset, detected - onset - away))
            })
            .collect()
    }

    /// Alarms while nothing had happened yet, with what they are of.
    pub fn unfounded(&self) -> Vec<(String, f64)> {
        self.rows
            .iter()
            .filter_map(|(c, _)| Some((c, c.quiet_until_s?)))
            .flat_map(|(c, quiet)| c.alarms_s.iter().map(move |t| (c, quiet, *t)))
            .filter(|(_, quiet, t)| t < quiet)
            .map(|(c, _, t)| (c.name.clone(), t))
            .collect()
    }

    /// Falls that were noticed over two seconds before they happened: an alarm that belongs to an earlier event counts, if that
    /// was taken for the headline.
    pub fn early(&self) -> usize {
        self.delays().iter().filter(|d| **d < -2.0).count()
    }

    pub fn summary(&self) -> String {
        format!(
            "verdict: {} series, macro-F1 {:.3}, thermal precision {:.3}, onset {:.3}, Brier {:.3}, delay {:.1} s (worst tenth {:.1} s), early {}, unfounded {}",
            self.rows.len(),
            self.macro_f1(),
            self.precision(Cause::Thermal),
            self.onset_hits(),
            self.brier(),
            self.median_delay_s(),
            self.worst_tenth_s(),
            self.early(),
            self.unfounded().len(),
        )
    }

    /// Only what went wrong.
    pub fn faults(&self) -> String {
        let mut out = String::new();
        for (c, v) in &self.rows {
            if c.cause != v.cause || Self::hit(c, v) == Some(false) {
                out.push_str(&line(c, v));
            }
        }
        out
    }
}

fn line(case: &Case, verdict: &Verdict) -> String {
    let seconds = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), |s| format!("{s:.1}"));
    let mark = match (case.cause == verdict.cause, Score::hit(case, verdict)) {
        (false, _) => "WRONG",
        (_, Some(false)) => "onset",
        _ => "",
    };
    format!(
        "{:<28} {:<15} {:<15} {:>8} {:>8} {:>8} {:>6.2} {mark}\n",
        case.name,
        case.cause.word(),
        verdict.cause.word(),
        seconds(case.onset_s),
        seconds(verdict.onset_s),
        seconds(verdict.detected_s),
        verdict.confidence,
    )
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (c, v) in &self.rows {
            f.write_str(&line(c, v))?;
        }
        f.write_str(&self.summary())
    }
}
