//! The table, and the operations of event loops on it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use baton_sys::shared::SharedNumbers;
use rustix::event::EventfdFlags;

/// The processes of one application, in memory that several processes share.
#[derive(Debug)]
pub struct ProcessTable {
    pub(crate) numbers: SharedNumbers,
    pub(crate) waker: OwnedFd,
    pub(crate) supervisor_waker: OwnedFd,
    pub(crate) slots: usize,
    pub(crate) lanes: usize,
}

/// A lane that a loop holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    index: usize,
    word: u64,
}

/// The state in which a lane is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The process has completed its response.
    Done,
    /// What the process is doing is unknown.
    Unsure,
    /// The process has taken too long.
    Overdue,
}

impl ProcessTable {
    /// An empty table of `slots` slots.
    ///
    /// # Errors
    /// `ENOMEM`, `EMFILE`.
    pub fn create(slots: usize, lanes: usize) -> io::Result<Self> {
        let (slots, lanes) = (slots.clamp(1, SLOTS_MAX), lanes.max(1));
        let lanes = lanes.min((LANES_MAX / slots).max(1));
        let numbers = SharedNumbers::create(numbers_of(slots, lanes))?;
        numbers[SLOTS].store(slots as u64, SeqCst);
        numbers[LANES].store(lanes as u64, SeqCst);
        let eventfd = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self { numbers, waker: eventfd()?, supervisor_waker: eventfd()?, slots, lanes })
    }

    /// Opens a table by its [descriptors](Self::descriptors).
    ///
    /// # Errors
    /// `EINVAL` if the descriptors are not those of a table; `ENOMEM`.
    pub fn open(descriptors: Vec<OwnedFd>) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let [numbers, waker, supervisor_waker] =
            <[OwnedFd; 3]>::try_from(descriptors).map_err(|_| invalid())?;
        let numbers = SharedNumbers::open(numbers)?;
        let number = |at: usize| Some(usize::try_from(numbers.get(at)?.load(SeqCst)).unwrap_or(usize::MAX));
        let (slots, lanes) = number(SLOTS).zip(number(LANES)).ok_or_else(invalid)?;
        let is_sane = (1..=SLOTS_MAX).contains(&slots) && (1..=LANES_MAX).contains(&lanes);
        if !is_sane || numbers_of(slots, lanes) != numbers.len() {
            return Err(invalid());
        }
        Ok(Self { numbers, waker, supervisor_waker, slots, lanes })
    }

    /// The descriptors with which another process [opens](Self::open) the table.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        [self.numbers.as_fd(), self.waker.as_fd(), self.supervisor_waker.as_fd()]
    }

    /// How many processes there may be.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// How many requests each process answers at a time.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Readable for every loop when one wakes all.
    pub(crate) fn waker(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    /// Registers a loop: returns the id under which it holds lanes.
    pub(crate) fn register_loop(&self) -> Option<u16> {
        let pid = u64::from(std::process::id());
        let loop_id = (0..LOOPS_MAX).find(|&loop_id| {
            self.loop_cells(loop_id)[LOOP_PID].compare_exchange(0, pid, SeqCst, SeqCst).is_ok()
        });
        self.numbers[LOOPS].fetch_add(loop_id.is_some().into(), SeqCst);
        loop_id.and_then(|loop_id| u16::try_from(loop_id).ok())
    }

    /// Frees the id of a loop that no longer holds any lane.
    pub(crate) fn unregister_loop(&self, loop_id: u16) {
        self.want(loop_id, 0);
        self.loop_cells(loop_id.into())[LOOP_PID].store(0, SeqCst);
        self.numbers[LOOPS].fetch_sub(1, SeqCst);
    }

    /// Whether there are other loops.
    pub(crate) fn has_others(&self) -> bool {
        self.numbers[LOOPS].load(SeqCst) > 1
    }

    /// Publishes how many requests of a loop wait.
    pub(crate) fn want(&self, loop_id: u16, waiting: u64) {
        let before = self.loop_cells(loop_id.into())[LOOP_WAITING].swap(waiting, SeqCst);
        self.numbers[WAITING].fetch_add(waiting.wrapping_sub(before), SeqCst);
    }

    /// How many requests of all loops wait.
    pub fn waiting(&self) -> u64 {
        self.numbers[WAITING].load(SeqCst)
    }

    /// Takes the first free lane. All loops prefer the same ones, so the supervisor sees which are not needed.
    pub(crate) fn take(&self, loop_id: u16) -> Option<Lane> {
        self.free().find_map(|Lane { index, word }| {
            let held = word & !(STATE_MASK | LOOP_MASK) | HELD | u64::from(loop_id) << LOOP_SHIFT;
            let taken = self.lane(index).compare_exchange(word, held, SeqCst, SeqCst).is_ok();
            taken.then_some(Lane { index, word: held })
        })
    }

    /// Whether [`take`](Self::take) would find a lane.
    pub(crate) fn has_free(&self) -> bool {
        self.free().next().is_some()
    }

    fn free(&self) -> impl Iterator<Item = Lane> {
        let seen =
            (0..self.slots * self.lanes).map(|index| Lane { index, word: self.lane(index).load(SeqCst) });
        seen.filter(|lane| lane.word & STATE_MASK == FREE && !self.is_spent(lane.slot(self)))
    }

    /// Counts a request that is given to the process of a lane.
    pub(crate) fn count(&self, lane: Lane) {
        let slot = self.slot(lane.slot(self));
        let requests = slot[SLOT_REQUESTS].fetch_add(1, SeqCst) + 1;
        let limit = slot[SLOT_LIMIT].load(SeqCst);
        if requests == limit || requests == notice(limit) {
            self.wake_supervisor();
        }
    }

    /// Whether a process has served as many requests as it may.
    pub fn is_spent(&self, slot: usize) -> bool {
        let slot = self.slot(slot);
        slot[SLOT_REQUESTS].load(SeqCst) >= slot[SLOT_LIMIT].load(SeqCst)
    }

    /// Releases a lane. If its process has ended, nothing changes.
    pub(crate) fn release(&self, lane: Lane, release: Release) {
        let slot = lane.slot(self);
        let state = match release {
            Release::Done if self.is_spent(slot) => SPENT,
            Release::Done => FREE,
            Release::Unsure => UNSURE,
            Release::Overdue => OVERDUE,
        };
        let freed = lane.word & !(STATE_MASK | LOOP_MASK) | state;
        let cell = self.lane(lane.index);
        if cell.compare_exchange(lane.word, freed, SeqCst, SeqCst).is_err() {
            return;
        }
        if state != FREE {
            self.wake_supervisor();
        } else if self.is_spent(slot) {
            // The supervisor retired it just now, and saw it held.
            let spent = freed & !STATE_MASK | SPENT;
            if cell.compare_exchange(freed, spent, SeqCst, SeqCst).is_ok() {
                self.wake_supervisor();
            }
        }
    }

    /// Whether a lane is still held: its process has not ended.
    pub(crate) fn is_held(&self, lane: Lane) -> bool {
        self.lane(lane.index).load(SeqCst) == lane.word
    }

    /// Wakes all loops to look at the table.
    pub(crate) fn wake_loops(&self) {
        // Fails only if the counter overflows, after 2^64 calls.
        let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
    }

    /// Wakes the supervisor to look at the table, unless it has been woken already.
    pub(crate) fn wake_supervisor(&self) {
        if self.numbers[WOKEN].swap(1, SeqCst) == 0 {
            let _ = rustix::io::write(&self.supervisor_waker, &1_u64.to_ne_bytes());
        }
    }

    /// Wakes the supervisor because requests wait, if it can start more processes.
    pub(crate) fn call_for_more(&self) {
        if self.numbers[ROOM].load(SeqCst) != 0 {
            self.wake_supervisor();
        }
    }

    pub(crate) fn slot(&self, slot: usize) -> &[AtomicU64] {
        let at = LANES_AT + self.slots * self.lanes + slot * SLOT_NUMBERS;
        &self.numbers[at..at + SLOT_NUMBERS]
    }

    pub(crate) fn lane(&self, index: usize) -> &AtomicU64 {
        &self.numbers[LANES_AT + index]
    }

    /// The lanes of a slot. Second lanes come after all first ones: requests spread over processes.
    pub(crate) fn lanes_of(&self, slot: usize) -> impl Iterator<Item = &AtomicU64> {
        (0..self.lanes).map(move |lane| self.lane(lane * self.slots + slot))
    }

    pub(crate) fn loop_cells(&self, loop_id: usize) -> &[AtomicU64] {
        let at = LANES_AT + self.slots * (self.lanes + SLOT_NUMBERS) + loop_id * LOOP_NUMBERS;
        &self.numbers[at..at + LOOP_NUMBERS]
    }

    /// A claim: the id of the process that has it.
    pub(crate) fn claim(&self, claim: usize) -> &AtomicU64 {
        &self.numbers[self.numbers.len() - CLAIMS + claim]
    }
}

