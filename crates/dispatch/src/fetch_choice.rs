//! Whether a node that has a kept connection fetches a file from its home, or reads it itself.
//!
//! A file that is in memory is sent from there. For any other the node knows two times, which it measures:
//!
//! ```text
//!   read    the mean of the disk's work, with the wait for it
//!   fetch   the way to a home that has the file in memory and back: what one fetch in eight takes at the most
//! ```
//!
//! No constant decides, since a read takes 0.1 ms from a fast drive, 10 ms from a hard disk, and more where many wait for it.
//!
//! The mean time of fetches would not do. While all nodes read for themselves, a home has no other files in memory than they have, and
//! reads as slowly: fetching pays once all fetch. So only what it takes without a disk is compared, and each node begins in good hope.
//! Fetching has to be clearly faster: it costs two nodes processor time, each time, while a file that was read is in memory.

use crate::approach::approach;
use crate::{Cluster, NodeId, Target, home};

/// When a node fetches a file that it has not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchRule {
    /// Whenever another node is its home.
    Always,
    /// If that is faster than reading it here.
    IfFaster,
}

/// Chooses between reading and fetching, for all files of a node. No clock, no socket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FetchChoice {
    read_us: f64,
    fetch_us: f64,
    choices: u32,
}

impl Default for FetchChoice {
    /// Nothing has been measured: a fast drive, and a neighbour on the link.
    fn default() -> Self {
        Self { read_us: 100.0, fetch_us: 400.0, choices: 0 }
    }
}

impl FetchChoice {
    /// The node from which `here` fetches a file that it has not in memory; `None`: it reads the file itself.
    pub fn source(
        &mut self,
        rule: FetchRule,
        here: NodeId,
        target: Target,
        cluster: &Cluster,
    ) -> Option<NodeId> {
        let home = home(target, cluster).filter(|home| *home != here)?;
        (rule == FetchRule::Always || self.choose()).then_some(home)
    }

    /// Whether fetching is faster, by what was measured lately.
    pub fn is_fetching(&self) -> bool {
        self.fetch_us * ADVANTAGE_MIN < self.read_us
    }

    /// A file that was not in memory has been read in so many microseconds.
    pub fn note_read(&mut self, us: u64) {
        approach(&mut self.read_us, us as f64, RECENT);
    }

    /// An answer has begun so many microseconds after its home was asked.
    pub fn note_fetched(&mut self, us: u64) {
        let share = if (us as f64) < self.fetch_us { FAST_SHARE - 1.0 } else { FAST_SHARE };
        self.fetch_us = (self.fetch_us * (1.0 + share / RECENT)).max(1.0);
    }

    /// A home has not answered.
    pub fn note_failed(&mut self) {
        self.fetch_us = (self.fetch_us * FAILURE_FACTOR).min(FETCH_US_MAX);
    }

    /// How long reading takes, in microseconds.
    pub fn read_us(&self) -> f64 {
        self.read_us
    }

    /// How long fetching takes from a home that has the file in memory, in microseconds.
    pub fn fetch_us(&self) -> f64 {
        self.fetch_us
    }

    /// One choice in [`TRIAL_EVERY`] is the other one. What is never done is never measured, and a file that is asked for often
    /// comes to memory here.
    fn choose(&mut self) -> bool {
        self.choices = self.choices.wrapping_add(1);
        self.is_fetching() != self.choices.is_multiple_of(TRIAL_EVERY)
    }
}

/// Fetching is chosen if reading takes so many times as long.
const ADVANTAGE_MIN: f64 = 4.0;

/// The share of fetches that are at least as fast as what is compared.
const FAST_SHARE: f64 = 0.125;

/// Fifteen failures in a row count as eight times the time.
const FAILURE_FACTOR: f64 = 1.15;

/// A minute: from there, fetching is found faster again within some hundred trials.
const FETCH_US_MAX: f64 = 60e6;

/// One choice in so many is tried the other way.
const TRIAL_EVERY: u32 = 256;

/// Times that are remembered, about.
const RECENT: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: NodeId = NodeId(0);

    /// Of so many different files, those that are fetched.
    fn fetched(choice: &mut FetchChoice, rule: FetchRule, nodes: usize, files: u64) -> usize {
        let cluster = Cluster::of(&vec![100; nodes], 0);
        let mut source = |file: u64| {
            let target = Target::new(crate::target_hash(&file.to_le_bytes()));
            let source = choice.source(rule, HERE, target, &cluster);
            assert!(source.is_none() || source == home(target, &cluster));
            source.is_some_and(|node| node != HERE)
        };
        (0..files).filter(|file| source(*file)).count()
    }

    #[test]
    fn a_file_whose_home_is_here_is_never_fetched() {
        assert_eq!(fetched(&mut FetchChoice::default(), FetchRule::Always, 1, 100), 0);
        let of_two = fetched(&mut FetchChoice::default(), FetchRule::Always, 2, 1_000);
        assert!((400..600).contains(&of_two), "{of_two}");
    }

    /// Goal: the choice follows the disk and the homes, and goes back when they do.
    #[test]
    fn the_faster_way_is_chosen() {
        let mut choice = FetchChoice::default();
        assert!(fetched(&mut choice, FetchRule::IfFaster, 2, 1_000) < 10, "a fast drive");
        (0..100).for_each(|_| choice.note_read(8_000));
        let of_two = fetched(&mut choice, FetchRule::IfFaster, 2, 1_000);
        assert!((400..600).contains(&of_two), "a slow disk: {of_two}");
        (0..30).for_each(|_| choice.note_failed());
        assert!(fetched(&mut choice, FetchRule::IfFaster, 2, 1_000) < 10, "homes that are gone");
        (0..100).for_each(|_| choice.note_fetched(300));
        assert!(choice.is_fetching());
        (0..100).for_each(|_| choice.note_read(400));
        assert!(!choice.is_fetching(), "slower, but not clearly");
    }

    /// Goal: it is known what fetching takes while homes have to read most files, as they do while no node fetches.
    #[test]
    fn one_fast_fetch_in_eight_is_enough() {
        let mut choice = FetchChoice::default();
        let mut note = |fast_of_8: u64| {
            for number in 0..4_000_u64 {
                choice.note_read(9_000);
                choice.note_fetched(if number % 8 < fast_of_8 { 500 } else { 9_500 });
            }
            choice.is_fetching()
        };
        assert!(note(2));
        assert!(!note(0), "homes have no memory either");
        assert!(note(2), "and it is found out that they have");
    }

    /// Goal: neither way is forgotten.
    #[test]
    fn the_other_way_is_tried_now_and_then() {
        for read_us in [50, 8_000] {
            let mut choice = FetchChoice::default();
            (0..100).for_each(|_| choice.note_read(read_us));
            let chosen = (0..2_560).filter(|_| choice.choose() == choice.is_fetching()).count();
            assert_eq!(chosen, 2_550);
        }
    }
}
