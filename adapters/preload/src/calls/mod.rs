//! The functions of the libc that programs use on connections. For descriptors that are not in the table they are the
//! libc's own; where they are not, they answer as the manual pages (`man 2 read`, …) say.

mod descriptors;
mod receive;
mod send;
mod wait;

use libc::{c_int, iovec, ssize_t};
use rustix::io::Errno;

/// Keeps `errno` as it was: no function may change it when it succeeds, and php-fpm looks at it even then.
struct ErrnoKept(c_int);

impl ErrnoKept {
    fn new() -> Self {
        // SAFETY: this thread's `errno` can always be read.
        Self(unsafe { *libc::__errno_location() })
    }

    /// The result of a function that fails with `errno`.
    fn fail(mut self, errno: Errno) -> ssize_t {
        self.0 = errno.raw_os_error();
        -1
    }
}

impl Drop for ErrnoKept {
    fn drop(&mut self) {
        // SAFETY: this thread's `errno` can always be written.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// A buffer as a list of one.
fn part(buffer: *const libc::c_void, bytes: usize) -> [iovec; 1] {
    [iovec { iov_base: buffer.cast_mut(), iov_len: bytes }]
}

/// The list that `readv` and its like are given.
///
/// # Safety
/// There are `count` at `parts`, if `count` is a number that the kernel would accept.
unsafe fn parts<'a>(parts: *const iovec, count: usize) -> &'a [iovec] {
    if parts.is_null() || count > libc::UIO_MAXIOV as usize {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(parts, count) }
}
