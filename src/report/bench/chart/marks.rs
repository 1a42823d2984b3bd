//! Events and messages of the system: badges, lines, and what they are in words.

use super::event_ink;
use super::layout::{LEFT, Layout, RIGHT, SMALL};
use super::scene::{Anchor, Ink, Shape, text_width, wrap};
use crate::report::bench::words;
use crate::text::for_terminal;

/// Events that are told in words below the picture; the rest has only its marks.
const MAX_TOLD: usize = 24;
const MAX_BADGE_ROWS: usize = 3;

impl Layout<'_, '_> {
    /// Badges by row: (left end, right end, label, index of its first event). What fits nowhere joins the last one.
    pub(super) fn badge_rows(&self) -> Vec<Vec<(f64, f64, String, usize)>> {
        let mut rows: Vec<Vec<(f64, f64, String, usize)>> = Vec::new();
        let mut order: Vec<usize> = (0..self.plot.marks.len()).collect();
        order.sort_by(|a, b| {
            let onset = |i: &usize| self.plot.marks[*i].event.onset_s;
            onset(a).total_cmp(&onset(b))
        });
        for index in order {
            let mark = &self.plot.marks[index];
            let half = (text_width(&mark.label, SMALL, true) / 2.0 + 5.0).max(9.0);
            let middle = self
                .x(mark.event.onset_s)
                .clamp(LEFT + half - 9.0, RIGHT - half + 9.0);
            let badge = (middle - half, middle + half, mark.label.clone(), index);
            let free = rows.iter().position(|row| {
                row.last()
                    .is_none_or(|last: &(f64, f64, String, usize)| last.1 + 2.0 <= badge.0)
            });
            match free {
                Some(row) => rows[row].push(badge),
                None if rows.len() < MAX_BADGE_ROWS => rows.push(vec![badge]),
                None => {
                    let latest = rows
                        .iter_mut()
                        .filter_map(|row| row.last_mut())
                        .max_by(|a, b| a.0.total_cmp(&b.0));
                    if let Some(last) = latest {
                        let first = last.2.split('–').next().unwrap_or_default().to_owned();
                        last.2 = format!("{first}–{}", mark.label);
                        last.1 = last.0 + text_width(&last.2, SMALL, true) + 10.0;
                        let over = (last.1 - RIGHT - 9.0).max(0.0);
                        last.0 -= over;
                        last.1 -= over;
                    }
                }
            }
        }
        rows
    }

    pub(super) fn notice_marks(&mut self, bottom: f64) {
        let plot = self.plot;
        for notice in plot.notices.iter().take(1000) {
            let x = self.x(notice.t_s);
            self.shapes.push(Shape::Open {
                title: format!("{}: {}", words::seconds(notice.t_s), for_terminal(&notice.text)),
            });
            self.shapes.push(Shape::Lines {
                lines: vec![vec![
                    (x - 4.0, bottom - 1.0),
                    (x, bottom - 8.0),
                    (x + 4.0, bottom - 1.0),
                    (x - 4.0, bottom - 1.0),
                ]],
                width: 1.5,
                dash: None,
                ink: Ink::Event,
            });
            self.shapes.push(Shape::Close);
        }
    }

    pub(super) fn event_marks(
        &mut self,
        badges_top: f64,
        rows: &[Vec<(f64, f64, String, usize)>],
        top: f64,
        bottom: f64,
    ) {
        let plot = self.plot;
        // Many lines must not hide the curve.
        let width = if plot.marks.len() > 16 { 0.7 } else { 1.4 };
        for mark in &plot.marks {
            let x = self.x(mark.event.onset_s);
            self.shapes.push(Shape::Open {
                title: format!("{}: {}", mark.label, for_terminal(&words::event_line(mark.event))),
            });
            self.line(
                (x, top - 2.0),
                (x, bottom),
                width,
                Some([4.0, 3.0]),
                event_ink(mark.event),
            );
            self.shapes.push(Shape::Close);
        }
        for (i, row) in rows.iter().enumerate() {
            let y = badges_top + i as f64 * 22.0 + 10.0;
            for (j, (left, right, label, index)) in row.iter().enumerate() {
                let event = plot.marks[*index].event;
                let ink = event_ink(event);
                // How long it lasted, as far as the next badge lets it be seen.
                let until = self
                    .x(event.end_s.unwrap_or(self.end_s))
                    .min(row.get(j + 1).map_or(RIGHT, |next| next.0 - 2.0));
                if until > *right {
                    self.line((*right, y), (until, y), 2.0, None, ink);
                }
                let stem = self.x(event.onset_s).clamp(*left, *right);
                self.line((stem, y), (stem, top), width, Some([4.0, 3.0]), ink);
                self.shapes.push(Shape::Rect {
                    x: *left,
                    y: y - 9.0,
                    width: right - left,
                    height: 18.0,
                    round: 9.0,
                    ink,
                });
                let middle = (left + right) / 2.0;
                self.words(
                    middle,
                    y + 4.3,
                    SMALL,
                    Anchor::Middle,
                    true,
                    Ink::Paper,
                    label.clone(),
                );
            }
        }
    }

    pub(super) fn told(&mut self) {
        let plot = self.plot;
        let room = RIGHT - 56.0;
        for mark in plot.marks.iter().take(MAX_TOLD) {
            let ink = event_ink(mark.event);
            let half = (text_width(&mark.label, SMALL, true) / 2.0 + 5.0).max(9.0);
            self.y += 6.0;
            self.shapes.push(Shape::Rect {
                x: 28.0 - half,
                y: self.y - 4.0,
                width: 2.0 * half,
                height: 18.0,
                round: 9.0,
                ink,
            });
            self.words(
                28.0,
                self.y + 9.3,
                SMALL,
                Anchor::Middle,
                true,
                Ink::Paper,
                mark.label.clone(),
            );
            for line in wrap(&for_terminal(&words::event_line(mark.event)), SMALL, room) {
                self.text(56.0, self.y + 9.0, Anchor::Start, Ink::Text, line);
                self.y += 16.0;
            }
        }
        let more = plot.marks.len().saturating_sub(MAX_TOLD);
        if more > 0 {
            self.y += 16.0;
            let line = format!("and {more} more events, in the report's text");
            self.text(56.0, self.y, Anchor::Start, Ink::Muted, line);
            self.y += 8.0;
        }
        for notice in plot.notices.iter().take(20) {
            let line = format!(
                "system at {}: {}",
                words::seconds(notice.t_s),
                for_terminal(&notice.text)
            );
            for line in wrap(&line, SMALL, room) {
                self.y += 16.0;
                self.text(56.0, self.y, Anchor::Start, Ink::Muted, line);
            }
        }
        let more = plot.notices.len().saturating_sub(20);
        if more > 0 {
            self.y += 16.0;
            let line = format!("and {more} more messages of the system");
            self.text(56.0, self.y, Anchor::Start, Ink::Muted, line);
        }
    }
}
