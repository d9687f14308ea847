//! What the keeper of the processes and the master do with a roster.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::SeqCst;

use super::{
    ABSENT, CALLED, FREE, GENERATION_SHIFT, HELD, OPENING, OVERDUE, PLACE_GENERATION, PLACE_LIMIT, PLACE_PID,
    PLACE_REQUESTS, ROOM, Roster, SEAT_MASK, SEAT_PID, SEAT_SHIFT, SEAT_WAITING, SEATED, SEATS, SPENT,
    STATE_MASK, UNSURE, WAITING, notice,
};

/// One process, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceReport {
    /// The process.
    pub pid: u32,
    /// How it is, in one word.
    pub state: &'static str,
    /// How many requests it was given.
    pub requests: u64,
}

impl Roster {
    /// Readable when the keeper was called.
    pub fn calls(&self) -> BorrowedFd<'_> {
        self.call.as_fd()
    }

    /// Takes note of all calls up to now, and says whether there were any. What they were about is to be looked at
    /// afterwards.
    pub fn hear(&self) -> bool {
        let was_called = rustix::io::read(&self.call, &mut [0; 8]).is_ok();
        self.numbers[CALLED].store(0, SeqCst);
        was_called
    }

    /// Says whether it is of any use to call for more processes.
    pub fn offer_more(&self, there_may_be_more: bool) {
        self.numbers[ROOM].store(there_may_be_more.into(), SeqCst);
    }

    /// A process begins in an empty place, and will be given so many requests at the most. It gets none before it is
    /// [opened](Self::set_open).
    pub fn begin(&self, place: usize, pid: u32, requests_max: Option<u64>) {
        let cells = self.place(place);
        let generation = (cells[PLACE_GENERATION].fetch_add(1, SeqCst) + 1) & u64::from(u32::MAX);
        cells[PLACE_PID].store(pid.into(), SeqCst);
        cells[PLACE_REQUESTS].store(0, SeqCst);
        cells[PLACE_LIMIT].store(requests_max.unwrap_or(u64::MAX), SeqCst);
        self.lanes_of(place).for_each(|lane| lane.store(generation << GENERATION_SHIFT | OPENING, SeqCst));
    }

    /// The process in a place waits for requests: as far as its lanes are not held, they may be taken.
    pub fn set_open(&self, place: usize) {
        let freed = if self.is_spent(place) { SPENT } else { FREE };
        self.exchange(place, &[OPENING, UNSURE], freed);
        if self.waiting() > 0 {
            self.ring();
        }
    }

    /// The process in a place has ended.
    pub fn end(&self, place: usize) {
        self.place(place)[PLACE_PID].store(0, SeqCst);
        self.lanes_of(place).for_each(|lane| lane.store(ABSENT, SeqCst));
        // Somebody may wait for it who was not accepted.
        self.ring();
    }

    /// The process in a place gets no further requests.
    pub fn retire(&self, place: usize) {
        self.place(place)[PLACE_LIMIT].store(0, SeqCst);
        self.exchange(place, &[FREE], SPENT);
        // Loops that keep a connection for their next request give it up.
        self.ring();
    }

    /// Retires the process in a place if it has nothing to do.
    pub fn retire_if_idle(&self, place: usize) -> bool {
        let idle = self.exchange(place, &[FREE], SPENT);
        if idle == self.lanes {
            self.place(place)[PLACE_LIMIT].store(0, SeqCst);
        } else if idle > 0 {
            self.exchange(place, &[SPENT], FREE);
            self.ring();
        }
        idle == self.lanes
    }

    /// Whether no loop has anything to do with the process in a place, which gets no further requests.
    pub fn is_vacated(&self, place: usize) -> bool {
        if self.is_spent(place) {
            // Lanes that were free when another one got the last request.
            self.exchange(place, &[FREE], SPENT);
        }
        !self.has_lane(place, HELD) && !self.has_lane(place, FREE)
    }

    /// Whether the process in a place has had more time for a request than it may have.
    pub fn is_overdue(&self, place: usize) -> bool {
        self.has_lane(place, OVERDUE)
    }

    /// Lets a process go on that has had more time than it may have.
    pub fn excuse(&self, place: usize) {
        self.exchange(place, &[OVERDUE], UNSURE);
    }

    /// Whether nobody has [opened](Self::set_open) the process in a place yet.
    pub fn is_starting(&self, place: usize) -> bool {
        self.has_lane(place, OPENING)
    }

    /// Whether nobody knows whether the process in a place is done with the last request that it was given.
    pub fn is_unsure(&self, place: usize) -> bool {
        self.has_lane(place, UNSURE)
    }

    /// Whether the process in a place has almost as many requests behind it as it may have.
    pub fn is_almost_spent(&self, place: usize) -> bool {
        let cells = self.place(place);
        cells[PLACE_REQUESTS].load(SeqCst) >= notice(cells[PLACE_LIMIT].load(SeqCst))
    }

    /// How many requests the process in a place was given.
    pub fn requests(&self, place: usize) -> u64 {
        self.place(place)[PLACE_REQUESTS].load(SeqCst)
    }

    /// A process that had loops is gone. What they have held may still be busy.
    pub fn forget(&self, pid: u32) {
        self.forget_claims(pid);
        for seat in (0..SEATS).filter(|&seat| self.seat(seat)[SEAT_PID].load(SeqCst) == u64::from(pid)) {
            for place in 0..self.places {
                for lane in self.lanes_of(place) {
                    let word = lane.load(SeqCst);
                    if word & STATE_MASK == HELD && (word & SEAT_MASK) >> SEAT_SHIFT == seat as u64 {
                        let unsure = word & !(STATE_MASK | SEAT_MASK) | UNSURE;
                        // Whoever holds it is dead: only the keeper could have changed it.
                        let _ = lane.compare_exchange(word, unsure, SeqCst, SeqCst);
                    }
                }
            }
            let waiting = self.seat(seat)[SEAT_WAITING].swap(0, SeqCst);
            self.numbers[WAITING].fetch_sub(waiting, SeqCst);
            self.seat(seat)[SEAT_PID].store(0, SeqCst);
            self.numbers[SEATED].fetch_sub(1, SeqCst);
            self.call();
        }
    }

    /// All processes have ended, with the keeper.
    pub fn clear(&self) {
        (0..self.places).for_each(|place| self.end(place));
        self.hear();
        self.offer_more(false);
    }

    /// The processes there are.
    pub fn report(&self) -> Vec<PlaceReport> {
        let told = (0..self.places).filter_map(|place| {
            let pid =
                u32::try_from(self.place(place)[PLACE_PID].load(SeqCst)).ok().filter(|pid| *pid != 0)?;
            let states = [
                (HELD, "busy"),
                (OVERDUE, "overdue"),
                (UNSURE, "unsure"),
                (OPENING, "starting"),
                (FREE, "idle"),
            ];
            let state = states.into_iter().find(|(state, _)| self.has_lane(place, *state));
            Some(PlaceReport {
                pid,
                state: state.map_or("ending", |(_, word)| word),
                requests: self.requests(place),
            })
        });
        told.collect()
    }

    /// Changes the lanes of a place that are in one of some states. How many they were.
    fn exchange(&self, place: usize, from: &[u64], to: u64) -> usize {
        let changed = self.lanes_of(place).filter(|lane| {
            let word = lane.load(SeqCst);
            from.contains(&(word & STATE_MASK))
                && lane.compare_exchange(word, word & !STATE_MASK | to, SeqCst, SeqCst).is_ok()
        });
        changed.count()
    }

    fn has_lane(&self, place: usize, state: u64) -> bool {
        self.lanes_of(place).any(|lane| lane.load(SeqCst) & STATE_MASK == state)
    }
}
