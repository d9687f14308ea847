//! Sets of nodes for many targets: nearly all of one node, a few of many.
//!
//! The first node is stored in the set; further ones are links of one bounded pool, so a million sets stay small and
//! never allocate.

use crate::{Cluster, NodeId};

/// The nodes of one target; never empty. Of no use without the [`Replicas`] that it was grown in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeSet {
    first: NodeId,
    rest: u32,
    len: u32,
}

/// The nodes beyond the first of all sets together.
#[derive(Debug)]
pub(crate) struct Replicas {
    links: Vec<Cell>,
    free: u32,
    links_max: usize,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    node: NodeId,
    next: u32,
}

/// A link to nothing.
const NONE: u32 = u32::MAX;

impl NodeSet {
    /// The set of this node alone.
    pub(crate) const fn of(node: NodeId) -> Self {
        Self { first: node, rest: NONE, len: 1 }
    }

    /// How many nodes there are.
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }
}

impl Replicas {
    /// A pool for up to `links_max` nodes.
    pub(crate) fn new(links_max: usize) -> Self {
        let links_max = links_max.min(NONE as usize);
        Self { links: Vec::with_capacity(links_max), free: NONE, links_max }
    }

    /// The nodes of a set.
    pub(crate) fn nodes(&self, set: &NodeSet) -> impl Iterator<Item = NodeId> {
        let mut next = set.rest;
        std::iter::once(set.first).chain(std::iter::from_fn(move || {
            let link = self.links.get(next as usize)?;
            next = link.next;
            Some(link.node)
        }))
    }

    /// The node of a set with the least pressure, of equal ones the first; none if none of them serves.
    pub(crate) fn least_loaded(&self, set: &NodeSet, cluster: &Cluster) -> Option<NodeId> {
        let serving = self.nodes(set).filter(|&node| cluster.is_serving(node));
        serving
            .min_by(|&a, &b| cluster.pressure_with_one_more(a).total_cmp(&cluster.pressure_with_one_more(b)))
    }

    /// The node of a set with the most pressure, of equal ones the last, apart from `spared`. A node that does not serve
    /// counts as having the most.
    pub(crate) fn most_loaded(&self, set: &NodeSet, cluster: &Cluster, spared: NodeId) -> Option<NodeId> {
        let others = self.nodes(set).filter(|&node| node != spared);
        others.max_by(|&a, &b| cluster.pressure(a).total_cmp(&cluster.pressure(b)))
    }

    /// Adds a node that is not in the set. False if the pool is exhausted.
    pub(crate) fn add(&mut self, set: &mut NodeSet, node: NodeId) -> bool {
        debug_assert!(self.nodes(set).all(|known| known != node));
        let link = Cell { node, next: set.rest };
        let at = match self.links.get(self.free as usize) {
            Some(&Cell { next, .. }) => std::mem::replace(&mut self.free, next),
            None if self.links.len() < self.links_max => {
                self.links.push(link);
                (self.links.len() - 1) as u32
            }
            None => return false,
        };
        self.links[at as usize] = link;
        set.rest = at;
        set.len += 1;
        true
    }

    /// Removes a node from a set of several.
    pub(crate) fn remove(&mut self, set: &mut NodeSet, node: NodeId) {
        if set.len == 1 {
            return;
        }
        let mut before = NONE;
        let mut at = set.rest;
        if set.first == node {
            set.first = self.links[at as usize].node;
        } else {
            while at != NONE && self.links[at as usize].node != node {
                (before, at) = (at, self.links[at as usize].next);
            }
            if at == NONE {
                return;
            }
        }
        let next = std::mem::replace(&mut self.links[at as usize].next, self.free);
        self.free = at;
        set.len -= 1;
        match before {
            NONE => set.rest = next,
            before => self.links[before as usize].next = next,
        }
    }

    /// Releases all nodes of a set beyond the first.
    pub(crate) fn release(&mut self, set: NodeSet) {
        let mut last = set.rest;
        if last == NONE {
            return;
        }
        while self.links[last as usize].next != NONE {
            last = self.links[last as usize].next;
        }
        self.links[last as usize].next = self.free;
        self.free = set.rest;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against plain lists: three sets share a pool of five links, which is exhausted, released and reused.
        #[test]
        fn sets_are_sets_and_no_link_is_lost(
            steps in prop::collection::vec((0_usize..3, 0_u32..6, 0_u8..8), 0..200),
        ) {
            const LINKS: usize = 5;
            let mut replicas = Replicas::new(LINKS);
            let mut sets = [NodeSet::of(NodeId(0)); 3];
            let mut expected = vec![vec![NodeId(0)]; 3];
            for (which, node, step) in steps {
                let node = NodeId(node);
                let used: usize = expected.iter().map(|nodes| nodes.len() - 1).sum();
                let (set, nodes) = (&mut sets[which], &mut expected[which]);
                match step {
                    0 => {
                        replicas.release(*set);
                        (*set, *nodes) = (NodeSet::of(node), vec![node]);
                    }
                    1..3 => {
                        replicas.remove(set, node);
                        if nodes.len() > 1 {
                            nodes.retain(|&known| known != node);
                        }
                    }
                    _ if nodes.contains(&node) => {}
                    _ => {
                        prop_assert_eq!(replicas.add(set, node), used < LINKS);
                        if used < LINKS {
                            nodes.push(node);
                        }
                    }
                }
                for (set, nodes) in sets.iter().zip(&expected) {
                    let mut found: Vec<_> = replicas.nodes(set).collect();
                    let mut nodes = nodes.clone();
                    found.sort_unstable();
                    nodes.sort_unstable();
                    prop_assert_eq!(set.len() as usize, nodes.len());
                    prop_assert_eq!(found, nodes);
                }
            }
        }
    }
}
