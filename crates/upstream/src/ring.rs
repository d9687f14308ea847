//! Which bytes of a region an application may write: the bookkeeping, without the bytes.
//!
//! ```text
//!        ┌──────────── size ────────────┐
//!        │ free │ on loan │ may write   │      on loan: announced, and still needed by the server
//!        └──────┴─────────┴─────────────┘      free:    no longer needed, which the application does not know yet
//!                         ▲ next
//! ```
//!
//! All three wrap around at the end of the region and always add up to its size.

use baton_fcgi::{RegionSlice, offer};

/// The bookkeeping of one region.
#[derive(Debug)]
pub(crate) struct Ring {
    size: u32,
    /// Where the application writes its next byte.
    next: u32,
    may_write: u32,
    on_loan: u32,
    free: u32,
}

/// The application announced bytes that it may not have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutsideOfRegion;

impl Ring {
    /// An unused region.
    pub(crate) fn new(size: u32) -> Self {
        Self { size, next: 0, may_write: 0, on_loan: 0, free: size }
    }

    /// Begins a request: the application may write all bytes that are not on loan. If none are, it starts over at offset 0,
    /// so that short responses reuse a few pages that stay in the CPU's caches.
    pub(crate) fn offer(&mut self) -> offer::Ring {
        if self.on_loan == 0 {
            self.next = 0;
        }
        self.may_write = self.size - self.on_loan;
        self.free = 0;
        offer::Ring { size: self.size, at: self.next, free: self.may_write }
    }

    /// Puts a slice that the application has written on loan.
    ///
    /// # Errors
    /// The slice is not where the application had to write next.
    pub(crate) fn announce(&mut self, slice: RegionSlice) -> Result<(), OutsideOfRegion> {
        if slice.len == 0 {
            return Ok(());
        }
        if slice.offset != self.next || slice.len > self.may_write || slice.len > self.size - slice.offset {
            return Err(OutsideOfRegion);
        }
        self.next = (self.next + slice.len) % self.size;
        self.may_write -= slice.len;
        self.on_loan += slice.len;
        Ok(())
    }

    /// The oldest `len` bytes on loan are no longer needed.
    pub(crate) fn end_loan(&mut self, len: u32) {
        debug_assert!(len <= self.on_loan, "{len} of {} bytes on loan", self.on_loan);
        self.on_loan -= len;
        self.free += len;
    }

    /// How many bytes to announce as free (`FREED`), if they are worth a message.
    pub(crate) fn tell_free(&mut self) -> Option<u32> {
        if self.free < self.size / WORTH_TELLING {
            return None;
        }
        self.may_write += self.free;
        Some(std::mem::take(&mut self.free))
    }

    /// Whether the application will soon have to wait, or does already.
    pub(crate) fn is_short(&self) -> bool {
        self.may_write < self.size / WORTH_TELLING
    }

    /// Whether more than half is on loan.
    pub(crate) fn is_crowded(&self) -> bool {
        self.on_loan > self.size / 2
    }
}

/// A message announces at least this fraction of the region: often enough that applications seldom wait, seldom enough that
/// messages cost little. An application that waits has loans outstanding, so another message will follow.
const WORTH_TELLING: u32 = 4;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn slice(offset: u32, len: u32) -> RegionSlice {
        RegionSlice { offset, len }
    }

    #[test]
    fn what_could_not_have_been_written_is_refused() {
        let mut ring = Ring::new(100);
        assert_eq!(ring.announce(slice(0, 1)), Err(OutsideOfRegion), "nothing was offered");
        assert_eq!(ring.offer(), offer::Ring { size: 100, at: 0, free: 100 });
        for wrong in [slice(1, 1), slice(0, 101), slice(u32::MAX, 1), slice(0, u32::MAX), slice(100, 1)] {
            assert_eq!(ring.announce(wrong), Err(OutsideOfRegion), "{wrong:?}");
        }
        ring.announce(slice(0, 90)).unwrap();
        assert_eq!(ring.announce(slice(90, 11)), Err(OutsideOfRegion), "it lies across the end");
        ring.announce(slice(90, 10)).unwrap();
        assert_eq!(ring.announce(slice(0, 1)), Err(OutsideOfRegion), "it is on loan");
        ring.end_loan(90);
        assert_eq!(ring.announce(slice(0, 1)), Err(OutsideOfRegion), "the application was not told");
        assert_eq!(ring.tell_free(), Some(90));
        ring.announce(slice(0, 90)).unwrap();
    }

    /// What one step of the game is: the application writes, the server lets go, a new request begins.
    #[derive(Clone, Debug)]
    enum Step {
        Write(u32),
        LetGo(usize),
        Offer,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (1_u32..70).prop_map(Step::Write),
            4 => (1_usize..4).prop_map(Step::LetGo),
            1 => Just(Step::Offer),
        ];
        proptest::collection::vec(step, 1..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// An application that keeps to its credit never writes to a byte on loan, is never refused, and is never left
        /// waiting when nothing is on loan.
        #[test]
        fn no_byte_has_two_owners(steps in steps(), size in 16_u32..64) {
            let mut ring = Ring::new(size);
            let mut owned = vec![false; size as usize];
            let mut loans: VecDeque<RegionSlice> = VecDeque::new();
            let mut at = 0;
            let mut credit = 0;
            for step in steps {
                match step {
                    Step::Offer => {
                        let offer = ring.offer();
                        prop_assert_eq!(offer.at, if loans.is_empty() { 0 } else { at });
                        (at, credit) = (offer.at, offer.free);
                    }
                    Step::Write(wanted) => {
                        let len = wanted.min(credit).min(size - at);
                        if len == 0 {
                            continue;
                        }
                        ring.announce(slice(at, len)).unwrap();
                        for byte in &mut owned[at as usize..(at + len) as usize] {
                            prop_assert!(!std::mem::replace(byte, true), "a byte on loan was written");
                        }
                        loans.push_back(slice(at, len));
                        at = (at + len) % size;
                        credit -= len;
                    }
                    Step::LetGo(count) => {
                        for loan in loans.drain(..count.min(loans.len())) {
                            ring.end_loan(loan.len);
                            owned[loan.offset as usize..(loan.offset + loan.len) as usize].fill(false);
                        }
                        credit += ring.tell_free().unwrap_or(0);
                    }
                }
                prop_assert!(ring.may_write + ring.on_loan + ring.free == size);
                let begun = ring.may_write + ring.on_loan > 0;
                prop_assert!(!begun || !loans.is_empty() || credit > 0, "it waits for nothing");
            }
        }
    }
}
