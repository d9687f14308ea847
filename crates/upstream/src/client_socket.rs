//! A client's socket, which applications may share.
//!
//! All copies of a descriptor share one file description, with its flags, and one socket, with its options. Once a copy was
//! sent to an application, each of its processes can change them at any time, also a child that got the copy by `fork`. The
//! kernel does not tell whether copies are left ([0018]). So the server relies on no flag and no option of such a socket:
//!
//! - it sends and receives with `MSG_DONTWAIT`; `sendfile` and `splice`, which have no such flag, are not for it;
//! - it shuts the connection down before it closes it, since closing alone ends nothing while there are copies;
//! - it sets `SO_LINGER` before it closes it, with which the application could make `close` block.
//!
//! [0018]: ../../../docs/decisions/0018-sockets-that-were-passed.md

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use baton_sys::progress;
use rustix::net::{Shutdown, sockopt};

/// A client's socket. Dropping it ends the connection for all holders of copies, unless another process goes on with it.
#[derive(Debug)]
pub struct ClientSocket {
    socket: OwnedFd,
    was_passed: AtomicBool,
    /// Another process goes on with the connection.
    has_left: AtomicBool,
    /// Closing it is to reset the connection.
    is_reset: AtomicBool,
    /// The kernel's count of written bytes if only the server has written.
    written: AtomicU64,
}

impl ClientSocket {
    /// Whether a copy of the descriptor was ever sent to an application.
    pub fn was_passed(&self) -> bool {
        // The session reads this only after the gateway, perhaps on another thread, has handed the client back to it.
        self.was_passed.load(Relaxed)
    }

    /// A copy is about to be sent, or was by the process that had the connection before.
    pub fn note_passed(&self) {
        self.was_passed.store(true, Relaxed);
    }

    /// Another process has a copy, and goes on with the connection: dropping this one ends nothing.
    pub fn note_left(&self) {
        self.has_left.store(true, Relaxed);
    }

    /// Whether closing this copy may leave others open.
    pub fn may_have_copies(&self) -> bool {
        self.was_passed() || self.has_left.load(Relaxed)
    }

    /// Notes how many bytes the server has written to the connection since its beginning, as the kernel counts them. Call
    /// it before the socket is offered to an application.
    pub fn note_written(&self, bytes: u64) {
        self.written.store(bytes, Relaxed);
    }

    /// Notes how many bytes are written where only the kernel knows the count, because it seals what is written.
    /// What it has sealed and not yet written will look as if an application had written it, which is the safe mistake.
    pub fn note_written_so_far(&self) {
        if let Ok(bytes) = progress::bytes_written(self) {
            self.note_written(bytes);
        }
    }

    /// Whether the kernel confirms that nothing was written beyond what was [noted](Self::note_written). It cannot for a
    /// Unix socket.
    pub(crate) fn is_untouched(&self) -> bool {
        progress::bytes_written(self).is_ok_and(|written| written == self.written.load(Relaxed))
    }

    /// Bytes that the client has acknowledged; `None`: the kernel does not tell.
    pub(crate) fn bytes_acknowledged(&self) -> Option<u64> {
        progress::bytes_acknowledged(self).ok()
    }

    /// Resets the connection: drops what the client has not taken, so that the client sees no orderly end of a response. If
    /// there may be copies, it resets at once and for all holders; otherwise when the caller closes the socket. A kernel
    /// that seals records resets with the last copy, before which nothing more is sent or received.
    pub fn reset(&self) {
        self.is_reset.store(true, Relaxed);
        if !self.was_passed() {
            // It fails only where there are no resets, as on a Unix socket.
            let _ = sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
        } else if rustix::net::connect_unspec(&self.socket).is_err() {
            // Dissolving the association of a TCP socket sends a reset; a Unix socket has none, and a TCP socket whose
            // records the kernel seals cannot be dissolved.
            let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
        }
    }
}

impl From<OwnedFd> for ClientSocket {
    fn from(socket: OwnedFd) -> Self {
        let [was_passed, has_left, is_reset] = [const { AtomicBool::new(false) }; 3];
        Self { socket, was_passed, has_left, is_reset, written: AtomicU64::new(0) }
    }
}

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for ClientSocket {
    fn drop(&mut self) {
        if self.was_passed() && !self.has_left.load(Relaxed) {
            // Either fails if the connection is over already, and then there is nothing to do. No time to wait means a
            // reset where one is due.
            let linger = self.is_reset.load(Relaxed).then_some(Duration::ZERO);
            let _ = sockopt::set_socket_linger(&self.socket, linger);
            let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Goal: what others have written shows, whatever the server has written before. Method: a copy, which is what an
    /// application has.
    #[test]
    fn what_an_application_has_written_shows() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(b"an earlier response").unwrap();
        let mut application = server.try_clone().unwrap();
        let socket = ClientSocket::from(OwnedFd::from(server));
        assert!(!socket.is_untouched(), "it was not told");
        socket.note_written(19);
        assert!(socket.is_untouched());
        application.write_all(b"x").unwrap();
        assert!(!socket.is_untouched());
        let unix = ClientSocket::from(OwnedFd::from(UnixStream::pair().unwrap().0));
        assert!(!unix.is_untouched(), "nothing can be known of it");
    }
}
