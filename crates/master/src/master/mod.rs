//! The master: one thread, one state, and a file for each subject.
//!
//! It serves no client. It keeps what must outlive a worker (sockets, logs, counters, the configuration), so that any
//! worker can die and be replaced. [`event_loop`] calls all others; [`reload`], [`status`] and [`upgrade`] take several
//! turns of it.

mod cluster;
mod event_loop;
mod failover;
mod lifecycle;
mod origins;
mod purges;
mod recycle;
mod reload;
mod requests;
mod status;
mod tickets;
mod upgrade;
mod watchdog;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use baton_config::{ClusterNode, Config, ConfigSource};
use baton_engine::Tuning;
use baton_engine::listen::ListenAddress;
use baton_report::Trouble;
use baton_site::guards::RateTable;
use baton_sys::signals::SignalQueue;
use baton_telemetry::figures::FigureTable;
use baton_upstream::BacklogNotices;

use crate::acme::Acme;
use crate::applications::Applications;
use crate::certificates::{Certificates, Watching};
use crate::control::ControlSocket;
use crate::documents::Documents;
use crate::figures::ProcessFigures;
use crate::listeners::Listeners;
use crate::logs::Logs;
use crate::management::{Connections, Requester, ServerMetrics};
use crate::members::Members;
use crate::mover::Mover;
use crate::origins::Origins;
use crate::pending::{LastReload, PendingPurge, Reload, StatusCollection};
use crate::phase::Phase;
use crate::privileges::WorkerUser;
use crate::replaceable_file::PidFile;
use crate::siblings::Siblings;
use crate::ticket_keys::TicketKeys;
use crate::upgrade::{Predecessor, Successor};
use crate::worker::WorkerSetup;
use crate::workers::Workers;

/// The state of a running server.
#[derive(Debug)]
pub(crate) struct Master {
    // From the start.
    pub(crate) pid: u32,
    pub(crate) source: ConfigSource,
    pub(crate) tuning: Tuning,
    /// How much memory is for the contents of files, and why.
    pub(crate) cache_memory: String,
    /// Whether the kernel seals records of TLS, for the status.
    pub(crate) kernel_tls: String,
    /// How many descriptors a worker may have, and what for.
    pub(crate) descriptors: String,
    pub(crate) user: WorkerUser,
    pub(crate) started: Instant,
    pub(crate) started_at: SystemTime,
    // The service.
    pub(crate) config: Config,
    pub(crate) listeners: Listeners,
    pub(crate) certificates: Certificates,
    pub(crate) watching: Watching,
    pub(crate) acme: Acme,
    pub(crate) documents: Documents,
    /// Nodes that the configuration does not list.
    pub(crate) members: Members,
    /// Nodes that the configuration lists, as the file has them.
    pub(crate) listed_nodes: Vec<ClusterNode>,
    pub(crate) ticket_keys: TicketKeys,
    pub(crate) mover: Mover,
    pub(crate) logs: Logs,
    pub(crate) workers: Workers,
    /// How workers that leave give clients to the others; `None`: there were no descriptors for it.
    pub(crate) siblings: Option<Siblings>,
    /// When the watchdog looks at the workers again.
    pub(crate) next_check: Instant,
    pub(crate) applications: Applications,
    /// How workers hear of each other's connections that wait for an application.
    pub(crate) notices: BacklogNotices,
    /// What all processes know of origins.
    pub(crate) origins: Origins,
    /// How often clients have asked.
    pub(crate) rates: RateTable,
    /// What is counted of each site, application and origin.
    pub(crate) figures: FigureTable,
    pub(crate) process_figures: ProcessFigures,
    // Control.
    pub(crate) signals: SignalQueue,
    pub(crate) control: Option<ControlSocket>,
    pub(crate) pid_file: Option<PidFile>,
    pub(crate) admin: Vec<(ListenAddress, OwnedFd)>,
    pub(crate) connections: Connections,
    /// Whether SIGHUP means that the terminal was closed.
    pub(crate) hangup_ends: bool,
    /// `accept` failed: no connection for control or monitoring is accepted until then.
    pub(crate) accept_paused_until: Option<Instant>,
    // Under way.
    pub(crate) phase: Phase,
    pub(crate) predecessor: Option<Predecessor>,
    pub(crate) successor: Option<Successor>,
    pub(crate) reload: Option<Reload>,
    pub(crate) reload_again: Vec<Requester>,
    pub(crate) last_reload: Option<LastReload>,
    pub(crate) generations: u64,
    pub(crate) status_collection: Option<StatusCollection>,
    pub(crate) pending_purges: Vec<PendingPurge>,
    /// Questions where a target goes, by their tickets.
    pub(crate) pending_whys: BTreeMap<u64, Requester>,
    /// When workers are told again what they could not be told.
    pub(crate) purge_retry_due: Option<Instant>,
    pub(crate) tickets: u64,
    pub(crate) metrics: ServerMetrics,
    /// Why the server never served.
    pub(crate) failure: Option<Trouble>,
    /// What the server prints once it serves, and the standard error of its start.
    pub(crate) announcement: String,
    pub(crate) terminal: OwnedFd,
}

/// The result of [`Master::run`].
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The server has ended.
    Ended(ExitCode),
    /// This is a new worker process. The descriptor is its end of the channel.
    Worker(io::Result<Box<WorkerSetup>>, OwnedFd),
}
