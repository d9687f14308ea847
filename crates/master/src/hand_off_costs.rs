//! What hand-offs cost and how long they take, from the totals that a handoff agent tells of itself once a second.

use std::collections::BTreeMap;

use baton_cluster::local::{AgentStatus, NodeStatus};
use baton_upstream::HandOffSeen;

/// Costs so far.
#[derive(Debug, Default)]
pub(crate) struct HandOffCosts {
    agent_ns: u64,
    delays_us: BTreeMap<String, u64>,
}

impl HandOffCosts {
    /// An agent has told its totals, and those before. Another agent's say nothing: it has begun meanwhile.
    pub(crate) fn handle(&mut self, before: &AgentStatus, after: &AgentStatus) {
        if before.pid != after.pid {
            return;
        }
        let pairs = after
            .nodes
            .iter()
            .filter_map(|node| Some((before.nodes.iter().find(|former| former.node == node.node)?, node)));
        let mut moves = 0;
        for (before, after) in pairs {
            let handed = after.handed.saturating_sub(before.handed);
            moves += handed + after.returned.saturating_sub(before.returned);
            if handed >= MOVES_MIN {
                let took_us = after.took_ms.saturating_sub(before.took_ms) * 1_000 / handed;
                follow(self.delays_us.entry(after.node.clone()).or_default(), took_us.max(1));
            }
        }
        if moves >= MOVES_MIN {
            follow(&mut self.agent_ns, after.cpu_us.saturating_sub(before.cpu_us) * 1_000 / moves);
        }
    }

    /// What is known of hand-offs to a node.
    pub(crate) fn of(&self, node: &NodeStatus) -> HandOffSeen {
        let delay_us = self.delays_us.get(&node.node).copied().unwrap_or(0);
        HandOffSeen { agent_ns: self.agent_ns, delay_us }
    }
}

/// The mean of the last seconds.
fn follow(mean: &mut u64, sample: u64) {
    *mean = if *mean == 0 { sample } else { (*mean * 3 + sample) / 4 };
}

/// Of fewer in a second, what the agent does besides would be taken for theirs.
const MOVES_MIN: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn status(cpu_us: u64, handed: u64, took_ms: u64) -> AgentStatus {
        let node = NodeStatus { node: "a".into(), handed, took_ms, ..NodeStatus::default() };
        AgentStatus { pid: 7, cpu_us, nodes: vec![node], ..AgentStatus::default() }
    }

    fn seen(steps: &[(AgentStatus, AgentStatus)]) -> HandOffSeen {
        let mut costs = HandOffCosts::default();
        steps.iter().for_each(|(before, after)| costs.handle(before, after));
        costs.of(&steps[0].1.nodes[0])
    }

    #[test]
    fn costs_are_those_of_a_second_that_had_enough_hand_offs() {
        let first = (status(9_000, 100, 30), status(10_000, 110, 35));
        assert_eq!(seen(std::slice::from_ref(&first)), HandOffSeen { agent_ns: 100_000, delay_us: 500 });
        let few = (status(10_000, 110, 35), status(90_000, 110 + MOVES_MIN - 1, 900));
        assert_eq!(seen(&[first.clone(), few]), HandOffSeen { agent_ns: 100_000, delay_us: 500 });
        let slower = (status(10_000, 110, 35), status(12_000, 120, 44));
        assert_eq!(seen(&[first, slower]), HandOffSeen { agent_ns: 125_000, delay_us: 600 });
    }

    #[test]
    fn another_agent_tells_nothing_at_first() {
        let fresh = (AgentStatus::default(), status(10_000, 110, 35));
        assert_eq!(seen(&[fresh]), HandOffSeen::default());
    }
}
