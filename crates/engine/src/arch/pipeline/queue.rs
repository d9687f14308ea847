//! The queue in front of a stage.
//!
//! Items that may take long, because they wait for a disk or a client or compute, have a queue of their own beside it. A
//! worker takes them one at a time, and of several workers one always remains for the other items.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_shares::ClientKey;

use crate::job_queue::{JobClass, JobQueue};

/// Clients on their way to a stage. A client is in one queue, once: `limits.connections_max` bounds them all.
pub(super) struct Queue<T, L> {
    state: Mutex<State<T, L>>,
    filled: Condvar,
    emptied: Condvar,
    /// How many workers may run long items at a time.
    long_max: usize,
}

struct State<T, L> {
    items: VecDeque<T>,
    long: JobQueue<L>,
    closed: bool,
}

/// What a worker gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work<L> {
    /// Items; none if `patience` ran out first.
    Batch,
    /// A long item; then [`Queue::finish_long`].
    Long(JobClass, L),
    /// The queue is closed.
    Closed,
}

impl<T, L> Queue<T, L> {
    /// A queue for so many workers.
    pub(super) fn new(workers: usize) -> Self {
        let state = State { items: VecDeque::new(), long: JobQueue::default(), closed: false };
        Self {
            state: Mutex::new(state),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            long_max: workers.saturating_sub(1).max(1),
        }
    }

    /// Adds items and leaves `items` empty.
    pub(super) fn push(&self, items: &mut Vec<T>) {
        if !items.is_empty() {
            self.lock().items.extend(items.drain(..));
            self.filled.notify_one();
        }
    }

    /// Adds a long item of a client.
    pub(super) fn put_long(&self, class: JobClass, client: Option<ClientKey>, item: L) {
        self.lock().long.push(class, client, item);
        self.filled.notify_one();
    }

    /// Keeps the `wanted` long items of those that no worker has begun.
    pub(super) fn retain_long(&self, wanted: impl Fn(&L) -> bool) {
        self.lock().long.retain(wanted);
    }

    /// A worker has finished a long item.
    pub(super) fn finish_long(&self, class: JobClass) {
        self.lock().long.end(class);
        self.filled.notify_one();
    }

    /// Waits at most for `patience`. Takes one long item if allowed, else at most `batch_max` items.
    pub(super) fn take(&self, batch_max: usize, patience: Option<Duration>, batch: &mut Vec<T>) -> Work<L> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Work::Closed;
            }
            if state.long.count_running() < self.long_max
                && let Some((class, item)) = state.long.begin(self.long_max)
            {
                self.wake_another(&state);
                return Work::Long(class, item);
            }
            if !state.items.is_empty() {
                let count = state.items.len().min(batch_max);
                batch.extend(state.items.drain(..count));
                self.emptied.notify_all();
                self.wake_another(&state);
                return Work::Batch;
            }
            state = match patience {
                None => self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let waited = self.filled.wait_timeout(state, patience);
                    let (state, result) = waited.unwrap_or_else(PoisonError::into_inner);
                    if result.timed_out() {
                        return Work::Batch;
                    }
                    state
                }
            };
        }
    }

    fn wake_another(&self, state: &State<T, L>) {
        let may_begin =
            state.long.count_running() < self.long_max && state.long.count_ready(self.long_max) > 0;
        if may_begin || !state.items.is_empty() {
            self.filled.notify_one();
        }
    }

    /// Waits until workers have taken all items, but not for longer than `patience`.
    pub(super) fn wait_until_taken(&self, patience: Duration) {
        let waits = |state: &mut State<T, L>| !state.items.is_empty() && !state.closed;
        // How the wait ended does not matter.
        let _ = self.emptied.wait_timeout_while(self.lock(), patience, waits);
    }

    /// Items waiting.
    pub(super) fn len(&self) -> usize {
        let state = self.lock();
        state.items.len() + state.long.len()
    }

    /// Wakes all workers; none waits from here on.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T, L>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of three workers two may run long items; the third gets the others, and so does a single worker.
    #[test]
    fn a_worker_is_left_for_what_does_not_take_long() {
        let (queue, mut batch) = (Queue::new(3), Vec::new());
        (1..=3).for_each(|item| queue.put_long(JobClass::File, None, item));
        queue.push(&mut vec![11, 12]);
        let mut take = || (queue.take(64, Some(Duration::ZERO), &mut batch), std::mem::take(&mut batch));
        assert_eq!(take(), (Work::Long(JobClass::File, 1), vec![]));
        assert_eq!(take(), (Work::Long(JobClass::File, 2), vec![]));
        assert_eq!(take(), (Work::Batch, vec![11, 12]));
        assert_eq!(take(), (Work::Batch, vec![]), "nothing that this worker may do");
        queue.finish_long(JobClass::File);
        assert_eq!(take(), (Work::Long(JobClass::File, 3), vec![]));
        queue.put_long(JobClass::File, None, 4);
        queue.close();
        assert_eq!(take(), (Work::Closed, vec![]), "what takes long is not begun any more");
    }
}
