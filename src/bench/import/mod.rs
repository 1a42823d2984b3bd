//! Series that were recorded elsewhere: CSV with columns known by name, fio's bandwidth logs, and our own runs.
//!
//! Whatever is guessed is said in the notes. A file of any length is read with bounded memory: beyond [`MAX_ROWS`] rows
//! neighbours are joined.
#![deny(clippy::indexing_slicing)]

mod columns;
mod fio;
mod lines;
mod table;
mod thin;

use std::io::{BufRead, Read};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::series::{Context, Sample, Series};
use super::verdict::Verdict;

/// Rows that are kept of one file; of a longer one, neighbours are joined.
pub const MAX_ROWS: usize = 500_000;
/// JSON has to be read whole; more than this is refused.
const MAX_JSON_BYTES: u64 = 256 << 20;

/// What kind of file it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A table with a header.
    Csv,
    /// A bandwidth log of fio.
    Fio,
    /// A run of drivethru.
    Run,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Imported {
    /// The series.
    pub series: Series,
    /// What it was read as.
    pub format: Format,
    /// What had to be guessed or left out.
    pub notes: Vec<String>,
    /// Wall time at zero of the series, in seconds since 1970, if the file tells.
    pub epoch_s: Option<f64>,
    /// What was said when it was measured, of a run whose samples are no single series.
    pub verdict: Option<Verdict>,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// There is nothing in it.
    #[error("empty: there is no row in it")]
    Empty,
    /// There are rows, and none of them can be used.
    #[error("no row in it has both a time and a rate of zero or more")]
    NoRow,
    /// It is no text.
    #[error("line {line}: this is no text ({what})")]
    NotText {
        /// Where.
        line: u64,
        /// What is there.
        what: &'static str,
    },
    /// A line that no table has.
    #[error("line {line}: longer than {most} bytes")]
    LongLine {
        /// Where.
        line: u64,
        /// The limit.
        most: usize,
    },
    /// No column is known, or an important one is missing.
    #[error("line {line}: no column holds {what}; the columns are: {columns}")]
    NoColumn {
        /// Where the header is.
        line: u64,
        /// What is missing.
        what: &'static str,
        /// The header.
        columns: String,
    },
    /// A cell that cannot be read.
    #[error("line {line}: {column}: cannot read {cell:?} as {what}")]
    Cell {
        /// Where.
        line: u64,
        /// The column.
        column: String,
        /// What is in it.
        cell: String,
        /// What was expected.
        what: &'static str,
    },
    /// A document that is not one of ours.
    #[error("{why}")]
    Document {
        /// Why.
        why: String,
    },
    /// The JSON is larger than what is read.
    #[error("larger than {} MiB of JSON", MAX_JSON_BYTES >> 20)]
    TooLarge,
}

/// Reads a file of any of the known kinds.
pub fn read(mut input: impl BufRead) -> Result<Imported, ImportError> {
    let begin = input.fill_buf()?;
    let first = begin
        .iter()
        .copied()
        .find(|b| !b.is_ascii_whitespace() && ![0xef, 0xbb, 0xbf].contains(b));
    if first == Some(b'{') {
        return run(input);
    }
    if begin.starts_with(&[0xff, 0xfe]) || begin.starts_with(&[0xfe, 0xff]) {
        return Err(ImportError::NotText {
            line: 1,
            what: "UTF-16; save it as UTF-8",
        });
    }
    let mut lines = lines::Lines::new(input);
    let Some(line) = lines.next_line()? else {
        return Err(ImportError::Empty);
    };
    let first = line.to_owned();
    if fio::is_row(&first) {
        fio::read(&first, lines)
    } else {
        table::read(&first, lines)
    }
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    schema: Option<String>,
    samples: Vec<Sample>,
    #[serde(default)]
    context: Context,
    #[serde(default)]
    rows: Vec<IgnoredAny>,
    /// Of a run with rows it has to be one of ours, of others it is not looked at.
    #[serde(default)]
    verdict: Value,
}

fn run(input: impl BufRead) -> Result<Imported, ImportError> {
    let mut bytes = Vec::new();
    input.take(MAX_JSON_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_JSON_BYTES {
        return Err(ImportError::TooLarge);
    }
    let text = bytes.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(&bytes);
    let part: Part = serde_json::from_slice(text).map_err(|e| ImportError::Document {
        why: format!("no run of drivethru: {e}"),
    })?;
    if let Some(schema) = part
        .schema
        .filter(|s| !s.starts_with("drivethru-bench/") && !s.starts_with("drivethru-record/"))
    {
        return Err(ImportError::Document {
            why: format!("a document of another kind: {schema}"),
        });
    }
    if part.samples.is_empty() {
        return Err(ImportError::Empty);
    }
    let (mut verdict, mut notes) = (None, Vec::new());
    if !part.rows.is_empty() {
        let stored = serde_json::from_value(part.verdict).map_err(|e| ImportError::Document {
            why: format!("a run with rows, whose verdict cannot be read: {e}"),
        })?;
        verdict = Some(stored);
        notes.push(
            "a run with rows: each row was judged on its own when it was measured; that verdict is shown"
                .to_owned(),
        );
    }
    Ok(Imported {
        series: Series {
            samples: part.samples,
            context: part.context,
        },
        format: Format::Run,
        notes,
        epoch_s: None,
        verdict,
    })
}

/// What `NAME.meta.json` beside `NAME.csv` tells.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Meta {
    /// Size of the medium in bytes.
    #[serde(default)]
    pub capacity_bytes: Option<u64>,
    /// Ceiling of the link, in MB/s.
    #[serde(default)]
    pub link_mb_s: Option<f64>,
    /// Distance of temperature readings, in seconds.
    #[serde(default)]
    pub temp_interval_s: Option<f64>,
    /// Whether there is a sensor.
    #[serde(default)]
    pub has_temp: Option<bool>,
    /// Where on the medium the run starts.
    #[serde(default)]
    pub start_offset_bytes: Option<u64>,
}

