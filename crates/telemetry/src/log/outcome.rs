//! How requests end.

use crate::metrics::Metric;

/// How a request ended: the word in the log and the label of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of the response was handed to the kernel.
    Complete,
    /// The client closed or reset the connection before.
    ClientGone,
    /// A phase took longer than its timeout.
    TimedOut,
    /// The request broke the protocol or a limit.
    Refused,
    /// The file became shorter while it was being sent.
    FileChanged,
    /// Reading the file failed.
    Failed,
    /// The application gave no answer, or not all of it.
    ApplicationFailed,
    /// The origin gave no answer, or not all of it.
    OriginFailed,
    /// The server was stopped first.
    Stopped,
    /// The connection was handed over to a node of the cluster with the request, which the node answers and logs.
    HandedOff,
}

impl Outcome {
    /// The word in the log.
    pub fn word(self) -> &'static str {
        self.metric().label().map_or("", |(_, word)| word)
    }

    /// The outcome with this word.
    pub fn of_word(word: &str) -> Option<Self> {
        const ALL: [Outcome; 9] = [
            Outcome::Complete,
            Outcome::ClientGone,
            Outcome::TimedOut,
            Outcome::Refused,
            Outcome::FileChanged,
            Outcome::Failed,
            Outcome::ApplicationFailed,
            Outcome::OriginFailed,
            Outcome::Stopped,
        ];
        ALL.into_iter().find(|outcome| outcome.word() == word)
    }

    /// The counter of requests that ended so.
    pub fn metric(self) -> Metric {
        match self {
            Self::Complete => Metric::OutcomeComplete,
            Self::ClientGone => Metric::OutcomeClientGone,
            Self::TimedOut => Metric::OutcomeTimedOut,
            Self::Refused => Metric::OutcomeRefused,
            Self::FileChanged => Metric::OutcomeFileChanged,
            Self::Failed => Metric::OutcomeFailed,
            Self::ApplicationFailed => Metric::OutcomeApplicationFailed,
            Self::OriginFailed => Metric::OutcomeOriginFailed,
            Self::Stopped => Metric::OutcomeStopped,
            Self::HandedOff => Metric::OutcomeHandedOff,
        }
    }
}
