//! Goal: the simulator's figures have the shapes of the LARD study's. Method: the study's claims on a site and nodes
//! a sixteenth as large, within bounds so wide that no seed matters. `baton sim run all` compares the figures
//! themselves.

use baton_dispatch::PolicyName::{self, BoundedHash, Lard, LardH, LardR, Lb, LbGc, Wrr, WrrGms};
use baton_sim::model::{
    Change, FrontEnds, NodeChange, NodeProfile, Outcome, Replacement, Scenario, Sharing, simulate,
};
use baton_sim::trace::{HotTargets, Trace, Zipf, with_hot_targets};

/// 48 MB of files; eight to ten nodes hold most of the requested ones.
fn site() -> Trace {
    Zipf { targets: 3000, alpha: 0.9, kb: 16.0, requests: 40_000 }.trace(1)
}

fn nodes(policy: PolicyName, count: usize) -> Scenario {
    let mut scenario = Scenario::published(policy, count);
    scenario.profile.cache_bytes = 2 << 20;
    scenario.measured_from = 0.3;
    scenario
}

fn run(scenario: &Scenario, trace: &Trace) -> Outcome {
    simulate(scenario, trace, &mut |_| ())
}

/// Throughput of policies with eight nodes, in their order.
fn throughputs<const N: usize>(policies: [PolicyName; N], trace: &Trace) -> [f64; N] {
    policies.map(|policy| run(&nodes(policy, 8), trace).throughput)
}

/// Figure 3.7: LARD/R far above WRR, shared memory between them, and the more nodes, the more each of them does.
#[test]
fn throughput_by_policy_and_by_nodes() {
    let site = site();
    let [lard_r, lard, gms, lb, lb_gc, wrr] = throughputs([LardR, Lard, WrrGms, Lb, LbGc, Wrr], &site);
    assert!(lard_r > 2.0 * wrr && lard > 2.0 * wrr, "{lard_r}, {lard} for {wrr}");
    assert!((0.9..1.15).contains(&(lard_r / lard)), "{lard_r} for {lard}");
    assert!(gms > 1.2 * wrr && gms < 0.9 * lard_r, "{gms} between {wrr} and {lard_r}");
    assert!(lb > wrr && lb_gc > wrr && lb < 1.05 * lard_r && lb_gc < 1.05 * lard_r);

    let one = run(&nodes(LardR, 1), &site).throughput;
    assert!(lard_r > 1.3 * 8.0 * one, "super-linear: {lard_r} for {one}");
    let one = run(&nodes(Wrr, 1), &site).throughput;
    assert!(wrr < 1.15 * 8.0 * one, "linear: {wrr} for {one}");
}

/// Figure 3.8: WRR misses as much with any number of nodes, all others less with more of them.
#[test]
fn misses_by_nodes() {
    let site = site();
    let misses = |policy, count| run(&nodes(policy, count), &site).miss_ratio;
    assert!((0.85..1.15).contains(&(misses(Wrr, 8) / misses(Wrr, 2))));
    for policy in [Lard, LardR, Lb, LbGc] {
        assert!(misses(policy, 8) < 0.6 * misses(policy, 2), "{policy}");
    }
}

/// Figure 3.9: WRR keeps all nodes busy, LARD/R nearly so (less on a small site, where one file is much of a node's
/// work), hashing does not, and less so with more nodes.
#[test]
fn idle_time_by_nodes() {
    let site = site();
    let idle = |policy, count| run(&nodes(policy, count), &site).idle;
    let [wrr, lard_r, lb] = [Wrr, LardR, Lb].map(|policy| idle(policy, 16));
    assert!(wrr < 0.1 && lard_r < 0.35, "{wrr} and {lard_r}");
    assert!(lb > idle(Lb, 4) && lb > 2.0 * lard_r, "{lb} beside {lard_r}");
}

