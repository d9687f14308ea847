//! One worker process: what it is given, and its run.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use baton_cache::SharedCache;
use baton_session::agent_link::AgentLink;
use baton_session::context::Warnings;
use baton_site::address_count::AddressTable;
use baton_site::plan::Plan;
use baton_telemetry::figures::FigureTable;
use baton_telemetry::log::{LogSettings, LogWriter, SiteLogs};
use baton_telemetry::metrics::Counters;

use crate::arch;
use crate::arrivals::Arrivals;
use crate::connection_count::ConnectionCount;
use crate::heartbeat::Heartbeats;
use crate::listen::Listener;
use crate::process::Process;
use crate::settings::Tuning;
use crate::steering::Steering;

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
    /// What is counted of each site, application and origin, and the number of the worker. `None`: nothing is.
    pub figures: Option<(FigureTable, usize)>,
    /// Where connections are counted by address, for all workers; `None`: they are not.
    pub addresses: Option<AddressTable>,
    /// Shows the master that its loops move.
    pub heartbeats: Heartbeats,
    /// The access log, if there is one.
    pub log: Option<LogSettings>,
    /// The access logs that sites have for themselves.
    pub site_logs: Arc<SiteLogs>,
    /// Its orders: reload, drain, stop.
    pub steering: Arc<Steering>,
    /// Where clients arrive that other processes have served until now: of the server whose place this one takes, other workers.
    pub arrivals: Vec<Arc<Arrivals>>,
    /// Over which connections go to other hosts; `None`: to none.
    pub to_agent: Option<Arc<OwnedFd>>,
    /// Takes its warnings for the operator.
    pub warnings: Warnings,
    /// The cache of what is answered elsewhere, for all its loops.
    pub shared_cache: Arc<SharedCache>,
}

impl Heartbeats {
    /// Allocates the heartbeats of so many workers; to be called before they are forked. The architecture decides how
    /// many loops a worker has.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn allocate(workers: usize, tuning: &Tuning) -> io::Result<Vec<Self>> {
        Self::with_loops(workers, arch::loops(tuning))
    }
}

/// Serves until the worker is told to stop, or has been drained.
///
/// # Errors
/// What kept it from beginning, or an event queue that broke: descriptors or memory ran out.
pub fn run(worker: Worker) -> io::Result<()> {
    let Worker {
        tuning,
        plan,
        listeners,
        counters,
        figures,
        addresses,
        heartbeats,
        log,
        site_logs,
        steering,
        arrivals,
        to_agent,
        warnings,
        shared_cache,
    } = worker;
    let tuning = arch::adapted(tuning);
    let log = log.map(|settings| LogWriter::start(settings, counters)).transpose()?;
    steering.begin(Arc::clone(&plan), listeners, log.clone());
    let connection_count = ConnectionCount::new(tuning.clients_max);
    shared_cache.recover_behind()?;
    let process = Process {
        tuning,
        plan,
        counters,
        figures,
        address_counts: addresses.and_then(|table| table.claim(std::process::id())),
        heartbeats,
        log,
        steering,
        warnings,
        connection_count,
        shared_cache,
        arrivals,
        agent_link: to_agent.map(AgentLink::new).transpose()?.map(Arc::new),
    };
    arch::serve(&process)?;
    process.shared_cache.flush(FLUSH_PATIENCE);
    if let Some(log) = &process.log {
        log.sync();
    }
    site_logs.sync();
    Ok(())
}

/// How long the end of a worker waits for the disk of the shared cache. What it has not written then is fetched again.
const FLUSH_PATIENCE: Duration = Duration::from_secs(5);
