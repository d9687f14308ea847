//! Where the server is in its life.

use std::time::{Duration, Instant};

/// Where the server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not all workers have ever served.
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
    /// What is under way is finished first.
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

/// What workers get beyond the limit that they were told, before they are killed.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
