//! Renders the producers' documents: for people, spreadsheets and Prometheus. It computes nothing of its own.

pub mod bench;
pub mod health;
pub mod info;
pub mod list;
pub mod logs;
pub mod temp;
pub mod trim;

use crate::drive::DeviceRef;
use crate::text;

/// How to show things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Use colour.
    pub color: bool,
}

/// Colours have a meaning, never more than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// All is well.
    Good,
    /// Wants attention.
    Warn,
    /// Bad.
    Bad,
    /// Of less interest.
    Faint,
}

impl Style {
    /// `text` in a tone.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "1;31",
            Tone::Faint => "2",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// `Model (serial S, firmware F)` for a heading, escaped for a terminal.
pub fn device_line(device: &DeviceRef) -> String {
    let shown = |s: &str| text::for_terminal(s);
    let mut line = shown(&device.name);
    if let Some(model) = &device.model {
        line.push_str(&format!(": {}", shown(model)));
    }
    let mut parts = Vec::new();
    if let Some(serial) = &device.serial {
        parts.push(format!("serial {}", shown(serial)));
    }
    if let Some(firmware) = &device.firmware {
        parts.push(format!("firmware {}", shown(firmware)));
    }
    if !parts.is_empty() {
        line.push_str(&format!(" ({})", parts.join(", ")));
    }
    if device.simulated {
        line.push_str(" [simulated]");
    }
    line
}

/// Lines of `name  value`, the values aligned; rows without a value are left out.
pub fn key_values(rows: &[(&str, Option<String>)]) -> String {
    let shown: Vec<_> = rows
        .iter()
        .filter_map(|(k, v)| v.as_ref().map(|v| (*k, v)))
        .collect();
    let width = shown
        .iter()
        .map(|(k, _)| k.chars().count())
        .max()
        .unwrap_or_default();
    shown
        .iter()
        .map(|(k, v)| format!("  {k:<width$}  {v}\n"))
        .collect()
}

/// A table without lines, for fixed-width terminals.
pub fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    table.lines().map(|l| format!("{}\n", l.trim_end())).collect()
}
