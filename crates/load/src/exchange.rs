//! One connection: sends a request, takes its reply. What comes after a reply is its driver's decision: [`crate::closed`]
//! and [`crate::sessions`].
//!
//! ```text
//! Resting ──► Sending ──► Head ──► Body ──► Resting             the connection is kept; a body is of known length or in chunks
//!                                   └────► Closing ──► Resting  it ends: the server said so, or was asked to
//! ```
//!
//! Sockets are registered edge-triggered. The next request follows a complete reply at once, without another read:
//! later data raises a new edge.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::Result;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::chunks::Chunks;
use super::reply::{BodyLength, HEAD_BYTES_MAX, ReplyHead};
use super::report::Failure;
use super::wire::{SCRATCH_BYTES, Wire};

#[derive(Clone, Copy, Debug)]
enum State {
    /// No request is under way.
    Resting,
    Sending {
        sent: usize,
    },
    Head,
    Body {
        left: u64,
    },
    /// Its length shows at its end.
    ChunkedBody(Chunks),
    /// It ends with the connection.
    BodyToEnd,
    /// The reply is complete; the end of the stream must follow.
    Closing,
}

/// What a connection came to.
#[derive(Debug)]
pub(super) enum Step {
    /// There may be more in the socket.
    Again,
    /// Go on when the socket raises the next edge.
    Wait,
    /// The reply is complete.
    Finished,
    /// The connection ended as announced.
    Ended,
    /// A kept connection was closed by the server before it carried any of the reply, which it may do at any time.
    Stale,
    Failed(Failure, String),
}

/// A connection and the request on it.
#[derive(Debug)]
pub(super) struct Exchange {
    /// What epoll says of its socket.
    token: u64,
    pub(super) socket: OwnedFd,
    state: State,
    pub(super) target: usize,
    /// The connection has not carried a reply yet.
    fresh: bool,
    /// Some bytes have left on it, so it is open.
    pub(super) is_connected: bool,
    /// The connection ends with this reply.
    pub(super) closes: bool,
    /// The beginning of a head that came in pieces.
    partial: Vec<u8>,
    /// Of the present body so far.
    pub(super) body_bytes: u64,
    body_sum: u64,
    /// Whether this body differs from its file, if it is compared with that.
    differs: Option<bool>,
}

impl Exchange {
    /// Opens a connection, whose events have this token.
    pub(super) fn open(token: u64, wire: &mut Wire) -> Result<Self> {
        Ok(Self {
            token,
            socket: wire.connect(token)?,
            state: State::Resting,
            target: 0,
            fresh: true,
            is_connected: false,
            closes: false,
            partial: Vec::new(),
            body_bytes: 0,
            body_sum: FNV_START,
            differs: None,
        })
    }

    /// Closes the connection and opens another.
    pub(super) fn reopen(&mut self, wire: &mut Wire) -> Result<()> {
        // Closing the old socket, by dropping it, takes it out of the epoll set as well.
        *self = Self { target: self.target, differs: self.differs, ..Self::open(self.token, wire)? };
        Ok(())
    }

    /// Makes this request with the next [`advance`](Self::advance).
    pub(super) fn ask(&mut self, wire: &mut Wire, target: usize) {
        self.target = target;
        self.differs = wire.targets.take_uncompared(target).then_some(false);
        self.ask_again();
    }

    /// The same request once more, on a new connection.
    pub(super) fn ask_again(&mut self) {
        self.partial.clear();
        self.body_bytes = 0;
        self.body_sum = FNV_START;
        self.state = State::Sending { sent: 0 };
    }

    /// Nothing to do for now.
    pub(super) fn rest(&mut self) {
        self.state = State::Resting;
    }

    /// After a complete reply: the server will close, and its end has to be waited for.
    pub(super) fn await_end(&mut self) {
        self.state = State::Closing;
    }

    pub(super) fn is_resting(&self) -> bool {
        matches!(self.state, State::Resting)
    }

