//! The output of a connection to an application.
//!
//! A request with a short body is one message, sent with one system call, together with a descriptor if there is one. A
//! longer body follows as the socket takes it, from memory or from a file. Meanwhile the gateway reads the answer: an
//! application may answer before it has read everything.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use baton_buf::gather::DESCRIPTORS_MAX;
use baton_buf::{Aggregate, Piece, Pool, Sender, Slice, Stop, Unfrozen};
use baton_fcgi::offer::WHOLE_BYTES;
use baton_fcgi::record::{CONTENT_BYTES_MAX, HEADER_BYTES};
use baton_fcgi::{Broken, FileRange, RegionSlice, request, scgi};
use baton_http::response::{LAST_CHUNK, push_chunk_head};
use baton_pool::{ChunkPool, Lent, NotLent};
use baton_sys::progress;
use smallvec::SmallVec;

use crate::body_references::BodyReferences;
use crate::channel::Channel;
use crate::{ClientSocket, Request};

/// The unsent bytes of a request, and of control records behind it.
#[derive(Debug)]
pub(crate) struct SendQueue {
    /// Whole records or chunks, or bytes as they are.
    sender: Sender,
    /// Reused memory for records.
    memory: Pool,
    /// The part of the body that is not in records yet.
    body: Aggregate,
    /// The FastCGI id for records of the body; `None`: another protocol, or no body left.
    records_of: Option<u16>,
    /// The body goes out in chunks.
    is_chunked: bool,
    /// More of the body is to come.
    is_open: bool,
    /// Sent with the first byte.
    descriptors: Descriptors,
    /// The pool that the application at the other end can read.
    pool: Option<ChunkPool>,
    /// The body is in a file whose descriptor goes along.
    passes_file: bool,
    /// The application has said that it takes references.
    refers: bool,
    /// What of the body the application may be looking at.
    lent: Lent<Slice>,
    /// Bytes at the beginning of the message that are sent with a call of their own; 0: it is not split.
    split: u64,
    /// Bytes sent before this message, and the calls that have sent some of it.
    begun_at: u64,
    sends: u32,
}

/// A descriptor sent with a request.
#[derive(Debug)]
pub(crate) enum Descriptor {
    Client(Arc<ClientSocket>),
    Own(OwnedFd),
    Pool(ChunkPool),
}

pub(crate) type Descriptors = SmallVec<[Descriptor; DESCRIPTORS_MAX]>;

impl Default for SendQueue {
    fn default() -> Self {
        Self {
            sender: Sender::default(),
            memory: Pool::new(MESSAGES_MAX, MESSAGE_BYTES_MAX),
            body: Aggregate::new(),
            records_of: None,
            is_chunked: false,
            is_open: false,
            descriptors: Descriptors::new(),
            pool: None,
            passes_file: false,
            refers: false,
            lent: Lent::default(),
            split: 0,
            begun_at: 0,
            sends: 0,
        }
    }
}

impl SendQueue {
    /// Begins a FastCGI request. `block`: its parameters, perhaps with an offer in front. `splits`: sends it with two calls,
    /// so that [`is_begun`](Self::is_begun) can tell whether the application has read the first.
    pub(crate) fn push_fastcgi(&mut self, id: u16, keep: bool, block: &[u8], splits: bool, asked: &Request) {
        let mut first = self.begin(asked);
        request::push_begin(&mut first, id, keep);
        request::push_params(&mut first, id, block);
        if splits {
            // In front of the record that ends the parameters. No application answers without it, so the second call never
            // comes after an answer.
            self.split = (first.len() - HEADER_BYTES) as u64;
        }
        let in_memory = asked.body.pieces().all(|piece| matches!(piece, Piece::Memory(_)));
        if !self.is_open && in_memory && asked.body.len() <= COPIED_BODY_BYTES_MAX {
            for piece in asked.body.pieces() {
                if let Piece::Memory(slice) = piece {
                    request::push_stdin(&mut first, id, slice);
                }
            }
            request::push_stdin_end(&mut first, id);
        } else {
            self.body = asked.body.clone();
            self.records_of = Some(id);
        }
        self.sender.queue.push(self.memory.freeze(first));
    }

