//! Whole runs: invariants after every event, for every policy and failure; and small runs with numbers computed by
//! hand.

use baton_dispatch::{NodeId, PolicyName};

use super::simulation::Simulation;
use super::*;
use crate::queueing::Station;
use crate::trace::{TargetFacts, Trace, TraceRequest, Zipf};

/// Panics if something is lost, counted twice, or beyond a bound.
fn check_invariants(simulation: &Simulation<'_>, admitted_before: &[u64]) -> Vec<u64> {
    let waiting: usize = simulation.front_ends.each.iter().map(|front_end| front_end.queue.len()).sum();
    let active = simulation.active.iter().filter(|active| active.node.is_some()).count();
    assert_eq!(
        simulation.arrived,
        simulation.answered as usize + waiting + active,
        "a request is lost or doubled"
    );

    for (number, node) in simulation.nodes.iter().enumerate() {
        let number = number as u32;
        let here = simulation.active.iter().filter(|active| active.node == Some(number)).count();
        assert_eq!(node.load as usize, here);
        assert_eq!(node.load, simulation.front_ends.believed_load(NodeId(number)));
        assert!(node.is_up || here == 0, "a node that is down has requests");
        node.cache.check_invariants();
        node.cpu.check_invariants();
        node.disks.iter().for_each(Station::check_invariants);
    }

    // The limit falls when a node fails; admitted requests may stay.
    let admitted = simulation.front_ends.admitted();
    for (at, &(admitted, limit)) in admitted.iter().enumerate() {
        let before = admitted_before.get(at).copied().unwrap_or(0);
        assert!(admitted <= limit.max(before), "{admitted} connections are in, {limit} may be");
    }
    admitted.iter().map(|&(admitted, _)| admitted).collect()
}

fn run_checked(scenario: &Scenario, trace: &Trace) -> Outcome {
    let mut simulation = Simulation::new(scenario, trace);
    let mut admitted = Vec::new();
    loop {
        admitted = check_invariants(&simulation, &admitted);
        if !simulation.step() {
            break;
        }
    }
    simulation.finish()
}

fn small_zipf(seed: u64) -> Trace {
    Zipf { targets: 300, alpha: 0.8, kb: 60.0, requests: 1500 }.trace(seed)
}

/// Every policy, front-ends that share nothing, loads, or everything, both kinds of arrivals; nodes that fail,
/// recover, drain and join meanwhile. No request is lost or unanswered, since some node always serves.
#[test]
fn nothing_is_lost_whatever_fails() {
    for seed in 0..6 {
        let trace = small_zipf(seed);
        for policy in PolicyName::ALL {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut at: Vec<f64> = (0..5).map(|_| random.f64()).collect();
            at.sort_by(f64::total_cmp);
            let node = random.u32(..3);
            let changes = [
                NodeChange::Fail(node),
                NodeChange::Join(random.u32(50..300)),
                NodeChange::Recover(node),
                NodeChange::Drain((node + 1) % 3),
                NodeChange::Fail((node + 1) % 3),
            ];
            let weakened = (node + 2) % 3;
            let weaken = [
                (0.2, NodeChange::LosePart { node: weakened, parts: 2 }),
                (0.8, NodeChange::RegainParts(weakened)),
            ];
            let sharing = Sharing::ALL[random.usize(..3)].1;
            let scenario = Scenario {
                profile: NodeProfile { cache_bytes: 2 << 20, ..NodeProfile::published() },
                weights: vec![100, 200, 50],
                front_ends: FrontEnds {
                    count: random.usize(1..4),
                    sharing,
                    cost_us: 50.0 * random.f64(),
                    way: Some(Way::Auto).filter(|_| random.bool()),
                },
                arrivals: match seed % 2 {
                    0 => Arrivals::Saturating,
                    _ => Arrivals::Random { per_s: 400.0 },
                },
                changes: at
                    .into_iter()
                    .zip(changes)
                    .chain(weaken)
                    .map(|(at, what)| Change { at, what })
                    .collect(),
                slow_start_us: 500_000,
                seed,
                ..Scenario::published(policy, 3)
            };
            let outcome = run_checked(&scenario, &trace);
            let all = trace.requests().len() as u64;
            assert_eq!((outcome.answered, outcome.unanswered), (all, 0), "{policy}, seed {seed}");
            let repeated = simulate(&scenario, &trace, &mut |_| ());
            assert_eq!(format!("{outcome:?}"), format!("{repeated:?}"), "the same seed, other numbers");
        }
    }
}

