//! `write`, `send` and their relatives, and `shutdown`.

use std::os::fd::BorrowedFd;

use libc::{c_int, c_void, iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use super::{ErrnoKept, part, parts};
use crate::connection::Outcome;
use crate::{real, table};

/// Sends on `fd`, or calls `libc` if there is no answer that it could belong to.
///
/// # Safety
/// `parts` may be read.
unsafe fn send_parts(fd: c_int, parts: &[iovec], libc: impl FnOnce() -> ssize_t) -> ssize_t {
    let Some(connection) = table::find(fd) else { return libc() };
    if !connection.has_begun() {
        // A FastCGI application does not speak first.
        table::forget(fd);
        return libc();
    }
    let errno = ErrnoKept::new();
    // SAFETY: the caller says so.
    match unsafe { connection.send(fd, parts) } {
        Outcome::Bytes(bytes) => bytes as ssize_t,
        Outcome::Failed(why) => errno.fail(why),
        Outcome::NotOurs | Outcome::Unfamiliar => {
            drop(errno);
            let sent = libc();
            if let Ok(bytes @ 1..) = usize::try_from(sent) {
                // SAFETY: the caller says so.
                unsafe { connection.note_sent(parts, bytes) };
            }
            sent
        }
    }
}

/// See `man 2 write`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn write(fd: c_int, buffer: *const c_void, bytes: size_t) -> ssize_t {
    // SAFETY: the program says that `buffer` may be read.
    unsafe { send_parts(fd, &part(buffer, bytes), || real::write()(fd, buffer, bytes)) }
}

/// See `man 2 writev`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn writev(fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the program says that these may be read.
    unsafe { send_parts(fd, parts(list, count as usize), || real::writev()(fd, list, count)) }
}

/// See `man 2 send`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn send(
    fd: c_int,
    buffer: *const c_void,
    bytes: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the program says that `buffer` may be read.
    unsafe { send_parts(fd, &part(buffer, bytes), || real::send()(fd, buffer, bytes, flags)) }
}

/// See `man 2 sendto`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendto(
    fd: c_int,
    buffer: *const c_void,
    bytes: size_t,
    flags: c_int,
    address: *const sockaddr,
    address_len: socklen_t,
) -> ssize_t {
    let libc = || {
        // SAFETY: the arguments are the program's.
        unsafe { real::sendto()(fd, buffer, bytes, flags, address, address_len) }
    };
    // SAFETY: the program says that `buffer` may be read.
    unsafe { send_parts(fd, &part(buffer, bytes), libc) }
}

/// See `man 2 sendmsg`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the arguments are the program's.
    let libc = || unsafe { real::sendmsg()(fd, message, flags) };
    // SAFETY: the program says that it is a message, or nothing.
    let Some(header) = (unsafe { message.as_ref() }) else { return libc() };
    // SAFETY: the program says that there are so many, and that they may be read.
    unsafe { send_parts(fd, parts(header.msg_iov, header.msg_iovlen), libc) }
}

/// See `man 2 shutdown`. A program that ends its output leaves its answer incomplete.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    if how != libc::SHUT_RD
        && let Some(connection) = table::find(fd)
    {
        let _errno = ErrnoKept::new();
        // SAFETY: the program is calling with it.
        if connection.end_output(unsafe { BorrowedFd::borrow_raw(fd) }) {
            return 0;
        }
    }
    // SAFETY: it takes no memory.
    unsafe { real::shutdown()(fd, how) }
}
