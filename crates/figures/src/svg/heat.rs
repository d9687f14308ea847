//! A heat map: a row for each line, a column for each place on the horizontal axis, a number in each cell.

use std::fmt::Write;

use super::axes;
use super::canvas::{Canvas, LETTER, PADDING, TEXT, WIDTH, cut, escaped, width};
use crate::figure::{Datum, Figure, Line};
use crate::number::short;

/// Height of a row.
const ROW: f64 = 32.0;
/// Names of rows that are longer are cut.
const ROW_NAME_MAX: usize = 28;
/// The palest and the deepest colour, as opacity: with these, numbers are readable on both.
const OPACITY: (f64, f64) = (0.08, 0.6);

pub(super) fn draw(canvas: &mut Canvas, figure: &Figure) {
    let medians = || figure.lines.iter().flat_map(Line::numbers).map(|(_, interval)| interval.median);
    let least = medians().fold(f64::INFINITY, f64::min);
    let most = medians().fold(f64::NEG_INFINITY, f64::max);
    let deeper = if least < most { "; the deeper the colour, the more" } else { "" };
    canvas.paragraph(&format!("{}{deeper}", figure.y.caption()), "", LETTER);
    canvas.paragraph(&figure.by, "", LETTER);
    let names: Vec<String> = figure.lines.iter().map(|line| cut(&line.name, ROW_NAME_MAX)).collect();
    let left = PADDING + names.iter().map(|name| width(name)).fold(0.0, f64::max) + LETTER;
    let (right, xs) = (WIDTH - PADDING, figure.xs());
    let column = (right - left) / xs.len().max(1) as f64;
    canvas.height += LETTER;
    for (line, name) in figure.lines.iter().zip(names) {
        let middle = canvas.height + ROW / 2.0 + 4.0;
        canvas.text(left - LETTER, middle, "end", "", &name);
        for (at, &x) in xs.iter().enumerate() {
            let datum = line.at(x);
            let share = datum
                .and_then(Datum::number)
                .map(|interval| if least < most { (interval.median - least) / (most - least) } else { 0.0 });
            let cell = (left + at as f64 * column, canvas.height, column);
            box_of(canvas, cell, share, datum.and_then(Datum::reason));
            let text = datum.map(cell_text).unwrap_or_default();
            if width(&text) <= column {
                canvas.text(cell.0 + column / 2.0, middle, "middle", "", &text);
            }
        }
        canvas.height += ROW;
    }
    canvas.height += TEXT;
    let letters = (column / LETTER) as usize;
    for (at, &x) in xs.iter().enumerate() {
        let centre = left + (at as f64 + 0.5) * column;
        canvas.text(centre, canvas.height, "middle", "", &cut(&figure.x.tick(x), letters));
    }
    axes::caption(canvas, &figure.x.caption(), (left, right));
}

fn cell_text(datum: &Datum) -> String {
    match datum {
        Datum::Number(interval) => short(interval.median),
        _ => datum.sign().to_owned(),
    }
}

fn box_of(canvas: &mut Canvas, (x, y, column): (f64, f64, f64), share: Option<f64>, why: Option<&str>) {
    let (class, opacity) = match share {
        Some(share) => ("h", OPACITY.0 + share * (OPACITY.1 - OPACITY.0)),
        None => ("x", 1.0),
    };
    let _ = writeln!(
        canvas.svg,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" class=\"{class}\" fill-opacity=\"{opacity:.2}\">\
         <title>{}</title></rect>",
        x + 1.0,
        y + 1.0,
        (column - 2.0).max(1.0),
        ROW - 2.0,
        escaped(why.unwrap_or_default())
    );
}
