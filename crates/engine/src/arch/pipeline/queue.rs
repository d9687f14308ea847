//! A bounded queue between two stages.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Clients on their way to a stage. Who brings more than it holds has to wait.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
    emptied: Condvar,
    capacity: usize,
}

struct State<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new(capacity: usize) -> Self {
        let state = State { items: VecDeque::with_capacity(capacity), closed: false };
        Self { state: Mutex::new(state), filled: Condvar::new(), emptied: Condvar::new(), capacity }
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

    /// Waits for items, at most for `patience`, and takes at most `batch_max` of them. `false`: the queue has been
    /// closed and nothing is left.
    pub(super) fn take(&self, batch_max: usize, patience: Option<Duration>, batch: &mut Vec<T>) -> bool {
        let mut state = self.lock();
        while state.items.is_empty() {
            if state.closed {
                return false;
            }
            state = match patience {
                None => self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let waited = self.filled.wait_timeout(state, patience);
                    let (state, result) = waited.unwrap_or_else(PoisonError::into_inner);
                    if result.timed_out() {
                        return true;
                    }
                    state
                }
            };
        }
        let count = state.items.len().min(batch_max);
        batch.extend(state.items.drain(..count));
        let more = !state.items.is_empty();
        drop(state);
        self.emptied.notify_all();
        if more {
            self.filled.notify_one();
        }
        true
    }

    /// Clients waiting.
    pub(super) fn len(&self) -> usize {
        self.lock().items.len()
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
