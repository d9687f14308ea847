//! The master process and its workers: from a checked configuration to worker processes that serve it, and to their end.
//!
//! ```text
//!   signals   control socket   admin listener           LISTEN_FDS, NOTIFY_SOCKET
//!      └──────────┬─────┴────────────┘                             │
//!            ┌────▼─────────────── master ─────────────────────────▼──┐
//!            │ one thread; keeps configuration, sockets, logs, counts │
//!            └────┬───────────────────┬───────────────────┬───────────┘
//!    messages and │ socket pair       │                   │   counters in shared memory
//!     reports     ▼                   ▼                   ▼
//!             worker 0            worker 1            worker 2     each: `baton_engine::run`
//! ```
//!
//! The [`master`] is a loop over subjects, each a struct in a file beside it. A [`worker`] is a
//! fork of the master without an `exec`, so it already has everything that it needs.

mod acme;
mod announce;
mod applications;
mod cache_folder;
mod cache_memory;
mod cache_pressure;
mod certificates;
mod channel;
mod child;
mod cluster_report;
pub mod control;
mod descriptors;
mod documents;
mod failover;
mod figures;
mod fixed_settings;
mod hand_off_costs;
mod handoff_agent;
mod inherited;
mod kernel_tls;
mod known_drain;
mod listen_error;
mod listeners;
mod logs;
mod management;
mod master;
mod members;
mod memory_file;
mod missed_purges;
mod notify;
mod origins;
mod phase;
mod poll;
mod port_owner;
mod privileges;
mod purges;
mod reloads;
mod replaceable_file;
mod route_questions;
mod siblings;
mod signals;
mod startup;
mod status_collection;
mod syslog;
mod ticket_keys;
mod upgrade;
mod watch;
mod watchdog;
mod worker;
mod workers;

use std::process::ExitCode;

use baton_config::{Config, ConfigSource};
use baton_confine::{Kind, confine, report_gaps};
use baton_report::OperatorError;

pub use cache_folder::check_cache_folder;
pub use descriptors::{Budget, budget as descriptor_budget};
pub use kernel_tls::{KernelSealing, kernel_sealing, test_kernel_tls};

use self::upgrade::{InheritedSockets, Predecessor};

/// Runs a server until it is told to end. A reload reads `source` again.
///
/// Returns in the master with the server's exit code and, since they are forks, in every worker with its own: the
/// caller ends the process with it.
///
/// # Errors
/// Why the server never served. It leaves no process, socket or file behind.
pub fn run(config: Config, source: ConfigSource) -> Result<ExitCode, OperatorError> {
    confine(Kind::Master, &privileges::limits(&config))?;
    report_gaps();
    let predecessor = Predecessor::find()?;
    let inherited_sockets =
        predecessor.as_ref().map_or(Ok(InheritedSockets::default()), Predecessor::take_sockets);
    let prepared =
        inherited_sockets.and_then(|inherited_sockets| master::prepare(config, source, inherited_sockets));
    let mut master = prepared.inspect_err(|error| {
        if let Some(predecessor) = &predecessor {
            predecessor.tell_failed(&error.to_string());
        }
    })?;
    master.begin(predecessor);
    match master.run()? {
        master::Outcome::Ended(code) => Ok(code),
        master::Outcome::Worker(setup, channel) => Ok(worker::serve(setup, channel)),
    }
}

/// Tells the server that this one was started to replace, if there is one, that the configuration cannot be loaded.
pub fn report_failed_upgrade(why: &str) {
    if let Ok(Some(predecessor)) = Predecessor::find() {
        predecessor.tell_failed(why);
    }
}
