//! Reports of runs: figures, claims and numbers, as text, JSON, CSV, a page and a table of claims.

mod contents;
mod csv;
mod html;
mod markdown;
mod number;
mod svg;
mod text;

pub use contents::{Claim, Figure, Line, Mark, Report, Run};
pub(crate) use number::brief;
pub use svg::render as svg;

impl Report {
    /// For a terminal.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::render(self)
    }

    /// A page that needs nothing but itself.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::render(std::slice::from_ref(self))
    }

    /// A row for each run.
    #[must_use]
    pub fn to_csv(&self) -> String {
        csv::render(&self.runs)
    }

    /// Everything.
    ///
    /// # Errors
    /// Only for a number that JSON cannot express.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

/// Several reports on one page.
#[must_use]
pub fn page(reports: &[Report]) -> String {
    html::render(reports)
}

/// The claims of several reports as a Markdown table, with the reasons where they do not hold.
#[must_use]
pub fn claims_table(reports: &[Report]) -> String {
    markdown::render(reports)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn example() -> Report {
        let mut report = Report { name: "example".into(), title: "A <title>".into(), ..Report::default() };
        report.figures.push(Figure {
            name: "f".into(),
            title: "Throughput & more".into(),
            x: "nodes".into(),
            y: "requests/s".into(),
            lines: vec![
                Line { name: "wrr".into(), points: vec![(1.0, 100.0), (2.0, 200.0)] },
                Line { name: "lard".into(), points: vec![(1.0, 100.0), (2.0, 450.0), (4.0, 1234.5)] },
            ],
            marks: vec![Mark { x: 2.0, y: 400.0, label: "published: 4x".into() }],
            ..Figure::default()
        });
        report.claims.push(Claim::new("four times", "4.5 times".into(), true, "unused"));
        report.claims.push(Claim::new("idle 1 %", "9 %".into(), false, "because"));
        report
    }

    #[test]
    fn numbers_are_brief() {
        let cases = [
            (1_234_567.8, "1,234,568"),
            (999.6, "1,000"),
            (-1234.0, "-1,234"),
            (12.34, "12.3"),
            (0.0, "0"),
            (2.0, "2"),
        ];
        for (value, expected) in cases {
            assert_eq!(brief(value), expected);
        }
    }

    #[test]
    fn text_has_a_row_for_each_x_and_tells_what_does_not_hold() {
        let text = example().to_text();
        let rows: Vec<_> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for expected in ["nodes wrr lard", "1 100 100", "2 200 450", "4 1,235"] {
            assert!(rows.iter().any(|row| row == expected), "{expected} in\n{text}");
        }
        assert!(text.contains("because") && !text.contains("unused"));
    }

    #[test]
    fn a_page_escapes_and_draws() {
        let page = example().to_html();
        assert!(page.contains("A &lt;title&gt;") && page.contains("Throughput &amp; more"));
        assert_eq!(page.matches("<polyline").count(), 2);
        assert!(page.contains("published: 4x"));
    }
}
