//! The `errno` of C functions.

use std::ffi::c_int;

/// The `errno` of the thread.
pub(crate) fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Sets it.
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: each thread has its own `errno`.
    unsafe { *libc::__errno_location() = errno };
}
