//! The legend: below the plot, item after item, as many in a row as have room.

use std::fmt::Write;

use super::canvas::{Canvas, LETTER, PADDING, TEXT, WIDTH, cut, width};
use super::colours::{COLOURS, DASHES};
use crate::figure::Published;

/// The sign in front of an item's text.
const SIGN: f64 = 28.0;
/// Between two items.
const BETWEEN: f64 = 18.0;

pub(super) struct Legend {
    x: f64,
}

impl Legend {
    /// Begins below everything so far.
    pub(super) fn new(canvas: &mut Canvas) -> Self {
        canvas.height += TEXT + 4.0;
        Self { x: PADDING }
    }

    /// The place of an item's sign; its text is to the right.
    fn place(&mut self, canvas: &mut Canvas, text: &str, class: &str) -> (f64, f64) {
        let text = cut(text, ((WIDTH - 2.0 * PADDING - SIGN) / LETTER) as usize);
        let needed = SIGN + width(&text);
        if self.x + needed > WIDTH - PADDING && self.x > PADDING {
            self.x = PADDING;
            canvas.height += TEXT;
        }
        let (x, y) = (self.x, canvas.height);
        canvas.text(x + SIGN, y, "start", class, &text);
        self.x += needed + BETWEEN;
        (x, y - 4.0)
    }

    /// A line, or the bars of a colour.
    pub(super) fn line(&mut self, canvas: &mut Canvas, number: usize, text: &str, dash: &str, is_bar: bool) {
        let (x, y) = self.place(canvas, text, "");
        let _ = match is_bar {
            true => writeln!(
                canvas.svg,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"20\" height=\"10\" class=\"s{} f\"/>",
                y - 5.0,
                number % COLOURS
            ),
            false => writeln!(
                canvas.svg,
                "<path d=\"M{x:.1} {y:.1}h22\" class=\"s{} l\" stroke-dasharray=\"{dash}\"/>",
                number % COLOURS
            ),
        };
    }

    /// Published values, with the letter that stands beside them in the plot.
    pub(super) fn published(&mut self, canvas: &mut Canvas, letter: &str, published: &Published) {
        let (x, y) = self.place(canvas, &published.name, "p");
        canvas.diamond(x + 7.0, y);
        canvas.text(x + 15.0, y + 4.0, "start", "p", letter);
    }
}

/// The dashes of a line: those of later rounds of colours differ, and one that coincides lets the other show through.
pub(super) fn dash(number: usize, coincides: bool) -> &'static str {
    if coincides { "7 7" } else { DASHES[number / COLOURS % DASHES.len()] }
}