    /// Begins an SCGI request.
    ///
    /// # Errors
    /// A parameter contains a NUL byte, which SCGI cannot express.
    pub(crate) fn push_scgi(&mut self, asked: &Request) -> Result<(), Broken> {
        let mut head = self.begin(asked);
        scgi::push_request(&mut head, &asked.text, asked.body_len())?;
        self.sender.queue.push(self.memory.freeze(head));
        self.sender.queue.append(asked.body.clone());
        Ok(())
    }

    /// Begins a request of HTTP/1, whose head says how its body is framed: in chunks if its length is unknown.
    pub(crate) fn push_http(&mut self, asked: &Request) {
        let mut head = self.begin(asked);
        head.extend_from_slice(&asked.text);
        self.is_chunked = asked.rest.as_ref().is_some_and(|rest| rest.left().is_none());
        match asked.body.front() {
            // With the head, which is cheaper than more vectors.
            Some(Piece::Memory(slice))
                if !self.is_chunked
                    && asked.body.len() == slice.len() as u64
                    && slice.len() as u64 <= COPIED_BODY_BYTES_MAX =>
            {
                head.extend_from_slice(slice);
                self.sender.queue.push(self.memory.freeze(head));
            }
            _ => {
                self.sender.queue.push(self.memory.freeze(head));
                self.push_plain(asked.body.clone(), false);
            }
        }
    }

    /// What is pushed from now on goes out as it is, behind the message.
    pub(crate) fn open(&mut self) {
        (self.is_open, self.is_chunked) = (true, false);
    }

    /// Adds bytes that are in no records.
    fn push_plain(&mut self, bytes: Aggregate, is_last: bool) {
        if !self.is_chunked {
            return self.sender.queue.append(bytes);
        }
        if !bytes.is_empty() {
            let mut chunk_head = Vec::new();
            push_chunk_head(&mut chunk_head, bytes.len());
            self.sender.queue.push(Slice::from(chunk_head));
            self.sender.queue.append(bytes);
            self.sender.queue.push(Slice::from(b"\r\n".to_vec()));
        }
        if is_last {
            self.sender.queue.push(Slice::from(LAST_CHUNK.to_vec()));
        }
    }

    /// Begins a message. Returns memory for the part in front of the body.
    fn begin(&mut self, asked: &Request) -> Unfrozen {
        self.sender.queue.clear();
        self.body.clear();
        self.descriptors.clear();
        self.lent.clear();
        (self.records_of, self.passes_file, self.is_chunked) = (None, false, false);
        self.is_open = asked.rest.is_some();
        (self.split, self.begun_at, self.sends) = (0, self.sender.sent(), 0);
        self.memory.take()
    }

    /// Attaches descriptors to the first byte: those of the way of the answer, then what refers to the body.
    pub(crate) fn attach(&mut self, descriptors: Descriptors, references: BodyReferences) {
        self.descriptors = descriptors;
        if let Some(pool) = references.pool {
            self.descriptors.push(Descriptor::Pool(pool.clone()));
            self.pool = Some(pool);
        }
        self.passes_file = references.file.is_some();
        self.descriptors.extend(references.file.map(Descriptor::Own));
    }

    /// The pool that the application can read.
    pub(crate) fn pool(&self) -> Option<&ChunkPool> {
        self.pool.as_ref()
    }

    /// The application takes references from now on.
    pub(crate) fn refer(&mut self) {
        self.refers = true;
    }

    /// The application has returned so many bytes of the body.
    ///
    /// # Errors
    /// It has not so many.
    pub(crate) fn take_back(&mut self, bytes: u64) -> Result<(), NotLent> {
        self.lent.take_back(bytes)
    }

    /// The request is answered: the application looks at nothing of it any more.
    pub(crate) fn take_all_back(&mut self) {
        self.lent.clear();
    }

    /// Nothing more can be written. What the application has, it may still look at.
    pub(crate) fn drop_output(&mut self) {
        let (lent, pool) = (std::mem::take(&mut self.lent), self.pool.take());
        *self = Self { lent, pool, refers: self.refers, ..Self::default() };
    }

    /// The pool with what the application has and has not returned, if there is any.
    pub(crate) fn pool_in_use(&self) -> Option<&ChunkPool> {
        self.pool.as_ref().filter(|_| self.lent.bytes() > 0)
    }

    /// Whether the application has so much of the body that it gets no more for now.
    pub(crate) fn has_lent_enough(&self) -> bool {
        self.lent.bytes() >= LENT_BYTES_MAX
    }

