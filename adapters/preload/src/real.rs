//! The libc's own functions, which this library's hide.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    fd_set, iovec, msghdr, nfds_t, pollfd, sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval,
};

macro_rules! libc_functions {
    ($($name:ident: ($($argument:ty),*) -> $result:ty;)*) => {$(
        /// The libc's function of this name.
        pub(crate) fn $name() -> unsafe extern "C" fn($($argument),*) -> $result {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name has no NUL"),
            };
            let found = find(&FOUND, NAME);
            // SAFETY: the libc's function of this name has this type, and `find` returns only existing ones.
            unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(found) }
        }
    )*};
}

libc_functions! {
    accept: (c_int, *mut sockaddr, *mut socklen_t) -> c_int;
    accept4: (c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int;
    close: (c_int) -> c_int;
    close_range: (c_uint, c_uint, c_int) -> c_int;
    closefrom: (c_int) -> ();
    dup: (c_int) -> c_int;
    dup2: (c_int, c_int) -> c_int;
    dup3: (c_int, c_int, c_int) -> c_int;
    fcntl: (c_int, c_int, c_long) -> c_int;
    fcntl64: (c_int, c_int, c_long) -> c_int;
    poll: (*mut pollfd, nfds_t, c_int) -> c_int;
    __poll_chk: (*mut pollfd, nfds_t, c_int, size_t) -> c_int;
    ppoll: (*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int;
    pselect: (c_int, *mut fd_set, *mut fd_set, *mut fd_set, *const timespec, *const sigset_t) -> c_int;
    read: (c_int, *mut c_void, size_t) -> ssize_t;
    __read_chk: (c_int, *mut c_void, size_t, size_t) -> ssize_t;
    readv: (c_int, *const iovec, c_int) -> ssize_t;
    recv: (c_int, *mut c_void, size_t, c_int) -> ssize_t;
    __recv_chk: (c_int, *mut c_void, size_t, size_t, c_int) -> ssize_t;
    recvfrom: (c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t;
    __recvfrom_chk: (c_int, *mut c_void, size_t, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t;
    recvmsg: (c_int, *mut msghdr, c_int) -> ssize_t;
    select: (c_int, *mut fd_set, *mut fd_set, *mut fd_set, *mut timeval) -> c_int;
    send: (c_int, *const c_void, size_t, c_int) -> ssize_t;
    sendmsg: (c_int, *const msghdr, c_int) -> ssize_t;
    sendto: (c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t;
    shutdown: (c_int, c_int) -> c_int;
    write: (c_int, *const c_void, size_t) -> ssize_t;
    writev: (c_int, *const iovec, c_int) -> ssize_t;
}

/// The next definition of `name` behind this library's; looked up once.
fn find(found: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = found.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    let name: *const c_char = name.as_ptr();
    // SAFETY: `name` ends with a NUL, and RTLD_NEXT is a handle that `dlsym` knows.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name) };
    if function.is_null() {
        // A program that calls what its libc does not have would not have been started.
        std::process::abort();
    }
    found.store(function, Ordering::Relaxed);
    function
}