/// Section 3.3.2, the chess match: where each node holds all, WRR is as good as any.
#[test]
fn a_small_site_needs_no_locality() {
    let small = Zipf { targets: 60, alpha: 0.9, kb: 16.0, requests: 20_000 }.trace(1);
    let [lard, lard_r, lard_h, wrr] = throughputs([Lard, LardR, LardH, Wrr], &small);
    for ours in [lard, lard_r, lard_h] {
        assert!((0.93..1.1).contains(&(ours / wrr)), "{ours} for {wrr}");
    }
}

/// Figures 3.11 to 3.14: faster processors help LARD/R and not WRR; more disks help WRR, and LARD/R less.
#[test]
fn processors_help_lard_and_disks_help_wrr() {
    let site = site();
    let gain = |policy, change: fn(&mut NodeProfile)| {
        let mut changed = nodes(policy, 12);
        change(&mut changed.profile);
        run(&changed, &site).throughput / run(&nodes(policy, 12), &site).throughput
    };
    let faster: fn(&mut NodeProfile) = |profile| profile.cpu_speed = 2.0;
    assert!(gain(LardR, faster) > gain(Wrr, faster) + 0.05 && gain(Wrr, faster) < 1.05);
    let more_disks: fn(&mut NodeProfile) = |profile| profile.disks = 3;
    assert!(gain(Wrr, more_disks) > 2.0 && gain(LardR, more_disks) < 0.8 * gain(Wrr, more_disks));
}

/// Section 3.2.1: LRU instead of GDS costs something and changes no order. Section 3.3.4: LARD/R halves delay at least.
#[test]
fn replacement_and_delay() {
    let site = site();
    let lru = |policy| {
        let mut scenario = nodes(policy, 8);
        scenario.profile.replacement = Replacement::Lru;
        run(&scenario, &site).throughput
    };
    let gds = run(&nodes(LardR, 8), &site);
    assert!((0.4..1.0).contains(&(lru(LardR) / gds.throughput)));
    assert!(lru(LardR) > 2.0 * lru(Wrr));
    assert!(gds.delay.mean_ms < 0.5 * run(&nodes(Wrr, 8), &site).delay.mean_ms);
}

/// Our own claims: LARD/H is about as good as LARD/R with one front-end (on a small site a hash places files less evenly
/// than loads do), and much better with several that share nothing; and better than bounded hashing.
#[test]
fn homes_are_worth_having() {
    let site = site();
    let hot = with_hot_targets(&site, HotTargets { count: 4, share: 0.45, bytes: 40 << 10 }, 1);
    let [ours, lard_r, bounded] = throughputs([LardH, LardR, BoundedHash], &site);
    assert!(ours > 0.85 * lard_r && ours > 1.2 * bounded, "{ours} for {lard_r} and {bounded}");
    let [ours, lard_r, bounded] = throughputs([LardH, LardR, BoundedHash], &hot);
    assert!(ours > 0.95 * lard_r && ours > 1.2 * bounded, "hot: {ours} for {lard_r} and {bounded}");

    let four = |policy| {
        let scenario = Scenario {
            front_ends: FrontEnds { count: 4, sharing: Sharing::Nothing, cost_us: 0.0, way: None },
            ..nodes(policy, 8)
        };
        run(&scenario, &site).throughput
    };
    assert!(four(LardH) > 1.5 * four(LardR) && four(LardH) > 1.2 * four(BoundedHash));

    let through_a_failure = |policy| {
        let changes = [(0.4, NodeChange::Fail(0)), (0.7, NodeChange::Recover(0))];
        let changes = changes.map(|(at, what)| Change { at, what }).to_vec();
        run(&Scenario { changes, ..nodes(policy, 8) }, &site).throughput
    };
    assert!(through_a_failure(LardH) > 0.85 * through_a_failure(LardR));
}

/// A hot target outruns the reading of its copies in a large cluster, and a long file the reading of everything else:
/// no node may gather the connections that all others need.
#[test]
fn no_node_keeps_the_others_idle() {
    let large = Zipf { targets: 2000, alpha: 1.0, kb: 16.0, requests: 60_000 }.trace(1);
    let outcome = run(&Scenario::published(LardH, 100), &large);
    assert!(outcome.load_max <= 130, "{} connections on one node", outcome.load_max);
}
