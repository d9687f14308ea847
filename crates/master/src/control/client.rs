//! The side of `baton ctl`.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use baton_report::Trouble;

use super::protocol::{Answer, Command, Request};
use super::socket;

/// Longer than a server takes for anything: a reload gives each worker ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers longer than this are not read: none is.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Asks the server that listens at `path`, and returns its answer, as JSON.
///
/// # Errors
/// If there is no such server, if it may not be asked, or if it did not do what was asked.
pub fn request(path: &Path, command: Command) -> Result<String, Trouble> {
    let mut connection = UnixStream::connect(path).map_err(|error| unreachable(path, &error))?;
    let answer = exchange(&mut connection, command).map_err(|error| no_answer(path, &error))?;
    match serde_json::from_slice(&answer) {
        Ok(Answer::Ok(told)) => Ok(told.to_string()),
        Ok(Answer::Error(why)) => Err(Trouble::new(why)),
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

fn unreachable(path: &Path, error: &io::Error) -> Trouble {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            let trouble = Trouble::new(format!("no server listens on {shown}"));
            let others = socket::others_beside(path);
            if others.is_empty() {
                return trouble
                    .cause(
                        "none is running, or its control socket is elsewhere (it says where when it starts)",
                    )
                    .remedy("start one, or name the socket with --control");
            }
            let others: Vec<_> = others.iter().map(|other| other.display().to_string()).collect();
            trouble
                .cause("the server has another socket")
                .remedy(format!("--control with one of {}", others.join(" ")))
        }
        io::ErrorKind::PermissionDenied => {
            Trouble::new(format!("not allowed to speak to the server on {shown}"))
                .cause("another user started it")
                .remedy("ask as that user, or as root (`sudo baton ctl ...`)")
        }
        _ => no_answer(path, error),
    }
}

fn no_answer(path: &Path, error: &io::Error) -> Trouble {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::WouldBlock => Trouble::new(format!("the server on {shown} does not answer"))
            .cause("its master process is stopped, or waits for a disk")
            .remedy("look at it with `ps`"),
        _ => Trouble::new(format!("the server on {shown} gave no answer: {error}")),
    }
}
