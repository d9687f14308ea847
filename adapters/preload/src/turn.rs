//! Taking turns: a lock that a signal handler never waits for when it has interrupted its own thread in here.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A value that one thread uses at a time.
pub(crate) struct Turn<T>(Mutex<T>);

/// The value, as long as it is one's turn.
pub(crate) struct Held<'a, T> {
    // Opened before the thread has left.
    value: MutexGuard<'a, T>,
    _entered: Entered,
}

/// The thread is between asking for a turn and having given it back.
struct Entered;

thread_local! {
    /// How many turns the thread has, or is asking for.
    static ENTERED: Cell<u32> = const { Cell::new(0) };
}

impl<T> Turn<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for its turn. None if this very thread has one already, or is just getting it: it could wait for itself.
    pub(crate) fn wait(&self) -> Option<Held<'_, T>> {
        if ENTERED.get() > 0 {
            return None;
        }
        let entered = Entered::new();
        Some(Held { value: self.0.lock().unwrap_or_else(PoisonError::into_inner), _entered: entered })
    }

    /// None if another thread is using the value.
    pub(crate) fn now(&self) -> Option<Held<'_, T>> {
        let entered = Entered::new();
        let value = match self.0.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Held { value, _entered: entered })
    }
}

impl Entered {
    fn new() -> Self {
        ENTERED.set(ENTERED.get() + 1);
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        ENTERED.set(ENTERED.get() - 1);
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_comes_upon_itself_does_not_wait() {
        let turn = Turn::new(1);
        let held = turn.wait().expect("no other user");
        assert!(turn.wait().is_none());
        assert!(turn.now().is_none());
        drop(held);
        assert!(turn.wait().is_some_and(|value| *value == 1));
    }

    #[test]
    fn another_thread_waits_for_its_turn() {
        let turn = Turn::new(1);
        std::thread::scope(|scope| {
            let mut held = turn.wait().expect("no other user");
            let other = scope.spawn(|| turn.wait().map(|value| *value));
            assert!(scope.spawn(|| turn.now().is_none()).join().expect("no panic"));
            *held = 2;
            drop(held);
            assert_eq!(other.join().expect("no panic"), Some(2));
        });
    }
}
