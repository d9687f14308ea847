//! A connection in memory: a client's end and a server's end of two byte streams, with room for output that the client
//! opens, half-closes, closes and resets.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_buf::{Aggregate, FileSlice, Piece, PipedSlice, Sink};
use baton_tls::{Alert, KernelTransmit, Server};
use baton_upstream::ClientSocket;
use rustix::io::Errno;

use crate::transport::{ByteStream, Transport};

/// The server's end. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct ServerEnd {
    wire: Arc<Mutex<Wire>>,
    /// Whether ranges of files may leave by reference.
    sends_files: bool,
}

/// The client's end.
#[derive(Debug)]
pub(crate) struct ClientEnd(Arc<Mutex<Wire>>);

/// What an edge-triggered poller would tell the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readiness {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) input_ends: bool,
    pub(crate) hung_up: bool,
}

/// How the server has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// It still may send.
    Not,
    /// Its output has ended in order.
    InOrder,
    /// By a reset.
    ByReset,
}

/// What the server had not read when it closed the connection. Unread input makes that a reset, by which the client may
/// lose what it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    Nothing,
    /// The poller had not announced it.
    Unannounced,
    Announced,
}

#[derive(Debug)]
struct Wire {
    input: VecDeque<u8>,
    input_ended: bool,
    /// Bytes that the server has read.
    read: usize,
    /// Bytes that the connection takes before the client has to make room.
    room: usize,
    output: Vec<u8>,
    left: Left,
    server_closed: bool,
    unread: Unread,
    /// The client takes and sends nothing any more.
    client_closed: bool,
    reset_by_client: bool,
    readiness: Readiness,
}

/// Both ends of a connection with room for so many bytes of output.
pub(crate) fn connect(room: usize, sends_files: bool) -> (ServerEnd, ClientEnd) {
    let wire = Wire {
        input: VecDeque::new(),
        input_ended: false,
        read: 0,
        room,
        output: Vec::new(),
        left: Left::Not,
        server_closed: false,
        unread: Unread::Nothing,
        client_closed: false,
        reset_by_client: false,
        readiness: Readiness::default(),
    };
    let wire = Arc::new(Mutex::new(wire));
    (ServerEnd { wire: Arc::clone(&wire), sends_files }, ClientEnd(wire))
}

fn lock(wire: &Mutex<Wire>) -> MutexGuard<'_, Wire> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server's connection in memory.
pub(crate) fn transport(end: ServerEnd, peer: SocketAddr, tls: Option<&Arc<Server>>) -> Transport {
    Transport::over(Arc::new(end), Some(peer), tls)
}

impl ByteStream for ServerEnd {
    fn socket(&self) -> Option<&ClientSocket> {
        None
    }

    fn share_socket(self: Arc<Self>) -> Option<Arc<ClientSocket>> {
        None
    }

    fn receive(&self, into: &mut [u8]) -> Result<usize, Errno> {
        let mut wire = lock(&self.wire);
        if wire.reset_by_client {
            return Err(Errno::CONNRESET);
        }
        if wire.input.is_empty() {
            return if wire.input_ended { Ok(0) } else { Err(Errno::AGAIN) };
        }
        let count = wire.input.len().min(into.len());
        into[..count].copy_from_slice(&wire.input.make_contiguous()[..count]);
        wire.input.drain(..count);
        wire.read += count;
        Ok(count)
    }

    fn sends_files(&self) -> bool {
        self.sends_files
    }

    fn cork(&self) -> bool {
        false
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn seal(&self, _keys: &KernelTransmit) -> bool {
        false
    }

    fn send_alert(&self, _alert: Alert) {}

    fn end_output(&self) -> bool {
        let mut wire = lock(&self.wire);
        if wire.left == Left::Not {
            wire.left = Left::InOrder;
        }
        !wire.client_closed
    }

    fn reset(&self) {
        lock(&self.wire).left = Left::ByReset;
    }
}

impl ServerEnd {
    /// Gives bytes away as far as there is room.
    fn give(&self, bytes: &mut dyn Iterator<Item = &[u8]>) -> Result<u64, Errno> {
        let mut wire = lock(&self.wire);
        assert!(wire.left == Left::Not, "nothing is sent behind the end of the output");
        if wire.client_closed {
            return Err(Errno::PIPE);
        }
        if wire.room == 0 {
            return Err(Errno::AGAIN);
        }
        let before = wire.output.len();
        for piece in bytes {
            let taken = piece.len().min(wire.room);
            wire.output.extend_from_slice(&piece[..taken]);
            wire.room -= taken;
        }
        Ok((wire.output.len() - before) as u64)
    }
}

impl Drop for ServerEnd {
    fn drop(&mut self) {
        let mut wire = lock(&self.wire);
        wire.server_closed = true;
        if wire.left != Left::ByReset {
            wire.left = Left::InOrder;
            wire.unread = match (wire.input.is_empty() || wire.client_closed, wire.readiness.readable) {
                (true, _) => Unread::Nothing,
                (false, true) => Unread::Unannounced,
                (false, false) => Unread::Announced,
            };
        }
    }
}

impl Sink for ServerEnd {
    fn send(&self, bytes: &[u8], _more: bool) -> Result<u64, Errno> {
        self.give(&mut std::iter::once(bytes))
    }

