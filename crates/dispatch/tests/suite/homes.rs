//! Several front-ends that do not talk to each other.

use baton_dispatch::{Cluster, PolicyName, PolicySettings};
use proptest::prelude::*;

use crate::driver::{FrontEnd, SECOND, numbered};

/// A front-end with its own seed and its own history.
fn front_end(policy: PolicyName, names: &[&str], seed: u64) -> FrontEnd {
    let mut cluster = Cluster::new(0);
    for name in names {
        cluster.join_named(name.as_bytes(), 100, 0);
    }
    FrontEnd::new(
        cluster,
        policy.build(&PolicySettings { seed, mappings_max: 1 << 12, ..PolicySettings::default() }),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// In a cluster without overload they agree on every target, in whatever order they met nodes and targets, also
    /// after a failure. LARD/R does not: it places by the load of the moment.
    #[test]
    fn front_ends_with_homes_agree(seeds in any::<[u64; 2]>(), rotation in 0_usize..200, lost in 0_usize..5) {
        let names = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"];
        let mut met_in_other_order = names;
        met_in_other_order.rotate_left(2);
        for policy in [PolicyName::ConsistentHash, PolicyName::BoundedHash, PolicyName::LardH] {
            let mut one = front_end(policy, &names, seeds[0]);
            let mut other = front_end(policy, &met_in_other_order, seeds[1]);
            let name_of = |met: &[&str], decision: baton_dispatch::Decision| {
                decision.node.map(|node| met[node.index()].to_owned())
            };
            for round in 0..2 {
                if round == 1 {
                    one.fail(baton_dispatch::NodeId(lost as u32));
                    other.fail(baton_dispatch::NodeId(((lost + 3) % 5) as u32));
                }
                let placed: Vec<_> = (0..200).map(|at| name_of(&names, one.serve(numbered(at)))).collect();
                for at in (0..200).map(|at| (at + rotation) % 200) {
                    let there = name_of(&met_in_other_order, other.serve(numbered(at as u64)));
                    prop_assert_eq!(&there, &placed[at], "{} in round {}", policy, round);
                }
            }
        }
    }
}

/// A node that comes back has an empty memory, and starts slowly; what went to others meanwhile stays there.
#[test]
fn lard_h_does_not_believe_in_the_memory_of_a_node_that_was_down() {
    let mut front_end = FrontEnd::of(PolicyName::LardH, 2);
    let homes: Vec<_> = (0..100).filter_map(|number| front_end.serve(numbered(number)).node).collect();
    let of_first: Vec<u64> = (0..100).filter(|&number| homes[number as usize].0 == 0).collect();
    assert!(of_first.len() > 20, "{homes:?}");
    let (met_meanwhile, not_met) = of_first.split_at(of_first.len() / 2);

    front_end.fail(homes[of_first[0] as usize]);
    for &number in met_meanwhile {
        assert_eq!(front_end.serve(numbered(number)).node.map(|node| node.0), Some(1));
    }
    front_end.wait(SECOND);
    front_end.recover(baton_dispatch::NodeId(0));
    front_end.wait(60 * SECOND);
    for &number in met_meanwhile {
        assert_eq!(
            front_end.serve(numbered(number)).node.map(|node| node.0),
            Some(1),
            "it is in memory there"
        );
    }
    for &number in not_met {
        let decision = front_end.serve(numbered(number));
        assert_eq!(decision.node.map(|node| node.0), Some(0), "it is nowhere: back to its home");
        assert_eq!(decision.why.word(), "moved", "and has to be read again");
    }
}