    pub(super) fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing)
    }

    /// Whether none of the present reply has come.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self.state, State::Sending { .. } | State::Head) && self.partial.is_empty()
    }

    /// Does all that is possible now.
    pub(super) fn advance(&mut self, wire: &mut Wire) -> Step {
        loop {
            let step = match self.state {
                State::Resting => Step::Wait,
                State::Sending { sent } => self.send(wire, sent),
                State::Head => self.receive_head(wire),
                State::Body { left } => self.receive_body(wire, left),
                State::ChunkedBody(chunks) => self.receive_chunks(wire, chunks),
                State::BodyToEnd => self.receive_to_end(wire),
                State::Closing => self.receive_end(wire),
            };
            match step {
                Step::Again => {}
                Step::Finished => {
                    self.state = State::Resting;
                    self.fresh = false;
                    return Step::Finished;
                }
                step => return step,
            }
        }
    }

    fn send(&mut self, wire: &Wire, sent: usize) -> Step {
        let bytes = wire.targets.bytes(self.target);
        match send(&self.socket, &bytes[sent..], SendFlags::NOSIGNAL) {
            Ok(count) => {
                self.is_connected = true;
                if sent + count < bytes.len() {
                    self.state = State::Sending { sent: sent + count };
                    return Step::Again;
                }
                self.state = State::Head;
                Step::Wait
            }
            // A connection that is still being opened says EAGAIN too, and is writable when it is open.
            Err(Errno::AGAIN) => Step::Wait,
            Err(Errno::INTR) => Step::Again,
            Err(Errno::CONNREFUSED) => {
                // A server that begins anew listens again soon: clients that ask without a pause would keep it from that.
                std::thread::sleep(REFUSED_PAUSE);
                self.broken(wire, Errno::CONNREFUSED)
            }
            Err(errno) => self.broken(wire, errno),
        }
    }

    fn receive_head(&mut self, wire: &mut Wire) -> Step {
        let begun = self.partial.len();
        wire.scratch[..begun].copy_from_slice(&self.partial);
        self.receive(wire, begun..HEAD_BYTES_MAX, RecvFlags::empty(), |exchange, wire, received| {
            exchange.take_head(wire, received, begun)
        })
    }

    fn take_head(&mut self, wire: &mut Wire, received: &[u8], begun: usize) -> Step {
        if received.len() == begun {
            return match begun == 0 && !self.fresh {
                true => Step::Stale,
                false => self.failed(wire, Failure::EarlyEnd, "the connection ended inside the head"),
            };
        }
        let Some(head) = ReplyHead::parse(received, begun) else {
            if received.len() == HEAD_BYTES_MAX {
                return self.failed(wire, Failure::Head, "the head is too long or not a head");
            }
            self.partial.extend_from_slice(&received[begun..]);
            return Step::Again;
        };
        self.partial.clear();
        if !wire.targets.status_is(self.target, head.status) {
            return self.failed(wire, Failure::Status, &format!("status {}", head.status));
        }
        self.closes = head.closes || wire.connection_per_request;
        let body = &received[head.head_bytes..];
        match head.length {
            BodyLength::Known(length) => self.take_beginning(wire, body, length),
            BodyLength::Chunked => self.take_chunks(wire, Chunks::START, body),
            BodyLength::Unknown if head.closes => {
                self.take_body(wire, body);
                self.state = State::BodyToEnd;
                Step::Again
            }
            BodyLength::Unknown => self.failed(wire, Failure::Head, "no length of its body"),
        }
    }

    fn take_beginning(&mut self, wire: &mut Wire, body: &[u8], length: u64) -> Step {
        if !wire.targets.length_is(self.target, length) {
            return self.failed(wire, Failure::Length, &format!("{length} bytes"));
        }
        if body.len() as u64 > length {
            return self.failed(wire, Failure::Surplus, "more bytes than promised");
        }
        self.take_body(wire, body);
        self.received(wire, length - body.len() as u64)
    }

    fn receive_body(&mut self, wire: &mut Wire, left: u64) -> Step {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(wire.scratch.len());
        let is_read = wire.verify || self.differs.is_some();
        let flags = if is_read { RecvFlags::empty() } else { RecvFlags::TRUNC };
        self.receive(wire, 0..wanted, flags, |exchange, wire, piece| {
            if piece.is_empty() {
                let what = format!("{left} bytes of the body missing");
                return exchange.failed(wire, Failure::EarlyEnd, &what);
            }
            exchange.take_body(wire, piece);
            exchange.received(wire, left - piece.len() as u64)
        })
    }

    /// Counts these bytes of the body, and compares them if that is asked for. Else the kernel has dropped them, and `piece` has
    /// only their number.
    fn take_body(&mut self, wire: &mut Wire, piece: &[u8]) {
        if wire.verify {
            self.body_sum = fnv(self.body_sum, piece);
        }
        if let Some(differs) = &mut self.differs {
            *differs |= !wire.targets.file_has(self.target, self.body_bytes, piece);
        }
        self.body_bytes += piece.len() as u64;
        wire.bytes += piece.len() as u64;
    }

    fn receive_chunks(&mut self, wire: &mut Wire, chunks: Chunks) -> Step {
        self.receive(wire, 0..SCRATCH_BYTES, RecvFlags::empty(), |exchange, wire, bytes| match bytes {
            [] => exchange.failed(wire, Failure::EarlyEnd, "the last chunk is missing"),
            bytes => exchange.take_chunks(wire, chunks, bytes),
        })
    }

    /// Such a body may have another length each time: a server compresses what it has got so far.
    fn take_chunks(&mut self, wire: &mut Wire, mut chunks: Chunks, bytes: &[u8]) -> Step {
        let taken = chunks.take(bytes, |body| self.take_body(wire, body));
        match taken {
            None => self.failed(wire, Failure::Surplus, "no chunked body, or more than that"),
            Some(()) if chunks == Chunks::End => self.received(wire, 0),
            Some(()) => {
                self.state = State::ChunkedBody(chunks);
                Step::Again
            }
        }
    }

    fn receive_to_end(&mut self, wire: &mut Wire) -> Step {
        self.receive(wire, 0..SCRATCH_BYTES, RecvFlags::empty(), |exchange, wire, piece| {
            if !piece.is_empty() {
                exchange.take_body(wire, piece);
                return Step::Again;
            }
            match wire.targets.length_is(exchange.target, exchange.body_bytes) {
                true => exchange.received(wire, 0),
                false => exchange.failed(wire, Failure::Length, &format!("{} bytes", exchange.body_bytes)),
            }
        })
    }

    /// Part of the body has been received; `left` bytes of it are missing.
    fn received(&mut self, wire: &mut Wire, left: u64) -> Step {
        if left > 0 {
            self.state = State::Body { left };
            return Step::Again;
        }
        if self.differs == Some(true) {
            return self.failed(wire, Failure::Changed, "other bytes than the file has");
        }
        if wire.verify && !wire.targets.sum_is(self.target, self.body_sum) {
            return self.failed(wire, Failure::Changed, "other bytes than before");
        }
        Step::Finished
    }

    fn receive_end(&mut self, wire: &Wire) -> Step {
        match recv(&self.socket, &mut [0_u8; 16], RecvFlags::empty()) {
            // A reset after the complete reply does no harm either.
            Ok((_, 0)) | Err(Errno::CONNRESET) => Step::Ended,
            Ok(_) => self.failed(wire, Failure::Surplus, "bytes after the last reply"),
            Err(Errno::AGAIN) => Step::Wait,
            Err(Errno::INTR) => Step::Again,
            Err(errno) => self.broken(wire, errno),
        }
    }

    fn broken(&self, wire: &Wire, errno: Errno) -> Step {
        let was_reset = self.is_unanswered() && matches!(errno, Errno::PIPE | Errno::CONNRESET);
        match (was_reset, self.fresh) {
            (true, false) => Step::Stale,
            (true, true) => self.failed(wire, Failure::TurnedAway, &errno.to_string()),
            (false, _) => self.failed(wire, Failure::Socket, &errno.to_string()),
        }
    }

    fn failed(&self, wire: &Wire, failure: Failure, what: &str) -> Step {
        Step::Failed(failure, format!("{what} for {}", wire.targets.path(self.target)))
    }

    /// Receives into this part of the scratch memory, and lets `take` have all that is in it then. Nothing is received at the end
    /// of the connection alone.
    fn receive(
        &mut self,
        wire: &mut Wire,
        part: Range<usize>,
        flags: RecvFlags,
        take: impl FnOnce(&mut Self, &mut Wire, &[u8]) -> Step,
    ) -> Step {
        let mut scratch = std::mem::take(&mut wire.scratch);
        let begun = part.start;
        let step = match recv(&self.socket, &mut scratch[part], flags) {
            Ok((_, count)) => take(self, wire, &scratch[..begun + count]),
            Err(Errno::AGAIN) => Step::Wait,
            Err(Errno::INTR) => Step::Again,
            Err(errno) => self.broken(wire, errno),
        };
        wire.scratch = scratch;
        step
    }
}

/// Fowler, Noll and Vo's hash (1a, 64 bits), which does not depend on where the stream was cut.
fn fnv(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Before a client that was refused connects again.
const REFUSED_PAUSE: Duration = Duration::from_millis(1);
