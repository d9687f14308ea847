//! Objects whose responses were not stored: for a while their requests do not wait for each other ("hit-for-miss").

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::policy::Millis;
use crate::rules::KeyHash;

/// A bounded memory of such objects.
#[derive(Debug)]
pub struct NotStoredMemory {
    until: HashMap<u128, Millis, foldhash::fast::FixedState>,
    /// In the order in which they expire.
    queue: VecDeque<(Millis, u128)>,
    lasts_ms: Millis,
    objects_max: usize,
}

impl NotStoredMemory {
    /// Remembers an object for so long, and at most so many objects: the oldest is forgotten for a new one.
    #[must_use]
    pub fn new(lasts_ms: Millis, objects_max: usize) -> Self {
        Self { until: HashMap::default(), queue: VecDeque::new(), lasts_ms, objects_max }
    }

    /// A response was not stored.
    pub fn remember(&mut self, key: KeyHash, now: Millis) {
        self.expire(now);
        let until = now.saturating_add(self.lasts_ms);
        self.until.insert(key.0, until);
        self.queue.push_back((until, key.0));
        while self.queue.len() > self.objects_max {
            self.forget_oldest();
        }
    }

    /// A response was stored after all.
    pub fn forget(&mut self, key: KeyHash) {
        self.until.remove(&key.0);
    }

    /// Whether requests for the object go to the origin without waiting for each other.
    pub fn contains(&mut self, key: KeyHash, now: Millis) -> bool {
        self.expire(now);
        self.until.contains_key(&key.0)
    }

    fn expire(&mut self, now: Millis) {
        while self.queue.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((until, key)) = self.queue.pop_front()
            && self.until.get(&key) == Some(&until)
        {
            self.until.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_forgotten_in_time_and_for_others() {
        let mut memory = NotStoredMemory::new(100, 3);
        let [a, b, c, d] = [1, 2, 3, 4].map(KeyHash);
        memory.remember(a, 0);
        memory.remember(b, 50);
        memory.remember(a, 60);
        assert!(memory.contains(a, 100) && memory.contains(b, 149), "a was remembered again");
        assert!(!memory.contains(b, 150) && memory.contains(a, 159) && !memory.contains(a, 160));
        for (key, now) in [(a, 200), (b, 201), (c, 202), (d, 203)] {
            memory.remember(key, now);
        }
        assert!(!memory.contains(a, 204) && memory.contains(b, 204), "a went for d");
        memory.forget(b);
        assert!(!memory.contains(b, 204));
    }
}
