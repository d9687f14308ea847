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
    front_end.recover(NodeId(0));
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

/// A target at its home with more requests than the CPU there should have, ready to be replicated.
fn overloaded_home(front_end: &mut FrontEnd, target: u64) {
    for _ in 0..40 {
        front_end.request(target);
    }
    // The first completion tells that the target has been read.
    let of_target = front_end.active.iter().position(|(active, _)| active.hash == target);
    front_end.complete(of_target.expect("forty of them"));
}

#[test]
fn lard_h_goes_on_after_the_node_that_was_reading_a_copy_fails() {
    let mut front_end = FrontEnd::of(PolicyName::LardH, 4);
    overloaded_home(&mut front_end, 7);
    let first = front_end.request(7);
    assert_eq!(first.why, Why::Replicated { nodes: 2 });
    front_end.fail(first.node.expect("a node to help"));
    let second = front_end.request(7);
    assert_eq!(second.why, Why::Replicated { nodes: 2 });
    assert_ne!(second.node, first.node);
}

/// Connections that ended without a word to the policy are not believed to wait for the disk for ever.
#[test]
fn lard_h_forgets_reads_of_a_node_that_has_nothing_to_do() {
    let mut front_end = FrontEnd::of(PolicyName::LardH, 2);
    let home = front_end.request(7).node;
    for _ in 0..100 {
        front_end.request(7);
    }
    for (_, node) in front_end.active.drain(..) {
        front_end.cluster.end(node);
    }
    let neighbour = (8..).find(|&hash| front_end.serve(hash).node == home).expect("half of all targets");
    let whys: Vec<_> = (0..40).map(|_| front_end.request(neighbour).why).collect();
    assert!(whys.contains(&Why::Replicated { nodes: 2 }), "{whys:?}");
}

/// A target in the memory of its home, and the other one of two nodes.
fn mapped_to_one_of_two(front_end: &mut FrontEnd, target: u64) -> (NodeId, NodeId) {
    let home = front_end.serve(target).node.expect("two nodes serve");
    (home, NodeId(1 - home.0))
}

#[test]
fn lard_h_gives_no_copy_to_a_node_whose_disk_is_busy() {
    let mut front_end = FrontEnd::of(PolicyName::LardH, 2);
    let (home, other) = mapped_to_one_of_two(&mut front_end, 7);
    // New targets: reads, about half of them at each node, and no work for the CPU.
    for number in 0..40 {
        front_end.request(numbered(number));
    }
    for _ in 0..40 {
        assert_eq!(front_end.request(7), Decision::to(home, Why::Mapped));
    }
    while let Some(at) = front_end.active.iter().position(|(_, node)| *node == other) {
        front_end.complete(at);
    }
    assert_eq!(front_end.request(7), Decision::to(other, Why::Replicated { nodes: 2 }));
}

/// T_high is 65. A hundred and thirty requests for one long file wait at its home, which is reading it: its CPU has
/// nothing to do, and yet it takes no more. The next ones go to a second node until that has 65, and then to a third.
#[test]
fn lard_h_lets_no_node_hoard_connections() {
    let mut front_end = FrontEnd::of(PolicyName::LardH, 4);
    let home = front_end.request(7).node;
    for _ in 1..130 {
        assert_eq!(front_end.request(7).node, home);
    }
    let relief = front_end.request(7);
    assert_eq!(relief.why, Why::Replicated { nodes: 2 });
    for _ in 1..65 {
        assert_eq!(front_end.request(7), Decision { why: Why::Mapped, ..relief });
    }
    assert_eq!(front_end.request(7).why, Why::Replicated { nodes: 3 });

    // Nor does it get what is new, though its disk reads but one file.
    for number in 0..100 {
        assert_ne!(front_end.request(numbered(number)).node, home);
    }
}

/// Without an admission limit all nodes may be full: then targets stay where they are.
#[test]
fn lard_h_keeps_targets_in_place_if_all_nodes_are_full() {
    let mut front_end = FrontEnd::of(PolicyName::LardH, 2);
    let (home, _) = mapped_to_one_of_two(&mut front_end, 7);
    front_end.cluster.handle_loads(&[200, 200]);
    assert_eq!(front_end.serve(7), Decision::to(home, Why::Mapped));
    assert!(front_end.serve(numbered(1)).node.is_some(), "and new ones find a home");
}

/// With a short queue of 4 and a long one of 12: three times as long as that of another is too long.
#[test]
fn lard_h_relieves_a_node_far_behind_one_that_is_moderately_busy() {
    for (behind, busy, why) in [
        (12, 3, Why::Mapped),
        (13, 4, Why::Replicated { nodes: 2 }),
        (13, 5, Why::Mapped),
        (60, 20, Why::Mapped),
        (61, 20, Why::Replicated { nodes: 2 }),
    ] {
        let mut front_end = FrontEnd::of(PolicyName::LardH, 2);
        let (home, other) = mapped_to_one_of_two(&mut front_end, 7);
        let mut loads = [0; 2];
        (loads[home.index()], loads[other.index()]) = (behind, busy);
        front_end.cluster.handle_loads(&loads);
        assert_eq!(front_end.serve(7).why, why, "{behind} beside {busy}");
    }
}

/// One target is remembered, and one node beyond the first: each new target needs what the forgotten one had.
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
