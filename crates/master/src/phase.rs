//! The phases of the server's life.

use std::time::{Duration, Instant};

/// A phase of the server's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not all workers have served yet.
    Starting,
    /// Clients are served.
    Serving,
    /// The workers have left, or are about to; the sockets are open.
    Withdrawn,
    /// Workers end; no new ones are started.
    Ending(Ending),
}

/// How the server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The workers finish their requests first.
    Drain {
        /// When workers that are still there are killed.
        until: Instant,
    },
    /// At once.
    Stop {
        /// When workers that are still there are killed.
        until: Instant,
    },
}

impl Phase {
    /// The word for it in the status.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Withdrawn => "withdrawn",
            Self::Ending(Ending::Drain { .. }) => "draining",
            Self::Ending(Ending::Stop { .. }) => "stopping",
        }
    }

    /// When the workers that are left are killed.
    pub(crate) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Ending(Ending::Drain { until } | Ending::Stop { until }) => Some(until),
            Self::Starting | Self::Serving | Self::Withdrawn => None,
        }
    }
}

/// The time between the workers' limit and the kill.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
