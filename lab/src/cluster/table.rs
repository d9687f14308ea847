//! What was measured, as lines and as a table.

use std::fmt;

use super::prediction::ServiceTimes;
use super::settings::ClusterBounds;
use crate::markdown::{begin_table, failed_row, number, row, spread};
use crate::stats::{median, paired_ratio};

/// The conditions of a comparison.
pub(super) struct Conditions {
    pub(super) trace: String,
    pub(super) machine: String,
    pub(super) cluster: ClusterBounds,
    pub(super) files: usize,
    pub(super) content_bytes: u64,
    /// What a node has of it in memory at most.
    pub(super) file_bytes: u64,
    pub(super) times: ServiceTimes,
    pub(super) seconds: f64,
    pub(super) warm_up_seconds: f64,
}

/// One front-end, measured once.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) front: String,
    pub(super) round: usize,
    pub(super) outcome: Result<Figures, String>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) warm_up_requests: u64,
    pub(super) requests: u64,
    pub(super) requests_per_second: f64,
    pub(super) megabytes_per_second: f64,
    /// Bytes from the nodes' disks, as a part of those that clients got. Above 1 where more is read than is asked for.
    pub(super) disk_share: f64,
    /// Bytes that the node sent that sent most, as a multiple of the mean.
    pub(super) imbalance: Option<f64>,
    /// CPU time of the front-end.
    pub(super) front_us_per_request: f64,
    pub(super) front_us_per_megabyte: f64,
    /// Bytes into and out of the front-end, as a multiple of those that clients got.
    pub(super) front_share: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// What the simulator says.
    pub(super) simulated_per_second: Option<f64>,
    pub(super) simulated_misses: Option<f64>,
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.round + 1, self.front)?;
        match &self.outcome {
            Ok(figures) => write!(
                f,
                "{:.0} requests/s, {:.1} MB/s, of it {:.2} from disks, busiest {}, p50 {:.1} ms, p99 {:.1} ms",
                figures.requests_per_second,
                figures.megabytes_per_second,
                figures.disk_share,
                number(figures.imbalance, 2),
                figures.p50_ms,
                figures.p99_ms
            ),
            Err(why) => write!(f, "FAILED: {why}"),
        }
    }
}

/// The table. Below it, the ratios of the best of our policies to the others, to HAProxy last.
pub(super) fn markdown(
    conditions: &Conditions,
    turns: &[Turn],
    ours: &[String],
    others: &[String],
) -> String {
    let cluster = &conditions.cluster;
    let mut text = format!(
        "## {}\n\n{}. {} nodes with {:.0} % of a CPU, {} MiB of memory, of which files get {} MB, and {} MB/s of disk each; {} \
         files, {} MB; {} connections, {} s after {} s of warming up. A node alone takes {}. \
         Medians; ratios are medians of those within a round.\n\n",
        conditions.trace,
        conditions.machine,
        cluster.nodes,
        cluster.node_cpus * 100.0,
        cluster.memory_mib,
        conditions.file_bytes / 1_000_000,
        cluster.disk_mb_per_s,
        conditions.files,
        conditions.content_bytes / 1_000_000,
        cluster.connections,
        conditions.seconds,
        conditions.warm_up_seconds,
        conditions.times,
    );
    begin_table(&mut text, "front-end", &COLUMNS);
    let reference = ours.first().or(others.first());
    let base = reference.map(|name| rates(turns, name)).unwrap_or_default();
    for name in ours.iter().chain(others) {
        let of_front: Vec<_> = turns.iter().filter(|turn| turn.front == *name).collect();
        let measured: Vec<_> = of_front.iter().filter_map(|turn| turn.outcome.as_ref().ok()).collect();
        if measured.is_empty() {
            let why = of_front.iter().find_map(|turn| turn.outcome.as_ref().err());
            failed_row(&mut text, name, why.map_or("not measured", String::as_str));
            continue;
        }
        let values = |of: fn(&Figures) -> f64| measured.iter().map(|figures| of(figures)).collect::<Vec<_>>();
        let middle = |of: fn(&Figures) -> f64, digits| number(median(&values(of)), digits);
        let simulated = |of: fn(&Figures) -> Option<f64>, digits| {
            let values: Vec<_> = measured.iter().filter_map(|figures| of(figures)).collect();
            number(median(&values), digits)
        };
        let imbalance: Vec<_> = measured.iter().filter_map(|figures| figures.imbalance).collect();
        let fields = [
            middle(|it| it.requests_per_second, 0),
            number(paired_ratio(&rates(turns, name), &base), 2),
            middle(|it| it.megabytes_per_second, 1),
            middle(|it| it.disk_share, 2),
            number(median(&imbalance), 2),
            middle(|it| it.p50_ms, 1),
            middle(|it| it.p99_ms, 1),
            middle(|it| it.front_us_per_request, 1),
            middle(|it| it.front_us_per_megabyte, 0),
            middle(|it| it.front_share, 2),
            spread(&values(|it| it.requests_per_second)),
            simulated(|it| it.simulated_per_second, 0),
            simulated(|it| it.simulated_per_second.map(|rate| rate / it.requests_per_second), 2),
            simulated(|it| it.simulated_misses, 2),
        ];
        row(&mut text, name, &fields);
    }
    let rate_of = |name: &String| {
        let rates: Vec<_> = rates(turns, name).iter().map(|(_, rate)| *rate).collect();
        median(&rates).map(|rate| (rate, name.clone()))
    };
    if let Some((_, best)) = ours.iter().filter_map(rate_of).max_by(|a, b| a.0.total_cmp(&b.0)) {
        text.push('\n');
        // HAProxy comes last, whatever the order.
        for other in others
            .iter()
            .filter(|other| *other != "haproxy")
            .chain(others.iter().filter(|other| *other == "haproxy"))
        {
            if let Some(ratio) = paired_ratio(&rates(turns, &best), &rates(turns, other)) {
                text += &format!("{}: throughput of {best} to {other}: {ratio:.2}\n", conditions.trace);
            }
        }
    }
    text
}

