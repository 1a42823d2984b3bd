//! Tables with a header: which column is which, and rows to samples.

use std::io::BufRead;

use super::columns::{self, Column, Scale};
use super::lines::{Lines, cells};
use super::{Format, ImportError, Imported, MAX_ROWS, Temperatures, accumulate, step, thin::Thin};
use crate::bench::series::{Context, Op, Sample, Series};

/// Numbers of seconds beyond this are wall time.
const EPOCH_S: f64 = 5e8;
/// No device is faster.
const MOST_MB_S: f64 = 1e7;
/// Nor colder or warmer than these, in °C.
const TEMPERATURES_C: std::ops::RangeInclusive<f64> = -60.0..=150.0;

/// The columns of a table.
struct Header {
    columns: Vec<Option<Column>>,
    names: Vec<String>,
    line: u64,
    delimiter: char,
    /// Whether the decimal mark is a comma, once a cell told.
    comma: Option<bool>,
}

impl Header {
    fn read(text: &str, line: u64) -> Self {
        let delimiter = [',', ';', '\t']
            .into_iter()
            .max_by_key(|d| text.matches(*d).count())
            .unwrap_or(',');
        let names = cells(text, delimiter);
        let mut columns: Vec<Option<Column>> = names.iter().map(|n| columns::recognise(n)).collect();
        // The first column of a kind counts.
        let mut seen: Vec<std::mem::Discriminant<Column>> = Vec::new();
        for column in &mut columns {
            if let Some(known) = column {
                let kind = std::mem::discriminant(known);
                if seen.contains(&kind) {
                    *column = None;
                } else {
                    seen.push(kind);
                }
            }
        }
        Self {
            columns,
            names,
            line,
            delimiter,
            // Where commas separate, a cell that has one is not to be guessed at.
            comma: (delimiter == ',').then_some(false),
        }
    }

    /// Learns the decimal mark from the first row that has one, and tells it.
    fn learn(&mut self, line: u64, row: &[String]) -> Option<String> {
        if self.comma.is_some() {
            return None;
        }
        let seen = self
            .columns
            .iter()
            .zip(row)
            .filter(|(column, _)| column.is_some_and(|c| c != Column::Op))
            .filter_map(|(_, cell)| columns::mark(cell).map(|(comma, sure)| (comma, sure, cell)));
        // Of cells that leave a doubt the first counts, if none is sure.
        let (comma, _, cell) = seen.reduce(|best, other| if other.1 && !best.1 { other } else { best })?;
        self.comma = Some(comma);
        let name = if comma { "comma" } else { "point" };
        Some(format!("line {line}: {cell:?}: the decimal mark is a {name}"))
    }

    fn decimal_comma(&self) -> bool {
        self.comma == Some(true)
    }

    fn has(&self, test: impl Fn(&Column) -> bool) -> bool {
        self.columns.iter().flatten().any(test)
    }

    fn missing(&self, what: &'static str) -> ImportError {
        let mut columns = self.names.join(", ");
        if columns.chars().count() > 200 {
            columns = columns.chars().take(200).collect::<String>() + "...";
        }
        ImportError::NoColumn {
            line: self.line,
            what,
            columns,
        }
    }

    fn bad(&self, line: u64, index: usize, cell: &str, what: &'static str) -> ImportError {
        ImportError::Cell {
            line,
            column: self.names.get(index).cloned().unwrap_or_default(),
            cell: cell.chars().take(60).collect(),
            what,
        }
    }
}

/// One row, as the columns tell.
#[derive(Debug, Clone, Copy, Default)]
struct Cells {
    /// Time in units of its column, or seconds since 1970.
    time: Option<f64>,
    wall: bool,
    rate: Option<f64>,
    write: Option<f64>,
    read: Option<f64>,
    temp_c: Option<f64>,
    op: Option<Op>,
    total: Option<f64>,
    smart_ms: Option<f64>,
    power_w: Option<f64>,
    iops: Option<f64>,
    lat_p99_us: Option<f64>,
    other_bytes: Option<f64>,
}

