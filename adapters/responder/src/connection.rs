//! A FastCGI connection, read request by request.

use std::collections::VecDeque;
use std::fmt;
use std::io::IoSlice;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use baton_fcgi::Broken;
use baton_fcgi::application::{
    Part, RequestReader, push_end, push_freed, push_takes_bodies, push_unknown_type, push_values_result,
};
use baton_fcgi::offer::Offer;
use baton_fcgi::response::ProtocolStatus;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};

use crate::answer::Answer;
use crate::body::{Body, BodyPiece, Source};
use crate::descriptors::Descriptors;
use crate::environment::Environment;
use crate::link::{Control, Link, wait, write_all};

/// Bytes that are read with one call, and the most that wait for the application: two full records.
const BUFFER_BYTES: usize = 128 << 10;

/// The server sends bodies up to this length as bytes.
const SHORT_BODY_BYTES: u64 = 16 << 10;

/// The role of an application (FastCGI 1.0, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// To answer a request.
    Responder,
    /// To allow or forbid it.
    Authorizer,
    /// To pass on a file, changed.
    Filter,
}

/// How a request begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// The id that all records of its response carry.
    pub id: u16,
    /// The application's role.
    pub role: Role,
    /// Whether the connection stays open afterwards.
    pub keep_connection: bool,
}

/// Why a connection cannot be read any further. Close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError {
    /// The server's input is not FastCGI.
    Broken(Broken),
    /// The connection ended in the middle of a request.
    Ended,
    /// The server no longer wants an answer.
    Aborted,
    /// The system says no.
    Failed(Errno),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(broken) => write!(f, "the server sent {broken}"),
            Self::Ended => f.write_str("the server closed the connection in the middle of a request"),
            Self::Aborted => f.write_str("the server no longer wants an answer"),
            Self::Failed(errno) => write!(f, "the connection to the server: {errno}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<ReadError> for std::io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Failed(errno) => errno.into(),
            ReadError::Broken(_) => Self::new(std::io::ErrorKind::InvalidData, error),
            ReadError::Ended => Self::new(std::io::ErrorKind::UnexpectedEof, error),
            ReadError::Aborted => Self::new(std::io::ErrorKind::ConnectionAborted, error),
        }
    }
}

/// A connection that a server has opened: its requests one after the other, each with its variables and its body.
///
/// All input goes through one buffer. The application sees a request's body in it, piece by piece; messages of the
/// server during an answer are found after the body if both fit.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    descriptors: Descriptors,
    reader: RequestReader,
    buffer: Box<[u8]>,
    /// Received but not parsed: `buffer[parsed..filled]`.
    parsed: usize,
    filled: usize,
    /// What the application has not seen of the body, and where it lies.
    body: Body,
    /// The id of the request at hand.
    id: u16,
    body_ended: bool,
    controls: VecDeque<Control>,
    /// Where the piece of the body ends that the application was given last. It may look at it until the next.
    lent: usize,
    environment: Environment,
    /// Whether the request at hand came with a descriptor.
    brought_descriptor: bool,
    /// Why nothing more will come.
    failed: Option<ReadError>,
}

/// The memory of a connection that was closed, for the next one.
#[derive(Debug)]
pub struct Memory {
    buffer: Box<[u8]>,
    controls: VecDeque<Control>,
    environment: Environment,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            controls: VecDeque::new(),
            environment: Environment::default(),
        }
    }
}

impl Connection {
    /// For an accepted connection.
    #[must_use]
    pub fn new(socket: OwnedFd, memory: Memory) -> Self {
        let Memory { buffer, mut controls, mut environment } = memory;
        controls.clear();
        environment.clear();
        Self {
            socket,
            descriptors: Descriptors::new(),
            reader: RequestReader::new(),
            buffer,
            parsed: 0,
            filled: 0,
            body: Body::default(),
            id: 0,
            body_ended: true,
            controls,
            lent: 0,
            environment,
            brought_descriptor: false,
            failed: None,
        }
    }

    /// Closes the connection. Its memory can be used for another.
    #[must_use]
    pub fn close(self) -> Memory {
        Memory { buffer: self.buffer, controls: self.controls, environment: self.environment }
    }

