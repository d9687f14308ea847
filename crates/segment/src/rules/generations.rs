//! Purges, as numbers that are compared at each hit: purging a million objects costs as much as purging one.
//!
//! Each purge gets the next generation, and each stored response the one at which its fetch *began*. A response is
//! current if none of its labels was purged later.

use super::{Key, KeySecret, Label};
use std::collections::HashMap;

/// What is purged together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purge {
    /// All that has a label: one URI, a group, or a tag.
    Label(Label),
    /// All URIs that begin so: see [`Purge::prefix`].
    Prefix(Label),
    /// All that there is.
    Everything,
}

impl Purge {
    /// All URIs below a prefix such as `https://host/a/`: it ends with a slash, behind at most [`PREFIX_DEPTH_MAX`]
    /// others of the path.
    ///
    /// `None` for anything else.
    pub fn prefix(secret: &KeySecret, prefix: &[u8]) -> Option<Self> {
        let (scheme, rest) = prefix.split_at(memchr::memmem::find(prefix, b"://")? + "://".len());
        let path_at = scheme.len() + memchr::memchr(b'/', rest)?;
        let depth = prefix[path_at..].iter().filter(|byte| **byte == b'/').count();
        let is_whole = prefix.ends_with(b"/") && memchr::memchr(b'?', prefix).is_none();
        (is_whole && depth <= PREFIX_DEPTH_MAX).then(|| Self::Prefix(Label::prefix(secret, prefix)))
    }
}

/// A purge with its number: what is written down before the purge is confirmed, and read again after a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    /// What was purged.
    pub purge: Purge,
    /// Its generation.
    pub generation: u64,
}

/// All purges that count.
#[derive(Debug)]
pub struct Generations {
    /// The last one.
    newest: u64,
    /// What is older is purged, whatever its labels.
    floor: u64,
    labels: HashMap<Label, u64>,
    /// Apart from the others: while there is none, hits need no hashes of their prefixes.
    prefixes: HashMap<Label, u64>,
    /// Most labels and prefixes together.
    labels_max: usize,
}

impl Generations {
    /// None yet, and at most `labels_max` labels. Beyond those the oldest half becomes a purge of everything that is as
    /// old: a cache may forget, but never lie.
    pub fn new(labels_max: usize) -> Self {
        let (labels, prefixes) = (HashMap::new(), HashMap::new());
        Self { newest: 0, floor: 0, labels, prefixes, labels_max: labels_max.max(2) }
    }

    /// No purges yet, and numbers later than all that has fewer `starts`: each start of a cache whose purges are
    /// written down has its own numbers, so that one that has not read them yet numbers none of its own as if it came before
    /// them.
    pub fn of_start(starts: u64, labels_max: usize) -> Self {
        Self { newest: starts << PURGES_BITS, ..Self::new(labels_max) }
    }

    /// What is older is purged, whatever its labels.
    pub const fn floor(&self) -> u64 {
        self.floor
    }

    /// The generation for a response whose fetch begins now.
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// Purges what was fetched until now, and what is being fetched.
    pub fn purge(&mut self, purge: Purge) -> Purged {
        let purged = Purged { purge, generation: self.newest + 1 };
        self.restore(purged);
        purged
    }

    /// Takes a purge that was written down. The order does not matter.
    pub fn restore(&mut self, purged: Purged) {
        let Purged { purge, generation } = purged;
        self.newest = self.newest.max(generation);
        let (labels, label) = match purge {
            Purge::Everything => return self.raise_floor(generation),
            Purge::Label(label) => (&mut self.labels, label),
            Purge::Prefix(label) => (&mut self.prefixes, label),
        };
        if generation > self.floor {
            let kept = labels.entry(label).or_insert(generation);
            *kept = generation.max(*kept);
        }
        if self.labels.len() + self.prefixes.len() > self.labels_max {
            self.forget_half();
        }
    }

    /// All that must be written down to have the same again.
    pub fn iter(&self) -> impl Iterator<Item = Purged> {
        let floor = Some((Purge::Everything, self.floor)).filter(|(_, generation)| *generation > 0);
        let labels = self.labels.iter().map(|(label, generation)| (Purge::Label(*label), *generation));
        let prefixes = self.prefixes.iter().map(|(label, generation)| (Purge::Prefix(*label), *generation));
        let all = floor.into_iter().chain(labels).chain(prefixes);
        all.map(|(purge, generation)| Purged { purge, generation })
    }

    /// Whether a response was not purged since `generation`. If so, [`newest`](Self::newest) is the generation with which
    /// to ask next time: then the answer costs a comparison until there is another purge.
    pub fn is_current(&self, generation: u64, secret: &KeySecret, key: &Key, labels: &[Label]) -> bool {
        if generation == self.newest {
            return true;
        }
        let is_kept = |purges: &HashMap<Label, u64>, label: &Label| {
            purges.get(label).is_none_or(|purged| *purged <= generation)
        };
        generation >= self.floor
            && labels.iter().all(|label| is_kept(&self.labels, label))
            && is_kept(&self.labels, &Label::uri(secret, key.uri()))
            && (self.prefixes.is_empty()
                || prefixes_of(key).all(|prefix| is_kept(&self.prefixes, &Label::prefix(secret, prefix))))
    }

