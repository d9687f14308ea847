//! The master: one thread, and a loop that asks each subject for its deadline and hands it its events.
//!
//! It serves no client. It keeps what must outlive a worker (sockets, logs, counters, the configuration), so that any
//! worker can die and be replaced. A subject has a struct of its own beside this folder, which knows no other one. What
//! concerns several of them is here: [`event_loop`] calls all others; [`reload`], [`status`] and [`upgrade`] take several
//! turns of it.

mod cluster;
mod event_loop;
mod lifecycle;
mod recycle;
mod reload;
mod requests;
mod start;
mod status;
mod upgrade;

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use baton_config::Config;
use baton_report::OperatorError;

pub(crate) use self::start::prepare;

use crate::acme::Acme;
use crate::applications::Applications;
use crate::cache_pressure::CachePressure;
use crate::certificates::WatchedCertificates;
use crate::documents::Documents;
use crate::failover::Failover;
use crate::figures::ProcessFigures;
use crate::handoff_agent::HandoffAgent;
use crate::listeners::Listeners;
use crate::logs::Logs;
use crate::management::Endpoints;
use crate::members::Members;
use crate::origins::Origins;
use crate::phase::Phase;
use crate::purges::Purges;
use crate::reloads::Reloads;
use crate::replaceable_file::PidFile;
use crate::route_questions::RouteQuestions;
use crate::siblings::Siblings;
use crate::signals::Signals;
use crate::startup::{Startup, Terminal};
use crate::status_collection::StatusCollection;
use crate::ticket_keys::TicketKeys;
use crate::upgrade::Upgrade;
use crate::watchdog::Watchdog;
use crate::worker::WorkerSetup;
use crate::workers::Workers;

/// The state of a running server.
#[derive(Debug)]
pub(crate) struct Master {
    startup: Startup,
    terminal: Terminal,
    phase: Phase,
    /// Why the server never served.
    failure: Option<OperatorError>,
    // What is served.
    config: Config,
    listeners: Listeners,
    certificates: WatchedCertificates,
    ticket_keys: TicketKeys,
    origins: Origins,
    logs: Logs,
    // Processes.
    workers: Workers,
    watchdog: Watchdog,
    failover: Failover,
    /// How workers that leave give clients to the others; `None`: there were no descriptors for it.
    siblings: Option<Siblings>,
    applications: Applications,
    acme: Acme,
    documents: Documents,
    members: Members,
    handoff_agent: HandoffAgent,
    process_figures: ProcessFigures,
    // Control.
    signals: Signals,
    endpoints: Endpoints,
    pid_file: Option<PidFile>,
    // Under way.
    upgrade: Upgrade,
    reloads: Reloads,
    status_collection: StatusCollection,
    purges: Purges,
    cache_pressure: CachePressure,
    route_questions: RouteQuestions,
}

/// The result of [`Master::run`].
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The server has ended.
    Ended(ExitCode),
    /// This is a new worker process. The descriptor is its end of the channel.
    Worker(io::Result<Box<WorkerSetup>>, OwnedFd),
}
