//! Whose DATA goes next: a queue for each urgency (RFC 9218 section 10).

use std::collections::VecDeque;

use super::priority::Priority;
use super::streams::Slot;

/// Streams that can send DATA now.
///
/// Within an urgency, responses that are of use only as a whole go one after the other, in the order of their requests.
/// Incremental ones take turns, a frame each. One alone in its queue goes on.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    queues: [VecDeque<Entry>; Priority::URGENCIES],
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u32,
    slot: Slot,
    incremental: bool,
}

impl Schedule {
    /// Whether no stream can send.
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    /// The stream whose turn it is.
    pub(crate) fn front(&self) -> Option<Slot> {
        self.queues.iter().find_map(VecDeque::front).map(|entry| entry.slot)
    }

    /// Adds a stream.
    pub(crate) fn push(&mut self, id: u32, slot: Slot, priority: Priority) {
        let queue = &mut self.queues[usize::from(priority.urgency)];
        let entry = Entry { id, slot, incremental: priority.incremental };
        let comes_later = |other: &Entry| !other.incremental && other.id > id;
        match queue.iter().position(comes_later) {
            Some(index) if !entry.incremental => queue.insert(index, entry),
            _ => queue.push_back(entry),
        }
    }

    /// The stream whose turn it is has sent a frame, and has more.
    pub(crate) fn rotate(&mut self) {
        if let Some(queue) = self.queues.iter_mut().find(|queue| !queue.is_empty())
            && queue[0].incremental
        {
            queue.rotate_left(1);
        }
    }

    /// Removes a stream.
    pub(crate) fn remove(&mut self, slot: Slot, urgency: u8) {
        let queue = &mut self.queues[usize::from(urgency)];
        if queue.front().is_some_and(|entry| entry.slot == slot) {
            queue.pop_front();
        } else {
            queue.retain(|entry| entry.slot != slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn priority(urgency: u8, incremental: bool) -> Priority {
        Priority { urgency, incremental }
    }

    fn turns(schedule: &mut Schedule, count: usize) -> Vec<Slot> {
        let turn = |_| {
            let slot = schedule.front().unwrap();
            schedule.rotate();
            slot
        };
        (0..count).map(turn).collect()
    }

    #[test]
    fn the_more_urgent_goes_first() {
        let mut schedule = Schedule::default();
        schedule.push(1, 10, priority(7, false));
        schedule.push(3, 11, priority(0, false));
        schedule.push(5, 12, priority(3, false));
        assert_eq!(turns(&mut schedule, 2), [11, 11]);
        schedule.remove(11, 0);
        assert_eq!(turns(&mut schedule, 1), [12]);
        schedule.remove(12, 3);
        assert_eq!(turns(&mut schedule, 1), [10]);
        schedule.remove(10, 7);
        assert!(schedule.is_empty() && schedule.front().is_none());
    }

    #[test]
    fn whole_responses_go_in_order_of_their_requests() {
        let mut schedule = Schedule::default();
        for (id, slot) in [(5, 12), (1, 10), (3, 11)] {
            schedule.push(id, slot, priority(3, false));
        }
        for slot in [10, 11, 12] {
            assert_eq!(turns(&mut schedule, 2), [slot, slot]);
            schedule.remove(slot, 3);
        }
    }

    #[test]
    fn incremental_responses_take_turns() {
        let mut schedule = Schedule::default();
        for (id, slot) in [(1, 10), (3, 11), (5, 12)] {
            schedule.push(id, slot, priority(3, true));
        }
        assert_eq!(turns(&mut schedule, 5), [10, 11, 12, 10, 11]);
        schedule.push(7, 13, priority(3, false));
        assert_eq!(turns(&mut schedule, 5), [12, 10, 11, 13, 13], "a whole one keeps its turn");
    }
}
