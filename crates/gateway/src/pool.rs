//! Who waits for an application, and which connection is next: the queue of one application, without sockets.
//!
//! ```text
//!   begin ─► idle connection? ─► room for another? ─► queue (bounded) ─► refused
//!                                                        │
//!   released ◄───────────────────────────────────────────┘ the one that waits longest is next
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Application;
use crate::connections::ConnectionId;
use crate::negotiate::Negotiation;
use crate::report::Tally;

/// The connections of one loop to one application, and the requests that wait for one.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) application: Arc<Application>,
    pub(crate) negotiation: Negotiation,
    pub(crate) tally: Tally,
    members: Vec<Member>,
    /// Most recently used last: those that are not needed grow old and are closed.
    idle: Vec<ConnectionId>,
    waiting: VecDeque<Waiter>,
    /// Connections that the application may not have accepted yet.
    unaccepted: Vec<ConnectionId>,
    open: usize,
    /// The backlog of the application was full: until then no connection is tried.
    backlog_full_until_ms: u64,
}

/// One address.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    open: usize,
    /// Until then it is used only if no other can be: it refused a connection.
    resting_until_ms: u64,
    /// When its last connection was closed, in closings of this pool: who rests longest is likeliest to be idle.
    closed_at: u64,
}

/// A request in the queue.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    whose: u64,
    until_ms: u64,
}

/// What a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// A connection that nobody uses.
    Idle(ConnectionId),
    /// Leave to open one to this address.
    Open(usize),
    /// Nothing yet.
    Nothing,
}

impl Pool {
    pub(crate) fn new(application: Arc<Application>) -> Self {
        Self {
            members: vec![Member::default(); application.addresses().len()],
            negotiation: Negotiation::new(&application),
            tally: Tally::default(),
            application,
            idle: Vec::new(),
            waiting: VecDeque::new(),
            unaccepted: Vec::new(),
            open: 0,
            backlog_full_until_ms: 0,
        }
    }

    /// What a request can have now. It is the caller's to keep to the order of the queue.
    pub(crate) fn supply(&mut self, now_ms: u64) -> Supply {
        match self.idle.pop() {
            Some(connection) => Supply::Idle(connection),
            None => self.address(now_ms).map_or(Supply::Nothing, Supply::Open),
        }
    }

    /// The address at which another connection may be opened.
    pub(crate) fn address(&self, now_ms: u64) -> Option<usize> {
        if self.open >= self.application.settings().connections_max || now_ms < self.backlog_full_until_ms {
            return None;
        }
        let per_member = if self.application.has_members() { 1 } else { usize::MAX };
        let usable = |member: &Member| member.open < per_member && member.resting_until_ms <= now_ms;
        let best = self.members.iter().enumerate().filter(|(_, member)| usable(member));
        best.min_by_key(|(_, member)| member.closed_at).map(|(index, _)| index)
    }

    /// Takes note of a connection, open or about to be.
    pub(crate) fn opened(&mut self, connection: ConnectionId, member: usize) {
        self.open += 1;
        self.tally.opened += 1;
        self.members[member].open += 1;
        if !self.application.has_members() {
            self.unaccepted.push(connection);
        }
    }

    /// Whether the application has connections that may be in its backlog: then none is kept, since the process at its
    /// other end may be the one that has to accept another. `is_unaccepted` looks at one.
    pub(crate) fn has_unaccepted(&mut self, mut is_unaccepted: impl FnMut(ConnectionId) -> bool) -> bool {
        while let Some(newest) = self.unaccepted.last() {
            if is_unaccepted(*newest) {
                return true;
            }
            self.unaccepted.pop();
        }
        false
    }

    /// Takes note that a connection is no more, or has not come about.
    pub(crate) fn closed(&mut self, connection: ConnectionId, member: usize) {
        self.idle.retain(|idle| *idle != connection);
        self.open -= 1;
        self.tally.closed += 1;
        self.members[member].open -= 1;
        self.members[member].closed_at = self.tally.closed;
    }

    /// A member refuses connections: others are tried before it is again. Whether there are others, now or when they
    /// have served their requests.
    pub(crate) fn rest(&mut self, member: usize, now_ms: u64) -> bool {
        if self.members.len() > 1 {
            self.members[member].resting_until_ms = now_ms + REST_MS;
        }
        self.members.len() > 1 && self.members.iter().any(|member| member.resting_until_ms <= now_ms)
    }

    /// The application has no room in its backlog.
    pub(crate) fn note_backlog_full(&mut self, now_ms: u64) {
        self.backlog_full_until_ms = now_ms + BACKLOG_RETRY_MS;
    }

    /// A connection that waits for its next request.
    pub(crate) fn keep(&mut self, connection: ConnectionId) {
        self.idle.push(connection);
    }

    /// The connection that nobody has used for the longest time, which is not idle any more.
    pub(crate) fn give_up_oldest_idle(&mut self) -> Option<ConnectionId> {
        (!self.idle.is_empty()).then(|| self.idle.remove(0))
    }

    /// Puts a request at the end of the queue, or refuses it.
    pub(crate) fn enqueue(&mut self, whose: u64, now_ms: u64) -> bool {
        let settings = self.application.settings();
        let admitted = self.waiting.len() < settings.queue_max;
        if admitted {
            self.waiting
                .push_back(Waiter { whose, until_ms: now_ms.saturating_add(settings.queue_timeout_ms) });
        }
        admitted
    }

    /// Puts a request back that had its turn already.
    pub(crate) fn put_back(&mut self, whose: u64, until_ms: u64) {
        self.waiting.push_front(Waiter { whose, until_ms });
    }

    /// The request that has waited for the longest time, which waits no longer.
    pub(crate) fn next_waiter(&mut self) -> Option<u64> {
        self.waiting.pop_front().map(|waiter| waiter.whose)
    }

    /// A request that has waited for too long.
    pub(crate) fn next_overdue(&mut self, now_ms: u64) -> Option<u64> {
        let overdue = |waiter: &Waiter| waiter.until_ms <= now_ms;
        let at = self.waiting.iter().position(overdue)?;
        self.waiting.remove(at).map(|waiter| waiter.whose)
    }

    /// A request does not want to wait any more.
    pub(crate) fn leave(&mut self, whose: u64) {
        self.waiting.retain(|waiter| waiter.whose != whose);
    }

    /// When something is due that waits for the time alone.
    pub(crate) fn deadline_ms(&self, now_ms: u64) -> Option<u64> {
        let overdue = self.waiting.iter().map(|waiter| waiter.until_ms).min()?;
        let rested = self.members.iter().map(|member| member.resting_until_ms);
        let retry = rested.chain([self.backlog_full_until_ms]).filter(|due| *due > now_ms).min();
        Some(retry.map_or(overdue, |retry| overdue.min(retry)))
    }

    /// Requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Connections without a request.
    pub(crate) fn idle(&self) -> usize {
        self.idle.len()
    }

    /// Connections.
    pub(crate) fn open(&self) -> usize {
        self.open
    }
}

/// How soon a full backlog is tried again: about as long as a fast application needs for a few requests.
const BACKLOG_RETRY_MS: u64 = 5;

/// How long a member that refused a connection is left alone: processes are restarted in less.
const REST_MS: u64 = 1_000;
