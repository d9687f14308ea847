//! A client's end with TLS on it: the library's client, over a connection in memory. Records arrive cut at any byte.

use crate::memory::{ClientEnd, Left, Readiness, Unread};

use super::link::ClientSocket;
use crate::tls_client::{NAME, TlsClient};

/// A client that speaks TLS. What it says of bytes are bytes of data.
#[derive(Debug)]
pub(crate) struct TlsLink {
    tls: TlsClient,
    /// Data that wait for the handshake.
    waiting: Vec<u8>,
    /// Records that are on their way, and how many bytes of them arrive at a time, if they are few.
    held: Vec<u8>,
    cut_bytes: usize,
    /// Ends of records in the stream of records, and the bytes of data up to there.
    marks: Vec<(usize, usize)>,
    sealed: usize,
    data: usize,
}

impl TlsLink {
    /// A client that has begun its handshake, and whose records arrive so many bytes at a time.
    pub(crate) fn new(end: ClientEnd, cut_bytes: usize, is_http2: bool) -> Self {
        let (waiting, held, marks) = Default::default();
        let tls = if is_http2 { TlsClient::for_http2(end, NAME) } else { TlsClient::new(end, NAME) };
        let mut link = Self { tls, waiting, held, cut_bytes, marks, sealed: 0, data: 0 };
        link.seal(b"");
        link
    }

    /// Seals data into records of their own.
    fn seal(&mut self, data: &[u8]) {
        let records = self.tls.seal(data);
        self.note(&records, data.len());
    }

    fn note(&mut self, records: &[u8], data: usize) {
        self.held.extend_from_slice(records);
        self.sealed += records.len();
        self.data += data;
        self.marks.push((self.sealed, self.data));
    }

    fn seal_waiting(&mut self) {
        if !self.tls.is_handshaking() {
            for piece in std::mem::take(&mut self.waiting).chunks(RECORD_DATA_MAX) {
                self.seal(piece);
            }
        }
    }

    /// Some bytes of the records arrive: a few, or a part, so that much does not take for ever.
    fn deliver(&mut self) {
        self.deliver_bytes(self.cut_bytes.max(self.held.len() / 4));
    }

    fn deliver_bytes(&mut self, bytes: usize) {
        let len = bytes.min(self.held.len());
        if len > 0 {
            self.tls.end.send(&self.held[..len]);
            self.held.drain(..len);
        }
    }
}

impl ClientSocket for TlsLink {
    fn send(&mut self, bytes: &[u8]) -> usize {
        self.waiting.extend_from_slice(bytes);
        self.seal_waiting();
        self.deliver();
        bytes.len()
    }

    fn make_room(&mut self, bytes: usize) {
        self.tls.end.make_room(bytes);
        self.deliver();
    }

    fn end_input(&mut self) {
        if !self.tls.is_handshaking() {
            let records = self.tls.seal_end();
            self.note(&records, 0);
        }
        self.deliver_bytes(usize::MAX);
        self.tls.end.end_input();
    }

    fn close(&mut self) {
        self.tls.end.close();
    }

    fn reset(&mut self) {
        self.tls.end.reset();
    }

    fn take_readiness(&mut self) -> Option<Readiness> {
        self.tls.end.take_readiness()
    }

    fn has_readiness(&self) -> bool {
        self.tls.end.has_readiness()
    }

    fn take_output(&mut self) -> Vec<u8> {
        let data = self.tls.open().expect("the server has no reason for an alert");
        self.seal(b"");
        self.seal_waiting();
        self.deliver();
        data
    }

    fn has_input(&self) -> bool {
        self.tls.end.has_input()
    }

    fn has_room(&self) -> bool {
        self.tls.end.has_room()
    }

    fn bytes_read(&self) -> usize {
        let read = self.tls.end.bytes_read();
        let whole = self.marks.partition_point(|(end, _)| *end <= read);
        self.marks[..whole].last().map_or(0, |(_, data)| *data)
    }

    /// In order only if it said so: behind a line that ends without a word, an answer may be cut off.
    fn server_left(&self) -> Left {
        match self.tls.end.server_left() {
            Left::InOrder if !self.tls.has_heard_end() => Left::ByReset,
            left => left,
        }
    }

    fn unread_at_close(&self) -> Unread {
        self.tls.end.unread_at_close()
    }

    fn is_closed_by_server(&self) -> bool {
        self.tls.end.is_closed_by_server()
    }

    fn handle_session_end(&mut self) {}

    fn is_in_memory(&self) -> bool {
        true
    }

    fn is_sealed(&self) -> bool {
        true
    }
}

/// Data of a record.
const RECORD_DATA_MAX: usize = 1 << 14;
