//! Prometheus's text format: what all pages of figures write alike.

use std::fmt::Write as _;

/// Begins a family: what it is, and of which kind (`counter`, `gauge`, `histogram`).
pub(super) fn begin(page: &mut String, name: &str, kind: &str, help: &str) {
    let _ = write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

/// A label's value as it stands between quotes.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn values_stay_within_their_quotes_and_line() {
        assert_eq!(super::escaped("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
    }
}
