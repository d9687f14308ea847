//! The side of `baton ctl`.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::protocol::{Answer, Command, Request};
use super::socket;

/// Longer than a server takes for anything: a reload gives each worker ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers longer than this are not read: none is.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Asks the server that listens at `path`, and returns what it tells, as JSON.
///
/// # Errors
/// If there is no such server, if it may not be asked, or if it did not do what was asked.
pub fn request(path: &Path, command: Command) -> Result<String, ControlError> {
    let mut connection = UnixStream::connect(path).map_err(|error| ControlError::unreachable(path, error))?;
    let answer = exchange(&mut connection, command)
        .map_err(|error| ControlError::NoAnswer { path: path.into(), error })?;
    match serde_json::from_slice(&answer) {
        Ok(Answer::Ok(told)) => Ok(told.to_string()),
        Ok(Answer::Error(why)) => Err(ControlError::Refused(why)),
        Err(error) => Err(ControlError::NoAnswer { path: path.into(), error: error.into() }),
    }
}

fn exchange(connection: &mut UnixStream, command: Command) -> io::Result<Vec<u8>> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(&Request { command })?;
    line.push(b'\n');
    connection.write_all(&line)?;
    let mut answer = Vec::new();
    connection.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    match answer.is_empty() {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(answer),
    }
}

/// Why a server did not do what it was asked.
#[derive(Debug)]
pub enum ControlError {
    /// No server listens at the path.
    NoServer {
        /// Where one was looked for.
        path: PathBuf,
        /// Sockets of other servers in the same directory.
        others: Vec<PathBuf>,
    },
    /// The socket belongs to another user.
    Denied(PathBuf),
    /// It was reached and did not answer as a server does.
    NoAnswer {
        /// Where it listens.
        path: PathBuf,
        /// What came instead of an answer.
        error: io::Error,
    },
    /// It answered that it would not or could not.
    Refused(String),
}

impl ControlError {
    fn unreachable(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                Self::NoServer { path: path.into(), others: socket::others_beside(path) }
            }
            io::ErrorKind::PermissionDenied => Self::Denied(path.into()),
            _ => Self::NoAnswer { path: path.into(), error },
        }
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServer { path, others } => {
                write!(f, "no server listens on {}", path.display())?;
                match others.as_slice() {
                    [] => f.write_str(
                        "\n  likely cause: none is running, or its control socket is elsewhere (it says where when \
                         it starts)\n  remedy: start one, or name the socket with --control",
                    ),
                    others => {
                        f.write_str("\n  likely cause: the server has another socket\n  remedy: --control with one of")?;
                        others.iter().try_for_each(|other| write!(f, " {}", other.display()))
                    }
                }
            }
            Self::Denied(path) => write!(
                f,
                "not allowed to speak to the server on {}\n  likely cause: another user started it\n  remedy: ask as \
                 that user, or as root (`sudo baton ctl ...`)",
                path.display()
            ),
            Self::NoAnswer { path, error } => match error.kind() {
                io::ErrorKind::WouldBlock => write!(
                    f,
                    "the server on {} does not answer\n  likely cause: its master process is stopped, or waits for a \
                     disk\n  remedy: look at it with `ps`",
                    path.display()
                ),
                _ => write!(f, "the server on {} gave no answer: {error}", path.display()),
            },
            Self::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ControlError {}
