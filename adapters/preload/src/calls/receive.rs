//! `read`, `recv` and their relatives.

use libc::{c_int, c_void, iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use super::{ErrnoKept, part, parts};
use crate::connection::Outcome;
use crate::{real, table};

/// Receives on `fd`. None: that is the libc's to do.
///
/// # Safety
/// `parts` may be written.
unsafe fn receive(fd: c_int, parts: &[iovec], flags: c_int) -> Option<ssize_t> {
    let connection = table::find(fd)?;
    let errno = ErrnoKept::new();
    // SAFETY: the caller says so.
    match unsafe { connection.receive(fd, parts, flags) } {
        Outcome::Bytes(bytes) => Some(bytes as ssize_t),
        Outcome::Failed(why) => Some(errno.fail(why)),
        Outcome::NotOurs => None,
        Outcome::Unfamiliar => {
            table::forget(fd);
            None
        }
    }
}

/// See `man 2 read`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, bytes: size_t) -> ssize_t {
    // SAFETY: the program says that `buffer` may be written.
    unsafe { receive(fd, &part(buffer, bytes), 0).unwrap_or_else(|| real::read()(fd, buffer, bytes)) }
}

/// `read` of programs that were compiled with checks; see the Linux Standard Base.
///
/// # Safety
/// As `read`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __read_chk(
    fd: c_int,
    buffer: *mut c_void,
    bytes: size_t,
    space: size_t,
) -> ssize_t {
    // SAFETY: as in `read`, and the libc ends the process if there is not enough space.
    unsafe {
        receive(fd, &part(buffer, bytes.min(space)), 0)
            .unwrap_or_else(|| real::__read_chk()(fd, buffer, bytes, space))
    }
}

/// See `man 2 readv`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn readv(fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the program says that these may be written.
    unsafe { receive(fd, parts(list, count as usize), 0).unwrap_or_else(|| real::readv()(fd, list, count)) }
}

/// See `man 2 recv`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recv(fd: c_int, buffer: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t {
    // SAFETY: the program says that `buffer` may be written.
    unsafe {
        receive(fd, &part(buffer, bytes), flags).unwrap_or_else(|| real::recv()(fd, buffer, bytes, flags))
    }
}

/// `recv` of programs that were compiled with checks.
///
/// # Safety
/// As `recv`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    bytes: size_t,
    space: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as in `recv`.
    unsafe {
        receive(fd, &part(buffer, bytes.min(space)), flags)
            .unwrap_or_else(|| real::__recv_chk()(fd, buffer, bytes, space, flags))
    }
}

/// See `man 2 recvfrom`. The peer has no address to report.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    bytes: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the program says that these may be written.
    unsafe {
        match receive(fd, &part(buffer, bytes), flags) {
            Some(received) => without_address(received, address_len),
            None => real::recvfrom()(fd, buffer, bytes, flags, address, address_len),
        }
    }
}

/// `recvfrom` of programs that were compiled with checks.
///
/// # Safety
/// As `recvfrom`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    bytes: size_t,
    space: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: as in `recvfrom`.
    unsafe {
        match receive(fd, &part(buffer, bytes.min(space)), flags) {
            Some(received) => without_address(received, address_len),
            None => real::__recvfrom_chk()(fd, buffer, bytes, space, flags, address, address_len),
        }
    }
}

/// See `man 2 recvmsg`. A program that wants descriptors on a new connection speaks something else than FastCGI.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the program says that it is a message, or nothing.
    let header = unsafe { message.as_mut() };
    let received = header.and_then(|header| {
        if header.msg_controllen > 0 && !table::find(fd)?.has_begun() {
            table::forget(fd);
            return None;
        }
        // SAFETY: the program says that there are so many, and that they may be written.
        let received = unsafe { receive(fd, parts(header.msg_iov, header.msg_iovlen), flags) };
        if received.is_some_and(|received| received >= 0) {
            header.msg_namelen = 0;
            header.msg_controllen = 0;
            header.msg_flags = 0;
        }
        received
    });
    // SAFETY: the arguments are the program's.
    received.unwrap_or_else(|| unsafe { real::recvmsg()(fd, message, flags) })
}

/// What `recvfrom` returns, with the length of the other end's address: the kernel, too, says that it has none.
///
/// # Safety
/// `address_len` may be written, or is null.
unsafe fn without_address(received: ssize_t, address_len: *mut socklen_t) -> ssize_t {
    // SAFETY: the caller says so.
    if let Some(address_len) = unsafe { address_len.as_mut() }.filter(|_| received >= 0) {
        *address_len = 0;
    }
    received
}
