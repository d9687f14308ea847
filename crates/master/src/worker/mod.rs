//! A worker process: drops privileges, makes its plan, and serves by it until the master ends it.
//!
//! One thread, the first, belongs to the engine; another one handles the master's [messages](commands).

mod cache_purges;
mod commands;
mod documents;
mod plan;
mod why;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use baton_cache::{PurgeOrder, PurgeOutbox, SharedCache};
use baton_config::{Config, DocumentsOfWorker, PeersByRoute, PemFiles, ProcessTables, Proofs, Resources};
use baton_confine::{Kind, Limits, confine};
use baton_content::Roots;
use baton_dns::Names;
use baton_engine::heartbeat::Heartbeats;
use baton_engine::listen::Listener;
use baton_engine::{Arrivals, Steering, Tuning};
use baton_report::log;
use baton_site::address_count::AddressTable;
use baton_site::guards::RateTable;
use baton_sys::process;
use baton_telemetry::figures::FigureTable;
use baton_telemetry::log::{LogSettings, SiteLogs};
use baton_telemetry::metrics::{Counters, Metric};
use baton_tls::{TicketSecrets, Tickets};
use baton_upstream::{BacklogNotices, OriginTable, TemporaryCounters, TemporarySpace};
use rustix::process::Signal;

use self::cache_purges::CachePurges;
use self::commands::CommandThread;
use self::plan::{claims, make_plan};
use crate::channel::{self, FromWorker};
use crate::handoff_agent::WorkerEnds;
use crate::privileges::{WorkerUser, limits};

/// The inputs of a worker.
#[derive(Debug)]
pub(crate) struct WorkerSetup {
    /// The process that started it.
    pub(crate) master_pid: u32,
    /// The user as which it runs.
    pub(crate) user: WorkerUser,
    /// The CPU that it is bound to, if any.
    pub(crate) cpu: Option<usize>,
    /// The configuration that it serves.
    pub(crate) config: Config,
    /// The process tables of the applications that the server has started.
    pub(crate) process_tables: ProcessTables,
    /// The PEM files that the configuration names.
    pub(crate) pem_files: PemFiles,
    /// The secrets of session tickets.
    pub(crate) ticket_secrets: TicketSecrets,
    /// The wakeups for connections of other workers that wait for an application.
    pub(crate) notices: BacklogNotices,
    /// Where the process of documents hears of peers' questions.
    pub(crate) documents_socket: PathBuf,
    /// What is known of origins, and the number of the worker.
    pub(crate) origins: (OriginTable, usize),
    /// How often clients have asked.
    pub(crate) rates: RateTable,
    /// How many connections clients have.
    pub(crate) addresses: AddressTable,
    /// Its tuning.
    pub(crate) tuning: Tuning,
    /// The listener ids of the configuration's addresses, in order.
    pub(crate) listener_ids: Vec<usize>,
    /// The listeners.
    pub(crate) listeners: Vec<Arc<Listener>>,
    /// Its counters.
    pub(crate) counters: Counters,
    /// The counters of all workers, this one included.
    pub(crate) all_counters: Vec<Counters>,
    /// Where requests of sites, applications and origins are counted.
    pub(crate) figures: FigureTable,
    /// The heartbeats of its loops.
    pub(crate) heartbeats: Heartbeats,
    /// The access log.
    pub(crate) log: Option<LogSettings>,
    /// The access logs that sites have for themselves.
    pub(crate) site_logs: Vec<(PathBuf, OwnedFd)>,
    /// The part of its memory that the shared cache may take, in thousandths.
    pub(crate) cache_permille: u16,
    /// What the worker before this one should have purged.
    pub(crate) purges: Vec<PurgeOrder>,
    /// Where clients arrive of the server whose place this one takes.
    pub(crate) arrivals: Option<OwnedFd>,
    /// Where those of other workers arrive.
    pub(crate) of_siblings: Option<OwnedFd>,
    /// How connections get to other hosts, and from there.
    pub(crate) handoff_agent: Option<WorkerEnds>,
}

/// Serves until the process is to end. `channel` is the worker's end.
pub(crate) fn serve(setup: io::Result<Box<WorkerSetup>>, channel: OwnedFd) -> ExitCode {
    let channel = Arc::new(channel);
    let served =
        setup.map_err(|error| format!("cannot begin: {error}")).and_then(|setup| work(*setup, &channel));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Fails if the master has ended.
            let _ = channel::send(&channel, &FromWorker::Failed { error }, &[]);
            ExitCode::FAILURE
        }
    }
}

