//! What a session needs before its next step.

use baton_buf::Slice;
use baton_shares::ClientKey;
use baton_upstream::{FailureReason, TunnelEnd};

use crate::job::Job;
use crate::protocol::StreamId;

/// What a session needs before its next step.
#[derive(Debug)]
pub enum Need {
    /// Its socket readable.
    Readable,
    /// Its socket writable.
    Writable,
    /// A job done that may block; then [`Session::handle_job`](super::Session::handle_job). It takes its turn as this client's:
    /// behind a proxy, the one that the proxy tells of; `None`: of a Unix socket.
    Job(Job, Option<ClientKey>),
    /// The job that was asked for before.
    JobUnderWay,
    /// Something of what answers elsewhere, at once ([`Requests::handle_need`](crate::requests::Requests::handle_need)).
    Upstream(UpstreamNeed),
    /// To be woken by the gateway's next event for that request.
    ResponseAwaited,
    /// Another step, after other clients have had a turn or on a thread of the other stage.
    Turn,
    /// Nothing ever again: drop it.
    Finished,
}

/// What a session needs of what answers its requests elsewhere.
#[derive(Debug)]
pub enum UpstreamNeed {
    /// A request to be given to its application, whose events will wake the session.
    Delegate(StreamId, baton_cache::SourceRequest),
    /// A tunnel of another process to be gone on with; then [`Session::handle_response_events`](super::Session::handle_response_events).
    Resume(StreamId, Box<TunnelEnd>),
    /// A piece of a delegated request's body to be passed on, or the reason why no more will come.
    Body(StreamId, Result<BodyPart, FailureReason>),
    /// The gateway's next events for the delegated request, as far as there are any.
    ResponseEvents(StreamId),
    /// This request to be taken back from what answers it: its client has gone, or the answer is not wanted.
    Abandon(StreamId),
}

/// A piece of a request's body, or of what a client sends into a tunnel.
#[derive(Debug)]
pub struct BodyPart {
    /// As they arrived.
    pub bytes: Slice,
    /// Nothing follows. Where the length is known, it says so, too.
    pub is_last: bool,
}

/// The halves of the work, for architectures that give them to different threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading, parsing, finding content.
    Read,
    /// Sending.
    Write,
    /// Both.
    Any,
}
