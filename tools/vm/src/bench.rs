//! drivethru against smartctl, alternating in one guest.

use std::path::PathBuf;
use std::time::Duration;

use drivethru_vm::{Disk, Error, Guest, Output, Vm};

/// What to compare.
pub struct Bench {
    drivethru: PathBuf,
    rounds: u64,
    disk: Disk,
}

/// A verb of ours with the call of smartctl that tells the same.
const PAIRS: [(&str, &str); 3] = [("temp", "-A"), ("info", "-i"), ("smart", "-x")];
const TIMEOUT: Duration = Duration::from_secs(60);

impl Bench {
    /// `--drivethru FILE [--rounds N] [--disk KIND]`.
    pub fn parse(arguments: &[String]) -> Result<Self, Error> {
        let mut drivethru = None;
        let mut rounds = 15;
        let mut disk = Disk::ahci();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let value = words
                .next()
                .ok_or_else(|| Error::Usage(format!("{word} wants a value")))?;
            match word.as_str() {
                "--drivethru" => drivethru = Some(PathBuf::from(value)),
                "--rounds" => rounds = super::number(word, value)?.max(1),
                "--disk" => disk = value.parse()?,
                _ => return Err(Error::Usage(format!("unknown option {word}"))),
            }
        }
        Ok(Self {
            drivethru: drivethru.ok_or_else(|| Error::Usage("--drivethru names the binary".to_owned()))?,
            rounds,
            disk,
        })
    }

    /// Measures, and prints a Markdown table.
    pub fn run(self) -> Result<u8, Error> {
        let serial = "BENCH0001";
        let guest = Vm::builder().disk(self.disk.clone().serial(serial)).boot()?;
        let disk = guest.find_disk(serial)?;
        let node = disk.node.as_str();
        // Copied into the guest's memory, both: the host's files come over 9p, and that is not what is to be measured.
        let copy = format!(
            "cp '{}' /tmp/drivethru && cp \"$(command -v smartctl)\" /tmp/smartctl",
            Guest::host_path(&self.drivethru)
        );
        check(&copy, &guest.run(&copy, TIMEOUT)?, 0)?;

        println!("| disk | command | CDBs | median ms | fastest ms | slowest ms | CPU ms (median) |");
        println!("|---|---|--:|--:|--:|--:|--:|");
        for (verb, option) in PAIRS {
            let calls = [["/tmp/drivethru", verb, node], ["/tmp/smartctl", option, node]];
            let mut cdbs = Vec::new();
            for call in &calls {
                // A round that does not count, for it fills the caches; then the one whose commands are counted.
                check(
                    &call.join(" "),
                    &guest.run_args(call, TIMEOUT)?,
                    accepted_bits(call),
                )?;
                let (output, sent) = guest.run_counted(&disk, &call.join(" "), TIMEOUT)?;
                check(&call.join(" "), &output, accepted_bits(call))?;
                cdbs.push(sent.len());
            }
            let mut walls = [Vec::new(), Vec::new()];
            let mut cpus = [Vec::new(), Vec::new()];
            for round in 0..self.rounds {
                // Who goes first changes from round to round.
                for turn in [round % 2, (round + 1) % 2].map(|turn| turn as usize) {
                    let output = guest.run_args(&calls[turn], TIMEOUT)?;
                    check(&calls[turn].join(" "), &output, accepted_bits(&calls[turn]))?;
                    walls[turn].push(output.elapsed);
                    cpus[turn].push(output.user_time + output.system_time);
                }
            }
            for (turn, call) in calls.iter().enumerate() {
                let wall = Spread::of(&mut walls[turn]);
                println!(
                    "| {} | `{} {} {node}` | {} | {:.1} | {:.1} | {:.1} | {:.1} |",
                    self.disk_name(),
                    call[0].trim_start_matches("/tmp/"),
                    call[1],
                    cdbs[turn],
                    ms(wall.median),
                    ms(wall.least),
                    ms(wall.most),
                    ms(Spread::of(&mut cpus[turn]).median),
                );
            }
        }
        println!();
        println!(
            "{} alternating rounds, kernel {}, emulated processor.",
            self.rounds,
            guest.release()
        );
        guest.shutdown()?;
        Ok(0)
    }

    fn disk_name(&self) -> String {
        self.disk.kind().to_string()
    }
}

/// smartctl's exit code is a mask; only its two lowest bits mean that it did nothing (bit 2: some log is not there, as on any
/// emulated disk). Ours has no bits that may be set.
fn accepted_bits(call: &[&str; 3]) -> i32 {
    if call[0].ends_with("smartctl") { !3 } else { 0 }
}

fn check(command: &str, output: &Output, accepted: i32) -> Result<(), Error> {
    if output.status & !accepted == 0 {
        return Ok(());
    }
    Err(Error::Setup {
        what: format!("`{command}` ended with {}", output.status),
        why: output.stderr_text() + &output.stdout_text(),
    })
}

struct Spread {
    least: Duration,
    median: Duration,
    most: Duration,
}

impl Spread {
    /// Of at least one value.
    fn of(values: &mut [Duration]) -> Self {
        values.sort();
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            (values[middle - 1] + values[middle]) / 2
        };
        Self {
            least: values[0],
            median,
            most: values[values.len() - 1],
        }
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two() {
        let of = |values: &[u64]| {
            let mut values: Vec<Duration> = values.iter().map(|ms| Duration::from_millis(*ms)).collect();
            let spread = Spread::of(&mut values);
            (ms(spread.least), ms(spread.median), ms(spread.most))
        };
        assert_eq!(of(&[5]), (5.0, 5.0, 5.0));
        assert_eq!(of(&[9, 1, 4]), (1.0, 4.0, 9.0));
        assert_eq!(of(&[8, 1, 4, 2]), (1.0, 3.0, 8.0));
    }
}
