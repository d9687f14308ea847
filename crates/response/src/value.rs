//! What is answered, before it is finished.

use std::sync::Arc;

use baton_buf::Aggregate;
use baton_content::{Listed, Stored};
use baton_http::origin::ResponseHead;
use baton_http::{ByteRange, Status};
use baton_site::plan::{Delegate, Terms};
use baton_telemetry::log::Outcome;

use crate::coder::Coder;
use crate::send_way::Trial;

/// An answer that is not finished.
#[derive(Debug)]
pub struct Response {
    pub(crate) head: Head,
    pub(crate) body: Body,
    /// How the request ends if it arrives.
    pub(crate) outcome: Outcome,
}

/// The head of a response.
#[derive(Debug)]
pub(crate) enum Head {
    /// What the file says of itself: ready-made, and kept with the file, for a whole one.
    Ready(Status, Arc<Stored>),
    /// Lines.
    Lines(ResponseHead, Author),
}

/// Who has written a head, and so what it lacks.
#[derive(Clone, Copy, Debug)]
pub enum Author {
    /// The server. No rule of the route touches its fields of these names.
    Server([&'static str; 2]),
    /// A file. Its fields obey the rules of the route already.
    File,
    /// An application, which has no date.
    Application {
        /// What it has said may be older than now.
        is_stored: bool,
    },
    /// An origin, which has dated its response, or has no clock.
    Origin,
}

/// The body of a response.
#[derive(Debug)]
pub enum Body {
    /// Nothing.
    None,
    /// These bytes.
    Bytes(Vec<u8>),
    /// Of a file, what the client's conditions and ranges leave.
    File(Arc<Stored>),
    /// A part of a file.
    Part(Arc<Stored>, ByteRange),
    /// Parts of a file, in a form with a head for each.
    Parts(Arc<Stored>, Vec<ByteRange>, String),
    /// What is there of it, and whether that is all.
    Begun(Aggregate, bool),
}

/// A response that has begun.
#[derive(Debug)]
pub struct Ready {
    /// The status that the client sees.
    pub status: Status,
    /// How the request ends if the response arrives.
    pub outcome: Outcome,
    /// The measurement to make if it is sent alone.
    pub trial: Option<Trial>,
    /// What codes the rest of the body.
    pub coder: Option<Box<Coder>>,
}

impl Response {
    /// A file, as far as the client's conditions and ranges ask for it.
    pub fn file(stored: Arc<Stored>) -> Self {
        Self {
            head: Head::Ready(Status::OK, Arc::clone(&stored)),
            body: Body::File(stored),
            outcome: Outcome::Complete,
        }
    }

    /// A directory.
    pub fn listing(listed: &Listed) -> Self {
        let mut head = ResponseHead::of_status(Status::OK);
        head.add_lines(&listed.fields);
        let mut body = Aggregate::new();
        body.push(listed.body.clone());
        head.set_content_length(Some(body.len()));
        Self::of_lines(head, Author::Server(["", ""]), Body::Begun(body, true))
    }

    /// What these lines say of this body.
    pub fn of_lines(head: ResponseHead, author: Author, body: Body) -> Self {
        Self { head: Head::Lines(head, author), body, outcome: Outcome::Complete }
    }

    /// Which ends the request like this, if it arrives.
    pub fn ending(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }

    /// Its status, before the client's conditions are looked at.
    pub(crate) fn status(&self) -> Status {
        match &self.head {
            Head::Ready(status, _) => *status,
            Head::Lines(head, _) => head.status(),
        }
    }
}

impl Author {
    /// Who writes the heads of what answers elsewhere.
    pub fn of(delegate: &Delegate) -> Self {
        match &delegate.terms {
            Terms::Cgi(_) => Self::Application { is_stored: delegate.cache.is_some() },
            Terms::Proxy(_) => Self::Origin,
        }
    }
}

impl From<Status> for Ready {
    fn from(status: Status) -> Self {
        Self { status, outcome: Outcome::Complete, trial: None, coder: None }
    }
}
