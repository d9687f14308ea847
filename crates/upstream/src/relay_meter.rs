//! What relaying costs: a loop times some of its turns for upstreams, and the gateway counts what they did for a cluster.

use baton_dispatch::RelayWork;

use crate::peers::{NodeOfPeers, Turn};

/// Work of the turn that is being timed.
#[derive(Debug, Default)]
pub(crate) struct RelayMeter {
    work: RelayWork,
    /// A node for which it was done.
    node: Option<NodeOfPeers>,
    turns: u32,
    is_timed: bool,
}

impl RelayMeter {
    /// A request was sent on.
    pub(crate) fn note_begun(&mut self, turn: &Turn) {
        self.work.begun += 1;
        self.note(turn);
    }

    /// Something of an answer has come.
    pub(crate) fn note_answer(&mut self, turn: &Turn, begins: bool, bytes: u64) {
        self.work.answers += u32::from(begins);
        self.work.bytes += bytes;
        self.note(turn);
    }

    fn note(&mut self, turn: &Turn) {
        if self.node.is_none() {
            self.node = turn.node();
        }
    }

    /// Begins a turn. True: it is to be timed. One in seventeen is; none while no cluster is asked.
    pub(crate) fn begin_turn(&mut self) -> bool {
        // A turn within one that is timed is a part of that.
        if self.is_timed {
            return false;
        }
        let was_for_cluster = self.node.take().is_some();
        self.work = RelayWork::default();
        self.turns = self.turns.wrapping_add(u32::from(was_for_cluster));
        self.is_timed = was_for_cluster && self.turns.is_multiple_of(TIMED_EVERY);
        self.is_timed
    }

    /// The turn has taken so many nanoseconds.
    pub(crate) fn note_turn_took(&mut self, ns: u64) {
        self.is_timed = false;
        if let Some(node) = &self.node {
            node.note_relayed(self.work, ns);
        }
    }
}

/// One turn in so many is timed: two looks at the clock cost some 50 ns. An odd number: requests and answers take turns.
const TIMED_EVERY: u32 = 17;
