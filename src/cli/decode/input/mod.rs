//! Reads what people save: binary files and hex dumps of many tools.

mod dump;

use super::DecodeError;

/// Text never stands for more than this.
const MAX_OUTPUT_BYTES: usize = 4 << 20;

/// The bytes of a file that is binary or one of these dumps:
///
/// - hex bytes alone, with or without blanks, commas and `0x` (`xxd -p`, `od -A n -t x1`);
/// - a C array of bytes, as `xxd -i` writes it;
/// - offset and bytes with or without characters beside them (`xxd`, `hexdump -C`, `od -t x1` with offsets in any radix,
///   sg3_utils, `smartctl -r ioctl,2`, `nvme`): each line continues the one before, and characters must be those of the
///   bytes;
/// - offset and words of 2, 4 or 8 bytes, low byte last (`hexdump`, `od -x`, `od -t x4` on a little-endian host);
/// - `OFFSET: bytes` without characters, where `#` begins a comment and gaps are zero (the test vectors);
/// - 256 words of four digits, as `hdparm --Istdout` prints IDENTIFY data, with its header.
///
/// A file that is no text is taken as binary: the pages that can be decoded hold control bytes.
///
/// # Errors
/// Text that is none of these, a dump that contradicts itself or can be read in two ways, and one that stands for more than
/// 4 MiB.
pub fn read_input(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let is_text = |b: &u8| matches!(b, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if bytes.iter().all(is_text) => text.trim_start_matches('\u{feff}'),
        _ => return Ok(bytes.to_vec()),
    };
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    [dump::read, c_array, hdparm_words, plain]
        .into_iter()
        .find_map(|attempt| attempt(text))
        .unwrap_or(Err(DecodeError::Text))
}

fn problem(line: usize, why: &str) -> DecodeError {
    DecodeError::Input {
        line,
        why: why.to_owned(),
    }
}

/// What was read so far; it does not grow beyond the limit.
#[derive(Default)]
struct Output(Vec<u8>);

impl Output {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn room(&self, more: usize, line: usize) -> Result<(), DecodeError> {
        match self.0.len().checked_add(more) {
            Some(len) if len <= MAX_OUTPUT_BYTES => Ok(()),
            _ => Err(problem(line, "the dump stands for more than 4 MiB")),
        }
    }

    fn extend(&mut self, bytes: &[u8], line: usize) -> Result<(), DecodeError> {
        self.room(bytes.len(), line)?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    /// The pattern again and again, `len_bytes` in all.
    fn repeat(&mut self, pattern: &[u8], len_bytes: usize, line: usize) -> Result<(), DecodeError> {
        self.room(len_bytes, line)?;
        self.0.extend(pattern.iter().cycle().take(len_bytes));
        Ok(())
    }

    /// Takes zero bytes off the end; `false` when they are not.
    fn shorten(&mut self, len_bytes: usize) -> bool {
        let zero = self
            .0
            .get(len_bytes..)
            .is_some_and(|end| end.iter().all(|b| *b == 0));
        if zero {
            self.0.truncate(len_bytes);
        }
        zero
    }

    fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Hex digits of whole bytes.
fn is_group(token: &str) -> bool {
    !token.is_empty() && token.len().is_multiple_of(2) && token.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The bytes of a group, from its end if `little`.
fn group_bytes(group: &str, little: bool) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..group.len())
        .step_by(2)
        .filter_map(|i| u8::from_str_radix(group.get(i..i + 2)?, 16).ok())
        .collect();
    if little {
        bytes.reverse();
    }
    bytes
}

/// `0x72, 0x01, ...`, also with a declaration and its braces, and the length that `xxd -i` writes behind it.
fn c_array(text: &str) -> Option<Result<Vec<u8>, DecodeError>> {
    let text: String = text
        .lines()
        .flat_map(|line| [line.split('#').next().unwrap_or_default(), "\n"])
        .collect();
    let (declaration, elements, behind) = match text.split_once('{') {
        Some((declaration, rest)) => {
            let (elements, behind) = rest.split_once('}')?;
            (Some(declaration), elements, behind)
        }
        None => (None, text.as_str(), ""),
    };
    let begins = elements.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let assigned = declaration.is_none_or(|d| d.trim().is_empty() || d.trim_end().ends_with('='));
    if !begins || !assigned || !(elements.contains("0x") || elements.contains("0X")) {
        return None;
    }
    let lines = |part: &str| part.matches('\n').count();
    let number = 1 + lines(declaration.unwrap_or_default());
    let failed = |number: usize, why: &str| Some(Err(problem(number, why)));
    if declaration.is_some_and(declares_words) || behind.contains('{') {
        return failed(number, "no single array of bytes");
    }
    let mut out = Output::default();
    let separates = |c: char| c == ',' || (declaration.is_none() && c.is_whitespace());
    for element in elements.split(separates).map(str::trim).filter(|e| !e.is_empty()) {
        // Only in a declaration are 10 and 0x0a the same for sure.
        let byte = c_byte(element).filter(|_| declaration.is_some() || matches!(element.len(), 1 | 3 | 4));
        let Some(byte) = byte else {
            return failed(number, &format!("{element:.20} is no byte of a C array"));
        };
        if let Err(error) = out.extend(&[byte], number) {
            return Some(Err(error));
        }
    }
    if let Some((_, length)) = behind.rsplit_once('=') {
        let length = length.trim().trim_end_matches(';').trim();
        if length.parse() != Ok(out.len()) {
            let why = format!("{length:.20} bytes are announced, but {} are there", out.len());
            return failed(number + lines(elements), &why);
        }
    }
    Some(Ok(out.into_bytes()))
}

/// Whether the type in front of a name and its brackets is wider than a byte.
fn declares_words(declaration: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names: Vec<&str> = declaration
        .split(|c| !is_part(c))
        .filter(|n| n.starts_with(|c: char| !c.is_ascii_digit()))
        .collect();
    names.pop();
    names.iter().any(|name| {
        ["short", "int", "long", "float", "double"].contains(name)
            || ["16", "32", "64"].iter().any(|width| name.contains(width))
    })
}

/// A literal as C reads it: hexadecimal or decimal. Octal ones are too easily meant otherwise.
fn c_byte(element: &str) -> Option<u8> {
    let (digits, radix) = match element.strip_prefix("0x").or_else(|| element.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (element, 10),
    };
    let octal = radix == 10 && digits.len() > 1 && digits.starts_with('0');
    let usual = digits.len() <= if radix == 16 { 2 } else { 3 } && digits.chars().all(|c| c.is_digit(radix));
    (usual && !octal)
        .then(|| u8::from_str_radix(digits, radix).ok())
        .flatten()
}

/// IDENTIFY data as `hdparm --Istdout` and `sg_sat_identify -HHH` write it: 32 lines of 8 words, low byte last, behind any
/// header.
fn hdparm_words(text: &str) -> Option<Result<Vec<u8>, DecodeError>> {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|l| !l.is_empty())
        .collect();
    let words = |line: &str| -> Option<Vec<u8>> {
        let words: Vec<&str> = line.split(' ').skip_while(|w| w.is_empty()).collect();
        // od -A n, which may have filled the last word, begins its lines with one blank.
        let od = line.starts_with(' ') && !line.starts_with("  ");
        (words.len() == 8 && !od && words.iter().all(|w| w.len() == 4 && is_group(w)))
            .then(|| words.iter().flat_map(|w| group_bytes(w, true)).collect())
    };
    let (header, body) = lines.split_at(lines.len().checked_sub(32)?);
    if header.iter().any(|line| words(line).is_some()) {
        return None;
    }
    let rows: Option<Vec<Vec<u8>>> = body.iter().map(|line| words(line)).collect();
    Some(Ok(rows?.concat()))
}

