//! What one loop has to do with a roster: its seat, and what it holds.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};

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
    idle_since_ms: u64,
    handed_over_us: u64,
    /// Its own descriptor of the bell, so that it can be watched and unwatched by itself.
    pub(crate) bell: Option<OwnedFd>,
}

impl Attendance {
    pub(crate) fn new(roster: &Arc<Roster>) -> Self {
        let (seat, bell) = (roster.sit_down(), roster.bell().try_clone_to_owned().ok());
        Self {
            roster: Arc::clone(roster),
            seat,
            held: HashMap::new(),
            waiting: 0,
            idle_since_ms: 0,
            handed_over_us: 0,
            bell,
        }
    }

    /// Whether there is a lane to be had.
    pub(crate) fn can_take(&self) -> bool {
        self.seat.is_some() && self.roster.has_free()
    }

    /// How many lanes are to be had.
    pub(crate) fn free(&self) -> usize {
        if self.seat.is_some() { self.roster.count_free() } else { 0 }
    }

    /// Takes a lane: its number, and that of its process.
    pub(crate) fn take(&mut self) -> Option<usize> {
        let lane = self.roster.take(self.seat?)?;
        self.held.insert(lane.index(), lane);
        Some(lane.index())
    }

    /// Whether it can take part at all.
    pub(crate) fn is_seated(&self) -> bool {
        self.seat.is_some()
    }

    /// Whether the processes share an address, so that only the lanes say how many there are.
    pub(crate) fn is_learned(&self) -> bool {
        self.roster.is_learned()
    }

    /// Whether there was a process for each of the lanes.
    pub(crate) fn is_bounded(&self) -> bool {
        self.roster.is_bounded()
    }

    /// Takes a lane that has not been there, if it is time to try whether there is a process for it.
    pub(crate) fn probe(&mut self, now_ms: u64) -> Option<usize> {
        let lane = self.roster.probe(self.seat?, now_ms)?;
        self.held.insert(lane.index(), lane);
        Some(lane.index())
    }

    /// When [`probe`](Self::probe) has something to give again.
    pub(crate) fn probe_due_ms(&self) -> Option<u64> {
        Some(self.roster.probe_due_ms()).filter(|due_ms| *due_ms != u64::MAX)
    }

    /// How often any loop has closed a connection.
    pub(crate) fn given_back(&self) -> u64 {
        self.roster.given_back()
    }

    /// The application has accepted a connection for which no other one was given up.
    pub(crate) fn note_accepted(&self, was_doubtful: bool) {
        self.roster.note_accepted(was_doubtful);
    }

    /// A connection starves. Whether there is a lane too many.
    pub(crate) fn note_starving(&self, is_doubtful: bool, now_ms: u64) -> bool {
        self.roster.note_starving(is_doubtful, now_ms)
    }

    /// Asks other loops to give up a connection, in this state, for one of this loop that starves; `None`: no more.
    pub(crate) fn starve(&self, starving: Option<Parting>) {
        let Some(seat) = self.seat else { return };
        self.roster.starve(seat, starving);
        if starving.is_some() && self.roster.others_idle_since(seat).is_some() {
            self.roster.ring();
        }
    }

    /// Whether this loop is to give up a connection for one of another loop that starves, and in which state.
    pub(crate) fn take_starving(&self) -> Option<Parting> {
        let seat = self.seat.filter(|_| self.is_learned() && self.has_others())?;
        let parting = self.roster.take_starving(seat)?;
        // It may have more of them.
        self.roster.ring();
        Some(parting)
    }

    /// Whether there are other loops.
    pub(crate) fn has_others(&self) -> bool {
        self.roster.has_others()
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
        self.roster.lanes() == 1 && !self.is_learned()
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

    /// Says how many requests wait here, and since when.
    pub(crate) fn want(&mut self, waiting: usize, since_us: u64) {
        let waiting = waiting as u64;
        let Some(seat) = self.seat.filter(|_| waiting != self.waiting) else { return };
        let before = std::mem::replace(&mut self.waiting, waiting);
        self.roster.want(seat, waiting, since_us);
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

    /// Says since when this loop keeps connections that no request uses; 0: it does not.
    pub(crate) fn keep_idle(&mut self, since_ms: u64) {
        if let Some(seat) = self.seat
            && std::mem::replace(&mut self.idle_since_ms, since_ms) != since_ms
        {
            self.roster.keep_idle(seat, since_ms);
        }
    }

    /// Since when another loop keeps connections that no request uses.
    pub(crate) fn others_idle_since(&self) -> Option<u64> {
        self.roster.others_idle_since(self.seat.filter(|_| self.has_others())?)
    }

    /// Asks other loops to give up the connections that no request uses.
    pub(crate) fn ask_for_idle(&self) {
        self.roster.ring();
    }

    /// Whether requests of other loops wait.
    pub(crate) fn is_wanted_by_others(&self) -> bool {
        self.roster.waiting() > self.waiting
    }

    /// Whether a process that is free goes to another loop, though a request may have waited here since then.
    pub(crate) fn hands_over(&mut self, since_us: Option<u64>) -> bool {
        if !self.is_wanted_before(since_us) {
            return false;
        }
        let now_us = monotonic_us();
        if now_us < self.handed_over_us + HAND_OVER_PAUSE_US {
            return false;
        }
        self.handed_over_us = now_us;
        true
    }

    /// Whether a request of another loop comes before the one that has waited here since then, or before one that might
    /// come: whether it has waited for considerably longer.
    pub(crate) fn is_wanted_before(&self, since_us: Option<u64>) -> bool {
        let Some(seat) = self.seat.filter(|_| self.is_wanted_by_others()) else { return false };
        let now_us = monotonic_us();
        let waited_us = since_us.map_or(0, |since_us| now_us.saturating_sub(since_us));
        self.roster.others_wait_since(seat, now_us.saturating_sub(waited_us + waited_us / 4 + MARGIN_US))
    }
}

/// The time on the clock that all loops share: theirs advance in steps of milliseconds.
pub(crate) fn monotonic_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

/// By how much longer than a quarter more a request of another loop has to have waited to come first. To hand a process over
/// costs a connection: where requests take microseconds, their order within a millisecond is not worth it.
const MARGIN_US: u64 = 1_000;

/// How long a loop hands no other process over. Where many are released in that time, its clients presumably have more
/// requests at once, and connections would cost more than the order is worth.
const HAND_OVER_PAUSE_US: u64 = 2_000;

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
