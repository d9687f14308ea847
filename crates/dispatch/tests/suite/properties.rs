//! Random events in a cluster, under every policy.

use baton_dispatch::{Admission, Cluster, Decision, NodeId, PolicyName, PolicySettings, Target, Why};
use proptest::prelude::*;
use proptest::sample::select;

use crate::driver::{FrontEnd, SECOND, numbered};

/// The next event. Numbers are taken modulo the existing nodes or connections.
#[derive(Clone, Debug)]
enum Event {
    Request { target: u64, dynamic: bool },
    Complete { connection: usize },
    Join { weight: u32 },
    Drain { node: usize },
    Fail { node: usize },
    Recover { node: usize },
    Wait { seconds: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        // Few targets, so that some are hot.
        30 => (0_u64..40, any::<bool>()).prop_map(|(target, dynamic)| Event::Request {
            target: numbered(target * target / 40),
            dynamic: dynamic && target % 5 == 0,
        }),
        20 => any::<usize>().prop_map(|connection| Event::Complete { connection }),
        1 => (1_u32..400).prop_map(|weight| Event::Join { weight }),
        1 => any::<usize>().prop_map(|node| Event::Drain { node }),
        1 => any::<usize>().prop_map(|node| Event::Fail { node }),
        2 => any::<usize>().prop_map(|node| Event::Recover { node }),
        3 => (0_u64..15).prop_map(|seconds| Event::Wait { seconds }),
    ]
}

/// Small bounds, so that each one is reached.
fn tight(seed: u64) -> PolicySettings {
    PolicySettings {
        t_low: 3,
        t_high: 7,
        quiet_us: 5 * SECOND,
        mappings_max: 12,
        replicas_max: 6,
        node_cache_bytes: 60_000,
        ring_points: 20,
        maglev_slots: 101,
        seed,
        ..PolicySettings::default()
    }
}

fn build(policy: PolicyName, admitted: bool, nodes: usize, seed: u64) -> FrontEnd {
    let settings = tight(seed);
    let mut policy = policy.build(&settings);
    if admitted {
        policy = Box::new(Admission::new(policy, &settings));
    }
    FrontEnd::new(Cluster::of(&vec![100; nodes], 10 * SECOND), policy)
}

