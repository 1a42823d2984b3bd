//! No bytes of any length make a parser panic, and every document can be shown.
#![cfg(feature = "cli")]

use std::path::Path;

use clap::ValueEnum;
use drivethru::cli::decode::{Kind, decode, read_input, render_text};
use drivethru::nvme::identify::{Controller, Namespace};
use drivethru::nvme::log::SmartLog;
use drivethru::scsi::capacity::Capacity;
use drivethru::scsi::designator::Designator;
use drivethru::scsi::inquiry::Inquiry;
use drivethru::scsi::log::{LogPage, SupportedLogPages, TemperatureLog};
use drivethru::scsi::sense::{AtaRegisters, Sense};
use drivethru::scsi::vpd::Vpd;
use drivethru::transport::usb::descriptors::Descriptors;
use proptest::prelude::*;

/// Every parser and every kind, with each result shown as JSON and text.
fn feed(bytes: &[u8]) {
    let _ = Sense::parse(bytes);
    let _ = AtaRegisters::from_descriptor(bytes);
    let _ = AtaRegisters::from_fixed(bytes);
    let _ = Inquiry::parse(bytes);
    let _ = Vpd::parse(bytes);
    let _ = Designator::parse_list(bytes);
    if let Ok(page) = LogPage::parse(bytes) {
        assert!(page.parameters().count() <= bytes.len());
    }
    let _ = TemperatureLog::parse(bytes);
    let _ = SupportedLogPages::parse(bytes);
    let _ = Capacity::parse_10(bytes);
    let _ = Capacity::parse_16(bytes);
    let _ = SmartLog::parse(bytes);
    let _ = Controller::parse(bytes);
    let _ = Namespace::parse(bytes);
    let _ = Descriptors::parse(bytes);
    for kind in Kind::value_variants() {
        if let Ok(document) = decode(*kind, bytes, None, None) {
            assert_eq!(document["schema"], "drivethru-decode/1");
            assert!(
                !render_text(&document).contains('\u{1b}'),
                "an escape reached the terminal"
            );
        }
        let _ = decode(*kind, bytes, Some(bytes), Some(bytes));
    }
    let _ = read_input(bytes);
}

/// Arbitrary bytes behind beginnings that lead into the parsers.
fn shaped() -> impl Strategy<Value = Vec<u8>> {
    let starts = prop::sample::select(vec![
        vec![],
        vec![0x70],
        vec![0xf1, 0],
        vec![0x72, 1, 0, 0x1d, 0, 0, 0],
        vec![0x73],
        vec![0, 0x80],
        vec![0, 0x83, 0],
        vec![0, 0x89, 2, 0x38],
        vec![0, 0xb0, 0, 0x3c],
        vec![0, 0xb2, 0],
        vec![0, 0xb8, 0],
        vec![0x12, 1, 0, 2, 0, 0, 0, 64],
        vec![9, 2, 32, 0, 1, 1, 0, 0xc0, 0, 9, 4, 0, 1, 4, 8, 6, 0x62, 0],
        vec![5, 0x0f, 22, 0, 2],
        vec![0x0d, 0],
        vec![0x4d, 0],
        vec![2, 0],
        vec![3, 0],
        vec![0x10, 0],
        vec![0x5a, 0x0c],
    ]);
    (starts, prop::collection::vec(any::<u8>(), 0..700)).prop_map(|(mut bytes, rest)| {
        bytes.extend(rest);
        bytes
    })
}

/// Bytes of every sort: any, text, digits, signs that mean something in dumps, and long runs of the same.
fn contents() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 1..600),
        2 => prop::collection::vec(prop::sample::select(b"0123456789abcdefx #|<>*:,.\"-".to_vec()), 1..200),
        1 => prop::collection::vec(0u8..0x20, 1..100),
        1 => prop::collection::vec(prop::sample::select(vec![b' ', 0, b'a']), 1..100),
        2 => prop::collection::vec((any::<u8>(), 1usize..90), 1..8)
            .prop_map(|runs| runs.into_iter().flat_map(|(byte, count)| vec![byte; count]).collect()),
    ]
}

