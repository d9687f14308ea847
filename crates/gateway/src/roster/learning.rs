//! How many connections an application accepts at a time, whose processes share an address.
//!
//! ```text
//!   lanes   as many as may be ── a connection starves in the backlog ──► as many as are accepted
//!                                            ▲                                  │
//!                                            └──────── a probe, now and then ◄──┘
//! ```
//!
//! At first every lane is free, and connections are opened as requests come. A connection that the application does not
//! accept while it answers others shows that there is no process for it: a loop closes one that has just been answered, so
//! that the process accepts the one that starves, and a lane goes with it. Further requests wait in the queues of the
//! loops, in their order, and not in the backlog, which every kept connection would overtake.
//!
//! There may be more processes tomorrow, and some managers start one only when a connection waits in the backlog. So,
//! while requests wait, a *probe* adds a lane now and then: the more rarely, the more of them have starved.

use std::io;
use std::sync::atomic::Ordering::SeqCst;

use super::{
    ABSENT, BOUNDED, FREE, FREE_LANES, GIVEN_BACK, HAVE_STARVED, HELD, LEARNED, Lane, PLACE_LIMIT,
    PROBE_DUE_MS, PROBE_PAUSE_MS, Parting, Roster, SEAT_MASK, SEAT_STARVING, STATE_MASK,
};

impl Roster {
    /// A roster for processes that share an address, of which nothing is known: all lanes are free.
    ///
    /// # Errors
    /// `ENOMEM`, `EMFILE`.
    pub fn create_learned() -> io::Result<Self> {
        let roster = Self::create(1, LEARNED_LANES)?;
        roster.numbers[LEARNED].store(1, SeqCst);
        roster.place(0)[PLACE_LIMIT].store(u64::MAX, SeqCst);
        (0..roster.lanes).for_each(|lane| roster.lane(lane).store(FREE, SeqCst));
        roster.numbers[FREE_LANES].store(roster.lanes as u64, SeqCst);
        roster.numbers[PROBE_PAUSE_MS].store(PROBE_PAUSE_MS_MIN, SeqCst);
        Ok(roster)
    }

    /// Whether the lanes are those of processes that share an address.
    pub fn is_learned(&self) -> bool {
        self.numbers[LEARNED].load(SeqCst) != 0
    }

    /// Whether anything is known of how many processes there are.
    pub(crate) fn is_bounded(&self) -> bool {
        self.numbers[BOUNDED].load(SeqCst) != 0
    }

    /// Adds a lane, if it is time to try whether there is a process for it.
    pub(crate) fn probe(&self, seat: u16, now_ms: u64) -> Option<Lane> {
        let due_ms = self.probe_due_ms();
        let next_ms = now_ms + self.numbers[PROBE_PAUSE_MS].load(SeqCst);
        let is_due = now_ms >= due_ms
            && self.numbers[PROBE_DUE_MS].compare_exchange(due_ms, next_ms, SeqCst, SeqCst).is_ok();
        let mut absent = self.seen(self.lanes).filter(|lane| lane.word & STATE_MASK == ABSENT);
        is_due.then(|| absent.find_map(|lane| self.hold(lane, seat))).flatten()
    }

    /// When the next probe is due; `u64::MAX` where there are none.
    pub(crate) fn probe_due_ms(&self) -> u64 {
        if self.is_learned() { self.numbers[PROBE_DUE_MS].load(SeqCst) } else { u64::MAX }
    }

    /// How often a connection was closed up to now.
    pub(crate) fn given_back(&self) -> u64 {
        self.numbers[GIVEN_BACK].load(SeqCst)
    }

    /// The application has accepted a connection for which this loop has not given up another one. If there was doubt, there
    /// may be still more processes.
    pub(crate) fn note_accepted(&self, was_doubtful: bool) {
        if self.numbers[HAVE_STARVED].load(SeqCst) != 0 {
            self.numbers[HAVE_STARVED].store(0, SeqCst);
        }
        if was_doubtful {
            self.numbers[PROBE_PAUSE_MS].store(PROBE_PAUSE_MS_MIN, SeqCst);
            self.numbers[PROBE_DUE_MS].store(0, SeqCst);
        }
    }

