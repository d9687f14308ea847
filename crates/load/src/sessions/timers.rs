//! When something is due for a session.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Why a session is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// Its time may be over.
    Deadline,
    /// It has thought enough.
    Resume,
}

/// Alarms in the order of time. Those of sessions that have ended stay until their time: the token tells them.
#[derive(Debug)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u64, Alarm)>>,
}

impl Timers {
    /// Room for so many without another allocation.
    pub(super) fn with_room(count: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(count) }
    }

    pub(super) fn set(&mut self, at: Instant, token: u64, alarm: Alarm) {
        self.heap.push(Reverse((at, token, alarm)));
    }

    /// The next one, if its time has come.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<(u64, Alarm)> {
        let Reverse((at, token, alarm)) = *self.heap.peek()?;
        (at <= now).then(|| {
            self.heap.pop();
            (token, alarm)
        })
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }
}
