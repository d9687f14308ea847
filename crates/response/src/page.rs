//! Responses that are not files: errors, redirects, listings, fixed responses.

use std::borrow::Cow;

use baton_http::origin::ResponseHead;
use baton_http::response::Framing;
use baton_http::{PathRefusal, Status};

use crate::notice::{self, Form, explanation};
use crate::rules::Rules;
use crate::value::{Author, Body, Response};

/// A response that the server generates.
#[derive(Debug)]
pub struct Page<'a> {
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
    /// A sentence as a page for people.
    Refusal(&'a str),
    /// Bytes of this media type.
    Given(&'a str, &'a [u8]),
}

/// Fields beside the usual ones.
#[derive(Debug)]
enum Fields<'a> {
    None,
    One(&'static str, Cow<'a, str>),
    /// The `Location` of a document that may be elsewhere by the next request.
    Away(&'a str),
    /// Complete lines.
    Lines(&'a [u8]),
}

impl<'a> Page<'a> {
    /// An error page; a site may have its own.
    pub fn error(status: Status) -> Self {
        let mut page = Self::explained(status, explanation(status).into());
        if status == Status::SERVICE_UNAVAILABLE {
            page.fields = Fields::One("Retry-After", "1".into());
        }
        page
    }

    /// The path cannot be a name: 400.
    pub fn refused_path(refusal: PathRefusal) -> Self {
        Self::explained(Status::BAD_REQUEST, refusal.to_string().into())
    }

    /// The target is known, the method is not for it: 405. `allowed`: those that are.
    pub fn method_not_allowed(allowed: &'a str) -> Self {
        let mut page = Self::error(Status::METHOD_NOT_ALLOWED);
        page.fields = Fields::One("Allow", allowed.into());
        page
    }

    /// A rule of the route does not allow the method: 405.
    pub fn method_refused(allowed: &'a str) -> Self {
        let mut page = Self::explained(Status::METHOD_NOT_ALLOWED, "The method is not allowed here.".into());
        page.fields = Fields::One("Allow", allowed.into());
        page
    }

    /// No part of the range exists: 416.
    pub(crate) fn range_not_satisfiable(length: u64) -> Self {
        let mut page = Self::error(Status::RANGE_NOT_SATISFIABLE);
        page.fields = Fields::One("Content-Range", format!("bytes */{length}").into());
        page
    }

    /// The client has to say who its user is, and prove it: 401.
    pub fn unauthorized(challenge: &'a str) -> Self {
        let mut page = Self::explained(Status::UNAUTHORIZED, "This is for users with a password.".into());
        page.fields = Fields::One("WWW-Authenticate", challenge.into());
        page
    }

    /// The client asks too often: 429.
    pub fn too_many_requests(retry_after_s: u64) -> Self {
        let mut page =
            Self::explained(Status::TOO_MANY_REQUESTS, "Too many requests. Try again a little later.".into());
        page.fields = Fields::One("Retry-After", retry_after_s.to_string().into());
        page
    }

    /// The allowed methods: 204.
    pub fn options(allowed: &'a str) -> Self {
        Self {
            status: Status::NO_CONTENT,
            fields: Fields::One("Allow", allowed.into()),
            content: Content::None,
        }
    }

    /// What a page of another origin may do: 204. `lines`: complete lines that say so.
    pub fn preflight(lines: &'a [u8]) -> Self {
        Self { status: Status::NO_CONTENT, fields: Fields::Lines(lines), content: Content::None }
    }

    /// Sends the client elsewhere.
    pub fn redirect(status: Status, location: &'a str) -> Self {
        let mut page = Self::explained(status, "What you look for is elsewhere.".into());
        page.fields = Fields::One("Location", location.into());
        page
    }

    /// Sends the client to where a document is for now. No client, cache or search engine must rely on that.
    pub fn away(location: &'a str) -> Self {
        let mut page =
            Self::explained(Status::TEMPORARY_REDIRECT, "This is at another server for now.".into());
        page.fields = Fields::Away(location);
        page
    }

    /// What the configuration says. An error about which it says nothing has the server's page.
    pub fn fixed(status: Status, media_type: &'a str, body: &'a [u8]) -> Self {
        if body.is_empty() && status.code() >= 400 {
            return Self::error(status);
        }
        let content = match Framing::without_body(status.code()) {
            Some(_) => Content::None,
            None => Content::Given(media_type, body),
        };
        Self { status, fields: Fields::None, content }
    }

    /// What proves to a certificate authority that the server answers for a name (RFC 8555 section 8.3).
    pub fn proof(proof: &'a str) -> Self {
        Self {
            status: Status::OK,
            fields: Fields::One("X-Content-Type-Options", "nosniff".into()),
            content: Content::Given("application/octet-stream", proof.as_bytes()),
        }
    }

    /// Why input is no request, or the rest of one. It says nothing of what the client prefers.
    pub fn refusal(status: Status, why: &'a str) -> Self {
        Self { status, fields: Fields::None, content: Content::Refusal(why) }
    }

    fn explained(status: Status, why: Cow<'a, str>) -> Self {
        Self { status, fields: Fields::None, content: Content::Notice(why) }
    }
}

impl Fields<'_> {
    /// Fields that no rule of a route touches.
    /// A page's own `Location`, `Allow` or `Retry-After` takes precedence.
    fn kept(&self) -> [&'static str; 2] {
        match self {
            Self::One(name, _) => [name, ""],
            Self::Away(_) => ["Location", "Cache-Control"],
            Self::None | Self::Lines(_) => ["", ""],
        }
    }

    fn push(&self, head: &mut ResponseHead) {
        match self {
            Self::None => {}
            Self::Lines(lines) => head.add_lines(lines),
            Self::One(name, value) => head.add(name, value.as_bytes()),
            Self::Away(location) => {
                head.add("Location", location.as_bytes());
                head.add("Cache-Control", b"no-store");
            }
        }
    }
}

impl Rules<'_> {
    /// A page as the response to a request.
    pub fn page(&self, page: Page<'_>) -> Response {
        let mut head = ResponseHead::of_status(page.status);
        page.fields.push(&mut head);
        let own = self.error_pages.iter().find(|own| own.status == page.status.code());
        let (media_type, body) = match (own, &page.content) {
            (_, Content::None) => ("", Vec::new()),
            (Some(own), _) => (&*own.media_type, own.body.clone()),
            (None, Content::Notice(what)) => {
                let form = Form::preferred(self.accept);
                head.add("Vary", b"Accept");
                (form.media_type(), notice::write(form, page.status, what))
            }
            (None, Content::Refusal(why)) => {
                (Form::Html.media_type(), notice::write(Form::Html, page.status, why))
            }
            (None, Content::Given(media_type, body)) => (*media_type, body.to_vec()),
        };
        if !media_type.is_empty() {
            head.add("Content-Type", media_type.as_bytes());
        }
        Response::of_lines(head, Author::Server(page.fields.kept()), Body::Bytes(body))
    }
}
