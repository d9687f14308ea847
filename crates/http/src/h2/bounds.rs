//! What one client may cause, and the budget that it spends (see `docs/decisions/0031-http2-of-our-own.md`).

crate::reasons! {
    /// A bound that a client went over. The connection ends with ENHANCE_YOUR_CALM.
    Bound {
        /// RST_STREAM by the client (CVE-2023-44487, "rapid reset").
        ClientResets => "client-resets",
            "the client reset more streams than its budget allows";
        /// RST_STREAM that the client provoked (CVE-2025-8671, "made you reset").
        ProvokedResets => "provoked-resets",
            "the client provoked more resets than its budget allows";
        /// Streams above SETTINGS_MAX_CONCURRENT_STREAMS.
        RefusedStreams => "refused-streams",
            "the client opened more streams than were allowed, again and again";
        /// PING.
        Pings => "pings",
            "the client sent more PINGs than its budget allows";
        /// SETTINGS.
        SettingsFrames => "settings-frames",
            "the client sent more SETTINGS than its budget allows";
        /// PRIORITY and PRIORITY_UPDATE.
        PriorityFrames => "priority-frames",
            "the client sent more priorities than its budget allows";
        /// DATA without bytes.
        EmptyFrames => "empty-frames",
            "the client sent more empty frames than its budget allows";
        /// Frames that change nothing: unknown types, acknowledgements of nothing, GOAWAY.
        IdleFrames => "idle-frames",
            "the client sent more frames that change nothing than its budget allows";
        /// Header blocks on streams that the server has reset, or ignores behind GOAWAY.
        IgnoredHeads => "ignored-heads",
            "the client sent more heads on streams that are over than its budget allows";
        /// WINDOW_UPDATE beyond what the sent DATA explains.
        WindowUpdates => "window-updates",
            "the client sent more window updates than the server sent data";
        /// DATA of a few bytes each, while none of it is consumed (RUSTSEC-2026-0258).
        SmallData => "small-data",
            "the client sent its body in pieces that cost more than their bytes";
        /// CONTINUATION frames of one header block.
        Continuations => "continuations",
            "a header block came in too many frames";
        /// The bytes of one header block.
        BlockBytes => "block-bytes",
            "a header block is too long to be worth a refusal";
        /// Control frames that the client makes the server send, and does not read.
        UnsentControl => "unsent-control",
            "the client does not read the control frames that it asks for";
    }
}

/// How many resets and idle frames a client has to its credit.
///
/// One budget for all of them: an attack that stays below each of many bounds is none below their sum. Answers and time
/// earn it back, so that a page whose images are cancelled, and a connection that sends a PING a minute, live on.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u32,
    earned_at_ms: u64,
}

impl Budget {
    /// A full budget.
    pub(crate) fn new(now_ms: u64) -> Self {
        Self { left: BUDGET_MAX, earned_at_ms: now_ms }
    }

    /// What is left.
    pub(crate) fn left(&self) -> u32 {
        self.left
    }

    /// Leaves no more than this.
    pub(crate) fn limit_to(&mut self, left: u32) {
        self.left = self.left.min(left);
    }

    /// Pays for one reset or idle frame.
    ///
    /// # Errors
    /// The budget is empty: `bound` ends the connection.
    pub(crate) fn spend(&mut self, bound: Bound, now_ms: u64) -> Result<(), Bound> {
        let seconds = now_ms.saturating_sub(self.earned_at_ms) / 1000;
        if seconds > 0 {
            self.earned_at_ms += seconds * 1000;
            self.earn(u32::try_from(seconds).unwrap_or(u32::MAX));
        }
        self.left = self.left.checked_sub(1).ok_or(bound)?;
        Ok(())
    }

    /// An answer was sent to its end.
    pub(crate) fn earn_answer(&mut self) {
        self.earn(BUDGET_PER_ANSWER);
    }

    fn earn(&mut self, count: u32) {
        self.left = self.left.saturating_add(count).min(BUDGET_MAX);
    }
}

/// Resets and idle frames that a client may cause at once. A browser that leaves a page resets each stream that it has
/// open, a hundred at most. h2o allows 100, nghttp2 1000.
pub const BUDGET_MAX: u32 = 200;

/// What an answer that was sent to its end earns. One for its own priority update, one for a neighbour's reset.
pub const BUDGET_PER_ANSWER: u32 = 2;

/// Window updates that a client may send before any request or DATA explains them.
pub const WINDOW_UPDATES_MAX: u32 = 400;

/// Window updates that a request or a DATA frame explains. One each for stream and connection is usual, and Firefox sends
/// one with each request; Envoy allows 10.
pub const WINDOW_UPDATES_PER_FRAME: u32 = 4;

/// CONTINUATION frames of one header block, as in nghttp2. Eight of 16 KiB are several times a head's limit.
pub const CONTINUATIONS_MAX: u32 = 8;

/// Bytes of one header block, as a multiple of the longest head: below it a long head is decoded and refused with 431,
/// beyond it the connection ends.
pub const BLOCK_FACTOR_MAX: usize = 2;

/// Control frames that wait to be sent: 17 KiB of PINGs at the most.
pub const CONTROL_FRAMES_MAX: u32 = 1000;

/// What a DATA frame costs at least until it is consumed, in bytes: about what a piece of its own costs to keep.
pub const DATA_BYTES_MIN: u64 = 256;

/// What small DATA may cost beyond their bytes, on all streams of a connection together: half of its window.
pub const SMALL_DATA_MAX: u64 = 1 << 20;

/// Priorities of streams that are not open yet. Browsers send one right in front of its request, if at all.
pub const EARLY_PRIORITIES_MAX: usize = 16;

/// Streams that the server reset, whose frames may still be on their way: more than can be open at once.
pub const RECENT_RESETS_MAX: usize = 128;

/// How long a client may take to acknowledge SETTINGS, in milliseconds.
pub const SETTINGS_ACK_TIMEOUT_MS: u64 = 10_000;

/// How long a drain waits for the client to learn of it, in milliseconds: the answer to a PING says so earlier.
pub const DRAIN_NOTICE_MS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_time_earn_a_budget_back() {
        let mut budget = Budget::new(5_000);
        for _ in 0..BUDGET_MAX {
            assert_eq!(budget.spend(Bound::Pings, 5_999), Ok(()));
        }
        assert_eq!(budget.spend(Bound::Pings, 5_999), Err(Bound::Pings));
        budget.earn_answer();
        for _ in 0..BUDGET_PER_ANSWER {
            assert_eq!(budget.spend(Bound::ClientResets, 5_999), Ok(()));
        }
        assert_eq!(budget.spend(Bound::ClientResets, 5_999), Err(Bound::ClientResets));
        assert_eq!(budget.spend(Bound::EmptyFrames, 6_000), Ok(()), "one a second");
        assert_eq!(budget.spend(Bound::EmptyFrames, 6_999), Err(Bound::EmptyFrames));
        assert_eq!(budget.spend(Bound::Pings, u64::MAX), Ok(()));
        for _ in 1..BUDGET_MAX {
            assert_eq!(budget.spend(Bound::Pings, u64::MAX), Ok(()));
        }
        assert_eq!(budget.spend(Bound::Pings, u64::MAX), Err(Bound::Pings), "never more than at first");
    }
}
