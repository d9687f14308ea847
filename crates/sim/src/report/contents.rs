//! What a report contains.

use baton_figures::Report;
use serde::Serialize;

use crate::caching::CacheOutcome;
use crate::documents::DocumentOutcome;
use crate::model::Outcome;
use crate::trace::{Fit, Statistics};

/// A report of several runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SimulationReport {
    /// Words, figures and claims.
    #[serde(flatten)]
    pub findings: Report,
    /// How closely synthetic traces fit the published statistics.
    pub fits: Vec<Fit>,
    /// Statistics of the trace, if there is one.
    pub statistics: Option<Statistics>,
    /// All numbers.
    pub runs: Vec<Run>,
    /// All numbers of caches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheOutcome>,
    /// All numbers of servers with documents that migrate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<DocumentOutcome>,
}

/// A run's labels in a report, and its numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// What distinguishes it from others with the same policy and nodes, such as `cpu 2x`.
    pub variant: String,
    /// The numbers.
    #[serde(flatten)]
    pub outcome: Outcome,
}
