//! `read`, `recv` and their relatives.

use libc::{c_int, c_void, iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use super::{ErrnoKept, part, parts};
use crate::connection::Outcome;
use crate::{real, table};

/// Receives on `fd`, or calls `libc` if that is not a connection of ours.
///
/// # Safety
/// `parts` may be written.
unsafe fn receive(fd: c_int, parts: &[iovec], flags: c_int, libc: impl FnOnce() -> ssize_t) -> ssize_t {
    let Some(connection) = table::find(fd) else { return libc() };
    let errno = ErrnoKept::new();
    // SAFETY: the caller says so.
    match unsafe { connection.receive(fd, parts, flags) } {
        Outcome::Bytes(bytes) => bytes as ssize_t,
        Outcome::Failed(why) => errno.fail(why),
        outcome => {
            if matches!(outcome, Outcome::Unfamiliar) {
                table::forget(fd);
            }
            drop(errno);
            libc()
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
    unsafe { receive(fd, &part(buffer, bytes), 0, || real::read()(fd, buffer, bytes)) }
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
        receive(fd, &part(buffer, bytes.min(space)), 0, || real::__read_chk()(fd, buffer, bytes, space))
    }
}

/// See `man 2 readv`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn readv(fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the program says that these may be written.
    unsafe { receive(fd, parts(list, count as usize), 0, || real::readv()(fd, list, count)) }
}

/// See `man 2 recv`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recv(fd: c_int, buffer: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t {
    // SAFETY: the program says that `buffer` may be written.
    unsafe { receive(fd, &part(buffer, bytes), flags, || real::recv()(fd, buffer, bytes, flags)) }
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
    let libc = || {
        // SAFETY: the arguments are the program's.
        unsafe { real::__recv_chk()(fd, buffer, bytes, space, flags) }
    };
    // SAFETY: as in `recv`.
    unsafe { receive(fd, &part(buffer, bytes.min(space)), flags, libc) }
}

/// See `man 2 recvfrom`. The other end of a connection has no address to be told here.
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
    let libc = || {
        // SAFETY: the arguments are the program's.
        unsafe { real::recvfrom()(fd, buffer, bytes, flags, address, address_len) }
    };
    // SAFETY: as in `recv`.
    let received = unsafe { receive(fd, &part(buffer, bytes), flags, libc) };
    // SAFETY: the program says that it may be written.
    unsafe { no_address(fd, address_len) };
    received
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
    let libc = || {
        // SAFETY: the arguments are the program's.
        unsafe { real::__recvfrom_chk()(fd, buffer, bytes, space, flags, address, address_len) }
    };
    // SAFETY: as in `recv`.
    let received = unsafe { receive(fd, &part(buffer, bytes.min(space)), flags, libc) };
    // SAFETY: the program says that it may be written.
    unsafe { no_address(fd, address_len) };
    received
}

/// See `man 2 recvmsg`. A program that wants descriptors on a new connection speaks something else than FastCGI.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the arguments are the program's.
    let libc = || unsafe { real::recvmsg()(fd, message, flags) };
    let Some(connection) = table::find(fd) else { return libc() };
    // SAFETY: the program says that it is a message, or nothing.
    let Some(header) = (unsafe { message.as_mut() }) else { return libc() };
    if header.msg_controllen > 0 && !connection.has_begun() {
        table::forget(fd);
        return libc();
    }
    drop(connection);
    let mut was_libc = false;
    // SAFETY: the program says that there are so many, and that they may be written.
    let received = unsafe {
        receive(fd, parts(header.msg_iov, header.msg_iovlen), flags, || {
            was_libc = true;
            libc()
        })
    };
    if !was_libc && received >= 0 {
        header.msg_namelen = 0;
        header.msg_controllen = 0;
        header.msg_flags = 0;
    }
    received
}

/// Says that the other end has no address, if the call was ours: the kernel would say the same.
///
/// # Safety
/// `address_len` may be written, or is null.
unsafe fn no_address(fd: c_int, address_len: *mut socklen_t) {
    if !address_len.is_null() && table::find(fd).is_some() {
        // SAFETY: the caller says so.
        unsafe { *address_len = 0 };
    }
}