/// Reads such a file.
pub fn meta(input: impl Read) -> Result<Meta, ImportError> {
    let mut text = Vec::new();
    input.take(1 << 20).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(|e| ImportError::Document {
        why: format!("no description of a series: {e}"),
    })
}

impl Meta {
    /// Fills in what it tells; what it does not tell stays.
    pub fn apply(&self, context: &mut Context) {
        context.capacity_bytes = self.capacity_bytes.or(context.capacity_bytes);
        context.link_mb_s = self.link_mb_s.or(context.link_mb_s);
        context.temp_interval_s = self.temp_interval_s.or(context.temp_interval_s);
        context.has_temp = self.has_temp.or(context.has_temp);
        context.start_offset_bytes = self.start_offset_bytes.unwrap_or(context.start_offset_bytes);
    }
}

/// Temperatures from another file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Temperatures {
    /// Time in seconds and °C, in the order of time.
    pub readings: Vec<(f64, f64)>,
    /// Wall time at zero.
    pub epoch_s: Option<f64>,
    /// What had to be guessed.
    pub notes: Vec<String>,
}

/// Reads a table with a time and a temperature.
pub fn temperatures(input: impl BufRead) -> Result<Temperatures, ImportError> {
    let mut lines = lines::Lines::new(input);
    let Some(line) = lines.next_line()? else {
        return Err(ImportError::Empty);
    };
    let first = line.to_owned();
    table::temperatures(&first, lines)
}

/// Puts temperatures into the samples in whose interval they were read. Returns a note when the clocks cannot be compared.
pub fn attach(imported: &mut Imported, temperatures: &Temperatures) -> Option<String> {
    let shift = match (temperatures.epoch_s, imported.epoch_s) {
        (Some(theirs), Some(ours)) => theirs - ours,
        _ => 0.0,
    };
    let mut readings: Vec<(f64, f64)> = temperatures
        .readings
        .iter()
        .map(|(t, c)| (t + shift, *c))
        .collect();
    readings.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut next = readings.into_iter().peekable();
    let mut used = 0_usize;
    let mut previous_t = f64::NEG_INFINITY;
    for sample in &mut imported.series.samples {
        while let Some((t, c)) = next.next_if(|(t, _)| *t <= sample.t_s) {
            // One from long before the series says nothing of it.
            if t > previous_t.max(sample.t_s - 60.0) {
                sample.temp_c = Some(c);
                used += 1;
            }
        }
        previous_t = sample.t_s;
    }
    imported.series.context.has_temp = Some(used > 0);
    if used == 0 {
        return Some("none of the temperatures lies in the time of the series".to_owned());
    }
    (temperatures.epoch_s.is_some() != imported.epoch_s.is_some())
        .then(|| "only one of the two files has wall time: both were taken to begin together".to_owned())
}

/// Counts the bytes from rates and lengths, where no column did.
fn accumulate(samples: &mut [Sample], step_s: f64) {
    let mut total = 0.0_f64;
    let mut previous: Option<f64> = None;
    for sample in samples {
        let gap = previous.map_or(step_s, |p| sample.t_s - p);
        // What happened in a hole of the series is not known.
        let length = if gap > 1.5 * step_s { step_s } else { gap.max(0.0) };
        if sample.mb_s.is_finite() && sample.mb_s > 0.0 {
            total += sample.mb_s * 1e6 * length;
        }
        sample.cumulative_bytes = total.round().min(1.8e19) as u64;
        previous = Some(sample.t_s);
    }
}

/// The middle distance of neighbours in time; a second where there is none.
fn step<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> f64 {
    let mut previous: Option<f64> = None;
    let mut gaps: Vec<f64> = samples
        .into_iter()
        .filter_map(|s| previous.replace(s.t_s).map(|p| s.t_s - p))
        .filter(|g| g.is_finite() && *g > 0.0)
        .take(20_000)
        .collect();
    let middle = gaps.len() / 2;
    if gaps.is_empty() {
        return 1.0;
    }
    *gaps.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests;
