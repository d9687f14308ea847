//! Which nodes there are, by what etcd has said: ranges and watch events go in, nodes come out. No clock, no socket.
//!
//! ```text
//!                    Put                       ends in order, drained, or alone
//!   (unknown) ────────────────────► live ───────────────────────────────────────► (unknown)
//!                                   │  ▲                                              ▲
//!                   many vanish     │  │ Put                 `hold_ms`, and others    │
//!                                   ▼  │                     live                     │
//!                                   held ─────────────────────────────────────────────┘
//! ```
//!
//! A node that vanishes is gone if it said so before, or if most others are there. If most nodes vanish within `hold_ms`, the
//! fault is likely etcd's (leases that were not renewed in time, lost data), and the nodes are *held*: they count, and their
//! health decides. The last node is held until another lives.
//!
//! Revisions of one cluster of etcd only grow. A range that was asked for after a revision was known, and that is older, tells
//! of lost data; one that is merely overtaken by events is dropped.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::etcd::{Entry, Event, Snapshot};
use crate::record::{Directive, NodeState, Registration, Skip, is_name};

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its URL.
    pub to: String,
    /// How much it takes: the operator's word, or else its own.
    pub weight: u32,
    /// Whether an operator wants it to get no requests.
    pub drained: bool,
    /// Whether it is about to end.
    pub leaving: bool,
    /// Whether etcd does not have it any more, and it counts nevertheless.
    pub held: bool,
    /// Where its handoff agent takes connections.
    pub mover: Option<String>,
    /// Its URL for clients.
    pub public: Option<String>,
    /// Greater each time that it begins.
    pub epoch: u64,
    /// Whether it says what it has left while it is drained.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tells_left: bool,
    /// Connections of front-ends that it has left, or requests if it has no handoff agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// Where it is known from.
    pub source: Source,
    /// The host of whose addresses it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Where a node is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The node has registered itself in etcd.
    Etcd,
    /// The node is an address of a host name.
    Dns,
}

/// What a range has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Events have overtaken it.
    Overtaken,
    /// The view counts.
    Counts,
    /// The view counts, and etcd is not what it was: data was lost, or it is another cluster of etcd.
    Lost,
}

/// The nodes and the orders, as of one revision.
#[derive(Clone, Debug, Default)]
pub struct View {
    hold_ms: u64,
    cluster_id: u64,
    revision: i64,
    nodes: BTreeMap<String, NodeRecord>,
    orders: BTreeMap<String, Directive>,
    skipped: BTreeMap<String, Skip>,
    /// When nodes were dropped that had not said that they end.
    drops: VecDeque<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeRecord {
    registration: Registration,
    /// Since when etcd does not have it.
    missing_since_ms: Option<u64>,
}

impl View {
    /// Nothing is known. Nodes that vanish together are held for so many milliseconds.
    pub fn new(hold_ms: u64) -> Self {
        Self { hold_ms, ..Self::default() }
    }

    /// What was known when a process ended: the nodes count until etcd says otherwise.
    pub fn restored(
        hold_ms: u64,
        cluster_id: u64,
        nodes: BTreeMap<String, Registration>,
        orders: BTreeMap<String, Directive>,
    ) -> Self {
        let known = |(name, registration)| (name, NodeRecord { registration, missing_since_ms: None });
        let nodes = nodes.into_iter().filter(|(name, _)| is_name(name)).take(NODES_MAX).map(known).collect();
        Self { hold_ms, cluster_id, nodes, orders, ..Self::default() }
    }

    /// The revision that it is of; 0: etcd has not answered yet.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// The cluster of etcd that has answered last; 0: none ever did.
    pub fn cluster_id(&self) -> u64 {
        self.cluster_id
    }

    /// The nodes, in the order of their names.
    pub fn members(&self) -> Vec<Member> {
        let member = |(name, known): (&String, &NodeRecord)| {
            let Registration { to, weight, state, mover, public, epoch, tells_left, left, .. } =
                known.registration.clone();
            let order = self.orders.get(name).copied().unwrap_or_default();
            Member {
                name: name.clone(),
                to,
                weight: order.weight.unwrap_or(weight),
                drained: order.drained,
                leaving: state == NodeState::Leaving,
                held: known.missing_since_ms.is_some(),
                mover,
                public,
                epoch,
                tells_left,
                left,
                source: Source::Etcd,
                host: None,
            }
        };
        self.nodes.iter().map(member).collect()
    }

    /// What nodes and operators said, to be kept for a restart.
    pub fn to_save(&self) -> (BTreeMap<String, Registration>, BTreeMap<String, Directive>) {
        let nodes = self.nodes.iter().map(|(name, known)| (name.clone(), known.registration.clone()));
        (nodes.collect(), self.orders.clone())
    }

    /// Keys whose values do not count, and why.
    pub fn skipped(&self) -> impl Iterator<Item = (&str, &Skip)> {
        self.skipped.iter().map(|(key, skip)| (&**key, skip))
    }

    /// Whether etcd has this node, live.
    pub fn has_live(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|known| known.missing_since_ms.is_none())
    }

    /// All that etcd has below the prefix. `asked_at`: the view's revision when that was asked for.
    pub fn handle_range(&mut self, snapshot: &Snapshot, asked_at: i64, now_ms: u64) -> Applied {
        let is_other = self.cluster_id != 0 && self.cluster_id != snapshot.cluster_id;
        let went_back = snapshot.revision < asked_at;
        if !is_other && !went_back && snapshot.revision < self.revision {
            return Applied::Overtaken;
        }
        (self.cluster_id, self.revision) = (snapshot.cluster_id, snapshot.revision);
        self.orders.clear();
        self.skipped.clear();
        let mut seen = Vec::new();
        for entry in &snapshot.entries {
            self.put(entry);
            // Also one whose value does not count: its last good one does.
            seen.extend(entry.key.split_once('/').filter(|(kind, _)| *kind == NODES).map(|(_, name)| name));
        }
        let missing = self.live().filter(|name| !seen.contains(&name.as_str())).cloned().collect();
        self.vanish(missing, now_ms);
        if is_other || went_back { Applied::Lost } else { Applied::Counts }
    }

