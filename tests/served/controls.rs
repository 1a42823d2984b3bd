//! Negative controls: with the model lying, or a fault where none is expected, the checks fail. A check that cannot fail proves
//! nothing.

use crate::bench::Bench;
use crate::media::{self, Trim};
use crate::peers::{self, Case, Model};

/// Runs a check that must fail with these words.
fn must_fail(bench: &Bench, what: &str, words: &str, check: impl FnOnce() -> Result<(), String>) {
    // What such a check writes into the tables is as untrue as its model.
    let cells = bench.table.borrow().clone();
    let before = bench.failure_count();
    let error = check().err();
    let mut failures = bench.take_failures(before);
    bench.table.replace(cells);
    failures.extend(error);
    bench.holds(
        &format!("{what}: fails with {words:?}, found {failures:?}"),
        failures.iter().any(|failure| failure.contains(words)),
    );
    let _ = bench.unusual(&[]);
}

/// The peers' checks against a model that is not the device's.
pub fn a_model_that_lies(bench: &Bench) -> Result<(), String> {
    let case = Case {
        spec: "asm1153e",
        driver: "uas",
    };
    let (device, disk) = bench.plug("asm1153e,temp=37")?;
    let check = |spec: &str, driver: &'static str| {
        let case = Case { driver, ..case };
        let model = Model::of(spec)?;
        peers::peers_agree(bench, &case, &model, &device, &disk)
    };
    for (words, spec, driver) in [
        ("driver", "asm1153e", "usb-storage"),
        ("serial_number", "asm1153e,serial=LIAR", "uas"),
        ("Serial Number", "asm1153e,serial=LIAR", "uas"),
        ("info: serial", "asm1153e,serial=LIAR", "uas"),
        ("READ CAPACITY(16): LBPRZ", "asm1153e,trim=ones", "uas"),
        ("16-byte CDB taken", "asm1153e,sat=12", "uas"),
        ("lsusb: streams", "asm1053e", "uas"),
        ("LBPU", "asm1053e", "uas"),
        ("attributes", "hdd", "uas"),
    ] {
        must_fail(bench, spec, words, || check(spec, driver));
    }
    device.control("set temp=38").map_err(crate::bench::text)?;
    must_fail(bench, "another temperature", "temp: celsius: Some(38)", || {
        check("asm1153e", "uas")
    });
    must_fail(bench, "another temperature", "temperature: Some(38)", || {
        check("asm1153e", "uas")
    });
    Ok(())
}

/// A TRIM that does nothing, or too much, is seen.
pub fn a_trim_that_lies(bench: &Bench) -> Result<(), String> {
    for (spec, words) in [
        ("asm1153e,trim=ignore", "trimmed blocks read as"),
        ("asm1153e,trim=ones", "trimmed blocks read as"),
        ("asm1153e,trim=neighbour", "the neighbours are as before"),
    ] {
        let (device, disk) = bench.plug(spec)?;
        let trim = Trim::new("control", media::Unmap::Taken, media::Left::Zeros);
        must_fail(bench, spec, words, || {
            media::trim_leaves(bench, &trim, &device, &disk)
        });
    }
    Ok(())
}

/// Writes that are lost or torn are seen by fio's verification.
pub fn writes_that_lie(bench: &Bench) -> Result<(), String> {
    for spec in [
        "asm1153e,fault=lost-write",
        "asm1153e,fault=torn-write,transport=bot",
    ] {
        must_fail(bench, spec, "fio write", || media::fio_verifies(bench, spec));
    }
    Ok(())
}
