//! What the threads of a worker process share, and what each of them is made of.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use baton_content::{Blocking, Cache};
use baton_sys::descriptors;

use crate::acceptor::Acceptor;
use crate::client::Client;
use crate::connection_count::ConnectionCount;
use crate::context::{Context, Records, Remarks};
use crate::event_loop::{EventLoop, Jobs, Tuner};
use crate::heartbeat::Heartbeats;
use crate::log::{AccessLog, LogWriter};
use crate::metrics::{Counters, Tally};
use crate::outlet::SendPolicy;
use crate::plan::Plan;
use crate::send_way::SendWays;
use crate::settings::Tuning;
use crate::steering::Steering;

/// What the threads of a worker process share.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) tuning: Tuning,
    pub(crate) plan: Arc<Plan>,
    pub(crate) counters: Counters,
    pub(crate) heartbeats: Heartbeats,
    pub(crate) log: Option<Arc<LogWriter>>,
    pub(crate) steering: Arc<Steering>,
    pub(crate) remarks: Remarks,
    pub(crate) connection_count: ConnectionCount,
}

impl Process {
    /// A new file cache: one of `caches` in this process, which share the configured limits.
    pub(crate) fn cache(&self, caches: usize) -> Arc<Cache> {
        let mut settings = self.tuning.cache.clone();
        settings.files_max /= caches;
        settings.memory_bytes_max /= caches as u64;
        let cache = Arc::new(Cache::new(settings));
        descriptors::register(&cache);
        cache
    }

    /// A context for one more thread that runs steps; `blocking`: whether that thread may wait for a disk.
    pub(crate) fn context(&self, cache: Arc<Cache>, blocking: Blocking) -> Context {
        let send = SendPolicy {
            sendfile: self.tuning.sendfile,
            quantum_bytes: self.tuning.send_quantum_bytes,
            test_residency: blocking == Blocking::Never,
        };
        let send_ways = SendWays::new(self.tuning.way);
        let log = self.log.as_ref().map(|writer| AccessLog::new(Arc::clone(writer)));
        let records = Records { tally: Tally::new(self.counters), log, remarks: self.remarks };
        Context::new(Arc::clone(&self.plan), cache, blocking, send, send_ways, records)
    }

    /// An event loop on all listeners of this process.
    pub(crate) fn event_loop<C: Client, J: Jobs<C>>(
        &self,
        name: &str,
        ctx: Context,
        jobs: J,
        tuner: Option<Box<dyn Tuner<J>>>,
    ) -> io::Result<EventLoop<C, J>> {
        let acceptor = Acceptor::new(&self.tuning, self.remarks);
        let connection_count = self.connection_count.clone();
        EventLoop::new(
            name.to_owned(),
            ctx,
            acceptor,
            connection_count,
            self.steering.subscribe()?,
            jobs,
            tuner,
        )
    }

    /// Runs `task` on so many threads, this one among them, and waits for all.
    ///
    /// No task begins before every thread has been started: clients are served by all or by none. A task that fails
    /// stops the worker, so that the others end, too.
    ///
    /// # Errors
    /// The first error of a task, or why a thread cannot be started.
    pub(crate) fn on_threads(
        &self,
        count: usize,
        task: impl Fn(usize) -> io::Result<()> + Sync,
    ) -> io::Result<()> {
        let gate = Gate::default();
        let run = |index| {
            let result = task(index);
            if result.is_err() {
                self.steering.stop();
            }
            result
        };
        thread::scope(|scope| {
            let (gate, run) = (&gate, &run);
            let closed = gate.closed();
            let start = |index| {
                thread::Builder::new()
                    .name(format!("loop-{index}"))
                    .spawn_scoped(scope, move || if gate.pass() { run(index) } else { Ok(()) })
                    .map_err(|error| not_started(index, count, &error))
            };
            let others = (1..count).map(start).collect::<io::Result<Vec<_>>>()?;
            closed.open();
            let own = run(0);
            others.into_iter().fold(own, |result, thread| {
                let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
                result.and(ended)
            })
        })
    }
}

/// Holds threads until all have been started, or one cannot be.
#[derive(Default)]
struct Gate(Mutex<bool>);

/// A gate at which threads wait. Dropping it sends them away.
struct ClosedGate<'a>(MutexGuard<'a, bool>);

impl Gate {
    fn closed(&self) -> ClosedGate<'_> {
        ClosedGate(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits at the gate. `false`: it will not be opened.
    fn pass(&self) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClosedGate<'_> {
    fn open(mut self) {
        *self.0 = true;
    }
}

fn not_started(index: usize, count: usize, error: &io::Error) -> io::Error {
    let remedy = "lower server.threads, or raise the limits of threads and address space (ulimit -u, ulimit -v, TasksMax=)";
    io::Error::new(error.kind(), format!("cannot start thread {index} of {count}: {error}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;
    use crate::settings::Limits;
    use crate::steering::WorkerPhase;

    fn process() -> Process {
        let tuning = Tuning::default();
        let plan = Arc::new(Plan::new(Vec::new(), Limits::default(), true));
        let steering = Arc::new(Steering::new());
        steering.begin(Arc::clone(&plan), Vec::new(), None);
        Process {
            plan,
            counters: Counters::allocate(1).unwrap().remove(0),
            heartbeats: Heartbeats::allocate(1, &tuning).unwrap().remove(0),
            log: None,
            steering,
            remarks: |_| {},
            connection_count: ConnectionCount::new(tuning.clients_max),
            tuning,
        }
    }

    /// The others wait for orders, as event loops do.
    #[test]
    fn a_task_that_fails_stops_the_others() {
        let process = process();
        let result = process.on_threads(3, |index| {
            if index == 1 {
                return Err(io::Error::other("broken"));
            }
            let mut orders = process.steering.subscribe()?;
            while orders.poll().is_none_or(|orders| orders.phase != WorkerPhase::Stopping) {
                let waker = orders.descriptor().unwrap();
                poll(&mut [PollFd::from_borrowed_fd(waker, PollFlags::IN)], None)?;
            }
            Ok(())
        });
        assert_eq!(result.unwrap_err().to_string(), "broken");
    }
}
