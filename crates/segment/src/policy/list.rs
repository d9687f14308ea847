//! Doubly linked lists of dense numbers: several lists share one array of links, since a number is in one at most.

/// The links of all numbers.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Neighbours>);

#[derive(Clone, Copy, Debug)]
struct Neighbours {
    newer: u32,
    older: u32,
}

/// A queue of numbers, from the newest to the oldest.
#[derive(Debug)]
pub(super) struct List {
    newest: u32,
    oldest: u32,
}

const NONE: u32 = u32::MAX;

impl Default for List {
    fn default() -> Self {
        Self { newest: NONE, oldest: NONE }
    }
}

impl List {
    /// Adds a number that is in no list, as the newest.
    pub(super) fn push(&mut self, links: &mut Links, number: u32) {
        let at = number as usize;
        if links.0.len() <= at {
            links.0.resize(at + 1, Neighbours { newer: NONE, older: NONE });
        }
        links.0[at] = Neighbours { newer: NONE, older: self.newest };
        match self.newest {
            NONE => self.oldest = number,
            newest => links.0[newest as usize].newer = number,
        }
        self.newest = number;
    }

    /// Removes a number that is in this list.
    pub(super) fn remove(&mut self, links: &mut Links, number: u32) {
        let Neighbours { newer, older } = links.0[number as usize];
        match newer {
            NONE => self.newest = older,
            newer => links.0[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => links.0[older as usize].newer = newer,
        }
    }

    /// Makes a number of this list its newest.
    pub(super) fn renew(&mut self, links: &mut Links, number: u32) {
        if self.newest != number {
            self.remove(links, number);
            self.push(links, number);
        }
    }

    pub(super) fn oldest(&self) -> Option<u32> {
        Some(self.oldest).filter(|number| *number != NONE)
    }

    /// All numbers, the oldest first.
    pub(super) fn oldest_first(&self, links: &Links) -> impl Iterator<Item = u32> {
        let newer = |number: &u32| Some(links.0[*number as usize].newer).filter(|newer| *newer != NONE);
        std::iter::successors(self.oldest(), newer)
    }
}

impl Links {
    /// Heap bytes in use.
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Neighbours>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Two lists over the same links, against plain vectors.
        #[test]
        fn as_vectors(steps in prop::collection::vec((0..3_u8, 0..2_usize, 0..12_u32), 0..80)) {
            let mut links = Links::default();
            let mut lists = [List::default(), List::default()];
            let mut plain: [Vec<u32>; 2] = Default::default();
            for (step, which, number) in steps {
                let held = plain[which].contains(&number);
                match step {
                    0 if plain.iter().all(|list| !list.contains(&number)) => {
                        lists[which].push(&mut links, number);
                        plain[which].push(number);
                    }
                    1 if held => {
                        lists[which].remove(&mut links, number);
                        plain[which].retain(|other| *other != number);
                    }
                    2 if held => {
                        lists[which].renew(&mut links, number);
                        plain[which].retain(|other| *other != number);
                        plain[which].push(number);
                    }
                    _ => {}
                }
                for (list, plain) in lists.iter().zip(&plain) {
                    prop_assert_eq!(&list.oldest_first(&links).collect::<Vec<_>>(), plain);
                    prop_assert_eq!(list.oldest(), plain.first().copied());
                }
            }
        }
    }
}
