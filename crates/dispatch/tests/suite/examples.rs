//! Each policy that looks at loads, or at nothing, against an example computed by hand.

use baton_dispatch::{Admission, Cluster, Decision, NodeId, PolicyName, PolicySettings, Target, Why};

use crate::driver::{FrontEnd, SECOND, numbered};

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);
const C: NodeId = NodeId(2);

/// Sets the loads of the nodes, as measured elsewhere.
fn with_loads(policy: PolicyName, loads: &[u32]) -> FrontEnd {
    let mut front_end = FrontEnd::of(policy, loads.len());
    front_end.cluster.handle_loads(loads);
    front_end
}

fn nodes_of(front_end: &mut FrontEnd, requests: usize) -> Vec<u32> {
    (0..requests).filter_map(|_| front_end.serve(0).node).map(|node| node.0).collect()
}

#[test]
fn wrr_takes_turns_at_equal_loads() {
    let mut front_end = FrontEnd::of(PolicyName::Wrr, 3);
    assert_eq!(nodes_of(&mut front_end, 7), [0, 1, 2, 0, 1, 2, 0]);
}

/// Weights of 2 : 1 with nothing to do: of three turns two go to the heavy node, one between them to the light one.
#[test]
fn wrr_gives_turns_by_weight() {
    let cluster = Cluster::of(&[200, 100], 0);
    let mut front_end = FrontEnd::new(cluster, PolicyName::Wrr.build(&PolicySettings::default()));
    assert_eq!(nodes_of(&mut front_end, 6), [0, 1, 0, 0, 1, 0]);
}

/// Loads of 1 and 3, with the request itself 2 and 4: twice as many turns for the first.
#[test]
fn wrr_gives_turns_by_open_connections() {
    let mut front_end = with_loads(PolicyName::Wrr, &[1, 3]);
    let nodes = nodes_of(&mut front_end, 300);
    assert_eq!(nodes.iter().filter(|&&node| node == 0).count(), 200);
}

#[test]
fn least_connections_counts_by_weight_and_lets_equals_take_turns() {
    let mut front_end = FrontEnd::of(PolicyName::LeastConnections, 3);
    assert_eq!(nodes_of(&mut front_end, 4), [0, 1, 2, 0]);

    let cluster = Cluster::of(&[100, 300], 0);
    let mut front_end =
        FrontEnd::new(cluster, PolicyName::LeastConnections.build(&PolicySettings::default()));
    // Pressures with one more: 1, 1/3; then 1, 2/3; then 1, 1: the turn of the first; then 2, 1.
    let nodes: Vec<_> = (0..4).filter_map(|_| front_end.request(0).node).collect();
    assert_eq!(nodes, [B, B, A, B]);
}

/// Of two nodes both are drawn, always: the lighter one gets everything until they are equal.
#[test]
fn power_of_two_takes_the_lighter_of_two_different_nodes() {
    let mut front_end = with_loads(PolicyName::PowerOfTwo, &[5, 0]);
    for _ in 0..5 {
        assert_eq!(front_end.request(0), Decision::to(B, Why::Lighter));
    }
}

/// Of three nodes, the heaviest one is never the lighter of two; the others get about the same.
#[test]
fn power_of_two_never_takes_the_heaviest() {
    let mut front_end = with_loads(PolicyName::PowerOfTwo, &[1, 0, 0]);
    let nodes = nodes_of(&mut front_end, 300);
    assert!(!nodes.contains(&0));
    let second = nodes.iter().filter(|&&node| node == 1).count();
    assert!((100..200).contains(&second), "{second} of 300");
}

/// Figure 3.2, line by line, with T_low 25 and T_high 65.
#[test]
fn lard_moves_a_target_only_under_imbalance() {
    let mut front_end = with_loads(PolicyName::Lard, &[3, 2, 9]);
    assert_eq!(front_end.serve(7), Decision::to(B, Why::FirstAssignment));

    for (loads, expected) in [
        // Loaded, but no node idles: no move up to twice T_high.
        ([25, 65, 25], Decision::to(B, Why::Mapped)),
        ([25, 66, 25], Decision::to(B, Why::Mapped)),
        ([25, 129, 25], Decision::to(B, Why::Mapped)),
        // At T_high, while another idles: not above it yet.
        ([24, 65, 30], Decision::to(B, Why::Mapped)),
        // Above T_high, while another is below T_low.
        ([24, 66, 30], Decision::to(A, Why::Moved { from: B })),
        // It stays where it is, though its first node is free again.
        ([24, 0, 30], Decision::to(A, Why::Mapped)),
        // At twice T_high it moves, though no node is below T_low.
        ([130, 60, 50], Decision::to(C, Why::Moved { from: A })),
    ] {
        front_end.cluster.handle_loads(&loads);
        assert_eq!(front_end.serve(7), expected, "{loads:?}");
    }
}

