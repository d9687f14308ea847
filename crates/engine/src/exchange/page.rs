//! Responses that are not files: errors, redirects, listings, fixed responses.

use std::borrow::Cow;

use baton_content::Listed;
use baton_http::{PathRefusal, ReplyHead, RequestHead, Status};

use super::env::Ready;
use super::routed::Routed;
use crate::context::Context;
use crate::guards::AllowedMethods;
use crate::log::Outcome;
use crate::protocol::Responder;
use crate::upload::Upload;

/// A response that the server generates.
#[derive(Debug)]
pub(super) struct Page<'a> {
    status: Status,
    /// Fields beside the usual ones.
    fields: Fields<'a>,
    media_type: &'a str,
    body: Cow<'a, [u8]>,
}

/// Fields beside the usual ones.
#[derive(Debug)]
enum Fields<'a> {
    None,
    One(&'static str, Cow<'a, str>),
    /// The `Location` of a document that may be elsewhere by the next request.
    Away(&'a str),
    /// Complete lines, the media type among them.
    Lines(&'a [u8]),
}

impl<'a> Page<'a> {
    /// An error page; a site may have its own.
    pub(super) fn error(status: Status) -> Self {
        let mut page = Self::explained(status, explanation(status));
        if status == Status::SERVICE_UNAVAILABLE {
            page.fields = Fields::One("Retry-After", "1".into());
        }
        page
    }

    /// The path cannot be a name: 400.
    pub(super) fn refused_path(refusal: PathRefusal) -> Self {
        Self::explained(Status::BAD_REQUEST, &refusal.to_string())
    }

    /// The target is known, the method is not for it: 405. `allowed`: those that are.
    pub(super) fn method_not_allowed(allowed: &'a str) -> Self {
        let mut page = Self::error(Status::METHOD_NOT_ALLOWED);
        page.fields = Fields::One("Allow", allowed.into());
        page
    }

    /// The same by a rule of the route.
    pub(super) fn method_refused(allowed: &'a str) -> Self {
        let mut page = Self::explained(Status::METHOD_NOT_ALLOWED, "The method is not allowed here.");
        page.fields = Fields::One("Allow", allowed.into());
        page
    }

    /// No part of the range exists: 416.
    pub(super) fn range_not_satisfiable(length: u64) -> Self {
        let mut page = Self::error(Status::RANGE_NOT_SATISFIABLE);
        page.fields = Fields::One("Content-Range", format!("bytes */{length}").into());
        page
    }

    /// The allowed methods: 204.
    pub(super) fn options(allowed: &'a str) -> Self {
        Self {
            status: Status::NO_CONTENT,
            fields: Fields::One("Allow", allowed.into()),
            media_type: "",
            body: Cow::Borrowed(b""),
        }
    }

    /// Sends the client elsewhere.
    pub(super) fn redirect(status: Status, location: &'a str) -> Self {
        let mut page = Self::explained(status, "What you look for is elsewhere.");
        page.fields = Fields::One("Location", location.into());
        page
    }

    /// Sends the client to where a document is for now. No client, cache or search engine must rely on that.
    pub(super) fn away(location: &'a str) -> Self {
        let mut page = Self::explained(Status::TEMPORARY_REDIRECT, "This is at another server for now.");
        page.fields = Fields::Away(location);
        page
    }

    /// What the configuration says.
    pub(super) fn fixed(status: Status, media_type: &'a str, body: &'a [u8]) -> Self {
        Self { status, fields: Fields::None, media_type, body: Cow::Borrowed(body) }
    }

    /// A directory.
    pub(super) fn listing(listed: &'a Listed) -> Self {
        Self {
            status: Status::OK,
            fields: Fields::Lines(&listed.fields),
            media_type: "",
            body: Cow::Borrowed(&listed.body),
        }
    }

    fn explained(status: Status, why: &str) -> Self {
        Self { status, fields: Fields::None, media_type: HTML, body: text(status, why).into() }
    }
}

impl Routed<'_> {
    /// Methods that the server itself answers here.
    pub(super) fn allowed(&self) -> &str {
        self.guards.and_then(|guards| guards.methods.as_ref()).map_or(ALLOWED, AllowedMethods::own)
    }

    /// Answers with a page.
    pub(super) fn page(&self, ctx: &mut Context, page: Page<'_>, reply: &mut Responder<'_>) -> Ready {
        let own = self.site.error_page(page.status.code());
        let (media_type, body) =
            own.map_or((page.media_type, &*page.body), |own| (&*own.media_type, &*own.body));
        let mut joined = ctx.heads.take();
        let mut head = self.begin(ctx, &mut joined, page.status, reply);
        match &page.fields {
            Fields::None => {}
            Fields::Lines(lines) => {
                head.raw(lines);
            }
            Fields::One(name, value) => {
                head.field(name, value.as_bytes());
            }
            Fields::Away(location) => {
                head.field("Location", location).field("Cache-Control", "no-store");
            }
        }
        // The page's own `Location`, `Allow` or `Retry-After` takes precedence over any rule.
        let is_own = |name: &str| match &page.fields {
            Fields::One(own, _) => own.eq_ignore_ascii_case(name),
            Fields::Away(_) => ["Location", "Cache-Control"].iter().any(|own| own.eq_ignore_ascii_case(name)),
            Fields::None | Fields::Lines(_) => false,
        };
        for (name, value) in self.headers.fields_beside(is_own).filter(|(name, _)| !is_own(name)) {
            head.field(name, value);
        }
        let has_body = page.status != Status::NO_CONTENT && page.status != Status::NOT_MODIFIED;
        if has_body {
            if !media_type.is_empty() {
                head.field("Content-Type", media_type);
            }
            head.number("Content-Length", body.len() as u64);
        }
        head.end();
        reply.send(&mut ctx.heads, joined, if has_body { body } else { b"" });
        page.status.into()
    }

    /// Refuses the rest of a request's body.
    pub(super) fn body_refused(
        &self,
        ctx: &mut Context,
        upload: Option<&Upload>,
        reply: &mut Responder<'_>,
    ) -> Ready {
        let (status, outcome) = match upload.and_then(Upload::trouble) {
            None => (Status::CONTENT_TOO_LARGE, Outcome::Refused),
            Some(why) => {
                ctx.remark(format_args!("cannot keep the body of a request: {why}"));
                (Status::SERVICE_UNAVAILABLE, Outcome::Failed)
            }
        };
        Ready { outcome, ..self.page(ctx, Page::error(status), reply) }
    }

    /// Begins a head with the fields that every response has.
    pub(super) fn begin<'b>(
        &self,
        ctx: &Context,
        out: &'b mut Vec<u8>,
        status: Status,
        reply: &mut Responder<'_>,
    ) -> ReplyHead<'b> {
        reply.head(out, status, self.server_header.then_some(SERVER), ctx.clock.stamp())
    }
}

