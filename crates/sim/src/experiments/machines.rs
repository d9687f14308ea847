//! Other machines: faster processors, more disks, more memory, another replacement, and nodes of today
//! (sections 3.2.1, 3.3.1, 3.3.3 of the source).

use baton_dispatch::PolicyName::{self, BoundedHash, Lard, LardH, LardR, Wrr};
use baton_figures::{Axis, Claim, Figure, FigureKind, Line};

use super::sweep::{NODES, POLICIES};
use super::{Lab, Sweep, Workload};
use crate::model::{NodeProfile, Replacement};
use crate::report::SimulationReport;
use crate::trace::Zipf;

/// Speed of processors, and the memory that the source gives them, in MB.
const SPEEDS: [(u32, u64); 4] = [(1, 32), (2, 48), (3, 64), (4, 96)];

fn by_cpu(lab: &mut Lab<'_>, policy: PolicyName) -> [Sweep; 4] {
    SPEEDS.map(|(speed, mb)| {
        Sweep::run(lab, Workload::Rice, &[policy], &NODES, &format!("cpu {speed}x"), |scenario| {
            scenario.profile.cpu_speed = f64::from(speed);
            scenario.profile.cache_bytes = mb << 20;
        })
    })
}

fn cpu_figure(name: &str, title: &str, policy: PolicyName, sweeps: &[Sweep]) -> Figure {
    let line = |(sweep, (speed, mb)): (&Sweep, (u32, u64))| {
        sweep.line(policy, &format!("{speed}x, {mb} MB"), |run| run.throughput)
    };
    Figure {
        name: name.into(),
        title: title.into(),
        x: "nodes".into(),
        y: "requests/s".into(),
        lines: sweeps.iter().zip(SPEEDS).map(line).collect(),
        ..Figure::default()
    }
}

pub(super) fn cpu_wrr(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    let sweeps = by_cpu(lab, Wrr);
    report.findings.figures.push(cpu_figure("cpu-wrr", "WRR and the speed of processors", Wrr, &sweeps));
    // The memory that comes with faster processors helps WRR, too: separated here from the processors' effect.
    let memory_only = Sweep::run(lab, Workload::Rice, &[Wrr], &[16], "96 MB", |scenario| {
        scenario.profile.cache_bytes = 96 << 20;
    });
    let by_memory = memory_only.throughput(Wrr, 16) / sweeps[0].throughput(Wrr, 16);
    let by_both = sweeps[3].throughput(Wrr, 16) / sweeps[0].throughput(Wrr, 16);
    let by_speed = by_both / by_memory;
    report.findings.claims.push(Claim::new(
        "WRR cannot benefit from faster processors, since disks limit it",
        format!(
            "four times the speed: {by_speed:.2} times the throughput; three times the memory, which comes with it: \
             {by_memory:.2} times"
        ),
        by_speed < 1.1,
        "",
    ));
    report.runs = sweeps.into_iter().chain([memory_only]).flat_map(Sweep::into_runs).collect();
    report
}

pub(super) fn cpu_lard(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    let [lard_r, wrr, lard] = [LardR, Wrr, Lard].map(|policy| by_cpu(lab, policy));
    report.findings.figures.push(cpu_figure(
        "cpu-lard",
        "LARD/R and the speed of processors",
        LardR,
        &lard_r,
    ));
    let gain =
        |sweeps: &[Sweep; 4], policy| sweeps[3].throughput(policy, 16) / sweeps[0].throughput(policy, 16);
    let (ours, theirs) = (gain(&lard_r, LardR), gain(&wrr, Wrr));
    report.findings.claims.push(Claim::new(
        "LARD/R capitalizes on faster processors, WRR does not",
        format!("with 16 nodes and four times the speed {ours:.2} times the throughput; WRR {theirs:.2} times"),
        ours > 1.5 && ours > theirs,
        "WRR gains what its larger memory saves; LARD/R's misses are those of targets requested for the first time, which \
         no memory saves",
    ));
    let advantage = |number: usize| {
        100.0 * (lard_r[number].throughput(LardR, 16) / lard[number].throughput(Lard, 16) - 1.0)
    };
    let advantages = [0, 1, 2, 3].map(advantage);
    report.findings.claims.push(Claim::new(
        "the advantage of LARD/R over LARD grows with the speed",
        format!(
            "{:.1}, {:.1}, {:.1}, {:.1} % with 16 nodes",
            advantages[0], advantages[1], advantages[2], advantages[3]
        ),
        advantages[3] > advantages[0],
        "",
    ));
    report.runs = [lard_r, wrr, lard].into_iter().flatten().flat_map(Sweep::into_runs).collect();
    report
}

