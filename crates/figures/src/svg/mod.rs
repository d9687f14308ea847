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
mod canvas;
mod colours;
mod heat;
mod legend;
mod plot;
mod scale;

use self::canvas::{Canvas, TITLE_LETTER};
use crate::figure::{Figure, FigureKind};

pub(crate) use self::canvas::escaped;

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
