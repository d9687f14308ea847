//! The hashes and LB/GC against examples computed by hand, or from what each of them promises.

use baton_dispatch::{CacheOrder, Cluster, Decision, NodeId, PolicyName, PolicySettings, Target, Why};

use crate::driver::{FrontEnd, numbered};

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);

/// The node of each target in an idle cluster.
fn placement(front_end: &mut FrontEnd, targets: u64) -> Vec<NodeId> {
    (0..targets).filter_map(|number| front_end.serve(numbered(number)).node).collect()
}

fn share_of(node: NodeId, placement: &[NodeId]) -> f64 {
    placement.iter().filter(|&&chosen| chosen == node).count() as f64 / placement.len() as f64
}

/// A target whose size the front-end knows.
fn sized(hash: u64, bytes: u64) -> Target {
    Target { bytes_hint: Some(bytes), ..Target::new(hash) }
}

#[test]
fn lb_is_the_hash_modulo_the_number_of_nodes() {
    let mut front_end = FrontEnd::of(PolicyName::Lb, 3);
    for hash in [0, 1, 2, 3, 4, 5, 299, u64::MAX] {
        let node = NodeId((hash % 3) as u32);
        assert_eq!(front_end.request(hash), Decision::to(node, Why::Hashed), "whatever the loads");
    }
    // Weights of 200 and 100 are parts of two and one.
    let weighted = Cluster::of(&[200, 100], 0);
    let mut front_end = FrontEnd::new(weighted, PolicyName::Lb.build(&PolicySettings::default()));
    let nodes: Vec<_> = (0..6).filter_map(|hash| front_end.request(hash).node).collect();
    assert_eq!(nodes, [A, A, B, A, A, B]);
}

/// Every hash gives each node about its part, and only its own targets move when a node fails; for LB nearly all do.
#[test]
fn hashes_are_even_and_all_but_lb_move_only_what_they_must() {
    const TARGETS: u64 = 4_000;
    for (name, tolerance) in [
        (PolicyName::Lb, 0.02),
        (PolicyName::ConsistentHash, 0.06),
        (PolicyName::BoundedHash, 0.06),
        (PolicyName::Maglev, 0.02),
        (PolicyName::LardH, 0.02),
    ] {
        let mut front_end = FrontEnd::of(name, 5);
        let before = placement(&mut front_end, TARGETS);
        for node in (0..5).map(NodeId) {
            let share = share_of(node, &before);
            assert!((share - 0.2).abs() < tolerance, "{name}: {share} at {node}");
        }
        front_end.fail(B);
        let after = placement(&mut front_end, TARGETS);
        let moved =
            before.iter().zip(&after).filter(|(before, after)| **before != B && before != after).count();
        let moved_share = moved as f64 / TARGETS as f64;
        match name {
            PolicyName::Lb => assert!(moved_share > 0.5, "{name}: {moved_share}"),
            // The table of Maglev is filled in turns: a small part of it changes hands (section 5.3 of its source).
            PolicyName::Maglev => assert!(moved_share < 0.05, "{name}: {moved_share}"),
            _ => assert_eq!(moved, 0, "{name}"),
        }
    }
}

#[test]
fn hashes_place_by_weight() {
    for name in [PolicyName::Lb, PolicyName::ConsistentHash, PolicyName::Maglev, PolicyName::LardH] {
        let cluster = Cluster::of(&[100, 300], 0);
        let mut front_end = FrontEnd::new(cluster, name.build(&PolicySettings::default()));
        let share = share_of(B, &placement(&mut front_end, 4_000));
        assert!((share - 0.75).abs() < 0.05, "{name}: {share}");
    }
}

/// At a bound of 125 % and four nodes, the load of a node is at most the mean times 1.25, rounded up.
#[test]
fn bounded_hash_passes_over_a_node_at_its_bound() {
    let mut front_end = FrontEnd::of(PolicyName::BoundedHash, 4);
    let Decision { node: Some(home), why: Why::Hashed, .. } = front_end.serve(7) else {
        panic!("at rest, the home")
    };
    // With this request there are 21 connections: at most 7 (6.56 rounded up) for a node.
    let mut loads = [5; 4];
    loads[home.index()] = 6;
    loads[(home.index() + 1) % 4] = 4;
    front_end.cluster.handle_loads(&loads);
    assert_eq!(front_end.serve(7), Decision::to(home, Why::Hashed));
    loads[home.index()] = 7;
    loads[(home.index() + 1) % 4] = 3;
    front_end.cluster.handle_loads(&loads);
    let decision = front_end.serve(7);
    assert_eq!(decision.why, Why::Overflow { from: home });
    assert_ne!(decision.node, Some(home));
    // While nothing changes, the overflow goes to the same node: the next one of the ring.
    assert_eq!(front_end.serve(7).node, decision.node);
}

/// Two nodes of 100 bytes. The least recently used is evicted first.
#[test]
fn lb_gc_mirrors_the_caches() {
    let settings = PolicySettings {
        node_cache_bytes: 100,
        node_cache_order: CacheOrder::Lru,
        ..PolicySettings::default()
    };
    let mut front_end = FrontEnd::new(Cluster::of(&[100, 100], 0), PolicyName::LbGc.build(&settings));
    for (target, node, why) in [
        // The most room: A, then B, then A (40 left against 30).
        (sized(1, 60), A, Why::OldestCache),
        (sized(2, 70), B, Why::OldestCache),
        (sized(3, 40), A, Why::OldestCache),
        (sized(1, 60), A, Why::Cached),
        // No room for 50 anywhere. The oldest target, 2 at B, is evicted.
        (sized(4, 50), B, Why::OldestCache),
        // Without 2, 3 at A is the oldest; it is evicted, and 1 with it to make room for 70.
        (sized(2, 70), A, Why::OldestCache),
        (sized(4, 50), B, Why::Cached),
        (sized(3, 40), B, Why::OldestCache),
        // Larger than any cache: served by the node that would have room, and not remembered.
        (sized(9, 101), A, Why::OldestCache),
        (sized(2, 70), A, Why::Cached),
    ] {
        assert_eq!(front_end.serve(target), Decision::to(node, why), "{target:?}");
    }
    front_end.fail(A);
    assert_eq!(front_end.serve(sized(2, 70)), Decision::to(B, Why::OldestCache), "it was lost with the node");
}

/// Under Greedy-Dual-Size a large target is older than a small one that came before it.
#[test]
fn lb_gc_can_follow_greedy_dual_size() {
    let settings = PolicySettings { node_cache_bytes: 100, ..PolicySettings::default() };
    let mut front_end = FrontEnd::new(Cluster::of(&[100], 0), PolicyName::LbGc.build(&settings));
    let sized = |hash, bytes| Target { bytes_hint: Some(bytes), ..Target::new(hash) };
    front_end.serve(sized(1, 10));
    front_end.serve(sized(2, 80));
    front_end.serve(sized(3, 50));
    assert_eq!(front_end.serve(sized(1, 10)).why, Why::Cached);
    assert_eq!(front_end.serve(sized(2, 80)).why, Why::OldestCache);
}