fn apply(front_end: &mut FrontEnd, event: &Event) -> Option<Decision> {
    let nodes = front_end.cluster.len();
    let node = |number: &usize| NodeId((number % nodes) as u32);
    match event {
        Event::Request { target, dynamic } => {
            let target = Target { dynamic: *dynamic, ..Target::new(*target) };
            return Some(front_end.request(target));
        }
        Event::Complete { connection } if !front_end.active.is_empty() => {
            front_end.complete(connection % front_end.active.len());
        }
        Event::Complete { .. } => {}
        Event::Join { weight } if nodes < 8 => {
            front_end.join(*weight);
        }
        Event::Join { .. } => {}
        Event::Drain { node: number } => front_end.drain(node(number)),
        Event::Fail { node: number } => front_end.fail(node(number)),
        Event::Recover { node: number } => front_end.recover(node(number)),
        Event::Wait { seconds } => front_end.wait(seconds * SECOND),
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Only serving nodes are chosen; requests wait only at the admission limit, and fail only if no node serves;
    /// nothing is lost; equal histories give equal decisions.
    #[test]
    fn decisions_are_possible_and_repeatable(
        policy in select(PolicyName::ALL.to_vec()),
        admitted in any::<bool>(),
        nodes in 1_usize..6,
        seed in any::<u64>(),
        events in prop::collection::vec(event(), 1..400),
    ) {
        let mut front_end = build(policy, admitted, nodes, seed);
        let mut twin = build(policy, admitted, nodes, seed);
        let limiter = Admission::new(policy.build(&tight(seed)), &tight(seed));
        for event in &events {
            let before = front_end.cluster.total_load();
            let limit = limiter.limit(&front_end.cluster);
            let decision = apply(&mut front_end, event);
            prop_assert_eq!(decision, apply(&mut twin, event));
            match decision {
                Some(Decision { node: Some(node), .. }) => {
                    prop_assert!(front_end.cluster.is_serving(node), "{} does not serve", node);
                    prop_assert!(!admitted || before < limit);
                }
                Some(Decision { node: None, why: Why::AdmissionLimit, .. }) => {
                    prop_assert!(admitted && before >= limit);
                }
                Some(Decision { node: None, why, .. }) => {
                    prop_assert_eq!(why, Why::NoNode);
                    prop_assert!(front_end.cluster.serving().is_empty());
                }
                None => {}
            }
            let under_way: u32 = front_end.cluster.loads().iter().sum();
            prop_assert_eq!(under_way as usize, front_end.active.len());
        }
    }

    /// Section 3.1.4: with the admission limit, no node of a LARD cluster gets beyond twice T_high, as long as targets may
    /// get more nodes.
    #[test]
    fn lard_keeps_the_published_bound(
        policy in select(vec![PolicyName::Lard, PolicyName::LardR, PolicyName::LardH]),
        nodes in 1_usize..6,
        requests in prop::collection::vec((0_u64..6, 0_usize..100), 1..600),
    ) {
        let settings = PolicySettings { replicas_max: 6 * nodes, ..tight(0) };
        let admitted = Admission::new(policy.build(&settings), &settings);
        let mut front_end = FrontEnd::new(Cluster::of(&vec![100; nodes], 0), Box::new(admitted));
        for (target, completes) in requests {
            front_end.request(numbered(target));
            // Loads go up and down: about one in three completes.
            if completes < 33 && !front_end.active.is_empty() {
                front_end.complete(completes % front_end.active.len());
            }
            prop_assert!(front_end.cluster.loads().iter().all(|&load| load <= 2 * 7), "{:?}", front_end.cluster.loads());
        }
    }

    /// Under bounded hashing no load exceeds the bound at the time when it last grew.
    #[test]
    fn bounded_hash_keeps_its_bound(
        nodes in 1_usize..8,
        targets in prop::collection::vec(0_u64..5, 1..300),
    ) {
        let mut front_end = build(PolicyName::BoundedHash, false, nodes, 0);
        for target in targets {
            let Some(node) = front_end.request(numbered(target)).node else { panic!("all nodes serve") };
            let mean = front_end.cluster.total_load() as f64 / nodes as f64;
            prop_assert!(f64::from(front_end.cluster.load(node)) <= (1.25 * mean).ceil());
        }
    }

    /// Policies that only look at loads keep them even for any targets: least connections within one, two choices
    /// within a few.
    #[test]
    fn balance_is_kept_by_those_that_promise_it(
        (policy, spread_max) in select(vec![
            (PolicyName::LeastConnections, 1),
            (PolicyName::Wrr, 2),
            (PolicyName::PowerOfTwo, 8),
        ]),
        nodes in 2_usize..8,
        seed in any::<u64>(),
        requests in 1_u64..400,
    ) {
        let mut front_end = build(policy, false, nodes, seed);
        for number in 0..requests {
            front_end.request(number % 3);
        }
        let loads = front_end.cluster.loads();
        let spread = loads.iter().max().zip(loads.iter().min()).map(|(max, min)| max - min);
        prop_assert!(spread <= Some(spread_max), "{:?}", loads);
    }
}

/// One target takes all requests. LB has one node for it; LARD/R and LARD/H let all nodes serve it.
#[test]
fn a_hot_target_is_spread_by_those_that_replicate() {
    for (policy, nodes_expected) in [(PolicyName::Lb, 1), (PolicyName::LardR, 4), (PolicyName::LardH, 4)] {
        let settings = PolicySettings::default();
        let admitted = Admission::new(policy.build(&settings), &settings);
        let mut front_end = FrontEnd::new(Cluster::of(&[100; 4], 0), Box::new(admitted));
        for _ in 0..4_000 {
            if front_end.request(7).node.is_none() {
                front_end.complete(0);
            }
        }
        let loads = front_end.cluster.loads();
        assert_eq!(loads.iter().filter(|&&load| load > 0).count(), nodes_expected, "{policy}: {loads:?}");
    }
}
