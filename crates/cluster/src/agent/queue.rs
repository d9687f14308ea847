//! Queues of what is due at some time, where each entry is due later than the one before.

use std::collections::VecDeque;

/// The next of those whose time has come.
pub(super) fn pop_due<T: Copy>(queue: &mut VecDeque<(u64, T)>, now_ms: u64) -> Option<T> {
    let (due_ms, value) = *queue.front()?;
    if due_ms > now_ms {
        return None;
    }
    queue.pop_front();
    Some(value)
}
