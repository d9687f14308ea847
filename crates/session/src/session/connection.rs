//! The connection under a protocol: its transport, what is being sent on it, how it ends, and its deadline.

use std::time::Duration;

use baton_buf::Stop;
use baton_shares::ClientKey;
use baton_telemetry::clock::Clock;
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;

use super::need::Need;
use crate::agent_link::FlowEvent;
use crate::context::Context;
use crate::job::Job;
use crate::protocol::LastClose;
use crate::send_queue::{Flush, SendPolicy, SendQueue};
use crate::transport::{Received, Transport};

/// A client's connection, whatever is spoken on it.
#[derive(Debug)]
pub(super) struct ClientConnection {
    pub(super) transport: Transport,
    /// The id of the listener that accepted it.
    pub(super) listener: usize,
    pub(super) send_queue: SendQueue,
    /// Input that the protocol has not taken: the beginning of a head or frame, or what came behind enough requests for
    /// one step. Holds no memory while it is empty.
    pub(super) inbox: Vec<u8>,
    /// Whether the inbox may hold a whole head or frame.
    pub(super) is_inbox_untried: bool,
    pub(super) state: ConnectionState,
    pub(super) deadline_ms: u64,
    /// No other process can go on with the connection, whatever it does.
    pub(super) has_to_stay: bool,
    /// What the send queue had sent when the deadline was set.
    sent_at_deadline_start: u64,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// The session takes and answers requests.
    Open,
    /// The send queue holds the last response.
    Ending(LastClose),
    /// The server's side is closed; the session discards what the client still sends.
    Lingering,
    /// Over.
    Closed,
}

impl ClientConnection {
    pub(super) fn new(transport: Transport, listener: usize, ctx: &mut Context) -> Self {
        ctx.tally.add(Metric::ConnectionsAccepted, 1);
        Self::begin(transport, listener, ctx)
    }

    /// A connection that another process has had until now.
    pub(super) fn arrived(transport: Transport, listener: usize, ctx: &mut Context) -> Self {
        ctx.tally.add(Metric::ConnectionsTakenOver, 1);
        Self::begin(transport, listener, ctx)
    }

