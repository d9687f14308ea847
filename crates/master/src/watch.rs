//! Whether the loops of a worker move, by their heartbeats. The [watchdog](crate::master) acts on it.

use baton_engine::heartbeat::Beat;

/// What the master remembers of the loops of one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch(Vec<Loop>);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    /// The index among the worker's loops.
    pub(crate) number: usize,
    /// Its beats at the last look.
    pub(crate) beat: Beat,
    /// Looks since its last move.
    still: u32,
}

/// The result of one look at the loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observation {
    Moves,
    /// A loop has not moved for a while: it may only wait for events.
    Silent,
    Still,
    /// A loop has not moved for so long that the worker is useless.
    Stuck,
}

impl Watch {
    /// Looks at the loops of a worker.
    pub(crate) fn look(&mut self, beats: impl IntoIterator<Item = (usize, Beat)>) -> Observation {
        let seen = beats.into_iter().map(|(number, beat)| {
            let before = self.0.iter().find(|before| before.number == number);
            let before = before.filter(|before| before.beat.count == beat.count);
            Loop { number, beat, still: before.map_or(0, |before| before.still.saturating_add(1)) }
        });
        self.0 = seen.collect();
        match self.stillest().map_or(0, |stillest| stillest.still) {
            LOOKS.. => Observation::Stuck,
            LOOKS_UNTIL_STILL.. => Observation::Still,
            LOOKS_UNTIL_WOKEN => Observation::Silent,
            _ => Observation::Moves,
        }
    }

    /// Whether a loop stands still.
    pub(crate) fn stands_still(&self) -> bool {
        self.stillest().is_some_and(|stillest| stillest.still >= LOOKS_UNTIL_STILL)
    }

    /// The loop that has not moved for longest.
    pub(crate) fn stillest(&self) -> Option<&Loop> {
        self.0.iter().rev().max_by_key(|seen| seen.still)
    }
}

/// In the time after which a worker is killed.
pub(crate) const LOOKS: u32 = 8;
const LOOKS_UNTIL_STILL: u32 = 5;
const LOOKS_UNTIL_WOKEN: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(count: u64) -> Beat {
        Beat { count, thread: 1 }
    }

    fn look(watch: &mut Watch, counts: &[u64]) -> Observation {
        watch.look(counts.iter().map(|&count| beat(count)).enumerate())
    }

    #[test]
    fn a_loop_that_does_not_beat_is_woken_and_then_given_up() {
        use Observation::{Moves, Silent, Still, Stuck};
        let mut watch = Watch::default();
        let observations: Vec<_> = (0..10).map(|_| look(&mut watch, &[7])).collect();
        assert_eq!(observations, [Moves, Moves, Moves, Silent, Moves, Still, Still, Still, Stuck, Stuck]);
        assert!(watch.stands_still());
        assert_eq!(look(&mut watch, &[8]), Moves);
        assert!(!watch.stands_still());
    }

    #[test]
    fn one_loop_of_several_that_stands_still_is_enough() {
        let mut watch = Watch::default();
        let last = (0..9).map(|count| look(&mut watch, &[count, 3, count])).last();
        assert_eq!(last, Some(Observation::Stuck));
        assert_eq!(watch.stillest().map(|seen| seen.number), Some(1));
        assert_eq!(look(&mut watch, &[20]), Observation::Moves, "it has ended");
    }
}
