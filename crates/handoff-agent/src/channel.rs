//! A connection with another agent: TCP, TLS and messages.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use baton_cluster::agent::limits::NODE_LOST_MS;
use baton_cluster::peer::Frames;
use baton_tls::{MemberChannel, MemberKey};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

/// Most bytes that wait for a peer: some dozens of connections. One that is that far behind is disconnected.
const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// Bytes read at a time.
const READ_BYTES: usize = 64 << 10;

/// One connection.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    tls: MemberChannel,
    pub(crate) frames: Frames,
    output: Vec<u8>,
    is_connecting: bool,
    /// The machine knows it.
    pub(crate) is_announced: bool,
    pub(crate) since_ms: u64,
}

impl Channel {
    /// Begins to connect.
    pub(crate) fn connect(address: SocketAddr, key: &MemberKey, now_ms: u64) -> Result<Self, String> {
        let connect = || {
            let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
            match rustix::net::connect(&socket, &address) {
                Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
                Err(error) => Err(error),
            }
        };
        let socket = connect().map_err(|error| error.to_string())?;
        Self::new(socket, key.connect().map_err(|trouble| trouble.to_string())?, true, now_ms)
    }

    /// A connection that has arrived.
    pub(crate) fn accept(socket: OwnedFd, key: &MemberKey, now_ms: u64) -> Result<Self, String> {
        Self::new(socket, key.accept().map_err(|trouble| trouble.to_string())?, false, now_ms)
    }

    fn new(socket: OwnedFd, tls: MemberChannel, is_connecting: bool, now_ms: u64) -> Result<Self, String> {
        let prepare = || {
            sockopt::set_tcp_nodelay(&socket, true)?;
            // The kernel gives up with the machine.
            sockopt::set_tcp_user_timeout(&socket, NODE_LOST_MS as u32)
        };
        prepare().map_err(|error| error.to_string())?;
        Ok(Self {
            socket,
            tls,
            frames: Frames::default(),
            output: Vec::new(),
            is_connecting,
            is_announced: false,
            since_ms: now_ms,
        })
    }

    /// Whether the peer has shown that it is a member.
    pub(crate) fn is_established(&self) -> bool {
        self.tls.is_established()
    }

    /// The name of the member at the other end, once it is known.
    pub(crate) fn member(&self) -> Option<String> {
        self.tls.member()
    }

    /// Whether it waits for the socket to become writable.
    pub(crate) fn wants_write(&self) -> bool {
        self.is_connecting || !self.output.is_empty()
    }

    /// Sends a message, at the next [`flush`](Self::flush).
    pub(crate) fn send(&mut self, message: &[u8]) {
        self.tls.send(message);
        self.tls.take_output(&mut self.output);
    }

    /// Sends what there is.
    pub(crate) fn flush(&mut self) -> Result<(), String> {
        if self.is_connecting {
            return Ok(());
        }
        self.tls.take_output(&mut self.output);
        let mut sent = 0;
        while sent < self.output.len() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(&self.socket, &self.output[sent..], flags) {
                Ok(bytes) => sent += bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        self.output.drain(..sent);
        match self.output.len() <= OUTPUT_BYTES_MAX {
            true => Ok(()),
            false => Err("it does not keep up".into()),
        }
    }

    /// The socket is writable: a connection is there, or has failed.
    pub(crate) fn handle_writable(&mut self) -> Result<(), String> {
        if self.is_connecting {
            sockopt::socket_error(&self.socket)
                .map_err(|error| error.to_string())?
                .map_err(|error| error.to_string())?;
            self.is_connecting = false;
        }
        self.flush()
    }

    /// Reads once. `false`: there is nothing now.
    ///
    /// # Errors
    /// The connection has ended; what has arrived before is in the frames.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>) -> Result<bool, String> {
        buffer.resize(READ_BYTES, 0);
        let (bytes, _) = match rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.to_string()),
        };
        if bytes == 0 {
            return Err("it has closed the connection".into());
        }
        let mut data = Vec::new();
        let fed = self.tls.feed(&buffer[..bytes], &mut data);
        self.frames.feed(&data);
        match fed {
            Ok(true) => Ok(bytes == READ_BYTES),
            Ok(false) => Err("it has closed the connection".into()),
            Err(trouble) => {
                // It is told why.
                let _ = self.flush();
                Err(trouble.to_string())
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
