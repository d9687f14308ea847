//! `FCGX_VFPrintF`: the C library formats, into the window of the stream if there is room.

use std::ffi::{c_char, c_int};

use crate::abi::{EOF, Stream};
use crate::stream::put;

/// Arguments of a variadic function, as `va_list` of this architecture passes them on: by reference.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    gp_offset: u32,
    fp_offset: u32,
    overflow_area: *mut u8,
    save_area: *mut u8,
}

unsafe extern "C" {
    fn vsnprintf(buffer: *mut c_char, len: usize, format: *const c_char, arguments: *mut Arguments) -> c_int;
}

/// Writes the formatted text; returns its length, or `EOF`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn FCGX_VFPrintF(
    stream: *mut Stream,
    format: *const c_char,
    arguments: *mut Arguments,
) -> c_int {
    // SAFETY: the program passes a stream of this library, and arguments that match the format. The window bounds the
    // write; formatting consumes the arguments, so the first attempt gets a copy.
    unsafe {
        let room =
            if (*stream).is_reader == 0 { (*stream).stop.offset_from_unsigned((*stream).wr_next) } else { 0 };
        let mut copy = *arguments;
        let len = vsnprintf((*stream).wr_next.cast(), room, format, &raw mut copy);
        let Ok(len_bytes) = usize::try_from(len) else { return EOF };
        if len_bytes < room {
            (*stream).wr_next = (*stream).wr_next.add(len_bytes);
            return len;
        }
        // With room for C's final zero.
        let mut text = Vec::<u8>::with_capacity(len_bytes + 1);
        vsnprintf(text.as_mut_ptr().cast(), len_bytes + 1, format, arguments);
        if put(text.as_ptr(), len_bytes, stream) { len } else { EOF }
    }
}
