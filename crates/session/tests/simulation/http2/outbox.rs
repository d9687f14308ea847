//! What the client sends, and what the server knows once it has read it.

use std::collections::VecDeque;

use crate::link::ClientSocket;

/// What the server learns from a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// The client speaks HTTP/2.
    Preface,
    /// The head of the request on this stream.
    Head(u32),
    /// The end of the request on this stream.
    End(u32),
    /// The server may send so many bytes more; stream 0 is the connection.
    Window(u32, u32),
    /// SETTINGS that are to be acknowledged.
    Settings,
    /// The client has acknowledged those of the server.
    SettingsAck,
    /// A PING that is to be answered.
    Ping,
}

/// Bytes that wait to be sent, and marks at the ends of frames.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
    marks: VecDeque<(usize, Mark)>,
}

impl Outbox {
    /// Adds a frame. Returns where it ends in all that the client sends.
    pub(super) fn push(&mut self, frame: &[u8], mark: Option<Mark>) -> usize {
        self.bytes.extend_from_slice(frame);
        let end = self.sent + self.bytes.len();
        self.marks.extend(mark.map(|mark| (end, mark)));
        end
    }

    /// Bytes that have been sent.
    pub(super) fn sent(&self) -> usize {
        self.sent
    }

    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Sends at most so many bytes. Returns how many the connection took.
    pub(super) fn send(&mut self, bytes_max: usize, link: &mut dyn ClientSocket) -> usize {
        let len = bytes_max.min(self.bytes.len());
        let count = link.send(&self.bytes[..len]);
        self.bytes.drain(..count);
        self.sent += count;
        count
    }

    /// The next mark in the first `bytes_read` bytes.
    pub(super) fn take_read(&mut self, bytes_read: usize) -> Option<Mark> {
        self.marks.front().filter(|(end, _)| *end <= bytes_read)?;
        self.marks.pop_front().map(|(_, mark)| mark)
    }
}
