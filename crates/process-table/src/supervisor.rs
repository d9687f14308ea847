//! The operations of the supervisor and of the master on a table.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::SeqCst;

use crate::table::{
    ABSENT, FREE, GENERATION_SHIFT, HELD, LOOP_MASK, LOOP_PID, LOOP_SHIFT, LOOP_WAITING, LOOPS, LOOPS_MAX,
    OPENING, OVERDUE, ProcessTable, ROOM, SLOT_GENERATION, SLOT_LIMIT, SLOT_PID, SLOT_REQUESTS, SPENT,
    STATE_MASK, UNSURE, WAITING, WOKEN, notice,
};

/// One process, for the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessReport {
    /// The process.
    pub pid: u32,
    /// Its state, in one word.
    pub state: &'static str,
    /// How many requests it was given.
    pub requests: u64,
}

impl ProcessTable {
    /// Readable when the supervisor is to look at the table.
    pub fn wakeups(&self) -> BorrowedFd<'_> {
        self.supervisor_waker.as_fd()
    }

    /// Clears the pending wakeups. Returns whether there were any. Look at the table after this call.
    pub fn take_wakeup(&self) -> bool {
        let was_called = rustix::io::read(&self.supervisor_waker, &mut [0; 8]).is_ok();
        self.numbers[WOKEN].store(0, SeqCst);
        was_called
    }

    /// Publishes whether the supervisor could start more processes.
    pub fn offer_more(&self, there_may_be_more: bool) {
        self.numbers[ROOM].store(there_may_be_more.into(), SeqCst);
    }

    /// A process begins in an empty slot, for at most `requests_max` requests. It gets none before it is
    /// [opened](Self::set_open).
    pub fn begin(&self, slot: usize, pid: u32, requests_max: Option<u64>) {
        let cells = self.slot(slot);
        let generation = (cells[SLOT_GENERATION].fetch_add(1, SeqCst) + 1) & u64::from(u32::MAX);
        cells[SLOT_PID].store(pid.into(), SeqCst);
        cells[SLOT_REQUESTS].store(0, SeqCst);
        cells[SLOT_LIMIT].store(requests_max.unwrap_or(u64::MAX), SeqCst);
        self.lanes_of(slot).for_each(|lane| lane.store(generation << GENERATION_SHIFT | OPENING, SeqCst));
    }

    /// The process in a slot waits for requests: its lanes that are not held may be taken.
    pub fn set_open(&self, slot: usize) {
        let freed = if self.is_spent(slot) { SPENT } else { FREE };
        self.exchange(slot, &[OPENING, UNSURE], freed);
        if self.waiting() > 0 {
            self.wake_loops();
        }
    }

    /// The process in a slot has ended.
    pub fn end(&self, slot: usize) {
        self.slot(slot)[SLOT_PID].store(0, SeqCst);
        self.lanes_of(slot).for_each(|lane| lane.store(ABSENT, SeqCst));
        // A request may wait in its backlog.
        self.wake_loops();
    }

    /// The process in a slot gets no further requests.
    pub fn retire(&self, slot: usize) {
        self.slot(slot)[SLOT_LIMIT].store(0, SeqCst);
        self.exchange(slot, &[FREE], SPENT);
        // Loops that keep a connection for their next request give it up.
        self.wake_loops();
    }

    /// Retires the process in a slot if no lane of it is held. Returns whether it did.
    pub fn retire_if_idle(&self, slot: usize) -> bool {
        let idle = self.exchange(slot, &[FREE], SPENT);
        if idle == self.lanes {
            self.slot(slot)[SLOT_LIMIT].store(0, SeqCst);
        } else if idle > 0 {
            self.exchange(slot, &[SPENT], FREE);
            self.wake_loops();
        }
        idle == self.lanes
    }

    /// Whether the process in a slot can end: no loop uses it, and none can take it.
    pub fn is_vacated(&self, slot: usize) -> bool {
        if self.is_spent(slot) {
            // Lanes that were free when another one got the last request.
            self.exchange(slot, &[FREE], SPENT);
        }
        !self.has_lane(slot, HELD) && !self.has_lane(slot, FREE)
    }

    /// Whether the process in a slot takes too long for a request.
    pub fn is_overdue(&self, slot: usize) -> bool {
        self.has_lane(slot, OVERDUE)
    }

    /// Lets a process that takes too long continue.
    pub fn excuse(&self, slot: usize) {
        self.exchange(slot, &[OVERDUE], UNSURE);
    }

    /// Whether the process in a slot has not been [opened](Self::set_open) yet.
    pub fn is_starting(&self, slot: usize) -> bool {
        self.has_lane(slot, OPENING)
    }

    /// Whether it is unknown if the process in a slot is done with its last request.
    pub fn is_unsure(&self, slot: usize) -> bool {
        self.has_lane(slot, UNSURE)
    }

    /// Whether the process in a slot has served almost as many requests as it may.
    pub fn is_almost_spent(&self, slot: usize) -> bool {
        let cells = self.slot(slot);
        cells[SLOT_REQUESTS].load(SeqCst) >= notice(cells[SLOT_LIMIT].load(SeqCst))
    }

    /// How many requests the process in a slot was given.
    pub fn requests(&self, slot: usize) -> u64 {
        self.slot(slot)[SLOT_REQUESTS].load(SeqCst)
    }

    /// A worker has ended. The processes that its loops held may still be busy.
    pub fn forget(&self, pid: u32) {
        self.forget_claims(pid);
        for loop_id in (0..LOOPS_MAX)
            .filter(|&loop_id| self.loop_cells(loop_id)[LOOP_PID].load(SeqCst) == u64::from(pid))
        {
            for slot in 0..self.slots {
                for lane in self.lanes_of(slot) {
                    let word = lane.load(SeqCst);
                    if word & STATE_MASK == HELD && (word & LOOP_MASK) >> LOOP_SHIFT == loop_id as u64 {
                        let unsure = word & !(STATE_MASK | LOOP_MASK) | UNSURE;
                        // Its loop has ended: only the supervisor could have changed it.
                        let _ = lane.compare_exchange(word, unsure, SeqCst, SeqCst);
                    }
                }
            }
            let waiting = self.loop_cells(loop_id)[LOOP_WAITING].swap(0, SeqCst);
            self.numbers[WAITING].fetch_sub(waiting, SeqCst);
            self.loop_cells(loop_id)[LOOP_PID].store(0, SeqCst);
            self.numbers[LOOPS].fetch_sub(1, SeqCst);
            self.wake_supervisor();
        }
    }

    /// All processes have ended, with the supervisor.
    pub fn clear(&self) {
        (0..self.slots).for_each(|slot| self.end(slot));
        self.take_wakeup();
        self.offer_more(false);
    }

    /// The processes there are.
    pub fn report(&self) -> Vec<ProcessReport> {
        let told = (0..self.slots).filter_map(|slot| {
            let pid = u32::try_from(self.slot(slot)[SLOT_PID].load(SeqCst)).ok().filter(|pid| *pid != 0)?;
            let states = [
                (HELD, "busy"),
                (OVERDUE, "overdue"),
                (UNSURE, "unsure"),
                (OPENING, "starting"),
                (FREE, "idle"),
            ];
            let state = states.into_iter().find(|(state, _)| self.has_lane(slot, *state));
            Some(ProcessReport {
                pid,
                state: state.map_or("ending", |(_, word)| word),
                requests: self.requests(slot),
            })
        });
        told.collect()
    }

    /// Changes the lanes of a slot that are in one of these states. Returns how many.
    fn exchange(&self, slot: usize, from: &[u64], to: u64) -> usize {
        let changed = self.lanes_of(slot).filter(|lane| {
            let word = lane.load(SeqCst);
            from.contains(&(word & STATE_MASK))
                && lane.compare_exchange(word, word & !STATE_MASK | to, SeqCst, SeqCst).is_ok()
        });
        changed.count()
    }

    fn has_lane(&self, slot: usize, state: u64) -> bool {
        self.lanes_of(slot).any(|lane| lane.load(SeqCst) & STATE_MASK == state)
    }
}
