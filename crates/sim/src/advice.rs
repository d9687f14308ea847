//! How many nodes, how much memory, and which policy a site needs: in plain words.
//!
//! The log contains the site's peak requests per second. For each policy and several sizes of memory, this finds the
//! smallest cluster with that throughput when memory is warm, then adds spare nodes.

use baton_dispatch::PolicyName::{self, BoundedHash, LardH, LeastConnections};

use crate::model::{NODES_MAX, Scenario};
use crate::report::{Figure, Line, Report, Run, brief};
use crate::runner::Runner;
use crate::trace::{LogSummary, Statistics, Trace};

/// Requirements on the cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    /// Required requests per second, above 0.
    pub per_s: f64,
    /// How many nodes may fail meanwhile.
    pub spare: usize,
}

impl Wish {
    /// The busiest second of the log, times a factor for growth.
    #[must_use]
    pub fn from_log(summary: &LogSummary, growth: f64, spare: usize) -> Self {
        Self { per_s: (summary.busiest_second as f64 * growth).max(1.0), spare }
    }
}

/// The policies compared: by load, by the usual hashing, and our own.
const POLICIES: [PolicyName; 3] = [LeastConnections, BoundedHash, LardH];
/// Memory of a node, as a share of the profile's.
const MEMORY: [f64; 5] = [0.0625, 0.25, 1.0, 4.0, 16.0];
/// The profile's own.
const MEMORY_AS_IT_IS: usize = 2;

/// How many nodes it takes; none if not even this many are enough.
type Needed = Option<usize>;
const NEEDED_MAX: usize = 256;

/// Gives advice for a site whose requests are these, on nodes as in `scenario`.
#[must_use]
pub fn advise(runner: Runner<'_>, trace: &Trace, scenario: &Scenario, wish: Wish) -> Report {
    let statistics = Statistics::of(trace);
    let mut report =
        Report { name: "advise".into(), title: format!("a cluster for {}", trace.name), ..Report::default() };
    let mut lines = POLICIES.map(|policy| Line { name: policy.to_string(), points: Vec::new() });
    let mut needed = [[None; POLICIES.len()]; MEMORY.len()];
    for (row, factor) in MEMORY.into_iter().enumerate() {
        for (column, policy) in POLICIES.into_iter().enumerate() {
            let mut base = Scenario { policy, measured_from: 0.5, ..scenario.clone() };
            base.profile.cache_bytes = (scenario.profile.cache_bytes as f64 * factor) as u64;
            let memory = size(base.profile.cache_bytes);
            let (nodes, runs) = smallest(runner, trace, &base, wish, &format!("{policy}, {memory} a node"));
            report.runs.extend(runs);
            needed[row][column] = nodes;
            if let Some(nodes) = nodes {
                let mb = base.profile.cache_bytes as f64 / f64::from(1 << 20);
                lines[column].points.push((mb, (nodes + wish.spare) as f64));
            }
        }
    }
    report.words = words(&statistics, scenario, wish, &needed);
    report.figures.push(Figure {
        name: "advise".into(),
        title: format!("Nodes for {} requests/s", brief(wish.per_s)),
        x: "memory for files in each node, MB".into(),
        y: "nodes".into(),
        x_is_logarithmic: true,
        lines: lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
        ..Figure::default()
    });
    report.statistics = Some(statistics);
    report
}

