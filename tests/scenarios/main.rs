//! Every drive of the scenario collection through simulator, engine and sampler: the figures that must come out.
//!
//! The collection is not part of the package. Where it is missing, that is said and nothing is checked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use drivethru::bench::engine::{self, Amount, Content, Options, Unwatched, Workload};
use drivethru::bench::run::Run;
use drivethru::bench::series::Op;
use drivethru::drive::OpenOptions;
use serde_json::Value;

fn collection() -> Option<PathBuf> {
    let given = std::env::var_os("DRIVETHRU_SCENARIOS").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/scenarios");
    given.or(Some(beside)).filter(|dir| dir.is_dir())
}

fn run(spec: &str, options: &Options) -> Run {
    let target = format!("sim:{spec}");
    engine::run(&target, options, &OpenOptions::default(), &mut Unwatched)
        .unwrap_or_else(|e| panic!("{target}: {e}"))
        .run
}

/// A run, and what stands before the names of its figures.
struct Ran {
    prefix: String,
    run: Run,
    /// Figures that have another name in the collection.
    also: Vec<(&'static str, f64)>,
}

impl Ran {
    fn new(prefix: &str, run: Run) -> Self {
        Self {
            prefix: prefix.to_owned(),
            run,
            also: Vec::new(),
        }
    }

    fn figure(&self, name: &str) -> Option<f64> {
        let own = name.strip_prefix(self.prefix.as_str())?;
        let also = self.also.iter().find(|(n, _)| *n == own).map(|(_, v)| *v);
        also.or_else(|| self.of_run(own))
    }

    /// A figure of the run under its name in the collection, whose lengths are in GB.
    fn of_run(&self, name: &str) -> Option<f64> {
        let known = |name: &str| {
            let figure = self.run.figures.get(name)?;
            let scale = if figure.unit == "B" { 1e9 } else { 1.0 };
            Some(figure.value / scale)
        };
        match name {
            // The collection means the first fall, whatever the headline is.
            "onset_written_bytes" => known("first_fall_written_bytes"),
            "onset_time_s" => known("first_fall_s"),
            "rate_before" => known("first_fall_rate_before"),
            "rate_after" => known("first_fall_rate_after"),
            "stall_duration_s" => known("stall_s"),
            "stall_floor" => known("stall_floor_mb_s"),
            // From the end of a pause to the start of the next; the detector's goes from start to start.
            "stall_gap_s" => Some(known("stall_gap_s")? - known("stall_s")?),
            _ => known(name),
        }
    }
}

fn sequential(id: &str, op: Op, content: Content, amount: Amount) -> Run {
    let options = Options {
        op: Some(op),
        content,
        amount: Some(amount),
        ..Options::default()
    };
    run(id, &options)
}

/// What ATTO moves for each of its rows.
const ATTO_ROW: Amount = Amount::Bytes(256 << 20);

const HALF_A_MINUTE: Amount = Amount::For(Duration::from_secs(30));

/// Workloads of the collection that are not there yet, and what they wait for. A kind that is neither here nor in [`runs`] is
/// a failure: a scenario that nobody runs cannot fail.
const WAITING: &[(&str, &str)] = &[("bonnie", "workload bonnie")];

/// The runs of a scenario; `None` where its workload is not known.
fn runs(id: &str, scenario: &Value) -> Option<Vec<Ran>> {
    let with = |workload| Options {
        workload,
        ..Options::default()
    };
    Some(match scenario["workload"]["kind"].as_str().unwrap_or_default() {
        "das_suite" => {
            let mut all = vec![Ran::new("", run(id, &with(Workload::Das)))];
            if !scenario["drive"]["compress"].is_null() {
                for (op, name, own) in [
                    (Op::Write, "atto_write_compressible", "seq_write"),
                    (Op::Read, "atto_read_compressible", "seq_read"),
                ] {
                    let run = sequential(id, op, Content::Zero, ATTO_ROW);
                    let rate = run.figures[own].value;
                    let mut ran = Ran::new("atto_", run);
                    ran.also.push((name.strip_prefix("atto_").unwrap_or(name), rate));
                    all.push(ran);
                }
            }
            all
        }
        "seq_write_consistency" => vec![Ran::new("", run(id, &with(Workload::SeqConsistency)))],
        "cdm3" => scenario["host"]["links"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(link, _)| {
                let spec = format!("{id},link={link}");
                Ran::new(&format!("{link}."), run(&spec, &with(Workload::Cdm3)))
            })
            .collect(),
        "hdtune_file+random_mix" => {
            let mut cdm3 = Ran::new("", run(id, &with(Workload::Cdm3)));
            let single = cdm3
                .run
                .rows
                .iter()
                .find(|r| r.name == "Random 4KB (QD=1), write");
            let iops = single.and_then(|r| r.figures.get("iops")).copied();
            if let Some(iops) = iops {
                const HARD_DISK_IOPS: f64 = 170.0;
                cdm3.also.push(("rnd_write_4k_qd1_iops", iops));
                cdm3.also
                    .push(("hdd_over_stick_rnd_write_4k", HARD_DISK_IOPS / iops));
            }
            vec![
                Ran::new("", sequential(id, Op::Write, Content::Random, HALF_A_MINUTE)),
                Ran::new("", sequential(id, Op::Read, Content::Random, HALF_A_MINUTE)),
                Ran::new("", run(id, &with(Workload::Mix))),
                cdm3,
            ]
        }
        "cdm8_nvme_profile" => {
            // The scenario gives up after 30 s.
            let options = Options {
                deadline: Duration::from_secs(30),
                ..with(Workload::Cdm8Nvme)
            };
            let mut ran = Ran::new("", run(id, &options));
            let reported = ran.run.rows.iter().filter(|r| !r.figures.is_empty()).count();
            ran.also.push(("other_rows_reported", reported as f64));
            vec![ran]
        }
        kind if WAITING.iter().any(|(waiting, _)| *waiting == kind) => Vec::new(),
        _ => return None,
    })
}

/// Why a figure is not there yet.
fn waits_for(name: &str, scenario: &Value) -> Option<&'static str> {
    let kind = &scenario["workload"]["kind"];
    if let Some((_, what)) = WAITING.iter().find(|(waiting, _)| kind == waiting) {
        return Some(what);
    }
    let nvme = scenario["drive"]["smart"] == "nvme-bridge";
    match name {
        "temp_start_c" | "temp_end_c" | "temp_rise_c" if nvme => Some("NVMe tunnel"),
        "task_time_ratio_stick_over_hdd" | "copy_rate_stick_over_hdd" => Some("workload trace"),
        "cdm_4k_floor" => Some("model of its random requests"),
        _ => None,
    }
}

