//! An origin's state, as the row that all processes share has it.

use crate::origins::{OriginRecord, word};

use super::cause::Cause;
use super::checks::Checked;
use super::standing::Standing;

/// Whether an origin gets requests, and if not, why. `Display` tells the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginState {
    /// It gets its part of the requests.
    Up,
    /// It has returned so recently that it gets less than its part.
    SlowStart {
        /// Milliseconds until it gets its part.
        left_ms: u64,
    },
    /// An operator wants it left out.
    Drained,
    /// It failed its checks; the cause is the last of them.
    Down {
        /// In the words of the log.
        cause: String,
    },
    /// It failed clients' requests; the cause is the last of them.
    Ejected {
        /// Milliseconds until it gets requests again.
        left_ms: u64,
        /// In the words of the log.
        cause: String,
    },
}

/// What an origin is judged by, in its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JudgedBy {
    /// The requests of clients: it may be ejected.
    pub requests: bool,
    /// Checks.
    pub checks: bool,
    /// Milliseconds in which it comes to its full part of the requests when it returns.
    pub slow_start_ms: u64,
}

impl OriginState {
    /// The state at `now_ms`, by the monotonic clock. Verdicts by what no longer counts are left out.
    pub fn of(record: &OriginRecord, by: JudgedBy, now_ms: u64) -> Self {
        let out_until_ms = if by.requests { standing(record).out_until_ms() } else { 0 };
        let slow_until_ms = match record.load(word::RETURNED) {
            0 => 0,
            returned_ms => returned_ms.saturating_add(by.slow_start_ms),
        };
        if record.is_drained() {
            Self::Drained
        } else if by.checks && checked(record).is_down() {
            Self::Down { cause: Cause::words(record.load(word::CHECK_CAUSE)) }
        } else if now_ms < out_until_ms {
            let cause = Cause::words(record.load(word::EJECTION_CAUSE));
            Self::Ejected { left_ms: out_until_ms - now_ms, cause }
        } else if now_ms < slow_until_ms {
            Self::SlowStart { left_ms: slow_until_ms - now_ms }
        } else {
            Self::Up
        }
    }

    /// One word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::SlowStart { .. } => "slow-start",
            Self::Drained => "drained",
            Self::Down { .. } => "down",
            Self::Ejected { .. } => "ejected",
        }
    }

    /// Whether it gets requests while there is another one to choose.
    pub fn serves(&self) -> bool {
        matches!(self, Self::Up | Self::SlowStart { .. })
    }

    /// Why it does not get its part of the requests; empty if it does.
    pub fn why(&self) -> String {
        match self {
            Self::Up => String::new(),
            Self::SlowStart { left_ms } => format!("its full part in {left_ms} ms"),
            Self::Drained => "by `baton ctl drain-origin`".into(),
            Self::Down { cause } => format!("failed check: {cause}"),
            Self::Ejected { left_ms, cause } => format!("for {left_ms} ms more, after: {cause}"),
        }
    }
}

pub(super) fn standing(record: &OriginRecord) -> Standing {
    Standing::from_words(record.load_all(word::STANDING))
}

pub(super) fn checked(record: &OriginRecord) -> Checked {
    Checked::from_words(record.load_all(word::CHECKED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_reason_is_told() {
        let record = OriginRecord::default();
        let by = JudgedBy { requests: true, checks: true, slow_start_ms: 1_000 };
        let state = |now_ms| OriginState::of(&record, by, now_ms);
        assert_eq!(state(5_000), OriginState::Up);
        record.store(word::RETURNED, 4_500);
        assert_eq!(state(5_000), OriginState::SlowStart { left_ms: 500 });
        record.store(word::STANDING.start + 1, 7_000);
        record.store(word::EJECTION_CAUSE, Cause::Status(502).code());
        assert_eq!(state(5_000).why(), "for 2000 ms more, after: status 502");
        record.store(word::CHECKED.start, 1);
        assert_eq!(state(5_000).word(), "down");
        let by = JudgedBy { requests: false, checks: false, slow_start_ms: 0 };
        assert_eq!(OriginState::of(&record, by, 5_000), OriginState::Up);
        record.set_drained(true);
        assert_eq!(state(5_000), OriginState::Drained);
    }
}
