//! Listings of directories without an index: only entries that a client can request.

mod contents;
mod html;
mod json;
mod view;

use baton_buf::Slice;

use crate::disk::DiskError;
use crate::tree::Tree;

pub use view::View;

/// The listing of a directory, made for one request.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The page or the JSON document.
    pub body: Slice,
    /// Complete lines of a head, each with its CRLF: media type and `Vary`.
    pub fields: Vec<u8>,
}

/// Lists the directory at `path`, relative to the root: empty or with a '/' at its end. May wait for the
/// disk.
pub(crate) fn list(tree: &Tree, path: &[u8], view: View) -> Result<Listed, DiskError> {
    let mut contents = contents::read(tree, path)?;
    contents.entries.sort_unstable_by(|a, b| view.compare(a, b));
    let (media_type, document) = if view.as_json {
        ("application/json", json::document(&contents))
    } else {
        ("text/html; charset=utf-8", html::document(&contents, view))
    };
    let fields = format!("Content-Type: {media_type}\r\nVary: Accept\r\n").into_bytes();
    Ok(Listed { body: document.into_bytes().into(), fields })
}
