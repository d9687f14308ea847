//! `FCGX_CreateWriter`: a stream that turns output into records, without a request. `cgi-fcgi` uses it to talk to
//! applications.

use std::ffi::c_int;
use std::ptr;

use crate::abi::Stream;
use crate::errno::errno;

/// Length of a record's header.
const HEADER_BYTES: usize = 8;
/// Buffers, headers included, are kept within these bounds.
const BUFFER_BYTES: std::ops::RangeInclusive<usize> = 32..=65_536;

/// The implementation of such a stream.
struct RecordWriter {
    stream: Stream,
    socket: c_int,
    request_id: u16,
    kind: u8,
    /// Room for the header, then the content.
    buffer: Box<[u8]>,
}

/// Makes a stream that writes records of this type and request to `socket`.
#[unsafe(no_mangle)]
extern "C" fn FCGX_CreateWriter(
    socket: c_int,
    request_id: c_int,
    buffer_len: c_int,
    stream_type: c_int,
) -> *mut Stream {
    let bytes = usize::try_from(buffer_len)
        .unwrap_or(0)
        .clamp(*BUFFER_BYTES.start(), *BUFFER_BYTES.end())
        .next_multiple_of(8);
    let mut writer = Box::new(RecordWriter {
        stream: Stream { is_closed: 0, empty_buff_proc: Some(empty_records), ..Stream::CLOSED },
        socket,
        request_id: request_id as u16,
        kind: stream_type as u8,
        buffer: vec![0; bytes].into_boxed_slice(),
    });
    writer.renew();
    let writer = Box::into_raw(writer);
    // SAFETY: it has just been made, and lives until `FCGX_FreeStream`.
    unsafe {
        (*writer).stream.data = writer.cast();
        &raw mut (*writer).stream
    }
}

/// Frees such a stream. The streams of a request go with it.
#[unsafe(no_mangle)]
unsafe extern "C" fn FCGX_FreeStream(stream: *mut *mut Stream) {
    // SAFETY: the program passes where it keeps its stream.
    unsafe {
        let its = std::mem::replace(&mut *stream, ptr::null_mut());
        let Some(procedure) = its.as_ref().and_then(|stream| stream.empty_buff_proc) else { return };
        if ptr::fn_addr_eq(procedure, empty_records as unsafe extern "C" fn(*mut Stream, c_int)) {
            drop(Box::from_raw((*its).data.cast::<RecordWriter>()));
        }
    }
}

impl RecordWriter {
    /// The window follows the room for the header, and leaves room for padding.
    fn renew(&mut self) {
        self.stream.write_to(&mut self.buffer[HEADER_BYTES..]);
    }

    /// Writes the record, and the empty one that ends the stream.
    fn empty(&mut self, closes: bool) -> bool {
        let written = (self.stream.wr_next as usize)
            .saturating_sub(self.buffer.as_ptr() as usize + HEADER_BYTES)
            .min(self.buffer.len() - HEADER_BYTES);
        let mut ok = true;
        if written > 0 {
            let padded = written.next_multiple_of(8);
            self.buffer[HEADER_BYTES + written..HEADER_BYTES + padded].fill(0);
            let header = self.header(written, padded - written);
            self.buffer[..HEADER_BYTES].copy_from_slice(&header);
            ok = write_all(self.socket, &self.buffer[..HEADER_BYTES + padded]);
        }
        if closes {
            ok &= write_all(self.socket, &self.header(0, 0));
        }
        ok
    }

    fn header(&self, content: usize, padding: usize) -> [u8; HEADER_BYTES] {
        let [id_high, id_low] = self.request_id.to_be_bytes();
        let [len_high, len_low] = (content as u16).to_be_bytes();
        [1, self.kind, id_high, id_low, len_high, len_low, padding as u8, 0]
    }
}

/// `emptyBuffProc` of these streams.
unsafe extern "C" fn empty_records(stream: *mut Stream, closes: c_int) {
    // SAFETY: `data` points to the writer, to which the stream belongs.
    let writer = unsafe { &mut *(*stream).data.cast::<RecordWriter>() };
    if writer.empty(closes != 0) {
        writer.renew();
    } else {
        writer.stream.fail(errno());
    }
}

fn write_all(socket: c_int, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: the slice is valid memory.
        let written = unsafe { libc::write(socket, bytes.as_ptr().cast(), bytes.len()) };
        let Ok(written) = usize::try_from(written) else { return false };
        bytes = &bytes[written..];
    }
    true
}
