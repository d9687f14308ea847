//! What bytes run over, without waiting: a socket, or what a test puts in its place.

use std::fmt::Debug;
use std::sync::Arc;

use baton_buf::Sink;
use baton_sys::kernel_tls::{self, TransmitKey};
use baton_tls::{Alert, KernelTransmit};
use baton_upstream::ClientSocket;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::set_tcp_cork;
use rustix::net::{RecvFlags, Shutdown};

/// A way to the client and back.
pub trait ByteStream: Sink + Debug + Send + Sync {
    /// The socket; `None`: the stream is none.
    fn socket(&self) -> Option<&ClientSocket>;

    /// The socket, to share it.
    fn share_socket(self: Arc<Self>) -> Option<Arc<ClientSocket>>;

    /// Reads what has arrived, as far as there is room. 0: the client has ended its input.
    ///
    /// # Errors
    /// `EAGAIN`: nothing for now. `ECONNRESET` and the like: the client is gone.
    fn receive(&self, into: &mut [u8]) -> Result<usize, Errno>;

    /// Like [`receive`](Self::receive), and notes whether there may be more.
    fn receive_and_note(
        &self,
        into: &mut [u8],
        readable: &mut bool,
        end_announced: bool,
    ) -> Result<usize, Errno> {
        let received = self.receive(into);
        match received {
            Ok(0) => {}
            // A short read took everything. The poller announces new data, but not an end that came with this data.
            Ok(count) => *readable = count == into.len() || end_announced,
            Err(Errno::AGAIN) => *readable = false,
            Err(_) => {}
        }
        received
    }

    /// Whether ranges of files leave by reference.
    fn sends_files(&self) -> bool;

    /// Whether the stream takes more. If not, the poller will say when it does.
    fn is_writable(&self) -> bool;

    /// Keeps the last packet of what is sent from now on until the end of the output joins it.
    /// Returns whether the stream can.
    fn cork(&self) -> bool;

    /// Has the kernel seal what is sent from now on. `false`: nothing has changed.
    fn seal(&self, keys: &KernelTransmit) -> bool;

    /// Sends an alert on a stream whose records the kernel seals, if it takes it now.
    fn send_alert(&self, alert: Alert);

    /// Ends the server's half of the connection. `false`: the client is gone.
    fn end_output(&self) -> bool;

    /// Resets the connection, at the latest when it is closed.
    fn reset(&self);
}

impl ByteStream for ClientSocket {
    fn socket(&self) -> Option<&ClientSocket> {
        Some(self)
    }

    fn share_socket(self: Arc<Self>) -> Option<Arc<ClientSocket>> {
        Some(self)
    }

    fn receive(&self, into: &mut [u8]) -> Result<usize, Errno> {
        retry_on_intr(|| rustix::net::recv(self, &mut *into, RecvFlags::DONTWAIT)).map(|(_, count)| count)
    }

    // On a socket that was passed they do not: see [`ClientSocket`].
    fn sends_files(&self) -> bool {
        !self.was_passed()
    }

    fn is_writable(&self) -> bool {
        let mut poll = [PollFd::new(self, PollFlags::OUT)];
        // An end counts: the next call that sends will meet it.
        retry_on_intr(|| rustix::event::poll(&mut poll, Some(&Timespec::default()))) != Ok(0)
    }

    fn cork(&self) -> bool {
        set_tcp_cork(self, true).is_ok()
    }

    fn seal(&self, keys: &KernelTransmit) -> bool {
        let (salt, iv, sequence) = (keys.salt(), keys.iv(), keys.sequence);
        kernel_tls::seal(self, &TransmitKey { key: keys.key(), salt, iv, sequence }).is_ok()
    }

    fn send_alert(&self, alert: Alert) {
        // The connection ends in any case.
        let _ = kernel_tls::send_record(self, Alert::CONTENT_TYPE, &alert.message());
    }

    fn end_output(&self) -> bool {
        rustix::net::shutdown(self, Shutdown::Write).is_ok()
    }

    fn reset(&self) {
        self.reset();
    }
}
