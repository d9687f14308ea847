//! Bytes in a pipe: on their way from one socket to another without coming into this process's memory (`splice`).

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// A pipe that holds the bytes of one [`PipedSlice`] at a time.
pub struct Pipe {
    output: OwnedFd,
    input: OwnedFd,
    held: AtomicU64,
}

impl Pipe {
    fn open() -> Result<Self, Errno> {
        let (output, input) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Beyond a user's bound it stays as it is, and only takes more calls.
        let _ = fcntl_setpipe_size(&input, PIPE_BYTES);
        Ok(Self { output, input, held: AtomicU64::new(0) })
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.held.load(Ordering::Acquire) == 0
    }

    /// Takes at most `bytes_max` bytes that have arrived at a socket. `None`: the peer has ended the connection.
    ///
    /// # Errors
    /// `EAGAIN`: nothing has arrived. `ECONNRESET` and the like: the peer is gone.
    ///
    /// # Panics
    /// If it is not [empty](Self::is_empty): whether the pipe is full or the socket is empty would be unknown.
    pub fn fill(self: &Arc<Self>, socket: impl AsFd, bytes_max: u64) -> Result<Option<PipedSlice>, Errno> {
        assert!(self.is_empty(), "a pipe takes the bytes of one slice at a time");
        let moved = move_bytes(socket.as_fd(), self.input.as_fd(), bytes_max.min(PIPE_BYTES as u64))?;
        self.held.store(moved, Ordering::Release);
        Ok((moved > 0).then(|| PipedSlice { pipe: Arc::clone(self), len: moved }))
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pipe({} bytes)", self.held.load(Ordering::Relaxed))
    }
}

/// The next bytes of a pipe. Unlike other pieces of an aggregate they can be sent once, and in their order only.
#[derive(Clone, Debug)]
pub struct PipedSlice {
    pipe: Arc<Pipe>,
    len: u64,
}

impl PipedSlice {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Moves some of the bytes to a socket that does not block.
    ///
    /// # Errors
    /// `EAGAIN`: it takes none now. `EPIPE` and the like: the peer is gone.
    pub fn send(&self, socket: BorrowedFd<'_>) -> Result<u64, Errno> {
        let moved = move_bytes(self.pipe.output.as_fd(), socket, self.len)?;
        self.note_taken(moved);
        Ok(moved)
    }

    /// Reads some of the bytes into memory, for what takes no others.
    ///
    /// # Errors
    /// `EAGAIN`: they have been taken before.
    pub fn read(&self, into: &mut [u8]) -> Result<usize, Errno> {
        let len = into.len().min(usize::try_from(self.len).unwrap_or(usize::MAX));
        let count = retry_on_intr(|| rustix::io::read(&self.pipe.output, &mut into[..len]))?;
        self.note_taken(count as u64);
        Ok(count)
    }

    fn note_taken(&self, bytes: u64) {
        self.pipe.held.fetch_sub(bytes, Ordering::AcqRel);
    }

    pub(crate) fn advance(&mut self, count: u64) {
        self.len -= count;
    }

    pub(crate) fn split_off(&mut self, at: u64) -> Self {
        let rest = Self { pipe: Arc::clone(&self.pipe), len: self.len - at };
        self.len = at;
        rest
    }
}

/// The pipes of one loop, for reuse.
#[derive(Debug)]
pub struct Pipes {
    issued: VecDeque<Arc<Pipe>>,
    pipes_max: usize,
}

impl Pipes {
    /// At most so many.
    pub fn new(pipes_max: usize) -> Self {
        Self { issued: VecDeque::new(), pipes_max }
    }

