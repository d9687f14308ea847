//! Readers between two parts. A player asks for a film in parts, each of them a request; to the policies they are one reader.
//!
//! A request that ends in front of the end of its content leaves a pause behind. The next one that begins with the byte behind
//! it goes on where it ended, from any client: no policy counts clients. A seek finds no pause, and is another reader.
//! A pause is of what is asked for, not of a stored content: of a film of which nothing was kept, the next part is stored anew.
//!
//! Each client has a [share](baton_shares) of the table: beyond it, its own oldest pause ends. So a client that breaks off
//! thousands of requests ends no pause of others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use baton_segment::layout::BlockNumber;
use baton_shares::{ClientKey, Full, Permit, Shares};

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

/// The handle of what is asked for, and the byte that comes next.
type Place = (u64, u64);

/// Numbers tell readers apart; a later one is greater.
#[derive(Debug, Default)]
struct Waiting {
    all: BTreeMap<u64, Waiter>,
    by_place: BTreeSet<(Place, u64)>,
    by_client: BTreeSet<(Option<ClientKey>, u64)>,
    shares: Shares,
    next_number: u64,
}

#[derive(Debug)]
struct Waiter {
    pause: Pause,
    place: Place,
    permit: Permit,
}

/// A reader that is silent for longer has left, as in a log that is replayed (`baton sim cache`).
const PAUSE_MS: u64 = 10 * 60_000;
/// Each takes about two hundred bytes.
const PAUSES_MAX: usize = 4096;

impl Pauses {
    /// A reader of this client waits in front of a byte. Returns those that have left meanwhile, or had to make room.
    pub(crate) fn begin(
        &self,
        handle: u64,
        next: u64,
        client: Option<ClientKey>,
        pause: Pause,
    ) -> Vec<Pause> {
        let mut waiting = self.lock();
        let mut left = waiting.take_silent(pause.at_ms);
        left.extend(waiting.make_room(client));
        waiting.insert((handle, next), client, pause);
        left
    }

    /// A request begins with this byte: the reader that it goes on with.
    pub(crate) fn end(&self, handle: u64, start: u64) -> Option<Pause> {
        let mut waiting = self.lock();
        let place = (handle, start);
        let (_, number) = *waiting.by_place.range((place, 0)..=(place, u64::MAX)).next()?;
        waiting.remove(number)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn insert(&mut self, place: Place, client: Option<ClientKey>, pause: Pause) {
        let number = self.next_number;
        self.next_number += 1;
        self.by_place.insert((place, number));
        self.by_client.insert((client, number));
        self.all.insert(number, Waiter { pause, place, permit: self.shares.enter(client) });
    }

    fn remove(&mut self, number: u64) -> Option<Pause> {
        let Waiter { pause, place, permit } = self.all.remove(&number)?;
        self.by_place.remove(&(place, number));
        self.by_client.remove(&(permit.client(), number));
        Some(pause)
    }

    fn take_silent(&mut self, now_ms: u64) -> Vec<Pause> {
        let mut silent = Vec::new();
        while let Some((number, waiter)) = self.all.first_key_value()
            && waiter.pause.at_ms + PAUSE_MS < now_ms
        {
            silent.extend(self.remove(*number));
        }
        silent
    }

    /// Ends the oldest pause if there is no room for one more, or the client's oldest if it has more than its share.
    fn make_room(&mut self, client: Option<ClientKey>) -> Option<Pause> {
        let oldest = match self.shares.room(client, PAUSES_MAX).err()? {
            Full::Table => *self.all.first_key_value()?.0,
            Full::Share => self.by_client.range((client, 0)..=(client, u64::MAX)).next()?.1,
        };
        self.remove(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(last: BlockNumber, at_ms: u64) -> Pause {
        Pause { content: 1, last, at_ms }
    }

    fn client(last: u8) -> Option<ClientKey> {
        Some(ClientKey::of([192, 0, 2, last].into()))
    }

    #[test]
    fn the_next_part_is_the_same_reader() {
        let pauses = Pauses::default();
        // Two readers at the same place, another one elsewhere.
        for (next, last) in [(100, 3), (100, 4), (200, 7)] {
            assert_eq!(pauses.begin(9, next, client(1), pause(last, 0)), []);
        }
        assert_eq!(pauses.end(8, 100), None, "of something else");
        assert_eq!(pauses.end(9, 101), None, "a seek");
        let went_on = [100, 100, 100, 200].map(|start| pauses.end(9, start).map(|pause| pause.last));
        assert_eq!(went_on, [Some(3), Some(4), None, Some(7)]);
    }

    #[test]
    fn who_is_silent_for_long_has_left() {
        let pauses = Pauses::default();
        pauses.begin(9, 1, client(1), pause(1, 0));
        pauses.begin(9, 2, client(1), pause(2, 0));
        assert!(pauses.end(9, 2).is_some());
        assert_eq!(pauses.begin(9, 3, client(1), pause(3, PAUSE_MS + 1)), [pause(1, 0)]);
        assert_eq!(pauses.end(9, 1), None);
    }

    /// Goal: beyond the bound the oldest pauses end. A reader that has gone on takes no place.
    #[test]
    fn there_is_a_bound() {
        let pauses = Pauses::default();
        for _ in 0..2 * PAUSES_MAX {
            assert_eq!(pauses.begin(9, 0, None, pause(0, 0)), []);
            assert!(pauses.end(9, 0).is_some());
        }
        let left: Vec<_> =
            (0..5000).flat_map(|number| pauses.begin(9, number, None, pause(number as u32, 0))).collect();
        assert_eq!((left.len(), left[0]), (5000 - PAUSES_MAX, pause(0, 0)));
    }

    /// Goal: a client that breaks off any number of requests ends none of the pauses of others. Method: it comes before them and behind
    /// them; others come until the table is full.
    #[test]
    fn no_client_ends_the_pauses_of_others() {
        let pauses = Pauses::default();
        let break_off = || {
            (0..2 * PAUSES_MAX as u64).for_each(|next| drop(pauses.begin(1, next, client(1), pause(1, 0))));
        };
        assert_eq!(pauses.begin(2, 0, client(2), pause(2, 0)), []);
        break_off();
        for other in 3..200 {
            let left = pauses.begin(2, 0, client(other), pause(2, 0));
            assert!(left.iter().all(|left| left.last == 1), "{other}: {left:?}");
        }
        break_off();
        let kept = (2..200).filter(|_| pauses.end(2, 0).is_some()).count();
        assert_eq!(kept, 198);
    }
}
