//! The old server's side: the process that replaces it.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::{Duration, Instant};

use baton_report::OperatorError;
use baton_sys::passing;

use super::message::CHANNEL;
use crate::management::Requester;

/// The server that replaces this one.
#[derive(Debug)]
pub(crate) struct Successor {
    /// Its master process.
    pub(crate) pid: i32,
    /// Whether it serves.
    pub(crate) serves: bool,
    pub(crate) channel: Option<OwnedFd>,
    /// The time by which it must serve, or is killed.
    pub(crate) deadline: Option<Instant>,
    /// Why it cannot serve, as it reports or as we see it.
    pub(crate) failure: Option<String>,
    /// The way for connections with which it goes on.
    pub(crate) way: Option<OwnedFd>,
    /// The highest version of passports that it reads.
    pub(crate) passports: u32,
    /// The source of the request to upgrade.
    pub(crate) requester: Requester,
}

impl Successor {
    /// Time for reading the configuration, opening folders and starting workers.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
}

/// How long a leaving worker keeps idle connections while another server serves. It still answers their next request,
/// so that a client which is about to send one does not find the connection closed.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// Starts the executable that now has the name under which this process was started, with the same arguments. Returns
/// its process and our end of the channel to it.
pub(crate) fn start_program() -> Result<(i32, OwnedFd), OperatorError> {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let started = passing::message_pair().and_then(|(ours, theirs)| {
        // A successor that does not read must not block this server.
        rustix::io::ioctl_fionbio(&ours, true)?;
        let mut command = Command::new(&name);
        command.args(arguments);
        baton_sys::inherited_descriptor::pass_on(&mut command, CHANNEL, theirs);
        // The master waits for it with all other children.
        let pid = i32::try_from(command.spawn()?.id()).map_err(io::Error::other)?;
        Ok((pid, ours))
    });
    started.map_err(|error| {
        let trouble = OperatorError::of(format_args!("start {}", name.display()), &error);
        match error.kind() {
            io::ErrorKind::NotFound => trouble
                .cause("the server was started by that name, and nothing has it any more")
                .remedy("put the new executable in place of the old one"),
            io::ErrorKind::PermissionDenied => trouble.cause("the file there is not executable"),
            _ => trouble,
        }
    })
}