    /// Waits for the next request and reads its variables. Skips the unread rest of the one before, and answers the
    /// server's queries. `None` if the server has closed the connection.
    ///
    /// # Errors
    /// Close the connection. But after [`ReadError::Failed`] with `EINTR`, a signal before the request, it can be
    /// called again.
    pub fn next_request(&mut self) -> Result<Option<Begun>, ReadError> {
        if let Some(error @ (ReadError::Broken(_) | ReadError::Failed(_))) = self.failed {
            // Found with the request before, or behind its body: close the connection.
            return Err(error);
        }
        self.reader.finish();
        self.body.clear();
        self.controls.clear();
        self.environment.clear();
        (self.body_ended, self.lent) = (false, 0);
        let came_with_descriptor = std::mem::take(&mut self.brought_descriptor);
        let mut begun = None;
        loop {
            match self.parse()? {
                None => match self.wait_and_receive(came_with_descriptor) {
                    Ok(0) if begun.is_none() => return Ok(None),
                    Ok(0) => return Err(ReadError::Ended),
                    Err(Errno::INTR) if begun.is_some() => {}
                    Err(errno) => return Err(ReadError::Failed(errno)),
                    Ok(_) => {}
                },
                Some(Part::Begin { id, role, keep_connection }) => match role_of(role) {
                    Some(role) => begun = Some(Begun { id, role, keep_connection }),
                    None => {
                        self.refuse(id, ProtocolStatus::UnknownRole)?;
                        self.reader.finish();
                    }
                },
                Some(Part::Params(range)) => {
                    self.environment.collect(&self.buffer[range]).map_err(ReadError::Broken)?;
                }
                Some(Part::ParamsEnd) => {
                    self.environment.complete().map_err(ReadError::Broken)?;
                    self.id = begun.map_or(0, |begun| begun.id);
                    return Ok(begun);
                }
                Some(Part::Abort) => return Err(ReadError::Aborted),
                Some(_) => {}
            }
        }
    }

    /// Whether the server, which has just opened the connection, sends something within `silence_ms`. Costs no call
    /// if it has already.
    ///
    /// # Errors
    /// Those of `recvmsg` and `poll`.
    pub fn speaks_within(&mut self, silence_ms: u32) -> Result<bool, Errno> {
        match self.receive_once(RecvFlags::DONTWAIT) {
            Ok(bytes) => Ok(bytes > 0),
            Err(Errno::AGAIN) => {
                let mut polled = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
                wait(&mut polled, i32::try_from(silence_ms).unwrap_or(i32::MAX))?;
                Ok(!polled[0].revents().is_empty())
            }
            Err(errno) => Err(errno),
        }
    }

    /// Refuses further data: on a Unix socket the server's next send fails at once, and it asks another process.
    /// Earlier data is still read, so no request is lost in between.
    pub fn stop_receiving(&self) {
        // It can only fail because the connection has ended.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Read);
    }

    /// The variables of the request.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The variables of the request, changeable in place.
    pub fn environment_mut(&mut self) -> &mut Environment {
        &mut self.environment
    }

    /// Begins the answer to the request at hand, by the offer that came with it.
    pub fn begin(&mut self, answer: &mut Answer) {
        let offer = self.environment.offer();
        answer.begin(self.id, offer, &mut self.descriptors);
        let bodies = offer.and_then(|offer| Offer::parse(offer).ok()).map(|offer| offer.bodies);
        let Some(bodies) = bodies else { return };
        if bodies.asks && self.expects_long_body() {
            // At once: the rest of this body may come so.
            let mut records = Vec::new();
            push_takes_bodies(&mut records, self.id);
            // If it fails, reading fails, too.
            let _ = self.write(&records);
        } else if bodies.asks {
            answer.take_bodies();
        }
        if let Err(errno) = self.body.begin(bodies, &mut self.descriptors) {
            // The answer may go on without the body, if the application does not read it.
            self.failed = Some(ReadError::Failed(errno));
        }
    }

    /// Whether the body is longer than what comes as bytes in any case.
    fn expects_long_body(&self) -> bool {
        let length =
            self.environment.get("CONTENT_LENGTH").and_then(|length| std::str::from_utf8(length).ok());
        length.and_then(|length| length.parse().ok()).is_some_and(|length: u64| length > SHORT_BODY_BYTES)
    }

