//! The nodes as a front-end sees them: which serve, their capacities and their loads.
//!
//! ```text
//!             join                 slow start over
//!   (nothing) ────► SlowStart ──────────────────────► Active
//!                    │  ▲                             │  │
//!               fail │  │ recover                fail │  │ drain
//!                    ▼  │                             ▼  ▼
//!                    Down ◄───────────────────────── Draining
//!                                    fail
//! ```
//!
//! Policies choose among the *serving* nodes, those in slow start or active. A load is a number of active
//! connections: those with a request outstanding at the node (Pai, 1999, section 3.1.4; an idle persistent connection
//! does not count). A node of weight 100 is a *standard node*, for which the published thresholds hold; one of weight
//! 200 takes twice the load at the same *pressure*.

use std::fmt;

use crate::hash::{below, mix, pair};

/// A moment, in microseconds since any fixed moment of the caller's.
pub type Time = u64;

/// A node of the cluster: its position in the order of joining. It is not given to another node later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The position as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The next position of a circular search.
    pub(crate) const fn following(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// Whether a node takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// Serving, at a part of its weight that grows with time: its caches are cold.
    SlowStart {
        /// When the node joined or recovered.
        since: Time,
    },
    /// Serving at its full weight.
    Active,
    /// Finishes its connections and takes no new ones.
    Draining,
    /// Failed or gone.
    Down,
}

/// The nodes, their states, weights and loads.
///
/// Methods: getters; `handle_*` for input; commands (`join` to `end`); [`Self::poll_timeout`] says when to call
/// [`Self::handle_timeout`]. After a command that changes the serving nodes, call
/// [`crate::Policy::handle_membership`].
#[derive(Clone, Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
    /// Active connections, by node. Separate from the nodes, so that a scan reads nothing else.
    loads: Vec<u32>,
    /// What one more connection adds to the pressure of a node: infinite if it does not serve.
    steps: Vec<f32>,
    serving: Vec<NodeId>,
    /// Loads and capacities of the serving nodes, summed up.
    total_load: u64,
    total_capacity: f32,
    capacity_max: f32,
    /// Grows with every change of `serving` or of a weight.
    epoch: u64,
    slow_start_us: u64,
}

#[derive(Clone, Debug)]
struct Node {
    state: NodeState,
    /// Hundredths of a standard node.
    weight: u32,
    /// What placement by hash knows a node by.
    key: u64,
    /// The part of its weight that a node takes while it starts, of [`FULL_SHARE`].
    share: u64,
}

/// The weight of a standard node.
pub const STANDARD_WEIGHT: u32 = 100;
/// The largest weight of a node.
pub const WEIGHT_MAX: u32 = 100_000;

impl Cluster {
    /// A cluster without nodes. Nodes that join or recover reach their full weight after `slow_start_us`
    /// (microseconds; 0: at once).
    pub const fn new(slow_start_us: u64) -> Self {
        Self {
            nodes: Vec::new(),
            loads: Vec::new(),
            steps: Vec::new(),
            serving: Vec::new(),
            total_load: 0,
            total_capacity: 0.0,
            capacity_max: 0.0,
            epoch: 0,
            slow_start_us,
        }
    }

    /// A cluster that begins with these weights, one for each node. These nodes are active at once, without slow
    /// start.
    pub fn of(weights: &[u32], slow_start_us: u64) -> Self {
        let mut cluster = Self::new(slow_start_us);
        for &weight in weights {
            let node = cluster.join(weight, 0);
            cluster.activate(node);
        }
        cluster
    }

    /// The number of nodes that ever joined: node ids are smaller.
    pub const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no node ever joined.
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Every node that ever joined.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The nodes that take requests, in the order of their ids.
    pub fn serving(&self) -> &[NodeId] {
        &self.serving
    }

    /// Whether this node takes requests. A node that never joined does not.
    pub fn is_serving(&self, node: NodeId) -> bool {
        self.steps.get(node.index()).is_some_and(|step| step.is_finite())
    }

    /// The state of a node; one that never joined is down.
    pub fn state(&self, node: NodeId) -> NodeState {
        self.nodes.get(node.index()).map_or(NodeState::Down, |node| node.state)
    }

    /// The full weight of a node, in hundredths of a standard node; 0 if it never joined.
    pub fn weight(&self, node: NodeId) -> u32 {
        self.nodes.get(node.index()).map_or(0, |node| node.weight)
    }

    /// What placement by hash knows the node by: front-ends that gave it the same name agree on it.
    pub fn key(&self, node: NodeId) -> u64 {
        self.nodes.get(node.index()).map_or(0, |node| node.key)
    }

    /// Active connections of each node, by node id.
    pub fn loads(&self) -> &[u32] {
        &self.loads
    }

    /// Active connections of a node; 0 if it never joined.
    pub fn load(&self, node: NodeId) -> u32 {
        self.loads.get(node.index()).copied().unwrap_or(0)
    }

    /// Active connections of all serving nodes, without those of draining ones.
    pub const fn total_load(&self) -> u64 {
        self.total_load
    }

