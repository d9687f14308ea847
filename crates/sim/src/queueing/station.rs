//! A queue and its servers: the processors of a node, or one of its disks. First come, first served.

use std::collections::VecDeque;

/// Work of some kind that takes some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work<J> {
    pub(crate) job: J,
    pub(crate) ns: u64,
}

#[derive(Debug)]
pub(crate) struct Station<J> {
    servers: u32,
    busy: u32,
    queue: VecDeque<Work<J>>,
    /// Time that the servers have worked, current work included, in nanoseconds.
    worked_ns: u64,
}

impl<J> Station<J> {
    pub(crate) fn new(servers: u32) -> Self {
        Self { servers, busy: 0, queue: VecDeque::new(), worked_ns: 0 }
    }

    /// Takes work; returns it if it begins at once.
    pub(crate) fn offer(&mut self, work: Work<J>) -> Option<Work<J>> {
        if self.busy >= self.servers {
            self.queue.push_back(work);
            return None;
        }
        self.busy += 1;
        self.worked_ns += work.ns;
        Some(work)
    }

    /// Work is done; returns the next, which begins.
    pub(crate) fn handle_done(&mut self) -> Option<Work<J>> {
        debug_assert!(self.busy > 0);
        let next = if self.busy > self.servers { None } else { self.queue.pop_front() };
        match &next {
            Some(work) => self.worked_ns += work.ns,
            None => self.busy -= 1,
        }
        next
    }

    /// Sets the number of servers, at least one. Removed ones finish their work; returns the work that new ones
    /// begin.
    pub(crate) fn resize(&mut self, servers: u32) -> Vec<Work<J>> {
        self.servers = servers.max(1);
        let free = self.servers.saturating_sub(self.busy) as usize;
        let begun: Vec<_> = self.queue.drain(..free.min(self.queue.len())).collect();
        self.busy += begun.len() as u32;
        self.worked_ns += begun.iter().map(|work| work.ns).sum::<u64>();
        begun
    }

    /// Forgets all work.
    pub(crate) fn clear(&mut self) {
        self.busy = 0;
        self.queue.clear();
    }

    /// Servers at work.
    pub(crate) fn busy(&self) -> u32 {
        self.busy
    }

    /// Work that has not begun.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn worked_ns(&self) -> u64 {
        self.worked_ns
    }

    /// Panics if work waits although a server is free.
    #[cfg(test)]
    pub(crate) fn check_invariants(&self) {
        assert!(self.queue.is_empty() || self.busy >= self.servers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_servers_work_in_order_of_arrival() {
        let mut station = Station::new(2);
        let work = |job| Work { job, ns: 10 };
        let begun: Vec<bool> = (1..=4).map(|job| station.offer(work(job)).is_some()).collect();
        assert_eq!(begun, [true, true, false, false]);
        assert_eq!(station.handle_done(), Some(work(3)));
        assert_eq!(station.handle_done(), Some(work(4)));
        assert_eq!(station.handle_done(), None);
        assert_eq!(station.worked_ns(), 40);
        assert!(station.offer(work(5)).is_some(), "one is free again");
    }
}
