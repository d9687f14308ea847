//! LARD/H: locality-aware distribution with homes. Our own, grown from LARD/R.
//!
//! LARD/R counts connections: a node on which sixty requests wait for the disk looks as busy as one on which sixty wait
//! for the CPU, and while it looks busy nobody gives it the work that its idle CPU could do. What the front-end knows
//! anyway is enough to tell the two queues of a node apart: the first request for a target that a node does not have
//! waits for the disk, and so do all that join it, until the first of them completes.
//!
//! ```text
//!   target in memory ► the node of the target with the shortest CPU queue      (mapped)
//!                        │ that queue is long, another node's is short, and the disk there is not busy
//!                        │ or the node is full: twice T_high connections, whatever they wait for
//!                        └─► one more node gets the target                     (replicated)
//!   new target ──────► its home, unless the disk queue there is beyond a bound (first assignment)
//!   cold target ─────► the same: it has to be read again anyway                (cold, moved)
//!   dynamic ─────────► its home, unless the CPU queue there is beyond a bound
//! ```
//!
//! - **Homes.** A target has an order of preference over the nodes, by rendezvous hashing; its home is the first of them
//!   with room. Front-ends that never talk to each other agree on it, so the cluster caches a target once, not once for
//!   each front-end; and after the failure of a node they agree on where its targets go.
//! - **Cold targets go home.** The front-end keeps a picture of what each node has in memory ([`Keeping`]), from the sizes
//!   and the order of what it sent there. What has left it is placed as if it were new: reads go where disks have time for
//!   them, and the empty memory of a node that came back is filled by what has to be read anyway. As long as homes stay,
//!   a wrong belief costs nothing: the target goes where it is.
//! - **What is not worth its memory is not kept**, as long as that reads less ([`duel`]). A target that would push out what
//!   is asked for more often, for its size, is read for this request, and forgotten by the node ([`Decision::keep`]):
//!   cache admission by frequency, as in TinyLFU (Einziger, Friedman and Manes, 2017), with sizes (Einziger and others,
//!   2021), by the front-end, which alone sees all requests, and knows from its picture what would go.
//! - **One copy at a time.** While one more node reads a target, requests for it still go to those that have it. A target
//!   is given only to nodes whose disk has time for it: when the disks are the bottleneck, spreading makes it worse.
//! - **No node hoards connections.** One with twice T_high of them takes no more while another has less than T_high, as
//!   in LARD: the cluster admits a limited number, and those that queue at one node keep all others idle. It matters in
//!   clusters of hundreds of nodes, where a hot target outruns the reading of its copies, and with files so long that
//!   reading one outlasts everything else.
//! - **Quiet sets shrink** as in LARD/R: after a set has been unchanged for a while, it loses its most loaded node.
//!
//! Ideas that were simulated and fell: counting bytes instead of connections in the CPU queue (no difference); sending
//! cold targets to the node with the oldest memory of all, as LB/GC does, or to any with a short disk queue (3 to 5 % more
//! reads: where no home holds a target, each wrong belief costs one); calling back to a node that returned all that has its
//! home there, cold or not, while its disk has time (half of what the picture of memory gains); replicating only targets
//! with several requests under way (no better than asking for an idle disk); the rule of LARD/R below twice T_high beside
//! our own (a per cent more in some clusters, less in others, also after a node came back); keeping only what is asked for a
//! second time (no gain); weighing a newcomer against the sum of what would go, not by size (7 % less), or counting how long
//! each takes to read (1 to 2 % less); sending what is not worth keeping at home to a node with room (1 % less).

mod duel;
mod keeping;
mod queues;
mod rendezvous;

use keeping::Keeping;
use queues::Queues;
pub(super) use rendezvous::preferred;

use crate::mapping::Mapping;
use crate::node_set::{NodeSet, Replicas};
use crate::policies::frequency::Frequency;
use crate::{Cluster, Decision, NodeId, Policy, PolicySettings, Target, Time, Why};

/// Locality-aware request distribution with homes. Works with or without [`crate::Admission`].
pub(crate) struct LardHome {
    copies: Mapping<Copies>,
    replicas: Replicas,
    queues: Queues,
    keeping: Keeping,
    limits: Limits,
    quiet_us: u64,
}

/// When a queue of a standard node is what.
#[derive(Clone, Copy)]
struct Limits {
    /// With fewer connections, the CPU has time for more.
    short: f32,
    /// With more connections, the CPU needs relief; or the disk is too busy to read what others have.
    long: f32,
    /// How far beyond the mean a queue may be for a home to stay the home; a factor.
    bound: f32,
    /// With as many connections in all, a node takes no more while another one has less than half as many.
    full: f32,
}

/// Which nodes have a target.
#[derive(Clone, Copy)]
struct Copies {
    nodes: NodeSet,
    last_change: Time,
    /// How often the target was asked for.
    frequency: Frequency,
    /// The read by which one of the nodes is getting the target.
    read: Option<Read>,
}

