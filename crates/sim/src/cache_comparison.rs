//! Cache policies side by side on one workload.

use baton_figures::{Axis, Figure, Line, Report};
use baton_segment::policy::PolicyChoice;

use crate::caching::{CacheOutcome, CacheScenario, Workload, replay};
use crate::report::SimulationReport;
use crate::runner::Runner;

/// Runs each policy with each size, a share of the bytes of all objects above 0.
#[must_use]
pub fn compare_caches(
    runner: Runner<'_>,
    workload: &Workload,
    scenario: &CacheScenario,
    policies: &[PolicyChoice],
    shares: &[f64],
) -> SimulationReport {
    let each = |policy, share: f64| {
        let bytes_max = ((workload.bytes() as f64 * share) as u64).max(1);
        scenario.with(policy, bytes_max)
    };
    let scenarios: Vec<CacheScenario> =
        policies.iter().flat_map(|&policy| shares.iter().map(move |&share| each(policy, share))).collect();
    let outcomes = runner.each(
        &workload.name,
        &scenarios,
        |_| workload.requests(),
        |scenario, so_far| replay(scenario, workload, so_far),
    );
    let figure = |name: &str, title: &str, y: &str, value: fn(&CacheOutcome) -> f64| {
        let line = |outcomes: &[CacheOutcome]| {
            Line::exact(
                outcomes.first().map(|outcome| outcome.policy.clone()).unwrap_or_default(),
                outcomes.iter().map(|outcome| (100.0 * outcome.cache_share, 100.0 * value(outcome))),
            )
        };
        Figure {
            name: format!("cache-{name}"),
            title: format!("{title}, {}", workload.name),
            x: Axis::logarithmic("cache, % of all bytes", ""),
            y: y.into(),
            lines: outcomes.chunks(shares.len().max(1)).map(line).collect(),
            ..Figure::default()
        }
    };
    let figures = vec![
        figure("saved", "Saved at the origin", "% of bytes read", CacheOutcome::saved_ratio),
        figure("byte-hits", "Byte hits", "% of bytes read", CacheOutcome::byte_hit_ratio),
        figure("hits", "Hits", "% of requests", CacheOutcome::hit_ratio),
        figure("delayed", "Delayed starts", "% of requests", CacheOutcome::delayed_ratio),
        figure("useless", "Fetched and never read", "% of the origin's bytes", CacheOutcome::useless_ratio),
    ];
    let findings = Report {
        name: "cache".into(),
        title: format!("cache policies on {}", workload.name),
        figures,
        ..Report::default()
    };
    SimulationReport { findings, caches: outcomes, ..SimulationReport::default() }
}