impl Lane {
    /// The slot of its process.
    pub(crate) fn slot(self, table: &ProcessTable) -> usize {
        self.index % table.slots
    }

    /// Its number among all lanes.
    pub(crate) fn index(self) -> usize {
        self.index
    }
}

/// How many numbers the table has.
pub(crate) const fn numbers_of(slots: usize, lanes: usize) -> usize {
    LANES_AT + slots * (SLOT_NUMBERS + lanes) + LOOPS_MAX * LOOP_NUMBERS + CLAIMS
}

/// The count at which the supervisor learns that a process is nearly spent: early enough to start another.
pub(crate) fn notice(limit: u64) -> u64 {
    limit - limit.div_ceil(8)
}

/// The numbers at the beginning.
pub(crate) const SLOTS: usize = 0;
pub(crate) const LANES: usize = 1;
pub(crate) const WAITING: usize = 2;
/// Whether the supervisor has been woken and has not looked yet.
pub(crate) const WOKEN: usize = 3;
/// Whether the supervisor may start more processes.
pub(crate) const ROOM: usize = 4;
/// How many loops are registered.
pub(crate) const LOOPS: usize = 5;
/// Whether there were more claims than the table has room for.
pub(crate) const UNCOUNTED: usize = 6;
/// Then come the lanes, the slots, the loops and the claims.
pub(crate) const LANES_AT: usize = 8;

