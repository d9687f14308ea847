//! Which processes of an application there are, and who has which: numbers in memory that event loops, whoever starts
//! the processes (the *keeper*) and the master share.
//!
//! ```text
//!   place, one process:   ABSENT ── begin ──► OPENING ── open ──► FREE ◄─ give back ─► HELD by a loop
//!                           ▲                    ▲                 │                    │        │
//!                           │                    └── UNSURE ◄──────┼────────────────────┘        ▼
//!                           └────────────── end ───────────────── SPENT ◄─────────────────── OVERDUE
//! ```
//!
//! A place has as many *lanes* as its process answers requests at a time, usually one. A loop takes a lane before it
//! connects, so that no request ever waits in the backlog of a busy process, and gives it back when the connection is
//! closed; so a process of which no lane is held can be told to end without anybody noticing.
//!
//! Nobody waits for a lock, and nobody polls: a loop that gives something back which another loop waits for rings the
//! *bell*, which all loops hear; one that needs the keeper *calls* it. The states of lanes carry the number of the process
//! that they are about, so that what is said too late is said of nobody.
//!
//! Everything here survives the sudden end of any of them: the master frees what a dead loop has held
//! ([`Roster::forget`]), and empties all places when the keeper has ended ([`Roster::clear`]).

mod attendance;
mod claim;
mod keeping;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use baton_sys::shared::SharedNumbers;
use rustix::event::EventfdFlags;

pub(crate) use self::attendance::Attendance;
pub use self::claim::Claim;
pub use self::keeping::PlaceReport;

/// The processes of one application, as all who have to do with them see them.
#[derive(Debug)]
pub struct Roster {
    numbers: SharedNumbers,
    bell: OwnedFd,
    call: OwnedFd,
    places: usize,
    lanes: usize,
}

/// A lane that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    index: usize,
    word: u64,
}

/// In which state a lane is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    /// The process has said all that it was to say.
    Done,
    /// Nobody can say what the process is doing.
    Unsure,
    /// The process has had more time than it may have.
    Overdue,
}

