//! Where descriptors come from and go: `accept`, `dup`, `close` and their relatives.

use std::os::fd::BorrowedFd;

use libc::{c_int, c_long, c_uint, sockaddr, socklen_t};
use rustix::net::{AddressFamily, SocketType, sockopt};

use super::ErrnoKept;
use crate::{real, table};

/// See `man 2 accept`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn accept(
    listener: c_int,
    address: *mut sockaddr,
    address_len: *mut socklen_t,
) -> c_int {
    // SAFETY: the arguments are the program's.
    let fd = unsafe { real::accept()(listener, address, address_len) };
    note_accepted(listener, fd, 0);
    fd
}

/// See `man 2 accept4`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn accept4(
    listener: c_int,
    address: *mut sockaddr,
    address_len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the arguments are the program's.
    let fd = unsafe { real::accept4()(listener, address, address_len, flags) };
    note_accepted(listener, fd, flags);
    fd
}

/// Only Unix stream sockets can bring offers.
fn note_accepted(listener: c_int, fd: c_int, flags: c_int) {
    if fd < 0 {
        return;
    }
    let _errno = ErrnoKept::new();
    table::forget(fd);
    // SAFETY: it has just been accepted.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    if flags & libc::SOCK_NONBLOCK == 0
        && sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(socket) == Ok(SocketType::STREAM)
    {
        table::adopt(fd, listener);
    }
}

/// See `man 2 close`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn close(fd: c_int) -> c_int {
    if table::find(fd).is_some() && table::is_of_this_process() {
        let _errno = ErrnoKept::new();
        // Before it is closed: afterwards another thread may be given the number.
        table::forget(fd);
    } else if table::is_listener(fd) && table::is_of_this_process() {
        let _errno = ErrnoKept::new();
        table::leave();
    }
    // SAFETY: the program no longer uses it.
    unsafe { real::close()(fd) }
}

/// See `man 2 close_range`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if flags as c_uint & libc::CLOSE_RANGE_CLOEXEC == 0 {
        note_closed(first, last);
    }
    // SAFETY: the program no longer uses them.
    unsafe { real::close_range()(first, last, flags) }
}

/// See `man 3 closefrom`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn closefrom(first: c_int) {
    note_closed(first.max(0) as c_uint, c_uint::MAX);
    // SAFETY: the program no longer uses them.
    unsafe { real::closefrom()(first) }
}

fn note_closed(first: c_uint, last: c_uint) {
    if table::is_of_this_process() {
        let _errno = ErrnoKept::new();
        let limit = |fd: c_uint| c_int::try_from(fd).unwrap_or(c_int::MAX);
        table::forget_range(limit(first), limit(last));
    }
}

/// See `man 2 dup`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: it takes no memory.
    let copy = unsafe { real::dup()(fd) };
    note_copied(fd, copy);
    copy
}

/// See `man 2 dup2`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn dup2(fd: c_int, copy: c_int) -> c_int {
    // SAFETY: it takes no memory; the program no longer uses `copy`.
    let result = unsafe { real::dup2()(fd, copy) };
    note_copied(fd, result);
    result
}

/// See `man 2 dup3`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn dup3(fd: c_int, copy: c_int, flags: c_int) -> c_int {
    // SAFETY: as in `dup2`.
    let result = unsafe { real::dup3()(fd, copy, flags) };
    note_copied(fd, result);
    result
}

/// See `man 2 fcntl`. It has a variable number of arguments, at most one: that register or slot is passed on, and
/// ignored if there is none.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fcntl(fd: c_int, command: c_int, argument: c_long) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::fcntl()(fd, command, argument) };
    note_duplicated(fd, command, result);
    result
}

/// `fcntl` of programs that were compiled for large files.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fcntl64(fd: c_int, command: c_int, argument: c_long) -> c_int {
    // SAFETY: the arguments are the program's.
    let result = unsafe { real::fcntl64()(fd, command, argument) };
    note_duplicated(fd, command, result);
    result
}

fn note_duplicated(fd: c_int, command: c_int, result: c_int) {
    if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        note_copied(fd, result);
    }
}

fn note_copied(fd: c_int, copy: c_int) {
    let concerns_us = copy >= 0 && fd != copy && (table::find(fd).is_some() || table::find(copy).is_some());
    if concerns_us && table::is_of_this_process() {
        let _errno = ErrnoKept::new();
        table::share(fd, copy);
    }
}
