//! Packs the frames of one batch, so that small ones of many streams leave together.

use baton_buf::{Aggregate, Piece, Pool, Unfrozen};

/// The memory that batches of frames are written to, shared by the connections of one loop.
///
/// Heads of frames, control frames and small pieces are copied into one buffer, in order; larger pieces and ranges of
/// files stay what they are, between slices of that buffer. So a hundred small responses are one slice, and one `send`.
#[derive(Debug)]
pub struct Packer {
    pool: Pool,
    /// Empty between two batches.
    pieces: Vec<Placed>,
}

/// A piece, and how much of the buffer comes before it.
#[derive(Debug)]
struct Placed {
    before: usize,
    piece: Piece,
}

impl Packer {
    /// Memory for batches. It is recycled when the batch has been sent.
    pub fn new() -> Self {
        Self { pool: Pool::new(BUFFERS_MAX, BUFFER_BYTES_MAX), pieces: Vec::new() }
    }

    /// Begins a batch.
    pub(crate) fn begin(&mut self) -> Batch<'_> {
        let bytes = self.pool.take();
        Batch { packer: self, bytes, placed_bytes: 0 }
    }
}

impl Default for Packer {
    fn default() -> Self {
        Self::new()
    }
}

/// Frames on their way into an aggregate.
#[derive(Debug)]
pub(crate) struct Batch<'p> {
    packer: &'p mut Packer,
    bytes: Unfrozen,
    placed_bytes: u64,
}

impl Batch<'_> {
    /// Bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64 + self.placed_bytes
    }

    /// Where bytes are written that are copied.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Leaves room for the head of a frame whose payload comes next.
    pub(crate) fn reserve<const LEN: usize>(&mut self) -> usize {
        self.bytes.extend_from_slice(&[0; LEN]);
        self.bytes.len() - LEN
    }

    /// Fills in what was left out at `at`.
    pub(crate) fn fill(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Takes the reservation at the end back.
    pub(crate) fn give_up(&mut self, at: usize) {
        self.bytes.truncate(at);
    }

    /// Adds a piece.
    pub(crate) fn push(&mut self, piece: Piece) {
        match &piece {
            Piece::Memory(slice) if slice.len() <= COPIED_BYTES_MAX => self.bytes.extend_from_slice(slice),
            _ => {
                self.placed_bytes += piece.len();
                self.packer.pieces.push(Placed { before: self.bytes.len(), piece });
            }
        }
    }

    /// Ends the batch: all of it goes behind what is in `out`.
    pub(crate) fn finish(self, out: &mut Aggregate) {
        let buffer = self.packer.pool.freeze(self.bytes);
        let mut start = 0;
        for placed in self.packer.pieces.drain(..) {
            if placed.before > start {
                out.push(buffer.slice(start, placed.before));
                start = placed.before;
            }
            out.push(placed.piece);
        }
        out.push(buffer.slice(start, buffer.len()));
    }
}

/// Longest piece that is copied, in bytes. It then needs no reference, and no entry of an I/O vector: that is dearer than
/// copying up to some 3 KB (decision 0031).
const COPIED_BYTES_MAX: usize = 2048;

/// Buffers that the pool remembers: batches that are under way to clients who read slowly.
const BUFFERS_MAX: usize = 64;

/// The largest buffer that is kept for another batch, in bytes: what a batch of small responses comes to.
const BUFFER_BYTES_MAX: usize = 128 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use baton_buf::Slice;

    fn lens(out: &Aggregate) -> Vec<u64> {
        out.pieces().map(Piece::len).collect()
    }

    #[test]
    fn small_pieces_are_one_slice_and_large_ones_stay() {
        let mut packer = Packer::new();
        let mut out = Aggregate::new();
        let mut batch = packer.begin();
        let head = batch.reserve::<2>();
        batch.push(Slice::from(vec![b'a'; 3]).into());
        batch.fill(head, b"xy");
        batch.push(Slice::from(vec![b'b'; COPIED_BYTES_MAX + 1]).into());
        batch.push(Slice::from(vec![b'c'; COPIED_BYTES_MAX + 2]).into());
        batch.bytes().push(b'z');
        let gone = batch.reserve::<9>();
        batch.give_up(gone);
        assert_eq!(batch.len(), (6 + 2 * COPIED_BYTES_MAX + 3) as u64);
        batch.finish(&mut out);
        assert_eq!(lens(&out), [5, COPIED_BYTES_MAX as u64 + 1, COPIED_BYTES_MAX as u64 + 2, 1]);
        let Some(Piece::Memory(first)) = out.front() else { panic!() };
        assert_eq!(&first[..], b"xyaaa");
    }

    #[test]
    fn nothing_is_added_without_frames() {
        let mut packer = Packer::new();
        let mut out = Aggregate::new();
        packer.begin().finish(&mut out);
        assert!(out.is_empty());
    }
}
