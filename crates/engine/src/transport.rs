//! The connection to a client: a byte stream, and what else it can do.
//!
//! A session asks what its transport can do instead of knowing what it is: whether ranges of files may leave by
//! reference, and whether an application may be given the connection. All reading and writing of a client's socket
//! happens here, without waiting.
//!
//! Kinds: a socket, and memory, over which the simulation runs sessions without a kernel between.

#[cfg(test)]
pub(crate) mod memory;

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use baton_gateway::{ClientSocket, HandOver};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};

use crate::SendfileMode;
use crate::outlet::{Flush, Outlet, SendPolicy};

/// A client's end of a connection.
///
/// Input: `handle_*`, what the loop is told of the socket. Getters say what is known without a system call.
#[derive(Debug)]
pub(crate) struct Transport {
    kind: Kind,
    /// `None`: a client on a Unix socket.
    peer: Option<SocketAddr>,
    /// The server's address of the connection, for applications; it never changes.
    local: OnceCell<Option<SocketAddr>>,
    /// There may be something to read.
    readable: bool,
    /// The client will send nothing more, and all that it sent has been read.
    input_ended: bool,
    /// The poller reported the end of the input, which it does once. Unread data may precede the end.
    end_announced: bool,
    /// The connection was reset, or is over in both directions.
    hung_up: bool,
    /// Bytes that applications claim to have written, without the framing that they added.
    sent_by_others: u64,
}

/// What the bytes go through.
#[derive(Debug)]
enum Kind {
    Socket(Arc<ClientSocket>),
    #[cfg(test)]
    Memory(memory::ServerEnd),
}

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// Nothing ever again: the client has ended its input, or is gone.
    End,
}

/// What an application needs to know to answer on the client's connection.
#[derive(Debug)]
pub(crate) struct HandOverTerms {
    /// The minor version of HTTP/1 that the client speaks: 0 or 1.
    pub(crate) minor: u8,
    /// Whether the server is willing to go on with the connection.
    pub(crate) keep: bool,
    /// Whether the request is a `HEAD`.
    pub(crate) head: bool,
    /// Complete fields of the response head: `Name: value CRLF`.
    pub(crate) fields: Vec<u8>,
}

impl Transport {
    /// A connection that has just been accepted.
    pub(crate) fn new(socket: OwnedFd, peer: Option<SocketAddr>) -> Self {
        Self::over(Kind::Socket(Arc::new(socket.into())), peer)
    }

    /// A connection in memory.
    #[cfg(test)]
    pub(crate) fn in_memory(end: memory::ServerEnd, peer: SocketAddr) -> Self {
        Self::over(Kind::Memory(end), Some(peer))
    }

    fn over(kind: Kind, peer: Option<SocketAddr>) -> Self {
        Self {
            kind,
            peer,
            local: OnceCell::new(),
            // The first read is tried at once: with TCP_DEFER_ACCEPT the request is there already.
            readable: true,
            input_ended: false,
            end_announced: false,
            hung_up: false,
            sent_by_others: 0,
        }
    }

    /// The socket, to wait on.
    pub(crate) fn socket(&self) -> &Arc<ClientSocket> {
        match &self.kind {
            Kind::Socket(socket) => socket,
            #[cfg(test)]
            Kind::Memory(_) => unreachable!("the simulation waits for its clients without descriptors"),
        }
    }