/// Bytes of two digits each, or lines of one long number that begin at the margin (`xxd -p`).
fn plain(text: &str) -> Option<Result<Vec<u8>, DecodeError>> {
    const ORDER: &str = "groups of several bytes, and nothing tells their order; dump the bytes one by one";
    const GAPS: &str = "the gaps between the numbers are not those of hex bytes";
    let mut out = Output::default();
    let mut long_lines = false;
    let mut several = false;
    let mut set_in: Option<usize> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim_end();
        let content = line.trim_start();
        if content.is_empty() {
            continue;
        }
        let fails = |why: &str| Some(Err(problem(number, why)));
        let listed = content.contains([',', ';']);
        let mut count = 0usize;
        let mut gap = 0usize;
        for token in content.split([' ', '\t', ',', ';']) {
            if token.is_empty() {
                gap += 1;
                continue;
            }
            if token == "*" && out.len() > 0 {
                return fails("lines are left out, and no offset tells how many; dump every line (-v)");
            }
            if !is_group(token) {
                return if out.len() == 0 {
                    None
                } else {
                    fails("no hex bytes")
                };
            }
            if token.len() > 2 {
                if token.len() < line.len() || several {
                    return fails(ORDER);
                }
                long_lines = true;
            }
            // Numbers that are not hexadecimal are set in wider columns.
            if count > 0 && !(listed || gap == 0 || gap == 1 && count.is_multiple_of(4)) {
                return fails(GAPS);
            }
            if let Err(error) = out.extend(&group_bytes(token, false), number) {
                return Some(Err(error));
            }
            gap = 0;
            count += 1;
        }
        several |= count > 1;
        if long_lines && several {
            return fails(ORDER);
        }
        if line.len() > content.len() + 1 {
            set_in = set_in.or(Some(number));
        }
    }
    match set_in {
        Some(number) if !several => Some(Err(problem(number, GAPS))),
        _ => (out.len() > 0).then(|| Ok(out.into_bytes())),
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
                "sg3_utils",
                " 00     72 01 00 1d 00 00 00 0e  41 42 43 44 20 61 62 20    r.......ABCD ab \n \
                  10     50 0a                                               P.\n",
            ),
            (
                "nvme",
                "       0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f\n\
                 0000: 72 01 00 1d 00 00 00 0e 41 42 43 44 20 61 62 20 \"r.......ABCD.ab.\"\n\
                 0010: 50 0a \"P.\"\n",
            ),
            (
                "Wireshark",
                "0000   72 01 00 1d 00 00 00 0e 41 42 43 44 20 61 62 20   r.......ABCD ab \n\
                 0010   50 0a                                             P.\n",
            ),
            (
                "od -A d",
                "0000000 72 01 00 1d 00 00 00 0e 41 42 43 44 20 61 62 20\n0000016 50 0a\n0000018\n",
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
            assert_eq!(read_input(text.as_bytes()).as_deref(), Ok(SAMPLE), "{name}");
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
    fn a_dump_grows_to_4_mib_and_no_further() {
        let largest = "# far\n3fffff: 01\n";
        assert_eq!(read(largest).len(), 4 << 20);
        let steps: String = (0..0x40).map(|i| format!("{:x}: 00\n", i << 20)).collect();
        let repeated = format!(
            "00000000  {}  {}  |{}|\n*\n40000000\n",
            ["00"; 8].join(" "),
            ["00"; 8].join(" "),
            ".".repeat(16)
        );
        for text in [
            "# far\n400000: 01\n",
            &steps,
            &repeated,
            "0: 00\nffffffffffffffff: 00\n",
        ] {
            let error = read_input(text.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("4 MiB"), "{error}: {text:.40}");
        }
        let error = read_input("00".repeat((4 << 20) + 1).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("4 MiB"), "{error}");
    }

    #[test]
    fn text_without_a_dump_is_an_error() {
        for text in [
            "hello world",
            "# drivethru\n\nReads the drive *behind* a bridge.\n",
            "edition = \"2024\"\n",
            "\n",
            "{\"celsius\": 41}",
            "fn main() { 0x12 }",
            "gr\u{fc}n\n",
            "/dev/sdc:\n readahead = 256 (on)\n",
        ] {
            let error = read_input(text.as_bytes()).unwrap_err();
            assert_eq!(error, DecodeError::Text, "{text}");
        }
    }

    #[test]
    fn gaps_are_zero_only_in_our_own_dumps() {
        assert_eq!(
            read("# ours\n0000: 01 02\n0008: 03\n"),
            [1, 2, 0, 0, 0, 0, 0, 0, 3]
        );
        assert_eq!(read("0000: 01 02\n0007: 03\n"), [1, 2, 0, 0, 0, 0, 0, 3]);
        let row = ["41"; 16].join(" ");
        for text in [
            format!("0000000 {row}\n0000100 {row}\n"),
            format!("00000000: {row}  AAAAAAAAAAAAAAAA\n00000020: {row}  AAAAAAAAAAAAAAAA\n"),
            format!("00000010  {row}  |AAAAAAAAAAAAAAAA|\n"),
            format!("some header\n0000: {row}\n0040: {row}\n"),
            // Contiguous in decimal.
            format!("0000: {row}\n0016: {row}\n"),
        ] {
            assert!(read_input(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn characters_that_are_not_those_of_the_bytes_are_noticed() {
        let changed = "00000000: 7201 4143  r.AB\n";
        let error = read_input(changed.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("characters"), "{error}");
        assert_eq!(read("00000000: 7201 4142  r.AB\n"), b"r\x01AB");
        assert_eq!(read("00000000: 0172 4241  r.AB\n"), b"r\x01AB");
        assert_eq!(read("00000000: 23 7c 20 20  #|  \n"), b"#|  ");
    }

    #[test]
    fn words_end_where_the_last_line_says() {
        assert_eq!(read("0000000 457f 004c\n0000003\n"), b"\x7fEL");
        assert_eq!(read("0000000 464c457f 00000002\n0000005\n"), b"\x7fELF\x02");
        assert!(read_input(b"0000000 457f 004c\n").is_err());
    }

    #[test]
    fn c_arrays_are_read_with_what_stands_around_them() {
        let array = "unsigned char a16[] = {\n  0x7f, 0x45,\n  10\n};\nunsigned int a16_len = 3;\n";
        assert_eq!(read(array), [0x7f, 0x45, 10]);
        for wrong in [
            array.replace("= 3", "= 4"),
            array.replace("unsigned char", "uint16_t"),
            array.replace("10", "010"),
            array.replace("10", "0x100"),
            format!("{array}{array}"),
            "0x72 10 0x1d".to_owned(),
        ] {
            assert!(read_input(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn where_offsets_can_be_read_in_two_ways_nothing_is_guessed() {
        let zeroes = ["0000"; 8].join(" ");
        let text = format!("0000000 {zeroes}\n*\n0000200\n");
        let error = read_input(text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("radix"), "{error}");
        // od alone writes single bytes like this, and 1000 is no multiple of 16.
        let zeroes = ["00"; 16].join(" ");
        assert_eq!(read(&format!("0000000 {zeroes}\n*\n0001000\n")).len(), 512);
        assert_eq!(read(&format!("0000000 {zeroes}\n*\n0000512\n")).len(), 512);
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
        assert_eq!(read(""), b"");
    }
}
