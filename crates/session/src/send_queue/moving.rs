//! What is still to be sent, for another process that goes on sending.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use baton_buf::{Aggregate, Buffer, FileSlice, OpenFile, Piece, Sender};
use baton_passport::parcel::{Packer, Unpacker};

use super::SendQueue;

/// Most files in one message: more than a response in parts of one file has, or a page of a few.
pub(crate) const FILES_MAX: usize = 16;

impl SendQueue {
    /// Whether another process can send the rest: it is bytes, and ranges of files that are nothing but files.
    pub(crate) fn is_movable(&self) -> bool {
        let is_movable = |piece: &Piece| match piece {
            Piece::Memory(_) => true,
            Piece::File(slice) => slice.file().is_plain(),
            Piece::Shared(_) | Piece::Piped(_) => false,
        };
        self.waited.is_none()
            && self.sender.queue.pieces().all(is_movable)
            && self.files().len() <= FILES_MAX
            && self.bytes_in_memory() <= MEMORY_BYTES_MAX
    }

    fn bytes_in_memory(&self) -> u64 {
        self.sender.queue.pieces().filter(|piece| piece.is_in_memory()).map(Piece::len).sum()
    }

    /// The files of which there is something to send, each once.
    fn files(&self) -> Vec<&FileSlice> {
        let mut files: Vec<&FileSlice> = Vec::new();
        for piece in self.sender.queue.pieces() {
            if let Piece::File(slice) = piece
                && !files.iter().any(|known| known.is_of_same_file(slice))
            {
                files.push(slice);
            }
        }
        files
    }

    /// Their descriptors, in the order in which [`pack`](Self::pack) counts them.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.files().into_iter().map(|slice| slice.file().as_fd()).collect()
    }

    /// Packs what is to be sent. Bytes that count as sent, and that are not, are `early`.
    pub(crate) fn pack(&self, packer: &mut Packer, early: u64) {
        let files = self.files();
        packer.number(early).number(self.sender.queue.pieces().len() as u64);
        for piece in self.sender.queue.pieces() {
            match piece {
                Piece::Memory(bytes) => _ = packer.flag(false).bytes(bytes),
                Piece::File(slice) => {
                    let index = files.iter().position(|known| known.is_of_same_file(slice));
                    let index = index.unwrap_or(FILES_MAX) as u64;
                    packer.flag(true).number(index).number(slice.offset()).number(slice.len());
                }
                Piece::Shared(_) | Piece::Piped(_) => {}
            }
        }
    }

    /// What another process has packed, with the files that came along. `None`: it has packed something else.
    pub(crate) fn unpack(packed: &mut Unpacker<'_>, files: Vec<OwnedFd>) -> Option<Self> {
        let files: Vec<Arc<OpenFile>> = files.into_iter().map(|file| Arc::new(file.into())).collect();
        let mut queue = Aggregate::new();
        let early = packed.number().filter(|early| *early <= EARLY_BYTES_MAX)?;
        for _ in 0..packed.number().filter(|count| *count <= PIECES_MAX)? {
            if packed.flag()? {
                let file = files.get(usize::try_from(packed.number()?).ok()?)?;
                let (offset, len) = (packed.number()?, packed.number()?);
                // The kernel counts so far.
                offset.checked_add(len).filter(|end| *end <= i64::MAX as u64)?;
                queue.push(FileSlice::new(Arc::clone(file), offset, len));
            } else {
                queue.push(Buffer::new(packed.bytes()?.to_vec()));
            }
        }
        Some(Self { sender: Sender::resumed(queue, early), ..Self::default() })
    }
}

/// Most bytes in memory that go along: less than a passport has room for.
const MEMORY_BYTES_MAX: u64 = 32 << 10;

/// Most bytes that count as sent and are not: more than the records have that a connection keeps.
const EARLY_BYTES_MAX: u64 = 1 << 20;

/// Most pieces: more than a response with the most ranges that may be configured has.
const PIECES_MAX: u64 = 4096;
