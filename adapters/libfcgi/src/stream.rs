//! Streams: bytes through the window of a buffer, and a procedure when it is used up.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use crate::abi::{EOF, FCGX_CALL_SEQ_ERROR, Stream};
use crate::exchange::{Kind, behind, kind_of};

/// Smaller output goes through the window if it fits. Larger output goes to the answer, which may send it without a
/// copy.
const WINDOW_BYTES_MAX: usize = 16 << 10;

/// How often a window is looked at while it is being filled: twice in as much as the original library would hold back.
const SEEN_TO_BYTES: usize = 4 << 10;

impl Stream {
    /// Lets `len` bytes be read.
    pub(crate) fn read_from(&mut self, start: *mut u8, len: usize) {
        self.rd_next = start;
        self.stop_unget = start;
        self.stop = start.wrapping_add(len);
        self.wr_next = self.stop;
    }

    /// Lets `window` be written.
    pub(crate) fn write_to(&mut self, window: &mut [u8]) {
        let window = window.as_mut_ptr_range();
        self.wr_next = window.start;
        self.stop = window.end;
        self.rd_next = self.stop;
    }

    /// Ends the stream: no more reads or writes.
    pub(crate) fn close(&mut self) {
        self.is_closed = 1;
        if self.is_reader != 0 {
            self.stop = self.rd_next;
            self.wr_next = self.stop;
        } else {
            self.stop = self.wr_next;
            self.rd_next = self.stop;
        }
    }

    /// Ends the stream for an error. The first one counts.
    pub(crate) fn fail(&mut self, errno: c_int) {
        if self.fcgi_errno == 0 {
            self.fcgi_errno = errno;
        }
        self.close();
    }

    /// Bytes that can be read or written without calling a procedure.
    fn window(&self) -> usize {
        let next = if self.is_reader != 0 { self.rd_next } else { self.wr_next };
        (self.stop as usize).saturating_sub(next as usize)
    }
}

/// Calls the procedure that provides more. Returns whether there is more.
///
/// # Safety
/// `stream` is a stream of this library.
unsafe fn fill(stream: *mut Stream) -> bool {
    // SAFETY: of the caller; no reference to the stream is alive while its procedure runs.
    unsafe {
        if (*stream).is_closed != 0 || (*stream).is_reader == 0 {
            return false;
        }
        let Some(procedure) = (*stream).fill_buff_proc else { return false };
        procedure(stream);
        (*stream).stop_unget = (*stream).rd_next;
        (*stream).window() > 0
    }
}

/// Calls the procedure that makes room. Returns whether there is room.
///
/// # Safety
/// `stream` is a stream of this library.
unsafe fn empty(stream: *mut Stream, closes: bool) -> bool {
    // SAFETY: as in `fill`.
    unsafe {
        if (*stream).is_closed != 0 || (*stream).is_reader != 0 {
            return false;
        }
        let Some(procedure) = (*stream).empty_buff_proc else { return false };
        procedure(stream, c_int::from(closes));
        (*stream).window() > 0
    }
}

/// The next byte, or `EOF`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_GetChar(stream: *mut Stream) -> c_int {
    // SAFETY: the program passes a stream of this library. Its window is memory that may be read.
    unsafe {
        if ((*stream).is_reader == 0 || (*stream).window() == 0) && !fill(stream) {
            return EOF;
        }
        let byte = *(*stream).rd_next;
        (*stream).rd_next = (*stream).rd_next.add(1);
        c_int::from(byte)
    }
}

/// Up to `n` bytes; fewer only at the end.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_GetStr(str: *mut c_char, n: c_int, stream: *mut Stream) -> c_int {
    let Ok(wanted) = usize::try_from(n) else { return 0 };
    let mut moved = 0;
    // SAFETY: as in `FCGX_GetChar`; the program provides `n` bytes at `str`.
    unsafe {
        while moved < wanted {
            let now = if (*stream).is_reader == 0 { 0 } else { (*stream).window().min(wanted - moved) };
            ptr::copy_nonoverlapping((*stream).rd_next, str.cast::<u8>().add(moved), now);
            (*stream).rd_next = (*stream).rd_next.wrapping_add(now);
            moved += now;
            if moved < wanted && !fill(stream) {
                break;
            }
        }
    }
    c_int::try_from(moved).unwrap_or(c_int::MAX)
}

/// A line of up to `n - 1` bytes, its end included, and a zero. Null if there is none.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_GetLine(str: *mut c_char, n: c_int, stream: *mut Stream) -> *mut c_char {
    let most = usize::try_from(n).unwrap_or(0).saturating_sub(1);
    let mut moved = 0;
    // SAFETY: as in `FCGX_GetStr`.
    unsafe {
        while moved < most {
            let byte = FCGX_GetChar(stream);
            if byte == EOF {
                if moved == 0 {
                    return ptr::null_mut();
                }
                break;
            }
            *str.add(moved) = byte as c_char;
            moved += 1;
            if byte == c_int::from(b'\n') {
                break;
            }
        }
        *str.add(moved) = 0;
    }
    str
}

/// Puts a byte back: at least one that was read can be.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_UnGetChar(c: c_int, stream: *mut Stream) -> c_int {
    // SAFETY: `stop_unget` is the start of the bytes that were read and are still in the buffer.
    unsafe {
        let stream = &mut *stream;
        if c == EOF || stream.is_closed != 0 || stream.is_reader == 0 || stream.rd_next == stream.stop_unget {
            return EOF;
        }
        let before = stream.rd_next.sub(1);
        if *before != c as u8 {
            if !behind(stream).input_is_own() {
                return EOF;
            }
            *before = c as u8;
        }
        stream.rd_next = before;
    }
    c
}

