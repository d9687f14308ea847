//! Requests: accepted, finished, and the one that programs without threads have.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use baton_responder::{Link, ReadError, Role};
use rustix::io::Errno;

use crate::abi::{FCGI_FAIL_ACCEPT_ON_INTR, FCGI_LISTENSOCK_FILENO, Stream};
use crate::exchange::{Exchange, Kind, behind, kind_of};
use crate::{os, shutdown};

/// `FCGX_Request`, which the program allocates.
#[repr(C)]
pub(crate) struct Request {
    /// The id of the request.
    pub(crate) request_id: c_int,
    /// `FCGI_RESPONDER` and so on.
    pub(crate) role: c_int,
    /// The body of the request.
    pub(crate) input: *mut Stream,
    /// The response.
    pub(crate) output: *mut Stream,
    /// The error log.
    pub(crate) errors: *mut Stream,
    /// The variables, `name=value`, terminated by null.
    pub(crate) envp: *mut *mut c_char,
    /// `paramsPtr`, which is for the library: here it points to the [`Exchange`] of the connection.
    pub(crate) exchange: *mut Exchange,
    /// The connection, or negative.
    pub(crate) ipc_fd: c_int,
    /// Whether a request has begun on it.
    pub(crate) is_begin_processed: c_int,
    /// Whether the connection stays open afterwards.
    pub(crate) keep_connection: c_int,
    /// The exit status for the server.
    pub(crate) app_status: c_int,
    /// How many of the two output streams are open.
    pub(crate) writers: c_int,
    /// `FCGI_FAIL_ACCEPT_ON_INTR` or 0.
    pub(crate) flags: c_int,
    /// Where connections are accepted.
    pub(crate) listen_sock: c_int,
    /// Whether another process uses the connection: it is closed here without telling the server.
    pub(crate) detached: c_int,
}

/// The layout by the distribution's headers on 64-bit machines.
const _: () = assert!(size_of::<Request>() == 80 && std::mem::offset_of!(Request, ipc_fd) == 48);

/// `FCGX_Accept_r` before `FCGX_Init`.
const NOT_INITIALIZED: c_int = -9998;

/// Set once by `FCGX_Init`: the addresses of `FCGI_WEB_SERVER_ADDRS`, if there are any.
static INITIALIZED: OnceLock<Option<CString>> = OnceLock::new();

/// The request of `FCGX_Accept` and `FCGX_Finish`, which are for programs with one thread.
struct TheRequest(UnsafeCell<Request>);

// SAFETY: the functions that use it are documented not to be called by two threads at once.
unsafe impl Sync for TheRequest {}

static THE_REQUEST: TheRequest = TheRequest(UnsafeCell::new(request(FCGI_LISTENSOCK_FILENO, 0)));

/// Prepares the library. 0, or an error.
#[unsafe(no_mangle)]
extern "C" fn FCGX_Init() -> c_int {
    INITIALIZED.get_or_init(|| {
        shutdown::install_handlers();
        std::env::var_os("FCGI_WEB_SERVER_ADDRS").and_then(|list| {
            use std::os::unix::ffi::OsStringExt;
            CString::new(list.into_vec()).ok()
        })
    });
    0
}

/// -1 until it has been looked at, then 0 or 1.
static IS_CGI: AtomicI32 = AtomicI32::new(-1);

/// Whether the program was started as CGI: standard input is no listening socket.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn FCGX_IsCGI() -> c_int {
    if IS_CGI.load(Ordering::Relaxed) < 0 {
        FCGX_Init();
        IS_CGI.store(c_int::from(os::OS_IsFcgi(FCGI_LISTENSOCK_FILENO) == 0), Ordering::Relaxed);
    }
    IS_CGI.load(Ordering::Relaxed)
}

/// Opens a listening socket at a path or at `host:port`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGX_OpenSocket(path: *const c_char, backlog: c_int) -> c_int {
    // SAFETY: the program passes a string.
    let socket = unsafe { os::OS_CreateLocalIpcFd(path, backlog) };
    if socket == FCGI_LISTENSOCK_FILENO {
        IS_CGI.store(-1, Ordering::Relaxed);
    }
    socket
}

const fn request(listen_sock: c_int, flags: c_int) -> Request {
    Request {
        request_id: 0,
        role: 0,
        input: ptr::null_mut(),
        output: ptr::null_mut(),
        errors: ptr::null_mut(),
        envp: ptr::null_mut(),
        exchange: ptr::null_mut(),
        ipc_fd: -1,
        is_begin_processed: 0,
        keep_connection: 0,
        app_status: 0,
        writers: 0,
        flags,
        listen_sock,
        detached: 0,
    }
}

/// Makes a request of the memory at `request`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGX_InitRequest(its: *mut Request, sock: c_int, flags: c_int) -> c_int {
    // SAFETY: the program provides the memory, whose content has no meaning yet.
    unsafe { its.write(request(sock, flags)) };
    0
}

/// Finishes the request at hand and waits for the next. 0, or a negative error.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGX_Accept_r(its: *mut Request) -> c_int {
    let Some(servers) = INITIALIZED.get() else { return NOT_INITIALIZED };
    // SAFETY: the program passes a request that was initialised, to one thread at a time.
    unsafe {
        FCGX_Finish_r(its);
        let its = &mut *its;
        loop {
            if its.ipc_fd < 0 {
                let fails_on_signal = its.flags & FCGI_FAIL_ACCEPT_ON_INTR != 0;
                match os::accept(its.listen_sock, fails_on_signal, servers.as_deref()) {
                    Ok((socket, is_local)) => {
                        its.ipc_fd = socket.as_raw_fd();
                        let exchange = Box::into_raw(Exchange::new(socket));
                        its.exchange = exchange;
                        if is_local && !os::speaks((*exchange).connection()) {
                            free(its, true);
                            continue;
                        }
                    }
                    Err(errno) => return -errno.raw_os_error(),
                }
            }
            if next_request(its) {
                return 0;
            }
            free(its, true);
        }
    }
}

