//! Requests for documents that may be away: redirects, pages with other links, and copies for peers.

use std::borrow::Cow;
use std::sync::Arc;

use baton_content::{Found, NeedsDisk, Query, Stored, Tree, Variant, View};
use baton_dcws::{CountedRequest, Origin, Requested, SIGNATURE_FIELD, copy_tag, encode, is_page};
use baton_http::{AcceptedCodings, RequestHead, as_uri, decode_path};
use baton_response::{Page, Response, Rules};
use baton_site::documents::{Copies, Instead, Lending, Rewriting};

use super::find::find;
use crate::context::Context;
use crate::job::Job;
use crate::protocol::StreamId;

/// Where a document is.
#[derive(Debug)]
pub(super) enum Whereabouts {
    /// Here.
    Found(Found),
    /// There: the value of `Location`.
    Elsewhere(String),
}

/// Looks a document of this server up.
pub(super) fn look(
    ctx: &mut Context,
    stream: StreamId,
    head: &RequestHead<'_>,
    (tree, lending): (&Arc<Tree>, &Lending),
    found: Option<Found>,
) -> Result<Whereabouts, Job> {
    let documents = &lending.documents;
    let book = documents.book();
    // A path that is none has no number; what looks it up refuses it.
    let number = decode_path(head.path, &mut ctx.path).ok().and_then(|()| book.number(&ctx.path));
    let is_away = number.is_some_and(|number| book.is_away(number));
    let is_copied = is_signed(head, &lending.token);
    match (is_away, is_copied) {
        (true, false) => {
            if let Some(address) = book.address(&ctx.path) {
                ctx.counted = Some(CountedRequest::new(&book, Requested::Redirect));
                return Ok(Whereabouts::Elsewhere(with_query(address, head)));
            }
        }
        // It was called back, or never lent.
        (false, true) => {
            return Ok(Whereabouts::Elsewhere(with_query(at(documents.home(), &ctx.path), head)));
        }
        _ => {}
    }
    let served = if is_copied { Requested::Fetch } else { Requested::Document(number) };
    let found = found.map_or_else(|| find(ctx, stream, tree, head, head.path), Ok)?;
    let state = number.and_then(|number| book.page(number));
    let is_page_to_make = |stored: &Stored| {
        !stored.is_variant() && (is_copied || state.is_some()) && is_page(stored.media_type())
    };
    let stored = match &found {
        Found::File(stored) if is_page_to_make(stored) => stored,
        Found::File(stored) => {
            let copy = (is_copied && !stored.is_variant()).then(|| {
                let lines = copy_lines(documents.home(), &ctx.path, lending.copy_s);
                Arc::new(stored.variant(Variant { lines: &lines, ..Variant::default() }))
            });
            ctx.counted = Some(CountedRequest::new(&book, served));
            return Ok(Whereabouts::Found(copy.map_or(found, Found::File)));
        }
        _ => return Ok(Whereabouts::Found(found)),
    };
    let stored = match stored.is_coded() {
        false => Arc::clone(stored),
        // Links are replaced in the page as it was written.
        true => {
            let query =
                Query { path: head.path, accepted: AcceptedCodings::parse(None), view: View::default() };
            match ctx.find(tree, &query) {
                Ok(Found::File(plain)) => plain,
                Ok(other) => return Ok(Whereabouts::Found(other)),
                Err(NeedsDisk) => return Err(Job::find(ctx, stream, tree, &query)),
            }
        }
    };
    let copy_at = is_copied.then(|| book.address(&ctx.path)).flatten().map(String::into_boxed_str);
    let key = (stored.etag().as_ref().into(), state, copy_at);
    if let Some(page) = documents.variant(&key) {
        ctx.counted = Some(CountedRequest::new(&book, served));
        return Ok(Whereabouts::Found(Found::File(page)));
    }
    let path: Box<[u8]> = (&*ctx.path).into();
    let lines = if is_copied { copy_lines(documents.home(), &path, lending.copy_s) } else { Vec::new() };
    let documents = Arc::clone(documents);
    Err(Job::Rewrite(stream, Box::new(Rewriting { documents, book, stored, path, key, lines })))
}

/// Whether this server may serve the copy of a document, or else where its home is.
pub(super) fn look_at_copy(ctx: &mut Context, head: &RequestHead<'_>, copies: &Copies) -> Result<(), String> {
    let book = copies.documents.book();
    let may_serve = copy_name(ctx, head, copies).is_some_and(|name| book.may_serve(copies.peer, name));
    let requested = if may_serve { Requested::Copy } else { Requested::Redirect };
    ctx.counted = Some(CountedRequest::new(&book, requested));
    if may_serve { Ok(()) } else { Err(at_home(ctx, head, copies)) }
}

/// What is answered in place of a response that a home has given.
pub(super) fn answer_instead(
    (rules, copies): (&Rules<'_>, &Copies),
    ctx: &mut Context,
    head: &RequestHead<'_>,
    instead: Instead,
) -> Response {
    match instead {
        Instead::Home => rules.page(Page::away(&at_home(ctx, head, copies))),
        Instead::Status(status) => rules.page(Page::error(status)),
    }
}

/// Where the home of a copy has it.
fn at_home(ctx: &mut Context, head: &RequestHead<'_>, copies: &Copies) -> String {
    let name = copy_name(ctx, head, copies).unwrap_or_default();
    with_query(at(&copies.home, name), head)
}

/// The name of the document whose copy is asked for.
fn copy_name<'c>(ctx: &'c mut Context, head: &RequestHead<'_>, copies: &Copies) -> Option<&'c [u8]> {
    decode_path(head.path, &mut ctx.path).ok()?;
    copies.name(&ctx.path)
}

/// Whether a peer asks for a document that it is lent.
fn is_signed(head: &RequestHead<'_>, token: &str) -> bool {
    head.fields_of(SIGNATURE_FIELD).any(|value| value == token.as_bytes())
}

/// What a copy says of itself: where its original is, that search engines should look there, for how long the peer's
/// cache may rely on it (RFC 9213), and by which tag it is dropped there. Clients are told what the site says.
fn copy_lines(home: &Origin, path: &[u8], copy_s: u64) -> Vec<u8> {
    let (original, tag) = (at(home, path), copy_tag(home, path));
    format!(
        "Link: <{original}>; rel=\"canonical\"\r\nX-Robots-Tag: noindex\r\n\
         CDN-Cache-Control: max-age={copy_s}\r\nCache-Tag: {tag}\r\n"
    )
    .into_bytes()
}

fn at(origin: &Origin, path: &[u8]) -> String {
    format!("{origin}/{}", encode(path))
}

fn with_query(address: String, head: &RequestHead<'_>) -> String {
    let Some(query) = head.query else { return address };
    let query = match as_uri(query) {
        Cow::Borrowed(query) => String::from_utf8_lossy(query),
        Cow::Owned(query) => Cow::Owned(String::from_utf8_lossy(&query).into_owned()),
    };
    format!("{address}?{query}")
}