    /// Reads the next piece of the body, which is there until the next call. An empty one is the end.
    ///
    /// # Errors
    /// The body does not go on, now or later.
    pub fn read_body(&mut self) -> Result<BodyPiece, ReadError> {
        // A blocking read never returns `None`.
        Ok(self.next_piece(RecvFlags::empty())?.unwrap_or(BodyPiece::END))
    }

    /// Reads the next piece of the body without waiting: `None` if none of the body has arrived yet.
    ///
    /// # Errors
    /// As for [`read_body`](Self::read_body).
    pub fn read_body_now(&mut self) -> Result<Option<BodyPiece>, ReadError> {
        self.next_piece(RecvFlags::DONTWAIT)
    }

    fn next_piece(&mut self, flags: RecvFlags) -> Result<Option<BodyPiece>, ReadError> {
        self.lent = 0;
        loop {
            if let Some(piece) = self.body.take_piece() {
                if piece.is_own() {
                    self.lent = piece.range.end;
                }
                return Ok(Some(piece));
            }
            if self.body_ended {
                return Ok(Some(BodyPiece::END));
            }
            if let Some(error) = self.failed {
                return Err(error);
            }
            self.return_owed()?;
            match self.receive_ahead(flags) {
                Ok(()) | Err(ReadError::Failed(Errno::INTR)) => {}
                Err(ReadError::Failed(Errno::AGAIN)) if flags.contains(RecvFlags::DONTWAIT) => {
                    return Ok(None);
                }
                Err(error) => self.failed = Some(error),
            }
        }
    }

    /// Returns to the server what the application has finished with.
    fn return_owed(&mut self) -> Result<(), ReadError> {
        let Some(bytes) = self.body.take_owed() else { return Ok(()) };
        let mut records = Vec::new();
        push_freed(&mut records, self.id, bytes);
        self.write(&records)
    }

    /// The bytes of the piece that was read last.
    #[must_use]
    pub fn bytes(&self, piece: &BodyPiece) -> &[u8] {
        match piece.source {
            Source::Buffer => &self.buffer[piece.range.clone()],
            Source::Pool | Source::File => self.body.lent(piece),
        }
    }

    /// The same bytes, if the program may change them: those that the server has lent it may not.
    pub fn own_bytes(&mut self, piece: &BodyPiece) -> Option<&mut [u8]> {
        piece.is_own().then(|| &mut self.buffer[piece.range.clone()])
    }

    /// The request is answered: lets go of what the server has lent for its body.
    pub fn forget_body(&mut self) {
        self.body.clear();
    }

