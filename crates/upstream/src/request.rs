//! Requests to applications and origins.

use std::sync::Arc;

use baton_buf::Aggregate;
use baton_fcgi::environment;
use baton_http::origin::RequestKind;
use baton_http::{field_name_is_safe, field_value_is_safe};
use baton_shares::ClientKey;

use crate::peers::Turn;
use crate::{Admission, Application, ClientEnds, ClientSocket, Protocol, TurnSought};

/// Identifies a request. The caller chooses the number and may reuse it when the request is answered or abandoned and all
/// pieces of its response are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// A request for an application or an origin.
#[derive(Debug)]
pub struct Request {
    /// The application that answers it.
    pub application: Arc<Application>,
    /// If several peers may answer it: they take the place of `application`.
    pub peers: Option<TurnSought>,
    /// Its turn at one of them, if that was chosen before: see [`Chosen::relay`](crate::Chosen::relay).
    pub turn: Option<Turn>,
    /// What is asked, in the form of its protocol: the parameters, as `baton_fcgi::params::push` writes them, without an
    /// offer; or the head of a request of HTTP/1.1, as [`Forwarding`](baton_http::origin::Forwarding) writes it.
    pub text: Vec<u8>,
    /// What a response of HTTP/1 depends on, besides its own bytes.
    pub asked: RequestKind,
    /// The body, or its beginning.
    pub body: Aggregate,
    /// The rest of the body, if it is passed on while it arrives. Excludes `handover`: an application that has the client's
    /// socket must find no part of the request's body in its input.
    pub rest: Option<BodyRest>,
    /// Whether it may be sent twice (RFC 9110 section 9.2.2). The gateway repeats it if a reused connection ends without an
    /// answer.
    pub idempotent: bool,
    /// The client's socket, if the application may answer on it.
    pub pass: Option<SocketPass>,
    /// Whether the client takes bytes from a pipe, and nothing else looks at the response.
    pub takes_pipes: bool,
    /// Whose it is, if connections say so ([`send_proxy`](crate::Settings::send_proxy)).
    pub ends: Option<ClientEnds>,
    /// Whose share of connections, queues and temporary files it takes; `None`: it is not known, or the server's own.
    pub client: Option<ClientKey>,
}

impl Request {
    /// The request behind a tunnel: all that is left of it is what its client sends.
    pub(crate) fn of_tunnel(application: Arc<Application>, rest: BodyRest) -> Self {
        Self {
            application,
            peers: None,
            turn: None,
            text: Vec::new(),
            asked: RequestKind::Upgrade,
            body: Aggregate::default(),
            rest: Some(rest),
            idempotent: false,
            pass: None,
            takes_pipes: false,
            ends: None,
            client: None,
        }
    }

    /// Gives it to the peer that was chosen for it.
    pub fn set_turn(&mut self, turn: Turn) {
        self.application = Arc::clone(turn.application());
        self.turn = Some(turn);
    }

    /// The length of the whole body, with what is still to come.
    pub fn body_len(&self) -> u64 {
        self.body.len() + self.rest.as_ref().and_then(BodyRest::left).unwrap_or(0)
    }

    /// Adds a field behind those that the request has. Name and value are safe: see
    /// [`field_name_is_safe`](baton_http::field_name_is_safe) and [`field_value_is_safe`](baton_http::field_value_is_safe).
    pub fn add_field(&mut self, name: &str, value: &[u8]) {
        debug_assert!(field_name_is_safe(name.as_bytes()) && field_value_is_safe(value));
        match self.application.settings().protocol {
            Protocol::Http1 => {
                // In front of the blank line.
                self.text.truncate(self.text.len().saturating_sub(LINE_END.len()));
                for part in [name.as_bytes(), b": ", value, LINE_END, LINE_END] {
                    self.text.extend_from_slice(part);
                }
            }
            Protocol::FastCgi | Protocol::Scgi => {
                environment::push_fields(&mut self.text, std::iter::once((name.as_bytes(), value)));
            }
        }
    }
}

/// The rest of a request's body, which the client has not sent yet.
#[derive(Debug)]
pub struct BodyRest {
    /// `None`: its length is unknown.
    left: Option<u64>,
    /// `None`: a request holds no process while it waits for its body.
    _admission: Option<Admission>,
}

impl BodyRest {
    /// `left` bytes, at least one, are still to come.
    pub fn new(left: u64, admission: Admission) -> Self {
        debug_assert!(left > 0, "nothing is left of a body that is complete");
        Self { left: Some(left), _admission: Some(admission) }
    }

    /// A body for an origin, which answers many requests at a time. `left`: bytes that are still to come, if that is known.
    pub fn of_origin(left: Option<u64>) -> Self {
        Self { left, _admission: None }
    }

    /// Bytes that have not been pushed, if that is known.
    pub fn left(&self) -> Option<u64> {
        self.left
    }

    /// Counts bytes that were pushed.
    pub(crate) fn note_pushed(&mut self, bytes: u64) {
        debug_assert!(self.left.is_none_or(|left| bytes <= left), "a body has more bytes than it announced");
        self.left = self.left.map(|left| left.saturating_sub(bytes));
    }
}

/// A client's socket, and what an application has to know to answer on it.
///
/// While the application may have it, the server neither reads from it, nor writes to it, nor closes it.
#[derive(Clone, Debug)]
pub struct SocketPass {
    /// The socket.
    pub client: Arc<ClientSocket>,
    /// The minor version of HTTP/1 that the client speaks: 0 or 1.
    pub minor: u8,
    /// Whether the server would keep the connection open.
    pub keep: bool,
    /// Whether the request is a `HEAD`.
    pub head: bool,
    /// Whether the last bytes of a response may wait in the kernel for the end of the connection.
    pub holds: bool,
    /// Complete fields of the response head: `Name: value CRLF`.
    pub fields: Vec<u8>,
}

const LINE_END: &[u8] = b"\r\n";