/// Requests per second of a front-end, by round.
fn rates(turns: &[Turn], name: &str) -> Vec<(usize, f64)> {
    let of_front = turns.iter().filter(|turn| turn.front == name);
    of_front.filter_map(|turn| Some((turn.round, turn.outcome.as_ref().ok()?.requests_per_second))).collect()
}

const COLUMNS: [&str; 14] = [
    "requests/s",
    "to the first",
    "MB/s",
    "from disks",
    "busiest node",
    "p50 ms",
    "p99 ms",
    "front-end µs/request",
    "µs/MB",
    "bytes there",
    "spread",
    "simulated/s",
    "to measured",
    "misses",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_compares_the_best_of_both() {
        let turn = |front: &str, round, rate| {
            let figures = Figures {
                warm_up_requests: 10,
                requests: 10,
                requests_per_second: rate,
                megabytes_per_second: 1.0,
                disk_share: 0.5,
                imbalance: None,
                front_us_per_request: 30.0,
                front_us_per_megabyte: 900.0,
                front_share: 2.0,
                simulated_per_second: Some(90.0),
                simulated_misses: None,
                p50_ms: 1.0,
                p99_ms: 2.0,
            };
            Turn { front: front.into(), round, outcome: Ok(figures) }
        };
        let turns = [
            turn("wrr", 0, 100.0),
            turn("lard-r", 0, 300.0),
            turn("haproxy", 0, 200.0),
            turn("wrr", 1, 110.0),
            turn("lard-r", 1, 330.0),
            turn("haproxy", 1, 220.0),
        ];
        let conditions = Conditions {
            trace: "mix".into(),
            machine: "a machine".into(),
            cluster: ClusterBounds {
                nodes: 6,
                node_cpus: 0.05,
                memory_mib: 40,
                disk_mb_per_s: 4.0,
                read_ahead_kb: 128,
                content_mb: 200,
                connections: 128,
            },
            files: 1000,
            content_bytes: 200_000_000,
            file_bytes: 35_000_000,
            times: ServiceTimes { request_us: 500.0, us_per_512: 1.0, disk_bytes_per_s: 4e6 },
            seconds: 5.0,
            warm_up_seconds: 10.0,
        };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let text = markdown(&conditions, &turns, &names(&["wrr", "lard-r"]), &names(&["haproxy", "nginx"]));
        assert!(text.ends_with("\nmix: throughput of lard-r to haproxy: 1.50\n"), "{text}");
        assert!(
            text.contains("| lard-r | 315 | 3.00 |") && text.contains("| nginx | failed: not measured |")
        );
    }
}
