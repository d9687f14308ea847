//! Listings of directories without an index: only entries that a client can request.

mod contents;
mod html;
mod json;

use baton_buf::Slice;

use crate::disk::DiskError;
use crate::tree::Tree;

/// The listing of a directory, made for one request.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The page or the JSON document.
    pub body: Slice,
    /// Complete lines of a head, each with its CRLF: media type and `Vary`.
    pub fields: Vec<u8>,
}

/// Lists the directory at `path`, relative to the root: empty or with a '/' at its end. May wait for the
/// disk. `as_json`: as JSON rather than HTML.
pub(crate) fn list(tree: &Tree, path: &[u8], as_json: bool) -> Result<Listed, DiskError> {
    let contents = contents::read(tree, path)?;
    let (media_type, document) = if as_json {
        ("application/json", json::document(&contents))
    } else {
        ("text/html; charset=utf-8", html::document(&contents))
    };
    let fields = format!("Content-Type: {media_type}\r\nVary: Accept\r\n").into_bytes();
    Ok(Listed { body: document.into_bytes().into(), fields })
}
