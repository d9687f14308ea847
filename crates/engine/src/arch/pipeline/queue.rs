//! A bounded queue between two stages.
//!
//! What may take long, because a disk or a client is waited for, stands in a row of its own beside it: a worker takes such
//! a client alone, and of several workers one is always left for the others.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Clients on their way to a stage. Who brings more than it holds has to wait.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
    emptied: Condvar,
    capacity: usize,
    /// How many workers may do what takes long at a time.
    long_max: usize,
}

struct State<T> {
    items: VecDeque<T>,
    long: VecDeque<T>,
    long_under_way: usize,
    closed: bool,
}

/// What a worker gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Clients, none if patience was over first.
    Batch,
    /// A client that will take long; then [`Queue::finish_long`].
    Long,
    /// Nothing any more.
    Closed,
}

impl<T> Queue<T> {
    /// A queue for so many workers.
    pub(super) fn new(capacity: usize, workers: usize) -> Self {
        let items = VecDeque::with_capacity(capacity);
        let state = State { items, long: VecDeque::new(), long_under_way: 0, closed: false };
        Self {
            state: Mutex::new(state),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            capacity,
            long_max: workers.saturating_sub(1).max(1),
        }
    }

    /// Adds items, waiting for room.
    pub(super) fn push_all(&self, items: impl IntoIterator<Item = T>) {
        let mut state = self.lock();
        for item in items {
            while state.items.len() >= self.capacity && !state.closed {
                self.filled.notify_one();
                state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.items.push_back(item);
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Adds an item even beyond the capacity: for the stage that serves this queue, which would wait for itself.
    pub(super) fn put_back(&self, item: T) {
        self.lock().items.push_back(item);
        self.filled.notify_one();
    }

    /// Adds an item that will take long.
    pub(super) fn put_long(&self, item: T) {
        self.lock().long.push_back(item);
        self.filled.notify_one();
    }

    /// A worker has done what took long.
    pub(super) fn finish_long(&self) {
        self.lock().long_under_way -= 1;
        self.filled.notify_one();
    }

    /// Waits for items, at most for `patience`, and takes one that takes long, or else at most `batch_max` others.
    pub(super) fn take(&self, batch_max: usize, patience: Option<Duration>, batch: &mut Vec<T>) -> Taken {
        let mut state = self.lock();
        loop {
            if state.long_under_way < self.long_max
                && !state.closed
                && let Some(item) = state.long.pop_front()
            {
                state.long_under_way += 1;
                batch.push(item);
                self.wake_another(&state);
                return Taken::Long;
            }
            if !state.items.is_empty() {
                let count = state.items.len().min(batch_max);
                batch.extend(state.items.drain(..count));
                self.emptied.notify_all();
                self.wake_another(&state);
                return Taken::Batch;
            }
            if state.closed {
                return Taken::Closed;
            }
            state = match patience {
                None => self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let waited = self.filled.wait_timeout(state, patience);
                    let (state, result) = waited.unwrap_or_else(PoisonError::into_inner);
                    if result.timed_out() {
                        return Taken::Batch;
                    }
                    state
                }
            };
        }
    }

    fn wake_another(&self, state: &State<T>) {
        let long = !state.long.is_empty() && state.long_under_way < self.long_max;
        if long || !state.items.is_empty() {
            self.filled.notify_one();
        }
    }

    /// Waits until the workers have taken all clients, but not for longer than `patience`: who brings more then has more
    /// to bring at once.
    pub(super) fn wait_until_taken(&self, patience: Duration) {
        let waits = |state: &mut State<T>| !state.items.is_empty() && !state.closed;
        // How the wait ended does not matter.
        let _ = self.emptied.wait_timeout_while(self.lock(), patience, waits);
    }

    /// Takes all that is left.
    pub(super) fn drain(&self) -> Vec<T> {
        let mut state = self.lock();
        let mut left: Vec<T> = state.items.drain(..).collect();
        left.extend(state.long.drain(..));
        left
    }

    /// Clients waiting.
    pub(super) fn len(&self) -> usize {
        let state = self.lock();
        state.items.len() + state.long.len()
    }

    /// Wakes everybody; nobody waits from here on.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of three workers two may do what takes long; the third gets the others, and so does a single one.
    #[test]
    fn a_worker_is_left_for_what_does_not_take_long() {
        let (queue, mut batch) = (Queue::new(8, 3), Vec::new());
        (1..=3).for_each(|item| queue.put_long(item));
        queue.push_all([11, 12]);
        let mut take = || (queue.take(64, Some(Duration::ZERO), &mut batch), std::mem::take(&mut batch));
        assert_eq!(take(), (Taken::Long, vec![1]));
        assert_eq!(take(), (Taken::Long, vec![2]));
        assert_eq!(take(), (Taken::Batch, vec![11, 12]));
        assert_eq!(take(), (Taken::Batch, vec![]), "nothing that this worker may do");
        queue.finish_long();
        assert_eq!(take(), (Taken::Long, vec![3]));
        queue.put_long(4);
        queue.close();
        assert_eq!(take(), (Taken::Closed, vec![]), "what takes long is not begun any more");
        assert_eq!(queue.drain(), [4]);
    }
}