/// Waits for a request on the connection. Returns false if the connection must be closed.
///
/// # Safety
/// The descriptor of the request is open and the request's own.
unsafe fn next_request(its: &mut Request) -> bool {
    // SAFETY: `exchange` is null or points to an exchange that belongs to the request alone.
    unsafe {
        if its.exchange.is_null() || !(*its.exchange).is_of(its.ipc_fd) {
            // The program has accepted the connection itself.
            its.exchange = Box::into_raw(Exchange::new(OwnedFd::from_raw_fd(its.ipc_fd)));
        }
        let exchange = &mut *its.exchange;
        let begun = loop {
            match exchange.connection().next_request() {
                Ok(Some(begun)) => break begun,
                // A request may have been sent just before the signal, and is answered. None follows it.
                Err(ReadError::Failed(Errno::INTR)) if shutdown::is_pending() => {
                    exchange.connection().stop_receiving();
                }
                Err(ReadError::Failed(Errno::INTR)) => {}
                Ok(None) | Err(_) => return false,
            }
        };
        exchange.begin(its.exchange, begun.role);
        its.request_id = begun.id.into();
        its.role = match begun.role {
            Role::Responder => 1,
            Role::Authorizer => 2,
            Role::Filter => 3,
        };
        its.keep_connection = begun.keep_connection.into();
        its.is_begin_processed = 1;
        its.app_status = 0;
        its.writers = 2;
        [its.input, its.output, its.errors] = exchange.streams();
        its.envp = exchange.envp();
    }
    true
}

/// Finishes the request at hand, if there is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGX_Finish_r(its: *mut Request) {
    // SAFETY: the program passes null, or a request that was initialised.
    unsafe {
        let Some(its) = its.as_mut() else { return };
        let mut reusable = its.keep_connection != 0;
        if !its.input.is_null() && !its.exchange.is_null() {
            reusable &= (*its.exchange).finish();
            its.writers = 0;
        }
        free(its, !reusable);
    }
}

/// Forgets the request at hand, and closes its connection if `close` is true.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGX_Free(its: *mut Request, close: c_int) {
    // SAFETY: as above.
    if let Some(its) = unsafe { its.as_mut() } {
        // SAFETY: as above.
        unsafe { free(its, close != 0) };
    }
}

/// # Safety
/// The request was initialised; its streams are no longer used.
unsafe fn free(its: &mut Request, close: bool) {
    its.input = ptr::null_mut();
    its.output = ptr::null_mut();
    its.errors = ptr::null_mut();
    its.envp = ptr::null_mut();
    its.is_begin_processed = 0;
    if !close {
        return;
    }
    let exchange = std::mem::replace(&mut its.exchange, ptr::null_mut());
    if !exchange.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and the request has just forgotten it.
        let mut exchange = unsafe { Box::from_raw(exchange) };
        if its.detached == 0 {
            os::end_of_connection(exchange.connection().socket());
        }
        exchange.close();
    } else if its.ipc_fd >= 0 {
        os::OS_IpcClose(its.ipc_fd, c_int::from(its.detached == 0));
    }
    its.ipc_fd = -1;
    its.detached = 0;
}

/// The next request for programs with one thread: its streams and variables.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_Accept(
    input: *mut *mut Stream,
    output: *mut *mut Stream,
    errors: *mut *mut Stream,
    envp: *mut *mut *mut c_char,
) -> c_int {
    FCGX_Init();
    // SAFETY: the program has one thread that uses this function, and passes places for the results.
    unsafe {
        let its = THE_REQUEST.0.get();
        let result = FCGX_Accept_r(its);
        *input = (*its).input;
        *output = (*its).output;
        *errors = (*its).errors;
        *envp = (*its).envp;
        result
    }
}

/// Finishes that request.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn FCGX_Finish() {
    // SAFETY: as in `FCGX_Accept`.
    unsafe { FCGX_Finish_r(THE_REQUEST.0.get()) };
}

/// Sets the request's exit status for the server.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_SetExitStatus(status: c_int, stream: *mut Stream) {
    // SAFETY: the program passes a stream of this library.
    unsafe {
        if kind_of(stream) != Kind::Other {
            behind(stream).set_app_status(status);
        }
    }
}

/// The value of a variable, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGX_GetParam(name: *const c_char, envp: *mut *mut c_char) -> *mut c_char {
    // SAFETY: the program passes a string and an array of strings, terminated by null.
    unsafe {
        let name = CStr::from_ptr(name).to_bytes();
        if name.is_empty() || envp.is_null() {
            return ptr::null_mut();
        }
        let mut at = envp;
        while !(*at).is_null() {
            let variable = *at;
            // Comparing the first letter saves most calls.
            if *variable == name[0] as c_char
                && libc::strncmp(variable, name.as_ptr().cast(), name.len()) == 0
                && *variable.add(name.len()) == b'=' as c_char
            {
                return variable.add(name.len() + 1);
            }
            at = at.add(1);
        }
    }
    ptr::null_mut()
}

/// The connection is this process's again.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGX_Attach(its: *mut Request) -> c_int {
    // SAFETY: the program passes a request.
    unsafe { (*its).detached = 0 };
    0
}

/// The connection is another process's: here it is only closed.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGX_Detach(its: *mut Request) -> c_int {
    // SAFETY: the program passes a request.
    unsafe { (*its).detached = 1 };
    0
}
