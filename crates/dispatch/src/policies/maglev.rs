//! Maglev hashing (Eisenbud and others, 2016, section 3.4): a lookup table that is nearly perfectly even.

use crate::hash::{below, mix};
use crate::policies::draw::draw;
use crate::{Cluster, Decision, NodeId, Policy, PolicySettings, Target, Time};

/// Each node has its own order of preference over the slots of a table; in turn, the nodes take their next free slot.
/// When a node leaves, most slots of the others stay.
pub(crate) struct Maglev {
    /// A prime number of slots; empty while no node serves.
    slots: Vec<NodeId>,
    slot_count: usize,
}

impl Maglev {
    pub(crate) fn new(settings: &PolicySettings) -> Self {
        Self { slots: Vec::new(), slot_count: prime_from(settings.maglev_slots.clamp(SLOTS_MIN, SLOTS_MAX)) }
    }

    fn fill(&mut self, cluster: &Cluster) {
        const FREE: NodeId = NodeId(u32::MAX);
        let count = self.slot_count as u64;
        self.slots.clear();
        self.slots.resize(self.slot_count, FREE);
        let mut columns: Vec<Column> =
            cluster.serving().iter().map(|&node| Column::of(node, cluster, count)).collect();
        let weight_max = columns.iter().map(|column| column.weight).max().unwrap_or(1);
        let mut filled = 0;
        loop {
            for column in &mut columns {
                // A node of a third of the weight takes every third turn.
                column.earned += column.weight;
                if column.earned < weight_max {
                    continue;
                }
                column.earned -= weight_max;
                let mut slot = column.next_slot(count);
                while self.slots[slot] != FREE {
                    slot = column.next_slot(count);
                }
                self.slots[slot] = column.node;
                filled += 1;
                if filled == self.slot_count {
                    return;
                }
            }
        }
    }
}

/// A node's order of preference: steps of its own length around the table. As their number is prime, it visits each
/// slot.
struct Column {
    node: NodeId,
    weight: u64,
    earned: u64,
    at: u64,
    skip: u64,
}

impl Column {
    fn of(node: NodeId, cluster: &Cluster, slots: u64) -> Self {
        let key = cluster.key(node);
        Self {
            node,
            weight: u64::from(cluster.weight(node)),
            earned: 0,
            at: below(mix(key), slots),
            skip: 1 + below(mix(!key), slots - 1),
        }
    }

    fn next_slot(&mut self, slots: u64) -> usize {
        self.at = (self.at + self.skip) % slots;
        self.at as usize
    }
}

impl Policy for Maglev {
    fn choose(&mut self, target: Target, cluster: &Cluster, _: Time) -> Decision {
        if self.slots.is_empty() {
            return Decision::no_node();
        }
        draw(target, cluster, |hash| self.slots[below(hash, self.slots.len() as u64) as usize])
    }

    fn handle_membership(&mut self, cluster: &Cluster, _: Time) {
        if cluster.serving().is_empty() {
            self.slots.clear();
        } else {
            self.fill(cluster);
        }
    }
}

/// The first prime number at or after this one.
fn prime_from(number: usize) -> usize {
    let is_prime = |number: usize| {
        (2..).take_while(|factor| factor * factor <= number).all(|f| !number.is_multiple_of(f))
    };
    (number..).find(|&candidate| is_prime(candidate)).unwrap_or(number)
}

/// Fewer slots are not worth the name of a table.
const SLOTS_MIN: usize = 101;
/// 64 MB of table: for more nodes than a front-end can see.
const SLOTS_MAX: usize = 1 << 24;
