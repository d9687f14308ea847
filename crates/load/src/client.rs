//! One connection of the load: sends a request, takes its reply, and again.
//!
//! ```text
//! Sending ──► Head ──► Body ──► Sending             the connection is kept; a body is of known length or in chunks
//!                       └────► Closing ──► Sending  it ends: the server said so, or was asked to
//! ```
//!
//! Sockets are registered edge-triggered. The next request follows a complete reply at once, without another read:
//! later data raises a new edge.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt};
use rustix::net::{connect, recv, send, socket_with};

use super::chunks::Chunks;
use super::pace::Pace;
use super::reply::{BodyLength, HEAD_BYTES_MAX, ReplyHead};
use super::report::{Failure, LoadReport};
use super::requests::RequestList;

/// What all clients of a load have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) epoll: OwnedFd,
    pub(super) address: SocketAddr,
    pub(super) requests: RequestList,
    pub(super) connection_per_request: bool,
    pub(super) verify: bool,
    pub(super) scratch: Vec<u8>,
    pub(super) report: LoadReport,
    /// Begin no more requests.
    pub(super) stopping: bool,
    /// The number of requests left to begin.
    pub(super) requests_left: u64,
    /// Clients with a request in flight.
    pub(super) busy: usize,
    /// When requests are due, if not at once.
    pub(super) pace: Option<Pace>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Before the first request, after the last, and while none is due.
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
    /// The reply is complete; the end of the stream must follow.
    Closing,
}

/// What one system call led to.
enum Step {
    /// Go on at once: there may be more in the socket.
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

#[derive(Debug)]
pub(super) struct Client {
    index: usize,
    socket: OwnedFd,
    state: State,
    request: usize,
    asked: Instant,
    /// The connection has not carried a reply yet.
    fresh: bool,
    /// None of its connections has.
    never_answered: bool,
    /// The connection ends with this reply.
    closes: bool,
    head: Vec<u8>,
    head_len: usize,
    body_sum: u64,
    /// This body is compared with its file.
    comparison: Option<Comparison>,
}

/// How far a body has been compared with its file, and whether it differs.
#[derive(Debug, Default)]
struct Comparison {
    offset: u64,
    differs: bool,
}

impl Comparison {
    fn take(&mut self, requests: &RequestList, request: usize, piece: &[u8]) {
        self.differs |= !requests.file_has(request, self.offset, piece);
        self.offset += piece.len() as u64;
    }
}

impl Client {
    /// Opens a connection, which becomes number `index` of the epoll instance.
    pub(super) fn new(index: usize, shared: &mut Shared) -> Result<Self> {
        Ok(Self {
            index,
            socket: open(index, shared)?,
            state: State::Resting,
            request: 0,
            asked: Instant::now(),
            fresh: true,
            never_answered: true,
            closes: false,
            head: vec![0; HEAD_BYTES_MAX],
            head_len: 0,
            body_sum: 0,
            comparison: None,
        })
    }

    /// Begins with the first request, or continues after a pause.
    pub(super) fn start(&mut self, shared: &mut Shared, now: Instant) -> Result<()> {
        self.begin(shared, now);
        self.handle_event(shared)
    }

    /// Whether it waits for its very first reply.
    pub(super) fn was_never_answered(&self) -> bool {
        self.never_answered && !matches!(self.state, State::Resting)
    }

    /// Something may have become possible: does all that is.
    pub(super) fn handle_event(&mut self, shared: &mut Shared) -> Result<()> {
        loop {
            let step = match self.state {
                State::Resting => return Ok(()),
                State::Sending { sent } => self.send(shared, sent),
                State::Head => self.receive_head(shared),
                State::Body { left } => self.receive_body(shared, left),
                State::ChunkedBody(chunks) => self.receive_chunks(shared, chunks),
                State::Closing => self.receive_end(shared),
            };
            match step {
                Step::Again => {}
                Step::Wait => return Ok(()),
                Step::Finished => {
                    let now = Instant::now();
                    shared.busy -= 1;
                    shared.report.finished(now - self.asked);
                    self.fresh = false;
                    self.never_answered = false;
                    if self.closes {
                        self.state = State::Closing;
                    } else {
                        self.begin(shared, now);
                    }
                }
                Step::Ended => {
                    self.reopen(shared)?;
                    self.begin(shared, Instant::now());
                }
                Step::Stale => {
                    shared.report.reconnects += 1;
                    self.reopen(shared)?;
                    self.ask();
                }
                Step::Failed(failure, detail) => {
                    if !matches!(self.state, State::Closing) {
                        shared.busy -= 1;
                    }
                    shared.report.fail(failure, detail);
                    shared.stopping |= shared.report.failed() >= FAILURES_MAX;
                    self.reopen(shared)?;
                    self.begin(shared, Instant::now());
                }
            }
        }
    }