const DISKS: [u32; 4] = [1, 2, 3, 4];

fn by_disks(lab: &mut Lab<'_>, policy: PolicyName) -> [Sweep; 4] {
    DISKS.map(|disks| {
        Sweep::run(lab, Workload::Rice, &[policy], &NODES, &format!("{disks} disks"), |scenario| {
            scenario.profile.disks = disks;
        })
    })
}

fn disks_figure(name: &str, title: &str, policy: PolicyName, sweeps: &[Sweep]) -> Figure {
    let line =
        |(sweep, disks): (&Sweep, u32)| sweep.line(policy, &format!("{disks} disks"), |run| run.throughput);
    Figure {
        name: name.into(),
        title: title.into(),
        x: "nodes".into(),
        y: "requests/s".into(),
        lines: sweeps.iter().zip(DISKS).map(line).collect(),
        ..Figure::default()
    }
}

pub(super) fn disks_wrr(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    let [wrr, lard_r] = [Wrr, LardR].map(|policy| by_disks(lab, policy));
    report.findings.figures.push(disks_figure("disks-wrr", "WRR and the number of disks", Wrr, &wrr));
    let gain = wrr[3].throughput(Wrr, 16) / wrr[0].throughput(Wrr, 16);
    report.findings.claims.push(Claim::new(
        "WRR greatly benefits from several disks",
        format!("four disks: {gain:.1} times the throughput of one"),
        gain > 2.0,
        "",
    ));
    let near = wrr[3].throughput(Wrr, 16) / lard_r[3].throughput(LardR, 16);
    report.findings.claims.push(Claim::new(
        "with four disks and 16 nodes WRR comes within 15 % of LARD/R",
        format!("{:.0} % of LARD/R with four disks", 100.0 * near),
        near > 0.80,
        "four disks still limit WRR here: its miss ratio on the synthetic trace is higher than four disks serve",
    ));
    report.runs = [wrr, lard_r].into_iter().flatten().flat_map(Sweep::into_runs).collect();
    report
}

pub(super) fn disks_lard(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    let sweeps = by_disks(lab, LardR);
    report.findings.figures.push(disks_figure(
        "disks-lard",
        "LARD/R and the number of disks",
        LardR,
        &sweeps,
    ));
    let gain = |number: usize| {
        100.0 * (sweeps[number].throughput(LardR, 16) / sweeps[number - 1].throughput(LardR, 16) - 1.0)
    };
    report.findings.claims.push(Claim::new(
        "a second disk is a mild gain to LARD/R, more are none",
        format!(
            "{:.1}, {:.1}, {:.1} % by the second, third, fourth disk, with 16 nodes",
            gain(1),
            gain(2),
            gain(3)
        ),
        gain(1) < 30.0 && gain(2) < 4.0 && gain(3) < 4.0 && gain(1) > gain(2),
        "",
    ));
    report.runs = sweeps.into_iter().flat_map(Sweep::into_runs).collect();
    report
}

pub(super) fn cache_tenfold(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    const FACTORS: [u64; 8] = [1, 2, 3, 4, 6, 8, 10, 12];
    let lard = Sweep::run(lab, Workload::Rice, &[Lard], &[10], "32 MB", |_| ());
    let wrr = FACTORS.map(|factor| {
        Sweep::run(lab, Workload::Rice, &[Wrr], &[10], &format!("{} MB", 32 * factor), |scenario| {
            scenario.profile.cache_bytes = (32 << 20) * factor;
        })
    });
    let wrr_points =
        FACTORS.iter().zip(&wrr).map(|(factor, sweep)| (*factor as f64, sweep.throughput(Wrr, 10)));
    let level = lard.throughput(Lard, 10);
    report.findings.figures.push(Figure {
        name: "cache-tenfold".into(),
        title: "WRR with more memory, ten nodes, Rice trace".into(),
        x: "memory of a node, times 32 MB".into(),
        y: "requests/s".into(),
        lines: vec![
            Line::exact("wrr", wrr_points),
            Line::exact("lard, 32 MB", FACTORS.map(|factor| (factor as f64, level))),
        ],
        ..Figure::default()
    });
    let at_tenfold = wrr[6].throughput(Wrr, 10) / level;
    report.findings.claims.push(Claim::new(
        "it takes WRR ten times the memory in each node to match LARD",
        format!(
            "with ten times the memory {:.0} % of LARD, with four times {:.0} %",
            100.0 * at_tenfold,
            100.0 * wrr[3].throughput(Wrr, 10) / level
        ),
        (0.8..1.25).contains(&at_tenfold),
        &format!(
            "with WRR each of the nodes reads each target once, however much memory it has; that alone makes {:.0} % \
             misses here, since most targets are rare",
            100.0 * wrr[7].of(Wrr, 10).miss_ratio
        ),
    ));
    report.runs = wrr.into_iter().chain([lard]).flat_map(Sweep::into_runs).collect();
    report
}

