//! Files that an application names instead of sending their bytes (`X-Sendfile`, `X-Accel-Redirect`, `X-ZeroCopy`).
//!
//! Only what lies in the folders that the route allows can be named, and only by names that stay within them: the
//! kernel resolves them beneath the folder, as it does with the paths of clients. The application's fields are kept.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use baton_compress::forget_bytes;
use baton_content::{Found, NeedsDisk, Query, Stored, Tree, View};
use baton_http::origin::ResponseHead;
use baton_http::response::says_no_transform;
use baton_http::{AcceptedCodings, Status, is_same_field};
use baton_response::{Author, Body, Response};
use baton_site::plan::Delegate;

use crate::context::Context;
use crate::job::Job;
use crate::protocol::StreamId;

/// A file that an application named, in a folder that it may name files of.
#[derive(Clone, Debug)]
pub(super) struct NamedFile {
    tree: Arc<Tree>,
    /// The name below the tree's root, written like the path of a request.
    path: Vec<u8>,
}

impl NamedFile {
    /// The file with this absolute path.
    pub(crate) fn by_path(delegate: &Delegate, path: &[u8]) -> Option<Self> {
        delegate.cgi()?.named.iter().find_map(|tree| {
            let root = tree.config().root.as_os_str().as_bytes();
            below(root, path).map(|rest| Self { tree: Arc::clone(tree), path: escaped(rest) })
        })
    }

    /// The file at this path within the site.
    pub(crate) fn by_location(delegate: &Delegate, location: &[u8]) -> Option<Self> {
        let path = location.split(|&byte| byte == b'?').next().unwrap_or_default();
        delegate.cgi()?.internal.iter().find_map(|(prefix, tree)| {
            below(prefix.as_bytes(), path).map(|rest| Self { tree: Arc::clone(tree), path: rest.to_vec() })
        })
    }

    /// What is there, or the job that finds out.
    pub(crate) fn find(&self, ctx: &Context, stream: StreamId) -> Result<Found, Job> {
        let query = Query { path: &self.path, accepted: AcceptedCodings::default(), view: View::default() };
        let found = ctx.find(&self.tree, &query);
        found.map_err(|NeedsDisk| Job::find(ctx, stream, &self.tree, &query))
    }
}

/// What follows a folder's name in a path; begins with `/`.
fn below<'a>(folder: &[u8], path: &'a [u8]) -> Option<&'a [u8]> {
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    path.strip_prefix(folder).filter(|rest| rest.starts_with(b"/"))
}

/// A decoded path as a client would write it.
pub(super) fn escaped(path: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(path.len());
    for &byte in path {
        if byte == b'%' {
            written.extend_from_slice(b"%25");
        } else {
            written.push(byte);
        }
    }
    written
}

/// Whether a file may be sent in a content coding, by what the application says of it.
pub(super) fn may_be_coded(head: &ResponseHead, stored: &Stored) -> bool {
    let has_other_type = |rules: &baton_compress::Rules| {
        head.field("Content-Type").is_some_and(|media_type| !rules.covers(media_type))
    };
    let forbids = |(name, value): (&[u8], &[u8])| {
        is_same_field("Content-Encoding", name)
            || is_same_field("Cache-Control", name) && says_no_transform(value)
    };
    head.status() == Status::OK
        && !stored.compress().is_some_and(has_other_type)
        && !head.fields().any(forbids)
}

/// The response with a file, as if the application had sent it: the fields of the application, and those of the file that it
/// does not have.
pub(super) fn file_response(mut head: ResponseHead, author: Author, stored: Arc<Stored>) -> Response {
    if stored.is_coded() {
        forget_bytes(&mut head);
    }
    let mut of_file = Vec::new();
    for line in stored.fields().split_inclusive(|&byte| byte == b'\n') {
        let name = name_of(line);
        // Both have a say in it.
        if is_same_field("Vary", name) || !head.fields().any(|(own, _)| is_same_field(own, name)) {
            of_file.extend_from_slice(line);
        }
    }
    head.add_lines(&of_file);
    Response::of_lines(head, author, Body::File(stored))
}

/// The name of a field, of a complete line.
fn name_of(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b':').next().unwrap_or_default()
}
