//! The functions of `include/iolite.h`. Null pointers in place of results or objects are `EINVAL`.

// The linker reaches them.
#![allow(unreachable_pub)]

mod aggregates;
mod descriptors;
mod generators;
mod process;
mod stdio;

use std::io;

use libc::c_int;

/// 0, or a number of `errno.h`.
type Code = c_int;

/// What a function says that returns nothing else.
fn code(result: Result<(), Code>) -> Code {
    result.err().unwrap_or(0)
}

fn code_of(error: &io::Error) -> Code {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Gives an object to the program, which returns it to one of our functions.
///
/// # Safety
/// `place` is null, or can be written.
unsafe fn give<T>(place: *mut *mut T, object: T) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    unsafe { put(place, Box::into_raw(Box::new(object))) }
}

/// # Safety
/// `place` is null, or can be written.
unsafe fn put<T>(place: *mut T, value: T) -> Result<(), Code> {
    if place.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: it is not null, and can be written.
    unsafe { place.write(value) };
    Ok(())
}

/// What the program refers to.
///
/// # Safety
/// `object` is null, or was given to the program, which has not returned it and uses it in this thread alone.
unsafe fn get<'a, T>(object: *mut T) -> Result<&'a mut T, Code> {
    // SAFETY: the caller's promise.
    unsafe { object.as_mut() }.ok_or(libc::EINVAL)
}
