//! Stalls at regular distance (throttling-detection.md §5, gate 4).

use super::features::Dip;
use super::robust;

/// Gate 4: the longest run of neighbouring stalls at regular distance, if it is most of all dips.
pub(super) fn regular_stalls(dips: &[Dip]) -> Option<Vec<Dip>> {
    let stalls: Vec<Dip> = dips
        .iter()
        .copied()
        .filter(|d| (0.8..=12.0).contains(&d.lost_s))
        .take(3_000)
        .collect();
    let needed = (0.6 * dips.len().min(3_000) as f64).ceil().max(4.0) as usize;
    let longest = |stalls: &[Dip]| -> Option<Vec<Dip>> {
        let mut best: Option<(usize, usize)> = None;
        for from in 0..(stalls.len() + 1).saturating_sub(needed) {
            if best.is_some_and(|(a, b)| b - a >= stalls.len() - from) {
                break;
            }
            let mut gaps = Spread::default();
            let mut lengths = Spread::default();
            let mut previous: Option<&Dip> = None;
            for (k, stall) in stalls.iter().enumerate().skip(from) {
                if let Some(p) = previous {
                    gaps.push(stall.active_s - p.active_s);
                }
                lengths.push(stall.lost_s);
                previous = Some(stall);
                let n = k + 1 - from;
                if n >= needed
                    && gaps.variation() < most_variation(n)
                    && lengths.variation() < 0.6
                    && best.is_none_or(|(a, b)| n > b - a)
                {
                    best = Some((from, k + 1));
                }
            }
        }
        best.and_then(|(a, b)| stalls.get(a..b)).map(<[Dip]>::to_vec)
    };
    // Short dips among long stalls are noise: most of the lost time is in stalls of the typical length.
    let mut lost: Vec<f64> = stalls.iter().map(|s| s.lost_s).collect();
    lost.sort_by(f64::total_cmp);
    let total: f64 = lost.iter().sum();
    let mut sum = 0.0;
    let typical = lost.iter().copied().find(|l| {
        sum += l;
        sum >= total / 2.0
    })?;
    let long: Vec<Dip> = stalls
        .iter()
        .copied()
        .filter(|s| s.lost_s > 0.5 * typical)
        .collect();
    let mut run = longest(&long).or_else(|| longest(&stalls))?;
    // A dip long before the others is not the first of them.
    let gap = robust::median(run.windows(2).filter_map(|pair| match pair {
        [a, b] => Some(b.active_s - a.active_s),
        _ => None,
    }))?;
    while run.len() > 4 {
        match run.as_slice() {
            [a, b, ..] if b.active_s - a.active_s > 1.4 * gap => run.remove(0),
            _ => break,
        };
    }
    Some(run)
}

/// How much the distances of so many stalls may vary. Of runs with pauses at random, one in nine has
/// four in a row under 0.35; with these limits one in thirty is taken for periodic.
fn most_variation(stalls: usize) -> f64 {
    match stalls {
        ..=4 => 0.18,
        5 => 0.20,
        6 => 0.23,
        7 => 0.26,
        8 => 0.30,
        _ => 0.35,
    }
}

/// Mean and deviation of figures that come one by one.
#[derive(Default)]
struct Spread {
    n: f64,
    mean: f64,
    squares: f64,
}

impl Spread {
    fn push(&mut self, v: f64) {
        self.n += 1.0;
        let delta = v - self.mean;
        self.mean += delta / self.n;
        self.squares += delta * (v - self.mean);
    }

    fn variation(&self) -> f64 {
        if self.n < 2.0 || self.mean <= 0.0 {
            return f64::INFINITY;
        }
        (self.squares / (self.n - 1.0)).sqrt() / self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::series::Op;

    /// Uniform numbers from a linear congruence.
    struct Chance(u64);

    impl Chance {
        fn between(&mut self, low: f64, high: f64) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            low + (high - low) * (self.0 >> 33) as f64 / f64::from(1_u32 << 31)
        }
    }

    /// Stalls of 1 to 3 s in a run of half an hour.
    fn half_an_hour(chance: &mut Chance, gap_s: impl Fn(&mut Chance) -> f64) -> Vec<Dip> {
        let mut dips = Vec::new();
        let mut t = gap_s(chance);
        while t < 1800.0 {
            let lost_s = chance.between(1.0, 3.0);
            dips.push(Dip {
                op: Op::Write,
                first: t as usize,
                last: (t + lost_s) as usize,
                start_s: t,
                end_s: t + lost_s,
                active_s: t,
                low_mb_s: 0.0,
                reference_mb_s: 100.0,
                lost_s,
            });
            t += lost_s + gap_s(chance);
        }
        dips
    }

    /// How many of 2000 runs are called periodic, in percent.
    fn called_pct(gap_s: impl Fn(&mut Chance) -> f64) -> f64 {
        let mut chance = Chance(17);
        let called = (0..2000).filter(|_| regular_stalls(&half_an_hour(&mut chance, &gap_s)).is_some());
        called.count() as f64 / 20.0
    }

    /// Healthy drives that pause at random, a Poisson process, are called periodic in at most 5 runs of a hundred.
    #[test]
    fn pauses_at_random_are_seldom_called_a_period() {
        for mean_s in [60.0, 100.0, 150.0, 200.0, 300.0, 450.0, 900.0] {
            let pct = called_pct(|c| -mean_s * c.between(1e-9, 1.0).ln());
            println!("pauses {mean_s} s apart at random: {pct} % called periodic");
            assert!(pct <= 5.0, "{mean_s} s: {pct} %");
        }
    }

    /// The other side of it: distances that vary by a quarter.
    #[test]
    fn pauses_with_a_period_are_found() {
        for (gap_s, least) in [(20.0, 99.0), (60.0, 99.0), (150.0, 99.0), (300.0, 95.0)] {
            let pct = called_pct(|c| c.between(0.75 * gap_s, 1.25 * gap_s));
            println!("pauses {gap_s} s apart: {pct} % called periodic");
            assert!(pct >= least, "{gap_s} s: {pct} %");
        }
    }
}
