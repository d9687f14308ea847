//! When to stop: by a signal, or by the program's request.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

static PENDING: AtomicBool = AtomicBool::new(false);

/// Whether to accept no further connection.
pub(crate) fn is_pending() -> bool {
    PENDING.load(Ordering::Relaxed)
}

/// No further connection is accepted. Can be called by signal handlers.
#[unsafe(no_mangle)]
extern "C" fn OS_ShutdownPending() {
    PENDING.store(true, Ordering::Relaxed);
}

/// No further connection is accepted: `OS_ShutdownPending` under its other name.
#[unsafe(no_mangle)]
extern "C" fn FCGX_ShutdownPending() {
    OS_ShutdownPending();
}

/// Handles signals like the original, unless the program has its own handlers: `SIGPIPE` is ignored, `SIGUSR1` ends
/// the application after the current request.
pub(crate) fn install_handlers() {
    extern "C" fn survive(_signal: c_int) {}
    extern "C" fn stop(_signal: c_int) {
        OS_ShutdownPending();
    }
    install(libc::SIGPIPE, survive);
    install(libc::SIGUSR1, stop);
}

fn install(signal: c_int, handler: extern "C" fn(c_int)) {
    // SAFETY: the structures are valid, and the handlers are signal-safe: they only store to an atomic.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action);
        if action.sa_sigaction == libc::SIG_DFL {
            // Without SA_RESTART, so that it ends the wait for a connection.
            action = std::mem::zeroed();
            action.sa_sigaction = handler as libc::sighandler_t;
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
    }
}
