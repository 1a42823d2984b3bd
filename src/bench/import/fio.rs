//! Bandwidth logs of fio (`--write_bw_log`): time in ms, KiB/s, direction, block size, offset, perhaps more.

use std::io::BufRead;

use super::lines::Lines;
use super::{Format, ImportError, Imported, MAX_ROWS, accumulate, step, thin::Thin};
use crate::bench::series::{Context, Op, Sample, Series};

const KIB: f64 = 1024.0;

#[derive(Debug, Clone, Copy)]
struct Row {
    t_s: f64,
    kib_s: f64,
    op: Op,
    block: f64,
}

fn row(text: &str) -> Option<Row> {
    let mut cells = text.split(',').map(str::trim);
    let mut number = || cells.next()?.parse::<f64>().ok().filter(|v| v.is_finite());
    let (ms, kib_s, direction, block) = (number()?, number()?, number()?, number()?);
    let op = match direction {
        0.0 => Op::Read,
        1.0 => Op::Write,
        2.0 => Op::Idle,
        _ => return None,
    };
    // Priority and command priority hints are numbers too, in hex.
    let rest: Vec<&str> = text.split(',').skip(4).map(str::trim).collect();
    let plain = |c: &&str| c.parse::<f64>().is_ok() || c.starts_with("0x");
    (rest.len() <= 5 && rest.iter().all(plain) && ms >= 0.0).then_some(Row {
        t_s: ms / 1e3,
        kib_s,
        op,
        block,
    })
}

/// Whether a line is one of such a log.
pub(super) fn is_row(text: &str) -> bool {
    row(text).is_some()
}

/// One direction's samples.
struct Lane {
    samples: Thin,
    last_t_s: Option<f64>,
    /// Jobs run side by side: the rows of a moment are added.
    together: bool,
}

/// Reads a log whose first line is known.
pub(super) fn read<R: BufRead>(first: &str, mut lines: Lines<R>) -> Result<Imported, ImportError> {
    let mut notes = Vec::new();
    let (mut written, mut read) = (Lane::new(), Lane::new());
    let mut trims = 0_u64;
    let mut blocks = false;
    let mut per_request: Vec<(Op, u64, f64)> = Vec::new();
    let mut text = first.to_owned();
    let mut negative = 0_u64;
    loop {
        let parsed = row(&text);
        match parsed {
            None if !lines.whole => notes.push("the last line is cut off: left out".to_owned()),
            None => {
                return Err(ImportError::Cell {
                    line: lines.number,
                    column: "fio log".to_owned(),
                    cell: text.chars().take(60).collect(),
                    what: "time, rate, direction, block, offset",
                });
            }
            Some(r) if r.op == Op::Idle => trims += 1,
            Some(r) if r.kib_s < 0.0 => negative += 1,
            Some(r) => {
                if r.block > 0.0 {
                    blocks = true;
                    request(&mut per_request, r);
                }
                if r.op == Op::Write {
                    &mut written
                } else {
                    &mut read
                }
                .push(r);
            }
        }
        match lines.next_line()? {
            Some(next) => text = next.to_owned(),
            None => break,
        }
    }
    if trims > 0 {
        notes.push(format!("{trims} rows of trims: left out"));
    }
    if negative > 0 {
        notes.push(format!("{negative} rows with a negative rate: left out"));
    }
    let lanes: Vec<Whole> = [written, read]
        .into_iter()
        .filter(|l| !l.samples.is_empty())
        .map(Lane::finish)
        .collect();
    let fine = blocks
        && lanes
            .iter()
            .all(|l| l.samples.len() > 8 && step(&l.samples) / (l.width as f64) < 0.1);
    let mut samples = if fine {
        notes.push("the log has a row for each request: bytes were counted per second".to_owned());
        stops(seconds(&per_request), 1.0, 1, &mut notes)
    } else {
        let joined = lanes.iter().any(|l| l.width > 1);
        let merged = merge(lanes, &mut notes);
        match regular(&merged) {
            Some(interval) if !joined => stops(merged, interval, 2, &mut notes),
            _ => merged,
        }
    };
    if samples.is_empty() {
        return Err(ImportError::Empty);
    }
    let step_s = step(&samples);
    accumulate(&mut samples, step_s);
    Ok(Imported {
        series: Series {
            samples,
            context: Context::default(),
        },
        format: Format::Fio,
        notes,
        epoch_s: None,
        verdict: None,
    })
}

impl Lane {
    fn new() -> Self {
        Self {
            samples: Thin::new(),
            last_t_s: None,
            together: false,
        }
    }
}

impl Lane {
    fn finish(self) -> Whole {
        Whole {
            width: self.samples.width(),
            together: self.together,
            samples: self.samples.finish(),
        }
    }

    fn push(&mut self, row: Row) {
        self.together |= self.last_t_s.is_some_and(|t| row.t_s <= t);
        self.last_t_s = Some(row.t_s);
        self.samples
            .push(Sample::new(row.t_s, row.kib_s * KIB / 1e6, row.op));
    }
}

/// One direction, read to its end.
struct Whole {
    samples: Vec<Sample>,
    together: bool,
    width: usize,
}

