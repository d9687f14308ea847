//! What is drawn so far, and the few shapes of which figures consist.

use std::fmt::Write;

use super::colours;
use crate::text::lines;

/// Width of a figure: readable on a page of 700 pixels without being scaled.
pub(super) const WIDTH: f64 = 700.0;
/// Around everything.
pub(super) const PADDING: f64 = 12.0;
/// A line of text.
pub(super) const TEXT: f64 = 18.0;
/// An upper estimate of the mean width of letters at 13 px.
pub(super) const LETTER: f64 = 7.4;
/// An upper estimate of the mean width of the title's letters.
pub(super) const TITLE_LETTER: f64 = 9.0;

/// What was drawn so far, and how far down.
#[derive(Default)]
pub(super) struct Canvas {
    pub(super) svg: String,
    pub(super) height: f64,
}

impl Canvas {
    /// Lines of text across the figure, below everything so far.
    pub(super) fn paragraph(&mut self, text: &str, class: &str, letter: f64) {
        let columns = ((WIDTH - 2.0 * PADDING) / letter) as usize;
        for line in lines(text, columns) {
            self.height += TEXT;
            let line = cut(&line, columns);
            self.text(PADDING, self.height, "start", class, &line);
        }
    }

    /// Text whose baseline starts, centres or ends at a place.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        );
    }

    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        let _ = writeln!(
            self.svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        );
    }

    /// A diamond, the sign of published values.
    pub(super) fn diamond(&mut self, x: f64, y: f64) {
        let _ = writeln!(self.svg, "<path d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\" class=\"d\"/>", y - 5.0);
    }

    pub(super) fn into_svg(self, title: &str) -> String {
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
pub(super) fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let kept: String = text.chars().take(characters.saturating_sub(1)).collect();
    kept + "…"
}

pub(super) fn width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
