//! `baton mover`: the process that moves connections between the hosts of a cluster. The master starts it, and it outlives
//! the master.

use std::path::PathBuf;
use std::process::ExitCode;

use baton_report::OperatorError;
use baton_sys::{process, signals};
use clap::Args;
use rustix::process::Signal;

use super::limit_options::LimitOptions;

/// The signals that may end it.
const SIGNALS: [i32; 2] = [Signal::TERM.as_raw(), Signal::INT.as_raw()];

/// Move connections between the hosts of a cluster: started by the server, not by hand
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct HandoffAgent {
    /// The socket over which servers come.
    #[arg(long)]
    socket: PathBuf,
    #[command(flatten)]
    limits: LimitOptions,
}

impl HandoffAgent {
    /// Runs until there is neither a server nor a connection.
    pub(super) fn run(&self) -> Result<ExitCode, OperatorError> {
        // The master has blocked the signals that it waits for.
        signals::unblock(&SIGNALS).map_err(|error| OperatorError::of("begin to move connections", &error))?;
        process::read_auxiliary_vector();
        baton_handoff_agent::run(&self.socket, self.limits.limits())?;
        Ok(ExitCode::SUCCESS)
    }
}