fn parse(header: &Header, line: u64, row: &[String]) -> Result<Cells, ImportError> {
    let mut out = Cells::default();
    for (index, (column, cell)) in header.columns.iter().zip(row).enumerate() {
        let Some(column) = column else { continue };
        let number = || {
            columns::number(cell, header.decimal_comma())
                .map(|n| n.map(|(value, _)| value))
                .map_err(|()| header.bad(line, index, cell, "a number"))
        };
        let rate = |unit: &Option<f64>| {
            columns::rate(cell, header.decimal_comma(), *unit)
                .map_err(|()| header.bad(line, index, cell, "a rate"))
        };
        match column {
            Column::Time(unit) => {
                let (time, wall) = time(cell, header.decimal_comma())
                    .ok_or_else(|| header.bad(line, index, cell, "a time"))?;
                out.time = time.map(|t| if wall { t } else { t * unit.unwrap_or(1.0) });
                out.wall = wall;
            }
            Column::Rate(unit) => out.rate = rate(unit)?,
            Column::WriteRate(unit) => out.write = rate(unit)?,
            Column::ReadRate(unit) => out.read = rate(unit)?,
            Column::Temperature(scale) => {
                out.temp_c = columns::temperature(cell, header.decimal_comma(), *scale)
                    .map_err(|()| header.bad(line, index, cell, "a temperature"))?;
            }
            Column::Op => {
                out.op = op(cell)
                    .ok_or_else(|| header.bad(line, index, cell, "an operation (write, read or idle)"))?;
            }
            Column::Total(unit) => out.total = number()?.map(|t| t * unit),
            Column::SmartMs => out.smart_ms = number()?,
            Column::PowerW => out.power_w = number()?,
            Column::Iops => out.iops = number()?,
            Column::OtherBytes => out.other_bytes = number()?,
            Column::LatencyUs(unit) => out.lat_p99_us = number()?.map(|l| l * unit),
        }
    }
    Ok(out)
}

/// `Some(None)`: nothing is known; `None`: it is something else.
fn op(cell: &str) -> Option<Option<Op>> {
    let word = cell.trim().to_lowercase();
    if word.starts_with("seq") || word.starts_with("rand") {
        return op(word
            .trim_start_matches(|c: char| c != 'w' && c != 'r')
            .trim_start_matches("rand"));
    }
    Some(Some(match word.as_str() {
        "" | "-" => return Some(None),
        "write" | "w" | "wr" | "writing" | "1" => Op::Write,
        "read" | "r" | "rd" | "reading" | "0" => Op::Read,
        "idle" | "i" | "none" | "pause" | "wait" | "sleep" | "trim" | "2" => Op::Idle,
        _ => return None,
    }))
}

/// A time as a number, or as wall time in seconds since 1970.
fn time(cell: &str, comma: bool) -> Option<(Option<f64>, bool)> {
    match columns::number(cell, comma) {
        Ok(None) => return Some((None, false)),
        Ok(Some((value, ""))) => return Some((Some(value), false)),
        Ok(Some((value, "s"))) => return Some((Some(value), false)),
        Ok(Some((value, "ms"))) => return Some((Some(value / 1e3), false)),
        _ => {}
    }
    let text = cell.trim();
    if let Ok(stamp) = text.parse::<jiff::Timestamp>() {
        return Some((Some(stamp.as_nanosecond() as f64 / 1e9), true));
    }
    let civil = text.replace('/', "-");
    if let Ok(local) = civil.parse::<jiff::civil::DateTime>() {
        let stamp = jiff::tz::Offset::UTC.to_timestamp(local).ok()?;
        return Some((Some(stamp.as_nanosecond() as f64 / 1e9), true));
    }
    // 12:34:56.7 or 34:56
    let mut seconds = 0.0;
    let mut parts = 0;
    for part in text.split(':') {
        let value: f64 = part.parse().ok().filter(|v: &f64| (0.0..1e6).contains(v))?;
        seconds = seconds * 60.0 + value;
        parts += 1;
    }
    (2..=3).contains(&parts).then_some((Some(seconds), false))
}

