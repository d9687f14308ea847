//! Whether a load counts: the one place that says what makes its figures no result.

use std::error::Error;
use std::fmt;

use super::fairness::Unfair;
use super::report::{Failure, LoadReport};

/// Why the figures of a load are no result.
#[derive(Clone, Debug, PartialEq)]
pub enum NoResult {
    /// A single wrong answer is enough. So is none at all.
    Failed(String),
    /// Nothing was answered wrongly, but some clients got no answer.
    Starved(String),
    /// Files of some sizes did not get their due.
    Unfair(Unfair),
}

impl LoadReport {
    /// Judges the load: what failed, then who starved, then what was unfair.
    ///
    /// # Errors
    /// The reason why it is no result.
    pub fn judge(&self) -> Result<(), NoResult> {
        let failed = self.failed();
        if failed > 0 || self.requests == 0 {
            let first = self.first_failure.as_deref().unwrap_or("nothing was answered in time");
            let starves = |failure: &Failure| matches!(failure, Failure::Stalled | Failure::NeverAnswered);
            return Err(match self.failures.keys().all(starves) {
                true => NoResult::Starved(first.to_owned()),
                false => NoResult::Failed(format!("{failed} requests failed: {first}")),
            });
        }
        self.unfair().into_iter().next().map_or(Ok(()), |unfair| Err(NoResult::Unfair(unfair)))
    }

    /// The report, if it counts: a server that answered wrongly even once has no figures.
    ///
    /// # Errors
    /// The reason why it is no result.
    pub fn judged(self) -> Result<Self, NoResult> {
        self.judge().map(|()| self)
    }
}

impl fmt::Display for NoResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => f.write_str(why),
            Self::Starved(why) => write!(f, "clients starve: {why}"),
            Self::Unfair(unfair) => unfair.fmt(f),
        }
    }
}

impl Error for NoResult {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::{SizeCount, SizeCounts};

    #[test]
    fn the_gravest_reason_is_told() {
        let mut report = LoadReport::default();
        assert!(matches!(report.judge(), Err(NoResult::Starved(_))), "nothing was answered");
        report.requests = 10;
        assert_eq!(report.judge(), Ok(()));
        report.clients = vec![SizeCounts([(1, SizeCount { answered: 10, timeouts: 10 })].into())];
        assert!(matches!(report.judge(), Err(NoResult::Unfair(Unfair { bytes: None, .. }))));
        report.fail(Failure::NeverAnswered, "1 of 8 connections".into());
        assert_eq!(report.judge(), Err(NoResult::Starved("1 of 8 connections".into())));
        report.fail(Failure::Status, "status 404".into());
        let why = report.judge().unwrap_err().to_string();
        assert_eq!(why, "2 requests failed: 1 of 8 connections");
    }
}
