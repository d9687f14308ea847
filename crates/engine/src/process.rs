//! What the threads of a worker process share, and what each of them is made of.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;

use baton_cache::SharedCache;
use baton_content::{Blocking, Cache};
use baton_response::send_way::SendWays;
use baton_session::agent_link::AgentLink;
use baton_session::context::{Context, Records, Warnings};
use baton_session::send_queue::{SendPolicy, is_resident};
use baton_site::address_count::AddressCounts;
use baton_site::plan::Plan;
use baton_sys::descriptors;
use baton_telemetry::figures::{FigureTable, FigureTally};
use baton_telemetry::log::{AccessLogs, LogWriter};
use baton_telemetry::metrics::{Counters, Tally};

use crate::acceptor::Acceptor;
use crate::arrivals::Arrivals;
use crate::client::Client;
use crate::connection_count::ConnectionCount;
use crate::event_loop::{EventLoop, Jobs, Tuner};
use crate::heartbeat::Heartbeats;
use crate::settings::Tuning;
use crate::steering::Steering;

/// What the threads of a worker process share.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) tuning: Tuning,
    pub(crate) plan: Arc<Plan>,
    pub(crate) counters: Counters,
    pub(crate) figures: Option<(FigureTable, usize)>,
    pub(crate) address_counts: Option<AddressCounts>,
    pub(crate) heartbeats: Heartbeats,
    pub(crate) log: Option<Arc<LogWriter>>,
    pub(crate) steering: Arc<Steering>,
    pub(crate) warnings: Warnings,
    pub(crate) connection_count: ConnectionCount,
    pub(crate) shared_cache: Arc<SharedCache>,
    /// Where clients arrive that other processes have served until now.
    pub(crate) arrivals: Vec<Arc<Arrivals>>,
    /// The way to other hosts of the cluster.
    pub(crate) agent_link: Option<Arc<AgentLink>>,
}

impl Process {
    /// A new file cache: one of `caches` in this process, which share the configured limits.
    pub(crate) fn cache(&self, caches: usize) -> Arc<Cache> {
        let mut settings = self.tuning.cache.clone();
        settings.files_max /= caches;
        settings.memory_bytes_max /= caches as u64;
        let cache = Arc::new(Cache::new(settings));
        descriptors::register(&cache);
        self.steering.follow_memory(&cache);
        cache
    }

    /// A context for one more thread that runs steps; `blocking`: whether that thread may wait for a disk.
    pub(crate) fn context(&self, cache: Arc<Cache>, blocking: Blocking) -> Context {
        let send = SendPolicy {
            sendfile: self.tuning.sendfile,
            quantum_bytes: self.tuning.send_quantum_bytes,
            test_residency: blocking == Blocking::Never,
            is_resident,
            kernel_tls: self.tuning.kernel_tls,
        };
        let send_ways = SendWays::new(self.tuning.way);
        let log = AccessLogs::new(self.log.clone());
        let figures = self.figures.map(|(table, worker)| FigureTally::new(table, worker));
        let records = Records { tally: Tally::new(self.counters, figures), log, warnings: self.warnings };
        let mut ctx = Context::new(Arc::clone(&self.plan), cache, blocking, send, send_ways, records);
        ctx.shared_cache = Some(Arc::clone(&self.shared_cache));
        ctx.agent_link.clone_from(&self.agent_link);
        ctx.address_counts = self.address_counts;
        ctx
    }

    /// An event loop on all listeners of this process.
    pub(crate) fn event_loop<C: Client, J: Jobs<C>>(
        &self,
        name: &str,
        ctx: Context,
        jobs: J,
        tuner: Option<Box<dyn Tuner<J>>>,
    ) -> io::Result<EventLoop<C, J>> {
        let acceptor = Acceptor::new(&self.tuning, &self.arrivals, self.warnings);
        let connection_count = self.connection_count.clone();
        EventLoop::new(ctx, acceptor, connection_count, self.steering.subscribe(name)?, jobs, tuner)
    }

    /// Runs a task on so many threads, this one among them, and waits for all. Each thread prepares its own.
    ///
    /// No task begins before every thread has prepared its own: clients are served by all or by none. A task that fails
    /// stops the worker, so that the others end, too.
    ///
    /// # Errors
    /// The first error of a task or its preparation, or why a thread cannot be started.
    pub(crate) fn on_threads<'a>(
        &self,
        count: usize,
        prepare: impl Fn(usize) -> io::Result<Task<'a>> + Sync,
    ) -> io::Result<()> {
        let (gate, all_prepared, has_failed) = (Gate::default(), Barrier::new(count), AtomicBool::new(false));
        let run = |index| {
            let prepared = prepare(index).inspect_err(|_| has_failed.store(true, Ordering::Relaxed));
            all_prepared.wait();
            if has_failed.load(Ordering::Relaxed) {
                return prepared.map(drop);
            }
            prepared?().inspect_err(|_| self.steering.stop())
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

/// What a thread of a worker does until the worker ends.
pub(crate) type Task<'a> = Box<dyn FnOnce() -> io::Result<()> + 'a>;

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
    use baton_site::limits::Limits;
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;
    use crate::steering::WorkerPhase;

    fn process() -> Process {
        let tuning = Tuning::default();
        let plan = Arc::new(Plan::new(Vec::new(), Limits::default(), true));
        let steering = Arc::new(Steering::new());
        steering.begin(Arc::clone(&plan), Vec::new(), None);
        let counters = Counters::allocate(1).unwrap().remove(0);
        Process {
            plan,
            counters,
            figures: None,
            address_counts: None,
            heartbeats: Heartbeats::allocate(1, &tuning).unwrap().remove(0),
            log: None,
            steering,
            warnings: |_| {},
            connection_count: ConnectionCount::new(tuning.clients_max),
            shared_cache: SharedCache::open(&tuning.shared_cache, counters.of_cache(), None).unwrap(),
            tuning,
            arrivals: Vec::new(),
            agent_link: None,
        }
    }

    /// Waits for orders, as event loops do.
    fn follow_orders(process: &Process) -> io::Result<()> {
        let mut orders = process.steering.subscribe("test")?;
        while orders.poll().is_none_or(|orders| orders.phase != WorkerPhase::Stopping) {
            let waker = orders.descriptor().unwrap();
            poll(&mut [PollFd::from_borrowed_fd(waker, PollFlags::IN)], None)?;
        }
        Ok(())
    }

    #[test]
    fn a_task_that_fails_stops_the_others() {
        let process = process();
        let result = process.on_threads(3, |index| {
            Ok(match index {
                1 => Box::new(|| Err(io::Error::other("broken"))),
                _ => Box::new(|| follow_orders(&process)),
            })
        });
        assert_eq!(result.unwrap_err().to_string(), "broken");
    }

    #[test]
    fn no_task_begins_where_one_cannot_be_prepared() {
        let process = process();
        let result = process.on_threads(3, |index| match index {
            1 => Err(io::Error::other("out of descriptors")),
            _ => Ok(Box::new(|| panic!("it was to wait for all"))),
        });
        assert_eq!(result.unwrap_err().to_string(), "out of descriptors");
    }
}
