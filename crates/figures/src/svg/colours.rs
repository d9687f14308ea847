//! Colours, for light and dark schemes, as one style sheet that all figures of a page share.

/// How many lines have a colour of their own; further ones are dashed.
pub(super) const COLOURS: usize = 8;

/// With the colours used up, lines are dashed.
pub(super) const DASHES: [&str; 3] = ["", "6 3", "2 3"];

/// The classes of elements, and the colours in both schemes.
///
/// Colours of lines are those that colour-blind readers can distinguish (Okabe and Ito, 2008), some darker on white and
/// lighter on black, for a contrast of 3 to 1 (WCAG 2.2, 1.4.11).
pub(super) const STYLE: &str = include_str!("figure.css");
