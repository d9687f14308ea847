//! Readers between two parts. A player asks for a film in parts, each of them a request; to the policies they are one reader.
//!
//! A request that ends in front of the end of its content leaves a pause behind. The next one that begins with the byte behind
//! it goes on where it ended, from any client: no policy counts clients. A seek finds no pause, and is another reader.
//! A pause is of what is asked for, not of a stored content: of a film of which nothing was kept, the next part is stored anew.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use baton_segment::layout::BlockNumber;

/// All pauses of a cache.
#[derive(Debug, Default)]
pub(crate) struct Pauses(Mutex<Waiting>);

/// A reader that has not asked for its next part yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) content: u128,
    /// The block that it has reached last.
    pub(crate) last: BlockNumber,
    pub(crate) at_ms: u64,
}

/// The handle of what is asked for, the byte that comes next, and a number that tells readers apart.
type Place = (u64, u64, u64);

#[derive(Debug, Default)]
struct Waiting {
    by_place: BTreeMap<Place, Pause>,
    /// The oldest first; those that have gone on are still here.
    order: VecDeque<(Place, u64)>,
    number: u64,
}

/// Who is silent for longer has left, as in a log that is replayed (`baton sim cache`).
const PAUSE_MS: u64 = 10 * 60_000;
/// Beyond it those that wait longest have left. Each takes about a hundred bytes.
const PAUSES_MAX: usize = 4096;

impl Pauses {
    /// A reader waits in front of a byte. Returns those that have left meanwhile.
    pub(crate) fn begin(&self, handle: u64, next: u64, pause: Pause) -> Vec<Pause> {
        let mut waiting = self.lock();
        waiting.number += 1;
        let place = (handle, next, waiting.number);
        waiting.by_place.insert(place, pause);
        waiting.order.push_back((place, pause.at_ms));
        waiting.leaving(pause.at_ms)
    }

    /// A request begins with this byte: the reader that it goes on with.
    pub(crate) fn end(&self, handle: u64, start: u64) -> Option<Pause> {
        let mut waiting = self.lock();
        let of_place = (handle, start, 0)..=(handle, start, u64::MAX);
        let place = *waiting.by_place.range(of_place).next()?.0;
        waiting.by_place.remove(&place)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn leaving(&mut self, now_ms: u64) -> Vec<Pause> {
        let mut left = Vec::new();
        while let Some((place, at_ms)) = self.order.front().copied()
            && (at_ms + PAUSE_MS < now_ms || self.order.len() > PAUSES_MAX)
        {
            self.order.pop_front();
            left.extend(self.by_place.remove(&place));
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(last: BlockNumber, at_ms: u64) -> Pause {
        Pause { content: 1, last, at_ms }
    }

    #[test]
    fn the_next_part_is_the_same_reader() {
        let pauses = Pauses::default();
        // Two readers at the same place, another one elsewhere.
        for (next, last) in [(100, 3), (100, 4), (200, 7)] {
            assert_eq!(pauses.begin(9, next, pause(last, 0)), []);
        }
        assert_eq!(pauses.end(8, 100), None, "of something else");
        assert_eq!(pauses.end(9, 101), None, "a seek");
        let went_on = [100, 100, 100, 200].map(|start| pauses.end(9, start).map(|pause| pause.last));
        assert_eq!(went_on, [Some(3), Some(4), None, Some(7)]);
    }

    #[test]
    fn who_is_silent_for_long_has_left() {
        let pauses = Pauses::default();
        pauses.begin(9, 1, pause(1, 0));
        pauses.begin(9, 2, pause(2, 0));
        assert!(pauses.end(9, 2).is_some());
        assert_eq!(pauses.begin(9, 3, pause(3, PAUSE_MS + 1)), [pause(1, 0)]);
        assert_eq!(pauses.end(9, 1), None);
    }

    #[test]
    fn there_is_a_bound() {
        let pauses = Pauses::default();
        let left: Vec<_> =
            (0..5000).flat_map(|number| pauses.begin(9, number, pause(number as u32, 0))).collect();
        assert_eq!((left.len(), left[0]), (5000 - PAUSES_MAX, pause(0, 0)));
    }
}
