//! TLS that is established: seals what is sent, opens what arrives.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use baton_buf::gather::GATHERED_MAX;
use baton_buf::{Aggregate, FileSlice, Piece, PipedSlice, Sender, Sink, Stop};
use baton_tls::{ALERT_BYTES_MAX, Alert, Opened, OriginEstablished, RECORD_BYTES_MAX, Records};
use rustix::io::Errno;

/// The records of a connection.
#[derive(Debug)]
pub(super) struct Sealed {
    records: Records,
    /// Records that have arrived and are not opened: an incomplete one, or those for which there was no room.
    arrived: Vec<u8>,
    /// The other side has said that nothing follows.
    has_ended: bool,
    unsent: Unsent,
}

/// Records that the socket has not taken.
#[derive(Debug, Default)]
pub(super) struct Unsent(pub(super) Vec<u8>);

impl Sealed {
    pub(super) fn new(established: OriginEstablished, unsent: Unsent) -> Self {
        let OriginEstablished { records, unread, .. } = established;
        Self { records, arrived: unread, has_ended: false, unsent }
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    pub(super) fn flush(&mut self, socket: &OwnedFd) -> Result<bool, Errno> {
        self.unsent.flush(socket, false)
    }

    /// Says that nothing follows.
    pub(super) fn say_end(&mut self, socket: &OwnedFd) {
        let mut record = vec![0; ALERT_BYTES_MAX];
        if let Ok(len) = self.records.seal_alert(Alert::CLOSE_NOTIFY, &mut record) {
            self.unsent.0.extend_from_slice(&record[..len]);
            // All else was sent, so there is room; if not, the other side sees a cut.
            let _ = self.unsent.flush(socket, false);
        }
    }

    /// See [`Channel::read`](super::Channel::read).
    pub(super) fn read(&mut self, socket: &OwnedFd, into: &mut Vec<u8>) -> Result<usize, Errno> {
        let room = into.capacity().max(1);
        loop {
            self.open(into, room)?;
            if !into.is_empty() || self.has_ended {
                return Ok(into.len());
            }
            self.arrived.reserve(READ_BYTES);
            let read = rustix::io::read(socket, rustix::buffer::spare_capacity(&mut self.arrived));
            if self.arrived.is_empty() {
                // A connection that rests holds no memory.
                self.arrived = Vec::new();
            }
            match read {
                Ok(0) => return Err(Errno::CONNRESET),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Opens records while `into` has less than `room` bytes: it takes the last one whole.
    fn open(&mut self, into: &mut Vec<u8>, room: usize) -> Result<(), Errno> {
        let mut at = 0;
        while into.len() < room && !self.has_ended {
            match self.records.open(&mut self.arrived[at..]).map_err(|_| Errno::PROTO)? {
                Opened::Data { data, consumed } => {
                    into.extend_from_slice(&self.arrived[at..][data]);
                    at += consumed;
                }
                Opened::Control { consumed } => at += consumed,
                Opened::Part => break,
                Opened::End => self.has_ended = true,
            }
        }
        self.arrived.drain(..at);
        Ok(())
    }

    /// Seals what is in front of the queue. It counts as sent then, although the socket may not have taken it.
    pub(super) fn take(&mut self, sender: &mut Sender, is_file: bool) -> Result<(), Stop> {
        if self.has_unsent() {
            return Err(Stop::Full);
        }
        let sink = Sealer(RefCell::new(self));
        if !is_file {
            return sender.send_memory(&sink, false, None);
        }
        let mut memory = vec![0; FILE_BYTES];
        sender.send_file(&sink, FILE_BYTES as u64, Some(&mut memory), false)
    }

    fn seal(&mut self, pieces: &[&[u8]]) -> Result<u64, Errno> {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        let len = len.min(BATCH_BYTES);
        let out = &mut self.unsent.0;
        // Room for records of the smallest size that the record layer chooses.
        out.resize(len + (len / SMALL_RECORD_BYTES_MIN + 2) * RECORD_OVERHEAD_BYTES, 0);
        // Without a clock records stay small for the first 64 KiB, and large behind that.
        let sealed = self.records.seal(pieces, 0, out).map_err(|_| Errno::PIPE)?;
        out.truncate(sealed.written);
        Ok(sealed.taken as u64)
    }
}

impl Unsent {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends as much as the socket takes; whether that is all. `more`: other bytes follow at once.
    pub(super) fn flush(&mut self, socket: &OwnedFd, more: bool) -> Result<bool, Errno> {
        while !self.0.is_empty() {
            match socket.as_fd().send(&self.0, more) {
                Ok(count) => _ = self.0.drain(..usize::try_from(count).unwrap_or(usize::MAX)),
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.0 = Vec::new();
        Ok(true)
    }
}

/// Takes the bytes of a queue, and seals them.
struct Sealer<'a>(RefCell<&'a mut Sealed>);

impl Sink for Sealer<'_> {
    // Only responses come through pipes.
    fn send_piped(&self, _slice: &PipedSlice) -> Result<u64, Errno> {
        Err(Errno::INVAL)
    }

    fn send(&self, bytes: &[u8], _more: bool) -> Result<u64, Errno> {
        self.0.borrow_mut().seal(&[bytes])
    }

    fn send_memory(
        &self,
        queue: &Aggregate,
        _more: bool,
        _descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<u64, Errno> {
        // What an application may still change cannot be sealed where it lies.
        if let Some(Piece::Shared(slice)) = queue.front() {
            let mut copy = Vec::new();
            slice.copy_prefix_to(slice.len().min(BATCH_BYTES), &mut copy);
            return self.0.borrow_mut().seal(&[&copy]);
        }
        let mut pieces: [&[u8]; GATHERED_MAX] = [&[]; GATHERED_MAX];
        let mut count = 0;
        for (place, piece) in pieces.iter_mut().zip(queue.pieces()) {
            let Piece::Memory(slice) = piece else { break };
            *place = slice;
            count += 1;
        }
        self.0.borrow_mut().seal(&pieces[..count])
    }

    fn send_file(&self, _slice: &FileSlice, _bytes_max: u64) -> Result<u64, Errno> {
        Err(Errno::INVAL)
    }
}

/// Data that are sealed at once: what a socket usually takes.
const BATCH_BYTES: usize = 64 << 10;

/// Bytes of a file that are read and sealed at once.
const FILE_BYTES: usize = 64 << 10;

/// Bytes of records read at once.
const READ_BYTES: usize = 64 << 10;

/// The record layer makes no smaller records of more data than that.
const SMALL_RECORD_BYTES_MIN: usize = 1 << 10;

/// What a record adds, and a change of keys in front of it.
const RECORD_OVERHEAD_BYTES: usize = 2 * ALERT_BYTES_MAX + 8;

const _: () = assert!(BATCH_BYTES > RECORD_BYTES_MAX);