/// A slow start longer than the requests does not lengthen the run.
#[test]
fn a_slow_start_may_outlast_the_run() {
    let recover = |slow_start_us| {
        let changes = [(0.4, NodeChange::Fail(0)), (0.5, NodeChange::Recover(0))];
        let scenario = Scenario {
            changes: changes.map(|(at, what)| Change { at, what }).to_vec(),
            slow_start_us,
            ..Scenario::published(PolicyName::Wrr, 2)
        };
        run_checked(&scenario, &trace_of(&[1000], &[0; 400]))
    };
    assert!(recover(3_600_000_000).seconds < 1.0);
}

/// With no node left, requests wait, and are reported at the end.
#[test]
fn requests_without_a_node_are_reported() {
    let change = Change { at: 0.5, what: NodeChange::Fail(0) };
    let scenario = Scenario { changes: vec![change], ..Scenario::published(PolicyName::LardR, 1) };
    let trace = small_zipf(1);
    let outcome = run_checked(&scenario, &trace);
    let all = trace.requests().len() as u64;
    assert_eq!(outcome.answered + outcome.unanswered, all);
    assert!(outcome.unanswered >= all / 2, "{}", outcome.unanswered);
}

fn trace_of(bytes: &[u64], requests: &[u32]) -> Trace {
    let target =
        |(hash, bytes): (usize, &u64)| TargetFacts { hash: hash as u64, bytes: *bytes, dynamic: false };
    let requests = requests.iter().map(|&target| TraceRequest::whole(target)).collect();
    Trace::new("t".into(), bytes.iter().enumerate().map(target).collect(), requests)
}

fn near(seconds: f64, expected_us: f64) {
    assert!((seconds * 1e6 - expected_us).abs() < 1.0, "{} for {expected_us} µs", seconds * 1e6);
}

/// One request for 8 KB: 145 µs, a read of 28 ms and two times 410 µs, sixteen times 40 µs, 145 µs.
#[test]
fn one_request_costs_what_its_steps_cost() {
    let trace = trace_of(&[8 << 10], &[0]);
    let outcome = run_checked(&Scenario::published(PolicyName::Wrr, 1), &trace);
    near(outcome.seconds, 145.0 + 28_820.0 + 640.0 + 145.0);
    assert_eq!((outcome.miss_ratio, outcome.shared_miss_ratio), (1.0, 0.0));
    assert!((outcome.delay.max_ms - 29.75).abs() < 0.05);
}

/// Two requests for 100 KB at once: one read. Blocks of 44, 44 and 12 KB, each sent by both before the next is read
/// by the first: its sending of a block (88 times 40 µs) delays the next read, the second one's does not, except for
/// the last block, which it sends after its second one.
#[test]
fn a_file_is_read_once_for_all_and_sent_block_by_block() {
    let trace = trace_of(&[100 << 10], &[0, 0]);
    let outcome = run_checked(&Scenario::published(PolicyName::Wrr, 1), &trace);
    assert_eq!((outcome.miss_ratio, outcome.shared_miss_ratio), (1.0, 0.5));
    let (first_read, second_read, third_read) = (32_510.0, 18_510.0, 15_230.0);
    let (block, rest) = (88.0 * 40.0, 24.0 * 40.0 + 145.0);
    near(outcome.seconds, 145.0 + first_read + block + second_read + block + third_read + rest + rest);
}

/// The third request finds the file in memory; a head needs none.
#[test]
fn memory_saves_the_disk() {
    let trace = trace_of(&[1000], &[0]);
    let requests = vec![TraceRequest::whole(0), TraceRequest::head_only(0)];
    let heads = Trace::new("t".into(), trace.targets().to_vec(), requests);
    let scenario = Scenario::published(PolicyName::Wrr, 1);
    let outcome = run_checked(&scenario, &heads);
    assert_eq!(outcome.miss_ratio, 1.0, "a head is no hit");

    let many = trace_of(&[1000], &[0; 100]);
    let outcome = run_checked(&scenario, &many);
    // 24 connections may be in; all but the first wait for its reading.
    assert!((outcome.miss_ratio - 0.24).abs() < 1e-9, "{}", outcome.miss_ratio);
}

