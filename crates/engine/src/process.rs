//! What the threads of a worker process share, and what each of them is made of.

use std::io;
use std::sync::Arc;

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
}

/// Runs `task` on so many threads, this one among them, and waits for all; returns the first error.
pub(crate) fn on_threads(count: usize, task: impl Fn(usize) -> io::Result<()> + Sync) -> io::Result<()> {
    std::thread::scope(|scope| {
        let task = &task;
        let mut others = Vec::new();
        for index in 1..count {
            others.push(
                std::thread::Builder::new()
                    .name(format!("loop-{index}"))
                    .spawn_scoped(scope, move || task(index))?,
            );
        }
        let mut result = task(0);
        for thread in others {
            let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
            result = result.and(ended);
        }
        result
    })
}