    /// Adds the next piece of a streamed body.
    pub(crate) fn push_more_body(&mut self, part: Slice, is_last: bool) {
        self.is_open = !is_last;
        if self.records_of.is_some() {
            return self.body.push(part);
        }
        let mut bytes = Aggregate::new();
        bytes.push(part);
        self.push_plain(bytes, is_last);
    }

    /// Whether more of the body is to come.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// What the socket has not taken, if that is nothing but at most so many bytes in memory.
    pub(crate) fn unsent(&self, bytes_max: u64) -> Option<Vec<u8>> {
        let queue = &self.sender.queue;
        if queue.len() > bytes_max || !self.body.is_empty() || self.holds_descriptor() {
            return None;
        }
        let mut unsent = Vec::with_capacity(queue.len() as usize);
        for piece in queue.pieces() {
            let Piece::Memory(slice) = piece else { return None };
            unsent.extend_from_slice(slice);
        }
        Some(unsent)
    }

    /// Adds a control record, which may go between any two records.
    pub(crate) fn push_order(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut order = self.memory.take();
        write(&mut order);
        self.sender.queue.push(self.memory.freeze(order));
    }

    /// Whether the kernel has taken everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.sender.queue.is_empty() && self.body.is_empty()
    }

    /// Whether the socket has taken any of the message.
    pub(crate) fn has_sent(&self) -> bool {
        self.sends > 0
    }

    /// Whether the message was sent with one call and is short enough for a library to read it with one (section 2 of the
    /// protocol). Then the library has read all of it or nothing.
    pub(crate) fn is_one_message(&self) -> bool {
        let is_short = self.sender.sent() - self.begun_at <= WHOLE_BYTES as u64 - BEHIND_BYTES_MAX;
        self.sends == 1 && is_short && self.is_empty() && !self.is_open
    }

    /// Whether the application has begun to read the message, given how much of it is unread. It may have left a part
    /// unread, such as the end of a body.
    pub(crate) fn is_begun(&self, unread: usize) -> bool {
        if self.split == 0 {
            return unread == 0;
        }
        let behind = self.sender.sent() - self.begun_at - self.split;
        let is_whole = self.sends == 2 && self.is_empty() && !self.is_open;
        // If the body took more calls, the application is reading it.
        !is_whole || progress::unread_of(behind as usize).is_ok_and(|behind| unread <= behind)
    }

    /// Whether the descriptor is still unsent.
    pub(crate) fn holds_descriptor(&self) -> bool {
        !self.descriptors.is_empty()
    }

    /// Writes until the socket is full. Returns whether everything was written.
    ///
    /// # Errors
    /// The application has closed the connection, or the body cannot be read.
    pub(crate) fn flush(&mut self, channel: &mut Channel) -> Result<bool, Stop> {
        while channel.flush()? {
            if self.is_empty() {
                return Ok(true);
            }
            let alone = (self.begun_at + self.split).saturating_sub(self.sender.sent());
            let behind = (alone > 0).then(|| self.sender.queue.split_off(alone));
            if behind.is_none() {
                self.fill_queue();
            }
            let sent = {
                let descriptors: SmallVec<[_; DESCRIPTORS_MAX]> =
                    self.descriptors.iter().map(AsFd::as_fd).collect();
                channel.send(&mut self.sender, &descriptors)
            };
            self.sender.queue.append(behind.unwrap_or_default());
            match sent {
                Ok(()) => {
                    self.descriptors.clear();
                    self.sends += 1;
                }
                Err(Stop::Full) => return Ok(false),
                Err(stop) => return Err(stop),
            }
        }
        Ok(false)
    }

    /// Puts the next pieces of the body into records.
    fn fill_queue(&mut self) {
        let Some(id) = self.records_of else { return };
        while self.sender.queue.len() < QUEUE_BYTES && !self.body.is_empty() {
            if !self.refer_to_front(id)
                && let Some(piece) = self.body.take_front(CONTENT_BYTES_MAX as u64)
            {
                let header = request::stdin_header(id, piece.len() as usize);
                self.sender.queue.push(Slice::from(header.to_vec()));
                self.sender.queue.push(piece);
            }
            if self.body.is_empty() && !self.is_open {
                self.push_order(|out| request::push_stdin_end(out, id));
                self.records_of = None;
            }
        }
    }

    /// Refers to the front of the body, if the application can read it where it is.
    fn refer_to_front(&mut self, id: u16) -> bool {
        match self.body.front().filter(|_| self.refers) {
            Some(Piece::Memory(slice)) => {
                let Some(offset) = self.pool.as_ref().and_then(|pool| slice.offset_in(pool)) else {
                    return false;
                };
                let len = slice.len() as u32;
                self.lent.lend(slice.clone(), len.into());
                self.push_order(|out| request::push_slices(out, id, &[RegionSlice { offset, len }]));
            }
            Some(Piece::File(slice)) if self.passes_file => {
                let range = FileRange { offset: slice.offset(), len: slice.len() };
                self.push_order(|out| request::push_file(out, id, range));
            }
            _ => return false,
        }
        self.body.take_front(u64::MAX);
        true
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Client(client) => client.as_fd(),
            Self::Own(descriptor) => descriptor.as_fd(),
            Self::Pool(pool) => pool.as_fd(),
        }
    }
}

