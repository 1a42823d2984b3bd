//! What the detector costs: offline for 10,000 samples and for a day at one a second, online for each sample.
//!
//!     cargo run --release --example detect_cost

use std::time::Instant;

use drivethru::bench::detect::{Online, analyze};
use drivethru::bench::series::{Context, Op, Sample, Series};

/// A noisy series with a fall in its middle.
fn series(samples: usize) -> Series {
    let mut seed = 1_u64;
    let mut total = 0.0;
    let mut out = Series::default();
    for i in 0..samples {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let noise = (seed >> 33) as f64 / f64::from(1_u32 << 31) - 0.5;
        let level = if i < samples / 2 { 400.0 } else { 300.0 };
        let mut sample = Sample::new(i as f64 + 1.0, level * (1.0 + 0.08 * noise), Op::Write);
        total += sample.mb_s * 1e6;
        sample.cumulative_bytes = total as u64;
        sample.temp_c = Some(40.0 + (i * 20 / samples.max(1)) as f64);
        out.samples.push(sample);
    }
    out
}

fn main() {
    for samples in [10_000, 86_400, 1_000_000] {
        let series = series(samples);
        let best = (0..5)
            .map(|_| {
                let start = Instant::now();
                let verdict = analyze(&series);
                assert!(!verdict.events.is_empty());
                start.elapsed()
            })
            .min()
            .unwrap_or_default();
        println!(
            "offline, {samples:>9} samples: {:.1} ms",
            best.as_secs_f64() * 1e3
        );
    }
    // Levels that change all the time are the worst case.
    let mut wild = series(86_400);
    let mut seed = 9_u64;
    for (i, sample) in wild.samples.iter_mut().enumerate() {
        if i % 12 == 0 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        sample.mb_s *= 0.3 + (seed >> 33) as f64 / f64::from(1_u32 << 31);
    }
    let start = Instant::now();
    let verdict = analyze(&wild);
    println!(
        "offline, a wild day: {:.1} ms, {}",
        start.elapsed().as_secs_f64() * 1e3,
        verdict.cause.word()
    );
    let series = series(1_000_000);
    let start = Instant::now();
    let mut online = Online::new(&Context::default());
    let alarms = series.samples.iter().filter_map(|s| online.push(s)).count();
    let each = start.elapsed().as_secs_f64() / series.samples.len() as f64;
    println!("online: {:.2} us per sample, {alarms} alarms", each * 1e6);
}
