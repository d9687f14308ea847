//! The two queues of each node, as a front-end can tell them apart without asking.

use super::Read;
use crate::{Cluster, NodeId, Time};

/// What is known of the queues of all nodes.
#[derive(Default)]
pub(super) struct Queues {
    nodes: Vec<NodeQueues>,
}

#[derive(Clone, Copy, Default)]
struct NodeQueues {
    /// Targets that the node is reading.
    reads: u32,
    /// Connections that wait for them.
    waiting: u32,
    /// Grows when everything above is over at once: reads of earlier lives end without effect.
    life: u32,
    serving: bool,
    /// When the node began to serve, with nothing in memory.
    serving_since: Time,
}

impl Queues {
    /// Connections of the node that wait for its CPU: those that do not wait for a read.
    ///
    /// This and the disk queue hold against counts that lag behind the loads, as when a connection was lost without a word.
    pub(super) fn cpu(&self, node: NodeId, cluster: &Cluster) -> u32 {
        cluster.load(node).saturating_sub(self.of(node).waiting)
    }

    /// The CPU queue as that of a standard node. Infinite if the node does not serve.
    pub(super) fn cpu_pressure(&self, node: NodeId, cluster: &Cluster) -> f32 {
        cluster.pressure_of(node, self.cpu(node, cluster))
    }

    /// Targets that wait for the disk of the node.
    pub(super) fn disk(&self, node: NodeId, cluster: &Cluster) -> u32 {
        self.of(node).reads.min(cluster.load(node))
    }

    /// Whether a node that had a target at that moment still has it: it served ever since.
    pub(super) fn survived(&self, node: NodeId, moment: Time, cluster: &Cluster) -> bool {
        cluster.is_serving(node) && self.of(node).serving_since <= moment
    }

    /// Whether the read has not ended with the node, or with a rest of it.
    pub(super) fn is_under_way(&self, read: &Read) -> bool {
        self.of(read.node).life == read.life
    }

    /// One request makes the node read a target.
    pub(super) fn begin_read(&mut self, node: NodeId, cluster: &Cluster) -> Read {
        let Some(queues) = self.nodes.get_mut(node.index()) else {
            return Read { node, waiting: 0, life: 0 };
        };
        if cluster.load(node) == 0 && queues.reads > 0 {
            // Nothing is under way there, so what seems to be was lost without a word.
            queues.begin_life();
        }
        queues.reads += 1;
        queues.waiting += 1;
        Read { node, waiting: 1, life: queues.life }
    }

    /// One more request waits for a read.
    pub(super) fn join_read(&mut self, read: &mut Read) {
        if let Some(queues) = self.nodes.get_mut(read.node.index()) {
            queues.waiting += 1;
            read.waiting += 1;
        }
    }

    /// The target is in memory, or no longer of interest.
    pub(super) fn end_read(&mut self, read: Read) {
        if let Some(queues) = self.nodes.get_mut(read.node.index())
            && queues.life == read.life
        {
            queues.reads -= 1;
            queues.waiting -= read.waiting;
        }
    }

    pub(super) fn handle_membership(&mut self, cluster: &Cluster, now: Time) {
        self.nodes.resize(cluster.len(), NodeQueues::default());
        for (node, queues) in cluster.nodes().zip(&mut self.nodes) {
            let served = std::mem::replace(&mut queues.serving, cluster.is_serving(node));
            if served != queues.serving {
                queues.begin_life();
                queues.serving_since = now;
            }
        }
    }

    fn of(&self, node: NodeId) -> NodeQueues {
        self.nodes.get(node.index()).copied().unwrap_or_default()
    }
}

impl NodeQueues {
    const fn begin_life(&mut self) {
        self.life = self.life.wrapping_add(1);
        (self.reads, self.waiting) = (0, 0);
    }
}