/// Adds a request to its second; the seconds of a log come nearly in order.
fn request(seconds: &mut Vec<(Op, u64, f64)>, row: Row) {
    let second = row.t_s.min(1e9) as u64;
    let room = seconds.len() < 4 * MAX_ROWS;
    let recent = seconds
        .iter_mut()
        .rev()
        .take(8)
        .find(|(op, s, _)| *op == row.op && *s == second);
    match recent {
        Some((_, _, bytes)) => *bytes += row.block,
        None if room => seconds.push((row.op, second, row.block)),
        None => {}
    }
}

fn seconds(per_request: &[(Op, u64, f64)]) -> Vec<Sample> {
    let mut ordered = per_request.to_vec();
    ordered.sort_by_key(|(_, s, _)| *s);
    let mut out = Vec::new();
    for second in ordered.chunk_by(|a, b| a.1 == b.1) {
        let mut moved: Vec<(Op, f64)> = Vec::new();
        for (op, _, bytes) in second {
            match moved.iter_mut().find(|m| m.0 == *op) {
                Some(m) => m.1 += bytes,
                None => moved.push((*op, *bytes)),
            }
        }
        let total: f64 = moved.iter().map(|m| m.1).sum();
        let most = moved
            .iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(Op::Write, |m| m.0);
        let end = second.first().map_or(0.0, |s| s.1 as f64) + 1.0;
        out.push(Sample::new(end, total / 1e6, most));
    }
    out
}

/// The distance of an averaged log's rows, if they have one.
fn regular(samples: &[Sample]) -> Option<f64> {
    let interval = step(samples);
    let near = samples
        .iter()
        .zip(samples.iter().skip(1))
        .filter(|(a, b)| ((b.t_s - a.t_s) / interval - 1.0).abs() < 0.25)
        .count();
    (samples.len() > 8 && near * 5 >= (samples.len() - 1) * 4).then_some(interval)
}

/// Puts zeros into holes of at least `least` rows: fio writes no row for an interval in which nothing was completed. A hole
/// between two workloads, one after the other, stays: nobody asked for anything there.
fn stops(samples: Vec<Sample>, interval: f64, least: usize, notes: &mut Vec<String>) -> Vec<Sample> {
    let (Some(begin), Some(end)) = (samples.first(), samples.last()) else {
        return samples;
    };
    if (end.t_s - begin.t_s) / interval > MAX_ROWS as f64 {
        return samples;
    }
    let spans = [Op::Write, Op::Read].map(|op| {
        let of = |s: &Sample| s.op == op;
        samples.iter().position(of).zip(samples.iter().rposition(of))
    });
    let mut out: Vec<Sample> = Vec::with_capacity(samples.len());
    let (mut holes, mut rows, mut at) = (0_u64, 0_usize, 0.0);
    for (i, sample) in samples.iter().enumerate() {
        if let Some(before) = out.last().cloned() {
            let missing = ((sample.t_s - before.t_s) / interval).round().max(1.0) as usize - 1;
            let within = spans
                .iter()
                .flatten()
                .any(|(first, last)| *first < i && i <= *last);
            if missing >= least && within {
                if holes == 0 {
                    at = before.t_s;
                }
                holes += 1;
                rows += missing;
                out.extend(
                    (1..=missing).map(|k| Sample::new(before.t_s + k as f64 * interval, 0.0, before.op)),
                );
            }
        }
        out.push(sample.clone());
    }
    let length = rows as f64 * interval;
    match holes {
        0 => {}
        1 => notes.push(format!(
            "{length:.0} s without rows at {at:.0} s: nothing was completed there, taken as a stop"
        )),
        _ => notes.push(format!(
            "{length:.0} s without rows in {holes} places, the first at {at:.0} s: nothing was completed there, taken as stops"
        )),
    }
    out
}

/// Both directions on one clock: rows of the same moment become one, of the operation that moved more.
fn merge(lanes: Vec<Whole>, notes: &mut Vec<String>) -> Vec<Sample> {
    let mut all: Vec<Sample> = Vec::new();
    let mut interval = 1.0_f64;
    let several = lanes.len() > 1;
    let mut jobs = false;
    for lane in lanes {
        if lane.width > 1 {
            notes.push(format!("more than {MAX_ROWS} rows: neighbours were joined"));
        }
        jobs |= lane.together;
        interval = step(&lane.samples);
        all.extend(lane.samples);
    }
    if jobs {
        notes.push("several jobs wrote this log: their rates were added".to_owned());
    }
    all.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    if !several && !jobs {
        return all;
    }
    let mut out: Vec<(Sample, f64)> = Vec::new();
    for sample in all {
        match out.last_mut() {
            Some((last, most)) if sample.t_s - last.t_s < 0.4 * interval => {
                last.mb_s += sample.mb_s;
                if sample.mb_s > *most {
                    *most = sample.mb_s;
                    last.op = sample.op;
                }
            }
            _ => {
                let rate = sample.mb_s;
                out.push((sample, rate));
            }
        }
    }
    out.into_iter().map(|(s, _)| s).collect()
}
