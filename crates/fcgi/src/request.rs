//! What the server writes: a request, and records during the answer.

use crate::handover;
use crate::params;
use crate::record::{
    CONTENT_BYTES_MAX, HEADER_BYTES, MANAGEMENT_ID, RecordType, header, push_record, push_stream,
};
use crate::{FileRange, RegionSlice};

/// The role of an application that answers HTTP requests (FastCGI 1.0 section 6.2), the only one Baton asks
/// for.
pub const RESPONDER: u16 = 1;

/// Appends the record that begins a request. `keep_connection`: the application must not close the connection
/// when it has answered.
pub fn push_begin(out: &mut Vec<u8>, id: u16, keep_connection: bool) {
    let [high, low] = RESPONDER.to_be_bytes();
    let flags = u8::from(keep_connection);
    push_record(out, RecordType::BeginRequest, id, &[high, low, flags, 0, 0, 0, 0, 0]);
}

/// Appends a block of pairs made with [`params::push`]: as many records as it takes, and the empty one that
/// ends it.
pub fn push_params(out: &mut Vec<u8>, id: u16, block: &[u8]) {
    push_stream(out, RecordType::Params, id, block);
    out.extend_from_slice(&header(RecordType::Params, id, 0));
}

/// Appends a part of the request's body; nothing for no bytes.
pub fn push_stdin(out: &mut Vec<u8>, id: u16, bytes: &[u8]) {
    push_stream(out, RecordType::Stdin, id, bytes);
}

/// The header of a record with `len` bytes of the body, which are sent from where they are; no padding
/// follows.
///
/// # Panics
/// If `len` is not within 1 and [`CONTENT_BYTES_MAX`].
pub const fn stdin_header(id: u16, len: usize) -> [u8; HEADER_BYTES] {
    assert!(len > 0 && len <= CONTENT_BYTES_MAX, "an empty record ends the body");
    header(RecordType::Stdin, id, len)
}

/// Appends the end of the body, which every request needs, also one without a body.
pub fn push_stdin_end(out: &mut Vec<u8>, id: u16) {
    out.extend_from_slice(&header(RecordType::Stdin, id, 0));
}

/// Appends `FCGI_ABORT_REQUEST`: the server no longer wants the answer. The application still ends the request.
pub fn push_abort(out: &mut Vec<u8>, id: u16) {
    out.extend_from_slice(&header(RecordType::AbortRequest, id, 0));
}

/// Appends the question for the values of these variables (section 4.1).
///
/// # Panics
/// If the names do not fit into one record.
pub fn push_get_values(out: &mut Vec<u8>, names: &[&str]) {
    let mut block = Vec::new();
    for name in names {
        params::push(&mut block, name.as_bytes(), b"");
    }
    push_record(out, RecordType::GetValues, MANAGEMENT_ID, &block);
}

/// Appends `FREED`: this many bytes of the region may be overwritten, in the order of their announcement.
pub fn push_freed(out: &mut Vec<u8>, id: u16, bytes: u32) {
    handover::push_freed(out, id, bytes);
}

/// Appends `GIVE_BACK`: the application must hand the rest of its answer back as soon as it can.
pub fn push_give_back(out: &mut Vec<u8>, id: u16) {
    handover::push_give_back(out, id);
}

/// Appends `SLICES`: the next pieces of the request's body are in the pool. Nothing for no slices.
pub fn push_slices(out: &mut Vec<u8>, id: u16, slices: &[RegionSlice]) {
    handover::push_slices(out, id, slices);
}

/// Appends `FILE`: the next piece of the request's body is in the file that came with the request.
pub fn push_file(out: &mut Vec<u8>, id: u16, range: FileRange) {
    handover::push_file(out, id, range);
}
