//! The pools of one loop, by index. An index stays a pool's own until the pool is dropped.

use std::sync::Arc;

use crate::Application;
use crate::backlog::precise_us;
use crate::pool::Pool;

/// The pools of one loop: one for each application that it has asked.
#[derive(Debug)]
pub(crate) struct Pools {
    slots: Vec<Option<Pool>>,
    /// Pools with released connections and waiting requests. The loop sends the answers first, then assigns the connections.
    released: Vec<usize>,
    /// The earliest deadline, or an earlier time; `u64::MAX`: there is none.
    due_ms: u64,
    /// A precise clock that all loops share, in microseconds.
    precise_us: fn() -> u64,
}

impl Default for Pools {
    fn default() -> Self {
        Self { slots: Vec::new(), released: Vec::new(), due_ms: u64::MAX, precise_us }
    }
}

impl Pools {
    /// Pools that read this clock in place of the kernel's.
    pub(crate) fn with_precise_clock(self, precise_us: fn() -> u64) -> Self {
        Self { precise_us, ..self }
    }

    /// The pool of an application, if there is one.
    pub(crate) fn find(&self, application: &Application) -> Option<usize> {
        let is_its =
            |pool: &Option<Pool>| pool.as_ref().is_some_and(|pool| pool.application.id() == application.id());
        self.slots.iter().position(is_its)
    }

    /// Adds a pool for an application that has none.
    pub(crate) fn add(&mut self, application: &Arc<Application>) -> usize {
        debug_assert!(self.find(application).is_none(), "an application has two pools");
        let free = self.slots.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[index] = Some(Pool::new(Arc::clone(application), self.precise_us));
        index
    }

    /// Takes a pool out that has no connections, no requests and no other user of its application: an old configuration's.
    pub(crate) fn take_unused(&mut self, index: usize) -> Option<Pool> {
        self.slots.get_mut(index)?.take_if(|pool| pool.is_unused())
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Pool> {
        self.slots.get(index)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Pool> {
        self.slots.get_mut(index)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.slots.iter().flatten()
    }

    /// The indices that pools may have.
    pub(crate) fn indices(&self) -> std::ops::Range<usize> {
        0..self.slots.len()
    }

    /// A connection of this pool is free for a request that waits.
    pub(crate) fn note_released(&mut self, index: usize) {
        self.released.push(index);
    }

    /// A pool with a connection that is free for a request that waits.
    pub(crate) fn take_released(&mut self) -> Option<usize> {
        self.released.pop()
    }

    /// Notes the next deadline of a pool, which may have changed.
    pub(crate) fn note_due(&mut self, index: usize, now_ms: u64) {
        let due_ms = self.get(index).and_then(|pool| pool.deadline_ms(now_ms));
        self.due_ms = self.due_ms.min(due_ms.unwrap_or(u64::MAX));
    }

    /// The time before which no queue has anything to do; `u64::MAX`: none will. At once if a connection was released.
    pub(crate) fn due_ms(&self) -> u64 {
        if self.released.is_empty() { self.due_ms } else { 0 }
    }

    /// Looks for the earliest deadline, after those that have passed were handled.
    pub(crate) fn settle_due(&mut self, now_ms: u64) {
        self.due_ms = self.iter().filter_map(|pool| pool.deadline_ms(now_ms)).min().unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Endpoint, Settings};

    fn application(name: &str) -> Arc<Application> {
        Application::new(Settings::new(name, Endpoint::Shared(Address::Abstract(Vec::new())))).unwrap()
    }

    #[test]
    fn a_pool_goes_with_the_last_plan_that_knows_its_application() {
        let mut pools = Pools::default();
        let (old, new) = (application("old"), application("new"));
        let index = pools.add(&old);
        let other = pools.add(&new);
        assert_eq!((pools.find(&old), pools.find(&new)), (Some(index), Some(other)));
        assert!(pools.take_unused(index).is_none(), "a plan has it");
        drop(old);
        assert!(pools.take_unused(index).is_some());
        assert!(pools.get(index).is_none() && pools.get(other).is_some());
        assert_eq!(pools.add(&application("next")), index, "its place is free");
    }

    #[test]
    fn a_pool_with_a_request_stays() {
        let mut pools = Pools::default();
        let index = pools.add(&application("old"));
        pools.get_mut(index).unwrap().enqueue(crate::RequestId::new(1), None, 0);
        assert!(pools.take_unused(index).is_none());
        pools.get_mut(index).unwrap().leave(crate::RequestId::new(1));
        assert!(pools.take_unused(index).is_some());
    }
}
