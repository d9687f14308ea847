//! The numbers behind the figures, as tables.

use baton_figures::{Table, brief};

use super::contents::{Run, SimulationReport};
use crate::trace::{Fit, Statistics};

pub(super) fn tables(report: &SimulationReport) -> Vec<Table> {
    let fits = report.fits.iter().map(of_fit);
    let statistics = report.statistics.iter().map(of_statistics);
    let runs = (!report.runs.is_empty()).then(|| of_runs(&report.runs));
    fits.chain(statistics).chain(runs).collect()
}

fn of_fit(fit: &Fit) -> Table {
    let row = |what: &str, published, ours| vec![what.to_owned(), brief(published), brief(ours)];
    Table {
        head: vec![format!("trace {}", fit.trace), "published".into(), "ours".into()],
        rows: fit.points.iter().map(|point| row(&point.what, point.published, point.ours)).collect(),
        note: format!("Assumed: {}.", fit.assumed),
        ..Table::default()
    }
}

fn of_statistics(statistics: &Statistics) -> Table {
    let row = |share: f64, bytes: u64| {
        vec![format!("{:.0} %", 100.0 * share), brief(bytes as f64 / f64::from(1 << 20))]
    };
    Table {
        head: vec!["requests for files that".into(), "MiB of memory cover".into()],
        rows: statistics.coverage.iter().map(|point| row(point.share, point.bytes)).collect(),
        ..Table::default()
    }
}

fn of_runs(runs: &[Run]) -> Table {
    let head = [
        "trace",
        "variant",
        "policy",
        "nodes",
        "requests/s",
        "misses, %",
        "idle, %",
        "processors, %",
        "disks, %",
        "delay, ms",
        "99 % within, ms",
        "reassigned",
    ];
    let row = |run: &Run| {
        let outcome = &run.outcome;
        let values = [
            outcome.throughput,
            100.0 * outcome.miss_ratio,
            100.0 * outcome.idle,
            100.0 * outcome.cpu_busy,
            100.0 * outcome.disk_busy,
            outcome.delay.mean_ms,
            outcome.delay.p99_ms,
            outcome.reassignments as f64,
        ];
        let labels = [&outcome.trace, &run.variant, &outcome.policy].map(Clone::clone);
        labels.into_iter().chain([outcome.nodes.to_string()]).chain(values.map(brief)).collect()
    };
    Table {
        title: "All numbers".into(),
        head: head.map(str::to_owned).to_vec(),
        rows: runs.iter().map(row).collect(),
        is_long: true,
        ..Table::default()
    }
}
