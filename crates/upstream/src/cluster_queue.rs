//! Requests that wait for a cluster which has all that it can take.
//!
//! Each loop has a queue of its own, in order. The cluster is asked for the first of them whenever this loop has had something to do, and
//! as long as some wait, every few milliseconds: requests of other loops and of nodes end without a word to this one.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::RequestId;
use crate::peers::{Begun, Peers, Turn, TurnSought};

/// The queues of a loop, one for each cluster: there are two while a reload is followed.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    queues: Vec<Queue>,
    /// When to ask again; `u64::MAX`: none waits.
    pub(crate) due_ms: u64,
}

#[derive(Debug)]
struct Queue {
    peers: Arc<Peers>,
    waiters: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    request_id: RequestId,
    sought: TurnSought,
    until_ms: u64,
}

impl Waiting {
    /// When to ask again; `u64::MAX`: none waits.
    pub(crate) fn due_ms(&self) -> u64 {
        if self.queues.is_empty() { u64::MAX } else { self.due_ms }
    }

    /// Number of requests that wait.
    pub(crate) fn len(&self) -> usize {
        self.queues.iter().map(|queue| queue.waiters.len()).sum()
    }

    /// Whether requests wait for these peers: another one has to wait behind them.
    pub(crate) fn is_wanted(&self, peers: &Arc<Peers>) -> bool {
        self.queues.iter().any(|queue| Arc::ptr_eq(&queue.peers, peers))
    }

    /// Puts a request at the end of its queue. False: the queue is full.
    pub(crate) fn push(&mut self, request_id: RequestId, sought: TurnSought, now_ms: u64) -> bool {
        let settings = sought.peers().first().settings();
        let (queue_max, until_ms) = (settings.queue_max, now_ms.saturating_add(settings.queue_timeout_ms));
        let known = self.queues.iter().position(|queue| Arc::ptr_eq(&queue.peers, sought.peers()));
        let len = known.map_or(0, |at| self.queues[at].waiters.len());
        if len >= queue_max {
            return false;
        }
        if self.queues.is_empty() {
            self.due_ms = now_ms + AGAIN_MS;
        }
        let at = known.unwrap_or_else(|| {
            self.queues.push(Queue { peers: Arc::clone(sought.peers()), waiters: VecDeque::new() });
            self.queues.len() - 1
        });
        self.queues[at].waiters.push_back(Waiter { request_id, sought, until_ms });
        true
    }

    /// Removes a request that was taken back.
    pub(crate) fn leave(&mut self, request_id: RequestId) {
        for queue in &mut self.queues {
            queue.waiters.retain(|waiter| waiter.request_id != request_id);
        }
        self.queues.retain(|queue| !queue.waiters.is_empty());
    }

    /// A request that has waited for too long.
    pub(crate) fn take_overdue(&mut self, now_ms: u64) -> Option<RequestId> {
        let overdue = |queue: &mut Queue| {
            let is_overdue = queue.waiters.front().is_some_and(|waiter| waiter.until_ms <= now_ms);
            let waiter = is_overdue.then(|| queue.waiters.pop_front()).flatten()?;
            Some(waiter.request_id)
        };
        let taken = self.queues.iter_mut().find_map(overdue)?;
        self.queues.retain(|queue| !queue.waiters.is_empty());
        Some(taken)
    }

    /// The first request that the cluster can take.
    pub(crate) fn take_admitted(&mut self, now_ms: u64) -> Option<(RequestId, Option<Turn>)> {
        let admitted = |queue: &mut Queue| {
            let waiter = queue.waiters.pop_front()?;
            match Turn::begin(waiter.sought, now_ms) {
                Begun::Turn(turn) => Some((waiter.request_id, Some(turn))),
                Begun::Nowhere => Some((waiter.request_id, None)),
                Begun::Wait(sought) => {
                    queue.waiters.push_front(Waiter { sought, ..waiter });
                    None
                }
            }
        };
        let taken = self.queues.iter_mut().find_map(admitted)?;
        self.queues.retain(|queue| !queue.waiters.is_empty());
        Some(taken)
    }
}

/// How soon the cluster is asked again.
pub(crate) const AGAIN_MS: u64 = 2;
