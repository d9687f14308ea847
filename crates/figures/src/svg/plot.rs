//! Lines and bars with whiskers, crosses where there is no number, diamonds where something is published.

use std::fmt::Write;

use super::axes::{self, Axes};
use super::canvas::{Canvas, WIDTH, escaped};
use super::colours::COLOURS;
use super::legend::{Legend, dash};
use crate::figure::{Datum, Figure, FigureKind, Line, Published};
use crate::interval::Interval;

/// Lines of more points are drawn without dots.
const DOTS_MAX: usize = 40;
/// The share of a name's place that its bars take.
const BARS: f64 = 0.8;
/// Half of a whisker's end.
const END: f64 = 4.0;

pub(super) fn draw(canvas: &mut Canvas, figure: &Figure) {
    let axes = axes::draw(canvas, figure);
    let below = canvas.height;
    let is_bars = figure.kind == FigureKind::Bars;
    let mut legend = Legend::new(canvas);
    for (number, line) in figure.lines.iter().enumerate() {
        let same = figure.lines[..number].iter().find(|other| !is_bars && coincide(line, other, &axes));
        let dash = dash(number, same.is_some());
        let _ = writeln!(canvas.svg, "<g class=\"s{}\">", number % COLOURS);
        if is_bars {
            bars(canvas, line, number, figure.lines.len(), &axes);
        } else {
            curve(canvas, line, dash, &axes);
        }
        canvas.svg.push_str("</g>\n");
        let text = match same {
            Some(same) => format!("{}, the same as {}", line.name, same.name),
            None => line.name.clone(),
        };
        if !text.is_empty() {
            legend.line(canvas, number, &text, dash, is_bars);
        }
    }
    debug_assert!(canvas.height >= below, "the legend is below the plot");
    for (letter, published) in LETTERS.iter().cycle().zip(&figure.published) {
        let letter = if figure.published.len() > 1 { letter } else { "" };
        marks(canvas, published, letter, &axes);
        if !published.name.is_empty() {
            legend.published(canvas, letter, published);
        }
    }
}

/// What tells published values apart.
const LETTERS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "m"];

/// Whether readers could not tell two curves apart.
fn coincide(one: &Line, other: &Line, axes: &Axes) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() < 1.0;
    let (one, other): (Vec<_>, Vec<_>) = (one.numbers().collect(), other.numbers().collect());
    !one.is_empty()
        && one.len() == other.len()
        && one.iter().zip(&other).all(|(a, b)| {
            near(axes.xs.place(a.0), axes.xs.place(b.0))
                && near(axes.ys.place(a.1.median), axes.ys.place(b.1.median))
        })
}

fn curve(canvas: &mut Canvas, line: &Line, dash: &str, axes: &Axes) {
    for run in line.points.split(|point| finite(&point.datum).is_none()).filter(|run| run.len() > 1) {
        let places = run.iter().filter_map(|point| {
            Some(format!("{:.1},{:.1}", axes.xs.place(point.x), axes.ys.place(point.datum.number()?.median)))
        });
        let _ = writeln!(
            canvas.svg,
            "<polyline points=\"{}\" class=\"l\" stroke-dasharray=\"{dash}\"/>",
            places.collect::<Vec<_>>().join(" ")
        );
    }
    for point in &line.points {
        let x = axes.xs.place(point.x);
        let Some(interval) = finite(&point.datum) else {
            cross(canvas, x, &point.datum, axes);
            continue;
        };
        if line.points.len() <= DOTS_MAX {
            let y = axes.ys.place(interval.median);
            let _ = writeln!(canvas.svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" class=\"f\"/>");
        }
        whisker(canvas, x, &interval, "w", axes);
    }
}

/// A bar at each name, those of all lines side by side.
fn bars(canvas: &mut Canvas, line: &Line, number: usize, count: usize, axes: &Axes) {
    let begin = number as f64 / count as f64 - 0.5;
    for point in &line.points {
        let left = axes.xs.place(point.x + BARS * begin);
        let right = axes.xs.place(point.x + BARS * (begin + 1.0 / count as f64));
        let middle = f64::midpoint(left, right);
        let Some(interval) = finite(&point.datum) else {
            cross(canvas, middle, &point.datum, axes);
            continue;
        };
        let (zero, end) = (axes.ys.place(0.0), axes.ys.place(interval.median));
        let _ = writeln!(
            canvas.svg,
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" class=\"f\"/>",
            zero.min(end),
            (right - left - 1.0).max(1.0),
            (zero - end).abs()
        );
        whisker(canvas, middle, &interval, "wb", axes);
    }
}

/// The number of a datum, if it can be drawn.
fn finite(datum: &Datum) -> Option<Interval> {
    datum
        .number()
        .filter(|interval| [interval.low, interval.median, interval.high].iter().all(|y| y.is_finite()))
}

fn whisker(canvas: &mut Canvas, x: f64, interval: &Interval, class: &str, axes: &Axes) {
    if !interval.has_spread() {
        return;
    }
    let (low, high) = (axes.ys.place(interval.low), axes.ys.place(interval.high));
    canvas.line((x, low), (x, high), class);
    for end in [low, high] {
        canvas.line((x - END, end), (x + END, end), class);
    }
}

/// A cross on the horizontal axis, whose reason a pointer shows.
fn cross(canvas: &mut Canvas, x: f64, datum: &Datum, axes: &Axes) {
    let why = datum.reason().unwrap_or("the number is not finite");
    let _ = writeln!(
        canvas.svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" class=\"c\">×<title>{}</title></text>",
        axes.ys.from - 3.0,
        escaped(why)
    );
}

fn marks(canvas: &mut Canvas, published: &Published, letter: &str, axes: &Axes) {
    let places: Vec<(f64, f64)> =
        published.points.iter().map(|&(x, y)| (axes.xs.place(x), axes.ys.place(y))).collect();
    if places.len() > 1 {
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(canvas.svg, "<polyline points=\"{}\" class=\"p\"/>", path.join(" "));
    }
    for (x, y) in places {
        canvas.diamond(x, y);
        if !letter.is_empty() {
            // Towards the middle, where nothing but data is in the way.
            let (x, anchor) = if x > WIDTH / 2.0 { (x - 8.0, "end") } else { (x + 8.0, "start") };
            canvas.text(x, y + 14.0, anchor, "p", letter);
        }
    }
}
