//! Levels of a series: penalised least squares, solved with PELT pruning, and neighbours merged (throttling-detection.md §4).

use super::robust;

/// Shortest level, in samples.
pub(super) const MIN_SAMPLES: usize = 8;
/// Neighbours nearer than this are one level.
const MERGE_PCT: f64 = 0.08;
/// How many deviations a border needs.
const MIN_Z: f64 = 5.0;
/// Longer series are searched on a grid: up to the first number every sample may be a border, up to the second every fourth.
const EXACT_SAMPLES: usize = 3_000;
const GRID_BORDERS: usize = 12_000;
/// A median of more samples than this is taken of some of them.
const MEDIAN_SAMPLES: usize = 4_096;

/// A stretch at one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Segment {
    /// First sample.
    pub start: usize,
    /// The one behind the last.
    pub end: usize,
    /// ln of its level.
    pub ln_level: f64,
}

impl Segment {
    pub fn len(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Its level, in MB/s.
    pub fn level(&self) -> f64 {
        self.ln_level.exp()
    }
}

/// The levels of a series of ln(rate) from which dips are gone.
pub(super) fn segments(ln: &[f64]) -> Vec<Segment> {
    if ln.is_empty() {
        return Vec::new();
    }
    let smooth = robust::rolling(ln, 2, 0.5);
    let sigma = robust::noise_sigma(ln);
    let penalty = 12.0 * sigma * sigma * (ln.len() as f64).ln().max(1.0);
    let borders = pelt(&smooth, penalty, grid(ln.len()));
    let mut levels = Vec::with_capacity(borders.len() + 1);
    let mut start = 0;
    for end in borders.into_iter().chain([ln.len()]) {
        levels.push(level(ln, start, end));
        start = end;
    }
    merge(ln, &mut levels);
    dissolve(ln, &mut levels);
    levels
}

/// Distance of possible borders.
fn grid(n: usize) -> usize {
    if n <= EXACT_SAMPLES {
        1
    } else {
        (n.div_ceil(GRID_BORDERS)).max(4)
    }
}

fn level(ln: &[f64], start: usize, end: usize) -> Segment {
    let samples = ln.get(start..end).unwrap_or(&[]);
    let stride = samples.len().div_ceil(MEDIAN_SAMPLES).max(1);
    Segment {
        start,
        end,
        ln_level: robust::median(samples.iter().step_by(stride).copied()).unwrap_or(0.0),
    }
}

/// A possible last border, with the best cost of everything before it.
#[derive(Clone, Copy)]
struct Candidate {
    at: usize,
    best: f64,
    sum: f64,
    squares: f64,
    /// Where it is out of the race: a better one needs room for a whole level first.
    dies: usize,
}

/// Borders (first sample of each level but the first) that minimise squares + penalty per border, levels at least
/// [`MIN_SAMPLES`] long, borders on multiples of `step` (Killick, Fearnhead, Eckley 2012).
pub(super) fn pelt(values: &[f64], penalty: f64, step: usize) -> Vec<usize> {
    let n = values.len();
    let step = step.max(1);
    let shortest = MIN_SAMPLES.div_ceil(step) * step;
    if n < 2 * shortest {
        return Vec::new();
    }
    // Sums from a middle value: differences of large sums lose digits.
    let centre = values.get(n / 2).copied().unwrap_or(0.0);
    let mut candidates = vec![Candidate {
        at: 0,
        best: -penalty,
        sum: 0.0,
        squares: 0.0,
        dies: usize::MAX,
    }];
    let mut waiting: std::collections::VecDeque<Candidate> = std::collections::VecDeque::new();
    let mut previous = vec![0_usize; n / step + 2];
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut costs: Vec<f64> = Vec::new();
    for (i, v) in values.iter().enumerate() {
        let v = v - centre;
        sum += v;
        squares += v * v;
        let at = i + 1;
        if at < shortest || (at % step != 0 && at != n) {
            continue;
        }
        while let Some(ready) = waiting.front().copied().filter(|c| at - c.at >= shortest) {
            candidates.push(ready);
            waiting.pop_front();
        }
        costs.clear();
        costs.extend(candidates.iter().map(|c| {
            let part = sum - c.sum;
            c.best + (squares - c.squares) - part * part / (at - c.at) as f64
        }));
        let mut best = f64::INFINITY;
        for &cost in &costs {
            best = best.min(cost);
        }
        let last = costs
            .iter()
            .position(|c| *c <= best)
            .and_then(|k| candidates.get(k))
            .map_or(0, |c| c.at);
        let best = best + penalty;
        if let Some(slot) = previous.get_mut(at.div_ceil(step)) {
            *slot = last;
        }
        let mut kept = costs.iter();
        candidates.retain_mut(|c| {
            if c.dies == usize::MAX && kept.next().is_some_and(|cost| *cost > best) {
                c.dies = at + shortest;
            } else if c.dies != usize::MAX {
                kept.next();
            }
            at < c.dies
        });
        if at != n {
            waiting.push_back(Candidate {
                at,
                best,
                sum,
                squares,
                dies: usize::MAX,
            });
        }
    }
    let mut borders = Vec::new();
    let mut at = n;
    while let Some(&last) = previous.get(at.div_ceil(step)) {
        if last == 0 || last >= at {
            break;
        }
        borders.push(last);
        at = last;
    }
    borders.reverse();
    borders
}

/// Joins `index` with the next one.
fn join(ln: &[f64], levels: &mut Vec<Segment>, index: usize) {
    if index + 1 >= levels.len() {
        return;
    }
    let next = levels.remove(index + 1);
    if let Some(this) = levels.get_mut(index) {
        *this = level(ln, this.start, next.end);
    }
}

/// The border with the lowest figure: index of the level before it, and the figure.
fn weakest(levels: &[Segment], figure: impl Fn(&Segment, &Segment) -> f64) -> Option<(usize, f64)> {
    levels
        .windows(2)
        .enumerate()
        .filter_map(|(i, pair)| match pair {
            [a, b] => Some((i, figure(a, b))),
            _ => None,
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Neighbours whose levels differ by less than 8 % become one, weakest first.
fn merge(ln: &[f64], levels: &mut Vec<Segment>) {
    let difference = |a: &Segment, b: &Segment| 1.0 - (-(a.ln_level - b.ln_level).abs()).exp();
    while let Some((i, _)) = weakest(levels, difference).filter(|(_, d)| *d < MERGE_PCT) {
        join(ln, levels, i);
    }
}

/// Borders that slow noise could have made are dissolved, weakest first.
fn dissolve(ln: &[f64], levels: &mut Vec<Segment>) {
    loop {
        if levels.len() < 2 {
            return;
        }
        let (deviation, rho) = residual_noise(ln, levels);
        let scale = deviation * ((1.0 + rho) / (1.0 - rho)).sqrt();
        let z = |a: &Segment, b: &Segment| {
            let n = 1.0 / a.len().max(1) as f64 + 1.0 / b.len().max(1) as f64;
            (a.ln_level - b.ln_level).abs() / (scale * n.sqrt())
        };
        // The noise is estimated again after each border, of very many after each sixteenth of them.
        for _ in 0..levels.len().div_ceil(16) {
            match weakest(levels, z) {
                Some((i, z)) if z < MIN_Z => join(ln, levels, i),
                _ => {
                    merge(ln, levels);
                    return;
                }
            }
        }
    }
}

/// Robust deviation and lag-1 correlation (0 to 0.9) of what the levels leave.
fn residual_noise(ln: &[f64], levels: &[Segment]) -> (f64, f64) {
    let mut residuals = Vec::with_capacity(ln.len().min(4 * MEDIAN_SAMPLES) + 1);
    // Enough of a long series tells its noise; neighbours stay neighbours.
    let stride = ln.len().div_ceil(4 * MEDIAN_SAMPLES).max(1);
    for level in levels {
        let samples = ln.get(level.start..level.end).unwrap_or(&[]);
        for (k, block) in samples.chunks(64).enumerate() {
            if k % stride == 0 {
                residuals.extend(block.iter().map(|v| v - level.ln_level));
            }
        }
    }
    let deviation = robust::mad_sigma(&residuals).unwrap_or(0.0).max(0.01);
    let clip = |v: f64| v.clamp(-3.0 * deviation, 3.0 * deviation);
    let (mut together, mut alone) = (0.0, 0.0);
    for pair in residuals.windows(2) {
        if let [a, b] = pair {
            together += clip(*a) * clip(*b);
            alone += clip(*a) * clip(*a);
        }
    }
    let rho = if alone > 0.0 { together / alone } else { 0.0 };
    (deviation, rho.clamp(0.0, 0.9))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(levels: &[(f64, usize)]) -> Vec<f64> {
        let mut out = Vec::new();
        for (level, n) in levels {
            for i in 0..*n {
                out.push(level.ln() + if i % 2 == 0 { 0.01 } else { -0.01 });
            }
        }
        out
    }

    fn borders(ln: &[f64]) -> Vec<usize> {
        segments(ln).iter().skip(1).map(|s| s.start).collect()
    }

    #[test]
    fn steps_are_found_where_they_are() {
        assert_eq!(
            borders(&steps(&[(100.0, 60), (80.0, 60), (100.0, 20)])),
            [60, 120]
        );
        assert_eq!(borders(&steps(&[(100.0, 60), (95.0, 60)])), [0_usize; 0]);
        assert_eq!(borders(&steps(&[(100.0, 8), (50.0, 8)])), [8]);
        assert_eq!(borders(&steps(&[(100.0, 5)])), [0_usize; 0]);
        assert_eq!(segments(&[]), []);
    }

    #[test]
    fn pelt_finds_the_optimum_that_trying_everything_finds() {
        // Every partition of a short series, by plain dynamic programming.
        let mut seed = 7_u64;
        for round in 0..20 {
            let mut values: Vec<f64> = Vec::new();
            for i in 0..70_u32 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let noise = (seed >> 33) as f64 / f64::from(u32::MAX) - 0.25;
                let level = if (i / 17) % 2 == round % 2 { 0.0 } else { 0.4 };
                values.push(level + noise * 0.4);
            }
            let penalty = 0.15;
            let cost = |a: usize, b: usize| {
                let part = values.get(a..b).unwrap_or(&[]);
                let mean = part.iter().sum::<f64>() / part.len() as f64;
                part.iter().map(|v| (v - mean).powi(2)).sum::<f64>()
            };
            let n = values.len();
            let mut best = vec![f64::INFINITY; n + 1];
            *best.first_mut().expect("one") = -penalty;
            for at in MIN_SAMPLES..=n {
                let b = (0..=at - MIN_SAMPLES)
                    .map(|s| best.get(s).copied().expect("in range") + cost(s, at) + penalty)
                    .fold(f64::INFINITY, f64::min);
                *best.get_mut(at).expect("in range") = b;
            }
            let found = pelt(&values, penalty, 1);
            let mut total = -penalty;
            let mut start = 0;
            for end in found.iter().copied().chain([n]) {
                total += cost(start, end) + penalty;
                start = end;
            }
            let optimum = best.last().copied().expect("one");
            assert!((total - optimum).abs() < 1e-9, "round {round}: {total} {optimum}");
        }
    }

    #[test]
    fn slow_noise_makes_no_level() {
        let mut seed = 3_u64;
        let mut n = 0.0;
        let ln: Vec<f64> = (0..1500)
            .map(|_| {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let draw = (seed >> 33) as f64 / f64::from(1_u32 << 31) - 0.5;
                n = 0.9 * n + draw * 0.1;
                5.0 + n
            })
            .collect();
        assert_eq!(borders(&ln), [0_usize; 0]);
    }

    #[test]
    fn long_series_are_searched_on_a_grid() {
        let found = borders(&steps(&[(100.0, 9_000), (70.0, 9_000)]));
        assert_eq!(found.len(), 1);
        assert!(found.iter().all(|b| b.abs_diff(9_000) <= 4), "{found:?}");
    }
}
