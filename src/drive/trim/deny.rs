//! Drives that lose data or hang when they are trimmed. Facts with their source; nothing is listed on suspicion.

/// A pattern of model names and what is known against trimming them.
struct Denied {
    /// The model starts with this.
    model: &'static str,
    why: &'static str,
}

const DENIED: &[Denied] = &[
    Denied {
        model: "SuperSSpeed S238",
        why: "it corrupts data when trimmed (Linux, libata quirk table: NOTRIM)",
    },
    Denied {
        model: "M88V29",
        why: "it stops working when trimmed (Linux, libata quirk table: NOTRIM)",
    },
];

/// Why this model must not be trimmed, if there is a reason.
pub fn denied(model: &str) -> Option<&'static str> {
    let model = model.trim();
    DENIED.iter().find(|d| model.starts_with(d.model)).map(|d| d.why)
}

#[cfg(test)]
mod tests {
    use super::denied;

    #[test]
    fn only_what_is_listed_is_denied() {
        assert!(denied("SuperSSpeed S238 ").is_some());
        assert!(denied("Samsung SSD 850").is_none());
        assert!(denied("").is_none());
    }
}
