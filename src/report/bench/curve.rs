//! Rate and temperature as dots of Braille characters: for terminals, without colour, 80 columns wide.

use super::span;
use crate::bench::series::{Op, Sample};
use crate::bench::verdict::Event;

const WIDTH: usize = 68;
const RATE_ROWS: usize = 8;
const TEMP_ROWS: usize = 4;

/// Dots, two across and four down in each character.
struct Dots {
    rows: usize,
    cells: Vec<u8>,
}

impl Dots {
    fn new(rows: usize) -> Self {
        Self {
            rows,
            cells: vec![0; rows * WIDTH],
        }
    }

    /// Sets the dots of a column from `low` to `high`, both from 0 to 1, upwards.
    fn bar(&mut self, column: usize, low: f64, high: f64) {
        const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        let last = self.rows * 4 - 1;
        let dot = |value: f64| last - ((value.clamp(0.0, 1.0) * last as f64).round() as usize).min(last);
        for y in dot(high)..=dot(low) {
            if let Some(cell) = self.cells.get_mut(y / 4 * WIDTH + column / 2) {
                *cell |= BITS[column % 2][y % 4];
            }
        }
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.cells.chunks(WIDTH).map(|row| {
            row.iter()
                .map(|bits| char::from_u32(0x2800 + u32::from(*bits)).unwrap_or(' '))
                .collect()
        })
    }
}

/// Lowest and highest value of each column; a value covers the time from its start to its end.
fn columns(values: impl Iterator<Item = (f64, f64, f64)>, end_s: f64) -> Vec<Option<(f64, f64)>> {
    let count = 2 * WIDTH;
    let mut columns: Vec<Option<(f64, f64)>> = vec![None; count];
    let place = |t: f64| (t / end_s * count as f64).clamp(0.0, count as f64);
    for (start_s, stop_s, value) in values {
        let first = (place(start_s) as usize).min(count - 1);
        let last = ((place(stop_s).ceil() as usize).max(first + 1) - 1).min(count - 1);
        for column in &mut columns[first..=last.max(first)] {
            *column = Some(match *column {
                Some((low, high)) => (low.min(value), high.max(value)),
                None => (value, value),
            });
        }
    }
    columns
}

fn plot(columns: &[Option<(f64, f64)>], low: f64, high: f64, rows: usize) -> Dots {
    let mut dots = Dots::new(rows);
    let mut before: Option<(f64, f64)> = None;
    for (i, column) in columns.iter().enumerate() {
        let Some((from, to)) = *column else {
            before = None;
            continue;
        };
        // Neighbours touch, so that a fall is a line and not a gap.
        let (mut from, mut to) = (from, to);
        if let Some((last_from, last_to)) = before {
            from = from.min(last_to);
            to = to.max(last_from);
        }
        before = *column;
        dots.bar(i, (from - low) / (high - low), (to - low) / (high - low));
    }
    dots
}

/// Adds a panel with its scale at the left.
fn panel(out: &mut String, dots: &Dots, top: &str, bottom: &str, unit: &str) {
    let rows = dots.rows;
    for (i, line) in dots.lines().enumerate() {
        let label = match i {
            0 => top,
            1 => unit,
            i if i + 1 == rows => bottom,
            _ => "",
        };
        out.push_str(format!("{label:>8} │{line}").trim_end_matches('\u{2800}'));
        out.push('\n');
    }
}

/// The curves, the marks of the events, and the time; empty without samples.
pub fn draw(samples: &[Sample], events: &[Event]) -> String {
    let samples = span::ordered(samples);
    let lengths = span::lengths(&samples);
    let end_s = samples.last().map_or(0.0, |s| s.t_s);
    if end_s <= 0.0 {
        return String::new();
    }
    let moving = samples.iter().zip(&lengths).filter(|(s, _)| s.op != Op::Idle);
    let highest = samples.iter().map(|s| s.mb_s).fold(0.0, f64::max);
    let highest = super::chart::axis::Axis::around(0.0, highest, 5).high;
    let rates = columns(moving.map(|(s, l)| (s.t_s - l, s.t_s, s.mb_s)), end_s);
    let mut out = String::new();
    let number = super::words::number;
    panel(
        &mut out,
        &plot(&rates, 0.0, highest, RATE_ROWS),
        &number(highest),
        "0",
        "MB/s",
    );
    out.push_str(&format!("{:>8} ├{}\n", "", marks(events, end_s)));
    let temps: Vec<(f64, f64)> = samples
        .iter()
        .filter_map(|s| s.temp_c.filter(|t| t.is_finite()).map(|t| (s.t_s, t)))
        .collect();
    let coolest = temps.iter().map(|t| t.1).fold(f64::INFINITY, f64::min);
    let hottest = temps.iter().map(|t| t.1).fold(f64::NEG_INFINITY, f64::max);
    if !temps.is_empty() {
        let (low, high) = (coolest.floor(), hottest.ceil().max(coolest.floor() + 4.0));
        // Readings may be rarer than columns: a short hold joins them.
        let usual = span::usual(&samples);
        let gaps = temps
            .windows(2)
            .map(|w| w[1].0 - w[0].0)
            .filter(|g| *g > 0.0)
            .fold(f64::INFINITY, f64::min);
        let hold = if gaps.is_finite() {
            gaps.max(usual) * 1.5
        } else {
            usual
        };
        let held = temps.iter().enumerate().map(|(i, (t, temp))| {
            let next = temps.get(i + 1).map_or(*t, |n| n.0);
            let until = if next - t <= 2.0 * hold { next } else { *t };
            (*t - usual, until, *temp)
        });
        let held = columns(held, end_s);
        panel(
            &mut out,
            &plot(&held, low, high, TEMP_ROWS),
            &number(high),
            &number(low),
            "°C",
        );
    }
    let end = super::words::seconds(end_s);
    let middle = super::words::seconds(end_s / 2.0);
    let room = WIDTH.saturating_sub(1 + end.chars().count());
    let half = (WIDTH / 2).saturating_sub(1 + middle.chars().count() / 2);
    out.push_str(&format!("{:>8} └0", ""));
    let mut axis = " ".repeat(half) + &middle;
    let missing = room.saturating_sub(axis.chars().count());
    axis.push_str(&" ".repeat(missing));
    axis.push_str(&end);
    out.push_str(&axis);
    out.push('\n');
    out
}

/// `──1────2`: where the events begin. Where two meet, the later moves on; what has no room is `+`.
fn marks(events: &[Event], end_s: f64) -> String {
    let mut line: Vec<char> = vec!['─'; WIDTH];
    let mut order: Vec<(usize, &Event)> = events.iter().enumerate().collect();
    order.sort_by(|a, b| a.1.onset_s.total_cmp(&b.1.onset_s));
    let mut free = 0;
    for (i, event) in order {
        let at = (event.onset_s / end_s * WIDTH as f64).clamp(0.0, WIDTH as f64 - 1.0) as usize;
        let label = (i + 1).to_string();
        let start = at.max(free);
        if start + label.len() <= WIDTH && start <= at + 3 {
            for (cell, c) in line[start..].iter_mut().zip(label.chars()) {
                *cell = c;
            }
            free = start + label.len() + 1;
        } else {
            line[at] = if line[at] == '─' { '+' } else { line[at] };
        }
    }
    line.into_iter().collect()
}
