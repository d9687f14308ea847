//! Tables in Markdown.

use std::fmt::Write;

use crate::stats;

/// Begins a table: the title of its first column, and those of the others, which are numbers.
pub(crate) fn begin_table(text: &mut String, first: &str, others: &[impl AsRef<str>]) {
    row(text, first, others);
    row(text, "---", &vec!["---:"; others.len()]);
}

pub(crate) fn row(text: &mut String, head: &str, fields: &[impl AsRef<str>]) {
    let fields: Vec<&str> = fields.iter().map(AsRef::as_ref).collect();
    let _ = writeln!(text, "| {head} | {} |", fields.join(" | "));
}

/// A reason instead of figures.
pub(crate) fn failed_row(text: &mut String, head: &str, why: &str) {
    row(text, head, &[format!("failed: {why}")]);
}

/// With so many decimal places.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

/// How far values are apart, in percent of their median.
pub(crate) fn spread(values: &[f64]) -> String {
    number(stats::spread(values).map(|spread| spread * 100.0), 0) + " %"
}
