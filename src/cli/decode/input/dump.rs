//! Dumps whose lines begin with an offset.

use super::{DecodeError, Output, group_bytes, is_group, problem};

/// Longer lines have no column of characters: `xxd -g 1 -c 256`, the widest, has about a thousand.
const LONGEST_LINE_WITH_COLUMN_BYTES: usize = 1500;

/// Who wrote the offset shows in its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `0000:`, ours, xxd, nvme and tcpdump.
    Colon,
    /// `000-015:`, first and last byte in decimal; smartctl.
    Range,
    /// Six to eight digits alone; od and hexdump.
    Bare,
    /// Two to five digits and a wide gap; sg3_utils, Wireshark.
    Wide,
}

#[derive(Debug, Clone, Copy)]
struct Offset<'a> {
    style: Style,
    digits: &'a str,
    /// The last byte of a range.
    to: Option<usize>,
}

/// The characters of the bytes, beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Absent,
    /// They are those of the bytes when groups are read as written, or from their end.
    Present {
        big: bool,
        little: bool,
    },
}

/// One line with an offset.
struct Row<'a> {
    number: usize,
    offset: Offset<'a>,
    groups: Vec<&'a str>,
    column: Column,
    /// The last group is short and set to the right, as `xxd -e` does.
    padded: bool,
}

impl Row<'_> {
    fn bytes(&self, little: bool) -> Vec<u8> {
        groups_bytes(&self.groups, little)
    }

    fn len_bytes(&self) -> usize {
        self.groups.iter().map(|g| g.len() / 2).sum()
    }

    fn is_blank(&self) -> bool {
        self.bytes(false).iter().all(|b| *b == b' ')
    }
}

enum Item<'a> {
    Row(Row<'a>),
    /// `*`, on this line: the line before is repeated up to the next offset.
    Repeat(usize),
}

/// Reads a dump with offsets; `None` when no line is one of such a dump.
pub(super) fn read(text: &str) -> Option<Result<Vec<u8>, DecodeError>> {
    let mut items: Vec<Item<'_>> = Vec::new();
    let mut header = false;
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if content == "*" && !items.is_empty() {
            items.push(Item::Repeat(number));
            continue;
        }
        match parse_row(number, line) {
            Some(Ok(row)) if !row.groups.is_empty() || !items.is_empty() => items.push(Item::Row(row)),
            // Rulers such as `===== [..] DATA END =====`.
            _ if content.starts_with("==") => {}
            Some(Err(why)) if items.is_empty() && begins_a_dump(line) => {
                return Some(Err(problem(number, why)));
            }
            _ if items.is_empty() => header = true,
            Some(Err(why)) => return Some(Err(problem(number, why))),
            _ => {
                let why = "no line of a dump like those before it";
                return Some(Err(problem(number, why)));
            }
        }
    }
    if items.is_empty() {
        return None;
    }
    let dump = Dump {
        items,
        header,
        commented: text.trim_start().starts_with('#'),
    };
    Some(dump.assemble())
}

struct Dump<'a> {
    items: Vec<Item<'a>>,
    /// Text that is no comment stands in front.
    header: bool,
    /// It begins with a comment, as the test vectors do.
    commented: bool,
}

