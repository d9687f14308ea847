//! Helpers: threads that do blocking jobs one at a time, so that an event loop need not wait.
//!
//! After Flash (Pai, 1999, sections 4.2.4 and 4.4.1): a helper is started when all others are busy, and kept. It works on the
//! caches that it shares with the loop and returns no bytes, only word that the job is done, as an event.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::client::Wake;
use crate::clients::Token;
use crate::job::Job;
use crate::mailbox::Mailbox;

/// Helpers of one event loop.
#[derive(Debug)]
pub(crate) struct Helpers {
    shared: Arc<Shared>,
    /// Bound on the number of helpers; changed by a tuner.
    pub(crate) helpers_max: usize,
    under_way: usize,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    idle: AtomicUsize,
    done: Mailbox<(Token, Wake)>,
}

#[derive(Debug)]
struct Queue {
    jobs: VecDeque<(Token, Job)>,
    helpers: usize,
    closed: bool,
}

impl Helpers {
    /// No helpers yet; at most `helpers_max` later.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub(crate) fn new(helpers_max: usize) -> io::Result<Self> {
        let queue = Queue { jobs: VecDeque::new(), helpers: 0, closed: false };
        let shared = Shared {
            queue: Mutex::new(queue),
            work: Condvar::new(),
            idle: AtomicUsize::new(0),
            done: Mailbox::new()?,
        };
        Ok(Self { shared: Arc::new(shared), helpers_max: helpers_max.max(1), under_way: 0 })
    }

    /// Readable when a job is done.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.shared.done.descriptor()
    }

    /// Jobs given out and not yet taken back.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Threads there are.
    pub(crate) fn count(&self) -> usize {
        lock(&self.shared.queue).helpers
    }

    /// Gives a job to a helper.
    pub(crate) fn submit(&mut self, whose: Token, job: Job) {
        self.under_way += 1;
        let mut queue = lock(&self.shared.queue);
        queue.jobs.push_back((whose, job));
        let wanted = queue.jobs.len() > self.shared.idle.load(Ordering::Relaxed);
        if wanted && queue.helpers < self.helpers_max {
            let shared = Arc::clone(&self.shared);
            let helper = std::thread::Builder::new().name("helper".into()).stack_size(STACK_BYTES);
            if helper.spawn(move || shared.help()).is_ok() {
                queue.helpers += 1;
            } else if queue.helpers == 0 {
                // No thread to be had at all: the loop waits for the disk itself rather than never answer.
                let mine = queue.jobs.pop_back();
                drop(queue);
                if let Some((whose, job)) = mine {
                    self.shared.done.send([(whose, Wake::Job(job.run()))]);
                }
                return;
            }
        }
        drop(queue);
        self.shared.work.notify_one();
    }

    /// Takes the jobs that are done.
    pub(crate) fn take_done(&mut self, into: &mut Vec<(Token, Wake)>) {
        let before = into.len();
        self.shared.done.take(into);
        self.under_way -= into.len() - before;
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn help(&self) {
        loop {
            let mut queue = lock(&self.queue);
            let (whose, job) = loop {
                if queue.closed {
                    return;
                }
                if let Some(next) = queue.jobs.pop_front() {
                    break next;
                }
                self.idle.fetch_add(1, Ordering::Relaxed);
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                self.idle.fetch_sub(1, Ordering::Relaxed);
            };
            drop(queue);
            self.done.send([(whose, Wake::Job(job.run()))]);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A helper's stack: resolving a name and reading 64 KiB at a time need little.
const STACK_BYTES: usize = 256 * 1024;
