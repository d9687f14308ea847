//! Connections that an application may not have accepted yet.
//!
//! The requests on them wait in the application's backlog, which is a queue: the kernel has the oldest connection accepted
//! first, whichever worker or server has opened it. But a process that keeps a connection accepts no other one. Without
//! further ado, clients that have just been answered would get it again and again, and overtake those in the backlog. So,
//! while a connection waits there, connections that are released are closed in place of being kept.
//!
//! To close and to open a connection costs both sides some 75 microseconds. Where answers follow one another so fast that
//! this would be felt, the scheduler decides anyway who is served next, and a connection is closed only for one that has
//! waited for long.

use std::collections::VecDeque;

use rustix::time::{ClockId, clock_gettime};

use crate::BacklogNotice;
use crate::connections::ConnectionId;

/// The connections of one pool that may be in the backlog, oldest first.
#[derive(Debug)]
pub(crate) struct Backlog {
    unaccepted: VecDeque<Unaccepted>,
    /// The time between two answers: an average that follows slowly.
    interval_us: u64,
    answered_ms: u64,
    /// Other loops are not told before that one starves.
    next_tell_ms: u64,
}

/// A connection in the backlog, as far as is known.
#[derive(Clone, Copy, Debug)]
struct Unaccepted {
    connection: ConnectionId,
    /// Whether it shows when it is accepted. Over TCP, only an answer tells.
    is_local: bool,
    /// Since when a process was expected to, on the precise clock and on that of the loop.
    since_us: u64,
    since_ms: u64,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { unaccepted: VecDeque::new(), interval_us: ORDERED_US, answered_ms: 0, next_tell_ms: 0 }
    }
}

impl Backlog {
    /// A connection has been opened. Whether it has been accepted can be seen if it `is_local`.
    pub(crate) fn opened(&mut self, connection: ConnectionId, is_local: bool, now_us: u64, now_ms: u64) {
        self.unaccepted.push_back(Unaccepted { connection, is_local, since_us: now_us, since_ms: now_ms });
    }

    /// Whether all connections are known to have been accepted.
    pub(crate) fn is_empty(&self) -> bool {
        self.unaccepted.is_empty()
    }

    /// The application has answered a request.
    pub(crate) fn note_answer(&mut self, now_ms: u64) {
        let interval_us = (now_ms.saturating_sub(self.answered_ms) * 1_000).min(LONG_US);
        self.answered_ms = now_ms;
        self.interval_us = (self.interval_us * (AVERAGED - 1) + interval_us) / AVERAGED;
    }

    /// Whether a connection has been in the backlog for so long that another one is to be closed for it: the process at the
    /// other end of that accepts the next one. `is_unaccepted` looks at a connection; `others` says whether one of another
    /// loop waits.
    ///
    /// A process that is free accepts as soon as it gets a CPU. To close a connection before that would only put the
    /// next request into the backlog instead, and so on for ever.
    pub(crate) fn has_starving(
        &mut self,
        others: Option<BacklogNotice>,
        now_us: u64,
        mut is_unaccepted: impl FnMut(ConnectionId) -> bool,
    ) -> bool {
        let own = self.find_starving(now_us, &mut is_unaccepted);
        if own {
            // The process that is freed now has its time, too.
            if let Some(oldest) = self.unaccepted.pop_front() {
                let since_ms = oldest.since_ms + (now_us - oldest.since_us) / 1_000;
                self.unaccepted.push_back(Unaccepted { since_us: now_us, since_ms, ..oldest });
            }
            if let Some(notice) = others.filter(|_| self.keeps_order()) {
                self.find_starving(now_us, is_unaccepted);
                notice.post(self.count_starving(now_us), now_us);
            }
        }
        own || others.is_some_and(|notice| notice.take(now_us))
    }

    /// Tells other loops of a connection that has been in the backlog for too long.
    pub(crate) fn tell_others(
        &mut self,
        others: BacklogNotice,
        now_us: u64,
        now_ms: u64,
        is_unaccepted: impl FnMut(ConnectionId) -> bool,
    ) {
        if now_ms >= self.next_tell_ms && self.find_starving(now_us, is_unaccepted) {
            let (wait_ms, told) = if self.keeps_order() {
                (TELL_MS, self.count_starving(now_us))
            } else {
                (LONG_US / 1_000, 1)
            };
            self.next_tell_ms = now_ms + wait_ms;
            others.post(told, now_us);
        }
    }

    /// Whether the oldest connection has waited for too long. Those that have been accepted are forgotten.
    fn find_starving(&mut self, now_us: u64, mut is_unaccepted: impl FnMut(ConnectionId) -> bool) -> bool {
        while let Some(oldest) = self.unaccepted.front()
            && self.has_waited_long(oldest, now_us)
        {
            if is_unaccepted(oldest.connection) {
                return true;
            }
            self.unaccepted.pop_front();
        }
        false
    }

    /// How many connections have waited for too long, if the oldest has: the oldest is accepted first.
    fn count_starving(&self, now_us: u64) -> usize {
        self.unaccepted.iter().take_while(|one| self.has_waited_long(one, now_us)).count()
    }