    /// The current capacity of the serving nodes in standard nodes, slow start included.
    pub const fn total_capacity(&self) -> f32 {
        self.total_capacity
    }

    /// The largest capacity of a serving node; 0 if none serves.
    pub const fn capacity_max(&self) -> f32 {
        self.capacity_max
    }

    /// The current capacity of a node in standard nodes, slow start included: 0 if it does not serve.
    pub fn capacity(&self, node: NodeId) -> f32 {
        self.steps.get(node.index()).map_or(0.0, |step| step.recip())
    }

    /// The load of a node as that of a standard node: connections divided by capacity. Infinite if it does not serve.
    pub fn pressure(&self, node: NodeId) -> f32 {
        self.pressure_of(node, self.load(node))
    }

    /// The connections of a standard node that correspond to so many of this node. Infinite if the node does not
    /// serve.
    pub fn pressure_of(&self, node: NodeId, connections: u32) -> f32 {
        // Not a plain product: nothing times infinity is not a number.
        let step = self.steps.get(node.index()).filter(|step| step.is_finite());
        step.map_or(f32::INFINITY, |step| connections as f32 * step)
    }

    /// The pressure of a node if it is given one connection more. Infinite if it does not serve.
    pub fn pressure_with_one_more(&self, node: NodeId) -> f32 {
        self.pressure_of(node, self.load(node).saturating_add(1))
    }

    /// Whether the pressure of some serving node is below this.
    pub fn any_below(&self, pressure: f32) -> bool {
        // A node that does not serve gives infinity or NaN, and neither is below anything.
        self.loads.iter().zip(&self.steps).any(|(&load, step)| load as f32 * step < pressure)
    }

    /// The serving node of the least pressure if it got one connection more; among equals the first one at or after
    /// `from`, in a circle. None if no node serves.
    ///
    /// Equals are common in a cluster at rest: were the first one always taken, it would get every new target.
    pub fn least_loaded(&self, from: NodeId) -> Option<NodeId> {
        let with_one_more = |(&load, step): (&u32, &f32)| (load as f32 + 1.0) * step;
        let pressures = || self.loads.iter().zip(&self.steps).map(with_one_more);
        let least = pressures().fold(f32::INFINITY, f32::min);
        if least.is_infinite() {
            return None;
        }
        let from = from.index() % self.nodes.len();
        let at = pressures().skip(from).position(|pressure| pressure == least).map(|at| at + from);
        at.or_else(|| pressures().position(|pressure| pressure == least)).map(|at| NodeId(at as u32))
    }

    /// Whether a node takes the targets of this hash: always when active, never when it does not serve. In slow start
    /// it takes a growing part of them, so that a target that has moved there stays.
    pub fn takes(&self, node: NodeId, hash: u64) -> bool {
        let Some(known) = self.nodes.get(node.index()) else { return false };
        match known.state {
            NodeState::Active => true,
            NodeState::SlowStart { .. } => below(pair(hash, known.key), FULL_SHARE) < known.share,
            NodeState::Draining | NodeState::Down => false,
        }
    }

    /// A number that changes whenever the serving nodes or their weights change.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Replaces the loads counted by [`Self::begin`] and [`Self::end`] by loads measured elsewhere, by node id. Nodes
    /// beyond the end of the slice keep theirs.
    pub fn handle_loads(&mut self, loads: &[u32]) {
        for (known, &load) in self.loads.iter_mut().zip(loads) {
            *known = load;
        }
        self.sum_up();
    }

    /// Lets slow starts go on. Cheap if there is none: it may be called before every decision.
    pub fn handle_timeout(&mut self, now: Time) {
        for at in 0..self.nodes.len() {
            let NodeState::SlowStart { since } = self.nodes[at].state else { continue };
            let elapsed = now.saturating_sub(since);
            if elapsed >= self.slow_start_us {
                self.set_state(NodeId(at as u32), NodeState::Active);
                continue;
            }
            let share = slow_start_share(elapsed, self.slow_start_us);
            if share != self.nodes[at].share {
                self.nodes[at].share = share;
                self.refresh(at);
                self.sum_up();
            }
        }
    }

    /// A node joins and starts slowly. The weight is in hundredths of a standard node, and is brought into
    /// 1 to [`WEIGHT_MAX`]. Front-ends know it by its number: they must let nodes join in the same order.
    pub fn join(&mut self, weight: u32, now: Time) -> NodeId {
        let number = self.nodes.len() as u64;
        self.join_keyed(mix(number + 1), weight, now)
    }

    /// Joins as by [`Self::join`], with a name (such as its address) that is the same on all front-ends, in any order of
    /// joining.
    pub fn join_named(&mut self, name: &[u8], weight: u32, now: Time) -> NodeId {
        self.join_keyed(crate::target_hash(name), weight, now)
    }

    /// A node finishes its connections and takes no new ones. A node that is down stays down.
    pub fn drain(&mut self, node: NodeId) {
        if self.is_serving(node) {
            self.set_state(node, NodeState::Draining);
        }
    }

