//! A report for a terminal: each figure as a table, a column for each line.

use std::fmt::Write;

use crate::report::Report;
use crate::table::Table;

impl Report {
    /// For a terminal.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.title);
        for paragraph in &self.words {
            let _ = write!(text, "\n{}", wrapped(paragraph));
        }
        for table in self.tables.iter().filter(|table| !table.is_long) {
            let _ = write!(text, "\n{}", table.to_text());
        }
        for figure in &self.figures {
            let mut table = figure.table();
            let every = table.rows.len().div_ceil(ROWS_MAX).max(1);
            table.rows = table.rows.into_iter().step_by(every).collect();
            let _ = write!(text, "\n{}", table.to_text());
        }
        if !self.claims.is_empty() {
            text.push('\n');
        }
        for claim in &self.claims {
            let (word, why) = (claim.verdict.word(), claim.verdict.reason());
            let word = if claim.holds() { word.to_owned() } else { word.to_uppercase() };
            let _ = writeln!(
                text,
                "{word:<10}  published: {}\n            here:      {}",
                claim.published, claim.ours
            );
            if !why.is_empty() {
                let _ = writeln!(text, "            why:       {why}");
            }
        }
        text
    }
}

/// Of longer curves some points are shown; the page has all.
const ROWS_MAX: usize = 24;

impl Table {
    /// For a terminal: the first column to the left, all others to the right.
    pub fn to_text(&self) -> String {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| {
            all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut text = String::new();
        if !self.title.is_empty() {
            let _ = writeln!(text, "{}", self.title);
        }
        for row in all() {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let _ = match column {
                    0 => write!(line, "  {cell:width$}"),
                    _ => write!(line, "  {cell:>width$}"),
                };
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        if !self.note.is_empty() {
            text.push_str(&wrapped(&self.note));
        }
        text
    }
}

/// Broken into lines that are easily read.
fn wrapped(paragraph: &str) -> String {
    lines(paragraph, COLUMNS).join("\n") + "\n"
}

const COLUMNS: usize = 96;

/// Broken at spaces into lines of so many characters; a longer word has a line of its own.
pub(crate) fn lines(paragraph: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in paragraph.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