    fn send_memory(
        &self,
        queue: &Aggregate,
        _more: bool,
        _descriptors: &[BorrowedFd<'_>],
    ) -> Result<u64, Errno> {
        let copies: Vec<Vec<u8>> = queue
            .pieces()
            .map_while(|piece| match piece {
                Piece::Memory(slice) => Some(slice.to_vec()),
                Piece::Shared(slice) => {
                    let mut copy = Vec::new();
                    slice.copy_prefix_to(slice.len(), &mut copy);
                    Some(copy)
                }
                Piece::File(_) | Piece::Piped(_) => None,
            })
            .collect();
        self.give(&mut copies.iter().map(Vec::as_slice))
    }

    fn send_file(&self, slice: &FileSlice, window: u64) -> Result<u64, Errno> {
        let room = lock(&self.wire).room.min(window as usize);
        let mut bytes = vec![0; room.max(1)];
        let read = rustix::io::pread(slice.file(), &mut bytes, slice.offset())?;
        if read == 0 { Ok(0) } else { self.give(&mut std::iter::once(&bytes[..read])) }
    }

    // See `Transport::takes_pipes`.
    fn send_piped(&self, _slice: &PipedSlice) -> Result<u64, Errno> {
        Err(Errno::INVAL)
    }
}

impl ClientEnd {
    /// Sends bytes; nothing comes of it when the server has closed the connection.
    pub(crate) fn send(&self, bytes: &[u8]) {
        let mut wire = lock(&self.0);
        if !wire.server_closed && !wire.client_closed {
            wire.input.extend(bytes);
            wire.readiness.readable = true;
        }
    }

    /// Makes room for more output.
    pub(crate) fn make_room(&self, bytes: usize) {
        let mut wire = lock(&self.0);
        // An edge-triggered poller tells of room only where there was none.
        wire.readiness.writable |= wire.room == 0;
        wire.room = wire.room.saturating_add(bytes);
    }

    /// Sends no more.
    pub(crate) fn end_input(&self) {
        let mut wire = lock(&self.0);
        wire.input_ended = true;
        (wire.readiness.readable, wire.readiness.input_ends) = (true, true);
    }

    /// Leaves: what has been sent can still be read.
    pub(crate) fn close(&self) {
        self.end_input();
        let mut wire = lock(&self.0);
        wire.client_closed = true;
        (wire.readiness.writable, wire.readiness.hung_up) = (true, true);
    }

    /// Leaves at once.
    pub(crate) fn reset(&self) {
        self.close();
        lock(&self.0).reset_by_client = true;
    }

    /// Takes no output until there is room again.
    pub(crate) fn fill(&self) {
        lock(&self.0).room = 0;
    }

    /// What there is to tell the server since this was asked last.
    pub(crate) fn take_readiness(&self) -> Option<Readiness> {
        let readiness = std::mem::take(&mut lock(&self.0).readiness);
        (readiness != Readiness::default()).then_some(readiness)
    }

    /// Takes the output that has not been taken yet.
    pub(crate) fn take_output(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.0).output)
    }

    /// Whether there is something to tell the server.
    pub(crate) fn has_readiness(&self) -> bool {
        lock(&self.0).readiness != Readiness::default()
    }

    /// Whether the server could read without waiting.
    pub(crate) fn has_input(&self) -> bool {
        let wire = lock(&self.0);
        !wire.input.is_empty() || wire.input_ended
    }

    /// Whether the server could write without waiting.
    pub(crate) fn has_room(&self) -> bool {
        let wire = lock(&self.0);
        wire.room > 0 || wire.client_closed
    }

    /// Bytes that the server has read.
    pub(crate) fn bytes_read(&self) -> usize {
        lock(&self.0).read
    }

    /// How the server has left; the client sees it behind the output.
    pub(crate) fn server_left(&self) -> Left {
        lock(&self.0).left
    }

    /// What the server had not read when it closed the connection.
    pub(crate) fn unread_at_close(&self) -> Unread {
        lock(&self.0).unread
    }

    /// Whether the server holds the connection no more.
    pub(crate) fn is_closed_by_server(&self) -> bool {
        lock(&self.0).server_closed
    }
}