/// `EOF` if the end has been met, else 0.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_HasSeenEOF(stream: *mut Stream) -> c_int {
    // SAFETY: the program passes a stream of this library.
    if unsafe { (*stream).is_closed } != 0 { EOF } else { 0 }
}

/// Writes a byte, and returns it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_PutChar(c: c_int, stream: *mut Stream) -> c_int {
    // SAFETY: the program passes a stream of this library. The window of a writer is memory that may be written.
    unsafe {
        if ((*stream).is_reader != 0 || (*stream).window() == 0) && !empty(stream, false) {
            return EOF;
        }
        let byte = c as u8;
        *(*stream).wr_next = byte;
        advance(stream, 1);
        c_int::from(byte)
    }
}

/// Writes `n` bytes: returns `n`, or `EOF`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_PutStr(str: *const c_char, n: c_int, stream: *mut Stream) -> c_int {
    let Ok(len) = usize::try_from(n) else { return EOF };
    // SAFETY: the program passes `n` bytes and a stream of this library.
    if unsafe { put(str.cast(), len, stream) } { n } else { EOF }
}

/// Writes a string: returns its length, or `EOF`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_PutS(str: *const c_char, stream: *mut Stream) -> c_int {
    // SAFETY: the program passes a string and a stream of this library.
    unsafe {
        let len = CStr::from_ptr(str).count_bytes();
        if put(str.cast(), len, stream) { c_int::try_from(len).unwrap_or(c_int::MAX) } else { EOF }
    }
}

/// Writes bytes. Returns false if the stream has ended.
///
/// # Safety
/// There are `len` bytes at `bytes`, which are not in a buffer of the library, and `stream` is one of its streams.
pub(crate) unsafe fn put(bytes: *const u8, len: usize, stream: *mut Stream) -> bool {
    // SAFETY: of the caller. The procedures renew the window, and never more than it holds is written.
    unsafe {
        let window = if (*stream).is_reader == 0 { (*stream).window() } else { 0 };
        if len > window || len >= WINDOW_BYTES_MAX {
            if (*stream).is_closed != 0 || (*stream).is_reader != 0 {
                return false;
            }
            if kind_of(stream) == Kind::Output {
                let bytes = std::slice::from_raw_parts(bytes, len);
                behind(stream).output(|answer, connection| answer.write(connection, bytes));
                return (*stream).is_closed == 0;
            }
        }
        let mut moved = 0;
        loop {
            let now = (*stream).window().min(len - moved);
            ptr::copy_nonoverlapping(bytes.add(moved), (*stream).wr_next, now);
            advance(stream, now);
            moved += now;
            if moved == len {
                return true;
            }
            if !empty(stream, false) {
                return false;
            }
        }
    }
}

/// `bytes` were written to the window of a writer. Once in a few kilobytes it is seen to that a program that is slow
/// holds nothing back: it may fill the window without another call.
///
/// # Safety
/// `stream` is a writer of this library with a window of so many bytes.
unsafe fn advance(stream: *mut Stream, bytes: usize) {
    // SAFETY: of the caller.
    unsafe {
        let before = (*stream).wr_next as usize / SEEN_TO_BYTES;
        (*stream).wr_next = (*stream).wr_next.wrapping_add(bytes);
        if (*stream).wr_next as usize / SEEN_TO_BYTES != before && kind_of(stream) == Kind::Output {
            behind(stream).output(|answer, connection| answer.send_if_overdue(connection));
        }
    }
}

/// Sends the output so far: 0, or `EOF`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_FFlush(stream: *mut Stream) -> c_int {
    // SAFETY: the program passes a stream of this library.
    unsafe {
        if (*stream).is_closed != 0 || (*stream).is_reader != 0 {
            return 0;
        }
        match kind_of(stream) {
            Kind::Output => behind(stream).output(|answer, connection| answer.flush(connection)),
            Kind::Errors => behind(stream).flush_errors(),
            Kind::Input | Kind::Other => drop(empty(stream, false)),
        }
        if (*stream).is_closed != 0 { EOF } else { 0 }
    }
}

/// Ends the stream, once: 0, or `EOF` if there was an error, ever.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_FClose(stream: *mut Stream) -> c_int {
    // SAFETY: the program passes a stream of this library.
    unsafe {
        if (*stream).was_fclose_called == 0 {
            empty(stream, true);
            (*stream).was_fclose_called = 1;
            (*stream).close();
        }
        if (*stream).fcgi_errno == 0 { 0 } else { EOF }
    }
}

/// The error of the stream: 0, an `errno`, or a negative code.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_GetError(stream: *mut Stream) -> c_int {
    // SAFETY: the program passes a stream of this library.
    unsafe { (*stream).fcgi_errno }
}

/// Forgets the error. The stream stays ended, as in the original.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_ClearError(stream: *mut Stream) {
    // SAFETY: the program passes a stream of this library.
    unsafe { (*stream).fcgi_errno = 0 }
}

/// Continues with a filter's data, after the body. 0, or negative if there is none.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_StartFilterData(stream: *mut Stream) -> c_int {
    // SAFETY: the program passes a stream of a request.
    unsafe {
        let is_at_end = kind_of(stream) == Kind::Input && (*stream).is_closed != 0;
        if !is_at_end || !behind(stream).start_filter_data() {
            (*stream).fail(FCGX_CALL_SEQ_ERROR);
            return EOF;
        }
    }
    0
}
