//! Responses that are not files: errors, redirects, listings, fixed responses.

use std::borrow::Cow;

use baton_content::Listed;
use baton_http::{PathRefusal, ReplyHead, Status};

use super::env::Ready;
use super::notice::{self, Form, explanation};
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
    content: Content<'a>,
}

/// What a page says.
#[derive(Debug)]
enum Content<'a> {
    None,
    /// A sentence, in the form that the client prefers.
    Notice(Cow<'a, str>),
    /// Bytes, and their media type if it is not among the fields.
    Given(Option<&'a str>, &'a [u8]),
}

/// Fields beside the usual ones.
#[derive(Debug)]
enum Fields<'a> {
    None,
    One(&'static str, Cow<'a, str>),
    /// The `Location` of a document that may be elsewhere by the next request.
    Away(&'a str),
    /// Complete lines; of content, the media type among them.
    Lines(&'a [u8]),
}

impl<'a> Page<'a> {
    /// An error page; a site may have its own.
    pub(super) fn error(status: Status) -> Self {
        let mut page = Self::explained(status, explanation(status).into());
        if status == Status::SERVICE_UNAVAILABLE {
            page.fields = Fields::One("Retry-After", "1".into());
        }
        page
    }

    /// The path cannot be a name: 400.
    pub(super) fn refused_path(refusal: PathRefusal) -> Self {
        Self::explained(Status::BAD_REQUEST, refusal.to_string().into())
    }

    /// The target is known, the method is not for it: 405. `allowed`: those that are.
    pub(super) fn method_not_allowed(allowed: &'a str) -> Self {
        let mut page = Self::error(Status::METHOD_NOT_ALLOWED);
        page.fields = Fields::One("Allow", allowed.into());
        page
    }

    /// The same by a rule of the route.
    pub(super) fn method_refused(allowed: &'a str) -> Self {
        let mut page = Self::explained(Status::METHOD_NOT_ALLOWED, "The method is not allowed here.".into());
        page.fields = Fields::One("Allow", allowed.into());
        page
    }

    /// No part of the range exists: 416.
    pub(super) fn range_not_satisfiable(length: u64) -> Self {
        let mut page = Self::error(Status::RANGE_NOT_SATISFIABLE);
        page.fields = Fields::One("Content-Range", format!("bytes */{length}").into());
        page
    }

    /// The client has to say who its user is, and prove it: 401.
    pub(super) fn unauthorized(challenge: &'a str) -> Self {
        let mut page = Self::explained(Status::UNAUTHORIZED, "This is for users with a password.".into());
        page.fields = Fields::One("WWW-Authenticate", challenge.into());
        page
    }

    /// The client asks too often: 429.
    pub(super) fn too_many_requests(retry_after_s: u64) -> Self {
        let mut page =
            Self::explained(Status::TOO_MANY_REQUESTS, "Too many requests. Try again a little later.".into());
        page.fields = Fields::One("Retry-After", retry_after_s.to_string().into());
        page
    }

    /// The allowed methods: 204.
    pub(super) fn options(allowed: &'a str) -> Self {
        Self {
            status: Status::NO_CONTENT,
            fields: Fields::One("Allow", allowed.into()),
            content: Content::None,
        }
    }

    /// What a page of another origin may do: 204. `lines`: complete lines that say so.
    pub(super) fn preflight(lines: &'a [u8]) -> Self {
        Self { status: Status::NO_CONTENT, fields: Fields::Lines(lines), content: Content::None }
    }

    /// Sends the client elsewhere.
    pub(super) fn redirect(status: Status, location: &'a str) -> Self {
        let mut page = Self::explained(status, "What you look for is elsewhere.".into());
        page.fields = Fields::One("Location", location.into());
        page
    }

    /// Sends the client to where a document is for now. No client, cache or search engine must rely on that.
    pub(super) fn away(location: &'a str) -> Self {
        let mut page =
            Self::explained(Status::TEMPORARY_REDIRECT, "This is at another server for now.".into());
        page.fields = Fields::Away(location);
        page
    }

    /// What the configuration says. An error about which it says nothing has the server's page.
    pub(super) fn fixed(status: Status, media_type: &'a str, body: &'a [u8]) -> Self {
        if body.is_empty() && status.code() >= 400 {
            return Self::error(status);
        }
        Self { status, fields: Fields::None, content: Content::Given(Some(media_type), body) }
    }

    /// A directory.
    pub(super) fn listing(listed: &'a Listed) -> Self {
        Self {
            status: Status::OK,
            fields: Fields::Lines(&listed.fields),
            content: Content::Given(None, &listed.body),
        }
    }

    fn explained(status: Status, why: Cow<'a, str>) -> Self {
        Self { status, fields: Fields::None, content: Content::Notice(why) }
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
        let (media_type, body) = match (own, &page.content) {
            (_, Content::None) => (None, Cow::Borrowed(&b""[..])),
            (Some(own), _) => (Some(&*own.media_type), Cow::Borrowed(&*own.body)),
            (None, Content::Notice(what)) => {
                let form = Form::preferred(self.accept);
                (Some(form.media_type()), notice::write(form, page.status, what).into())
            }
            (None, Content::Given(media_type, body)) => (*media_type, Cow::Borrowed(*body)),
        };
        let is_negotiated = own.is_none() && matches!(page.content, Content::Notice(_));
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
            Fields::One(own, _) => baton_http::is_same_field(own, name),
            Fields::Away(_) => {
                ["Location", "Cache-Control"].iter().any(|own| baton_http::is_same_field(own, name))
            }
            Fields::None | Fields::Lines(_) => false,
        };
        for (name, value) in self.headers.fields_beside(is_own).filter(|(name, _)| !is_own(name)) {
            head.field(name, value);
        }
        if let Some(media_type) = media_type {
            head.field("Content-Type", media_type);
        }
        if is_negotiated {
            head.field("Vary", "Accept");
        }
        if !page.status.forbids_content() {
            head.number("Content-Length", body.len() as u64);
        }
        head.end();
        reply.send(&mut ctx.heads, joined, &body);
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

    /// Begins a head with the fields that every response to this request has.
    pub(super) fn begin<'b>(
        &self,
        ctx: &Context,
        out: &'b mut Vec<u8>,
        status: Status,
        reply: &mut Responder<'_>,
    ) -> ReplyHead<'b> {
        let mut head = reply.head(out, status, self.server_header.then_some(SERVER), ctx.clock.stamp());
        ctx.push_mark(&mut head);
        if let Some(allowed) = &self.allowed {
            allowed.push(&mut head);
        }
        head
    }
}

/// Value of the `Server` field.
pub(super) const SERVER: &str = "baton";
/// Methods that files and fixed responses know.
const ALLOWED: &str = "GET, HEAD, OPTIONS";
