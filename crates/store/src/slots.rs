//! Which slots of the data files are in use: sizes, and who gets which. Without I/O.
//!
//! Each size has a file of its own, so that a slot's place is a multiplication. A slot that becomes free keeps its disk
//! space for the next block of its size (*idle*), until another size needs that space: then it becomes a *hole*.
//!
//! ```text
//!              allocate                    free, and not read by a client any more
//!   hole ───────────────────► in use ───────────────────► idle
//!    ▲                          ▲                          │ │
//!    │                          └───────── allocate ───────┘ │
//!    └───────────── emptied: another size needs the space ───┘
//! ```
//!
//! A slot that clients were sent from is *emptied* (its range of the file deallocated) before it is written again,
//! because the kernel sends files by reference: pages that a client has not yet acknowledged would otherwise change under
//! its connection. Of slots from before the start it is not known, so they count as sent from.

use std::collections::HashMap;

/// A slot: which size, and its number in the file of that size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The class: its slots are twice as large as those of the class below.
    pub class: u8,
    /// Its number in the data file of the class.
    pub index: u32,
}

/// Slots of one class that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    first: Slot,
    len: u32,
}

impl Run {
    /// A run of one slot.
    pub(crate) fn new(first: Slot) -> Self {
        Self { first, len: 1 }
    }

    pub(crate) fn first(&self) -> Slot {
        self.first
    }

    /// Number of slots.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        let Slot { class, index } = self.first;
        (index..index + self.len).map(move |index| Slot { class, index })
    }

    /// Adds a slot if it follows the last one.
    pub(crate) fn extend(&mut self, slot: Slot) -> bool {
        let follows =
            slot.class == self.first.class && slot.index.checked_sub(self.first.index) == Some(self.len);
        self.len += u32::from(follows);
        follows
    }
}

/// The sizes of slots: powers of two from a page to the longest block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotSizes {
    least: u64,
    count: u8,
}

impl SlotSizes {
    /// Sizes for blocks of at most `block_bytes_max`, none smaller than a page: two slots never share one.
    pub(crate) fn new(page_bytes: usize, block_bytes_max: u32) -> Self {
        let least = (page_bytes as u64).next_power_of_two().max(SLOT_BYTES_LEAST);
        let most = u64::from(block_bytes_max).next_power_of_two().max(least);
        Self { least, count: (most / least).trailing_zeros() as u8 + 1 }
    }

    pub(crate) fn classes(self) -> impl Iterator<Item = u8> {
        0..self.count
    }

    /// The class of the smallest slots for a block of `len` bytes; `None` if it is too long.
    pub(crate) fn class_of(self, len: u64) -> Option<u8> {
        let slot = len.max(self.least).checked_next_power_of_two()?;
        let class = (slot / self.least).trailing_zeros() as u8;
        (class < self.count).then_some(class)
    }

    /// Size of the slots of a class, in bytes.
    pub(crate) fn bytes(self, class: u8) -> u64 {
        self.least << class
    }

    /// Where a slot begins in the file of its class.
    pub(crate) fn offset(self, slot: Slot) -> u64 {
        u64::from(slot.index) * self.bytes(slot.class)
    }
}

const SLOT_BYTES_LEAST: u64 = 4 << 10;

/// Hands out slots within a bound on their bytes.
#[derive(Debug)]
pub(crate) struct Allocator {
    sizes: SlotSizes,
    classes: Vec<Class>,
    /// Readers of slots that have any; whether the slot becomes idle after the last one.
    read: HashMap<Slot, Readers, foldhash::fast::RandomState>,
    bytes_max: u64,
    /// At most `bytes_max`; less while the file system has no space.
    limit_bytes: u64,
    used_bytes: u64,
    idle_bytes: u64,
    /// Slots on their way from idle to hole: the writer empties them.
    to_empty: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Class {
    /// Slots below this number have been used at some time.
    end: u32,
    idle: Vec<u32>,
    holes: Vec<u32>,
    /// Slots that clients may have been sent from since they were emptied: a bit each.
    sent: Vec<u64>,
}

impl Class {
    fn set_sent(&mut self, index: u32, is_sent: bool) {
        let (word, bit) = (index as usize / 64, 1 << (index % 64));
        if self.sent.len() <= word {
            self.sent.resize(word + 1, 0);
        }
        if is_sent {
            self.sent[word] |= bit;
        } else {
            self.sent[word] &= !bit;
        }
    }

