//! `baton acme`, `baton members`, `baton documents`: processes that the master starts, with a socket to itself as standard
//! input.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::parent_id;
use std::path::PathBuf;
use std::process::ExitCode;

use baton_confine::{Kind, Limits, confine};
use baton_report::OperatorError;
use baton_sys::{process, signals};
use clap::Args;
use rustix::process::Signal;

use super::limit_options::LimitOptions;

/// The signals that may end it.
const SIGNALS: [i32; 2] = [Signal::TERM.as_raw(), Signal::INT.as_raw()];

#[derive(Debug, Args)]
pub(super) struct Child {
    /// The server's process.
    #[arg(long)]
    parent: u32,
    /// The folder of its work: it may write nowhere else.
    #[arg(long)]
    folder: PathBuf,
    #[command(flatten)]
    limits: LimitOptions,
}

impl Child {
    /// Does its work until the server ends.
    pub(super) fn run(
        &self,
        kind: Kind,
        work: impl FnOnce(OwnedFd) -> Result<(), OperatorError>,
    ) -> Result<ExitCode, OperatorError> {
        let writes = vec![self.folder.clone()];
        confine(kind, &Limits { writes, ..self.limits.limits() })?;
        let begin = || {
            // The master has blocked the signals that it waits for.
            signals::unblock(&SIGNALS)?;
            process::die_with_parent()?;
            std::io::stdin().as_fd().try_clone_to_owned()
        };
        let socket = begin().map_err(|error| OperatorError::of("begin as a child of the server", &error))?;
        if parent_id() == self.parent {
            work(socket)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