fn holds(figure: &Value, value: f64) -> bool {
    let number = |key: &str| figure[key].as_f64().unwrap_or_default();
    let wanted = number("value");
    let tolerance = number("tol_abs") + number("tol_rel") * wanted.abs();
    match figure["kind"].as_str().unwrap_or_default() {
        "max" => value <= wanted + tolerance,
        "min" => value >= wanted - tolerance,
        "range" => {
            let limit = |i: usize| figure["value"][i].as_f64().unwrap_or(f64::NAN);
            limit(0) <= value && value <= limit(1)
        }
        "approx" => (value - wanted).abs() <= tolerance,
        kind => panic!("{kind:?} is no kind of figure that is known here"),
    }
}

/// What the scenario says of the verdict, what the run says, and whether they agree.
fn verdicts(wanted: &Value, ran: &Ran) -> Vec<(String, String, String, bool)> {
    /// The collection gives no tolerance for the depth of a fall; in percent of the rate before.
    const DEPTH_TOLERANCE_PCT: f64 = 3.0;
    /// Nor for where an event begins; as a part of the bytes.
    const ONSET_TOLERANCE: f64 = 0.05;
    let verdict = &ran.run.verdict;
    let mut told = Vec::new();
    let mut say = |what: &str, wanted: String, found: String, agree: bool| {
        told.push((what.to_owned(), wanted, found, agree));
    };
    let cause = wanted["cause"].as_str().unwrap_or_default();
    let found = verdict.cause.word();
    say("verdict", cause.to_owned(), found.to_owned(), cause == found);
    let throttled = wanted["throttled"].as_bool().unwrap_or_default();
    let found = verdict.throttled;
    say(
        "throttled",
        throttled.to_string(),
        found.to_string(),
        throttled == found,
    );
    for (op, depth) in wanted["drop_pct"].as_object().into_iter().flatten() {
        let depth = depth.as_f64().unwrap_or(f64::NAN);
        let found = verdict.metrics.get(&format!("drop_pct{{{op}}}"));
        let found = found.and_then(Value::as_f64).unwrap_or(f64::NAN);
        let agree = (found - depth).abs() <= DEPTH_TOLERANCE_PCT;
        say(
            &format!("drop {op}, %"),
            depth.to_string(),
            found.to_string(),
            agree,
        );
    }
    if let Some(kind) = wanted["event"].as_str() {
        let kinds: Vec<&str> = verdict.events.iter().map(|e| e.kind.as_str()).collect();
        say("event", kind.to_owned(), kinds.join(" "), kinds.contains(&kind));
    }
    for event in wanted["events"].as_array().into_iter().flatten() {
        let cause = event["cause"].as_str().unwrap_or_default();
        let bytes = event["onset_written_bytes"].as_f64().unwrap_or(f64::NAN);
        let found = verdict.events.iter().find(|e| e.cause.word() == cause);
        let at = found.and_then(|e| e.bytes).unwrap_or_default() as f64;
        let agree = (at - bytes).abs() <= ONSET_TOLERANCE * bytes;
        let gb = |bytes: f64| format!("{:.1} GB", bytes / 1e9);
        say(&format!("event {cause}"), gb(bytes), gb(at), agree);
    }
    told
}

