//! The order of jobs: what is short goes first, and what takes long never has all threads.
//!
//! One queue for all would let a client that guesses passwords stop the handshakes and the cold files of every site. Within a
//! class, clients take turns. Classes take some turns, too, or a client with endless short jobs would stop the long ones of others.

use baton_shares::{ClientKey, FairQueue};

use baton_session::job::Job;

/// What a job does to those behind it. The order of the variants is the order of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobClass {
    /// Part of a millisecond, and nothing is served before it.
    Handshake,
    /// As long as the disk, or the client of a waiting send, takes.
    File,
    /// Milliseconds of the processor, for an answer that could do without.
    Compression,
    /// Tens of milliseconds of the processor, which any client can ask for.
    Password,
}

/// Jobs that wait, by class, and how many of each class are at work.
#[derive(Debug)]
pub(crate) struct JobQueue<T> {
    waiting: [FairQueue<T>; CLASSES],
    running: [usize; CLASSES],
    /// Jobs begun; wraps around.
    begun: usize,
}

impl JobClass {
    const ALL: [Self; CLASSES] = [Self::Handshake, Self::File, Self::Compression, Self::Password];

    pub(crate) fn of(job: &Job) -> Self {
        match job {
            Job::Handshake(_) => Self::Handshake,
            Job::Find { .. } | Job::Rewrite(..) | Job::Read(..) | Job::PageIn { .. } | Job::Send { .. } => {
                Self::File
            }
            Job::Code(..) => Self::Compression,
            Job::Verify(..) => Self::Password,
        }
    }

    /// How many of so many threads may be at jobs of this class. More threads make what needs the processor no faster.
    fn share(self, threads: usize) -> usize {
        match self {
            Self::Handshake | Self::File => threads,
            Self::Compression => (threads / 2).max(1),
            Self::Password => (threads / 4).max(1),
        }
    }
}

impl<T> Default for JobQueue<T> {
    fn default() -> Self {
        Self { waiting: Default::default(), running: [0; CLASSES], begun: 0 }
    }
}

impl<T> JobQueue<T> {
    pub(crate) fn push(&mut self, class: JobClass, client: Option<ClientKey>, job: T) {
        self.waiting[class as usize].push(client, job);
    }

    /// Takes back the newest job of a client in a class, which is not begun.
    pub(crate) fn take_back(&mut self, class: JobClass, client: Option<ClientKey>) -> Option<T> {
        self.waiting[class as usize].take_back(client)
    }

    /// Keeps the `wanted` jobs of those that are not begun.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&T) -> bool) {
        self.waiting.iter_mut().for_each(|class| class.retain(&wanted));
    }

    /// Begins the next job that one of so many threads may do.
    pub(crate) fn begin(&mut self, threads: usize) -> Option<(JobClass, T)> {
        let mut classes = JobClass::ALL;
        classes.rotate_left(self.first());
        let class = classes.into_iter().find(|class| self.ready(*class, threads) > 0)?;
        let job = self.waiting[class as usize].pop(|_| true)?;
        self.running[class as usize] += 1;
        self.begun = self.begun.wrapping_add(1);
        Some((class, job))
    }

    /// A job of this class has been done.
    pub(crate) fn end(&mut self, class: JobClass) {
        self.running[class as usize] -= 1;
    }

    /// Jobs that could begin now, if so many threads had nothing else to do.
    pub(crate) fn count_ready(&self, threads: usize) -> usize {
        JobClass::ALL.into_iter().map(|class| self.ready(class, threads)).sum()
    }

    /// Jobs that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.iter().map(FairQueue::len).sum()
    }

    /// Jobs at work.
    pub(crate) fn count_running(&self) -> usize {
        self.running.iter().sum()
    }

    /// The class that goes first this time: nearly always the shortest.
    fn first(&self) -> usize {
        let (round, place) = (self.begun / TURN, self.begun % TURN);
        if place == TURN - 1 { round % CLASSES } else { 0 }
    }

    fn ready(&self, class: JobClass, threads: usize) -> usize {
        let room = class.share(threads).saturating_sub(self.running[class as usize]);
        self.waiting[class as usize].len().min(room)
    }
}

const CLASSES: usize = 4;

/// Every fourth job is of the next class in turn, if that has one: each class has at least every sixteenth.
const TURN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn begin_all(queue: &mut JobQueue<u8>, helpers: usize) -> Vec<u8> {
        std::iter::from_fn(|| queue.begin(helpers)).map(|(_, job)| job).collect()
    }

    #[test]
    fn short_jobs_go_first_and_each_class_in_its_order() {
        let mut queue = JobQueue::default();
        for (job, class) in
            [JobClass::Password, JobClass::Compression, JobClass::File, JobClass::File, JobClass::Handshake]
                .into_iter()
                .enumerate()
        {
            queue.push(class, None, job as u8);
        }
        assert_eq!(queue.count_ready(8), 5);
        assert_eq!(begin_all(&mut queue, 8), [4, 2, 3, 1, 0]);
    }

    /// Goal: who asks for a hundred cold files delays the one file of another client by one.
    #[test]
    fn clients_take_turns_within_a_class() {
        let client = |last| Some(ClientKey::of([192, 0, 2, last].into()));
        let mut queue = JobQueue::default();
        (0..100).for_each(|job| queue.push(JobClass::File, client(1), job));
        queue.push(JobClass::File, client(2), 200);
        assert_eq!(begin_all(&mut queue, 8)[..3], [0, 200, 1]);
    }

    /// Goal: a client that asks for handshakes without end holds up another's file for a few of them.
    #[test]
    fn no_class_has_all_turns() {
        let client = |last| Some(ClientKey::of([192, 0, 2, last].into()));
        let mut queue = JobQueue::default();
        queue.push(JobClass::File, client(2), 200);
        queue.push(JobClass::Password, client(2), 201);
        let order: Vec<u8> = std::iter::from_fn(|| {
            queue.push(JobClass::Handshake, client(1), 1);
            let (class, job) = queue.begin(1)?;
            queue.end(class);
            Some(job)
        })
        .take(CLASSES * TURN)
        .collect();
        assert!(order.contains(&200) && order.contains(&201), "{order:?}");
        assert_eq!(order.iter().filter(|job| **job == 1).count(), CLASSES * TURN - 2);
    }

    #[test]
    fn long_jobs_leave_helpers_for_the_others() {
        let mut queue = JobQueue::default();
        (0..10).for_each(|job| queue.push(JobClass::Password, None, job));
        (10..20).for_each(|job| queue.push(JobClass::Compression, None, job));
        assert_eq!(queue.count_ready(8), 2 + 4);
        assert_eq!(begin_all(&mut queue, 8), [10, 11, 12, 13, 0, 1]);
        queue.end(JobClass::Password);
        assert_eq!(begin_all(&mut queue, 8), [2]);
        queue.push(JobClass::Handshake, None, 20);
        assert_eq!(begin_all(&mut queue, 8), [20], "at once");
        assert_eq!(queue.take_back(JobClass::Password, None), Some(9));
        // One helper does everything, one after the other.
        let mut queue = JobQueue::default();
        queue.push(JobClass::Password, None, 1);
        assert_eq!(begin_all(&mut queue, 1), [1]);
    }
}
