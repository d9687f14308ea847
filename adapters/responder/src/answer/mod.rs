//! One response of an application, by the offered transport.
//!
//! ```text
//!             space/commit, write                   make_room, flush, finish
//!  application ──────────────────► Answer ─┬─ plain:   FCGI_STDOUT records
//!                                          ├─ shared:  the region, and SLICES that announce it
//!                                          └─ passfd:  the client's own socket (`PassedSocket`)
//! ```
//!
//! Small writes are collected, in a buffer of one record's size or in the region itself. Large ones leave from the
//! application's own memory, after the collected output, in one call. Slow output is not held back ([`Held`]).

mod held;
mod passfd;
mod reasons;
mod records;
mod ring;

use baton_fcgi::Declined;
use baton_fcgi::application::{push_declined, push_end, push_slices, push_stderr, push_takes_bodies};
use baton_fcgi::offer::{Offer, Transport};
use baton_fcgi::record::{HEADER_BYTES, RecordHeader, RecordType};
use baton_fcgi::response::ProtocolStatus;
use rustix::event::{PollFd, PollFlags};

use crate::client::Client;
use crate::descriptors::Descriptors;
use crate::link::{Control, Link, wait, write_all};
use held::Held;
use passfd::{PassedSocket, Pushed};
use reasons::Why;
use records::{CONTENT_BYTES, write_stdout};
use ring::Ring;

pub use reasons::Ended;

/// Smaller writes to a client's socket are collected: copying them costs less than a call.
const DIRECT_BYTES_MIN: usize = 16 << 10;

/// A response to a client's socket whose declared length, head included, is at most this is collected as a whole: an
/// application that knows the length will soon write it. One call costs less than one per record, and half of a cache
/// of 512 KiB holds it.
const WHOLE_BYTES_MAX: usize = 256 << 10;

/// Bytes that are collected at a time in search of the end of a head: nearly all heads are shorter.
const HEAD_LOOK_BYTES: usize = 1 << 10;

/// Messages for the error log are collected up to here.
const ERRORS_BYTES_MAX: usize = 8 << 10;

/// The responses of a connection, one after the other.
///
/// Command: [`begin`](Self::begin), then output by [`space`](Self::space) and [`commit`](Self::commit) or by
/// [`write`](Self::write), and [`finish`](Self::finish). Memory and mappings are kept from one response to the next.
#[derive(Debug)]
pub struct Answer {
    request_id: u16,
    way: ActiveTransport,
    /// Collected output: `buffer[..filled]`. Its unused part takes no memory.
    buffer: Box<[u8]>,
    filled: usize,
    /// How much may be collected before it is sent.
    window: usize,
    ring: Ring,
    passed: PassedSocket,
    /// Why the client's socket was not used.
    declined: Option<Declined>,
    held: Held,
    /// The server asks, and is to be told that bodies may come by reference.
    takes_bodies: bool,
    /// For the error log, and not sent yet.
    errors: Vec<u8>,
    errors_sent: bool,
    /// Records to write.
    records: Vec<u8>,
}

/// The transport of the current response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActiveTransport {
    /// There is none.
    Idle,
    Plain,
    Shared,
    /// Through the region, which is full while the server's `FREED` cannot be read: plain for now.
    SharedFull,
    PassFd,
}

impl Default for Answer {
    fn default() -> Self {
        Self::new()
    }
}

