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
    use crate::{Datum, Line};

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
}
