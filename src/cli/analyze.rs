//! `analyze FILE...`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::json;

use super::args::AnalyzeArgs;
use super::exit::Exit;
use super::{Context, Stop, complain, note, print};
use crate::bench::detect;
use crate::bench::import::{self, ImportError, Imported, Temperatures};
use crate::bench::series::Op;
use crate::bench::verdict;
use crate::report::bench as report;

/// One sequential pass over a file needs no more.
const BUFFER_BYTES: usize = 1 << 16;

pub(super) fn run(context: &Context, args: &AnalyzeArgs) -> Result<Exit, Stop> {
    let temperatures = match &args.temp {
        Some(path) => Some(read_temperatures(path)?),
        None => None,
    };
    let mut exit = Exit::Done;
    for path in &args.files {
        let name = path.display().to_string();
        let imported = match read(path, args, temperatures.as_ref()) {
            Ok(imported) => imported,
            Err(why) => {
                complain(&format!("{name}: {why}"), &[]);
                exit = exit.worst(Exit::Usage);
                if context.common.json {
                    // A line for each file, so that lines and files can be matched.
                    context.print_json(&json!({
                        "schema": verdict::SCHEMA,
                        "schema_version": 1,
                        "error": {"message": format!("{name}: {why}"), "exit_code": Exit::Usage.code()},
                    }))?;
                }
                continue;
            }
        };
        for remark in &imported.notes {
            note(&format!("{name}: {remark}"));
        }
        let verdict = match &imported.verdict {
            Some(stored) => stored.clone(),
            None => detect::analyze(&imported.series),
        };
        if context.common.json {
            context.print_json(&verdict)?;
        } else {
            let told = summary(&name, &imported);
            print(&report::text::series(
                &told,
                &imported.series,
                &verdict,
                context.style,
            ))?;
        }
        if args.fail_on.iter().any(|what| what.is_in(&verdict)) {
            exit = exit.worst(Exit::BadAnswer);
        }
    }
    Ok(exit)
}

fn summary(name: &str, imported: &Imported) -> String {
    let samples = &imported.series.samples;
    let ops: Vec<&str> = [Op::Write, Op::Read]
        .into_iter()
        .filter(|op| samples.iter().any(|s| s.op == *op))
        .map(Op::word)
        .collect();
    let temps = || samples.iter().filter_map(|s| s.temp_c).filter(|t| t.is_finite());
    let (low, high) = (temps().reduce(f64::min), temps().reduce(f64::max));
    let heat = match (low, high) {
        (Some(low), Some(high)) => format!("{low:.0} to {high:.0} °C"),
        _ => "no temperature".to_owned(),
    };
    let what = if ops.is_empty() {
        "no transfer".to_owned()
    } else {
        ops.join(" and ")
    };
    format!("{name}: {} samples, {what}, {heat}", samples.len())
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, ImportError> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    Ok(Box::new(BufReader::with_capacity(
        BUFFER_BYTES,
        File::open(path)?,
    )))
}

fn read_temperatures(path: &Path) -> Result<Temperatures, Stop> {
    let name = path.display();
    let temperatures = open(path)
        .and_then(import::temperatures)
        .map_err(|e| Stop::BadInput(format!("{name}: {e}")))?;
    for remark in &temperatures.notes {
        note(&format!("{name}: {remark}"));
    }
    Ok(temperatures)
}

/// The series, with what is told beside it and by options.
fn read(path: &Path, args: &AnalyzeArgs, temperatures: Option<&Temperatures>) -> Result<Imported, String> {
    let mut imported = open(path).and_then(import::read).map_err(|e| e.to_string())?;
    let beside = path.with_extension("meta.json");
    if beside != path && beside.is_file() {
        let told = File::open(&beside)
            .map_err(ImportError::from)
            .and_then(import::meta)
            .map_err(|e| format!("{}: {e}", beside.display()))?;
        told.apply(&mut imported.series.context);
    }
    if let Some(temperatures) = temperatures {
        let remark = import::attach(&mut imported, temperatures);
        imported.notes.extend(remark);
    }
    let context = &mut imported.series.context;
    context.capacity_bytes = args.capacity.or(context.capacity_bytes);
    context.link_mb_s = args.link.or(context.link_mb_s);
    Ok(imported)
}
