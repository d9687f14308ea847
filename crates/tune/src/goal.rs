//! What is wanted, and what a trial found.

use std::fmt;
use std::str::FromStr;

use baton_figures::Better;

/// What is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// More answered requests per second.
    #[default]
    Rate,
    /// A lower 99th percentile of the time to an answer.
    P99,
    /// Less memory.
    Memory,
}

/// What a server did in a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Requests per second that were answered in time.
    pub rate: f64,
    /// What 99 % of the times to an answer do not exceed.
    pub p99_ms: f64,
    /// Memory of all its processes.
    pub memory_mib: f64,
}

/// What became of a candidate in a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum TrialOutcome {
    /// Measured, and no client was served at the others' expense.
    Fair(Measured),
    /// Measured, but some clients were not served, and which.
    Unfair(String),
    /// It did not start, or broke off, and why.
    Failed(String),
}

impl Goal {
    pub(crate) const fn better(self) -> Better {
        match self {
            Self::Rate => Better::More,
            Self::P99 | Self::Memory => Better::Less,
        }
    }

    /// The number that the goal is about.
    #[must_use]
    pub const fn of(self, measured: &Measured) -> f64 {
        match self {
            Self::Rate => measured.rate,
            Self::P99 => measured.p99_ms,
            Self::Memory => measured.memory_mib,
        }
    }

    /// What the number is, for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Rate => "answered requests per second",
            Self::P99 => "99th percentile of the time to an answer",
            Self::Memory => "memory",
        }
    }

    /// Why a candidate must not win although it is better: it serves less than the present settings.
    pub(crate) fn forfeits(self, present: &Measured, candidate: &Measured) -> Option<String> {
        let kept = candidate.rate / present.rate;
        (self != Self::Rate && kept < RATE_KEPT)
            .then(|| format!("answers only {:.0} % of what the present settings answer", 100.0 * kept))
    }
}

/// Less memory or delay is no gain if fewer requests are answered.
const RATE_KEPT: f64 = 0.95;

impl fmt::Display for Goal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Rate => "rate",
            Self::P99 => "p99",
            Self::Memory => "memory",
        })
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Rate, Self::P99, Self::Memory]
            .into_iter()
            .find(|goal| goal.to_string() == text)
            .ok_or_else(|| format!("no goal is called {text}: rate, p99 or memory"))
    }
}