/// A target on its way from the disk of a node into its memory.
#[derive(Clone, Copy)]
struct Read {
    node: NodeId,
    /// Requests that wait for it.
    waiting: u32,
    /// The life of the node's queues in which it began: a read does not survive the node.
    life: u32,
}

impl LardHome {
    pub(crate) fn new(settings: &PolicySettings) -> Self {
        Self {
            copies: Mapping::new(settings.mappings_max, settings.seed),
            replicas: Replicas::new(settings.replicas_max),
            queues: Queues::default(),
            limits: Limits {
                short: settings.queue_short as f32,
                long: settings.queue_long.max(settings.queue_short.saturating_add(1)) as f32,
                bound: settings.bound(),
                full: 2.0 * settings.t_high as f32,
            },
            keeping: Keeping::new(settings),
            quiet_us: settings.quiet_us.saturating_mul(QUIET_TIMES_K),
        }
    }

    /// The home of the target with regard to one kind of queue: the first node of its order whose queue is within the
    /// bound, and which is not full; if there is none, one that is not full; if all are, one within the bound, of which
    /// there always is one: some queue is not longer than the mean.
    fn home(&self, target: Target, cluster: &Cluster, queue: impl Fn(NodeId) -> u32) -> Option<NodeId> {
        let total: f32 = cluster.serving().iter().map(|&node| queue(node) as f32).sum();
        let longest = total / cluster.total_capacity() * self.limits.bound + self.limits.short;
        let is_within = |node| cluster.pressure_of(node, queue(node)) <= longest;
        let is_full = |node| cluster.pressure(node) >= self.limits.full;
        preferred(target.hash, cluster, |node| is_within(node) && !is_full(node))
            .or_else(|| preferred(target.hash, cluster, |node| !is_full(node)))
            .or_else(|| preferred(target.hash, cluster, is_within))
    }

    /// Gives a target that no node has in memory to its home.
    fn place(
        &mut self,
        target: Target,
        frequency: Frequency,
        cluster: &Cluster,
        now: Time,
        why: Why,
    ) -> Decision {
        let Some(node) = self.home(target, cluster, |node| self.queues.disk(node, cluster)) else {
            return Decision::nobody();
        };
        if self.copies.is_full()
            && let Some(forgotten) = self.copies.forget_oldest()
        {
            self.release(forgotten);
        }
        let keep =
            self.keeping.is_used(target, frequency) || self.keeping.keep_if_worth(target, node, frequency);
        let read = self.queues.begin_read(node, cluster);
        let copies = Copies { nodes: NodeSet::of(node), last_change: now, frequency, read: Some(read) };
        self.copies.insert(target.hash, copies);
        Decision { keep, ..Decision::to(node, why) }
    }

    /// Places a target afresh that this node alone has had, and has no more.
    fn place_again(
        &mut self,
        target: Target,
        from: NodeId,
        cluster: &Cluster,
        now: Time,
        at_home: Why,
    ) -> Decision {
        let mut frequency = Frequency::default();
        if let Some(lost) = self.copies.forget(target.hash) {
            frequency = lost.frequency;
            self.release(lost);
        }
        let decision = self.place(target, frequency, cluster, now, at_home);
        match decision.node {
            Some(node) if node != from => Decision { why: Why::Moved { from }, ..decision },
            _ => decision,
        }
    }

    /// A target that an application makes is in no cache; but the application is, and whatever it reads: so it has a
    /// home, too, as long as the CPU there keeps up.
    fn choose_for_dynamic(&self, target: Target, cluster: &Cluster) -> Decision {
        let Some(from) = preferred(target.hash, cluster, |_| true) else { return Decision::nobody() };
        match self.home(target, cluster, |node| self.queues.cpu(node, cluster)) {
            Some(node) if node != from => Decision::to(node, Why::Overflow { from }),
            _ => Decision::to(from, Why::Hashed),
        }
    }

    fn release(&mut self, copies: Copies) {
        self.replicas.release(copies.nodes);
        if let Some(read) = copies.read {
            self.queues.end_read(read);
        }
    }
}

