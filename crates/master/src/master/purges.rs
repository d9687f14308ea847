//! Purges of the shared cache: every worker carries them out, and confirms those of an operator.

use std::time::{Duration, Instant};

use baton_cache::PurgeOrder;
use serde_json::json;

use super::Master;
use crate::control::Answer;
use crate::management::Requester;
use crate::pending::PendingPurge;

impl Master {
    /// Has all workers purge, and answers when they have.
    pub(super) fn begin_purge(&mut self, orders: &[PurgeOrder], requester: Requester, now: Instant) {
        self.tickets += 1;
        let ticket = self.tickets;
        let awaited = self.workers.occupied().map(|(index, _)| index).collect();
        self.workers.purge_all(orders, Some(ticket), None);
        self.plan_retry(now);
        self.pending_purges.push(PendingPurge {
            ticket,
            orders: orders.to_vec(),
            awaited,
            confirmed: 0,
            responses: 0,
            deadline: now + PendingPurge::PATIENCE,
            requester,
        });
        self.finish_purges(now);
    }

    /// A worker has invalidated something, of which the others have to hear.
    pub(super) fn handle_invalidated(&mut self, index: usize, orders: &[PurgeOrder], now: Instant) {
        self.workers.purge_all(orders, None, Some(index));
        self.plan_retry(now);
    }

    /// A worker has purged.
    pub(super) fn handle_purged(&mut self, index: usize, tickets: &[u64], responses: u64, now: Instant) {
        for purge in self.pending_purges.iter_mut().filter(|purge| tickets.contains(&purge.ticket)) {
            if purge.awaited.remove(&index) {
                purge.confirmed += 1;
                purge.responses += responses;
            }
        }
        self.finish_purges(now);
    }

    /// A worker has ended. Its successor purges before it serves.
    pub(super) fn handle_death_during_purges(&mut self, index: usize, now: Instant) {
        for purge in &mut self.pending_purges {
            if purge.awaited.remove(&index) {
                self.workers.slots[index].missed.add(&purge.orders, None);
            }
        }
        self.finish_purges(now);
    }

    /// Tells workers again what they could not be told.
    pub(super) fn retry_purges(&mut self, now: Instant) {
        if self.purge_retry_due.is_some_and(|due| due <= now) {
            self.workers.retry_purges();
            self.plan_retry(now);
        }
    }

    fn plan_retry(&mut self, now: Instant) {
        self.purge_retry_due = self.workers.owes_purges().then(|| now + RETRY);
    }

    /// Answers those that all workers have confirmed, and those that have waited for too long.
    pub(super) fn finish_purges(&mut self, now: Instant) {
        let is_over = |purge: &mut PendingPurge| purge.awaited.is_empty() || purge.deadline <= now;
        let over: Vec<_> = self.pending_purges.extract_if(.., is_over).collect();
        for PendingPurge { awaited, confirmed, responses, requester, .. } in over {
            let answer = match awaited.first() {
                None => Answer::Ok(json!({ "purged": { "responses": responses, "workers": confirmed } })),
                Some(index) => Answer::error(format_args!(
                    "worker {index} has not confirmed within {} s, and may still serve what was to be purged; it purges as soon \
                     as it goes on",
                    PendingPurge::PATIENCE.as_secs()
                )),
            };
            self.answer_all([requester], &answer, now);
        }
    }
}

/// The channel of a worker that reads no messages for a while is full.
const RETRY: Duration = Duration::from_millis(50);
