//! Power of two choices (Mitzenmacher, 2001): nearly as even as asking all, for the price of asking two.

use crate::hash::{Choices, below};
use crate::{Cluster, Decision, Policy, PolicySettings, Target, Time, Why};

/// The one of two nodes drawn at random that would have the lesser pressure. Blind to the target.
pub(crate) struct PowerOfTwo {
    choices: Choices,
}

impl PowerOfTwo {
    pub(crate) const fn new(settings: &PolicySettings) -> Self {
        Self { choices: Choices::new(settings.seed) }
    }
}

impl Policy for PowerOfTwo {
    fn choose(&mut self, _: Target, cluster: &Cluster, _: Time) -> Decision {
        let serving = cluster.serving();
        let count = serving.len() as u64;
        if count == 0 {
            return Decision::no_node();
        }
        let first = below(self.choices.next(), count);
        // Another one than the first, if there is another one: a step of 1 to count - 1 around the circle.
        let second = (first + 1 + below(self.choices.next(), count - 1)) % count;
        let (first, second) = (serving[first as usize], serving[second as usize]);
        let second_is_lighter =
            cluster.pressure_with_one_more(second) < cluster.pressure_with_one_more(first);
        Decision::to(if second_is_lighter { second } else { first }, Why::Lighter)
    }

    fn handle_membership(&mut self, _: &Cluster, _: Time) {}
}
