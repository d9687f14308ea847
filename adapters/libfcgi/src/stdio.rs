//! `FCGI_*`: the functions of `stdio.h` for standard input, output and errors that are those of the request.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use crate::abi::{EOF, File, Stream};
use crate::printf::{Arguments, FCGX_VFPrintF};
use crate::request::{FCGX_Accept, FCGX_Finish, FCGX_IsCGI, FCGX_SetExitStatus};
use crate::stream::{
    FCGX_ClearError, FCGX_FFlush, FCGX_GetChar, FCGX_GetError, FCGX_GetLine, FCGX_GetStr, FCGX_HasSeenEOF,
    FCGX_PutChar, FCGX_PutS, FCGX_StartFilterData, FCGX_UnGetChar, put,
};

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
    static mut stdin: *mut libc::FILE;
    static mut stdout: *mut libc::FILE;
    static mut stderr: *mut libc::FILE;
    fn vfprintf(stream: *mut libc::FILE, format: *const c_char, arguments: *mut Arguments) -> c_int;
}

/// Standard input, output and errors of the program.
#[repr(transparent)]
struct StandardFiles(UnsafeCell<[File; 3]>);

// SAFETY: the stdio layer is for programs that use it from one thread at a time.
unsafe impl Sync for StandardFiles {}

/// The data object that programs refer to. The dynamic linker gives the program a copy and makes this library use
/// that, so it must be filled when the library is loaded, not by an initialiser.
#[unsafe(no_mangle)]
static _fcgi_sF: StandardFiles = StandardFiles(UnsafeCell::new([EMPTY, EMPTY, EMPTY]));

const EMPTY: File = File { stdio_stream: ptr::null_mut(), fcgx_stream: ptr::null_mut() };

/// Run by the dynamic linker when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static FILL: extern "C" fn() = use_own_files;

/// Standard input, output and errors are the program's own: before the first request, and under CGI.
extern "C" fn use_own_files() {
    // SAFETY: the C library has set its three streams up before it loads others; no other thread runs.
    unsafe {
        for (index, own) in [stdin, stdout, stderr].into_iter().enumerate() {
            *standard(index) = File { stdio_stream: own, fcgx_stream: ptr::null_mut() };
        }
    }
}

/// `FCGI_stdin`, `FCGI_stdout`, `FCGI_stderr`.
pub(crate) fn standard(index: usize) -> *mut File {
    assert!(index < 3);
    // The address has to come from the dynamic linker, as every use of the object does.
    _fcgi_sF.0.get().cast::<File>().wrapping_add(index)
}

/// Whether `FCGI_Accept` was called, and whether it found CGI.
struct Mode(UnsafeCell<(bool, bool)>);

// SAFETY: as above.
unsafe impl Sync for Mode {}

static MODE: Mode = Mode(UnsafeCell::new((false, false)));

/// Finishes the request at hand and waits for the next, which becomes standard input, output, errors and environment.
/// Under CGI there is one request, the process. 0, or negative.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_Accept() -> c_int {
    // SAFETY: the program has one thread that uses this function.
    unsafe {
        let (accepted, is_cgi) = &mut *MODE.0.get();
        if *accepted && *is_cgi {
            return EOF;
        }
        if !std::mem::replace(accepted, true) {
            *is_cgi = FCGX_IsCGI() != 0;
        }
        if *is_cgi {
            use_own_files();
            return 0;
        }
        let mut streams = [ptr::null_mut(); 3];
        let mut envp = ptr::null_mut();
        let [input, output, errors] = &mut streams;
        let result = FCGX_Accept(input, output, errors, &raw mut envp);
        if result < 0 {
            return result;
        }
        for (index, stream) in streams.into_iter().enumerate() {
            *standard(index) = File { stdio_stream: ptr::null_mut(), fcgx_stream: stream };
        }
        environ = envp;
        0
    }
}

/// Finishes the request at hand.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_Finish() {
    // SAFETY: as above.
    unsafe {
        let (accepted, is_cgi) = *MODE.0.get();
        if !accepted || is_cgi {
            return;
        }
        FCGX_Finish();
        for index in 0..3 {
            (*standard(index)).fcgx_stream = ptr::null_mut();
        }
        environ = ptr::null_mut();
    }
}

/// Continues with a filter's data.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_StartFilterData() -> c_int {
    // SAFETY: as above.
    match unsafe { of(standard(0)) } {
        // SAFETY: as above.
        Of::Request(stream) => unsafe { FCGX_StartFilterData(stream) },
        Of::Program(_) | Of::Nothing => EOF,
    }
}

/// Sets the exit status for the server.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_SetExitStatus(status: c_int) {
    // SAFETY: as above.
    if let Of::Request(stream) = unsafe { of(standard(0)) } {
        // SAFETY: as above.
        unsafe { FCGX_SetExitStatus(status, stream) };
    }
}

/// The kind of a file.
pub(crate) enum Of {
    /// A stream of the C library.
    Program(*mut libc::FILE),
    /// A stream of the request.
    Request(*mut Stream),
    /// Neither: it was closed.
    Nothing,
}

/// # Safety
/// `file` points to a file of the program or of this library.
pub(crate) unsafe fn of(file: *const File) -> Of {
    // SAFETY: of the caller.
    let (program, request) = unsafe { ((*file).stdio_stream, (*file).fcgx_stream) };
    if !program.is_null() {
        Of::Program(program)
    } else if !request.is_null() {
        Of::Request(request)
    } else {
        Of::Nothing
    }
}

