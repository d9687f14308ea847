//! The body of a request: pieces in the buffer of the connection, in the server's pool, or in a file of the server's.

use std::collections::VecDeque;
use std::ops::Range;

use baton_fcgi::offer::Bodies;
use baton_fcgi::{Broken, FileRange, RegionSlice};
use baton_pool::View;
use rustix::io::Errno;

use crate::descriptors::Descriptors;

/// A piece of a request's body that has arrived: see [`Connection::bytes`](crate::Connection::bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyPiece {
    pub(crate) source: Source,
    pub(crate) range: Range<usize>,
}

/// Where a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the buffer of the connection, where it may be changed.
    Buffer,
    Pool,
    File,
}

impl BodyPiece {
    /// The end of a body.
    pub(crate) const END: Self = Self { source: Source::Buffer, range: 0..0 };

    /// Bytes in it. 0: the body has ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there are none: the body has ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Whether the program may change the bytes in place. Others are the server's.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.source == Source::Buffer
    }

    /// Whether the bytes are in the server's pool: they are there until the request ends, at most.
    #[must_use]
    pub fn is_in_pool(&self) -> bool {
        self.source == Source::Pool
    }

    /// Where it is in the buffer, the pool or the file, in bytes.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Drops the first `bytes` bytes from view, or all.
    pub fn advance(&mut self, bytes: usize) {
        self.range.start += bytes.min(self.len());
    }
}

/// The memory that a server has lent for bodies on a connection, and the pieces that have arrived of one.
#[derive(Debug, Default)]
pub struct Body {
    pub(crate) pieces: VecDeque<BodyPiece>,
    pool: Option<View>,
    file: Option<View>,
    /// The piece in the pool that the application has, in bytes.
    in_use: usize,
    /// Bytes of the pool that it has finished with, and that have not been returned.
    owed: usize,
}

impl Body {
    /// A request begins: takes the descriptors that came for its body, and forgets the body before.
    ///
    /// # Errors
    /// A descriptor is missing, or cannot be mapped.
    pub fn begin(&mut self, words: Bodies, descriptors: &mut Descriptors) -> Result<(), Errno> {
        if words.pool > 0 {
            let pool = descriptors.take().ok_or(Errno::BADF)?;
            self.pool = Some(View::of_pool(pool, words.pool as usize)?);
        }
        if words.file {
            let file = descriptors.take().ok_or(Errno::BADF)?;
            self.file = Some(View::of_whole_file(file)?);
        }
        Ok(())
    }

    /// Forgets the request at hand. Its end returns everything to the server.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.file = None;
        (self.in_use, self.owed) = (0, 0);
    }

    /// A piece has arrived in the buffer.
    pub fn push_received(&mut self, range: Range<usize>) {
        self.pieces.push_back(BodyPiece { source: Source::Buffer, range });
    }

    /// A piece is in the pool.
    ///
    /// # Errors
    /// It is not.
    pub fn push_slice(&mut self, slice: RegionSlice) -> Result<(), Broken> {
        let bytes = self.pool.as_ref().map_or(0, View::len);
        if slice.len == 0 || !slice.is_within(bytes as u64) {
            return Err(Broken::HandOver);
        }
        let start = slice.offset as usize;
        self.pieces.push_back(BodyPiece { source: Source::Pool, range: start..start + slice.len as usize });
        Ok(())
    }

    /// A piece is in the file.
    ///
    /// # Errors
    /// It is not.
    pub fn push_file(&mut self, range: FileRange) -> Result<(), Broken> {
        let bytes = self.file.as_ref().map_or(0, View::len) as u64;
        let end = range.offset.checked_add(range.len).filter(|end| range.len > 0 && *end <= bytes);
        let end = end.ok_or(Broken::HandOver)?;
        self.pieces.push_back(BodyPiece { source: Source::File, range: range.offset as usize..end as usize });
        Ok(())
    }

    /// The next piece. The application has finished with the one before.
    pub fn take_piece(&mut self) -> Option<BodyPiece> {
        self.owed += std::mem::take(&mut self.in_use);
        let piece = self.pieces.pop_front()?;
        if piece.source == Source::Pool {
            self.in_use = piece.len();
        }
        Some(piece)
    }

    /// Bytes to return to the server now, if they are worth a record.
    pub fn take_owed(&mut self) -> Option<u32> {
        (self.owed >= OWED_BYTES_MAX).then(|| std::mem::take(&mut self.owed) as u32)
    }

    /// The bytes of a piece that is not in the buffer.
    pub fn lent(&self, piece: &BodyPiece) -> &[u8] {
        let view = match piece.source {
            Source::Buffer => None,
            Source::Pool => self.pool.as_ref(),
            Source::File => self.file.as_ref(),
        };
        view.map_or(&[], |view| view.bytes(piece.range.clone()))
    }
}

/// The server lends four times as much (section 6 of the protocol), so it never waits for less.
const OWED_BYTES_MAX: usize = 128 << 10;
