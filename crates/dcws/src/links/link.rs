//! A link, and what its page does with it.

use std::ops::Range;

/// A link to a document of the same site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The bytes of the page that are replaced if the document is away: the address without query and fragment.
    pub place: Range<usize>,
    /// The document: its path as [`decode_path`](baton_http::decode_path) leaves it, without a slash in front.
    pub document: Vec<u8>,
    /// What the page does with it.
    pub used: Use,
}

/// What a page does with a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The link leads there or shows it: the same from any origin.
    Moves,
    /// The page needs the document from its own origin: scripts, style sheets, frames, fonts, `integrity`, `crossorigin`,
    /// `download`. The document stays at home.
    Pins,
}
