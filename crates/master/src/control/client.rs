//! The side of `baton ctl`.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_report::OperatorError;

use super::protocol::{Answer, Command, Request};
use super::socket;

/// Longer than a server takes for anything: a reload gives each worker ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers longer than this are not read: none is.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// The control socket of the only server that this user runs, or that of the system's; the usual path if there is none.
///
/// # Errors
/// Several run: which one is meant, the user has to say.
pub fn find() -> Result<PathBuf, OperatorError> {
    only_one(&socket::usual_path())
}

fn only_one(usual: &Path) -> Result<PathBuf, OperatorError> {
    let mut servers = socket::listening_beside(usual);
    match servers.len() {
        0 => Ok(usual.to_owned()),
        1 => Ok(servers.remove(0).path),
        _ => {
            let list: Vec<_> = servers.iter().map(|server| format!("\n  --control {server}")).collect();
            Err(OperatorError::new("several servers run: which one is meant?")
                .remedy(format!("name one (or set BATON_CONTROL):{}", list.concat())))
        }
    }
}

/// Asks the server that listens at `path`, and returns its answer, as JSON.
///
/// # Errors
/// If there is no such server, if it may not be asked, or if it did not do what was asked.
pub fn request(path: &Path, command: Command) -> Result<String, OperatorError> {
    let mut connection = UnixStream::connect(path).map_err(|error| unreachable(path, &error))?;
    let answer = exchange(&mut connection, command).map_err(|error| no_answer(path, &error))?;
    match serde_json::from_slice(&answer) {
        Ok(Answer::Ok(told)) => Ok(told.to_string()),
        Ok(Answer::Error(why)) => Err(OperatorError::new(why)),
        Err(error) => Err(no_answer(path, &error.into())),
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

fn unreachable(path: &Path, error: &io::Error) -> OperatorError {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            let trouble = OperatorError::new(format!("no server listens on {shown}"));
            let others = socket::listening_beside(path);
            if others.is_empty() {
                return trouble
                    .cause(
                        "none is running, or its control socket is elsewhere (it says where when it starts)",
                    )
                    .remedy("start one, or name the socket with --control");
            }
            let others: Vec<_> = others.iter().map(|other| format!("\n  --control {other}")).collect();
            trouble.cause("the server has another socket").remedy(format!("try{}", others.concat()))
        }
        io::ErrorKind::PermissionDenied => {
            OperatorError::new(format!("not allowed to speak to the server on {shown}"))
                .cause("another user started it")
                .remedy("ask as that user, or as root (`sudo baton ctl ...`)")
        }
        _ => no_answer(path, error),
    }
}

fn no_answer(path: &Path, error: &io::Error) -> OperatorError {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::WouldBlock => OperatorError::new(format!("the server on {shown} does not answer"))
            .cause("its master process is stopped, or waits for a disk")
            .remedy("look at it with `ps`"),
        _ => OperatorError::new(format!("the server on {shown} gave no answer: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Goal: no command reaches a server that was not meant. Method: none, one and two servers in one folder.
    #[test]
    fn the_only_server_is_found_and_several_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let usual = path("control.sock");
        assert_eq!(only_one(&usual).unwrap(), usual);
        // One that was killed leaves its socket behind.
        drop(UnixListener::bind(&usual).unwrap());
        let second = path("control-7.sock");
        let _second = UnixListener::bind(&second).unwrap();
        assert_eq!(only_one(&usual).unwrap(), second);
        let _third = UnixListener::bind(path("control-8.sock")).unwrap();
        let trouble = only_one(&usual).unwrap_err().to_string();
        for name in ["control-7.sock", "control-8.sock"] {
            assert!(trouble.contains(&format!("--control {}", path(name).display())), "{trouble}");
        }
    }
}
