//! Whether a peer is left out because of its failures: passive ejection.
//!
//! ```text
//!            failures in a window              time is over                  a good answer
//!   in ─────────────────────────────► out ─────────────────► on probation ─────────────────► in
//!                                      ▲                           │
//!                                      └───────────────────────────┘ the next failure: out for twice as long
//! ```
//!
//! Which failures suffice is said by [`FailureWindow`]. Those that a client can cause also leave half of the group in.

use super::failure_window::{Evidence, FailureWindow};

/// When a peer is left out, and for how long. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// Failures within a window that eject a peer; at least 1. Those that a request may have caused are at least two.
    pub failures: u32,
    /// The window, which the first failure opens.
    pub window_ms: u64,
    /// How long a peer is out at first. It doubles with each ejection that follows soon.
    pub out_ms: u64,
    /// How long it is out at most.
    pub out_ms_max: u64,
    /// Statuses of responses that count as failures.
    pub statuses: Vec<u16>,
}

/// What the failures of a peer have led to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    window: FailureWindow,
    /// 0: it never was.
    ejected_ms: u64,
    out_until_ms: u64,
    on_probation: bool,
}

impl Standing {
    /// As the processes of a server share it.
    pub(super) fn from_words(words: [u64; STANDING_WORDS]) -> Self {
        let [ejected_ms, out_until_ms, probation, window @ ..] = words;
        let window = FailureWindow::from_words(window);
        Self { window, ejected_ms, out_until_ms, on_probation: probation != 0 }
    }

    /// The standing, as words that the processes of a server share.
    pub(super) fn to_words(self) -> [u64; STANDING_WORDS] {
        let [since, unreachable, by_request, answers, client, path, others] = self.window.to_words();
        let own = [self.ejected_ms, self.out_until_ms, u64::from(self.on_probation)];
        let [ejected, out_until, probation] = own;
        [ejected, out_until, probation, since, unreachable, by_request, answers, client, path, others]
    }

    /// When it is no longer left out; 0: it never was.
    pub(super) fn out_until_ms(&self) -> u64 {
        self.out_until_ms
    }

    /// Whether the peer is left out.
    pub(super) fn is_out(&self, now_ms: u64) -> bool {
        now_ms < self.out_until_ms
    }

    /// The peer has failed. `may_leave`: whether half of its group is in without it. `answered_in`: the window that an answer to
    /// the same request counts in. Returns for how long that ejects the peer, in milliseconds, if it does.
    pub(super) fn handle_failure(
        &mut self,
        ejection: &Ejection,
        evidence: Evidence,
        answered_in: Option<u64>,
        may_leave: bool,
        now_ms: u64,
    ) -> Option<u64> {
        if self.is_out(now_ms) {
            // A request from before, or one for which there was no better peer.
            return None;
        }
        if let Some(since_ms) = answered_in {
            self.window.take_back_answer(since_ms);
        }
        self.window.note_failure(evidence, ejection.window_ms, now_ms);
        let failures = if self.on_probation { 1 } else { ejection.failures };
        let is_enough =
            self.window.is_unreachable(failures) || (may_leave && self.window.is_failing(failures));
        is_enough.then(|| self.eject(ejection, now_ms))
    }

    /// The peer has answered well a request that it got at `begun_ms`. Returns when the window began that the answer counts in,
    /// if there is one.
    pub(super) fn handle_answer(&mut self, window_ms: u64, begun_ms: u64, now_ms: u64) -> Option<u64> {
        if !self.is_out(now_ms) {
            self.on_probation = false;
        } else if begun_ms > self.ejected_ms {
            // It was asked because all are out, and is well again.
            (self.out_until_ms, self.on_probation) = (now_ms, false);
        }
        self.window.note_answer(window_ms, now_ms)
    }

    fn eject(&mut self, ejection: &Ejection, now_ms: u64) -> u64 {
        // Another process may be about to write one of the two.
        let last_ms = self.out_until_ms.saturating_sub(self.ejected_ms);
        let well_ms = now_ms.saturating_sub(self.out_until_ms);
        let is_soon = self.ejected_ms > 0 && well_ms < last_ms.max(ejection.window_ms);
        let out_ms = if is_soon { last_ms.saturating_mul(2) } else { ejection.out_ms };
        self.ejected_ms = now_ms;
        let out_ms = out_ms.max(ejection.out_ms).min(ejection.out_ms_max);
        self.out_until_ms = now_ms.saturating_add(out_ms);
        self.on_probation = true;
        self.window = FailureWindow::default();
        out_ms
    }
}

