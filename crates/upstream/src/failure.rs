//! The reasons of failures.

use std::fmt;

use baton_fcgi::Broken;
use baton_fcgi::cgi::BadHead;
use baton_http::origin::BadResponse;
use baton_sys::descriptors;
use baton_tls::OriginTlsError;
use rustix::io::Errno;

use crate::socket::NO_ADDRESS;

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
    /// TLS could not be established.
    Tls(OriginTlsError),
    /// Too many requests wait already.
    QueueFull,
    /// A request that asks for a tunnel beyond the bound.
    TunnelsFull,
    /// It waited for too long.
    QueueTimeout,
    /// An origin could not be connected to in time.
    ConnectTimedOut,
    /// The head of an origin's response has not come in time.
    HeadTimedOut,
    /// The application neither read nor wrote anything for too long.
    TimedOut,
    /// Nothing has moved in a tunnel for too long.
    TunnelIdle,
    /// The application closed its connection before its response was complete.
    Ended,
    /// The application does not speak the protocol.
    Broken(Broken),
    /// The head of the application's response is invalid.
    BadHead(BadHead),
    /// The origin's response must not go on.
    BadResponse(BadResponse),
    /// The application refused the request.
    Overloaded,
    /// An operator wants the origin, or all of several, to get no requests.
    Drained,
    /// The client has ended its connection, or its half of it, in the middle of the request's body.
    ClientGone,
    /// The client was silent for too long in the middle of the request's body.
    BodyTimedOut,
    /// The request's body, whose length was unknown, is too long.
    BodyTooLong,
    /// The request's body is malformed.
    BodyBroken,
    /// The request cannot be expressed in the application's protocol.
    BadRequest(Broken),
    /// The shared cache had to give up a part of the response before this client was that far.
    Evicted,
    /// The origin has another version now than the one of which this client has the beginning.
    Changed,
}

impl FailureReason {
    /// The status of the error response.
    pub fn status(self) -> u16 {
        match self {
            Self::QueueFull | Self::TunnelsFull | Self::QueueTimeout | Self::Overloaded | Self::Drained => {
                503
            }
            Self::ConnectTimedOut
            | Self::HeadTimedOut
            | Self::TimedOut
            | Self::TunnelIdle
            | Self::Evicted => 504,
            Self::BadRequest(_) | Self::BodyBroken | Self::ClientGone => 400,
            Self::BodyTimedOut => 408,
            Self::BodyTooLong => 413,
            Self::NoConnection(_)
            | Self::Tls(_)
            | Self::Ended
            | Self::Broken(_)
            | Self::BadHead(_)
            | Self::BadResponse(_)
            | Self::Changed => 502,
        }
    }

    /// Whether the client caused it, not the application.
    pub fn is_clients(self) -> bool {
        matches!(
            self,
            Self::ClientGone
                | Self::BodyTimedOut
                | Self::BodyTooLong
                | Self::BodyBroken
                | Self::BadRequest(_)
        )
    }

    /// Whether it speaks against the origin. Our own bounds and our clients do not.
    pub(crate) fn is_fault_of_peer(self) -> bool {
        match self {
            Self::NoConnection(error) => error != Errno::AGAIN && !descriptors::ran_out(error),
            Self::Tls(_)
            | Self::ConnectTimedOut
            | Self::HeadTimedOut
            | Self::TimedOut
            | Self::Ended
            | Self::Broken(_)
            | Self::BadHead(_) => true,
            // A client that asks for a tunnel where there is none.
            Self::BadResponse(bad) => bad != BadResponse::SwitchIgnored,
            _ => false,
        }
    }

    /// Whether the peer cannot be reached, whatever is asked for. All other faults can be those of one request.
    pub(crate) fn is_unreachable(self) -> bool {
        matches!(self, Self::NoConnection(_) | Self::Tls(_) | Self::ConnectTimedOut)
    }

    /// One word for logs and metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::NoConnection(_) => "no-connection",
            Self::Tls(_) => "tls-failed",
            Self::QueueFull => "queue-full",
            Self::TunnelsFull => "tunnels-full",
            Self::QueueTimeout => "queue-timeout",
            Self::ConnectTimedOut => "connect-timed-out",
            Self::HeadTimedOut => "head-timed-out",
            Self::TimedOut => "timed-out",
            Self::TunnelIdle => "tunnel-idle",
            Self::Ended => "ended-early",
            Self::Broken(_) => "broken-protocol",
            Self::BadHead(_) => "bad-head",
            Self::BadResponse(_) => "bad-response",
            Self::Overloaded => "overloaded",
            Self::Drained => "drained",
            Self::ClientGone => "client-gone",
            Self::BodyTimedOut => "body-timed-out",
            Self::BodyTooLong => "body-too-long",
            Self::BodyBroken => "body-broken",
            Self::BadRequest(_) => "bad-request",
            Self::Evicted => "evicted",
            Self::Changed => "changed",
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
                    NO_ADDRESS => "; no address of its host is known",
                    Errno::ACCESS => "; the workers' user needs the right to write to the socket",
                    _ => "",
                })
            }
            Self::Tls(trouble) => trouble.fmt(f),
            Self::QueueFull => f.write_str("too many requests wait for it"),
            Self::TunnelsFull => f.write_str("it has as many tunnels as it may have"),
            Self::QueueTimeout => f.write_str("a request waited for too long"),
            Self::ConnectTimedOut => f.write_str("it could not be connected to in time"),
            Self::HeadTimedOut => f.write_str("the head of its response did not come in time"),
            Self::TunnelIdle => f.write_str("nothing moved in the tunnel to it for too long"),
            Self::TimedOut => f.write_str("it neither took nor gave anything for too long"),
            Self::Ended => f.write_str("it closed its connection before its response was complete"),
            Self::Broken(broken) => write!(f, "it does not speak the protocol: {broken}"),
            Self::BadHead(bad) => write!(f, "its response cannot be sent on: {bad}"),
            Self::BadResponse(bad) => write!(f, "its response cannot be sent on: {bad}"),
            Self::Overloaded => f.write_str("it refuses requests, being overloaded"),
            Self::Drained => f.write_str("it gets no requests: `baton ctl drain-origin`"),
            Self::ClientGone => f.write_str("its client went away in the middle of the request's body"),
            Self::BodyTimedOut => f.write_str("its client was silent in the middle of the request's body"),
            Self::BodyTooLong => f.write_str("the request's body is longer than the limit"),
            Self::BodyBroken => f.write_str("the request's body is malformed"),
            Self::BadRequest(broken) => write!(f, "the request cannot be said in its protocol: {broken}"),
            Self::Evicted => {
                f.write_str("a part of its response was evicted from the cache before the client read it")
            }
            Self::Changed => {
                f.write_str("it has another version than the one that the client has begun to read")
            }
        }
    }
}