impl Roster {
    /// A roster of so many places, all empty.
    ///
    /// # Errors
    /// `ENOMEM`, `EMFILE`.
    pub fn create(places: usize, lanes: usize) -> io::Result<Self> {
        let (places, lanes) = (places.clamp(1, PLACES_MAX), lanes.max(1));
        let lanes = lanes.min((LANES_MAX / places).max(1));
        let numbers = SharedNumbers::create(numbers_of(places, lanes))?;
        numbers[PLACES].store(places as u64, SeqCst);
        numbers[LANES].store(lanes as u64, SeqCst);
        let eventfd = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self { numbers, bell: eventfd()?, call: eventfd()?, places, lanes })
    }

    /// The one behind [descriptors](Self::descriptors).
    ///
    /// # Errors
    /// `EINVAL` if they are of something else; `ENOMEM`.
    pub fn open(descriptors: Vec<OwnedFd>) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let [numbers, bell, call] = <[OwnedFd; 3]>::try_from(descriptors).map_err(|_| invalid())?;
        let numbers = SharedNumbers::open(numbers)?;
        let number = |at: usize| Some(usize::try_from(numbers.get(at)?.load(SeqCst)).unwrap_or(usize::MAX));
        let (places, lanes) = number(PLACES).zip(number(LANES)).ok_or_else(invalid)?;
        let is_sane = (1..=PLACES_MAX).contains(&places) && (1..=LANES_MAX).contains(&lanes);
        if !is_sane || numbers_of(places, lanes) != numbers.len() {
            return Err(invalid());
        }
        Ok(Self { numbers, bell, call, places, lanes })
    }

    /// What another process needs to [open](Self::open) it.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        [self.numbers.as_fd(), self.bell.as_fd(), self.call.as_fd()]
    }

    /// How many processes there may be.
    pub fn places(&self) -> usize {
        self.places
    }

    /// How many requests each answers at a time.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// What becomes readable for every loop, each time that it is rung.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// A seat for a loop: the name under which it holds lanes. There are more than anybody has loops.
    pub(crate) fn sit_down(&self) -> Option<u16> {
        let pid = u64::from(std::process::id());
        let seat = (0..SEATS)
            .find(|&seat| self.seat(seat)[SEAT_PID].compare_exchange(0, pid, SeqCst, SeqCst).is_ok());
        self.numbers[SEATED].fetch_add(seat.is_some().into(), SeqCst);
        seat.and_then(|seat| u16::try_from(seat).ok())
    }

    /// Gives up a seat under which nothing is held any more.
    pub(crate) fn stand_up(&self, seat: u16) {
        self.want(seat, 0);
        self.seat(seat.into())[SEAT_PID].store(0, SeqCst);
        self.numbers[SEATED].fetch_sub(1, SeqCst);
    }

    /// Whether there are other loops.
    pub(crate) fn has_others(&self) -> bool {
        self.numbers[SEATED].load(SeqCst) > 1
    }

    /// Says how many requests of a loop wait.
    pub(crate) fn want(&self, seat: u16, waiting: u64) {
        let before = self.seat(seat.into())[SEAT_WAITING].swap(waiting, SeqCst);
        self.numbers[WAITING].fetch_add(waiting.wrapping_sub(before), SeqCst);
    }

    /// How many requests of all loops wait.
    pub fn waiting(&self) -> u64 {
        self.numbers[WAITING].load(SeqCst)
    }

    /// Takes the first lane that is free. Loops prefer the same ones, so that those which are not needed show.
    pub(crate) fn take(&self, seat: u16) -> Option<Lane> {
        self.free().find_map(|Lane { index, word }| {
            let held = word & !(STATE_MASK | SEAT_MASK) | HELD | u64::from(seat) << SEAT_SHIFT;
            let taken = self.lane(index).compare_exchange(word, held, SeqCst, SeqCst).is_ok();
            taken.then_some(Lane { index, word: held })
        })
    }

    /// Whether [`take`](Self::take) would have something to give.
    pub(crate) fn has_free(&self) -> bool {
        self.free().next().is_some()
    }

    fn free(&self) -> impl Iterator<Item = Lane> {
        let seen =
            (0..self.places * self.lanes).map(|index| Lane { index, word: self.lane(index).load(SeqCst) });
        seen.filter(|lane| lane.word & STATE_MASK == FREE && !self.is_spent(lane.place(self)))
    }

    /// Counts a request that is given to the process of a lane.
    pub(crate) fn count(&self, lane: Lane) {
        let place = self.place(lane.place(self));
        let requests = place[PLACE_REQUESTS].fetch_add(1, SeqCst) + 1;
        let limit = place[PLACE_LIMIT].load(SeqCst);
        if requests == limit || requests == notice(limit) {
            self.call();
        }
    }

    /// Whether a process has served as many requests as it may.
    pub fn is_spent(&self, place: usize) -> bool {
        let place = self.place(place);
        place[PLACE_REQUESTS].load(SeqCst) >= place[PLACE_LIMIT].load(SeqCst)
    }

    /// Gives a lane back. Of a process that is no more, nothing is said.
    pub(crate) fn give_back(&self, lane: Lane, parting: Parting) {
        let place = lane.place(self);
        let state = match parting {
            Parting::Done if self.is_spent(place) => SPENT,
            Parting::Done => FREE,
            Parting::Unsure => UNSURE,
            Parting::Overdue => OVERDUE,
        };
        let freed = lane.word & !(STATE_MASK | SEAT_MASK) | state;
        let cell = self.lane(lane.index);
        if cell.compare_exchange(lane.word, freed, SeqCst, SeqCst).is_err() {
            return;
        }
        if state != FREE {
            self.call();
        } else if self.is_spent(place) {
            // It was retired just now, by somebody who saw it held.
            let spent = freed & !STATE_MASK | SPENT;
            if cell.compare_exchange(freed, spent, SeqCst, SeqCst).is_ok() {
                self.call();
            }
        }
    }

    /// Whether a lane is still held: its process has not ended.
    pub(crate) fn is_held(&self, lane: Lane) -> bool {
        self.lane(lane.index).load(SeqCst) == lane.word
    }

    /// Tells all loops to look again.
    pub(crate) fn ring(&self) {
        // It fails after 2^64 times.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Tells the keeper to look again, unless it has been told.
    fn call(&self) {
        if self.numbers[CALLED].swap(1, SeqCst) == 0 {
            let _ = rustix::io::write(&self.call, &1_u64.to_ne_bytes());
        }
    }

    /// Tells the keeper that requests wait, if it can do anything about it.
    pub(crate) fn call_for_more(&self) {
        if self.numbers[ROOM].load(SeqCst) != 0 {
            self.call();
        }
    }

    fn place(&self, place: usize) -> &[AtomicU64] {
        let at = LANES_AT + self.places * self.lanes + place * PLACE_NUMBERS;
        &self.numbers[at..at + PLACE_NUMBERS]
    }

    fn lane(&self, index: usize) -> &AtomicU64 {
        &self.numbers[LANES_AT + index]
    }

    /// The lanes of a place. Second lanes come after all first ones: requests spread over processes.
    fn lanes_of(&self, place: usize) -> impl Iterator<Item = &AtomicU64> {
        (0..self.lanes).map(move |lane| self.lane(lane * self.places + place))
    }

    fn seat(&self, seat: usize) -> &[AtomicU64] {
        let at = LANES_AT + self.places * (self.lanes + PLACE_NUMBERS) + seat * SEAT_NUMBERS;
        &self.numbers[at..at + SEAT_NUMBERS]
    }

    /// The process that has a claim.
    fn claim(&self, claim: usize) -> &AtomicU64 {
        &self.numbers[self.numbers.len() - CLAIMS + claim]
    }
}