/// What was noticed on the way.
#[derive(Default)]
struct Remarks {
    notes: Vec<String>,
    without_time: u64,
    without_rate: u64,
    odd_rate: u64,
    odd_temperature: u64,
    headers: u64,
    back_at: Option<u64>,
    cut: bool,
    joined: bool,
    wall: bool,
}

impl Remarks {
    fn finish(mut self) -> Vec<String> {
        let mut say = |count: u64, what: &str| {
            if count > 0 {
                self.notes.push(format!("{count} rows {what}: left out"));
            }
        };
        say(self.without_time, "without a time");
        say(self.without_rate, "without a rate");
        say(self.odd_rate, "with a rate that no device has");
        say(self.headers, "that repeat the header");
        if self.odd_temperature > 0 {
            self.notes.push(format!(
                "{} temperatures that no drive has: left out",
                self.odd_temperature
            ));
        }
        if let Some(line) = self.back_at {
            self.notes.push(format!(
                "line {line}: the clock goes back; rows are put in the order of time"
            ));
        }
        if self.cut {
            self.notes.push("the last line is cut off: left out".to_owned());
        }
        if self.joined {
            self.notes
                .push(format!("more than {MAX_ROWS} rows: neighbours were joined"));
        }
        self.notes
    }
}

/// Reads a table whose first line is known.
pub(super) fn read<R: BufRead>(first: &str, mut lines: Lines<R>) -> Result<Imported, ImportError> {
    let mut header = Header::read(first, lines.number);
    let has_rate = header.has(|c| matches!(c, Column::Rate(_) | Column::WriteRate(_) | Column::ReadRate(_)));
    let has_total = header.has(|c| matches!(c, Column::Total(_)));
    let has_time = header.has(|c| matches!(c, Column::Time(_)));
    let has_op = header.has(|c| matches!(c, Column::Op));
    if !(has_rate || has_total && has_time) {
        return Err(header.missing("a rate (mb_s, MB/s, MiB/s, KiB/s, bytes/s, ...)"));
    }
    let mut remarks = Remarks::default();
    guesses(&header, has_time, has_op, &mut remarks);
    let mut samples = Thin::new();
    let mut known_op = Op::Write;
    let (mut previous_t, mut previous_total): (Option<f64>, Option<f64>) = (None, None);
    let mut count = 0_u64;
    while let Some(text) = lines.next_line()? {
        let text = text.to_owned();
        let row = cells(&text, header.delimiter);
        if row == header.names {
            remarks.headers += 1;
            continue;
        }
        if !lines.whole && row.len() < header.names.len() && !samples.is_empty() {
            remarks.cut = true;
            continue;
        }
        remarks.notes.extend(header.learn(lines.number, &row));
        let cells = parse(&header, lines.number, &row)?;
        count += 1;
        remarks.wall |= cells.wall;
        let t = match (cells.time, has_time) {
            (Some(t), _) if t.is_finite() => t,
            (_, false) => count as f64,
            _ => {
                remarks.without_time += 1;
                continue;
            }
        };
        if previous_t.is_some_and(|p| t < p) && remarks.back_at.is_none() {
            remarks.back_at = Some(lines.number);
        }
        let total = cells.total.filter(|v| v.is_finite() && *v >= 0.0);
        let by_total = match (total, previous_total, previous_t) {
            (Some(now), Some(before), Some(p)) if now >= before && t > p => {
                Some((now - before) / 1e6 / (t - p))
            }
            _ => None,
        };
        let both = match (cells.write, cells.read) {
            (None, None) => None,
            (w, r) => Some((w.unwrap_or(0.0), r.unwrap_or(0.0))),
        };
        let rate = cells
            .rate
            .or(both.map(|(w, r)| w + r))
            .or(if has_rate { None } else { by_total });
        previous_t = Some(t);
        previous_total = total.or(previous_total);
        let Some(mb_s) = rate else {
            if has_rate || count > 1 {
                remarks.without_rate += 1;
            }
            continue;
        };
        if !(0.0..=MOST_MB_S).contains(&mb_s) {
            remarks.odd_rate += 1;
            continue;
        }
        known_op = match (cells.op, both) {
            (Some(op), _) => op,
            (None, Some((w, r))) if w > r => Op::Write,
            (None, Some((w, r))) if r > w => Op::Read,
            _ => known_op,
        };
        samples.push(Sample {
            t_s: t,
            mb_s,
            cumulative_bytes: total.map_or(0, |v| v.min(1.8e19) as u64),
            temp_c: cells.temp_c,
            op: known_op,
            smart_ms: cells.smart_ms,
            power_w: cells.power_w,
            iops: cells.iops,
            lat_p99_us: cells.lat_p99_us,
            other_bytes: cells
                .other_bytes
                .filter(|v| *v >= 1.0)
                .map(|v| v.min(1.8e19) as u64),
        });
    }
    remarks.joined = samples.width() > 1;
    let mut samples = samples.finish();
    if samples.is_empty() {
        return Err(
            if remarks.without_rate + remarks.without_time + remarks.odd_rate > 0 {
                ImportError::NoRow
            } else {
                ImportError::Empty
            },
        );
    }
    in_order(&mut samples, &remarks);
    let unit_known = header.has(|c| matches!(c, Column::Time(Some(_))));
    let epoch_s = clock(&mut samples, unit_known || !has_time, &mut remarks);
    kelvin(&header, &mut samples, &mut remarks);
    for sample in &mut samples {
        if sample.temp_c.take_if(|t| !TEMPERATURES_C.contains(t)).is_some() {
            remarks.odd_temperature += 1;
        }
    }
    if !has_total {
        let step_s = step(&samples);
        accumulate(&mut samples, step_s);
    }
    Ok(Imported {
        series: Series {
            samples,
            context: Context::default(),
        },
        format: Format::Csv,
        notes: remarks.finish(),
        epoch_s,
        verdict: None,
    })
}

