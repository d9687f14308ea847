//! What clients saw, as lines and as a table.

use std::fmt;

use super::fault::Fault;
use super::settings::FaultsSettings;
use crate::contender::Contender;
use crate::load::{Failure, LoadReport};
use crate::markdown::{begin_table, row};

/// What clients saw of one fault.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) way: Contender,
    pub(super) fault: Fault,
    pub(super) round: usize,
    pub(super) report: LoadReport,
}

/// Counts of a table's row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    requests: u64,
    /// Other bytes, another length, no HTTP.
    wrong: u64,
    /// An error instead of an answer.
    refused: u64,
    /// The connection broke within an answer.
    cut: u64,
    /// A new connection broke before an answer.
    broken: u64,
    /// Kept connections that ended or broke before an answer; the client asked again.
    ended: u64,
    unanswered: u64,
    slowest_ms: u64,
}

impl Counts {
    fn of(report: &LoadReport) -> Self {
        let sum =
            |failures: &[Failure]| failures.iter().filter_map(|failure| report.failures.get(failure)).sum();
        Self {
            requests: report.requests,
            wrong: sum(&[Failure::Length, Failure::Changed, Failure::Surplus, Failure::Head]),
            refused: sum(&[Failure::Status]),
            cut: sum(&[Failure::EarlyEnd]),
            broken: sum(&[Failure::Socket]),
            ended: report.reconnects,
            unanswered: report.unanswered,
            slowest_ms: report.latency_ns.max() / 1_000_000,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            wrong: self.wrong + other.wrong,
            refused: self.refused + other.refused,
            cut: self.cut + other.cut,
            broken: self.broken + other.broken,
            ended: self.ended + other.ended,
            unanswered: self.unanswered + other.unanswered,
            slowest_ms: self.slowest_ms.max(other.slowest_ms),
        }
    }

    fn fields(&self) -> [String; 8] {
        [
            self.requests,
            self.wrong,
            self.refused,
            self.cut,
            self.broken,
            self.unanswered,
            self.ended,
            self.slowest_ms,
        ]
        .map(|count| count.to_string())
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = Counts::of(&self.report).fields();
        let fields: Vec<_> =
            COLUMNS.iter().zip(fields).map(|(name, field)| format!("{name} {field}")).collect();
        write!(f, "{} {}, {}: {}", self.round + 1, self.way, self.fault, fields.join(", "))?;
        self.report.first_failure.as_ref().map_or(Ok(()), |first| write!(f, " ({first})"))
    }
}

/// Sums over rounds.
pub(super) fn markdown(
    machine: &str,
    settings: &FaultsSettings,
    ways: &[Contender],
    seen: &[Seen],
) -> String {
    let mut text = format!(
        "{machine}. {} connections, sums of {} rounds; the slowest answer of all.\n\n",
        settings.connections, settings.rounds
    );
    begin_table(&mut text, "way, fault", &COLUMNS);
    for &way in ways {
        for fault in Fault::ALL {
            let same = seen.iter().filter(|seen| (seen.way, seen.fault) == (way, fault));
            let counts = same.map(|seen| Counts::of(&seen.report)).fold(Counts::default(), Counts::and);
            row(&mut text, &format!("{way}, {fault}"), &counts.fields());
        }
    }
    text
}

const COLUMNS: [&str; 8] = [
    "answered",
    "wrong",
    "refused",
    "cut off",
    "new connections broken",
    "unanswered",
    "kept connections ended",
    "slowest ms",
];
