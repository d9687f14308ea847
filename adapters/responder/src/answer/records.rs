//! Standard output as records: separate headers, content without a copy.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use baton_fcgi::application::stdout_header;
use baton_fcgi::record::HEADER_BYTES;
use rustix::io::Errno;

use crate::link::write_all;

/// Content of one record: the most that needs no padding to end on a multiple of eight bytes.
pub(super) const CONTENT_BYTES: usize = 65_528;

/// Records written with one call: a megabyte, more than a Unix socket takes at once.
const RECORDS_PER_CALL: usize = 16;

/// Most pieces of the content.
pub(super) const PIECES_MAX: usize = 6;

/// Headers, as many pieces, what they are cut from, and the tail.
const PARTS_PER_CALL: usize = 2 * RECORDS_PER_CALL + PIECES_MAX + 1;

/// Writes `pieces` in order as `FCGI_STDOUT` of this request, then `tail`, which consists of records: usually with
/// one call, and without a copy.
///
/// # Errors
/// Those of `sendmsg`.
pub(super) fn write_stdout(
    socket: BorrowedFd<'_>,
    request_id: u16,
    pieces: &[&[u8]],
    tail: &[u8],
) -> Result<(), Errno> {
    debug_assert!(pieces.len() <= PIECES_MAX);
    let mut left: usize = pieces.iter().map(|piece| piece.len()).sum();
    let mut cursor = Cursor { pieces, piece: 0, at: 0 };
    loop {
        let now = left.min(RECORDS_PER_CALL * CONTENT_BYTES);
        let mut headers = [[0; HEADER_BYTES]; RECORDS_PER_CALL];
        let records = now.div_ceil(CONTENT_BYTES);
        for (index, header) in headers.iter_mut().take(records).enumerate() {
            *header = stdout_header(request_id, (now - index * CONTENT_BYTES).min(CONTENT_BYTES));
        }
        left -= now;
        let mut parts = [IoSlice::new(&[]); PARTS_PER_CALL];
        let mut filled = 0;
        for (index, header) in headers.iter().take(records).enumerate() {
            parts[filled] = IoSlice::new(header);
            filled += 1;
            let mut content = (now - index * CONTENT_BYTES).min(CONTENT_BYTES);
            while content > 0 {
                let part = cursor.next(content);
                parts[filled] = IoSlice::new(part);
                filled += 1;
                content -= part.len();
            }
        }
        if left == 0 {
            parts[filled] = IoSlice::new(tail);
            filled += 1;
        }
        write_all(socket, &mut parts[..filled])?;
        if left == 0 {
            return Ok(());
        }
    }
}

/// Where in the pieces the next record begins.
struct Cursor<'a, 'p> {
    pieces: &'p [&'a [u8]],
    piece: usize,
    at: usize,
}

impl<'a> Cursor<'a, '_> {
    /// The next contiguous bytes, at most `bytes`. There must be some left.
    fn next(&mut self, bytes: usize) -> &'a [u8] {
        while self.at == self.pieces[self.piece].len() {
            (self.piece, self.at) = (self.piece + 1, 0);
        }
        let piece = self.pieces[self.piece];
        let end = piece.len().min(self.at + bytes);
        let part = &piece[self.at..end];
        self.at = end;
        part
    }
}
