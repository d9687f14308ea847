//! The memory of a node: whole files, until it is full.
//!
//! Each file has a value; the file of the smallest value is evicted first. Under Greedy-Dual-Size the value is `L + 1
//! / size` at the last use, `L` being the value of the last victim (Cao and Irani, 1997; equal costs); under LRU it
//! is the time of the last use. Values only rise, so the queue is ordered lazily: a file at its head with an old
//! value is requeued with its current one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashMap;

use super::Replacement;
use crate::trace::TargetId;

#[derive(Clone, Debug)]
pub(crate) struct Cache {
    replacement: Replacement,
    capacity_bytes: u64,
    file_bytes_max: u64,
    used_bytes: u64,
    files: HashMap<TargetId, File, foldhash::fast::FixedState>,
    /// Each file once, with a value that it has or had.
    queue: BinaryHeap<Reverse<(u64, TargetId)>>,
    /// `L` of Greedy-Dual-Size.
    inflation: u64,
}

#[derive(Clone, Copy, Debug)]
struct File {
    value: u64,
    bytes: u64,
}

/// An evicted file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvictedFile {
    pub(crate) target: TargetId,
    pub(crate) bytes: u64,
    pub(crate) value: u64,
}

/// One, in the fixed-point numbers of Greedy-Dual-Size: distinguishes files of a gigabyte, and with files of a
/// kilobyte lasts for 2^34 evictions.
const ONE: u64 = 1 << 40;

impl Cache {
    /// An empty cache that never holds a file longer than `file_bytes_max`.
    pub(crate) fn new(replacement: Replacement, capacity_bytes: u64, file_bytes_max: u64) -> Self {
        Self {
            replacement,
            capacity_bytes,
            file_bytes_max: file_bytes_max.min(capacity_bytes),
            used_bytes: 0,
            files: HashMap::default(),
            queue: BinaryHeap::new(),
            inflation: 0,
        }
    }

    pub(crate) fn contains(&self, target: TargetId) -> bool {
        self.files.contains_key(&target)
    }

    /// The smallest value of all files; none if empty.
    pub(crate) fn least_value(&mut self) -> Option<u64> {
        self.settle_head();
        self.queue.peek().map(|Reverse((value, _))| *value)
    }

    /// Notes a use of a file, if it is cached.
    pub(crate) fn touch(&mut self, target: TargetId, now_ns: u64) -> bool {
        let value_of_use = self.value_of_use(now_ns);
        let Some(file) = self.files.get_mut(&target) else { return false };
        file.value = value_of_use(file.bytes);
        true
    }

    /// Inserts a file that is used now; calls `evict` for each victim, which may be the file itself.
    pub(crate) fn insert(
        &mut self,
        target: TargetId,
        bytes: u64,
        now_ns: u64,
        mut evict: impl FnMut(EvictedFile),
    ) {
        let fits = self.contains(target) || self.make_room(bytes, &mut evict);
        // After the evictions: they raise `L`.
        let file = EvictedFile { target, bytes, value: self.value_of_use(now_ns)(bytes) };
        if fits {
            self.put(file);
        } else {
            evict(file);
        }
    }

    /// Puts a file in that comes from another node's cache, with the value that it has there.
    pub(crate) fn insert_valued(&mut self, file: EvictedFile) {
        if self.contains(file.target) || self.make_room(file.bytes, &mut |_| ()) {
            self.put(file);
        }
    }

    /// Raises `L` to at least this, so that values of several caches are comparable.
    pub(crate) fn raise_inflation(&mut self, value: u64) {
        self.inflation = self.inflation.max(value);
    }

    pub(crate) fn clear(&mut self) {
        self.files.clear();
        self.queue.clear();
        self.used_bytes = 0;
    }

    /// Evicts the least valuable files until there are no more than this.
    pub(crate) fn keep_files(&mut self, files: usize) {
        while self.files.len() > files && self.evict_least().is_some() {}
    }

    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// There is more room.
    pub(crate) fn grow(&mut self, capacity_bytes: u64) {
        self.capacity_bytes = capacity_bytes.max(self.capacity_bytes);
    }

    /// Reduces the capacity; keeps only `kept` files, as many as fit.
    pub(crate) fn shrink(&mut self, capacity_bytes: u64, kept: impl Fn(TargetId) -> bool) {
        self.capacity_bytes = capacity_bytes.min(self.capacity_bytes);
        self.files.retain(|&target, _| kept(target));
        self.queue.retain(|Reverse((_, target))| kept(*target));
        self.used_bytes = self.files.values().map(|file| file.bytes).sum();
        while self.used_bytes > self.capacity_bytes && self.evict_least().is_some() {}
    }

    /// Panics if the sizes do not add up.
    #[cfg(test)]
    pub(crate) fn check_invariants(&self) {
        assert!(self.used_bytes <= self.capacity_bytes);
        assert_eq!(self.used_bytes, self.files.values().map(|file| file.bytes).sum::<u64>());
        assert_eq!(self.files.len(), self.queue.len());
    }