/// Defines a function that does the same with either kind of file.
macro_rules! either {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*; $file:ident) -> $result:ty {
        $program:ident => $with_program:expr, $request:ident => $with_request:expr, _ => $with_nothing:expr
    }) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type,)* $file: *mut File) -> $result {
            // SAFETY: the program passes valid arguments for the function of the same name in `stdio.h`, and a file
            // of this library.
            unsafe {
                match of($file) {
                    Of::Program($program) => $with_program,
                    Of::Request($request) => $with_request,
                    Of::Nothing => $with_nothing,
                }
            }
        }
    };
}

either!(
    /// `fflush`.
    FCGI_fflush(; file) -> c_int {
        program => libc::fflush(program), request => FCGX_FFlush(request), _ => EOF
    }
);
either!(
    /// `fgetc`.
    FCGI_fgetc(; file) -> c_int {
        program => libc::fgetc(program), request => FCGX_GetChar(request), _ => EOF
    }
);
either!(
    /// `ungetc`.
    FCGI_ungetc(c: c_int; file) -> c_int {
        program => libc::ungetc(c, program), request => FCGX_UnGetChar(c, request), _ => EOF
    }
);
either!(
    /// `fgets`.
    FCGI_fgets(str: *mut c_char, size: c_int; file) -> *mut c_char {
        program => libc::fgets(str, size, program),
        request => FCGX_GetLine(str, size, request),
        _ => ptr::null_mut()
    }
);
either!(
    /// `fputc`.
    FCGI_fputc(c: c_int; file) -> c_int {
        program => libc::fputc(c, program), request => FCGX_PutChar(c, request), _ => EOF
    }
);
either!(
    /// `fputs`.
    FCGI_fputs(str: *const c_char; file) -> c_int {
        program => libc::fputs(str, program), request => FCGX_PutS(str, request), _ => EOF
    }
);
either!(
    /// `fread`.
    FCGI_fread(bytes: *mut c_void, size: usize, count: usize; file) -> usize {
        program => libc::fread(bytes, size, count, program),
        request => {
            let wanted = c_int::try_from(size.saturating_mul(count)).unwrap_or(c_int::MAX);
            let read = FCGX_GetStr(bytes.cast(), wanted, request);
            usize::try_from(read).unwrap_or(0).checked_div(size).unwrap_or(0)
        },
        _ => usize::MAX
    }
);
either!(
    /// `fwrite`.
    FCGI_fwrite(bytes: *const c_void, size: usize, count: usize; file) -> usize {
        program => libc::fwrite(bytes, size, count, program),
        request => {
            let wanted = size.saturating_mul(count);
            if wanted > 0 && put(bytes.cast(), wanted, request) { count } else { 0 }
        },
        _ => usize::MAX
    }
);
either!(
    /// `feof`.
    FCGI_feof(; file) -> c_int {
        program => libc::feof(program), request => FCGX_HasSeenEOF(request), _ => EOF
    }
);
either!(
    /// `ferror`.
    FCGI_ferror(; file) -> c_int {
        program => libc::ferror(program), request => FCGX_GetError(request), _ => EOF
    }
);
either!(
    /// `clearerr`.
    FCGI_clearerr(; file) -> () {
        program => libc::clearerr(program), request => FCGX_ClearError(request), _ => ()
    }
);

/// `getchar`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_getchar() -> c_int {
    // SAFETY: of the program, as for all of this layer.
    unsafe { FCGI_fgetc(standard(0)) }
}

/// `gets`, with its danger: the program says nothing of the room it has.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_gets(str: *mut c_char) -> *mut c_char {
    let mut at = str;
    // SAFETY: of the program.
    unsafe {
        loop {
            match FCGI_getchar() {
                EOF if at == str => return ptr::null_mut(),
                EOF => break,
                c if c == c_int::from(b'\n') => break,
                c => {
                    *at = c as c_char;
                    at = at.add(1);
                }
            }
        }
        *at = 0;
    }
    str
}

/// `putchar`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_putchar(c: c_int) -> c_int {
    // SAFETY: of the program.
    unsafe { FCGI_fputc(c, standard(1)) }
}

/// `puts`.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_puts(str: *const c_char) -> c_int {
    // SAFETY: of the program.
    unsafe {
        let written = FCGI_fputs(str, standard(1));
        if written < 0 { written } else { FCGI_putchar(c_int::from(b'\n')) }
    }
}

/// `perror`: without the end of the line, as the original.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGI_perror(str: *const c_char) {
    // SAFETY: of the program; `strerror` returns a string.
    unsafe {
        let reason = libc::strerror(crate::errno::errno());
        for text in [str, c": ".as_ptr(), CStr::from_ptr(reason).as_ptr()] {
            FCGI_fputs(text, standard(2));
        }
    }
}

/// `vfprintf`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGI_vfprintf(
    file: *mut File,
    format: *const c_char,
    arguments: *mut Arguments,
) -> c_int {
    // SAFETY: of the program.
    unsafe {
        match of(file) {
            Of::Program(program) => vfprintf(program, format, arguments),
            Of::Request(request) => FCGX_VFPrintF(request, format, arguments),
            Of::Nothing => EOF,
        }
    }
}

/// `vprintf`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGI_vprintf(format: *const c_char, arguments: *mut Arguments) -> c_int {
    // SAFETY: of the program.
    unsafe { FCGI_vfprintf(standard(1), format, arguments) }
}
