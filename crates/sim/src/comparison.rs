//! Policies side by side on one trace.

use baton_dispatch::PolicyName;
use baton_figures::{Figure, Line, Report};

use crate::model::{Outcome, Scenario};
use crate::report::{Run, SimulationReport};
use crate::runner::Runner;
use crate::trace::{Statistics, Trace};

/// Runs each policy with each number of nodes; all else is as in `scenario`.
#[must_use]
pub fn compare(
    runner: Runner<'_>,
    trace: &Trace,
    scenario: &Scenario,
    policies: &[PolicyName],
    nodes: &[usize],
) -> SimulationReport {
    let weight = scenario.weights.first().copied().unwrap_or(baton_dispatch::STANDARD_WEIGHT);
    let each = |policy, nodes| {
        // A list of weights defines the cluster; a single weight applies to each node.
        let weights = if scenario.weights.len() > 1 { scenario.weights.clone() } else { vec![weight; nodes] };
        Scenario { policy, weights, ..scenario.clone() }
    };
    let scenarios: Vec<Scenario> =
        policies.iter().flat_map(|&policy| nodes.iter().map(move |&nodes| each(policy, nodes))).collect();
    let todo: Vec<_> = scenarios.iter().map(|scenario| (trace, scenario)).collect();
    let outcomes = runner.run(&trace.name, &todo);

    let figure = |name: &str, title: &str, y: &str, value: &dyn Fn(&Outcome) -> f64| {
        let line = |(policy, outcomes): (&PolicyName, &[Outcome])| {
            Line::exact(
                policy.to_string(),
                outcomes.iter().map(|outcome| (outcome.nodes as f64, value(outcome))),
            )
        };
        Figure {
            name: name.into(),
            title: format!("{title}, {}", trace.name),
            x: "nodes".into(),
            y: y.into(),
            lines: policies.iter().zip(outcomes.chunks(nodes.len().max(1))).map(line).collect(),
            ..Figure::default()
        }
    };
    let figures = vec![
        figure("throughput", "Throughput", "requests/s", &|outcome| outcome.throughput),
        figure("misses", "Cache misses", "% of requests", &|outcome| 100.0 * outcome.miss_ratio),
        figure("idle", "Idle time", "% of time", &|outcome| 100.0 * outcome.idle),
        figure("delay", "Mean delay", "ms", &|outcome| outcome.delay.mean_ms),
        figure("delay-p99", "What 99 % of the delays do not exceed", "ms", &|outcome| outcome.delay.p99_ms),
        figure("reassignments", "Targets moved or replicated", "times", &|outcome| {
            outcome.reassignments as f64
        }),
    ];
    let unanswered: u64 = outcomes.iter().map(|outcome| outcome.unanswered).sum();
    let words = match unanswered {
        0 => Vec::new(),
        _ => vec![format!("{unanswered} requests found no node until the end of their runs.")],
    };
    let findings = Report {
        name: "compare".into(),
        title: format!("policies on {}", trace.name),
        words,
        figures,
        ..Report::default()
    };
    SimulationReport {
        findings,
        statistics: Some(Statistics::of(trace)),
        runs: outcomes.into_iter().map(|outcome| Run { variant: String::new(), outcome }).collect(),
        ..SimulationReport::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Zipf;

    #[test]
    fn each_policy_is_a_line_and_each_run_a_row() {
        let trace = Zipf { targets: 50, requests: 500, ..Zipf::default() }.trace(1);
        let scenario = Scenario::published(PolicyName::Wrr, 1);
        let policies = [PolicyName::Wrr, PolicyName::LardR];
        let report = compare(Runner::new(1, &|_, _| ()), &trace, &scenario, &policies, &[1, 3]);
        assert_eq!(report.runs.len(), 4);
        assert_eq!(report.to_csv().lines().count(), 5);
        for (line, policy) in report.findings.figures[0].lines.iter().zip(policies) {
            assert_eq!(line.name, policy.as_str());
            assert_eq!(line.points.iter().map(|point| point.x).collect::<Vec<_>>(), [1.0, 3.0]);
        }
    }
}
