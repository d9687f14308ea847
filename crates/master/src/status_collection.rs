//! The workers' parts of a status: asked for once for all who want it, and awaited for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::channel::ToWorker;
use super::management::Requester;
use super::workers::Workers;

/// The collection under way, if there is one.
#[derive(Debug, Default)]
pub(crate) struct StatusCollection {
    current: Option<Collection>,
    tickets: u64,
}

/// What workers have reported, and who wants it.
#[derive(Debug)]
pub(crate) struct Collection {
    awaited: BTreeSet<usize>,
    deadline: Instant,
    /// By the workers' numbers.
    pub(crate) reports: BTreeMap<usize, Value>,
    pub(crate) requesters: Vec<Requester>,
}

impl StatusCollection {
    /// Asks all workers for their status, unless a collection is under way.
    pub(crate) fn begin(&mut self, requester: Requester, workers: &Workers, now: Instant) {
        if let Some(current) = &mut self.current {
            current.requesters.push(requester);
            return;
        }
        self.tickets += 1;
        let message = ToWorker::Status { ticket: self.tickets };
        let is_asked = |index: &usize| workers.tell(*index, &message, &[]).is_ok();
        self.current = Some(Collection {
            awaited: workers.serving().filter(is_asked).collect(),
            deadline: now + PATIENCE,
            reports: BTreeMap::new(),
            requesters: vec![requester],
        });
    }

    /// A worker has answered.
    pub(crate) fn handle_status(&mut self, index: usize, ticket: u64, status: Value) {
        if let Some(current) = self.current.as_mut().filter(|_| self.tickets == ticket) {
            current.awaited.remove(&index);
            current.reports.insert(index, status);
        }
    }

    /// A worker has ended and will not answer.
    pub(crate) fn handle_death(&mut self, index: usize) {
        if let Some(current) = &mut self.current {
            current.awaited.remove(&index);
        }
    }

    /// When [`take_finished`](Self::take_finished) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.current.as_ref().map(|current| current.deadline)
    }

    /// The collection, once all workers have answered or it has waited for too long.
    pub(crate) fn take_finished(&mut self, now: Instant) -> Option<Collection> {
        self.current.take_if(|current| current.awaited.is_empty() || current.deadline <= now)
    }
}

/// After this time the status omits the report of a worker that is too busy.
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requesters_share_a_collection_and_the_dead_are_not_awaited() {
        let (workers, _theirs) = Workers::for_test(2);
        let mut collection = StatusCollection::default();
        let now = Instant::now();
        collection.begin(Requester::Control(1), &workers, now);
        collection.begin(Requester::Control(2), &workers, now);
        collection.handle_status(0, 1, json!("fine"));
        collection.handle_status(1, 7, json!("of another collection"));
        assert!(collection.take_finished(now).is_none());
        collection.handle_death(1);
        let Collection { reports, requesters, .. } = collection.take_finished(now).unwrap();
        assert_eq!(reports, BTreeMap::from([(0, json!("fine"))]));
        assert_eq!(requesters, [Requester::Control(1), Requester::Control(2)]);
        assert_eq!(collection.deadline(), None);
    }

    #[test]
    fn a_busy_worker_is_left_out() {
        let (workers, _theirs) = Workers::for_test(1);
        let mut collection = StatusCollection::default();
        let now = Instant::now();
        collection.begin(Requester::Control(1), &workers, now);
        assert_eq!(collection.deadline(), Some(now + PATIENCE));
        assert!(collection.take_finished(now + PATIENCE).is_some_and(|one| one.reports.is_empty()));
    }
}
