//! Rate and temperature over one time axis, with phases and events: laid out once, drawn as SVG and as PNG.

pub(crate) mod axis;
mod layout;
mod marks;
mod png;
pub(crate) mod scene;
pub(crate) mod svg;

pub use png::PngError;

use layout::Layout;
use scene::{Ink, Scene};

use super::{span, words};
use crate::bench::run::{Phase, Run};
use crate::bench::series::{Notice, Op, Sample, Series};
use crate::bench::verdict::{Cause, Event, Verdict};
use crate::text::for_terminal;

/// One run's curves.
struct Track<'a> {
    name: String,
    samples: Vec<&'a Sample>,
    lengths: Vec<f64>,
    temp_interval_s: Option<f64>,
}

/// An event, and what its badge says.
struct Mark<'a> {
    label: String,
    event: &'a Event,
}

/// What is drawn.
pub struct Plot<'a> {
    title: String,
    subtitle: String,
    headline: String,
    tracks: Vec<Track<'a>>,
    link_mb_s: Option<f64>,
    phases: &'a [Phase],
    marks: Vec<Mark<'a>>,
    notices: Vec<&'a Notice>,
}

fn track<'a>(name: &str, samples: &'a [Sample], temp_interval_s: Option<f64>) -> Track<'a> {
    let samples = span::ordered(samples);
    Track {
        name: for_terminal(name),
        lengths: span::lengths(&samples),
        samples,
        temp_interval_s,
    }
}

fn marks<'a>(prefix: &str, verdict: &'a Verdict) -> Vec<Mark<'a>> {
    verdict
        .events
        .iter()
        .enumerate()
        .map(|(i, event)| Mark {
            label: format!("{prefix}{}", i + 1),
            event,
        })
        .collect()
}

impl<'a> Plot<'a> {
    /// A whole run.
    pub fn of_run(run: &'a Run) -> Self {
        let parts: Vec<String> = words::device_parts(&run.device)
            .into_iter()
            .filter(|(name, _)| *name != "model")
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        Self {
            title: format!("{}: {}", words::title(&run.device), words::workload_line(run)),
            subtitle: format!("{}; started {}", parts.join(", "), run.started),
            headline: words::headline(&run.verdict, Some(&words::extent(&run.samples))),
            tracks: vec![track("", &run.samples, run.context.temp_interval_s)],
            link_mb_s: run.context.link_mb_s,
            phases: &run.phases,
            marks: marks("", &run.verdict),
            notices: words::notices(run),
        }
    }

    /// A series from elsewhere and what is said of it.
    pub fn of_series(name: &str, series: &'a Series, verdict: &'a Verdict) -> Self {
        Self {
            title: name.to_owned(),
            subtitle: String::new(),
            headline: words::headline(verdict, None),
            tracks: vec![track("", &series.samples, series.context.temp_interval_s)],
            link_mb_s: series.context.link_mb_s,
            phases: &[],
            marks: marks("", verdict),
            notices: series.context.notices.iter().collect(),
        }
    }

    /// Two runs over each other.
    pub fn of_two(a: &'a Run, b: &'a Run) -> Self {
        let name = |letter: &str, run: &Run| {
            format!(
                "{letter}: {}, {}",
                words::title(&run.device),
                words::workload_line(run)
            )
        };
        let mut both = marks("A", &a.verdict);
        both.extend(marks("B", &b.verdict));
        Self {
            title: "Two runs compared".to_owned(),
            subtitle: format!(
                "A: {} started {}; B: {} started {}",
                a.device.name, a.started, b.device.name, b.started
            ),
            headline: format!(
                "A: {}; B: {}",
                words::headline(&a.verdict, Some(&words::extent(&a.samples))),
                words::headline(&b.verdict, Some(&words::extent(&b.samples)))
            ),
            tracks: vec![
                track(&name("A", a), &a.samples, a.context.temp_interval_s),
                track(&name("B", b), &b.samples, b.context.temp_interval_s),
            ],
            link_mb_s: a
                .context
                .link_mb_s
                .filter(|link| Some(*link) == b.context.link_mb_s),
            phases: &[],
            marks: both,
            notices: Vec::new(),
        }
    }

    /// The picture.
    pub(crate) fn scene(&self) -> Scene {
        Layout::new(self).finish(true)
    }

    /// The picture without title and words, for a page that has them around it.
    pub(crate) fn bare_scene(&self) -> Scene {
        Layout::new(self).finish(false)
    }

    /// The picture as an SVG document; it brings its colours, light and dark.
    pub fn svg(&self) -> String {
        svg::render(&self.scene(), svg::Home::File)
    }

    /// The picture as PNG, on white.
    ///
    /// # Errors
    /// When it is too large to be drawn.
    pub fn png(&self) -> Result<Vec<u8>, PngError> {
        png::render(&self.scene())
    }

    fn highest(&self) -> f64 {
        let rates = self.tracks.iter().flat_map(|t| &t.samples).map(|s| s.mb_s);
        rates.fold(0.0, f64::max)
    }

    /// The ceiling of the link, where it is near enough to be drawn.
    fn link(&self) -> Option<f64> {
        self.link_mb_s
            .filter(|link| *link > 0.0 && *link <= self.highest() * 1.35)
    }

    fn ink(&self, track: usize, op: Op) -> Ink {
        match (track, op) {
            (1.., _) => Ink::Other,
            (_, Op::Read) if self.tracks.len() == 1 => Ink::Read,
            _ => Ink::Write,
        }
    }

    fn temp_ink(&self, track: usize) -> Ink {
        match track {
            1.. => Ink::Other,
            _ if self.tracks.len() == 1 => Ink::Temp,
            _ => Ink::Write,
        }
    }
}

/// Whether a temperature can be drawn; absolute zero is -273.
fn possible(celsius: &f64) -> bool {
    (-300.0..=2000.0).contains(celsius)
}

fn event_ink(event: &Event) -> Ink {
    if event.cause == Cause::Thermal {
        Ink::Thermal
    } else {
        Ink::Event
    }
}
