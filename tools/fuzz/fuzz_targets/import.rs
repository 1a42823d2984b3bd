//! Recorded series of any bytes: read or refused, and what was read is judged, never a panic.
#![no_main]

use drivethru::bench::detect::{Online, analyze};
use drivethru::bench::import;
use drivethru::report::Style;
use drivethru::report::bench::text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = import::meta(data);
    let temperatures = import::temperatures(data);
    let Ok(mut imported) = import::read(data) else { return };
    if let Ok(temperatures) = temperatures {
        let _ = import::attach(&mut imported, &temperatures);
    }
    let verdict = analyze(&imported.series);
    let _ = text::series("series", &imported.series, &verdict, Style { color: false });
    let mut online = Online::new(&imported.series.context);
    for sample in &imported.series.samples {
        let _ = online.push(sample);
    }
});
