//! Thresholds that fit the nodes against the published ones, on traces and machines that differ; and what bursts do.

use baton_dispatch::{Fits, PolicyName};
use baton_figures::{Axis, Claim, Figure, FigureKind, Line};

use super::{Lab, Plan, Sweep, Workload};
use crate::model::{NodeProfile, Scenario};
use crate::report::{Run, SimulationReport};
use crate::trace::{Bursts, Zipf};

const NODES: usize = 8;
/// Twenty requests for a file within half a second of the published cluster.
const BURSTS: Bursts = Bursts { length: 20, within: 1_000 };
/// Thresholds are learnt, and caches filled, before measuring begins.
const MEASURED_FROM: f64 = 0.3;
const DELAY_US: u64 = 500_000;

fn workloads() -> [(Workload, &'static str); 6] {
    let zipf = Zipf { targets: 40_000, alpha: 0.9, kb: 16.0, requests: 1_000_000 };
    [
        (Workload::Rice, "rice"),
        (Workload::RiceInBursts(BURSTS), "rice, bursts"),
        (Workload::Ibm, "ibm"),
        (Workload::Chess, "chess"),
        (Workload::Zipf(zipf), "zipf 0.9"),
        (Workload::RiceWithHot { percent: 45, kb: 40 }, "rice, 45 % hot"),
    ]
}

/// Nodes whose disks are the limit, whose processors are, and whose files are on volumes over a network, which are far but
/// do much at once.
fn machines() -> [(NodeProfile, &'static str); 3] {
    let published = NodeProfile::published();
    let volume = NodeProfile {
        disk_latency_us: 20_000.0,
        reads_per_disk: 256,
        cache_bytes: 32 << 20,
        ..NodeProfile::nvme()
    };
    [
        (published, "one disk"),
        (NodeProfile { disks: 4, ..published }, "four disks"),
        (volume, "remote volumes"),
    ]
}

/// The same run with the published thresholds, and with fitted ones.
fn pair(lab: &mut Lab<'_>, workload: Workload, machine: (NodeProfile, &str)) -> [Run; 2] {
    let plan = |fits: Option<Fits>| {
        let mut scenario = Scenario::published(PolicyName::LardH, NODES);
        (scenario.profile, scenario.measured_from) = (machine.0, MEASURED_FROM);
        scenario.settings.fits = fits;
        let how = if fits.is_some() { "fitted" } else { "as published" };
        Plan { workload, scenario, variant: format!("{}, thresholds {how}", machine.1) }
    };
    let runs = lab.run(machine.1, &[None, Some(Fits { t_low: None, delay_us: DELAY_US })].map(plan));
    runs.try_into().unwrap_or_else(|_| unreachable!("a run for each plan"))
}

pub(super) fn thresholds(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    let results = machines().map(|machine| workloads().map(|(workload, _)| pair(lab, workload, machine)));
    let share = |[published, fitted]: &[Run; 2], value: fn(&Run) -> f64| {
        100.0 * value(fitted) / value(published).max(f64::MIN_POSITIVE)
    };
    let figure = |name: &str, title: &str, value: fn(&Run) -> f64| Figure {
        name: name.into(),
        title: title.into(),
        kind: FigureKind::Bars,
        x: Axis::named("", workloads().map(|(_, name)| name.to_owned()).to_vec()),
        y: Axis::linear("fitted", "% of the published"),
        lines: (machines().iter().zip(&results))
            .map(|((_, machine), runs)| {
                let points = runs.iter().enumerate().map(|(at, pair)| (at as f64, share(pair, value)));
                Line::exact(*machine, points)
            })
            .collect(),
        ..Figure::default()
    };
    let throughput = |run: &Run| run.outcome.throughput;
    report.findings.figures = vec![
        figure("fitted-throughput", "Throughput with fitted thresholds", throughput),
        figure("fitted-p99", "Delay that 99 % do not exceed", |run| run.outcome.delay.p99_ms),
    ];
    let gains = results.each_ref().map(|runs| runs.each_ref().map(|pair| share(pair, throughput) - 100.0));
    let least = gains.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    report.findings.claims.push(Claim::new(
        "(our aim) no machine answers 3 % less on any trace",
        format!("{least:+.1} % at the least"),
        least > -3.0,
        "",
    ));
    let most = gains[2].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    report.findings.claims.push(Claim::new(
        "(our aim) nodes that do much at once answer twice as much on some trace",
        format!("{most:+.0} % at the most"),
        most > 100.0,
        "",
    ));
    for ((_, machine), runs) in machines().iter().zip(&results) {
        report
            .findings
            .words
            .extend(workloads().iter().zip(runs).map(|((_, trace), pair)| words(machine, trace, pair)));
    }
    report.runs = results.into_iter().flatten().flatten().collect();
    report
}

fn words(machine: &str, trace: &str, [published, fitted]: &[Run; 2]) -> String {
    let [t_low, t_high] = fitted.outcome.thresholds;
    let gain = 100.0 * (fitted.outcome.throughput / published.outcome.throughput - 1.0);
    format!(
        "{machine}, {trace}: T_low {t_low:.0}, T_high {t_high:.0}; {gain:+.1} % answers, p99 {:.1} for {:.1} ms",
        fitted.outcome.delay.p99_ms, published.outcome.delay.p99_ms
    )
}

/// Whether bursts explain why LB gains less in the source than on the even trace.
pub(super) fn bursts(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    use PolicyName::{LardR, Lb, LbGc, Wrr};
    const COUNTS: [usize; 4] = [2, 4, 8, 16];
    let mut shares = Vec::new();
    for (workload, name) in [(Workload::Rice, "even"), (Workload::RiceInBursts(BURSTS), "bursts")] {
        let sweep = Sweep::run(lab, workload, &[Lb, LbGc, LardR, Wrr], &COUNTS, name, |_| ());
        let title = format!("Throughput on the Rice trace, {name}");
        report
            .findings
            .figures
            .push(sweep.figure(&format!("bursts-{name}"), &title, "requests/s", |run| run.throughput));
        shares.push([Lb, LbGc].map(|policy| sweep.throughput(policy, 8) / sweep.throughput(LardR, 8)));
        report.runs.extend(sweep.into_runs());
    }
    let percent =
        |shares: [f64; 2]| format!("LB {:.0} and LB/GC {:.0} %", 100.0 * shares[0], 100.0 * shares[1]);
    report.findings.words.push(format!(
        "With eight nodes, of LARD/R's throughput: {} on the even trace, {} in bursts of {} requests among {}.",
        percent(shares[0]),
        percent(shares[1]),
        BURSTS.length,
        BURSTS.within
    ));
    report
}
