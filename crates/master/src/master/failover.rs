//! Failover: while a worker is down, the others accept from its sockets.
//!
//! With `SO_REUSEPORT` each worker has listening sockets of its own. The kernel continues to queue new connections there
//! while the worker is dead, starting or stuck. The master has all sockets, so it hands those of a worker that is down to
//! the others, and takes them back when the worker serves again. No connection is moved or reset: other workers accept
//! from the same queues.

use std::os::fd::BorrowedFd;

use baton_report::log;

use super::Master;
use crate::channel::ToWorker;
use crate::listeners::Listening;
use crate::phase::Phase;

impl Master {
    /// Hands out the sockets of workers that are down, and takes back those of workers that serve again. To be called
    /// after everything that changes which workers are down.
    pub(super) fn update_failover(&mut self) {
        for slot in 0..self.workers.slots.len() {
            let is_away = self.phase == Phase::Serving && !self.workers.slots[slot].is_available();
            let was_away = std::mem::replace(&mut self.workers.slots[slot].is_failed_over, is_away);
            match (was_away, is_away) {
                (false, true) => self.tell_others(slot, |master, other| master.accept_for(slot, other)),
                (true, false) => {
                    self.tell_others(slot, |master, other| master.stop_accepting_for(slot, other));
                    self.accept_for_others(slot);
                }
                (true, true) | (false, false) => {}
            }
        }
    }

    /// The listeners have changed: hands their sockets out anew.
    pub(super) fn restart_failover(&mut self) {
        for slot in 0..self.workers.slots.len() {
            if std::mem::take(&mut self.workers.slots[slot].is_failed_over) {
                self.tell_others(slot, |master, other| master.stop_accepting_for(slot, other));
            }
        }
        self.update_failover();
    }

    /// A worker serves again: from now on it accepts for those that are still down.
    fn accept_for_others(&self, by: usize) {
        if self.workers.slots[by].is_available() {
            let accepted_for = |&slot: &usize| slot != by && self.workers.slots[slot].is_failed_over;
            (0..self.workers.slots.len()).filter(accepted_for).for_each(|slot| self.accept_for(slot, by));
        }
    }

    fn tell_others(&self, slot: usize, tell: impl Fn(&Self, usize)) {
        let attended = |&other: &usize| other != slot && self.workers.slots[other].is_available();
        (0..self.workers.slots.len()).filter(attended).for_each(|other| tell(self, other));
    }

    fn accept_for(&self, slot: usize, by: usize) {
        let sockets = self.sockets_of_its_own(slot);
        for part in sockets.chunks(baton_sys::passing::DESCRIPTORS_MAX) {
            let (ids, sockets): (_, Vec<_>) = part.iter().copied().unzip();
            // If the message cannot be sent, the worker has ended or the watchdog will notice it.
            if let Err(error) = self.workers.tell(by, &ToWorker::AcceptFor { slot, ids }, &sockets) {
                log::warning(format_args!("worker {by} cannot accept for worker {slot}: {error}"));
            }
        }
    }

    fn stop_accepting_for(&self, slot: usize, by: usize) {
        let _ = self.workers.tell(by, &ToWorker::StopAcceptingFor { slot }, &[]);
    }

    /// The sockets of a worker from which no other worker accepts.
    fn sockets_of_its_own(&self, slot: usize) -> Vec<(usize, BorrowedFd<'_>)> {
        let processes = self.workers.slots.len();
        let own = |one| Listening::sockets_of(one, slot, processes).map(move |socket| (one.id, socket));
        self.listeners.iter().filter(|one| one.is_split()).flat_map(own).collect()
    }
}
