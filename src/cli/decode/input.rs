//! Reads what people save: binary files and hex dumps of many tools.

use super::DecodeError;

/// The bytes of a file that is binary or one of these hex dumps:
///
/// - plain hex bytes, with or without blanks, commas and `0x`;
/// - `OFFSET: bytes`, where gaps are zero (the test vectors), and `xxd`;
/// - offset and bytes with an ASCII column (`hexdump -C`, `od -t x1`, sg3_utils, `smartctl -r ioctl,2`);
/// - offset and 16-bit words in host order (`hexdump`, `od -x`);
/// - 256 words of four digits, as `hdparm --Istdout` prints IDENTIFY data, with its header.
///
/// `#` begins a comment. A file that is none of these is taken as binary.
///
/// # Errors
/// A hex dump whose offsets run backwards or overlap, or that leaves more than 1 MiB out.
pub fn read_input(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let is_text = |b: &u8| matches!(b, b'\t' | b'\n' | b'\r' | 0x0c | 0x20..=0x7e | 0x80..);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if bytes.iter().all(is_text) => text.trim_start_matches('\u{feff}'),
        _ => return Ok(bytes.to_vec()),
    };
    match Dump::read(text) {
        Some(dump) => dump.assemble(),
        None => Ok(bytes.to_vec()),
    }
}

/// Gaps in a dump are zero, up to this much.
const LARGEST_GAP_BYTES: usize = 1 << 20;

/// One line with data.
struct Line<'a> {
    number: usize,
    offset: Option<Offset<'a>>,
    tokens: Vec<&'a str>,
    /// `*`: the line before is repeated up to the next offset.
    repeat: bool,
}

#[derive(Clone, Copy)]
struct Offset<'a> {
    digits: &'a str,
    colon: bool,
    decimal: bool,
}

impl Offset<'_> {
    fn value(self, radix: u32) -> Option<usize> {
        usize::from_str_radix(self.digits, if self.decimal { 10 } else { radix }).ok()
    }
}

struct Dump<'a> {
    lines: Vec<Line<'a>>,
}

impl<'a> Dump<'a> {
    /// `None` when the text is no hex dump.
    fn read(text: &'a str) -> Option<Self> {
        let mut lines: Vec<Line<'a>> = Vec::new();
        for (index, raw) in text.lines().enumerate() {
            let line = raw.split('#').next().unwrap_or_default().trim_end();
            if line.trim().is_empty() {
                continue;
            }
            if line.trim() == "*" && !lines.is_empty() {
                lines.push(Line {
                    number: index + 1,
                    offset: None,
                    tokens: Vec::new(),
                    repeat: true,
                });
                continue;
            }
            match parse_line(index + 1, line) {
                Some(parsed) => lines.push(parsed),
                // Headers in front, and rulers such as `===== [..] DATA END =====`.
                None if lines.is_empty() || line.trim().starts_with("==") => {}
                None => return None,
            }
        }
        let tokens = || lines.iter().flat_map(|l| &l.tokens);
        tokens().next()?;
        Some(Self { lines })
    }

    fn assemble(self) -> Result<Vec<u8>, DecodeError> {
        let tokens = || self.lines.iter().flat_map(|l| &l.tokens);
        let four_digits = tokens().all(|t| t.len() == 4);
        let has_offsets = self.lines.iter().any(|l| l.offset.is_some());
        let colons = self.lines.iter().any(|l| l.offset.is_some_and(|o| o.colon));
        // Words in host order: hdparm has no offsets, hexdump and od have them without a colon; xxd's groups are bytes.
        let words = four_digits && ((has_offsets && !colons) || (!has_offsets && tokens().count() == 256));
        // Octal and decimal only where hex would leave gaps and they do not; gaps on purpose have short offsets.
        let long = self
            .lines
            .iter()
            .all(|l| l.offset.is_none_or(|o| o.digits.len() >= 7));
        let radix = if !has_offsets || self.fits(16) {
            16
        } else if !colons && self.fits(8) {
            8
        } else if long && self.fits(10) {
            10
        } else {
            16
        };
        let mut out: Vec<u8> = Vec::new();
        let mut before: Vec<u8> = Vec::new();
        let mut repeating = false;
        for line in &self.lines {
            if line.repeat {
                repeating = true;
                continue;
            }
            if let Some(at) = line.offset.and_then(|o| o.value(radix)) {
                let problem = |why: String| DecodeError::Input {
                    line: line.number,
                    why,
                };
                if at < out.len() {
                    return Err(problem(format!(
                        "offset {at:04x} lies behind what precedes it, which ends at {:04x}",
                        out.len()
                    )));
                }
                if at - out.len() > LARGEST_GAP_BYTES {
                    return Err(problem(format!("offset {at:04x} leaves out more than 1 MiB")));
                }
                while repeating && !before.is_empty() && out.len() < at {
                    let room = at - out.len();
                    out.extend(before.iter().take(room));
                }
                out.resize(at, 0);
            }
            repeating = false;
            before = line
                .tokens
                .iter()
                .flat_map(|token| token_bytes(token, words))
                .collect();
            out.extend(&before);
        }
        Ok(out)
    }