    /// What a watch has told at once, in order. What is known already is passed over: all changes of one revision come
    /// together.
    pub fn handle_events(&mut self, events: &[Event], now_ms: u64) {
        let known = self.revision;
        let mut missing: Vec<String> = Vec::new();
        for event in events.iter().filter(|event| event.revision() > known) {
            self.revision = self.revision.max(event.revision());
            match event {
                Event::Put(entry) => {
                    let name = self.put(entry);
                    missing.retain(|one| Some(one) != name.as_ref());
                }
                Event::Delete { key, .. } => missing.extend(self.delete(key)),
            }
        }
        self.vanish(missing, now_ms);
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<u64> {
        // The last node is held until another lives.
        self.live().next()?;
        let since = self.nodes.values().filter_map(|known| known.missing_since_ms).min()?;
        Some(since.saturating_add(self.hold_ms))
    }

    /// Lets nodes go that were held for long enough.
    pub fn handle_timeout(&mut self, now_ms: u64) {
        if self.live().next().is_some() {
            let hold_ms = self.hold_ms;
            let is_due = |since: u64| since.saturating_add(hold_ms) <= now_ms;
            self.nodes.retain(|_, known| !known.missing_since_ms.is_some_and(is_due));
        }
    }

    /// Takes a value. Returns the name of the node that it makes live.
    fn put(&mut self, entry: &Entry) -> Option<String> {
        self.skipped.remove(&entry.key);
        match self.take(entry) {
            Ok(name) => name,
            Err(skip) => {
                if self.skipped.len() < SKIPPED_MAX {
                    self.skipped.insert(shortened(&entry.key), skip);
                }
                None
            }
        }
    }

    fn take(&mut self, entry: &Entry) -> Result<Option<String>, Skip> {
        let (kind, name) = entry.key.split_once('/').ok_or(Skip::Key)?;
        if !is_name(name) {
            return Err(Skip::Name);
        }
        match kind {
            NODES => {
                let registration = Registration::parse(&entry.value)?;
                if self.nodes.len() >= NODES_MAX && !self.nodes.contains_key(name) {
                    return Err(Skip::TooMany);
                }
                self.nodes.insert(name.to_owned(), NodeRecord { registration, missing_since_ms: None });
                Ok(Some(name.to_owned()))
            }
            ORDERS => {
                let directive = Directive::parse(&entry.value)?;
                if self.orders.len() >= ORDERS_MAX && !self.orders.contains_key(name) {
                    return Err(Skip::TooMany);
                }
                self.orders.insert(name.to_owned(), directive);
                Ok(None)
            }
            _ => Err(Skip::Key),
        }
    }

    /// Takes the end of a key. Returns the name of the node that it was about.
    fn delete(&mut self, key: &str) -> Option<String> {
        self.skipped.remove(key);
        match key.split_once('/')? {
            (NODES, name) => self.has_live(name).then(|| name.to_owned()),
            (ORDERS, name) => {
                self.orders.remove(name);
                None
            }
            _ => None,
        }
    }

    /// Lets these nodes go, or holds them: see the head of this file.
    fn vanish(&mut self, names: Vec<String>, now_ms: u64) {
        let (mut ended, mut lost) = (Vec::new(), Vec::new());
        for name in names {
            let is_leaving =
                self.nodes.get(&name).is_some_and(|known| known.registration.state == NodeState::Leaving);
            let is_drained = self.orders.get(&name).is_some_and(|order| order.drained);
            if is_leaving || is_drained { ended.push(name) } else { lost.push(name) }
        }
        ended.iter().for_each(|name| _ = self.nodes.remove(name));
        self.drops.retain(|at| at.saturating_add(self.hold_ms) > now_ms);
        let live = self.live().filter(|name| !lost.contains(name)).count();
        let held = self.nodes.values().filter(|known| known.missing_since_ms.is_some()).count();
        let all_lost = self.drops.len() + held + lost.len();
        let is_fault = all_lost > live;
        for name in lost {
            if let Some(known) = self.nodes.get_mut(&name).filter(|_| is_fault) {
                known.missing_since_ms = Some(now_ms);
            } else {
                self.nodes.remove(&name);
                self.drops.push_back(now_ms);
            }
        }
        while self.drops.len() > NODES_MAX {
            self.drops.pop_front();
        }
    }

    fn live(&self) -> impl Iterator<Item = &String> {
        self.nodes.iter().filter(|(_, known)| known.missing_since_ms.is_none()).map(|(name, _)| name)
    }
}

/// A hostile key is not told in full.
fn shortened(key: &str) -> String {
    key.chars().take(KEY_CHARACTERS_MAX).collect()
}

/// What nodes say.
pub(crate) const NODES: &str = "nodes";

/// What operators say.
pub(crate) const ORDERS: &str = "orders";

/// Most nodes: as many as the peers of a route can be.
pub(crate) const NODES_MAX: usize = 64;

/// Orders stay when nodes go, and names may change.
const ORDERS_MAX: usize = 4 * NODES_MAX;

/// Values that do not count and are told nevertheless.
const SKIPPED_MAX: usize = 16;

const KEY_CHARACTERS_MAX: usize = 100;