/// Applications work on processors, and never on disks.
#[test]
fn dynamic_targets_cost_computing_time() {
    let program = TargetFacts { hash: 1, bytes: 512, dynamic: true };
    let trace = Trace::new("t".into(), vec![program], vec![TraceRequest::whole(0); 10]);
    let outcome = run_checked(&Scenario::published(PolicyName::Wrr, 1), &trace);
    near(outcome.seconds, 10.0 * (145.0 + 10_000.0 + 40.0 + 145.0));
    assert_eq!(outcome.disk_busy, 0.0);
}

/// Two processors do twice the work, two disks too, and a node of twice the weight.
#[test]
fn more_of_a_node_does_more() {
    let in_memory = trace_of(&[1000], &[0; 2000]);
    let reading = trace_of(&[1000; 400], &(0..400).collect::<Vec<_>>());
    let throughput = |settings: &str, weight: u32, trace: &Trace| {
        let mut scenario = Scenario { weights: vec![weight], ..Scenario::published(PolicyName::Wrr, 1) };
        scenario.profile.set(settings).unwrap();
        run_checked(&scenario, trace).throughput
    };
    let doubled = |more: f64, base: f64| assert!((more / base - 2.0).abs() < 0.1, "{more} and {base}");
    doubled(throughput("cpus=2", 100, &in_memory), throughput("", 100, &in_memory));
    doubled(throughput("disks=2", 100, &reading), throughput("", 100, &reading));
    doubled(throughput("reads_per_disk=2", 100, &reading), throughput("", 100, &reading));
    doubled(throughput("", 200, &in_memory), throughput("", 100, &in_memory));
}

/// A machine with everything of two nodes does what one does after it has lost half of it, and all again when that is back.
#[test]
fn a_part_of_a_node_may_fail_and_come_back() {
    let in_memory = trace_of(&[1000], &[0; 4000]);
    let reading = trace_of(&[1000; 400], &(0..400).collect::<Vec<_>>());
    let seconds = |changes: &[(f64, NodeChange)], trace: &Trace| {
        let mut scenario = Scenario::published(PolicyName::Wrr, 1);
        scenario.profile.set("cpus=2,reads_per_disk=2").unwrap();
        scenario.changes = changes.iter().map(|&(at, what)| Change { at, what }).collect();
        let outcome = run_checked(&scenario, trace);
        assert!(outcome.cpu_busy.max(outcome.disk_busy) > 0.9, "{outcome:?}");
        outcome.seconds
    };
    let lose = |at| (at, NodeChange::LosePart { node: 0, parts: 2 });
    let regain = |at| (at, NodeChange::RegainParts(0));
    for trace in [&in_memory, &reading] {
        let whole = seconds(&[], trace);
        for (changes, expected) in
            [(vec![lose(0.0)], 2.0), (vec![lose(0.5)], 1.5), (vec![lose(0.25), regain(0.75)], 1.5)]
        {
            let ratio = seconds(&changes, trace) / whole;
            assert!((ratio / expected - 1.0).abs() < 0.1, "{changes:?}: {ratio}");
        }
    }
}

/// Twenty files of a megabyte fill a machine's memory. One of two parts fails, with its files. The others are still
/// hits; then the lost ones are read, and all are hits again.
#[test]
fn files_of_a_lost_part_are_read_again() {
    let each: Vec<u32> = (0..20).collect();
    let (lost, kept): (Vec<u32>, Vec<u32>) = each.iter().partition(|&&target| target % 2 == 0);
    let requests = [each.clone(), kept, lost, each].concat();
    let trace = trace_of(&[1 << 20; 20], &requests);
    let mut scenario = Scenario::published(PolicyName::Wrr, 1);
    scenario.profile.set("cache_mb=20").unwrap();
    // One at a time: requests do not overlap.
    scenario.settings.t_low = 2;
    scenario.changes = vec![
        Change { at: 20.5 / 60.0, what: NodeChange::LosePart { node: 0, parts: 2 } },
        Change { at: 30.5 / 60.0, what: NodeChange::RegainParts(0) },
    ];
    let outcome = run_checked(&scenario, &trace);
    assert!((outcome.miss_ratio - 30.0 / 60.0).abs() < 1e-9, "{}", outcome.miss_ratio);
}

/// Two nodes of 32 MB, each asked in turn for files of 40 MB together. With shared memory, what one has read the
/// other takes from it.
#[test]
fn shared_memory_reads_once() {
    let requests: Vec<u32> = (0..4).flat_map(|_| 0..81).collect();
    let trace = trace_of(&[512 << 10; 81], &requests);
    let misses = |policy| {
        let outcome = run_checked(&Scenario::published(policy, 2), &trace);
        outcome.miss_ratio * (1.0 - outcome.shared_miss_ratio - outcome.lent_ratio)
    };
    let (alone, together) = (misses(PolicyName::Wrr), misses(PolicyName::WrrGms));
    assert!(together < 0.75 * alone, "{together} for {alone}");
}

