//! What is seen, how soon, and what is not.

use super::*;

/// Normal noise from a linear congruence.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1_u32 << 31)
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

fn alarms(rates: impl IntoIterator<Item = f64>) -> Vec<Alarm> {
    let mut online = Online::new(&Context::default());
    rates
        .into_iter()
        .enumerate()
        .filter_map(|(i, rate)| online.push(&Sample::new(i as f64 + 1.0, rate, Op::Write)))
        .collect()
}

#[test]
fn an_hour_of_noise_with_dips_alarms_nobody() {
    for seed in 1..=20 {
        let mut noise = Noise(seed);
        let rates: Vec<f64> = (0..3600)
            .map(|_| {
                let dip = if noise.uniform() < 0.02 { 0.3 } else { 1.0 };
                300.0 * dip * (0.10 * noise.normal()).exp()
            })
            .collect();
        assert_eq!(alarms(rates), [], "seed {seed}");
    }
}

#[test]
fn falls_are_seen_soon_and_never_early() {
    for (part, within) in [(0.8, 15.0), (0.7, 12.0), (0.3, 10.0), (0.88, 25.0)] {
        for seed in 1..=10 {
            let mut noise = Noise(seed);
            let rates: Vec<f64> = (0..200)
                .map(|i| 400.0 * if i < 120 { 1.0 } else { part } * (0.02 * noise.normal()).exp())
                .collect();
            let alarms = alarms(rates);
            let first = alarms.first().expect("an alarm");
            assert!(
                first.t_s > 120.0 && first.t_s - 120.0 <= within,
                "{part} {seed}: {first:?}"
            );
            assert!((first.onset_s - 120.0).abs() <= 3.0, "{part} {seed}: {first:?}");
            assert_eq!(alarms.len(), 1, "{part} {seed}: {alarms:?}");
        }
    }
}

#[test]
fn a_slow_decline_is_seen() {
    let rates: Vec<f64> = (0..900)
        .map(|i| 900.0 * (1.0 - f64::from((i - 100).max(0)) / 4000.0))
        .collect();
    assert!(alarms(rates).iter().any(|a| a.t_s < 700.0));
}

#[test]
fn stops_and_regular_stalls_are_seen() {
    let stop: Vec<f64> = (0..100)
        .map(|i| if (50..60).contains(&i) { 0.0 } else { 400.0 })
        .collect();
    let seen = alarms(stop);
    assert_eq!(
        seen.first().map(|a| (a.kind, a.onset_s)),
        Some((AlarmKind::Stop, 50.0))
    );
    let stalls: Vec<f64> = (0..300)
        .map(|i| if i > 100 && i % 20 == 0 { 2.0 } else { 22.0 })
        .collect();
    let seen: Vec<_> = alarms(stalls)
        .iter()
        .map(|a| (a.kind, a.onset_s, a.t_s))
        .collect();
    assert_eq!(seen, [(AlarmKind::Stalls, 120.0, 182.0)]);
}

#[test]
fn the_other_operation_between_does_not_hide_a_fall() {
    let mut online = Online::new(&Context::default());
    let mut seen = None;
    for t in 1..=130_u32 {
        let (op, mb_s) = match t {
            ..=70 => (Op::Write, 930.0),
            71..=76 => (Op::Write, 300.0),
            77..=99 => (Op::Read, 930.0),
            // A partial second.
            100 => (Op::Write, 500.0),
            _ => (Op::Write, 300.0),
        };
        seen = seen.or(online.push(&Sample::new(f64::from(t), mb_s, op)));
    }
    let seen = seen.expect("an alarm");
    assert_eq!((seen.kind, seen.onset_s), (AlarmKind::Fall, 70.0));
    assert!(seen.t_s <= 102.0, "{seen:?}");
}

#[test]
fn rubbish_is_passed_over() {
    let mut online = Online::new(&Context {
        link_mb_s: Some(f64::NAN),
        ..Context::default()
    });
    for (t, rate) in [
        (f64::NAN, 1.0),
        (1.0, f64::NAN),
        (f64::INFINITY, 1.0),
        (2.0, -1.0),
        (3.0, f64::INFINITY),
        (3.0, 0.0),
        (1.0, 5.0),
    ] {
        assert_eq!(online.push(&Sample::new(t, rate, Op::Read)), None);
    }
}

#[test]
fn memory_is_bounded() {
    let mut online = Online::new(&Context::default());
    let mut noise = Noise(5);
    for i in 0..200_000 {
        let rate = 1000.0 * noise.uniform();
        online.push(&Sample::new(f64::from(i), rate, Op::Write));
    }
    let bytes = size_of::<Online>() + online.write.heap_bytes() + online.read.heap_bytes();
    assert!(bytes < 64 * 1024, "{bytes}");
}
