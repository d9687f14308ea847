//! Socket options by number, for those that `rustix` does not name.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::check;

/// A type that the kernel may fill with any bytes, or read all bytes of.
///
/// # Safety
/// Each pattern of bits is a value, and no byte is padding.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for i32 {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: elements that are plain, without padding between them.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
// SAFETY: an integer.
unsafe impl Plain for u8 {}

/// Sets an option to the bytes of `value`.
pub(crate) fn set<T: Plain>(socket: impl AsFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the value has no padding, and lives as long as the slice.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) };
    set_bytes(socket, level, name, bytes)
}

/// Sets an option to these bytes.
pub(crate) fn set_bytes(socket: impl AsFd, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`, which the kernel only reads.
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// The first bytes of an option: what the kernel does not fill stays as it is in `value`.
pub(crate) fn get<T: Plain>(socket: impl AsFd, level: i32, name: i32, mut value: T) -> io::Result<T> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: pointer and length describe `value`, in which any bytes are valid.
    check(unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length)
    })?;
    Ok(value)
}