/// Puts rows in the order of time, those of one moment as in the file.
fn in_order(samples: &mut [Sample], remarks: &Remarks) {
    if remarks.back_at.is_some() {
        samples.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    }
}

/// What the header leaves open.
fn guesses(header: &Header, has_time: bool, has_op: bool, remarks: &mut Remarks) {
    let two = header.has(|c| matches!(c, Column::WriteRate(_) | Column::ReadRate(_)));
    if !has_time {
        remarks
            .notes
            .push("no column holds the time: one row a second was assumed".to_owned());
    }
    if !has_op && !two {
        remarks
            .notes
            .push("no column holds the operation: write was assumed".to_owned());
    }
    for (name, column) in header.names.iter().zip(&header.columns) {
        match column {
            Some(Column::Rate(None) | Column::WriteRate(None) | Column::ReadRate(None)) => {
                remarks.notes.push(format!("{name}: no unit; MB/s was assumed"));
            }
            Some(Column::Rate(Some(_))) if name.trim().ends_with("bps") => {
                let read = if name.trim() == "mbps" {
                    "megabytes"
                } else {
                    "bits"
                };
                remarks.notes.push(format!("{name}: read as {read} per second"));
            }
            _ => {}
        }
    }
}

/// Makes the clock start at the run: from wall time, from milliseconds. Returns the wall time at zero.
fn clock(samples: &mut [Sample], unit_known: bool, remarks: &mut Remarks) -> Option<f64> {
    let mut gap = step(samples.iter());
    let mut scale = 1.0;
    let first = samples.first()?.t_s;
    if !unit_known && !remarks.wall {
        if first > EPOCH_S * 1e6 {
            scale = 1e-9;
        } else if first > EPOCH_S * 1e3 * 0.9 && gap >= 50.0 || (gap >= 100.0 && first < EPOCH_S) {
            scale = 1e-3;
            remarks
                .notes
                .push("the time has no unit; milliseconds were assumed".to_owned());
        }
    }
    gap *= scale;
    let first = first * scale;
    let wall = remarks.wall || first > EPOCH_S;
    let zero = if wall || first < 0.0 { first - gap } else { 0.0 };
    for sample in samples {
        sample.t_s = sample.t_s * scale - zero;
    }
    wall.then_some(zero)
}

