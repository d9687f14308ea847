//! Our own policy, against LARD/R and against bounded-load hashing, which is what the field uses: on every trace, with
//! one and with four front-ends, and through the failure of a node.

use baton_dispatch::PolicyName::{self, BoundedHash, LardH, LardR};

use super::{Lab, Plan, Sweep, Workload};
use crate::model::{Change, FrontEnds, NodeChange, Outcome, Scenario, Sharing};
use crate::report::{Claim, Figure, Line, Report, Run};
use crate::trace::Zipf;

const POLICIES: [PolicyName; 3] = [LardH, LardR, BoundedHash];
const NODES: usize = 8;

/// The traces, their names, and whether few targets make much of the load.
fn workloads() -> [(Workload, &'static str, bool); 7] {
    let zipf = |alpha| Workload::Zipf(Zipf { targets: 40_000, alpha, kb: 16.0, requests: 1_000_000 });
    [
        (Workload::Rice, "rice", false),
        (Workload::Ibm, "ibm", false),
        (Workload::Chess, "chess", false),
        (zipf(0.7), "zipf 0.7", false),
        (zipf(0.9), "zipf 0.9", false),
        (zipf(1.1), "zipf 1.1", true),
        (Workload::RiceWithHot { percent: 45, kb: 40 }, "rice + 45 % hot", true),
    ]
}

fn front_ends(count: usize) -> FrontEnds {
    FrontEnds { count, sharing: Sharing::Nothing, cost_us: 0.0 }
}

/// Runs all policies on all traces, and compares.
fn compare(lab: &mut Lab<'_>, report: &mut Report, name: &str, title: &str, change: impl Fn(&mut Scenario)) {
    let mut lines = POLICIES.map(|policy| Line { name: policy.to_string(), points: Vec::new() });
    let mut names = Vec::new();
    for (at, (workload, trace, is_skewed)) in workloads().into_iter().enumerate() {
        let plan = |policy| {
            let mut scenario = Scenario::published(policy, NODES);
            change(&mut scenario);
            Plan { workload, scenario, variant: format!("{trace}, {title}") }
        };
        let runs = lab.run(&format!("{trace}, {title}"), &POLICIES.map(plan));
        let [ours, lard_r, bounded] = [0, 1, 2].map(|at: usize| &runs[at].outcome);
        for (line, run) in lines.iter_mut().zip(&runs) {
            line.points.push((at as f64, run.outcome.throughput / ours.throughput * 100.0));
        }
        names.push(trace.to_owned());
        report.claims.push(verdict(trace, title, ours, lard_r, bounded, is_skewed));
        report.runs.extend(runs);
    }
    report.figures.push(Figure {
        name: name.into(),
        title: format!("Throughput relative to lard-h, {title}"),
        y: "% of lard-h".into(),
        x_names: names,
        lines: lines.to_vec(),
        ..Figure::default()
    });
}

fn verdict(
    trace: &str,
    title: &str,
    ours: &Outcome,
    lard_r: &Outcome,
    bounded: &Outcome,
    is_skewed: bool,
) -> Claim {
    let gain = |theirs: &Outcome| 100.0 * (ours.throughput / theirs.throughput - 1.0);
    let (wanted, bound) = if is_skewed {
        ("at least 10 % better than either", 10.0)
    } else {
        ("at most 2 % worse than either", -2.0)
    };
    Claim::new(
        &format!("(our aim) {trace}, {title}: {wanted}"),
        format!("{:+.1} % against lard-r, {:+.1} % against bounded-hash", gain(lard_r), gain(bounded)),
        gain(lard_r).min(gain(bounded)) >= bound,
        &format!(
            "with lard-h, disks are busy for {:.0} % of the time and processors for {:.0} %",
            100.0 * ours.disk_busy,
            100.0 * ours.cpu_busy
        ),
    )
}

pub(super) fn traces(lab: &mut Lab<'_>, mut report: Report) -> Report {
    report.words.push(format!("{NODES} nodes of the published kind. Four front-ends share nothing."));
    compare(lab, &mut report, "ours-1", "one front-end", |_| ());
    compare(lab, &mut report, "ours-4", "four front-ends", |scenario| scenario.front_ends = front_ends(4));
    report
}

/// A node fails after a third of the requests, and is back after two thirds.
fn fail_and_recover(scenario: &mut Scenario) {
    scenario.changes = vec![
        Change { at: 1.0 / 3.0, what: NodeChange::Fail(0) },
        Change { at: 2.0 / 3.0, what: NodeChange::Recover(0) },
    ];
}

pub(super) fn failure(lab: &mut Lab<'_>, mut report: Report) -> Report {
    report.words.push(format!(
        "{NODES} nodes; one fails after a third of the requests, with its memory, and is back after two thirds. Its \
         requests are sent elsewhere: none is lost."
    ));
    compare(lab, &mut report, "failure-1", "one front-end, a failure", fail_and_recover);
    compare(lab, &mut report, "failure-4", "four front-ends, a failure", |scenario| {
        fail_and_recover(scenario);
        scenario.front_ends = front_ends(4);
    });
    let lost: u64 = report.runs.iter().map(|run| run.outcome.unanswered).sum();
    let retried: u64 = report.runs.iter().map(|run| run.outcome.retried).sum();
    report.claims.push(Claim::new(
        "(our aim) no request is lost",
        format!("{lost} lost, {retried} sent to another node"),
        lost == 0,
        "",
    ));
    report.figures.push(over_time(lab));
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
        Line { name: run.outcome.policy.clone(), points: points.collect() }
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

fn by_sharing(lab: &mut Lab<'_>, report: &mut Report, workload: Workload, name: &str) {
    const COUNTS: [usize; 4] = [1, 2, 4, 8];
    let mut figure = Figure {
        name: format!("front-ends-{name}"),
        title: format!("Several front-ends, {name} trace, {NODES} nodes"),
        x: "front-ends".into(),
        y: "requests/s".into(),
        x_is_logarithmic: true,
        ..Figure::default()
    };
    for policy in POLICIES {
        for sharing in [Sharing::Nothing, Sharing::Loads] {
            let mut line = Line { name: format!("{policy}, {sharing}"), points: Vec::new() };
            for count in COUNTS {
                let variant = format!("{count} front-ends share {sharing}");
                let sweep = Sweep::run(lab, workload, &[policy], &[NODES], &variant, |scenario| {
                    scenario.front_ends = FrontEnds { count, sharing, cost_us: 0.0 };
                });
                line.points.push((count as f64, sweep.throughput(policy, NODES)));
                report.runs.extend(sweep.into_runs());
            }
            figure.lines.push(line);
        }
    }
    report.figures.push(figure);
}

pub(super) fn sharing(lab: &mut Lab<'_>, mut report: Report) -> Report {
    report.words.push(
        "Front-ends that share everything are as good as one. Those that share the loads of nodes (which nodes can \
         tell with each answer) keep mappings of their own; those that share nothing know only what they sent \
         themselves."
            .into(),
    );
    by_sharing(lab, &mut report, Workload::Rice, "rice");
    by_sharing(lab, &mut report, Workload::RiceWithHot { percent: 45, kb: 40 }, "hot");
    report
}
