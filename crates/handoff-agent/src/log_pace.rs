//! The log of what the machine says: hand-offs that fail do so by the hundred.

use baton_cluster::agent::Note;
use baton_report::{OperatorError, counted, log};

/// Lines in a period, and the period.
const LINES_MAX: u32 = 10;
const PERIOD_MS: u64 = 10_000;

/// Writes some notes, and counts the rest.
#[derive(Debug, Default)]
pub(crate) struct LogPace {
    since_ms: u64,
    lines: u32,
    left_out: u64,
}

impl LogPace {
    /// Writes a note, or not.
    pub(crate) fn write(&mut self, note: &Note, now_ms: u64) {
        if now_ms >= self.since_ms + PERIOD_MS {
            self.since_ms = now_ms;
            self.lines = 0;
            let left_out = std::mem::take(&mut self.left_out);
            if left_out > 0 {
                log::notice(format_args!(
                    "left out: {} about connections of the cluster",
                    counted(left_out, "more entry")
                ));
            }
        }
        if self.lines == LINES_MAX {
            self.left_out += 1;
            return;
        }
        self.lines += 1;
        describe(note);
    }
}

fn describe(note: &Note) {
    match note {
        Note::HandoffFailed { node, tuple, why } => {
            log::notice(format_args!(
                "the connection of {tuple} is relayed, not handed over to {node}: {why}"
            ));
        }
        Note::NodeReachable { node } => log::notice(format_args!("connections are handed over to {node}")),
        Note::NodeUnreachable { node, why } => {
            log::warning(format_args!(
                "no connections are handed over to {node}: {why}; requests are relayed"
            ));
        }
        Note::NodeLost { node, flows } => {
            log::error(format_args!(
                "{node} is lost, and {} with it: their clients get resets",
                counted(*flows as u64, "connection")
            ));
        }
        Note::NotRestored { tuple, why } => {
            log::error(OperatorError::new(format!(
                "the connection of {tuple} could not be made on this host: {why}"
            )));
        }
        Note::NoServer { connections } => {
            log::error(format_args!(
                "{} reset: no server has taken them for 10 s",
                counted(*connections as u64, "connection")
            ));
        }
        Note::FrontEndRefused { why } => log::warning(format_args!("a front-end was disconnected: {why}")),
    }
}
