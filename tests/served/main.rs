//! Simulated bridges on a real kernel: what Linux' own drivers and other people's programs make of them, what ours does, and
//! what happens when things go wrong.
//!
//! Runs without the usual harness, which would hide a SKIPPED. `cargo test --test served -- WORD...` runs the checks whose
//! names hold one of the words. Two guests share the checks. The table of the documentation is made by a whole run.

mod bench;
mod peers;

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bench::{Bench, Findings};
use drivethru_vm::Error;

/// A name and what to do. What cannot even be compared is the error.
struct Check {
    name: String,
    run: Box<dyn Fn(&Bench) -> Result<(), String> + Send>,
}

fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for case in peers::CASES {
        checks.push(Check {
            name: format!("peers at {}", case.spec),
            run: Box::new(|bench| peers::peers(bench, case)),
        });
    }
    checks
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let checks = checks();
    if words.iter().any(|word| word == "--list") {
        checks.iter().for_each(|check| println!("{}: test", check.name));
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let all = checks.len();
    let chosen: Vec<Check> = checks
        .into_iter()
        .filter(|check| {
            filters.is_empty() || filters.iter().any(|filter| check.name.contains(filter.as_str()))
        })
        .collect();
    let count = chosen.len();
    if count == 0 {
        return ExitCode::SUCCESS;
    }
    let start = Instant::now();
    match run(chosen) {
        Ok(findings) => {
            let whole = count == all;
            let _ = whole;
            findings
                .failures
                .iter()
                .for_each(|failure| println!("FAILED: {failure}"));
            println!(
                "served: {count} checks, {} values compared, {} failures, {:.0} s",
                findings.compared,
                findings.failures.len(),
                start.elapsed().as_secs_f64()
            );
            for ((device, column), word) in &findings.table {
                println!("{device} | {column} | {word}");
            }
            if findings.failures.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(Error::Unavailable(why)) => {
            println!("SKIPPED: {count} checks of simulated bridges on a real kernel: {why}");
            let required = ["CI", "DRIVETHRU_REQUIRE_VM"]
                .iter()
                .any(|name| std::env::var_os(name).is_some());
            if required {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            }
        }
        Err(error) => {
            println!("FAILED: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Two guests take the checks one by one from the front.
fn run(checks: Vec<Check>) -> Result<Findings, Error> {
    let guests = if checks.len() > 1 { 2 } else { 1 };
    let queue = Mutex::new(checks.into_iter());
    let results: Vec<Result<Findings, Error>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..guests).map(|_| scope.spawn(|| work(&queue))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker that panics fails the run"))
            .collect()
    });
    let mut sum = Findings {
        compared: 0,
        failures: Vec::new(),
        table: Default::default(),
    };
    for result in results {
        let findings = result?;
        sum.compared += findings.compared;
        sum.failures.extend(findings.failures);
        sum.table.extend(findings.table);
    }
    Ok(sum)
}

fn work(queue: &Mutex<std::vec::IntoIter<Check>>) -> Result<Findings, Error> {
    let bench = Bench::boot()?;
    loop {
        let Some(check) = queue.lock().expect("nobody panics with it").next() else {
            return Ok(bench.into_findings());
        };
        let before = bench.failure_count();
        let start = Instant::now();
        bench.begin(check.name.as_str());
        if let Err(why) = (check.run)(&bench) {
            bench.fail(why);
        }
        let verdict = if bench.failure_count() == before {
            "ok"
        } else {
            "FAILED"
        };
        println!(
            "{}: {verdict} ({:.1} s)",
            check.name,
            round(start.elapsed()).as_secs_f64()
        );
    }
}

fn round(time: Duration) -> Duration {
    Duration::from_millis(time.as_millis() as u64)
}