/// A temperature without a unit that no drive has in °C.
fn kelvin(header: &Header, samples: &mut [Sample], remarks: &mut Remarks) {
    if !header.has(|c| matches!(c, Column::Temperature(None))) {
        return;
    }
    let mut known: Vec<f64> = samples.iter().filter_map(|s| s.temp_c).collect();
    let middle = known.len() / 2;
    if known.is_empty() {
        return;
    }
    let median = *known.select_nth_unstable_by(middle, f64::total_cmp).1;
    let scale = match median {
        m if (250.0..420.0).contains(&m) => Scale::Kelvin,
        m if (95.0..250.0).contains(&m) => Scale::Fahrenheit,
        _ => return,
    };
    let name = if scale == Scale::Kelvin { "kelvin" } else { "°F" };
    remarks.notes.push(format!(
        "the temperature has no unit, and {median:.0} is no °C: {name} was assumed"
    ));
    for sample in samples {
        sample.temp_c = sample.temp_c.map(|t| scale.celsius(t));
    }
}

/// Reads a table of temperatures whose first line is known.
pub(super) fn temperatures<R: BufRead>(
    first: &str,
    mut lines: Lines<R>,
) -> Result<Temperatures, ImportError> {
    let mut header = Header::read(first, lines.number);
    if !header.has(|c| matches!(c, Column::Temperature(_))) {
        return Err(header.missing("a temperature (temp_c, temperature, °C, ...)"));
    }
    if !header.has(|c| matches!(c, Column::Time(_))) {
        return Err(header.missing("a time (t_s, time, timestamp, ...)"));
    }
    let mut remarks = Remarks::default();
    // Samples carry the readings, so that the clock is treated the same.
    let mut samples = Thin::new();
    let mut previous_t: Option<f64> = None;
    while let Some(text) = lines.next_line()? {
        let text = text.to_owned();
        let row = cells(&text, header.delimiter);
        if row == header.names {
            continue;
        }
        remarks.notes.extend(header.learn(lines.number, &row));
        let cells = parse(&header, lines.number, &row)?;
        remarks.wall |= cells.wall;
        if let (Some(t), Some(_)) = (cells.time.filter(|t| t.is_finite()), cells.temp_c) {
            if previous_t.is_some_and(|p| t < p) && remarks.back_at.is_none() {
                remarks.back_at = Some(lines.number);
            }
            previous_t = Some(t);
            let mut sample = Sample::new(t, 0.0, Op::Idle);
            sample.temp_c = cells.temp_c;
            samples.push(sample);
        }
    }
    remarks.joined = samples.width() > 1;
    let mut samples = samples.finish();
    if samples.is_empty() {
        return Err(ImportError::Empty);
    }
    in_order(&mut samples, &remarks);
    let unit_known = header.has(|c| matches!(c, Column::Time(Some(_))));
    // A slow reader's seconds are not milliseconds: only steps of 500 and more are.
    let slow = step(&samples) < 500.0 && samples.first().is_some_and(|s| s.t_s < EPOCH_S);
    let epoch_s = clock(&mut samples, unit_known || slow, &mut remarks);
    kelvin(&header, &mut samples, &mut remarks);
    Ok(Temperatures {
        readings: samples
            .iter()
            .filter_map(|s| s.temp_c.map(|c| (s.t_s, c)))
            .collect(),
        epoch_s,
        notes: remarks.finish(),
    })
}
