//! Sockets passed by the service manager: sd_listen_fds(3).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::check;

/// The first descriptor that is passed; the others follow it.
const FIRST: RawFd = 3;

/// The descriptors that `LISTEN_FDS` counts, close-on-exec, if `LISTEN_PID` says that they are meant for this
/// process. The second call and all later ones give none: descriptors have one owner.
///
/// # Errors
/// `InvalidData` if `LISTEN_FDS` is not a number; `EBADF` if it counts descriptors that are not open.
pub fn inherited() -> io::Result<Vec<OwnedFd>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let for_us = std::env::var("LISTEN_PID").is_ok_and(|pid| pid == std::process::id().to_string());
    if !for_us || TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let count = std::env::var("LISTEN_FDS").unwrap_or_default();
    let count: RawFd =
        count.parse().ok().filter(|count| (0..=COUNT_MAX).contains(count)).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("LISTEN_FDS={count:?} is not a number of sockets"),
            )
        })?;
    (FIRST..FIRST + count).map(own).collect()
}

/// More than anyone passes, and few enough to add up without overflow.
const COUNT_MAX: RawFd = 4096;

fn own(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_SETFD touches no memory; it fails if the descriptor is not open.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: the descriptor is open, and LISTEN_PID says that it was passed to this process for it to own; the
    // caller makes sure that it is taken once.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
