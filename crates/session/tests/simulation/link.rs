//! A client's end of its connection: in memory, or a real socket, which an application can be given.

use std::fmt;

use crate::memory::{ClientEnd, Left, Readiness, Unread};

/// A client's end of a connection, and what it knows of the server's.
pub(crate) trait ClientSocket: fmt::Debug {
    /// Sends bytes, as many as there is room for, and returns how many. Nothing comes of them when the server has closed
    /// the connection.
    fn send(&mut self, bytes: &[u8]) -> usize;
    /// Takes so many bytes of output more, now or when they come.
    fn make_room(&mut self, bytes: usize);
    /// Sends no more.
    fn end_input(&mut self);
    /// Leaves: what has been sent can still be read.
    fn close(&mut self);
    /// Leaves at once.
    fn reset(&mut self);
    /// What there is to tell the server since this was asked last.
    fn take_readiness(&mut self) -> Option<Readiness>;
    /// Whether there is something to tell the server.
    fn has_readiness(&self) -> bool;
    /// The output since this was asked last.
    fn take_output(&mut self) -> Vec<u8>;
    /// Whether the server could read without waiting.
    fn has_input(&self) -> bool;
    /// Whether the server could write without waiting.
    fn has_room(&self) -> bool;
    /// Bytes that the server has read.
    fn bytes_read(&self) -> usize;
    /// How the server has left.
    fn server_left(&self) -> Left;
    /// What the server had not read when it closed the connection.
    fn unread_at_close(&self) -> Unread;
    /// Whether the server holds the connection no more.
    fn is_closed_by_server(&self) -> bool;
    /// The server's session is over.
    fn handle_session_end(&mut self);
    /// Whether it tells a reset from an orderly end, and takes neither more nor less than there is room for. If not, it
    /// is a Unix socket, which applications can be given.
    fn is_in_memory(&self) -> bool;
    /// Whether TLS is on it: then the server counts bytes of data that are in the middle of a record.
    fn is_sealed(&self) -> bool {
        false
    }
}

impl ClientSocket for ClientEnd {
    fn send(&mut self, bytes: &[u8]) -> usize {
        Self::send(self, bytes);
        bytes.len()
    }

    fn make_room(&mut self, bytes: usize) {
        Self::make_room(self, bytes);
    }

    fn end_input(&mut self) {
        Self::end_input(self);
    }

    fn close(&mut self) {
        Self::close(self);
    }

    fn reset(&mut self) {
        Self::reset(self);
    }

    fn take_readiness(&mut self) -> Option<Readiness> {
        Self::take_readiness(self)
    }

    fn has_readiness(&self) -> bool {
        Self::has_readiness(self)
    }

    fn take_output(&mut self) -> Vec<u8> {
        Self::take_output(self)
    }

    fn has_input(&self) -> bool {
        Self::has_input(self)
    }

    fn has_room(&self) -> bool {
        Self::has_room(self)
    }

    fn bytes_read(&self) -> usize {
        Self::bytes_read(self)
    }

    fn server_left(&self) -> Left {
        Self::server_left(self)
    }

    fn unread_at_close(&self) -> Unread {
        Self::unread_at_close(self)
    }

    fn is_closed_by_server(&self) -> bool {
        Self::is_closed_by_server(self)
    }

    fn handle_session_end(&mut self) {}

    fn is_in_memory(&self) -> bool {
        true
    }
}