/// Figure 3.3: a recently changed set grows, a quiet one shrinks, and imbalance on a quiet one moves the target.
#[test]
fn lard_r_replicates_shrinks_and_moves() {
    let mut front_end = with_loads(PolicyName::LardR, &[0, 10, 10]);
    assert_eq!(front_end.serve(7), Decision::to(A, Why::FirstAssignment));

    front_end.cluster.handle_loads(&[66, 10, 20]);
    assert_eq!(front_end.serve(7), Decision::to(B, Why::Replicated { nodes: 2 }));
    // From now on the lighter one of both serves.
    front_end.cluster.handle_loads(&[11, 12, 0]);
    assert_eq!(front_end.serve(7), Decision::to(A, Why::Mapped));
    front_end.cluster.handle_loads(&[12, 11, 0]);
    assert_eq!(front_end.serve(7), Decision::to(B, Why::Mapped));

    // After K, 20 s, the more loaded one is removed.
    front_end.wait(20 * SECOND);
    assert_eq!(front_end.serve(7).why, Why::Mapped);
    front_end.wait(1);
    assert_eq!(front_end.serve(7), Decision::to(B, Why::Shrunk { dropped: A }));
    front_end.cluster.handle_loads(&[0, 12, 0]);
    assert_eq!(front_end.serve(7), Decision::to(B, Why::Mapped));

    // Imbalance on a set that has been quiet: one is added and the other removed in one step.
    front_end.wait(20 * SECOND + 1);
    front_end.cluster.handle_loads(&[30, 66, 20]);
    assert_eq!(front_end.serve(7), Decision::to(C, Why::Moved { from: B }));
    // The move was a change: imbalance on it now replicates.
    front_end.cluster.handle_loads(&[20, 30, 66]);
    assert_eq!(front_end.serve(7), Decision::to(A, Why::Replicated { nodes: 2 }));
}

/// S = (n - 1) * T_high + T_low - 1.
#[test]
fn admission_ends_at_the_published_limit() {
    let settings = PolicySettings::default();
    for (nodes, limit) in [(1, 24), (2, 89), (4, 219), (6, 349), (8, 479), (10, 609), (16, 999)] {
        let admission = Admission::new(PolicyName::Wrr.build(&settings), &settings);
        assert_eq!(admission.limit(&Cluster::of(&vec![100; nodes], 0)), limit);
    }
    // Half nodes take half as much; of unequal ones the heaviest is left at T_low: 65 + 2 * 25 - 1.
    let admission = Admission::new(PolicyName::Wrr.build(&settings), &settings);
    assert_eq!(admission.limit(&Cluster::of(&[50, 50], 0)), 44);
    assert_eq!(admission.limit(&Cluster::of(&[100, 200], 0)), 114);
    assert_eq!(admission.limit(&Cluster::new(0)), 0);
}

#[test]
fn at_the_admission_limit_requests_wait_until_one_completes() {
    let settings = PolicySettings::default();
    let policy = Admission::new(PolicyName::Lard.build(&settings), &settings);
    let mut front_end = FrontEnd::new(Cluster::of(&[100, 100], 0), Box::new(policy));
    for number in 0..89 {
        assert!(front_end.request(numbered(number)).node.is_some());
    }
    assert_eq!(front_end.request(1), Decision::wait());
    front_end.complete(0);
    assert!(front_end.request(1).node.is_some());
    assert_eq!(front_end.request(1), Decision::wait());
}

#[test]
fn names_are_read_as_people_write_them() {
    for name in PolicyName::ALL {
        assert_eq!(name.to_string().parse(), Ok(name));
    }
    assert_eq!("LARD/R".parse(), Ok(PolicyName::LardR));
    assert_eq!("Least Connections".parse(), Ok(PolicyName::LeastConnections));
    let error = "lord".parse::<PolicyName>().unwrap_err().to_string();
    assert!(error.contains("`lord`") && error.contains("wrr, lb, lb-gc"), "{error}");
}

#[test]
fn no_policy_finds_a_node_where_none_serves() {
    for name in PolicyName::ALL {
        let mut front_end = FrontEnd::of(name, 1);
        assert_eq!(front_end.serve(1).node, Some(A), "{name}");
        front_end.fail(A);
        assert_eq!(front_end.request(1), Decision::no_node(), "{name}");
        assert_eq!(
            front_end.request(Target { dynamic: true, ..Target::new(1) }),
            Decision::no_node(),
            "{name}"
        );
        let mut nobody_ever = FrontEnd::of(name, 0);
        assert_eq!(nobody_ever.request(1), Decision::no_node(), "{name}");
    }
}
