//! `baton acme`, `baton members`, `baton documents`: processes that the master starts, with a socket to itself as standard
//! input.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::parent_id;
use std::process::ExitCode;

use baton_config::{Words, word_of};
use baton_confine::{Calls, Kind, Limits, confine};
use baton_report::Trouble;
use baton_sys::{process, signals};
use clap::Args;
use rustix::process::Signal;

/// The signals that may end it.
const SIGNALS: [i32; 2] = [Signal::TERM.as_raw(), Signal::INT.as_raw()];

#[derive(Debug, Args)]
pub(super) struct Child {
    /// The server's process.
    #[arg(long)]
    parent: u32,
    /// What becomes of system calls that it has no use for.
    #[arg(long, default_value = word_of(Calls::Enforce))]
    system_calls: String,
    /// Whether debuggers of the same user may look at it.
    #[arg(long)]
    debuggable: bool,
}

impl Child {
    /// Does its work until the server ends.
    pub(super) fn run(
        &self,
        kind: Kind,
        work: impl FnOnce(OwnedFd) -> Result<(), Trouble>,
    ) -> Result<ExitCode, Trouble> {
        let calls = Calls::words().into_iter().find(|(word, ..)| *word == self.system_calls);
        let calls = calls.map(|(_, calls, _)| calls).unwrap_or_default();
        confine(kind, &Limits { calls, is_debuggable: self.debuggable, ..Limits::default() })?;
        let begin = || {
            // The master has blocked the signals that it waits for.
            signals::unblock(&SIGNALS)?;
            process::die_with_parent()?;
            std::io::stdin().as_fd().try_clone_to_owned()
        };
        let socket = begin().map_err(|error| Trouble::of("begin as a child of the server", &error))?;
        if parent_id() == self.parent {
            work(socket)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
