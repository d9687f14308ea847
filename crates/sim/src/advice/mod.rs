//! How many nodes, how much memory, and which policy a site needs: in plain words.
//!
//! The log contains the site's peak requests per second. For each policy and several sizes of memory, this finds the
//! smallest cluster with that throughput when memory is warm ([`replay`]), then adds spare nodes. With memory as it is,
//! several replays have to agree: else the log is too short, and that is the answer.

mod replay;
mod search;
mod wish;
mod words;

use baton_dispatch::PolicyName::{LardH, LeastConnections};
use baton_figures::{Axis, Figure, Line, Report, brief};

use self::replay::{Half, Replay, Unmatched};
use self::search::{NodeRange, Search};
pub use self::wish::Wish;
use self::wish::{MEMORY, MEMORY_AS_IT_IS, POLICIES, REQUESTS_MIN};
use self::words::{Findings, hardly_any_log, size};
use crate::model::Scenario;
use crate::report::{Run, SimulationReport};
use crate::runner::Runner;
use crate::trace::{Statistics, Trace};

/// Gives advice for a site whose requests are these, on nodes as in `scenario`.
#[must_use]
pub fn advise(runner: Runner<'_>, trace: &Trace, scenario: &Scenario, wish: Wish) -> SimulationReport {
    let statistics = Statistics::of(trace);
    let findings =
        Report { name: "advise".into(), title: format!("a cluster for {}", trace.name), ..Report::default() };
    let mut report = SimulationReport { findings, ..SimulationReport::default() };
    if statistics.requests < REQUESTS_MIN {
        report.findings.words = hardly_any_log(&statistics);
        report.statistics = Some(statistics);
        return report;
    }
    let replay = Replay::new(trace);
    let cache_bytes = scenario.profile.cache_bytes;
    let mut search = |what: &str, searches: &[Search]| -> Vec<Option<usize>> {
        let found = runner.each(
            what,
            searches,
            |_| 1,
            |search, done| {
                let found = search.run(&replay, scenario, wish.per_s, &described(search));
                done(1);
                found
            },
        );
        let (needed, runs): (Vec<_>, Vec<Vec<Run>>) = found.into_iter().unzip();
        report.runs.extend(runs.into_iter().flatten());
        needed
    };

    let bounds = |policy| {
        [(Half::Second, Unmatched::New), (Half::First, Unmatched::New)]
            .into_iter()
            .chain([(Half::Second, Unmatched::Known), (Half::First, Unmatched::Known)])
            .map(move |(half, unmatched)| Search { policy, cache_bytes, half, unmatched })
    };
    let found =
        search("both halves of the log", &bounds(LeastConnections).chain(bounds(LardH)).collect::<Vec<_>>());
    let (plain, ours) = found.split_at(found.len() / 2);
    // What the figure shows: the second half, unmatched targets new.
    let (plain_shown, ours_shown) = (plain[0], ours[0]);
    let (plain, ours) = (NodeRange::of(plain), NodeRange::of(ours));
    let findings = Findings { statistics: &statistics, replay: &replay, wish, cache_bytes, plain, ours };
    if !ours.is_an_answer() {
        report.findings.words = findings.too_short();
        report.statistics = Some(statistics);
        return report;
    }

    let places = || (0..MEMORY.len()).flat_map(|row| (0..POLICIES.len()).map(move |column| (row, column)));
    let is_known = |&(row, column): &(usize, usize)| {
        row == MEMORY_AS_IT_IS && [LeastConnections, LardH].contains(&POLICIES[column])
    };
    let open: Vec<_> = places().filter(|place| !is_known(place)).collect();
    let searches = open.iter().map(|&(row, column)| Search {
        policy: POLICIES[column],
        cache_bytes: (cache_bytes as f64 * MEMORY[row]) as u64,
        half: Half::Second,
        unmatched: Unmatched::New,
    });
    let searches: Vec<_> = searches.collect();
    let mut needed = [[None; POLICIES.len()]; MEMORY.len()];
    for ((row, column), nodes) in open.into_iter().zip(search("less and more memory", &searches)) {
        needed[row][column] = nodes;
    }
    needed[MEMORY_AS_IT_IS][0] = plain_shown;
    needed[MEMORY_AS_IT_IS][POLICIES.len() - 1] = ours_shown;
    report.findings.words = findings.answer(&needed);
    report.findings.figures.push(figure(&needed, cache_bytes, wish));
    report.statistics = Some(statistics);
    report
}

fn described(search: &Search) -> String {
    let half = if search.half == Half::First { "first" } else { "second" };
    let unmatched = if search.unmatched == Unmatched::New { "new" } else { "known" };
    format!(
        "{}, {} a node, {half} half, targets of this half alone {unmatched}",
        search.policy,
        size(search.cache_bytes)
    )
}

