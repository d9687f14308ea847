//! The way between a codec and an application: a socket, with TLS on it or not.
//!
//! ```text
//!   codec ─► bytes ─► [records of TLS] ─► socket ◄─ first of all, the PROXY protocol
//! ```
//!
//! In clear nothing lies in between. Under TLS the channel holds what only it can: records that the socket has not taken,
//! and those of which a part is missing.

mod sealed;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use baton_buf::{Piece, Sender, Stop, Unsent};
use baton_tls::{OriginHandshake, OriginNeeds, OriginPolicy, OriginTlsError};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use self::sealed::Sealed;

/// A socket, and what lies on it.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    /// What goes in front of everything else, in clear.
    greeting: Unsent,
    layer: Layer,
}

#[derive(Debug)]
enum Layer {
    Clear,
    /// TLS that is not established.
    Shaking(Box<OriginHandshake>, Unsent),
    Sealed(Box<Sealed>),
}

/// Whether bytes may flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Established {
    Yes,
    /// Once the socket is readable.
    NeedsInput,
    /// Once it is writable.
    NeedsRoom,
}

impl Channel {
    /// A socket that is connected, or about to be. First it sends `greeting`; with `tls`, a handshake comes next.
    pub(crate) fn new(socket: OwnedFd, greeting: Vec<u8>, tls: Option<&OriginPolicy>) -> Self {
        let layer = match tls {
            Some(policy) => Layer::Shaking(Box::new(OriginHandshake::new(policy)), Unsent::default()),
            None => Layer::Clear,
        };
        Self { socket, greeting: Unsent(greeting), layer }
    }

    /// Whether TLS is on it, or will be.
    pub(crate) fn is_secured(&self) -> bool {
        !matches!(self.layer, Layer::Clear)
    }

    /// Whether bytes may flow as soon as it is connected.
    pub(crate) fn is_established(&self) -> bool {
        self.greeting.is_empty() && !matches!(self.layer, Layer::Shaking(..))
    }

    /// Goes on with what has to come before bytes may flow.
    ///
    /// # Errors
    /// The connection is of no use.
    pub(crate) fn establish(&mut self) -> Result<Established, OriginTlsError> {
        // Something follows at once: it leaves in one packet with that.
        match self.greeting.flush(&self.socket, true) {
            Ok(true) => {}
            Ok(false) => return Ok(Established::NeedsRoom),
            Err(_) => return Err(OriginTlsError::Left),
        }
        loop {
            let Layer::Shaking(handshake, unsent) = &mut self.layer else { return Ok(Established::Yes) };
            match unsent.flush(&self.socket, false) {
                Ok(true) => {}
                Ok(false) => return Ok(Established::NeedsRoom),
                Err(_) => return Err(OriginTlsError::Left),
            }
            let needs = handshake.poll();
            unsent.0 = handshake.take_output();
            match needs {
                // The answer first: the other side may wait for it.
                OriginNeeds::Input if !unsent.is_empty() => {}
                OriginNeeds::Input => {
                    let mut arrived = Vec::with_capacity(HANDSHAKE_READ_BYTES);
                    match rustix::io::read(&self.socket, rustix::buffer::spare_capacity(&mut arrived)) {
                        Ok(0) => return Err(OriginTlsError::Left),
                        Ok(_) => handshake.feed(&arrived),
                        Err(Errno::AGAIN) => return Ok(Established::NeedsInput),
                        Err(Errno::INTR) => {}
                        Err(_) => return Err(OriginTlsError::Left),
                    }
                }
                OriginNeeds::Nothing(established) => {
                    let sealed = Sealed::new(*established, std::mem::take(unsent));
                    self.layer = Layer::Sealed(Box::new(sealed));
                }
                OriginNeeds::Failed(error) => {
                    // The alert. The connection ends in any case.
                    let _ = unsent.flush(&self.socket, false);
                    return Err(error);
                }
            }
        }
    }

    /// Reads into the spare memory of `into`, which is empty. 0: the other side has ended the connection.
    ///
    /// # Errors
    /// `EAGAIN`: nothing for now. `ECONNRESET`, also if a connection under TLS ends without saying so: what has arrived may
    /// have been cut. `EPROTO`: what arrived is no TLS.
    pub(crate) fn read(&mut self, into: &mut Vec<u8>) -> Result<usize, Errno> {
        match &mut self.layer {
            Layer::Clear => rustix::io::read(&self.socket, rustix::buffer::spare_capacity(into)),
            Layer::Sealed(sealed) => sealed.read(&self.socket, into),
            Layer::Shaking(..) => Err(Errno::AGAIN),
        }
    }

    /// Looks at a channel on which nothing is expected: whether data have come, or the end.
    pub(crate) fn has_stray_input(&mut self) -> bool {
        match &mut self.layer {
            Layer::Clear | Layer::Shaking(..) => {
                let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
                !matches!(rustix::net::recv(&self.socket, &mut [0; 1], flags), Err(Errno::AGAIN))
            }
            // A server may send tickets at any time.
            Layer::Sealed(sealed) => {
                let mut data = Vec::with_capacity(1);
                !matches!(sealed.read(&self.socket, &mut data), Err(Errno::AGAIN))
            }
        }
    }

    /// Whether it holds bytes that the socket has not taken.
    pub(crate) fn has_unsent(&self) -> bool {
        match &self.layer {
            Layer::Clear => false,
            Layer::Shaking(_, unsent) => !unsent.is_empty(),
            Layer::Sealed(sealed) => sealed.has_unsent(),
        }
    }

    /// Sends what it holds. Returns whether the socket has taken all of it.
    ///
    /// # Errors
    /// The other side is gone.
    pub(crate) fn flush(&mut self) -> Result<bool, Stop> {
        match &mut self.layer {
            Layer::Clear | Layer::Shaking(..) => Ok(true),
            Layer::Sealed(sealed) => sealed.flush(&self.socket).map_err(|_| Stop::PeerGone),
        }
    }

    /// Sends nothing more, and goes on reading. What it holds has been [flushed](Self::flush).
    pub(crate) fn end_output(&mut self) {
        if let Layer::Sealed(sealed) = &mut self.layer {
            sealed.say_end(&self.socket);
        }
        // If it fails, the other side is gone.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }

    /// Takes from what is in front of the queue. `descriptors` go along, in clear only.
    ///
    /// # Errors
    /// Any [`Stop`].
    pub(crate) fn send(&mut self, sender: &mut Sender, descriptors: &[BorrowedFd<'_>]) -> Result<(), Stop> {
        let is_file = matches!(sender.queue.front(), Some(Piece::File(_)));
        match &mut self.layer {
            Layer::Clear if is_file => sender.send_file(&self.socket.as_fd(), u64::MAX, None, false),
            Layer::Clear => sender.send_memory(&self.socket.as_fd(), false, descriptors),
            Layer::Sealed(sealed) => sealed.take(sender, is_file),
            Layer::Shaking(..) => Err(Stop::Full),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Bytes of a handshake read at once: a chain of certificates.
const HANDSHAKE_READ_BYTES: usize = 16 << 10;
