//! What one loop has to do with a roster: its seat, and what it holds.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{Lane, Parting, Roster};

/// A loop at a roster. What it holds is given back when it goes.
#[derive(Debug)]
pub(crate) struct Attendance {
    roster: Arc<Roster>,
    /// None: all are taken. Then it gets nothing.
    seat: Option<u16>,
    /// What it holds, by the number of the lane.
    held: HashMap<usize, Lane>,
    waiting: u64,
    /// Its own descriptor of the bell, so that it can be watched and unwatched by itself.
    pub(crate) bell: Option<OwnedFd>,
}

impl Attendance {
    pub(crate) fn new(roster: &Arc<Roster>) -> Self {
        let (seat, bell) = (roster.sit_down(), roster.bell().try_clone_to_owned().ok());
        Self { roster: Arc::clone(roster), seat, held: HashMap::new(), waiting: 0, bell }
    }

    /// Whether there is a lane to be had.
    pub(crate) fn can_take(&self) -> bool {
        self.seat.is_some() && self.roster.has_free()
    }

    /// Takes a lane: its number, and that of its process.
    pub(crate) fn take(&mut self) -> Option<usize> {
        let lane = self.roster.take(self.seat?)?;
        self.held.insert(lane.index(), lane);
        Some(lane.index())
    }

    /// Which process a lane is of.
    pub(crate) fn place(&self, lane: usize) -> usize {
        lane % self.roster.places()
    }

    /// A request is given to the process of a lane.
    pub(crate) fn count(&self, lane: usize) {
        if let Some(lane) = self.held.get(&lane) {
            self.roster.count(*lane);
        }
    }

    /// Whether the process of a lane has ended.
    pub(crate) fn has_ended(&self, lane: usize) -> bool {
        self.held.get(&lane).is_none_or(|lane| !self.roster.is_held(*lane))
    }

    /// Whether the process of a lane gets no further requests.
    pub(crate) fn is_spent(&self, lane: usize) -> bool {
        self.roster.is_spent(self.place(lane))
    }

    /// Whether a process that takes too long for a request is ended: it answers no others.
    pub(crate) fn ends_overdue(&self) -> bool {
        self.roster.lanes() == 1
    }

    /// Gives a lane back, and tells others who wait for one.
    pub(crate) fn give_back(&mut self, lane: usize, parting: Parting) {
        if let Some(lane) = self.held.remove(&lane) {
            self.roster.give_back(lane, parting);
            if self.is_wanted_by_others() {
                self.roster.ring();
            }
        }
    }

    /// Says how many requests wait here. When the first one does, others give up what they have kept for later.
    pub(crate) fn want(&mut self, waiting: usize) {
        let waiting = waiting as u64;
        let Some(seat) = self.seat.filter(|_| waiting != self.waiting) else { return };
        let before = std::mem::replace(&mut self.waiting, waiting);
        self.roster.want(seat, waiting);
        if before == 0 && self.roster.has_others() {
            self.roster.ring();
        }
        if waiting > before {
            self.roster.call_for_more();
        }
    }

    /// Requests wait here for which there is no process.
    pub(crate) fn call_for_more(&self) {
        if self.waiting > 0 {
            self.roster.call_for_more();
        }
    }

    /// Whether requests of other loops wait.
    pub(crate) fn is_wanted_by_others(&self) -> bool {
        self.roster.waiting() > self.waiting
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        for (_, lane) in self.held.drain() {
            self.roster.give_back(lane, Parting::Unsure);
        }
        if let Some(seat) = self.seat {
            self.roster.stand_up(seat);
        }
    }
}