    /// The value of a file of some size that is used now.
    fn value_of_use(&self, now_ns: u64) -> impl Fn(u64) -> u64 + use<> {
        let (replacement, inflation) = (self.replacement, self.inflation);
        move |bytes| match replacement {
            Replacement::Gds => inflation + ONE / bytes.max(1),
            Replacement::Lru => now_ns,
        }
    }

    /// Makes room; false if a file of this size is not kept at all.
    fn make_room(&mut self, bytes: u64, evict: &mut impl FnMut(EvictedFile)) -> bool {
        if bytes > self.file_bytes_max.min(self.capacity_bytes) {
            return false;
        }
        while self.used_bytes + bytes > self.capacity_bytes
            && let Some(evicted) = self.evict_least()
        {
            evict(evicted);
        }
        true
    }

    fn put(&mut self, file: EvictedFile) {
        if !self.contains(file.target) {
            self.used_bytes += file.bytes;
            self.files.insert(file.target, File { value: file.value, bytes: file.bytes });
            self.queue.push(Reverse((file.value, file.target)));
        }
    }

    fn evict_least(&mut self) -> Option<EvictedFile> {
        self.settle_head();
        let Reverse((value, target)) = self.queue.pop()?;
        let file = self.files.remove(&target)?;
        self.used_bytes -= file.bytes;
        if self.replacement == Replacement::Gds {
            self.inflation = self.inflation.max(value);
        }
        Some(EvictedFile { target, bytes: file.bytes, value })
    }

    /// Gives the head of the queue its own value, until one stays at the head.
    fn settle_head(&mut self) {
        while let Some(mut head) = self.queue.peek_mut() {
            let Reverse((value, target)) = *head;
            match self.files.get(&target) {
                Some(file) if file.value != value => head.0.0 = file.value,
                _ => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn held(cache: &Cache) -> Vec<TargetId> {
        let mut files: Vec<_> = cache.files.keys().copied().collect();
        files.sort_unstable();
        files
    }

    #[test]
    fn lru_evicts_the_longest_unused() {
        let mut cache = Cache::new(Replacement::Lru, 30, 25);
        for target in 0..3 {
            cache.insert(target, 10, target.into(), |_| panic!("there is room"));
        }
        assert!(cache.touch(0, 3));
        let mut gone = Vec::new();
        cache.insert(3, 20, 4, |evicted| gone.push(evicted.target));
        assert_eq!((gone, held(&cache)), (vec![1, 2], vec![0, 3]));
        cache.insert(4, 26, 5, |evicted| assert_eq!(evicted.target, 4, "too long to be cached"));
        assert_eq!(held(&cache), [0, 3]);
    }

    /// Sizes 10, 20 and 40 have the values 1/10, 1/20 and 1/40. The third is evicted for a file of 30; now L = 1/40,
    /// so a use of the second gives it 1/40 + 1/20, more than the new one's 1/40 + 1/30, which is evicted next.
    #[test]
    fn gds_evicts_the_least_value() {
        let mut cache = Cache::new(Replacement::Gds, 70, 70);
        for (target, bytes) in [(0, 10), (1, 20), (2, 40)] {
            cache.insert(target, bytes, 0, |_| panic!("there is room"));
        }
        let mut gone = Vec::new();
        cache.insert(3, 30, 0, |evicted| gone.push((evicted.target, evicted.value)));
        assert_eq!(gone, [(2, ONE / 40)]);
        assert!(cache.touch(1, 0));
        gone.clear();
        cache.insert(4, 15, 0, |evicted| gone.push((evicted.target, evicted.value)));
        assert_eq!(gone, [(3, ONE / 40 + ONE / 30)]);
        assert_eq!(held(&cache), [0, 1, 4]);
    }

    proptest! {
        /// Under any uses, a cache's size is the sum of its files, within its capacity, and LRU holds the same as a
        /// plain list.
        #[test]
        fn any_uses(uses in prop::collection::vec((0..20_u32, 1..40_u64), 1..200)) {
            let mut gds = Cache::new(Replacement::Gds, 100, 60);
            let mut lru = Cache::new(Replacement::Lru, 100, 60);
            let mut list: Vec<(TargetId, u64)> = Vec::new();
            for (now_ns, (target, bytes)) in (0..).zip(uses) {
                for cache in [&mut gds, &mut lru] {
                    if !cache.touch(target, now_ns) {
                        cache.insert(target, bytes, now_ns, |_| ());
                    }
                    cache.check_invariants();
                }
                let bytes = list.iter().find(|(held, _)| *held == target).map_or(bytes, |(_, bytes)| *bytes);
                list.retain(|(held, _)| *held != target);
                list.push((target, bytes));
                while list.iter().map(|(_, bytes)| bytes).sum::<u64>() > 100 {
                    list.remove(0);
                }
                let mut expected: Vec<_> = list.iter().map(|(target, _)| *target).collect();
                expected.sort_unstable();
                prop_assert_eq!(held(&lru), expected);
            }
        }
    }
}
