//! What a report contains.

use serde::Serialize;

use crate::caching::CacheOutcome;
use crate::documents::DocumentOutcome;
use crate::model::Outcome;
use crate::trace::{Fit, Statistics};

/// A report of several runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The name as on the command line.
    pub name: String,
    /// A line.
    pub title: String,
    /// Its introduction, in paragraphs.
    pub words: Vec<String>,
    /// How closely synthetic traces fit the published statistics.
    pub fits: Vec<Fit>,
    /// Statistics of the trace, if there is one.
    pub statistics: Option<Statistics>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Published claims and our results.
    pub claims: Vec<Claim>,
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

/// A figure: lines over a common axis.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figure {
    /// A name for files.
    pub name: String,
    /// Above the figure.
    pub title: String,
    /// Below the horizontal axis.
    pub x: String,
    /// Label of the vertical axis.
    pub y: String,
    /// Whether equal steps of the horizontal axis are equal factors.
    pub x_is_logarithmic: bool,
    /// Names of 0, 1, 2, … on the horizontal axis, if it is not numeric.
    pub x_names: Vec<String>,
    /// The lines.
    pub lines: Vec<Line>,
    /// Published values.
    pub marks: Vec<Mark>,
}

/// A line of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// In the legend.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// A published value, drawn into a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// Where.
    pub y: f64,
    /// Its text.
    pub label: String,
}

/// A published claim and our result.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// The statement, in our words.
    pub published: String,
    /// Our numbers.
    pub ours: String,
    /// Whether it holds here.
    pub holds: bool,
    /// Why not, if it does not; or what to know if it does.
    pub note: String,
}

impl Claim {
    /// A statement that holds or not; the note is kept if it does not.
    #[must_use]
    pub fn new(published: &str, ours: String, holds: bool, why_not: &str) -> Self {
        let note = if holds { String::new() } else { why_not.to_owned() };
        Self { published: published.to_owned(), ours, holds, note }
    }
}