    fn begin(&mut self, shared: &mut Shared, now: Instant) {
        if shared.stopping || shared.requests_left == 0 {
            self.state = State::Resting;
            return;
        }
        let asked = match &mut shared.pace {
            None => now,
            Some(pace) => {
                let Some(due) = pace.take_due(now) else {
                    self.state = State::Resting;
                    pace.rest(self.index);
                    return;
                };
                due
            }
        };
        shared.requests_left -= 1;
        shared.busy += 1;
        self.request = shared.requests.take_next();
        self.comparison = shared.requests.take_uncompared(self.request).then(Comparison::default);
        self.asked = asked;
        self.ask();
    }

    fn ask(&mut self) {
        self.head_len = 0;
        self.body_sum = FNV_START;
        self.state = State::Sending { sent: 0 };
    }

    fn send(&mut self, shared: &Shared, sent: usize) -> Step {
        let bytes = shared.requests.bytes(self.request);
        match send(&self.socket, &bytes[sent..], SendFlags::NOSIGNAL) {
            Ok(count) if sent + count < bytes.len() => {
                self.state = State::Sending { sent: sent + count };
                Step::Again
            }
            Ok(_) => {
                self.state = State::Head;
                Step::Wait
            }
            // A connection that is still being opened says EAGAIN too, and is writable when it is open.
            Err(Errno::AGAIN) => Step::Wait,
            Err(Errno::INTR) => Step::Again,
            Err(Errno::CONNREFUSED) => {
                // A server that begins anew listens again soon: clients that ask without a pause would keep it from that.
                std::thread::sleep(REFUSED_PAUSE);
                self.broken(shared, Errno::CONNREFUSED)
            }
            Err(errno) => self.broken(shared, errno),
        }
    }

    fn receive_head(&mut self, shared: &mut Shared) -> Step {
        let looked_at = self.head_len;
        let count = match recv(&self.socket, &mut self.head[looked_at..], RecvFlags::empty()) {
            Ok((_, 0)) if looked_at == 0 && !self.fresh => return Step::Stale,
            Ok((_, 0)) => {
                return self.failed(shared, Failure::EarlyEnd, "the connection ended inside the head");
            }
            Ok((_, count)) => count,
            Err(Errno::AGAIN) => return Step::Wait,
            Err(Errno::INTR) => return Step::Again,
            Err(errno) => return self.broken(shared, errno),
        };
        self.head_len += count;
        let received = &self.head[..self.head_len];
        let Some(head) = ReplyHead::parse(received, looked_at) else {
            return if self.head_len < HEAD_BYTES_MAX {
                Step::Again
            } else {
                self.failed(shared, Failure::Head, "the head is too long or not a head")
            };
        };
        if head.status != 200 {
            return self.failed(shared, Failure::Status, &format!("status {}", head.status));
        }
        self.closes = head.closes || shared.connection_per_request;
        let length = match head.length {
            BodyLength::Known(length) => length,
            BodyLength::Chunked => {
                let begun = self.head[head.head_bytes..self.head_len].to_vec();
                return self.take_chunks(shared, Chunks::START, &begun);
            }
            BodyLength::Unknown => return self.failed(shared, Failure::Head, "no length of its body"),
        };
        if !shared.requests.length_is(self.request, length) {
            return self.failed(shared, Failure::Length, &format!("{length} bytes"));
        }
        let body = &received[head.head_bytes..];
        if body.len() as u64 > length {
            return self.failed(shared, Failure::Surplus, "more bytes than promised");
        }
        let begun = body.len() as u64;
        if shared.verify {
            self.body_sum = fnv(self.body_sum, body);
        }
        if let Some(comparison) = &mut self.comparison {
            comparison.take(&shared.requests, self.request, body);
        }
        shared.report.bytes += begun;
        self.received(shared, length - begun)
    }

    fn receive_body(&mut self, shared: &mut Shared, left: u64) -> Step {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(shared.scratch.len());
        let is_read = shared.verify || self.comparison.is_some();
        let flags = if is_read { RecvFlags::empty() } else { RecvFlags::TRUNC };
        let count = match recv(&self.socket, &mut shared.scratch[..wanted], flags) {
            Ok((_, 0)) => {
                return self.failed(shared, Failure::EarlyEnd, &format!("{left} bytes of the body missing"));
            }
            Ok((_, count)) => count,
            Err(Errno::AGAIN) => return Step::Wait,
            Err(Errno::INTR) => return Step::Again,
            Err(errno) => return self.broken(shared, errno),
        };
        if shared.verify {
            self.body_sum = fnv(self.body_sum, &shared.scratch[..count]);
        }
        if let Some(comparison) = &mut self.comparison {
            comparison.take(&shared.requests, self.request, &shared.scratch[..count]);
        }
        shared.report.bytes += count as u64;
        self.received(shared, left - count as u64)
    }