impl Policy for LardHome {
    fn name(&self) -> &'static str {
        "lard-h"
    }

    fn choose(&mut self, target: Target, cluster: &Cluster, now: Time) -> Decision {
        if target.dynamic {
            return self.choose_for_dynamic(target, cluster);
        }
        let Some(copies) = self.copies.get(target.hash) else {
            let first = self.keeping.count(target, Frequency::default());
            return self.place(target, first, cluster, now, Why::FirstAssignment);
        };
        let frequency = self.keeping.count(target, copies.frequency);
        copies.frequency = frequency;
        let (replicas, queues) = (&mut self.replicas, &mut self.queues);
        let had = copies.nodes.len();
        copies.forget_lost(replicas, queues, cluster);
        let first = copies.nodes.first();
        let Some(server) = copies.server(replicas, queues, cluster, self.limits) else {
            return self.place_again(target, first, cluster, now, Why::Moved { from: first });
        };
        let mut decision = Decision::to(server, Why::Mapped);
        if !self.keeping.is_used(target, frequency) {
            if had == 1 && copies.read.is_none() {
                return self.place_again(target, first, cluster, now, Why::Cold);
            }
            // What is being read may have become worth keeping by this request; what has copies is.
            if copies.nodes.len() > 1 {
                self.keeping.keep(target, first, frequency);
            } else {
                decision.keep = self.keeping.keep_if_worth(target, first, frequency);
            }
        }
        if let Some(relief) = copies.relief(target, server, replicas, queues, cluster, self.limits)
            && replicas.add(&mut copies.nodes, relief)
        {
            copies.last_change = now;
            if let Some(slower) = copies.read.replace(queues.begin_read(relief, cluster)) {
                queues.end_read(slower);
            }
            decision = Decision::to(relief, Why::Replicated { nodes: copies.nodes.len() });
        } else if let Some(read) = &mut copies.read {
            if read.node == server {
                queues.join_read(read);
            }
        } else if copies.nodes.len() > 1
            && now.saturating_sub(copies.last_change) > self.quiet_us
            && let Some(dropped) = replicas.most_loaded(&copies.nodes, cluster, server)
            // What is believed of a target's memory is believed of its first node.
            && dropped != first
        {
            replicas.remove(&mut copies.nodes, dropped);
            copies.last_change = now;
            decision.why = Why::Shrunk { dropped };
        }
        decision
    }

    fn completed(&mut self, target: Target, node: NodeId, bytes: u64, _: u64, _: Time) {
        self.keeping.handle_answer(target, node, bytes);
        // Whoever completes first tells that the target has been read: all others that waited for it wait for the CPU.
        if let Some(copies) = self.copies.peek(target.hash)
            && let Some(read) = copies.read.take_if(|read| read.node == node)
        {
            self.queues.end_read(read);
        }
    }

    fn handle_membership(&mut self, cluster: &Cluster, now: Time) {
        self.queues.handle_membership(cluster, now);
        self.keeping.handle_membership(cluster);
    }
}

/// Copies of what is hot now and then are kept for so many times K: they cost less memory than reading them again costs
/// time. From three times K to for ever there is little difference, with K itself two per cent more reads.
const QUIET_TIMES_K: u64 = 3;
impl Copies {
    /// Takes out nodes that no longer have the target, except for the last one.
    fn forget_lost(&mut self, replicas: &mut Replicas, queues: &Queues, cluster: &Cluster) {
        self.read.take_if(|read| !queues.is_under_way(read));
        while self.nodes.len() > 1 {
            let is_lost = |&node: &NodeId| !queues.survived(node, self.last_change, cluster);
            let Some(lost) = replicas.nodes(&self.nodes).find(is_lost) else { return };
            replicas.remove(&mut self.nodes, lost);
        }
    }

    /// The node with the shortest CPU queue of those that have the target; the one that is reading it if it is alone, or
    /// if those that have it are full.
    fn server(
        &self,
        replicas: &Replicas,
        queues: &Queues,
        cluster: &Cluster,
        limits: Limits,
    ) -> Option<NodeId> {
        let reading = self.read.filter(|_| self.nodes.len() > 1).map(|read| read.node);
        let having = replicas
            .nodes(&self.nodes)
            .filter(|&node| Some(node) != reading && queues.survived(node, self.last_change, cluster));
        let is_full = |node| cluster.pressure(node) >= limits.full;
        let cpu = |node| queues.cpu_pressure(node, cluster);
        let server = having.min_by(|&a, &b| is_full(a).cmp(&is_full(b)).then(cpu(a).total_cmp(&cpu(b))))?;
        let has_room = |&node: &NodeId| cluster.pressure(node) < limits.full / 2.0;
        Some(reading.filter(|node| is_full(server) && has_room(node)).unwrap_or(server))
    }

    /// Another node to have the target, if the server needs relief: the first in the order of the target that has time,
    /// or room if the server is full.
    fn relief(
        &self,
        target: Target,
        server: NodeId,
        replicas: &Replicas,
        queues: &Queues,
        cluster: &Cluster,
        limits: Limits,
    ) -> Option<NodeId> {
        let is_new = |node| replicas.nodes(&self.nodes).all(|known| known != node);
        if cluster.pressure(server) >= limits.full {
            return preferred(target.hash, cluster, |node| {
                cluster.pressure(node) < limits.full / 2.0 && is_new(node)
            });
        }
        let queue = queues.cpu_pressure(server, cluster);
        if self.read.is_some() || queue <= limits.long {
            return None;
        }
        // Beside a queue that is far too long, another one that is shorter by the same ratio is short enough. Otherwise a
        // node could fall behind for ever while all others are moderately busy.
        let short = limits.short.max(queue * limits.short / limits.long);
        if queues.shortest_cpu_pressure(cluster) >= short {
            return None;
        }
        preferred(target.hash, cluster, |node| {
            queues.cpu_pressure(node, cluster) < short
                && cluster.pressure_of(node, queues.disk(node, cluster)) < limits.long
                && cluster.pressure(node) < limits.full
                && is_new(node)
        })
    }
}
