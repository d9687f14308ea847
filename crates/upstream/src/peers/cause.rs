//! Why a peer was ejected, or why its check has failed.

use std::fmt;

use super::failure_window::{Asker, Evidence};
use crate::FailureReason;
use crate::origins::FAILURE_LABELS;

/// The last failure of several.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    Failure(FailureReason),
    /// A response with this status.
    Status(u16),
}

/// Codes from here on are statuses; 0 is no cause.
const STATUSES: u64 = 1_000;

impl Cause {
    /// As the processes of a server share it.
    pub(super) fn code(self) -> u64 {
        match self {
            Self::Failure(why) => {
                FAILURE_LABELS.iter().position(|label| *label == why.label()).map_or(0, |at| at as u64 + 1)
            }
            Self::Status(status) => STATUSES + u64::from(status),
        }
    }

    /// What it is evidence of, if the request was this one's.
    pub(super) fn evidence(self, asker: Asker) -> Evidence {
        match self {
            Self::Failure(why) if why.is_unreachable() => Evidence::Unreachable,
            Self::Failure(_) | Self::Status(_) => Evidence::Request(asker),
        }
    }

    /// A few words for the status.
    pub(super) fn words(code: u64) -> String {
        match code {
            0 => "unknown".into(),
            STATUSES.. => format!("status {}", code - STATUSES),
            _ => FAILURE_LABELS
                .get(code as usize - 1)
                .map_or_else(|| "unknown".into(), |label| (*label).into()),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(why) => why.fmt(f),
            Self::Status(status) => write!(f, "it answered with {status}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_in_the_words_of_the_log() {
        for (cause, words) in
            [(Cause::Failure(FailureReason::Ended), "ended-early"), (Cause::Status(503), "status 503")]
        {
            assert_eq!(Cause::words(cause.code()), words);
        }
        assert_eq!(Cause::words(0), "unknown");
    }
}
