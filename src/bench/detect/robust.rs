//! Statistics that an outlier does not move (throttling-detection.md §3).

/// Turns a deviation from the median into a standard deviation, for normal noise.
const MAD_TO_SIGMA: f64 = 1.4826;

/// The `q`-quantile (0 to 1) of finite values, nearest rank; absent when there are none.
pub(super) fn quantile(values: &mut [f64], q: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let last = values.len() - 1;
    let rank = ((last as f64 * q.clamp(0.0, 1.0)).round() as usize).min(last);
    let (_, value, _) = values.select_nth_unstable_by(rank, f64::total_cmp);
    Some(*value)
}

/// The median, of two middle values the mean.
pub(super) fn median_of(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let even = values.len().is_multiple_of(2);
    let (below, value, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let value = *value;
    let below = below.iter().copied().max_by(f64::total_cmp);
    Some(match below {
        Some(below) if even => f64::midpoint(below, value),
        _ => value,
    })
}

/// The median of whatever comes.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    median_of(&mut values.into_iter().collect::<Vec<_>>())
}

/// A standard deviation from the median of absolute deviations from the median.
pub(super) fn mad_sigma(values: &[f64]) -> Option<f64> {
    let centre = median(values.iter().copied())?;
    median(values.iter().map(|v| (v - centre).abs())).map(|mad| MAD_TO_SIGMA * mad)
}

/// Noise of a series in logarithms: from first differences, so that levels do not count; at least 0.01.
pub(super) fn noise_sigma(ln: &[f64]) -> f64 {
    let differences: Vec<f64> = ln
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] => Some(b - a),
            _ => None,
        })
        .collect();
    mad_sigma(&differences)
        .map_or(0.01, |s| s / std::f64::consts::SQRT_2)
        .max(0.01)
}

/// The `q`-quantile of the `half` values on either side of each value and of itself.
pub(super) fn rolling(values: &[f64], half: usize, q: f64) -> Vec<f64> {
    let mut window: Vec<f64> = Vec::with_capacity(2 * half + 2);
    let mut out = Vec::with_capacity(values.len());
    let place = |window: &Vec<f64>, v: f64| window.partition_point(|x| x.total_cmp(&v).is_lt());
    for v in values.iter().take(half).copied() {
        let at = place(&window, v);
        window.insert(at, v);
    }
    for i in 0..values.len() {
        if let Some(&new) = values.get(i + half) {
            let at = place(&window, new);
            window.insert(at, new);
        }
        if let Some(&old) = i.checked_sub(half + 1).and_then(|k| values.get(k)) {
            let at = place(&window, old);
            if at < window.len() {
                window.remove(at);
            }
        }
        let last = window.len().saturating_sub(1);
        let rank = (last as f64 * q).round() as usize;
        out.push(window.get(rank).copied().unwrap_or(0.0));
    }
    out
}

/// Ranks, equal values sharing their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0_usize;
    for tie in order.chunk_by(|a, b| a.1 == b.1) {
        let rank = before as f64 + (tie.len() as f64 - 1.0) / 2.0;
        for (i, _) in tie {
            if let Some(slot) = ranks.get_mut(*i) {
                *slot = rank;
            }
        }
        before += tie.len();
    }
    ranks
}

/// Pearson's correlation; absent where one side does not vary.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = a.len().min(b.len()) as f64;
    if n < 3.0 {
        return None;
    }
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let (ma, mb) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        ab += (x - ma) * (y - mb);
        aa += (x - ma) * (x - ma);
        bb += (y - mb) * (y - mb);
    }
    (aa > 0.0 && bb > 0.0).then(|| ab / (aa * bb).sqrt())
}

/// Spearman's rank correlation.
pub(super) fn rank_correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    correlation(&ranks(a), &ranks(b))
}

/// Least squares: `(intercept, slope)` of y over x.
pub(super) fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    if points.len() < 2 {
        return None;
    }
    let mx = points.iter().map(|p| p.0).sum::<f64>() / n;
    let my = points.iter().map(|p| p.1).sum::<f64>() / n;
    let xx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let xy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    if xx <= 0.0 {
        return None;
    }
    let slope = xy / xx;
    Some((my - slope * mx, slope))
}

/// Standard deviation by mean; absent without a mean to divide by.
pub(super) fn variation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 || mean <= 0.0 {
        return None;
    }
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(variance.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_moves_nothing() {
        assert_eq!(median([1.0, 2.0, 3.0, 4.0, 1e9]), Some(3.0));
        assert_eq!(median([1.0, 2.0, 3.0, 4.0]), Some(2.5));
        assert_eq!(median([]), None);
        assert_eq!(quantile(&mut [], 0.5), None);
        assert_eq!(quantile(&mut [5.0, 1.0, 3.0], 1.0), Some(5.0));
        assert_eq!(mad_sigma(&[1.0, 1.0, 1.0, 1e9]), Some(0.0));
    }

    #[test]
    fn the_noise_of_a_step_is_the_noise_of_its_levels() {
        let ln: Vec<f64> = (0..200)
            .map(|i| if i < 100 { 5.0 } else { 3.0 } + if i % 4 < 2 { 0.02 } else { -0.02 } + f64::from(i % 3) * 0.01)
            .collect();
        let sigma = noise_sigma(&ln);
        assert!((0.01..0.04).contains(&sigma), "{sigma}");
        assert!((noise_sigma(&[]) - 0.01).abs() < 1e-12);
    }

    #[test]
    fn the_rolling_median_follows() {
        let values = [1.0, 9.0, 1.0, 1.0, 5.0, 5.0, 5.0];
        assert_eq!(rolling(&values, 1, 0.5), [9.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0]);
        assert_eq!(rolling(&[], 45, 0.5), [0.0; 0]);
        assert_eq!(rolling(&[2.0], 45, 0.5), [2.0]);
    }

    #[test]
    fn ranks_share_ties() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0]), [1.5, 0.0, 1.5]);
        assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[9.0, 4.0, 1.0]), Some(-1.0));
        assert_eq!(rank_correlation(&[1.0, 1.0, 1.0], &[9.0, 4.0, 1.0]), None);
    }

    #[test]
    fn lines_and_variations() {
        assert_eq!(line(&[(0.0, 1.0), (2.0, 5.0)]), Some((1.0, 2.0)));
        assert_eq!(line(&[(1.0, 1.0), (1.0, 5.0)]), None);
        assert_eq!(variation(&[2.0, 2.0, 2.0]), Some(0.0));
        assert_eq!(variation(&[2.0]), None);
    }
}
