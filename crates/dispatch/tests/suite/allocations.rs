//! In the steady state a decision allocates nothing: tables are full, targets come and go, connections begin and end.

use allocation_counter::measure;
use baton_dispatch::{Admission, Cluster, Policy, PolicyName, PolicySettings, Target};

use crate::driver::numbered;

#[test]
fn no_policy_allocates_for_a_decision() {
    const CONNECTIONS: usize = 300;
    let settings = PolicySettings { mappings_max: 1_000, replicas_max: 100, ..PolicySettings::default() };
    for name in PolicyName::ALL {
        let mut cluster = Cluster::of(&[100; 8], 0);
        let mut policy = Admission::new(name.build(&settings), &settings);
        policy.handle_membership(&cluster, 0);
        let mut active: Vec<_> = Vec::with_capacity(CONNECTIONS + 1);
        let mut decide = |numbers: std::ops::Range<u64>| {
            for number in numbers {
                // Every third request is for a hot target, the others for three times as many as are remembered.
                let target = Target::new(if number % 3 == 0 { 1 } else { numbered(number % 3_000) });
                if let Some(node) = policy.choose(target, &cluster, number * 1_000).node {
                    cluster.begin(node);
                    active.push((target, node));
                }
                if active.len() > CONNECTIONS {
                    let (target, node) = active.swap_remove(number as usize % CONNECTIONS);
                    cluster.end(node);
                    policy.completed(target, node, 5_000, 2_000, number * 1_000);
                }
            }
        };
        // Until all tables are full, and what grows by doubling has grown.
        decide(0..30_000);
        let counted = measure(|| decide(30_000..60_000));
        assert_eq!(counted.count_total, 0, "{name}");
    }
}
