//! Where everything goes: phases, axes and curves from top to bottom.

use super::axis::{Axis, thin};
use super::scene::{Anchor, Frame, Ink, Point, Scene, Shape, fit, text_width};
use super::{Plot, Track, event_ink, possible};
use crate::bench::series::Op;
use crate::report::bench::{span, words};
use crate::text::for_terminal;

const WIDTH: f64 = 1100.0;
pub(super) const LEFT: f64 = 64.0;
pub(super) const RIGHT: f64 = WIDTH - 24.0;
const RATE_HEIGHT: f64 = 270.0;
const TEMP_HEIGHT: f64 = 130.0;
pub(super) const SMALL: f64 = 12.0;
const LINK_DASH: [f64; 2] = [7.0, 4.0];

/// A scene on its way from top to bottom.
pub(super) struct Layout<'p, 'a> {
    pub(super) plot: &'p Plot<'a>,
    time: Axis,
    pub(super) end_s: f64,
    pub(super) shapes: Vec<Shape>,
    pub(super) y: f64,
}

impl<'p, 'a> Layout<'p, 'a> {
    pub(super) fn new(plot: &'p Plot<'a>) -> Self {
        let times = plot
            .tracks
            .iter()
            .flat_map(|t| t.samples.iter().map(|s| s.t_s))
            .chain(plot.phases.iter().map(|p| p.end_s))
            .filter(|t| (0.0..=1e12).contains(t));
        let end_s = times.fold(0.0, f64::max);
        let end_s = if end_s > 0.0 { end_s } else { 1.0 };
        Self {
            plot,
            time: Axis::around(0.0, end_s, 10),
            end_s,
            shapes: Vec::new(),
            y: 0.0,
        }
    }

    pub(super) fn x(&self, t_s: f64) -> f64 {
        let t = if t_s.is_finite() { t_s } else { 0.0 };
        LEFT + (t / self.end_s).clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, ink: Ink, text: impl Into<String>) {
        self.words(x, y, SMALL, anchor, false, ink, text.into());
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn words(
        &mut self,
        x: f64,
        y: f64,
        size: f64,
        anchor: Anchor,
        bold: bool,
        ink: Ink,
        text: String,
    ) {
        self.shapes.push(Shape::Text {
            x,
            y,
            size,
            anchor,
            bold,
            ink,
            text,
        });
    }

    pub(super) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, ink: Ink) {
        self.shapes.push(Shape::Rect {
            x,
            y,
            width,
            height,
            round: 0.0,
            ink,
        });
    }

    pub(super) fn line(&mut self, from: Point, to: Point, width: f64, dash: Option<[f64; 2]>, ink: Ink) {
        self.shapes.push(Shape::Lines {
            lines: vec![vec![from, to]],
            width,
            dash,
            ink,
        });
    }

    pub(super) fn finish(mut self, with_words: bool) -> Scene {
        let plot = self.plot;
        // Replaced below by the paper, once the height is known.
        self.rect(0.0, 0.0, WIDTH, 0.0, Ink::Paper);
        if with_words {
            self.header();
        }
        self.legend();
        let lane = self.y;
        if !plot.phases.is_empty() {
            self.y += 20.0;
        }
        let rows = self.badge_rows();
        let badges_top = self.y + 3.0;
        if !rows.is_empty() {
            self.y += 5.0 + rows.len() as f64 * 22.0;
        }
        let top = self.y;
        let has_temp = plot
            .tracks
            .iter()
            .any(|t| t.samples.iter().any(|s| s.temp_c.is_some()));
        let temp_top = top + RATE_HEIGHT + 16.0;
        let bottom = if has_temp {
            temp_top + TEMP_HEIGHT
        } else {
            top + RATE_HEIGHT
        };
        self.rect(LEFT, top, RIGHT - LEFT, RATE_HEIGHT, Ink::Panel);
        if has_temp {
            self.rect(LEFT, temp_top, RIGHT - LEFT, TEMP_HEIGHT, Ink::Panel);
        }
        let panels = if has_temp {
            vec![(top, RATE_HEIGHT), (temp_top, TEMP_HEIGHT)]
        } else {
            vec![(top, RATE_HEIGHT)]
        };
        self.shade_phases(lane, &panels);
        self.shade_idle(&panels);
        self.time_axis(bottom, &panels);
        // Marks and titles lie under the curves: nothing hides a sample.
        self.event_marks(badges_top, &rows, top, bottom);
        self.rate_panel(top);
        if has_temp {
            self.temp_panel(temp_top);
        } else {
            let said = "No temperature was read.";
            self.text(LEFT, bottom + 34.0, Anchor::Start, Ink::Muted, said);
        }
        self.notice_marks(bottom);
        self.y = bottom + 46.0;
        if with_words {
            self.told();
        }
        let height = (self.y + 8.0).ceil();
        if let Some(Shape::Rect { height: paper, .. }) = self.shapes.first_mut() {
            *paper = height;
        }
        Scene {
            width: WIDTH,
            height,
            title: format!("{}. {}", for_terminal(&plot.title), plot.headline),
            shapes: self.shapes,
            frame: Frame {
                left: LEFT,
                right: RIGHT,
                top,
                bottom,
                seconds: self.end_s,
            },
        }
    }

