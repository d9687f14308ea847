//! Reports of runs: figures, claims and numbers, as text, JSON, CSV, a page and a table of claims.

mod csv;
mod html;
mod markdown;
mod svg;
mod text;

use serde::Serialize;

use crate::model::Outcome;
use crate::trace::{Fit, Statistics};

pub use svg::render as svg;

/// A report of several runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// As on the command line.
    pub name: String,
    /// A line.
    pub title: String,
    /// Its introduction, in paragraphs.
    pub words: Vec<String>,
    /// How closely synthetic traces fit the published statistics.
    pub fits: Vec<Fit>,
    /// Statistics of the trace, if there is one.
    pub statistics: Option<Statistics>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Published claims and our results.
    pub claims: Vec<Claim>,
    /// All numbers.
    pub runs: Vec<Run>,
}

/// A run's labels in a report, and its numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// What distinguishes it from others with the same policy and nodes, such as `cpu 2x`.
    pub variant: String,
    /// The numbers.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// A figure: lines over a common axis.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figure {
    /// A name for files.
    pub name: String,
    /// Above the figure.
    pub title: String,
    /// Below the horizontal axis.
    pub x: String,
    /// Label of the vertical axis.
    pub y: String,
    /// Whether equal steps of the horizontal axis are equal factors.
    pub x_is_logarithmic: bool,
    /// Names of 0, 1, 2, … on the horizontal axis, if it is not numeric.
    pub x_names: Vec<String>,
    /// The lines.
    pub lines: Vec<Line>,
    /// Published values.
    pub marks: Vec<Mark>,
}

/// A line of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// In the legend.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// A published value, drawn into a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// Where.
    pub y: f64,
    /// Its text.
    pub label: String,
}

/// A published claim and our result.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// The statement, in our words.
    pub published: String,
    /// Our numbers.
    pub ours: String,
    /// Whether it holds here.
    pub holds: bool,
    /// Why not, if it does not; or what to know if it does.
    pub note: String,
}

impl Claim {
    /// A statement that holds or not; the note is kept if it does not.
    #[must_use]
    pub fn new(published: &str, ours: String, holds: bool, why_not: &str) -> Self {
        let note = if holds { String::new() } else { why_not.to_owned() };
        Self { published: published.to_owned(), ours, holds, note }
    }
}

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

/// A number with as many digits as are worth reading.
pub(crate) fn brief(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 => grouped(value as i64),
        size if size >= 100.0 => grouped(value.round() as i64),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// With a comma between thousands.
fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0 { format!("-{text}") } else { text }
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
