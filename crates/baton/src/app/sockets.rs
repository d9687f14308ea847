//! Where processes listen: one socket for all, or one for each.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use baton_config::Target;
use baton_engine::listen::remove_stale_socket;
use baton_report::OperatorError;
use baton_sys::process::Identity;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::options::{Listen, Run};

/// Listening sockets. Their names in the file system go with them.
#[derive(Debug)]
pub(super) struct Sockets {
    sockets: Vec<OwnedFd>,
    paths: Vec<PathBuf>,
}

/// Connections that wait to be accepted: the kernel's own bound (`net.core.somaxconn`) is lower or the same.
const BACKLOG: i32 = 4096;

impl Sockets {
    /// Opens what the options ask for. The sockets block: programs that wait in `accept` expect that.
    ///
    /// # Errors
    /// What stands in the way of the first one that cannot be opened.
    pub(super) fn open(options: &Run) -> Result<Self, OperatorError> {
        let mut sockets = Self { sockets: Vec::new(), paths: Vec::new() };
        let owner = options.socket_owner()?;
        let unix = |path: &Path| listen(path, options.socket_mode, owner);
        match (&options.listen, &options.listen_each) {
            (Some(Listen::Stdin), _) => sockets.sockets.push(inherited()?),
            (Some(Listen::At(Target::Tcp(address))), _) => {
                let socket = TcpListener::bind(address)
                    .map_err(|error| OperatorError::of(format_args!("listen on {address}"), &error))?;
                sockets.sockets.push(socket.into());
            }
            (Some(Listen::At(Target::Unix(path))), _) => {
                sockets.sockets.push(unix(path)?);
                sockets.paths.push(path.clone());
            }
            (None, Some(prefix)) => {
                for number in 0..options.processes {
                    let path = numbered(prefix, number);
                    sockets.sockets.push(unix(&path)?);
                    sockets.paths.push(path);
                }
            }
            // No option gives a host name.
            (Some(Listen::At(Target::Host(..))), _) | (None, None) => {}
        }
        Ok(sockets)
    }

    /// The socket of a process.
    pub(super) fn of(&self, number: usize) -> Option<BorrowedFd<'_>> {
        self.sockets.get(number).or(self.sockets.first()).map(AsFd::as_fd)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for path in &self.paths {
            // Gone already, or not ours to remove: either way it does no harm.
            let _ = fs::remove_file(path);
        }
    }
}

fn listen(path: &Path, mode: u32, owner: Option<Identity>) -> Result<OwnedFd, OperatorError> {
    let opened = || {
        remove_stale_socket(path)?;
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        // No client can connect before it listens; by then it has its mode and owner.
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        if let Some(owner) = owner {
            std::os::unix::fs::chown(path, Some(owner.uid), Some(owner.gid))?;
        }
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(socket)
    };
    opened().map_err(|error: io::Error| {
        let trouble = OperatorError::of(format_args!("listen on unix:{}", path.display()), &error);
        match error.kind() {
            io::ErrorKind::AddrInUse => trouble.cause("a program listens there, or the file is not a socket"),
            _ => trouble.about_file(path, &error),
        }
    })
}

/// The socket with which this program was started.
fn inherited() -> Result<OwnedFd, OperatorError> {
    let stdin = io::stdin();
    let taken = || {
        if !rustix::net::sockopt::socket_acceptconn(&stdin)? {
            return Err(rustix::io::Errno::INVAL.into());
        }
        rustix::io::ioctl_fionbio(&stdin, false)?;
        stdin.as_fd().try_clone_to_owned()
    };
    taken().map_err(|error: io::Error| {
        OperatorError::of("listen on standard input", &error).cause("it is not a listening socket")
    })
}

fn numbered(prefix: &Path, number: u32) -> PathBuf {
    let mut path = OsString::from(prefix);
    path.push(format!(".{number}"));
    path.into()
}