    fn header(&mut self) {
        let plot = self.plot;
        let room = RIGHT - 16.0;
        let title = fit(&for_terminal(&plot.title), 17.0, true, room);
        self.words(16.0, 28.0, 17.0, Anchor::Start, true, Ink::Text, title);
        self.y = 34.0;
        for (line, ink) in [(&plot.headline, Ink::Text), (&plot.subtitle, Ink::Muted)] {
            if line.is_empty() {
                continue;
            }
            let shown = fit(&for_terminal(line), 13.0, false, room);
            self.y += 18.0;
            self.words(16.0, self.y, 13.0, Anchor::Start, false, ink, shown);
        }
    }

    fn legend(&mut self) {
        let plot = self.plot;
        let mut entries: Vec<(Ink, Option<[f64; 2]>, String)> = Vec::new();
        let many = plot.tracks.len() > 1;
        for (i, track) in plot.tracks.iter().enumerate() {
            for op in [Op::Write, Op::Read] {
                if track.samples.iter().any(|s| s.op == op) {
                    let name = if many {
                        format!("{} ({})", fit(&track.name, SMALL, false, 330.0), op.word())
                    } else {
                        format!("{} rate", op.word())
                    };
                    let dash = (many && op == Op::Read).then_some([5.0, 3.0]);
                    entries.push((plot.ink(i, op), dash, name));
                }
            }
            if !many && track.samples.iter().any(|s| s.temp_c.is_some()) {
                entries.push((plot.temp_ink(i), None, "temperature".to_owned()));
            }
        }
        if let Some(link) = plot.link() {
            let name = format!("ceiling of the link, {}", words::rate(link));
            entries.push((Ink::Muted, Some(LINK_DASH), name));
        }
        let mut x = 16.0;
        self.y += 24.0;
        for (ink, dash, name) in entries {
            let width = text_width(&name, SMALL, false) + 46.0;
            if x + width > RIGHT && x > 16.0 {
                x = 16.0;
                self.y += 18.0;
            }
            let width_px = if dash.is_some() { 1.6 } else { 3.0 };
            self.line((x, self.y - 4.0), (x + 20.0, self.y - 4.0), width_px, dash, ink);
            self.text(x + 26.0, self.y, Anchor::Start, Ink::Text, name);
            x += width;
        }
        let idle = plot
            .tracks
            .iter()
            .any(|t| t.samples.iter().any(|s| s.op == Op::Idle));
        if idle && !many {
            self.rect(x, self.y - 10.0, 20.0, 12.0, Ink::Idle);
            self.text(x + 26.0, self.y, Anchor::Start, Ink::Text, "idle");
        }
        self.y += 10.0;
    }

