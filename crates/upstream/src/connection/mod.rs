//! One connection to an application.
//!
//! ```text
//!   Connecting (─► Securing) ─► Serving ─► Idle ─► Serving ─► …          closed after any of them
//!                                       └──► Ending (its process holds the client's socket and is being ended)
//! ```
//!
//! A connection writes one request at a time and reads its answer, in the words of its codec. It knows neither the queue nor
//! the clock: it reports its progress, and the gateway decides.

mod deadlines;
mod phase;
mod reading;
mod receiving;

use std::sync::Arc;

use baton_buf::{Slice, Stop};
use baton_process_table::Release;
use baton_sys::progress;

pub(crate) use self::phase::{Phase, Serving};
pub(crate) use self::reading::ReadOutcome;

use crate::channel::Channel;
use crate::codec::{Codec, FastCgi, OfferOutcome, OfferedTransport, Turn};
use crate::passfd::PassedSocket;
use crate::send_queue::SendQueue;
use crate::shm::SharedRegion;
use crate::{AnswerTransport, Application, ClientEnds, FailureReason, Request, RequestId};

/// A connection to an application.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    application: Arc<Application>,
    /// Index of its pool, and of its lane in the pool.
    pub(crate) pool: usize,
    pub(crate) lane: usize,
    /// How to release its process when it is closed. `None`: the process has been released already.
    pub(crate) release: Option<Release>,
    pub(crate) other_end: OtherEnd,
    phase: Phase,
    acceptance: Acceptance,
    codec: Codec,
    send_queue: SendQueue,
    requests: u64,
    /// Whether there may be input, and whether the application has closed its end.
    readable: bool,
    hung_up: bool,
    /// Whether the socket is watched for room to write.
    pub(crate) watches_room: bool,
    /// Whether it is in the queue of connections to read without an event.
    pub(crate) is_requeued: bool,
    /// Whether its pool counts it as a tunnel.
    pub(crate) counts_as_tunnel: bool,
}

/// What is known of the other end of a connection from its beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherEnd {
    /// Whether it is a Unix socket.
    pub(crate) is_local: bool,
    /// Whether the application may be passed clients' sockets.
    pub(crate) is_trusted: bool,
    /// Whether the first request is sent so that it shows when the application has accepted the connection.
    pub(crate) shows_acceptance: bool,
    /// Whose connection it is, if that was said to the application.
    pub(crate) ends: Option<ClientEnds>,
}

/// Whether a process is known to be at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acceptance {
    /// The connection may be in the application's backlog.
    Awaited,
    Accepted,
    /// Its pool counts it as one whose process has answered.
    Counted,
}

impl OtherEnd {
    /// An origin about which nothing more is known.
    pub(crate) const REMOTE: Self =
        Self { is_local: false, is_trusted: false, shows_acceptance: false, ends: None };
}

/// The process may not know yet that the connection ends: were chunks that it looks at used again, it would take bytes of
/// another request for those of this one.
impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(pool) = self.send_queue.pool_in_use() {
            self.application.retire_chunks(pool);
        }
    }
}

impl Connection {
    /// A connection to the application, which is to be connected until then, for this request.
    pub(crate) fn new(
        application: Arc<Application>,
        channel: Channel,
        codec: Codec,
        (pool, lane): (usize, usize),
        other_end: OtherEnd,
        (request_id, until_ms): (RequestId, u64),
    ) -> Self {
        Self {
            channel,
            application,
            pool,
            lane,
            release: Some(Release::Unsure),
            other_end,
            phase: Phase::Connecting { request_id, until_ms },
            acceptance: Acceptance::Awaited,
            codec,
            send_queue: SendQueue::default(),
            requests: 0,
            readable: false,
            hung_up: false,
            watches_room: false,
            is_requeued: false,
            counts_as_tunnel: false,
        }
    }

    /// What it is doing.
    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The request that the application is answering.
    pub(crate) fn serving(&self) -> Option<&Serving> {
        if let Phase::Serving(serving) = &self.phase { Some(serving) } else { None }
    }

    fn serving_mut(&mut self) -> Option<&mut Serving> {
        if let Phase::Serving(serving) = &mut self.phase { Some(serving) } else { None }
    }

    /// It is connected. TLS may still have to be established, in the same time.
    pub(crate) fn note_connected(&mut self) {
        if let Phase::Connecting { request_id, until_ms } = self.phase {
            self.phase = Phase::Securing { request_id, until_ms };
        }
    }