/// How a tool writes a dump, and with which options.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// `xxd -c -g`, `-d` and `-e`.
    Xxd {
        columns: usize,
        group: usize,
        decimal: bool,
        little: bool,
    },
    /// `xxd -p -c`.
    XxdPlain {
        columns: usize,
    },
    /// `xxd -i` of a file and of its standard input.
    XxdArray {
        named: bool,
    },
    /// `hexdump -C`, `hexdump` and `hexdump -x`, with repeated lines or `-v`.
    HexdumpCanonical {
        every: bool,
    },
    HexdumpWords {
        wide: bool,
        every: bool,
    },
    /// `od -A radix -t x<word> -w`, with `z` and `-v`.
    Od {
        radix: u32,
        word: usize,
        columns: usize,
        characters: bool,
        every: bool,
    },
    /// `od -A n -t x<word>`.
    OdBare {
        word: usize,
    },
    /// `sg_inq -H` and its like.
    SgUtils {
        characters: bool,
    },
    /// The vectors, with comments and gaps.
    Ours {
        columns: usize,
        gaps: bool,
    },
}

fn shapes() -> impl Strategy<Value = Shape> {
    let columns = 1usize..70;
    let word = prop::sample::select(vec![1usize, 2, 4, 8]);
    prop_oneof![
        (columns.clone(), 1usize..20, any::<bool>()).prop_map(|(columns, group, decimal)| Shape::Xxd {
            columns,
            group,
            decimal,
            little: false
        }),
        // With -g 2 it can look like xxd's usual dump.
        (columns.clone(), prop::sample::select(vec![1usize, 4, 8])).prop_map(|(columns, group)| Shape::Xxd {
            columns,
            group,
            decimal: false,
            little: true
        }),
        Just(Shape::Xxd {
            columns: 16,
            group: 2,
            decimal: false,
            little: false
        }),
        columns.clone().prop_map(|columns| Shape::XxdPlain { columns }),
        any::<bool>().prop_map(|named| Shape::XxdArray { named }),
        any::<bool>().prop_map(|every| Shape::HexdumpCanonical { every }),
        any::<(bool, bool)>().prop_map(|(wide, every)| Shape::HexdumpWords { wide, every }),
        (
            prop::sample::select(vec![8, 10, 16]),
            word.clone(),
            1usize..5,
            any::<bool>(),
            any::<bool>()
        )
            .prop_map(|(radix, word, words, characters, every)| Shape::Od {
                radix,
                word,
                columns: word * words * 2,
                characters,
                every
            }),
        (prop::sample::select(vec![8, 10, 16]), any::<bool>()).prop_map(|(radix, every)| Shape::Od {
            radix,
            word: 1,
            columns: 16,
            characters: false,
            every
        }),
        word.prop_map(|word| Shape::OdBare { word }),
        any::<bool>().prop_map(|characters| Shape::SgUtils { characters }),
        (columns, any::<bool>()).prop_map(|(columns, gaps)| Shape::Ours { columns, gaps }),
    ]
}