    fn begin(transport: Transport, listener: usize, ctx: &mut Context) -> Self {
        ctx.tally.add(Metric::ConnectionsOpen, 1);
        Self {
            transport,
            listener,
            send_queue: SendQueue::default(),
            inbox: Vec::new(),
            is_inbox_untried: false,
            state: ConnectionState::Open,
            deadline_ms: u64::MAX,
            has_to_stay: false,
            sent_at_deadline_start: 0,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == ConnectionState::Open
    }

    /// The version of a passport with which another process can go on with the connection; `None`: none can.
    pub(super) fn passport_version(&self) -> Option<u32> {
        self.transport.passport_version().filter(|_| !self.has_to_stay)
    }

    /// Whether the client may have sent input that the protocol has not taken.
    pub(super) fn has_input(&self) -> bool {
        self.transport.is_readable() || !self.inbox.is_empty()
    }

    /// Keeps the input behind the first `taken` bytes.
    pub(super) fn keep(&mut self, mut inbox: Vec<u8>, taken: usize) {
        if taken < inbox.len() {
            inbox.drain(..taken);
            self.inbox = inbox;
        }
    }

    /// What is in the inbox can be tried once more.
    pub(super) fn retry_inbox(&mut self) {
        self.is_inbox_untried = !self.inbox.is_empty();
    }

    /// Whether [`send`](Self::send) is next.
    pub(super) fn has_output(&self) -> bool {
        !self.send_queue.is_empty() || self.transport.is_unsettled()
    }

    /// Sends what the send queue holds. Returns how many bytes the kernel has taken.
    pub(super) fn send(&mut self, policy: &SendPolicy, scratch: &mut [u8], clock: &Clock) -> (u64, Flush) {
        let last = matches!(self.state, ConnectionState::Ending(_));
        let before = self.sent();
        let flush = self.transport.flush(&mut self.send_queue, policy, scratch, last, clock);
        (self.sent() - before, flush)
    }

    /// Bytes that the kernel has taken since the connection began.
    fn sent(&self) -> u64 {
        self.send_queue.sent() - self.transport.early_data()
    }

    /// Bytes that were written to the client since the connection began, also by others.
    pub(super) fn written(&self) -> u64 {
        self.sent().saturating_add(self.transport.sent_by_others())
    }

    /// Whose turn the connection's own jobs take.
    pub(super) fn client(&self) -> Option<ClientKey> {
        self.transport.peer().map(|address| ClientKey::of(address.ip()))
    }

    /// What the session needs after a flush that ended like this; `None`: everything is sent.
    ///
    /// # Errors
    /// The session is over, with this outcome.
    pub(super) fn need_after(&self, flush: Flush, ctx: &mut Context) -> Result<Option<Need>, Outcome> {
        Ok(Some(match flush {
            Flush::Done => return Ok(None),
            Flush::Full => Need::Writable,
            Flush::Quantum => Need::Turn,
            Flush::NeedsPages(slice) => {
                ctx.tally.add(Metric::Jobs, 1);
                Need::Job(Job::PageIn { stream: None, slice }, self.client())
            }
            Flush::Waits(slice) => {
                ctx.tally.add(Metric::Jobs, 1);
                let patience = Duration::from_millis(ctx.plan.limits.send_timeout_ms.max(1));
                let socket = self.transport.share_socket();
                Need::Job(Job::Send { socket, slice, patience }, self.client())
            }
            Flush::Over(Stop::FileShrank) => return Err(Outcome::FileChanged),
            Flush::Over(Stop::FileFailed) => return Err(Outcome::Failed),
            Flush::Over(Stop::PeerGone | Stop::Full) => return Err(Outcome::ClientGone),
        }))
    }

    /// Ends the server's side of the connection. False: the client has ended, too, or is gone.
    pub(super) fn begin_lingering(&mut self) -> bool {
        let lingers = !self.transport.has_ended_input() && self.transport.end_output();
        if lingers {
            self.state = ConnectionState::Lingering;
        }
        lingers
    }

    /// Discards what the client still sends: closing a socket with unread data sends a reset, which could overtake the
    /// response (RFC 9112, section 9.6). `None`: the client has ended, too.
    pub(super) fn linger(&mut self, ctx: &mut Context) -> Option<Need> {
        let mut turns = LINGER_READS_MAX;
        while self.transport.is_readable() {
            match self.transport.receive(&mut ctx.scratch) {
                Received::End => return None,
                Received::Bytes(_) if turns == 0 => return Some(Need::Turn),
                Received::Bytes(_) => turns -= 1,
                Received::Nothing => {}
            }
        }
        Some(Need::Readable)
    }

    /// A request begins: the handoff agent has to know, if a front-end counts it.
    pub(super) fn note_request_begun(&mut self, ctx: &Context) {
        ctx.note_flow(self.transport.begin_request(), FlowEvent::Begun);
    }

    /// A request has ended.
    pub(super) fn note_request_ended(&mut self, ctx: &Context) {
        self.transport.end_request();
        ctx.note_flow(self.transport.flow(), FlowEvent::Ended);
    }

    /// Ends the connection at once, and drops what has not been sent.
    pub(super) fn finish(&mut self, ctx: &mut Context) -> Need {
        self.send_queue.clear();
        if self.state != ConnectionState::Closed {
            self.state = ConnectionState::Closed;
            ctx.note_flow(self.transport.flow(), FlowEvent::Gone);
            self.transport.say_end();
            ctx.tally.subtract(Metric::ConnectionsOpen, 1);
        }
        Need::Finished
    }

    /// Sets the deadline; `u64::MAX`: none.
    pub(super) fn set_timeout(&mut self, timeout_ms: u64, ctx: &Context) {
        self.deadline_ms = ctx.clock.now_ms().saturating_add(timeout_ms);
        self.sent_at_deadline_start = self.sent();
    }

    /// What holds between any two events, in every protocol.
    pub(super) fn check_invariants(&self) {
        assert!(
            self.state != ConnectionState::Closed || self.send_queue.is_empty(),
            "what has ended sends nothing"
        );
        assert!(
            self.transport.early_data() <= self.send_queue.sent(),
            "what waits in records was taken before"
        );
        assert!(self.sent_at_deadline_start <= self.sent(), "what was sent stays sent");
    }

    /// Whether the client has taken what the least rate asks for since the deadline was set.
    pub(super) fn client_takes_enough(&self, ctx: &Context) -> bool {
        let taken = self.sent() - self.sent_at_deadline_start;
        taken >= ctx.plan.limits.least_bytes_per_send_timeout()
    }
}

/// Reads of a lingering client's data before other clients have a turn.
const LINGER_READS_MAX: usize = 16;