    fn is_sent(&self, index: u32) -> bool {
        self.sent.get(index as usize / 64).is_some_and(|word| word & (1 << (index % 64)) != 0)
    }
}

#[derive(Debug)]
struct Readers {
    count: u32,
    is_freed: bool,
}

/// A slot for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    pub(crate) slot: Slot,
    /// Whether clients may be being sent an earlier block from it: empty it before writing.
    pub(crate) was_sent: bool,
}

impl Allocator {
    /// An allocator whose slots `used` are in use; other slots below the ends of the files count as idle.
    pub(crate) fn new(sizes: SlotSizes, bytes_max: u64, used: impl IntoIterator<Item = Slot>) -> Self {
        let mut classes: Vec<Class> = sizes.classes().map(|_| Class::default()).collect();
        let mut taken: Vec<Vec<u32>> = sizes.classes().map(|_| Vec::new()).collect();
        let mut used_bytes = 0;
        for slot in used {
            taken[usize::from(slot.class)].push(slot.index);
            used_bytes += sizes.bytes(slot.class);
        }
        let mut idle_bytes = 0;
        for (class, mut taken) in sizes.classes().zip(taken) {
            taken.sort_unstable();
            let Class { end, idle, sent, .. } = &mut classes[usize::from(class)];
            for index in taken {
                idle.extend(*end..index);
                *end = index + 1;
            }
            sent.resize((*end as usize).div_ceil(64), u64::MAX);
            idle_bytes += idle.len() as u64 * sizes.bytes(class);
        }
        Self {
            sizes,
            classes,
            read: HashMap::default(),
            bytes_max,
            limit_bytes: bytes_max,
            used_bytes,
            idle_bytes,
            to_empty: Vec::new(),
        }
    }

    /// Bytes of the slots that are in use.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Number of slots below which the file of a class is not needed.
    pub(crate) fn end(&self, class: u8) -> u32 {
        self.classes[usize::from(class)].end
    }

    /// A slot for a block of `len` bytes; `None` if it is too long or the bound is reached.
    pub(crate) fn allocate(&mut self, len: u64) -> Option<Allocation> {
        let class = self.sizes.class_of(len)?;
        let bytes = self.sizes.bytes(class);
        if self.used_bytes + bytes > self.limit_bytes {
            return None;
        }
        if let Some(index) = self.classes[usize::from(class)].idle.pop() {
            self.idle_bytes -= bytes;
            self.used_bytes += bytes;
            let was_sent = self.classes[usize::from(class)].is_sent(index);
            return Some(Allocation { slot: Slot { class, index }, was_sent });
        }
        self.make_room(bytes);
        let of_class = &mut self.classes[usize::from(class)];
        let index = match of_class.holes.pop() {
            Some(index) => index,
            None => {
                let index = of_class.end;
                of_class.end = index.checked_add(1)?;
                // The last word of the bits may say so of slots that did not exist.
                of_class.set_sent(index, false);
                index
            }
        };
        self.used_bytes += bytes;
        Some(Allocation { slot: Slot { class, index }, was_sent: false })
    }

    /// Gives a slot back. It becomes idle at once, or after its last reader.
    pub(crate) fn free(&mut self, slot: Slot) {
        match self.read.get_mut(&slot) {
            Some(readers) => readers.is_freed = true,
            None => self.make_idle(slot),
        }
    }

    /// A reader begins: the slot keeps its bytes until [`end_reading`](Self::end_reading).
    pub(crate) fn begin_reading(&mut self, slot: Slot) {
        self.read.entry(slot).or_insert(Readers { count: 0, is_freed: false }).count += 1;
        self.classes[usize::from(slot.class)].set_sent(slot.index, true);
    }