impl Answer {
    /// For the responses of one connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            request_id: 0,
            way: ActiveTransport::Idle,
            buffer: vec![0; WHOLE_BYTES_MAX].into_boxed_slice(),
            window: CONTENT_BYTES,
            filled: 0,
            ring: Ring::default(),
            passed: PassedSocket::default(),
            declined: None,
            held: Held::default(),
            takes_bodies: false,
            errors: Vec::new(),
            errors_sent: false,
            records: Vec::new(),
        }
    }

    /// Begins the response to a request, with the `offer` that came for it (the value of `BATON_OFFER`), to which the
    /// oldest of `descriptors` belong. An unusable offer is declined, and its descriptors are closed.
    pub fn begin(&mut self, request_id: u16, offer: Option<&[u8]>, descriptors: &mut Descriptors) {
        self.request_id = request_id;
        (self.filled, self.window) = (0, CONTENT_BYTES);
        self.declined = None;
        self.takes_bodies = false;
        self.held.note_heard();
        self.errors.clear();
        self.errors_sent = false;
        self.way = ActiveTransport::Plain;
        let offer = match offer.map(Offer::parse) {
            Some(Ok(offer)) => offer,
            Some(Err(_)) => {
                // It is not known how many of them belong to it.
                descriptors.discard(descriptors.len());
                return;
            }
            None => return,
        };
        let of_transport = offer.fds - offer.bodies.fds();
        let first = if of_transport > 0 { descriptors.take() } else { None };
        // Those of the body are the last.
        descriptors.discard(of_transport.saturating_sub(1));
        match (offer.transport, first) {
            (Transport::PassFd(about), Some(socket)) => {
                let client = Client::new(socket, offer.patience_ms);
                self.passed.begin(client, about, &offer);
                self.way = ActiveTransport::PassFd;
            }
            (Transport::Shm(ring), file) => {
                let usable = self.ring.begin(file, ring.size as usize, ring.at as usize, ring.free as usize);
                self.way = if usable { ActiveTransport::Shared } else { ActiveTransport::Plain };
            }
            _ => {}
        }
    }

    /// Tells the server, which has asked, that bodies of later requests may come by reference.
    pub fn take_bodies(&mut self) {
        self.takes_bodies = true;
    }

    /// Whether a response has begun and not been finished.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.way != ActiveTransport::Idle
    }

    /// Memory for output; call [`commit`](Self::commit) after writing. If it is empty, call
    /// [`make_room`](Self::make_room).
    pub fn space(&mut self) -> &mut [u8] {
        match self.way {
            ActiveTransport::Shared => self.ring.space(),
            _ => &mut self.buffer[self.filled..self.window],
        }
    }

    /// The first `bytes` bytes of [`space`](Self::space) have been written.
    ///
    /// # Panics
    /// If there were not so many.
    pub fn commit(&mut self, bytes: usize) {
        assert!(bytes <= self.space().len(), "{bytes} bytes written to less space");
        match self.way {
            ActiveTransport::Shared => self.ring.commit(bytes),
            _ => self.filled += bytes,
        }
    }

    /// Sends the collected output, so that [`space`](Self::space) is not empty.
    ///
    /// # Errors
    /// Output has ended. There is space nevertheless; output written there is dropped.
    pub fn make_room(&mut self, link: &mut dyn Link) -> Result<(), Ended> {
        if self.widen() { Ok(()) } else { self.send(link, &[], Why::Room) }
    }

    /// Makes room for the whole of a short response. Returns whether the buffer grew.
    fn widen(&mut self) -> bool {
        let is_whole = self.way == ActiveTransport::PassFd
            && self.window < WHOLE_BYTES_MAX
            && self.passed.is_within(&self.buffer[..self.filled], WHOLE_BYTES_MAX as u64);
        if is_whole {
            self.window = WHOLE_BYTES_MAX;
        }
        is_whole
    }

    /// Writes any number of `bytes`. Large writes leave at once, without a copy; small ones are collected.
    ///
    /// # Errors
    /// Output has ended.
    pub fn write(&mut self, link: &mut dyn Link, mut bytes: &[u8]) -> Result<(), Ended> {
        let direct = match self.way {
            ActiveTransport::Shared | ActiveTransport::SharedFull => return self.write_shared(link, bytes),
            ActiveTransport::PassFd => bytes.len() >= DIRECT_BYTES_MIN,
            ActiveTransport::Plain | ActiveTransport::Idle => false,
        };
        if !direct && (bytes.len() <= self.space().len() || self.widen() && bytes.len() <= self.space().len())
        {
            self.collect(&mut bytes, usize::MAX);
            return self.send_if_overdue(link);
        }
        self.send(link, bytes, Why::Direct)
    }

    /// Sends the collected output if it has waited for long, since the application is slow. Code that writes into
    /// [`space`](Self::space) calls it now and then. It reads the clock every few kilobytes.
    ///
    /// # Errors
    /// Output has ended.
    pub fn send_if_overdue(&mut self, link: &mut dyn Link) -> Result<(), Ended> {
        let bytes = match self.way {
            ActiveTransport::Idle => 0,
            ActiveTransport::Shared => self.ring.unannounced(),
            ActiveTransport::Plain | ActiveTransport::SharedFull | ActiveTransport::PassFd => self.filled,
        };
        if self.held.is_overdue(bytes) { self.flush(link) } else { Ok(()) }
    }

    /// Sends the collected output, since the application wants it to be seen.
    ///
    /// # Errors
    /// Output has ended.
    pub fn flush(&mut self, link: &mut dyn Link) -> Result<(), Ended> {
        self.send(link, &[], Why::Flush)
    }

    /// Ends the output, so that the response can end before the request. Later output is dropped.
    ///
    /// # Errors
    /// Output has ended before.
    pub fn end_output(&mut self, link: &mut dyn Link) -> Result<(), Ended> {
        let why = if self.way == ActiveTransport::PassFd { Why::LastOutput } else { Why::Flush };
        let result = self.send(link, &[], why);
        if self.way == ActiveTransport::Plain { self.flush(link) } else { result }
    }

    /// Takes a message for the server's error log.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn write_error(&mut self, link: &mut dyn Link, bytes: &[u8]) -> Result<(), Ended> {
        self.errors.extend_from_slice(bytes);
        if self.errors.len() >= ERRORS_BYTES_MAX { self.flush_errors(link) } else { Ok(()) }
    }

    /// Sends the collected messages for the error log.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn flush_errors(&mut self, link: &mut dyn Link) -> Result<(), Ended> {
        self.records.clear();
        self.push_errors();
        self.write_records(link)
    }

    /// Ends the response: sends the rest, closes the client's socket, and reports to the server.
    ///
    /// # Errors
    /// [`Ended::ConnectionLost`] or [`Ended::Unfinished`]: close the connection.
    pub fn finish(&mut self, link: &mut dyn Link, app_status: u32) -> Result<(), Ended> {
        match self.send(link, &[], Why::Last) {
            Ok(()) | Err(Ended::ClientGone) => {}
            Err(ended) => {
                self.abandon();
                return Err(ended);
            }
        }
        let mut way = std::mem::replace(&mut self.way, ActiveTransport::Idle);
        if way == ActiveTransport::PassFd && self.passed.is_unanswered() {
            // Without a head there is no answer: the server has one for that.
            self.passed.abandon();
            way = ActiveTransport::Plain;
        }
        self.records.clear();
        self.push_errors();
        if self.errors_sent {
            self.records.extend_from_slice(&end_of(RecordType::Stderr, self.request_id));
        }
        let mut collected = 0..0;
        match way {
            ActiveTransport::PassFd => self.passed.finish(self.request_id, &mut self.records)?,
            ActiveTransport::Shared => push_announced(&mut self.records, self.request_id, &mut self.ring),
            ActiveTransport::Plain | ActiveTransport::SharedFull => {
                collected = 0..std::mem::take(&mut self.filled);
            }
            ActiveTransport::Idle => return Ok(()),
        }
        if way != ActiveTransport::PassFd {
            self.records.extend_from_slice(&end_of(RecordType::Stdout, self.request_id));
        }
        if self.takes_bodies {
            push_takes_bodies(&mut self.records, self.request_id);
        }
        if let Some(why) = self.declined.take() {
            push_declined(&mut self.records, self.request_id, why);
        }
        push_end(&mut self.records, self.request_id, app_status, ProtocolStatus::RequestComplete);
        write_stdout(link.socket(), self.request_id, &[&self.buffer[collected]], &self.records)
            .map_err(Ended::ConnectionLost)
    }

    /// Forgets the response and all that belongs to the connection, which is closed. Memory is kept for another.
    pub fn abandon(&mut self) {
        self.passed.abandon();
        self.ring = Ring::default();
        self.way = ActiveTransport::Idle;
    }

    /// Sends the collected output and `data` after it. At the end of a response, output that can leave with its last
    /// record stays.
    fn send(&mut self, link: &mut dyn Link, data: &[u8], why: Why) -> Result<(), Ended> {
        match self.way {
            ActiveTransport::Idle => {
                self.filled = 0;
                Ok(())
            }
            ActiveTransport::Plain if why == Why::Last => Ok(()),
            ActiveTransport::Plain => self.send_plain(link, data),
            ActiveTransport::Shared | ActiveTransport::SharedFull => self.send_shared(link, why),
            ActiveTransport::PassFd => self.send_over(link, data, why),
        }
    }

    fn send_plain(&mut self, link: &mut dyn Link, data: &[u8]) -> Result<(), Ended> {
        let collected = std::mem::take(&mut self.filled);
        if collected + data.len() == 0 {
            return Ok(());
        }
        self.held.note_heard();
        write_stdout(link.socket(), self.request_id, &[&self.buffer[..collected], data], &[])
            .map_err(Ended::ConnectionLost)
    }

    fn send_over(&mut self, link: &mut dyn Link, mut data: &[u8], why: Why) -> Result<(), Ended> {
        loop {
            match self.passed.push(link, self.request_id, &self.buffer[..self.filled], data, why) {
                Ok(Pushed::Sent) => {
                    self.filled = 0;
                    self.held.note_heard();
                    return Ok(());
                }
                // The head must be contiguous to be parsed; the body after it need not be copied.
                Ok(Pushed::NeedsMore) if !data.is_empty() => self.collect(&mut data, HEAD_LOOK_BYTES),
                Ok(Pushed::NeedsMore) => return Ok(()),
                Ok(Pushed::Declined(reason)) => {
                    self.declined = Some(reason).filter(|_| self.passed.takes_reasons());
                    self.way = ActiveTransport::Plain;
                    return self.send(link, data, why);
                }
                Err(ended) => {
                    self.filled = 0;
                    return Err(ended);
                }
            }
        }
    }

    /// Takes at most `most` bytes from `data` into the buffer.
    fn collect(&mut self, data: &mut &[u8], most: usize) {
        let space = self.space();
        let (now, rest) = data.split_at(data.len().min(space.len()).min(most));
        space[..now.len()].copy_from_slice(now);
        self.filled += now.len();
        *data = rest;
    }

    fn write_shared(&mut self, link: &mut dyn Link, mut bytes: &[u8]) -> Result<(), Ended> {
        while !bytes.is_empty() {
            let space = self.space();
            let (now, rest) = bytes.split_at(bytes.len().min(space.len()));
            space[..now.len()].copy_from_slice(now);
            self.commit(now.len());
            bytes = rest;
            if self.space().is_empty() {
                self.make_room(link)?;
            }
        }
        self.send_if_overdue(link)
    }

    fn send_shared(&mut self, link: &mut dyn Link, why: Why) -> Result<(), Ended> {
        if why == Why::Last {
            return Ok(());
        }
        self.send_plain(link, &[])?;
        self.take_freed(link);
        if why == Why::Flush || self.ring.free() == 0 || self.ring.has_much_to_announce() {
            self.records.clear();
            push_announced(&mut self.records, self.request_id, &mut self.ring);
            self.held.note_heard();
            self.write_records(link)?;
        }
        self.way = ActiveTransport::Shared;
        while self.ring.free() == 0 {
            if !link.can_receive() {
                self.way = ActiveTransport::SharedFull;
                return Ok(());
            }
            wait(&mut [PollFd::from_borrowed_fd(link.socket(), PollFlags::IN)], -1)
                .and_then(|()| link.receive())
                .map_err(Ended::ConnectionLost)?;
            self.take_freed(link);
        }
        Ok(())
    }

    fn take_freed(&mut self, link: &mut dyn Link) {
        while let Some(control) = link.next_control() {
            if let Control::Freed(bytes) = control {
                self.ring.freed(bytes);
            }
        }
    }

    /// Adds the messages for the error log to the records to write.
    fn push_errors(&mut self) {
        if !self.errors.is_empty() {
            push_stderr(&mut self.records, self.request_id, &self.errors);
            self.errors.clear();
            self.errors_sent = true;
        }
    }

    fn write_records(&mut self, link: &mut dyn Link) -> Result<(), Ended> {
        write_all(link.socket(), &mut [std::io::IoSlice::new(&self.records)]).map_err(Ended::ConnectionLost)
    }
}

/// Announces new output in the region.
fn push_announced(records: &mut Vec<u8>, request_id: u16, ring: &mut Ring) {
    for slice in ring.announce() {
        push_slices(records, request_id, &[slice]);
    }
}

/// The empty record that ends a stream.
const fn end_of(stream: RecordType, request_id: u16) -> [u8; HEADER_BYTES] {
    RecordHeader { kind: stream as u8, request_id, content_len: 0, padding_len: 0 }.to_bytes()
}
