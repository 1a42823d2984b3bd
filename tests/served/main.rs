//! Simulated bridges on a real kernel: what Linux' own drivers and other people's programs make of them, what ours does, and
//! what happens when things go wrong.
//!
//! Runs without the usual harness, which would hide a SKIPPED. `cargo test --test served -- WORD...` runs the checks whose
//! names hold one of the words. Two guests share the checks. The table of the documentation is made by a whole run.

mod bench;
mod controls;
mod faults;
mod media;
mod others;
mod peers;
mod sleep;
mod table;
mod trimming;

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use bench::{Bench, Findings};
use drivethru_vm::Error;
use table::Layout;

/// What a check does. What cannot even be compared is the error.
type Run = dyn Fn(&Bench) -> Outcome + Send;
type Plain = fn(&Bench) -> Outcome;
type Outcome = Result<(), String>;

/// A check with its name.
struct Check {
    name: String,
    run: Box<Run>,
}

fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for case in peers::CASES {
        checks.push(Check {
            name: format!("peers at {}", case.spec),
            run: Box::new(|bench| peers::peers(bench, case)),
        });
    }
    for trim in media::TRIMS {
        checks.push(Check {
            name: format!("trim at {}", trim.spec),
            run: Box::new(|bench| media::trim(bench, trim)),
        });
    }
    for spec in media::USED {
        checks.push(Check {
            name: format!("fio at {spec}"),
            run: Box::new(|bench| media::fio(bench, spec)),
        });
        checks.push(Check {
            name: format!("file systems at {spec}"),
            run: Box::new(|bench| media::file_systems(bench, spec)),
        });
    }
    for (spec, ways) in trimming::TRIMMED {
        checks.push(Check {
            name: format!("trimming free space at {spec}"),
            run: Box::new(|bench| trimming::free_space(bench, spec, ways)),
        });
    }
    for transport in ["bot", "uas"] {
        checks.push(Check {
            name: format!("trimming is interrupted over {transport}"),
            run: Box::new(|bench| trimming::interrupted(bench, transport)),
        });
        checks.push(Check {
            name: format!("trimming where addresses differ over {transport}"),
            run: Box::new(|bench| trimming::other_addresses(bench, transport)),
        });
    }
    for case in faults::CASES {
        for (transport, bridge) in faults::TRANSPORTS {
            checks.push(Check {
                name: format!("fault {} over {transport}", case.fault),
                run: Box::new(|bench| faults::strike(bench, transport, bridge, case)),
            });
            let exit = if *transport == "UAS" {
                case.uas.exit
            } else {
                case.bot.exit
            };
            if exit != 0 {
                checks.push(Check {
                    name: format!("control: no {} over {transport}", case.fault),
                    run: Box::new(|bench| faults::without_the_fault(bench, transport, bridge, case)),
                });
            }
        }
    }
    let others: [(&str, Plain); 14] = [
        ("trimming is refused", trimming::refusals),
        ("trimming side by side", trimming::side_by_side),
        ("USB/IP", others::usbip),
        ("two commands", others::two_commands),
        ("one serial twice", others::one_serial_twice),
        ("plug", others::plug),
        ("leaving in mid-transfer", others::leaving_in_mid_transfer),
        ("a hidden area", others::hidden_area),
        ("an unreadable sector", others::an_unreadable_sector),
        ("a medium in a file", others::a_medium_in_a_file),
        ("a vendor command kills", others::a_vendor_command_kills),
        ("control: a model that lies", controls::a_model_that_lies),
        ("control: a trim that lies", controls::a_trim_that_lies),
        ("control: writes that lie", controls::writes_that_lie),
    ];
    for (name, run) in others {
        checks.push(Check {
            name: name.to_owned(),
            run: Box::new(run),
        });
    }
    for cost in others::COSTS {
        checks.push(Check {
            name: format!("what a reading costs at {}", cost.0),
            run: Box::new(|bench| others::what_a_reading_costs(bench, cost)),
        });
    }
    for spec in sleep::SLEEPERS {
        checks.push(Check {
            name: format!("a thousand polls of {spec}"),
            run: Box::new(|bench| sleep::a_thousand_polls(bench, spec)),
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
            let mut findings = findings;
            if count == all && findings.failures.is_empty() {
                findings.failures = table::settle(&layouts(), &findings.table);
            }
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

/// The tables of the documentation.
fn layouts() -> Vec<Layout> {
    let rows = |specs: &mut dyn Iterator<Item = &'static str>| specs.map(str::to_owned).collect();
    vec![
        Layout {
            name: "peers",
            heading: "bridge",
            rows: rows(&mut peers::CASES.iter().map(|case| case.spec)),
            columns: peers::COLUMNS.to_vec(),
        },
        Layout {
            name: "trim",
            heading: "bridge",
            rows: rows(&mut media::TRIMS.iter().map(|trim| trim.spec)),
            columns: vec!["sg_unmap", "hdparm --trim-sector-ranges"],
        },
        Layout {
            name: "use",
            heading: "bridge",
            rows: rows(&mut media::USED.iter().copied()),
            columns: vec!["fio verify", "ext4 + fsck", "vfat + fsck", "exfat + fsck"],
        },
        Layout {
            name: "cost",
            heading: "bridge",
            rows: rows(&mut others::COSTS.iter().map(|(spec, ..)| *spec)),
            columns: vec!["first temperature", "known bridge", "further sample"],
        },
        Layout {
            name: "faults",
            heading: "option",
            rows: rows(&mut faults::CASES.iter().map(|case| case.fault)),
            columns: vec!["BOT", "UAS"],
        },
    ]
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
            start.elapsed().as_secs_f64()
        );
    }
}
