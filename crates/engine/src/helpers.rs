//! Helpers: threads that do blocking jobs one at a time, so that an event loop need not wait.
//!
//! After Flash (Pai, 1999, sections 4.2.4 and 4.4.1): a helper starts when all others are busy, and stays until the
//! bound is lowered. It works on the caches that it shares with the loop, and returns no bytes, only an event for the
//! finished job. Which job is next, [`JobQueue`] says.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use baton_session::job::Job;
use baton_session::session::Wake;
use baton_shares::{ClientKey, Permit, Shares};
use baton_sys::mailbox::Mailbox;

use crate::clients::Token;
use crate::job_queue::{JobClass, JobQueue};

/// Helpers of one event loop.
#[derive(Debug)]
pub(crate) struct Helpers {
    shared: Arc<Shared>,
    /// Jobs given out and not yet taken back.
    under_way: Shares,
    taken: Vec<Done>,
}

/// A job that is done: whose it was, what it tells, and its place among those under way.
type Done = (Token, Wake, Permit);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    done: Mailbox<Done>,
}

#[derive(Debug)]
struct Queue {
    jobs: JobQueue<(Token, Job, Permit)>,
    helpers: usize,
    helpers_max: usize,
    /// Helpers that wait for a job.
    idle: usize,
    closed: bool,
}