impl<'a> Dump<'a> {
    fn rows(&self) -> impl Iterator<Item = &Row<'a>> {
        self.items.iter().filter_map(|item| match item {
            Item::Row(row) => Some(row),
            Item::Repeat(_) => None,
        })
    }

    fn assemble(&self) -> Result<Vec<u8>, DecodeError> {
        let Some(first) = self.rows().next() else {
            return Err(DecodeError::Text);
        };
        let style = first.offset.style;
        let digits = self.rows().flat_map(|r| &r.groups).map(|g| g.len()).max();
        let digits = digits.unwrap_or_default();
        let columns = self.rows().any(|r| r.column != Column::Absent);
        for row in self.rows() {
            if row.offset.style != style {
                return Err(problem(
                    row.number,
                    "the offset is written unlike those before it",
                ));
            }
            let whole = row.groups.len() - usize::from(style == Style::Colon && !row.groups.is_empty());
            if row.groups.iter().take(whole).any(|g| g.len() != digits) {
                return Err(problem(row.number, "groups of different lengths"));
            }
            if row.padded
                && row
                    .groups
                    .split_last()
                    .is_some_and(|(last, others)| others.last().is_none_or(|o| last.len() >= o.len()))
            {
                return Err(problem(row.number, "a gap between the bytes"));
            }
            if columns && row.column == Column::Absent && !row.is_blank() {
                return Err(problem(
                    row.number,
                    "the column of characters of the other lines is missing",
                ));
            }
            if let Some(to) = row.offset.to
                && row.offset.digits.parse().ok() != (to + 1).checked_sub(row.len_bytes())
            {
                return Err(problem(row.number, "not as many bytes as the offsets say"));
            }
        }
        let little = self.little_endian(first, digits, columns)?;
        if style == Style::Colon && !columns {
            return self.assemble_ours(first);
        }
        let radixes: &[u32] = match (style, first.offset.digits.len()) {
            (Style::Range, _) => &[10],
            (Style::Wide, _) | (Style::Bare, 6 | 8) => &[16],
            // hexdump writes words of two bytes behind offsets of this length, and no characters; od anything.
            (Style::Bare, _) if digits == 4 && !columns => &[16, 10, 8],
            (Style::Bare, _) => &[10, 8],
            (Style::Colon, _) => &[16, 10],
        };
        let out = self.one_of(radixes, little, first)?;
        let closed = matches!(self.items.last(), Some(Item::Row(row)) if row.groups.is_empty());
        if style == Style::Bare && digits > 2 && !columns && !closed && out.last() == Some(&0) {
            return Err(problem(
                self.rows().last().map_or(0, |r| r.number),
                "the line behind it, with the length alone, is missing: the last byte may be filling",
            ));
        }
        Ok(out)
    }

    /// Whether groups of this many digits are words of a little-endian host.
    fn little_endian(&self, first: &Row<'_>, digits: usize, columns: bool) -> Result<bool, DecodeError> {
        let style = first.offset.style;
        let unclear = || {
            let why = format!(
                "groups of {digits} digits, and nothing tells their byte order; dump the bytes one by one"
            );
            Err(problem(first.number, &why))
        };
        if digits <= 2 {
            return Ok(false);
        }
        if !columns {
            return match (style, digits) {
                (Style::Bare, 4 | 8 | 16) => {
                    tracing::info!(
                        "groups of {digits} digits are words, low byte last, as od and hexdump write"
                    );
                    Ok(true)
                }
                _ => unclear(),
            };
        }
        let short = |row: &Row<'_>| row.groups.last().is_some_and(|g| g.len() < digits);
        let (mut big, mut little) = (true, true);
        for row in self.rows() {
            if let Column::Present { big: b, little: l } = row.column {
                big &= b;
                little &= l;
            }
            big &= !row.padded;
            little &= row.padded || !short(row) || row.groups.len() == 1;
        }
        match (big, little) {
            (true, false) => Ok(false),
            (false, true) => Ok(true),
            (false, false) => Err(problem(
                first.number,
                "the characters beside the bytes fit no single byte order",
            )),
            (true, true) if self.rows().all(|r| r.bytes(false) == r.bytes(true)) => Ok(false),
            (true, true) => match (style, digits) {
                // What xxd writes unless told otherwise.
                (Style::Colon, 4) => Ok(false),
                (Style::Bare, 4 | 8 | 16) => Ok(true),
                _ => unclear(),
            },
        }
    }

    /// `OFFSET: bytes` without characters: gaps are zero where nobody could mean something else.
    fn assemble_ours(&self, first: &Row<'_>) -> Result<Vec<u8>, DecodeError> {
        if self.commented {
            return self.walk(16, false, true);
        }
        let strict = self.one_of(&[16, 10, 8], false, first);
        let continues = |radix| self.walk(radix, false, false).is_ok();
        if self.header || continues(16) || self.items.iter().any(|i| matches!(i, Item::Repeat(_))) {
            return strict;
        }
        if strict.is_ok() {
            return Err(problem(
                first.number,
                "the offsets continue each other in decimal or octal, but leave gaps in hexadecimal; \
                 begin with a # comment if gaps are meant",
            ));
        }
        self.walk(16, false, true)
    }

    /// Reads the offsets with the one radix with which they continue each other.
    fn one_of(&self, radixes: &[u32], little: bool, first: &Row<'_>) -> Result<Vec<u8>, DecodeError> {
        let mut found: Option<(u32, Vec<u8>)> = None;
        let mut failure = None;
        for radix in radixes {
            match (self.walk(*radix, little, false), &found) {
                (Ok(out), Some((other, before))) if out != *before => {
                    let why = format!(
                        "the offsets can be read with radix {other} ({} bytes) or {radix} ({} bytes); \
                         dump the bytes one by one, and every line (-v)",
                        before.len(),
                        out.len()
                    );
                    return Err(problem(first.number, &why));
                }
                (Ok(_), Some(_)) => {}
                (Ok(out), None) => found = Some((*radix, out)),
                (Err(error), _) => failure = failure.or(Some(error)),
            }
        }
        found
            .map(|(_, out)| out)
            .ok_or_else(|| failure.unwrap_or(DecodeError::Text))
    }

    fn walk(&self, radix: u32, little: bool, gaps: bool) -> Result<Vec<u8>, DecodeError> {
        let mut out = Output::default();
        let mut before: Vec<u8> = Vec::new();
        let mut repeating = false;
        let mut closed = false;
        let mut last_line = 0;
        for item in &self.items {
            let row = match item {
                Item::Row(row) => row,
                Item::Repeat(number) if repeating || closed => {
                    return Err(problem(*number, "* stands behind nothing that could be repeated"));
                }
                Item::Repeat(number) => {
                    repeating = true;
                    last_line = *number;
                    continue;
                }
            };
            let at = usize::from_str_radix(row.offset.digits, radix)
                .map_err(|_| problem(row.number, "an offset that cannot be read"))?;
            let ends = row.groups.is_empty() && row.offset.style == Style::Bare;
            if closed {
                return Err(problem(row.number, "behind the line that ends the dump"));
            }
            closed = ends;
            if at < out.len() {
                // od and hexdump fill the last word with a zero byte.
                let filling = out.len() - at;
                let word = before.len().min(row_word_bytes(&self.items));
                if !(ends && little && filling < word && out.shorten(at)) {
                    let why = format!(
                        "offset {} lies behind what precedes it, which ends at {:04x}h",
                        row.offset.digits,
                        out.len()
                    );
                    return Err(problem(row.number, &why));
                }
            }
            let missing = at - out.len();
            if repeating {
                let whole = !before.is_empty() && missing.is_multiple_of(before.len());
                // Some hexdumps end a repetition in the middle of a line.
                let part = !before.is_empty() && ends && radix == 16;
                if missing == 0 || !(whole || part) {
                    let why = format!("offset {} is no end of a repeated line", row.offset.digits);
                    return Err(problem(row.number, &why));
                }
                out.repeat(&before, missing, row.number)?;
            } else if missing > 0 && !gaps {
                let why = format!(
                    "offset {} does not follow the {} bytes ({:x}h) that precede it",
                    row.offset.digits,
                    out.len(),
                    out.len()
                );
                return Err(problem(row.number, &why));
            } else {
                out.repeat(&[0], missing, row.number)?;
            }
            repeating = false;
            if !row.groups.is_empty() {
                before = row.bytes(little);
                out.extend(&before, row.number)?;
            }
        }
        if repeating {
            return Err(problem(last_line, "* with no offset behind it"));
        }
        Ok(out.into_bytes())
    }
}

