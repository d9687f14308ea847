//! Taking turns: a lock that notices when a signal handler comes upon what its own thread is doing.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// A value that one thread uses at a time.
pub(crate) struct Turn<T> {
    value: Mutex<T>,
    /// The mark of the thread that uses it; 0 for none.
    user: AtomicUsize,
}

/// The value, as long as it is one's turn.
pub(crate) struct Held<'a, T> {
    value: MutexGuard<'a, T>,
    user: &'a AtomicUsize,
}

impl<T> Turn<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), user: AtomicUsize::new(0) }
    }

    /// Waits for its turn. None if this very thread is using the value, which would wait for ever.
    pub(crate) fn wait(&self) -> Option<Held<'_, T>> {
        if self.user.load(Ordering::Relaxed) == thread_mark() {
            return None;
        }
        Some(self.held(self.value.lock().unwrap_or_else(std::sync::PoisonError::into_inner)))
    }

    /// None if somebody is using the value.
    pub(crate) fn now(&self) -> Option<Held<'_, T>> {
        match self.value.try_lock() {
            Ok(value) => Some(self.held(value)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.held(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn held<'a>(&'a self, value: MutexGuard<'a, T>) -> Held<'a, T> {
        self.user.store(thread_mark(), Ordering::Relaxed);
        Held { value, user: &self.user }
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

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        // Before the lock is opened: afterwards it is another thread's to write.
        self.user.store(0, Ordering::Relaxed);
    }
}

/// A number that no two threads share at a time: where the thread keeps a byte of its own.
fn thread_mark() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_comes_upon_itself_does_not_wait() {
        let turn = Turn::new(1);
        let held = turn.wait().expect("nobody else");
        assert!(turn.wait().is_none());
        assert!(turn.now().is_none());
        drop(held);
        assert!(turn.wait().is_some_and(|value| *value == 1));
    }

    #[test]
    fn another_thread_waits_for_its_turn() {
        let turn = Turn::new(1);
        std::thread::scope(|scope| {
            let mut held = turn.wait().expect("nobody else");
            let other = scope.spawn(|| turn.wait().map(|value| *value));
            assert!(scope.spawn(|| turn.now().is_none()).join().expect("no panic"));
            *held = 2;
            drop(held);
            assert_eq!(other.join().expect("no panic"), Some(2));
        });
    }
}
