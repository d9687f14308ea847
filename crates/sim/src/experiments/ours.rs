//! Our own policy against LARD/R and against the widely used bounded-load hashing: on every trace, with one and with
//! four front-ends, and through the failure of a node. Results depend on the trace by a few per cent; so each run has
//! several seeds, and the median counts.

use baton_dispatch::PolicyName::{self, BoundedHash, LardH, LardR};
use baton_figures::{Axis, Claim, Datum, Figure, FigureKind, Interval, Line, Point};

use super::{Lab, Plan, Sweep, Workload};
use crate::model::{Change, FrontEnds, NodeChange, NodeProfile, Scenario, Sharing};
use crate::report::{Run, SimulationReport};
use crate::trace::Zipf;

const POLICIES: [PolicyName; 3] = [LardH, LardR, BoundedHash];
const NODES: usize = 8;

/// A trace, its name, and whether few targets make much of the load.
type Entry = (Workload, &'static str, bool);

fn workloads() -> [Entry; 11] {
    let zipf = |alpha| Workload::Zipf(Zipf { targets: 40_000, alpha, kb: 16.0, requests: 1_000_000 });
    let hot = |percent| Workload::RiceWithHot { percent, kb: 40 };
    [
        (Workload::Rice, "rice", false),
        (Workload::Ibm, "ibm", false),
        (Workload::Chess, "chess", false),
        (zipf(0.7), "zipf 0.7", false),
        (zipf(0.9), "zipf 0.9", false),
        (zipf(1.1), "zipf 1.1", true),
        (zipf(1.3), "zipf 1.3", true),
        (hot(10), "rice, 10 % hot", true),
        (hot(30), "rice, 30 % hot", true),
        (hot(45), "rice, 45 % hot", true),
        (hot(60), "rice, 60 % hot", true),
    ]
}

fn front_ends(count: usize) -> FrontEnds {
    FrontEnds { count, sharing: Sharing::Nothing, cost_us: 0.0, way: None }
}

/// Runs by trace, seed and contestant.
type Results = Vec<Vec<Vec<Run>>>;

/// Runs all contestants on all traces, with all seeds.
fn contest(lab: &Lab<'_>, title: &str, contestants: &[Scenario]) -> Results {
    let mut results: Results = vec![Vec::new(); workloads().len()];
    for mut lab in lab.each_seed() {
        for (runs, (workload, trace, _)) in results.iter_mut().zip(workloads()) {
            let variant = format!("{trace}, {title}, seed {}", lab.seed());
            let plan =
                |scenario: &Scenario| Plan { workload, scenario: scenario.clone(), variant: variant.clone() };
            let plans: Vec<Plan> = contestants.iter().map(plan).collect();
            runs.push(lab.run(&variant, &plans));
        }
    }
    results
}

/// How much more one contestant did than another one, in percent: the least, the median and the most over seeds.
fn gain(by_seed: &[Vec<Run>], one: usize, other: usize) -> [f64; 3] {
    let throughput = |run: &Run| run.outcome.throughput;
    let gain = |runs: &Vec<Run>| 100.0 * (throughput(&runs[one]) / throughput(&runs[other]) - 1.0);
    let mut gains: Vec<f64> = by_seed.iter().map(gain).collect();
    gains.sort_by(f64::total_cmp);
    [0, gains.len() / 2, gains.len() - 1].map(|at| gains[at])
}

/// The throughput of each policy on each trace relative to the first one's.
fn relative(name: &str, title: &str, names: &[&str], results: &Results) -> Figure {
    // What the first one gains, as what the other has left; by seed, the most gained is the least left.
    let share = |by_seed: &[Vec<Run>], other| {
        let [high, median, low] = gain(by_seed, 0, other).map(|gain| 100.0 / (1.0 + gain / 100.0));
        Datum::Number(Interval { low, median, high })
    };
    let line = |(other, name): (usize, &&str)| {
        let point = |(at, runs): (usize, &Vec<Vec<Run>>)| Point { x: at as f64, datum: share(runs, other) };
        Line { name: (*name).to_owned(), points: results.iter().enumerate().map(point).collect() }
    };
    Figure {
        name: name.into(),
        title: title.into(),
        kind: FigureKind::Bars,
        x: Axis::named("", workloads().map(|(_, name, _)| name.to_owned()).to_vec()),
        y: Axis::linear("throughput", &format!("% of {}", names[0])),
        lines: names.iter().enumerate().map(line).collect(),
        ..Figure::default()
    }
}

/// Runs the policies on all traces, and holds ours against its aims.
fn compare(
    lab: &Lab<'_>,
    report: &mut SimulationReport,
    name: &str,
    title: &str,
    change: impl Fn(&mut Scenario),
) {
    let contestants = POLICIES.map(|policy| {
        let mut scenario = Scenario::published(policy, NODES);
        change(&mut scenario);
        scenario
    });
    let results = contest(lab, title, &contestants);
    for ((_, trace, is_skewed), by_seed) in workloads().into_iter().zip(&results) {
        report.findings.claims.push(verdict(trace, title, by_seed, is_skewed));
    }
    let names = POLICIES.map(PolicyName::as_str);
    report.findings.figures.push(relative(name, &format!("lard-h and others, {title}"), &names, &results));
    report.runs.extend(results.into_iter().flatten().flatten());
}

fn verdict(trace: &str, title: &str, by_seed: &[Vec<Run>], is_skewed: bool) -> Claim {
    let (wanted, bound) = if is_skewed {
        ("at least 5 % better than either", 5.0)
    } else {
        ("at most 2 % worse than either", -2.0)
    };
    let [against_lard_r, against_bounded] = [1, 2].map(|other| gain(by_seed, 0, other));
    let words =
        |[least, median, most]: [f64; 3]| format!("{median:+.1} % ({least:+.1} to {most:+.1} % by seed)");
    let busy = |policy: usize| {
        let of = |value: fn(&Run) -> f64| {
            100.0 * by_seed.iter().map(|runs| value(&runs[policy])).sum::<f64>() / by_seed.len() as f64
        };
        (of(|run| run.outcome.disk_busy), of(|run| run.outcome.cpu_busy))
    };
    let ((our_disks, our_cpus), (disks, cpus)) = (busy(0), busy(1));
    Claim::new(
        &format!("(our aim) {trace}, {title}: {wanted}"),
        format!("{} against lard-r, {} against bounded-hash", words(against_lard_r), words(against_bounded)),
        against_lard_r[1].min(against_bounded[1]) >= bound,
        &format!(
            "disks are busy for {our_disks:.0} % of the time with lard-h and processors for {our_cpus:.0} %, with \
             lard-r {disks:.0} and {cpus:.0} %"
        ),
    )
}

/// One machine with all processors, disks and memory: there is nothing to distribute, and nothing is held twice.
fn one_machine() -> Scenario {
    let each = NodeProfile::published();
    let nodes = NODES as u32;
    let mut scenario = Scenario::published(LardH, 1);
    let connections = (nodes - 1) * scenario.settings.t_high + scenario.settings.t_low;
    scenario.profile = NodeProfile {
        cpus: nodes * each.cpus,
        reads_per_disk: nodes * each.reads_per_disk,
        cache_bytes: u64::from(nodes) * each.cache_bytes,
        ..each
    };
    // The admission limit of a single node is T_low - 1: as many connections as the cluster takes.
    scenario.settings.t_low = connections;
    scenario.settings.t_high = connections + 1;
    scenario
}

pub(super) fn traces(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    report.findings.words.push(format!(
        "{NODES} nodes of the published kind; medians of {} seeds. Four front-ends share nothing.",
        lab.seeds()
    ));
    compare(lab, &mut report, "ours-1", "one front-end", |_| ());
    compare(lab, &mut report, "ours-4", "four front-ends", |scenario| scenario.front_ends = front_ends(4));
    report
}

pub(super) fn limit(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    report.findings.words.push(format!(
        "{NODES} nodes of the published kind, against one machine with their processors, disks and memory together, \
         where nothing has to be distributed and nothing is held twice: no distribution can be expected to do more. \
         Medians of {} seeds.",
        lab.seeds()
    ));
    let contestants = [one_machine(), Scenario::published(LardH, NODES), Scenario::published(LardR, NODES)];
    compare_with_one_machine(
        lab,
        &mut report,
        "ours-limit",
        "What distribution leaves to be gained",
        "against one machine",
        &contestants,
    );
    report
}

/// Holds LARD/H and LARD/R against the first contestant.
fn compare_with_one_machine(
    lab: &Lab<'_>,
    report: &mut SimulationReport,
    name: &str,
    figure_title: &str,
    title: &str,
    contestants: &[Scenario; 3],
) {
    let results = contest(lab, title, contestants);
    for ((_, trace, _), by_seed) in workloads().into_iter().zip(&results) {
        report.findings.words.push(what_is_left(trace, by_seed));
    }
    let names = ["one machine", LardH.as_str(), LardR.as_str()];
    report.findings.figures.push(relative(name, figure_title, &names, &results));
    report.runs.extend(results.into_iter().flatten().flatten());
}

/// What one machine does beyond the policies.
fn what_is_left(trace: &str, by_seed: &[Vec<Run>]) -> String {
    let [ours, theirs] = [1, 2].map(|other| gain(by_seed, 0, other)[1]);
    format!("{trace}: one machine does {ours:+.1} % against lard-h, {theirs:+.1} % against lard-r.")
}

/// A node fails after a third of the requests, and is back after two thirds.
fn fail_and_recover(scenario: &mut Scenario) {
    scenario.changes = vec![
        Change { at: 1.0 / 3.0, what: NodeChange::Fail(0) },
        Change { at: 2.0 / 3.0, what: NodeChange::Recover(0) },
    ];
}

pub(super) fn failure(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    report.findings.words.push(format!(
        "{NODES} nodes; one fails after a third of the requests, with its memory, and is back after two thirds. Its \
         requests are sent elsewhere: none is lost. Medians of {} seeds.",
        lab.seeds()
    ));
    compare(lab, &mut report, "failure-1", "one front-end, a failure", fail_and_recover);
    compare(lab, &mut report, "failure-4", "four front-ends, a failure", |scenario| {
        fail_and_recover(scenario);
        scenario.front_ends = front_ends(4);
    });
    report.findings.words.push(format!(
        "Below: one machine with everything of {NODES} nodes, which loses an eighth of its processors, disks and memory, \
         with what is in it, when the node fails, and has it back when the node is back: no distribution can be expected \
         to do more."
    ));
    let through_failure = |mut scenario: Scenario| {
        fail_and_recover(&mut scenario);
        scenario
    };
    let weakened = Scenario {
        changes: vec![
            Change { at: 1.0 / 3.0, what: NodeChange::LosePart { node: 0, parts: NODES as u32 } },
            Change { at: 2.0 / 3.0, what: NodeChange::RegainParts(0) },
        ],
        ..one_machine()
    };
    let contestants = [
        weakened,
        through_failure(Scenario::published(LardH, NODES)),
        through_failure(Scenario::published(LardR, NODES)),
    ];
    compare_with_one_machine(
        lab,
        &mut report,
        "failure-limit",
        "What a failure leaves to be gained",
        "against one machine that loses as much",
        &contestants,
    );
    let lost: u64 = report.runs.iter().map(|run| run.outcome.unanswered).sum();
    let retried: u64 = report.runs.iter().map(|run| run.outcome.retried).sum();
    report.findings.claims.push(Claim::new(
        "(our aim) no request is lost",
        format!("{lost} lost, {retried} sent to another node"),
        lost == 0,
        "",
    ));
    report.findings.figures.push(over_time(lab));
    report
}

/// Throughput in the course of a run.
fn over_time(lab: &mut Lab<'_>) -> Figure {
    const INTERVAL_MS: u64 = 20_000;
    let plan = |policy| {
        let mut scenario = Scenario { series_ms: INTERVAL_MS, ..Scenario::published(policy, NODES) };
        fail_and_recover(&mut scenario);
        Plan { workload: Workload::Rice, scenario, variant: "over time".into() }
    };
    let runs = lab.run("through a failure, over time", &POLICIES.map(plan));
    let seconds = INTERVAL_MS as f64 / 1000.0;
    let line = |run: &Run| {
        let points = run
            .outcome
            .series
            .iter()
            .enumerate()
            .map(|(at, &count)| (at as f64 * seconds, count as f64 / seconds));
        Line::exact(run.outcome.policy.clone(), points)
    };
    Figure {
        name: "failure-over-time".into(),
        title: "Rice trace: a node fails and comes back".into(),
        x: "seconds".into(),
        y: "requests/s".into(),
        lines: runs.iter().map(line).collect(),
        ..Figure::default()
    }
}

fn by_sharing(lab: &mut Lab<'_>, report: &mut SimulationReport, workload: Workload, name: &str) {
    const COUNTS: [usize; 4] = [1, 2, 4, 8];
    let mut figure = Figure {
        name: format!("front-ends-{name}"),
        title: format!("Several front-ends, {name} trace, {NODES} nodes"),
        x: Axis::logarithmic("front-ends", ""),
        y: "requests/s".into(),
        ..Figure::default()
    };
    for policy in POLICIES {
        for sharing in [Sharing::Nothing, Sharing::Loads] {
            let mut points = Vec::new();
            for count in COUNTS {
                let variant = format!("{count} front-ends share {sharing}");
                let sweep = Sweep::run(lab, workload, &[policy], &[NODES], &variant, |scenario| {
                    scenario.front_ends = FrontEnds { count, sharing, cost_us: 0.0, way: None };
                });
                points.push((count as f64, sweep.throughput(policy, NODES)));
                report.runs.extend(sweep.into_runs());
            }
            figure.lines.push(Line::exact(format!("{policy}, {sharing}"), points));
        }
    }
    report.findings.figures.push(figure);
}

pub(super) fn sharing(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    report.findings.words.push(
        "Front-ends that share everything are as good as one. Those that share the loads of nodes (which nodes can \
         tell with each answer) keep mappings of their own; those that share nothing know only what they sent \
         themselves."
            .into(),
    );
    by_sharing(lab, &mut report, Workload::Rice, "rice");
    by_sharing(lab, &mut report, Workload::RiceWithHot { percent: 45, kb: 40 }, "hot");
    report
}