fn printable(bytes: &[u8]) -> String {
    let shown = |b: &u8| {
        if (0x20..0x7f).contains(b) {
            char::from(*b)
        } else {
            '.'
        }
    };
    bytes.iter().map(shown).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A word as a little-endian host prints it; short ones are filled with zero.
fn host_word(bytes: &[u8], word: usize) -> String {
    let value = bytes
        .iter()
        .rev()
        .fold(0u64, |value, b| value << 8 | u64::from(*b));
    format!("{value:0width$x}", width = 2 * word)
}

/// Rows with their offsets; of those that equal the one before, only a `*` at the first.
fn rows(bytes: &[u8], columns: usize, every: bool, mut row: impl FnMut(usize, &[u8]) -> String) -> String {
    let mut text = String::new();
    let mut squeezing = false;
    let chunks: Vec<&[u8]> = bytes.chunks(columns).collect();
    for (index, chunk) in chunks.iter().enumerate() {
        let same = !every && index > 0 && chunks[index - 1] == *chunk;
        if same && !squeezing {
            text += "*\n";
        } else if !same {
            text += &row(index * columns, chunk);
            text.push('\n');
        }
        squeezing = same;
    }
    text
}

impl Shape {
    fn render(self, bytes: &[u8]) -> String {
        match self {
            Self::Xxd {
                columns,
                group,
                decimal,
                little,
            } => {
                let width = 2 * columns + columns.div_ceil(group);
                rows(bytes, columns, true, |at, row| {
                    let groups: String = row
                        .chunks(group)
                        .map(|g| match little {
                            true => format!("{:>width$} ", host_word(g, g.len()), width = 2 * group),
                            false => hex(g) + " ",
                        })
                        .collect();
                    let offset = if decimal {
                        format!("{at:08}")
                    } else {
                        format!("{at:08x}")
                    };
                    format!("{offset}: {groups:<width$} {}", printable(row))
                })
            }
            Self::XxdPlain { columns } => rows(bytes, columns, true, |_, row| hex(row)),
            Self::XxdArray { named } => {
                let lines: Vec<String> = bytes
                    .chunks(12)
                    .map(|row| {
                        row.iter()
                            .map(|b| format!("0x{b:02x}"))
                            .collect::<Vec<_>>()
                            .join(", ")
                    })
                    .collect();
                let list = lines.join(",\n  ");
                match named {
                    true => format!(
                        "unsigned char page_16_bin[] = {{\n  {list}\n}};\nunsigned int page_16_bin_len = {};\n",
                        bytes.len()
                    ),
                    false => format!("  {list}\n"),
                }
            }
            Self::HexdumpCanonical { every } => {
                let text = rows(bytes, 16, every, |at, row| {
                    let half = |row: &[u8]| row.iter().map(|b| format!("{b:02x} ")).collect::<String>();
                    let (left, right) = row.split_at(row.len().min(8));
                    format!(
                        "{at:08x}  {:<24} {:<24} |{}|",
                        half(left),
                        half(right),
                        printable(row)
                    )
                });
                format!("{text}{:08x}\n", bytes.len())
            }
            Self::HexdumpWords { wide, every } => {
                let gap = if wide { "    " } else { " " };
                let text = rows(bytes, 16, every, |at, row| {
                    let words: String = row
                        .chunks(2)
                        .map(|w| format!("{gap}{}", host_word(w, 2)))
                        .collect();
                    format!("{at:07x}{words:<width$}", width = 8 * (gap.len() + 4))
                });
                format!("{text}{:07x}\n", bytes.len())
            }
            Self::Od {
                radix,
                word,
                columns,
                characters,
                every,
            } => {
                let offset = |at: usize| match radix {
                    8 => format!("{at:07o}"),
                    10 => format!("{at:07}"),
                    _ => format!("{at:06x}"),
                };
                let text = rows(bytes, columns, every, |at, row| {
                    let words: String = row
                        .chunks(word)
                        .map(|w| format!(" {}", host_word(w, word)))
                        .collect();
                    let width = columns / word * (2 * word + 1);
                    match characters {
                        true => format!("{}{words:<width$}  >{}<", offset(at), printable(row)),
                        false => format!("{}{words}", offset(at)),
                    }
                });
                format!("{text}{}\n", offset(bytes.len()))
            }
            Self::OdBare { word } => rows(bytes, 16, false, |_, row| {
                row.chunks(word)
                    .map(|w| format!(" {}", host_word(w, word)))
                    .collect()
            }),
            Self::SgUtils { characters } => rows(bytes, 16, true, |at, row| {
                let mut line = format!(" {at:02x}");
                line += &" ".repeat(8 - line.len());
                for (index, byte) in row.iter().enumerate() {
                    line += &format!("{}{byte:02x} ", if index == 8 { " " } else { "" });
                }
                match characters {
                    true => format!("{line:<60}{}", printable(row)),
                    false => line,
                }
            }),
            Self::Ours { columns, gaps } => {
                let mut text = String::from("# Some bytes.\n");
                for (index, row) in bytes.chunks(columns).enumerate() {
                    if gaps && index > 0 && row.iter().all(|b| *b == 0) && (index + 1) * columns < bytes.len()
                    {
                        continue;
                    }
                    let spaced: Vec<String> = row.iter().map(|b| format!("{b:02x}")).collect();
                    text += &format!("{:04x}: {}   # row {index}\n", index * columns, spaced.join(" "));
                }
                text
            }
        }
    }

    /// Whether nothing in the dump leaves room for doubt.
    fn must_be_read(self, bytes: &[u8]) -> bool {
        match self {
            Self::Xxd { group, little, .. } => group <= 2 && !little,
            // A repetition alone may be counted in any radix.
            Self::HexdumpWords { every, .. } => every,
            Self::Od {
                radix,
                word,
                columns,
                every,
                characters,
            } => {
                // How much of the only line is filling, depends on the radix.
                let clear = radix == 16 || every && bytes.len() > columns;
                clear && (!characters && word <= 2 || bytes.len().is_multiple_of(word))
            }
            Self::OdBare { word } => word == 1 && !self.render(bytes).contains('*'),
            _ => true,
        }
    }

    fn has_contiguous_offsets(self) -> bool {
        !matches!(
            self,
            Self::XxdPlain { .. } | Self::XxdArray { named: false } | Self::OdBare { .. } | Self::Ours { .. }
        ) && !matches!(self, Self::HexdumpCanonical { every: false })
            && !matches!(
                self,
                Self::HexdumpWords { every: false, .. } | Self::Od { every: false, .. }
            )
    }
}

const OTHER_KINDS: usize = 12;

/// Bytes written as numbers that are not hexadecimal, as `od`, `hexdump` and `xxd -b` do.
fn other_numbers(bytes: &[u8], kind: usize, columns: usize, offsets: bool) -> String {
    let word = |chunk: &[u8]| {
        chunk
            .iter()
            .rev()
            .fold(0u64, |value, b| value << 8 | u64::from(*b))
    };
    let mut text = String::new();
    let (unit, per_row) = match kind {
        0..=3 | 11 => (1, columns),
        4..=6 | 10 => (2, columns),
        _ => (4, columns),
    };
    for (index, row) in bytes.chunks(unit * per_row).enumerate() {
        let at = index * unit * per_row;
        if kind == 11 {
            let bits: String = row.iter().map(|b| format!("{b:08b} ")).collect();
            text += &format!(
                "{at:08x}: {bits:<width$} {}\n",
                printable(row),
                width = 9 * columns
            );
            continue;
        }
        if offsets {
            text += &if kind == 10 {
                format!("{at:07x}")
            } else {
                format!("{at:07o}")
            };
        }
        for chunk in row.chunks(unit) {
            text += &match kind {
                0 => format!(" {:3}", chunk[0]),
                1 => format!(" {:4}", chunk[0] as i8),
                2 => format!(" {:03o}", chunk[0]),
                // Characters, as `od -c` and `od -t a` set them.
                3 => format!(
                    " {:>3}",
                    char::from(chunk[0] & 0x7f)
                        .escape_default()
                        .to_string()
                        .trim_start_matches('\\')
                ),
                4 => format!(" {:5}", word(chunk)),
                5 => format!(" {:6}", word(chunk) as i16),
                6 => format!(" {:06o}", word(chunk)),
                7 => format!(" {:10}", word(chunk)),
                8 => format!(" {:11}", word(chunk) as i32),
                9 => format!(" {:011o}", word(chunk)),
                _ => format!("   {:05}", word(chunk)),
            };
        }
        text.push('\n');
    }
    if offsets && kind != 11 {
        text += &if kind == 10 {
            format!("{:07x}\n", bytes.len())
        } else {
            format!("{:07o}\n", bytes.len())
        };
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn nothing_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        feed(&bytes);
    }

    #[test]
    fn nothing_panics_behind_a_good_beginning(bytes in shaped()) {
        feed(&bytes);
    }

    #[test]
    fn nothing_panics_on_few_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        feed(&bytes);
    }

    #[test]
    fn any_text_can_be_read(text in "[0-9a-fx:|#*=, \\n\u{e4}-]{0,400}") {
        let _ = read_input(text.as_bytes());
    }

    /// A dump gives its bytes back, or says why not: never other bytes.
    #[test]
    fn dumps_give_the_bytes_back(bytes in contents(), shape in shapes()) {
        let text = shape.render(&bytes);
        match (read_input(text.as_bytes()), shape.must_be_read(&bytes)) {
            (Ok(read), _) => prop_assert_eq!(read, bytes, "{:?}\n{}", shape, text),
            (Err(error), true) => prop_assert!(false, "{error}: {shape:?}\n{text}"),
            (Err(_), false) => {}
        }
    }

    /// Numbers that are no hex bytes are not taken for such.
    #[test]
    fn other_numbers_are_no_hex_bytes(bytes in contents(), kind in 0..OTHER_KINDS, columns in 1usize..20, offsets: bool) {
        let text = other_numbers(&bytes, kind, columns, offsets);
        if let Ok(read) = read_input(text.as_bytes()) {
            prop_assert_eq!(read, bytes, "kind {}\n{}", kind, text);
        }
    }

    /// A dump from which a line is missing is not read as if it were whole.
    #[test]
    fn a_missing_line_is_noticed(bytes in prop::collection::vec(any::<u8>(), 40..300), shape in shapes(), pick: prop::sample::Index) {
        if !shape.has_contiguous_offsets() {
            return Ok(());
        }
        let text = shape.render(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        // What follows the last line cannot be known, nor can the line that only ends the dump be missed.
        let data_lines = lines.iter().filter(|l| l.split_whitespace().count() > 1).count();
        if data_lines < 2 {
            return Ok(());
        }
        let gone = pick.index(data_lines - 1);
        let rest: String = lines.iter().enumerate().filter(|(i, _)| *i != gone).map(|(_, l)| format!("{l}\n")).collect();
        prop_assert!(read_input(rest.as_bytes()).is_err(), "{:?}\n{}", shape, rest);
    }
}

#[test]
fn vectors_may_end_anywhere() {
    let mut stack = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")];
    let mut vectors = 0;
    while let Some(path) = stack.pop() {
        if path.is_dir() {
            stack.extend(std::fs::read_dir(&path).unwrap().flatten().map(|e| e.path()));
        } else if path.extension().is_some_and(|e| e == "hex") {
            let bytes = read_input(&std::fs::read(&path).unwrap()).unwrap();
            // Every length of short pages; of long ones those around each end of a field group.
            let step = if bytes.len() > 1024 { 37 } else { 1 };
            for end in (0..=bytes.len()).step_by(step) {
                feed(&bytes[..end]);
            }
            vectors += 1;
        }
    }
    assert!(vectors > 0, "no vectors");
}

/// Recognition is not won by taking anything: bytes without meaning are nothing.
#[test]
fn random_bytes_are_not_recognised() {
    const BUFFERS: usize = 5_000;
    let mut state = 0x0123_4567_89ab_cdef_u64;
    let mut random = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    for len in [8, 18, 36, 64, 96, 252, 512, 572, 1024, 4096] {
        let mut recognised = std::collections::BTreeMap::new();
        for _ in 0..BUFFERS {
            let bytes: Vec<u8> = (0..len).map(|_| random() as u8).collect();
            if let Ok(document) = decode(Kind::Auto, &bytes, None, None) {
                *recognised.entry(document["kind"].to_string()).or_insert(0usize) += 1;
            }
        }
        let all: usize = recognised.values().sum();
        assert!(
            all * 1000 <= BUFFERS,
            "{len} bytes: {all} of {BUFFERS} recognised: {recognised:?}"
        );
    }
}
