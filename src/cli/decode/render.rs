//! Any document as readable text: aligned keys, and tables for lists of alike objects.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::text::for_terminal;

/// `document` as text for people.
///
/// Scalars come first, one `key: value` a line with the values aligned; objects follow as indented sections, lists of flat
/// objects as aligned tables. The schema is left out. Every string is escaped for the terminal.
pub fn render_text(document: &Value) -> String {
    let mut out = String::new();
    match document {
        Value::Object(map) => object(&mut out, map, 0, ""),
        other => {
            out.push_str(&scalar(other));
            out.push('\n');
        }
    }
    out
}

/// Tables wider than this, flags not counted, become lists.
const WIDEST_TABLE: usize = 150;

/// What people look for first, in documents and in tables.
const FIRST: [&str; 16] = [
    "kind",
    "guessed_from",
    "id",
    "offset",
    "page",
    "number",
    "index",
    "state",
    "sensor",
    "name",
    "model",
    "serial",
    "firmware",
    "value",
    "worst",
    "threshold",
];

fn rank(key: &str) -> usize {
    FIRST
        .iter()
        .position(|first| *first == key)
        .unwrap_or(FIRST.len())
}

/// Numbers that everybody knows in hex, with their digits.
fn hex_digits(section: &str, key: &str) -> Option<usize> {
    Some(match key {
        "asc" | "ascq" | "page_code" | "address" | "descriptor_type" | "command_code" => 2,
        "vid" | "pid" | "bcd_device" | "bcd_usb" | "vendor_id" | "subsystem_vendor_id" | "controller_id" => 4,
        "ieee_oui" | "ieee_company_id" => 6,
        _ if section == "ata" && !key.starts_with("lba24") && !key.starts_with("lba48") => 2,
        _ => return None,
    })
}

fn object(out: &mut String, map: &Map<String, Value>, indent: usize, section: &str) {
    let mut entries: Vec<(&String, &Value)> = map
        .iter()
        .filter(|(key, _)| !(section.is_empty() && matches!(key.as_str(), "schema" | "schema_version")))
        .collect();
    entries.sort_by_key(|(key, _)| rank(key));
    let lines: Vec<(String, String)> = entries
        .iter()
        .filter_map(|(key, value)| Some((label(key), cell(section, key, value)?)))
        .collect();
    let width = lines
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or_default();
    for (name, line) in &lines {
        let pad = " ".repeat(width - name.chars().count());
        push_line(out, indent, &format!("{name}:{pad} {line}"));
    }
    for (key, value) in entries {
        if cell(section, key, value).is_some() {
            continue;
        }
        if indent == 0 {
            out.push('\n');
        }
        push_line(out, indent, &format!("{}:", label(key)));
        block(out, value, indent + 2, key);
    }
}

fn block(out: &mut String, value: &Value, indent: usize, section: &str) {
    match value {
        Value::Object(map) => object(out, map, indent, section),
        Value::Array(list) => {
            if let Some(lines) = rows(list).and_then(|rows| table(&rows)) {
                lines.iter().for_each(|line| push_line(out, indent, line));
                return;
            }
            for (index, entry) in list.iter().enumerate() {
                match one_line(entry) {
                    Some(line) => push_line(out, indent, &format!("- {line}")),
                    None => {
                        push_line(out, indent, &format!("[{index}]"));
                        block(out, entry, indent + 2, section);
                    }
                }
            }
        }
        other => push_line(out, indent, &scalar(other)),
    }
}

/// A value that fits on the line of its key.
fn cell(section: &str, key: &str, value: &Value) -> Option<String> {
    match (hex_digits(section, key), value.as_u64()) {
        (Some(digits), Some(number)) => Some(format!("0x{number:0digits$x}")),
        _ => one_line(value),
    }
}

fn one_line(value: &Value) -> Option<String> {
    match value {
        Value::Object(map) if map.is_empty() => Some("none".to_owned()),
        Value::Object(_) => None,
        Value::Array(list) if list.is_empty() => Some("none".to_owned()),
        Value::Array(list) => {
            if list.iter().any(|v| v.is_object() || v.is_array()) {
                return None;
            }
            let line = list.iter().map(scalar).collect::<Vec<_>>().join(", ");
            (line.chars().count() <= 100 || list.len() == 1).then_some(line)
        }
        other => Some(scalar(other)),
    }
}