    fn shade_phases(&mut self, lane: f64, panels: &[(f64, f64)]) {
        let plot = self.plot;
        for (i, phase) in plot.phases.iter().enumerate() {
            let (left, right) = (self.x(phase.start_s), self.x(phase.end_s));
            let width = (right - left).max(0.5);
            let name = for_terminal(&phase.name);
            self.shapes.push(Shape::Open {
                title: format!(
                    "{name}: {} to {}{}",
                    words::seconds(phase.start_s),
                    words::seconds(phase.end_s),
                    phase
                        .mb_s
                        .map(|r| format!(", {}", words::rate(r)))
                        .unwrap_or_default()
                ),
            });
            let ink = if i % 2 == 0 { Ink::Shade } else { Ink::Panel };
            self.rect(left, lane, width, 20.0, ink);
            for (top, height) in panels {
                self.rect(left, *top, width, *height, ink);
            }
            self.line((left, lane), (left, lane + 20.0), 1.0, None, Ink::Grid);
            let shown = fit(&name, 11.0, false, width - 8.0);
            if !shown.is_empty() {
                let middle = left + width / 2.0;
                self.words(middle, lane + 14.0, 11.0, Anchor::Middle, false, Ink::Text, shown);
            }
            self.shapes.push(Shape::Close);
        }
    }

    fn shade_idle(&mut self, panels: &[(f64, f64)]) {
        let plot = self.plot;
        if plot.tracks.len() != 1 {
            return;
        }
        let mut stretches: Vec<(f64, f64)> = Vec::new();
        for (sample, length) in plot.tracks[0].samples.iter().zip(&plot.tracks[0].lengths) {
            if sample.op != Op::Idle {
                continue;
            }
            let (left, right) = (self.x(sample.t_s - length), self.x(sample.t_s));
            match stretches.last_mut() {
                Some(last) if left - last.1 < 0.6 => last.1 = right,
                _ => stretches.push((left, right)),
            }
        }
        for (left, right) in stretches {
            for (top, height) in panels {
                self.rect(left, *top, (right - left).max(0.5), *height, Ink::Idle);
            }
        }
    }

    fn time_axis(&mut self, bottom: f64, panels: &[(f64, f64)]) {
        let last = self.end_s * 1.0001;
        for tick in self.time.ticks().into_iter().filter(|t| *t <= last) {
            let x = self.x(tick);
            for (top, height) in panels {
                self.line((x, *top), (x, top + height), 1.0, None, Ink::Grid);
            }
            self.line((x, bottom), (x, bottom + 5.0), 1.0, None, Ink::Muted);
            let label = self.time.label(tick);
            let x = x.min(WIDTH - 4.0 - text_width(&label, SMALL, false) / 2.0);
            self.text(x, bottom + 18.0, Anchor::Middle, Ink::Muted, label);
        }
        self.text(
            (LEFT + RIGHT) / 2.0,
            bottom + 34.0,
            Anchor::Middle,
            Ink::Muted,
            "time in s",
        );
    }

    fn value_axis(&mut self, axis: &Axis, top: f64, height: f64) {
        for tick in axis.ticks() {
            let y = top + height * (1.0 - (tick - axis.low) / (axis.high - axis.low));
            self.line((LEFT, y), (RIGHT, y), 1.0, None, Ink::Grid);
            self.text(LEFT - 7.0, y + 4.0, Anchor::End, Ink::Muted, axis.label(tick));
        }
    }

    /// In the panel's corner it is read first, and nothing has to be turned.
    fn panel_title(&mut self, top: f64, title: &str) {
        let width = text_width(title, 11.0, true) + 10.0;
        self.rect(LEFT + 1.0, top + 1.0, width, 17.0, Ink::Panel);
        self.words(
            LEFT + 6.0,
            top + 13.0,
            11.0,
            Anchor::Start,
            true,
            Ink::Muted,
            title.to_owned(),
        );
    }

    fn rate_panel(&mut self, top: f64) {
        let plot = self.plot;
        let highest = plot.highest();
        let link = plot.link();
        let axis = Axis::around(0.0, highest.max(link.unwrap_or(0.0)) * 1.04, 5);
        self.value_axis(&axis, top, RATE_HEIGHT);
        self.panel_title(top, "rate in MB/s");
        if plot.tracks.iter().all(|t| t.samples.is_empty()) {
            let middle = ((LEFT + RIGHT) / 2.0, top + RATE_HEIGHT / 2.0);
            self.text(middle.0, middle.1, Anchor::Middle, Ink::Muted, "No samples.");
        }
        let place = move |value: f64| {
            top + RATE_HEIGHT * (1.0 - ((value - axis.low) / (axis.high - axis.low)).clamp(0.0, 1.0))
        };
        if let Some(link) = link {
            let y = place(link);
            self.line((LEFT, y), (RIGHT, y), 1.2, Some(LINK_DASH), Ink::Muted);
        }
        for (i, track) in plot.tracks.iter().enumerate() {
            for op in [Op::Write, Op::Read] {
                let lines = self.curve(track, op, &place);
                if lines.is_empty() {
                    continue;
                }
                let dash = (plot.tracks.len() > 1 && op == Op::Read).then_some([5.0, 3.0]);
                self.shapes.push(Shape::Lines {
                    lines,
                    width: 1.4,
                    dash,
                    ink: plot.ink(i, op),
                });
            }
        }
    }

