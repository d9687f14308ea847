//! TLS that is established: seals what is sent, opens what arrives.

use std::os::fd::OwnedFd;

use baton_buf::{MemorySink, Sender, Stop, Unsent};
use baton_tls::{ALERT_BYTES_MAX, Alert, OriginEstablished, RECORD_BYTES_MAX, Records, Stopped};
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
        let (taken, stopped) = self
            .records
            .open_each(&mut self.arrived, |data| {
                into.extend_from_slice(data);
                into.len() < room
            })
            .map_err(|_| Errno::PROTO)?;
        self.has_ended = stopped == Stopped::End;
        self.arrived.drain(..taken);
        Ok(())
    }

    /// Seals what is in front of the queue. It counts as sent then, although the socket may not have taken it.
    pub(super) fn take(&mut self, sender: &mut Sender, is_file: bool) -> Result<(), Stop> {
        if self.has_unsent() {
            return Err(Stop::Full);
        }
        let sink = MemorySink::new(BATCH_BYTES, |pieces, _| self.seal(pieces));
        if !is_file {
            return sender.send_memory(&sink, false, &[]);
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
