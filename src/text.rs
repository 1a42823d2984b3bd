//! Strings that come from devices are untrusted: trimming, byte order, and escaping for each place they are shown.

use std::fmt::Write;

/// ASCII of a SCSI or NVMe field: blanks and NULs around it dropped, and all behind a NUL in it; other bytes are kept one
/// for one.
///
/// Bytes above 7Eh and control characters become U+FFFD so that no device can send terminal sequences; an all-blank
/// field is `None`.
pub fn ascii_field(bytes: &[u8]) -> Option<String> {
    let start = bytes.iter().position(|b| !matches!(b, b' ' | 0)).unwrap_or(0);
    let field = bytes.get(start..)?.split(|b| *b == 0).next()?;
    let field = field.trim_ascii_end();
    if field.is_empty() {
        return None;
    }
    Some(
        field
            .iter()
            .map(|&b| {
                if (0x20..0x7f).contains(&b) {
                    char::from(b)
                } else {
                    '\u{fffd}'
                }
            })
            .collect(),
    )
}

/// ASCII of an ATA string field: the two characters of each word are swapped first (ACS, "ATA string convention").
pub fn ata_field(bytes: &[u8]) -> Option<String> {
    let swapped: Vec<u8> = bytes
        .chunks(2)
        .flat_map(|pair| pair.iter().rev().copied())
        .collect();
    ascii_field(&swapped)
}

/// For a terminal: control characters, bidirectional overrides and the like are shown as `\u{..}`.
pub fn for_terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let hidden = c.is_control()
            || matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}');
        if hidden {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// For a spreadsheet: a leading `= + - @` gets a quote in front, so that no cell is taken for a formula.
///
/// Quoting of separators is left to the CSV writer.
pub fn for_csv_cell(text: &str) -> String {
    let shown = for_terminal(text);
    if shown.starts_with(['=', '+', '-', '@', '\t']) {
        format!("'{shown}")
    } else {
        shown
    }
}

/// `bytes` as lower-case hex, separated by blanks.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 3);
    for (i, b) in bytes.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        let _ = write!(out, "{b:02x}");
    }
    out
}

/// Reads hex bytes as people write them: blanks, commas, `0x` and odd spacing are fine; anything else is `None`.
pub fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 2);
    for token in text
        .split([' ', ',', '\t', '\n', '\r', ':'])
        .filter(|t| !t.is_empty())
    {
        let digits = token
            .strip_prefix("0x")
            .or_else(|| token.strip_prefix("0X"))
            .unwrap_or(token);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        if digits.len() == 1 {
            out.push(u8::from_str_radix(digits, 16).ok()?);
            continue;
        }
        if digits.len() % 2 != 0 {
            return None;
        }
        for i in (0..digits.len()).step_by(2) {
            out.push(u8::from_str_radix(digits.get(i..i + 2)?, 16).ok()?);
        }
    }
    Some(out)
}

/// A serial number with its middle hidden, for logs that leave the house: the first two characters and the length stay.
pub fn mask_serial(serial: &str) -> String {
    let mut shown: String = serial.chars().take(2).collect();
    shown.extend(serial.chars().skip(2).map(|_| '*'));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lose_padding_and_control_characters() {
        assert_eq!(ascii_field(b"  ABC  \0").as_deref(), Some("ABC"));
        assert_eq!(ascii_field(b" \0  "), None);
        assert_eq!(ascii_field(b""), None);
        assert_eq!(ascii_field(b"AB \0CD"), Some("AB".to_owned()));
        assert_eq!(ascii_field(b"\0\0AB"), Some("AB".to_owned()));
        assert_eq!(ascii_field(b"A\x1b[31m").as_deref(), Some("A\u{fffd}[31m"));
        assert_eq!(ata_field(b"BADC ").as_deref(), Some("ABCD"));
    }

    #[test]
    fn every_output_has_its_own_escape() {
        assert_eq!(for_terminal("a\x1b]0;x\u{202e}"), "a\\u{1b}]0;x\\u{202e}");
        assert_eq!(for_csv_cell("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
    }

    #[test]
    fn hex_is_read_as_people_write_it() {
        assert_eq!(
            parse_hex("85 08,0x0e\n00").as_deref(),
            Some(&[0x85, 8, 0x0e, 0][..])
        );
        assert_eq!(parse_hex("a1080e").as_deref(), Some(&[0xa1, 8, 0x0e][..]));
        assert_eq!(parse_hex("a 1").as_deref(), Some(&[0x0a, 1][..]));
        assert_eq!(parse_hex("xyz"), None);
        assert_eq!(parse_hex("123"), None);
    }
}