    /// A connection starves. Whether there is a lane too many: if there never was a process for it, or if it was the same
    /// with the connection before. A single one may have a process that waits for a CPU.
    pub(crate) fn note_starving(&self, is_doubtful: bool, now_ms: u64) -> bool {
        let is_surplus = self.numbers[HAVE_STARVED].swap(1, SeqCst) != 0 || is_doubtful;
        if !is_surplus {
            return false;
        }
        let pause_ms = (self.numbers[PROBE_PAUSE_MS].load(SeqCst) * 2).min(PROBE_PAUSE_MS_MAX);
        self.numbers[PROBE_PAUSE_MS].store(pause_ms, SeqCst);
        self.numbers[PROBE_DUE_MS].store(now_ms + pause_ms, SeqCst);
        if self.numbers[BOUNDED].swap(1, SeqCst) == 0 {
            // From now on a lane that is free is one for which there was a process.
            for lane in self.free() {
                let absent = lane.word & !STATE_MASK | ABSENT;
                if self.lane(lane.index).compare_exchange(lane.word, absent, SeqCst, SeqCst).is_ok() {
                    self.note_free(-1);
                }
            }
        }
        true
    }

    /// Says that a connection of a loop starves which has none to give up for it, and in which state another loop is to give
    /// one up; or that none starves.
    pub(crate) fn starve(&self, seat: u16, starving: Option<Parting>) {
        let word = match starving {
            None => 0,
            Some(Parting::Surplus) => STARVES,
            Some(_) => STARVES_STILL,
        };
        self.seat(seat.into())[SEAT_STARVING].store(word, SeqCst);
    }

    /// Whether a connection of another loop starves: it is this loop's to give one up. In which state, is returned.
    pub(crate) fn take_starving(&self, seat: u16) -> Option<Parting> {
        let mut starving = self.others(seat).filter(|other| other[SEAT_STARVING].load(SeqCst) != 0);
        starving.find_map(|other| match other[SEAT_STARVING].swap(0, SeqCst) {
            STARVES => Some(Parting::Surplus),
            STARVES_STILL => Some(Parting::Done),
            _ => None,
        })
    }

    /// What [`give_back`](Self::give_back) is for these lanes. What a process is doing is not known of any.
    pub(super) fn give_back_learned(&self, lane: Lane, parting: Parting) {
        let state = if parting == Parting::Surplus { ABSENT } else { FREE };
        let freed = lane.word & !(STATE_MASK | SEAT_MASK) | state;
        self.numbers[GIVEN_BACK].fetch_add(1, SeqCst);
        let is_its = self.lane(lane.index).compare_exchange(lane.word, freed, SeqCst, SeqCst).is_ok();
        if is_its && state == FREE {
            self.note_free(1);
        }
    }

    /// Frees what a dead loop has held.
    pub(super) fn free_lanes_of(&self, seat: usize) {
        for lane in self.seen(self.lanes) {
            let is_its =
                lane.word & STATE_MASK == HELD && lane.word & SEAT_MASK == (seat as u64) << super::SEAT_SHIFT;
            if is_its {
                self.give_back_learned(lane, Parting::Done);
            }
        }
    }

    pub(super) fn note_free(&self, change: i64) {
        if self.is_learned() {
            self.numbers[FREE_LANES].fetch_add(change as u64, SeqCst);
        }
    }
}

/// Connections of all loops to one address: more than an application accepts.
const LEARNED_LANES: usize = 1 << 14;

/// A connection starves for the first time, or did not get the process that was given up for it.
const STARVES: u64 = 1;
const STARVES_STILL: u64 = 2;

/// How long no lane is added after another, at the least and at the most. Each probe that fails holds one request up, and
/// costs a connection.
const PROBE_PAUSE_MS_MIN: u64 = 50;
const PROBE_PAUSE_MS_MAX: u64 = 1_000;
