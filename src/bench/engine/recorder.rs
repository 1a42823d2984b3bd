//! From completions to samples of one second.

use std::time::Duration;

use crate::bench::series::{Op, Sample};

/// Length of an interval.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// A last interval that is shorter says nothing.
const SHORTEST: Duration = Duration::from_millis(10);

/// Collects what completes.
#[derive(Debug, Default)]
pub struct Recorder {
    start: Duration,
    bytes: [u64; 2],
    requests: u64,
    latencies_us: Vec<(u32, u32)>,
    cumulative: u64,
    temp_c: Option<f64>,
    read_ms: Option<f64>,
    energy_j: Option<f64>,
    /// What the present stage moves.
    pub op: Option<Op>,
    /// Intervals that are over.
    pub samples: Vec<Sample>,
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

impl Recorder {
    /// From the start of the run, where a meter shows so much.
    pub fn new(energy_j: Option<f64>) -> Self {
        Self {
            energy_j,
            ..Self::default()
        }
    }

    /// Requests came back.
    pub fn completed(&mut self, op: Op, bytes: u64, merged: u32, latency: Duration) {
        if let Some(slot) = self.bytes.get_mut(usize::from(op == Op::Write)) {
            *slot += bytes;
        }
        self.cumulative += bytes;
        self.requests += u64::from(merged);
        let us = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
        self.latencies_us.push((us, merged));
    }

    /// A temperature was read, in so long.
    pub fn temperature(&mut self, celsius: Option<f64>, took: Duration) {
        self.temp_c = celsius.or(self.temp_c);
        let ms = rounded(took.as_secs_f64() * 1e3, 3);
        self.read_ms = Some(self.read_ms.unwrap_or_default() + ms);
    }

    /// The interval is over at `end`, and a meter shows so much.
    pub fn close(&mut self, end: Duration, energy_j: Option<f64>) {
        let length = end.saturating_sub(self.start);
        if length < SHORTEST {
            self.add_to_last(end);
            return;
        }
        let seconds = length.as_secs_f64();
        let [read, written] = std::mem::take(&mut self.bytes);
        let op = match (read + written, self.op) {
            (0, op) => op.unwrap_or(Op::Idle),
            _ if written >= read => Op::Write,
            _ => Op::Read,
        };
        let other = match op {
            Op::Write => read,
            Op::Read => written,
            Op::Idle => 0,
        };
        let requests = std::mem::take(&mut self.requests);
        let power_w = energy_j
            .zip(self.energy_j)
            .map(|(now, before)| rounded((now - before) / seconds, 4));
        self.samples.push(Sample {
            t_s: rounded(end.as_secs_f64(), 6),
            mb_s: rounded((read + written) as f64 / seconds / 1e6, 4),
            cumulative_bytes: self.cumulative,
            temp_c: self.temp_c.take(),
            op,
            smart_ms: self.read_ms.take(),
            power_w,
            iops: (requests > 0).then(|| rounded(requests as f64 / seconds, 2)),
            lat_p99_us: p99(&mut self.latencies_us, requests),
            other_bytes: Some(other).filter(|bytes| *bytes > 0),
        });
        self.latencies_us.clear();
        self.energy_j = energy_j;
        self.start = end;
    }

    /// A last interval that says nothing by itself makes the one before longer, if it moved something: no byte is lost.
    fn add_to_last(&mut self, end: Duration) {
        let before = self
            .samples
            .len()
            .checked_sub(2)
            .and_then(|i| self.samples.get(i));
        let start_s = before.map_or(0.0, |s| s.t_s);
        let bytes_before = before.map_or(0, |s| s.cumulative_bytes);
        let [read, written] = std::mem::take(&mut self.bytes);
        let Some(last) = self.samples.last_mut().filter(|_| read + written > 0) else {
            return;
        };
        let other = match last.op {
            Op::Write => read,
            Op::Read => written,
            Op::Idle => 0,
        };
        last.t_s = rounded(end.as_secs_f64(), 6);
        last.cumulative_bytes = self.cumulative;
        let seconds = (last.t_s - start_s).max(SHORTEST.as_secs_f64());
        last.mb_s = rounded((self.cumulative - bytes_before) as f64 / seconds / 1e6, 4);
        last.other_bytes = last.other_bytes.or(Some(0)).map(|o| o + other).filter(|o| *o > 0);
        self.start = end;
    }
}

/// 99th percentile of latencies, each with how many requests had it.
fn p99(latencies: &mut [(u32, u32)], requests: u64) -> Option<f64> {
    latencies.sort_unstable();
    let rank = (requests * 99).div_ceil(100);
    let mut seen = 0;
    latencies
        .iter()
        .find(|(_, count)| {
            seen += u64::from(*count);
            seen >= rank
        })
        .map(|(us, _)| f64::from(*us))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_sample_is_what_completed_by_the_real_length() {
        let mut recorder = Recorder::new(Some(10.0));
        recorder.op = Some(Op::Write);
        recorder.completed(Op::Write, 30_000_000, 1, ms(5));
        recorder.completed(Op::Read, 10_000_000, 1, ms(9));
        recorder.temperature(Some(41.0), Duration::from_micros(1500));
        recorder.close(ms(1000), Some(13.0));
        recorder.completed(Op::Read, 5_000_000, 4, ms(1));
        // A late timer makes a longer interval.
        recorder.close(ms(2250), Some(15.5));
        recorder.close(ms(3250), Some(16.5));
        recorder.close(ms(3255), None);
        recorder.op = Some(Op::Idle);
        recorder.close(ms(3750), None);
        let s = &recorder.samples;
        let rates: Vec<(f64, f64, u64, Op)> = s
            .iter()
            .map(|s| (s.t_s, s.mb_s, s.cumulative_bytes, s.op))
            .collect();
        assert_eq!(
            rates,
            [
                (1.0, 40.0, 40_000_000, Op::Write),
                (2.25, 4.0, 45_000_000, Op::Read),
                (3.25, 0.0, 45_000_000, Op::Write),
                (3.75, 0.0, 45_000_000, Op::Idle),
            ]
        );
        let other: Vec<Option<u64>> = s.iter().map(|s| s.other_bytes).collect();
        assert_eq!(other, [Some(10_000_000), None, None, None]);
        let first = s.first().unwrap();
        assert_eq!(
            (first.temp_c, first.smart_ms, first.power_w),
            (Some(41.0), Some(1.5), Some(3.0))
        );
        assert_eq!((first.iops, first.lat_p99_us), (Some(2.0), Some(9000.0)));
        let second = s.get(1).unwrap();
        assert_eq!(second.temp_c, None, "an old temperature is never repeated");
        assert_eq!(
            (second.power_w, second.iops, second.lat_p99_us),
            (Some(2.0), Some(3.2), Some(1000.0))
        );
    }
}
