//! Renders a run (`drivethru-bench/1`), or a series with its verdict: text, CSV, fio's log, Markdown, SVG, PNG and one page.

pub mod chart;
pub mod compare;
pub mod csv;
pub mod curve;
pub mod escape;
pub mod fio;
pub mod html;
pub mod markdown;
pub mod span;
pub mod text;
pub mod words;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Deserialize;

use crate::bench::run::{Run, SCHEMA};
use crate::bench::verdict::Verdict;
use crate::text::for_terminal;
use crate::units::human_bytes;
use chart::{Plot, PngError};

/// The verdict in words, with its evidence, escaped for a terminal.
pub fn verdict_text(verdict: &Verdict) -> String {
    words::verdict_lines(verdict, None)
        .iter()
        .map(|line| format!("{}\n", for_terminal(line)))
        .collect()
}

/// The document, on one line, safe inside a page.
pub fn json(run: &Run) -> String {
    // Serializing plain data into a string cannot fail.
    escape::json(&serde_json::to_string(run).unwrap_or_default())
}

/// The chart as an SVG document.
pub fn svg(run: &Run) -> String {
    Plot::of_run(run).svg()
}

/// The chart as PNG.
///
/// # Errors
/// When it is too large to be drawn.
pub fn png(run: &Run) -> Result<Vec<u8>, PngError> {
    Plot::of_run(run).png()
}

/// How it was measured: name and value, not escaped.
pub(super) fn method(run: &Run) -> Vec<Vec<String>> {
    let mut rows: Vec<(String, String)> = words::device_parts(&run.device)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let mut add = |name: &str, value: String| rows.push((name.to_owned(), value));
    if run.device.simulated {
        add("simulated", "yes: no hardware was measured".to_owned());
    }
    add("started", run.started.clone());
    add("ended", words::ending(run.ending).to_owned());
    add("extent", words::extent(&run.samples));
    add("workload", words::workload_line(run));
    for (name, value) in &run.workload.options {
        add(&format!("option {name}"), words::plain(value));
    }
    add("requests", words::engine_line(run));
    add("temperature", words::sampler_line(run));
    if let Some(link) = run.context.link_mb_s {
        add("ceiling of the link", words::rate(link));
    }
    if let Some(capacity) = run.context.capacity_bytes {
        add("capacity", human_bytes(capacity));
    }
    add("starts at", format!("{} bytes", run.context.start_offset_bytes));
    add(
        "samples",
        format!(
            "{}, usually {} apart",
            run.samples.len(),
            words::seconds(span::usual(&span::ordered(&run.samples)))
        ),
    );
    rows.into_iter().map(|(name, value)| vec![name, value]).collect()
}

/// Why a file is no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is no JSON, or its fields are not those of a run.
    #[error("line {line}, column {column}: {what}")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// It says that it is something else.
    #[error("this is {found}, not {SCHEMA}")]
    OtherSchema {
        /// What it says.
        found: String,
    },
}

/// Reads a run.
///
/// # Errors
/// With line and column where the text is malformed; by its name where it is another document.
pub fn read(text: &str) -> Result<Run, ReadError> {
    #[derive(Deserialize)]
    struct Head {
        schema: Option<serde_json::Value>,
        schema_version: Option<serde_json::Value>,
    }
    let malformed = |e: serde_json::Error| {
        let what = e.to_string();
        let place = format!(" at line {} column {}", e.line(), e.column());
        ReadError::Malformed {
            line: e.line().max(1),
            column: e.column().max(1),
            what: what.strip_suffix(&place).unwrap_or(&what).to_owned(),
        }
    };
    let head: Head = serde_json::from_str(text).map_err(malformed)?;
    let found = match &head.schema {
        Some(serde_json::Value::String(name)) => name.clone(),
        _ => "a document without a schema".to_owned(),
    };
    if found != SCHEMA {
        return Err(ReadError::OtherSchema { found });
    }
    if head.schema_version != Some(1.into()) {
        return Err(ReadError::OtherSchema {
            found: format!("{SCHEMA} with another schema_version"),
        });
    }
    serde_json::from_str(text).map_err(malformed)
}

/// Names that [`write_all`] gives whatever the workload, and `manifest.json`, which may come beside them.
const NAMES: [&str; 7] = [
    "run.json",
    "manifest.json",
    "series.csv",
    "report.md",
    "report.html",
    "chart.svg",
    "chart.png",
];

/// Whether [`write_all`] may write there: the directory is not there yet, has none of the names, or holds a run that it wrote
/// before. Nothing is changed.
///
/// # Errors
/// Why it may not.
pub fn may_write(dir: &Path) -> io::Result<()> {
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    if !dir.exists() && dir.symlink_metadata().is_err() {
        return Ok(());
    }
    let mut ours = false;
    let mut found = Vec::new();
    for name in NAMES {
        let path = dir.join(name);
        let Ok(about) = path.symlink_metadata() else {
            continue;
        };
        if !about.is_file() {
            return refused(format!("{} is there already, and no plain file", path.display()));
        }
        if name == "run.json" {
            ours = fs::read_to_string(&path).is_ok_and(|text| read(&text).is_ok());
        }
        found.push(name);
    }
    if found.is_empty() || ours {
        Ok(())
    } else {
        refused(format!(
            "{} is there already, and not from a run; choose another directory",
            dir.join(found.first().copied().unwrap_or_default()).display()
        ))
    }
}

/// Writes everything into `dir`, which is made: `run.json`, `series.csv`, `NAME_bw.log`, `report.md`, `report.html`,
/// `chart.svg`, `chart.png`. The raw data goes first. Files of a run that was there before are replaced whole; links are not
/// followed. Returns the names.
///
/// # Errors
/// What [`may_write`] says, or the first failing file, named.
pub fn write_all(dir: &Path, run: &Run) -> io::Result<Vec<String>> {
    may_write(dir)?;
    fs::create_dir_all(dir).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", dir.display())))?;
    let mut written = Vec::new();
    let mut write = |name: String, bytes: &[u8]| {
        replace(&dir.join(&name), bytes)?;
        written.push(name);
        Ok::<(), io::Error>(())
    };
    write("run.json".to_owned(), format!("{}\n", json(run)).as_bytes())?;
    write("series.csv".to_owned(), csv::write(&run.samples).as_bytes())?;
    let name = escape::file_name(&run.workload.name);
    let log = fio::bw_log(&run.samples, run.engine.block_bytes);
    write(format!("{name}_bw.log"), log.as_bytes())?;
    write(
        "report.md".to_owned(),
        markdown::run(run, Some("chart.svg")).as_bytes(),
    )?;
    write("report.html".to_owned(), html::run(run).as_bytes())?;
    write("chart.svg".to_owned(), svg(run).as_bytes())?;
    let picture = png(run).map_err(io::Error::other)?;
    write("chart.png".to_owned(), &picture)?;
    Ok(written)
}

/// Puts a whole new file in the place of `path`: under another name first, so that nothing is ever half there and no link is
/// written through.
///
/// # Errors
/// The file, named.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension(format!("new{}", std::process::id()));
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&beside)
        .map_err(named)?;
    file.write_all(bytes)
        .and_then(|()| fs::rename(&beside, path))
        .map_err(|e| {
            let _ = fs::remove_file(&beside);
            named(e)
        })
}
