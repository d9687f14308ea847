//! How much of its memory a cache may use, by how long processes stand still for want of memory: a machine without a clock.
//!
//! IO-Lite evicts an entry when more than half of the pages that the kernel takes away held cached data (Pai, section
//! 2.2.7). A process does not learn which pages those are. It learns how much time the want of memory costs (PSI).
//!
//! ```text
//!   5 % of the time lost or more ──► a quarter less, at once          ┐
//!   less than 1 % for ten seconds ─► a twentieth of all more          ├─► share
//!   between them ──────────────────► as it is                         ┘
//! ```

/// A share that follows readings.
#[derive(Clone, Debug)]
pub struct MemoryShare {
    permille: u16,
    /// Time and stalls at the last reading.
    last: Option<(u64, u64)>,
    /// Of the time between the last two readings, how much was lost.
    lost_permille: u16,
    /// Since when hardly any time is lost.
    calm_since_ms: Option<u64>,
}

impl Default for MemoryShare {
    fn default() -> Self {
        Self { permille: WHOLE, last: None, lost_permille: 0, calm_since_ms: None }
    }
}

impl MemoryShare {
    /// The part of the range from the least to the most memory that the cache may use, in thousandths.
    pub fn permille(&self) -> u16 {
        self.permille
    }

    /// How much of the time was lost when it was last looked, in thousandths.
    pub fn lost_permille(&self) -> u16 {
        self.lost_permille
    }

    /// A reading: until now, processes have stood still for so many microseconds in all. Expected every two seconds; of two
    /// within one, the second counts for nothing.
    pub fn handle_reading(&mut self, now_ms: u64, stalled_us: u64) {
        let Some((last_ms, last_us)) = self.last else {
            self.last = Some((now_ms, stalled_us));
            return;
        };
        let passed_ms = now_ms.saturating_sub(last_ms);
        if passed_ms < INTERVAL_MS_MIN {
            return;
        }
        self.last = Some((now_ms, stalled_us));
        // Microseconds in a millisecond are thousandths.
        let lost = stalled_us.saturating_sub(last_us) / passed_ms;
        self.lost_permille = u16::try_from(lost).unwrap_or(WHOLE).min(WHOLE);
        if self.lost_permille >= PRESSED_PERMILLE {
            self.calm_since_ms = None;
            self.permille = self.permille * 3 / 4;
        } else if self.lost_permille >= CALM_PERMILLE {
            self.calm_since_ms = None;
        } else if now_ms - *self.calm_since_ms.get_or_insert(last_ms) >= CALM_MS {
            // A look that comes late makes no leap.
            self.permille = (self.permille + GROWTH_PERMILLE).min(WHOLE);
        }
    }
}

/// All.
const WHOLE: u16 = 1_000;

/// From here on, memory is given up: clients notice a twentieth of the time.
const PRESSED_PERMILLE: u16 = 50;

/// Below, memory is taken again. A single fault costs as much once in a while.
const CALM_PERMILLE: u16 = 10;

/// How long it has to be calm first: what was given up is found missing, or not, within seconds.
const CALM_MS: u64 = 10_000;

/// Growth with a reading: from nothing to all in 40 s.
const GROWTH_PERMILLE: u16 = 50;

/// Shorter intervals say nothing: the kernel updates its sums every two seconds.
const INTERVAL_MS_MIN: u64 = 1_000;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The shares after each of these readings, in front of each of which so many thousandths of two seconds are lost.
    fn shares(lost: impl IntoIterator<Item = u64>) -> Vec<u16> {
        let mut share = MemoryShare::default();
        let (mut now_ms, mut stalled_us) = (5_000, 70);
        share.handle_reading(now_ms, stalled_us);
        let readings = lost.into_iter().map(|lost| {
            (now_ms, stalled_us) = (now_ms + 2_000, stalled_us + lost * 2_000);
            share.handle_reading(now_ms, stalled_us);
            share.permille()
        });
        readings.collect()
    }

    #[test]
    fn pressure_takes_a_quarter_at_once_and_calm_gives_it_back_slowly() {
        assert_eq!(shares([0; 3]), [1_000; 3]);
        assert_eq!(shares([49, 50, 700, 1_000]), [1_000, 750, 562, 421]);
        let calm = shares([900].into_iter().chain([9; 30]));
        assert_eq!((calm[0], calm[4], calm[5], calm[6]), (750, 750, 800, 850), "after ten seconds");
        assert_eq!((calm[9], calm[30]), (1_000, 1_000));
        let restless = shares([900].into_iter().chain([9; 4]).chain([10]).chain([9; 5]));
        assert_eq!((restless[9], restless[10]), (750, 800), "the ten seconds begin anew");
    }

    /// Goal: a reading before its time, and one that comes late, change nothing that they should not.
    #[test]
    fn readings_count_by_the_time_between_them() {
        let mut share = MemoryShare::default();
        share.handle_reading(1_000, 0);
        share.handle_reading(1_001, 900);
        assert_eq!(share.permille(), 1_000, "a millisecond says nothing");
        share.handle_reading(101_000, 900_000);
        assert_eq!((share.permille(), share.lost_permille()), (1_000, 9), "0.9 s of 100 s");
        share.handle_reading(102_000, 0);
        assert_eq!(
            (share.permille(), share.lost_permille()),
            (1_000, 0),
            "another group, whose sum is smaller"
        );
    }

    proptest! {
        /// The share stays within its bounds, never grows under pressure, and gets to all after enough calm.
        #[test]
        fn a_share_is_a_share(lost in vec(0..3_000_u64, 0..200)) {
            let mut before = 1_000;
            for (share, lost) in shares(lost.iter().copied()).into_iter().zip(&lost) {
                prop_assert!(share <= 1_000);
                prop_assert!(share <= before || *lost < 10 && share <= before + 50);
                before = share;
            }
            let rested = shares(lost.into_iter().chain([0; 50]));
            prop_assert_eq!(rested.last(), Some(&1_000));
        }
    }
}
