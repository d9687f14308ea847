//! Several front-ends that do not talk to each other.

use baton_dispatch::{Cluster, Decision, NodeId, PolicyName, PolicySettings, Why};
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

    /// In a cluster without overload they agree on every target, in any order of nodes and targets, also after a
    /// failure. LARD/R does not: it places by current load.
    #[test]
    fn front_ends_with_homes_agree(seeds in any::<[u64; 2]>(), rotation in 0_usize..200, lost in 0_usize..5) {
        let names = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"];
        let mut met_in_other_order = names;
        met_in_other_order.rotate_left(2);
        for policy in [PolicyName::ConsistentHash, PolicyName::BoundedHash, PolicyName::LardH] {
            let mut one = front_end(policy, &names, seeds[0]);
            let mut other = front_end(policy, &met_in_other_order, seeds[1]);
            let name_of = |met: &[&str], decision: Decision| {
                decision.node.map(|node| met[node.index()].to_owned())
            };
            for round in 0..2 {
                if round == 1 {
                    one.fail(NodeId(lost as u32));
                    other.fail(NodeId(((lost + 3) % 5) as u32));
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

/// T_low is 25 and T_high is 65. A home takes new targets until it has 65 connections, or 130 while no other node idles;
/// then they go to the next node in their order.
#[test]
fn lard_h_passes_over_a_home_that_is_overloaded() {
    let targets_of = |home: NodeId| {
        let mut at_rest = FrontEnd::of(PolicyName::LardH, 3);
        (0..100).filter(move |&number| at_rest.serve(numbered(number)).node == Some(home))
    };
    for (connections, others, stays) in
        [(64, 24, true), (65, 24, false), (65, 25, true), (129, 25, true), (130, 25, false)]
    {
        let mut front_end = FrontEnd::of(PolicyName::LardH, 3);
        front_end.cluster.handle_loads(&[connections, others, 100]);
        let nodes: Vec<_> =
            targets_of(NodeId(0)).filter_map(|number| front_end.serve(numbered(number)).node).collect();
        assert!(nodes.len() > 20);
        let stayed = nodes.iter().filter(|&&node| node == NodeId(0)).count();
        let case = format!("{stayed} of {} stayed with {connections} beside {others}", nodes.len());
        assert_eq!(stayed, if stays { nodes.len() } else { 0 }, "{case}");
    }
}

/// Targets that went to another node while their home was down stay there: that node has them in memory.
#[test]
fn lard_h_leaves_targets_where_they_went_while_their_home_was_down() {
    let mut front_end = FrontEnd::of(PolicyName::LardH, 2);
    let of_first: Vec<u64> =
        (0..100).filter(|&number| front_end.serve(numbered(number)).node == Some(NodeId(0))).collect();
    let (met_meanwhile, not_met) = of_first.split_at(of_first.len() / 2);
    assert!(!met_meanwhile.is_empty());

    front_end.fail(NodeId(0));
    for &number in met_meanwhile {
        assert_eq!(front_end.serve(numbered(number)), Decision::to(NodeId(1), Why::FirstAssignment));
    }
    front_end.wait(SECOND);
    front_end.recover(NodeId(0));
    front_end.wait(60 * SECOND);
    for &number in met_meanwhile {
        assert_eq!(front_end.serve(numbered(number)), Decision::to(NodeId(1), Why::Mapped));
    }
    for &number in not_met {
        assert_eq!(front_end.serve(numbered(number)), Decision::to(NodeId(0), Why::Mapped));
    }
}

/// A target in the memory of its home, and the other one of two nodes.
fn mapped_to_one_of_two(front_end: &mut FrontEnd, target: u64) -> (NodeId, NodeId) {
    let home = front_end.serve(target).node.expect("two nodes serve");
    (home, NodeId(1 - home.0))
}

/// The table holds one target, and one node beyond the first: each new target needs the forgotten one's entry.
#[test]
fn a_forgotten_target_gives_back_its_copies() {
    for policy in [PolicyName::LardR, PolicyName::LardH] {
        let settings = PolicySettings { mappings_max: 1, replicas_max: 1, ..PolicySettings::default() };
        let mut front_end = FrontEnd::new(Cluster::of(&[100; 2], 0), policy.build(&settings));
        for target in 0..5 {
            front_end.cluster.handle_loads(&[0, 0]);
            let (home, _) = mapped_to_one_of_two(&mut front_end, target);
            let mut loads = [0; 2];
            loads[home.index()] = 100;
            front_end.cluster.handle_loads(&loads);
            assert_eq!(front_end.serve(target).why, Why::Replicated { nodes: 2 }, "{policy}, {target}");
        }
    }
}
