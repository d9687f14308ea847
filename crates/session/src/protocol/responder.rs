//! The protocol as the exchange that is being answered sees it: the rest of its request, and where its response goes.

use baton_buf::{Aggregate, Pool};
use baton_content::{HeadForm, Whole};
use baton_http::origin::{ResponseHead, Trailers};
use baton_http::response::{Client, Framing, HeadLines};
use baton_http::{Refusal, Status};
use baton_response::{Beginning, Reply};

use super::{ResponseState, StreamBody, TooShort, Written, h1, h2};

/// Where an exchange reads the rest of its request, and writes its response.
#[derive(Debug)]
pub(crate) enum Responder<'a> {
    Http1(h1::Responder<'a>),
    Http2(h2::Responder<'a>),
}

/// Calls the responder of a protocol, whichever it is.
macro_rules! each_protocol {
    ($responder:expr, $reply:ident => $result:expr) => {
        match $responder {
            Responder::Http1($reply) => $result,
            Responder::Http2($reply) => $result,
        }
    };
}

impl<'a> Responder<'a> {
    /// Answers on a stream of HTTP/2.
    pub(crate) fn http2(
        connection: &'a mut baton_http::h2::Connection,
        stream: baton_http::h2::StreamId,
        response: &'a mut ResponseState,
        body: &'a mut StreamBody,
    ) -> Self {
        Self::Http2(h2::Responder::new(connection, stream, response, body))
    }

    /// Ends an exchange's turn. `is_answered`: its response is complete, as far as it will come.
    pub(crate) fn finish(self, is_answered: bool) -> Written {
        match self {
            Self::Http1(reply) => reply.finish(),
            Self::Http2(reply) => reply.finish(is_answered),
        }
    }

    /// Whether a body follows that was not read.
    pub(crate) fn has_body_ahead(&self) -> bool {
        each_protocol!(self, reply => reply.has_body_ahead())
    }

    /// Has at most `bytes_max` of the body read. If it `invites`, a client that waits for `100 Continue` gets it.
    pub(crate) fn expect_body(&mut self, bytes_max: u64, invites: bool) {
        each_protocol!(self, reply => reply.expect_body(bytes_max, invites));
    }

    /// Sends a head in front of the head (1xx), if the client can read it.
    pub(crate) fn send_interim(&mut self, heads: &mut Pool, head: &ResponseHead) {
        each_protocol!(self, reply => reply.send_interim(heads, head));
    }

    /// Nothing follows behind a switch of protocols, but the client may go on.
    pub(crate) fn end_half(&mut self) {
        each_protocol!(self, reply => reply.end_half());
    }

    /// Reads what has arrived of a body that the answer does not depend on. Returns whether it is larger than
    /// `bytes_max`.
    ///
    /// # Errors
    /// It is malformed.
    pub(crate) fn ignore_body(&mut self, bytes_max: u64) -> Result<bool, Refusal> {
        match self {
            Self::Http1(reply) => reply.ignore_body(bytes_max),
            Self::Http2(reply) => Ok(reply.ignore_body(bytes_max)),
        }
    }

    /// The request, or its rest, is not to be read: what follows may not be understood.
    pub(crate) fn refuse(&mut self) {
        match self {
            Self::Http1(reply) => reply.refuse(),
            // Frames say where the next request begins.
            Self::Http2(_) => {}
        }
    }

    /// The client's connection ends with this response, if it is the only one on it.
    pub(crate) fn close_behind(&mut self) {
        match self {
            Self::Http1(reply) => reply.close_behind(),
            Self::Http2(_) => {}
        }
    }

    /// The rest of this response will not come.
    pub(crate) fn cut(&mut self) {
        each_protocol!(self, reply => reply.cut());
    }

    /// What an application needs to know to answer in the server's place; `None`: only the server can answer.
    pub(crate) fn client_to_pass(&mut self) -> Option<Client> {
        match self {
            Self::Http1(reply) => Some(reply.client()),
            Self::Http2(_) => None,
        }
    }

    /// The application has written its head, and perhaps some of its body, to the client itself. What is
    /// [sent](Self::send_part) from here on is framed.
    pub(crate) fn resume(&mut self, may_go_on: bool) {
        match self {
            Self::Http1(reply) => reply.resume(may_go_on),
            Self::Http2(_) => debug_assert!(false, "no application was given a connection of HTTP/2"),
        }
    }

    /// Sends a part of a body, framed as its head has announced.
    pub(crate) fn send_part(&mut self, body: Aggregate) {
        each_protocol!(self, reply => reply.send_part(body));
    }

    /// The body is complete. `trailers` go behind it where the framing has a place for them.
    ///
    /// # Errors
    /// [`TooShort`].
    pub(crate) fn end(&mut self, trailers: Option<&Trailers>) -> Result<(), TooShort> {
        each_protocol!(self, reply => reply.end(trailers))
    }
}

impl Reply for Responder<'_> {
    fn head_form(&mut self) -> HeadForm {
        match self {
            Self::Http1(reply) => reply.head_form(),
            Self::Http2(_) => h2::Responder::HEAD_FORM,
        }
    }

    fn may_send_by_reference(&self) -> bool {
        match self {
            Self::Http1(reply) => reply.may_send_by_reference(),
            // A frame of 16 KiB takes two calls by reference, and none of its own from memory.
            Self::Http2(_) => false,
        }
    }

    fn send_whole(&mut self, whole: Whole) {
        each_protocol!(self, reply => reply.send_whole(whole));
    }

    fn client(&mut self) -> Client {
        each_protocol!(self, reply => reply.client())
    }

    fn send_head(
        &mut self,
        heads: &mut Pool,
        head: HeadLines<'_>,
        framing: Framing,
        fields: &[u8],
        body: Beginning,
    ) {
        each_protocol!(self, reply => reply.send_head(heads, head, framing, fields, body));
    }

    fn send_switch(&mut self, heads: &mut Pool, head: &ResponseHead, fields: &[u8]) -> Status {
        each_protocol!(self, reply => reply.send_switch(heads, head, fields))
    }
}