    /// Whether the offsets continue each other when read with this radix.
    fn fits(&self, radix: u32) -> bool {
        let mut end = None;
        let mut repeated = false;
        for line in &self.lines {
            if line.repeat {
                repeated = true;
                continue;
            }
            if let Some(offset) = line.offset {
                let Some(at) = offset.value(radix) else {
                    return false;
                };
                if end.is_some_and(|end| at != end) && !repeated {
                    return false;
                }
                end = Some(at);
            }
            repeated = false;
            let bytes: usize = line.tokens.iter().map(|t| t.len().div_ceil(2)).sum();
            end = end.map(|e| e + bytes);
        }
        true
    }
}

fn token_bytes(token: &str, words: bool) -> Vec<u8> {
    let mut bytes: Vec<u8> = if token.len() == 1 {
        u8::from_str_radix(token, 16).into_iter().collect()
    } else {
        (0..token.len())
            .step_by(2)
            .filter_map(|i| u8::from_str_radix(token.get(i..i + 2)?, 16).ok())
            .collect()
    };
    if words {
        bytes.reverse();
    }
    bytes
}

fn is_hex(token: &str) -> bool {
    !token.is_empty()
        && (token.len() == 1 || token.len().is_multiple_of(2))
        && token.bytes().all(|b| b.is_ascii_hexdigit())
}

fn parse_line(number: usize, line: &str) -> Option<Line<'_>> {
    let line = line.split('|').next().unwrap_or_default();
    let (offset, data) = split_offset(line);
    let tokens = data_tokens(data, offset.is_some())?;
    if tokens.is_empty() && offset.is_none() {
        return None;
    }
    Some(Line {
        number,
        offset,
        tokens,
        repeat: false,
    })
}

/// Takes an offset off the front: `0000:`, `00000000 `, `000-015:`, or a short number followed by a wide gap.
fn split_offset(line: &str) -> (Option<Offset<'_>>, &str) {
    let trimmed = line.trim_start();
    let end = trimmed.find(|c: char| c.is_whitespace()).unwrap_or(trimmed.len());
    let (first, rest) = trimmed.split_at(end);
    let plain = |digits| Offset {
        digits,
        colon: false,
        decimal: false,
    };
    if let Some(digits) = first.strip_suffix(':') {
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        if let Some((from, to)) = digits.split_once('-')
            && [from, to]
                .iter()
                .all(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
        {
            let offset = Offset {
                digits: from,
                colon: true,
                decimal: true,
            };
            return (Some(offset), rest);
        }
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            let offset = Offset {
                digits,
                colon: true,
                decimal: false,
            };
            return (Some(offset), rest);
        }
        return (None, line);
    }
    if !first.bytes().all(|b| b.is_ascii_hexdigit()) {
        return (None, line);
    }
    let gap = rest.len() - rest.trim_start().len();
    let next = rest.split_whitespace().next().unwrap_or_default();
    let long = matches!(first.len(), 5..=8) && (next.is_empty() || matches!(next.len(), 2 | 4));
    let wide = matches!(first.len(), 2..=4) && gap >= 3 && next.len() == 2 && line.starts_with(' ');
    if long || wide {
        (Some(plain(first)), rest)
    } else {
        (None, line)
    }
}

