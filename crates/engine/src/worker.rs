//! One worker process: what it is given, and what its threads share.

use std::io;
use std::sync::Arc;

use baton_content::{Blocking, Cache};
use baton_sys::descriptors;

use crate::acceptor::Acceptor;
use crate::arch;
use crate::client::Client;
use crate::context::{Context, Records, Remarks};
use crate::event_loop::{EventLoop, Jobs, Tuner};
use crate::headcount::Headcount;
use crate::heartbeat::Heartbeats;
use crate::listen::Listener;
use crate::log::{AccessLog, LogSettings, LogWriter};
use crate::metrics::{Counters, Tally};
use crate::outlet::SendPolicy;
use crate::plan::Plan;
use crate::settings::Tuning;
use crate::steering::Steering;
use crate::ways::Ways;

/// What a worker process is given.
#[derive(Debug)]
pub struct Worker {
    /// How it works.
    pub tuning: Tuning,
    /// What it serves.
    pub plan: Arc<Plan>,
    /// Where it accepts.
    pub listeners: Vec<Arc<Listener>>,
    /// Its part of the counters.
    pub counters: Counters,
    /// Where it shows that its loops move.
    pub heartbeats: Heartbeats,
    /// The access log, if there is one.
    pub log: Option<LogSettings>,
    /// Where its orders come from.
    pub steering: Arc<Steering>,
    /// Where its remarks go.
    pub remarks: Remarks,
}

/// Serves until the worker is told to stop, or has been drained.
///
/// # Errors
/// What kept it from beginning, or an event queue that broke: descriptors or memory ran out.
pub fn run(worker: Worker) -> io::Result<()> {
    let Worker { tuning, plan, listeners, counters, heartbeats, log, steering, remarks } = worker;
    let tuning = arch::adapted(tuning);
    let log = log.map(|settings| LogWriter::start(settings, counters)).transpose()?;
    steering.begin(Arc::clone(&plan), listeners, log.clone());
    let headcount = Headcount::new(tuning.clients_max);
    let process = Process { tuning, plan, counters, heartbeats, log, steering, remarks, headcount };
    arch::serve(&process)?;
    if let Some(log) = &process.log {
        log.sync();
    }
    Ok(())
}

/// What the threads of a worker process share.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) tuning: Tuning,
    plan: Arc<Plan>,
    counters: Counters,
    pub(crate) heartbeats: Heartbeats,
    log: Option<Arc<LogWriter>>,
    pub(crate) steering: Arc<Steering>,
    remarks: Remarks,
    pub(crate) headcount: Headcount,
}

impl Process {
    /// A new file cache, one of so many in this process, which share what is configured.
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
        let ways = Ways::new(self.tuning.way);
        let log = self.log.as_ref().map(|writer| AccessLog::new(Arc::clone(writer)));
        let records = Records { tally: Tally::new(self.counters), log, remarks: self.remarks };
        Context::new(Arc::clone(&self.plan), cache, blocking, send, ways, records)
    }

    /// An event loop over all that this process listens to.
    pub(crate) fn event_loop<C: Client, J: Jobs<C>>(
        &self,
        name: &str,
        ctx: Context,
        jobs: J,
        tuner: Option<Box<dyn Tuner<J>>>,
    ) -> io::Result<EventLoop<C, J>> {
        let acceptor = Acceptor::new(&self.tuning, self.remarks);
        let headcount = self.headcount.clone();
        EventLoop::new(name.to_owned(), ctx, acceptor, headcount, self.steering.subscribe()?, jobs, tuner)
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