pub(crate) const SLOT_PID: usize = 0;
/// The generation of the process in this slot. Process ids would not do: the kernel reuses them.
pub(crate) const SLOT_GENERATION: usize = 1;
pub(crate) const SLOT_REQUESTS: usize = 2;
/// How many requests it may be given.
pub(crate) const SLOT_LIMIT: usize = 3;
pub(crate) const SLOT_NUMBERS: usize = 4;

pub(crate) const LOOP_PID: usize = 0;
pub(crate) const LOOP_WAITING: usize = 1;
pub(crate) const LOOP_NUMBERS: usize = 2;

/// Loops that can use a table at a time: more than machines have CPUs, and twice as many during a reload.
pub(crate) const LOOPS_MAX: usize = 2_048;

/// Workers that can claim the table at a time, twice as many as usual during a reload.
pub(crate) const CLAIMS: usize = 2_048;

/// The most processes, each with a replacement.
pub(crate) const SLOTS_MAX: usize = 2 * 4_096;

/// The most lanes of a table: a loop can name no more connections.
pub(crate) const LANES_MAX: usize = 1 << 16;

/// A lane is one number: generation, loop, state.
pub(crate) const STATE_MASK: u64 = 0xFF;
pub(crate) const LOOP_SHIFT: u32 = 8;
pub(crate) const LOOP_MASK: u64 = 0xFFFF << LOOP_SHIFT;
pub(crate) const GENERATION_SHIFT: u32 = 32;

pub(crate) const ABSENT: u64 = 0;
pub(crate) const OPENING: u64 = 1;
pub(crate) const FREE: u64 = 2;
pub(crate) const HELD: u64 = 3;
pub(crate) const UNSURE: u64 = 4;
pub(crate) const OVERDUE: u64 = 5;
pub(crate) const SPENT: u64 = 6;
