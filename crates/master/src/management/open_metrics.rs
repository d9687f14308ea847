//! The metrics page as OpenMetrics 1.0, which differs from Prometheus text by the names of counters' families and the end.

/// Its media type.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether a scraper asks for it. One that takes both gets it, as from other exporters.
pub(crate) fn is_accepted(accept: Option<&[u8]>) -> bool {
    let mut ranges = accept.unwrap_or_default().split(|byte| *byte == b',');
    ranges.any(|range| range.trim_ascii().to_ascii_lowercase().starts_with(b"application/openmetrics-text"))
}

/// A page of Prometheus text as OpenMetrics. Names of counters end with `_total`; their families' do not.
pub(crate) fn of_prometheus(page: &str) -> String {
    let is_counter = |family: &str| page.contains(&format!("# TYPE {family} counter\n"));
    let mut out = String::with_capacity(page.len() + 16);
    for line in page.lines() {
        let described =
            ["# HELP ", "# TYPE "].into_iter().find_map(|word| Some((word, line.strip_prefix(word)?)));
        match described.and_then(|(word, rest)| Some((word, rest.split_once(' ')?))) {
            Some((word, (family, rest))) if is_counter(family) => {
                let name = family.strip_suffix("_total").unwrap_or(family);
                out.extend([word, name, " ", rest]);
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out.push_str("# EOF\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_counters_lose_their_ending() {
        let page = "# HELP a_total A.\n# TYPE a_total counter\na_total 1\n# HELP b B.\n# TYPE b gauge\nb 2\n";
        let expected = "# HELP a A.\n# TYPE a counter\na_total 1\n# HELP b B.\n# TYPE b gauge\nb 2\n# EOF\n";
        assert_eq!(of_prometheus(page), expected);
    }

    #[test]
    fn a_scraper_says_what_it_takes() {
        assert!(is_accepted(Some(b"text/plain;q=0.5, application/openmetrics-text;version=1.0.0;q=0.75")));
        assert!(!is_accepted(Some(b"text/plain;version=0.0.4")) && !is_accepted(None));
    }
}
