//! Heartbeats of event loops, counted in memory that the supervisor shares, without a system call.
//!
//! A loop that does not beat waits for events, or is stuck. To tell one from the other the supervisor wakes it
//! ([`Steering::wake`](crate::Steering::wake)): only a loop that waits for events beats then.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// The heartbeats of one worker's loops, in memory shared with the supervisor.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeats(&'static [AtomicU64]);

/// A loop's heartbeat, as the supervisor sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Changes as long as the loop moves.
    pub count: u64,
    /// The kernel's number of its thread.
    pub thread: u64,
}

impl Heartbeats {
    /// The heartbeats of so many workers with so many loops each; to be called before they are forked.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(crate) fn with_loops(workers: usize, loops: usize) -> io::Result<Vec<Self>> {
        let words = loops * LOOP_WORDS;
        let all = baton_sys::shared::shared_counters(words * workers)?;
        Ok(all.chunks(words).map(Self).collect())
    }

    /// The loops that have begun, by their numbers.
    pub fn beats(&self) -> impl Iterator<Item = (usize, Beat)> {
        let beat = |words: &[AtomicU64]| Beat {
            count: words[COUNT].load(Ordering::Relaxed),
            thread: words[THREAD].load(Ordering::Relaxed),
        };
        self.0.chunks(LOOP_WORDS).map(beat).enumerate().filter(|(_, beat)| beat.thread != 0)
    }

    /// Clears the heartbeats for the next worker.
    pub fn reset(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// The heart of a loop that begins, on the thread that calls this.
    pub(crate) fn heart(&self, number: usize) -> Heart {
        let words = &self.0[number * LOOP_WORDS..][..LOOP_WORDS];
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u64;
        words[THREAD].store(thread, Ordering::Relaxed);
        Heart { words, thread, count: 0 }
    }
}

/// One loop's heartbeat.
#[derive(Debug)]
pub(crate) struct Heart {
    words: &'static [AtomicU64],
    thread: u64,
    count: u64,
}

impl Heart {
    /// The loop moves. Costs a store.
    pub(crate) fn beat(&mut self) {
        self.count += 1;
        self.words[COUNT].store(self.count, Ordering::Relaxed);
    }
}

/// A loop that has ended must not look stuck. Nor must the loop of the next worker, which may have begun already.
impl Drop for Heart {
    fn drop(&mut self) {
        let _ = self.words[THREAD].compare_exchange(self.thread, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Words of a loop, as long as two cache lines: no line is written by two CPUs.
const LOOP_WORDS: usize = 16;
const COUNT: usize = 0;
const THREAD: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_seen_from_their_begin_to_their_end() {
        let workers = Heartbeats::with_loops(2, 2).unwrap();
        let seen = || workers[1].beats().map(|(number, beat)| (number, beat.count)).collect::<Vec<_>>();
        assert_eq!(seen(), []);
        let mut heart = workers[1].heart(1);
        heart.beat();
        heart.beat();
        assert_eq!(seen(), [(1, 2)]);
        assert_eq!(workers[0].beats().count(), 0);
        drop(heart);
        assert_eq!(seen(), []);
    }

    /// A worker that was replaced ends behind the begin of the next one.
    #[test]
    fn a_loop_that_ends_late_hides_no_other() {
        let worker = Heartbeats::with_loops(1, 1).unwrap()[0];
        let old = worker.heart(0);
        let next = std::thread::spawn(move || {
            let mut next = worker.heart(0);
            next.beat();
            next
        });
        let next = next.join().unwrap();
        drop(old);
        assert_eq!(worker.beats().map(|(_, beat)| beat.count).collect::<Vec<_>>(), [1]);
        drop(next);
    }
}
