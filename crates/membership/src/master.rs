//! The process's end of the socket to the master.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc::Sender;
use std::thread::Builder;

use baton_report::log;
use baton_supervise::messages::{self, MESSAGE_BYTES_MAX};
use rustix::fs::MemfdFlags;

use crate::inputs::Input;
use crate::messages::{FromMembers, Report, ToMembers};
use crate::settings::MembersSettings;

/// The socket.
#[derive(Debug)]
pub(crate) struct Master {
    socket: OwnedFd,
}

impl Master {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Waits for the settings; `None`: the master has ended.
    ///
    /// # Errors
    /// A message that is none: master and process are of different versions.
    pub(crate) fn settings(&self) -> io::Result<Option<MembersSettings>> {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let received = messages::receive::<ToMembers>(&self.socket, &mut buffer)?;
        let Some((message, descriptors)) = received else { return Ok(None) };
        if message != ToMembers::Configure {
            return Err(io::Error::other("settings come first"));
        }
        let file = descriptors.into_iter().next().map(File::from);
        let mut file = file.ok_or_else(|| io::Error::other("settings without a descriptor"))?;
        // The master wrote through the same description.
        file.rewind()?;
        Ok(Some(serde_json::from_reader(io::BufReader::new(file))?))
    }

    /// Hands on what comes from now on, by a thread.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn listen(&self, inputs: Sender<Input>) -> io::Result<()> {
        let socket = self.socket.try_clone()?;
        Builder::new().name("master".into()).spawn(move || {
            let mut buffer = vec![0; MESSAGE_BYTES_MAX];
            loop {
                let input = match messages::receive(&socket, &mut buffer) {
                    Ok(Some((message, _))) => Input::Master(message),
                    Ok(None) => Input::MasterEnded,
                    Err(error) => {
                        // A new process may be of the right version.
                        log::error(format_args!("cannot understand the master: {error}"));
                        Input::MasterEnded
                    }
                };
                let is_over = matches!(input, Input::MasterEnded);
                if inputs.send(input).is_err() || is_over {
                    return;
                }
            }
        })?;
        Ok(())
    }

    /// Tells the master what is known. If it has ended, that is of no use, and no error either.
    pub(crate) fn report(&self, report: &Report) {
        let sent = file_of(report)
            .and_then(|file| messages::send(&self.socket, &FromMembers::Report, &[file.as_fd()]));
        complain(sent);
    }

    /// Tells the master of an order.
    pub(crate) fn ordered(&self, ticket: u64, result: Result<(), String>) {
        complain(messages::send(&self.socket, &FromMembers::Ordered { ticket, error: result.err() }, &[]));
    }
}

fn complain(sent: io::Result<()>) {
    match sent {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            log::error(format_args!("cannot tell the master of nodes: {error}"));
        }
        _ => {}
    }
}

/// A message has no room for 64 nodes with long names.
fn file_of(report: &Report) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("baton-members", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(report)?)?;
    Ok(file)
}