    /// The client's address; `None`: a client on a Unix socket.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Our end of the connection; `None`: a Unix socket.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        *self.local.get_or_init(|| match &self.kind {
            Kind::Socket(socket) => SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok(),
            #[cfg(test)]
            Kind::Memory(_) => None,
        })
    }

    /// Whether there may be something to read.
    pub(crate) fn is_readable(&self) -> bool {
        self.readable
    }

    /// Whether the client will send nothing more, and all that it sent has been read.
    pub(crate) fn has_ended_input(&self) -> bool {
        self.input_ended
    }

    /// Whether the connection is over in both directions: no answer can arrive.
    pub(crate) fn is_hung_up(&self) -> bool {
        self.hung_up
    }

    /// Whether ranges of files leave by reference. On a socket that was passed they do not: see [`ClientSocket`].
    pub(crate) fn sends_files(&self) -> bool {
        match &self.kind {
            Kind::Socket(socket) => !socket.was_passed(),
            #[cfg(test)]
            Kind::Memory(end) => end.sends_files(),
        }
    }

    /// Whether an application was given the connection, now or before.
    pub(crate) fn was_passed(&self) -> bool {
        match &self.kind {
            Kind::Socket(socket) => socket.was_passed(),
            #[cfg(test)]
            Kind::Memory(_) => false,
        }
    }

    /// There is something to read.
    pub(crate) fn handle_readable(&mut self) {
        self.readable = true;
    }

    /// The client has ended its input, perhaps behind unread data, or is gone. For pollers that report this only once.
    pub(crate) fn handle_input_end(&mut self) {
        self.readable = true;
        self.end_announced = true;
    }

    /// The connection is over in both directions.
    pub(crate) fn handle_hangup(&mut self) {
        self.hung_up = true;
    }

    /// An application may have read from the connection: the state of the input is unknown again.
    pub(crate) fn handle_read_by_others(&mut self) {
        (self.readable, self.input_ended) = (true, false);
    }

    /// An application claims to have written so many bytes. The claim is not verified.
    pub(crate) fn handle_sent_by_others(&mut self, bytes: u64) {
        self.sent_by_others = self.sent_by_others.saturating_add(bytes);
    }

    /// Reads what has arrived, as far as there is room.
    pub(crate) fn receive(&mut self, into: &mut [u8]) -> Received {
        loop {
            let received = match &self.kind {
                Kind::Socket(socket) => {
                    rustix::net::recv(socket, &mut *into, RecvFlags::DONTWAIT).map(|(_, count)| count)
                }
                #[cfg(test)]
                Kind::Memory(end) => end.receive(into),
            };
            match received {
                Ok(0) => {
                    self.input_ended = true;
                    return Received::End;
                }
                Ok(count) => {
                    // A short read took everything. The poller announces new data, but not an end that came with this
                    // data.
                    self.readable = count == into.len() || self.end_announced;
                    return Received::Bytes(count);
                }
                Err(Errno::AGAIN) => {
                    self.readable = false;
                    return Received::Nothing;
                }
                Err(Errno::INTR) => {}
                Err(_) => return Received::End,
            }
        }
    }

    /// Sends what the outlet holds, as much as the connection takes; ranges of files through `scratch` where they
    /// cannot go by reference. `last`: the connection ends behind it.
    pub(crate) fn flush(
        &self,
        outlet: &mut Outlet,
        policy: &SendPolicy,
        scratch: &mut [u8],
        last: bool,
        unix_seconds: u64,
    ) -> Flush {
        let by_reference = self.sends_files() && policy.sendfile != SendfileMode::Never;
        let through = (!by_reference).then_some(scratch);
        match &self.kind {
            Kind::Socket(socket) => outlet.flush(&socket.as_fd(), policy, through, last, unix_seconds),
            #[cfg(test)]
            Kind::Memory(end) => outlet.flush(end, policy, through, last, unix_seconds),
        }
    }

    /// Ends the server's half of the connection, after what has been sent. `false`: the client is gone.
    pub(crate) fn end_output(&mut self) -> bool {
        self.readable = true;
        match &self.kind {
            Kind::Socket(socket) => rustix::net::shutdown(socket, Shutdown::Write).is_ok(),
            #[cfg(test)]
            Kind::Memory(end) => end.end_output(),
        }
    }

    /// Offers the connection to an application, after the server has sent `sent` bytes. `None`: the connection cannot
    /// be passed, or it is over; the poller will not report its end again.
    pub(crate) fn hand_over(&self, terms: HandOverTerms, sent: u64) -> Option<HandOver> {
        let HandOverTerms { minor, keep, head, fields } = terms;
        match &self.kind {
            Kind::Socket(_) if self.hung_up => None,
            Kind::Socket(socket) => {
                // Without encryption the kernel's count of bytes is the same as this one.
                socket.note_written(sent.saturating_add(self.sent_by_others));
                Some(HandOver { client: Arc::clone(socket), minor, keep, head, fields })
            }
            #[cfg(test)]
            Kind::Memory(_) => None,
        }
    }

    /// Resets the connection, at the latest when it is closed, which has to follow. The kernel drops what the client
    /// has not taken.
    pub(crate) fn reset(&self) {
        match &self.kind {
            Kind::Socket(socket) => socket.reset(),
            #[cfg(test)]
            Kind::Memory(end) => end.reset(),
        }
    }
}