    /// A node is gone. The caller ends the connections that were lost with it ([`Self::end`]).
    pub fn fail(&mut self, node: NodeId) {
        self.set_state(node, NodeState::Down);
    }

    /// A node that was draining or down serves again, and starts slowly. Nothing happens to a node that serves.
    pub fn recover(&mut self, node: NodeId, now: Time) {
        if !self.is_serving(node) {
            self.start(node, now);
        }
    }

    /// A node serves at its full weight at once, such as one that served before this front-end began.
    pub fn activate(&mut self, node: NodeId) {
        self.set_state(node, NodeState::Active);
    }

    /// A node gets another weight, in hundredths of a standard node, brought into 1 to [`WEIGHT_MAX`]. Its load and its
    /// slow start go on.
    pub fn set_weight(&mut self, node: NodeId, weight: u32) {
        let weight = weight.clamp(1, WEIGHT_MAX);
        if let Some(known) = self.nodes.get_mut(node.index()).filter(|known| known.weight != weight) {
            known.weight = weight;
            self.refresh(node.index());
            self.sum_up();
        }
    }

    /// A connection of this node became active.
    pub fn begin(&mut self, node: NodeId) {
        if let Some(load) = self.loads.get_mut(node.index()) {
            *load += 1;
            self.total_load += u64::from(self.steps[node.index()].is_finite());
        }
    }

    /// A connection of this node completed, was lost, or went idle.
    pub fn end(&mut self, node: NodeId) {
        if let Some(load) = self.loads.get_mut(node.index()) {
            debug_assert!(*load > 0, "a connection of {node} ended that never began");
            if *load > 0 {
                *load -= 1;
                self.total_load -= u64::from(self.steps[node.index()].is_finite());
            }
        }
    }

    /// When the next step of a slow start is due, if there is one.
    pub fn poll_timeout(&self) -> Option<Time> {
        let step_us = (self.slow_start_us / SLOW_START_STEPS).max(1);
        self.nodes
            .iter()
            .filter_map(|node| match node.state {
                NodeState::SlowStart { since } => {
                    let taken = node.share * SLOW_START_STEPS / FULL_SHARE;
                    Some(since + (taken + 1) * step_us)
                }
                _ => None,
            })
            .min()
    }

    fn join_keyed(&mut self, key: u64, weight: u32, now: Time) -> NodeId {
        let node = NodeId(self.nodes.len() as u32);
        let weight = weight.clamp(1, WEIGHT_MAX);
        self.nodes.push(Node { state: NodeState::Down, weight, key, share: FULL_SHARE });
        self.loads.push(0);
        self.steps.push(f32::INFINITY);
        self.start(node, now);
        node
    }

    fn start(&mut self, node: NodeId, now: Time) {
        match self.slow_start_us {
            0 => self.set_state(node, NodeState::Active),
            _ => self.set_state(node, NodeState::SlowStart { since: now }),
        }
    }

    fn set_state(&mut self, node: NodeId, state: NodeState) {
        let Some(known) = self.nodes.get_mut(node.index()) else { return };
        if known.state == state {
            return;
        }
        known.state = state;
        known.share = match state {
            NodeState::SlowStart { .. } => slow_start_share(0, self.slow_start_us),
            _ => FULL_SHARE,
        };
        self.refresh(node.index());
        self.serving.clear();
        let serving = (0..self.nodes.len()).filter(|&at| self.steps[at].is_finite());
        self.serving.extend(serving.map(|at| NodeId(at as u32)));
        self.sum_up();
    }

    fn refresh(&mut self, at: usize) {
        let node = &self.nodes[at];
        self.steps[at] = match node.state {
            NodeState::Active => STANDARD_WEIGHT as f32 / node.weight as f32,
            NodeState::SlowStart { .. } => {
                STANDARD_WEIGHT as f32 / node.weight as f32 * (FULL_SHARE as f32 / node.share as f32)
            }
            NodeState::Draining | NodeState::Down => f32::INFINITY,
        };
        self.epoch += 1;
    }

    fn sum_up(&mut self) {
        let capacities = || self.serving.iter().map(|&node| self.capacity(node));
        (self.total_capacity, self.capacity_max) = (capacities().sum(), capacities().fold(0.0, f32::max));
        self.total_load = self.serving.iter().map(|&node| u64::from(self.load(node))).sum();
    }
}

/// The share of its weight that a node takes after this time of its slow start.
fn slow_start_share(elapsed_us: u64, slow_start_us: u64) -> u64 {
    let step = elapsed_us * SLOW_START_STEPS / slow_start_us.max(1);
    (FULL_SHARE * step / SLOW_START_STEPS).max(FIRST_SHARE)
}

/// A share of one.
const FULL_SHARE: u64 = 1 << 16;
/// With nothing at all a node would never warm up.
const FIRST_SHARE: u64 = FULL_SHARE / 20;
/// Slow start advances in steps, so that tables that depend on weights are not rebuilt for every request.
const SLOW_START_STEPS: u64 = 16;
