//! Failover: while a worker is down, the others accept from its sockets.
//!
//! With `SO_REUSEPORT` each worker has listening sockets of its own. The kernel continues to queue new connections there
//! while the worker is dead, starting or stuck. The master has all sockets, so it hands those of a worker that is down to
//! the others, and takes them back when the worker serves again. No connection is moved or reset: other workers accept
//! from the same queues.

use std::os::fd::BorrowedFd;

use baton_report::log;

use super::channel::ToWorker;
use super::listeners::{Listeners, Listening};
use super::workers::Workers;

/// Which workers' sockets the others have.
#[derive(Debug)]
pub(crate) struct Failover {
    is_failed_over: Vec<bool>,
}

impl Failover {
    /// Each of so many workers has its sockets for itself.
    pub(crate) fn new(workers: usize) -> Self {
        Self { is_failed_over: vec![false; workers] }
    }

    /// Hands out the sockets of workers that are down, and takes back those of workers that serve again. To be called
    /// after everything that changes which workers are down. `serves`: the server does, so that all workers should.
    pub(crate) fn update(&mut self, serves: bool, workers: &Workers, listeners: &Listeners) {
        for slot in 0..self.is_failed_over.len() {
            let is_away = serves && !workers.is_available(slot);
            let was_away = std::mem::replace(&mut self.is_failed_over[slot], is_away);
            match (was_away, is_away) {
                (false, true) => {
                    others(slot, workers).for_each(|other| accept_for(slot, other, workers, listeners));
                }
                (true, false) => {
                    others(slot, workers).for_each(|other| stop_accepting_for(slot, other, workers));
                    self.accept_for_others(slot, workers, listeners);
                }
                (true, true) | (false, false) => {}
            }
        }
    }

    /// The listeners have changed: takes all sockets back, for [`update`](Self::update) to hand them out anew.
    pub(crate) fn reset(&mut self, workers: &Workers) {
        for (slot, is_failed_over) in self.is_failed_over.iter_mut().enumerate() {
            if std::mem::take(is_failed_over) {
                others(slot, workers).for_each(|other| stop_accepting_for(slot, other, workers));
            }
        }
    }

    /// A worker serves again: from now on it accepts for those that are still down.
    fn accept_for_others(&self, by: usize, workers: &Workers, listeners: &Listeners) {
        if workers.is_available(by) {
            let is_down = |&slot: &usize| slot != by && self.is_failed_over[slot];
            let down = (0..self.is_failed_over.len()).filter(is_down);
            down.for_each(|slot| accept_for(slot, by, workers, listeners));
        }
    }
}

/// The workers that can accept for another one.
fn others(slot: usize, workers: &Workers) -> impl Iterator<Item = usize> {
    (0..workers.count()).filter(move |&other| other != slot && workers.is_available(other))
}

fn accept_for(slot: usize, by: usize, workers: &Workers, listeners: &Listeners) {
    for part in own_sockets(slot, workers.count(), listeners).chunks(baton_sys::passing::DESCRIPTORS_MAX) {
        let (ids, sockets): (_, Vec<_>) = part.iter().copied().unzip();
        // If the message cannot be sent, the worker has ended or the watchdog will notice it.
        if let Err(error) = workers.tell(by, &ToWorker::AcceptFor { slot, ids }, &sockets) {
            log::warning(format_args!("worker {by} cannot accept for worker {slot}: {error}"));
        }
    }
}

fn stop_accepting_for(slot: usize, by: usize, workers: &Workers) {
    let _ = workers.tell(by, &ToWorker::StopAcceptingFor { slot }, &[]);
}

/// The sockets of a worker from which no other worker accepts.
fn own_sockets(slot: usize, processes: usize, listeners: &Listeners) -> Vec<(usize, BorrowedFd<'_>)> {
    let own = |one| Listening::sockets_of(one, slot, processes).map(move |socket| (one.id, socket));
    listeners.iter().filter(|one| one.is_split()).flat_map(own).collect()
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;
    use crate::channel::{MESSAGE_BYTES_MAX, receive};
    use crate::listeners::for_test;

    /// The messages that have arrived at a worker, and the descriptors with each.
    fn messages(channel: &OwnedFd) -> Vec<(ToWorker, usize)> {
        rustix::io::ioctl_fionbio(channel, true).unwrap();
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let next = || receive(channel, &mut buffer).ok().flatten();
        std::iter::from_fn(next).map(|(message, descriptors)| (message, descriptors.len())).collect()
    }

    #[test]
    fn the_sockets_of_a_dead_worker_go_to_the_others_and_come_back() {
        let (mut workers, theirs) = Workers::for_test(3);
        let listeners = for_test(3);
        let mut failover = Failover::new(3);
        failover.update(true, &workers, &listeners);
        assert_eq!(messages(&theirs[0]), [], "all serve");

        workers.worker_mut(2).unwrap().serves = false;
        failover.update(true, &workers, &listeners);
        let accept = (ToWorker::AcceptFor { slot: 2, ids: vec![0] }, 1);
        assert_eq!(messages(&theirs[0]), std::slice::from_ref(&accept));
        assert_eq!((messages(&theirs[1]), messages(&theirs[2])), (vec![accept.clone()], vec![]));
        failover.update(true, &workers, &listeners);
        assert_eq!(messages(&theirs[0]), [], "once");

        let stop = (ToWorker::StopAcceptingFor { slot: 2 }, 0);
        failover.reset(&workers);
        failover.update(true, &workers, &listeners);
        assert_eq!(messages(&theirs[1]), [stop.clone(), accept], "the listeners have changed");
        workers.worker_mut(2).unwrap().serves = true;
        failover.update(true, &workers, &listeners);
        assert_eq!(messages(&theirs[0]).last(), Some(&stop));
    }
}
