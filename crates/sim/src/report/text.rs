//! A report for a terminal: each figure as a table, a column for each line.

use std::fmt::Write;

use super::contents::{Figure, Report};
use super::number::brief;

pub(super) fn render(report: &Report) -> String {
    let mut text = format!("{}: {}\n", report.name, report.title);
    for paragraph in &report.words {
        let _ = write!(text, "\n{}", wrapped(paragraph));
    }
    for fit in &report.fits {
        let rows = fit
            .points
            .iter()
            .map(|point| vec![point.what.clone(), brief(point.published), brief(point.ours)]);
        let head = [format!("trace {}", fit.trace), "published".into(), "ours".into()];
        let _ = write!(text, "\n{}{}", table(&head, rows), wrapped(&format!("Assumed: {}.", fit.assumed)));
    }
    if let Some(statistics) = &report.statistics {
        let rows = statistics.coverage.iter().map(|point| {
            vec![format!("{:.0} %", 100.0 * point.share), brief(point.bytes as f64 / f64::from(1 << 20))]
        });
        let head = ["requests for files that".into(), "MiB of memory cover".into()];
        let _ = write!(text, "\n{}", table(&head, rows));
    }
    for figure in &report.figures {
        let _ = write!(text, "\n{} ({})\n{}", figure.title, figure.y, figure_table(figure));
    }
    if !report.claims.is_empty() {
        text.push('\n');
    }
    for claim in &report.claims {
        let sign = if claim.holds { "holds   " } else { "does NOT" };
        let _ = writeln!(text, "{sign}  published: {}\n          here:      {}", claim.published, claim.ours);
        if !claim.note.is_empty() {
            let _ = writeln!(text, "          why:       {}", claim.note);
        }
    }
    text
}

fn figure_table(figure: &Figure) -> String {
    let mut xs: Vec<f64> =
        figure.lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let every = xs.len().div_ceil(ROWS_MAX);
    let head: Vec<String> =
        std::iter::once(figure.x.clone()).chain(figure.lines.iter().map(|line| line.name.clone())).collect();
    let rows = xs.into_iter().step_by(every.max(1)).map(|x| {
        let cell = |points: &[(f64, f64)]| {
            points.iter().find(|point| point.0 == x).map_or(String::new(), |point| brief(point.1))
        };
        let x_cell = match figure.x_names.get(x as usize) {
            Some(name) => name.clone(),
            None if x.fract() == 0.0 => format!("{x:.0}"),
            None => brief(x),
        };
        std::iter::once(x_cell).chain(figure.lines.iter().map(|line| cell(&line.points))).collect()
    });
    table(&head, rows)
}

/// Of longer curves some points are shown; the page and the CSV file have all.
const ROWS_MAX: usize = 24;

/// The first column to the left, all others to the right.
fn table(head: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(rows).collect();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..head.len()).filter_map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(line, "  {cell:width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Broken into lines that are easily read.
fn wrapped(paragraph: &str) -> String {
    const COLUMNS: usize = 96;
    let (mut text, mut column) = (String::new(), 0);
    for word in paragraph.split_whitespace() {
        let len = word.chars().count();
        if column > 0 && column + 1 + len > COLUMNS {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += len;
    }
    text.push('\n');
    text
}
