//! Files that an application names instead of sending their bytes (`X-Sendfile`, `X-Accel-Redirect`, `X-ZeroCopy`).
//!
//! Only what lies in the folders that the route allows can be named, and only by names that stay within them: the
//! kernel resolves them beneath the folder, as it does with the paths of clients. The application's fields are kept.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use baton_content::{Found, NeedsDisk, Query, Stored, Tree, View};
use baton_http::origin::ResponseHead;
use baton_http::response::Framing;
use baton_http::{AcceptedCodings, ByteRange, FieldRules, Method, Ranges, ReplyHead, Status, is_same_field};

use super::application::Origin;
use super::env::Ready;
use super::file;
use super::page::SERVER;
use super::selection::{Selection, select};
use crate::context::Context;
use crate::job::Job;
use crate::plan::Delegate;
use crate::protocol::{Responder, StreamId};
use crate::send_way::Trial;

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

/// Answers with a file, as if the application had sent it: with its fields, for the client's conditions and range.
pub(super) fn answer_with_file(
    ctx: &mut Context,
    origin: &Origin,
    head: &ResponseHead,
    stored: &Stored,
    reply: &mut Responder<'_>,
) -> Ready {
    let request = &origin.head.get();
    let (mut status, mut part) = (head.status(), None);
    if status == Status::OK {
        // Of several ranges, the whole: RFC 9110, section 14.2, leaves it to the server.
        match select(ctx, request, stored, 1) {
            Selection::NotModified => status = Status::NOT_MODIFIED,
            Selection::PreconditionFailed => status = Status::PRECONDITION_FAILED,
            Selection::Bytes(Ranges::Whole) => {}
            Selection::Bytes(Ranges::Parts(parts)) => {
                part = parts.first().copied();
                status = Status::PARTIAL_CONTENT;
            }
            Selection::Bytes(Ranges::Unsatisfiable) => status = Status::RANGE_NOT_SATISFIABLE,
        }
    }
    let mut bytes = ctx.heads.take();
    let server = origin.plan.server_header.then_some(SERVER);
    let mut fields = reply.head(&mut bytes, status, server, ctx.clock.stamp());
    if let Some(allowed) = origin.routed().allowed {
        allowed.push(&mut fields);
    }
    let (first, len) = bytes_of(status, part, stored);
    match (status, part) {
        _ if Framing::without_body(status.code()) == Some(Framing::None) => {}
        (Status::RANGE_NOT_SATISFIABLE, _) => {
            fields.content_range_unsatisfied(stored.len()).number("Content-Length", 0);
        }
        (_, Some(part)) => {
            fields.number("Content-Length", len).content_range(part, stored.len());
        }
        _ => {
            fields.number("Content-Length", len);
        }
    }
    push_fields(&mut fields, head, stored, &origin.delegate.headers);
    fields.end();
    reply.send(&mut ctx.heads, bytes, b"");
    let mut ready = Ready::from(status);
    if request.method != Method::Head && len > 0 {
        let (body, trial) = file::range(ctx, stored, first, len, reply.may_send_by_reference());
        reply.send_body(body);
        ready.trial = trial;
    }
    ready
}

/// Offset and number of the bytes that are sent.
fn bytes_of(status: Status, part: Option<ByteRange>, stored: &Stored) -> (u64, u64) {
    match (status, part) {
        (_, Some(part)) => (part.first, part.len()),
        (Status::RANGE_NOT_SATISFIABLE | Status::PRECONDITION_FAILED, _) => (0, 0),
        _ if Framing::without_body(status.code()).is_some() => (0, 0),
        _ => (0, stored.len()),
    }
}

/// The application's fields, then the file's fields that the application does not have. The rules of the route apply to
/// both.
fn push_fields(reply: &mut ReplyHead<'_>, head: &ResponseHead, stored: &Stored, rules: &FieldRules) {
    let has_own = |name: &[u8]| head.fields().any(|(own, _)| is_same_field(own, name));
    let of_file = || stored.fields().split_inclusive(|&byte| byte == b'\n').map(|line| (name_of(line), line));
    let of_file = || of_file().filter(|(name, _)| !has_own(name) && !rules.drops(name));
    for (name, value) in head.fields().filter(|(name, _)| !rules.drops(name)) {
        reply.raw(&[name, b": ", value, b"\r\n"].concat());
    }
    for (_, line) in of_file() {
        reply.raw(line);
    }
    let keeps = |name: &str| {
        let is_it = |(kept, _): (&[u8], &[u8])| is_same_field(kept, name);
        !rules.drops(name.as_bytes()) && (has_own(name.as_bytes()) || of_file().any(is_it))
    };
    for (name, value) in rules.fields_beside(keeps) {
        reply.field(name, value);
    }
}

/// The name of a field, of a complete line.
fn name_of(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b':').next().unwrap_or_default()
}

/// Answers with a body in which files replace their names. `trial`: the measurement to make of it.
pub(super) fn answer_with_body(
    ctx: &mut Context,
    origin: &Origin,
    head: &ResponseHead,
    body: baton_buf::Aggregate,
    trial: Option<Trial>,
    reply: &mut Responder<'_>,
) -> Ready {
    let fields = origin.response_fields(ctx);
    reply.send_application_body(&mut ctx.heads, head, body, &fields);
    ctx.heads.freeze(fields);
    let is_head = origin.head.get().method == Method::Head;
    let is_body_sent = !is_head && Framing::without_body(head.status().code()).is_none();
    Ready { trial: trial.filter(|_| is_body_sent), ..head.status().into() }
}
