//! The pieces of a response, and the reasons of failures.

use std::fmt;

use baton_buf::Aggregate;
use baton_fcgi::cgi::{BadHead, CgiHead};
use baton_fcgi::{Answered, Broken, Rest};
use rustix::io::Errno;

/// The next piece of an answer. In order: `Head`, any number of `Body`, `End`; or `Rest`, any number of `Body`, `End`;
/// or `Answered`. `Failed` can take the place of any of these. `Stderr` may come anywhere in front of the last.
#[derive(Debug)]
pub enum ResponseEvent {
    /// Complete lines that the application wrote for the error log.
    Stderr(Vec<u8>),
    /// The head of the response.
    Head(CgiHead),
    /// The next bytes of the response's body; behind a `Rest`, the next bytes on the wire.
    Body(Aggregate),
    /// The application has begun to answer on the client's socket, and gives the rest back: the socket is the server's
    /// again, and every `Body` from here on is sent on it as it is.
    Rest(Rest),
    /// The response is complete. The last event of its request.
    End {
        /// What the application says of itself: 0 by convention if all went well.
        app_status: u32,
    },
    /// The application has answered on the client's socket, which is the server's again. The last event of its request.
    Answered(Answered),
    /// The response is missing or incomplete. The last event of its request.
    Failed(Failure),
}

impl ResponseEvent {
    /// Whether it is the last of its request, which the gateway has forgotten.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::End { .. } | Self::Answered(_) | Self::Failed(_))
    }
}

/// Why a request has no answer, or no complete one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason.
    pub why: FailureReason,
    /// Whether the application may have written to the client's socket, so that the connection cannot be used any more. It
    /// has been shut down and has to be closed.
    pub client_lost: bool,
    /// Whether the application is gone after having had the client's socket without using it. A child may still hold a copy
    /// of the socket, so the answer must be the last one, and the socket must be shut down for writing behind it.
    pub must_end: bool,
}

/// The reason of a [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// The application could not be connected to.
    NoConnection(Errno),
    /// Too many requests wait already.
    QueueFull,
    /// It waited for too long.
    QueueTimeout,
    /// The application neither read nor wrote anything for too long.
    TimedOut,
    /// The application closed its connection before its response was complete.
    Ended,
    /// The application does not speak the protocol.
    Broken(Broken),
    /// The head of the application's response is invalid.
    BadHead(BadHead),
    /// The application refused the request.
    Overloaded,
    /// The client has ended its connection, or its half of it, in the middle of the request's body.
    ClientGone,
    /// The client was silent for too long in the middle of the request's body.
    BodyTimedOut,
    /// The request cannot be expressed in the application's protocol.
    BadRequest(Broken),
}

impl FailureReason {
    /// The status of the error response.
    pub fn status(self) -> u16 {
        match self {
            Self::QueueFull | Self::QueueTimeout | Self::Overloaded => 503,
            Self::TimedOut => 504,
            Self::BadRequest(_) | Self::ClientGone => 400,
            Self::BodyTimedOut => 408,
            Self::NoConnection(_) | Self::Ended | Self::Broken(_) | Self::BadHead(_) => 502,
        }
    }

    /// Whether the client caused it, not the application.
    pub fn is_clients(self) -> bool {
        matches!(self, Self::ClientGone | Self::BodyTimedOut | Self::BadRequest(_))
    }

    /// One word for logs and metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::NoConnection(_) => "no-connection",
            Self::QueueFull => "queue-full",
            Self::QueueTimeout => "queue-timeout",
            Self::TimedOut => "timed-out",
            Self::Ended => "ended-early",
            Self::Broken(_) => "broken-protocol",
            Self::BadHead(_) => "bad-head",
            Self::Overloaded => "overloaded",
            Self::ClientGone => "client-gone",
            Self::BodyTimedOut => "body-timed-out",
            Self::BadRequest(_) => "bad-request",
        }
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoConnection(errno) => {
                write!(f, "cannot be connected to: {errno}")?;
                f.write_str(match *errno {
                    Errno::NOENT | Errno::CONNREFUSED => "; is it running?",
                    Errno::ACCESS => "; the workers' user needs the right to write to the socket",
                    _ => "",
                })
            }
            Self::QueueFull => f.write_str("too many requests wait for it"),
            Self::QueueTimeout => f.write_str("a request waited for too long"),
            Self::TimedOut => f.write_str("it neither took nor gave anything for too long"),
            Self::Ended => f.write_str("it closed its connection before its response was complete"),
            Self::Broken(broken) => write!(f, "it does not speak the protocol: {broken}"),
            Self::BadHead(bad) => write!(f, "its response cannot be sent on: {bad}"),
            Self::Overloaded => f.write_str("it refuses requests, being overloaded"),
            Self::ClientGone => f.write_str("its client went away in the middle of the request's body"),
            Self::BodyTimedOut => f.write_str("its client was silent in the middle of the request's body"),
            Self::BadRequest(broken) => write!(f, "the request cannot be said in its protocol: {broken}"),
        }
    }
}
