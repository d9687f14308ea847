//! Ordered lists of slices of buffers and of ranges of open files.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{Buffer, OpenFile, PipedSlice, SharedSlice, Slice};

/// A range of an open file: bytes that need not be in memory.
#[derive(Clone, Debug)]
pub struct FileSlice {
    file: Arc<OpenFile>,
    offset: u64,
    len: u64,
}

impl FileSlice {
    /// `len` bytes of `file` from byte `offset` on. The file stays open as long as the slice lives.
    pub fn new(file: Arc<OpenFile>, offset: u64, len: u64) -> Self {
        Self { file, offset, len }
    }

    /// The open file.
    pub fn file(&self) -> &OpenFile {
        &self.file
    }

    /// Whether two ranges are of the same open file.
    pub fn is_of_same_file(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }

    /// Where the range begins, in bytes from the start of the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the range is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first `len` bytes of the range, or all of it where it is shorter.
    pub fn prefix(&self, len: u64) -> Self {
        Self { file: Arc::clone(&self.file), offset: self.offset, len: self.len.min(len) }
    }

    fn advance(&mut self, count: u64) {
        self.offset += count;
        self.len -= count;
    }

    fn split_off(&mut self, at: u64) -> Self {
        let rest = Self { file: Arc::clone(&self.file), offset: self.offset + at, len: self.len - at };
        self.len = at;
        rest
    }
}

/// One element of an [`Aggregate`].
#[derive(Clone, Debug)]
pub enum Piece {
    /// Bytes in memory.
    Memory(Slice),
    /// Bytes in memory that another process may write to: only the kernel may look at them, see
    /// [`gather`](crate::gather).
    Shared(SharedSlice),
    /// Bytes of an open file.
    File(FileSlice),
    /// Bytes in a pipe.
    Piped(PipedSlice),
}

impl Piece {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(slice) => slice.len() as u64,
            Self::Shared(slice) => slice.len() as u64,
            Self::File(slice) => slice.len(),
            Self::Piped(slice) => slice.len(),
        }
    }

    /// Whether it can be sent with others in one call.
    pub fn is_in_memory(&self) -> bool {
        matches!(self, Self::Memory(_) | Self::Shared(_))
    }

    /// Whether the piece has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn advance(&mut self, count: u64) {
        match self {
            Self::Memory(slice) => slice.advance(count as usize),
            Self::Shared(slice) => slice.advance(count as usize),
            Self::File(slice) => slice.advance(count),
            Self::Piped(slice) => slice.advance(count),
        }
    }

    fn split_off(&mut self, at: u64) -> Self {
        match self {
            Self::Memory(slice) => Self::Memory(slice.split_off(at as usize)),
            Self::Shared(slice) => Self::Shared(slice.split_off(at as usize)),
            Self::File(slice) => Self::File(slice.split_off(at)),
            Self::Piped(slice) => Self::Piped(slice.split_off(at)),
        }
    }
}

impl From<Slice> for Piece {
    fn from(slice: Slice) -> Self {
        Self::Memory(slice)
    }
}

impl From<Buffer> for Piece {
    fn from(buffer: Buffer) -> Self {
        Self::Memory(buffer.into())
    }
}

impl From<SharedSlice> for Piece {
    fn from(slice: SharedSlice) -> Self {
        Self::Shared(slice)
    }
}

impl From<PipedSlice> for Piece {
    fn from(slice: PipedSlice) -> Self {
        Self::Piped(slice)
    }
}

impl From<FileSlice> for Piece {
    fn from(slice: FileSlice) -> Self {
        Self::File(slice)
    }
}

/// An ordered list of pieces: everything that Baton sends is one of these.
///
/// Empty pieces are never stored. Cloning copies the list, not the bytes.
#[derive(Clone, Debug, Default)]
pub struct Aggregate {
    pieces: VecDeque<Piece>,
    len: u64,
}

impl Aggregate {
    /// An aggregate without bytes; allocates nothing.
    pub const fn new() -> Self {
        Self { pieces: VecDeque::new(), len: 0 }
    }

    /// Number of bytes over all pieces.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pieces in order; none of them is empty.
    pub fn pieces(&self) -> impl DoubleEndedIterator<Item = &Piece> + ExactSizeIterator + Clone {
        self.pieces.iter()
    }

    /// The first piece.
    pub fn front(&self) -> Option<&Piece> {
        self.pieces.front()
    }

    /// Adds a piece at the end.
    pub fn push(&mut self, piece: impl Into<Piece>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.len += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Adds a piece at the front.
    pub fn prepend(&mut self, piece: impl Into<Piece>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.len += piece.len();
            self.pieces.push_front(piece);
        }
    }

    /// Adds all pieces of `other` at the end.
    pub fn append(&mut self, mut other: Self) {
        if self.pieces.capacity() == 0 {
            // The list of the other one will do.
            *self = other;
            return;
        }
        self.len += other.len;
        self.pieces.append(&mut other.pieces);
    }

    /// Drops the first `count` bytes, and with them the references to buffers and files that are no longer needed.
    ///
    /// # Panics
    /// If `count` is larger than the aggregate.
    pub fn advance(&mut self, mut count: u64) {
        assert!(count <= self.len, "advance of an aggregate of {} bytes by {count}", self.len);
        self.len -= count;
        while count > 0 {
            let first = self.pieces.front_mut().expect("a non-empty aggregate has a first piece");
            let len = first.len();
            if count < len {
                first.advance(count);
                return;
            }
            self.pieces.pop_front();
            count -= len;
        }
    }

    /// Takes the first piece off, or its first `bytes_max` bytes if it is longer.
    pub fn take_front(&mut self, bytes_max: u64) -> Option<Piece> {
        let first = self.pieces.front_mut()?;
        let piece = if first.len() <= bytes_max {
            self.pieces.pop_front()?
        } else {
            let rest = first.split_off(bytes_max);
            std::mem::replace(first, rest)
        };
        self.len -= piece.len();
        Some(piece)
    }

    /// Keeps the first `at` bytes and returns the rest (IO-Lite's `IOL_split`): beyond the end the rest is empty.
    pub fn split_off(&mut self, at: u64) -> Self {
        let mut rest = Self::new();
        if at >= self.len {
            return rest;
        }
        let mut before = 0;
        let mut index = 0;
        while before + self.pieces[index].len() <= at {
            before += self.pieces[index].len();
            index += 1;
        }
        rest.pieces = self.pieces.split_off(index);
        if before < at {
            let first = rest.pieces.front_mut().expect("the split lies inside this piece");
            let tail = first.split_off(at - before);
            let head = std::mem::replace(first, tail);
            self.pieces.push_back(head);
        }
        rest.len = self.len - at;
        self.len = at;
        rest
    }

    /// Drops everything, keeping the memory of the list for the next use.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.len = 0;
    }
}