/// A small page that says what happened.
pub(super) fn text(status: Status, why: &str) -> Vec<u8> {
    let (code, reason) = (status.code(), status.reason());
    let mut escaped = String::with_capacity(why.len());
    for character in why.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            other => escaped.push(other),
        }
    }
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{code} {reason}</title></head>\n\
         <body><h1>{code} {reason}</h1><p>{escaped}</p></body></html>\n"
    )
    .into_bytes()
}

/// Whether a client that could have a listing either way wants JSON: programs do, browsers do not.
pub(super) fn prefers_json(head: &RequestHead<'_>) -> bool {
    let asked_for = |field: &[u8]| {
        field
            .split(|&byte| byte == b',')
            .any(|range| range.trim_ascii().to_ascii_lowercase().starts_with(b"application/json"))
    };
    head.query == Some(b"format=json") || head.accept.is_some_and(asked_for)
}

fn explanation(status: Status) -> &'static str {
    match status {
        Status::FORBIDDEN => "The server may not show this.",
        Status::NOT_FOUND => "There is nothing here.",
        Status::METHOD_NOT_ALLOWED => "This can be read (GET, HEAD), but nothing else.",
        Status::PRECONDITION_FAILED => "It is not what the request expected it to be.",
        Status::CONTENT_TOO_LARGE => "The body of the request is larger than this server takes.",
        Status::RANGE_NOT_SATISFIABLE => "It is shorter than that.",
        Status::NOT_IMPLEMENTED => "This server does not know the method.",
        Status::BAD_GATEWAY => "The application that was to answer failed.",
        Status::GATEWAY_TIMEOUT => "The application that was to answer took too long.",
        Status::SERVICE_UNAVAILABLE => "The server is short of something. Try again soon.",
        _ => "The server could not read what it was to send.",
    }
}

/// Value of the `Server` field.
pub(super) const SERVER: &str = "baton";
/// Media type of pages of our own.
pub(super) const HTML: &str = "text/html; charset=utf-8";
/// Methods that files and fixed responses know.
const ALLOWED: &str = "GET, HEAD, OPTIONS";
