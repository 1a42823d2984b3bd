//! The series as CSV: `t_s,mb_s,cumulative_bytes,temp_c,op`, then what was measured beside; unknown is empty. Numbers are
//! written so that reading them gives the same ones.

use crate::bench::series::{Op, Sample};

const FIXED: [&str; 5] = ["t_s", "mb_s", "cumulative_bytes", "temp_c", "op"];
const OPTIONAL: [&str; 4] = ["smart_ms", "power_w", "iops", "lat_p99_us"];

fn optional(sample: &Sample) -> [Option<f64>; 4] {
    [sample.smart_ms, sample.power_w, sample.iops, sample.lat_p99_us]
}

/// The series; an optional column is there if one sample has it.
pub fn write(samples: &[Sample]) -> String {
    let used: Vec<usize> = (0..OPTIONAL.len())
        .filter(|i| samples.iter().any(|s| optional(s)[*i].is_some()))
        .collect();
    let cell = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    let mut out = FIXED.join(",");
    for i in &used {
        out.push(',');
        out.push_str(OPTIONAL[*i]);
    }
    out.push('\n');
    for sample in samples {
        out.push_str(&format!(
            "{},{},{},{},{}",
            sample.t_s,
            sample.mb_s,
            sample.cumulative_bytes,
            cell(sample.temp_c),
            sample.op.word()
        ));
        for i in &used {
            out.push(',');
            out.push_str(&cell(optional(sample)[*i]));
        }
        out.push('\n');
    }
    out
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct CsvError {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

/// Reads what [`write()`] wrote; columns are found by their names, and others are left out.
///
/// # Errors
/// At the first cell that is no number, with its line.
pub fn read(text: &str) -> Result<Vec<Sample>, CsvError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let wrong = |line: u64, what: String| CsvError { line, what };
    let header = reader.headers().map_err(|e| wrong(1, e.to_string()))?.clone();
    let column = |name: &str| header.iter().position(|h| h == name);
    let [t_s, mb_s, cumulative, temp, op] = FIXED.map(column);
    let optional = OPTIONAL.map(column);
    let mut samples = Vec::new();
    for (i, row) in reader.records().enumerate() {
        let line = i as u64 + 2;
        let row = row.map_err(|e| wrong(line, e.to_string()))?;
        let number = |column: Option<usize>, name: &str| -> Result<Option<f64>, CsvError> {
            match column.and_then(|c| row.get(c)).unwrap_or_default() {
                "" => Ok(None),
                cell => match cell.parse::<f64>() {
                    Ok(value) if value.is_finite() => Ok(Some(value)),
                    _ => Err(wrong(line, format!("{name}: {cell:?} is no number"))),
                },
            }
        };
        let needed = |column, name: &str| {
            number(column, name)?.ok_or_else(|| wrong(line, format!("{name} is missing")))
        };
        let bytes = cumulative.and_then(|c| row.get(c)).unwrap_or_default();
        samples.push(Sample {
            t_s: needed(t_s, "t_s")?,
            mb_s: needed(mb_s, "mb_s")?,
            cumulative_bytes: bytes
                .parse()
                .map_err(|_| wrong(line, format!("cumulative_bytes: {bytes:?} is no number of bytes")))?,
            temp_c: number(temp, "temp_c")?,
            op: match op.and_then(|c| row.get(c)) {
                Some("write") => Op::Write,
                Some("read") => Op::Read,
                Some("idle") => Op::Idle,
                other => return Err(wrong(line, format!("op: {other:?} is not write, read or idle"))),
            },
            smart_ms: number(optional[0], OPTIONAL[0])?,
            power_w: number(optional[1], OPTIONAL[1])?,
            iops: number(optional[2], OPTIONAL[2])?,
            lat_p99_us: number(optional[3], OPTIONAL[3])?,
        });
    }
    Ok(samples)
}
