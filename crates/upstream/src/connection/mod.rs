//! One connection to an application.
//!
//! ```text
//!   Connecting (─► Securing) ─► Serving ─► Idle ─► Serving ─► …          closed after any of them
//!                                       └──► Ending (its process holds the client's socket and is being ended)
//! ```
//!
//! A connection writes one request at a time and reads its answer, in the words of its codec. It knows neither the queue nor
//! the clock: it reports its progress, and the gateway decides.

mod reading;
mod receiving;

use std::sync::Arc;

use baton_buf::{Pipe, Slice, Stop};
use baton_process_table::Release;
use baton_sys::progress;

pub(crate) use self::reading::ReadOutcome;

use crate::channel::Channel;
use crate::codec::{Codec, FastCgi, OfferedTransport, Turn};
use crate::outgoing::Outgoing;
use crate::passfd::HandedOver;
use crate::shm::SharedRegion;
use crate::{ClientEnds, FailureReason, Request, RequestId};

/// A connection to an application.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    /// Index of its pool, and of its lane in the pool.
    pub(crate) pool: usize,
    pub(crate) lane: usize,
    /// How to release its process when it is closed. `None`: the process has been released already.
    pub(crate) release: Option<Release>,
    pub(crate) state: ConnectionState,
    /// When it times out; `u64::MAX`: never.
    pub(crate) deadline_ms: u64,
    /// End of the client's grace period, in which the application waits; `u64::MAX`: there is none.
    pub(crate) grace_until_ms: u64,
    /// When the head of the response must have come; `u64::MAX`: it has, or may take as long as anything else.
    pub(crate) head_due_ms: u64,
    /// Whether the client was asked for more of the request's body.
    awaits_client: bool,
    /// Whether the socket is watched for room to write.
    pub(crate) watches_room: bool,
    /// Whether it is in the queue of connections to read without an event.
    pub(crate) is_requeued: bool,
    /// Whether the application is known to have accepted it.
    pub(crate) is_accepted: bool,
    /// Whether its first request is sent so that it shows when the application has accepted it.
    pub(crate) shows_acceptance: bool,
    /// Whether its pool counts it as one whose process has answered.
    pub(crate) is_counted: bool,
    /// Whether its pool counts it as a tunnel.
    pub(crate) counts_as_tunnel: bool,
    /// Whether it is a Unix socket.
    pub(crate) is_local: bool,
    /// Whether the application at its other end may be passed clients' sockets.
    pub(crate) is_trusted: bool,
    /// Whose it is, if it has said so.
    pub(crate) ends: Option<ClientEnds>,

    codec: Codec,
    outgoing: Outgoing,
    requests: u64,
    /// Whether it will be kept when the request has been answered.
    keeps: bool,
    /// Whether the socket has taken any of the request, and whether the application has sent anything since.
    has_written: bool,
    has_heard: bool,
    /// The application had not read the request when it closed the connection.
    was_left_unread: bool,
    /// Whether there may be input, and whether the application has closed its end.
    readable: bool,
    hung_up: bool,
    /// From how many bytes on the rest of the response's body goes through a pipe; `u64::MAX`: it does not.
    splice_bytes_min: u64,
    /// The pipe of this response.
    pipe: Option<Arc<Pipe>>,
    /// The other side of a tunnel has ended its half, and ours is to end behind what is queued, or has.
    is_half_over: bool,
    ends_output: bool,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// It is being connected, for this request.
    Connecting { request_id: RequestId },
    /// It is connected, and TLS is not established yet.
    Securing { request_id: RequestId },
    /// The application is answering this request.
    Serving { request_id: RequestId },
    /// It is kept for the next request.
    Idle,
    /// The request has timed out. Its process holds the client's socket and is being ended.
    Ending { request_id: RequestId },
}

impl Connection {
    pub(crate) fn new(
        channel: Channel,
        codec: Codec,
        (pool, lane): (usize, usize),
        request_id: RequestId,
    ) -> Self {
        Self {
            channel,
            pool,
            lane,
            release: Some(Release::Unsure),
            state: ConnectionState::Connecting { request_id },
            deadline_ms: u64::MAX,
            grace_until_ms: u64::MAX,
            head_due_ms: u64::MAX,
            awaits_client: false,
            watches_room: false,
            is_requeued: false,
            is_accepted: false,
            shows_acceptance: false,
            is_counted: false,
            counts_as_tunnel: false,
            is_local: true,
            is_trusted: false,
            ends: None,
            codec,
            outgoing: Outgoing::default(),
            requests: 0,
            keeps: false,
            has_written: false,
            has_heard: false,
            was_left_unread: false,
            readable: false,
            hung_up: false,
            splice_bytes_min: u64::MAX,
            pipe: None,
            is_half_over: false,
            ends_output: false,
        }
    }

