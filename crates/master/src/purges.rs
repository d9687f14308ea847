//! Purges of the shared cache: every worker carries them out, and confirms those of an operator.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use baton_cache::PurgeOrder;
use serde_json::json;

use super::control::Answer;
use super::management::{Endpoints, Requester};
use super::workers::Workers;

/// Purges that not all workers have confirmed.
#[derive(Debug, Default)]
pub(crate) struct Purges {
    pending: Vec<PendingPurge>,
    /// When workers are told again what they could not be told.
    retry_due: Option<Instant>,
    tickets: u64,
}

/// A purge of an operator.
#[derive(Debug)]
struct PendingPurge {
    ticket: u64,
    orders: Vec<PurgeOrder>,
    awaited: BTreeSet<usize>,
    /// Workers that have confirmed.
    confirmed: u64,
    /// Responses that they have dropped.
    responses: u64,
    deadline: Instant,
    requester: Requester,
}

impl Purges {
    /// Has all workers purge.
    pub(crate) fn begin(
        &mut self,
        orders: Vec<PurgeOrder>,
        requester: Requester,
        workers: &mut Workers,
        now: Instant,
    ) {
        self.tickets += 1;
        let awaited = workers.occupied().map(|(index, _)| index).collect();
        workers.purge_all(&orders, Some(self.tickets), None);
        self.plan_retry(workers, now);
        self.pending.push(PendingPurge {
            ticket: self.tickets,
            orders,
            awaited,
            confirmed: 0,
            responses: 0,
            deadline: now + PATIENCE,
            requester,
        });
    }

    /// A worker has invalidated something, of which the others have to hear.
    pub(crate) fn handle_invalidated(
        &mut self,
        index: usize,
        orders: &[PurgeOrder],
        workers: &mut Workers,
        now: Instant,
    ) {
        workers.purge_all(orders, None, Some(index));
        self.plan_retry(workers, now);
    }

    /// A worker has purged.
    pub(crate) fn handle_purged(&mut self, index: usize, tickets: &[u64], responses: u64) {
        for purge in self.pending.iter_mut().filter(|purge| tickets.contains(&purge.ticket)) {
            if purge.awaited.remove(&index) {
                purge.confirmed += 1;
                purge.responses += responses;
            }
        }
    }

    /// A worker has ended. Its successor purges before it serves.
    pub(crate) fn handle_death(&mut self, index: usize, workers: &mut Workers) {
        for purge in &mut self.pending {
            if purge.awaited.remove(&index) {
                workers.owe(index, &purge.orders);
            }
        }
    }

    /// When [`retry`](Self::retry) or [`answer_finished`](Self::answer_finished) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.pending.iter().map(|purge| purge.deadline).chain(self.retry_due).min()
    }

    /// Tells workers again what they could not be told.
    pub(crate) fn retry(&mut self, workers: &mut Workers, now: Instant) {
        if self.retry_due.is_some_and(|due| due <= now) {
            workers.retry_purges();
            self.plan_retry(workers, now);
        }
    }

    fn plan_retry(&mut self, workers: &Workers, now: Instant) {
        self.retry_due = workers.owes_purges().then(|| now + RETRY);
    }

    /// Answers those that all workers have confirmed, and those that have waited for too long.
    pub(crate) fn answer_finished(&mut self, endpoints: &mut Endpoints, now: Instant) {
        let is_over = |purge: &mut PendingPurge| purge.awaited.is_empty() || purge.deadline <= now;
        for purge in self.pending.extract_if(.., is_over) {
            endpoints.answer([purge.requester], &purge.answer(), now);
        }
    }
}

impl PendingPurge {
    fn answer(&self) -> Answer {
        let Self { awaited, confirmed, responses, .. } = self;
        match awaited.first() {
            None => Answer::Ok(json!({ "purged": { "responses": responses, "workers": confirmed } })),
            Some(index) => Answer::error(format_args!(
                "worker {index} has not confirmed within {} s, and may still serve what was to be purged; it purges as soon \
                 as it goes on",
                PATIENCE.as_secs()
            )),
        }
    }
}

/// Workers confirm within milliseconds, unless they make a plan, or stand still.
const PATIENCE: Duration = Duration::from_secs(10);

/// The channel of a worker that reads no messages for a while is full.
const RETRY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(purges: &Purges) -> Vec<Answer> {
        purges.pending.iter().filter(|purge| purge.awaited.is_empty()).map(PendingPurge::answer).collect()
    }

    #[test]
    fn a_purge_is_over_when_each_worker_has_confirmed_or_ended() {
        let (mut workers, _theirs) = Workers::for_test(2);
        let mut purges = Purges::default();
        let now = Instant::now();
        purges.begin(vec![PurgeOrder::Everything], Requester::Control(1), &mut workers, now);
        assert_eq!(purges.deadline(), Some(now + PATIENCE), "all could be told");
        purges.handle_purged(0, &[1], 3);
        purges.handle_purged(0, &[1], 3);
        assert_eq!(answers(&purges), []);
        purges.handle_death(1, &mut workers);
        assert_eq!(
            answers(&purges),
            [Answer::Ok(json!({ "purged": { "responses": 3, "workers": 1 } }))],
            "a worker counts once, one that has ended not at all"
        );
        assert!(workers.owes_purges(), "the next worker of the slot");
        purges.answer_finished(&mut Endpoints::new(None, Vec::new()), now);
        assert_eq!(purges.deadline(), None);
    }

    #[test]
    fn a_worker_that_cannot_be_told_is_told_again() {
        let (mut workers, theirs) = Workers::for_test(2);
        drop(theirs);
        let mut purges = Purges::default();
        let now = Instant::now();
        purges.handle_invalidated(0, &[PurgeOrder::Everything], &mut workers, now);
        assert_eq!(purges.deadline(), Some(now + RETRY));
        purges.retry(&mut workers, now + RETRY);
        assert_eq!(purges.deadline(), Some(now + 2 * RETRY));
    }
}
