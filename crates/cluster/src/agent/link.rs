//! A front-end's link to a node: the connection, whether it is alive, and counts.

use std::collections::BTreeSet;

use super::limits::{NODE_LOST_MS, PING_MS, RETRY_MS, UNDER_WAY_MAX};
use crate::flow::FlowId;
use crate::local::{Loads, Node, NodeStatus};

/// A link. It survives its connections, and ends when the node is lost: then it begins anew under another number.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) node: Node,
    /// The server does not name the node any more. The link ends with its last flow.
    pub(super) is_retired: bool,
    /// The number by which the node knows it.
    pub(super) id: u64,
    /// Connections of this number, up to the present one.
    pub(super) session: u64,
    pub(super) state: LinkState,
    retry_ms: u64,
    /// When the node said something last, or the link began.
    pub(super) heard_ms: u64,
    ping_ms: u64,
    /// Whether the peer has not confirmed a hand-off in time, and has said nothing since.
    pub(super) is_suspect: bool,
    /// What the server was told.
    pub(super) told_reachable: bool,
    /// Hand-offs that are frozen and not yet there.
    pub(super) under_way: usize,
    pub(super) counts: Counts,
    /// When the server is to be told of counts.
    pub(super) loads_due_ms: Option<u64>,
    /// Why it is not connected.
    pub(super) error: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Idle {
        retry_at_ms: u64,
    },
    Connecting,
    /// The node's answer to `Hello` is awaited.
    Greeting,
    /// The node lists what it has; `again`: how many connections it was told again to take.
    Syncing {
        listed: BTreeSet<FlowId>,
        again: u64,
    },
    Open,
}

/// Counts of a node. Those of requests are for the load.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Requests at the node, or on their way there.
    pub(super) requests: u64,
    /// Requests on their way to the node, or on their way back.
    pub(super) in_transit: u64,
    /// Connections at the node, or on their way there.
    pub(super) active: u64,
    /// Connections that the node was told to take since the link began.
    takes: u64,
    /// The node's totals, as last heard.
    taken_heard: u64,
    pub(super) begun_heard: u64,
    pub(super) ended_heard: u64,
    /// Since the server's `Hello`.
    pub(super) begun_kept: u64,
    pub(super) ended: u64,
    /// Totals for the status.
    pub(super) handed: u64,
    took_ms: u64,
    pub(super) refused: u64,
    pub(super) returned: u64,
    pub(super) lost: u64,
}

impl Link {
    pub(super) fn new(node: Node, id: u64, now_ms: u64) -> Self {
        Self {
            node,
            is_retired: false,
            id,
            session: 0,
            state: LinkState::Idle { retry_at_ms: now_ms },
            retry_ms: *RETRY_MS.start(),
            heard_ms: now_ms,
            ping_ms: now_ms,
            is_suspect: false,
            told_reachable: false,
            under_way: 0,
            counts: Counts::default(),
            loads_due_ms: None,
            error: None,
        }
    }

    /// Whether connections can be handed over.
    pub(super) fn is_reachable(&self) -> bool {
        self.state == LinkState::Open && !self.is_suspect && !self.is_retired
    }

    /// Whether one more can be handed over now.
    pub(super) fn has_room(&self) -> bool {
        self.under_way < UNDER_WAY_MAX
    }

    /// Whether messages reach the node.
    pub(super) fn is_connected(&self) -> bool {
        matches!(self.state, LinkState::Greeting | LinkState::Syncing { .. } | LinkState::Open)
    }

    pub(super) fn note_heard(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
        self.is_suspect = false;
    }

    pub(super) fn note_open(&mut self) {
        self.state = LinkState::Open;
        self.retry_ms = *RETRY_MS.start();
        self.error = None;
    }

    /// The connection has ended: the next one is due later each time.
    pub(super) fn note_closed(&mut self, now_ms: u64) {
        self.state = LinkState::Idle { retry_at_ms: now_ms + self.retry_ms };
        self.retry_ms = (2 * self.retry_ms).min(*RETRY_MS.end());
    }

