//! What is spoken on a connection: a request goes out, its response comes in.
//!
//! ```text
//!   Request ─► Codec::begin ─► SendQueue ─► channel
//!   channel ─► Codec::read  ─► PendingResponse
//! ```
//!
//! A codec knows neither the socket nor the clock, and nothing of pools. What a protocol can do beyond that, such as handing
//! the client's socket over, is the codec's own.

mod cgi_output;
mod fastcgi;
mod http1;
mod scgi;
mod turn;

pub(crate) use fastcgi::FastCgi;
pub(crate) use turn::{Ended, OfferOutcome, OfferedTransport, StreamEnd, Turn};

use baton_buf::Buffer;
use http1::Http1;
use scgi::Scgi;

use crate::pending_response::PendingResponse;
use crate::send_queue::SendQueue;
use crate::temporary::TemporaryFiles;
use crate::{AnswerTransport, FailureReason, Protocol, Settings};

/// The protocol of a connection, and where in it the connection is.
#[derive(Debug)]
pub(crate) enum Codec {
    FastCgi(Box<FastCgi>),
    Scgi(Scgi),
    Http1(Box<Http1>),
}

impl Codec {
    /// The codec of a new connection.
    pub(crate) fn new(settings: &Settings) -> Self {
        match settings.protocol {
            Protocol::FastCgi => Self::FastCgi(Box::default()),
            Protocol::Scgi => Self::Scgi(Scgi::default()),
            Protocol::Http1 => Self::Http1(Box::new(Http1::new(settings.head_bytes_max))),
        }
    }

    /// The codec of a connection on which another process has switched protocols.
    pub(crate) fn tunnel() -> Self {
        Self::Http1(Box::new(Http1::tunnel()))
    }

    /// Whether connections can be used for more than one request.
    pub(crate) fn may_keep(&self) -> bool {
        !matches!(self, Self::Scgi(_))
    }

    /// Queues a request without writing it.
    ///
    /// # Errors
    /// [`FailureReason::BadRequest`].
    pub(crate) fn begin(&mut self, turn: Turn<'_>, send_queue: &mut SendQueue) -> Result<(), FailureReason> {
        match self {
            Self::FastCgi(codec) => codec.begin(turn, send_queue),
            Self::Scgi(codec) => return codec.begin(turn, send_queue),
            Self::Http1(codec) => codec.begin(turn, send_queue),
        }
        Ok(())
    }

    /// Reads what has arrived of a response.
    ///
    /// # Errors
    /// Why it must not go on.
    pub(crate) fn read(
        &mut self,
        received: &Buffer,
        response: &mut PendingResponse,
        files: &TemporaryFiles,
    ) -> Result<Option<Ended>, FailureReason> {
        match self {
            Self::FastCgi(codec) => codec.read(received, response, files),
            Self::Scgi(codec) => codec.read(received, response, files),
            Self::Http1(codec) => codec.read(received, response, files),
        }
    }

    /// Bytes of a response's body that come next on the connection, with nothing between them.
    pub(crate) fn plain_left(&self) -> u64 {
        match self {
            Self::Http1(codec) => codec.plain_left(),
            Self::FastCgi(_) | Self::Scgi(_) => 0,
        }
    }

    /// So many of these bytes were not [read](Self::read), but moved on.
    pub(crate) fn pass(&mut self, bytes: u64) {
        if let Self::Http1(codec) = self {
            codec.pass(bytes);
        }
    }

    /// The other side has ended the connection, in order or, if it `is_reset`, not.
    pub(crate) fn handle_end(&mut self, response: &mut PendingResponse, is_reset: bool) -> StreamEnd {
        match self {
            Self::FastCgi(_) => StreamEnd::abrupt(response),
            // An application that closes without reading the whole body resets the connection.
            Self::Scgi(codec) => codec.handle_end(response),
            Self::Http1(codec) => codec.handle_end(response, is_reset),
        }
    }

    /// How the bytes of an answer have come, `plain` without an offer; `None`: from an origin.
    pub(crate) fn travelled(&self, plain: AnswerTransport) -> Option<AnswerTransport> {
        match self {
            Self::FastCgi(codec) => Some(codec.travelled().unwrap_or(plain)),
            Self::Scgi(_) => Some(plain),
            Self::Http1(_) => None,
        }
    }

    /// How long the other side keeps an idle connection, if it says so, in milliseconds.
    pub(crate) fn idle_ms(&self) -> Option<u64> {
        match self {
            Self::Http1(codec) => codec.idle_ms(),
            Self::FastCgi(_) | Self::Scgi(_) => None,
        }
    }

    /// Whether bytes of another protocol flow, in both directions.
    pub(crate) fn is_tunnel(&self) -> bool {
        matches!(self, Self::Http1(codec) if codec.is_tunnel())
    }
}
