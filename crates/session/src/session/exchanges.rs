//! The table of a connection's exchanges: every request that is not logged yet, whatever the client speaks.
//!
//! A [`Driver`](super::driver::Driver) adds to each entry what its protocol keeps of a request.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use baton_telemetry::log::Outcome;

use super::connection::{ClientConnection, ConnectionState};
use crate::context::Context;
use crate::exchange::Exchange;
use crate::protocol::StreamId;

/// The requests of a connection that are not logged yet, oldest first. Holds no memory before the first.
#[derive(Debug)]
pub(super) struct Exchanges<P> {
    entries: VecDeque<Underway<P>>,
}

/// A request that is not logged yet.
#[derive(Debug)]
pub(super) struct Underway<P> {
    pub(super) exchange: Exchange,
    /// A job works for it.
    pub(super) has_job: bool,
    /// The gateway wants the next piece of its body: the application has taken the last one.
    pub(super) wants_body: bool,
    /// Its application may have the client's socket. That one had it at any time, the socket itself knows.
    pub(super) is_passed: bool,
    /// What its protocol keeps of it.
    pub(super) own: P,
}

impl<P> Default for Exchanges<P> {
    fn default() -> Self {
        Self { entries: VecDeque::new() }
    }
}

impl<P> Exchanges<P> {
    /// Adds the request that came last. Returns where it is.
    pub(super) fn push(&mut self, exchange: Exchange, own: P) -> usize {
        let is_last = |last: &Underway<P>| last.exchange.stream.number() < exchange.stream.number();
        debug_assert!(self.entries.back().is_none_or(is_last), "requests come in order");
        self.entries.push_back(Underway {
            exchange,
            has_job: false,
            wants_body: false,
            is_passed: false,
            own,
        });
        self.entries.len() - 1
    }

    /// Where the request with this name is; `None` once it is logged.
    pub(super) fn position(&self, stream: StreamId) -> Option<usize> {
        self.entries.binary_search_by_key(&stream.number(), |entry| entry.exchange.stream.number()).ok()
    }

    /// Where the request is that came last.
    pub(super) fn last(&self) -> Option<usize> {
        self.entries.len().checked_sub(1)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Underway<P>> {
        self.entries.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Underway<P>> {
        self.entries.iter_mut()
    }

    /// Logs a request. `cut`: how it ends if its response is not complete.
    pub(super) fn log(
        &mut self,
        at: usize,
        cut: Outcome,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) {
        let Some(entry) = self.entries.remove(at) else { return };
        entry.exchange.record.end(cut, connection.transport.peer(), ctx);
        connection.note_request_ended(ctx);
    }

    /// Logs all requests, oldest first.
    pub(super) fn log_all(&mut self, cut: Outcome, connection: &mut ClientConnection, ctx: &mut Context) {
        while !self.is_empty() {
            self.log(0, cut, connection, ctx);
        }
    }

    /// Forgets all requests without a trace: they are as if they had not come.
    pub(super) fn forget(&mut self) {
        self.entries.clear();
    }

    /// What holds between any two events, in every protocol.
    pub(super) fn check_invariants(&self, connection: &ClientConnection) {
        assert!(connection.state != ConnectionState::Closed || self.is_empty(), "what has ended is logged");
        let numbers = self.iter().map(|entry| entry.exchange.stream.number());
        assert!(numbers.is_sorted_by(|one, next| one < next), "requests are in order");
        for Underway { exchange, has_job, wants_body, is_passed, .. } in self.iter() {
            assert!(!exchange.record.is_complete(), "a complete response is logged");
            assert!(!(*wants_body && exchange.is_answered()), "an answered request needs no body");
            assert!(
                !*is_passed || exchange.is_delegated() || exchange.is_answered(),
                "an application has the socket"
            );
            // But where a job reads what an application has sent, to code it.
            assert!(
                !(*has_job && exchange.is_delegated()) || exchange.is_coding(),
                "either a job works for a request or an application"
            );
        }
    }
}

impl<P> Index<usize> for Exchanges<P> {
    type Output = Underway<P>;

    fn index(&self, at: usize) -> &Underway<P> {
        &self.entries[at]
    }
}

impl<P> IndexMut<usize> for Exchanges<P> {
    fn index_mut(&mut self, at: usize) -> &mut Underway<P> {
        &mut self.entries[at]
    }
}
