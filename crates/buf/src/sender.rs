//! An aggregate on its way into a sink: to a client or to an application.
//!
//! Each method that sends makes one call. Between the calls the owner decides: how much of a file may leave at a time,
//! whether it is in memory, what is put into the queue next.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::{Aggregate, Piece, Sink};

/// What is still to be sent, and how much has been.
#[derive(Debug, Default)]
pub struct Sender {
    /// What is still to be sent.
    pub queue: Aggregate,
    sent: u64,
}

/// Why a call has sent nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The sink takes no more for now.
    Full,
    /// The file has become shorter than what was promised of it.
    FileShrank,
    /// Reading the file failed.
    FileFailed,
    /// The peer is gone.
    PeerGone,
}

impl Sender {
    /// Goes on with `queue` where another one has had so many bytes taken.
    pub fn resumed(queue: Aggregate, sent: u64) -> Self {
        Self { queue, sent }
    }

    /// Bytes that have been taken so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends the pieces in memory that are in front; `descriptors` go with the first byte. `more`: bytes will follow what
    /// is in the queue, so that the kernel may keep the last packet for them.
    ///
    /// # Errors
    /// [`Stop::Full`], [`Stop::PeerGone`].
    pub fn send_memory(
        &mut self,
        sink: &(impl Sink + ?Sized),
        more: bool,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), Stop> {
        let sent = sink.send_memory(&self.queue, more, descriptors);
        self.handle_sent(sent)
    }

    /// Sends at most `bytes_max` of the range of a file in front: by way of `through`, or without it by reference, for which
    /// a socket must not block.
    ///
    /// # Errors
    /// Any [`Stop`].
    pub fn send_file(
        &mut self,
        sink: &(impl Sink + ?Sized),
        bytes_max: u64,
        through: Option<&mut [u8]>,
        more: bool,
    ) -> Result<(), Stop> {
        let Some(Piece::File(slice)) = self.queue.front() else { return Ok(()) };
        let Some(memory) = through else {
            let sent = sink.send_file(slice, bytes_max);
            return self.handle_sent(sent);
        };
        let len = memory.len().min(usize::try_from(bytes_max.min(slice.len())).unwrap_or(usize::MAX));
        let memory = &mut memory[..len];
        match rustix::io::retry_on_intr(|| rustix::io::pread(slice.file(), &mut *memory, slice.offset())) {
            Err(_) => Err(Stop::FileFailed),
            Ok(0) => Err(Stop::FileShrank),
            Ok(count) => {
                let more = more || (count as u64) < self.queue.len();
                self.handle_sent(sink.send(&memory[..count], more))
            }
        }
    }

    /// Sends bytes of the pipe that is in front, if one is.
    ///
    /// # Errors
    /// [`Stop::Full`], [`Stop::PeerGone`].
    pub fn send_piped(&mut self, sink: &(impl Sink + ?Sized)) -> Result<(), Stop> {
        let Some(Piece::Piped(slice)) = self.queue.front() else { return Ok(()) };
        let sent = sink.send_piped(slice);
        self.handle_sent(sent)
    }

    /// Takes note of how much of what is in front a sink has taken.
    ///
    /// # Errors
    /// Any [`Stop`].
    pub fn handle_sent(&mut self, sent: Result<u64, Errno>) -> Result<(), Stop> {
        match sent {
            Ok(0) => Err(Stop::FileShrank),
            Ok(count) => {
                self.sent += count;
                self.queue.advance(count);
                Ok(())
            }
            Err(Errno::AGAIN) => Err(Stop::Full),
            Err(Errno::IO | Errno::INVAL | Errno::OVERFLOW | Errno::BADF | Errno::STALE) => {
                Err(Stop::FileFailed)
            }
            Err(_) => Err(Stop::PeerGone),
        }
    }
}
