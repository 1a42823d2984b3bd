//! Temperature of a drive, once a second: `cargo run --example temperature -- sim:hdd`.

use std::time::Duration;

use drivethru::drive::{Care, Drive, DriveError, OpenOptions};

fn main() -> Result<(), DriveError> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "sim:ssd".to_owned());
    let mut drive = Drive::open(&name, &OpenOptions::default(), Care::NoWake)?;
    for _ in 0..3 {
        let report = drive.temp_report()?;
        let celsius = report
            .temperature
            .celsius
            .map_or_else(|| "unknown".to_owned(), |c| format!("{} °C", c.0));
        println!("{} {celsius} for {} commands", report.time, report.cost.commands);
        drive.clock().sleep(Duration::from_secs(1));
    }
    Ok(())
}
