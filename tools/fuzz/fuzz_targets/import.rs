//! Recorded series of any bytes: read or refused, and what was read is judged, never a panic.
#![no_main]

use drivethru::bench::detect::{Online, analyze, curve, render};
use drivethru::bench::import;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = import::meta(data);
    let temperatures = import::temperatures(data);
    let Ok(mut imported) = import::read(data) else { return };
    if let Ok(temperatures) = temperatures {
        let _ = import::attach(&mut imported, &temperatures);
    }
    let _ = render(&analyze(&imported.series));
    let _ = curve(&imported.series, 40);
    let mut online = Online::new(&imported.series.context);
    for sample in &imported.series.samples {
        let _ = online.push(sample);
    }
});
