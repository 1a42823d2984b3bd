//! Healthy drives that pause now and then, at random: how often is that called a period?
//!
//! Four pauses of a Poisson process are as regular as real ones more often than one would think. The rates written here are a
//! promise of the detector; that of the verdict stands beside its rule, and is only looked at here on whole series.

use drivethru::bench::detect::{AlarmKind, Online, analyze};
use drivethru::bench::verdict::Cause;

use super::draw::Dice;
use super::series_from;

const SECONDS: u32 = 1800;

/// Noise of 3 %, and pauses of 1 to 3 s at exponential distances of this mean.
fn pauses(seed: u64, mean_gap_s: f64) -> Vec<f64> {
    let mut dice = Dice::new(seed * 7919 + 1);
    let gap = |dice: &mut Dice| -mean_gap_s * dice.unit().max(1e-12).ln();
    let mut next = gap(&mut dice);
    let mut until = -1.0;
    (0..SECONDS)
        .map(|second| {
            let mut moved = 0.0;
            for tenth in 0..10 {
                let t = f64::from(second) + f64::from(tenth) / 10.0;
                if t >= next {
                    until = t + dice.between(1.0, 3.0);
                    next = until + gap(&mut dice);
                }
                moved += if t < until { 0.0 } else { 30.0 };
            }
            moved * (0.03 * dice.normal()).exp()
        })
        .collect()
}

#[test]
fn pauses_at_random_are_seldom_called_a_period_while_they_come() {
    const SERIES: u64 = 300;
    for mean_gap_s in [60.0, 150.0, 300.0, 450.0] {
        let alarmed = (0..SERIES)
            .filter(|seed| {
                let series = series_from(&pauses(*seed, mean_gap_s));
                let mut online = Online::new(&series.context);
                let mut alarms = series.samples.iter().filter_map(|s| online.push(s));
                alarms.any(|a| a.kind == AlarmKind::Stalls)
            })
            .count();
        let per_cent = 100.0 * alarmed as f64 / SERIES as f64;
        println!("pauses {mean_gap_s} s apart at random: {per_cent:.1} % alarmed");
        assert!(per_cent <= 3.0, "{mean_gap_s} s: {per_cent} %");
    }
}

#[test]
fn whole_series_with_pauses_at_random_are_seldom_periodic() {
    let called = (0..40)
        .filter(|seed| analyze(&series_from(&pauses(*seed, 150.0))).cause == Cause::PeriodicStall)
        .count();
    println!("{called} of 40 called periodic");
    assert!(called <= 2, "{called}");
}
