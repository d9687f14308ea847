//! The two queues of each node, as a front-end can tell them apart without asking.

use super::Read;
use crate::{Cluster, NodeId, Time};

/// What is known of the queues of all nodes.
#[derive(Default)]
pub(super) struct Queues {
    /// Connections of each node that wait for one of its reads. Apart from the rest, for a scan of all nodes.
    waiting: Vec<u32>,
    disks: Vec<Disk>,
}

#[derive(Clone, Copy, Default)]
struct Disk {
    /// Targets that the node is reading.
    reads: u32,
    /// Grows when all reads are over at once: those of earlier lives end without effect.
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
        cluster.load(node).saturating_sub(self.waiting.get(node.index()).copied().unwrap_or(0))
    }

    /// The CPU queue as that of a standard node. Infinite if the node does not serve.
    pub(super) fn cpu_pressure(&self, node: NodeId, cluster: &Cluster) -> f32 {
        cluster.pressure_of(node, self.cpu(node, cluster))
    }

    /// The least of the CPU queues of serving nodes, as that of a standard node. Infinite if none serves.
    ///
    /// Asked for with nearly every request in a busy cluster, so it reads nothing but three arrays, without a branch.
    pub(super) fn shortest_cpu_pressure(&self, cluster: &Cluster) -> f32 {
        let queues =
            cluster.loads().iter().zip(&self.waiting).map(|(load, waiting)| load.saturating_sub(*waiting));
        // Nothing times infinity, at nodes that do not serve, is not a number: `min` passes over it.
        queues.zip(cluster.steps()).map(|(queue, step)| queue as f32 * step).fold(f32::INFINITY, f32::min)
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
        let nothing_is_under_way = cluster.load(node) == 0;
        let Some((disk, waiting)) = self.of_mut(node) else { return Read { node, waiting: 0, life: 0 } };
        if nothing_is_under_way && disk.reads > 0 {
            // What seems to be was lost without a word.
            disk.begin_life(waiting);
        }
        disk.reads += 1;
        *waiting += 1;
        Read { node, waiting: 1, life: disk.life }
    }

    /// One more request waits for a read.
    pub(super) fn join_read(&mut self, read: &mut Read) {
        if let Some((_, waiting)) = self.of_mut(read.node) {
            *waiting += 1;
            read.waiting += 1;
        }
    }

    /// The target is in memory, or no longer of interest.
    pub(super) fn end_read(&mut self, read: Read) {
        if let Some((disk, waiting)) = self.of_mut(read.node)
            && disk.life == read.life
        {
            disk.reads -= 1;
            *waiting -= read.waiting;
        }
    }

    pub(super) fn handle_membership(&mut self, cluster: &Cluster, now: Time) {
        self.waiting.resize(cluster.len(), 0);
        self.disks.resize(cluster.len(), Disk::default());
        for ((node, disk), waiting) in cluster.nodes().zip(&mut self.disks).zip(&mut self.waiting) {
            let served = std::mem::replace(&mut disk.serving, cluster.is_serving(node));
            if served != disk.serving {
                disk.begin_life(waiting);
                disk.serving_since = now;
            }
        }
    }

    fn of(&self, node: NodeId) -> Disk {
        self.disks.get(node.index()).copied().unwrap_or_default()
    }

    fn of_mut(&mut self, node: NodeId) -> Option<(&mut Disk, &mut u32)> {
        self.disks.get_mut(node.index()).zip(self.waiting.get_mut(node.index()))
    }
}

impl Disk {
    const fn begin_life(&mut self, waiting: &mut u32) {
        self.life = self.life.wrapping_add(1);
        self.reads = 0;
        *waiting = 0;
    }
}