/// Words that the processes of a server share.
pub(super) const STANDING_WORDS: usize = 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::failure_window::Asker;
    use baton_shares::ClientKey;

    use super::*;

    const UNREACHABLE: Evidence = Evidence::Unreachable;

    impl Standing {
        fn handle_unreachable(&mut self, ejection: &Ejection, now_ms: u64) -> Option<u64> {
            self.handle_failure(ejection, UNREACHABLE, None, false, now_ms)
        }
    }

    fn asked(client: u8, path: &str) -> Evidence {
        Evidence::Request(Asker::new(Some(ClientKey::of([192, 0, 2, client].into())), path.as_bytes()))
    }

    fn three_in_ten_seconds() -> Ejection {
        Ejection { failures: 3, window_ms: 10_000, out_ms: 10_000, out_ms_max: 35_000, statuses: Vec::new() }
    }

    #[test]
    fn failures_count_within_a_window() {
        let ejection = three_in_ten_seconds();
        let mut standing = Standing::default();
        for now_ms in [100_000, 104_000, 110_000, 119_999] {
            standing.handle_unreachable(&ejection, now_ms);
            assert!(!standing.is_out(now_ms), "{now_ms}");
        }
        standing.handle_unreachable(&ejection, 119_999);
        assert!(standing.is_out(119_999) && standing.is_out(129_998) && !standing.is_out(129_999));
    }

    #[test]
    fn a_failure_on_probation_doubles_the_time_up_to_a_bound() {
        let ejection = three_in_ten_seconds();
        let mut standing = Standing::default();
        (0..3).for_each(|_| _ = standing.handle_unreachable(&ejection, 50_000));
        let mut now_ms = 60_000;
        for out_ms in [20_000, 35_000, 35_000] {
            standing.handle_unreachable(&ejection, now_ms);
            assert!(standing.is_out(now_ms + out_ms - 1) && !standing.is_out(now_ms + out_ms));
            now_ms += out_ms;
        }
        standing.handle_answer(ejection.window_ms, now_ms, now_ms);
        standing.handle_unreachable(&ejection, now_ms);
        assert!(!standing.is_out(now_ms), "a good answer ends the probation");
        now_ms += 1_000_000;
        (0..3).for_each(|_| _ = standing.handle_unreachable(&ejection, now_ms));
        assert!(!standing.is_out(now_ms + 10_000), "it was well for long");
    }

    #[test]
    fn a_good_answer_readmits_a_peer_that_was_asked_while_it_was_out() {
        let ejection = three_in_ten_seconds();
        let mut standing = Standing::default();
        (0..3).for_each(|_| _ = standing.handle_unreachable(&ejection, 50_000));
        standing.handle_answer(ejection.window_ms, 49_000, 51_000);
        assert!(standing.is_out(51_000), "the request is from before");
        standing.handle_answer(ejection.window_ms, 51_000, 52_000);
        assert!(!standing.is_out(52_000));
    }

    /// Goal: what one client can cause ejects no peer, be it on probation, and what several clients meet does, if others are in.
    #[test]
    fn one_client_ejects_no_peer() {
        let ejection = three_in_ten_seconds();
        let mut standing = Standing::default();
        let fail = |standing: &mut Standing, evidence, may_leave, now_ms| {
            standing.handle_failure(&ejection, evidence, None, may_leave, now_ms).is_some()
        };
        for path in ["/a", "/b", "/c", "/d"] {
            assert!(!fail(&mut standing, asked(1, path), true, 50_000));
        }
        assert!(!fail(&mut standing, asked(2, "/a"), false, 50_000), "half of the group would be out");
        assert!(fail(&mut standing, asked(2, "/a"), true, 50_000));
        let mut standing = Standing::default();
        (0..3).for_each(|_| _ = fail(&mut standing, UNREACHABLE, false, 50_000));
        assert!(
            !fail(&mut standing, asked(1, "/a"), true, 60_000)
                && !fail(&mut standing, asked(1, "/b"), true, 60_000)
        );
        assert!(fail(&mut standing, asked(2, "/b"), true, 60_000), "on probation");
    }

    /// Goal: a broken response is no answer, although its head was one.
    #[test]
    fn an_answer_that_breaks_is_taken_back() {
        let ejection = three_in_ten_seconds();
        let mut standing = Standing::default();
        assert_eq!(standing.handle_failure(&ejection, asked(1, "/a"), None, true, 50_000), None);
        let head = |standing: &mut Standing| standing.handle_answer(ejection.window_ms, 50_000, 50_000);
        (0..3).for_each(|_| _ = head(&mut standing));
        for (client, is_ejected) in [(2, false), (3, true)] {
            let answered_in = head(&mut standing);
            let out_ms = standing.handle_failure(&ejection, asked(client, "/b"), answered_in, true, 50_000);
            assert_eq!(out_ms.is_some(), is_ejected);
        }
    }

    proptest! {
        /// Whatever happens, a peer comes back within the longest time, and fewer failures than the limit in all never
        /// eject it.
        #[test]
        fn nothing_ejects_for_ever(steps in prop::collection::vec((0..30_000_u64, 0..4_u8), 0..60)) {
            let ejection = three_in_ten_seconds();
            let (mut standing, mut now_ms, mut failures) = (Standing::default(), 1, 0);
            for (pause_ms, step) in steps {
                now_ms += pause_ms;
                let is_failure = step > 0;
                let evidence = if step == 1 { UNREACHABLE } else { asked(step, if step == 2 { "/a" } else { "/b" }) };
                if is_failure {
                    let out_ms = standing.handle_failure(&ejection, evidence, None, true, now_ms);
                    let is_ejected = out_ms.is_some();
                    prop_assert!(!is_ejected || standing.is_out(now_ms));
                } else {
                    standing.handle_answer(ejection.window_ms, now_ms, now_ms);
                }
                failures += u32::from(is_failure);
                prop_assert!(!standing.is_out(now_ms + ejection.out_ms_max));
                prop_assert!(failures >= ejection.failures || !standing.is_out(now_ms));
            }
        }
    }
}
