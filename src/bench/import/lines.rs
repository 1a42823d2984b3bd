//! Lines of bounded length, with their numbers.

use std::io::{BufRead, Read};

use super::ImportError;

/// No table has longer ones.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Lines of a text that are neither blank nor remarks.
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    text: String,
    /// Number of the last line, from 1.
    pub number: u64,
    /// Whether the last line ended with a line feed.
    pub whole: bool,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            text: String::new(),
            number: 0,
            whole: true,
        }
    }

    /// The next line that says something; bytes that are no UTF-8 (a degree sign of another code page) are replaced.
    pub fn next_line(&mut self) -> Result<Option<&str>, ImportError> {
        loop {
            self.buffer.clear();
            let read = (&mut self.input)
                .take(MAX_LINE_BYTES as u64 + 1)
                .read_until(b'\n', &mut self.buffer)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.whole = self.buffer.ends_with(b"\n");
            if read > MAX_LINE_BYTES {
                return Err(ImportError::LongLine {
                    line: self.number,
                    most: MAX_LINE_BYTES,
                });
            }
            if self
                .buffer
                .iter()
                .any(|b| *b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c))
            {
                return Err(ImportError::NotText {
                    line: self.number,
                    what: "control characters",
                });
            }
            let bytes = match self.number {
                1 => self
                    .buffer
                    .strip_prefix(&[0xef, 0xbb, 0xbf])
                    .unwrap_or(&self.buffer),
                _ => &self.buffer,
            };
            let line = bytes.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            // Blanks at the ends may be empty cells of a table with tabs.
            let line = bytes.trim_ascii_end();
            let line = if bytes.contains(&b'\t') {
                bytes
                    .strip_suffix(b"\n")
                    .map_or(bytes, |b| b.strip_suffix(b"\r").unwrap_or(b))
            } else {
                line
            };
            self.text.clear();
            self.text.push_str(&String::from_utf8_lossy(line));
            break;
        }
        Ok(Some(&self.text))
    }
}

/// Splits a line into cells; quotes are the CSV library's business.
pub(super) fn cells(line: &str, delimiter: char) -> Vec<String> {
    if line.contains('"') {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(u8::try_from(delimiter).unwrap_or(b','))
            .from_reader(line.as_bytes());
        if let Some(Ok(record)) = reader.records().next() {
            return record.iter().map(|c| c.trim().to_owned()).collect();
        }
    }
    line.split(delimiter).map(|c| c.trim().to_owned()).collect()
}
