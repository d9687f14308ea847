//! Measures a decision of each policy: `cargo run --release -p baton-dispatch --example bench_policies [NODES]`.
//!
//! Maps a million targets, the bound of the table, and requests them at random: the worst case for the CPU's caches.
//! Connections begin and end as in a front-end, at loads near the admission limit. Prints the best of many rounds,
//! which has the least noise.

use std::time::Instant;

use baton_dispatch::{Admission, Cluster, Policy, PolicyName, PolicySettings, Target, target_hash};

const TARGETS: u64 = 1_000_000;
const ROUNDS: u64 = 40;
const ROUND_DECISIONS: u64 = 50_000;

fn main() {
    let nodes: usize = std::env::args().nth(1).map_or(100, |nodes| nodes.parse().expect("a number of nodes"));
    let targets: Vec<u64> = (0..TARGETS).map(|number| target_hash(&number.to_le_bytes())).collect();
    println!(
        "{nodes} nodes, {TARGETS} targets: nanoseconds for a decision, with its begin, end and completion"
    );
    for name in PolicyName::ALL {
        let mut front_end = FrontEnd::new(name, nodes);
        for &hash in &targets {
            front_end.request(hash);
        }
        let mut at = 0;
        let mut round = || {
            let started = Instant::now();
            for _ in 0..ROUND_DECISIONS {
                // A step that shares no factor with the number of targets visits all, in no order that helps.
                at = (at + 618_033) % TARGETS;
                front_end.request(targets[at as usize]);
            }
            started.elapsed().as_nanos() as u64 / ROUND_DECISIONS
        };
        let best = (0..ROUNDS).map(|_| round()).min().unwrap_or_default();
        println!("{name:20} {best:6}");
    }
}

/// A front-end whose oldest connection ends when the cluster has about as many as it may have.
struct FrontEnd {
    cluster: Cluster,
    policy: Admission,
    active: std::collections::VecDeque<(Target, baton_dispatch::NodeId)>,
    active_max: usize,
    now: u64,
}

impl FrontEnd {
    fn new(name: PolicyName, nodes: usize) -> Self {
        // Memory enough for LB/GC to map all targets, too.
        let node_cache_bytes = (20_000 * TARGETS).div_ceil(nodes as u64);
        let settings =
            PolicySettings { mappings_max: TARGETS as usize, node_cache_bytes, ..PolicySettings::default() };
        let cluster = Cluster::of(&vec![100; nodes], 0);
        let mut policy = Admission::new(name.build(&settings), &settings);
        policy.handle_membership(&cluster, 0);
        let active_max = policy.limit(&cluster) as usize - 1;
        Self { cluster, policy, active: std::collections::VecDeque::new(), active_max, now: 0 }
    }

    fn request(&mut self, hash: u64) {
        self.now += 100;
        let target = Target { hash, bytes_hint: Some(hash % 20_000), dynamic: false };
        if let Some(node) = self.policy.choose(target, &self.cluster, self.now).node {
            self.cluster.begin(node);
            self.active.push_back((target, node));
        }
        while self.active.len() > self.active_max {
            let Some((target, node)) = self.active.pop_front() else { return };
            self.cluster.end(node);
            self.policy.completed(target, node, 10_000, 5_000, self.now);
        }
    }
}
