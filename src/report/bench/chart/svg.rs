//! A scene as SVG.

use std::fmt::Write;

use super::scene::{Anchor, INKS, Scene, Shape};
use crate::report::bench::escape::xml;

/// Where the picture stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// In a file of its own: it brings its colours, light and dark.
    File,
    /// In a page, which has variables of the same names.
    Page,
}

/// A coordinate: one decimal is a tenth of a pixel.
fn at(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// The colours: attributes are the light ones, so that readers without style sheets show it too.
fn style(home: Home) -> String {
    let mut out = String::new();
    for (_, class, _, dark) in INKS {
        let value = match home {
            Home::File => dark.to_owned(),
            Home::Page => format!("var(--{class})"),
        };
        let _ = write!(out, ".f-{class}{{fill:{value}}}.s-{class}{{stroke:{value}}}");
    }
    match home {
        Home::File => format!("@media (prefers-color-scheme:dark){{{out}}}"),
        Home::Page => out,
    }
}

/// The scene as an SVG document or, in a page, as an element.
pub fn render(scene: &Scene, home: Home) -> String {
    let mut out = String::with_capacity(64 * 1024);
    if home == Home::File {
        out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    }
    let (width, height) = (at(scene.width), at(scene.height));
    let frame = &scene.frame;
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" class=\"chart\" font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\" data-left=\"{}\" data-right=\"{}\" \
         data-top=\"{}\" data-bottom=\"{}\" data-seconds=\"{}\">\n<title>{}</title>\n<style>{}</style>\n",
        at(frame.left),
        at(frame.right),
        at(frame.top),
        at(frame.bottom),
        frame.seconds,
        xml(&scene.title),
        style(home),
    );
    for shape in &scene.shapes {
        draw(shape, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

fn draw(shape: &Shape, out: &mut String) {
    // A String takes everything.
    let _ = match shape {
        Shape::Rect {
            x,
            y,
            width,
            height,
            round,
            ink,
        } => {
            let round = if *round > 0.0 {
                format!(" rx=\"{}\"", at(*round))
            } else {
                String::new()
            };
            writeln!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{round} fill=\"{}\" class=\"f-{}\"/>",
                at(*x),
                at(*y),
                at(width.max(0.0)),
                at(height.max(0.0)),
                ink.light(),
                ink.class()
            )
        }
        Shape::Lines {
            lines,
            width,
            dash,
            ink,
        } => {
            let mut path = String::new();
            for line in lines {
                for (i, (x, y)) in line.iter().enumerate() {
                    let _ = write!(path, "{}{} {}", if i == 0 { 'M' } else { 'L' }, at(*x), at(*y));
                }
            }
            let dash = dash
                .map(|[on, off]| format!(" stroke-dasharray=\"{} {}\"", at(on), at(off)))
                .unwrap_or_default();
            writeln!(
                out,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"bevel\"{dash} class=\"s-{}\"/>",
                ink.light(),
                at(*width),
                ink.class()
            )
        }
        Shape::Disc { x, y, radius, ink } => writeln!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" class=\"f-{}\"/>",
            at(*x),
            at(*y),
            at(*radius),
            ink.light(),
            ink.class()
        ),
        Shape::Text {
            x,
            y,
            size,
            anchor,
            bold,
            ink,
            text,
        } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let bold = if *bold { " font-weight=\"bold\"" } else { "" };
            writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" font-size=\"{}\"{anchor}{bold} fill=\"{}\" class=\"f-{}\">{}</text>",
                at(*x),
                at(*y),
                at(*size),
                ink.light(),
                ink.class(),
                xml(text)
            )
        }
        Shape::Open { title } => writeln!(out, "<g><title>{}</title>", xml(title)),
        Shape::Close => writeln!(out, "</g>"),
    };
}
