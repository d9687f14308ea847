//! Readers and writers never work at the same time: each kind has the caches of the CPU for itself for a while.
//!
//! Source: Harji 2010, sections 2.2.3 (cohort scheduling) and 5.1.1.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The two kinds of stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Readers,
    Writers,
}

/// Which kind of stages may work now.
#[derive(Default)]
pub(super) struct Cohort {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many of each kind are working; at most one of the two is not 0.
    working: [usize; 2],
    /// How many of each kind wait for the others to end.
    waiting: [usize; 2],
}

/// The right to work; ends when dropped.
pub(super) struct Turn<'a> {
    cohort: &'a Cohort,
    kind: Kind,
}

impl Cohort {
    /// Waits until no member of the other kind works. A kind that the other waits for takes no more members.
    pub(super) fn enter(&self, kind: Kind) -> Turn<'_> {
        let (mine, others) = (kind as usize, 1 - kind as usize);
        let mut state = self.lock();
        state.waiting[mine] += 1;
        while state.working[others] > 0 || (state.working[mine] > 0 && state.waiting[others] > 0) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting[mine] -= 1;
        state.working[mine] += 1;
        Turn { cohort: self, kind }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.cohort.lock();
        state.working[self.kind as usize] -= 1;
        if state.working[self.kind as usize] == 0 {
            drop(state);
            self.cohort.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Many readers and writers, each checking that none of the other kind is inside with it.
    #[test]
    fn readers_and_writers_never_meet() {
        let cohort = Cohort::default();
        let inside = [AtomicUsize::new(0), AtomicUsize::new(0)];
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (cohort, inside) = (&cohort, &inside);
                scope.spawn(move || {
                    let kind = if thread % 2 == 0 { Kind::Readers } else { Kind::Writers };
                    for _ in 0..500 {
                        let turn = cohort.enter(kind);
                        inside[kind as usize].fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        assert_eq!(inside[1 - kind as usize].load(Ordering::SeqCst), 0);
                        inside[kind as usize].fetch_sub(1, Ordering::SeqCst);
                        drop(turn);
                    }
                });
            }
        });
    }
}
