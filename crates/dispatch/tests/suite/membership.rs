//! Weights, joins, drains, failures and slow start hold under every policy.

use baton_dispatch::{Cluster, NodeId, NodeState, PolicyName, PolicySettings};

use crate::driver::{FrontEnd, SECOND, numbered};

/// Which part of the requests for many targets a node gets, a few of them being active at any time.
fn share(front_end: &mut FrontEnd, node: NodeId, targets: std::ops::Range<u64>) -> f64 {
    let (mut chosen, mut all) = (0, 0);
    for number in targets {
        let decision = front_end.request(numbered(number));
        all += 1;
        chosen += u32::from(decision.node == Some(node));
        if front_end.active.len() > 40 {
            front_end.complete((number % 40) as usize);
        }
    }
    front_end.complete_all();
    f64::from(chosen) / f64::from(all)
}

/// Sooner or later a node that joins has its part; at first, under every policy, clearly less than that.
#[test]
fn a_node_that_joins_starts_slowly() {
    for name in PolicyName::ALL {
        let mut front_end = FrontEnd::of(name, 3);
        share(&mut front_end, NodeId(0), 0..500);
        let newcomer = front_end.join(100);
        assert_eq!(front_end.cluster.state(newcomer), NodeState::SlowStart { since: front_end.now });
        let at_first = share(&mut front_end, newcomer, 1_000..1_600);
        front_end.wait(5 * SECOND);
        let half_way = share(&mut front_end, newcomer, 2_000..2_600);
        front_end.wait(5 * SECOND);
        assert_eq!(front_end.cluster.state(newcomer), NodeState::Active);
        let at_last = share(&mut front_end, newcomer, 3_000..3_600);
        // The mirror of LB/GC knows that the newcomer's memory is empty, and fills it for any weight.
        if name != PolicyName::LbGc {
            assert!(at_first < 0.12, "{name}: {at_first} at first");
            assert!(at_first < half_way && half_way < 0.24, "{name}: {half_way} half way");
            assert!((0.18..0.32).contains(&at_last), "{name}: {at_last} at last");
        }
    }
}

#[test]
fn a_draining_node_gets_nothing_new_and_its_targets_go_elsewhere() {
    for name in PolicyName::ALL {
        let mut front_end = FrontEnd::of(name, 3);
        let before = share(&mut front_end, NodeId(1), 0..300);
        assert!(before > 0.2, "{name}: {before}");
        front_end.drain(NodeId(1));
        assert_eq!(front_end.cluster.state(NodeId(1)), NodeState::Draining);
        assert_eq!(share(&mut front_end, NodeId(1), 0..300), 0.0, "{name}");
        front_end.recover(NodeId(1));
        front_end.wait(10 * SECOND);
        let after = share(&mut front_end, NodeId(1), 1_000..1_300);
        assert!(after > 0.2, "{name}: {after} after it recovered");
    }
}

/// A node of twice the weight gets about twice as much under every policy.
#[test]
fn weights_are_kept() {
    for name in PolicyName::ALL {
        let cluster = Cluster::of(&[100, 100, 200], 0);
        // The memory of LB/GC is large enough to go by the room that is left.
        let mut front_end = FrontEnd::new(cluster, name.build(&PolicySettings::default()));
        let share = share(&mut front_end, NodeId(2), 0..2_000);
        assert!((0.42..0.58).contains(&share), "{name}: {share}");
    }
}

/// The cluster's counts are exact, also when a node fails with connections.
#[test]
fn loads_are_those_of_serving_nodes() {
    let mut front_end = FrontEnd::of(PolicyName::Wrr, 3);
    for number in 0..9 {
        front_end.request(number);
    }
    assert_eq!((front_end.cluster.loads(), front_end.cluster.total_load()), (&[3, 3, 3][..], 9));
    front_end.drain(NodeId(0));
    assert_eq!(front_end.cluster.total_load(), 6, "connections of a draining node do not count");
    // An idle connection of the draining node gets active, and idle again.
    front_end.cluster.begin(NodeId(0));
    assert_eq!((front_end.cluster.load(NodeId(0)), front_end.cluster.total_load()), (4, 6));
    front_end.cluster.end(NodeId(0));
    front_end.fail(NodeId(1));
    assert_eq!((front_end.cluster.loads(), front_end.cluster.total_load()), (&[3, 0, 3][..], 3));
    front_end.complete_all();
    assert_eq!((front_end.cluster.loads(), front_end.cluster.total_load()), (&[0, 0, 0][..], 0));
}

/// The steps of a slow start are announced; at each of them the node takes more.
#[test]
fn slow_start_goes_on_when_it_said_it_would() {
    let mut cluster = Cluster::of(&[100], 16 * SECOND);
    assert_eq!(cluster.poll_timeout(), None);
    let node = cluster.join(200, 100 * SECOND);
    let (mut capacity, mut steps) = (cluster.capacity(node), 0);
    assert!(capacity > 0.0 && capacity <= 0.1 + f32::EPSILON, "{capacity}");
    while let Some(timeout) = cluster.poll_timeout() {
        assert_eq!(timeout, (101 + steps) * SECOND);
        cluster.handle_timeout(timeout - 1);
        assert_eq!(cluster.capacity(node), capacity, "not before its time");
        cluster.handle_timeout(timeout);
        assert!(cluster.capacity(node) > capacity);
        capacity = cluster.capacity(node);
        steps += 1;
    }
    assert_eq!((cluster.capacity(node), steps), (2.0, 16));
}