impl Helpers {
    /// No helpers yet; at most `helpers_max` later.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub(crate) fn new(helpers_max: usize) -> io::Result<Self> {
        let helpers_max = helpers_max.max(1);
        let queue = Queue { jobs: JobQueue::default(), helpers: 0, helpers_max, idle: 0, closed: false };
        let shared = Shared { queue: Mutex::new(queue), work: Condvar::new(), done: Mailbox::new()? };
        Ok(Self { shared: Arc::new(shared), under_way: Shares::default(), taken: Vec::new() })
    }

    /// Readable when a job is done.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.shared.done.descriptor()
    }

    /// Jobs given out and not yet taken back.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.taken()
    }

    /// Jobs given out and not yet taken back, of each client `of_client_max` at most.
    pub(crate) fn under_way_by_many(&self, of_client_max: usize) -> usize {
        self.under_way.taken_by_many(of_client_max)
    }

    /// Running threads.
    pub(crate) fn count(&self) -> usize {
        lock(&self.shared.queue).helpers
    }

    /// Bound on [`count`](Self::count).
    pub(crate) fn helpers_max(&self) -> usize {
        lock(&self.shared.queue).helpers_max
    }

    /// Sets the bound. Helpers beyond it end as soon as they have no job.
    pub(crate) fn set_helpers_max(&self, helpers_max: usize) {
        let mut queue = lock(&self.shared.queue);
        queue.helpers_max = helpers_max.max(1);
        if queue.helpers > queue.helpers_max {
            self.shared.work.notify_all();
        }
    }

    /// Gives a job of a client to a helper.
    pub(crate) fn submit(&mut self, whose: Token, client: Option<ClientKey>, job: Job) {
        let class = JobClass::of(&job);
        let place = self.under_way.enter(client);
        let mut queue = lock(&self.shared.queue);
        queue.jobs.push(class, client, (whose, job, place));
        if queue.jobs.count_ready(queue.helpers_max) > queue.idle && queue.helpers < queue.helpers_max {
            let shared = Arc::clone(&self.shared);
            let helper = std::thread::Builder::new().name("helper".into()).stack_size(STACK_BYTES);
            if helper.spawn(move || shared.help()).is_ok() {
                queue.helpers += 1;
            } else if queue.helpers == 0 {
                // No thread can be started: the loop waits for the disk itself, or the client would never be answered.
                let mine = queue.jobs.take_back(class, client);
                drop(queue);
                if let Some((whose, job, place)) = mine {
                    self.shared.done.send([(whose, Wake::Job(job.run()), place)]);
                }
                return;
            }
        }
        drop(queue);
        self.shared.work.notify_one();
    }

    /// Drops the jobs of a client that has gone, as far as they are not begun: a client that asks for much and leaves would
    /// keep the helpers busy for no one.
    pub(crate) fn forget(&mut self, whose: Token) {
        lock(&self.shared.queue).jobs.retain(|(other, ..)| *other != whose);
    }

    /// Takes the jobs that are done.
    pub(crate) fn take_done(&mut self, into: &mut Vec<(Token, Wake)>) {
        self.shared.done.take(&mut self.taken);
        into.extend(self.taken.drain(..).map(|(whose, wake, _)| (whose, wake)));
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
        let mut queue = lock(&self.queue);
        loop {
            let (class, (whose, job, place)) = loop {
                if queue.closed || queue.helpers > queue.helpers_max {
                    queue.helpers -= 1;
                    // What this one could have done next may be for one that waits.
                    self.work.notify_one();
                    return;
                }
                let helpers_max = queue.helpers_max;
                if let Some(next) = queue.jobs.begin(helpers_max) {
                    break next;
                }
                queue.idle += 1;
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            };
            drop(queue);
            self.done.send([(whose, Wake::Job(job.run()), place)]);
            queue = lock(&self.queue);
            queue.jobs.end(class);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A helper's stack: resolving a name and reading 64 KiB at a time need little.
const STACK_BYTES: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use baton_buf::{FileSlice, OpenFile};
    use baton_upstream::ClientSocket;

    use super::*;

    const LEN: u64 = 4 << 20;

    /// A job that lasts until its client is gone, and that client.
    fn job(file: &Arc<OpenFile>) -> (Job, UnixStream) {
        let (socket, client) = UnixStream::pair().unwrap();
        let socket = Arc::new(ClientSocket::from(std::os::fd::OwnedFd::from(socket)));
        let slice = FileSlice::new(Arc::clone(file), 0, LEN);
        (Job::Send { socket, slice, patience: Duration::from_secs(600) }, client)
    }

    fn wait_for(helpers: &mut Helpers, jobs: usize) {
        let mut done = Vec::new();
        while done.len() < jobs {
            helpers.take_done(&mut done);
            std::thread::yield_now();
        }
    }

    /// Goal: helpers start with the jobs and end when the bound is lowered, busy ones later; later jobs are still done.
    #[test]
    fn there_are_as_many_helpers_as_jobs_and_bound_allow() {
        let named = tempfile::NamedTempFile::new().unwrap();
        named.as_file().set_len(LEN).unwrap();
        let file = Arc::new(OpenFile::new(File::open(named.path()).unwrap().into()));
        let mut helpers = Helpers::new(3).unwrap();
        let mut clients = Vec::new();
        for jobs in 1..=6 {
            let (job, client) = job(&file);
            helpers.submit(Token::from_data(jobs), None, job);
            clients.push(client);
            assert_eq!(helpers.count(), (jobs as usize).min(3));
        }
        helpers.set_helpers_max(1);
        assert_eq!((helpers.count(), helpers.under_way()), (3, 6), "all have a job");
        drop(clients);
        wait_for(&mut helpers, 6);
        while helpers.count() > 1 {
            std::thread::yield_now();
        }
        helpers.submit(Token::from_data(7), None, job(&file).0);
        wait_for(&mut helpers, 1);
        assert_eq!((helpers.count(), helpers.under_way()), (1, 0));
    }

    /// Goal: what a client that has gone waited for is not done, and has no place among the jobs under way.
    #[test]
    fn jobs_of_a_client_that_has_gone_are_not_begun() {
        let named = tempfile::NamedTempFile::new().unwrap();
        named.as_file().set_len(LEN).unwrap();
        let file = Arc::new(OpenFile::new(File::open(named.path()).unwrap().into()));
        let mut helpers = Helpers::new(1).unwrap();
        let (first, its_client) = job(&file);
        helpers.submit(Token::from_data(1), None, first);
        for _ in 0..3 {
            helpers.submit(Token::from_data(2), None, job(&file).0);
        }
        helpers.submit(Token::from_data(3), None, job(&file).0);
        helpers.forget(Token::from_data(2));
        assert_eq!(helpers.under_way(), 2);
        drop(its_client);
        wait_for(&mut helpers, 2);
        assert_eq!(helpers.under_way(), 0);
    }
}
