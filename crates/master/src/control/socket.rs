//! Where the control socket is. Only the user who started the server, and root, may use it.
//!
//! Where nothing is configured it is `/run/baton/control.sock` for root, and `$XDG_RUNTIME_DIR/baton/control.sock` for
//! others: the same rule finds it again from `baton ctl`. A second server of the same user finds the place taken and
//! listens beside it, on `control-PID.sock`; `baton ctl` finds either of them if it is the only one that runs. Where there is no such directory the server works without.

use std::fmt;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use baton_config::ControlSocket as Configured;
use baton_engine::listen::remove_stale_socket;
use baton_report::OperatorError;
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::replaceable_file::ReplaceableFile;

/// A control socket that listens.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    /// Accepts without blocking.
    pub(crate) listener: OwnedFd,
    /// Where clients find it.
    pub(crate) name: ReplaceableFile,
    device_and_inode: (u64, u64),
}

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 16;

/// Where a server of this user usually is, or the system's server.
pub fn usual_path() -> PathBuf {
    match usual_directory() {
        Some(directory) => directory.join("control.sock"),
        None => Path::new(SYSTEM_DIRECTORY).join("control.sock"),
    }
}

const SYSTEM_DIRECTORY: &str = "/run/baton";

fn usual_directory() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(SYSTEM_DIRECTORY.into());
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)?;
    runtime.is_absolute().then(|| runtime.join("baton"))
}

/// The control sockets in the directory of `path` on which servers listen that this user may ask.
pub(super) fn listening_beside(path: &Path) -> Vec<RunningServer> {
    let entries =
        path.parent().and_then(|directory| fs::read_dir(directory).ok()).into_iter().flatten().flatten();
    let looks_like_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("control") && name.ends_with(".sock")
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).filter(looks_like_one).collect();
    paths.sort();
    paths.into_iter().filter_map(RunningServer::at).collect()
}

/// A server that listens on a control socket.
#[derive(Debug)]
pub(super) struct RunningServer {
    pub(super) path: PathBuf,
    command: Option<String>,
}

impl RunningServer {
    fn at(path: PathBuf) -> Option<Self> {
        let connection = UnixStream::connect(&path).ok()?;
        // The kernel names the process that called `listen`: the master.
        let master = rustix::net::sockopt::socket_peercred(&connection).ok();
        let command = master.and_then(|master| command_of(master.pid.as_raw_nonzero().get()));
        Some(Self { path, command })
    }
}

impl fmt::Display for RunningServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, command } = self;
        write!(f, "{}", path.display())?;
        command.as_ref().map_or(Ok(()), |command| write!(f, " ({command})"))
    }
}

/// What a process was started as, as far as one line shows it.
fn command_of(pid: i32) -> Option<String> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = String::from_utf8_lossy(words.strip_suffix(b"\0")?).replace(|c: char| c.is_control(), " ");
    Some(words.chars().take(COMMAND_CHARS_MAX).collect())
}

const COMMAND_CHARS_MAX: usize = 100;

impl ControlSocket {
    /// Opens it as configured. The inner error says why the server works without one.
    ///
    /// # Errors
    /// If a certain path is configured and cannot be used.
    pub(crate) fn open(configured: &Configured) -> Result<Result<Self, String>, OperatorError> {
        match configured {
            Configured::Off => Ok(Err("off".into())),
            Configured::Path(path) => Self::listen(path).map(Ok).map_err(|error| {
                let trouble =
                    OperatorError::of(format_args!("open the control socket {}", path.display()), &error);
                match error.kind() {
                    io::ErrorKind::AddrInUse => trouble.cause("a running server listens there").remedy(
                        "stop it (`baton ctl stop --control PATH`), or choose another `control_socket`",
                    ),
                    _ => trouble.about_file(path, &error),
                }
            }),
            Configured::Auto => Ok(match usual_directory() {
                Some(directory) => Self::listen_in(&directory)
                    .map_err(|error| format!("off, since {} cannot be used: {error}", directory.display())),
                None => Err("off, since $XDG_RUNTIME_DIR is not set (--control PATH gives one)".into()),
            }),
        }
    }

    fn listen_in(directory: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
        match Self::listen(&directory.join("control.sock")) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Self::listen(&directory.join(format!("control-{}.sock", std::process::id())))
            }
            other => other,
        }
    }

    fn listen(path: &Path) -> io::Result<Self> {
        remove_stale_socket(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // The name takes its mode from the socket, so that it is its owner's alone from its first moment on; a chmod
        // of the name would leave a gap.
        rustix::fs::fchmod(&listener, Mode::RUSR | Mode::WUSR)?;
        rustix::net::bind(&listener, &SocketAddrUnix::new(path)?)?;
        rustix::net::listen(&listener, BACKLOG)?;
        let device_and_inode = device_and_inode(&fs::symlink_metadata(path)?);
        Ok(Self { listener, name: ReplaceableFile::new(path), device_and_inode })
    }

    /// Removes the socket's name, unless it has become another's.
    pub(crate) fn remove(&self) {
        let path = self.name.current();
        if fs::symlink_metadata(&path).is_ok_and(|now| device_and_inode(&now) == self.device_and_inode) {
            // If it cannot be removed, the next server finds that no process accepts from it.
            let _ = fs::remove_file(path);
        }
    }
}

fn device_and_inode(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_its_owner_may_use_it() {
        let dir = tempfile::tempdir().unwrap();
        let socket = ControlSocket::listen(&dir.path().join("control.sock")).unwrap();
        assert_eq!(fs::metadata(socket.name.current()).unwrap().permissions().mode() & 0o777, 0o600);
        socket.remove();
        assert!(!socket.name.current().exists());
    }

    #[test]
    fn a_second_server_listens_beside_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let first = ControlSocket::listen_in(dir.path()).unwrap();
        let second = ControlSocket::listen_in(dir.path()).unwrap();
        assert_eq!(first.name.current(), dir.path().join("control.sock"));
        let listening = listening_beside(&first.name.current());
        let paths: Vec<_> = listening.iter().map(|server| &*server.path).collect();
        assert_eq!(paths, [second.name.current(), first.name.current()]);
        assert!(listening[0].to_string().contains("control-"), "{listening:?}");
        let own = command_of(std::process::id() as i32).expect("this process runs");
        assert!(listening[0].to_string().ends_with(&format!(" ({own})")), "{listening:?}");

        let taken = Configured::Path(first.name.current().into_owned());
        let trouble = ControlSocket::open(&taken).unwrap_err().to_string();
        assert!(trouble.contains("a running server listens there"), "{trouble}");
    }

    #[test]
    fn what_a_dead_server_left_is_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        drop(ControlSocket::listen(&path).unwrap());
        assert!(path.exists(), "a server that was killed leaves its socket");
        let next = ControlSocket::listen(&path).unwrap();
        UnixStream::connect(next.name.current()).unwrap();
    }

    #[test]
    fn a_file_that_is_not_a_socket_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        fs::write(&path, "precious").unwrap();
        assert!(ControlSocket::open(&Configured::Path(path.clone())).is_err());
        assert_eq!(fs::read_to_string(path).unwrap(), "precious");
    }
}