impl Lane {
    /// Which process it is of.
    pub(crate) fn place(self, roster: &Roster) -> usize {
        self.index % roster.places
    }

    /// Its number among all lanes.
    pub(crate) fn index(self) -> usize {
        self.index
    }
}

/// How many numbers there are in all.
const fn numbers_of(places: usize, lanes: usize) -> usize {
    LANES_AT + places * (PLACE_NUMBERS + lanes) + SEATS * SEAT_NUMBERS + CLAIMS
}

/// After how many requests the keeper is told that a process is about to be spent: early enough for a new one to begin.
fn notice(limit: u64) -> u64 {
    limit - limit.div_ceil(8)
}

/// What the numbers at the beginning are.
const PLACES: usize = 0;
const LANES: usize = 1;
const WAITING: usize = 2;
/// Whether the keeper has been called and has not looked yet.
const CALLED: usize = 3;
/// Whether the keeper may start more processes.
const ROOM: usize = 4;
/// How many seats are taken.
const SEATED: usize = 5;
/// Whether there were more claims than can be counted.
const UNCOUNTED: usize = 6;
/// Then come the lanes, the places, the seats and the claims.
const LANES_AT: usize = 8;

const PLACE_PID: usize = 0;
/// Which process in this place it is: counted, since process ids come again.
const PLACE_GENERATION: usize = 1;
const PLACE_REQUESTS: usize = 2;
/// How many requests it may be given.
const PLACE_LIMIT: usize = 3;
const PLACE_NUMBERS: usize = 4;

const SEAT_PID: usize = 0;
const SEAT_WAITING: usize = 1;
const SEAT_NUMBERS: usize = 2;

/// Loops that can use a roster at a time: more than machines have CPUs, twice during a reload.
const SEATS: usize = 2_048;

/// Workers whose requests may be for the processes, twice during a reload.
const CLAIMS: usize = 2_048;

/// More processes than this are not started, with others that take their places.
const PLACES_MAX: usize = 2 * 4_096;

/// More connections than a loop can name are of no use.
const LANES_MAX: usize = 1 << 16;

/// A lane is one number: generation, seat, state.
const STATE_MASK: u64 = 0xFF;
const SEAT_SHIFT: u32 = 8;
const SEAT_MASK: u64 = 0xFFFF << SEAT_SHIFT;
const GENERATION_SHIFT: u32 = 32;

const ABSENT: u64 = 0;
const OPENING: u64 = 1;
const FREE: u64 = 2;
const HELD: u64 = 3;
const UNSURE: u64 = 4;
const OVERDUE: u64 = 5;
const SPENT: u64 = 6;

#[cfg(test)]
mod tests;
