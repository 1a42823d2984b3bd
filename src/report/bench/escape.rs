//! Untrusted strings in each kind of document.

use std::fmt::Write;

use crate::text::for_terminal;

/// For XML and HTML, as text or in a quoted attribute. Control characters and the like are shown, not sent.
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in for_terminal(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// For a line or a table cell of Markdown (CommonMark with tables): nothing in it is markup, a link or HTML.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in for_terminal(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // An address would be made a link.
            ':' if out.ends_with("http") || out.ends_with("https") => out.push_str("&#58;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// JSON whose strings hold nothing that a page, a terminal or an editor could act on: such characters only ever stand in
/// strings, where `\u` escapes mean the same.
pub fn json(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        let hidden = matches!(c, '<' | '>' | '&' | '\u{7f}'..='\u{9f}')
            || (!c.is_ascii() && for_terminal(c.encode_utf8(&mut [0; 4])).starts_with('\\'));
        if hidden {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// A part of a file name: letters, digits, `.`, `_` and `-`, never hidden, never empty.
pub fn file_name(text: &str) -> String {
    let name: String = text
        .chars()
        .take(64)
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
                c
            } else {
                '-'
            }
        })
        .collect();
    let name = name.trim_matches(['.', '-']);
    if name.is_empty() {
        "run".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_strings_stay_strings() {
        let hostile = "</script><b>\"'&\u{1b}[31m\u{202e}\u{200f}\u{61c}\n|*_`";
        assert_eq!(
            xml(hostile),
            "&lt;/script&gt;&lt;b&gt;&quot;&#39;&amp;\\u{1b}[31m\\u{202e}\\u{200f}\\u{61c}\\u{a}|*_`"
        );
        assert!(!markdown(hostile).contains(['<', '\n', '\u{1b}']));
        assert!(markdown("a|b").contains("\\|"));
        assert!(!markdown("see https://x.y").contains("https:"));
        let document = serde_json::to_string(hostile).expect("JSON");
        let safe = json(&document);
        assert!(!safe.contains(['<', '>', '&', '\u{202e}', '\u{200f}', '\u{1b}']));
        assert_eq!(serde_json::from_str::<String>(&safe).expect("JSON"), hostile);
    }

    #[test]
    fn names_of_files_stay_in_their_directory() {
        assert_eq!(file_name("../../etc/passwd"), "etc-passwd");
        assert_eq!(file_name("mix 4k 70/30"), "mix-4k-70-30");
        assert_eq!(file_name("\u{1b}"), "run");
    }
}
