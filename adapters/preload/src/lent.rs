//! The body of a request where the server has it, as the records that the program would have received.
//!
//! ```text
//!   SLICES, FILE ──► pieces in the server's pool or file ──► a header of ours, the bytes from there ──► the program
//!                                                                                      └──► FREED
//! ```

use baton_fcgi::offer::Bodies;
use baton_fcgi::record::{HEADER_BYTES, RecordHeader, RecordType};
use baton_fcgi::{Broken, FileRange, RegionSlice};
use baton_responder::{Body, BodyPiece, Descriptors};
use rustix::io::Errno;

/// What has been lent of the body at hand, and how far the program has read it.
#[derive(Debug, Default)]
pub(crate) struct LentBody {
    request_id: u16,
    body: Body,
    /// The rest of the piece that the program reads.
    piece: Option<BodyPiece>,
    /// The header of its next record, of which the program has read all but so many bytes.
    header: [u8; HEADER_BYTES],
    header_left: usize,
    /// Bytes of the record's content that the program has not read.
    content_left: usize,
    /// What was left in the pool when the request ended.
    kept: Vec<u8>,
    /// It has ended: what is still announced is the next request's, or nothing.
    is_over: bool,
}

impl LentBody {
    /// A request begins: takes the descriptors that came for its body.
    ///
    /// # Errors
    /// A descriptor is missing, or cannot be mapped. What the server lends is broken then.
    pub(crate) fn begin(
        &mut self,
        request_id: u16,
        words: Bodies,
        descriptors: &mut Descriptors,
    ) -> Result<(), Errno> {
        (self.request_id, self.is_over) = (request_id, false);
        self.body.begin(words, descriptors)
    }

    /// Whether the program has read all of it.
    pub(crate) const fn is_read(&self) -> bool {
        self.piece.is_none()
    }

    /// The next piece is in the pool.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn push_slice(&mut self, slice: RegionSlice) -> Result<(), Broken> {
        if !self.is_over {
            self.body.push_slice(slice)?;
            self.open_first();
        }
        Ok(())
    }

    /// The next piece is in the file.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn push_file(&mut self, range: FileRange) -> Result<(), Broken> {
        self.body.push_file(range)?;
        self.open_first();
        Ok(())
    }

    /// The next bytes for the program; none: it has read all.
    pub(crate) fn give(&self) -> &[u8] {
        match &self.piece {
            None => &[],
            Some(_) if self.header_left > 0 => &self.header[HEADER_BYTES - self.header_left..],
            Some(piece) => &self.bytes(piece)[..self.content_left],
        }
    }

    /// So many of them have been given.
    pub(crate) fn given(&mut self, bytes: usize) {
        if self.header_left > 0 {
            self.header_left -= bytes;
        } else if let Some(piece) = &mut self.piece {
            piece.advance(bytes);
            self.content_left -= bytes;
            if self.content_left == 0 {
                self.open();
            }
        }
    }

    /// Bytes to return to the server now, if they are worth a record; the request that they belong to.
    pub(crate) fn take_owed(&mut self) -> Option<(u16, u32)> {
        Some((self.request_id, self.body.take_owed()?))
    }

    /// The request ends, and the server uses the pool again: copies what the program has not read. A script may look at its
    /// body later (`fastcgi_finish_request`).
    pub(crate) fn end(&mut self) {
        self.is_over = true;
        let in_pool = self.piece.take_if(|piece| piece.is_in_pool());
        if let Some(piece) = in_pool {
            self.keep(&piece);
        } else if self.piece.is_none() {
            self.body.clear();
        }
    }

    fn keep(&mut self, piece: &BodyPiece) {
        let mut kept = self.body.lent(piece).to_vec();
        while let Some(piece) = self.body.take_piece() {
            kept.extend_from_slice(self.body.lent(&piece));
        }
        self.body.clear();
        self.body.push_received(0..kept.len());
        self.piece = self.body.take_piece();
        self.kept = kept;
    }

    fn bytes(&self, piece: &BodyPiece) -> &[u8] {
        if piece.is_own() { &self.kept[piece.range()] } else { self.body.lent(piece) }
    }

    fn open_first(&mut self) {
        if self.piece.is_none() {
            self.open();
        }
    }

    /// Begins the next record, of the piece at hand or the one behind it.
    fn open(&mut self) {
        if self.piece.as_ref().is_none_or(BodyPiece::is_empty) {
            self.piece = self.body.take_piece();
        }
        let Some(piece) = &self.piece else { return };
        self.content_left = piece.len().min(CONTENT_BYTES);
        let header = RecordHeader {
            kind: RecordType::Stdin as u8,
            request_id: self.request_id,
            content_len: self.content_left as u16,
            padding_len: 0,
        };
        self.header = header.to_bytes();
        self.header_left = HEADER_BYTES;
    }
}

/// Half a chunk of the pool: two records for each, and none of a few bytes.
const CONTENT_BYTES: usize = 32 << 10;
