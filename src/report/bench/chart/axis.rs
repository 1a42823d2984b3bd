//! Axes with round ticks, and curves thinned so that no extreme gets lost.

use super::scene::Point;

/// A linear axis from `low` to `high`, both of them ticks.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Value at the lower end.
    pub low: f64,
    /// Value at the upper end.
    pub high: f64,
    /// Distance of the ticks: 1, 2 or 5 times a power of ten.
    pub step: f64,
}

impl Axis {
    /// An axis that holds `low` to `high` with about `count` ticks.
    pub fn around(low: f64, high: f64, count: usize) -> Self {
        let low = if low.is_finite() { low } else { 0.0 };
        let high = if high.is_finite() && high > low {
            high
        } else {
            low + 1.0
        };
        let step = round_step((high - low) / count.max(1) as f64);
        Self {
            low: (low / step + 1e-9).floor() * step,
            high: (high / step - 1e-9).ceil() * step,
            step,
        }
    }

    /// The ticks.
    pub fn ticks(&self) -> Vec<f64> {
        let count = ((self.high - self.low) / self.step + 0.5)
            .floor()
            .clamp(0.0, 100.0) as usize;
        (0..=count).map(|i| self.low + i as f64 * self.step).collect()
    }

    /// A tick's label, with as many decimals as the step needs.
    pub fn label(&self, tick: f64) -> String {
        if self.step >= 1e9 {
            return format!("{tick:e}");
        }
        let digits = (-self.step.log10().floor()).clamp(0.0, 9.0) as usize;
        let text = format!("{tick:.digits$}");
        if text.trim_start_matches(['-', '0', '.']).is_empty() {
            "0".to_owned()
        } else {
            text
        }
    }
}

fn round_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.max(1e-9).log10().floor());
    let ratio = raw / power;
    let nice = match ratio {
        r if r <= 1.0 + 1e-9 => 1.0,
        r if r <= 2.0 + 1e-9 => 2.0,
        r if r <= 5.0 + 1e-9 => 5.0,
        _ => 10.0,
    };
    nice * power
}

/// Thins a line, in pixels and ordered by x: of each pixel column its first, lowest, highest and last point stay, in their
/// order, so that the picture is the same (Jugel et al., M4, VLDB 2014).
pub fn thin(line: &[Point]) -> Vec<Point> {
    let mut out: Vec<Point> = Vec::new();
    let mut column: Vec<Point> = Vec::new();
    let flush = |column: &mut Vec<Point>, out: &mut Vec<Point>| {
        let extreme = |pick: fn(f64, f64) -> bool| {
            column
                .iter()
                .enumerate()
                .fold(0, |best, (i, p)| if pick(p.1, column[best].1) { i } else { best })
        };
        if !column.is_empty() {
            let mut keep = [0, extreme(|a, b| a < b), extreme(|a, b| a > b), column.len() - 1];
            keep.sort_unstable();
            for i in keep {
                if out.last() != Some(&column[i]) {
                    out.push(column[i]);
                }
            }
        }
        column.clear();
    };
    for &point in line {
        if column
            .last()
            .is_some_and(|last| last.0.floor() != point.0.floor())
        {
            flush(&mut column, &mut out);
        }
        column.push(point);
    }
    flush(&mut column, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_the_data() {
        let axis = Axis::around(0.0, 437.0, 5);
        assert_eq!((axis.low, axis.high, axis.step), (0.0, 500.0, 100.0));
        assert_eq!(axis.ticks().len(), 6);
        assert_eq!(axis.label(100.0), "100");
        let axis = Axis::around(31.0, 33.5, 5);
        assert_eq!(axis.label(axis.low), "31.0");
        assert!(axis.low <= 31.0 && axis.high >= 33.5);
        for (low, high) in [
            (0.0, 0.0),
            (f64::NAN, 1.0),
            (5.0, f64::INFINITY),
            (0.0, 1e300),
            (-40.0, -39.0),
        ] {
            let axis = Axis::around(low, high, 5);
            assert!(axis.ticks().len() < 20, "{axis:?}");
        }
    }

    #[test]
    fn no_stall_vanishes() {
        let mut line: Vec<Point> = (0..100_000).map(|i| (f64::from(i) / 100.0, 10.0)).collect();
        line[55_555].1 = 300.0;
        line[77_777].1 = 2.0;
        let thinned = thin(&line);
        assert!(thinned.len() <= 4 * 1000);
        assert!(thinned.contains(&line[55_555]) && thinned.contains(&line[77_777]));
        assert!(thinned.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(thin(&[]), Vec::<Point>::new());
    }
}