/// The cell of a table: as above; of an object with flags, those that are set.
fn table_cell(key: &str, value: &Value) -> Option<String> {
    let Value::Object(map) = value else {
        return cell("", key, value);
    };
    if !map.values().any(Value::is_boolean) || map.values().any(|v| v.is_object() || v.is_array()) {
        return None;
    }
    let set: Vec<_> = map
        .iter()
        .filter(|(_, v)| **v == Value::Bool(true))
        .map(|(k, _)| for_terminal(k))
        .collect();
    Some(set.join(" "))
}

/// The entries as objects that fit into rows, if they all do and there is more than one.
fn rows(list: &[Value]) -> Option<Vec<&Map<String, Value>>> {
    if list.len() < 2 {
        return None;
    }
    list.iter()
        .map(|entry| {
            entry
                .as_object()
                .filter(|map| map.iter().all(|(k, v)| table_cell(k, v).is_some()))
        })
        .collect()
}

/// `None` when it would be too wide.
fn table(rows: &[&Map<String, Value>]) -> Option<Vec<String>> {
    let keys: BTreeSet<&String> = rows.iter().flat_map(|row| row.keys()).collect();
    let mut keys: Vec<&String> = keys.into_iter().collect();
    // Flags are long, so they come last.
    let is_object = |key: &str| rows.iter().any(|row| row.get(key).is_some_and(Value::is_object));
    keys.sort_by_key(|key| (is_object(key), rank(key)));
    let columns: Vec<Vec<String>> = keys
        .iter()
        .map(|key| {
            let cells = rows
                .iter()
                .map(|row| row.get(*key).and_then(|v| table_cell(key, v)).unwrap_or_default());
            std::iter::once(label(key)).chain(cells).collect()
        })
        .collect();
    let widths: Vec<usize> = columns
        .iter()
        .map(|c| c.iter().map(|s| s.chars().count()).max().unwrap_or_default())
        .collect();
    let plain = widths.iter().zip(&keys).filter(|(_, key)| !is_object(key));
    if plain.map(|(width, _)| width + 2).sum::<usize>() > WIDEST_TABLE {
        return None;
    }
    let numeric: Vec<bool> = keys
        .iter()
        .map(|key| rows.iter().all(|row| row.get(*key).is_none_or(Value::is_number)))
        .collect();
    let line = |index: usize| {
        let cells = columns.iter().zip(&widths).zip(&numeric);
        let padded: Vec<String> = cells
            .map(|((column, width), right)| {
                let cell = column.get(index).map(String::as_str).unwrap_or_default();
                let pad = " ".repeat(width - cell.chars().count());
                if *right {
                    format!("{pad}{cell}")
                } else {
                    format!("{cell}{pad}")
                }
            })
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    Some((0..=rows.len()).map(line).collect())
}

/// `power_on_hours` reads as `power on hours`.
fn label(key: &str) -> String {
    for_terminal(&key.replace('_', " "))
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => for_terminal(text),
        other => for_terminal(&other.to_string()),
    }
}

fn push_line(out: &mut String, indent: usize, line: &str) {
    if !line.is_empty() {
        out.push_str(&" ".repeat(indent));
        out.push_str(line);
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_aligned_and_lists_become_tables() {
        let text = render_text(&json!({
            "schema": "drivethru-decode/1",
            "model": "X\u{1b}[31m",
            "serial_number": "1",
            "attributes": [
                {"id": 194, "name": "Temperature", "raw": 41, "flags": {"online": true, "value": 2}},
                {"id": 5, "name": "Reallocated", "raw": 0, "flags": {"online": false, "value": 0}},
            ],
            "ata": {"status": 80, "success": true},
            "kind": "identify",
        }));
        assert_eq!(
            text,
            "kind:          identify\n\
             model:         X\\u{1b}[31m\n\
             serial number: 1\n\
             \n\
             ata:\n\
             \x20 status:  0x50\n\
             \x20 success: yes\n\
             \n\
             attributes:\n\
             \x20  id  name         raw  flags\n\
             \x20 194  Temperature   41  online\n\
             \x20   5  Reallocated    0\n"
        );
    }
}
