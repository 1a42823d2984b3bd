//! A drawing of a few shapes, so that SVG and PNG show the same picture.

use std::sync::LazyLock;

use ttf_parser::Face;

/// What a colour means. Each has a light and a dark value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Behind everything.
    Paper,
    /// Behind the curves.
    Panel,
    /// Every second phase.
    Shade,
    /// A time without transfers.
    Idle,
    /// Lines of the grid.
    Grid,
    /// Words.
    Text,
    /// Words of less weight.
    Muted,
    /// The rate of writes.
    Write,
    /// The rate of reads.
    Read,
    /// The temperature.
    Temp,
    /// The other run's rate and temperature.
    Other,
    /// A thermal event.
    Thermal,
    /// Any other event.
    Event,
}

/// All of them: name of the class, light, dark.
pub const INKS: [(Ink, &str, &str, &str); 13] = [
    (Ink::Paper, "paper", "#ffffff", "#14181d"),
    (Ink::Panel, "panel", "#f6f8fa", "#1b2128"),
    (Ink::Shade, "shade", "#e6eef7", "#232d39"),
    (Ink::Idle, "idle", "#dcdfe3", "#343b43"),
    (Ink::Grid, "grid", "#d0d6dc", "#3a434d"),
    (Ink::Text, "text", "#1b2228", "#e8ebee"),
    (Ink::Muted, "muted", "#56616c", "#a3aeb9"),
    (Ink::Write, "write", "#0b62b0", "#5fb2ff"),
    (Ink::Read, "read", "#b45309", "#ffb454"),
    (Ink::Temp, "temp", "#b4233c", "#ff8093"),
    (Ink::Other, "other", "#1f7a4d", "#58d193"),
    (Ink::Thermal, "thermal", "#c01f1f", "#ff6f61"),
    (Ink::Event, "event", "#6d3bb3", "#c4a1ff"),
];

impl Ink {
    fn row(self) -> (Ink, &'static str, &'static str, &'static str) {
        INKS.into_iter().find(|row| row.0 == self).unwrap_or(INKS[5])
    }

    /// The name of its class and variable.
    pub fn class(self) -> &'static str {
        self.row().1
    }

    /// Its value on white, `#rrggbb`.
    pub fn light(self) -> &'static str {
        self.row().2
    }
}

/// Where a text is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// At its left end.
    Start,
    /// In its middle.
    Middle,
    /// At its right end.
    End,
}

/// A point in pixels.
pub type Point = (f64, f64);

/// One shape.
#[derive(Debug, Clone)]
pub enum Shape {
    /// A filled rectangle.
    Rect {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        round: f64,
        ink: Ink,
    },
    /// Lines, each through its points.
    Lines {
        lines: Vec<Vec<Point>>,
        width: f64,
        dash: Option<[f64; 2]>,
        ink: Ink,
    },
    /// A filled circle.
    Disc { x: f64, y: f64, radius: f64, ink: Ink },
    /// A line of text; `y` is its baseline.
    Text {
        x: f64,
        y: f64,
        size: f64,
        anchor: Anchor,
        bold: bool,
        ink: Ink,
        text: String,
    },
    /// What follows, up to `Close`, belongs together and is called so.
    Open { title: String },
    /// See `Open`.
    Close,
}

/// Where the curves are, for whoever wants to know what is under the pointer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Frame {
    /// Left end, and the time there.
    pub left: f64,
    /// Right end.
    pub right: f64,
    /// Upper end of the upper panel.
    pub top: f64,
    /// Lower end of the lower panel.
    pub bottom: f64,
    /// The time at the right end, in seconds; 0 at the left one.
    pub seconds: f64,
}

/// A drawing.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    /// Its width in pixels.
    pub width: f64,
    /// Its height in pixels.
    pub height: f64,
    /// What it is, for readers that cannot see it.
    pub title: String,
    /// The shapes, in the order in which they cover each other.
    pub shapes: Vec<Shape>,
    /// Where the curves are.
    pub frame: Frame,
}

/// DejaVu Sans, cut down to Latin-1; its licence is beside it.
static REGULAR: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(include_bytes!("font/DejaVuSans.ttf"), 0).ok());
static BOLD: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(include_bytes!("font/DejaVuSans-Bold.ttf"), 0).ok());

/// The font.
pub fn face(bold: bool) -> Option<&'static Face<'static>> {
    if bold { BOLD.as_ref() } else { REGULAR.as_ref() }
}

/// The width of `text` in pixels.
pub fn text_width(text: &str, size: f64, bold: bool) -> f64 {
    let Some(face) = face(bold) else {
        return text.chars().count() as f64 * size * 0.6;
    };
    let per_em = f64::from(face.units_per_em());
    text.chars()
        .map(|c| {
            let glyph = face.glyph_index(c).unwrap_or_default();
            f64::from(face.glyph_hor_advance(glyph).unwrap_or_default()) / per_em * size
        })
        .sum()
}

/// `text`, cut with an ellipsis so that it fits; empty when nothing sensible does.
pub fn fit(text: &str, size: f64, bold: bool, width: f64) -> String {
    if text_width(text, size, bold) <= width {
        return text.to_owned();
    }
    let mut cut: String = text.to_owned();
    while cut.pop().is_some() {
        let shown = format!("{}…", cut.trim_end());
        if cut.chars().count() < 2 {
            break;
        }
        if text_width(&shown, size, bold) <= width {
            return shown;
        }
    }
    String::new()
}

/// `text` in lines that fit; a word that is too long is broken.
pub fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let mut word = word.to_owned();
        loop {
            let joined = if line.is_empty() {
                word.clone()
            } else {
                format!("{line} {word}")
            };
            if text_width(&joined, size, false) <= width {
                line = joined;
                break;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line));
                continue;
            }
            let mut head = String::new();
            let mut rest = word.chars().peekable();
            while let Some(&c) = rest.peek() {
                head.push(c);
                if head.chars().count() > 1 && text_width(&head, size, false) > width {
                    head.pop();
                    break;
                }
                rest.next();
            }
            lines.push(head);
            word = rest.collect();
            if word.is_empty() {
                break;
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}
