//! `OS_AsyncRead` and the like: one read and one write at a time for each descriptor, with a callback, run by
//! `OS_DoIo`. `cgi-fcgi` works like this.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::errno::errno;

/// Called when an operation is done, with the result of `read` or `write`.
type Callback = unsafe extern "C" fn(*mut c_void, c_int);

/// An operation that waits for its descriptor.
struct Operation {
    fd: c_int,
    writes: bool,
    buffer: *mut c_void,
    len: usize,
    callback: Callback,
    data: *mut c_void,
}

// SAFETY: only the program's callback interprets the pointers; the library passes them on.
unsafe impl Send for Operation {}

/// In the order in which the original looks at them: by descriptor, reading before writing.
static WAITING: Mutex<Vec<Operation>> = Mutex::new(Vec::new());

fn waiting() -> MutexGuard<'static, Vec<Operation>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cancels all operations.
pub(crate) fn forget_all() {
    waiting().clear();
}

/// Cancels the operations of a descriptor.
pub(crate) fn forget(fd: c_int) {
    waiting().retain(|operation| operation.fd != fd);
}

/// Cancels reading from a descriptor.
pub(crate) fn forget_reading(fd: c_int) {
    waiting().retain(|operation| operation.fd != fd || operation.writes);
}

/// Adds an operation, or replaces one of the same kind.
fn add(operation: Operation) -> c_int {
    let mut waiting = waiting();
    let key = |operation: &Operation| (operation.fd, operation.writes);
    match waiting.binary_search_by_key(&key(&operation), key) {
        Ok(at) => waiting[at] = operation,
        Err(at) => waiting.insert(at, operation),
    }
    0
}

/// Reads from standard input when there is something.
#[unsafe(no_mangle)]
unsafe extern "C" fn OS_AsyncReadStdin(
    buffer: *mut c_void,
    len: c_int,
    callback: Callback,
    data: *mut c_void,
) -> c_int {
    // SAFETY: of the program.
    unsafe { OS_AsyncRead(libc::STDIN_FILENO, 0, buffer, len, callback, data) }
}

/// Reads when there is something.
#[unsafe(no_mangle)]
unsafe extern "C" fn OS_AsyncRead(
    fd: c_int,
    _offset: c_int,
    buffer: *mut c_void,
    len: c_int,
    callback: Callback,
    data: *mut c_void,
) -> c_int {
    let len = usize::try_from(len).unwrap_or(0);
    add(Operation { fd, writes: false, buffer, len, callback, data })
}

/// Writes when there is room.
#[unsafe(no_mangle)]
unsafe extern "C" fn OS_AsyncWrite(
    fd: c_int,
    _offset: c_int,
    buffer: *mut c_void,
    len: c_int,
    callback: Callback,
    data: *mut c_void,
) -> c_int {
    let len = usize::try_from(len).unwrap_or(0);
    add(Operation { fd, writes: true, buffer, len, callback, data })
}

/// Waits until an operation can be done, for as long as `timeout` says, and does those that can. 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn OS_DoIo(timeout: *const libc::timeval) -> c_int {
    let mut polled: Vec<libc::pollfd> = waiting()
        .iter()
        .map(|operation| libc::pollfd {
            fd: operation.fd,
            events: if operation.writes { libc::POLLOUT } else { libc::POLLIN },
            revents: 0,
        })
        .collect();
    // SAFETY: the program passes null or a valid time; the array has this many entries.
    unsafe {
        let timeout_ms = timeout.as_ref().map_or(-1, |time| {
            let ms = time.tv_sec.saturating_mul(1000).saturating_add(time.tv_usec / 1000);
            c_int::try_from(ms).unwrap_or(c_int::MAX)
        });
        if libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout_ms) < 0 {
            std::process::exit(errno());
        }
    }
    for ready in polled.iter().filter(|polled| polled.revents != 0) {
        do_one(ready.fd, ready.events == libc::POLLOUT);
    }
    0
}

/// Does an operation, unless it has been cancelled by the callback of another.
fn do_one(fd: c_int, writes: bool) {
    let operation = {
        let mut waiting = waiting();
        let at = waiting.iter().position(|operation| operation.fd == fd && operation.writes == writes);
        at.map(|at| waiting.remove(at))
    };
    let Some(Operation { buffer, len, callback, data, .. }) = operation else { return };
    // SAFETY: the program provides the buffer until its callback is called. The table is not locked meanwhile: the
    // callback may begin another operation.
    unsafe {
        let result = if writes { libc::write(fd, buffer, len) } else { libc::read(fd, buffer, len) };
        callback(data, result as c_int);
    }
}
