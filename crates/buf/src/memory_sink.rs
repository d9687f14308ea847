//! A sink for what cannot leave by reference: it takes bytes from memory, several pieces at once.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::gather::GATHERED_MAX;
use crate::{Aggregate, FileSlice, Piece, PipedSlice, Sink};

/// Gives the bytes in front of a queue to a function, to seal them for example. The function returns how many it has taken,
/// and is told whether more bytes follow.
#[derive(Debug)]
pub struct MemorySink<F> {
    take: RefCell<F>,
    shared_bytes_max: usize,
}

impl<F: FnMut(&[&[u8]], bool) -> Result<u64, Errno>> MemorySink<F> {
    /// A sink that copies at most so many bytes at once out of memory that an application may still change.
    pub fn new(shared_bytes_max: usize, take: F) -> Self {
        Self { take: RefCell::new(take), shared_bytes_max }
    }
}

impl<F: FnMut(&[&[u8]], bool) -> Result<u64, Errno>> Sink for MemorySink<F> {
    fn send(&self, bytes: &[u8], more: bool) -> Result<u64, Errno> {
        (self.take.borrow_mut())(&[bytes], more)
    }

    fn send_memory(
        &self,
        queue: &Aggregate,
        more: bool,
        _descriptors: &[BorrowedFd<'_>],
    ) -> Result<u64, Errno> {
        if let Some(Piece::Shared(slice)) = queue.front() {
            let mut copy = Vec::new();
            slice.copy_prefix_to(slice.len().min(self.shared_bytes_max), &mut copy);
            let more = more || (copy.len() as u64) < queue.len();
            return self.send(&copy, more);
        }
        let mut pieces: [&[u8]; GATHERED_MAX] = [&[]; GATHERED_MAX];
        let mut count = 0;
        for (place, piece) in pieces.iter_mut().zip(queue.pieces()) {
            let Piece::Memory(slice) = piece else { break };
            *place = slice;
            count += 1;
        }
        let more = more || count < queue.pieces().len();
        (self.take.borrow_mut())(&pieces[..count], more)
    }

    /// Its bytes have to be read first.
    fn send_file(&self, _slice: &FileSlice, _bytes_max: u64) -> Result<u64, Errno> {
        Err(Errno::INVAL)
    }

    /// Only a socket takes them.
    fn send_piped(&self, _slice: &PipedSlice) -> Result<u64, Errno> {
        Err(Errno::INVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Sender};

    /// Goal: several pieces are taken with one call, which hears of what is left.
    #[test]
    fn pieces_are_taken_together() {
        let mut sender = Sender::default();
        for _ in 0..GATHERED_MAX + 1 {
            sender.queue.push(Buffer::new(b"ab".to_vec()));
        }
        let mut calls = Vec::new();
        let sink = MemorySink::new(0, |pieces: &[&[u8]], more| {
            calls.push((pieces.concat().len(), more));
            Ok(3)
        });
        sender.send_memory(&sink, false, &[]).unwrap();
        sender.send_memory(&sink, true, &[]).unwrap();
        assert_eq!(calls, [(2 * GATHERED_MAX, true), (2 * GATHERED_MAX - 1, true)]);
        assert_eq!(sender.queue.len(), 2 * GATHERED_MAX as u64 + 2 - 6);
    }
}
