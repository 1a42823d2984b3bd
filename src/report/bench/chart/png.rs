//! A scene as PNG, with a font of our own: no font and no library of the system is used.

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform,
};
use ttf_parser::OutlineBuilder;

use super::scene::{Anchor, Ink, Scene, Shape, face, text_width};
use crate::text::for_terminal;

/// Pixels for each of the scene's.
const SCALE: f32 = 2.0;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[error("a picture of {width} by {height} cannot be drawn")]
pub struct PngError {
    width: f64,
    height: f64,
}

/// The scene on white, twice its size.
///
/// # Errors
/// When it is too large.
pub fn render(scene: &Scene) -> Result<Vec<u8>, PngError> {
    let error = || PngError {
        width: scene.width,
        height: scene.height,
    };
    let pixels = |length: f64| (length * f64::from(SCALE)).ceil().clamp(1.0, 20_000.0) as u32;
    let mut canvas = Pixmap::new(pixels(scene.width), pixels(scene.height)).ok_or_else(error)?;
    canvas.fill(color(Ink::Paper));
    for shape in &scene.shapes {
        draw(shape, &mut canvas);
    }
    canvas.encode_png().map_err(|_| error())
}

fn color(ink: Ink) -> Color {
    let hex = |range: std::ops::Range<usize>| {
        ink.light()
            .get(range)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .unwrap_or_default()
    };
    Color::from_rgba8(hex(1..3), hex(3..5), hex(5..7), 255)
}

fn paint(ink: Ink) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color(color(ink));
    paint.anti_alias = true;
    paint
}

fn fill(canvas: &mut Pixmap, path: Option<Path>, ink: Ink) {
    if let Some(path) = path {
        let scale = Transform::from_scale(SCALE, SCALE);
        canvas.fill_path(&path, &paint(ink), FillRule::Winding, scale, None);
    }
}

fn draw(shape: &Shape, canvas: &mut Pixmap) {
    match shape {
        Shape::Rect {
            x,
            y,
            width,
            height,
            round,
            ink,
        } => fill(canvas, rect_path(*x, *y, *width, *height, *round), *ink),
        Shape::Disc { x, y, radius, ink } => fill(
            canvas,
            PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32),
            *ink,
        ),
        Shape::Lines {
            lines,
            width,
            dash,
            ink,
        } => {
            let mut builder = PathBuilder::new();
            for line in lines {
                for (i, (x, y)) in line.iter().enumerate() {
                    if i == 0 {
                        builder.move_to(*x as f32, *y as f32);
                    } else {
                        builder.line_to(*x as f32, *y as f32);
                    }
                }
            }
            let stroke = Stroke {
                width: *width as f32,
                line_cap: LineCap::Butt,
                line_join: LineJoin::Bevel,
                dash: dash.and_then(|[on, off]| StrokeDash::new(vec![on as f32, off as f32], 0.0)),
                ..Stroke::default()
            };
            if let Some(path) = builder.finish() {
                let scale = Transform::from_scale(SCALE, SCALE);
                canvas.stroke_path(&path, &paint(*ink), &stroke, scale, None);
            }
        }
        Shape::Text {
            x,
            y,
            size,
            anchor,
            bold,
            ink,
            text,
        } => {
            let text = for_terminal(text);
            let width = text_width(&text, *size, *bold);
            let left = match anchor {
                Anchor::Start => *x,
                Anchor::Middle => x - width / 2.0,
                Anchor::End => x - width,
            };
            fill(canvas, text_path(&text, left, *y, *size, *bold), *ink);
        }
        Shape::Open { .. } | Shape::Close => {}
    }
}

fn rect_path(x: f64, y: f64, width: f64, height: f64, round: f64) -> Option<Path> {
    let rect = Rect::from_xywh(x as f32, y as f32, width as f32, height as f32)?;
    if round <= 0.0 {
        return Some(PathBuilder::from_rect(rect));
    }
    let (l, t, r, b) = (rect.left(), rect.top(), rect.right(), rect.bottom());
    let radius = (round as f32).min(rect.width() / 2.0).min(rect.height() / 2.0);
    let mut path = PathBuilder::new();
    // A quarter of a circle as a cubic: its handles are this far from the corners.
    let k = radius * 0.4477;
    path.move_to(l + radius, t);
    path.line_to(r - radius, t);
    path.cubic_to(r - k, t, r, t + k, r, t + radius);
    path.line_to(r, b - radius);
    path.cubic_to(r, b - k, r - k, b, r - radius, b);
    path.line_to(l + radius, b);
    path.cubic_to(l + k, b, l, b - k, l, b - radius);
    path.line_to(l, t + radius);
    path.cubic_to(l, t + k, l + k, t, l + radius, t);
    path.close();
    path.finish()
}

/// Glyphs on their way into a path: font units, y upwards, to pixels, y downwards.
struct Pen {
    path: PathBuilder,
    x: f64,
    y: f64,
    scale: f64,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (
            (self.x + f64::from(x) * self.scale) as f32,
            (self.y - f64::from(y) * self.scale) as f32,
        )
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

fn text_path(text: &str, x: f64, y: f64, size: f64, bold: bool) -> Option<Path> {
    let face = face(bold)?;
    let scale = size / f64::from(face.units_per_em());
    let mut pen = Pen {
        path: PathBuilder::new(),
        x,
        y,
        scale,
    };
    for c in text.chars() {
        let glyph = face.glyph_index(c).unwrap_or_default();
        face.outline_glyph(glyph, &mut pen);
        pen.x += f64::from(face.glyph_hor_advance(glyph).unwrap_or_default()) * scale;
    }
    pen.path.finish()
}
