//! Kept connections: relaying, `stay`, `return`, fetching from the home of a file, and `auto`, on machines of which another part is the
//! limit.

use baton_dispatch::PolicyName;
use baton_figures::{Axis, Claim, Figure, Line};

use super::{Lab, Plan, Workload};
use crate::model::{Kept, KeptWay, NodeProfile, Scenario};
use crate::report::{Run, SimulationReport};

const NODES: usize = 8;
const REQUESTS: [u32; 4] = [2, 8, 32, 128];
const WAYS: [(KeptWay, &str); 5] = [
    (KeptWay::Relay, "relay"),
    (KeptWay::Stay, "stay"),
    (KeptWay::Return, "return"),
    (KeptWay::Fetch, "fetch"),
    (KeptWay::Auto, "auto"),
];

/// Nodes with memory for all files; for a third of them together, beside a drive of today; and beside a hard disk.
fn machines() -> [(NodeProfile, &'static str, &'static str); 3] {
    let whole = NodeProfile::nvme();
    let part = NodeProfile { cache_bytes: 64 << 20, ..whole };
    let slow = NodeProfile { disk_latency_us: 8_000.0, reads_per_disk: 4, ..part };
    [(whole, "memory", "files in memory"), (part, "drive", "a fast drive"), (slow, "disk", "a hard disk")]
}

pub(super) fn ways(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    report.findings.words.push(format!(
        "{NODES} nodes with eight processors, one front-end with one, at the prices with which a server begins; `lard-h`. \
         Connections bring 2 to 128 requests, each for any file of the Rice trace."
    ));
    let (mut best_of_fetch, mut worst_of_auto) = (f64::NEG_INFINITY, f64::INFINITY);
    for (profile, name, title) in machines() {
        let results =
            WAYS.map(|(way, _)| REQUESTS.map(|requests| run(lab, profile, title, Kept { requests, way })));
        let throughput = |way: usize, at: usize| results[way][at].outcome.throughput;
        for (at, requests) in REQUESTS.iter().enumerate() {
            let others = (0..3).map(|way| throughput(way, at)).fold(0.0, f64::max);
            best_of_fetch = best_of_fetch.max(throughput(3, at) / others);
            worst_of_auto = worst_of_auto.min(throughput(4, at) / throughput(1, at).max(throughput(3, at)));
            let each =
                WAYS.iter().enumerate().map(|(way, (_, word))| format!("{word} {:.0}", throughput(way, at)));
            let each = each.collect::<Vec<_>>().join(", ");
            report.findings.words.push(format!("{title}, {requests} requests: {each} requests/s"));
        }
        report.findings.figures.push(figure(name, title, &results));
        report.runs.extend(results.into_iter().flatten());
    }
    report.findings.claims.push(Claim::new(
        "(our question) fetching is the best way somewhere",
        format!("at best {best_of_fetch:.2} times the best of the others"),
        best_of_fetch > 1.0,
        "",
    ));
    report.findings.claims.push(Claim::new(
        "(our target) `auto` has nine tenths of the better of `stay` and fetch, everywhere",
        format!("{worst_of_auto:.2} of it at worst"),
        worst_of_auto >= 0.9,
        "",
    ));
    report
}

fn run(lab: &mut Lab<'_>, profile: NodeProfile, title: &str, kept: Kept) -> Run {
    let scenario = Scenario {
        profile,
        kept: Some(kept),
        measured_from: 0.3,
        ..Scenario::published(PolicyName::LardH, NODES)
    };
    let variant = format!("{title}, {} requests, {:?}", kept.requests, kept.way);
    lab.run(&variant.clone(), &[Plan { workload: Workload::Rice, scenario, variant }]).remove(0)
}

fn figure(name: &str, title: &str, results: &[[Run; REQUESTS.len()]; WAYS.len()]) -> Figure {
    let line = |((_, way), runs): (&(KeptWay, &str), &[Run; REQUESTS.len()])| {
        let points =
            REQUESTS.iter().zip(runs).map(|(requests, run)| (f64::from(*requests), run.outcome.throughput));
        Line::exact(*way, points)
    };
    Figure {
        name: format!("kept-{name}"),
        title: format!("Kept connections, {title}"),
        x: Axis::logarithmic("requests of a connection", ""),
        y: "requests/s".into(),
        lines: WAYS.iter().zip(results).map(line).collect(),
        ..Figure::default()
    }
}
