//! Connections that no server takes now: it restarts, or does not keep up. They are given again and again, until they have
//! waited too long.

use std::collections::BTreeMap;
use std::mem;

use super::action::{Action, ForServer, Note, Out};
use super::limits::{GIVE_AGAIN_MS, SERVER_LOST_MS, WAITING_MAX};
use crate::flow::FlowId;

/// In the order of their flows, which is that of their hand-offs.
#[derive(Debug)]
pub(super) struct Waiting<S> {
    connections: BTreeMap<FlowId, ForServer<S>>,
    give_again_ms: Option<u64>,
}

impl<S> Waiting<S> {
    pub(super) fn new() -> Self {
        Self { connections: BTreeMap::new(), give_again_ms: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    pub(super) fn contains(&self, flow: FlowId) -> bool {
        self.connections.contains_key(&flow)
    }

    /// No server has taken a connection. `false`: too many wait, and it is reset.
    pub(super) fn add(&mut self, mut connection: ForServer<S>, now_ms: u64, out: &mut Out<S>) -> bool {
        let has_room = self.connections.len() < WAITING_MAX;
        if has_room {
            connection.until_ms.get_or_insert(now_ms + SERVER_LOST_MS);
            self.connections.insert(connection.flow, connection);
            self.give_again_ms.get_or_insert(now_ms + GIVE_AGAIN_MS);
        } else {
            out.push(Action::Reset { socket: connection.socket });
            out.log(Note::NoServer { connections: 1 });
        }
        has_room
    }

    /// All of them, to be given again now.
    pub(super) fn take(&mut self) -> Vec<ForServer<S>> {
        self.give_again_ms = None;
        mem::take(&mut self.connections).into_values().collect()
    }

    /// Time has passed: those that are to be given again, and the flows of those that are reset.
    pub(super) fn handle_time(&mut self, now_ms: u64, out: &mut Out<S>) -> (Vec<ForServer<S>>, Vec<FlowId>) {
        if self.give_again_ms.is_none_or(|due_ms| now_ms < due_ms) {
            return (Vec::new(), Vec::new());
        }
        let is_late = |one: &ForServer<S>| one.until_ms.is_some_and(|until_ms| until_ms <= now_ms);
        let (late, again): (Vec<_>, Vec<_>) = self.take().into_iter().partition(is_late);
        if !late.is_empty() {
            out.log(Note::NoServer { connections: late.len() });
        }
        let reset = |one: ForServer<S>| {
            out.push(Action::Reset { socket: one.socket });
            one.flow
        };
        (again, late.into_iter().map(reset).collect())
    }

    /// When time alone changes something.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        self.give_again_ms
    }
}
