//! Axes of a plot: grid, numbers or names, what is measured.

use super::canvas::{Canvas, LETTER, PADDING, TEXT, WIDTH, cut, width};
use super::scale::PlotScale;
use crate::figure::{Axis, Figure, Line, Scale};
use crate::text::lines;

/// The two axes of a plot.
pub(super) struct Axes {
    pub(super) xs: PlotScale,
    pub(super) ys: PlotScale,
}

/// Height of a plot.
const PLOT: f64 = 300.0;
/// Between an axis and its numbers.
const GAP: f64 = 6.0;
/// Names that are longer are cut.
const NAME_MAX: usize = 24;
/// What a tilted name takes of its length aside and down: the cosine and the sine of 35°.
const TILTED: (f64, f64) = (0.82, 0.58);

/// Draws the axes for the data of a figure below everything so far.
pub(super) fn draw(canvas: &mut Canvas, figure: &Figure) -> Axes {
    canvas.paragraph(&figure.y.caption(), "", LETTER);
    let top = canvas.height + GAP + 4.0;
    let bottom = top + PLOT;
    let ours = || figure.lines.iter().flat_map(Line::numbers);
    let theirs = || figure.published.iter().flat_map(|line| line.points.iter().copied());
    let is_logarithmic = |axis: &Axis| axis.scale == Scale::Logarithmic;

    let values = ours().flat_map(|(_, interval)| [interval.low, interval.median, interval.high]);
    let values = values.chain(theirs().map(|point| point.1));
    let zero = (!is_logarithmic(&figure.y)).then_some(0.0);
    let ys = PlotScale::new(values.chain(zero), is_logarithmic(&figure.y), (bottom, top)).up_to_a_tick();

    let labels: Vec<(f64, String)> = ys.ticks().into_iter().map(|tick| (tick, figure.y.tick(tick))).collect();
    let widest = labels.iter().map(|(_, label)| width(label)).fold(0.0, f64::max);
    let mut left = PADDING + widest + GAP;
    let mut right = WIDTH - PADDING - 3.0 * LETTER;

    let names: Vec<String> = match &figure.x.scale {
        Scale::Named(names) => names.iter().map(|name| cut(name, NAME_MAX)).collect(),
        _ => Vec::new(),
    };
    let longest = names.iter().map(|name| width(name)).fold(0.0, f64::max);
    let is_tilted = longest > (right - left) / names.len().max(1) as f64 - LETTER;
    if is_tilted {
        // The first name ends below the middle of its place, and begins within the box.
        left = left.max(PADDING + longest * TILTED.0);
    } else {
        right = WIDTH - PADDING;
    }
    // Names have room on both sides, for bars.
    let beside = (!names.is_empty()).then_some([-0.5, names.len() as f64 - 0.5]);
    let places = figure.xs().into_iter().chain(beside.into_iter().flatten());
    let last_label = figure.x.tick(figure.xs().last().copied().unwrap_or_default());
    if names.is_empty() {
        right = WIDTH - PADDING - width(&last_label) / 2.0;
    }
    let xs = PlotScale::new(places, is_logarithmic(&figure.x), (left, right));

    for (tick, label) in labels {
        let y = ys.place(tick);
        canvas.line((left, y), (right, y), "g");
        canvas.text(left - GAP, y + 4.0, "end", "", &label);
    }
    let ticks: Vec<(f64, String)> = if names.is_empty() {
        xs.ticks().into_iter().map(|tick| (tick, figure.x.tick(tick))).collect()
    } else {
        names.into_iter().enumerate().map(|(at, name)| (at as f64, name)).collect()
    };
    for (tick, label) in ticks {
        let x = xs.place(tick);
        canvas.line((x, bottom), (x, bottom + 5.0), "a");
        if is_tilted {
            canvas.tilted(x, bottom + TEXT, &label);
        } else {
            canvas.text(x, bottom + TEXT + 2.0, "middle", "", &label);
        }
    }
    canvas.line((left, top), (left, bottom), "a");
    canvas.line((left, ys.place(0.0)), (right, ys.place(0.0)), "a");
    canvas.height = bottom + if is_tilted { TEXT + longest * TILTED.1 } else { TEXT + 2.0 };
    caption(canvas, &figure.x.caption(), (left, right));
    Axes { xs, ys }
}

/// What the horizontal axis measures, in the middle below it.
pub(super) fn caption(canvas: &mut Canvas, text: &str, (left, right): (f64, f64)) {
    for line in lines(text, ((right - left) / LETTER) as usize) {
        canvas.height += TEXT;
        canvas.text(f64::midpoint(left, right), canvas.height, "middle", "", &line);
    }
}

impl Canvas {
    /// Text that ends at a place, from below.
    fn tilted(&mut self, x: f64, y: f64, text: &str) {
        use std::fmt::Write;
        let text = super::canvas::escaped(text);
        let _ = writeln!(
            self.svg,
            "<text transform=\"translate({x:.1} {y:.1})rotate(-35)\" text-anchor=\"end\">{text}</text>"
        );
    }
}