    /// Parses all received input after a request's variables; if there is none, receives once and parses that.
    fn receive_ahead(&mut self, flags: RecvFlags) -> Result<(), ReadError> {
        if self.parsed == self.filled {
            match self.receive_once(flags) {
                Ok(0) => return Err(ReadError::Ended),
                Ok(_) => {}
                Err(errno) => return Err(ReadError::Failed(errno)),
            }
        }
        while let Some(part) = self.parse()? {
            match part {
                Part::Stdin(range) => self.body.push_received(range),
                Part::Slices => {
                    for slice in self.reader.slices() {
                        self.body.push_slice(slice).map_err(ReadError::Broken)?;
                    }
                }
                Part::File(range) => self.body.push_file(range).map_err(ReadError::Broken)?,
                Part::StdinEnd => self.body_ended = true,
                Part::Freed(bytes) => self.controls.push_back(Control::Freed(bytes)),
                Part::GiveBack => self.controls.push_back(Control::GiveBack),
                Part::Abort => return Err(ReadError::Aborted),
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits for input and receives once. A thread in `recvmsg` on a Unix socket is also woken when the server reads
    /// our last output: uselessly, and while the server is sending. `poll` waits for input only. The server reads a
    /// report of `passfd` at once, before this waits: then `poll` would be just another call.
    fn wait_and_receive(&mut self, is_report_read_at_once: bool) -> Result<usize, Errno> {
        if !is_report_read_at_once {
            rustix::event::poll(&mut [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)], None)?;
        }
        self.receive_once(RecvFlags::empty())
    }

    /// Receives once. 0 bytes are the end of the connection.
    fn receive_once(&mut self, flags: RecvFlags) -> Result<usize, Errno> {
        if self.has_only_been_lent() {
            (self.parsed, self.filled) = (self.lent, self.lent);
        }
        let space = &mut self.buffer[self.filled..];
        debug_assert!(!space.is_empty(), "nothing received would look like the end of the connection");
        let before = self.descriptors.len();
        let bytes = self.descriptors.receive(self.socket.as_fd(), space, flags)?;
        self.brought_descriptor |= self.descriptors.len() > before;
        self.filled += bytes;
        Ok(bytes)
    }

    /// Whether the received input is unused, except for the piece of the body that the application has.
    fn has_only_been_lent(&self) -> bool {
        self.parsed == self.filled && self.body.pieces.iter().all(|piece| !piece.is_own())
    }

    /// Takes the next part of the received input; `None` if there is none. Answers the server's queries.
    fn parse(&mut self) -> Result<Option<Part>, ReadError> {
        let start = self.parsed;
        let (consumed, part) =
            self.reader.read(&self.buffer[start..self.filled]).map_err(ReadError::Broken)?;
        self.parsed += consumed;
        let shift = |range: Range<usize>| start + range.start..start + range.end;
        Ok(Some(match part {
            Part::NeedMore => return Ok(None),
            Part::Params(range) => Part::Params(shift(range)),
            Part::Stdin(range) => Part::Stdin(shift(range)),
            Part::GetValues => {
                self.answer_questions()?;
                part
            }
            Part::UnknownType(kind) => {
                let mut records = Vec::new();
                push_unknown_type(&mut records, kind);
                self.write(&records)?;
                part
            }
            Part::BeginAnother { id } => {
                self.refuse(id, ProtocolStatus::CannotMultiplex)?;
                part
            }
            _ => part,
        }))
    }

    /// Answers `FCGI_GET_VALUES`.
    fn answer_questions(&self) -> Result<(), ReadError> {
        let is_asked = |name: &str| {
            self.reader.names().filter_map(Result::ok).any(|(asked, _)| asked == name.as_bytes())
        };
        let values: Vec<_> = VALUES.into_iter().filter(|(name, _)| is_asked(name)).collect();
        let mut records = Vec::new();
        push_values_result(&mut records, &values);
        self.write(&records)
    }

    fn refuse(&self, id: u16, status: ProtocolStatus) -> Result<(), ReadError> {
        let mut records = Vec::new();
        push_end(&mut records, id, 0, status);
        self.write(&records)
    }

    fn write(&self, records: &[u8]) -> Result<(), ReadError> {
        write_all(self.socket.as_fd(), &mut [IoSlice::new(records)]).map_err(ReadError::Failed)
    }
}

impl Link for Connection {
    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn can_receive(&self) -> bool {
        let behind = if self.has_only_been_lent() { self.lent } else { self.filled };
        self.failed.is_none() && behind < self.buffer.len()
    }

    fn receive(&mut self) -> Result<bool, Errno> {
        let errno = match self.receive_ahead(RecvFlags::DONTWAIT) {
            Ok(()) => return Ok(true),
            Err(ReadError::Failed(Errno::AGAIN | Errno::INTR)) => return Ok(false),
            Err(error) => {
                self.failed = Some(error);
                error
            }
        };
        Err(match errno {
            ReadError::Failed(errno) => errno,
            ReadError::Broken(_) => Errno::PROTO,
            ReadError::Ended | ReadError::Aborted => Errno::CONNRESET,
        })
    }

    fn next_control(&mut self) -> Option<Control> {
        self.controls.pop_front()
    }
}

const fn role_of(number: u16) -> Option<Role> {
    match number {
        1 => Some(Role::Responder),
        2 => Some(Role::Authorizer),
        3 => Some(Role::Filter),
        _ => None,
    }
}

/// What this library can do: one request at a time on a connection, and both transports of the hand-over protocol.
/// How many connections the application takes is not known here; one is what every application can do.
const VALUES: [(&str, &str); 4] = [
    ("FCGI_MAX_CONNS", "1"),
    ("FCGI_MAX_REQS", "1"),
    ("FCGI_MPXS_CONNS", "0"),
    ("BATON_TRANSPORTS", "passfd,shm"),
];