fn row_word_bytes(items: &[Item<'_>]) -> usize {
    items
        .iter()
        .find_map(|item| match item {
            Item::Row(row) => row.groups.first().map(|g| g.len() / 2),
            Item::Repeat(_) => None,
        })
        .unwrap_or_default()
}

/// Offset 0 and a number.
fn begins_a_dump(line: &str) -> bool {
    split_offset(line).is_some_and(|(offset, rest)| {
        offset.digits.bytes().all(|b| b == b'0') && rest.split_whitespace().next().is_some_and(is_group)
    })
}

/// `None` when the line begins with no offset.
fn parse_row(number: usize, line: &str) -> Option<Result<Row<'_>, &'static str>> {
    let (offset, rest) = split_offset(line)?;
    let row = |(groups, column, padded)| Row {
        number,
        offset,
        groups,
        column,
        padded,
    };
    let parsed = parse_data(rest, offset);
    // Characters may hold a #, so that a comment is taken for one only where they fit nothing.
    let parsed = match (parsed, rest.split_once('#')) {
        (Err(_), Some((data, _))) => parse_data(data.trim_end(), offset).and_then(|parsed| match parsed.1 {
            Column::Absent => Ok(parsed),
            Column::Present { .. } => Err(NOT_ITS_CHARACTERS),
        }),
        (parsed, _) => parsed,
    };
    Some(parsed.map(row))
}

/// Takes the offset off the front.
fn split_offset(line: &str) -> Option<(Offset<'_>, &str)> {
    let trimmed = line.trim_start();
    let indented = trimmed.len() < line.len();
    let (first, rest) = trimmed.split_at(trimmed.find([' ', '\t']).unwrap_or(trimmed.len()));
    let all_hex = |d: &str| (1..=16).contains(&d.len()) && d.bytes().all(|b| b.is_ascii_hexdigit());
    if let Some(digits) = first.strip_suffix(':') {
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        if let Some((from, to)) = digits.split_once('-') {
            let to = to.parse().ok().filter(|to| *to < usize::MAX)?;
            let offset = Offset {
                style: Style::Range,
                digits: from,
                to: Some(to),
            };
            return from.bytes().all(|b| b.is_ascii_digit()).then_some((offset, rest));
        }
        let offset = Offset {
            style: Style::Colon,
            digits,
            to: None,
        };
        return all_hex(digits).then_some((offset, rest));
    }
    if !all_hex(first) {
        return None;
    }
    let gap = rest.len() - rest.trim_start().len();
    let next = rest.split_whitespace().next().unwrap_or_default();
    let style = match first.len() {
        6..=8 => Style::Bare,
        2..=5 if gap >= 3 && next.len() == 2 && (indented || first.len() == 4) => Style::Wide,
        _ => return None,
    };
    let offset = Offset {
        style,
        digits: first,
        to: None,
    };
    Some((offset, rest))
}

const NOT_ITS_CHARACTERS: &str = "what stands behind the bytes is neither a comment nor their characters";

type Data<'a> = (Vec<&'a str>, Column, bool);

