//! What relaying costs: a loop times some of its turns for upstreams, and the gateway counts what they did for a cluster.

use baton_dispatch::RelayWork;

use super::Gateway;
use crate::peers::{NodeOfPeers, Turn};

/// Work of the turn that is being timed.
#[derive(Debug, Default)]
pub(super) struct RelayMeter {
    work: RelayWork,
    /// A node for which it was done.
    node: Option<NodeOfPeers>,
    turns: u32,
    is_timed: bool,
}

impl RelayMeter {
    /// A request was sent on.
    pub(super) fn note_begun(&mut self, turn: &Turn) {
        self.work.begun += 1;
        self.note(turn);
    }

    /// Something of an answer has come.
    pub(super) fn note_answer(&mut self, turn: &Turn, begins: bool, bytes: u64) {
        self.work.answers += u32::from(begins);
        self.work.bytes += bytes;
        self.note(turn);
    }

    fn note(&mut self, turn: &Turn) {
        if self.node.is_none() {
            self.node = turn.node();
        }
    }
}

impl Gateway {
    /// Begins a turn of the loop for this gateway. True: the loop is to time it, and to [say](Self::note_turn_took) how long it
    /// took. One in seventeen is; none while no cluster is asked.
    pub fn begin_turn(&mut self) -> bool {
        let meter = &mut self.meter;
        // A turn within one that is timed is a part of that.
        if meter.is_timed {
            return false;
        }
        let was_for_cluster = meter.node.take().is_some();
        meter.work = RelayWork::default();
        meter.turns = meter.turns.wrapping_add(u32::from(was_for_cluster));
        meter.is_timed = was_for_cluster && meter.turns.is_multiple_of(TIMED_EVERY);
        meter.is_timed
    }

    /// The turn, with all that clients got in it, has taken so many nanoseconds.
    pub fn note_turn_took(&mut self, ns: u64) {
        self.meter.is_timed = false;
        if let Some(node) = self.meter.node.as_ref() {
            node.note_relayed(self.meter.work, ns);
        }
    }
}

/// One turn in so many is timed: two looks at the clock cost some 50 ns. An odd number: requests and answers take turns.
const TIMED_EVERY: u32 = 17;
