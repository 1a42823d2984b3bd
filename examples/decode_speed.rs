//! How many IDENTIFY and SMART sectors one core decodes in a second: `cargo run --release --example decode_speed`.
//!
//! "parse" is parsing, checksum and the values that a monitor wants, read as numbers; "document" is everything, with
//! strings, as the serde model. Each figure is the median of eleven rounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use drivethru::ata::attributes::AttributeTable;
use drivethru::ata::identify::{Identify, Rotation};
use drivethru::ata::smart::{SmartData, SmartReport};

const ROUNDS: usize = 11;
const ROUND: Duration = Duration::from_millis(200);

/// Sectors per second, the median of all rounds.
fn measure<T>(mut decode: impl FnMut(&T), sectors: &[T]) -> f64 {
    let mut rates: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            let mut count = 0u64;
            while start.elapsed() < ROUND {
                for sector in sectors {
                    decode(black_box(sector));
                }
                count += sectors.len() as u64;
            }
            count as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[ROUNDS / 2]
}

/// Closes the sum of all bytes with byte 511.
fn close_sum(mut sector: [u8; 512]) -> [u8; 512] {
    let sum = sector[..511].iter().fold(0u8, |sum, b| sum.wrapping_add(*b));
    sector[511] = sum.wrapping_neg();
    sector
}

fn identify_sector(serial: u8, swapped: bool) -> [u8; 512] {
    let mut sector = [0; 512];
    for (word, value) in [
        (0, 0x0040u16),
        (47, 0x8010),
        (49, 0x2f00),
        (53, 7),
        (60, 0xffff),
        (61, 0x0fff),
        (76, 0x850e),
        (80, 0x0ff0),
        (82, 0x746b),
        (83, 0x7d01),
        (84, 0x4163),
        (85, 0x7469),
        (86, 0xbc01),
        (87, 0x4163),
        (101, 0x3a38),
        (106, 0x4000),
        (217, 1),
        (222, 0x10ff),
        (255, 0x00a5),
    ] {
        sector[word * 2..word * 2 + 2].copy_from_slice(&value.to_le_bytes());
    }
    for (word, text) in [(10, b"S N00000"), (23, b"IF MRAWE"), (27, b"OMEDL 1 ")] {
        sector[word * 2..word * 2 + 8].copy_from_slice(text);
    }
    sector[20] = serial;
    let mut sector = close_sum(sector);
    if swapped {
        for pair in sector.chunks_exact_mut(2) {
            pair.reverse();
        }
    }
    sector
}

fn smart_sector(seed: u8) -> [u8; 512] {
    const IDS: [u8; 22] = [
        1, 3, 4, 5, 7, 9, 10, 12, 187, 188, 190, 192, 193, 194, 195, 196, 197, 198, 199, 240, 241, 242,
    ];
    let mut sector = [0; 512];
    sector[0] = 16;
    for (slot, id) in IDS.into_iter().enumerate() {
        let raw = [seed.max(1) % 60 + 1, 0, 20, 0, 60, 0];
        sector[2 + slot * 12..7 + slot * 12].copy_from_slice(&[id, 0x32, 0, 100, 99]);
        sector[7 + slot * 12..13 + slot * 12].copy_from_slice(&raw);
    }
    close_sum(sector)
}

fn main() {
    let identify: Vec<[u8; 512]> = (0..64u8).map(|n| identify_sector(n + 0x30, n % 8 == 0)).collect();
    let smart: Vec<[u8; 512]> = (0..64u8).map(smart_sector).collect();
    let table = AttributeTable::for_model("ST1000LX015-1U7172", "SDM1", Rotation::Rpm(5400));

    let rows = [
        (
            "identify, parse",
            measure(
                |sector| {
                    let parsed = Identify::parse(sector).expect("a whole sector");
                    black_box((parsed.checksum(), parsed.sectors(), parsed.trim(), parsed.smart()));
                },
                &identify,
            ),
        ),
        (
            "identify, document",
            measure(
                |sector| {
                    let parsed = Identify::parse(sector).expect("a whole sector");
                    black_box(parsed.summary());
                },
                &identify,
            ),
        ),
        (
            "smart, parse",
            measure(
                |sector| {
                    let parsed = SmartData::parse(sector).expect("a whole sector");
                    black_box((parsed.checksum(), parsed.attribute(9), parsed.attribute(194)));
                },
                &smart,
            ),
        ),
        (
            "smart, document",
            measure(
                |sector| {
                    let parsed = SmartData::parse(sector).expect("a whole sector");
                    black_box(SmartReport::build_with(&parsed, None, &table));
                },
                &smart,
            ),
        ),
        (
            "smart, look-up",
            measure(
                |model| {
                    black_box(AttributeTable::for_model(model, "1.0", Rotation::NonRotating));
                },
                &[
                    "ST1000LX015-1U7172",
                    "Samsung SSD 860 EVO 1TB",
                    "CT500MX500SSD1",
                    "NO SUCH DRIVE",
                ],
            ),
        ),
    ];
    for (what, rate) in rows {
        println!("{what:<20} {:>12.0} sectors/s", rate);
    }
}
