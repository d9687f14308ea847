//! Whether a peer is well, by what it answers to requests of our own: active checks.
//!
//! ```text
//!   up ── `fall` bad answers in a row ─► down ── `rise` good ones in a row ─► up
//! ```

use crate::origins::{OriginRecord, word};

/// How peers are checked. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSettings {
    /// From the end of a check to the next.
    pub interval_ms: u64,
    /// How long an answer may take.
    pub timeout_ms: u64,
    /// Good answers in a row after which a peer that was down is up; at least 1.
    pub rise: u32,
    /// Bad answers in a row after which it is down; at least 1.
    pub fall: u32,
    /// The statuses of good answers. Empty: 200 to 399.
    pub statuses: Vec<u16>,
}

impl CheckSettings {
    /// Whether an answer with this status is good.
    pub(crate) fn accepts(&self, status: u16) -> bool {
        if self.statuses.is_empty() { (200..400).contains(&status) } else { self.statuses.contains(&status) }
    }
}

/// What the checks of a peer have shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checked {
    is_down: bool,
    /// Answers in a row that contradict `is_down`.
    contrary: u32,
}

impl Checked {
    /// As the processes of a server share it.
    pub(super) fn from_words([is_down, contrary]: [u64; 2]) -> Self {
        Self { is_down: is_down != 0, contrary: contrary as u32 }
    }

    /// What the checks have shown, as words that the processes of a server share.
    pub(super) fn to_words(self) -> [u64; 2] {
        [u64::from(self.is_down), u64::from(self.contrary)]
    }

    /// Whether the peer is down.
    pub(super) fn is_down(&self) -> bool {
        self.is_down
    }

    /// The result of a check. Returns whether it turns the peer's state.
    pub(super) fn handle_result(&mut self, settings: &CheckSettings, is_well: bool) -> bool {
        self.contrary = if is_well == self.is_down { self.contrary.saturating_add(1) } else { 0 };
        let enough = if self.is_down { settings.rise } else { settings.fall };
        let turns = self.contrary >= enough;
        if turns {
            (self.is_down, self.contrary) = (!self.is_down, 0);
        }
        turns
    }
}

/// When the checks of a peer are due. The processes of a server share it: one of them makes each check.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckTimes<'a>(pub(super) &'a OriginRecord);

impl CheckTimes<'_> {
    /// When the next check is due.
    pub(super) fn due_ms(&self) -> u64 {
        self.0.load(word::CHECK_DUE)
    }

    /// Whether a check is due, and no other process makes it. The caller does.
    pub(super) fn take_due(&self, settings: &CheckSettings, now_ms: u64) -> bool {
        let due_ms = self.due_ms();
        // Until there is a result, which may never come: our own bounds can keep the check from the peer.
        let next_ms = now_ms.saturating_add(settings.timeout_ms).saturating_add(settings.interval_ms);
        due_ms <= now_ms && self.0.exchange(word::CHECK_DUE, due_ms, next_ms)
    }

    /// A check has ended.
    pub(super) fn note_result(&self, settings: &CheckSettings, now_ms: u64) {
        let due_ms = self.due_ms().min(now_ms.saturating_add(settings.interval_ms));
        self.0.store(word::CHECK_DUE, due_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twice_up_thrice_down() -> CheckSettings {
        CheckSettings { interval_ms: 5_000, timeout_ms: 1_000, rise: 2, fall: 3, statuses: Vec::new() }
    }

    #[test]
    fn answers_count_in_a_row() {
        let settings = twice_up_thrice_down();
        let mut checked = Checked::default();
        let (good, bad) = (true, false);
        for (is_well, is_down) in [
            (bad, false),
            (bad, false),
            (good, false),
            (bad, false),
            (bad, false),
            (bad, true),
            (good, true),
            (bad, true),
            (good, true),
            (good, false),
            (bad, false),
        ] {
            let was_down = checked.is_down();
            assert_eq!(checked.handle_result(&settings, is_well), was_down != is_down);
            assert_eq!(checked.is_down(), is_down);
        }
    }

    #[test]
    fn a_check_begins_an_interval_after_the_last() {
        let settings = twice_up_thrice_down();
        let record = OriginRecord::default();
        let times = CheckTimes(&record);
        assert!(times.take_due(&settings, 100) && !times.take_due(&settings, 100));
        times.note_result(&settings, 600);
        assert_eq!(times.due_ms(), 5_600);
        assert!(times.take_due(&settings, 5_600));
        assert_eq!(times.due_ms(), 11_600, "without a result");
    }
}