/// The groups behind an offset, up to a column of characters, which must be those of the bytes.
fn parse_data<'a>(rest: &'a str, offset: Offset<'_>) -> Result<Data<'a>, &'static str> {
    // Each group with the blanks in front of it and its end.
    let mut groups: Vec<(usize, usize, &str)> = Vec::new();
    let mut position = 0;
    let mut all = true;
    while let Some(remaining) = rest.get(position..) {
        let token = remaining.trim_start_matches([' ', '\t']);
        if token.is_empty() {
            break;
        }
        let gap = remaining.len() - token.len();
        let token = token
            .get(..token.find([' ', '\t']).unwrap_or(token.len()))
            .unwrap_or_default();
        if !is_group(token) {
            all = false;
            break;
        }
        position += gap + token.len();
        groups.push((gap, position, token));
    }
    if rest.len() <= LONGEST_LINE_WITH_COLUMN_BYTES {
        for count in (1..=groups.len()).rev() {
            let (Some(taken), Some((_, end, _))) = (groups.get(..count), groups.get(count - 1)) else {
                continue;
            };
            let tail = rest.get(*end..).unwrap_or_default();
            let begins = tail.starts_with("  ") || tail.starts_with([' ', '\t']) && delimited(tail).is_some();
            // hexdump fills its last line with blanks; elsewhere they may be the characters.
            let filling = offset.style == Style::Bare && tail.trim().is_empty();
            if tail.is_empty() || filling || !begins {
                continue;
            }
            let Some(padded) = spaced(taken, offset) else {
                continue;
            };
            let names: Vec<&str> = taken.iter().map(|g| g.2).collect();
            let big = column_shows(tail, &groups_bytes(&names, false));
            let little = column_shows(tail, &groups_bytes(&names, true));
            if big || little {
                return Ok((names, Column::Present { big, little }, padded));
            }
        }
    }
    if !all {
        return Err(NOT_ITS_CHARACTERS);
    }
    let Some(padded) = spaced(&groups, offset) else {
        return Err("the gaps between the numbers are not those of a hex dump");
    };
    Ok((groups.iter().map(|g| g.2).collect(), Column::Absent, padded))
}