fn work(setup: WorkerSetup, channel: &Arc<OwnedFd>) -> Result<(), String> {
    become_worker(&setup)?;
    let warnings = |warning: std::fmt::Arguments<'_>| log::warning(warning);
    let own = TemporaryCounters {
        bytes: setup.counters.cell(Metric::TemporaryBytes),
        refused: setup.counters.cell(Metric::TemporaryRefused),
    };
    let all = setup.all_counters.iter().map(|counters| counters.cell(Metric::TemporaryBytes)).collect();
    let space = TemporarySpace::new(own, all, warnings);
    let tickets = Arc::new(Tickets::new(setup.ticket_secrets));
    let worker = setup.origins.1;
    let log = &setup.config.log;
    let site_logs = SiteLogs::new(setup.counters, log.buffer_bytes as usize, log.flush_ms);
    let site_logs = Arc::new(site_logs);
    for (path, file) in setup.site_logs {
        site_logs.put(path, file);
    }
    let mut resources = Resources {
        process_tables: setup.process_tables,
        notices: setup.notices,
        roots: Roots::default(),
        space,
        pem_files: setup.pem_files,
        tickets: Some(tickets),
        proofs: Proofs::default(),
        documents: DocumentsOfWorker::new(setup.documents_socket),
        origins: Some(setup.origins),
        rates: Some(setup.rates),
        stand_in: None,
        names: Names::default(),
        site_logs: Some(Arc::clone(&site_logs)),
        figures: Some(setup.figures),
        peers: PeersByRoute::default(),
    };
    let plan = make_plan(&setup.config, &setup.listener_ids, &resources, &setup.user)?;
    // The plan has what it needs of them.
    resources.pem_files = PemFiles::default();
    let steering = Arc::new(Steering::new());
    steering.set_memory_share(setup.cache_permille);
    steering.hold(claims(&setup.config, &resources.process_tables));
    let outbox = (setup.all_counters.len() > 1).then(PurgeOutbox::new).transpose();
    let outbox = outbox.map_err(|error| format!("cannot begin: {error}"))?.map(Arc::new);
    let shared_cache =
        SharedCache::open(&setup.tuning.shared_cache, setup.counters.of_cache(), outbox.clone())
            .map_err(|error| format!("cannot open the shared cache: {error}"))?;
    shared_cache.set_memory_share(setup.cache_permille, 0);
    shared_cache.purge(&setup.purges);
    let commands = CommandThread::new(
        Arc::clone(channel),
        setup.user,
        Arc::clone(&steering),
        Arc::clone(&plan),
        setup.listeners.clone(),
        resources,
        CachePurges { cache: Arc::clone(&shared_cache), outbox },
    );
    std::thread::Builder::new()
        .name("commands".into())
        .spawn(move || commands.run())
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    let arrivals = setup.arrivals.into_iter().chain(setup.of_siblings).map(Arrivals::new);
    let (to_agent, of_agent) =
        setup.handoff_agent.map(|ends| (Arc::new(ends.requests), ends.arrivals)).unzip();
    let arrivals = arrivals.chain(of_agent.map(Arrivals::of_agent));
    let arrivals = arrivals.map(|one| one.map(Arc::new)).collect::<io::Result<_>>();
    let arrivals = arrivals.map_err(|error| format!("no clients can be taken over: {error}"))?;
    channel::send(channel, &FromWorker::Ready, &[])
        .map_err(|error| format!("the master is gone: {error}"))?;
    baton_engine::run(baton_engine::Worker {
        tuning: setup.tuning,
        plan,
        listeners: setup.listeners,
        counters: setup.counters,
        figures: Some((setup.figures, worker)),
        addresses: Some(setup.addresses),
        heartbeats: setup.heartbeats,
        log: setup.log,
        site_logs,
        steering,
        arrivals,
        to_agent,
        warnings,
        shared_cache,
    })
    .map_err(|error| format!("the engine failed: {error}"))
}

/// Gives up what a worker must not have.
fn become_worker(setup: &WorkerSetup) -> Result<(), String> {
    // The master's signals stay blocked, except the one that the kernel sends when the master dies.
    baton_sys::signals::unblock(&[Signal::TERM.as_raw()])
        .map_err(|error| format!("cannot unblock SIGTERM: {error}"))?;
    let limits = Limits {
        user: setup.user.identity(),
        writes: folders_to_write(&setup.config),
        is_root_on_request: setup.user.identity().is_none(),
        ..limits(&setup.config)
    };
    confine(Kind::Worker, &limits).map_err(|trouble| trouble.to_string())?;
    // After the change of user, since the kernel resets this setting then.
    process::die_with_parent().map_err(|error| format!("cannot follow the master: {error}"))?;
    if std::os::unix::process::parent_id() != setup.master_pid {
        return Err("the master has died".into());
    }
    match setup.cpu {
        Some(cpu) => process::pin_to_cpu(cpu).map_err(|error| format!("cannot bind to CPU {cpu}: {error}")),
        None => Ok(()),
    }
}

/// Where a worker writes: what waits for slow clients and for the end of long bodies, and the shared cache.
fn folders_to_write(config: &Config) -> Vec<PathBuf> {
    let cache = config.shared_cache.settings_of_worker().disk.map(|disk| disk.folder);
    config.temporary_folders().into_iter().chain(cache).collect()
}
