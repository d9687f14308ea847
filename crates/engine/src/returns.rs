//! How many connections a loop that drains gives back to front-ends at a time.

/// Connections that may go back now.
#[derive(Debug)]
pub(crate) struct Returns {
    left: usize,
    /// When more may go; `None`: none has gone since.
    again_ms: Option<u64>,
}

impl Default for Returns {
    fn default() -> Self {
        Self { left: Self::AT_A_TIME, again_ms: None }
    }
}

impl Returns {
    /// Few enough for a handoff agent, which has a bound for those under way, however many loops a node has.
    pub(crate) const AT_A_TIME: usize = 16;

    /// Whether one more may go.
    pub(crate) fn takes_one(&mut self, now_ms: u64) -> bool {
        self.again_ms.get_or_insert(now_ms + EVERY_MS);
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }

    /// When [`is_due`](Self::is_due) has something to say.
    pub(crate) fn again_ms(&self) -> Option<u64> {
        self.again_ms
    }

    /// Whether it is time for those that had to stay. True once.
    pub(crate) fn is_due(&mut self, now_ms: u64) -> bool {
        let is_due = self.again_ms.is_some_and(|again_ms| now_ms >= again_ms);
        if is_due {
            *self = Self::default();
        }
        is_due
    }
}

const EVERY_MS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_a_time() {
        let mut returns = Returns::default();
        assert!(returns.again_ms().is_none() && !returns.is_due(1));
        assert_eq!((0..20).filter(|_| returns.takes_one(5)).count(), Returns::AT_A_TIME);
        assert!(!returns.is_due(14));
        assert!(returns.is_due(15) && !returns.is_due(15));
        assert!(returns.takes_one(16));
        assert_eq!(returns.again_ms(), Some(26));
    }
}
