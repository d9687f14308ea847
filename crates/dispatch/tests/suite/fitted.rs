//! Thresholds that fit nodes of several kinds, which answer in a model: so many requests at once, each in the same time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use baton_dispatch::{
    Cluster, Fit, Fits, NodeId, Policy, PolicyName, PolicySettings, Target, Time, admission_limit,
};
use proptest::prelude::*;

/// A front-end and its nodes.
struct World {
    cluster: Cluster,
    policy: Box<dyn Policy + Send>,
    /// When each of a node's places is free.
    places: Vec<VecDeque<Time>>,
    service_us: Time,
    ends: BinaryHeap<Reverse<(Time, NodeId)>>,
    now: Time,
    begun: u64,
    under_way_max: u64,
}

impl World {
    fn new(nodes: usize, at_once: usize, service_us: Time, settings: &PolicySettings) -> Self {
        let cluster = Cluster::of(&vec![100; nodes], 0);
        let mut policy = PolicyName::LardH.build_bounded(settings);
        policy.handle_membership(&cluster, 0);
        let places = vec![VecDeque::from(vec![0; at_once]); nodes];
        let ends = BinaryHeap::new();
        Self { cluster, policy, places, service_us, ends, now: 0, begun: 0, under_way_max: 0 }
    }

    /// Lets as many requests in as the policy does, but no more than `clients` at a time.
    fn admit(&mut self, clients: u64) {
        while self.cluster.total_load() < clients {
            let target = Target::new((self.begun % 1_000).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let Some(node) = self.policy.choose(target, &self.cluster, self.now).node else { break };
            self.cluster.begin(node);
            self.begun += 1;
            let places = &mut self.places[node.index()];
            let free = places.pop_front().unwrap_or(self.now).max(self.now);
            places.push_back(free + self.service_us);
            self.ends.push(Reverse((free + self.service_us, node)));
        }
        self.under_way_max = self.under_way_max.max(self.cluster.total_load());
    }

    fn serve(&mut self, requests: u64, clients: u64) -> Fit {
        let until = self.begun + requests;
        while self.begun < until {
            self.admit(clients);
            let Some(Reverse((at, node))) = self.ends.pop() else { break };
            self.now = at;
            self.cluster.end(node);
        }
        self.policy.fit().expect("a bounded policy has thresholds")
    }
}

fn settings(delay_us: u64) -> PolicySettings {
    PolicySettings { fits: Some(Fits { t_low: None, delay_us }), ..PolicySettings::default() }
}

const ALL: u64 = u64::MAX;
const HALF_A_SECOND: u64 = 500_000;

/// Nodes that have 400 disk reads under way at once, as volumes over a network do: with the published thresholds, most of that
/// is never used.
#[test]
fn nodes_that_take_hundreds_get_hundreds() {
    let mut world = World::new(4, 400, 20_000, &settings(HALF_A_SECOND));
    let fit = world.serve(2_000_000, ALL);
    assert!((300.0..1_300.0).contains(&fit.thresholds.t_high), "{fit:?}");
    let seen = fit.seen.expect("requests waited");
    assert!((15_000.0..21_000.0).contains(&seen.answers_per_s), "400 in 20 ms: {seen:?}");
}

/// A queue at a node with two processes brings no answers, only delay.
#[test]
fn nodes_that_take_few_get_few() {
    let mut world = World::new(4, 2, 200, &settings(HALF_A_SECOND));
    let fit = world.serve(400_000, ALL);
    assert!((20.0..22.0).contains(&fit.thresholds.t_high), "{fit:?}");
    assert!(fit.seen.expect("requests waited").elasticity < 0.05, "{fit:?}");
}

/// T_high is at most (T_low + D / R) / 2: nodes would take more, but answer 100 a second each, and 0.5 s is what is tolerated.
#[test]
fn slow_nodes_are_bounded_by_the_delay_that_is_tolerated() {
    let mut world = World::new(4, 400, 4_000_000, &settings(HALF_A_SECOND));
    let fit = world.serve(60_000, ALL);
    let (seen, t_high) = (fit.seen.expect("requests waited"), fit.thresholds.t_high);
    let source = (fit.thresholds.t_low + 0.5 * seen.answers_per_s) / 2.0;
    assert!((t_high - source.max(20.8)).abs() < 0.5, "{fit:?}, {source}");
}

/// Where no request waits, load follows the clients, and says nothing of the nodes.
#[test]
fn without_waiting_requests_nothing_is_learnt() {
    let settings = settings(HALF_A_SECOND);
    let mut world = World::new(4, 400, 20_000, &settings);
    let fit = world.serve(300_000, 40);
    assert_eq!(fit, Fit { thresholds: settings.thresholds(), seen: None });
    // Nor is what was seen before a node failed compared with what was seen after.
    for round in 0..200 {
        let node = NodeId(round % 4);
        world.cluster.set_weight(node, 101 + round);
        world.policy.handle_membership(&world.cluster, world.now);
        assert_eq!(world.serve(600, ALL).seen, None);
    }
}

#[test]
fn a_threshold_that_is_set_stays() {
    let fits = Some(Fits { t_low: Some(10), delay_us: HALF_A_SECOND });
    let mut world = World::new(4, 400, 20_000, &PolicySettings { fits, ..PolicySettings::default() });
    let fit = world.serve(1_000_000, ALL);
    assert!(fit.thresholds.t_low == 10.0 && fit.thresholds.t_high > 100.0, "{fit:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever nodes are like: T_low is below T_high, both have their bounds, and what is under way obeys the limit of a
    /// quarter's thresholds.
    #[test]
    fn the_limit_breathes_within_bounds(
        nodes in 1..6_usize,
        at_once in 1..300_usize,
        service_us in 1..50_000_u64,
        delay_ms in 1..2_000_u64,
    ) {
        let mut world = World::new(nodes, at_once, service_us, &settings(delay_ms * 1_000));
        let mut highest = 65.0_f32;
        for _ in 0..20 {
            let both = world.serve(4_000, ALL).thresholds;
            prop_assert!(both.t_low < both.t_high && both.t_low >= 7.9, "{both:?}");
            highest = highest.max(both.t_high);
            let most = baton_dispatch::Thresholds { t_low: highest * 1.5, t_high: highest * 1.5 };
            prop_assert!(world.under_way_max <= admission_limit(most, &world.cluster) + 1);
        }
    }
}
