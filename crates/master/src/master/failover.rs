//! While a worker is away, the others serve its queue.
//!
//! With `SO_REUSEPORT` each worker has listening sockets of its own, and the kernel goes on to put new connections into
//! their queues while the worker is dead, starting or standing still. So the master, which has all sockets, hands those
//! of a worker that is away to the others, and has them let go when the worker is back. No connection is moved or reset:
//! the queues stay, only who accepts from them changes.

use std::os::fd::BorrowedFd;

use baton_report::log;

use super::Master;
use crate::channel::Order;
use crate::listeners::Listening;
use crate::phase::Phase;

impl Master {
    /// Hands out the sockets of workers that are away, and takes back those of workers that are there again. To be called
    /// after everything that changes which ones are away.
    pub(super) fn arrange_cover(&mut self) {
        for place in 0..self.crew.places.len() {
            let is_away = self.phase == Phase::Serving && !self.crew.places[place].is_attended();
            let was_away = std::mem::replace(&mut self.crew.places[place].is_covered, is_away);
            match (was_away, is_away) {
                (false, true) => self.tell_others(place, |master, other| master.cover(place, other)),
                (true, false) => {
                    self.tell_others(place, |master, other| master.uncover(place, other));
                    self.cover_for_others(place);
                }
                (true, true) | (false, false) => {}
            }
        }
    }

    /// The listeners have changed.
    pub(super) fn renew_cover(&mut self) {
        for place in 0..self.crew.places.len() {
            if std::mem::take(&mut self.crew.places[place].is_covered) {
                self.tell_others(place, |master, other| master.uncover(place, other));
            }
        }
        self.arrange_cover();
    }

    /// A worker is back: from now on it covers for those that are still away.
    fn cover_for_others(&self, by: usize) {
        if self.crew.places[by].is_attended() {
            let covered = |&place: &usize| place != by && self.crew.places[place].is_covered;
            (0..self.crew.places.len()).filter(covered).for_each(|place| self.cover(place, by));
        }
    }

    fn tell_others(&self, place: usize, tell: impl Fn(&Self, usize)) {
        let attended = |&other: &usize| other != place && self.crew.places[other].is_attended();
        (0..self.crew.places.len()).filter(attended).for_each(|other| tell(self, other));
    }

    fn cover(&self, place: usize, by: usize) {
        let sockets = self.sockets_of_its_own(place);
        for part in sockets.chunks(baton_sys::passing::DESCRIPTORS_MAX) {
            let (ids, sockets): (_, Vec<_>) = part.iter().copied().unzip();
            // If it cannot be told, it is gone, or about to be found out.
            if let Err(error) = self.crew.tell(by, &Order::Cover { place, ids }, &sockets) {
                log::warning(format_args!("worker {by} cannot cover for worker {place}: {error}"));
            }
        }
    }

    fn uncover(&self, place: usize, by: usize) {
        let _ = self.crew.tell(by, &Order::Uncover { place }, &[]);
    }

    /// The sockets of a worker that no other accepts from.
    fn sockets_of_its_own(&self, place: usize) -> Vec<(usize, BorrowedFd<'_>)> {
        let processes = self.crew.places.len();
        let own = |one| Listening::sockets_of(one, place, processes).map(move |socket| (one.id, socket));
        self.listeners.iter().filter(|one| one.is_split()).flat_map(own).collect()
    }
}