/// Front-ends that cost time are busy, and delay requests.
#[test]
fn a_front_end_may_cost_time() {
    let trace = trace_of(&[0], &[0; 1000]);
    let scenario = Scenario {
        front_ends: FrontEnds { cost_us: 1000.0, ..FrontEnds::default() },
        ..Scenario::published(PolicyName::Wrr, 4)
    };
    let outcome = run_checked(&scenario, &trace);
    near(outcome.seconds, 1000.0 * 1000.0 + 290.0);
    assert!(outcome.front_end_busy > 0.99);
}

/// The choice does at most 5 % less than the better way, and more than both where sizes differ: its front-end works least. All
/// requests hit memory, on nodes of today.
#[test]
fn the_choice_of_ways_is_as_good_as_the_better_one() {
    let order: Vec<u32> = (0..4000).map(|request| request * 7 % 40).collect();
    let mut mixed = [1 << 10; 40];
    mixed[..10].fill(2 << 20);
    for (bytes, gain) in [([1 << 10; 40], 0.95), ([100 << 10; 40], 0.95), ([2 << 20; 40], 0.95), (mixed, 1.2)]
    {
        let trace = trace_of(&bytes, &order);
        let throughput = |way| {
            let front_ends = FrontEnds { way: Some(way), ..FrontEnds::default() };
            let profile = NodeProfile::nvme();
            let scenario = Scenario {
                front_ends,
                profile,
                measured_from: 0.5,
                ..Scenario::published(PolicyName::LardH, 12)
            };
            run_checked(&scenario, &trace).throughput
        };
        let [relay, hand_off, auto] = [Way::Relay, Way::HandOff, Way::Auto].map(throughput);
        assert!(auto >= gain * relay.max(hand_off), "{bytes:?}: {relay}, {hand_off}, {auto}");
    }
}

/// Measuring may begin when memory is warm.
#[test]
fn measuring_may_begin_later() {
    let trace = trace_of(&[1000; 10], &(0..1000).map(|request| request % 10).collect::<Vec<_>>());
    let scenario = Scenario { measured_from: 0.5, ..Scenario::published(PolicyName::Wrr, 1) };
    let outcome = run_checked(&scenario, &trace);
    assert_eq!((outcome.answered, outcome.miss_ratio), (500, 0.0));
    assert_eq!(outcome.disk_busy, 0.0);
}

/// Random arrivals come at their rate, and wait only when nodes are busy.
#[test]
fn random_arrivals_keep_their_rate() {
    let trace = trace_of(&[1000], &[0; 5000]);
    let scenario =
        Scenario { arrivals: Arrivals::Random { per_s: 100.0 }, ..Scenario::published(PolicyName::Wrr, 2) };
    let outcome = run_checked(&scenario, &trace);
    assert!((outcome.throughput / 100.0 - 1.0).abs() < 0.05, "{}", outcome.throughput);
    assert!(outcome.delay.p50_ms < 1.0 && outcome.idle > 0.9);
}

/// The published formula: nine nodes let 8 * 65 + 25 - 1 connections in, which makes the mean delay.
#[test]
fn saturating_arrivals_fill_the_admission_limit() {
    let outcome = run_checked(&Scenario::published(PolicyName::Wrr, 9), &trace_of(&[1000], &[0; 20_000]));
    let in_cluster = outcome.throughput * outcome.delay.mean_ms / 1000.0;
    assert!((in_cluster / 544.0 - 1.0).abs() < 0.03, "{in_cluster}");
}

/// Thirty clients that never pause have thirty requests in the cluster, which would let 544 in.
#[test]
fn each_of_a_closed_number_of_clients_waits_for_its_answer() {
    let scenario =
        Scenario { arrivals: Arrivals::Closed { clients: 30 }, ..Scenario::published(PolicyName::Wrr, 9) };
    let outcome = run_checked(&scenario, &trace_of(&[1000], &[0; 20_000]));
    let in_cluster = outcome.throughput * outcome.delay.mean_ms / 1000.0;
    assert!((in_cluster / 30.0 - 1.0).abs() < 0.03, "{in_cluster}");
}