    /// Its request is answered: it is kept until then, unless it is closed.
    pub(crate) fn rest(&mut self, until_ms: u64) {
        debug_assert!(self.serving().is_some(), "it rests from a request");
        (self.release, self.phase) = (Some(Release::Done), Phase::Idle { until_ms });
    }

    /// Its process has been released, and is being ended until then.
    pub(crate) fn note_process_ending(&mut self, until_ms: u64) {
        debug_assert!(self.release.is_some(), "a process is ended once");
        if let Phase::Serving(Serving { request_id, .. }) = self.phase {
            (self.release, self.phase) = (None, Phase::Ending { request_id, until_ms });
        }
    }

    /// Whether its pool is to count it from now on as one whose process has answered: once.
    pub(crate) fn take_acceptance(&mut self) -> bool {
        let is_new = self.acceptance == Acceptance::Accepted;
        if is_new {
            self.acceptance = Acceptance::Counted;
        }
        is_new
    }

    /// Whether its pool counts it as one whose process has answered.
    pub(crate) fn is_counted(&self) -> bool {
        self.acceptance == Acceptance::Counted
    }

    fn note_accepted(&mut self) {
        if self.acceptance == Acceptance::Awaited {
            self.acceptance = Acceptance::Accepted;
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
        self.release = Some(Release::Unsure);
        self.requests += 1;
        let keeps = self.codec.may_keep()
            && settings.keep_connections
            && self.requests != settings.requests_max_per_connection;
        let may_splice = request.takes_pipes && settings.splice_bytes_min > 0;
        let may_splice = may_splice && !self.other_end.is_local && !self.channel.is_secured();
        let splice_bytes_min = if may_splice { settings.splice_bytes_min } else { u64::MAX };
        self.phase = Phase::Serving(Serving::new(request_id, keeps, splice_bytes_min));
        let shows_acceptance = self.other_end.shows_acceptance && self.requests == 1;
        let turn = Turn { request_id, request, offered, keeps, shows_acceptance, patience_ms, block, memory };
        self.codec.begin(turn, &mut self.send_queue)
    }

    /// Whether the application may not have accepted the connection yet. On a Unix socket the gateway sees whether the
    /// request has been read. Over TCP only an answer tells.
    pub(crate) fn is_unaccepted(&mut self) -> bool {
        if self.acceptance == Acceptance::Awaited
            && self.other_end.is_local
            && progress::unread_by_peer(&self.channel).is_ok_and(|unread| self.send_queue.is_begun(unread))
        {
            self.note_accepted();
        }
        self.acceptance == Acceptance::Awaited
    }

    /// Adds the next piece of a streamed body.
    pub(crate) fn push_body(&mut self, part: Slice, is_last: bool) {
        if let Some(serving) = self.serving_mut() {
            serving.awaits_client = false;
        }
        self.send_queue.push_more_body(part, is_last);
    }

    /// Returns the request if its client is to be asked for more of the body, once per piece.
    pub(crate) fn ask_for_body(&mut self) -> Option<RequestId> {
        let is_wanted = self.awaits_body() && !self.has_to_write() && !self.send_queue.has_lent_enough();
        let serving = self.serving_mut().filter(|_| is_wanted)?;
        (!std::mem::replace(&mut serving.awaits_client, true)).then_some(serving.request_id)
    }

    /// Whether it waits for the client, which was asked for more of the body.
    pub(crate) fn awaits_client(&self) -> bool {
        self.serving().is_some_and(|serving| serving.awaits_client)
    }

    /// Whether the body is still incomplete.
    pub(crate) fn awaits_body(&self) -> bool {
        self.send_queue.is_open()
    }

    /// Whether it leads to an origin that speaks HTTP.
    pub(crate) fn is_http(&self) -> bool {
        matches!(self.codec, Codec::Http1(_))
    }

    /// What the other side has let pass when the deadline comes.
    pub(crate) fn overdue(&self) -> FailureReason {
        if self.is_tunnel() {
            FailureReason::TunnelIdle
        } else if self.serving().is_some_and(|serving| serving.deadlines.awaits_head()) {
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
        self.send_queue.open();
    }

    /// What the origin has not taken of a tunnel that another process can go on with: at most so many bytes. `None`: none can. Of
    /// TLS to an origin the keys are not given away.
    pub(crate) fn unsent_of_tunnel(&self, bytes_max: u64) -> Option<Vec<u8>> {
        let has_both_halves =
            self.serving().is_some_and(|Serving { halves, .. }| !halves.input_over && !halves.output_over);
        let is_whole = self.is_tunnel() && self.awaits_body() && has_both_halves;
        let is_bare = !self.channel.is_secured() && !self.channel.has_unsent();
        if is_whole && is_bare { self.send_queue.unsent(bytes_max) } else { None }
    }

    /// It comes from another process, as a tunnel.
    pub(crate) fn resume_tunnel(&mut self, request_id: RequestId, unsent: Vec<u8>) {
        self.phase = Phase::Serving(Serving::new(request_id, false, u64::MAX));
        self.requests = 1;
        self.send_queue.open();
        if !unsent.is_empty() {
            self.send_queue.push_more_body(Slice::from(unsent), false);
        }
    }

    /// Whether both directions of a tunnel have ended.
    pub(crate) fn is_tunnel_over(&self) -> bool {
        let is_half_over = self.serving().is_some_and(|serving| serving.halves.input_over);
        is_half_over && !self.awaits_body() && !self.has_to_write()
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
        let result = self.send_queue.flush(&mut self.channel);
        let Phase::Serving(serving) = &mut self.phase else { return result };
        if self.send_queue.has_sent() {
            serving.delivery.note_sent();
        }
        let is_all = matches!(result, Ok(true)) && self.codec.is_tunnel() && !self.send_queue.is_open();
        if is_all && !std::mem::replace(&mut serving.halves.output_over, true) {
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

    /// The transport offered with the current request, and what became of that.
    pub(crate) fn offer(&mut self) -> (OfferedTransport, OfferOutcome) {
        self.fastcgi().map_or((OfferedTransport::Nothing, OfferOutcome::Ignored), |codec| codec.offer())
    }

    /// How the bytes of the answer have come; `None`: from an origin.
    pub(crate) fn travelled(&self) -> Option<AnswerTransport> {
        let plain = if self.other_end.is_local { AnswerTransport::Unix } else { AnswerTransport::Inet };
        self.codec.travelled(plain)
    }

    /// Tells the application to give the client's socket back, if it has it.
    pub(crate) fn release(&mut self) -> bool {
        match &mut self.codec {
            Codec::FastCgi(codec) => codec.push_give_back(&mut self.send_queue),
            Codec::Scgi(_) | Codec::Http1(_) => false,
        }
    }

    /// The client's socket, if the application may be using it.
    pub(crate) fn passed(&mut self) -> Option<&mut PassedSocket> {
        let is_unsent = self.send_queue.holds_descriptor();
        self.fastcgi()?.passed().filter(|_| !is_unsent)
    }

    /// Whether another process may get the client's socket: this one never had it, or speaks plain FastCGI only and has
    /// written nothing to it. A process that uses the hand-over protocol may have left a copy to a child.
    pub(crate) fn client_is_untouched(&mut self) -> bool {
        let speaks_passfd = self.speaks_passfd();
        self.passed().is_none_or(|handed| !speaks_passfd && handed.is_untouched())
    }

    /// Whether the application has used the hand-over protocol.
    fn speaks_passfd(&mut self) -> bool {
        self.fastcgi().is_some_and(|codec| codec.speaks_passfd())
    }

    /// Whether there is output to write.
    pub(crate) fn has_to_write(&self) -> bool {
        !self.send_queue.is_empty() || self.channel.has_unsent()
    }

    /// Whether the application cannot have begun with the request: nothing was written, or the request was short enough for
    /// a library to read it with one call, and was left unread.
    pub(crate) fn is_unseen(&self) -> bool {
        self.serving().is_none_or(|serving| serving.delivery.is_unseen())
    }

    /// Writing has failed. What the application wrote before is still to be read.
    pub(crate) fn handle_broken_pipe(&mut self) {
        self.send_queue.drop_output();
        if let Some(serving) = self.serving_mut() {
            (serving.awaits_client, serving.keeps) = (false, false);
        }
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
            Codec::FastCgi(codec) => codec.push_free(&mut self.send_queue),
            Codec::Scgi(_) | Codec::Http1(_) => false,
        }
    }
}
