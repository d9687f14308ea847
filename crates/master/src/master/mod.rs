//! The master: one thread, one state, and what it does with it in a file for each subject.
//!
//! It serves no client. It keeps what must outlive a worker (sockets, logs, counters, the configuration), so that any
//! worker can die and be replaced. [`event_loop`] calls all others; [`reload`], [`status`] and [`upgrade`] take several
//! turns of it.

mod event_loop;
mod failover;
mod lifecycle;
mod reload;
mod requests;
mod status;
mod upgrade;
mod watchdog;

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use baton_config::{Config, ConfigSource};
use baton_engine::Tuning;
use baton_engine::listen::ListenAddress;
use baton_gateway::BacklogNotices;
use baton_report::Trouble;
use baton_sys::signals::SignalQueue;

use crate::applications::Applications;
use crate::control::ControlSocket;
use crate::listeners::Listeners;
use crate::logs::Logs;
use crate::management::{Connections, Requester, ServerMetrics};
use crate::pending::{LastReload, Reload, StatusCollection};
use crate::phase::Phase;
use crate::privileges::WorkerUser;
use crate::replaceable_file::PidFile;
use crate::upgrade::{Predecessor, Successor};
use crate::worker::WorkerSetup;
use crate::workers::Workers;

/// The state of a running server.
#[derive(Debug)]
pub(crate) struct Master {
    // What it was started with.
    pub(crate) pid: u32,
    pub(crate) source: ConfigSource,
    pub(crate) tuning: Tuning,
    /// How much of it is for the contents of files, and why.
    pub(crate) cache_memory: String,
    /// How many descriptors a worker may have, and what for.
    pub(crate) descriptors: String,
    pub(crate) user: WorkerUser,
    pub(crate) started: Instant,
    pub(crate) started_at: SystemTime,
    // What it serves.
    pub(crate) config: Config,
    pub(crate) listeners: Listeners,
    pub(crate) logs: Logs,
    pub(crate) workers: Workers,
    /// When the watchdog looks at the workers again.
    pub(crate) next_check: Instant,
    pub(crate) applications: Applications,
    /// How workers hear of each other's connections that wait for an application.
    pub(crate) notices: BacklogNotices,
    // How it is controlled.
    pub(crate) signals: SignalQueue,
    pub(crate) control: Option<ControlSocket>,
    pub(crate) pid_file: Option<PidFile>,
    pub(crate) admin: Vec<(ListenAddress, OwnedFd)>,
    pub(crate) connections: Connections,
    /// Whether SIGHUP means that the terminal, and with it the user, is gone.
    pub(crate) hangup_ends: bool,
    /// No connection for control or monitoring is accepted until then, since `accept` failed.
    pub(crate) accept_paused_until: Option<Instant>,
    // What is under way.
    pub(crate) phase: Phase,
    pub(crate) predecessor: Option<Predecessor>,
    pub(crate) successor: Option<Successor>,
    pub(crate) reload: Option<Reload>,
    pub(crate) reload_again: Vec<Requester>,
    pub(crate) last_reload: Option<LastReload>,
    pub(crate) generations: u64,
    pub(crate) status_collection: Option<StatusCollection>,
    pub(crate) tickets: u64,
    pub(crate) metrics: ServerMetrics,
    /// Why it never began to serve.
    pub(crate) failure: Option<Trouble>,
    /// What it prints once it serves, and the standard error that it was started with.
    pub(crate) announcement: String,
    pub(crate) terminal: OwnedFd,
}

/// What became of a call of [`Master::run`].
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The server has ended.
    Ended(ExitCode),
    /// This is a new worker process. The descriptor is its end of the channel.
    Worker(io::Result<Box<WorkerSetup>>, OwnedFd),
}
