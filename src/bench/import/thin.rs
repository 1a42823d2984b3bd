//! A file of any length in bounded memory: of more than [`MAX_ROWS`] rows, neighbours are joined, the same number of them
//! everywhere.

use super::MAX_ROWS;
use crate::bench::series::{Op, Sample};

/// Rows that are kept.
#[derive(Debug)]
pub(super) struct Thin {
    rows: Vec<Sample>,
    /// How many rows of the file make one that is kept.
    width: usize,
    /// Those of the next one.
    waiting: Vec<Sample>,
}

impl Thin {
    pub fn new() -> Self {
        Self {
            rows: Vec::new(),
            width: 1,
            waiting: Vec::new(),
        }
    }

    pub fn push(&mut self, sample: Sample) {
        if self.width == 1 {
            self.rows.push(sample);
        } else {
            self.waiting.push(sample);
            if self.waiting.len() < self.width {
                return;
            }
            self.waiting.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
            self.rows
                .extend(join(&self.waiting, self.rows.last().map(|r| r.t_s)));
            self.waiting.clear();
        }
        if self.rows.len() >= MAX_ROWS {
            self.halve();
        }
    }

    fn halve(&mut self) {
        // Neighbours in time, where the clock of a file goes back.
        self.rows.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
        let mut begin = None;
        let mut out = Vec::with_capacity(MAX_ROWS);
        for pair in self.rows.chunks(2) {
            out.extend(join(pair, begin));
            begin = pair.last().map(|r| r.t_s);
        }
        self.rows = out;
        self.width *= 2;
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.waiting.is_empty()
    }

    /// How many rows of the file make one.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The rows, the last of which may be made of fewer.
    pub fn finish(mut self) -> Vec<Sample> {
        self.waiting.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
        self.rows
            .extend(join(&self.waiting, self.rows.last().map(|r| r.t_s)));
        self.rows
    }
}

/// One row of several: bytes stay, the rate is the mean over time, the operation the one that moved most.
fn join(group: &[Sample], begin: Option<f64>) -> Option<Sample> {
    let last = group.last()?;
    // How long the very first row of a file was, only the second tells.
    let first_length = match group {
        [a, b, ..] => b.t_s - a.t_s,
        _ => 1.0,
    };
    let mut previous = begin.filter(|begin| group.first().is_some_and(|row| *begin < row.t_s));
    let (mut seconds, mut moved) = (0.0, 0.0);
    let mut by_op = [(Op::Idle, 0.0_f64), (Op::Read, 0.0), (Op::Write, 0.0)];
    for row in group {
        let length = previous.map_or(first_length, |p| row.t_s - p).max(0.0);
        previous = Some(row.t_s);
        seconds += length;
        moved += row.mb_s * length;
        let other = row.other_bytes.unwrap_or(0) as f64 / 1e6;
        for (op, most) in &mut by_op {
            *most += match (*op == row.op, *op) {
                (true, _) => (row.mb_s * length - other).max(0.0),
                (false, Op::Idle) => 0.0,
                (false, _) if row.op == Op::Idle => 0.0,
                (false, _) => other,
            };
        }
    }
    let (op, most) = by_op.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let others = by_op.iter().filter(|(o, _)| *o != op && *o != Op::Idle);
    let other_bytes = (others.map(|(_, mb)| mb).sum::<f64>() * 1e6) as u64;
    Some(Sample {
        mb_s: if seconds > 0.0 { moved / seconds } else { last.mb_s },
        op: if most > 0.0 { op } else { last.op },
        temp_c: group.iter().rev().find_map(|r| r.temp_c),
        smart_ms: group.iter().filter_map(|r| r.smart_ms).reduce(f64::max),
        other_bytes: Some(other_bytes).filter(|bytes| *bytes > 0),
        cumulative_bytes: group.iter().map(|r| r.cumulative_bytes).max().unwrap_or(0),
        ..last.clone()
    })
}