/// The smallest cluster that meets the requirements, without spare nodes, and the runs of the search.
fn smallest(
    runner: Runner<'_>,
    trace: &Trace,
    base: &Scenario,
    wish: Wish,
    what: &str,
) -> (Needed, Vec<Run>) {
    let mut runs = Vec::new();
    let mut is_enough = |nodes: usize| {
        let scenario = Scenario { weights: vec![baton_dispatch::STANDARD_WEIGHT; nodes], ..base.clone() };
        let outcome = runner.run(what, &[(trace, &scenario)]).remove(0);
        let is_enough = outcome.throughput >= wish.per_s;
        runs.push(Run { variant: what.to_owned(), outcome });
        is_enough
    };
    // Doubled until it is enough, then halved the difference.
    let mut enough = 1;
    while !is_enough(enough) {
        enough *= 2;
        if enough > NEEDED_MAX.min(NODES_MAX) {
            return (None, runs);
        }
    }
    let mut too_few = enough / 2;
    while enough - too_few > 1 {
        let middle = usize::midpoint(enough, too_few);
        if is_enough(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    (Some(enough), runs)
}

fn words(
    statistics: &Statistics,
    scenario: &Scenario,
    wish: Wish,
    needed: &[[Needed; POLICIES.len()]; MEMORY.len()],
) -> Vec<String> {
    let cache_bytes = scenario.profile.cache_bytes;
    let memory = |row: usize| size((cache_bytes as f64 * MEMORY[row]) as u64);
    let mut words = vec![site(statistics)];

    let [plain, _, ours] = needed[MEMORY_AS_IT_IS];
    let nodes = |needed: Needed| needed.map(|nodes| nodes + wish.spare);
    let spare = match wish.spare {
        0 => String::new(),
        1 => ", one of which may fail".into(),
        many => format!(", {many} of which may fail"),
    };
    words.push(match (nodes(plain), nodes(ours)) {
        (Some(plain), Some(ours)) => format!(
            "For {} requests a second on nodes with {} for files, you need {ours} with lard-h{spare}, {plain} with \
             least-connections.",
            brief(wish.per_s),
            memory(MEMORY_AS_IT_IS)
        ),
        _ => format!(
            "Not even {NEEDED_MAX} nodes do {} requests a second with every policy: see the figure for those that do.",
            brief(wish.per_s)
        ),
    });
    words.push(policy_advice(statistics, cache_bytes, plain, ours));
    if let Some(advice) = memory_advice(needed, wish, &memory) {
        words.push(advice);
    }
    words.push(
        "The log is replayed as fast as the cluster takes it, and its second half is measured, so that memory is \
         warm. Costs are those of the node profile: measure your own, and give them with --set."
            .into(),
    );
    words
}

/// The site in a sentence or two.
fn site(statistics: &Statistics) -> String {
    let covering = |share: f64| statistics.bytes_covering(share).map_or_else(|| "nothing".into(), size);
    let dynamic = 100.0 * statistics.dynamic_requests as f64 / statistics.requests.max(1) as f64;
    let programs = if dynamic >= 1.0 {
        format!(
            " {dynamic:.0} % of the requests seem to be answered by applications, which memory for files does not help."
        )
    } else {
        String::new()
    };
    format!(
        "{} requests for {} targets, {} of files. {} hold the targets of 90 % of the requests, {} those of 99 %; the \
         most frequent target gets {:.1} % of them.{programs}",
        brief(statistics.requests as f64),
        brief(statistics.targets as f64),
        size(statistics.bytes),
        covering(0.9),
        covering(0.99),
        100.0 * statistics.hottest_share
    )
}

fn policy_advice(statistics: &Statistics, cache_bytes: u64, plain: Needed, ours: Needed) -> String {
    let working_set = statistics.bytes_covering(0.99).unwrap_or(0);
    match (plain, ours) {
        (Some(1), Some(1)) => "One node is enough: there is nothing to distribute, except to a spare one.".into(),
        (Some(plain), Some(ours)) if ours < plain => format!(
            "Let the front-end look at targets (lard-h): {} of files do not fit into the {} of one node, and together \
             the nodes have room.",
            size(working_set),
            size(cache_bytes)
        ),
        (Some(_), Some(_)) if working_set <= cache_bytes => format!(
            "Any policy will do: the targets of 99 % of the requests ({}) fit into each node's memory ({}).",
            size(working_set),
            size(cache_bytes)
        ),
        (Some(_), Some(_)) => "Any policy will do: reading from the disk costs these nodes little.".into(),
        (None, Some(_)) => "Only a policy that looks at targets does it with a sensible number of nodes: lard-h.".into(),
        _ => "Take faster nodes, or fewer requests on each: applications or disks are the limit, not distribution.".into(),
    }
}

/// Whether more or less memory changes the number of nodes.
fn memory_advice(
    needed: &[[Needed; POLICIES.len()]; MEMORY.len()],
    wish: Wish,
    memory: &dyn Fn(usize) -> String,
) -> Option<String> {
    let ours = |row: usize| needed[row][POLICIES.len() - 1];
    let now = ours(MEMORY_AS_IT_IS)?;
    let least = (0..MEMORY_AS_IT_IS).find(|&row| ours(row) == Some(now));
    let more = (MEMORY_AS_IT_IS + 1..MEMORY.len()).find(|&row| ours(row).is_some_and(|nodes| nodes < now));
    Some(match (least, more) {
        (_, Some(row)) => {
            format!("With {} a node, {} nodes are enough.", memory(row), ours(row)? + wish.spare)
        }
        (Some(row), None) => {
            format!("{} a node are enough for the same number of nodes; more change nothing.", memory(row))
        }
        (None, None) => "Less memory takes more nodes; more memory saves none.".into(),
    })
}

/// Bytes as people say them.
fn size(bytes: u64) -> String {
    let units = ["bytes", "KB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(value < 10.0 && unit > 0);
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Zipf;

    fn advice(targets: u32, per_s: f64, spare: usize) -> Report {
        let trace = Zipf { targets, alpha: 0.8, kb: 16.0, requests: 20_000 }.trace(1);
        let scenario = Scenario::published(PolicyName::Wrr, 1);
        advise(Runner::new(2, &|_, _| ()), &trace, &scenario, Wish { per_s, spare })
    }

    fn nodes(report: &Report, policy: &str, mb: f64) -> f64 {
        let line =
            report.figures[0].lines.iter().find(|line| line.name == policy).expect("the policy is a line");
        line.points.iter().find(|point| point.0 == mb).expect("the size of memory is a point").1
    }

    /// 60 files of 16 KB fit into every node: some 650 requests a second each, under any policy.
    #[test]
    fn a_small_site_needs_processors_only() {
        let report = advice(60, 1900.0, 1);
        for policy in ["least-connections", "lard-h"] {
            assert_eq!(nodes(&report, policy, 32.0), 4.0, "{policy}: three, and one to spare");
        }
        assert!(
            report.words.iter().any(|words| words.starts_with("Any policy will do")),
            "{:?}",
            report.words
        );
    }

    /// 128 MB of files do not fit into 32 MB, but into those of several nodes.
    #[test]
    fn a_large_site_needs_memory_together() {
        let report = advice(8000, 1000.0, 0);
        assert!(nodes(&report, "lard-h", 32.0) < nodes(&report, "least-connections", 32.0));
        assert!(report.words.iter().any(|words| words.contains("look at targets")), "{:?}", report.words);
    }

    #[test]
    fn sizes_are_said_as_people_do() {
        let cases = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KB"),
            (32 << 20, "32 MB"),
            (1 << 42, "4.0 TB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(size(bytes), expected);
        }
    }
}