    /// Whether answers are so rare that a connection may be closed for each.
    fn keeps_order(&self) -> bool {
        self.interval_us >= ORDERED_US
    }

    fn has_waited_long(&self, one: &Unaccepted, now_us: u64) -> bool {
        now_us >= one.since_us + self.patience_us(one)
    }

    /// For how long a connection may be in the backlog before another one is closed for it.
    fn patience_us(&self, one: &Unaccepted) -> u64 {
        if one.is_local && self.keeps_order() { ACCEPT_US } else { LONG_US }
    }

    /// When the oldest connection has waited for too long, unless it has been told.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        let oldest = self.unaccepted.front()?;
        // The clocks of loops are behind.
        let due_ms = oldest.since_ms + self.patience_us(oldest).div_ceil(1_000) + 1;
        Some(due_ms.max(self.next_tell_ms))
    }
}

/// The time on a clock that all loops share and that is precise: theirs advance in steps of milliseconds.
pub(crate) fn precise_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

/// How long a process that is free may take to accept a connection.
const ACCEPT_US: u64 = 300;

/// How long a connection waits for its turn where the order is not kept: over TCP, and where answers follow fast.
const LONG_US: u64 = 20_000;

/// The order is kept where a loop has no more than 3,000 answers in a second.
const ORDERED_US: u64 = 333;

/// Over how many answers their interval is averaged, about: those of processes that have begun together come together.
const AVERAGED: u64 = 64;

/// How often other loops are told.
const TELL_MS: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, BacklogNotices};

    fn notice() -> BacklogNotice {
        BacklogNotices::allocate().unwrap().of(&Address::Abstract(Vec::new())).unwrap()
    }

    fn backlog<const N: usize>(ids: [u64; N]) -> Backlog {
        let mut backlog = Backlog::default();
        for (id, now_us) in ids.into_iter().zip(0..) {
            backlog.opened(ConnectionId::from_data(id), true, now_us, 0);
        }
        backlog
    }

    #[test]
    fn a_connection_is_given_up_for_each_that_starves() {
        let mut backlog = backlog([0, 1, 2]);
        let is_unaccepted = |id| id != ConnectionId::from_data(0);
        let mut has_starving = |now_us| backlog.has_starving(None, now_us, is_unaccepted);
        assert!(!has_starving(ACCEPT_US), "it has just been opened");
        assert!(has_starving(ACCEPT_US + 2));
        assert!(has_starving(ACCEPT_US + 2), "there are two of them");
        assert!(!has_starving(2 * ACCEPT_US), "one was given up for each");
        assert!(has_starving(2 * ACCEPT_US + 2), "it was not enough");
        assert!(!backlog.has_starving(None, u64::MAX / 2, |_| false));
        assert!(
            !backlog.has_starving(None, u64::MAX / 2, |_| true),
            "what was accepted is not looked at again"
        );
    }

    /// Goal: where answers follow fast, a connection is closed for one that has waited for long, and no other.
    #[test]
    fn the_order_is_kept_where_answers_are_rare() {
        let mut backlog = Backlog::default();
        backlog.opened(ConnectionId::from_data(0), true, 0, 0);
        let mut keeps_order = |answers, in_ms: u64| {
            for batch in 1..=20 {
                (0..answers).for_each(|_| backlog.note_answer(batch * in_ms));
            }
            backlog.find_starving(ACCEPT_US, |_| true)
        };
        assert!(!keeps_order(15, 3), "5,000 in a second");
        assert!(keeps_order(6, 3), "six processes of 3 ms");
        assert!(!keeps_order(100, 3));
        assert!(!backlog.find_starving(LONG_US - 1, |_| true));
        assert!(backlog.find_starving(LONG_US, |_| true));
    }

    #[test]
    fn over_tcp_only_an_answer_tells() {
        let mut backlog = Backlog::default();
        backlog.opened(ConnectionId::from_data(0), false, 0, 0);
        assert!(!backlog.has_starving(None, LONG_US - 1, |_| true));
        assert!(backlog.has_starving(None, LONG_US, |_| true));
    }

    #[test]
    fn a_loop_gives_up_a_connection_for_one_of_another() {
        let notice = notice();
        let (mut waits, mut keeps) = (backlog([0, 1]), Backlog::default());
        let mut gives_up = |now_us| keeps.has_starving(Some(notice), now_us, |_| false);
        let due_ms = waits.due_ms().unwrap();
        assert!(!gives_up(ACCEPT_US));
        waits.tell_others(notice, 2 * ACCEPT_US, due_ms, |_| true);
        let given_up = [2, 2, 3].map(|times| gives_up(times * ACCEPT_US));
        assert_eq!(given_up, [true, true, false], "one for each");
        assert_eq!(waits.due_ms(), Some(due_ms + TELL_MS), "told, but not again and again");
        waits.tell_others(notice, 4 * ACCEPT_US, due_ms + TELL_MS, |_| true);
        assert!(!gives_up(1_000_000), "it may be no more");
        waits.tell_others(notice, 1_000_000, due_ms + 100, |_| false);
        assert!(!gives_up(1_000_000) && waits.due_ms().is_none(), "all are accepted");
    }
}
