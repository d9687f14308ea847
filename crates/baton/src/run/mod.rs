//! The supervisor: from a checked configuration to worker processes that serve it, and to an orderly end.
//!
//! ```text
//!   signals   control socket   admin listener           LISTEN_FDS, NOTIFY_SOCKET
//!      └──────────┬─────┴────────────┘                             │
//!            ┌────▼─────────────── master ─────────────────────────▼──┐
//!            │ one thread; keeps configuration, sockets, logs, counts │
//!            └────┬───────────────────┬───────────────────┬───────────┘
//!     orders and  │ socket pair       │                   │   counters in shared memory
//!     reports     ▼                   ▼                   ▼
//!             worker 0            worker 1            worker 2     each: `baton_engine::run`
//! ```
//!
//! [`start`] makes the [`master`], [`phase`] says how it begins and ends, [`reload`] and [`status`] are its longer
//! conversations with the workers. A [`worker`] is a fork of the master, never an `exec`: what it needs it has.

mod admin;
mod announce;
mod backoff;
mod callers;
mod channel;
pub(crate) mod control;
mod crew;
mod descriptors;
mod doors;
mod exposition;
mod holder;
mod listeners;
mod log;
mod logs;
mod master;
mod notify;
mod orders;
mod phase;
mod poll;
mod privileges;
mod reload;
mod restart;
mod signals;
mod start;
mod status;
mod trouble;
mod worker;

use std::process::ExitCode;

pub(crate) use trouble::Trouble;

use crate::config::{Config, ConfigSource};

/// Runs a server until it is told to end. `source` is what a reload reads.
///
/// Returns in the master with the server's exit code and, since they are forks, in every worker with its own: the
/// caller ends the process with it.
///
/// # Errors
/// Why the server never came to serve; nothing of it is left then.
pub(crate) fn supervise(config: Config, source: ConfigSource) -> Result<ExitCode, Trouble> {
    match start::prepare(config, source)?.run()? {
        master::Outcome::Ended(code) => Ok(code),
        master::Outcome::Worker(post, channel) => Ok(worker::serve(post, channel)),
    }
}
