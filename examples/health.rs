//! The health verdict of a drive and what it rests on: `cargo run --example health -- sim:ssd,health=worn`.

use drivethru::drive::{Care, Drive, DriveError, OpenOptions};

fn main() -> Result<(), DriveError> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "sim:ssd".to_owned());
    let mut drive = Drive::open(&name, &OpenOptions::default(), Care::NoWake)?;
    let report = drive.health(false)?;
    println!("{:?}", report.verdict);
    for reason in &report.reasons {
        println!("  {}", reason.what);
    }
    if let Some(life) = &report.life {
        println!("  {} % of its life left, says {}", life.left_percent, life.source);
    }
    Ok(())
}
