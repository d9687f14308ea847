//! Counters of a pool.

use crate::FailureReason;
use crate::answer_transport::TransportCounts;

/// Counters of a pool since it was created.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) opened: u64,
    pub(crate) retries: u64,
    pub(crate) failures: u64,
    pub(crate) abandoned: u64,
    pub(crate) answers: TransportCounts,
    pub(crate) last_failure: Option<FailureReason>,
}

impl Tally {
    pub(crate) fn note_failure(&mut self, why: FailureReason) {
        if why.is_clients() {
            self.abandoned += 1;
            return;
        }
        self.failures += 1;
        self.last_failure = Some(why);
    }
}
