//! The bytes of a connection, in clear or over TLS.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use rustls::{ClientConnection, StreamOwned};

use super::certificate;
use super::protocol::Protocol;
use super::server::PATIENCE;

/// A connection that gives up after [`PATIENCE`].
pub(crate) enum Stream {
    Clear(TcpStream),
    Secure(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Connects. A handshake takes place with the first bytes.
    pub(crate) fn connect(address: SocketAddr, protocol: Protocol) -> Self {
        Self::try_connect(address, protocol).expect("a connection")
    }

    /// The same with a server that may be gone.
    pub(crate) fn try_connect(address: SocketAddr, protocol: Protocol) -> io::Result<Self> {
        let tcp = TcpStream::connect(address)?;
        tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        tcp.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        // Separate writes must arrive separately.
        tcp.set_nodelay(true).expect("an option");
        if !protocol.is_secure() {
            return Ok(Self::Clear(tcp));
        }
        let tls = ClientConnection::new(certificate::trusting(protocol), certificate::name());
        Ok(Self::Secure(Box::new(StreamOwned::new(tls.expect("a client"), tcp))))
    }

    /// The socket itself.
    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Clear(tcp) => tcp,
            Self::Secure(tls) => &tls.sock,
        }
    }

    /// Sends nothing more: with a `close_notify` over TLS, and a FIN. The server may have closed the connection before.
    pub(crate) fn finish_sending(&mut self) -> io::Result<()> {
        if let Self::Secure(tls) = self {
            tls.conn.send_close_notify();
            tls.flush()?;
        }
        match self.tcp().shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        }
    }
}

/// Connects from an address of this host.
pub(crate) fn connect_from(own: IpAddr, address: SocketAddr) -> TcpStream {
    let stream =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
    bind(&stream, &SocketAddr::from((own, 0))).expect("an address");
    rustix::net::connect(&stream, &address).expect("a connection");
    let stream = TcpStream::from(stream);
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(tcp) => tcp.read(bytes),
            Self::Secure(tls) => tls.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(tcp) => tcp.write(bytes),
            Self::Secure(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Clear(tcp) => tcp.flush(),
            Self::Secure(tls) => tls.flush(),
        }
    }
}
