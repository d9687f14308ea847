//! Several runs at a time, on as many threads. Each depends on its scenario and trace alone, so their number changes
//! nothing but the time.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::model::{Outcome, Scenario, simulate};
use crate::trace::Trace;

/// Reports progress: the current task, and the share of it that is done, 0 to 1.
pub type Progress<'a> = &'a (dyn Fn(&str, f64) + Sync);

/// Runs scenarios.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    jobs: usize,
    progress: Progress<'a>,
}

impl<'a> Runner<'a> {
    /// Does so many runs at a time, at least one.
    #[must_use]
    pub fn new(jobs: usize, progress: Progress<'a>) -> Self {
        Self { jobs: jobs.max(1), progress }
    }

    /// Announces a task that takes a while.
    pub fn announce(&self, what: &str) {
        (self.progress)(what, 0.0);
    }

    /// Runs all, and answers in their order.
    #[must_use]
    pub fn run(&self, what: &str, todo: &[(&Trace, &Scenario)]) -> Vec<Outcome> {
        self.each(
            what,
            todo,
            |(trace, _)| trace.requests().len() as u64,
            |(trace, scenario), so_far| simulate(scenario, trace, so_far),
        )
    }

    /// Does each of the tasks, and answers in their order. A task tells how many of its requests are done so far.
    pub(crate) fn each<T: Sync, R: Send>(
        &self,
        what: &str,
        tasks: &[T],
        requests_of: impl Fn(&T) -> u64,
        work: impl Fn(&T, &mut dyn FnMut(u64)) -> R + Sync,
    ) -> Vec<R> {
        let requests: u64 = tasks.iter().map(requests_of).sum();
        let (next, answered) = (AtomicUsize::new(0), AtomicU64::new(0));
        let done = Mutex::new(Vec::new());
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(task) = tasks.get(number) else { break };
                let mut before = 0;
                let outcome = work(task, &mut |so_far| {
                    let all = answered.fetch_add(so_far - before, Ordering::Relaxed) + so_far - before;
                    before = so_far;
                    (self.progress)(what, all as f64 / requests.max(1) as f64);
                });
                // Nothing panics with the lock held.
                done.lock().unwrap_or_else(PoisonError::into_inner).push((number, outcome));
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.jobs.min(tasks.len()) {
                scope.spawn(work);
            }
            work();
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

#[cfg(test)]
mod tests {
    use baton_dispatch::PolicyName;

    use super::*;
    use crate::trace::Zipf;

    #[test]
    fn threads_change_nothing_but_the_time() {
        let trace = Zipf { targets: 100, requests: 2000, ..Zipf::default() }.trace(1);
        let scenarios = [1, 2, 3, 4].map(|nodes| Scenario::published(PolicyName::LardR, nodes));
        let todo: Vec<_> = scenarios.iter().map(|scenario| (&trace, scenario)).collect();
        let [alone, together] = [1, 3].map(|jobs| Runner::new(jobs, &|_, _| ()).run("", &todo));
        assert_eq!(format!("{alone:?}"), format!("{together:?}"));
        assert_eq!(alone.iter().map(|outcome| outcome.nodes).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }
}
