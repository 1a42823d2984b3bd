//! Patterns for model names: `?` is any character, `*` any run of characters, `[abc]` one of a set.

/// Whether `text` matches `pattern` as a whole.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    run(pattern.as_bytes(), text.as_bytes())
}

/// Byte by byte: model names are ASCII, anything else was replaced when the field was read.
fn run(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', [])) => true,
        Some((b'*', rest)) => {
            let literal = rest.first().filter(|c| !matches!(c, b'*' | b'?' | b'['));
            (0..=text.len()).any(|skip| {
                let tail = text.get(skip..).unwrap_or_default();
                literal.is_none_or(|c| tail.first() == Some(c)) && run(rest, tail)
            })
        }
        Some((b'[', rest)) => {
            let Some(end) = rest.iter().position(|&c| c == b']') else {
                return false;
            };
            let (set, rest) = rest.split_at(end);
            let rest = rest.get(1..).unwrap_or_default();
            matches!(text.split_first(), Some((c, tail)) if set.contains(c) && run(rest, tail))
        }
        Some((&wanted, rest)) => {
            matches!(text.split_first(), Some((&c, tail)) if (wanted == b'?' || wanted == c) && run(rest, tail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_whole_names() {
        assert!(matches("SAMSUNG SV?[24]1[02]H", "SAMSUNG SV0412H"));
        assert!(!matches("SAMSUNG SV0412H", "SAMSUNG SV0412HX"));
        assert!(matches("Samsung SSD*", "Samsung SSD 860 EVO 1TB"));
        assert!(matches("*", ""));
        assert!(matches("*GB SATA*3", "16GB SATA SSD GB 3"));
        assert!(!matches("*GB SATA", "16GB SAT"));
        assert!(!matches("[ab", "a"));
        assert!(!matches("?", ""));
    }
}
