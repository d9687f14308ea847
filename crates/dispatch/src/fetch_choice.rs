//! Whether a node that has a kept connection fetches a file from its home, or reads it itself.
//!
//! A file that is in memory is sent from there. For any other the node knows two times, which it measures:
//!
//! ```text
//!   read    the mean of the disk's work, with the wait for it
//!   fetch   the way to a home that has the file in memory, and back: homes tell whether they had
//! ```
//!
//! No constant decides, since a read takes 0.1 ms from a fast drive, 10 ms from a hard disk, and more where many wait for it.
//!
//! What a fetch takes for which the home has to read does not count. While all nodes read for themselves, and while they begin, a home has
//! no other files in memory than they have, and reads as slowly: fetching pays once all fetch. So each node begins in good hope.
//! Either way has to be clearly faster than the other before it takes its place. Fetching costs two nodes processor time, each time, while a
//! file that was read is in memory; and a moment of reading fills the memory with files that have their homes elsewhere.

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
    is_fetching: bool,
}

impl Default for FetchChoice {
    /// Nothing has been measured: a fast drive, and a neighbour on the link.
    fn default() -> Self {
        Self { read_us: 100.0, fetch_us: 400.0, choices: 0, is_fetching: false }
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
        self.is_fetching
    }

    /// A file that was not in memory has been read in so many microseconds.
    pub fn note_read(&mut self, us: u64) {
        approach(&mut self.read_us, us as f64, RECENT);
        self.judge();
    }

    /// The answer of a home that had the file in memory has begun so many microseconds after it was asked.
    pub fn note_fetched(&mut self, us: u64) {
        approach(&mut self.fetch_us, us as f64, RECENT);
        self.judge();
    }

    fn judge(&mut self) {
        let advantage = if self.is_fetching { ADVANTAGE_MIN.recip() } else { ADVANTAGE_MIN };
        self.is_fetching = self.fetch_us * advantage < self.read_us;
    }

    /// A home has not answered, or refuses to.
    pub fn note_failed(&mut self) {
        self.fetch_us = (self.fetch_us * FAILURE_FACTOR).min(FETCH_US_MAX);
        self.judge();
    }

    /// How long reading takes, in microseconds.
    pub fn read_us(&self) -> f64 {
        self.read_us
    }

    /// How long fetching takes from a home that has the file in memory, in microseconds.
    pub fn fetch_us(&self) -> f64 {
        self.fetch_us
    }

    /// One choice in so many is the other one: what is never done is never measured.
    fn choose(&mut self) -> bool {
        self.choices = self.choices.wrapping_add(1);
        let every = if self.is_fetching { READ_TRIAL_EVERY } else { FETCH_TRIAL_EVERY };
        self.is_fetching != self.choices.is_multiple_of(every)
    }
}

/// The other way is chosen if this one takes so many times as long.
const ADVANTAGE_MIN: f64 = 4.0;

/// Fifteen failures in a row count as eight times the time.
const FAILURE_FACTOR: f64 = 1.15;

/// A minute: from there, fetching is found faster again within some hundred trials.
const FETCH_US_MAX: f64 = 60e6;

/// One file in so many is fetched where files are read.
const FETCH_TRIAL_EVERY: u32 = 256;

/// One file in so many is read where files are fetched. It takes the place of one that has its home here, and what reading
/// takes is known from those.
const READ_TRIAL_EVERY: u32 = 4_096;

/// Times that are remembered, about. Few: thousands of requests wait for the first reads of a slow disk.
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
        (0..60).for_each(|_| choice.note_failed());
        assert!(fetched(&mut choice, FetchRule::IfFaster, 2, 1_000) < 10, "homes that are gone");
        (0..1_000).for_each(|_| choice.note_fetched(300));
        assert!(choice.is_fetching(), "homes that are back");
        (0..100).for_each(|_| choice.note_read(200));
        assert!(choice.is_fetching(), "slower, but not clearly");
        (0..100).for_each(|_| choice.note_read(50));
        assert!(!choice.is_fetching(), "clearly slower");
        (0..100).for_each(|_| choice.note_read(400));
        assert!(!choice.is_fetching(), "faster, but not clearly");
    }

    /// Goal: neither way is forgotten.
    #[test]
    fn the_other_way_is_tried_now_and_then() {
        for read_us in [50, 8_000] {
            let mut choice = FetchChoice::default();
            (0..100).for_each(|_| choice.note_read(read_us));
            let others = (0..8_192).filter(|_| choice.choose() != choice.is_fetching()).count();
            assert_eq!(others, if choice.is_fetching() { 2 } else { 32 });
        }
    }
}