    /// Whether a ping is due, once.
    pub(super) fn take_ping(&mut self, now_ms: u64) -> bool {
        let is_due = self.is_connected() && now_ms >= self.ping_ms + PING_MS;
        if is_due {
            self.ping_ms = now_ms;
        }
        is_due
    }

    /// Whether the node has been silent for too long.
    pub(super) fn is_lost(&self, now_ms: u64) -> bool {
        now_ms >= self.heard_ms + NODE_LOST_MS
    }

    /// The server is to be told of counts by then.
    pub(super) fn note_due(&mut self, due_ms: u64) {
        self.loads_due_ms = Some(self.loads_due_ms.map_or(due_ms, |earlier| earlier.min(due_ms)));
    }

    /// When time alone changes something.
    pub(super) fn deadline_ms(&self) -> u64 {
        let lost_ms = self.heard_ms + NODE_LOST_MS;
        let own_ms = match &self.state {
            LinkState::Idle { retry_at_ms } => *retry_at_ms,
            LinkState::Connecting => u64::MAX,
            _ => self.ping_ms + PING_MS,
        };
        own_ms.min(lost_ms).min(self.loads_due_ms.unwrap_or(u64::MAX))
    }

    /// What the server is told.
    pub(super) fn loads(&self) -> Loads {
        Loads {
            node: self.node.name.clone(),
            begun_kept: self.counts.begun_kept,
            ended: self.counts.ended,
            active: self.counts.active,
        }
    }

    pub(super) fn status(&self) -> NodeStatus {
        NodeStatus {
            node: self.node.name.clone(),
            reachable: self.is_reachable(),
            error: self.error.clone(),
            active: self.counts.active,
            handed: self.counts.handed,
            took_ms: self.counts.took_ms,
            refused: self.counts.refused,
            returned: self.counts.returned,
            lost: self.counts.lost,
        }
    }
}

impl Counts {
    /// A hand-off begins.
    pub(super) fn note_sent(&mut self) {
        self.requests += 1;
        self.in_transit += 1;
        self.active += 1;
    }

    /// The node has it, so long after the server gave it away.
    pub(super) fn note_taken(&mut self, took_ms: u64) {
        self.took_ms += took_ms;
        self.in_transit -= 1;
        self.handed += 1;
        self.takes += 1;
    }

    /// The server has it again.
    pub(super) fn note_given_back(&mut self) {
        self.requests -= 1;
        self.in_transit -= 1;
        self.ended += 1;
        self.refused += 1;
    }

    /// So many connections will not be taken, though the node was told to.
    pub(super) fn note_not_taken(&mut self, connections: u64) {
        let lost = connections.min(self.takes - self.taken_heard).min(self.requests - self.in_transit);
        self.takes -= lost;
        self.requests -= lost;
        self.ended += lost;
    }

    /// On a new connection, the node was told again to take `again` of those that it has not taken. The rest is lost.
    pub(super) fn note_synced(&mut self, again: u64) {
        self.note_not_taken((self.takes - self.taken_heard).saturating_sub(again));
    }

    /// Takes the node's totals. `false`: they cannot be right.
    pub(super) fn handle_totals(&mut self, taken: u64, begun_kept: u64, ended: u64) -> bool {
        let (Some(begun), Some(over)) =
            (begun_kept.checked_sub(self.begun_heard), ended.checked_sub(self.ended_heard))
        else {
            return false;
        };
        let there =
            (self.requests - self.in_transit).checked_add(begun).and_then(|sum| sum.checked_sub(over));
        let Some(there) = there.filter(|_| (self.taken_heard..=self.takes).contains(&taken)) else {
            return false;
        };
        (self.taken_heard, self.begun_heard, self.ended_heard) = (taken, begun_kept, ended);
        self.requests = there + self.in_transit;
        self.begun_kept += begun;
        self.ended += over;
        true
    }

    /// Requests at the node have ended with it.
    pub(super) fn note_lost(&mut self) {
        self.ended += self.requests - self.in_transit;
        self.requests = self.in_transit;
        (self.takes, self.taken_heard, self.begun_heard, self.ended_heard) = (0, 0, 0, 0);
    }

    /// Another server counts from here.
    pub(super) fn begin(&mut self) {
        (self.begun_kept, self.ended) = (self.requests, 0);
    }
}
