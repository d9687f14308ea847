//! The smallest cluster with a required throughput.

use std::fmt;

use baton_dispatch::{PolicyName, STANDARD_WEIGHT};

use super::replay::{Half, Replay, Unmatched};
use crate::model::{NODES_MAX, Scenario, simulate};
use crate::report::Run;

/// More than this are not looked for.
pub(super) const NEEDED_MAX: usize = 256;

/// One search: a policy, the memory of a node, and how the log is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Search {
    pub(super) policy: PolicyName,
    pub(super) cache_bytes: u64,
    pub(super) half: Half,
    pub(super) unmatched: Unmatched,
}

impl Search {
    /// The number of nodes, if there are enough of them at all, and the runs.
    pub(super) fn run(
        &self,
        replay: &Replay<'_>,
        scenario: &Scenario,
        per_s: f64,
        variant: &str,
    ) -> (Option<usize>, Vec<Run>) {
        let mut runs = Vec::new();
        let mut is_enough = |nodes: usize| {
            let mut scenario = Scenario {
                policy: self.policy,
                measured_from: 0.5,
                weights: vec![STANDARD_WEIGHT; nodes],
                ..scenario.clone()
            };
            scenario.profile.cache_bytes = self.cache_bytes;
            let trace = replay.trace(self.half, self.unmatched, nodes);
            let outcome = simulate(&scenario, &trace, &mut |_| ());
            let is_enough = outcome.throughput >= per_s;
            runs.push(Run { variant: variant.to_owned(), outcome });
            is_enough
        };
        // Doubled until it is enough, then halved the difference.
        let mut enough = 1;
        while !is_enough(enough) {
            enough *= 2;
            if enough > NEEDED_MAX.min(NODES_MAX) {
                return (None, runs);
            }
        }
        let mut too_few = enough / 2;
        while enough - too_few > 1 {
            let middle = usize::midpoint(enough, too_few);
            if is_enough(middle) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        (Some(enough), runs)
    }
}

/// The number of nodes that a site needs, as far as its log tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeRange {
    /// At the least; none if not even [`NEEDED_MAX`] are enough.
    pub(super) least: Option<usize>,
    /// At the most; none as above.
    pub(super) most: Option<usize>,
}

impl NodeRange {
    /// Of several replays of one log.
    pub(super) fn of(found: &[Option<usize>]) -> Self {
        let nodes = || found.iter().map(|nodes| nodes.unwrap_or(usize::MAX));
        let told = |nodes: Option<usize>| nodes.filter(|nodes| *nodes != usize::MAX);
        Self { least: told(nodes().min()), most: told(nodes().max()) }
    }

    /// Whether the replays agree, within one node or a quarter.
    pub(super) fn is_an_answer(self) -> bool {
        match (self.least, self.most) {
            (Some(least), Some(most)) => most - least <= (least / 4).max(1),
            (None, None) => true,
            _ => false,
        }
    }

    /// The advice with nodes to spare.
    pub(super) fn and(self, spare: usize) -> Self {
        Self { least: self.least.map(|nodes| nodes + spare), most: self.most.map(|nodes| nodes + spare) }
    }
}

impl fmt::Display for NodeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (Some(least), Some(most)) if least == most => write!(f, "{least}"),
            (Some(least), Some(most)) => write!(f, "{least} to {most}"),
            (Some(least), None) => write!(f, "{least} to more than {NEEDED_MAX}"),
            _ => write!(f, "more than {NEEDED_MAX}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replays_that_agree_are_an_answer() {
        for (found, shown, is_an_answer) in [
            (&[Some(4), Some(4)][..], "4", true),
            (&[Some(1), Some(2)], "1 to 2", true),
            (&[Some(4), Some(6), Some(5)], "4 to 6", false),
            (&[Some(40), Some(50)], "40 to 50", true),
            (&[Some(2), Some(41)], "2 to 41", false),
            (&[Some(200), None], "200 to more than 256", false),
            (&[None, None], "more than 256", true),
        ] {
            let needed = NodeRange::of(found);
            assert_eq!((needed.to_string().as_str(), needed.is_an_answer()), (shown, is_an_answer));
        }
        assert_eq!(NodeRange::of(&[Some(2), Some(3)]).and(1).to_string(), "3 to 4");
    }
}
