//! A figure as SVG, in the colours of the reader's scheme.
//!
//! ```text
//!   title
//!   what the vertical axis measures
//!   ┌──────────────────────────────┐
//!   │ lines | bars | cells         │   plot.rs | heat.rs, on axes.rs
//!   └──────────────────────────────┘
//!     names or numbers of the axis, what it measures
//!   ── line   ── line   ◆a published        legend.rs
//! ```
//!
//! Everything is placed from top to bottom with estimated widths of letters, so that nothing is outside the box.

mod axes;
mod colours;
mod heat;
mod legend;
mod plot;
mod scale;

use std::fmt::Write;

use crate::figure::{Figure, FigureKind};
use crate::text::lines;

impl Figure {
    /// As SVG, which needs nothing but itself.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let mut canvas = Canvas::default();
        canvas.paragraph(&self.title, "t", TITLE_LETTER);
        match self.kind {
            FigureKind::Lines | FigureKind::Bars => plot::draw(&mut canvas, self),
            FigureKind::HeatMap => heat::draw(&mut canvas, self),
        }
        canvas.into_svg(&self.title)
    }
}

/// Width of a figure: readable on a page of 700 pixels without being scaled.
const WIDTH: f64 = 700.0;
/// Around everything.
const PADDING: f64 = 12.0;
/// A line of text.
const TEXT: f64 = 18.0;
/// An upper estimate of the mean width of letters at 13 px.
const LETTER: f64 = 7.4;
/// The same of the title's letters.
const TITLE_LETTER: f64 = 9.0;

/// What was drawn so far, and how far down.
#[derive(Default)]
struct Canvas {
    svg: String,
    height: f64,
}

impl Canvas {
    /// Lines of text across the figure, below everything so far.
    fn paragraph(&mut self, text: &str, class: &str, letter: f64) {
        let columns = ((WIDTH - 2.0 * PADDING) / letter) as usize;
        for line in lines(text, columns) {
            self.height += TEXT;
            let line = cut(&line, columns);
            self.text(PADDING, self.height, "start", class, &line);
        }
    }

    /// Text whose baseline starts, centres or ends at a place.
    fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        );
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        let _ = writeln!(
            self.svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        );
    }

    /// A diamond, the sign of published values.
    fn diamond(&mut self, x: f64, y: f64) {
        let _ = writeln!(self.svg, "<path d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\" class=\"d\"/>", y - 5.0);
    }

    fn into_svg(self, title: &str) -> String {
        let height = self.height + PADDING;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"figure\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
             width=\"{WIDTH}\" role=\"img\">\n<title>{}</title>\n<style>{}</style>\n\
             <rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n{}</svg>\n",
            escaped(title),
            colours::STYLE,
            self.svg
        )
    }
}

/// Cut to so many characters, with a sign that it was.
fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let kept: String = text.chars().take(characters.saturating_sub(1)).collect();
    kept + "…"
}

fn width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datum, Interval, Line, example};

    #[test]
    fn a_figure_draws_lines_whiskers_crosses_and_what_is_published() {
        let svg = example::lines().to_svg();
        assert!(svg.contains("Throughput &amp; more"));
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert_eq!(svg.matches("class=\"w\"").count(), 3, "one whisker: a line and two ends");
        assert!(svg.contains("<title>one client had no answer</title>"), "{svg}");
        assert!(svg.contains(">published: 4x<"));
    }

    #[test]
    fn a_heat_map_has_a_cell_for_each_datum_and_shows_what_is_unfair() {
        let svg = example::heat_map().to_svg();
        assert_eq!(svg.matches("class=\"h\"").count(), 3);
        assert_eq!(svg.matches("class=\"x\"").count(), 3, "two without a number, one that was not measured");
        assert!(svg.contains(">cannot<") && svg.contains(">×<"));
    }

    #[test]
    fn lines_that_coincide_say_so() {
        let line = |name: &str, y: f64| Line::exact(name, [(1.0, 1.0), (2.0, y)]);
        let lines = vec![line("a", 400.0), line("b", 400.2), line("c", 300.0)];
        let svg = Figure { lines, ..Figure::default() }.to_svg();
        assert_eq!(svg.matches("the same as").count(), 1);
        assert!(svg.contains("b, the same as a<"), "{svg}");
    }

    #[test]
    fn a_line_breaks_where_a_point_has_no_number() {
        let mut line = Line::exact("a", [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0)]);
        line.points[1].datum = Datum::Failed("the server ended".into());
        let svg = Figure { lines: vec![line], ..Figure::default() }.to_svg();
        assert_eq!(svg.matches("<polyline").count(), 1, "a single point has no line");
        assert_eq!(svg.matches("<circle").count(), 3);
    }

    #[test]
    fn a_figure_without_data_is_drawn() {
        for kind in [FigureKind::Lines, FigureKind::Bars, FigureKind::HeatMap] {
            let svg = Figure { kind, title: "empty".into(), ..Figure::default() }.to_svg();
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
        let mut figure = example::lines();
        figure.lines[0].points[0].datum = Datum::Number(Interval::exact(f64::NAN));
        assert!(!figure.to_svg().contains("NaN"), "what is no number is not drawn");
    }
}