    /// Whether it has served a request before the current one.
    pub(crate) fn was_used(&self) -> bool {
        self.requests > 1
    }

    /// Notes an event of epoll.
    pub(crate) fn handle_ready(&mut self, readable: bool, hung_up: bool) {
        self.readable |= readable || hung_up;
        self.hung_up |= hung_up;
    }

    /// Whether the application has closed its end, perhaps because its process has ended.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.hung_up
    }

    /// Whether there may be input.
    pub(crate) fn is_readable(&self) -> bool {
        self.readable
    }

    /// Looks at an idle connection: whether unexpected input has come, or the application has closed it.
    pub(crate) fn has_input(&mut self) -> bool {
        self.channel.has_stray_input()
    }

    /// Queues a request without writing it. `patience_ms`: how long an application that writes to a stalled client shall
    /// wait. `block` is scratch memory, `memory` is for the head of the response.
    ///
    /// # Errors
    /// [`FailureReason::BadRequest`].
    pub(crate) fn begin(
        &mut self,
        request_id: RequestId,
        request: &Request,
        offered: OfferedTransport,
        patience_ms: u32,
        (block, memory): (&mut Vec<u8>, Vec<u8>),
    ) -> Result<(), FailureReason> {
        let settings = request.application.settings();
        self.state = ConnectionState::Serving { request_id };
        self.release = Some(Release::Unsure);
        self.requests += 1;
        (self.has_written, self.has_heard) = (false, false);
        self.awaits_client = false;
        self.keeps = self.codec.may_keep()
            && settings.keep_connections
            && self.requests != settings.requests_max_per_connection;
        let may_splice = request.takes_pipes && settings.splice_bytes_min > 0;
        let may_splice = may_splice && !self.is_local && !self.channel.is_secured();
        self.splice_bytes_min = if may_splice { settings.splice_bytes_min } else { u64::MAX };
        self.pipe = None;
        let (keeps, shows_acceptance) = (self.keeps, self.shows_acceptance && self.requests == 1);
        let turn = Turn { request_id, request, offered, keeps, shows_acceptance, patience_ms, block, memory };
        self.codec.begin(turn, &mut self.outgoing)
    }

    /// Whether the application may not have accepted the connection yet. On a Unix socket the gateway sees whether the
    /// request has been read. Over TCP only an answer tells.
    pub(crate) fn is_unaccepted(&mut self) -> bool {
        if !self.is_accepted && self.is_local {
            let unread = progress::unread_by_peer(&self.channel);
            self.is_accepted = unread.is_ok_and(|unread| self.outgoing.is_begun(unread));
        }
        !self.is_accepted
    }

    /// Adds the next piece of a streamed body.
    pub(crate) fn push_body(&mut self, part: Slice, is_last: bool) {
        self.awaits_client = false;
        self.outgoing.push_more_body(part, is_last);
    }

    /// Returns the request if its client is to be asked for more of the body, once per piece.
    pub(crate) fn ask_for_body(&mut self) -> Option<RequestId> {
        let ConnectionState::Serving { request_id } = self.state else { return None };
        let is_wanted = self.awaits_body() && !self.has_to_write();
        (is_wanted && !std::mem::replace(&mut self.awaits_client, true)).then_some(request_id)
    }

    /// Whether it waits for the client, which was asked for more of the body.
    pub(crate) fn awaits_client(&self) -> bool {
        self.awaits_client
    }

    /// Whether the body is still incomplete.
    pub(crate) fn awaits_body(&self) -> bool {
        self.outgoing.is_open()
    }

    /// Whether it leads to an origin that speaks HTTP.
    pub(crate) fn is_http(&self) -> bool {
        matches!(self.codec, Codec::Http1(_))
    }

    /// What the other side has let pass when the deadline comes.
    pub(crate) fn overdue(&self) -> FailureReason {
        if self.is_tunnel() {
            FailureReason::TunnelIdle
        } else if self.head_due_ms != u64::MAX {
            FailureReason::HeadTimedOut
        } else {
            FailureReason::TimedOut
        }
    }

    /// Whether bytes of another protocol flow on it, in both directions.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.codec.is_tunnel()
    }

    /// The client's bytes may follow, whatever they mean.
    pub(crate) fn open_tunnel(&mut self) {
        self.outgoing.open();
    }

    /// What the origin has not taken of a tunnel that another process can go on with: at most so many bytes. `None`: none can. Of
    /// TLS to an origin the keys are not given away.
    pub(crate) fn unsent_of_tunnel(&self, bytes_max: u64) -> Option<Vec<u8>> {
        let is_whole = self.is_tunnel() && self.awaits_body() && !self.is_half_over && !self.ends_output;
        let is_bare = !self.channel.is_secured() && !self.channel.has_unsent();
        if is_whole && is_bare { self.outgoing.unsent(bytes_max) } else { None }
    }

    /// It comes from another process, as a tunnel.
    pub(crate) fn resume_tunnel(&mut self, request_id: RequestId, unsent: Vec<u8>) {
        self.state = ConnectionState::Serving { request_id };
        self.is_local = false;
        self.requests = 1;
        self.outgoing.open();
        if !unsent.is_empty() {
            self.outgoing.push_more_body(Slice::from(unsent), false);
        }
    }

    /// Whether both directions of a tunnel have ended.
    pub(crate) fn is_tunnel_over(&self) -> bool {
        self.is_half_over && !self.awaits_body() && !self.has_to_write()
    }

    /// How long the other side keeps it idle, in milliseconds, if it says so.
    pub(crate) fn idle_ms(&self) -> Option<u64> {
        self.codec.idle_ms()
    }

    /// Writes until the socket is full. Returns whether everything was written.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) fn write(&mut self) -> Result<bool, Stop> {
        let result = self.outgoing.flush(&mut self.channel);
        self.has_written |= self.outgoing.has_sent();
        if matches!(result, Ok(true)) && self.is_tunnel() && !self.awaits_body() && !self.ends_output {
            self.ends_output = true;
            self.channel.end_output();
        }
        result
    }

    fn fastcgi(&mut self) -> Option<&mut FastCgi> {
        match &mut self.codec {
            Codec::FastCgi(codec) => Some(codec),
            Codec::Scgi(_) | Codec::Http1(_) => None,
        }
    }

    /// The transport offered with the current request, and whether the application took it up.
    pub(crate) fn offer(&mut self) -> (OfferedTransport, bool) {
        self.fastcgi().map_or((OfferedTransport::Nothing, false), |codec| codec.offer())
    }

    /// Tells the application to give the client's socket back, if it has it.
    pub(crate) fn release(&mut self) -> bool {
        match &mut self.codec {
            Codec::FastCgi(codec) => codec.push_give_back(&mut self.outgoing),
            Codec::Scgi(_) | Codec::Http1(_) => false,
        }
    }

    /// The client's socket, if the application may be using it.
    pub(crate) fn handed_over(&mut self) -> Option<&mut HandedOver> {
        let is_unsent = self.outgoing.holds_descriptor();
        self.fastcgi()?.handed_over().filter(|_| !is_unsent)
    }

    /// Whether another process may get the client's socket: this one never had it, or speaks plain FastCGI only and has
    /// written nothing to it. A process that uses the hand-over protocol may have left a copy to a child.
    pub(crate) fn client_is_untouched(&mut self) -> bool {
        let speaks_handover = self.speaks_handover();
        self.handed_over().is_none_or(|handed| !speaks_handover && handed.is_untouched())
    }

    /// Whether the application has used the hand-over protocol.
    fn speaks_handover(&mut self) -> bool {
        self.fastcgi().is_some_and(|codec| codec.speaks_handover())
    }

    /// Whether there is output to write.
    pub(crate) fn has_to_write(&self) -> bool {
        !self.outgoing.is_empty() || self.channel.has_unsent()
    }

    /// Whether the application cannot have begun with the request: nothing was written, or the request was short enough for
    /// a library to read it with one call, and was left unread.
    pub(crate) fn is_unseen(&self) -> bool {
        !self.has_written || self.was_left_unread
    }

    /// Writing has failed. What the application wrote before is still to be read.
    pub(crate) fn handle_broken_pipe(&mut self) {
        self.outgoing = Outgoing::default();
        self.awaits_client = false;
        self.keeps = false;
        self.handle_ready(true, true);
    }

    /// The region that it shares with the application.
    pub(crate) fn region(&mut self) -> Option<&mut SharedRegion> {
        self.fastcgi()?.region()
    }

    /// Whether the application will soon have to wait for its region, or does already.
    pub(crate) fn waits_for_region(&mut self) -> bool {
        self.fastcgi().is_some_and(|codec| codec.waits_for_region())
    }

    /// Queues a message with the bytes that the application may reuse in its region. Returns whether there is one.
    pub(crate) fn tell_free(&mut self) -> bool {
        match &mut self.codec {
            Codec::FastCgi(codec) => codec.push_free(&mut self.outgoing),
            Codec::Scgi(_) | Codec::Http1(_) => false,
        }
    }
}