    /// A reader has ended.
    pub(crate) fn end_reading(&mut self, slot: Slot) {
        let Some(readers) = self.read.get_mut(&slot) else { return };
        readers.count -= 1;
        if readers.count == 0 && self.read.remove(&slot).is_some_and(|readers| readers.is_freed) {
            self.make_idle(slot);
        }
    }

    /// Whether a slot has readers.
    pub(crate) fn is_read(&self, slot: Slot) -> bool {
        self.read.contains_key(&slot)
    }

    /// The file system has no space: what is in use now is the bound, and the space of idle slots goes back.
    pub(crate) fn limit_to_used(&mut self) {
        self.limit_bytes = self.limit_bytes.min(self.used_bytes);
        self.make_room(0);
    }

    /// The file system has space again.
    pub(crate) fn lift_limit(&mut self) {
        self.limit_bytes = self.bytes_max;
    }

    /// Slots whose ranges of the files are to be deallocated; tell [`handle_emptied`](Self::handle_emptied) of each.
    pub(crate) fn take_to_empty(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.to_empty)
    }

    /// One of these slots is a hole now.
    pub(crate) fn handle_emptied(&mut self, slot: Slot) {
        self.handle_emptied_in_use(slot);
        self.classes[usize::from(slot.class)].holes.push(slot.index);
    }

    /// A slot that was allocated is empty now, and clients can be sent nothing but what is written next.
    pub(crate) fn handle_emptied_in_use(&mut self, slot: Slot) {
        self.classes[usize::from(slot.class)].set_sent(slot.index, false);
    }

    fn make_idle(&mut self, slot: Slot) {
        let bytes = self.sizes.bytes(slot.class);
        self.used_bytes -= bytes;
        self.idle_bytes += bytes;
        self.classes[usize::from(slot.class)].idle.push(slot.index);
    }

    /// Has idle slots emptied, the largest first, until `bytes` more fit.
    fn make_room(&mut self, bytes: u64) {
        for class in (0..self.sizes.count).rev() {
            while self.used_bytes + self.idle_bytes + bytes > self.limit_bytes {
                let Some(index) = self.classes[usize::from(class)].idle.pop() else { break };
                self.idle_bytes -= self.sizes.bytes(class);
                self.to_empty.push(Slot { class, index });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const BLOCK: u32 = 64 << 10;

    fn sizes() -> SlotSizes {
        SlotSizes::new(4096, BLOCK)
    }

    #[test]
    fn a_block_gets_the_smallest_slot_that_holds_it() {
        let class = |len| sizes().class_of(len);
        assert_eq!([class(0), class(1), class(4096), class(4097)], [Some(0), Some(0), Some(0), Some(1)]);
        assert_eq!(
            [class(u64::from(BLOCK)), class(u64::from(BLOCK) + 1), class(u64::MAX)],
            [Some(4), None, None]
        );
        assert_eq!(sizes().bytes(4), u64::from(BLOCK));
        let large_pages = SlotSizes::new(65_536, 4096);
        assert_eq!(large_pages.bytes(large_pages.class_of(1).unwrap()), 65_536, "a page is never shared");
    }

    #[test]
    fn a_run_grows_by_the_slot_behind_it_alone() {
        let slot = |class, index| Slot { class, index };
        let mut run = Run::new(slot(1, 5));
        assert!(![slot(1, 5), slot(1, 4), slot(1, 7), slot(0, 6)].into_iter().any(|other| run.extend(other)));
        assert!(run.extend(slot(1, 6)) && run.extend(slot(1, 7)));
        assert_eq!(run.slots().map(|slot| slot.index).collect::<Vec<_>>(), [5, 6, 7]);
    }

    #[test]
    fn a_slot_that_is_read_is_not_given_to_another_block() {
        let mut slots = Allocator::new(sizes(), 8192, []);
        let first = slots.allocate(1).unwrap().slot;
        slots.begin_reading(first);
        slots.begin_reading(first);
        slots.free(first);
        slots.end_reading(first);
        assert_ne!(slots.allocate(1).unwrap().slot, first);
        assert_eq!(slots.allocate(1), None, "it counts until the last reader has ended");
        slots.end_reading(first);
        assert_eq!(slots.allocate(1), Some(Allocation { slot: first, was_sent: true }));
    }

    #[test]
    fn the_space_of_idle_slots_goes_to_other_sizes() {
        let mut slots = Allocator::new(sizes(), 65_536, []);
        let large = slots.allocate(65_536).unwrap().slot;
        slots.free(large);
        let small = slots.allocate(1).unwrap();
        assert_eq!(slots.take_to_empty(), [large]);
        slots.handle_emptied(large);
        slots.free(small.slot);
        let again = slots.allocate(65_536).unwrap();
        assert_eq!((again.slot, again.was_sent), (large, false), "a hole is used again");
    }

    #[test]
    fn without_space_a_store_keeps_to_what_it_uses() {
        let mut slots = Allocator::new(sizes(), 1 << 20, []);
        let [first, second] = [(); 2].map(|()| slots.allocate(65_536).unwrap().slot);
        slots.free(first);
        slots.limit_to_used();
        assert_eq!(slots.take_to_empty(), [first]);
        slots.handle_emptied(first);
        assert_eq!(slots.allocate(1), None);
        slots.free(second);
        assert!(slots.allocate(65_536).is_some(), "in the place of another");
        assert_eq!(slots.allocate(1), None);
        slots.lift_limit();
        assert!(slots.allocate(1).is_some());
    }

    #[test]
    fn a_slot_is_emptied_if_clients_may_have_been_sent_from_it() {
        let mut slots = Allocator::new(sizes(), 1 << 20, [Slot { class: 0, index: 2 }]);
        let mut idle: Vec<Allocation> = (0..4).filter_map(|_| slots.allocate(1)).collect();
        idle.sort_by_key(|allocated| allocated.slot.index);
        let found: Vec<_> = idle.iter().map(|allocated| (allocated.slot.index, allocated.was_sent)).collect();
        assert_eq!(
            found,
            [(0, true), (1, true), (3, false), (4, false)],
            "slots 0 and 1 are from before the start"
        );

        let slot = idle[0].slot;
        slots.free(slot);
        assert!(slots.allocate(1).unwrap().was_sent, "it has not been emptied yet");
        slots.handle_emptied_in_use(slot);
        slots.free(slot);
        assert!(!slots.allocate(1).unwrap().was_sent);
        slots.begin_reading(slot);
        slots.end_reading(slot);
        slots.free(slot);
        assert!(slots.allocate(1).unwrap().was_sent);
    }

    proptest! {
        /// In any history no slot is used twice, the bound holds, and what was free after a restart is used again.
        #[test]
        fn slots_are_exclusive(steps in proptest::collection::vec((0_u64..=70_000, any::<prop::sample::Index>(), any::<bool>()), 1..200)) {
            const BYTES_MAX: u64 = 1 << 20;
            let mut slots = Allocator::new(sizes(), BYTES_MAX, []);
            let mut used: Vec<Slot> = Vec::new();
            for (len, which, take) in steps {
                if take {
                    if let Some(Allocation { slot, .. }) = slots.allocate(len) {
                        prop_assert!(!used.contains(&slot));
                        prop_assert!(sizes().bytes(slot.class) >= len);
                        used.push(slot);
                    }
                    for slot in slots.take_to_empty() {
                        prop_assert!(!used.contains(&slot));
                        slots.handle_emptied(slot);
                    }
                } else if !used.is_empty() {
                    slots.free(used.swap_remove(which.index(used.len())));
                }
                let bytes: u64 = used.iter().map(|slot| sizes().bytes(slot.class)).sum();
                prop_assert_eq!(slots.used_bytes(), bytes);
                prop_assert!(bytes + slots.idle_bytes <= BYTES_MAX);
            }
            let again = Allocator::new(sizes(), BYTES_MAX, used.iter().copied());
            prop_assert_eq!(again.used_bytes(), slots.used_bytes());
            let idle: HashSet<Slot> = sizes().classes().flat_map(|class| {
                again.classes[usize::from(class)].idle.iter().map(move |&index| Slot { class, index })
            }).collect();
            prop_assert!(used.iter().all(|slot| !idle.contains(slot)));
        }
    }
}
