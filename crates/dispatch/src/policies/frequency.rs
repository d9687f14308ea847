//! How often targets are asked for: counts that age.
//!
//! From time to time all counts are halved, so that what was asked for much once does not count for ever (the reset of
//! TinyLFU: Einziger, Friedman and Manes, 2017). A count knows the age in which it was made, and is halved when it is
//! looked at, once for each age that has passed: ageing takes no pass over all.
//!
//! TinyLFU counts in a sketch, because a cache has no table of what it does not hold. A front-end that maps targets has
//! one, and its counts are exact.

/// The ages that pass with the requests.
#[derive(Debug, Default)]
pub(crate) struct Ages {
    now: u32,
    requests: u64,
}

/// How often a target was asked for, less for what is long ago.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frequency {
    count: u32,
    age: u32,
}

/// What a request counts when it comes: it can be halved four times before it counts nothing.
const ONE: u32 = 16;

impl Ages {
    /// A request came; an age lasts for so many of them.
    pub(crate) const fn handle_request(&mut self, age_requests: u64) {
        self.requests += 1;
        if self.requests >= age_requests {
            self.requests = 0;
            self.now = self.now.wrapping_add(1);
        }
    }

    /// The frequency after one request more.
    pub(crate) fn one_more(&self, frequency: Frequency) -> Frequency {
        Frequency { count: self.count(frequency).saturating_add(ONE), age: self.now }
    }

    /// What a frequency counts now.
    pub(crate) fn count(&self, frequency: Frequency) -> u32 {
        frequency.count.checked_shr(self.now.wrapping_sub(frequency.age)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_halved_with_each_age() {
        let mut ages = Ages::default();
        let thrice = (0..3).fold(Frequency::default(), |frequency, _| ages.one_more(frequency));
        let mut counts = Vec::new();
        for _ in 0..7 {
            counts.push(ages.count(thrice));
            (0..10).for_each(|_| ages.handle_request(10));
        }
        assert_eq!(counts, [48, 24, 12, 6, 3, 1, 0]);
        assert_eq!(ages.count(ages.one_more(thrice)), 16, "the old ones count nothing any more");
        (0..100).for_each(|_| ages.handle_request(1));
        assert_eq!(ages.count(thrice), 0);
    }
}
