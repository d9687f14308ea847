//! What was handed over to a node of a cluster with the clients' connections, and answers there.
//!
//! Workers count what they hand off. The handoff agent of this host hears from that of the node what has ended; the master writes
//! that down. So no worker is woken for a request that another host answers.

use std::sync::atomic::Ordering;

use super::{OriginRecord, word};

impl OriginRecord {
    /// Whether connections can be handed over to the node.
    pub fn takes_connections(&self) -> bool {
        self.load(word::REACHED) != 0
    }

    /// Sets that.
    pub fn set_takes_connections(&self, takes: bool) {
        self.store(word::REACHED, u64::from(takes));
    }

    /// A request was handed over with its connection.
    pub fn note_handed_off(&self) {
        self.shared()[word::HANDED].fetch_add(1, Ordering::Relaxed);
    }

    /// Requests that were handed over since the server began.
    pub fn handed_off(&self) -> u64 {
        self.load(word::HANDED)
    }

    /// So many of all that were handed over have ended, less those that have begun at the node without a hand-over.
    pub fn set_settled(&self, requests: u64) {
        self.store(word::SETTLED, requests);
    }

    /// Requests that are under way at the node on connections that were handed over.
    ///
    /// The two counts come from different processes: for a moment more may have ended than is known to have begun.
    pub fn under_way_at_node(&self) -> u32 {
        let under_way = self.load(word::HANDED).wrapping_sub(self.load(word::SETTLED)) as i64;
        u32::try_from(under_way.max(0)).unwrap_or(u32::MAX)
    }

    /// Connections that are at the node, as its host says.
    pub fn connections_at_node(&self) -> u64 {
        self.load(word::AT_NODE)
    }

    /// Sets that.
    pub fn set_connections_at_node(&self, connections: u64) {
        self.store(word::AT_NODE, connections);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_is_not_under_way() {
        let record = OriginRecord::default();
        (0..3).for_each(|_| record.note_handed_off());
        record.set_settled(1);
        assert_eq!((record.handed_off(), record.under_way_at_node()), (3, 2));
        record.set_settled(7);
        assert_eq!(record.under_way_at_node(), 0, "the agent was quicker than the worker");
        // Further requests on connections that the node has kept.
        record.set_settled(0_u64.wrapping_sub(4));
        assert_eq!(record.under_way_at_node(), 7);
    }
}
