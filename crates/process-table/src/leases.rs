//! The lanes that one event loop holds.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::table::{Lane, ProcessTable, Release};

/// The lanes of a table that one event loop holds. Dropping it releases them.
#[derive(Debug)]
pub struct Leases {
    table: Arc<ProcessTable>,
    /// `None`: all ids are taken. Then the loop gets no lane.
    loop_id: Option<u16>,
    /// Its lanes, by their numbers.
    held: HashMap<usize, Lane>,
    waiting: u64,
    /// Readable when the loop must look at the table. Not shared with other loops, so that this loop alone can unwatch
    /// it.
    pub waker: Option<OwnedFd>,
}

impl Leases {
    /// Registers a loop.
    pub fn new(table: &Arc<ProcessTable>) -> Self {
        let (loop_id, waker) = (table.register_loop(), table.waker().try_clone_to_owned().ok());
        Self { table: Arc::clone(table), loop_id, held: HashMap::new(), waiting: 0, waker }
    }

    /// Whether a lane is free.
    pub fn can_take(&self) -> bool {
        self.loop_id.is_some() && self.table.has_free()
    }

    /// Takes a lane, and returns its number.
    pub fn take(&mut self) -> Option<usize> {
        let lane = self.table.take(self.loop_id?)?;
        self.held.insert(lane.index(), lane);
        Some(lane.index())
    }

    /// The slot of the process that a lane belongs to.
    pub fn slot(&self, lane: usize) -> usize {
        lane % self.table.slots()
    }

    /// Counts a request that is given to the process of a lane.
    pub fn count(&self, lane: usize) {
        if let Some(lane) = self.held.get(&lane) {
            self.table.count(*lane);
        }
    }

    /// Whether the process of a lane has ended.
    pub fn has_ended(&self, lane: usize) -> bool {
        self.held.get(&lane).is_none_or(|lane| !self.table.is_held(*lane))
    }

    /// Whether the process of a lane gets no further requests.
    pub fn is_spent(&self, lane: usize) -> bool {
        self.table.is_spent(self.slot(lane))
    }

    /// Whether a process that takes too long for a request is killed: it answers one request at a time.
    pub fn ends_overdue(&self) -> bool {
        self.table.lanes() == 1
    }

    /// Releases a lane, and wakes the other loops if one of them waits.
    pub fn release(&mut self, lane: usize, release: Release) {
        if let Some(lane) = self.held.remove(&lane) {
            self.table.release(lane, release);
            if self.is_wanted_by_others() {
                self.table.wake_loops();
            }
        }
    }

    /// Publishes how many requests wait in this loop. The first one makes other loops release the lanes that they only
    /// keep.
    pub fn want(&mut self, waiting: usize) {
        let waiting = waiting as u64;
        let Some(loop_id) = self.loop_id.filter(|_| waiting != self.waiting) else { return };
        let before = std::mem::replace(&mut self.waiting, waiting);
        self.table.want(loop_id, waiting);
        if before == 0 && self.table.has_others() {
            self.table.wake_loops();
        }
        if waiting > before {
            self.table.call_for_more();
        }
    }

    /// Wakes the supervisor if requests wait in this loop.
    pub fn call_for_more(&self) {
        if self.waiting > 0 {
            self.table.call_for_more();
        }
    }

    /// Whether requests of other loops wait.
    pub fn is_wanted_by_others(&self) -> bool {
        self.table.waiting() > self.waiting
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        for (_, lane) in self.held.drain() {
            self.table.release(lane, Release::Unsure);
        }
        if let Some(loop_id) = self.loop_id {
            self.table.unregister_loop(loop_id);
        }
    }
}
