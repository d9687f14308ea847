//! What was tried for a request, and what may be tried again.

/// The attempts at a request. Each kind has a bound, so that no request is tried without end.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// It was sent a second time, on a new connection, after the application may have begun with it.
    is_repeated: bool,
    /// It went on to another peer after one may have begun with it.
    has_moved_on: bool,
    /// How often it was sent to a process that ended without reading it.
    times_unseen: u8,
    /// Addresses of the application's host that could not be connected to.
    addresses_tried: usize,
    /// When to give up if the application's backlog stays full.
    connecting_until_ms: Option<u64>,
}

impl Attempts {
    /// Whether a request whose kept connection has ended is sent again. `is_unseen`: no application can have begun with it.
    /// `is_harmless`: it may have, and a second time does no harm: that is done once.
    pub(crate) fn take_repeat(&mut self, is_unseen: bool, is_harmless: bool) -> bool {
        if is_unseen && self.times_unseen < TIMES_UNSEEN_MAX {
            self.times_unseen += 1;
            return true;
        }
        is_harmless && !std::mem::replace(&mut self.is_repeated, true)
    }

    /// Whether it has gone on to another peer after one may have begun with it.
    pub(crate) fn has_moved_on(&self) -> bool {
        self.has_moved_on
    }

    /// It does so now: once.
    pub(crate) fn note_moved_on(&mut self) {
        debug_assert!(!self.has_moved_on, "it moves on once");
        self.has_moved_on = true;
    }

    /// It begins at another peer, which it has not tried.
    pub(crate) fn begin_at_peer(&mut self) {
        (self.addresses_tried, self.times_unseen, self.connecting_until_ms) = (0, 0, None);
    }

    /// An address could not be connected to. Returns whether the host has another one of its `choices` that was not tried.
    pub(crate) fn take_address(&mut self, choices: usize) -> bool {
        self.addresses_tried += 1;
        self.addresses_tried < choices
    }

    /// It waits for room in a backlog: until then, unless it has done so before.
    pub(crate) fn wait_to_connect(&mut self, until_ms: u64) {
        self.connecting_until_ms.get_or_insert(until_ms);
    }

    /// Until when it waits for room in a backlog; `None`: it does not.
    pub(crate) fn connecting_until_ms(&self) -> Option<u64> {
        self.connecting_until_ms
    }
}

/// How often a request is sent again that no application has seen. Each time another process was just exiting.
const TIMES_UNSEEN_MAX: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_begun_is_repeated_once_and_what_cannot_have_a_few_times() {
        let mut attempts = Attempts::default();
        for _ in 0..TIMES_UNSEEN_MAX {
            assert!(attempts.take_repeat(true, false));
        }
        assert!(!attempts.take_repeat(true, false), "each process ends");
        assert!(attempts.take_repeat(true, true) && !attempts.take_repeat(true, true));
        assert!(!Attempts::default().take_repeat(false, false));
    }

    #[test]
    fn another_peer_has_addresses_and_a_backlog_of_its_own() {
        let mut attempts = Attempts::default();
        attempts.wait_to_connect(5);
        attempts.wait_to_connect(9);
        assert_eq!(attempts.connecting_until_ms(), Some(5), "the wait is not prolonged");
        assert!(attempts.take_address(2) && !attempts.take_address(2));
        attempts.note_moved_on();
        attempts.begin_at_peer();
        assert!(attempts.has_moved_on() && attempts.connecting_until_ms().is_none());
        assert!(attempts.take_address(2));
    }
}
