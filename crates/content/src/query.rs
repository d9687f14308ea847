//! What the cache is asked, and what it answers.

use std::sync::Arc;

use baton_http::{AcceptedCodings, PathRefusal};
use rustix::io::Errno;

use crate::listing::{Listed, View};
use crate::stored::Stored;

/// A request's question to the cache.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The path of the request, raw, beginning with '/'.
    pub path: &'a [u8],
    /// The codings that the client takes.
    pub accepted: AcceptedCodings,
    /// How a listing is to look. Used only by trees that [list](crate::Tree::lists).
    pub view: View,
}

/// What a path leads to.
#[derive(Clone, Debug)]
pub enum Found {
    /// A file.
    File(Arc<Stored>),
    /// A script to run, by its path relative to the root.
    Script(Arc<[u8]>),
    /// The tree's fallback script for a path that does not exist; it gets the requested path.
    Fallback(Arc<[u8]>),
    /// A directory, whose relative links only work with a '/' at the end of the path: the client is sent there.
    AddSlash,
    /// A directory without an index, listed.
    Listing(Listed),
    /// Nothing, or nothing that the client may know of.
    Missing,
    /// Something that the server may not read, a link out of the root, or no file at all (a device, a FIFO, a socket).
    Forbidden,
    /// A path that no name can have.
    Refused(PathRefusal),
    /// A system error: `EMFILE`, `ENFILE`, `EIO`, or `ESTALE` for a file that keeps shrinking while it is read.
    Failed(Errno),
}