/// A body up to this size is copied behind the parameters, which is cheaper than more vectors.
const COPIED_BODY_BYTES_MAX: u64 = 16 << 10;

/// Bytes of a body put into records at a time: about what a socket takes with one call.
const QUEUE_BYTES: u64 = 256 << 10;

/// Bytes of a body that an application may have by reference while more is asked of the client. Four times what a library
/// may keep back before it returns some (section 6 of the protocol), so that neither waits for the other.
const LENT_BYTES_MAX: u64 = 512 << 10;

/// Unread bytes of the previous request that may lie in front: its end, and a late control record.
const BEHIND_BYTES_MAX: u64 = 1 << 10;

/// Memory that a connection keeps for its messages: a request, and a control record behind it.
const MESSAGES_MAX: usize = 2;
const MESSAGE_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use baton_fcgi::application::{Part, RequestReader};
    use baton_http::origin::RequestKind;
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};

    use super::*;
    use crate::{Address, Application, Endpoint, Settings};

    /// The parts of a request with a body, by the calls that send them: a `SEQPACKET` socket keeps their boundaries.
    fn messages(splits: bool) -> Vec<Vec<&'static str>> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::NONBLOCK, None).unwrap();
        let settings = Settings::new("test", Endpoint::Shared(Address::Abstract(Vec::new())));
        let mut body = Aggregate::new();
        body.push(Slice::from(b"a body".to_vec()));
        let asked = Request {
            application: Application::new(settings).unwrap(),
            peers: None,
            turn: None,
            text: Vec::new(),
            asked: RequestKind::Usual,
            body,
            idempotent: false,
            rest: None,
            pass: None,
            takes_pipes: false,
            ends: None,
            client: None,
        };
        let mut send_queue = SendQueue::default();
        send_queue.push_fastcgi(1, true, b"\x01\x01AB", splits, &asked);
        let mut ours = Channel::new(ours, Vec::new(), None);
        assert!(send_queue.flush(&mut ours).unwrap());
        let mut reader = RequestReader::new();
        let mut buffer = [0; 4096];
        let received = std::iter::from_fn(|| {
            let (_, count) = recv(&theirs, &mut buffer, RecvFlags::empty()).ok()?;
            let (mut parts, mut at) = (Vec::new(), 0);
            loop {
                let (read, part) = reader.read(&buffer[at..count]).unwrap();
                at += read;
                parts.push(match part {
                    Part::Begin { .. } => "begin",
                    Part::Params(_) => "params",
                    Part::ParamsEnd => "end of params",
                    Part::Stdin(_) => "stdin",
                    Part::StdinEnd => "end of stdin",
                    Part::NeedMore => return Some(parts),
                    other => panic!("{other:?}"),
                });
            }
        });
        received.collect()
    }

    /// A program that reads no body answers at the end of the parameters. Were that in the first message, the second could
    /// come after the answer, and the program would take it for the next request.
    #[test]
    fn a_request_is_split_in_front_of_the_end_of_its_parameters() {
        let (first, second) = (["begin", "params"], ["end of params", "stdin", "end of stdin"]);
        assert_eq!(messages(true), [first.to_vec(), second.to_vec()]);
        assert_eq!(messages(false), [[&first[..], &second[..]].concat()]);
    }
}