/// The hex tokens up to an ASCII column, which stands behind a gap. `None` when something else is in between.
fn data_tokens(data: &str, after_offset: bool) -> Option<Vec<&str>> {
    let mut tokens = Vec::new();
    let mut bytes = 0;
    let mut rest = data;
    let mut gap_before = 0;
    loop {
        let trimmed = rest.trim_start_matches([' ', '\t', ',', ';']);
        let gap = rest.len() - trimmed.len();
        let end = trimmed.find([' ', '\t', ',', ';']).unwrap_or(trimmed.len());
        let (token, tail) = trimmed.split_at(end);
        if token.is_empty() {
            return Some(tokens);
        }
        let behind_gap = !tokens.is_empty() && gap >= 2;
        // hexdump -x sets its words apart as wide as a column.
        let even = gap == gap_before && token.len() == 4;
        let column_begins = after_offset && behind_gap && !even && (gap >= 3 || bytes % 16 != 8);
        gap_before = gap;
        let digits = token
            .strip_prefix("0x")
            .or_else(|| token.strip_prefix("0X"))
            .unwrap_or(token);
        if column_begins || (behind_gap && !is_hex(digits)) {
            return Some(tokens);
        }
        if !is_hex(digits) {
            return None;
        }
        bytes += digits.len().div_ceil(2);
        tokens.push(digits);
        rest = tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<u8> {
        read_input(text.as_bytes()).unwrap()
    }

    const SAMPLE: &[u8] = &[
        0x72, 0x01, 0x00, 0x1d, 0x00, 0x00, 0x00, 0x0e, 0x41, 0x42, 0x43, 0x44, 0x20, 0x61, 0x62, 0x20, 0x50,
        0x0a,
    ];

    #[test]
    fn the_same_bytes_come_out_of_every_dump() {
        let dumps = [
            ("plain", "72 01 00 1d 00 00 00 0e 41 42 43 44 20 61 62 20 50 0a\n"),
            (
                "joined",
                "7201001d0000000e414243442061622\n0500a"
                    .replace("622\n0", "6220")
                    .leak() as &str,
            ),
            (
                "C array",
                "0x72,0x01,0x00,0x1d,0,0,0,0x0e,\n0x41,0x42,0x43,0x44,0x20,0x61,0x62,0x20,0x50,0x0a,",
            ),
            (
                "xxd",
                "00000000: 7201 001d 0000 000e 4142 4344 2061 6220  r.......ABCD ab \n\
                 00000010: 500a                                     P.\n",
            ),
            (
                "hexdump -C",
                "00000000  72 01 00 1d 00 00 00 0e  41 42 43 44 20 61 62 20  |r.......ABCD ab |\n\
                 00000010  50 0a                                             |P.|\n00000012\n",
            ),
            (
                "hexdump",
                "0000000 0172 1d00 0000 0e00 4241 4443 6120 2062\n0000010 0a50\n0000012\n",
            ),
            (
                "od -x",
                "0000000 0172 1d00 0000 0e00 4241 4443 6120 2062\n0000020 0a50\n0000022\n",
            ),
            (
                "od -t x1",
                "0000000 72 01 00 1d 00 00 00 0e 41 42 43 44 20 61 62 20\n0000020 50 0a\n0000022\n",
            ),
            (
                "od -A d -t x1",
                "0000000 72 01 00 1d 00 00 00 0e 41 42 43 44 20 61 62 20\n0000016 50 0a\n0000018\n",
            ),
            (
                "xxd -d",
                "00000000: 7201 001d 0000 000e 4142 4344 2061 6220  r.......ABCD ab \n\
                 00000016: 500a                                     P.\n",
            ),
            (
                "hexdump -x",
                "0000000    0172    1d00    0000    0e00    4241    4443    6120    2062\n\
                 0000010    0a50                                                        \n0000012\n",
            ),
            (
                "sg3_utils",
                " 00     72 01 00 1d 00 00 00 0e  41 42 43 44 20 61 62 20    r.......ABCD ab \n \
                  10     50 0a                                               P.\n",
            ),
            (
                "smartctl",
                "===== [SENSE] DATA START (BASE-16) =====\n\
                 000-015: 72 01 00 1d 00 00 00 0e 41 42 43 44 20 61 62 20 |r.......ABCD ab |\n\
                 016-017: 50 0a                                           |P.              |\n\
                 ===== [SENSE] DATA END (18 Bytes) =====\n",
            ),
            (
                "vector",
                "# comment\n0000: 72 01 00 1d   # sense\n0007: 0e\n0008: 41 42 43 44 20 61 62 20\n0010: 50 0a\n",
            ),
        ];
        for (name, text) in dumps {
            assert_eq!(read(text), SAMPLE, "{name}");
        }
    }

    #[test]
    fn words_of_hdparm_are_turned_round() {
        let mut text = String::from("\n/dev/sdc:\n  readahead    = 256 (on)\n");
        for line in 0..32 {
            text.push_str(&format!(
                "{:04x} 3fff c837 0010 0000 0000 003f 0000\n",
                0x0c00 + line
            ));
        }
        let bytes = read(&text);
        assert_eq!(bytes.len(), 512);
        assert_eq!(bytes.get(..4), Some(&[0x00, 0x0c, 0xff, 0x3f][..]));
        assert_eq!(bytes.get(496..498), Some(&[0x1f, 0x0c][..]));
    }

    #[test]
    fn repeated_lines_are_filled_in() {
        let bytes = read("00000000  ff ff ff ff 00 00 00 00  00 00 00 00 00 00 00 00\n*\n00000040\n");
        assert_eq!(bytes.len(), 64);
        assert_eq!(bytes.get(48), Some(&0xff));
    }

    #[test]
    fn overlapping_offsets_are_an_error() {
        let error = read_input(b"0000: 01 02 03\n0002: 04\n").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        assert!(read_input(b"ffffffff: 00\n").is_err());
    }

    #[test]
    fn what_is_no_dump_stays_as_it_is() {
        assert_eq!(read_input(&[0, 1, 2]).unwrap(), [0, 1, 2]);
        assert_eq!(read("hello world"), b"hello world");
        assert_eq!(read(""), b"");
    }
}
