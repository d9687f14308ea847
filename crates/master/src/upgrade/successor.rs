//! The old server's side: the process that is to take its place.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use baton_report::Trouble;
use baton_sys::passing;

use super::message::CHANNEL;
use crate::management::Requester;

/// The server that is to take this one's place.
#[derive(Debug)]
pub(crate) struct Successor {
    /// Its master process.
    pub(crate) pid: i32,
    /// Whether it has come to serve.
    pub(crate) serves: bool,
    pub(crate) channel: Option<OwnedFd>,
    /// When it is killed if it does not serve by then.
    pub(crate) deadline: Option<Instant>,
    /// Why it cannot serve, in its own words or in ours.
    pub(crate) failure: Option<String>,
    /// What asked for the upgrade.
    pub(crate) requester: Requester,
}

impl Successor {
    /// For reading the configuration, opening folders and starting workers.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

    /// When the master has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Where it speaks, until it has closed its end.
    pub(crate) fn channel(&self) -> Option<BorrowedFd<'_>> {
        self.channel.as_ref().map(AsFd::as_fd)
    }
}

/// How long a worker that leaves while another server serves keeps idle connections. It still answers their next
/// request, so that no client that is about to send one finds the connection closed.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// Starts the program that this process was started as, with the same arguments, by the same name: what is there by
/// now is what runs then. Returns its process and our end of the channel to it.
pub(crate) fn start_program() -> Result<(i32, OwnedFd), Trouble> {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let started = passing::message_pair().and_then(|(ours, theirs)| {
        // A successor that does not read must not stop this server.
        rustix::io::ioctl_fionbio(&ours, true)?;
        let mut command = Command::new(&name);
        command.args(arguments);
        baton_sys::inherited_descriptor::pass_on(&mut command, CHANNEL, theirs);
        // It is awaited with all other children.
        let pid = i32::try_from(command.spawn()?.id()).map_err(io::Error::other)?;
        Ok((pid, ours))
    });
    started.map_err(|error| {
        let trouble = Trouble::of(format_args!("start {}", name.display()), &error);
        match error.kind() {
            io::ErrorKind::NotFound => trouble
                .cause("the server was started by that name, and nothing has it any more")
                .remedy("put the new executable in place of the old one"),
            io::ErrorKind::PermissionDenied => trouble.cause("the file there is not executable"),
            _ => trouble,
        }
    })
}
