//! `FCGI_*`: the functions of `stdio.h` that open, close and position files.

use std::ffi::{c_char, c_int, c_long};
use std::ptr;

use crate::abi::{EOF, File};
use crate::errno::set_errno;
use crate::stdio::{Of, of, standard};
use crate::stream::FCGX_FClose;

unsafe extern "C" {
    fn setbuf(stream: *mut libc::FILE, buffer: *mut c_char);
    fn fgetpos(stream: *mut libc::FILE, position: *mut libc::fpos_t) -> c_int;
    fn fsetpos(stream: *mut libc::FILE, position: *const libc::fpos_t) -> c_int;
}

/// A file of this library for one of the C library, or null for null.
///
/// # Safety
/// `stream` is null or a stream that only `close` closes.
unsafe fn wrap(stream: *mut libc::FILE, close: unsafe extern "C" fn(*mut libc::FILE) -> c_int) -> *mut File {
    // SAFETY: of the caller. The memory is the C library's, as programs free nothing but by `FCGI_fclose`.
    unsafe {
        if stream.is_null() {
            return ptr::null_mut();
        }
        let file = libc::malloc(size_of::<File>()).cast::<File>();
        if file.is_null() {
            close(stream);
            return file;
        }
        file.write(File { stdio_stream: stream, fcgx_stream: ptr::null_mut() });
        file
    }
}

/// Frees what [`wrap`] has made; the three standard files stay.
///
/// # Safety
/// `file` is of this library and no longer used.
unsafe fn unwrap(file: *mut File) {
    if !(0..3).any(|index| ptr::eq(standard(index), file)) {
        // SAFETY: of the caller.
        unsafe { libc::free(file.cast()) };
    }
}

/// `fopen`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_fopen(path: *const c_char, mode: *const c_char) -> *mut File {
    // SAFETY: of the program, as for all of this layer.
    unsafe { wrap(libc::fopen(path, mode), libc::fclose) }
}

/// `fclose`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_fclose(file: *mut File) -> c_int {
    // SAFETY: of the program.
    unsafe {
        let result = match of(file) {
            Of::Program(program) => libc::fclose(program),
            Of::Request(request) => FCGX_FClose(request),
            Of::Nothing => EOF,
        };
        (*file).stdio_stream = ptr::null_mut();
        (*file).fcgx_stream = ptr::null_mut();
        unwrap(file);
        result
    }
}

/// `freopen`. Standard output of a request is closed by it.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_freopen(path: *const c_char, mode: *const c_char, file: *mut File) -> *mut File {
    // SAFETY: of the program.
    unsafe {
        let reopened = match of(file) {
            Of::Program(program) => libc::freopen(path, mode, program),
            Of::Request(request) => {
                FCGX_FClose(request);
                let opened = libc::fopen(path, mode);
                (*file).stdio_stream = opened;
                if !opened.is_null() {
                    (*file).fcgx_stream = ptr::null_mut();
                }
                opened
            }
            Of::Nothing => ptr::null_mut(),
        };
        if reopened.is_null() { ptr::null_mut() } else { file }
    }
}

/// `setvbuf`: a stream of a request has its own buffer.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_setvbuf(file: *mut File, buffer: *mut c_char, mode: c_int, size: usize) -> c_int {
    // SAFETY: of the program.
    unsafe {
        match of(file) {
            Of::Program(program) => libc::setvbuf(program, buffer, mode, size),
            Of::Request(_) | Of::Nothing => EOF,
        }
    }
}

/// `setbuf`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_setbuf(file: *mut File, buffer: *mut c_char) {
    // SAFETY: of the program.
    unsafe {
        if let Of::Program(program) = of(file) {
            setbuf(program, buffer);
        }
    }
}

/// What positions a file works with files of the C library only: a request is no file.
///
/// # Safety
/// As [`of`].
unsafe fn positioned<T>(file: *mut File, otherwise: T, act: impl FnOnce(*mut libc::FILE) -> T) -> T {
    // SAFETY: of the caller.
    match unsafe { of(file) } {
        Of::Program(program) => act(program),
        Of::Request(_) | Of::Nothing => {
            set_errno(libc::ESPIPE);
            otherwise
        }
    }
}

/// `fseek`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_fseek(file: *mut File, offset: c_long, whence: c_int) -> c_int {
    // SAFETY: of the program.
    unsafe { positioned(file, -1, |program| libc::fseek(program, offset, whence)) }
}

/// `ftell`, in as many bits as the original returns.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_ftell(file: *mut File) -> c_int {
    // SAFETY: of the program.
    unsafe { positioned(file, -1, |program| libc::ftell(program) as c_int) }
}

/// `rewind`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_rewind(file: *mut File) {
    // SAFETY: of the program.
    unsafe { positioned(file, (), |program| libc::rewind(program)) }
}

/// `fgetpos`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_fgetpos(file: *mut File, position: *mut libc::fpos_t) -> c_int {
    // SAFETY: of the program.
    unsafe { positioned(file, -1, |program| fgetpos(program, position)) }
}

/// `fsetpos`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_fsetpos(file: *mut File, position: *const libc::fpos_t) -> c_int {
    // SAFETY: of the program.
    unsafe { positioned(file, -1, |program| fsetpos(program, position)) }
}

/// `tmpfile`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_tmpfile() -> *mut File {
    // SAFETY: of the program.
    unsafe { wrap(libc::tmpfile(), libc::fclose) }
}

/// `fileno`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_fileno(file: *mut File) -> c_int {
    // SAFETY: of the program.
    match unsafe { of(file) } {
        // SAFETY: of the program.
        Of::Program(program) => unsafe { libc::fileno(program) },
        Of::Request(_) | Of::Nothing => -1,
    }
}

/// `fdopen`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_fdopen(fd: c_int, mode: *const c_char) -> *mut File {
    // SAFETY: of the program.
    unsafe { wrap(libc::fdopen(fd, mode), libc::fclose) }
}

/// `popen`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_popen(command: *const c_char, kind: *const c_char) -> *mut File {
    // SAFETY: of the program.
    unsafe { wrap(libc::popen(command, kind), libc::pclose) }
}

/// `pclose`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_pclose(file: *mut File) -> c_int {
    // SAFETY: of the program.
    unsafe {
        match of(file) {
            Of::Program(program) => {
                let status = libc::pclose(program);
                (*file).stdio_stream = ptr::null_mut();
                unwrap(file);
                status
            }
            // The program is confused: nothing of its request is freed.
            Of::Request(_) | Of::Nothing => EOF,
        }
    }
}