    fn receive_chunks(&mut self, shared: &mut Shared, chunks: Chunks) -> Step {
        let count = match recv(&self.socket, &mut shared.scratch[..], RecvFlags::empty()) {
            Ok((_, 0)) => return self.failed(shared, Failure::EarlyEnd, "the last chunk is missing"),
            Ok((_, count)) => count,
            Err(Errno::AGAIN) => return Step::Wait,
            Err(Errno::INTR) => return Step::Again,
            Err(errno) => return self.broken(shared, errno),
        };
        let scratch = std::mem::take(&mut shared.scratch);
        let step = self.take_chunks(shared, chunks, &scratch[..count]);
        shared.scratch = scratch;
        step
    }

    /// Such a body may have another length each time: a server compresses what it has got so far.
    fn take_chunks(&mut self, shared: &mut Shared, mut chunks: Chunks, bytes: &[u8]) -> Step {
        let (verify, sum, received) = (shared.verify, &mut self.body_sum, &mut shared.report.bytes);
        let taken = chunks.take(bytes, |body| {
            *received += body.len() as u64;
            if verify {
                *sum = fnv(*sum, body);
            }
        });
        match taken {
            None => self.failed(shared, Failure::Surplus, "no chunked body, or more than that"),
            Some(()) if chunks == Chunks::End => self.received(shared, 0),
            Some(()) => {
                self.state = State::ChunkedBody(chunks);
                Step::Again
            }
        }
    }

    /// Part of the body has been received; `left` bytes of it are missing.
    fn received(&mut self, shared: &mut Shared, left: u64) -> Step {
        if left > 0 {
            self.state = State::Body { left };
            return Step::Again;
        }
        if self.comparison.as_ref().is_some_and(|comparison| comparison.differs) {
            return self.failed(shared, Failure::Changed, "other bytes than the file has");
        }
        if shared.verify && !shared.requests.sum_is(self.request, self.body_sum) {
            return self.failed(shared, Failure::Changed, "other bytes than before");
        }
        Step::Finished
    }

    fn receive_end(&mut self, shared: &Shared) -> Step {
        match recv(&self.socket, &mut [0_u8; 16], RecvFlags::empty()) {
            // A reset after the complete reply does no harm either.
            Ok((_, 0)) | Err(Errno::CONNRESET) => Step::Ended,
            Ok(_) => self.failed(shared, Failure::Surplus, "bytes after the last reply"),
            Err(Errno::AGAIN) => Step::Wait,
            Err(Errno::INTR) => Step::Again,
            Err(errno) => self.broken(shared, errno),
        }
    }

    fn broken(&self, shared: &Shared, errno: Errno) -> Step {
        if !self.fresh && self.head_len == 0 && matches!(errno, Errno::PIPE | Errno::CONNRESET) {
            return Step::Stale;
        }
        self.failed(shared, Failure::Socket, &errno.to_string())
    }

    fn failed(&self, shared: &Shared, failure: Failure, what: &str) -> Step {
        Step::Failed(failure, format!("{what} for {}", shared.requests.path(self.request)))
    }

    fn reopen(&mut self, shared: &mut Shared) -> Result<()> {
        // Closing the old socket, by dropping it, takes it out of the epoll set as well.
        self.socket = open(self.index, shared)?;
        self.fresh = true;
        Ok(())
    }
}

/// A new connection, perhaps still being opened, registered once for everything that can happen to it.
fn open(index: usize, shared: &mut Shared) -> Result<OwnedFd> {
    let family = if shared.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket =
        socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP)).context("opening a socket")?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match connect(&socket, &shared.address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno).with_context(|| format!("connecting to {}", shared.address)),
    }
    register(&shared.epoll, &socket, index)?;
    shared.report.connections += 1;
    Ok(socket)
}

/// Fowler, Noll and Vo's hash (1a, 64 bits), which does not depend on where the stream was cut.
fn fnv(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Registers a socket once for everything; edge-triggered, so that no later epoll_ctl is needed.
fn register(epoll: &OwnedFd, socket: &OwnedFd, index: usize) -> rustix::io::Result<()> {
    let flags =
        epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
    epoll::add(epoll, socket, epoll::EventData::new_u64(index as u64), flags)
}

/// Before a client that was refused connects again.
const REFUSED_PAUSE: Duration = Duration::from_millis(1);

/// After so many failures the rest would say nothing new.
const FAILURES_MAX: u64 = 1_000;
