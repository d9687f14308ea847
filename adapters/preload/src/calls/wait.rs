//! `poll`, `select` and their relatives: bytes that were read ahead are ready, although the kernel has none.

use libc::{c_int, fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval};

use crate::ready::ReadyBytes;
use crate::{real, table};

/// The events of a program that waits for input.
const READABLE: i16 = libc::POLLIN | libc::POLLRDNORM;

/// No time at all.
static NOW: timespec = timespec { tv_sec: 0, tv_nsec: 0 };

/// See `man 2 poll`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn poll(list: *mut pollfd, count: nfds_t, timeout_ms: c_int) -> c_int {
    // SAFETY: the arguments are the program's.
    unsafe {
        poll_with(list, count, |is_ready| real::poll()(list, count, if is_ready { 0 } else { timeout_ms }))
    }
}

/// `poll` of programs that were compiled with checks.
///
/// # Safety
/// As `poll`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __poll_chk(
    list: *mut pollfd,
    count: nfds_t,
    timeout_ms: c_int,
    space: size_t,
) -> c_int {
    // SAFETY: the arguments are the program's, and the libc ends the process if there is not enough space.
    unsafe {
        poll_with(list, count, |is_ready| {
            real::__poll_chk()(list, count, if is_ready { 0 } else { timeout_ms }, space)
        })
    }
}

/// See `man 2 ppoll`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ppoll(
    list: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    // SAFETY: the arguments are the program's.
    unsafe {
        poll_with(list, count, |is_ready| {
            real::ppoll()(list, count, if is_ready { &raw const NOW } else { timeout }, signals)
        })
    }
}

/// See `man 2 select`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn select(
    count: c_int,
    readable: *mut fd_set,
    writable: *mut fd_set,
    exceptional: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let mut now = timeval { tv_sec: 0, tv_usec: 0 };
    // SAFETY: the arguments are the program's.
    unsafe {
        select_with(count, readable, |is_ready| {
            let timeout = if is_ready { &raw mut now } else { timeout };
            real::select()(count, readable, writable, exceptional, timeout)
        })
    }
}

/// See `man 2 pselect`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pselect(
    count: c_int,
    readable: *mut fd_set,
    writable: *mut fd_set,
    exceptional: *mut fd_set,
    timeout: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    // SAFETY: the arguments are the program's.
    unsafe {
        select_with(count, readable, |is_ready| {
            let timeout = if is_ready { &raw const NOW } else { timeout };
            real::pselect()(count, readable, writable, exceptional, timeout, signals)
        })
    }
}

/// Asks the kernel, without waiting if something is ready here, and adds that.
///
/// # Safety
/// There are `count` at `list`.
unsafe fn poll_with(list: *mut pollfd, count: nfds_t, libc: impl FnOnce(bool) -> c_int) -> c_int {
    if !ReadyBytes::exist() || list.is_null() || count == 0 {
        return libc(false);
    }
    let is_ready = |polled: &pollfd| {
        polled.events & READABLE != 0
            && table::find(polled.fd).is_some_and(|connection| connection.ready.any())
    };
    // SAFETY: the caller says so.
    let any = unsafe { std::slice::from_raw_parts(list, count as usize) }.iter().any(is_ready);
    let mut found = libc(any);
    if any && found >= 0 {
        // SAFETY: the caller says so, and the kernel has written them.
        for polled in unsafe { std::slice::from_raw_parts_mut(list, count as usize) } {
            if is_ready(polled) {
                found += c_int::from(polled.revents == 0);
                polled.revents |= polled.events & READABLE;
            }
        }
    }
    found
}

/// Asks the kernel by `select`, without waiting if something is ready here, and adds that.
///
/// # Safety
/// `readable` is a set, or null.
unsafe fn select_with(count: c_int, readable: *mut fd_set, libc: impl FnOnce(bool) -> c_int) -> c_int {
    if !ReadyBytes::exist() || readable.is_null() {
        return libc(false);
    }
    let mut ready = [false; libc::FD_SETSIZE];
    let count = usize::try_from(count).unwrap_or(0).min(ready.len());
    for (fd, ready) in (0..).zip(&mut ready[..count]) {
        // SAFETY: the caller says that it is a set, and `fd` is below its size.
        *ready = unsafe { libc::FD_ISSET(fd, readable) }
            && table::find(fd).is_some_and(|connection| connection.ready.any());
    }
    let any = ready.contains(&true);
    let mut found = libc(any);
    if any && found >= 0 {
        for (fd, _) in (0..).zip(ready).filter(|(_, ready)| *ready) {
            // SAFETY: as above.
            unsafe {
                found += c_int::from(!libc::FD_ISSET(fd, readable));
                libc::FD_SET(fd, readable);
            }
        }
    }
    found
}
