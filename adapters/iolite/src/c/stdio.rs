//! The C library's streams over these calls. Bytes are still copied between the program and its stream.

use std::ffi::CStr;

use libc::{FILE, c_char, c_int, c_void, size_t, ssize_t};

use super::Code;
use super::descriptors::{look_at, read, write};
use super::process::{default_allocator, forget};

/// `cookie_io_functions_t` of glibc.
#[repr(C)]
struct Functions {
    read: Option<unsafe extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t>,
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t>,
    seek: Option<unsafe extern "C" fn(*mut c_void, *mut i64, c_int) -> c_int>,
    close: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
}

/// A stream over `IOL_read` and `IOL_write`; null and `errno` if it fails.
///
/// # Safety
/// `mode` is a C string.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn IOL_fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    // SAFETY: the program's promise.
    let is_known = !mode.is_null() && matches!(unsafe { CStr::from_ptr(mode) }.to_bytes(), b"r" | b"w");
    if !is_known || fd < 0 {
        set_errno(libc::EINVAL);
        return std::ptr::null_mut();
    }
    let functions = Functions { read: Some(fill), write: Some(drain), seek: None, close: Some(end) };
    let cookie = std::ptr::without_provenance_mut(fd as usize);
    // SAFETY: the functions take the number of a descriptor for a cookie.
    unsafe {
        let stream = fopencookie(cookie, mode, functions);
        if !stream.is_null() {
            libc::setvbuf(stream, std::ptr::null_mut(), libc::_IOFBF, STREAM_BYTES);
        }
        stream
    }
}

unsafe extern "C" fn fill(cookie: *mut c_void, into: *mut c_char, size: size_t) -> ssize_t {
    let copied = read(cookie.addr() as c_int, size).and_then(|mut bytes| {
        look_at(&mut bytes)?;
        let mut at = 0;
        for piece in bytes.pieces() {
            let baton_buf::Piece::Memory(slice) = piece else { return Err(libc::EINVAL) };
            // SAFETY: the stream has room for `size` bytes, and the pieces have no more.
            unsafe { into.add(at).cast::<u8>().copy_from_nonoverlapping(slice.as_ptr(), slice.len()) };
            at += slice.len();
        }
        Ok(at)
    });
    copied.map_or_else(|code| failed(code, -1), |count| count as ssize_t)
}

unsafe extern "C" fn drain(cookie: *mut c_void, from: *const c_char, size: size_t) -> ssize_t {
    // SAFETY: the stream has so many bytes.
    let mut bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) };
    let written = default_allocator().and_then(|allocator| {
        let mut blank = allocator.create(size);
        for part in blank.parts() {
            let (front, rest) = bytes.split_at(part.len());
            part.copy_from_slice(front);
            bytes = rest;
        }
        write(cookie.addr() as c_int, &blank.freeze())
    });
    // fopencookie(3): 0 is the error, not -1.
    written.map_or_else(|code| failed(code, 0), |count| count as ssize_t)
}

unsafe extern "C" fn end(cookie: *mut c_void) -> c_int {
    let descriptor = cookie.addr() as c_int;
    let _ = forget(descriptor);
    // SAFETY: closing affects no memory.
    unsafe { libc::close(descriptor) }
}

fn failed(code: Code, result: ssize_t) -> ssize_t {
    set_errno(code);
    result
}

fn set_errno(code: Code) {
    // SAFETY: it is this thread's.
    unsafe { *libc::__errno_location() = code };
}

/// What a stream collects: a chunk.
const STREAM_BYTES: usize = baton_pool::CHUNK_BYTES;