    fn forget_half(&mut self) {
        let mut generations: Vec<_> = self.labels.values().chain(self.prefixes.values()).copied().collect();
        let (_, median, _) = generations.select_nth_unstable(self.labels_max / 2);
        self.raise_floor(*median);
    }

    fn raise_floor(&mut self, generation: u64) {
        self.floor = self.floor.max(generation);
        self.labels.retain(|_, purged| *purged > self.floor);
        self.prefixes.retain(|_, purged| *purged > self.floor);
    }
}

/// The prefixes of a URI that can have been purged.
fn prefixes_of(key: &Key) -> impl Iterator<Item = &[u8]> {
    let path_at = key.origin().len();
    let path = key.target().split(|byte| *byte == b'?').next().unwrap_or_default();
    let ends = memchr::memchr_iter(b'/', path).take(PREFIX_DEPTH_MAX);
    ends.map(move |slash| &key.uri()[..path_at + slash + 1])
}

/// Bits for the purges between two starts: a million a second for a week.
const PURGES_BITS: u32 = 40;

/// Most slashes in the path of a prefix: each is a look-up for the hits after a purge.
pub const PREFIX_DEPTH_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{QueryRule, Scheme};
    use proptest::prelude::*;

    fn secret() -> KeySecret {
        KeySecret::new([7; 16])
    }

    fn key(path: &str, query: Option<&str>) -> Key {
        let (rule, query) = (QueryRule::default(), query.map(str::as_bytes));
        Key::of_request(&rule, Scheme::Https, ("a", None), path.as_bytes(), query).unwrap()
    }

    fn uri(text: &str) -> Purge {
        Purge::Label(Label::uri(&secret(), text.as_bytes()))
    }

    #[test]
    fn what_was_fetched_before_a_purge_is_not_current() {
        let tag = Label::tag(&secret(), b"t");
        let prefix = |prefix: &str| Purge::prefix(&secret(), prefix.as_bytes()).unwrap();
        for (purge, path, query, labels, expected) in [
            (uri("https://a/x"), "/x", None, &[][..], false),
            (uri("https://a/x"), "/x", Some("y"), &[], true),
            (uri("https://a/x?y"), "/x", Some("y"), &[], false),
            (uri("http://a/x"), "/x", None, &[], true),
            (Purge::Label(tag), "/x", None, &[tag], false),
            (Purge::Label(tag), "/x", None, &[], true),
            (prefix("https://a/"), "/x/y", None, &[], false),
            (prefix("https://a/x/"), "/x/y", Some("z"), &[], false),
            (prefix("https://a/x/"), "/x", None, &[], true),
            (prefix("https://a/x/"), "/xy/", None, &[], true),
            (prefix("https://a/x/"), "/", Some("/x/"), &[], true),
            (Purge::Everything, "/x", None, &[], false),
        ] {
            let mut generations = Generations::new(9);
            let before = generations.newest();
            let key = key(path, query);
            assert!(generations.is_current(before, &secret(), &key, labels));
            let purged = generations.purge(purge);
            assert_eq!(
                generations.is_current(before, &secret(), &key, labels),
                expected,
                "{purge:?} {key:?}"
            );
            assert!(generations.is_current(generations.newest(), &secret(), &key, labels));
            assert_eq!(purged.generation, generations.newest());
        }
    }

    #[test]
    fn prefixes_end_with_a_slash() {
        let deep = format!("http://a{}", "/x".repeat(PREFIX_DEPTH_MAX));
        for prefix in
            ["http://a", "http://a/x", "a/", "/", "http://a/?b/", "", "http://", &format!("{deep}/")]
        {
            assert_eq!(Purge::prefix(&secret(), prefix.as_bytes()), None, "{prefix}");
        }
        let deepest = format!("http://a{}/", "/x".repeat(PREFIX_DEPTH_MAX - 1));
        assert!(Purge::prefix(&secret(), deepest.as_bytes()).is_some());
    }

    proptest! {
        /// Beside the law itself: nothing purged is current, though labels be forgotten and the purges be read again in
        /// any order; and without a bound only what was purged is not.
        #[test]
        fn nothing_purged_is_ever_current(
            steps in prop::collection::vec((0u8..12, any::<bool>()), 1..60),
            labels_max in 2usize..40,
            reversed: bool,
        ) {
            let label = |name: u8| Label::tag(&secret(), &[name]);
            let key = key("/", None);
            let mut generations = Generations::new(labels_max);
            let mut fetched: Vec<(u8, u64, bool)> = Vec::new();
            for (name, fetches) in steps {
                if fetches {
                    fetched.push((name, generations.newest(), true));
                } else {
                    generations.purge(Purge::Label(label(name)));
                    for response in fetched.iter_mut().filter(|response| response.0 == name) {
                        response.2 = false;
                    }
                }
            }
            let mut kept: Vec<_> = generations.iter().collect();
            if reversed {
                kept.reverse();
            }
            let mut restored = Generations::new(labels_max);
            kept.into_iter().for_each(|purged| restored.restore(purged));
            prop_assert!(generations.labels.len() <= labels_max);
            for (name, generation, is_expected) in fetched {
                let is_current = generations.is_current(generation, &secret(), &key, &[label(name)]);
                prop_assert!(is_expected || !is_current);
                prop_assert!(is_current || !is_expected || labels_max < 12);
                prop_assert_eq!(restored.is_current(generation, &secret(), &key, &[label(name)]), is_current);
            }
        }
    }
}
