//! Whether a peer is left out because of its failures: passive ejection.
//!
//! ```text
//!            failures in a window              time is over                  a good answer
//!   in ─────────────────────────────► out ─────────────────► on probation ─────────────────► in
//!                                      ▲                           │
//!                                      └───────────────────────────┘ one failure: out for twice as long
//! ```

/// When a peer is left out, and for how long. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// Failures within a window that eject a peer; at least 1.
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
    failures: u32,
    window_since_ms: u64,
    /// 0: it never was.
    ejected_ms: u64,
    out_until_ms: u64,
    on_probation: bool,
}

impl Standing {
    /// As the processes of a server share it.
    pub(super) fn from_words(
        [failures, window_since_ms, ejected_ms, out_until_ms, probation]: [u64; 5],
    ) -> Self {
        let on_probation = probation != 0;
        Self { failures: failures as u32, window_since_ms, ejected_ms, out_until_ms, on_probation }
    }

    /// The same in the other direction.
    pub(super) fn to_words(self) -> [u64; 5] {
        let Self { failures, window_since_ms, ejected_ms, out_until_ms, on_probation } = self;
        [u64::from(failures), window_since_ms, ejected_ms, out_until_ms, u64::from(on_probation)]
    }

    /// When it is no longer left out; 0: it never was.
    pub(super) fn out_until_ms(&self) -> u64 {
        self.out_until_ms
    }

    /// Whether the peer is left out.
    pub(super) fn is_out(&self, now_ms: u64) -> bool {
        now_ms < self.out_until_ms
    }

    /// The peer has failed. Returns for how long that ejects it, in milliseconds, if it does.
    pub(super) fn handle_failure(&mut self, ejection: &Ejection, now_ms: u64) -> Option<u64> {
        if self.is_out(now_ms) {
            // A request from before, or one for which there was no better peer.
            return None;
        }
        if now_ms.saturating_sub(self.window_since_ms) >= ejection.window_ms {
            (self.failures, self.window_since_ms) = (0, now_ms);
        }
        self.failures += 1;
        let is_enough = self.on_probation || self.failures >= ejection.failures;
        is_enough.then(|| self.eject(ejection, now_ms))
    }

    /// The peer has answered well a request that it got at `begun_ms`.
    pub(super) fn handle_success(&mut self, begun_ms: u64, now_ms: u64) {
        if !self.is_out(now_ms) {
            self.on_probation = false;
        } else if begun_ms > self.ejected_ms {
            // It was asked because all are out, and is well again.
            (self.out_until_ms, self.on_probation) = (now_ms, false);
        }
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
        self.failures = 0;
        out_ms
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn three_in_ten_seconds() -> Ejection {
        Ejection { failures: 3, window_ms: 10_000, out_ms: 10_000, out_ms_max: 35_000, statuses: Vec::new() }
    }

    #[test]
    fn failures_count_within_a_window() {
        let ejection = three_in_ten_seconds();
        let mut standing = Standing::default();
        for now_ms in [100_000, 104_000, 110_000, 119_999] {
            standing.handle_failure(&ejection, now_ms);
            assert!(!standing.is_out(now_ms), "{now_ms}");
        }
        standing.handle_failure(&ejection, 119_999);
        assert!(standing.is_out(119_999) && standing.is_out(129_998) && !standing.is_out(129_999));
    }

    #[test]
    fn a_failure_on_probation_doubles_the_time_up_to_a_bound() {
        let ejection = three_in_ten_seconds();
        let mut standing = Standing::default();
        (0..3).for_each(|_| _ = standing.handle_failure(&ejection, 50_000));
        let mut now_ms = 60_000;
        for out_ms in [20_000, 35_000, 35_000] {
            standing.handle_failure(&ejection, now_ms);
            assert!(standing.is_out(now_ms + out_ms - 1) && !standing.is_out(now_ms + out_ms));
            now_ms += out_ms;
        }
        standing.handle_success(now_ms, now_ms);
        standing.handle_failure(&ejection, now_ms);
        assert!(!standing.is_out(now_ms), "a good answer ends the probation");
        now_ms += 1_000_000;
        (0..3).for_each(|_| _ = standing.handle_failure(&ejection, now_ms));
        assert!(!standing.is_out(now_ms + 10_000), "it was well for long");
    }

    #[test]
    fn a_good_answer_readmits_a_peer_that_was_asked_while_it_was_out() {
        let ejection = three_in_ten_seconds();
        let mut standing = Standing::default();
        (0..3).for_each(|_| _ = standing.handle_failure(&ejection, 50_000));
        standing.handle_success(49_000, 51_000);
        assert!(standing.is_out(51_000), "the request is from before");
        standing.handle_success(51_000, 52_000);
        assert!(!standing.is_out(52_000));
    }

    proptest! {
        /// Whatever happens, a peer comes back within the longest time, and fewer failures than the limit in all never
        /// eject it.
        #[test]
        fn nothing_ejects_for_ever(steps in prop::collection::vec((0..30_000_u64, any::<bool>()), 0..60)) {
            let ejection = three_in_ten_seconds();
            let (mut standing, mut now_ms, mut failures) = (Standing::default(), 1, 0);
            for (pause_ms, is_failure) in steps {
                now_ms += pause_ms;
                if is_failure {
                    let is_ejected = standing.handle_failure(&ejection, now_ms).is_some();
                    prop_assert!(!is_ejected || standing.is_out(now_ms));
                } else {
                    standing.handle_success(now_ms, now_ms);
                }
                failures += u32::from(is_failure);
                prop_assert!(!standing.is_out(now_ms + ejection.out_ms_max));
                prop_assert!(failures >= ejection.failures || !standing.is_out(now_ms));
            }
        }
    }
}