pub(super) fn cache_lru(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    let gds = Sweep::run(lab, Workload::Rice, &POLICIES, &[8], "gds", |_| ());
    let lru = Sweep::run(lab, Workload::Rice, &POLICIES, &[8], "lru", |scenario| {
        scenario.profile.replacement = Replacement::Lru;
    });
    let line = |name: &str, sweep: &Sweep| {
        Line::exact(
            name,
            POLICIES.iter().enumerate().map(|(at, policy)| (at as f64, sweep.throughput(*policy, 8))),
        )
    };
    report.findings.figures.push(Figure {
        name: "cache-lru".into(),
        title: "Node caches by GDS and by LRU, eight nodes, Rice trace".into(),
        kind: FigureKind::Bars,
        x: Axis::named("", POLICIES.map(|policy| policy.to_string()).to_vec()),
        y: "requests/s".into(),
        lines: vec![line("gds", &gds), line("lru", &lru)],
        ..Figure::default()
    });
    let losses = POLICIES.map(|policy| 100.0 * (1.0 - lru.throughput(policy, 8) / gds.throughput(policy, 8)));
    let (least, most) = super::sites::range(losses);
    report.findings.claims.push(Claim::new(
        "with LRU throughput is up to 30 % lower",
        format!("{least:.0} to {most:.0} % lower"),
        (10.0..45.0).contains(&most),
        "",
    ));
    let order = |sweep: &Sweep| {
        let mut order = POLICIES;
        order.sort_by(|a, b| sweep.throughput(*b, 8).total_cmp(&sweep.throughput(*a, 8)));
        order.map(|policy| policy.to_string()).join(" > ")
    };
    let lard_leads = [&gds, &lru].into_iter().all(|sweep| {
        let best = POLICIES.map(|policy| sweep.throughput(policy, 8)).into_iter().fold(0.0, f64::max);
        sweep.throughput(LardR, 8) > 0.97 * best && sweep.throughput(Wrr, 8) < 0.5 * best
    });
    report.findings.claims.push(Claim::new(
        "the relative performance of the policies is largely unaffected",
        format!("GDS: {}; LRU: {}", order(&gds), order(&lru)),
        lard_leads,
        "",
    ));
    report.runs = [gds, lru].into_iter().flat_map(Sweep::into_runs).collect();
    report
}

pub(super) fn today(lab: &mut Lab<'_>, mut report: SimulationReport) -> SimulationReport {
    const POLICIES: [PolicyName; 4] = [LardH, LardR, BoundedHash, Wrr];
    const NODES: [usize; 5] = [1, 2, 4, 8, 16];
    report.findings.words.push(
        "Nodes of the profile nvme with 256 MB for files, and a site of 120,000 files and 4 GB by Zipf's law (0.8), \
         memory warm: the proportions of a site of hundreds of gigabytes on nodes with tens. A read costs a hundred \
         microseconds, not thirty milliseconds; memory still matters, less."
            .into(),
    );
    let zipf = Zipf { targets: 120_000, alpha: 0.8, kb: 34.0, requests: 2_000_000 };
    let sweep = Sweep::run(lab, Workload::Zipf(zipf), &POLICIES, &NODES, "nvme", |scenario| {
        scenario.profile = NodeProfile { cache_bytes: 256 << 20, ..NodeProfile::nvme() };
        scenario.measured_from = 0.5;
    });
    report
        .findings
        .figures
        .push(sweep.figure("today", "Throughput, nodes of today", "requests/s", |run| run.throughput));
    let gain = |policy| sweep.throughput(policy, 8) / sweep.throughput(Wrr, 8);
    report.findings.words.push(format!(
        "With eight nodes, LARD/R does {:.2} times what WRR does, bounded hashing {:.2} times, LARD/H {:.2} times; \
         misses are {:.0} % (WRR) and {:.0} % (LARD/R).",
        gain(LardR),
        gain(BoundedHash),
        gain(LardH),
        100.0 * sweep.of(Wrr, 8).miss_ratio,
        100.0 * sweep.of(LardR, 8).miss_ratio
    ));
    report.runs = sweep.into_runs();
    report
}
