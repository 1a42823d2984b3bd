//! What is told of a run in words.

use super::plan::Plan;
use super::requests::StageResult;
use super::sim::SimDriver;
use crate::bench::series::Notice;
use crate::sys::NodeFacts;

/// What the system would have said during the run.
pub(super) fn notices(plan: &Plan, results: &[StageResult]) -> Vec<Notice> {
    plan.stages
        .iter()
        .zip(results)
        .filter_map(|(stage, result)| {
            let (at, waited) = result.hang?;
            Some(Notice {
                t_s: at.as_secs_f64(),
                text: format!(
                    "hang: {}: no completion for {:.0} s with {} requests in flight; given up",
                    stage.name,
                    waited.as_secs_f64(),
                    stage.depth
                ),
            })
        })
        .collect()
}

/// What is to be said beside the figures.
pub(super) fn notes(
    plan: &Plan,
    driver: &SimDriver<'_>,
    facts: &NodeFacts,
    row_figures: &[(String, f64)],
    has_meter: bool,
) -> Vec<String> {
    let mut notes = plan.notes.clone();
    if plan.sets.is_empty() {
        notes.push(
            "simulated: no hardware was touched, and the bytes were neither made nor compared, only counted"
                .to_owned(),
        );
    } else {
        notes
            .push("simulated: no hardware was touched, and the bytes were not made, only counted".to_owned());
        notes.push(
            "files lie one behind the other from the start of the medium, without a file system".to_owned(),
        );
    }
    let deep = plan.stages.iter().any(|s| s.depth > 1);
    if deep && facts.driver.as_deref() == Some("usb-storage") {
        notes.push(
            "usb-storage carries one command at a time: a deeper queue only fills the block layer".to_owned(),
        );
    }
    if has_meter {
        notes
            .push("power is that of the simulated drive's model, as a meter in the cable sees it".to_owned());
    }
    let sampler = &driver.sampler;
    match (&sampler.why, sampler.told.retired_s) {
        (Some(why), Some(at)) => notes.push(format!("temp: gave up at t={at:.0}: {why}")),
        (Some(why), None) if sampler.told.source.is_none() => {
            notes.push(format!("no temperature: {why}"));
        }
        _ => {}
    }
    for (stage, result) in plan.stages.iter().zip(&driver.requests.results) {
        if result.failed {
            notes.push(format!("{}: ended after errors in a row", stage.name));
        }
    }
    notes.extend(compressibility(row_figures));
    notes.extend(random_write_collapse(row_figures));
    notes
}

/// Whether small random writes are so slow that the drive is no good for anything but copying.
fn random_write_collapse(row_figures: &[(String, f64)]) -> Option<String> {
    let of = |name: &str| row_figures.iter().find(|(n, _)| n == name).map(|(_, mb_s)| *mb_s);
    let (random, sequential) = (of("rnd_write_4k_qd1")?, of("seq_write")?);
    (random < 1.0 && random < sequential / 50.0).then(|| {
        format!("random_write_collapse: 4 KiB random writes at {random:.3} MB/s, sequential ones at {sequential:.1}")
    })
}

/// What the compressibility probe found out.
fn compressibility(row_figures: &[(String, f64)]) -> Option<String> {
    const AGREE: f64 = 0.10;
    const GAIN: f64 = 1.25;
    let of = |name: &str| row_figures.iter().find(|(n, _)| n == name).map(|(_, mb_s)| *mb_s);
    let (first, last, zero) = (
        of("write_random_first")?,
        of("write_random_last")?,
        of("write_zero")?,
    );
    if (first - last).abs() > AGREE * first {
        return Some(
            "compressing controller: unknown, the two runs with random bytes do not agree".to_owned(),
        );
    }
    let gain = zero / ((first + last) / 2.0);
    Some(if gain > GAIN {
        format!("compressing controller: yes, gain {gain:.2}")
    } else {
        "compressing controller: no".to_owned()
    })
}
