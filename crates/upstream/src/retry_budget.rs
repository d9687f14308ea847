//! How many requests may be sent a second time.
//!
//! A count for each request would multiply the load of an origin that is in error already. A share of all requests
//! bounds it.

/// Retries that are left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryBudget {
    /// In parts of a retry: a request adds one.
    parts: u32,
}

impl Default for RetryBudget {
    /// Full.
    fn default() -> Self {
        Self { parts: PARTS_MAX }
    }
}

impl RetryBudget {
    /// A request has come.
    pub(crate) fn note_request(&mut self) {
        self.parts = (self.parts + 1).min(PARTS_MAX);
    }

    /// Takes a retry, if there is one.
    pub(crate) fn take(&mut self) -> bool {
        let left = self.parts.checked_sub(PARTS);
        self.parts = left.unwrap_or(self.parts);
        left.is_some()
    }
}

/// Requests for each retry: 20 % of them may be repeated.
const PARTS: u32 = 5;

/// At most: 20 retries in a row, when an origin is restarted and all its connections are closed at once.
const PARTS_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_the_requests_may_be_repeated() {
        let mut budget = RetryBudget::default();
        let at_once = (0..100).filter(|_| budget.take()).count();
        assert_eq!(at_once, 20);
        let repeated = (0..1_000)
            .filter(|_| {
                budget.note_request();
                budget.take()
            })
            .count();
        assert_eq!(repeated, 200);
    }
}
