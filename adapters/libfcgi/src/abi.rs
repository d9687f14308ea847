//! The streams of `fcgiapp.h` and the files of `fcgi_stdio.h`, which programs allocate and look into.

use std::ffi::{c_int, c_void};

/// `FCGX_Stream`. Programs use functions to read and write, but the fields are public, and some look.
#[repr(C)]
pub(crate) struct Stream {
    /// Reader: the first byte to be read. Writer: equals `stop`.
    pub(crate) rd_next: *mut u8,
    /// Writer: where the next byte goes. Reader: equals `stop`.
    pub(crate) wr_next: *mut u8,
    /// The end of what can be read or written without calling a procedure.
    pub(crate) stop: *mut u8,
    /// Reader: how far bytes can be put back.
    pub(crate) stop_unget: *mut u8,
    /// Whether it is for reading.
    pub(crate) is_reader: c_int,
    /// Whether it has ended.
    pub(crate) is_closed: c_int,
    /// Whether the program has closed it.
    pub(crate) was_fclose_called: c_int,
    /// 0, an `errno`, or one of the negative codes of `fcgiapp.h`.
    pub(crate) fcgi_errno: c_int,
    /// Reader: provides more, or closes the stream.
    pub(crate) fill_buff_proc: Option<unsafe extern "C" fn(*mut Self)>,
    /// Writer: makes room, or closes the stream. The second argument is true at its end.
    pub(crate) empty_buff_proc: Option<unsafe extern "C" fn(*mut Self, c_int)>,
    /// The stream's implementation.
    pub(crate) data: *mut c_void,
}

impl Stream {
    /// Nothing to read, nothing to write.
    pub(crate) const CLOSED: Self = Self {
        rd_next: std::ptr::null_mut(),
        wr_next: std::ptr::null_mut(),
        stop: std::ptr::null_mut(),
        stop_unget: std::ptr::null_mut(),
        is_reader: 0,
        is_closed: 1,
        was_fclose_called: 0,
        fcgi_errno: 0,
        fill_buff_proc: None,
        empty_buff_proc: None,
        data: std::ptr::null_mut(),
    };
}

/// `FCGI_FILE`: one of the two, the other is null.
#[repr(C)]
pub(crate) struct File {
    /// A stream of the C library.
    pub(crate) stdio_stream: *mut libc::FILE,
    /// A stream of a request.
    pub(crate) fcgx_stream: *mut Stream,
}

/// The end of a stream, and what many functions return when they fail.
pub(crate) const EOF: c_int = -1;

/// A negative `FCGI_errno`: the server broke the protocol, or closed its connection.
pub(crate) const FCGX_PROTOCOL_ERROR: c_int = -3;

/// A negative `FCGI_errno`: calls in a wrong order.
pub(crate) const FCGX_CALL_SEQ_ERROR: c_int = -5;

/// A flag of a request: a signal ends the wait for a connection.
pub(crate) const FCGI_FAIL_ACCEPT_ON_INTR: c_int = 1;

/// The descriptor of a FastCGI application's listening socket.
pub(crate) const FCGI_LISTENSOCK_FILENO: c_int = 0;

/// The layout of these structures by the distribution's headers on 64-bit machines.
const _: () = {
    assert!(size_of::<Stream>() == 72 && std::mem::offset_of!(Stream, data) == 64);
    assert!(size_of::<File>() == 16);
};
