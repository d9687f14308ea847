//! Requests to applications.

use std::sync::Arc;

use baton_buf::Aggregate;

use crate::{Admission, Application, ClientSocket};

/// Identifies a request. The caller chooses the number and may reuse it when the request is answered or abandoned and all
/// pieces of its response are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(u64);

impl RequestId {
    /// The id with this number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A request for an application.
#[derive(Debug)]
pub struct Request {
    /// The application that answers it.
    pub application: Arc<Application>,
    /// The parameters, as `baton_fcgi::params::push` writes them, without an offer.
    pub params: Vec<u8>,
    /// The body, or its beginning.
    pub body: Aggregate,
    /// The rest of the body, if it is passed on while it arrives. Excludes `handover`: an application that has the client's
    /// socket must find no part of the request's body in its input.
    pub rest: Option<BodyRest>,
    /// Whether it may be sent twice (RFC 9110 section 9.2.2). The gateway repeats it if a reused connection ends without an
    /// answer.
    pub idempotent: bool,
    /// The client's socket, if the application may answer on it.
    pub handover: Option<HandOver>,
}

impl Request {
    /// The length of the whole body, with what is still to come.
    pub fn body_len(&self) -> u64 {
        self.body.len() + self.rest.as_ref().map_or(0, BodyRest::left)
    }
}

/// The rest of a request's body, which the client has not sent yet.
#[derive(Debug)]
pub struct BodyRest {
    left: u64,
    _admission: Admission,
}

impl BodyRest {
    /// `left` bytes, at least one, are still to come.
    pub fn new(left: u64, admission: Admission) -> Self {
        debug_assert!(left > 0, "nothing is left of a body that is complete");
        Self { left, _admission: admission }
    }

    /// Bytes that have not been pushed.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Counts bytes that were pushed.
    pub(crate) fn note_pushed(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.left, "a body has more bytes than it announced");
        self.left = self.left.saturating_sub(bytes);
    }
}

/// A client's socket, and what an application has to know to answer on it.
///
/// While the application may have it, the server neither reads from it, nor writes to it, nor closes it.
#[derive(Clone, Debug)]
pub struct HandOver {
    /// The socket.
    pub client: Arc<ClientSocket>,
    /// The minor version of HTTP/1 that the client speaks: 0 or 1.
    pub minor: u8,
    /// Whether the server would keep the connection open.
    pub keep: bool,
    /// Whether the request is a `HEAD`.
    pub head: bool,
    /// Complete fields of the response head: `Name: value CRLF`.
    pub fields: Vec<u8>,
}