/// Whether the gaps are those that hex dumps have: decimal and other numbers are set in wider columns. `Some(true)` when
/// the last group is set to the right.
fn spaced(groups: &[(usize, usize, &str)], offset: Offset<'_>) -> Option<bool> {
    let Some((first_gap, _, first)) = groups.first() else {
        return Some(false);
    };
    let digits = first.len();
    // hexdump -x sets words in columns of eight.
    if offset.style == Style::Bare && digits == 4 && groups.iter().all(|g| g.0 == 4) {
        return Some(false);
    }
    let first_fits = match (offset.style, offset.digits.len()) {
        (Style::Wide, _) => true,
        (Style::Bare, 8) | (Style::Colon | Style::Range, _) => (1..=2).contains(first_gap),
        (Style::Bare, _) => *first_gap == 1,
    };
    if !first_fits {
        return None;
    }
    let last = groups.len() - 1;
    let mut padded = false;
    for (index, (gap, _, group)) in groups.iter().enumerate().skip(1) {
        let half = *gap == 2 && digits == 2 && index.is_multiple_of(8);
        let right = index == last && digits > 2 && group.len() < digits && *gap == 1 + digits - group.len();
        if !(*gap == 1 || half || right) {
            return None;
        }
        padded |= right;
    }
    Some(padded)
}

fn groups_bytes(groups: &[&str], little: bool) -> Vec<u8> {
    groups.iter().flat_map(|g| group_bytes(g, little)).collect()
}

/// What stands between bars, angles or quotes.
fn delimited(tail: &str) -> Option<&str> {
    let tail = tail.trim();
    [('|', '|'), ('>', '<'), ('"', '"')]
        .into_iter()
        .find_map(|(open, close)| tail.strip_prefix(open)?.strip_suffix(close))
}

fn column_shows(tail: &str, bytes: &[u8]) -> bool {
    if delimited(tail).is_some_and(|inner| shows(inner, bytes)) {
        return true;
    }
    // The characters may begin with blanks themselves.
    let blanks = tail.len() - tail.trim_start_matches(' ').len();
    (2..=blanks).any(|start| tail.get(start..).is_some_and(|column| shows(column, bytes)))
}

fn shows(column: &str, bytes: &[u8]) -> bool {
    let mut characters = column.chars();
    let fits = |byte: &u8| match (characters.next(), *byte) {
        (None, byte) => byte == b' ',
        (Some(shown), 0x21..=0x7e) => shown == char::from(*byte),
        (Some(shown), b' ') => matches!(shown, ' ' | '.'),
        (Some(shown), 0x80..) => shown == '.' || !shown.is_ascii(),
        (Some(shown), _) => shown == '.',
    };
    bytes.iter().all(fits) && characters.all(|c| c == ' ')
}
