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
        Value::Object(map) => object(&mut out, map, 0, true),
        other => {
            out.push_str(&scalar(other));
            out.push('\n');
        }
    }
    out
}

fn object(out: &mut String, map: &Map<String, Value>, indent: usize, top: bool) {
    let shown = |key: &str| !(top && matches!(key, "schema" | "schema_version"));
    let is_line = |value: &Value| one_line(value).is_some();
    let width = map
        .iter()
        .filter(|(k, v)| shown(k) && is_line(v))
        .map(|(k, _)| label(k).chars().count())
        .max()
        .unwrap_or_default();
    for (key, value) in map.iter().filter(|(k, _)| shown(k)) {
        if let Some(line) = one_line(value) {
            let name = label(key);
            let pad = " ".repeat(width - name.chars().count());
            push_line(out, indent, &format!("{name}:{pad} {line}"));
        }
    }
    for (key, value) in map.iter().filter(|(k, _)| shown(k)) {
        if is_line(value) {
            continue;
        }
        if indent == 0 {
            out.push('\n');
        }
        push_line(out, indent, &format!("{}:", label(key)));
        block(out, value, indent + 2);
    }
}

fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) => object(out, map, indent, false),
        Value::Array(list) => match rows(list) {
            Some(rows) => table(out, &rows, indent),
            None => {
                for (index, entry) in list.iter().enumerate() {
                    match one_line(entry) {
                        Some(line) => push_line(out, indent, &format!("- {line}")),
                        None => {
                            push_line(out, indent, &format!("[{index}]"));
                            block(out, entry, indent + 2);
                        }
                    }
                }
            }
        },
        other => push_line(out, indent, &scalar(other)),
    }
}

/// A value that fits on the line of its key.
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

/// The entries as flat objects, if they all are, with more than one of them.
fn rows(list: &[Value]) -> Option<Vec<&Map<String, Value>>> {
    if list.len() < 2 {
        return None;
    }
    list.iter()
        .map(|entry| {
            entry
                .as_object()
                .filter(|map| map.values().all(|v| one_line(v).is_some()))
        })
        .collect()
}

fn table(out: &mut String, rows: &[&Map<String, Value>], indent: usize) {
    let keys: BTreeSet<&String> = rows.iter().flat_map(|row| row.keys()).collect();
    // Those that every row has come first, in the order in which people look for them.
    let rank = |key: &str| {
        [
            "id", "offset", "page", "number", "index", "state", "sensor", "name",
        ]
        .iter()
        .position(|k| *k == key)
        .unwrap_or(usize::MAX)
    };
    let mut keys: Vec<&String> = keys.into_iter().collect();
    keys.sort_by_key(|key| rank(key));
    let columns: Vec<Vec<String>> = keys
        .iter()
        .map(|key| {
            let cells = rows
                .iter()
                .map(|row| row.get(*key).and_then(one_line).unwrap_or_default());
            std::iter::once(key.replace('_', " ")).chain(cells).collect()
        })
        .collect();
    let widths: Vec<usize> = columns
        .iter()
        .map(|c| c.iter().map(|s| s.chars().count()).max().unwrap_or_default())
        .collect();
    let numeric: Vec<bool> = keys
        .iter()
        .map(|key| rows.iter().all(|row| row.get(*key).is_none_or(Value::is_number)))
        .collect();
    for line in 0..=rows.len() {
        let mut text = String::new();
        for ((column, width), right) in columns.iter().zip(&widths).zip(&numeric) {
            let cell = column.get(line).map(String::as_str).unwrap_or_default();
            let pad = " ".repeat(width - cell.chars().count());
            if !text.is_empty() {
                text.push_str("  ");
            }
            if *right {
                text.push_str(&pad);
                text.push_str(cell);
            } else {
                text.push_str(cell);
                text.push_str(&pad);
            }
        }
        push_line(out, indent, text.trim_end());
    }
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
            "attributes": [{"id": 194, "name": "Temperature", "raw": 41}, {"id": 5, "name": "Reallocated", "raw": 0}],
            "trim": {"supported": true},
        }));
        assert_eq!(
            text,
            "model:         X\\u{1b}[31m\n\
             serial number: 1\n\
             \n\
             attributes:\n\
             \x20  id  name         raw\n\
             \x20 194  Temperature   41\n\
             \x20   5  Reallocated    0\n\
             \n\
             trim:\n\
             \x20 supported: yes\n"
        );
    }
}
