//! What operators have said of nodes: the latest word about a node counts, on all members.
//!
//! Each agent tells its peers what is news to it. So a word that is said at one member reaches all of them, and a member that was
//! cut off hears of it with its next connection. It lives as long as one member does, and so many later ones have not been said of
//! other nodes.

use std::collections::BTreeMap;

use crate::local::{Drain, NAME_BYTES_MAX, NODES_MAX};

/// All that an agent knows.
#[derive(Debug, Default)]
pub(super) struct Drains {
    known: BTreeMap<String, Drain>,
    /// Whether the server is to be told.
    pub(super) is_news: bool,
}

impl Drains {
    /// An operator's word, said at this host. `None`: the name is none.
    pub(super) fn say(&mut self, node: &str, is_drained: bool, clock_ms: u64) -> Option<Drain> {
        // On a host whose clock is behind it would not be the latest, or be forgotten at once.
        let before =
            self.known.get(node).or_else(|| self.earliest().filter(|_| self.known.len() >= NODES_MAX));
        let said_ms = clock_ms.max(before.map_or(0, |known| known.said_ms.saturating_add(1)));
        let drain = Drain { node: node.to_owned(), said_ms, is_drained, reports: 0, left: 0 };
        self.take(&drain).then_some(drain)
    }

    /// What a peer knows. Whether it is news. Beyond [`NODES_MAX`] the earliest word is forgotten, if this is not it.
    pub(super) fn take(&mut self, drain: &Drain) -> bool {
        let is_later = self.known.get(&drain.node).is_none_or(|known| drain.rank() > known.rank());
        if !is_later || !(1..=NAME_BYTES_MAX).contains(&drain.node.len()) {
            return false;
        }
        self.known.insert(drain.node.clone(), drain.clone());
        let forgotten =
            self.earliest().filter(|_| self.known.len() > NODES_MAX).map(|word| word.node.clone());
        let is_news = forgotten.as_ref() != Some(&drain.node);
        forgotten.into_iter().for_each(|node| drop(self.known.remove(&node)));
        self.is_news |= is_news;
        is_news
    }

    /// The word that is forgotten first. All members agree on it, in whatever order they hear words: a later word about a node only
    /// takes it further from being the earliest.
    fn earliest(&self) -> Option<&Drain> {
        self.known.values().min_by_key(|word| (word.said_ms, &word.node))
    }

    /// The node itself says how many connections it has left.
    pub(super) fn report(&mut self, node: &str, left: u64) -> Option<Drain> {
        let known = self.known.get_mut(node)?;
        // A peer may have told any number.
        known.reports = known.reports.saturating_add(1);
        known.left = left;
        self.is_news = true;
        Some(known.clone())
    }

    /// The last word about a node, if it is drained.
    pub(super) fn drained(&self, node: &str) -> Option<&Drain> {
        self.known.get(node).filter(|known| known.is_drained)
    }

    /// All of them, by name.
    pub(super) fn list(&self) -> Vec<Drain> {
        self.known.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn word() -> impl Strategy<Value = Drain> {
        (0..3_u8, 0..4_u64, any::<bool>(), 0..3_u64).prop_map(|(node, said_ms, is_drained, reports)| Drain {
            node: node.to_string(),
            said_ms,
            is_drained,
            reports,
            left: reports,
        })
    }

    proptest! {
        /// Goal: members that have heard the same agree, in whatever order and how often they heard it, also about what is forgotten.
        #[test]
        fn the_order_does_not_matter(
            words in prop::collection::vec(word(), 0..12),
            seed in any::<usize>(),
            others in NODES_MAX - 2..=NODES_MAX,
        ) {
            let (mut one, mut other) = (Drains::default(), Drains::default());
            for number in 0..others {
                one.say(&format!("other {number}"), true, 2);
            }
            one.list().iter().for_each(|word| _ = other.take(word));
            words.iter().for_each(|word| _ = one.take(word));
            let turned = words.iter().cycle().skip(seed % words.len().max(1)).take(2 * words.len());
            turned.for_each(|word| _ = other.take(word));
            prop_assert!(one.list().len() <= NODES_MAX);
            prop_assert_eq!(one.list(), other.list());
        }
    }

    /// Goal: the operator's last word counts, also on a host whose clock is behind, and names are bounded.
    #[test]
    fn a_word_is_later_than_what_was_known() {
        let mut drains = Drains::default();
        assert!(drains.say("a", true, 1_000).is_some());
        assert!(drains.report("a", 7).is_some_and(|drain| drain.left == 7));
        assert_eq!(drains.drained("a").map(|drain| drain.left), Some(7));
        assert!(drains.say("a", false, 10).is_some_and(|drain| drain.said_ms == 1_001));
        assert!(drains.drained("a").is_none() && drains.report("b", 1).is_none());
        assert!(drains.say("", true, 1).is_none() && drains.say(&"x".repeat(65), true, 1).is_none());
    }

    /// Goal: beyond the bound the earliest word makes room, and nothing that is earlier takes the place of a later word.
    #[test]
    fn the_latest_words_stay() {
        let mut drains = Drains::default();
        (0..NODES_MAX as u64).for_each(|node| _ = drains.say(&node.to_string(), true, 1_000 + node));
        let early = drains.drained("0").cloned().expect("the earliest");
        assert!(drains.say("one more", true, 10).is_some(), "on a host whose clock is behind");
        assert!(drains.drained("0").is_none() && drains.drained("one more").is_some());
        assert!(!drains.take(&early), "a peer that has not heard of it tells it again");
        assert_eq!(drains.list().len(), NODES_MAX);
        assert!(drains.say("0", true, 3_000).is_some_and(|drain| drain.said_ms == 3_000));
        assert!(drains.drained("0").is_some() && drains.drained("1").is_none());
    }

    /// A peer may tell any number.
    #[test]
    fn a_number_of_reports_has_no_successor() {
        let mut drains = Drains::default();
        let told =
            Drain { node: "a".into(), said_ms: u64::MAX, is_drained: true, reports: u64::MAX, left: 1 };
        assert!(drains.take(&told));
        assert_eq!(drains.report("a", 7), Some(Drain { left: 7, ..told }));
    }
}