    /// An empty pipe, if there is one.
    pub fn take(&mut self) -> Option<Arc<Pipe>> {
        for _ in 0..self.issued.len().min(LOOKS_MAX) {
            let mut oldest = self.issued.pop_front()?;
            match Arc::get_mut(&mut oldest) {
                None => self.issued.push_back(oldest),
                // Of a response that nothing has taken to its end.
                Some(pipe) if !pipe.is_empty() => {}
                Some(_) => {
                    self.issued.push_back(Arc::clone(&oldest));
                    return Some(oldest);
                }
            }
        }
        if self.issued.len() >= self.pipes_max {
            return None;
        }
        let opened = Arc::new(Pipe::open().ok()?);
        self.issued.push_back(Arc::clone(&opened));
        Some(opened)
    }
}

fn move_bytes(from: BorrowedFd<'_>, to: BorrowedFd<'_>, bytes_max: u64) -> Result<u64, Errno> {
    let len = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    retry_on_intr(|| splice(from, None, to, None, len, flags)).map(|count| count as u64)
}

/// Four times the usual size: fewer calls.
const PIPE_BYTES: usize = 256 << 10;

/// How many used pipes a search for a free one skips.
const LOOKS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::{Aggregate, Sender, Stop};

    fn pair() -> (UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (ours, theirs)
    }

    /// Bytes go through a pipe, between others from memory, to a peer that is slower; the pipe is used again.
    #[test]
    fn bytes_arrive_in_order_through_a_pipe() {
        let (from, mut origin) = pair();
        let (to, mut client) = pair();
        let mut pipes = Pipes::new(1);
        let pipe = pipes.take().unwrap();
        assert_eq!(pipe.fill(&from, 10).unwrap_err(), Errno::AGAIN);
        let mut sender = Sender::default();
        for round in 0..3 {
            origin.write_all(b"0123456789").unwrap();
            sender.queue.push(crate::Buffer::new(b"<".to_vec()));
            sender.queue.push(pipe.fill(&from, 8).unwrap().unwrap());
            sender.queue.push(crate::Buffer::new(b">".to_vec()));
            assert!(!pipe.is_empty());
            while !sender.queue.is_empty() {
                sender.send_memory(&to.as_fd(), false, &[]).unwrap();
                sender.send_piped(&to.as_fd()).unwrap();
            }
            assert!(pipe.is_empty(), "round {round}");
            let mut got = [0; 10];
            client.read_exact(&mut got).unwrap();
            let first = [b"<01234567>", b"<89012345>", b"<67890123>"][round];
            assert_eq!(&got, first);
        }
        drop(origin);
        let mut rest = Vec::new();
        while let Some(slice) = pipe.fill(&from, 100).unwrap() {
            let mut piece = [0; 4];
            let count = slice.read(&mut piece).unwrap();
            rest.extend_from_slice(&piece[..count]);
            let mut left = Aggregate::new();
            left.push(slice);
            left.advance(count as u64);
            sender.queue.append(left);
            while !sender.queue.is_empty() {
                sender.send_piped(&to.as_fd()).unwrap();
            }
        }
        assert_eq!(rest, b"4567");
        assert!(pipes.take().is_none(), "the only one is in use");
        drop(pipe);
        assert!(pipes.take().is_some());
    }

    #[test]
    fn a_pipe_that_is_not_empty_is_not_used_again() {
        let (from, mut origin) = pair();
        let mut pipes = Pipes::new(1);
        origin.write_all(b"left over").unwrap();
        let slice = pipes.take().unwrap().fill(&from, 4).unwrap();
        drop(slice);
        assert!(pipes.take().unwrap().is_empty());
    }

    #[test]
    fn a_full_socket_takes_no_more() {
        let (from, mut origin) = pair();
        let (to, _client) = pair();
        let pipe = Pipes::new(1).take().unwrap();
        let mut sender = Sender::default();
        let stop = loop {
            if sender.queue.is_empty() {
                origin.write_all(&[1; 50_000]).unwrap();
                sender.queue.push(pipe.fill(&from, 50_000).unwrap().unwrap());
            }
            if let Err(stop) = sender.send_piped(&to.as_fd()) {
                break stop;
            }
        };
        assert_eq!(stop, Stop::Full);
        assert!(!sender.queue.is_empty());
    }
}
