//! Passes a descriptor to the program that replaces this one, by its environment, like a service manager's
//! `LISTEN_FDS`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::check;

/// Passes `descriptor` to the program that `command` starts; the environment variable `name` tells its number. The
/// program starts with no signal blocked.
pub fn pass_on(command: &mut Command, name: &str, descriptor: OwnedFd) {
    command.env(name, format!("{}:{}", std::process::id(), descriptor.as_raw_fd()));
    let make_ready = move || {
        // SAFETY: F_SETFD touches no memory; the descriptor is the closure's own, and open as long as the closure is.
        check(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) })?;
        crate::signals::unblock_all()
    };
    // SAFETY: the closure runs in the child between fork and exec. It makes two system calls and neither allocates
    // nor takes a lock.
    unsafe { command.pre_exec(make_ready) };
}

/// Takes the descriptor that the parent of this process has passed on under `name`; returns the parent's id, too. The
/// descriptor is close-on-exec from now on. `None` if there is none, if the variable is meant for another process, such as
/// the parent, or if the descriptor has been taken before.
///
/// # Errors
/// `InvalidData` if the variable is not `PID:FD`; `EBADF` if that descriptor is not open.
pub fn take(name: &str) -> io::Result<Option<(u32, OwnedFd)>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    let (pid, fd) = parse(&text).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{name}={text:?} is not a process and a descriptor"),
        )
    })?;
    if pid != std::os::unix::process::parent_id() || TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(None);
    }
    // SAFETY: F_SETFD touches no memory; it fails if the descriptor is not open.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: the descriptor is open; the parent says that it is for this process, and it is taken once.
    Ok(Some((pid, unsafe { OwnedFd::from_raw_fd(fd) })))
}

fn parse(text: &str) -> Option<(u32, RawFd)> {
    let (pid, fd) = text.split_once(':')?;
    // The first three are standard input, output and error.
    Some((pid.parse().ok()?, fd.parse().ok().filter(|&fd| fd > 2)?))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// A shell finds the descriptor by its name in the environment, and writes to it.
    #[test]
    fn a_program_finds_the_descriptor() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "eval \"echo ${LEFT%:*} >&${LEFT#*:}\""]);
        pass_on(&mut command, "LEFT", theirs.into());
        assert!(command.status().unwrap().success());
        drop(command);
        let mut told = String::new();
        ours.read_to_string(&mut told).unwrap();
        assert_eq!(told, format!("{}\n", std::process::id()));
    }

    #[test]
    fn only_a_process_and_a_descriptor_are_taken() {
        assert_eq!(parse("17:5"), Some((17, 5)));
        for text in ["", "17", "17:", ":5", "17:2", "17:-1", "x:5"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert!(take("BATON_SYS_TEST_NOT_SET").unwrap().is_none());
    }
}