fn figure(needed: &[[Option<usize>; POLICIES.len()]; MEMORY.len()], cache_bytes: u64, wish: Wish) -> Figure {
    let mut lines: [(String, Vec<(f64, f64)>); POLICIES.len()] =
        POLICIES.map(|policy| (policy.to_string(), Vec::new()));
    for (row, factor) in MEMORY.into_iter().enumerate() {
        for ((_, points), nodes) in lines.iter_mut().zip(needed[row]) {
            if let Some(nodes) = nodes {
                let mib = cache_bytes as f64 * factor / f64::from(1 << 20);
                points.push((mib, (nodes + wish.spare) as f64));
            }
        }
    }
    Figure {
        name: "advise".into(),
        title: format!("Nodes for {} requests/s", brief(wish.per_s)),
        x: Axis::logarithmic("memory for files in each node, MiB", ""),
        y: "nodes".into(),
        lines: lines
            .into_iter()
            .filter(|(_, points)| !points.is_empty())
            .map(|(name, points)| Line::exact(name, points))
            .collect(),
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use baton_dispatch::PolicyName;
    use baton_figures::Datum;

    use super::*;
    use crate::trace::Zipf;

    fn advice_for(trace: &Trace, per_s: f64, spare: usize) -> SimulationReport {
        let scenario = Scenario::published(PolicyName::Wrr, 1);
        advise(Runner::new(2, &|_, _| ()), trace, &scenario, Wish { per_s, spare })
    }

    fn advice(targets: u32, per_s: f64, spare: usize) -> SimulationReport {
        advice_for(&Zipf { targets, alpha: 0.8, kb: 16.0, requests: 80_000 }.trace(1), per_s, spare)
    }

    fn nodes(report: &SimulationReport, policy: &str, mib: f64) -> f64 {
        let line = report.findings.figures[0]
            .lines
            .iter()
            .find(|line| line.name == policy)
            .expect("the policy is a line");
        line.at(mib).and_then(Datum::number).expect("the size of memory is a point").median
    }

    /// 60 files of 16 KB fit into every node: some 650 requests a second each, under any policy.
    #[test]
    fn a_small_site_needs_processors_only() {
        let report = advice(60, 1900.0, 1);
        for policy in ["least-connections", "lard-h"] {
            assert_eq!(nodes(&report, policy, 32.0), 4.0, "{policy}: three, and one to spare");
        }
        assert!(
            report.findings.words.iter().any(|words| words.starts_with("Any policy will do")),
            "{:?}",
            report.findings.words
        );
        let bandwidth = report.findings.words.iter().find(|words| words.starts_with("Networks cost nothing"));
        let bandwidth = bandwidth.expect("what the answer implies");
        assert!(
            bandwidth.contains("1,900 requests a second are 2") && bandwidth.contains(" for each of 3 nodes"),
            "{bandwidth}"
        );
    }

    /// 128 MB of files do not fit into 32 MB, but into those of several nodes.
    #[test]
    fn a_large_site_needs_memory_together() {
        let report = advice(8000, 1000.0, 0);
        assert!(nodes(&report, "lard-h", 32.0) < nodes(&report, "least-connections", 32.0));
        assert!(
            report.findings.words.iter().any(|words| words.contains("look at targets")),
            "{:?}",
            report.findings.words
        );
    }

    /// The numbers of nodes with lard-h and with least-connections that the words name; none if the log is too short.
    fn told(report: &SimulationReport) -> Option<[(usize, usize); 2]> {
        if report.findings.words.iter().any(|words| words.starts_with("This log is too short")) {
            assert!(report.findings.figures.is_empty());
            return None;
        }
        let words =
            report.findings.words.iter().find(|words| words.contains("you need ")).expect("an answer");
        let (_, answer) = words.split_once("you need ").expect("an answer");
        let numbers = |part: &str| {
            let numbers: Vec<usize> = part
                .split_whitespace()
                .map_while(|word| match word {
                    "to" => Some(None),
                    word => Some(Some(word.parse().ok()?)),
                })
                .flatten()
                .collect();
            (numbers[0], *numbers.last().expect("a number"))
        };
        let (ours, plain) = answer.split_once("with lard-h, ").expect("both");
        Some([numbers(ours), numbers(plain)])
    }

    /// Goal: the length of a log changes whether there is an answer, and not the answer. Method: parts of logs from 500
    /// to 120,000 requests, of a site that fits into a node's memory, and of one that fits into that of several nodes.
    #[test]
    fn parts_of_a_log_get_the_same_answer_or_none() {
        for (targets, per_s) in [(300, 2000.0), (8_000, 1000.0)] {
            let whole = Zipf { targets, alpha: 0.8, kb: 16.0, requests: 120_000 }.trace(1);
            let mut answers = Vec::new();
            for requests in [500, 10_000, 40_000, 120_000] {
                let report = advice_for(&whole.prefix(requests), per_s, 0);
                answers.extend(told(&report).map(|answer| (requests, answer)));
            }
            assert_eq!(
                answers.last().map(|answer| answer.0),
                Some(120_000),
                "{targets}: the whole is enough"
            );
            for policy in [0, 1] {
                let least = answers.iter().map(|(_, answer)| answer[policy].0).max();
                let most = answers.iter().map(|(_, answer)| answer[policy].1).min();
                assert!(least <= most, "{targets}: answers have to agree: {answers:?}");
            }
            assert!(answers.iter().all(|(requests, _)| *requests > 500));
        }
    }
}