    /// A track's samples of one operation, each as a level of its own length; broken where others or nothing lies between.
    fn curve(&self, track: &Track<'_>, op: Op, place: &impl Fn(f64) -> f64) -> Vec<Vec<Point>> {
        let mut lines: Vec<Vec<Point>> = Vec::new();
        let mut end_s = f64::NEG_INFINITY;
        for (sample, length) in track.samples.iter().zip(&track.lengths) {
            if sample.op != op {
                continue;
            }
            let start_s = sample.t_s - length;
            if lines.is_empty() || start_s - end_s > 0.3 * length.max(1e-9) {
                lines.push(Vec::new());
            }
            let y = place(sample.mb_s);
            if let Some(line) = lines.last_mut() {
                let from = self.x(start_s).max(line.last().map_or(0.0, |p: &Point| p.0));
                line.push((from, y));
                line.push((self.x(sample.t_s).max(from + 0.01), y));
            }
            end_s = sample.t_s;
        }
        lines.iter().map(|line| thin(line)).collect()
    }

    fn temp_panel(&mut self, top: f64) {
        let plot = self.plot;
        let temps: Vec<f64> = plot
            .tracks
            .iter()
            .flat_map(|t| t.samples.iter().filter_map(|s| s.temp_c))
            .filter(possible)
            .collect();
        let low = temps.iter().copied().fold(f64::INFINITY, f64::min);
        let high = temps.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = (low + high) / 2.0;
        let reach = ((high - low) / 2.0 + 1.5).max(5.0);
        let axis = Axis::around(middle - reach, middle + reach, 4);
        self.value_axis(&axis, top, TEMP_HEIGHT);
        self.panel_title(top, "temperature in °C");
        let place = |value: f64| {
            top + TEMP_HEIGHT * (1.0 - ((value - axis.low) / (axis.high - axis.low)).clamp(0.0, 1.0))
        };
        for (i, track) in plot.tracks.iter().enumerate() {
            let mut lines: Vec<Vec<Point>> = Vec::new();
            // A reading is held for three intervals, not longer.
            let hold = 3.0
                * track
                    .temp_interval_s
                    .unwrap_or(1.0)
                    .max(span::usual(&track.samples));
            let mut last_s = f64::NEG_INFINITY;
            let ink = plot.temp_ink(i);
            for sample in &track.samples {
                let Some(temp) = sample.temp_c.filter(possible) else {
                    continue;
                };
                if sample.t_s - last_s > hold * 1.01 {
                    lines.push(Vec::new());
                }
                last_s = sample.t_s;
                if let Some(line) = lines.last_mut() {
                    line.push((self.x(sample.t_s), place(temp)));
                }
            }
            for line in lines.iter().filter(|l| l.len() == 1) {
                let (x, y) = line[0];
                self.shapes.push(Shape::Disc {
                    x,
                    y,
                    radius: 2.0,
                    ink,
                });
            }
            let lines: Vec<_> = lines.iter().filter(|l| l.len() > 1).map(|l| thin(l)).collect();
            if !lines.is_empty() {
                self.shapes.push(Shape::Lines {
                    lines,
                    width: 1.8,
                    dash: None,
                    ink,
                });
            }
        }
        for mark in &plot.marks {
            if let Some(temp) = mark.event.temp_c.filter(possible) {
                self.shapes.push(Shape::Disc {
                    x: self.x(mark.event.onset_s),
                    y: place(temp),
                    radius: 3.5,
                    ink: event_ink(mark.event),
                });
            }
        }
    }
}
