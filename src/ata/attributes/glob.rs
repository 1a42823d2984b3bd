//! Patterns for model names: `?` is any character, `*` any run of characters, `[abc]` one of a set.

/// Whether `text` matches `pattern` as a whole.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    run(&pattern, &text)
}

fn run(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((&'*', rest)) => (0..=text.len()).any(|skip| run(rest, text.get(skip..).unwrap_or_default())),
        Some((&'[', rest)) => {
            let Some(end) = rest.iter().position(|&c| c == ']') else {
                return false;
            };
            let (set, rest) = rest.split_at(end);
            let rest = rest.get(1..).unwrap_or_default();
            matches!(text.split_first(), Some((c, tail)) if set.contains(c) && run(rest, tail))
        }
        Some((&wanted, rest)) => {
            matches!(text.split_first(), Some((&c, tail)) if (wanted == '?' || wanted == c) && run(rest, tail))
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
        assert!(!matches("[ab", "a"));
        assert!(!matches("?", ""));
    }
}
