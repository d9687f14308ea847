//! The socket of the file system over which servers come.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use baton_report::{OperatorError, log};
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

/// A listening socket, which is removed with this.
#[derive(Debug)]
pub(crate) struct Entrance {
    socket: OwnedFd,
    path: PathBuf,
}

/// Servers that wait: one, and its successor.
const BACKLOG: i32 = 8;

impl Entrance {
    /// Opens the socket. `None`: another agent listens there, and a server can use that one.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, OperatorError> {
        let open = || {
            let address = SocketAddrUnix::new(path)?;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = || rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
            match rustix::net::connect(&socket()?, &address) {
                Ok(()) | Err(rustix::io::Errno::AGAIN) => return Ok(None),
                // An agent that was killed has left it behind.
                Err(rustix::io::Errno::CONNREFUSED) => rustix::fs::unlink(path)?,
                Err(_) => {}
            }
            let socket = socket()?;
            // No other user may connect, not even for a moment.
            let before = rustix::process::umask(Mode::RWXG | Mode::RWXO);
            let bound = rustix::net::bind(&socket, &address);
            rustix::process::umask(before);
            bound?;
            rustix::net::listen(&socket, BACKLOG)?;
            Ok::<_, io::Error>(Some(Self { socket, path: path.to_owned() }))
        };
        open().map_err(|error| {
            OperatorError::of(format_args!("listen for the server at {}", path.display()), &error)
                .about_file(path, &error)
        })
    }

    /// The next server of this user, or of root.
    pub(crate) fn accept(&self) -> Option<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::accept_with(&self.socket, flags).ok()?;
        let peer = sockopt::socket_peercred(&socket).ok()?;
        if peer.uid != rustix::process::geteuid() && !peer.uid.is_root() {
            log::warning(format_args!(
                "user {} has connected to the handoff agent's socket, and was refused",
                peer.uid.as_raw()
            ));
            return None;
        }
        Some(socket)
    }
}

impl AsFd for Entrance {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Entrance {
    fn drop(&mut self) {
        // It may be gone, or another agent's by now: then a server starts one of its own.
        let _ = rustix::fs::unlink(&self.path);
    }
}
