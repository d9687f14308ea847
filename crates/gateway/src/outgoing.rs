//! What is still to be written to an application.
//!
//! A request is one message, with one system call and the descriptor that may go with it, as long as its body is short.
//! A longer body follows as the socket takes it, from the memory or the file in which it lies, while the answer is
//! already being read: an application may answer before it has read everything.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use baton_buf::{Aggregate, Piece, Slice, gather};
use baton_fcgi::offer::WHOLE_BYTES;
use baton_fcgi::record::CONTENT_BYTES_MAX;
use baton_fcgi::request;
use rustix::io::Errno;

use crate::ClientSocket;

/// The bytes of a request, or orders behind it, on their way.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// Whole records, or all of a request that is in no records; the memory is used again and again.
    first: Vec<u8>,
    first_sent: usize,
    /// What follows, in records.
    queue: Aggregate,
    /// What is to be put into records yet.
    body: Aggregate,
    /// The request whose body that is; `None`: a body in no records.
    records_of: Option<u16>,
    /// More of the body is to come.
    is_open: bool,
    /// Goes with the first byte.
    descriptor: Option<Descriptor>,
    written: u64,
    /// Calls that have sent something since this message was begun, and how much.
    sends: u32,
    sent: usize,
}

/// What is sent beside the bytes.
#[derive(Debug)]
pub(crate) enum Descriptor {
    Client(Arc<ClientSocket>),
    Region(OwnedFd),
}

impl Outgoing {
    /// Begins a message; what `first` holds is written by the caller.
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.first.clear();
        self.first_sent = 0;
        self.queue.clear();
        self.body.clear();
        self.records_of = None;
        self.is_open = false;
        self.descriptor = None;
        (self.sends, self.sent) = (0, 0);
        &mut self.first
    }

    /// Sends a descriptor with the first byte.
    pub(crate) fn attach(&mut self, descriptor: Descriptor) {
        self.descriptor = Some(descriptor);
    }

    /// Adds the body of a FastCGI request and its end, or the beginning of one of which more is to come.
    pub(crate) fn push_body(&mut self, id: u16, body: &Aggregate, is_open: bool) {
        self.is_open = is_open;
        let in_memory = body.pieces().all(|piece| matches!(piece, Piece::Memory(_)));
        if !is_open && in_memory && body.len() <= COPIED_BODY_BYTES_MAX {
            for piece in body.pieces() {
                if let Piece::Memory(slice) = piece {
                    request::push_stdin(&mut self.first, id, slice);
                }
            }
            request::push_stdin_end(&mut self.first, id);
        } else {
            self.body = body.clone();
            self.records_of = Some(id);
        }
    }

    /// Adds a body as it is, or the beginning of one.
    pub(crate) fn push_raw_body(&mut self, body: &Aggregate, is_open: bool) {
        self.is_open = is_open;
        self.queue = body.clone();
    }

    /// Adds some of a body of which more was to come.
    pub(crate) fn push_more_body(&mut self, part: Slice, is_last: bool) {
        self.is_open = !is_last;
        match self.records_of {
            Some(_) => self.body.push(part),
            None => self.queue.push(part),
        }
    }

    /// Whether more of the body is to come.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Adds an order, which may go between any two records.
    pub(crate) fn push_order(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.queue.is_empty() {
            if self.first_sent == self.first.len() {
                self.first.clear();
                self.first_sent = 0;
            }
            write(&mut self.first);
        } else {
            let mut order = Vec::new();
            write(&mut order);
            self.queue.push(Slice::from(order));
        }
    }

    /// Whether everything that there is has been handed to the kernel.
    pub(crate) fn is_empty(&self) -> bool {
        self.first_sent == self.first.len() && self.queue.is_empty() && self.body.is_empty()
    }

    /// Bytes handed to the kernel since the connection was made.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Whether all that there was left with one call, and was short enough for a library to read it with one
    /// (section 2 of the protocol): then it has been read as a whole, or not at all.
    pub(crate) fn is_one_message(&self) -> bool {
        let is_short = self.sent <= WHOLE_BYTES - BEHIND_BYTES_MAX;
        self.sends == 1 && is_short && self.is_empty() && !self.is_open
    }

    /// Whether there is a descriptor that has not been handed to the kernel.
    pub(crate) fn holds_descriptor(&self) -> bool {
        self.descriptor.is_some()
    }

    /// Writes what the socket takes. Whether that was all.
    ///
    /// # Errors
    /// `EPIPE`, `ECONNRESET` and the like: the application has closed the connection. `EIO` and the like: the body
    /// cannot be read.
    pub(crate) fn flush(&mut self, socket: &OwnedFd) -> Result<bool, Errno> {
        while !self.is_empty() {
            self.fill_queue();
            match self.write_some(socket) {
                Ok(count) => self.advance(count),
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn write_some(&mut self, socket: &OwnedFd) -> Result<usize, Errno> {
        let first = &self.first[self.first_sent..];
        if !first.is_empty() {
            let mut parts = [IoSlice::new(first); PARTS_MAX];
            let mut count = 1;
            for (part, piece) in parts[1..].iter_mut().zip(self.queue.pieces()) {
                let Piece::Memory(slice) = piece else { break };
                *part = IoSlice::new(slice);
                count += 1;
            }
            let descriptor = self.descriptor.as_ref().map(|descriptor| descriptor.as_fd());
            let sent = baton_sys::passing::send_some(socket, &parts[..count], descriptor.as_slice());
            let sent = sent.map_err(errno)?;
            self.descriptor = None;
            return Ok(sent);
        }
        match self.queue.front() {
            Some(Piece::File(slice)) => {
                let mut offset = slice.offset();
                let len = usize::try_from(slice.len()).unwrap_or(usize::MAX);
                match rustix::fs::sendfile(socket, slice.file(), Some(&mut offset), len)? {
                    0 => Err(Errno::IO), // The file has become shorter.
                    sent => Ok(sent),
                }
            }
            _ => gather::send(socket, self.queue.pieces(), false).map_err(errno),
        }
    }

    fn advance(&mut self, count: usize) {
        self.written += count as u64;
        self.sends += 1;
        self.sent += count;
        let of_first = count.min(self.first.len() - self.first_sent);
        self.first_sent += of_first;
        self.queue.advance((count - of_first) as u64);
    }

    /// Puts the next pieces of the body into records.
    fn fill_queue(&mut self) {
        let Some(id) = self.records_of else { return };
        while !self.body.is_empty() && self.queue.len() < QUEUE_BYTES {
            let rest = self.body.split_off(CONTENT_BYTES_MAX as u64);
            let content = std::mem::replace(&mut self.body, rest);
            let header = request::stdin_header(id, content.len() as usize);
            self.queue.push(Slice::from(header.to_vec()));
            self.queue.append(content);
            if self.body.is_empty() && !self.is_open {
                let mut end = Vec::new();
                request::push_stdin_end(&mut end, id);
                self.queue.push(Slice::from(end));
                self.records_of = None;
            }
        }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Client(client) => client.as_fd(),
            Self::Region(region) => region.as_fd(),
        }
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// A body up to this size is copied behind the parameters: cheaper than more vectors.
const COPIED_BODY_BYTES_MAX: u64 = 16 << 10;

/// As much of a body is put into records at a time as a socket may take with one call.
const QUEUE_BYTES: u64 = 256 << 10;

/// What of the request before may lie in front of a request unread: its end, and an order that came too late.
const BEHIND_BYTES_MAX: usize = 1 << 10;

/// Vectors of a request's first message.
const PARTS_MAX: usize = 16;
