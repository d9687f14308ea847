//! `baton members`: the process that knows the nodes of a cluster. The master starts it, with a socket to itself as standard
//! input.

use std::os::fd::AsFd as _;
use std::os::unix::process::parent_id;
use std::process::ExitCode;

use baton_report::Trouble;
use baton_sys::{process, signals};
use clap::Args;
use rustix::process::{DumpableBehavior, Signal};

/// The signals that may end it.
const SIGNALS: [i32; 2] = [Signal::TERM.as_raw(), Signal::INT.as_raw()];

/// Follow the nodes of a cluster in etcd and DNS: started by the server, not by hand
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct Members {
    /// The server's process.
    #[arg(long)]
    parent: u32,
}

impl Members {
    /// Runs until the server ends.
    pub(super) fn run(&self) -> Result<ExitCode, Trouble> {
        let begin = || {
            // The master has blocked the signals that it waits for.
            signals::unblock(&SIGNALS)?;
            process::die_with_parent()?;
            // Its memory has the password of etcd.
            rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
            std::io::stdin().as_fd().try_clone_to_owned()
        };
        let socket = begin().map_err(|error| Trouble::of("begin to follow the cluster", &error))?;
        if parent_id() == self.parent {
            baton_members::run(socket)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