fn main() -> ExitCode {
    let Some(dir) = collection() else {
        println!(
            "SKIPPED: scenarios: no collection beside the package; DRIVETHRU_SCENARIOS names its directory"
        );
        return ExitCode::SUCCESS;
    };
    let only = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let mut files: Vec<PathBuf> = fs::read_dir(&dir)
        .expect("the collection")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    let (mut seen, mut not_run, mut good, mut waiting, mut bad) = (0, 0, 0, 0, 0);
    for path in files {
        let text = fs::read_to_string(&path).expect("a scenario");
        let scenario: Value = serde_json::from_str(&text).expect("JSON");
        let id = scenario["id"].as_str().expect("an id");
        if only.as_ref().is_some_and(|only| !id.contains(only.as_str())) {
            continue;
        }
        let start = Instant::now();
        let kind = &scenario["workload"]["kind"];
        let Some(ran) = runs(id, &scenario) else {
            bad += 1;
            println!(
                "{id}  {kind}: UNKNOWN workload; no run of it and no entry in the list of those that wait"
            );
            continue;
        };
        seen += 1;
        if ran.is_empty() {
            println!("{id}  {kind}: not run, no such workload here yet");
        } else {
            println!("{id}  {kind} ({:.1} s)", start.elapsed().as_secs_f64());
        }
        for figure in scenario["expected"]["figures"].as_array().into_iter().flatten() {
            let name = figure["name"].as_str().expect("a name");
            if figure["kind"] == "info" {
                continue;
            }
            let value = ran.iter().find_map(|r| r.figure(name));
            let wanted = &figure["value"];
            let told = match (value, waits_for(name, &scenario)) {
                (Some(value), _) if holds(figure, value) => {
                    good += 1;
                    format!("{value:<12} ok")
                }
                (Some(value), _) => {
                    bad += 1;
                    format!("{value:<12} WRONG")
                }
                (None, Some(what)) => {
                    waiting += 1;
                    format!("{:<12} waits for: {what}", "-")
                }
                (None, None) => {
                    bad += 1;
                    format!("{:<12} MISSING", "-")
                }
            };
            println!(
                "    {name:<32} {:>14} {:<5} {told}",
                wanted.to_string(),
                figure["unit"].as_str().unwrap_or_default()
            );
        }
        for flag in scenario["expected"]["verdict"]["flags"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let flag = flag.as_str().unwrap_or_default();
            let told = ran
                .iter()
                .any(|r| r.run.notes.iter().any(|note| note.starts_with(flag)));
            if told {
                good += 1;
            } else {
                bad += 1;
            }
            println!(
                "    {flag:<32} {:>33} {}",
                "",
                if told { "ok" } else { "MISSING" }
            );
        }
        let wanted = &scenario["expected"]["verdict"];
        let Some(first) = ran.first() else {
            not_run += 1;
            waiting += 1;
            println!(
                "    {:<32} {:>20} waits for: the run",
                "verdict",
                wanted["cause"].as_str().unwrap_or_default()
            );
            continue;
        };
        for (what, wanted, found, agree) in verdicts(wanted, first) {
            if agree {
                good += 1;
            } else {
                bad += 1;
            }
            let told = if agree { "ok" } else { "WRONG" };
            println!("    {what:<32} {wanted:>20} {found:<12} {told}");
        }
    }
    if seen == 0 && only.is_none() {
        bad += 1;
        println!("no scenario in {}", dir.display());
    }
    println!(
        "scenarios: {seen} known, {not_run} of them without a workload here; {good} figures hold, {waiting} wait, {bad} do not hold"
    );
    if bad == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
