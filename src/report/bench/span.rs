//! How long each sample is: `t_s` is its end, and rows may be missing before it.

use crate::bench::series::Sample;

/// Samples with a usable time and rate, in the order of time.
pub fn ordered(samples: &[Sample]) -> Vec<&Sample> {
    let mut ordered: Vec<&Sample> = samples
        .iter()
        .filter(|s| (-1e12..=1e12).contains(&s.t_s) && (0.0..=1e12).contains(&s.mb_s))
        .collect();
    ordered.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    ordered
}

/// The usual distance of samples, in seconds: the median.
pub fn usual(samples: &[&Sample]) -> f64 {
    let mut gaps: Vec<f64> = samples
        .windows(2)
        .map(|pair| pair[1].t_s - pair[0].t_s)
        .filter(|gap| *gap > 0.0)
        .collect();
    gaps.sort_by(f64::total_cmp);
    match gaps.get(gaps.len() / 2) {
        Some(gap) => *gap,
        None => samples.first().map_or(1.0, |s| s.t_s.clamp(1e-6, 1.0)),
    }
}

/// The length of each sample, in seconds: to the one before it; behind a gap what its bytes say, else the usual.
pub fn lengths(samples: &[&Sample]) -> Vec<f64> {
    let usual = usual(samples);
    let mut before: Option<&Sample> = None;
    samples
        .iter()
        .map(|sample| {
            let gap = sample.t_s - before.map_or(0.0_f64.min(sample.t_s), |b| b.t_s);
            let bytes = sample
                .cumulative_bytes
                .saturating_sub(before.map_or(0, |b| b.cumulative_bytes));
            before = Some(sample);
            if gap <= 1.5 * usual {
                return gap.max(0.0);
            }
            let by_bytes = bytes as f64 / (sample.mb_s * 1e6);
            if by_bytes.is_finite() && by_bytes > 0.0 && by_bytes < gap * 1.001 {
                by_bytes.min(gap)
            } else {
                usual.min(gap)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::series::Op;

    fn sample(t_s: f64, mb_s: f64, cumulative_bytes: u64) -> Sample {
        Sample {
            t_s,
            mb_s,
            cumulative_bytes,
            temp_c: None,
            op: Op::Write,
            smart_ms: None,
            power_w: None,
            iops: None,
            lat_p99_us: None,
            other_bytes: None,
        }
    }

    #[test]
    fn a_missing_row_is_not_made_up() {
        let samples = [
            sample(1.0, 10.0, 10_000_000),
            sample(2.0, 10.0, 20_000_000),
            sample(5.0, 10.0, 30_000_000),
            sample(9.0, 10.0, 70_000_000),
            sample(9.5, 10.0, 75_000_000),
            sample(10.5, 10.0, 85_000_000),
        ];
        let lengths = lengths(&ordered(&samples));
        assert_eq!(lengths, [1.0, 1.0, 1.0, 4.0, 0.5, 1.0]);
        assert_eq!(super::lengths(&[]), Vec::<f64>::new());
    }
}
